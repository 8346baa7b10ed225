"""Products of INT8 matrices on the native executor."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.arithmetic.native.executor_library import Executor
from simulator.arithmetic.operation import Array
from simulator.numbers import elementwise, result_memory

_PANEL: Final = 64
"""Columns that are multiplied together, as in C++."""
_CALL_TERMS: Final = 1 << 32
"""Products of one call: signals are handled in between."""
_THREAD_TERMS: Final = 1 << 24
"""Fewer products are not worth a thread of their own."""


def way_of(executor: Executor) -> str:
    """The fastest way to multiply of the level in use; "scalar" has that of "baseline"."""
    level = "baseline" if executor.level == "scalar" else executor.level
    return [way for way in executor.ways if way.split("_")[0] == level][-1]


def multiply(executor: Executor, a: Array, b: Array, *, threads: int) -> Array:
    """Multiply [M, K] and [K, N] of INT8, at least one element each, to INT32, which wraps.

    Raises:
        MemoryError: there is no room for the result or for packed terms.
    """
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    (rows, terms), columns = a.shape, b.shape[1]
    out = result_memory.empty(rows * columns, np.dtype(np.int32)).reshape(rows, columns)
    way = executor.ways[way_of(executor)]
    addresses = (a.ctypes.data, b.ctypes.data, out.ctypes.data)
    panels = -(-columns // _PANEL)
    of_panel = rows * terms * _PANEL
    step = max(1, _CALL_TERMS // of_panel)
    stopped: list[bool] = []

    def work(span: slice) -> None:
        try:
            for first in range(span.start, span.stop, step):
                if stopped:
                    return
                last = min(first + step, span.stop)
                status = executor.library.pypto_cast_arithmetic_multiply(
                    *(way, *addresses, rows, terms, columns),
                    *(first * _PANEL, min(columns, last * _PANEL)),
                )
                if status:
                    raise MemoryError("no memory for packed terms")
        except BaseException:
            stopped.append(True)
            raise

    elementwise.share(work, panels, threads, max(1, _THREAD_TERMS // of_panel))
    return out
