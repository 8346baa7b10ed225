"""Numbers of a kernel of which a device may have others, and what is computed of them.

An operator on them gives another one, whose bounds follow from the operator on members: on all of
them where they are few, else on the ends where it is monotone. Python's own ways to a plain number
(`int`, `float`, `range`, a list's index, a condition, a key of a dict) leave no trace of it, so it
is noted that they were taken: from then on anything may depend on it.
"""

from __future__ import annotations

import enum
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

Bounds = tuple[int | float, int | float]
"""The least and the greatest of numbers; -0.0 lies below 0.0."""

_FEW: Final = 64
"""So many members, or pairs of members, are tried one by one."""
_BEYOND: Final = 1 << 63
"""A device's scalars have 64 bits."""


class _Rule(enum.Enum):
    """The ways in which an operator's bounds follow from those of many members."""

    ENDS = "monotone in each operand: least and greatest over all combinations of ends"
    ENDS_AND_ZERO = "those, and zero where it lies between"
    QUOTIENT = "those of ends; anything, where the divisor may be zero"
    REMAINDER = "nearer to zero than the divisor"
    EQUALITY = "open where the intervals meet"
    MEMBERS = "anything"
    GROWS = "anything, also of few members where the second operand is large"


class _Operator(NamedTuple):
    function: Callable[..., Any]
    rule: _Rule
    gives_truth: bool = False


