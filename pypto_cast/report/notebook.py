"""Tables as a notebook shows them: HTML in the style of the pages, without Jinja2."""

from __future__ import annotations

import html
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.report.report import Fact, Report, Table, Words, headed, resource
from simulator.numbers import float_environment
from tiling.plan import TilePlan

_SIDE: Final = 6
"""Rows and columns that are shown; of more, those at both ends."""


def fragment(*tables: Table) -> str:
    """Tables in the style of the pages; dark or light as the notebook is."""
    style = f".pypto-cast {{\n{resource('report/look.css')}}}"
    parts = "\n".join(map(_table, tables))
    return f'<div class="pypto-cast"><style>{style}</style>\n{parts}</div>'


def notebook_html(report: Report, *more: Table) -> str:
    """A report's facts, tables and totals for a notebook, and further tables."""
    first, last = (_facts(report.title, facts) for facts in (report.facts, report.totals))
    tables = (first, *report.tables, last, *more)
    return fragment(*([table for table in tables if table.rows] or [first]))


def _facts(title: str, facts: tuple[Fact, ...]) -> Table:
    rows = [
        (fact.label if not number else "", Words(value=None, text=line))
        for fact in facts
        for number, line in enumerate(fact.lines)
    ]
    return Table(caption=title, columns=headed("fact", "value"), rows=rows)


def _table(table: Table) -> str:
    caption = html.escape(table.caption)
    labels = [html.escape(table.columns[place].label) for place in table.places]
    head = "".join(f'<th scope="col">{label}</th>' if label else "<td></td>" for label in labels)
    rows = "\n".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in (map(html.escape, row) for row in table.texts())
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}"><table>'
        f"<caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


@float_environment.quiet()
def values_table(caption: str, values: npt.NDArray[Any]) -> Table:
    """The values along the last two axes, at the start of the axes further out.

    Args:
        caption: what stands over them.
        values: of any shape.
    """
    leading = (0,) * (values.ndim - 2)
    plane = np.atleast_2d(values[leading])
    rows, cols = (_ends(extent) for extent in plane.shape)
    if leading:
        caption = f"{caption}, at [{', '.join(map(str, leading))}]"
    return Table(
        caption=caption,
        columns=headed("", *("…" if col is None else str(col) for col in cols)),
        rows=[
            (
                "…" if row is None else str(row),
                *("…" if None in (row, col) else str(plane[row, col]) for col in cols),
            )
            for row in rows
        ],
    )


def _ends(extent: int) -> list[int | None]:
    if extent <= _SIDE:
        return list(range(extent))
    half = _SIDE // 2
    return [*range(half), None, *range(extent - half, extent)]


def plan_table(made: TilePlan) -> Table:
    """The tiles of a tensor, their cores and the UB that each takes."""
    tails = [f"{tail} along axis {axis}" for axis, tail in enumerate(made.tails) if tail]
    facts = (
        ("tiles", f"{len(made.grid):,} of {list(made.tile_shape)}"),
        ("grid", " x ".join(map(str, made.grid.counts))),
        ("tails", ", ".join(tails) or "none"),
        ("cores", f"{made.busy_cores} of {made.chip.vector_cores} of {made.chip}"),
        ("UB a tile", f"{made.tile_bytes:,} of {made.chip.ub_bytes:,} B, {made.buffering}"),
        *(("warning", text) for text in made.diagnostics),
    )
    caption = f"Tiles of {list(made.shape)}"
    return Table(caption=caption, columns=headed("fact", "value"), rows=facts)
