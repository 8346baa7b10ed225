"""Memory of large results: aligned to huge pages, and used again once nothing reads it any more.

The first touch of fresh memory costs more than a conversion. So the memory of a large result is
kept when its last reader is gone, up to a limit in all, for the next result that fits.
From 4 MiB on numpy asks the system for huge pages, and each new result waits for their clearing.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import weakref
from collections import deque
from contextvars import ContextVar
from typing import Any, Final

import numpy as np
import numpy.typing as npt

LEAST_BYTES: Final = 4 << 20
"""Smaller results are numpy's."""
ALIGNMENT_BYTES: Final = 2 << 20
DEFAULT_LIMIT_BYTES: Final = 256 << 20
LIMIT_BYTES: Final[ContextVar[int]] = ContextVar("result_memory", default=DEFAULT_LIMIT_BYTES)
"""Of all memory that is kept, once a result that was made in this context is gone."""

_IS_PRIVATE: Final = hasattr(mmap, "MAP_PRIVATE") and hasattr(mmap, "MAP_ANONYMOUS")
"""Elsewhere memory cannot be had that a forked process does not share."""

# Results end in any thread and in the midst of any line, a garbage collection's too. No lock would
# be safe there, so the list is touched by single operations of deque alone, which are atomic.
_FREE: Final[deque[mmap.mmap]] = deque()


def empty(elems: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """A new 1-D array of any content, as `numpy.empty` makes it.

    Raises:
        MemoryError: there is not so much.
    """
    size_bytes = elems * dtype.itemsize
    if size_bytes < LEAST_BYTES or not _IS_PRIVATE:
        return np.empty(elems, dtype)
    length = -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES + ALIGNMENT_BYTES
    block = _kept(length)
    if block is None:
        try:
            block = _mapped(length)
        except OSError:
            release_memory()
            return np.empty(elems, dtype)
    return np.frombuffer(_lent(block, size_bytes), dtype)


def release_memory() -> int:
    """Give memory that is kept for coming results back to the system.

    Casts keep at most `LIMIT_BYTES` of results that are gone. Results in use are not touched.

    Returns:
        How many bytes were kept.
    """
    released = 0
    while (block := _taken()) is not None:
        released += len(block)
    return released


def _taken() -> mmap.mmap | None:
    try:
        return _FREE.popleft()
    except IndexError:
        return None


def _kept(length: int) -> mmap.mmap | None:
    """A kept block that is long enough and not twice as long."""
    for _ in range(len(_FREE)):
        block = _taken()
        if block is None or length <= len(block) < 2 * length:
            return block
        _FREE.append(block)
    return None


def _mapped(length: int) -> mmap.mmap:
    block = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            block.madvise(mmap.MADV_HUGEPAGE)
    return block


def _lent(block: mmap.mmap, size_bytes: int) -> Any:
    """The memory of a block under one result; every view of that keeps this object alive."""
    start = -ctypes.addressof(ctypes.c_char.from_buffer(block)) % ALIGNMENT_BYTES
    lent = (ctypes.c_char * size_bytes).from_buffer(block, start)
    # A collector of cycles would call a finalizer of `lent` while other finalizers of the same
    # garbage can still bring it back. It does not track arrays of numpy: this one ends after them.
    last = np.empty(0, np.uint8)
    vars(lent)["last"] = last
    weakref.finalize(last, _keep, block, LIMIT_BYTES.get()).atexit = False
    return lent


def _keep(block: mmap.mmap, limit_bytes: int) -> None:
    """Keep a block; where all are more than the limit, the oldest are given up."""
    if len(block) - ALIGNMENT_BYTES > limit_bytes:
        return
    _FREE.append(block)
    while sum(len(kept) - ALIGNMENT_BYTES for kept in _FREE.copy()) > limit_bytes:
        _taken()


if hasattr(os, "register_at_fork"):  # what is kept would be copied when a forked process writes
    os.register_at_fork(after_in_child=_FREE.clear)
