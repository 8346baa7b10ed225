"""A certainty as HTML: a picture of each output, its undecided elements and their causes."""

from __future__ import annotations

import dataclasses
import math
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
    number_text,
)
from pypto_cast.recording.steps import origin_of
from pypto_cast.report.figure import Arrangement, Picture, arrangement, some_places
from pypto_cast.report.page import page_html
from pypto_cast.report.report import Report, Table, columns, headed
from pypto_cast.report.text_format import plural
from simulator.arithmetic.trust import Assumption
from simulator.numbers import float_environment
from tiling.grid import Shape

MOST_BYTES: Final = 1_000_000
"""Of a page."""
_MOST_CELLS: Final = 8192
"""Of all pictures of a page; of larger outputs a cell stands for several elements."""
_NAMED: Final = 31
"""Causes that are told apart; the lighter ones are one."""
_MOST_OF_A_SIDE: Final = 1 << 20
"""Rows or columns of elements with edges of tiles; of more, cells would hide them."""
_OF_A_CELL: Final = 4
"""Causes of a cell that are told."""
CAUSE_COLORS: Final = (0, 1, 2, 4, 5, 6, 7)
"""Of the heaviest causes, as classes `core-0` and so on; yellow can hardly be seen on white. The
last one is of all others."""

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
        data = {
            "causes": words,
            "colors": [f"core-{color}" for color in CAUSE_COLORS],
            "pictures": [p.data for p in pictures],
        }
        text = _page(outputs, title, causes, pictures, data)
        if len(text.encode()) <= MOST_BYTES or cells == 1:
            return text
        cells //= 2


def certainty_tables(
    outputs: Sequence[OutputCertainty],
    causes: Mapping[Cause, int],
    choices: Mapping[Assumption, int],
    most: int,
) -> tuple[Table, ...]:
    """Lay out the outputs, the heaviest causes, and the choices that certain codes rest on."""
    return _outputs_table(outputs), _causes_table(causes, most), _choices_table(choices)


def _outputs_table(outputs: Sequence[OutputCertainty]) -> Table:
    """The share of certain results of each output."""
    return Table(
        key="outputs",
        caption="Outputs",
        columns=columns(
            name="output",
            dtype="dtype",
            shape="shape",
            tile_shape="tile shape" if any(map(tile_shape_of, outputs)) else None,
            share="certain",
            by_documents="by documents",
            by_choices="given choices",
            undecided="undecided",
            elems=None,
        ),
        rows=[
            (
                *(output.name, output.dtype.name, list(output.shape)),
                (tile := tile_shape_of(output)) and list(tile),
                *(output.counts.share, *dataclasses.astuple(output.counts), output.values.size),
            )
            for output in outputs
        ],
    )


def _causes_table(causes: Mapping[Cause, int], most: int) -> Table:
    """The heaviest causes for people, `most` of them."""
    return Table(
        caption=f"Causes, the {min(most, len(causes))} heaviest of {len(causes)}",
        columns=headed("cause", "results left open", "file"),
        rows=[
            (str(cause), count, _near(cause.file)) for cause, count in list(causes.items())[:most]
        ],
    )


def _choices_table(choices: Mapping[Assumption, int]) -> Table:
    """The choices that certain results rest on; a result may rest on several."""
    return Table(
        key="choices",
        caption="Choices that certain results rest on",
        columns=columns(name="choice", certain="results", statement="statement", source=None),
        rows=[
            (choice.name, count, choice.statement, choice.source)
            for choice, count in choices.items()
        ],
    )


def tile_shape_of(output: OutputCertainty) -> Shape | None:
    """The tile shape that wrote an output; None if several did, or tiles that start elsewhere."""
    found: set[Shape | None] = set()
    for patch in origin_of(output.values):
        tile = patch.record.tiles().grid.tile_shape
        starts = zip(patch.offset, patch.start, tile, strict=True)
        found.add(tile if all((a - b) % extent == 0 for a, b, extent in starts) else None)
    return found.pop() if len(found) == 1 else None


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
            "row_ticks": _ticks(laid, output.shape, rows, height, is_row=True),
            "col_ticks": _ticks(laid, output.shape, cols, width, is_row=False),
            "row_lines": _lines(laid, output, height, is_row=True),
            "col_lines": _lines(laid, output, width, is_row=False),
            "axis": f"across: {laid.col_name}; down: {laid.row_name}",
            "cells": [
                [cell, int(counts[cell]), size, _told(output, first[cell]), _shares(by_cause[cell])]
                for cell, size in zip(open_cells.tolist(), sizes.tolist(), strict=True)
            ],
        },
        note="A cell is "
        + ("one element." if height * width == 1 else f"{height:,} x {width:,} elements."),
    )


