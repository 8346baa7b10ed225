"""Figures as rows of marks in HTML; positions are shares of the width, so any width will do.

A grid of any number of axes is laid out in a plane to be drawn.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tiling.grid import Shape

_LINE: Final = 12
"""Entries in a single row from which on it is broken into lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """Rows and columns of the plane, in row-major order, and their names."""

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


_TICKS: Final = 6
"""Labels under a figure at most; they fit side by side on a phone."""
_SHORTEST_PX, _TALLEST_PX, _CELLS_PX = 12, 26, 520


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A rectangle in a row.

    Attributes:
        left: where it starts, in units of the figure's extent.
        width: in the same units; 0 where the style says how wide it is.
        kind: its class in the style.
        tip: what is told of it, in lines; empty if nothing.
        text: written into it.
        height: share of the row, from its foot.
        shade: share of the scale of `heat`, 0 to 1; None for a mark of one colour.
    """

    left: float
    width: float
    kind: str
    tip: str = ""
    text: str = ""
    height: float = 1.0
    shade: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A name and marks, later ones over earlier ones."""

    marks: tuple[Mark, ...]
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Rows of marks over one axis.

    Attributes:
        rows: from above.
        extent: of the axis, which starts at 0.
        axis: what the axis counts.
        ticks: positions on the axis and their labels.
        keys: classes of marks and what they mean.
        height_px: of a row, in CSS pixels.
        is_beside: the names of the rows stand beside them, else over them.
    """

    rows: tuple[Row, ...]
    extent: float
    axis: str
    ticks: tuple[tuple[float, str], ...]
    keys: tuple[tuple[str, str], ...] = ()
    height_px: int = 22
    is_beside: bool = False


def figure_html(figure: Figure, summary: str) -> str:
    """The HTML of a figure; `summary` is read out in place of it."""
    rows = "\n".join(_row(row, figure) for row in figure.rows)
    empty = "<span></span>" if figure.is_beside else ""
    ticks = "".join(
        f"<span{_edge(at, figure.extent)} style=left:{_percent(at, figure.extent)}>"
        f"{html.escape(text)}</span>"
        for at, text in figure.ticks
    )
    keys = "".join(
        f'<li><span class="key {kind}"></span>{html.escape(text)}</li>'
        for kind, text in figure.keys
    )
    return (
        f'<div class="figure{" beside" * figure.is_beside}" role="img" tabindex="0" '
        f'aria-label="{html.escape(summary)}">\n{rows}\n'
        f'{empty}<div class="ticks">{ticks}</div>'
        f'<div class="axis">{html.escape(figure.axis)}</div></div>'
        + (f'\n<ul class="keys inline">{keys}</ul>' if keys else "")
    )


def _row(row: Row, figure: Figure) -> str:
    marks = "".join(_mark(mark, figure.extent) for mark in row.marks)
    label = ""
    if row.label or figure.is_beside:
        label = f'<span class="label">{html.escape(row.label)}</span>'
    return f"{label}<div class=lane style=height:{figure.height_px}px>{marks}</div>"


def _mark(mark: Mark, extent: float) -> str:
    style = f"left:{_percent(mark.left, extent)}"
    if mark.width:
        style += f";width:{_percent(mark.width, extent)}"
    if mark.height != 1:
        style += f";height:{_percent(mark.height, 1)}"
    if mark.shade is not None:
        style += f";--shade:{_percent(mark.shade, 1)}"
    tip = f' data-tip="{html.escape(mark.tip)}"' if mark.tip else ""
    return f'<i class="{mark.kind}" style={style}{tip}>{html.escape(mark.text)}</i>'


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.7g}%"


def _edge(at: float, extent: float) -> str:
    """Keeps the labels at both ends within the figure."""
    place = "first" if at == 0 else "last" if at == extent else ""
    return f' class="{place}"' if place else ""


def cells(
    cells: Sequence[Sequence[Mark | None]],
    *,
    row_names: Sequence[str],
    col_names: Sequence[str],
    axis: str,
    keys: tuple[tuple[str, str], ...] = (),
) -> Figure:
    """A grid of marks of equal width, each column with its name as far as there is room.

    Args:
        cells: rows of marks, one unit wide; None leaves a gap.
        row_names: one per row.
        col_names: one per column.
        axis: what the columns are, then what the rows are.
        keys: as of a figure.
    """
    step = -(-len(col_names) // _TICKS)
    tall = min(_TALLEST_PX, max(_SHORTEST_PX, _CELLS_PX // len(cells)))
    return Figure(
        rows=tuple(
            Row(label=name, marks=tuple(mark for mark in line if mark is not None))
            for name, line in zip(row_names, cells, strict=True)
        ),
        extent=len(col_names),
        axis=axis,
        ticks=tuple((at + 0.5, col_names[at]) for at in range(0, len(col_names), step)),
        keys=keys,
        height_px=tall,
        is_beside=True,
    )


def round_ticks(extent: float) -> tuple[tuple[float, str], ...]:
    """Round numbers from 0 to `extent`, at most six, and their labels."""
    power = 10.0 ** math.floor(math.log10(extent / _TICKS))
    step = next(m * power for m in (1, 2, 5, 10, 20) if extent / (m * power) < _TICKS)
    return tuple((n * step, f"{n * step:,.6g}") for n in range(int(extent / step) + 1))
