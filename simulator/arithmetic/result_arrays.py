"""Large arrays: the memory of results, and the pieces in which they are worked through."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import EllipsisType
from typing import Any, Final

import numpy as np

from simulator.arithmetic.operation import Array
from simulator.numbers import result_memory

Index = tuple[int | slice | EllipsisType, ...]

_PIECE_ELEMS: Final = 1 << 17


def new_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A C-contiguous array of any content; a large one may have the memory of one that is gone."""
    return result_memory.empty(math.prod(shape), dtype).reshape(shape)


def pieces(shape: tuple[int, ...], elems: int = _PIECE_ELEMS) -> Iterator[Index]:
    """Cut a C-contiguous array into contiguous pieces of few elements, as indices."""
    axis = next(
        (k for k in range(len(shape)) if math.prod(shape[k + 1 :]) <= elems), max(len(shape) - 1, 0)
    )
    if not shape:
        yield (...,)
        return
    step = max(1, elems // max(1, math.prod(shape[axis + 1 :])))
    for outer in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            yield (*outer, slice(start, start + step))
