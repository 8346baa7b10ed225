"""Numbers that upstream knows only when a kernel runs: loop indices and dynamic dimensions."""

from __future__ import annotations

import builtins
import enum
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pypto_cast.tensors.undecided import STEERED_BY, UndecidedScalar, followed


class StatusType(enum.Enum):
    """The marks that an annotation puts in place of a dimension's length."""

    DYN = "DYN"
    DYNAMIC = "DYNAMIC"
    STATIC = "STATIC"

    @property
    def is_dynamic(self) -> bool:
        return self is not StatusType.STATIC


DYN: Final = StatusType.DYN
DYNAMIC: Final = StatusType.DYNAMIC
STATIC: Final = StatusType.STATIC


_EXPRESSIONS: Final = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "&",
    "or": "|",
}
"""Operators that make another symbol of a symbol, and their signs."""


def _with_operators(decorated: type[Symbol]) -> type[Symbol]:
    for name, sign in _EXPRESSIONS.items():
        setattr(decorated, f"__{name}__", _expression(f"({{0}} {sign} {{1}})"))
        setattr(decorated, f"__r{name}__", _expression(f"({{1}} {sign} {{0}})"))
    for name in ("min", "max"):
        setattr(decorated, name, _expression(f"{name}({{0}}, {{1}})"))
    return decorated


def _expression(form: str) -> Callable[[Symbol, object], Symbol]:
    def apply(self: Symbol, other: object) -> Symbol:
        if not isinstance(other, Symbol) and not hasattr(other, "__index__"):
            raise TypeError(f"{self.name} is calculated with ints and symbols, not with {other!r}")
        return Symbol(form.format(self.name, getattr(other, "name", other)))

    return apply


@_with_operators
@dataclass(frozen=True, slots=True)
class Symbol:
    """A number that only has a name, or an expression of such; in an annotation a dimension, which
    has the same length wherever it occurs.

    Args:
        name: the name or the expression.
    """

    name: str

    if TYPE_CHECKING:  # the operators are made from a table

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Symbol | int) -> Symbol: ...
        def __radd__(self, other: Symbol | int) -> Symbol: ...

    def concrete(self) -> int:
        """Raises ValueError: the value is not known."""
        raise ValueError(f"the value of {self.name} is not known: it is only a name")

    __index__ = __bool__ = concrete

    def is_concrete(self) -> bool:
        """False: it has no value."""
        return False

    def as_variable(self) -> None:
        """Mark it as a variable for upstream's compiler; no bit depends on it."""

    def __str__(self) -> str:
        return self.name


def _is_known(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, (Symbol, UndecidedScalar))