def _ticks(
    laid: Arrangement, shape: Shape, cells: int, extent: int, *, is_row: bool
) -> list[tuple[int, str]]:
    """Cells along a side, and the coordinates at which they begin."""
    axes = shape[: laid.axis] if is_row else shape[laid.axis :]
    found = []
    for cell in some_places(cells):
        at = cell * extent
        if laid.axis:
            index = ", ".join(str(int(i)) for i in np.unravel_index(at, axes))
        else:
            index = str(at * laid.cols if is_row else at)
        found.append((cell, index))
    return found


def _lines(laid: Arrangement, output: OutputCertainty, extent: int, *, is_row: bool) -> list[float]:
    """The edges of tiles along a side, in cells; none where they would hide the picture."""
    tile = tile_shape_of(output)
    if not laid.axis or tile is None:
        return []
    side = slice(None, laid.axis) if is_row else slice(laid.axis, None)
    axes, tile = output.shape[side], tile[side]
    if math.prod(axes) > _MOST_OF_A_SIDE:
        return []
    index = np.indices(axes).reshape(len(axes), -1) // np.array(tile)[:, None]
    edges = np.flatnonzero((np.diff(index) != 0).any(axis=0)) + 1
    return [] if edges.size * 2 > index.shape[1] / extent else (edges / extent).tolist()


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
    here = number_text(output.values, index, output.format)
    return f"{list(index)}: {here} here, {output.possible(index)} possible"


def _shares(counts: Counts) -> list[int]:
    """Ranks and counts of the causes of a cell in turn, the most first."""
    order = np.argsort(-counts, kind="stable")[:_OF_A_CELL]
    return [int(x) for rank in order if counts[rank] for x in (rank, counts[rank])]


def _page(
    outputs: Sequence[OutputCertainty],
    title: str,
    causes: Mapping[Cause, int],
    pictures: Sequence[_Picture],
    data: object,
) -> str:
    counts = sum((output.counts for output in outputs), CertaintyCounts())
    choices = certain_by_choice(outputs)
    report = Report(
        kind="certainty",
        title=title,
        lead=f"Of all results {counts}." + ("" if causes else " A device gives these bits."),
        keys=_legend(causes),
        parts=(
            *map(_part, range(len(outputs)), outputs, pictures),
            Report(
                kind="counts",
                title="Counts",
                tables=(_outputs_table(outputs), *([_choices_table(choices)] if choices else [])),
            ),
        ),
    )
    return page_html(report, script="kernel/reports/certainty_page.js", data=data)


def _legend(causes: Mapping[Cause, int]) -> tuple[tuple[str, str], ...]:
    """A cause for each colour, by the number that is written into its cells."""
    items = list(causes.items())
    shown = [(f"{cause} ({_near(cause.file)})", count) for cause, count in items[:_NAMED]]
    if rest := items[_NAMED:]:
        shown.append((f"{len(rest)} further causes", sum(count for _, count in rest)))
    if not shown:
        return ()
    return (
        ("certain", "certain"),
        *(
            (
                f"core-{CAUSE_COLORS[min(rank, len(CAUSE_COLORS) - 1)]}",
                f"{rank + 1}: {plural(count, 'result')} left open by {words}",
            )
            for rank, (words, count) in enumerate(shown)
        ),
    )


def _part(number: int, output: OutputCertainty, picture: _Picture) -> Report:
    return Report(
        kind="output",
        title=output.name,
        lead=str(output),
        figures=(Picture(number=number, summary=str(output)),),
        notes=(f"{picture.note} Arrow keys step through what is undecided.",),
    )
