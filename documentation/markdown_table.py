"""A table in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_BAR: Final = re.compile(r"(`[^`]*`)|\|")


def table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """The table, with bars in cells escaped, but for code, which shows them as they are."""
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join(f"| {' | '.join(map(_escaped, cells))} |" for cells in lines)


def _escaped(cell: str) -> str:
    return _BAR.sub(lambda found: found[1] or r"\|", cell)
