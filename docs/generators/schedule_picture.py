"""Draws a compiled kernel: its tasks over the tensor, and the buffers of its leaf in UB.

python -m docs.generators.schedule_picture        writes docs/pictures/schedule.svg
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pypto_cast as pypto
from ascend_kernels.schedule.parts import Leaf
from ascend_kernels.schedule.schedule import Schedule
from docs.generators.rounding_picture import PICTURE, text_at
from tiling.chips import chip_named

SCHEDULE_PICTURE: Final = PICTURE.with_name("schedule.svg")
_ROOT: Final = Path(__file__).parents[2]
_DUMP: Final = _ROOT / "tests/ascend_kernels/schedule/dumps/softmax.zip"
_WIDTH, _HEIGHT = 680, 640
_LEFT, _COLUMN = 78, 36
_TOP_OF_UB, _UB_HEIGHT = 262, 240
_TOP_OF_SUMS, _SUMS_HEIGHT = 524, 84
_STYLE: Final = (
    "text{font:13px monospace;fill:#1a1a1a} .small{font-size:11px} .end{text-anchor:end} "
    "rect{stroke:#888;fill:#fff} .t0{fill:#f3d9d9} .t1{fill:#dfe9f7} .t2{fill:#dcefdc} "
    ".t3{fill:#f7d794} .buffer{fill:#dfe9f7} .sum{fill:#eee} .most{fill:#f7d794} "
    ".page{fill:#fff;stroke:none} line{stroke:#888;stroke-dasharray:4 3}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A leaf's buffers over its operations: one column an operation, bytes of UB downward.

    Attributes:
        left, top: where its box begins.
        column: width of an operation.
        high: height for `most_bytes`, the last byte that is drawn.
    """

    left: int
    top: int
    column: int
    high: int
    most_bytes: int

    def y_of(self, address: int) -> float:
        """The height of an address of UB."""
        return self.top + address * (self.high / self.most_bytes)

    def width_of(self, leaf: Leaf) -> int:
        """The width of all columns."""
        return (max(leaf.operation_columns) + 1) * self.column

    def drawn(self, leaf: Leaf, kinds: Sequence[str]) -> Iterator[str]:
        """The opcodes, the buffers, each of a class of the style, and three addresses."""
        columns = leaf.operation_columns
        for index, operation in enumerate(leaf.operations):
            if operation.flag is None:
                x = self.left + columns[index] * self.column + self.column // 2
                turned = f'transform="rotate(-38 {x} {self.top - 8})"'
                label = f'x="{x}" y="{self.top - 8}" {turned}>{operation.opcode}'
                yield f'<text class="small" {label}</text>'
        width = self.width_of(leaf)
        yield f'<rect x="{self.left}" y="{self.top}" width="{width}" height="{self.high}"/>'
        for buffer, kind in zip(leaf.buffers, kinds, strict=True):
            first, last = columns[buffer.first], columns[buffer.last]
            high = self.y_of(buffer.size_bytes) - self.top
            yield (
                f'<rect class="{kind}" x="{self.left + first * self.column}" '
                f'y="{self.y_of(buffer.address):.1f}" '
                f'width="{(last - first + 1) * self.column}" height="{max(high, 1):.1f}"/>'
            )
        for address in dict.fromkeys((0, leaf.peak_ub_bytes, self.most_bytes)):
            y = self.y_of(address)
            yield f'<text class="small end" x="{self.left - 6}" y="{y + 5:.1f}">{address:,}</text>'


def example() -> Schedule:
    """The schedule of softmax of [128, 512] by [32, 256], from the dump of the tests."""
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(_DUMP).extractall(folder)
        return pypto.read_schedule(folder)


def schedule_picture() -> str:
    """The picture as SVG: tasks above, buffers over operations below, and the sum of live ones."""
    schedule = example()
    (leaf,) = schedule.leaves
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" role="img" aria-label="{schedule.kernel} as tasks, and its leaf in UB">'
        f"\n<style>{_STYLE}</style>\n"
        f'<rect class="page" width="{_WIDTH}" height="{_HEIGHT}"/>\n'
        + "\n".join([*_tasks(schedule), *_buffers(schedule, leaf), *_sums(leaf)])
        + "\n</svg>\n"
    )


def _tasks(schedule: Schedule) -> Iterator[str]:
    source = schedule.parameters[0]
    rows, columns = map(int, source.shape)
    (body,) = schedule.bodies
    yield text_at(8, 22, f"{schedule.kernel}: {len(body.tasks)} tasks run one leaf on cores of")
    yield text_at(8, 40, f"their own; a task reads two tiles of {source.name} [{rows}, {columns}]")
    for number, task in enumerate(body.tasks):
        for access in task.accesses:
            if access.tensor == source.name:
                y, x = (int(each) for each in access.offset if isinstance(each, int))
                high, wide = (int(each) for each in access.shape if isinstance(each, int))
                box = f'x="{8 + x // 2}" y="{52 + y}" width="{wide // 2}" height="{high}"'
                yield f'<rect class="t{number}" {box}/>'
                label = f"task {number} at [{y}, {x}]"
                yield f'<text class="small" x="{12 + x // 2}" y="{73 + y}">{label}</text>'


def _buffers(schedule: Schedule, leaf: Leaf) -> Iterator[str]:
    yield text_at(300, 74, "Below: the leaf, one column an operation,")
    yield text_at(300, 92, "one box a buffer: where it lies in UB,")
    yield text_at(300, 110, "from its first use to its last.")
    ub_bytes = chip_named(schedule.chip).ub_bytes
    panel = Panel(left=_LEFT, column=_COLUMN, top=_TOP_OF_UB, high=_UB_HEIGHT, most_bytes=ub_bytes)
    yield from panel.drawn(leaf, ["buffer"] * len(leaf.buffers))
    y = panel.y_of(leaf.peak_ub_bytes)
    width = panel.width_of(leaf)
    yield f'<line x1="{_LEFT}" x2="{_LEFT + width}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _sums(leaf: Leaf) -> Iterator[str]:
    columns = leaf.operation_columns
    sums = [0] * (max(columns) + 1)
    for index, column in enumerate(columns):
        sums[column] = max(sums[column], leaf.live_bytes(index))
    bottom = _TOP_OF_SUMS + _SUMS_HEIGHT
    for column, alive in enumerate(sums):
        high = alive * _SUMS_HEIGHT / max(sums)
        kind = "most" if alive == leaf.needed_ub_bytes else "sum"
        box = f'x="{_LEFT + column * _COLUMN}" y="{bottom - high:.1f}" width="{_COLUMN}"'
        yield f'<rect class="{kind}" {box} height="{high:.1f}"/>'
    for name, y in ((f"{leaf.needed_ub_bytes:,}", _TOP_OF_SUMS + 5), ("0", bottom)):
        yield f'<text class="small end" x="{_LEFT - 6}" y="{y}">{name}</text>'
    yield text_at(_LEFT, bottom + 20, "bytes that are alive at once: as many are needed")


if __name__ == "__main__":
    SCHEDULE_PICTURE.write_text(schedule_picture(), encoding="utf-8")
