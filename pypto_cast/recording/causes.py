"""The operations that leave results open, numbered for the intervals that name them."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from pypto_cast.call_sites import caller
from pypto_cast.recording.output_certainty import Cause

MAX_CAUSES: Final = 1 << 16


class CauseTable:
    """Causes by index, in the order in which they came; an operation in a loop counts once.

    Args:
        inherited: causes that intervals from outside refer to; they keep their indices.
        is_kept: False where intervals name choices instead: every index is 0.
    """

    __slots__ = ("_causes", "_indices", "_is_kept")

    def __init__(self, inherited: tuple[Cause, ...] = (), *, is_kept: bool = True) -> None:
        self._is_kept = is_kept
        self._causes = list(inherited)
        self._indices: dict[Cause, int] = {}

    def index_here(self, operation: str) -> int:
        """The index of an operation that code outside this package asks for now.

        The last index stands for all that come after 65535 others.
        """
        if not self._is_kept:
            return 0
        file, line = caller()
        cause = Cause(operation=operation, file=file, line=line)
        found = self._indices.get(cause)
        if found is None:
            if len(self._causes) == MAX_CAUSES:
                return MAX_CAUSES - 1
            found = self._indices[cause] = len(self._causes)
            self._causes.append(cause)
        return found

    def cause(self, index: int) -> Cause:
        """The cause of an index."""
        return self._causes[index]

    def all(self) -> tuple[Cause, ...]:
        """The causes so far, by index."""
        return tuple(self._causes)


STEERED_BY: Final[ContextVar[list[int] | None]] = ContextVar("pypto_cast_steered", default=None)
"""Where the running kernel keeps the causes of undecided numbers that steer it."""
