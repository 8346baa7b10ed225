"""The operations that leave results open, numbered for the intervals that name them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from pypto_cast.kernel.output_certainty import Cause

MAX_CAUSES: Final = 1 << 16
_HOUSE: Final = f"{Path(__file__).resolve().parents[1]}{os.sep}"


class CauseTable:
    """Causes by index, in the order in which they came; an operation in a loop counts once.

    Args:
        inherited: causes that intervals from outside refer to; they keep their indices.
    """

    __slots__ = ("_causes", "_indices")

    def __init__(self, inherited: tuple[Cause, ...] = ()) -> None:
        self._causes = list(inherited)
        self._indices: dict[Cause, int] = {}

    def index_here(self, operation: str) -> int:
        """The index of an operation that code outside this package asks for now.

        The last index stands for all that come after 65535 others.
        """
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


def caller() -> tuple[str, int]:
    """File and line of the innermost code outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HOUSE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
