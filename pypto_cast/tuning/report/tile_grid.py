"""The plan of the best tile shape: the grid of tiles, coloured by the core that has them."""

from __future__ import annotations

import bisect
from typing import Final

from pypto_cast.report.arrangement import Arrangement, arrangement
from pypto_cast.report.figure import Figure, Mark, cells
from pypto_cast.report.markup import OKABE_ITO, Table
from pypto_cast.report.text_format import plural
from pypto_cast.tuning.report.section import Section
from pypto_cast.tuning.tune import TunedCast
from tiling.plan import TilePlan

_MOST_ROWS: Final = 64
_MOST_COLS: Final = 96
"""Tiles drawn along each side; of more, the first ones."""
_NUMBERED: Final = 12
"""Columns up to which each tile has its core's number written into it."""


def tile_grid(cast: TunedCast) -> Section:
    """Draw the tiles in the colours of the cores that have them."""
    made = cast.plan
    count = len(made.grid)
    laid = arrangement(made.grid.counts, "tiles")
    rows, cols = min(laid.rows, _MOST_ROWS), min(laid.cols, _MOST_COLS)
    is_cut = (rows, cols) != (laid.rows, laid.cols)
    drawn = f"the first {rows} x {cols} of {laid.rows} x {laid.cols}" if is_cut else "all"
    tails = [f"{tail} along axis {axis}" for axis, tail in enumerate(made.tails) if tail]
    return Section(
        key="grid",
        title="Tiles",
        summary=(
            f"{list(made.shape)} in {plural(count, 'tile')} of {list(made.tile_shape)}, grid "
            f"{' x '.join(map(str, made.grid.counts))}, on {made.busy_cores} of "
            f"{made.chip.vector_cores} cores; {drawn} tiles are drawn, coloured by core."
        ),
        notes=(
            f"Down: {laid.row_name}; across: {laid.col_name}. A core has consecutive tiles of the "
            f"row-major order; colours repeat every {len(OKABE_ITO)} cores.",
            f"The last tiles are shorter: {', '.join(tails)}."
            if tails
            else "All tiles have the same shape.",
            *(["Only the first tiles are drawn; the table has all cores."] if is_cut else []),
        ),
        figures=(_figure(made, laid, rows, cols),),
        tables=(_table(made),),
    )


def _figure(made: TilePlan, laid: Arrangement, rows: int, cols: int) -> Figure:
    starts = [made.core_tiles(core).start for core in range(made.chip.vector_cores)]

    def mark(row: int, col: int) -> Mark | None:
        index = row * laid.cols + col
        if index >= len(made.grid):
            return None
        core = bisect.bisect_right(starts, index) - 1
        tile = made.grid.tile(index)
        return Mark(
            left=col,
            width=1,
            kind=f"core-{core % len(OKABE_ITO)}",
            tip=f"core {core}, tile {index:,}\nat {list(tile.offset)}\n{list(tile.shape)} elements",
            text=str(core) if cols <= _NUMBERED else "",
        )

    return cells(
        [[mark(row, col) for col in range(cols)] for row in range(rows)],
        row_names=[str(row) for row in range(rows)],
        col_names=[str(col) for col in range(cols)],
        axis=f"across: {laid.col_name}; down: {laid.row_name}",
    )


def _table(made: TilePlan) -> Table:
    rows = []
    for core in range(made.chip.vector_cores):
        tiles = made.core_tiles(core)
        if tiles:
            span = f"{tiles.start:,} to {tiles.stop - 1:,}"
            first = str(list(made.grid.tile(tiles.start).offset))
            rows.append((f"core {core}", f"{len(tiles):,}", span, first))
    return Table(
        caption="The tiles of each core",
        headings=("core", "tiles", "numbers", "the first starts at"),
        rows=tuple(rows),
    )
