"""A table that fits the terminal: no number is broken or cut, whatever the width."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

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
