"""The landscape of time over the two last tile axes, as a heat map."""

from __future__ import annotations

import math
from typing import Final

from pypto_cast.pages.markup import Table
from pypto_cast.tuning.report.section import ILLEGAL, INK, TOO_MANY, Figure, Json, Section
from pypto_cast.tuning.tune import TunedCast
from pypto_cast.wording import plural
from tiling.landscape import Cell, CellKind, Landscape, landscape

_TICKS: Final = (1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 10000, 100000)
_APART: Final = 0.06
"""Part of the colour bar between two labels."""
_REFUSED: Final = {CellKind.ILLEGAL: (ILLEGAL, "–"), CellKind.TOO_MANY_TILES: (TOO_MANY, "+")}
"""The colour and the sign of what has no time."""


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
        figure=_figure(cast, found),
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
        "not legal; hover for the reason. Pink: it fits, and is left out because it makes "
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


def _figure(cast: TunedCast, found: Landscape) -> Figure:
    cycles = [[c.estimate and c.estimate.cycles for c in row] for row in found.cells]
    known = [value for row in cycles for value in row if value]
    least, most = min(known), max(known)
    ratios = [[math.log10(c / least) if c else None for c in row] for row in cycles]
    axes = {"x": list(map(str, found.cols)), "y": list(map(str, found.rows))}
    text = [[_hover(cell) for cell in row] for row in found.cells]
    ticks = _ticks(most / least)
    shared: Json = {"type": "heatmap", **axes, "xgap": 1, "ygap": 1, "hoverinfo": "text"}
    legal: Json = {
        **shared,
        "name": "legal",
        "z": ratios,
        "text": text,
        "colorscale": "Viridis",
        "zmin": 0,
        "zmax": max(math.log10(most / least), 0.01),
        "colorbar": {
            "title": {"text": "time /<br>fastest"},
            "tickvals": [math.log10(tick) for tick in ticks],
            "ticktext": [f"{tick:g}x" for tick in ticks],
            "thickness": 14,
        },
        "hoverongaps": False,
    }
    refused = [
        {
            **shared,
            "name": str(kind),
            "z": [[1 if c.kind is kind else None for c in row] for row in found.cells],
            "text": text,
            "colorscale": [[0, color], [1, color]],
            "showscale": False,
            "hoverongaps": False,
        }
        for kind, (color, _) in _REFUSED.items()
    ]
    axis: Json = {"type": "category", "showgrid": False}
    best = cast.best
    star: Json = {
        "type": "scatter",
        "mode": "markers",
        "name": "best",
        "x": [str(best[-1])],
        "y": [str(best[-2] if len(best) > 1 else 1)],
        "marker": {
            "symbol": "star",
            "size": 16,
            "color": "white",
            "line": {"color": INK, "width": 1.5},
        },
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return Figure(
        data=(legal, *refused, star),
        layout={
            "xaxis": {**axis, "title": {"text": "last tile axis, elements"}},
            "yaxis": {**axis, "title": {"text": "last tile axis but one"}},
            "margin": {"r": 10},
        },
        height=520,
    )


def _ticks(most: float) -> list[float]:
    """Round multiples up to `most`, far enough apart to be read on a logarithmic scale."""
    ticks: list[float] = []
    for tick in _TICKS:
        if tick <= most and (not ticks or math.log(tick / ticks[-1]) >= _APART * math.log(most)):
            ticks.append(tick)
    return ticks


def _hover(cell: Cell) -> str:
    head = f"<b>{list(cell.tile_shape)}</b>"
    estimate = cell.estimate
    if estimate is None:
        return f"{head}<br>{cell.kind}: {cell.refusal}"
    return (
        f"{head}<br>{estimate.microseconds:,.2f} us, {estimate.cycles:,.0f} cycles"
        f"<br>{estimate.low_cycles:,.0f} to {estimate.high_cycles:,.0f} over all sets"
        f"<br>{estimate.gb_per_second:,.0f} GB/s, limited by {estimate.limit}"
        f"<br>{plural(cell.tile_count, 'tile')}"
    )


def _table(found: Landscape) -> Table:
    signs = "; ".join(f"{sign}: {kind}" for kind, (_, sign) in _REFUSED.items())
    return Table(
        caption=f"Estimated time in us; {signs}. Rows: last tile axis but one; columns: last tile "
        "axis.",
        headings=("", *map(str, found.cols)),
        rows=tuple(
            (str(extent), *map(_time, row))
            for extent, row in zip(found.rows, found.cells, strict=True)
        ),
    )


def _time(cell: Cell) -> str:
    return f"{cell.estimate.microseconds:,.2f}" if cell.estimate else _REFUSED[cell.kind][1]
