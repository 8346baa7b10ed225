"""Pages of HTML and parts of them: one shell, one style, tables, JSON in a script."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Final

import pypto_cast

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
_BLUE: Final = "#0072b2"
"""Of these the only one on which white can be read, and black cannot."""


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


def page_html(
    title: str, lead: str, body: str, *, script: str = "", document: object = None
) -> str:
    """A whole page, dark or light as the system is; a browser that opens it loads nothing.

    Args:
        title: as text.
        lead: the HTML under the heading.
        body: the HTML of the main part.
        script: the text of a script that runs after that of the figures.
        document: what that script reads as JSON from the element `data`.
    """
    return Template(resource(__package__, "page.html")).substitute(
        title=html.escape(title),
        lead=lead,
        body=body,
        style=f"{_look()}\n{resource(__package__, 'page.css')}\n{_core_colors()}",
        version=html.escape(pypto_cast.__version__),
        data=_script_json(document),
        script=f"{resource(__package__, 'figure.js')}\n{script}",
    )


def fragment(*tables: Table) -> str:
    """Tables for a notebook, in the style of the pages; dark or light as the notebook is."""
    parts = "\n".join(map(html_table, tables))
    return f'<div class="pypto-cast"><style>{_look()}</style>\n{parts}</div>'


def html_table(table: Table) -> str:
    """The HTML of a table."""
    caption = html.escape(table.caption)
    head = "".join(
        f'<th scope="col">{html.escape(name)}</th>' if name else "<td></td>"
        for name in table.headings
    )
    rows = "\n".join(
        f'<tr><th scope="row">{html.escape(first)}</th>{_cells(rest)}</tr>'
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


def _cells(texts: Iterable[str]) -> str:
    return "".join(f"<td>{html.escape(text)}</td>" for text in texts)


def _look() -> str:
    """The colours, the type and the tables that pages and notebooks share."""
    return f".pypto-cast {{\n{resource(__package__, 'look.css')}}}"


def _core_colors() -> str:
    return "\n".join(
        f".core-{number} {{ background: {color}; color: {'#fff' if color == _BLUE else '#000'}; }}"
        for number, color in enumerate(OKABE_ITO)
    )


def resource(package: str, name: str) -> str:
    """The text of a file that lies beside a package's modules."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def _script_json(document: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
