"""Running sums and products of FP32 rows on the native executor."""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np

from simulator.arithmetic.native.executor_library import Executor
from simulator.arithmetic.operation import Array
from simulator.numbers import elementwise, result_memory

_CALL_ELEMS: Final = 1 << 23
"""Elements of one call: signals are handled in between."""
_THREAD_ELEMS: Final = 1 << 17
"""Fewer elements are not worth a thread of their own."""


def scan_rows(
    executor: Executor,
    x: Array,
    extent: int,
    *,
    step: Literal["add", "mul"],
    keeps_signs: bool,
    threads: int,
) -> Array:
    """Sum or multiply all elements up to each along the last axis, tile by tile.

    The order is that of `prefix_scan`. Infinity and overflow are those of the steps; a NaN is the
    one NaN of FP32.

    Args:
        executor: the library.
        x: FP32, of one element or more; not modified.
        extent: elements of a tile.
        step: joins two elements.
        keeps_signs: of partial results of -0, which are +0 otherwise.
        threads: that share the rows, at most.

    Returns:
        An array of the same shape, C-contiguous.
    """
    given = np.ascontiguousarray(x)
    columns = given.shape[-1]
    extent = min(extent, columns)
    out = result_memory.empty(given.size, given.dtype).reshape(given.shape)
    head = executor.levels.index(executor.level), given.ctypes.data, out.ctypes.data
    order = columns, extent, step == "mul", keeps_signs
    piece = max(1, _CALL_ELEMS // columns)
    stopped: list[bool] = []

    def work(span: slice) -> None:
        scratch = np.empty(2 * extent, np.float32)
        try:
            for start in range(span.start, span.stop, piece):
                if stopped:
                    return
                rows = start, min(start + piece, span.stop)
                status = executor.library.pypto_cast_arithmetic_scan(
                    *head, *order, scratch.ctypes.data, *rows
                )
                if status:
                    raise ValueError(f"the native executor refuses a scan: status {status}")
        except BaseException:
            stopped.append(True)
            raise

    rows = math.prod(given.shape[:-1])
    elementwise.share(work, rows, threads, max(1, _THREAD_ELEMS // columns))
    return out
