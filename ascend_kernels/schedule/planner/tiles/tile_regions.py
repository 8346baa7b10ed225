"""The tiles of tensors that operations are cut into, while they are cut.

Paths are those of upstream pypto at tag r0.2.0, framework/src.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Attributes,
    Node,
    PlanError,
    TileGraph,
    TileTensor,
)
from tiling.grid import Shape

Box = tuple[int, Shape, Shape]
"""A region, a place in it and extents."""
Boxes = tuple[tuple[Shape, Shape], ...]
"""Offsets and extents."""


@dataclass(slots=True)
class Region:
    """A whole tensor as the tiles that were written to it."""

    tensor: TileTensor
    tiles: dict[Shape, int]


class TileRegions:
    """The tiles so far; a region is a tensor of the graph or one made on the way."""

    def __init__(self, graph: TileGraph) -> None:
        self._regions = [Region(each, {}) for each in graph.tensors]
        self.nodes: list[Node] = []
        self.tensors: list[TileTensor] = []
        self.raw_tiles: list[Shape] = []
        self._first_raw = graph.next_raw
        self._tile: Shape = ()
        self._node = Node(opcode="", number=-1, inputs=(), outputs=())

    def _tiles(self, shape: Shape, steps: Shape = ()) -> Iterator[tuple[Shape, Shape]]:
        """Offset and extents of each tile, innermost dimension fastest."""
        steps = steps or self._node.tile_shape
        starts = [range(0, extent, step) for extent, step in zip(shape, steps, strict=False)]
        for self._tile in itertools.product(*starts):
            yield self._tile, tuple(map(min, steps, map(int.__sub__, shape, self._tile)))
        self._tile = ()

    def _region(self, tensor: TileTensor) -> int:
        self._regions.append(Region(self._raw(tensor), {}))
        return len(self._regions) - 1

    def _raw(self, tensor: TileTensor) -> TileTensor:
        """A tensor in memory of its own."""
        raw = self._first_raw + len(self.raw_tiles)
        self.raw_tiles.append(self._tile)
        return replace(tensor, raw=raw, raw_shape=(), tile=self._tile)

    def _tensor(self, tensor: TileTensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _written(self, region: int, offset: Shape | None, extent: Shape = ()) -> int:
        """A new tile of a region, or, without an offset, all of it."""
        held = self._regions[region]
        start = (0,) * len(held.tensor.shape) if offset is None else offset
        whole = held.tensor
        size = extent or whole.shape
        valid = whole.valid if offset is None else whole.part(offset, size)
        raw_shape = whole.raw_shape or whole.shape
        tile = self._tensor(
            replace(whole, shape=size, raw_shape=raw_shape, valid=valid, tile=self._tile)
        )
        held.tiles[start] = tile
        return tile

    def _operate(
        self,
        opcode: str,
        inputs: list[Box],
        outputs: list[int],
        asked: Attributes,
        within: Sequence[Boxes] = (),
    ) -> None:
        boxes = within or [()] * len(inputs)
        tiles = [self._read(*each, inner) for each, inner in zip(inputs, boxes, strict=True)]
        self._emit(opcode, tiles, outputs, asked)

    def _emit(self, opcode: str, inputs: list[int], outputs: list[int], asked: Attributes) -> None:
        self.nodes.append(
            Node(
                opcode=opcode,
                number=len(self.nodes),
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                attributes=asked,
            )
        )

    def _read(self, region: int, offset: Shape, extent: Shape, within: Boxes = ()) -> int:
        """The tile at a place of a region, told as a part of boxes each of which holds the next."""
        held = self._regions[region]
        same = held.tiles.get(offset)
        if same is not None and self.tensors[same].shape == extent:
            return same
        matches = sorted(
            (start, tile)
            for start, tile in held.tiles.items()
            if overlap(offset, extent, start, self.tensors[tile].shape)
        )
        if not matches:
            raise PlanError(f"{self._node.place}: reads what nothing wrote")
        boxes = [(start, self.tensors[tile].shape) for start, tile in matches]
        view, start = held.tensor, (0,) * len(extent)
        for place, size in (*within, (offset, extent)):
            inner = tuple(map(int.__sub__, place, start))
            view, start = replace(view, shape=size, valid=view.part(inner, size)), place
        if len(matches) == 1:
            start = tuple(map(int.__sub__, offset, matches[0][0]))
            return self._copied("VIEW", matches[0][1], self._tensor(self._raw(view)), start)
        low = tuple(map(min, zip(*(start for start, _ in boxes), strict=True)))
        ends = [tuple(map(int.__add__, start, size)) for start, size in boxes]
        high = tuple(map(max, zip(*ends, strict=True)))
        extents = tuple(map(int.__sub__, high, low))
        valid = held.tensor.part(low, extents)
        whole = self._tensor(self._raw(replace(view, shape=extents, valid=valid)))
        for start, tile in matches:
            self._copied("ASSEMBLE", tile, whole, tuple(map(int.__sub__, start, low)))
        covered = sum(math.prod(size) for _, size in boxes)
        if (low, self.tensors[whole].shape) == (offset, extent) and covered == math.prod(extent):
            return whole
        start = tuple(map(int.__sub__, offset, low))
        return self._copied("VIEW", whole, self._tensor(self._raw(view)), start)

    def _copied(self, opcode: str, source: int, target: int, offset: Shape) -> int:
        asked = self._node.attributes
        placed = Attributes(offset=offset, file=asked.file, line=asked.line)
        self._emit(opcode, [source], [target], placed)
        return target


def at(shape: Shape, axis: int, value: int) -> Shape:
    found = list(shape)
    found[axis] = value
    return tuple(found)


def overlap(start: Shape, size: Shape, other: Shape, extent: Shape) -> bool:
    """True if two boxes, each a place and its extents, share an element."""
    return all(
        a < d + e and d < a + b for a, b, d, e in zip(start, size, other, extent, strict=True)
    )
