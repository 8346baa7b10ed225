"""A certainty as HTML: a picture of each output, its undecided elements and their causes."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.recording.causes import Cause
from pypto_cast.recording.output_certainty import (
    CertaintyCounts,
    OutputCertainty,
    certain_by_choice,
)
from pypto_cast.report.figure import Arrangement, arrangement
from pypto_cast.report.markup import OKABE_ITO, Table, html_table, page_html, resource
from pypto_cast.report.text_format import plural
from simulator.arithmetic.trust import Assumption
from simulator.numbers import float_environment

MOST_BYTES: Final = 1_000_000
"""Of a page."""
_MOST_CELLS: Final = 8192
"""Of all pictures of a page; of larger outputs a cell stands for several elements."""
_NAMED: Final = 31
"""Causes that are told apart; the lighter ones are one."""
_OF_A_CELL: Final = 4
"""Causes of a cell that are told."""
_COLORS: Final = tuple(color for color in OKABE_ITO if color != "#f0e442")
"""Of the heaviest causes; yellow can hardly be seen on white. The last one is of all others."""

Counts = npt.NDArray[np.int64]


@float_environment.quiet()
def certainty_page(
    outputs: Sequence[OutputCertainty], title: str, causes: Mapping[Cause, int]
) -> str:
    """The whole page, of at most `MOST_BYTES`; a browser that opens it asks nothing of a network.

    Args:
        outputs: at least one.
        title: of the page.
        causes: how many results of all outputs each leaves open, the most first.
    """
    named = {cause: rank for rank, cause in enumerate(list(causes)[:_NAMED])}
    words = [*map(str, named), "further causes"]
    cells = _MOST_CELLS
    while True:
        pictures = [_picture(output, named, max(1, cells // len(outputs))) for output in outputs]
        document = {"causes": words, "colors": _COLORS, "pictures": [p.data for p in pictures]}
        text = _page(outputs, title, causes, pictures, document)
        if len(text.encode()) <= MOST_BYTES or cells == 1:
            return text
        cells //= 2


def outputs_table(outputs: Sequence[OutputCertainty]) -> Table:
    """The share of certain results of each output."""
    return Table(
        caption="Outputs",
        headings=(
            *("output", "dtype", "shape", "certain"),
            *("by documents", "given choices", "undecided"),
        ),
        rows=tuple(
            (
                output.name,
                str(output.dtype),
                str(list(output.shape)),
                output.counts.share,
                *(f"{count:,}" for count in dataclasses.astuple(output.counts)),
            )
            for output in outputs
        ),
    )


def causes_table(causes: Mapping[Cause, int], most: int) -> Table:
    """The heaviest causes, `most` of them."""
    return Table(
        caption=f"Causes, the {min(most, len(causes))} heaviest of {len(causes)}",
        headings=("cause", "results left open", "file"),
        rows=tuple(
            (str(cause), f"{count:,}", _near(cause.file))
            for cause, count in list(causes.items())[:most]
        ),
    )


def choices_table(choices: Mapping[Assumption, int]) -> Table:
    """The choices that certain results rest on; a result may rest on several."""
    return Table(
        caption="Choices that certain results rest on",
        headings=("choice", "results", "statement"),
        rows=tuple((c.name, f"{count:,}", c.statement) for c, count in choices.items()),
    )


def _near(file: str) -> str:
    """A file's path from the folder that Python runs in, if it lies there."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picture:
    """An output as cells, and the text of one of them."""

    data: dict[str, Any]
    note: str


