"""The operations that leave results open, numbered for intervals; and what-ifs on one of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from pypto_cast.call_sites import Place, caller
from pypto_cast.dtypes.data_types import DataType

MAX_CAUSES: Final = 1 << 16
ROUNDED_TO: Final = (DataType.DT_BF16, DataType.DT_FP16)

CONTROL_DEPENDENCE: Final[ContextVar[list[int] | None]] = ContextVar(
    "pypto_cast_control_dependence", default=None
)
"""The list in which the running kernel keeps the causes of undecided numbers that steer it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An operation that leaves results open.

    Attributes:
        operation: its name.
        file: where the call stands.
        line: its line.
    """

    operation: str
    file: str
    line: int

    @staticmethod
    def here(operation: str) -> Cause:
        """An operation that code outside this package asks for now."""
        file, line = caller()
        return Cause(operation=operation, file=file, line=line)

    def __str__(self) -> str:
        return f"{self.operation} at {PurePath(self.file).name}:{self.line}"


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
        self._indices: dict[tuple[str, Place], int] = {}

    def index_here(self, operation: str) -> int:
        """The index of an operation that code outside this package asks for now.

        The last index stands for all that come after 65535 others.
        """
        if not self._is_kept:
            return 0
        asked = operation, caller()
        found = self._indices.get(asked)
        if found is None:
            if len(self._causes) == MAX_CAUSES:
                return MAX_CAUSES - 1
            found = self._indices[asked] = len(self._causes)
            file, line = asked[1]
            self._causes.append(Cause(operation=operation, file=file, line=line))
        return found

    def cause(self, index: int) -> Cause:
        """The cause of an index."""
        return self._causes[index]

    def all(self) -> tuple[Cause, ...]:
        """The causes so far, by index."""
        return tuple(self._causes)


@dataclass(slots=True, kw_only=True)
class WhatIf:
    """An operation taken as exact, or its result as rounded to a shorter format.

    Attributes:
        operation: a cause, the name of an operation wherever it stands, or a cause's text, as
            "div at quant.py:12".
        rounded_to: DT_BF16 or DT_FP16: its FP32 result is rounded to that (CAST_RINT) and widened
            again; None: it is exact, that is, a device gives our value.
        matched: the number of times it has applied.
    """

    operation: Cause | str
    rounded_to: DataType | None = None
    matched: int = 0

    def is_of(self, cause: Cause) -> bool:
        """Return True if an operation is meant."""
        if isinstance(self.operation, Cause):
            return cause == self.operation
        return self.operation in (cause.operation, str(cause))


_WHAT_IFS: Final[ContextVar[tuple[WhatIf, ...]]] = ContextVar("pypto_cast_what_ifs", default=())


what_ifs: Final[Callable[[], tuple[WhatIf, ...]]] = _WHAT_IFS.get
"""Those that apply now, to whatever operation."""


def assumed_exact(operation: str) -> bool:
    """Return True if the operation that is asked for here is taken as exact."""
    return bool(_WHAT_IFS.get()) and _applied(operation, rounds=False) is not None


def assumed_rounding(operation: str) -> DataType | None:
    """The dtype that the result of the operation asked for here is rounded to, if any."""
    found = _applied(operation, rounds=True)
    return None if found is None else found.rounded_to


def _applied(operation: str, *, rounds: bool) -> WhatIf | None:
    applying = what_ifs()
    if not applying:
        return None
    among = [each for each in applying if (each.rounded_to is not None) is rounds]
    if not among:
        return None
    cause = Cause.here(operation)
    found = next((each for each in reversed(among) if each.is_of(cause)), None)
    if found is not None:
        found.matched += 1
    return found


@contextlib.contextmanager
def applying(what_if: WhatIf) -> Iterator[None]:
    """Have a what-if apply in the body of a `with` statement."""
    token = _WHAT_IFS.set((*_WHAT_IFS.get(), what_if))
    try:
        yield
    finally:
        _WHAT_IFS.reset(token)
