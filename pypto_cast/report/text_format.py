"""Text of the command line in both directions: extents that are read, words that are shown.

A short file because modules that show no page use it too.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # "interrupted" is said while numpy is half imported too
    from simulator.numbers.formats import Format


def drop_output() -> None:
    """Drop all text printed from now on, and the rest that the interpreter flushes at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tile_named(text: str) -> tuple[int, ...]:
    """`64,128` as the tile shape (64, 128).

    Raises:
        ValueError: no list of positive ints.
    """
    return _extents(text, "a tile is")


def shape_named(text: str) -> tuple[int, ...]:
    """`64,128` as the shape (64, 128).

    Raises:
        ValueError: no list of positive ints.
    """
    return _extents(text, "a shape is 1 to 4")


def _extents(text: str, subject: str) -> tuple[int, ...]:
    try:
        extents = tuple(int(entry) for entry in text.split(","))
    except ValueError:
        extents = ()
    if not extents or any(extent < 1 for extent in extents):
        raise ValueError(f"{subject} positive ints with commas between, as in 64,128; got {text!r}")
    return extents


def printable(text: str) -> str:
    """Text on one line, without anything that a terminal would obey."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def written(outputs: Iterable[object]) -> tuple[str, ...]:
    """A line for each file that was written; None stands for none."""
    return tuple(f"written to {printable(str(path))}" for path in outputs if path is not None)


def plural(count: int, noun: str, many: str = "") -> str:
    """A count with its noun: 1 tile, 1,200 tiles; of an irregular noun `many` is the plural."""
    return f"{count:,} {noun if count == 1 else many or f'{noun}s'}"


def hex_code(code: int, fmt: Format) -> str:
    """A code with as many digits as its format has."""
    return f"{code:#0{2 + fmt.code_dtype.itemsize * 2}x}"


def extra_hint(extra: str) -> str:
    """The command that installs an extra, for the end of an error: no index has the package."""
    return f'pip install ".[{extra}]" in the checkout of pypto-cast, or "FILE.whl[{extra}]"'
