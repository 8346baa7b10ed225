"""The tile operations of a schedule by source line: opcodes, bytes between GM and UB, cycles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ascend_kernels.schedule.parts import MOVES, Body, Leaf, TileOperand, TileOperation
from ascend_kernels.schedule.simulated_cycles import simulated_cycles

NO_LINE: Final = "no source line"
"""The place of an operation that serves none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineWork:
    """The tile operations of one line in one leaf, without flags.

    Attributes:
        place: file and line; of inserted operations the line that they serve.
        leaf: the place of the leaf in the schedule.
        opcodes: the opcodes and how often each occurs.
        copied_bytes: the bytes that a task moves between GM and UB: of tiles what holds data.
        is_most: True if extents of such tiles are known only when the kernel runs; the bytes are
            those of the longest then.
        cycles: the sum of their cycles in a task, by upstream's simulator; None where one is
            not estimated.
        tasks: the number of tasks that run the leaf, in one run of each body.
    """

    place: str
    leaf: int
    opcodes: tuple[tuple[str, int], ...]
    copied_bytes: int
    is_most: bool
    cycles: int | None
    tasks: int

    @property
    def operations(self) -> int:
        """The number of tile operations of a task."""
        return sum(count for _, count in self.opcodes)

    @property
    def opcode_list(self) -> str:
        """The opcodes with their counts, in words."""
        return ", ".join(f"{n} x {name}" if n > 1 else name for name, n in self.opcodes)

    @property
    def copied(self) -> str:
        """The bytes moved, in words."""
        return f"{'at most ' * self.is_most}{self.copied_bytes}"

    def __str__(self) -> str:
        cycles = "not estimated" if self.cycles is None else f"{self.cycles} cycles"
        return (
            f"{self.place}, leaf {self.leaf}, {self.tasks} tasks: {self.opcode_list}; "
            f"{self.copied} B moved, {cycles}"
        )


def line_work(leaves: Sequence[Leaf], bodies: Sequence[Body]) -> tuple[LineWork, ...]:
    """The work of each line of each leaf, by leaf and line."""
    tasks = Counter(task.leaf for body in bodies for task in body.tasks)
    found = []
    for number, leaf in enumerate(leaves):
        by_line: dict[str, list[TileOperation]] = {}
        for index, each in enumerate(leaf.operations):
            if each.flag is None:
                by_line.setdefault(place_of(leaf, index), []).append(each)
        for line, held in by_line.items():
            copied = [
                operand
                for each in held
                if each.opcode in MOVES
                for operand in (*each.inputs, *each.outputs)
                if operand.shape
            ]
            cycles = [each for each in map(simulated_cycles, held) if each is not None]
            found.append(
                LineWork(
                    place=line,
                    leaf=number,
                    opcodes=tuple(Counter(each.opcode for each in held).items()),
                    copied_bytes=sum(map(_tile_bytes, copied)),
                    is_most=any(not isinstance(x, int) for y in copied for x in y.valid_shape),
                    # Without the cycles of one operation their sum is not known.
                    cycles=sum(cycles) if len(cycles) == len(held) else None,
                    tasks=tasks[number],
                )
            )
    return tuple(sorted(found, key=lambda each: (each.leaf, line_key(each.place))))


def line_key(place: str) -> tuple[str, int]:
    """File and line as a key to sort by; of `NO_LINE`, line 0."""
    file, _, line = place.rpartition(":")
    return file, int(line) if line.isdecimal() else 0


def place_of(leaf: Leaf, index: int) -> str:
    """The line that an operation serves; of an inserted one that of its reader, else its writer.

    A copy out serves the line that writes its tile. Results pass through other inserted operations.
    """
    operation = leaf.operations[index]
    if operation.place or operation.flag is not None:
        return operation.place
    return _reader(leaf, index) or _writer(leaf, index) or NO_LINE


def _reader(leaf: Leaf, index: int) -> str:
    """The line of the first operation behind one that reads its result; "" of none."""
    made = _buffers(leaf.operations[index].outputs)
    for each in leaf.operations[index + 1 :] if made else ():
        if made & _buffers(each.inputs):
            if each.place:
                return each.place
            made = _buffers(each.outputs)
    return ""


def _writer(leaf: Leaf, index: int) -> str:
    """The line of the last operation before one that writes its operands; "" of none."""
    read = _buffers(leaf.operations[index].inputs)
    for each in reversed(leaf.operations[:index] if read else ()):
        if read & _buffers(each.outputs):
            if each.place:
                return each.place
            read = _buffers(each.inputs)
    return ""


def _buffers(tiles: Sequence[TileOperand]) -> set[int]:
    return {each.buffer for each in tiles if each.buffer is not None}


def buffer_owner(leaf: Leaf, place: int) -> tuple[str, str]:
    """Opcode and line of the operation that a buffer was allocated for."""
    first = leaf.buffers[place].first
    return leaf.operations[first].opcode, place_of(leaf, first)


def _tile_bytes(operand: TileOperand) -> int:
    """The bytes of a tile that hold data; along an axis whose extent is open, all."""
    extents = [
        valid if isinstance(valid, int) else extent
        for valid, extent in zip(operand.valid_shape, operand.shape, strict=True)
    ]
    return math.prod(extents) * operand.format.dtype.itemsize
