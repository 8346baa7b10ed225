"""Elements by their place alone: evenly spaced numbers, triangles, fixed patterns.

Sources: upstream pypto at tag r0.2.0, framework/src/interface/tileop/vector: range.h, triul.h; of
patterns AscendC's GatherMask, whose fixed patterns have these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from simulator.arithmetic.operation import Array
from simulator.numbers import result_memory
from simulator.numbers.formats import FP32, Format

TRIANGLES: Final = ("triu", "tril")
_BLOCK_ELEMS: Final = 8
_REPEAT_ELEMS: Final = 64
ALL: Final = 7
"""The number of the pattern that takes every element."""


def spaced(start: float, step: float, first: int, count: int, fmt: Format) -> Array:
    """Numbers of a tile of a range: start + (first + k) * step of INT32, which wraps.

    FP32 numbers are not that everywhere: the first 8 of a tile are, then blocks of 8 and repeats of
    64 are added to.

    Args:
        start, step: of the whole range.
        first: the place of the tile's first element in it.
        count: the elements of the tile.
        fmt: FP32 or INT32.
    """
    if fmt is not FP32:
        exact = np.arange(first, first + count, dtype=np.int64) * int(step) + int(start)
        return exact.astype(fmt.dtype)
    begin, distance = np.float32(start), np.float32(step)
    padded = -(-count // _REPEAT_ELEMS) * _REPEAT_ELEMS
    values = np.empty(padded, np.float32)
    values[:_BLOCK_ELEMS] = (
        begin + np.float32(first) * distance + np.arange(_BLOCK_ELEMS, dtype=np.float32) * distance
    )
    for width, end in ((_BLOCK_ELEMS, _REPEAT_ELEMS), (_REPEAT_ELEMS, padded)):
        for k in range(width, end, width):
            values[k : k + width] = values[k - width : k] + np.float32(width) * distance
    return values[:count]


def ones_of_triangle(
    name: str, shape: Sequence[int], diagonal: int, dtype: np.dtype[np.generic]
) -> Array:
    """1 in the triangle of a matrix that is named, 0 beside it."""
    rows, columns = shape
    kept = result_memory.empty(rows * columns, dtype).reshape(rows, columns)
    compare = np.less_equal if name == "tril" else np.greater_equal
    last = np.arange(rows, dtype=np.int64) + max(min(diagonal, columns), -rows)
    compare(np.arange(columns, dtype=np.int64), last[:, None], out=kept, casting="unsafe")
    return kept


def pattern(mode: int) -> slice:
    """The elements of a row that a fixed pattern takes.

    Args:
        mode: 1 and 2: the first, second of every two; 3 to 6: the first to fourth of every four; 7:
            all.
    """
    step = 1 if mode == ALL else 2 if mode <= 2 else 4
    return slice(0 if step == 1 else mode - step // 2 - step // 4, None, step)
