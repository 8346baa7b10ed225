"""Suppositions on an operation that is asked for: exact, or its result rounded first."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from pypto_cast.call_sites import caller
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.recording.output_certainty import Cause

ROUNDED_TO: Final = (DataType.DT_BF16, DataType.DT_FP16)


@dataclass(slots=True, kw_only=True)
class Supposition:
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
        """Tells whether an operation is meant."""
        if isinstance(self.operation, Cause):
            return cause == self.operation
        return self.operation in (cause.operation, str(cause))


_SUPPOSED: Final[ContextVar[tuple[Supposition, ...]]] = ContextVar("supposed", default=())


def supposed_exact(operation: str) -> bool:
    """Tell whether the operation that is asked for here is taken as exact."""
    return _applies(operation, lambda each: each.rounded_to is None) is not None


def supposed_rounding(operation: str) -> DataType | None:
    """The dtype that the result of the operation asked for here is rounded to, if any."""
    found = _applies(operation, lambda each: each.rounded_to is not None)
    return None if found is None else found.rounded_to


def _applies(operation: str, wanted: Callable[[Supposition], bool]) -> Supposition | None:
    among = [each for each in _SUPPOSED.get() if wanted(each)]
    if not among:
        return None
    file, line = caller()
    cause = Cause(operation=operation, file=file, line=line)
    found = next((each for each in reversed(among) if each.is_of(cause)), None)
    if found is not None:
        found.matched += 1
    return found


@contextlib.contextmanager
def supposing(supposition: Supposition) -> Iterator[None]:
    """Have a supposition apply in the body of a `with` statement."""
    token = _SUPPOSED.set((*_SUPPOSED.get(), supposition))
    try:
        yield
    finally:
        _SUPPOSED.reset(token)
