"""Numbers that upstream knows only when a kernel runs: loop indices and dynamic dimensions."""

from __future__ import annotations

import enum
import operator
from typing import TYPE_CHECKING, Final


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


class SymbolicScalar(int):
    """An int that upstream handles as an expression, with upstream's `min` and `max`.

    Here its value is always known. It keeps its class in integer arithmetic, so `pypto.view` can
    tell a shape that depends on it, which upstream refuses. As upstream's, `/` drops the fraction.
    """

    def __add__(self, other: int, /) -> SymbolicScalar:
        if not hasattr(other, "__index__"):
            return NotImplemented
        return SymbolicScalar(int(self) + operator.index(other))

    def __radd__(self, other: int, /) -> SymbolicScalar:
        return self + other

    def __sub__(self, other: int, /) -> SymbolicScalar:
        if not hasattr(other, "__index__"):
            return NotImplemented
        return SymbolicScalar(int(self) - operator.index(other))

    def __rsub__(self, other: int, /) -> SymbolicScalar:
        return SymbolicScalar(other) - self

    def __mul__(self, other: int, /) -> SymbolicScalar:
        if not hasattr(other, "__index__"):
            return NotImplemented
        return SymbolicScalar(int(self) * operator.index(other))

    def __rmul__(self, other: int, /) -> SymbolicScalar:
        return self * other

    def __floordiv__(self, other: int, /) -> SymbolicScalar:
        if not hasattr(other, "__index__"):
            return NotImplemented
        return SymbolicScalar(int(self) // operator.index(other))

    def __rfloordiv__(self, other: int, /) -> SymbolicScalar:
        return SymbolicScalar(other) // self

    def __mod__(self, other: int, /) -> SymbolicScalar:
        if not hasattr(other, "__index__"):
            return NotImplemented
        return SymbolicScalar(int(self) % operator.index(other))

    def __rmod__(self, other: int, /) -> SymbolicScalar:
        return SymbolicScalar(other) % self

    def __neg__(self) -> SymbolicScalar:
        return SymbolicScalar(-int(self))

    def __pos__(self) -> SymbolicScalar:
        return self

    if not TYPE_CHECKING:  # int's `/` is declared to give a float

        def __truediv__(self, other: int, /) -> SymbolicScalar:
            if not hasattr(other, "__index__"):
                return NotImplemented
            quotient = abs(int(self)) // abs(operator.index(other))
            return SymbolicScalar(quotient if (self < 0) == (other < 0) else -quotient)

        def __rtruediv__(self, other: int, /) -> SymbolicScalar:
            return SymbolicScalar(other) / self

    def min(self, other: int) -> SymbolicScalar:
        """The smaller of the two, as in `(rows - offset).min(tile_rows)` for a tail."""
        return SymbolicScalar(min(int(self), operator.index(other)))

    def max(self, other: int) -> SymbolicScalar:
        """The larger of the two."""
        return SymbolicScalar(max(int(self), operator.index(other)))

    def concrete(self) -> int:
        """The value as a plain int."""
        return int(self)

    def is_concrete(self) -> bool:
        """True: every value is known here."""
        return True


class LoopIndex(SymbolicScalar):
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
