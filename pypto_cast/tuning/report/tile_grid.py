"""The plan of the best tile shape: the grid of tiles, coloured by the core that has them."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from typing import Final

from pypto_cast.tuning.report.section import OKABE_ITO, Figure, Json, Section, Table
from pypto_cast.tuning.tune import TunedCast
from pypto_cast.wording import plural
from tiling.grid import Shape
from tiling.plan import TilePlan

_MOST_ROWS: Final = 64
_MOST_COLS: Final = 96
"""Tiles drawn along each side; of more, the first ones."""
_LINE: Final = 12
"""Tiles in a single row from which on it is broken into lines."""
_TICKS: Final = 10
_NUMBERED: Final = 400
"""Tiles up to which each has its core's number written into it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrangement:
    """A grid of any number of axes laid out in a plane, in row-major order."""

    rows: int
    cols: int
    row_name: str
    col_name: str


def tile_grid(cast: TunedCast) -> Section:
    """Draw the tiles in the colours of the cores that have them."""
    made = cast.plan
    count = len(made.grid)
    laid = _arrangement(made.grid.counts)
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


def _arrangement(counts: Shape) -> _Arrangement:
    """The split of the axes that is nearest to a square; a single row is broken into lines."""
    total = math.prod(counts)
    splits = [
        (math.prod(counts[:axis]), math.prod(counts[axis:]), axis) for axis in range(1, len(counts))
    ]
    rows, cols, axis = min(splits, key=lambda s: abs(math.log(s[0] / s[1])), default=(1, total, 0))
    if axis == 0 or (min(rows, cols) == 1 and total > _LINE):
        cols = math.ceil(math.sqrt(total))
        return _Arrangement(
            rows=-(-total // cols),
            cols=cols,
            row_name=f"lines of {cols} tiles",
            col_name="tiles of a line",
        )
    last = len(counts) - 1
    return _Arrangement(
        rows=rows, cols=cols, row_name=_axes(0, axis - 1), col_name=_axes(axis, last)
    )


def _axes(first: int, last: int) -> str:
    return f"axis {first}" if first == last else f"axes {first} to {last}"


def _figure(made: TilePlan, laid: _Arrangement, rows: int, cols: int) -> Figure:
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
