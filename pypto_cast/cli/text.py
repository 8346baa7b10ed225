"""Parts of a report that several commands print, as text for people and as JSON; stdout only."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json as _json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.progress import Progress, ProgressColumn
from rich.table import Table
from rich.text import Text

from pypto_cast.cast.cast_plan import CastPlan
from pypto_cast.cast.cast_report import CastReport
from pypto_cast.dtypes.data_types import SaturationMode
from pypto_cast.report.text_format import plural, printable
from tiling.ub import aligned_elems

Cell = str | Text

_GAP: Final = 2
_INDENT: Final = 4
_LEAST_NAME: Final = 28
"""Cells of a shortened name from which on other columns give way instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column.

    Attributes:
        header: its heading; lines of it stand one below the other.
        is_number: aligned to the right.
        is_name: shortened in the middle where room is short.
        is_minor: goes under the row before the others do.
    """

    header: str
    is_number: bool = False
    is_name: bool = False
    is_minor: bool = False

    @property
    def label(self) -> str:
        """The heading on one line."""
        return self.header.replace("-\n", "").replace("\n", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTable:
    """A table with a line of headings.

    Where room is short, names are shortened first. Then whole columns go under their row, with
    their headings: the minor ones first, from the right; the first column stays.

    Attributes:
        columns: from left to right.
        rows: a cell for each column, on one line.
    """

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Cell]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table as rich prints it."""
        natural = [max(map(cell_len, cells)) for cells in self._by_column()]
        shown = self._shown(natural, options.max_width)
        others = sum(natural[i] + _GAP for i in shown if not self.columns[i].is_name) - _GAP
        names = max(sum(self.columns[i].is_name for i in shown), 1)
        room = max((options.max_width - others) // names - _GAP, _LEAST_NAME)
        widths = {
            i: min(natural[i], room) if self.columns[i].is_name else natural[i] for i in shown
        }
        under = [i for i in range(len(self.columns)) if i not in widths]
        if not under:
            yield self._table(widths, self.rows, show_header=True)
            return
        yield self._table(widths, (), show_header=True)
        for row in self.rows:
            yield self._table(widths, [row], show_header=False)
            words = [f"{self.columns[i].label} {row[i]}" for i in under if str(row[i])]
            if words:
                lines = _lines(words, options.max_width - _INDENT)
                yield Padding(Text("\n".join(lines), style="dim"), (0, 0, 0, _INDENT))

    def _by_column(self) -> Iterator[list[str]]:
        for number, column in enumerate(self.columns):
            yield [*column.header.split("\n"), *(str(row[number]) for row in self.rows)]

    def _shown(self, natural: Sequence[int], width: int) -> list[int]:
        """The columns that stay in their row."""
        shown = list(range(len(self.columns)))
        by_rank = sorted(shown[1:], key=lambda i: (self.columns[i].is_minor, i))

        def least(i: int) -> int:
            return min(natural[i], _LEAST_NAME) if self.columns[i].is_name else natural[i]

        while by_rank and sum(least(i) + _GAP for i in shown) - _GAP > width:
            shown.remove(by_rank.pop())
        return shown

    def _table(
        self, widths: dict[int, int], rows: Sequence[Sequence[Cell]], *, show_header: bool
    ) -> Table:
        table = Table(
            box=None,
            padding=(0, _GAP, 0, 0),
            pad_edge=False,
            header_style="dim",
            show_header=show_header,
        )
        for i, width in widths.items():
            column = self.columns[i]
            table.add_column(column.header, width=width, overflow="fold")
            table.columns[-1].justify = "right" if column.is_number else "left"
        for row in rows:
            table.add_row(*(self._cell(row[i], i, width) for i, width in widths.items()))
        return table

    def _cell(self, cell: Cell, number: int, width: int) -> Cell:
        is_name = self.columns[number].is_name
        return shortened(cell, width) if is_name and isinstance(cell, str) else cell


def shortened(text: str, width: int) -> str:
    """A text of at most so many cells of a terminal, without its middle if it is longer."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    head = set_cell_size(text, width - 1 - tail)
    return f"{head}…{set_cell_size(text[::-1], tail)[::-1]}"


def _lines(words: Sequence[str], width: int) -> Iterator[str]:
    """The words with commas between, broken between words only."""
    line = ""
    for word, following in itertools.zip_longest(words, words[1:]):
        piece = word if following is None else f"{word},"
        if line and cell_len(line) + 1 + cell_len(piece) > width:
            yield line
            line = piece
        else:
            line = f"{line} {piece}".strip()
    yield line


OFF: Final = "SaturationMode.OFF"
# fmt: off
_REPORTED: Final = (
    "elems", "overflows", "nans_in", "nans_out", "subnormals", "zeros", "inexact",
    "ulp_max", "ulp_mean", "relative_max", "relative_mean",
)
# fmt: on
_PIPE_WIDTH: Final = 200


def json(document: Any) -> None:
    """Print a document as JSON that every parser takes."""
    print(_json.dumps(document, indent=2, allow_nan=False))


def _console() -> Console:
    """A console as wide as the terminal; into a pipe or a file, as wide as a report needs."""
    fixed = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if fixed else _PIPE_WIDTH, highlight=False, markup=False, emoji=False)


def width() -> int:
    """Characters on a line of the output."""
    return _console().width


def short_name(name: str) -> str:
    """A name in at most half of a line, without its middle if it is longer."""
    return shortened(printable(name), width() // 2)


def show(*parts: RenderableType) -> None:
    """Print parts with a line between; in a pipe or a file without the padding of tables."""
    console = _console()
    with contextlib.ExitStack() as stack:
        capture = None if console.is_terminal else stack.enter_context(console.capture())
        for number, part in enumerate(parts):
            if number:
                console.print()
            console.print(part, soft_wrap=isinstance(part, Text))
    if capture is not None:
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in capture.get().split("\n")[:-1])


def progress(*columns: str | ProgressColumn) -> Progress:
    """A progress bar on stderr, where there is a terminal to see it."""
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def heading(text: str) -> Text:
    """The first line of a report."""
    return Text(text, style="bold")


def written(outputs: Sequence[Path | None]) -> list[Text]:
    """A line for each file that was written."""
    lines = [f"written to {printable(str(path))}" for path in outputs if path is not None]
    return [Text("\n".join(lines))] if lines else []


def pairs() -> Table:
    """A table of two columns: a name, and its value."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def columns(*headers: str) -> Table:
    """A table with a line of headers."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for header in headers:
        table.add_column(header, overflow="fold")
    return table


def modes(plan: CastPlan, satmode: SaturationMode) -> list[str]:
    """The modes that apply, as far as there is a choice."""
    mode = plan.resolution.mode
    words = [f"CAST_{mode}"] if mode is not None else []
    acts = satmode is SaturationMode.OFF and plan.resolution.rule.off
    return [*words, OFF] if acts else words


def add_plan(table: Table, plan: CastPlan, *, is_tile_chosen: bool = False) -> None:
    """Rows for a plan; with the option that sets the tile shape if the planner chose it."""
    tiles = plan.tiles
    grid = " x ".join(map(str, tiles.grid.counts))
    count = plural(len(tiles.grid), "tile")
    tails = f"tails {list(tiles.tails)}" if any(tiles.tails) else "no tails"
    table.add_row(
        "plan",
        f"{list(tiles.shape)} in {count} of {list(tiles.tile_shape)}, grid {grid}, {tails}",
    )
    if is_tile_chosen:
        unit = aligned_elems(tiles.bits, tiles.chip)
        *outer, last = tiles.tile_shape
        words = ",".join(map(str, (*outer, -(-last // unit) * unit)))
        table.add_row("", f"the planner chose the tile shape; --tile {words} sets it")
    table.add_row("", f"{tiles.busy_cores} of {tiles.chip.vector_cores} cores of {tiles.chip}")
    table.add_row(
        "", f"{tiles.tile_bytes} of {tiles.chip.ub_bytes} B of UB a tile, {tiles.buffering}"
    )


def add_report(table: Table, report: CastReport) -> None:
    """Rows for the numbers of a cast: rounded, out of range, NaN, errors."""
    table.add_row(
        "numbers",
        f"{plural(report.elems, 'element')}, {report.inexact:,} inexact, "
        f"{plural(report.overflows, 'overflow')}",
    )
    table.add_row(
        "",
        f"{report.nans_in:,} NaN in, {report.nans_out:,} out; "
        f"{report.subnormals:,} became subnormal, {report.zeros:,} became zero",
    )
    if report.worst is None:
        return
    table.add_row(
        "error",
        f"largest {report.ulp_max:.4g} ulp ({report.relative_max:.2g} relative), "
        f"mean {report.ulp_mean:.4g} ulp ({report.relative_mean:.2g})",
    )
    worst = report.worst
    where = f"{short_name(worst.tensor)} {list(worst.index)}".strip()
    table.add_row("", f"largest at {where}: {worst.source:.9g} -> {worst.result:.9g}")


def plan_document(plan: CastPlan | None) -> dict[str, Any] | None:
    """A plan for JSON."""
    if plan is None:
        return None
    tiles = plan.tiles
    mode = plan.resolution.mode
    return {
        "mode": None if mode is None else f"CAST_{mode}",
        "shape": list(tiles.shape),
        "tile_shape": list(tiles.tile_shape),
        "grid": list(tiles.grid.counts),
        "tiles": len(tiles.grid),
        "tails": list(tiles.tails),
        "chip": tiles.chip.name,
        "busy_cores": tiles.busy_cores,
        "vector_cores": tiles.chip.vector_cores,
        "tile_bytes": tiles.tile_bytes,
        "ub_bytes": tiles.chip.ub_bytes,
        "double_buffered": tiles.ub.is_double_buffered,
    }


def report_document(report: CastReport) -> dict[str, Any]:
    """A report for JSON; numbers that JSON lacks are strings in it."""
    worst = None if report.worst is None else dataclasses.asdict(report.worst)
    return {**{name: getattr(report, name) for name in _REPORTED}, "worst": worst}