class SymbolicScalar(int):
    """An int that upstream handles as an expression, with upstream's `min` and `max`.

    Here its value is always known. One that is calculated of ints alone is a constant to upstream
    too; what depends on a loop or a dynamic dimension is a `RuntimeScalar`. As upstream's, `/`
    drops the fraction. `SymbolicScalar("name")` has no value and gives a `Symbol`; in a kernel it
    is 0, as upstream's table of symbols starts. `SymbolicScalar("name", 3)` is 3.
    """

    if not TYPE_CHECKING:  # the result is an int, or a Symbol

        def __new__(cls, value, known=None):
            if isinstance(value, str) and known is None:
                return Symbol(value) if STEERED_BY.get() is None else RuntimeScalar(0)
            if isinstance(value, Symbol):
                return value
            if isinstance(value, UndecidedScalar):
                return value.like(cls)
            return super().__new__(cls, operator.index(known if isinstance(value, str) else value))

    def __add__(self, other: int, /) -> SymbolicScalar:
        if not _is_known(other):
            return NotImplemented
        return _derived(int(self) + operator.index(other), self, other)

    def __radd__(self, other: int, /) -> SymbolicScalar:
        return self + other

    def __sub__(self, other: int, /) -> SymbolicScalar:
        if not _is_known(other):
            return NotImplemented
        return _derived(int(self) - operator.index(other), self, other)

    def __rsub__(self, other: int, /) -> SymbolicScalar:
        return _derived(int(other), self, other) - self

    def __mul__(self, other: int, /) -> SymbolicScalar:
        if not _is_known(other):
            return NotImplemented
        return _derived(int(self) * operator.index(other), self, other)

    def __rmul__(self, other: int, /) -> SymbolicScalar:
        return self * other

    def __floordiv__(self, other: int, /) -> SymbolicScalar:
        if not _is_known(other):
            return NotImplemented
        return _derived(int(self) // operator.index(other), self, other)

    def __rfloordiv__(self, other: int, /) -> SymbolicScalar:
        return _derived(int(other), self, other) // self

    def __mod__(self, other: int, /) -> SymbolicScalar:
        if not _is_known(other):
            return NotImplemented
        return _derived(int(self) % operator.index(other), self, other)

    def __rmod__(self, other: int, /) -> SymbolicScalar:
        return _derived(int(other), self, other) % self

    def __neg__(self) -> SymbolicScalar:
        return _derived(-int(self), self)

    def __pos__(self) -> SymbolicScalar:
        return self

    if not TYPE_CHECKING:  # int's `/` is declared to give a float

        def __truediv__(self, other: int, /) -> SymbolicScalar:
            if not _is_known(other):
                return NotImplemented
            quotient = abs(int(self)) // abs(operator.index(other))
            signed = quotient if (int(self) < 0) == (int(other) < 0) else -quotient
            return _derived(signed, self, other)

        def __rtruediv__(self, other: int, /) -> SymbolicScalar:
            return _derived(int(other), self, other) / self

    def min(self, other: int) -> Any:
        """The smaller of the two, as in `(rows - offset).min(tile_rows)` for a tail."""
        if isinstance(other, UndecidedScalar):
            return followed("min", self, other)
        return _derived(builtins.min(int(self), operator.index(other)), self, other)

    def max(self, other: int) -> Any:
        """The larger of the two."""
        if isinstance(other, UndecidedScalar):
            return followed("max", self, other)
        return _derived(builtins.max(int(self), operator.index(other)), self, other)

    def concrete(self) -> int:
        """The value as a plain int."""
        return int(self)

    def is_concrete(self) -> bool:
        """True: every value is known here."""
        return True

    def as_variable(self) -> None:
        """Mark it as a variable for upstream's compiler; no bit depends on it."""


class RuntimeScalar(SymbolicScalar):
    """A number that upstream knows only when a kernel runs, and what is calculated of it.

    `pypto.view` and `pypto.reshape` tell by it a shape that upstream refuses.
    """


def _derived(value: int, *operands: object) -> SymbolicScalar:
    varies = any(isinstance(operand, RuntimeScalar) for operand in operands)
    return RuntimeScalar(value) if varies else SymbolicScalar(value)


class LoopIndex(RuntimeScalar):
    """The index that `pypto.loop` gives, which knows the loop's ends."""

    is_first: bool
    is_last: bool

    @classmethod
    def of(cls, index: int, *, is_first: bool, is_last: bool) -> LoopIndex:
        """An index of a loop and whether it is at one of its ends."""
        made = cls(index)
        made.is_first, made.is_last = is_first, is_last
        return made


SymInt = int | SymbolicScalar


def min(a: SymInt | Symbol, b: SymInt | Symbol) -> SymInt | Symbol:
    """The smaller of two ints, loop indices, dimensions or symbols."""
    smaller: SymInt | Symbol = _scalar(a).min(b)
    return smaller


def max(a: SymInt | Symbol, b: SymInt | Symbol) -> SymInt | Symbol:
    """The larger of two ints, loop indices, dimensions or symbols."""
    larger: SymInt | Symbol = _scalar(a).max(b)
    return larger


def _scalar(given: object) -> Any:
    if isinstance(given, Symbol):
        return given
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise TypeError(
            f"pypto.min and pypto.max take ints and symbols, not {given!r}; of tensors "
            "take pypto.minimum, maximum, amin or amax"
        )
    return given if isinstance(given, SymbolicScalar) else SymbolicScalar(given)
