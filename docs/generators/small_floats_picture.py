"""Draws the small floats: the fraction bits that a number of each magnitude has, and a group of MX.

python -m docs.generators.small_floats_picture        writes docs/pictures/small_floats.svg
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from docs.generators.rounding_picture import text_at
from simulator.numbers.formats import E1M2, E2M1, E4M3FN, E5M2, HF8, FloatFormat
from simulator.numbers.literals import number_of

SMALL_FLOATS_PICTURE: Final = Path(__file__).parents[1] / "pictures" / "small_floats.svg"
_FORMATS: Final = (E4M3FN, E5M2, HF8, E2M1, E1M2)
_CELL: Final = 14
_LEFT: Final = 80
_LEAST: Final = -22
_MOST: Final = 16
_ROW: Final = 32
_MARKS: Final = (-20, -15, -10, -5, 0, 5, 10, 15)
_GROUP: Final = 32
_STYLE: Final = (
    "text{font:13px monospace;fill:#1a1a1a} .bit{text-anchor:middle} "
    "rect{stroke:#888;fill:#fff} .n0{fill:#eef4ee} .n1{fill:#cfe6cf} .n2{fill:#a5d0a5} "
    ".n3{fill:#74b474} .scale{fill:#f7d794} .page{fill:#fff;stroke:none}"
)


def small_floats_picture() -> str:
    """The picture as SVG: a row for each format with a cell for each power of two."""
    width = _LEFT + (_MOST - _LEAST) * _CELL + 16
    lines = [text_at(8, 22, "fraction bits of a number, by the power of two below it")]
    for number, fmt in enumerate(_FORMATS):
        top = 34 + number * _ROW
        lines.append(text_at(8, top + 15, fmt.name))
        for exponent, bits in fraction_bits(fmt).items():
            lines += _cell(_LEFT + (exponent - _LEAST) * _CELL, top, f"n{bits}", str(bits))
    axis = 34 + len(_FORMATS) * _ROW + 8
    for mark in _MARKS:
        x = _LEFT + (mark - _LEAST) * _CELL + _CELL // 2
        lines.append(f'<text class="bit" x="{x}" y="{axis}">{mark}</text>')
    top = axis + 44
    lines.append(text_at(8, top - 12, f"MX: {_GROUP} codes share a scale of a byte, 2^e"))
    lines += _cell(8, top, "scale", "e")
    for place in range(_GROUP):
        lines += _cell(8 + (place + 2) * _CELL, top, "n3", "")
    height = top + 34
    label = "Fraction bits of the small floats by magnitude, and a group of MX"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" role="img" aria-label="{label}">\n<style>{_STYLE}</style>\n'
        f'<rect class="page" width="{width}" height="{height}"/>\n'
        + "\n".join(lines)
        + "\n</svg>\n"
    )


def fraction_bits(fmt: FloatFormat) -> dict[int, int]:
    """The bits behind the leading one of numbers from 2^e up to 2^(e + 1), by e.

    The least numbers of a format have fewer, down to none.
    """
    greatest = number_of(fmt.max_code, fmt).magnitude
    highest = greatest.numerator.bit_length() - greatest.denominator.bit_length()
    return {e: e - fmt.quantum(e) for e in range(fmt.min_quantum, highest + 1)}


def _cell(x: int, top: int, kind: str, text: str) -> list[str]:
    box = f'<rect class="{kind}" x="{x}" y="{top}" width="{_CELL}" height="20"/>'
    return [box, f'<text class="bit" x="{x + _CELL // 2}" y="{top + 15}">{text}</text>']


if __name__ == "__main__":
    SMALL_FLOATS_PICTURE.write_text(small_floats_picture(), encoding="utf-8")
