"""Draws the kernel of README.md: its source, its buffers in UB over time, and its certainty.

python -m docs.generators.kernel_picture        writes docs/pictures/kernel.svg
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

import numpy as np

from ascend_kernels.schedule.parts import Buffer, Leaf
from docs.generators.rounding_picture import PICTURE, text_at
from docs.generators.schedule_picture import Panel
from pypto_cast.recording.output_certainty import OutputCertainty

KERNEL_PICTURE: Final = PICTURE.with_name("kernel.svg")
_ROOT: Final = Path(__file__).parents[2]
_BLOCK: Final = re.compile(r'```python title="kernel.py"\n(.*?)```', re.S)
_WIDTH, _HEIGHT = 680, 596
_LEFT, _LINE = 78, 15
_TOP_OF_CODE, _TOP_OF_UB, _TOP_OF_RESULTS = 28, 234, 440
_UB_HEIGHT, _COLUMN, _CELL = 150, 56, 9
_KINDS: Final = ("t0", "t1", "t2")
"""Of the lines that have operations, in their order."""
_STYLE: Final = (
    "text{font:13px monospace;fill:#1a1a1a} .small{font-size:11px} .code{font-size:10.5px} "
    ".end{text-anchor:end} rect{stroke:#888;fill:#fff} .t0{fill:#f3d9d9} .t1{fill:#dfe9f7} "
    ".t2{fill:#dcefdc} .copied{fill:#eee} .open{fill:#f7d794} .certain{fill:#dcefdc} "
    ".page,.code-line{stroke:none} .page{fill:#fff}"
)


def kernel_picture() -> str:
    """The picture as SVG: the kernel of README.md, its buffers, its results."""
    found = _BLOCK.search((_ROOT / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.py")
        path.write_text(found[1], encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            example = runpy.run_path(str(path))
        kernel, arrays = example["quantise"], (example["x"], example["y"])
        (leaf,) = kernel.schedule(*arrays).leaves
        (result,) = kernel.certainty(*arrays).outputs
    label = f"the kernel {kernel.__name__}, its buffers in UB over time, and its certainty"
    lines = [*_source(found[1], leaf), *_buffers(leaf), *_results(result)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" role="img" aria-label="{label}">\n<style>{_STYLE}</style>\n'
        f'<rect class="page" width="{_WIDTH}" height="{_HEIGHT}"/>\n'
        + "\n".join(lines)
        + "\n</svg>\n"
    )


def _kinds_of_lines(leaf: Leaf) -> dict[int, str]:
    """The class of each source line that has operations."""
    lines = sorted({operation.line for operation in leaf.operations if operation.line})
    return dict(zip(lines, _KINDS, strict=True))


def _source(text: str, leaf: Leaf) -> Iterator[str]:
    kinds = _kinds_of_lines(leaf)
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines, 1) if line.startswith("@"))
    yield text_at(8, 18, "A kernel")
    for number in range(first, max(kinds) + 1):
        y = _TOP_OF_CODE + (number - first) * _LINE
        if number in kinds:
            box = f'x="36" y="{y}" width="{_WIDTH - 44}" height="{_LINE}"'
            yield f'<rect class="code-line {kinds[number]}" {box}/>'
        yield f'<text class="code end" x="30" y="{y + 11}">{number}</text>'
        yield (
            f'<text class="code" xml:space="preserve" x="40" y="{y + 11}">'
            f"{escape(lines[number - 1])}</text>"
        )


def _buffers(leaf: Leaf) -> Iterator[str]:
    kinds = _kinds_of_lines(leaf)

    def kind(buffer: Buffer) -> str:
        line = leaf.operations[buffer.first].line
        return kinds.get(line, "copied")

    panel = Panel(
        left=_LEFT,
        column=_COLUMN,
        top=_TOP_OF_UB,
        high=_UB_HEIGHT,
        most_bytes=leaf.peak_ub_bytes,
    )
    yield text_at(8, 142, "Its buffers in UB, bytes, over time: a box from first to last use, in")
    yield text_at(8, 158, "the colour of the line that makes it; each column is a tile operation")
    yield from panel.drawn(leaf, [kind(buffer) for buffer in leaf.buffers])


def _results(result: OutputCertainty) -> Iterator[str]:
    counts = result.counts
    rows, columns = result.shape
    y = _TOP_OF_RESULTS - 30
    yield text_at(8, y, f"Its results: {counts.certain:,} of {counts.size:,} are certain.")
    yield text_at(
        8, y + 16, f"{counts.undecided} (yellow) are not: how the device divides is not public"
    )
    size = f'width="{columns * _CELL}" height="{rows * _CELL}"'
    yield f'<rect class="certain" x="{_LEFT}" y="{_TOP_OF_RESULTS}" {size}/>'
    for row, column in np.argwhere(~result.certain).tolist():
        place = f'x="{_LEFT + column * _CELL}" y="{_TOP_OF_RESULTS + row * _CELL}"'
        yield f'<rect class="open" {place} width="{_CELL}" height="{_CELL}"/>'


if __name__ == "__main__":
    KERNEL_PICTURE.write_text(kernel_picture(), encoding="utf-8")
