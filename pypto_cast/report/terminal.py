"""Reports as text on a terminal, by rich; stdout only, as wide as the terminal."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import rich.table
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.progress import Progress, ProgressColumn, TaskID
from rich.text import Text

from pypto_cast.report.report import Fact, Report, Table, json_text
from pypto_cast.report.text_format import drop_output

_GAP: Final = 2
_INDENT: Final = 4
_LEAST_NAME: Final = 28
"""Cells of a shortened name from which on other columns give way instead."""
_PIPE_WIDTH: Final = 200
_FIRST_SECONDS: Final = 10.0
"""Work by whose pace the duration of the rest is estimated where no bar is drawn."""
_LONG_SECONDS: Final = 30.0
"""Remaining work from which on its duration is said there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbosity:
    """Text that a command prints beside its files and its JSON.

    Attributes:
        report: the report as text.
        progress: bars, and how long the rest will take.
    """

    report: bool = True
    progress: bool = True


_ALL: Final = Verbosity()
_VERBOSITY: Final = ContextVar("verbosity", default=_ALL)


@contextlib.contextmanager
def printing(verbosity: Verbosity) -> Iterator[None]:
    """Print as much inside."""
    token = _VERBOSITY.set(verbosity)
    try:
        yield
    finally:
        _VERBOSITY.reset(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTable:
    """A table with a line of headings.

    Where room is short, names are shortened first. Then whole columns go under their row, with
    their headings: the minor ones first, from the right; the first column stays.
    """

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table as rich prints it."""
        columns, places = self.table.columns, self.table.places
        rows = [dict(zip(places, row, strict=True)) for row in self.table.texts()]
        natural = {
            place: max(map(cell_len, (*heading.split("\n"), *(row[place] for row in rows))))
            for place in places
            if (heading := columns[place].heading) is not None
        }
        if self.table.is_prose:
            *others, last = places
            room = options.max_width - sum(natural[place] + _GAP for place in others)
            natural[last] = min(natural[last], max(room, _LEAST_NAME))
        shown = self._shown(natural, options.max_width)
        taken = sum(natural[i] + _GAP for i in shown if not columns[i].is_name) - _GAP
        names = max(sum(columns[i].is_name for i in shown), 1)
        room = max((options.max_width - taken) // names - _GAP, _LEAST_NAME)
        widths = {i: min(natural[i], room) if columns[i].is_name else natural[i] for i in shown}
        under = [i for i in places if i not in widths]
        if not under:
            yield self._grid(widths, rows, show_header=True)
            return
        yield self._grid(widths, (), show_header=True)
        for row in rows:
            yield self._grid(widths, [row], show_header=False)
            words = [f"{columns[i].label} {row[i]}" for i in under if row[i]]
            if words:
                lines = _lines(words, options.max_width - _INDENT)
                yield Padding(Text("\n".join(lines), style="dim"), (0, 0, 0, _INDENT))

    def _shown(self, natural: dict[int, int], width: int) -> list[int]:
        """The columns that stay in their row."""
        columns, shown = self.table.columns, list(natural)
        by_rank = sorted(shown[1:], key=lambda i: (columns[i].is_minor, i))

        def least(i: int) -> int:
            return min(natural[i], _LEAST_NAME) if columns[i].is_name else natural[i]

        while by_rank and sum(least(i) + _GAP for i in shown) - _GAP > width:
            shown.remove(by_rank.pop())
        return shown

    def _grid(
        self, widths: dict[int, int], rows: Sequence[dict[int, str]], *, show_header: bool
    ) -> rich.table.Table:
        grid = rich.table.Table(
            box=None,
            padding=(0, _GAP, 0, 0),
            pad_edge=False,
            header_style="dim",
            show_header=show_header,
        )
        numbers = self.table.numbers
        for i, width in widths.items():
            grid.add_column(self.table.columns[i].heading or "", width=width, overflow="fold")
            grid.columns[-1].justify = "right" if i in numbers else "left"
        for row in rows:
            grid.add_row(*(self._cell(row[i], i, width) for i, width in widths.items()))
        return grid

    def _cell(self, text: str, place: int, width: int) -> Text:
        column = self.table.columns[place]
        style = ("dim" if text == "0" else "yellow") if column.is_fault else ""
        return Text(shortened(text, width) if column.is_name else text, style=style)


def shortened(text: str, width: int) -> str:
    """A text of at most so many cells of a terminal, without its middle if it is longer."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    head = set_cell_size(text, width - 1 - tail)
    return f"{head}…{set_cell_size(text[::-1], tail)[::-1]}"


def _lines(words: Sequence[str], width: int) -> Iterator[str]:
    """The words with commas between, broken between words only; semicolons if one has commas."""
    line, mark = "", ";" if any(", " in each for each in words) else ","
    for word, following in itertools.zip_longest(words, words[1:]):
        piece = word if following is None else f"{word}{mark}"
        if line and cell_len(line) + 1 + cell_len(piece) > width:
            yield line
            line = piece
        else:
            line = f"{line} {piece}".strip()
    yield line


def _console() -> Console:
    """A console as wide as the terminal; into a pipe or a file, as wide as a report needs.

    The output of a notebook's cell is such a file.
    """
    fixed = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(
        width=None if fixed else _PIPE_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
        force_jupyter=False,
    )


@contextlib.contextmanager
def readers_may_leave() -> Iterator[None]:
    """Print inside; where the reader closes the pipe the rest is dropped, and the command goes on.

    It has its files to write still, and its exit code to give.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()


@readers_may_leave()
def write(text: str) -> None:
    """Print lines that are a command's report."""
    if _VERBOSITY.get().report:
        sys.stdout.write(text)


def note(text: str) -> None:
    """Say on stderr how far work is, or how long it will take."""
    if _VERBOSITY.get().progress:
        print(f"pypto-cast: {text}", file=sys.stderr)


def tell_left(work: str, seconds: float) -> None:
    """Say on stderr how long the rest of some work will take, if it is long."""
    if seconds >= _LONG_SECONDS:
        note(f"{work}: about {duration(seconds)} left")


@readers_may_leave()
def show(report: Report, *, as_json: bool = False) -> None:
    """Print a report as text, or as JSON."""
    if as_json:
        sys.stdout.write(json_text(report))
        return
    if not _VERBOSITY.get().report:
        return
    title = [Text(report.title, style="bold")] if report.title else []
    parts: list[RenderableType] = [*title, *_pairs(report.facts)]
    for table in report.tables:
        if table.rows:
            parts.append(FittedTable(table=table))
        if table.note:
            parts.append(Text(table.note))
    parts += _pairs(report.totals)
    if report.notes:
        parts.append(Text("\n".join(report.notes)))
    _print(parts)


def _pairs(facts: Sequence[Fact]) -> list[RenderableType]:
    """A table of two columns: the label of a fact, and its lines."""
    table = rich.table.Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for fact in facts:
        for number, line in enumerate(fact.lines):
            table.add_row("" if number else fact.label, Text(line))
    return [table] if table.row_count else []


def _print(parts: Sequence[RenderableType]) -> None:
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
    """A progress bar on stderr, where a terminal draws it; elsewhere one line on long work."""
    return _Progress(*columns, console=Console(stderr=True, force_jupyter=False), transient=True)


class _Progress(Progress):
    """Bars of a terminal that can move its cursor.

    Elsewhere the remaining time is said once, after the first seconds of the work, if it is long.
    """

    def __init__(self, *columns: str | ProgressColumn, console: Console, transient: bool) -> None:
        is_drawn = console.is_terminal and not console.is_dumb_terminal
        disable = not (is_drawn and _VERBOSITY.get().progress)
        super().__init__(*columns, console=console, transient=transient, disable=disable)
        self._is_said = is_drawn

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        """Advance a task; rich's own method does not go through `update`."""
        self.update(task_id, advance=advance)

    def update(self, task_id: TaskID, **fields: Any) -> None:
        """Change a task, and say how long the rest will take where no bar does.

        A task's field `kept` is of its completed part what was there before.
        """
        super().update(task_id, **fields)
        task = self._tasks[task_id]
        elapsed = task.elapsed or 0.0
        done = task.completed - task.fields.get("kept", 0)
        if self._is_said or not task.total or not done or elapsed < _FIRST_SECONDS:
            return
        self._is_said = True
        left = elapsed * (task.total - task.completed) / done
        tell_left(task.description, left)


def duration(seconds: float) -> str:
    """A duration in one unit: 45 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
