"""A grid of any number of axes laid out in a plane, to be drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from tiling.grid import Shape

_LINE: Final = 12
"""Entries in a single row from which on it is broken into lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """Rows and columns of the plane, in row-major order, and what they are called."""

    rows: int
    cols: int
    row_name: str
    col_name: str


def arrangement(counts: Shape, noun: str) -> Arrangement:
    """The split of the axes that is nearest to a square; a single row is broken into lines.

    Args:
        counts: the extents of the grid.
        noun: what stands in it, in the plural.
    """
    total = math.prod(counts)
    splits = [
        (math.prod(counts[:axis]), math.prod(counts[axis:]), axis) for axis in range(1, len(counts))
    ]
    rows, cols, axis = min(splits, key=lambda s: abs(math.log(s[0] / s[1])), default=(1, total, 0))
    if axis == 0 or (min(rows, cols) == 1 and total > _LINE):
        cols = math.ceil(math.sqrt(total))
        return Arrangement(
            rows=-(-total // cols),
            cols=cols,
            row_name=f"lines of {cols} {noun}",
            col_name=f"{noun} of a line",
        )
    last = len(counts) - 1
    return Arrangement(
        rows=rows, cols=cols, row_name=_axes(0, axis - 1), col_name=_axes(axis, last)
    )


def _axes(first: int, last: int) -> str:
    return f"axis {first}" if first == last else f"axes {first} to {last}"