_BINARY: Final[Mapping[str, _Operator]] = {
    "add": _Operator(operator.add, _Rule.ENDS),
    "sub": _Operator(operator.sub, _Rule.ENDS),
    "mul": _Operator(operator.mul, _Rule.ENDS),
    "truediv": _Operator(operator.truediv, _Rule.QUOTIENT),
    "floordiv": _Operator(operator.floordiv, _Rule.QUOTIENT),
    "mod": _Operator(operator.mod, _Rule.REMAINDER),
    "rshift": _Operator(operator.rshift, _Rule.ENDS),
    "lshift": _Operator(operator.lshift, _Rule.GROWS),
    "pow": _Operator(operator.pow, _Rule.GROWS),
    "and": _Operator(operator.and_, _Rule.MEMBERS),
    "or": _Operator(operator.or_, _Rule.MEMBERS),
    "xor": _Operator(operator.xor, _Rule.MEMBERS),
}
_COMPARISONS: Final[Mapping[str, _Operator]] = {
    "lt": _Operator(operator.lt, _Rule.ENDS, gives_truth=True),
    "le": _Operator(operator.le, _Rule.ENDS, gives_truth=True),
    "gt": _Operator(operator.gt, _Rule.ENDS, gives_truth=True),
    "ge": _Operator(operator.ge, _Rule.ENDS, gives_truth=True),
    "eq": _Operator(operator.eq, _Rule.EQUALITY, gives_truth=True),
    "ne": _Operator(operator.ne, _Rule.EQUALITY, gives_truth=True),
}
_METHODS: Final[Mapping[str, _Operator]] = {
    "min": _Operator(lambda a, b: a.min(b), _Rule.ENDS),
    "max": _Operator(lambda a, b: a.max(b), _Rule.ENDS),
}
_UNARY: Final[Mapping[str, _Operator]] = {
    "neg": _Operator(operator.neg, _Rule.ENDS),
    "pos": _Operator(operator.pos, _Rule.ENDS),
    "abs": _Operator(operator.abs, _Rule.ENDS_AND_ZERO),
    "invert": _Operator(operator.invert, _Rule.ENDS_AND_ZERO),
    "trunc": _Operator(math.trunc, _Rule.ENDS),
    "floor": _Operator(math.floor, _Rule.ENDS),
    "ceil": _Operator(math.ceil, _Rule.ENDS),
    "round": _Operator(round, _Rule.ENDS),
}
_OPERATORS: Final = {**_BINARY, **_COMPARISONS, **_METHODS, **_UNARY}
"""By the name that Python gives them; the function is the one of decided numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class _Unknown:
    """An int that a device may have otherwise; two that are not one object may differ."""

    bounds: Bounds | None


class _Line(NamedTuple):
    """A number as `factor * of + shift`; a decided one is of nothing, and has no factor."""

    of: _Unknown | None
    factor: int
    shift: int

    def bounds(self) -> Bounds | None:
        """The least and the greatest; None: any number."""
        if self.of is None:
            return self.shift, self.shift
        if self.of.bounds is None:
            return None
        ends = [self.factor * int(end) + self.shift for end in self.of.bounds]
        return (min(ends), max(ends)) if max(map(abs, ends)) < _BEYOND else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class UndecidedScalar:
    """A number of a kernel of which a device may have another value; so may what is computed of it.

    To Python it is of the class of its value, but no int, so that each way to a plain number asks
    it. The simulation goes by the value.

    Attributes:
        value: a scalar of the kernel, a truth or a float.
        bounds: what a device may have; None: any number.
        cause: the index of what leaves it open.
        line: of an int, the unknown that it is, or is computed of by +, - and * alone.
    """

    value: Any
    bounds: Bounds | None
    cause: int
    line: _Line | None

    def __array_ufunc__(
        self, function: Callable[..., Any], method: str, *inputs: Any, **named: Any
    ) -> Any:
        """Call a function of numpy with the value; the operators of arrays are such functions."""
        return getattr(function, method)(*map(taken, inputs), **named)

    @staticmethod
    def of(value: Any, low: int, high: int, cause: int) -> UndecidedScalar:
        """A number that was read of an element: its value, bounds and what leaves it open."""
        return _made(value, (low, high), cause, None)

    if TYPE_CHECKING:  # the operators are made from a table

        def __add__(self, other: Any) -> Any: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __add__

        def __lt__(self, other: Any) -> Any: ...
        def min(self, other: Any) -> Any: ...
        def max(self, other: Any) -> Any: ...

    else:

        @property
        def __class__(self):
            return type(self.value)

    def like(self, kind: Callable[[Any], Any]) -> UndecidedScalar:
        """The same number with a value of another kind."""
        value = kind(self.value)
        return UndecidedScalar(value=value, bounds=self.bounds, cause=self.cause, line=self.line)

    def concrete(self) -> int:
        """The value as a plain int."""
        return int(self)

    def is_concrete(self) -> bool:
        """True: the simulation has a value."""
        return True

    def as_variable(self) -> None:
        """Mark it as a variable for upstream's compiler; no bit depends on it."""

    def __bool__(self) -> bool:
        bounds = self.bounds
        is_nonzero = bounds is not None and (bounds[0] > 0 or bounds[1] < 0)
        return is_nonzero or bool(taken(self))

    def __int__(self) -> int:
        return int(taken(self))

    def __index__(self) -> int:
        return operator.index(taken(self))

    def __float__(self) -> float:
        return float(taken(self))

    def __complex__(self) -> complex:
        return complex(taken(self))

    def __hash__(self) -> int:
        return hash(taken(self))

    def __divmod__(self, other: Any) -> Any:
        return divmod(taken(self), taken(other))

    def __rdivmod__(self, other: Any) -> Any:
        return divmod(other, taken(self))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(self.value, name):
            raise AttributeError(f"a number of a kernel has no attribute {name!r}")
        return getattr(taken(self), name)

    def __repr__(self) -> str:
        return repr(taken(self))

    def __str__(self) -> str:
        return str(taken(self))

    def __format__(self, form: str) -> str:
        return format(taken(self), form)


def _define_operators() -> None:
    for name in (*_BINARY, *_COMPARISONS):
        setattr(UndecidedScalar, f"__{name}__", _method(name))
    for name in _BINARY:
        setattr(UndecidedScalar, f"__r{name}__", _method(name, is_reflected=True))
    for name in _METHODS:
        setattr(UndecidedScalar, name, _method(name))
    for name in _UNARY:
        setattr(UndecidedScalar, f"__{name}__", _method(name))


