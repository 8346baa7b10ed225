"""Reshapes of tensors that are written in tiles: one for each tile, where tiles around allow it.

Paths are those of upstream pypto at tag r0.2.0, framework/src/passes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Attributes,
    Node,
    PlanError,
    TileGraph,
    TileTensor,
    in_order,
    producers,
)
from ascend_kernels.schedule.planner.tiles.tile_views import alive
from tiling.grid import Shape


@dataclass(frozen=True, slots=True)
class _Box:
    """A part of a tensor: where it begins, and its extents."""

    offset: Shape
    shape: Shape

    def holds(self, other: _Box) -> bool:
        """True if all of another lies in this one."""
        ends = zip(self.offset, self.shape, other.offset, other.shape, strict=True)
        return all(a <= c and c + d <= a + b for a, b, c, d in ends)


def split_reshapes(graph: TileGraph) -> TileGraph:
    """Reshape the tiles that a view of a reshaped tensor takes, in place of the whole tensor.

    Where one tile holds what the view takes, that is reshaped; where several make it up, they are
    assembled first; otherwise the whole stays (tile_graph_pass/graph_optimization/
    split_reshape.cpp:1063). New reshapes come in the opposite order, as a hash table gives them.

    Raises:
        PlanError: tiles of several shapes.
    """
    splitter = _Splitter(graph)
    for node in graph.nodes:
        if node.opcode == "VIEW":
            splitter.take(node)
    return splitter.graph()


class _Splitter:
    """The reshapes of tiles so far."""

    def __init__(self, graph: TileGraph) -> None:
        self._given = graph
        self._made = producers(graph.nodes)
        self._nodes = {each.number: each for each in graph.nodes}
        self._tensors = list(graph.tensors)
        self._raw = graph.next_raw
        self._memory: dict[tuple[str, int], int] = {}
        self._reshaped: dict[tuple[int, _Box, _Box], int] = {}
        self._assembles: list[Node] = []
        self._reshapes: list[Node] = []

    def graph(self) -> TileGraph:
        if not self._reshapes:
            return self._given
        ends = [(*each.inputs, *each.outputs) for each in self._reshapes]
        if len({tuple(self._tensors[each].shape for each in both) for both in ends}) > 1:
            raise PlanError(
                f"{self._reshapes[0].place}: reshapes of tiles of several shapes are not planned; "
                "upstream takes them in the order of a hash table of texts"
            )
        added = [
            replace(each, number=self._given.next_number + place)
            for place, each in enumerate([*self._assembles, *reversed(self._reshapes)])
        ]
        nodes = (*self._nodes.values(), *added)
        whole = alive(TileGraph(nodes=nodes, tensors=tuple(self._tensors), first_raw=self._raw))
        # Sorted once more when memory is set (split_reshape.cpp:1209, :1214), as the dumps show.
        return replace(whole, nodes=in_order(whole.nodes))

    def take(self, view: Node) -> None:
        """Let a view take a reshape of tiles, if there is one."""
        (result,), (part,) = view.inputs, view.outputs
        writers = self._made.get(result, [])
        if [each.opcode for each in writers] != ["RESHAPE"]:
            return
        (reshape,) = writers
        (source,) = reshape.inputs
        before, after = self._tensors[source].shape, self._tensors[result].shape
        wanted = _Box(_start(view), self._tensors[part].shape)
        common = _aligned(before, after)
        inner = common and _to_aligned(after, common, wanted)
        pieces = [each for each in self._made[source] if each.opcode == "ASSEMBLE"]
        memories = {self._tensors[each.inputs[0]].raw for each in pieces}
        if wanted.shape == after or not common or not inner or len(memories) != 1:
            return
        chosen = []
        for piece in sorted(pieces, key=lambda each: -each.inputs[0]):
            placed = self._box(piece)
            box = _to_aligned(before, common, placed)
            if box is None:
                return
            if box.holds(inner):
                whole = _from_aligned(common, after, box)
                if whole is not None:
                    self._replace(view, reshape, [piece], placed, whole)
                return
            if inner.holds(box):
                chosen.append((piece, box))
        if sum(math.prod(box.shape) for _, box in chosen) == math.prod(inner.shape) > 0:
            joined = _from_aligned(common, before, inner)
            if joined is not None and len(chosen) > 1:
                self._replace(view, reshape, [each for each, _ in chosen], joined, wanted)

    def _box(self, assemble: Node) -> _Box:
        return _Box(_start(assemble), self._tensors[assemble.inputs[0]].shape)

    def _replace(
        self, view: Node, reshape: Node, pieces: Sequence[Node], before: _Box, after: _Box
    ) -> None:
        tile = self._tensors[pieces[0].inputs[0]]
        known = self._reshaped.get((tile.raw, before, after))
        if known is None:
            sides = [
                ("result", after, self._tensors[reshape.outputs[0]].shape),
                ("source", before, tile.raw_shape or tile.shape),
            ]
            made = {
                side: self._part(side, tile, box, whole)
                for side, box, whole in (sides if len(pieces) == 1 else sides[::-1])
            }
            known = self._reshaped[tile.raw, before, after] = made["result"]
            for piece in pieces:
                offset = _minus(_start(piece), before.offset)
                asked = Attributes(offset=offset)
                self._assembles.append(replace(piece, outputs=(made["source"],), attributes=asked))
            self._reshapes.append(replace(reshape, inputs=(made["source"],), outputs=(known,)))
        asked = replace(view.attributes, offset=_minus(_start(view), after.offset))
        self._nodes[view.number] = replace(view, inputs=(known,), attributes=asked)

    def _part(self, side: str, tile: TileTensor, box: _Box, whole: Shape) -> int:
        key = side, tile.raw
        if key not in self._memory:
            self._memory[key] = self._raw
            self._raw += 1
        self._tensors.append(
            TileTensor(format=tile.format, shape=box.shape, raw=self._memory[key], raw_shape=whole)
        )
        return len(self._tensors) - 1


def _start(node: Node) -> Shape:
    """The place of a part of a tensor that is reshaped.

    Raises:
        PlanError: it is known only when the kernel runs.
    """
    known = tuple(each for each in node.attributes.offset if isinstance(each, int))
    if len(known) < len(node.attributes.offset):
        raise PlanError(
            f"{node.place}: a part of a reshaped tensor at a place known only when the kernel runs "
            "is not planned"
        )
    return known


def _minus(first: Shape, second: Shape) -> Shape:
    return tuple(map(int.__sub__, first, second))


def _aligned(before: Shape, after: Shape) -> Shape | None:
    """The extents into which those of both shapes are cut; None if one divides no other."""
    found: list[int] = []
    left = [each for each in before if each > 1]
    right = [each for each in after if each > 1]
    while left and right:
        few, many = sorted((left.pop(0), right.pop(0)))
        if many % few:
            return None
        found.append(few)
        if many > few:
            # The longer one's rest goes on.
            rest = left if math.prod(left) < math.prod(right) else right
            rest.insert(0, many // few)
    return tuple(found)


def _to_aligned(shape: Shape, common: Shape, box: _Box) -> _Box | None:
    """A part of a tensor in the finer extents; None where it is none there."""
    offset, extents, place = [], [], 0
    for whole, start, size in zip(shape, box.offset, box.shape, strict=True):
        stride, is_open = whole, True
        while stride > 1:
            stride //= common[place]
            place += 1
            if is_open and size <= stride:
                offset.append(start // stride)
                extents.append(1)
                start %= stride
                if start + size > stride:
                    return None
                continue
            if start % stride or size % stride:
                return None
            offset.append(start // stride)
            extents.append(size // stride)
            start, size, is_open = 0, stride, False
    return _Box(tuple(offset), tuple(extents))


def _from_aligned(common: Shape, shape: Shape, box: _Box) -> _Box | None:
    """A part in the finer extents as one of a tensor; None where it is none there."""
    offset, extents, place = [], [], 0
    for whole in shape:
        stride, start, size, is_open = whole, 0, 1, True
        while stride > 1:
            stride //= common[place]
            first, count = box.offset[place], box.shape[place]
            if is_open:
                start += first * stride
                if count != 1:
                    size, is_open = count * stride, False
            elif (first, count) != (0, common[place]):
                return None
            place += 1
        offset.append(start)
        extents.append(size)
    return _Box(tuple(offset), tuple(extents))
