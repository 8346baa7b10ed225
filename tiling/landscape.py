"""Costs of the tile shapes around a chosen one along its last two axes, or why one is not legal.

A slice through the tiles that `tiling.ranking` ranks: the axes further out keep the chosen extents.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from tiling.cost import COST_SETS, CostParameters
from tiling.estimate import Estimate, estimates
from tiling.grid import Grid, Shape, as_tiles
from tiling.loads import Job
from tiling.search import are_legal
from tiling.ub import aligned_elems, slots_bytes

_MOST_EXTENTS: Final = 40
"""Extents of an axis that are looked at; of more, about evenly spaced ones by their ratio."""
_BEYOND: Final = 2
"""Extents past the longest one that fits UB, so that the slice shows the edge."""


class CellKind(enum.Enum):
    """The kind of a tile shape in the slice: legal, left out, or the rule that it breaks."""

    LEGAL = "legal"
    TOO_MANY_TILES = "too many tiles"
    ILLEGAL = "not legal"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One tile shape of the slice.

    Attributes:
        tile_shape: as it would be set.
        tile_count: tiles that the tensor would be cut into.
        kind: legal, legal with more tiles than were asked for, or not legal.
        estimate: what it is taken to cost; None unless it is legal.
        refusal: why it is not of the first kind; empty if it is.
    """

    tile_shape: Shape
    tile_count: int
    kind: CellKind
    estimate: Estimate | None
    refusal: str


_Refusal = tuple[CellKind, str]
"""The kind of a tile shape, and why it is not legal or left out; empty if it is neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landscape:
    """Tile shapes that differ in their last two extents.

    Attributes:
        leading: the extents of the axes further out, the same in all.
        rows: extents of the last axis but one, ascending; (1,) if the tensor has one axis.
        cols: extents of the last axis, ascending, in whole blocks.
        unit: elements that make whole blocks on both sides; other last axes are not legal.
        is_complete: no extent in reach was left out.
        cells: by row, then by column.
    """

    leading: Shape
    rows: tuple[int, ...]
    cols: tuple[int, ...]
    unit: int
    is_complete: bool
    cells: tuple[tuple[Cell, ...], ...]

    @property
    def legal_count(self) -> int:
        return self.counts[CellKind.LEGAL]

    @property
    def counts(self) -> Counter[CellKind]:
        """Cells of each kind."""
        return Counter(cell.kind for row in self.cells for cell in row)


def landscape(
    job: Job, chosen: Shape, parameters: CostParameters, *, max_tiles: int | None
) -> Landscape:
    """Estimate the tile shapes that differ from a chosen one in the last two axes only.

    Args:
        job: the cast.
        chosen: a legal tile shape, as `tune` returns it; it is one of the cells.
        parameters: the cost set to follow; the range is over it and all named sets.
        max_tiles: a tile shape that makes so many or more is refused; None: none is for that.

    Returns:
        At most 41 extents of each axis, from the least to beyond what fits UB.
    """
    unit = aligned_elems(job.bits, job.chip)
    leading = chosen[:-2]
    cols, all_cols = _extents(job, leading, chosen, axis=-1, step=unit)
    rows, all_rows = (
        _extents(job, leading, chosen, axis=-2, step=1) if len(chosen) > 1 else ((1,), True)
    )
    outer = rows if len(chosen) > 1 else (None,)
    tiles = [(*leading, *(() if row is None else (row,)), col) for row in outer for col in cols]
    clipped = [tuple(map(min, tile, job.shape)) for tile in tiles]
    counts = [len(Grid(shape=job.shape, tile_shape=tile)) for tile in clipped]
    refusals = [
        _refusal(job, count, max_tiles, bool(is_legal))
        for count, is_legal in zip(counts, are_legal(job, as_tiles(clipped)), strict=True)
    ]
    legal = [tile for tile, (_, text) in zip(clipped, refusals, strict=True) if not text]
    costs = iter(estimates(job, as_tiles(legal), parameters, COST_SETS.values()))
    cells = [
        Cell(
            tile_shape=tile,
            tile_count=count,
            kind=kind,
            estimate=None if refusal else next(costs),
            refusal=refusal,
        )
        for tile, count, (kind, refusal) in zip(tiles, counts, refusals, strict=True)
    ]
    starts = range(0, len(cells), len(cols))
    return Landscape(
        leading=leading,
        rows=rows,
        cols=cols,
        unit=unit,
        is_complete=all_cols and all_rows,
        cells=tuple(tuple(cells[start : start + len(cols)]) for start in starts),
    )


def _extents(
    job: Job, leading: Shape, chosen: Shape, *, axis: int, step: int
) -> tuple[tuple[int, ...], bool]:
    """Extents of an axis; True if no extent in reach was left out."""
    unit = aligned_elems(job.bits, job.chip)
    least = [*leading, *([1] * (len(chosen) > 1)), unit]
    least[axis] = step
    fit = max(
        job.chip.ub_safe_bytes // slots_bytes(math.prod(least[:-1]), least[-1], job.bits, job.chip),
        1,
    )
    longest = min(-(-job.shape[axis] // step), fit * _BEYOND)
    if longest <= _MOST_EXTENTS:
        return tuple(step * number for number in range(1, longest + 1)), True
    spaced = np.geomspace(1, longest, _MOST_EXTENTS).round().astype(int)
    numbers = {*map(int, spaced), chosen[axis] // step}
    return tuple(step * number for number in sorted(numbers)), False


def _refusal(job: Job, count: int, max_tiles: int | None, is_legal: bool) -> _Refusal:
    if not is_legal:
        safe = job.chip.ub_safe_bytes
        text = f"two tiles do not fit the {safe:,} B of UB that are safe for user code"
        return CellKind.ILLEGAL, text
    if max_tiles is not None and count >= max_tiles:
        text = f"it makes {count:,} tiles; fewer than {max_tiles:,} are allowed"
        return CellKind.TOO_MANY_TILES, text
    return CellKind.LEGAL, ""