def _method(name: str, *, is_reflected: bool = False) -> Callable[..., Any]:
    def apply(self: UndecidedScalar, *others: Any) -> Any:
        if any(isinstance(other, (np.ndarray, np.generic)) for other in others):
            return _OPERATORS[name].function(*_ordered(taken(self), others, is_reflected))
        if not all(isinstance(other, Real) for other in others):
            return NotImplemented
        return followed(name, *_ordered(self, others, is_reflected))

    return apply


def _ordered(one: Any, others: Sequence[Any], is_reflected: bool) -> Sequence[Any]:
    return (*others, one) if is_reflected else (one, *others)


_define_operators()


STEERED_BY: Final[ContextVar[list[int] | None]] = ContextVar("pypto_cast_steered", default=None)
"""The causes of the undecided numbers that steered the kernel that runs; None outside kernels."""


def steer(cause: int) -> None:
    """Keep the cause of an undecided number that decides what a kernel does."""
    if (causes := STEERED_BY.get()) is not None:
        causes.append(cause)


def taken(number: Any) -> Any:
    """A number for Python to go by; of an undecided one its value, which steers the kernel."""
    if isinstance(number, UndecidedScalar):
        steer(number.cause)
    return value_of(number)


def value_of(number: Any) -> Any:
    """The number that the simulation goes by; what is done with it must not need a trace."""
    return number.value if isinstance(number, UndecidedScalar) else number


def undecided(given: object) -> int | None:
    """The cause of the first undecided number in an index, a list or a tuple; None without one."""
    if isinstance(given, UndecidedScalar):
        return given.cause
    if isinstance(given, slice):
        return undecided((given.start, given.stop))
    if isinstance(given, (list, tuple)):
        return next((cause for each in given if (cause := undecided(each)) is not None), None)
    return None


def followed(name: str, *operands: Any) -> Any:
    """The result of an operator on numbers some of which are undecided.

    Args:
        name: Python's, as "add".
        operands: numbers.

    Returns:
        An undecided number, or the value if a device has no other.
    """
    operation = _OPERATORS[name]
    value = operation.function(*map(value_of, operands))
    cause = undecided(operands)
    assert cause is not None
    line = _line(name, operands)
    difference = _line("sub", operands) if name in _COMPARISONS else None
    if line is not None:
        bounds = line.bounds()
    elif difference is not None and (apart := difference.bounds()) is not None:
        bounds = _by_rule(operation, [_Range(int, apart), _Range(int, (0, 0))])
    else:
        bounds = _bounds(operation, operands)
    if bounds is None and operation.gives_truth:
        bounds = False, True
    if bounds is not None and _order(bounds[0]) == _order(bounds[1]):
        return value
    return _made(value, bounds, cause, line)


def _made(value: Any, bounds: Bounds | None, cause: int, line: _Line | None) -> UndecidedScalar:
    if line is None and isinstance(value, Integral):
        line = _Line(_Unknown(bounds), 1, 0)
    return UndecidedScalar(value=value, bounds=bounds, cause=cause, line=line)


def _line(name: str, operands: Sequence[Any]) -> _Line | None:
    """A sum, difference or product as a multiple of one number and a decided one, if it is that."""
    lines = [_line_of(operand) for operand in operands]
    first, second = lines[0], lines[-1]
    if first is None or second is None:
        return None
    are_one = first.of is None or second.of is None or first.of is second.of
    if name in ("add", "sub") and are_one:
        sign = -1 if name == "sub" else 1
        factor, shift = first.factor + sign * second.factor, first.shift + sign * second.shift
    elif name == "mul" and (first.of is None or second.of is None):
        factor = first.factor * second.shift + second.factor * first.shift
        shift = first.shift * second.shift
    elif name == "neg":
        factor, shift = -first.factor, -first.shift
    else:
        return None
    return _Line((first.of or second.of) if factor else None, factor, shift)


def _line_of(operand: Any) -> _Line | None:
    if isinstance(operand, UndecidedScalar):
        return operand.line
    return _Line(None, 0, operator.index(operand)) if hasattr(operand, "__index__") else None


