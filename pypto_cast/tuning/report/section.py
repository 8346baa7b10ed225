"""The sections of the report: a figure in Plotly's terms, tables, words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pypto_cast.pages.markup import Table

Json = dict[str, Any]

COPY_IN: Final = "#0072b2"
VECTOR: Final = "#e69f00"
COPY_OUT: Final = "#009e73"
SCALAR: Final = "#cc79a7"
ILLEGAL: Final = "#d4d4d4"
TOO_MANY: Final = "#e3b9d0"
INK: Final = "#1c1c1c"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure as Plotly takes it.

    Attributes:
        data: traces.
        layout: what differs from the layout of all figures.
        height: in CSS pixels.
    """

    data: tuple[Json, ...]
    layout: Json
    height: int = 460


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A tab of the report.

    Attributes:
        key: its name in links and in the page's elements.
        title: of the tab.
        summary: what the figure shows, in words; read out in place of it.
        notes: how to read it, and what it leaves out.
        figure: none if tables say it all.
        tables: the same as text, and what the figure has no room for.
    """

    key: str
    title: str
    summary: str
    notes: tuple[str, ...] = ()
    figure: Figure | None = None
    tables: tuple[Table, ...] = ()


def legend_below(y: float) -> Json:
    """A legend that leaves the width to the figure, in the order of the traces.

    Args:
        y: its upper edge, in heights of the plot; negative.
    """
    return {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": y,
        "yanchor": "top",
        "traceorder": "normal",
    }


def hatched(shape: str) -> Json:
    """Strokes over a bar, to tell it from others without its colour; none if the shape is empty."""
    return {
        "shape": shape,
        "fillmode": "overlay",
        "fgcolor": "white",
        "fgopacity": 0.75,
        "size": 7,
        "solidity": 0.25,
    }
