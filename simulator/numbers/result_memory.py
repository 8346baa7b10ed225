"""Memory of large results: aligned to huge pages, and used again once nothing reads it any more.

The first touch of fresh memory costs more than a conversion. So the memory of a large result is
kept when its last reader is gone, two blocks of at most 256 MiB, for the next result that fits.
From 4 MiB on numpy asks the system for huge pages, and each new result waits for their clearing.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import weakref
from collections import deque
from typing import Any, Final

import numpy as np
import numpy.typing as npt

LEAST_BYTES: Final = 4 << 20
"""Smaller results are numpy's."""
ALIGNMENT_BYTES: Final = 2 << 20
KEPT_BLOCKS: Final = 2
KEPT_BLOCK_BYTES: Final = 256 << 20

_IS_PRIVATE: Final = hasattr(mmap, "MAP_PRIVATE") and hasattr(mmap, "MAP_ANONYMOUS")
"""Elsewhere memory cannot be had that a forked process does not share."""

# Results end in any thread and in the midst of any line, a garbage collection's too. No lock would
# be safe there, so the list is touched by single operations of deque alone, which are atomic.
_FREE: Final[deque[mmap.mmap]] = deque(maxlen=KEPT_BLOCKS)


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

    Casts keep at most 512 MiB of results that are gone. Results that are in use are not touched.

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
    """A kept block that is long enough and not twice as long; of others the oldest is given up."""
    for _ in range(KEPT_BLOCKS):
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
    weakref.finalize(last, _keep, block).atexit = False
    return lent


def _keep(block: mmap.mmap) -> None:
    if len(block) <= KEPT_BLOCK_BYTES + ALIGNMENT_BYTES:
        _FREE.append(block)


if hasattr(os, "register_at_fork"):  # what is kept would be copied when a forked process writes
    os.register_at_fork(after_in_child=_FREE.clear)
