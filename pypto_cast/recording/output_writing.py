"""The outputs of a kernel are computed, then written: all of them or none."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pypto_cast.call_sites import asked_at
from pypto_cast.dtypes.data_types import dtype_of_numpy
from pypto_cast.recording.buffers import Buffer
from pypto_cast.recording.causes import CauseTable
from simulator.arithmetic.interval import Cells, Enclosure


def held_by(output: Buffer[Any], causes: CauseTable) -> Enclosure:
    """The elements of an output; any number where no array was given and nothing is written."""
    whole = (0,) * len(output.shape), output.shape
    held, missing = output.read(*whole), output.uninitialized(*whole)
    assert held is not None
    if missing is None:
        return held
    cells = Cells(held, dtype_of_numpy(held.dtype).number_format)
    records = [patch.record for patch in output.patches]
    with asked_at((records[-1].file, records[-1].line)) if records else contextlib.nullcontext():
        cells.forget(missing.mask, causes.index_here("unwritten elements"))
    return cells.enclosure()


def settle(buffers: Iterable[Buffer[Any]]) -> None:
    """Compute the results that wait, except those of outputs that need little time.

    Meanwhile a signal ends the kernel and leaves every array as it was.
    """
    from simulator.arithmetic.native import operation_nodes as native

    held = (buffer.waiting() for buffer in buffers if buffer.is_changed)
    native.settle([x for x in held if x is not None])


def write_back(changed: Sequence[Buffer[Any]]) -> None:
    """Write outputs into the user's arrays.

    Everything is computed before the first array is copied to. Nothing reads the arrays that
    results are computed into.
    """
    waiting = [buffer for buffer in changed if buffer.waiting() is not None]
    for buffer in changed:
        if buffer not in waiting:
            buffer.keep_apart(changed)
    if waiting:
        from simulator.arithmetic.native.operation_nodes import compute_into

        homes = [buffer.home for buffer in waiting if buffer.home is not None]
        found = compute_into([buffer.take_waiting for buffer in waiting], homes)
        for buffer, values in zip(waiting, found, strict=True):
            buffer.put_values(values)
    for buffer in changed:
        buffer.write_back()


def check_memory(changed: Buffer[Any], buffers: Sequence[Buffer[Any]]) -> None:
    """Refuse an output whose elements share memory.

    Raises:
        ValueError: with another parameter, or among themselves.
    """
    home = changed.home
    assert home is not None
    if _overlaps_itself(home):
        raise ValueError(
            f"{changed.name} is written, but elements of it share memory (shape "
            f"{list(home.shape)}, strides {list(home.strides)} B); hand in a copy"
        )
    for other in buffers:
        if other is changed or other.home is None or not np.may_share_memory(home, other.home):
            continue
        if np.shares_memory(home, other.home):
            raise ValueError(
                f"{changed.name} is written, but shares memory with {other.name}; hand in a copy "
                "of one of them"
            )


def _overlaps_itself(array: npt.NDArray[Any]) -> bool:
    """True if the stride of an axis is less than the span of the axes below it."""
    if math.prod(array.shape) == 0:
        return False
    span = array.itemsize
    axes = sorted((abs(st), size) for st, size in zip(array.strides, array.shape, strict=True))
    for stride, size in axes:
        if size == 1:
            continue
        if stride < span:
            return True
        span += stride * (size - 1)
    return False