class _Range(NamedTuple):
    """The numbers that an operand can be.

    Attributes:
        kind: makes one of them an operand.
        bounds: of them.
    """

    kind: Callable[[Any], Any]
    bounds: Bounds

    @staticmethod
    def of(operand: Any) -> _Range | None:
        """The range of an operand; None of one that may be any number."""
        if not isinstance(operand, UndecidedScalar):
            return _Range(lambda _: operand, (operand, operand))
        bounds = operand.bounds
        return None if bounds is None else _Range(type(operand.value), bounds)

    @property
    def size(self) -> float:
        """The number of them."""
        low, high = self.bounds
        if _order(low) == _order(high):
            return 1
        are_ints = all(isinstance(end, Integral) for end in (low, high))
        return high - low + 1 if are_ints else math.inf

    def members(self) -> Iterator[Any]:
        """All of few."""
        low, high = self.bounds
        return map(self.kind, [low] if self.size == 1 else range(int(low), int(high) + 1))

    def ends(self) -> list[Any]:
        """The least and the greatest."""
        return [self.kind(end) for end in self.bounds]

    def contains_zero(self) -> bool:
        """Tells whether 0 lies in it."""
        return self.bounds[0] <= 0 <= self.bounds[1]


def _bounds(operation: _Operator, operands: Sequence[Any]) -> Bounds | None:
    """The least and the greatest result; None: any number."""
    ranges = [_Range.of(operand) for operand in operands]
    known = [each for each in ranges if each is not None]
    if len(known) < len(ranges):
        return None
    if operation.rule is _Rule.GROWS and max(map(abs, known[1].bounds)) > _FEW:
        return None
    if math.prod(each.size for each in known) > _FEW:
        return _by_rule(operation, known)
    return _hull(operation, itertools.product(*(each.members() for each in known)))


def _by_rule(operation: _Operator, ranges: Sequence[_Range]) -> Bounds | None:
    ends = list(itertools.product(*(each.ends() for each in ranges)))
    last = ranges[-1]
    if operation.rule is _Rule.ENDS_AND_ZERO and last.contains_zero():
        ends.append((last.kind(0),))
    elif operation.rule is _Rule.QUOTIENT and last.contains_zero():
        return None
    elif operation.rule is _Rule.REMAINDER:
        return _remainder(*ranges)
    elif operation.rule is _Rule.EQUALITY:
        (low, high), (other_low, other_high) = (each.bounds for each in ranges)
        if low <= other_high and other_low <= high and any(each.size > 1 for each in ranges):
            return None
    elif operation.rule in (_Rule.MEMBERS, _Rule.GROWS):
        return None
    return _hull(operation, ends)


def _remainder(dividend: _Range, divisor: _Range) -> Bounds | None:
    """The bounds of a remainder, which may have the sign of either operand."""
    ends = (*dividend.bounds, *divisor.bounds)
    if divisor.contains_zero() or not all(isinstance(end, Integral) for end in ends):
        return None
    most = int(max(map(abs, divisor.bounds))) - 1
    if dividend.bounds[0] >= 0 and divisor.bounds[0] > 0:
        return 0, min(most, int(dividend.bounds[1]))
    return -most, most


def _hull(operation: _Operator, combinations: Any) -> Bounds | None:
    try:
        results = [operation.function(*operands) for operands in combinations]
    except (ArithmeticError, TypeError, ValueError):  # of a device nothing is known then
        return None
    if not all(map(_is_plain, results)):
        return None
    plain = [int(x) if isinstance(x, Integral) else float(x) for x in results]
    return min(plain, key=_order), max(plain, key=_order)


def _is_plain(result: Any) -> bool:
    if isinstance(result, Integral):
        return abs(int(result)) < _BEYOND
    return isinstance(result, Real) and math.isfinite(result)


def _order(number: float) -> tuple[float, float]:
    return number, math.copysign(1, number)
