"""The landscape of time over the two last tile axes, as a heat map."""

from __future__ import annotations

import math
from typing import Final

from pypto_cast.report.figure import Figure, Mark, Row, cells
from pypto_cast.report.markup import Table
from pypto_cast.report.text_format import plural
from pypto_cast.tuning.report.section import Section
from pypto_cast.tuning.tune import TunedCast
from tiling.landscape import Cell, CellKind, Landscape, landscape

_TICKS: Final = (1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 10000, 100000)
_APART: Final = 0.15
"""Part of the colour bar between two labels."""
_REFUSED: Final = {
    CellKind.ILLEGAL: ("illegal", "–"),
    CellKind.TOO_MANY_TILES: ("too-many", "+"),
}
"""The class in the style and the sign of what has no time."""


def heat_map(cast: TunedCast) -> Section:
    """The tile shapes around the best one, and what each would cost."""
    best = cast.candidates[0]
    is_bounded = best.tile_count < cast.max_tiles  # else every legal one makes too many
    found = landscape(
        cast.job,
        cast.best,
        cast.parameters,
        max_tiles=cast.max_tiles if is_bounded else None,
    )
    return Section(
        key="landscape",
        title="Landscape",
        summary=_summary(cast, found),
        notes=_notes(cast, found),
        figures=_figures(cast, found),
        tables=(_table(found),),
    )


def _summary(cast: TunedCast, found: Landscape) -> str:
    total = len(found.rows) * len(found.cols)
    best = cast.candidates[0]
    times = [c.estimate.microseconds for row in found.cells for c in row if c.estimate]
    return (
        f"Heat map of the estimated time of tile shapes around {list(best.tile_shape)}: "
        f"{found.legal_count} of {total} are legal and take {min(times):,.2f} to "
        f"{max(times):,.2f} us; {found.counts[CellKind.TOO_MANY_TILES]} fit UB and make too many "
        f"tiles; {found.counts[CellKind.ILLEGAL]} are not legal."
    )


def _notes(cast: TunedCast, found: Landscape) -> tuple[str, ...]:
    notes = [
        "Colour: time as a multiple of the fastest tile shape shown, on a logarithmic scale. Grey: "
        "not legal; point at it for the reason. Pink: it fits, and is left out because it makes "
        f"{cast.max_tiles:,} tiles or more (--max-tiles). Star: the best.",
        f"The last axis goes in steps of {found.unit} elements: rows must be whole 32 B blocks in "
        "the input and in the output, so every other last axis is not legal.",
    ]
    if found.leading:
        notes.append(f"The axes further out are those of the best: {_extents(found.leading)}.")
    if not found.is_complete:
        notes.append("Of long axes some extents are shown, about evenly spaced by their ratio.")
    return tuple(notes)


def _extents(extents: tuple[int, ...]) -> str:
    return " x ".join(map(str, extents))


def _figures(cast: TunedCast, found: Landscape) -> tuple[Figure, Figure]:
    """The slice, and the scale of its colours."""
    known = [c.estimate.cycles for row in found.cells for c in row if c.estimate]
    least, most = min(known), max(known)
    # Of equal times all are the fastest.
    scale = math.log(most / least) or 1.0

    def mark(col: int, cell: Cell) -> Mark:
        if cell.estimate is None:
            return Mark(left=col, width=1, kind=_REFUSED[cell.kind][0], tip=_hover(cell))
        is_best = cell.tile_shape == cast.best
        shade = math.log(cell.estimate.cycles / least) / scale
        return Mark(
            left=col,
            width=1,
            kind="heat best" if is_best else "heat",
            tip=_hover(cell),
            text="★" if is_best else "",
            shade=shade,
        )

    grid = cells(
        [[mark(col, cell) for col, cell in enumerate(row)] for row in found.cells],
        row_names=list(map(str, found.rows)),
        col_names=list(map(str, found.cols)),
        axis="across: last tile axis, elements; down: last tile axis but one",
    )
    key = Figure(
        rows=(Row(marks=(Mark(left=0, width=scale, kind="scale"),)),),
        extent=scale,
        axis="time / fastest",
        ticks=tuple((math.log(tick), f"{tick:g}x") for tick in _ticks(most / least)),
        height_px=14,
    )
    return grid, key


def _ticks(most: float) -> list[float]:
    """Round multiples up to `most`, far enough apart to be read on a logarithmic scale."""
    ticks: list[float] = []
    for tick in _TICKS:
        if tick <= most and (not ticks or math.log(tick / ticks[-1]) >= _APART * math.log(most)):
            ticks.append(tick)
    return ticks


def _hover(cell: Cell) -> str:
    head = str(list(cell.tile_shape))
    estimate = cell.estimate
    if estimate is None:
        return f"{head}\n{cell.kind}: {cell.refusal}"
    return (
        f"{head}\n{estimate.microseconds:,.2f} us, {estimate.cycles:,.0f} cycles"
        f"\n{estimate.low_cycles:,.0f} to {estimate.high_cycles:,.0f} over all sets"
        f"\n{estimate.gb_per_second:,.0f} GB/s, limited by {estimate.limit}"
        f"\n{plural(cell.tile_count, 'tile')}"
    )


def _table(found: Landscape) -> Table:
    signs = "; ".join(f"{sign}: {kind}" for kind, (_, sign) in _REFUSED.items())
    return Table(
        caption=f"Estimated time in us; {signs}. Rows: last tile axis but one; columns: last tile "
        "axis.",
        headings=("last but one", *map(str, found.cols)),
        rows=tuple(
            (str(extent), *map(_time, row))
            for extent, row in zip(found.rows, found.cells, strict=True)
        ),
    )


def _time(cell: Cell) -> str:
    return f"{cell.estimate.microseconds:,.2f}" if cell.estimate else _REFUSED[cell.kind][1]
