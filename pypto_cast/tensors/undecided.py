"""Numbers of a kernel of which a device may have others, and arithmetic on them.

An operator on them gives another one, whose bounds follow from the operator on members: on all of
them where they are few, else on the ends where it is monotone. Python's own ways to a plain number
(`int`, `float`, `range`, a list's index, a condition, a key of a dict) leave no trace of it, so it
is noted that they were taken: from then on anything may depend on it. So it may on an operator that
raises for some member, which a kernel may catch.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pypto_cast.recording.causes import CONTROL_DEPENDENCE
from tiling.grid import quotient, remainder

Bounds = tuple[int, int]
"""The least and the greatest of numbers."""

_FEW: Final = 64
"""So many members, or pairs of members, are tried one by one."""
_BEYOND: Final = 1 << 63
"""A device's scalars have 64 bits."""


def _power(base: int, exponent: int) -> int:
    """An int's power; one beyond 64 bits is not calculated to its end."""
    if exponent < 0:
        raise ValueError(f"{base} ** {exponent}: numbers of a kernel are ints, and this is none")
    return int(base ** (exponent if abs(base) < 2 else min(exponent, 64)))


def _shifted(number: int, count: int) -> int:
    """An int shifted left; one beyond 64 bits is not calculated to its end."""
    return number << min(count, 64)


def _end_bounds(value: Callable[..., int], ranges: Sequence[Bounds]) -> Bounds | None:
    return _hull(value, itertools.product(*ranges))


def _negation_bounds(value: Callable[..., int], ranges: Sequence[Bounds]) -> Bounds | None:
    """Those of ends, and of zero where it lies between."""
    ((low, high),) = ranges
    return _hull(value, [(low,), (high,), *([(0,)] if low <= 0 <= high else [])])


def _quotient_bounds(value: Callable[..., int], ranges: Sequence[Bounds]) -> Bounds | None:
    """Those of ends; any number, where the divisor may be zero."""
    return None if ranges[1][0] <= 0 <= ranges[1][1] else _end_bounds(value, ranges)


def _remainder_bounds(value: Callable[..., int], ranges: Sequence[Bounds]) -> Bounds | None:
    """Nearer to zero than the divisor; a remainder may have the sign of either operand."""
    dividend, divisor = ranges
    if divisor[0] <= 0 <= divisor[1]:
        return None
    most = max(map(abs, divisor)) - 1
    if dividend[0] >= 0 and divisor[0] > 0:
        return 0, min(most, dividend[1])
    return -most, most


def _equality_bounds(value: Callable[..., int], ranges: Sequence[Bounds]) -> Bounds | None:
    """Open where the intervals meet."""
    (low, high), (other_low, other_high) = ranges
    meet = low <= other_high and other_low <= high
    return None if meet else _end_bounds(value, ranges)


def _truth_bounds(value: Callable[..., int], ranges: Sequence[Bounds]) -> Bounds | None:
    return False, True


def _power_bounds(value: Callable[..., int], ranges: Sequence[Bounds]) -> Bounds | None:
    """No farther from zero than the farthest base's; None where some member raises."""
    base, exponent = ranges
    farthest = max(map(abs, base))
    if exponent[0] < 0 or (farthest > 1 and farthest ** min(exponent[1], 64) >= _BEYOND):
        return None
    most = max(1, farthest ** exponent[1])
    return (0 if base[0] >= 0 else -most), most


def _xor_bounds(value: Callable[..., int], ranges: Sequence[Bounds]) -> Bounds | None:
    """Of no more bits than the operands; negative where one operand is."""
    ends = (*ranges[0], *ranges[1])
    most = (1 << max(end.bit_length() for end in ends)) - 1
    return (0 if min(ends) >= 0 else -most - 1), most


def _hull(function: Callable[..., int], combinations: Iterable[Sequence[int]]) -> Bounds | None:
    try:
        results = [function(*operands) for operands in combinations]
    except (ArithmeticError, ValueError):  # of a device nothing is known then
        return None
    return _within(results)


def _within(numbers: Sequence[int]) -> Bounds | None:
    """The least and the greatest; None where a device's scalars do not hold them."""
    least, most = min(numbers), max(numbers)
    return (least, most) if least >= -_BEYOND and most < _BEYOND else None


