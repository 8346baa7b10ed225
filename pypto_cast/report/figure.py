"""Figures as rows of marks; positions are shares of the width, so any width will do.

A grid of any number of axes is laid out in a plane to be drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tiling.grid import Shape

_LINE: Final = 12
"""Entries in a single row from which on it is broken into lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """Rows and columns of the plane, in row-major order.

    Attributes:
        rows, cols: their counts.
        row_name, col_name: their names.
        axis: the first axis along the columns; 0: a row is a part of all axes.
    """

    rows: int
    cols: int
    row_name: str
    col_name: str
    axis: int


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
            axis=0,
        )
    last = len(counts) - 1
    return Arrangement(
        rows=rows,
        cols=cols,
        row_name=_axes(0, axis - 1),
        col_name=_axes(axis, last),
        axis=axis,
    )


def _axes(first: int, last: int) -> str:
    return f"axis {first}" if first == last else f"axes {first} to {last}"


CORE_COLORS: Final = 8
"""Classes `core-0` and so on of the style."""
HEAT: Final = ("#00224e", "#434e6c", "#7d7c78", "#bcae6c", "#fee838")
"""Even steps of a scale whose lightness grows evenly, so that it can be read in grey and by the
colour-blind (cividis of Nunez, Anderton and Renslow, 2018)."""
_DARK: Final = 0.46
"""Shades below it take white text; on all the contrast is 4.5 at least (WCAG 2 AA)."""
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
        height: share of the row, from its foot or from `foot`.
        foot: share of the row under it.
        shade: share of the scale of `heat`, 0 to 1; None for a mark of one colour.
    """

    left: float
    width: float
    kind: str
    tip: str = ""
    text: str = ""
    height: float = 1.0
    foot: float = 0.0
    shade: float | None = None


def heat(shade: float) -> str:
    """The colours of a mark of a shade, 0 to 1, and of its text, as a style."""
    at = min(int(shade * (len(HEAT) - 1)), len(HEAT) - 2)
    share = shade * (len(HEAT) - 1) - at
    low, high = (bytes.fromhex(color[1:]) for color in HEAT[at : at + 2])
    mixed = bytes(round(a + share * (b - a)) for a, b in zip(low, high, strict=True))
    return f"background:#{mixed.hex()};color:#{'fff' if shade < _DARK else '000'}"


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
        title: over it; empty if the part has one.
        summary: read out in place of it; empty: the lead of the part.
        caption: under it.
    """

    rows: tuple[Row, ...]
    extent: float
    axis: str
    ticks: tuple[tuple[float, str], ...]
    keys: tuple[tuple[str, str], ...] = ()
    height_px: int = 22
    is_beside: bool = False
    title: str = ""
    summary: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Cells in rows and columns, drawn by a script of the page from its data.

    Attributes:
        number: its place among the pictures of the page.
        summary: read out in place of it.
        title: over it; empty if the part has one.
        caption: under it.
    """

    number: int
    summary: str
    title: str = ""
    caption: str = ""


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
    tall = min(_TALLEST_PX, max(_SHORTEST_PX, _CELLS_PX // len(cells)))
    return Figure(
        rows=tuple(
            Row(label=name, marks=tuple(mark for mark in line if mark is not None))
            for name, line in zip(row_names, cells, strict=True)
        ),
        extent=len(col_names),
        axis=axis,
        ticks=tuple((at + 0.5, col_names[at]) for at in some_places(len(col_names))),
        keys=keys,
        height_px=tall,
        is_beside=True,
    )


PIPE_ROWS: Final = {
    "MTE2": ("copy-in", "MTE2, copy in"),
    "V": ("vector", "V, vector"),
    "MTE3": ("copy-out", "MTE3, copy out"),
}
"""The rows of a timeline by pipe: their class in the style and their name."""


def timeline_figure(
    rows: tuple[Row, ...],
    end: float,
    axis: str,
    *,
    height_px: int,
    is_beside: bool = False,
    title: str = "",
    summary: str = "",
    caption: str = "",
) -> Figure:
    """A timeline: rows of `PIPE_ROWS` from 0 to `end`; see `Figure`."""
    has_waits = any(mark.kind == "wait" for row in rows for mark in row.marks)
    return Figure(
        rows=rows,
        extent=end,
        axis=axis,
        ticks=round_ticks(end),
        keys=(*PIPE_ROWS.values(), *((("wait", "waits for a flag"),) if has_waits else ())),
        height_px=height_px,
        is_beside=is_beside,
        title=title,
        summary=summary,
        caption=caption,
    )


def some_places(count: int) -> range:
    """Evenly spaced places for labels, as many as there is room for."""
    return range(0, count, -(-count // _TICKS))


def round_ticks(extent: float) -> tuple[tuple[float, str], ...]:
    """Round numbers from 0 to `extent`, at most six, and their labels."""
    power = 10.0 ** math.floor(math.log10(extent / _TICKS))
    step = next(m * power for m in (1, 2, 5, 10, 20) if extent / (m * power) < _TICKS)
    return tuple((n * step, f"{n * step:,.6g}") for n in range(int(extent / step) + 1))
