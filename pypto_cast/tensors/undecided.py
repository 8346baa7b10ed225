"""Numbers of a kernel of which a device may have others, and arithmetic on them.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pypto_cast.recording.causes import CONTROL_DEPENDENCE

Bounds = tuple[int, int]
"""The least and the greatest of numbers."""

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


_RULES: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys(("add", "sub", "mul", "rshift", "min", "max", "neg", "pos"), _Rule.ENDS),
    **dict.fromkeys(("lt", "le", "gt", "ge"), _Rule.ENDS),
    **dict.fromkeys(("eq", "ne"), _Rule.EQUALITY),
    **dict.fromkeys(("truediv", "floordiv"), _Rule.QUOTIENT),
    **dict.fromkeys(("lshift", "pow", "and", "or", "xor"), _Rule.MEMBERS),
    "mod": _Rule.REMAINDER,
    "invert": _Rule.ENDS_AND_ZERO,
}
COMPARISONS: Final = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))


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
        return (min(ends), max(ends)) if max(map(abs, ends)) < _BEYOND else None


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

    def __index__(self) -> int:
        raise NotImplementedError


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
    """

    value: Any
    bounds: Bounds | None
    cause: int
    line: _Line

    @staticmethod
    def of(value: Any, low: int, high: int, cause: int) -> UndecidedScalar:
        """A number that was read of an element: its value, its bounds and their cause."""
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
"""The types of what operators on numbers of a kernel take."""


def steer(cause: int) -> None:
    """Keep the cause of an undecided number that steers a kernel."""
    if (causes := CONTROL_DEPENDENCE.get()) is not None:
        causes.append(cause)


def taken(number: Any) -> Any:
    """A number for Python to go by; of an undecided one its value, which steers the kernel."""
    if isinstance(number, UndecidedScalar):
        steer(number.cause)
    return value_of(number)


def value_of(number: Any) -> Any:
    """The number that the simulation goes by; its use must not need a trace."""
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


def followed(name: str, function: Callable[..., int], value: Any, operands: Sequence[Any]) -> Any:
    """The result of an operator on numbers some of which are undecided.

    Args:
        name: Python's, as "add".
        function: the operator on ints.
        value: the result in the simulation.
        operands: numbers.

    Returns:
        An undecided number, or the value if a device has no other.
    """
    cause = undecided(operands)
    assert cause is not None
    line = _line(name, operands)
    difference = _line("sub", operands) if name in COMPARISONS else None
    if line is not None:
        bounds = line.bounds()
    elif difference is not None and (apart := difference.bounds()) is not None:
        bounds = _bounds(name, function, (apart, (0, 0)))
    else:
        ranges = [_bounds_of(operand) for operand in operands]
        known = [each for each in ranges if each is not None]
        bounds = _bounds(name, function, known) if len(known) == len(ranges) else None
    if bounds is None and name in COMPARISONS:
        bounds = False, True
    if bounds is not None and bounds[0] == bounds[1]:
        return value
    return _made(value, bounds, cause, line)


def _made(value: Any, bounds: Bounds | None, cause: int, line: _Line | None) -> UndecidedScalar:
    line = line or _Line(_Unknown(bounds), 1, 0)
    return UndecidedScalar(value=value, bounds=bounds, cause=cause, line=line)


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


def _bounds(name: str, function: Callable[..., int], ranges: Sequence[Bounds]) -> Bounds | None:
    """The least and the greatest result of operands in ranges; None: any number."""
    sizes = [high - low + 1 for low, high in ranges]
    if math.prod(sizes) <= _FEW:
        return _hull(function, itertools.product(*(range(low, high + 1) for low, high in ranges)))
    rule, ends, last = _RULES[name], list(itertools.product(*ranges)), ranges[-1]
    contains_zero = last[0] <= 0 <= last[1]
    if rule is _Rule.ENDS_AND_ZERO and contains_zero:
        ends.append((0,))
    elif rule is _Rule.QUOTIENT and contains_zero:
        return None
    elif rule is _Rule.REMAINDER:
        return None if contains_zero else _remainder(*ranges)
    elif rule is _Rule.EQUALITY:
        (low, high), (other_low, other_high) = ranges
        if low <= other_high and other_low <= high:
            return None
    elif rule is _Rule.MEMBERS:
        return None
    return _hull(function, ends)


def _remainder(dividend: Bounds, divisor: Bounds) -> Bounds:
    """The bounds of a remainder, which may have the sign of either operand."""
    most = max(map(abs, divisor)) - 1
    if dividend[0] >= 0 and divisor[0] > 0:
        return 0, min(most, dividend[1])
    return -most, most


def _hull(function: Callable[..., int], combinations: Iterable[Sequence[int]]) -> Bounds | None:
    try:
        results = [function(*operands) for operands in combinations]
    except (ArithmeticError, ValueError):  # of a device nothing is known then
        return None
    if max(map(abs, results)) >= _BEYOND:
        return None
    return min(results), max(results)