class Operator(NamedTuple):
    """An operator on numbers of a kernel.

    Attributes:
        form: its text.
        value: of one or two ints.
        is_upstreams: False if upstream's scalars lack it.
        bounds: of results of many members, given the value and the operands' bounds; by default
            those of all combinations of ends, as where it is monotone in each operand.
    """

    form: str
    value: Callable[..., int]
    is_upstreams: bool = True
    bounds: Callable[[Callable[..., int], Sequence[Bounds]], Bounds | None] = _end_bounds


OPERATORS: Final[Mapping[str, Operator]] = {
    "add": Operator("({} + {})", operator.add),
    "sub": Operator("({} - {})", operator.sub),
    "mul": Operator("({} * {})", operator.mul),
    "truediv": Operator("({} / {})", quotient, bounds=_quotient_bounds),
    "floordiv": Operator("({} // {})", quotient, bounds=_quotient_bounds),
    "mod": Operator("({} % {})", remainder, bounds=_remainder_bounds),
    "and": Operator("({} & {})", lambda a, b: a != 0 and b != 0, bounds=_truth_bounds),
    "or": Operator("({} | {})", lambda a, b: a != 0 or b != 0, bounds=_truth_bounds),
    "min": Operator("min({}, {})", min),
    "max": Operator("max({}, {})", max),
    "lt": Operator("({} < {})", operator.lt),
    "le": Operator("({} <= {})", operator.le),
    "gt": Operator("({} > {})", operator.gt),
    "ge": Operator("({} >= {})", operator.ge),
    "eq": Operator("({} == {})", operator.eq, bounds=_equality_bounds),
    "ne": Operator("({} != {})", operator.ne, bounds=_equality_bounds),
    "lshift": Operator("({} << {})", _shifted, is_upstreams=False),
    "rshift": Operator("({} >> {})", operator.rshift, is_upstreams=False),
    "xor": Operator("({} ^ {})", operator.xor, is_upstreams=False, bounds=_xor_bounds),
    "pow": Operator("({} ** {})", _power, is_upstreams=False, bounds=_power_bounds),
    "neg": Operator("(-{})", operator.neg),
    "pos": Operator("(+{})", operator.pos),
    "invert": Operator("(~{})", operator.not_, bounds=_negation_bounds),
}
"""The operators on numbers of a kernel, by the name that Python gives them.

`/`, `//` and `%` are those of C++; `&`, `|` and `~` are logical and give 0 or 1, as comparisons do.
Upstream lacks `<<`, `>>`, `^` and `**`, which are Python's and warn. Its release 0.2.0 lacks `&`
and `|` too, and divides numbers that are known when it compiles as Python does.

Source: upstream pypto at 883e7dfb0, `python/src/bindings/symbolic_scalar.cpp` and
`framework/src/interface/tensor/symbolic_scalar.h:243`.
"""


COMPARISONS: Final = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))
_TRUTHS: Final = COMPARISONS | {"and", "or", "invert"}


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
        ends = [self.factor * end + self.shift for end in self.of.bounds]
        return _within(ends)


