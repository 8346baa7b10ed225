"""Report: the facts, tables and figures of a result, which the modules beside this one render.

It holds plain values: numbers stay numbers, and a rendering makes text of them. `document` is the
rendering for JSON; `report.schema.json` beside this file says which keys it has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from pypto_cast.loading import entry
from pypto_cast.report.figure import Figure, Picture
from pypto_cast.report.text_format import printable

VERSION: Final = 1
"""Of the JSON; a key that goes or changes its meaning makes it another one."""
_FROM_TO: Final = {"src": "from", "dst": "to"}
_FORMER: Final = {
    "cast": _FROM_TO,
    "checkpoint": _FROM_TO,
    "compare": _FROM_TO,
    "explain": _FROM_TO,
    "matrix": {"src": "source", "dst": "destination"},
    "route": _FROM_TO,
    "trace": _FROM_TO,
}
"""The former keys of a kind's JSON, which stay beside the new ones for a release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A value, and the text that people read in its place.

    Attributes:
        value: for JSON.
        text: without anything that a terminal would obey; a fact may have several lines.
    """

    value: object
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A named value.

    Attributes:
        key: its name in JSON; empty: people alone read it.
        value: as JSON takes it, a tuple, a path, or `Words`; for JSON alone also a function that
            gives it.
        label: its name for people, who do not see it without a text; None: JSON alone has it.
        spec: the format of a number, as of `format`.
    """

    key: str = ""
    value: object = None
    label: str | None = None
    spec: str = ""

    @property
    def lines(self) -> list[str]:
        """The lines that people read: the text of the value, or of each of several texts."""
        if self.label is None:
            return []
        if isinstance(self.value, list) and all(isinstance(line, str) for line in self.value):
            return list(map(text_of, self.value))
        text = text_of(self.value, self.spec)
        return text.split("\n") if text else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        key: its name in JSON; empty: people alone read it.
        heading: its name for people, lines of it one below the other; None: JSON alone has it.
        spec: the format of its numbers, as of `format`.
        is_name: a terminal shortens it in the middle where room is short.
        is_minor: a terminal puts it under the row before others.
        is_fault: it counts what went wrong, so that other numbers than 0 stand out.
    """

    key: str = ""
    heading: str | None = None
    spec: str = ""
    is_name: bool = False
    is_minor: bool = False
    is_fault: bool = False

    @property
    def label(self) -> str:
        """The heading on one line."""
        return (self.heading or "").replace("-\n", "").replace("\n", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; for people the first cell of a row names it.

    Attributes:
        columns: from left to right.
        rows: a value, or `Words`, for each column.
        key: its name in JSON; empty: people alone read it.
        caption: its contents in words.
        note: a line under it in text, such as how many rows it leaves out.
        is_prose: its last column holds sentences; a narrow page puts cells under each other.
    """

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[object]]
    key: str = ""
    caption: str = ""
    note: str = ""
    is_prose: bool = False

    @property
    def places(self) -> list[int]:
        """The columns that people read."""
        return [at for at, column in enumerate(self.columns) if column.heading is not None]

    def text(self, row: Sequence[object], place: int) -> str:
        """The text of a cell."""
        return text_of(row[place], self.columns[place].spec)

    def texts(self) -> Iterator[list[str]]:
        """The rows as people read them."""
        return ([self.text(row, place) for place in self.places] for row in self.rows)

    @property
    def numbers(self) -> set[int]:
        """The columns of numbers, some of which may be missing; they are aligned to the right."""
        found = set()
        for place in self.places:
            kinds = {type(_plain(row[place])) for row in self.rows} - {type(None)}
            if kinds and kinds <= {int, float}:
                found.add(place)
        return found


def headed(*headings: str) -> tuple[Column, ...]:
    """Columns for people alone."""
    return tuple(Column(heading=heading) for heading in headings)


def columns(**headings: str | None) -> tuple[Column, ...]:
    """Columns by their keys in JSON; None for JSON alone."""
    return tuple(Column(key=key, heading=heading) for key, heading in headings.items())


def plain(**values: object) -> tuple[Fact, ...]:
    """Facts by their keys, for JSON alone."""
    return tuple(Fact(key=key, value=value) for key, value in values.items())


def said(label: str, text: str) -> Fact:
    """A fact for people alone, which needs no escapes; without a text they do not see it."""
    return Fact(label=label, value=Words(value=None, text=text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A result as people and programs read it.

    Attributes:
        kind: of the result, the `report_kind` of the JSON; of a part, its name in links.
        title: in a line.
        facts: before the tables.
        tables: numbers and texts by row.
        totals: facts after the tables.
        notes: lines at the end, for people, in which nothing needs escapes.
        lead: a sentence under the title of a page.
        standing: why the figures are not measured ones, for the head of a page.
        keys: classes in the style of a page and their meanings, for all figures.
        figures: of a page.
        parts: of a page, each with a title of its own.
        is_tabbed: one part is shown at a time.
    """

    kind: str
    title: str
    facts: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()
    totals: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()
    lead: str = ""
    standing: str = ""
    keys: tuple[tuple[str, str], ...] = ()
    figures: tuple[Figure | Picture, ...] = ()
    parts: tuple[Report, ...] = ()
    is_tabbed: bool = False

    def _repr_html_(self) -> str:
        return str(entry("notebook_html")(self))


def text_of(value: object, spec: str = "") -> str:
    """The text of a value; nothing for None.

    Args:
        value: of a fact or a cell.
        spec: the format of a number; empty: an int with commas, a float with up to 15 digits.
    """
    if isinstance(value, Words):
        return value.text
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return format(value, spec or ("," if isinstance(value, int) else ",.15g"))
    return printable(str(list(value) if isinstance(value, tuple) else value))


def document(report: Report) -> dict[str, Any]:
    """The report for JSON: its version, its kind, then its facts and tables by their keys."""
    found: dict[str, Any] = {"report_version": VERSION, "report_kind": report.kind}
    found |= {fact.key: _plain(fact.value) for fact in report.facts + report.totals if fact.key}
    found |= {table.key: _rows(table) for table in report.tables if table.key}
    return _with_former(found, _FORMER.get(report.kind, {}))


def _rows(table: Table) -> list[dict[str, Any]]:
    return [
        {
            column.key: _plain(cell)
            for column, cell in zip(table.columns, row, strict=True)
            if column.key
        }
        for row in table.rows
    ]


def _plain(value: object) -> object:
    held = value.value if isinstance(value, Words) else value
    held = held() if callable(held) else held
    if isinstance(held, tuple):
        return list(held)
    return str(held) if isinstance(held, Path) else held


def _with_former(found: dict[str, Any], former: dict[str, str]) -> dict[str, Any]:
    """Former keys beside those of the document and of the rows in it."""
    rows = {
        key: [_with_former(row, former) if isinstance(row, dict) else row for row in value]
        for key, value in found.items()
        if isinstance(value, list)
    }
    return found | rows | {old: found[key] for key, old in former.items() if key in found}


def json_text(report: Report) -> str:
    """The document as text that every parser takes.

    Raises:
        ValueError: a NaN or an infinity, which JSON lacks.
    """
    return json.dumps(document(report), indent=2, allow_nan=False) + "\n"


def resource(path: str) -> str:
    """The text of a file of the package.

    Args:
        path: from the package's folder.
    """
    return resources.files("pypto_cast").joinpath(path).read_text(encoding="utf-8")


def schema() -> dict[str, Any]:
    """The JSON Schema of the documents of all kinds."""
    found: dict[str, Any] = json.loads(resource("report/report.schema.json"))
    return found
