"""The plan of the best tile shape: the grid of tiles, coloured by the core that has them."""

from __future__ import annotations

import bisect
from typing import Final

from pypto_cast.pages.arrangement import Arrangement, arrangement
from pypto_cast.pages.markup import OKABE_ITO, Table
from pypto_cast.tuning.report.section import Figure, Json, Section
from pypto_cast.tuning.tune import TunedCast
from pypto_cast.wording import plural
from tiling.plan import TilePlan

_MOST_ROWS: Final = 64
_MOST_COLS: Final = 96
"""Tiles drawn along each side; of more, the first ones."""
_TICKS: Final = 10
_NUMBERED: Final = 400
"""Tiles up to which each has its core's number written into it."""


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
        figure=_figure(made, laid, rows, cols),
        tables=(_table(made),),
    )


def _figure(made: TilePlan, laid: Arrangement, rows: int, cols: int) -> Figure:
    starts = [made.core_tiles(core).start for core in range(made.chip.vector_cores)]
    cores: list[list[int | None]] = []
    hover: list[list[str]] = []
    for row in range(rows):
        indices = [row * laid.cols + col for col in range(cols)]
        inside = [index if index < len(made.grid) else None for index in indices]
        cores.append([None if i is None else bisect.bisect_right(starts, i) - 1 for i in inside])
        hover.append(
            [
                "" if index is None or core is None else _hover(made, index, core)
                for index, core in zip(inside, cores[-1], strict=True)
            ]
        )
    is_numbered = rows * cols <= _NUMBERED
    trace: Json = {
        "type": "heatmap",
        "z": [[None if core is None else core % len(OKABE_ITO) for core in line] for line in cores],
        "text": [["" if core is None else str(core) for core in line] for line in cores],
        "hovertext": hover,
        "hoverinfo": "text",
        "hoverongaps": False,
        "zmin": -0.5,
        "zmax": len(OKABE_ITO) - 0.5,
        "colorscale": _steps(),
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        **({"texttemplate": "%{text}", "textfont": {"size": 11}} if is_numbered else {}),
    }
    return Figure(
        data=(trace,),
        layout={
            "xaxis": _axis(laid.col_name, cols),
            "yaxis": {**_axis(laid.row_name, rows), "autorange": "reversed"},
        },
        height=max(260, min(560, 140 + 26 * rows)),
    )


def _axis(name: str, tiles: int) -> Json:
    return {
        "title": {"text": name},
        "tick0": 0,
        "dtick": -(-tiles // _TICKS),
        "showgrid": False,
        "zeroline": False,
    }


def _steps() -> list[list[object]]:
    """A colour scale of flat steps."""
    number = len(OKABE_ITO)
    return [
        [edge / number, color] for step, color in enumerate(OKABE_ITO) for edge in (step, step + 1)
    ]


def _hover(made: TilePlan, index: int, core: int) -> str:
    tile = made.grid.tile(index)
    return (
        f"<b>core {core}</b>, tile {index:,}<br>at {list(tile.offset)}<br>"
        f"{list(tile.shape)} elements"
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
