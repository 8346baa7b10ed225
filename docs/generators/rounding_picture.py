"""Draws one number under the round modes: the bits kept and dropped, and the results.

python -m docs.generators.rounding_picture        writes docs/pictures/rounding.svg
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pypto_cast as pypto
from pypto_cast.cast.explanation import explain
from simulator.numbers.formats import FP16, FP32, FloatFormat

PICTURE: Final = Path(__file__).parents[1] / "pictures" / "rounding.svg"
_LITERAL: Final = "-1.00048828125"
_CELL: Final = 20
_WIDTH: Final = 680
_LEFT: Final = 110
_STYLE: Final = (
    "text{font:13px monospace;fill:#1a1a1a} .bit{text-anchor:middle} "
    "rect{stroke:#888;fill:#fff} .sign{fill:#f3d9d9} .exponent{fill:#dfe9f7} .kept{fill:#dcefdc} "
    ".dropped{fill:#eee} .up{fill:#f7d794} .page{fill:#fff;stroke:none}"
)


def picture() -> str:
    """The picture as SVG: a number halfway between two of FP16, which each mode treats its way."""
    shown = explain(_LITERAL, pypto.DT_FP32, pypto.DT_FP16)
    cut = shown.cut
    assert cut is not None
    kept = _kinds(FP32)[: -len(cut.dropped)] + ["dropped"] * len(cut.dropped)
    lines = [text_at(8, 22, f"{_LITERAL} in FP32: sign, exponent, mantissa kept, mantissa dropped")]
    lines += _row(8, 32, shown.bits, kept)
    lines.append(
        text_at(8, 82, "the same in FP16, by round mode; a mantissa that went up is yellow")
    )
    cut_off = shown.bits.split("|")[2][: FP16.man_bits]
    for number, result in enumerate(shown.results):
        top = 92 + number * 28
        is_up = result.bits.split("|")[2] != cut_off
        kinds = ["up" if kind == "kept" and is_up else kind for kind in _kinds(FP16)]
        lines.append(text_at(8, top + 15, result.mode or ""))
        lines += _row(_LEFT, top, result.bits, kinds)
        lines.append(text_at(_LEFT + 17 * _CELL, top + 15, str(result.value)))
    height = 98 + len(shown.results) * 28
    label = f"{_LITERAL} from FP32 to FP16 under each round mode"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" role="img" aria-label="{label}">\n<style>{_STYLE}</style>\n'
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>\n'
        + "\n".join(lines)
        + "\n</svg>\n"
    )


def _kinds(fmt: FloatFormat) -> list[str]:
    return ["sign", *["exponent"] * fmt.exp_bits, *["kept"] * fmt.man_bits]


def _row(left: int, top: int, bits: str, kinds: list[str]) -> list[str]:
    cells = []
    for place, (bit, kind) in enumerate(zip(bits.replace("|", ""), kinds, strict=True)):
        x = left + place * _CELL
        box = f'x="{x}" y="{top}" width="{_CELL}" height="{_CELL}"'
        cells.append(f'<rect class="{kind}" {box}/>')
        cells.append(f'<text class="bit" x="{x + _CELL // 2}" y="{top + 15}">{bit}</text>')
    return cells


def text_at(x: int, y: int, text: str) -> str:
    """A line of text."""
    return f'<text x="{x}" y="{y}">{text}</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