class KernelNumber:
    """A number of a kernel, decided or not.

    To Python it is no int: one would be calculated with by the rules of whatever stands on its
    left, a bool, a float, a Fraction or an array, and `True & n` would be that of bits.
    """

    __slots__ = ()
    __array_ufunc__ = None  # numpy's arrays and scalars leave their operators to those here

    def concrete(self) -> int:
        """The value as a plain int."""
        return self.__index__()

    def is_concrete(self) -> bool:
        """True: every value is known here."""
        return True

    def as_variable(self) -> None:
        """Mark it as a variable for upstream's compiler; no bit depends on it."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.__index__(), dtype)

    if TYPE_CHECKING:  # every kind of number has its own

        def __index__(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class UndecidedScalar(KernelNumber):
    """A number of a kernel of which a device may have another value; so may results of it.

    To Python it is of the class of its value, but each way to a plain number asks it. The
    simulation goes by the value.

    Attributes:
        value: a scalar of the kernel.
        bounds: what a device may have; None: any number.
        cause: the index of what leaves it open.
        line: the unknown that it is, or is computed of by +, - and * alone.
        control_dependence: the causes of the kernel in which it was read; None outside kernels. A
            thread that the kernel starts does not know its kernel.
    """

    value: Any
    bounds: Bounds | None
    cause: int
    line: _Line
    control_dependence: list[int] | None

    @staticmethod
    def of(
        value: Any, low: int, high: int, cause: int, control_dependence: list[int] | None = None
    ) -> UndecidedScalar:
        """A number read of an element: its value, its bounds and the cause of its openness."""
        bounds, causes = (
            (low, high),
            CONTROL_DEPENDENCE.get() if control_dependence is None else control_dependence,
        )
        line = _Line(_Unknown(bounds), 1, 0)
        return UndecidedScalar(
            value=value, bounds=bounds, cause=cause, line=line, control_dependence=causes
        )

    def followed_by(self, value: Any, bounds: Bounds | None, line: _Line | None) -> UndecidedScalar:
        """A number that is computed of it."""
        return UndecidedScalar(
            value=value,
            bounds=bounds,
            cause=self.cause,
            line=line or _Line(_Unknown(bounds), 1, 0),
            control_dependence=self.control_dependence,
        )

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
        return self.followed_by(kind(self.value), self.bounds, self.line)

    @property
    def open_cause(self) -> int:
        """The cause, as of a tensor with open elements."""
        return self.cause

    def __copy__(self) -> UndecidedScalar:
        return self

    def __deepcopy__(self, memo: object) -> UndecidedScalar:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:  # of pickle: the bytes are those of the value
        return taken(self).__reduce_ex__(protocol)

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


OPERANDS: Final = (int, np.integer, np.bool_, KernelNumber)
"""The types of operands that operators on numbers of a kernel take."""


def steer(number: UndecidedScalar) -> None:
    """Keep the cause of an undecided number that decides the way of a kernel."""
    here = CONTROL_DEPENDENCE.get()
    if here is not None:
        here.append(number.cause)
    if number.control_dependence is not None and number.control_dependence is not here:
        number.control_dependence.append(number.cause)


def taken(number: Any) -> Any:
    """A number for Python to go by; of an undecided one its value, which steers the kernel."""
    if isinstance(number, UndecidedScalar):
        steer(number)
    return value_of(number)


def value_of(number: Any) -> Any:
    """The number that the simulation goes by; its use must not need a trace."""
    return number.value if isinstance(number, UndecidedScalar) else number


def undecided(given: object) -> UndecidedScalar | None:
    """The first undecided number in an index, a list or a tuple; None without one."""
    if isinstance(given, UndecidedScalar):
        return given
    if isinstance(given, slice):
        return undecided((given.start, given.stop))
    if isinstance(given, (list, tuple)):
        return next((found for each in given if (found := undecided(each)) is not None), None)
    return None


def followed(name: str, value: Any, operands: Sequence[Any]) -> Any:
    """The result of an operator on numbers some of which are undecided.

    Where it may raise for some members, its bounds are not known, and that steers the kernel.

    Args:
        name: Python's, as "add".
        value: the result in the simulation.
        operands: numbers.

    Returns:
        An undecided number, or the value if a device has no other.
    """
    first = undecided(operands)
    assert first is not None
    line = _line(name, operands)
    difference = _line("sub", operands) if name in COMPARISONS else None
    if line is not None:
        bounds = line.bounds()
    elif difference is not None and (apart := difference.bounds()) is not None:
        bounds = _bounds(OPERATORS[name], (apart, (0, 0)))
    else:
        ranges = [_bounds_of(operand) for operand in operands]
        known = [each for each in ranges if each is not None]
        bounds = _bounds(OPERATORS[name], known) if len(known) == len(ranges) else None
    if bounds is None and name in _TRUTHS:
        bounds = False, True
    if bounds is None:
        steer(first)
    elif bounds[0] == bounds[1]:
        return value
    return first.followed_by(value, bounds, line)


def _line(name: str, operands: Sequence[Any]) -> _Line | None:
    """A sum, difference or product as a multiple of one number and a decided one, if it is that."""
    lines = [_line_of(operand) for operand in operands]
    first, second = lines[0], lines[-1]
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


def _line_of(operand: Any) -> _Line:
    if isinstance(operand, UndecidedScalar):
        return operand.line
    return _Line(None, 0, int(operand))


def _bounds_of(operand: Any) -> Bounds | None:
    """The bounds of an operand; None of one that may be any number."""
    if isinstance(operand, UndecidedScalar):
        return operand.bounds
    return int(operand), int(operand)


def _bounds(operation: Operator, ranges: Sequence[Bounds]) -> Bounds | None:
    """The least and the greatest result of operands in ranges; None: any number."""
    if math.prod(high - low + 1 for low, high in ranges) > _FEW:
        return operation.bounds(operation.value, ranges)
    members = (range(low, high + 1) for low, high in ranges)
    return _hull(operation.value, itertools.product(*members))