def _picture(output: OutputCertainty, ranks: Mapping[Cause, int], most: int) -> _Picture:
    laid = arrangement(output.shape, "elements")
    height, width = _bin(laid, most)
    rows, cols = -(-laid.rows // height), -(-laid.cols // width)
    where = np.flatnonzero(~output.certain)
    cells = where // laid.cols // height * cols + where % laid.cols // width
    counts = np.bincount(cells, minlength=rows * cols)
    first = np.zeros(rows * cols, np.int64)
    first[cells[::-1]] = where[::-1]
    rank_of = np.array([ranks.get(cause, _NAMED) for cause in output.causes] or [0])
    kinds = cells * (_NAMED + 1) + rank_of[output.cause.reshape(-1)[where]]
    by_cause = np.bincount(kinds, minlength=rows * cols * (_NAMED + 1)).reshape(rows * cols, -1)
    open_cells = np.flatnonzero(counts)
    sizes = _sizes(open_cells, cols, laid, (height, width), output.values.size)
    last = -(-(output.values.size - (laid.rows - 1) * laid.cols) // width)
    return _Picture(
        data={
            "rows": rows,
            "cols": cols,
            "tail": cols if (laid.rows - 1) % height else last,
            "cells": [
                [cell, int(counts[cell]), size, _told(output, first[cell]), _shares(by_cause[cell])]
                for cell, size in zip(open_cells.tolist(), sizes.tolist(), strict=True)
            ],
        },
        note=f"Down: {laid.row_name}; across: {laid.col_name}. A cell is "
        + ("one element." if height * width == 1 else f"{height:,} x {width:,} elements."),
    )


def _bin(laid: Arrangement, most: int) -> tuple[int, int]:
    """Rows and columns of elements that make one cell, so that there are at most so many cells."""
    height = width = 1
    while (rows := -(-laid.rows // height)) * (cols := -(-laid.cols // width)) > most:
        if rows > cols:
            height += 1
        else:
            width += 1
    return height, width


def _sizes(
    cells: Counts, cols: int, laid: Arrangement, extent: tuple[int, int], size: int
) -> Counts:
    """The number of elements that each cell stands for."""
    top, left = cells // cols * extent[0], cells % cols * extent[1]
    rows = np.minimum(laid.rows - top, extent[0])
    columns = np.minimum(laid.cols - left, extent[1])
    # A broken line ends early: what its last cells lack.
    end = size - (laid.rows - 1) * laid.cols
    lacking = np.clip(left + columns - np.maximum(left, end), 0, None)
    return rows * columns - np.where(top + rows == laid.rows, lacking, 0)


def _told(output: OutputCertainty, position: np.int64) -> str:
    index = tuple(int(axis) for axis in np.unravel_index(position, output.shape))
    return f"{list(index)}: {output.values[index]!s} here, {output.possible(index)} possible"


def _shares(counts: Counts) -> list[int]:
    """Ranks and counts of the causes of a cell in turn, the most first."""
    order = np.argsort(-counts, kind="stable")[:_OF_A_CELL]
    return [int(x) for rank in order if counts[rank] for x in (rank, counts[rank])]


def _page(
    outputs: Sequence[OutputCertainty],
    title: str,
    causes: Mapping[Cause, int],
    pictures: Sequence[_Picture],
    document: object,
) -> str:
    counts = sum((output.counts for output in outputs), CertaintyCounts())
    choices = certain_by_choice(outputs)
    tables = [outputs_table(outputs), *([choices_table(choices)] if choices else [])]
    figures = "\n".join(map(_figure, range(len(outputs)), outputs, pictures))
    return page_html(
        title,
        f"<p>Of all results {html.escape(str(counts))}.</p>",
        f"{_legend(causes)}\n{figures}\n" + "\n".join(map(html_table, tables)),
        script=resource(__package__, "certainty_page.js"),
        document=document,
    )


def _legend(causes: Mapping[Cause, int]) -> str:
    if not causes:
        return "<p>A device gives these bits.</p>"
    items = list(causes.items())
    shown = [(str(cause), count, cause.file) for cause, count in items[:_NAMED]]
    if rest := items[_NAMED:]:
        shown.append((f"{len(rest)} further causes", sum(count for _, count in rest), ""))
    entries = [
        f'<li title="{html.escape(file)}"><span class="key" style="background:'
        f'{_COLORS[min(rank, len(_COLORS) - 1)]}"></span>'
        f"{plural(count, 'result')} left open by {html.escape(words)}</li>"
        for rank, (words, count, file) in enumerate(shown)
    ]
    heaviest, others = entries[: len(_COLORS)], entries[len(_COLORS) :]
    text = _list(heaviest)
    if others:
        text += f"\n<details><summary>{len(others)} more</summary>\n{_list(others)}\n</details>"
    return text


def _list(entries: Sequence[str]) -> str:
    return '<ul class="keys">\n' + "\n".join(entries) + "\n</ul>"


def _figure(number: int, output: OutputCertainty, picture: _Picture) -> str:
    words = html.escape(str(output))
    return (
        f"<figure><h2>{html.escape(output.name)}</h2>\n<p>{words}</p>\n"
        f'<div><canvas id="picture-{number}" role="img" tabindex="0" aria-label="{words}">'
        f"</canvas></div>\n<figcaption>{html.escape(picture.note)} Arrow keys step through what is "
        "undecided.</figcaption></figure>"
    )
