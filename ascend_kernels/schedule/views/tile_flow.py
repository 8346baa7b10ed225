"""The way of elements through the tasks of a schedule: the operations and boxes they come from.

A way is one number, made of an operation and the ways of its operands, so that two schedules that
hand tiles over at other places, or keep them elsewhere in UB, give a box the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ascend_kernels.schedule.boxes import Box, Spans, placed
from ascend_kernels.schedule.parts import Leaf, TileOperand, TileOperation
from tiling.box_map import BoxMap

Work = Counter[tuple[object, ...]]
_Way = int
_PASSES_ON: Final = ("COPY_IN", "COPY_OUT", "EXPAND")
"""Copies: tasks hand tiles to each other by them, and columns, which another task expands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafStep:
    """An operation of a leaf that is no sync.

    Attributes:
        index: its place in the leaf.
        way: what it does, whatever its operands hold; None: they are passed on.
        inputs, outputs: its operands.
    """

    index: int
    way: _Way | None
    inputs: tuple[TileOperand, ...]
    outputs: tuple[TileOperand, ...]


def leaf_steps(leaf: Leaf) -> tuple[LeafStep, ...]:
    """The operations of a leaf in the order of issue, without syncs."""
    return tuple(
        LeafStep(index=index, way=_way_of(each), inputs=each.inputs, outputs=each.outputs)
        for index, each in enumerate(leaf.operations)
        if each.flag is None
    )


def _way_of(operation: TileOperation) -> _Way | None:
    """An operation by all that decides its result, wherever in UB its tiles lie."""
    if operation.opcode in _PASSES_ON:
        return None
    sides = (
        tuple((x.format.name, x.shape, x.valid_shape) for x in side)
        for side in (operation.inputs, operation.outputs)
    )
    return hash(
        (
            *(operation.opcode, operation.mode, operation.saturate, operation.scalar),
            *(operation.other_scalar, operation.scalar_first, operation.axis, operation.axes),
            operation.function,
            *(operation.file, operation.line, *sides),
        )
    )


@dataclass(slots=True)
class TileFlow:
    """The ways of all that tasks write, which are run in the order of execution.

    Attributes:
        leaves: the steps of each leaf of the schedule.
        parameters: the tensors that are known by their names; the others are temporaries.
        cut: those of which a part of the rows is meant.
        first: the row of these that counts as row 0.
        written: how often each box of a parameter is written, with its way.
    """

    leaves: Sequence[Sequence[LeafStep]]
    parameters: frozenset[str]
    cut: frozenset[str]
    first: int
    written: Work = field(default_factory=Counter)
    _memory: dict[str, BoxMap[tuple[Spans, _Way]]] = field(default_factory=dict)

    def run(self, uses: Sequence[tuple[str, Box]]) -> None:
        """Run a task, by its boxes."""
        boxes = {(box.operation, box.is_written): (name, box) for name, box in uses}
        tiles: dict[int, dict[tuple[object, ...], _Way]] = {}
        spilled: _Way = 0
        for step in self.leaves[uses[0][1].leaf] if uses else ():
            ways = []
            for operand in step.inputs:
                if operand.buffer is not None:
                    ways.append(_read(tiles.get(operand.buffer, {}), operand))
                elif (use := boxes.get((step.index, False))) is not None:
                    ways.append(self._loaded(*use))
                else:
                    ways.append(spilled)
            way = ways[0] if step.way is None and len(ways) == 1 else hash((step.way, *ways))
            for place, operand in enumerate(step.outputs):
                own = hash((way, place)) if place else way
                if operand.buffer is not None:
                    _write(tiles.setdefault(operand.buffer, {}), operand, own)
                elif (use := boxes.get((step.index, True))) is not None:
                    self._store(*use, own)
                else:
                    spilled = hash((spilled, own))

    def _seen(self, name: str, spans: Spans) -> Spans:
        """The place of a parameter's box, seen from the first row."""
        begin = self.first if name in self.cut else 0
        (low, high), *others = spans or ((0, 0),)
        return ((low - begin, high - begin), *others)

    def _loaded(self, name: str, box: Box) -> _Way:
        spans = box.spans or ()
        given = (hash((name, self._seen(name, spans))),) if name in self.parameters else ()
        place, held = placed(spans), self._memory.get(name)
        near = [] if held is None or place is None else held.touching(*place)
        found = [each for each in near if _overlap(each[0], spans)]
        if len(found) == 1 and found[0][0] == spans:
            return found[0][1]
        if given and not found:
            return given[0]
        starts = [begin for begin, _ in spans]
        apart = [
            (tuple((a - s, b - s) for (a, b), s in zip(each, starts, strict=True)), way)
            for each, way in found
        ]
        return hash((*given, *[end - begin for begin, end in spans], *apart))

    def _store(self, name: str, box: Box, way: _Way) -> None:
        spans = box.spans or ()
        if name in self.parameters:
            self.written[name, self._seen(name, spans), way] += 1
        if (place := placed(spans)) is not None:
            held = self._memory.setdefault(name, BoxMap())
            held.put(*place, (spans, way))


def _overlap(some: Spans, others: Spans) -> bool:
    return all(a < d and c < b for (a, b), (c, d) in zip(some, others, strict=True))


def _tile(operand: TileOperand) -> tuple[object, ...]:
    return operand.start_bytes, operand.offset, operand.valid_shape


def _read(held: dict[tuple[object, ...], _Way], operand: TileOperand) -> _Way:
    """The way of a tile: of the last one that was written in its buffer, or of all of these."""
    tile, last = _tile(operand), next(reversed(held), None)
    return held[tile] if last == tile else hash((tile, *held.items()))


def _write(held: dict[tuple[object, ...], _Way], operand: TileOperand, way: _Way) -> None:
    tile = _tile(operand)
    held.pop(tile, None)
    held[tile] = way
