"""Markdown of the pages: tables, and Chinese without the spaces that ends of lines become."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_BREAK: Final = re.compile(
    r"(?<=[\u3000-\u9fff\uff00-\uffef])\n *(?=[\u3000-\u9fff\uff00-\uffef])",
)
_BAR: Final = re.compile(r"(`[^`]*`)|\|")


def table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """The table, with bars in cells escaped, but for code, which shows them as they are."""
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join(f"| {' | '.join(map(_escaped, cells))} |" for cells in lines)


def joined(markdown: str) -> str:
    """The text with each line that ends within a Chinese sentence joined to the next one."""
    return _BREAK.sub("", markdown)


def _escaped(cell: str) -> str:
    return _BAR.sub(lambda found: found[1] or r"\|", cell)
