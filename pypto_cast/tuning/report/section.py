"""The sections of the report: a figure, tables, words."""

from __future__ import annotations

from dataclasses import dataclass

from pypto_cast.report.figure import Figure
from pypto_cast.report.markup import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A tab of the report.

    Attributes:
        key: its name in links and in the page's elements.
        title: of the tab.
        summary: what the figures show, in words; read out in place of them.
        notes: how to read them, and what they leave out.
        figures: none if tables say it all.
        tables: the same as text, and what the figures have no room for.
    """

    key: str
    title: str
    summary: str
    notes: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
