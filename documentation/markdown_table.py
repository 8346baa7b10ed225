"""A table in Markdown."""

from __future__ import annotations

from collections.abc import Iterable


def table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """The table, with bars in cells escaped."""
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |" for cells in lines
    )
