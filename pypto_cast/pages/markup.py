"""Parts of an HTML page: tables, JSON in a script, colours."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Final

OKABE_ITO: Final = (
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#f0e442",
    "#0072b2",
    "#d55e00",
    "#cc79a7",
    "#999999",
)
"""Colours that most of the colour-blind tell apart (Okabe and Ito, 2008)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; the first cell of a row names it.

    Attributes:
        caption: what it shows.
        headings: one per column.
        rows: as many cells each.
        is_prose: its last column holds sentences; a narrow screen puts cells under each other.
    """

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_prose: bool = False


def resource(package: str, name: str) -> str:
    """The text of a file that lies in a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def base_style() -> str:
    """The style that all pages share."""
    return resource(__package__, "base.css")


def script_json(document: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def dark_style() -> str:
    """The style that all pages share, with the colours of the dark scheme."""
    return base_style() + resource(__package__, "dark.css")


def html_table(table: Table) -> str:
    """The HTML of a table."""
    caption = html.escape(table.caption)
    head = _cells(table.headings, "th", ' scope="col"')
    rows = "\n".join(
        f'<tr><th scope="row">{html.escape(first)}</th>{_cells(rest, "td")}</tr>'
        for first, *rest in table.rows
    )
    kind = ' class="prose"' if table.is_prose else ""
    # A table that scrolls must be reachable by keyboard, and then needs a name.
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}">'
        f"<table{kind}>"
        f"<caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _cells(texts: Iterable[str], tag: str, attributes: str = "") -> str:
    return "".join(f"<{tag}{attributes}>{html.escape(text)}</{tag}>" for text in texts)
