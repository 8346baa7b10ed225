"""Results that are computed once in a certainty call, which asks for them several times."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Final

import numpy.typing as npt

from simulator.numbers.result_memory import LIMIT_BYTES

_REMEMBERED: Final[ContextVar[dict[object, tuple[npt.NDArray[Any], ...]] | None]] = ContextVar(
    "remembered_results", default=None
)


@contextlib.contextmanager
def remembering() -> Iterator[None]:
    """Remember results in the body, where arrays that are given stay as they are."""
    token = _REMEMBERED.set({})
    try:
        yield
    finally:
        _REMEMBERED.reset(token)


def remembered(
    operation: object, given: Sequence[npt.NDArray[Any]], compute: Callable[[], npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """The result of an operation on the elements of arrays, computed once where it is remembered.

    What is remembered, with the arrays, takes no more than `result_memory.LIMIT_BYTES`.

    Args:
        operation: what is computed, all that decides on the result but the arrays.
        given: arrays of any strides.
        compute: gives a result that nobody writes to.
    """
    known = _REMEMBERED.get()
    if known is None:
        return compute()
    places = [(x.ctypes.data, x.shape, x.strides, x.dtype.str) for x in given]
    key = (operation, *places)
    if key not in known:
        kept = (*given, compute())
        held = sum(x.nbytes for arrays in known.values() for x in arrays)
        if held + sum(x.nbytes for x in kept) > LIMIT_BYTES.get():
            return kept[-1]
        known[key] = kept
    return known[key][-1]
