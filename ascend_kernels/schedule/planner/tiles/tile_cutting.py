"""From operations on whole tensors to operations on tiles.

Each operation is cut by the tile shape that was current when it was called. Paths below are those
of upstream pypto at tag r0.2.0, framework/src.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from ascend_kernels.schedule.planner.tiles.indexed_cutting import IndexedCutter
from ascend_kernels.schedule.planner.tiles.scratch_memory import (
    BY_TILE_SHAPE,
    SCRATCH,
    element_bytes,
)
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Attributes,
    Node,
    PlanError,
    TileGraph,
    TileTensor,
    exchanged,
)
from ascend_kernels.schedule.planner.tiles.tile_regions import Box, Boxes, at
from simulator.machine.tile_core import reduction_scratch
from simulator.machine.tile_opcodes import (
    NO_FORMAT,
    NO_ROW,
    NUMBERED,
    PAIRED,
    TILE_OPCODES,
    TileOpcode,
    TileWork,
)
from simulator.numbers.formats import BF16, FP32
from tiling.chips import DEFAULT_CHIP
from tiling.grid import Shape

NO_INSTRUCTION: Final = MappingProxyType(
    {
        "REGISTER_COPY": TileOpcode(name="REGISTER_COPY", work=TileWork.ELEMENTS, inside=()),
        **{
            name: TileOpcode(name=name, work=TileWork.SORT32, inside=())
            for name in ("TOPK", "SORT")
        },
        **{
            name: TileOpcode(name=name, work=TileWork.EXTREME, inside=())
            for name in ("ROWARGMAX_SINGLE", "ROWARGMIN_SINGLE")
        },
    }
)
"""Opcodes that no leaf has: a later stage leaves them out."""


def cut(graph: TileGraph) -> TileGraph:
    """Cut every operation into tiles, in the order of the operations.

    From 0 on in each dimension, innermost fastest, the last tile smaller; an operand of one element
    along an axis is expanded first (interface/operation/vector/unary.cpp:45, binary.cpp:80,
    tensor_transformation.cpp:85). A tile that no operation wrote as such is a view of what covers
    it, or assembled of what it covers (interface/function/function.cpp:3607, ConnectWithOverlap).

    Raises:
        PlanError: an operation whose tiles are not known.
    """
    cutter = _Cutter(graph)
    for node in graph.nodes:
        cutter.take(node)
    return TileGraph(
        nodes=tuple(cutter.nodes),
        tensors=tuple(cutter.tensors),
        first_raw=graph.next_raw,
        raw_tiles=tuple(cutter.raw_tiles),
    )


class _Cutter(IndexedCutter):
    """The rule by which each kind of operation is cut."""

    def __init__(self, graph: TileGraph) -> None:
        super().__init__(graph)
        self._row = TILE_OPCODES["VIEW"]

    def take(self, node: Node) -> None:
        """Add the tile operations of a node."""
        self._node = node
        row = NO_INSTRUCTION.get(node.opcode) or TILE_OPCODES.get(node.opcode)
        rank = max(len(self._regions[each].tensor.shape) for each in node.outputs)
        if row is None:
            needed = NO_ROW.get(node.opcode, "a rule by which it is cut into tiles")
            raise PlanError(f"{node.place} is not planned: it needs {needed}")
        for each in node.inputs[:1]:
            fmt = self._regions[each].tensor.format
            if needed := NO_FORMAT.get((node.opcode, fmt), ""):
                raise PlanError(f"{node.place} of {fmt} is not planned: it needs {needed}")
        self._row = row
        if row.work is not TileWork.ALIAS and (
            len(node.tile_shape) < rank or min(node.tile_shape[:rank]) < 1
        ):
            raise PlanError(
                f"{node.place}: tile shape {list(node.tile_shape)} for {rank} dimensions; "
                "pypto.set_vec_tile_shapes takes a positive extent for each"
            )
        match row.work:
            case TileWork.ALIAS:
                self._alias()
            case TileWork.REDUCE | TileWork.REDUCE_LINES:
                self._reduce()
            case TileWork.EXPAND:
                self._expand(node.inputs[0], node.outputs[0])
            case TileWork.ELEMENTS | TileWork.CAST | TileWork.COMPARE | TileWork.FILL:
                self._elements()
            case TileWork.TRANSPOSE:
                self._transpose()
            case TileWork.BYTES:
                self._as_bytes()
            case TileWork.ACCUMULATE:
                self._accumulate()
            case TileWork.GATHER:
                self._gather()
            case TileWork.SELECT:
                self._select()
            case TileWork.PAGED_ROWS:
                self._paged_rows()
            case TileWork.PUT:
                self._put()
            case TileWork.SCATTER:
                self._scatter()
            case TileWork.EXTREME:
                self._extreme()
            case TileWork.SORT32:
                self._sort()
            case TileWork.ADD_AT:
                self._add_at()
            case TileWork.PAD:
                self._pad()
            case TileWork.WEIGH:
                self._weigh()
            case TileWork.QUANTIZE | TileWork.DEQUANTIZE:
                self._scale_rows()
            case TileWork.ONE_HOT:
                self._one_hot()
            case TileWork.PATTERN:
                self._pattern()
            case work if work in NUMBERED:
                self._numbered()
            case _:
                raise PlanError(f"{node.place}: how it is cut into tiles is not known")

    def _alias(self) -> None:
        node = self._node
        (source,), (target,) = node.inputs, node.outputs
        region = self._regions[source]
        whole = (0,) * len(region.tensor.shape)
        tile = (
            self._read(source, whole, region.tensor.shape)
            if region.tiles
            else self._tensor(region.tensor)
        )
        parts = [*self._regions[target].tiles.values()]  # what others assembled there
        result = parts[0] if parts else self._written(target, None)
        self._emit(node.opcode, [tile], [result], node.attributes)

    def _elements(self) -> None:
        node = self._node
        (target,) = node.outputs
        shape = self._regions[target].tensor.shape
        operands = [
            each
            if self._regions[each].tensor.shape == shape or self._is_column(each, shape)
            else self._expand(each, self._region(self._repeated(each, target)))
            for each in node.inputs
        ]
        for offset, extent in self._tiles(shape):
            inputs = [
                (each, offset, extent)
                if self._regions[each].tensor.shape == shape
                else (each, at(offset, -1, 0), at(extent, -1, 1))
                for each in operands
            ]
            outputs = [self._written(target, offset, extent)]
            if self._row.work is TileWork.COMPARE:
                inputs = [self._compared(each) for each in inputs]
            outputs += self._scratch([target] if self._row.scalars == 2 else operands, extent)
            self._operate(node.opcode, inputs, outputs, node.attributes)

    def _is_column(self, operand: int, shape: Shape) -> bool:
        """True for a column that the operation itself repeats.

        Raises:
            PlanError: the operation repeats operands, and this is another one.
        """
        held = self._regions[operand].tensor.shape
        if self._row.takes_blocks and (held != at(shape, -1, 1) or len(shape) < 2):
            raise PlanError(
                f"{self._node.place}: {list(held)} beside {list(shape)} is not planned; only an "
                "operand of one element along the last axis is"
            )
        return self._row.takes_blocks

    def _repeated(self, source: int, target: int) -> TileTensor:
        """An operand with the extents of a result."""
        narrow, wide = self._regions[source].tensor, self._regions[target].tensor
        if len(narrow.shape) != len(wide.shape):
            return replace(narrow, shape=wide.shape)
        axes = zip(narrow.shape, wide.shape, narrow.extents, wide.extents, strict=True)
        valid = tuple(own if a == b else other for a, b, own, other in axes)
        return replace(narrow, shape=wide.shape, valid=() if valid == wide.shape else valid)

    def _compared(self, operand: Box) -> Box:
        """The tile that a comparison reads: of BF16, a cast of it (vector/compare.cpp:33)."""
        region, _, extent = operand
        if self._regions[region].tensor.format is not BF16:
            return operand
        asked = self._node.attributes
        cast = self._region(TileTensor(format=FP32, shape=extent))
        origin = (0,) * len(extent)
        result = self._written(cast, origin, extent)
        self._operate("CAST", [operand], [result], Attributes(file=asked.file, line=asked.line))
        return cast, origin, extent

    def _scratch(self, operands: Sequence[int], tile: Shape) -> list[int]:
        scratch = SCRATCH.get(self._node.opcode)
        if scratch is None:
            if self._row.has_scratch:
                raise PlanError(f"{self._node.place}: its scratch memory is not known")
            return []
        fmt = self._regions[operands[-1]].tensor.format
        if self._node.opcode in BY_TILE_SHAPE:
            tile = self._node.tile_shape
        return [self._tensor(self._raw(each)) for each in scratch(tile, fmt)]

    def _transpose(self) -> None:
        node = self._node
        (source,), (target,) = node.inputs, node.outputs
        for offset, extent in self._tiles(self._regions[source].tensor.shape):
            there, turned = (exchanged(each, node.attributes.axes) for each in (offset, extent))
            written = self._written(target, there, turned)
            outputs = [written, *self._scratch([source], extent)]
            self._operate(node.opcode, [(source, offset, extent)], outputs, node.attributes)

    def _as_bytes(self) -> None:
        """As many elements of the operand as the tile has, or as its first axis has of bytes.

        Source: at 883e7dfb0, vector/unary.cpp:786, :810.
        """
        node = self._node
        (source,), (target,) = node.inputs, node.outputs
        held, given = (element_bytes(self._regions[x].tensor.format) for x in (source, target))
        (length,) = self._regions[source].tensor.shape
        step = math.prod(node.tile_shape) if node.opcode == "PACK" else node.tile_shape[0]
        if step * held % given:
            raise PlanError(
                f"{node.place}: tile shape {list(node.tile_shape)} is no whole number of elements "
                f"of {given} B"
            )
        for start in range(0, length, step):
            size = min(step, length - start)
            self._tile = (start * held // given,)
            result = [self._written(target, self._tile, (size * held // given,))]
            self._operate(node.opcode, [(source, (start,), (size,))], result, node.attributes)
        self._tile = ()

    def _accumulate(self) -> None:
        """Sums or products inside a tile, and the last of the tile before (vector/math.cpp:611)."""
        node = self._node
        (source,), (target,) = node.inputs, node.outputs
        axis, fmt = node.attributes.axis, self._regions[target].tensor.format
        repeated = replace(node.attributes, function="")
        plain, joining = replace(repeated, axis=-1), "MUL" if self._row.function == "mul" else "ADD"
        for offset, extent in self._tiles(self._regions[target].tensor.shape):
            origin = (0,) * len(extent)
            inside = self._region(TileTensor(format=fmt, shape=extent))
            summed = (inside, origin, extent)
            written = [self._written(*summed)]
            self._operate(node.opcode, [(source, offset, extent)], written, node.attributes)
            if not offset[axis]:
                self._operate(
                    "REGISTER_COPY", [summed], [self._written(target, offset, extent)], plain
                )
                continue
            last = (target, at(offset, axis, offset[axis] - 1), at(extent, axis, 1))
            before = self._region(TileTensor(format=fmt, shape=extent))
            self._operate("EXPAND", [last], [self._written(before, origin, extent)], repeated)
            result = [self._written(target, offset, extent)]
            self._operate(joining, [summed, (before, origin, extent)], result, plain)

    def _numbered(self) -> None:
        """Tiles with a number each: rows before it less columns (vector/math.cpp:803), or elements
        before it (vector/indexing.cpp:1267).
        """
        node = self._node
        (target,), asked = node.outputs, node.attributes
        assert asked.number is not None
        for offset, extent in self._tiles(self._regions[target].tensor.shape):
            place = offset[-2] - offset[-1] if node.inputs else offset[0]
            numbered = replace(asked, number=asked.number + place)
            boxes = [(each, offset, extent) for each in node.inputs]
            self._operate(node.opcode, boxes, [self._written(target, offset, extent)], numbered)

    def _one_hot(self) -> None:
        """All classes of each tile of elements (vector/math.cpp:437)."""
        node = self._node
        (source,), (target,) = node.inputs, node.outputs
        for offset, extent in self._tiles(self._regions[target].tensor.shape):
            boxes = [(source, offset[:-1], extent[:-1])]
            result = [self._written(target, offset, extent)]
            self._operate(node.opcode, boxes, result, node.attributes)

    def _pattern(self) -> None:
        """The elements of each tile that the pattern takes (vector/indexing.cpp:1453)."""
        node = self._node
        (source,), (target,) = node.inputs, node.outputs
        whole, held = (self._regions[each].tensor.shape[-1] for each in (source, target))
        step = whole // held
        for offset, extent in self._tiles(self._regions[source].tensor.shape):
            place, last = offset[-1] // step, node.tile_shape[len(offset) - 1] // step
            box = (*offset[:-1], place), (*extent[:-1], min(held - place, last))
            result = [self._written(target, *box)]
            self._operate(node.opcode, [(source, offset, extent)], result, node.attributes)

    def _weigh(self) -> None:
        """The weights of the tile's second axis beside each tile (vector/binary.cpp:194)."""
        node = self._node
        (source, weights), (target,) = node.inputs, node.outputs
        for offset, extent in self._tiles(self._regions[target].tensor.shape):
            result = [self._written(target, offset, extent)]
            result += self._scratch([source], extent)
            boxes = [(source, offset, extent), (weights, offset[1:2], extent[1:2])]
            self._operate(node.opcode, boxes, result, node.attributes)

    def _scale_rows(self) -> None:
        """The numbers of its rows beside each tile (vector/quantization.cpp:546, at 883e7dfb0)."""
        node = self._node
        (source, *numbers), (target,) = node.inputs, node.outputs
        for offset, extent in self._tiles(self._regions[target].tensor.shape):
            result = [self._written(target, offset, extent)]
            result += self._scratch([source], extent)
            boxes = [(source, offset, extent)]
            boxes += [(each, offset[:-1], extent[:-1]) for each in numbers]
            self._operate(node.opcode, boxes, result, node.attributes)

    def _pad(self) -> None:
        """The number alone, or behind elements, or elements alone (vector/pad.cpp:23)."""
        node = self._node
        (source,), (target,) = node.inputs, node.outputs
        held = self._regions[source].tensor.shape
        for offset, extent in self._tiles(self._regions[target].tensor.shape):
            size = tuple(map(min, node.tile_shape, map(int.__sub__, held, offset)))
            result = [self._written(target, offset, extent)]
            if min(size) <= 0:
                self._operate("VEC_DUP", [], result, node.attributes)
                continue
            is_inside = self._row.moves_whole and size == tuple(node.tile_shape[: len(size)])
            opcode = "REGISTER_COPY" if is_inside else node.opcode
            asked = replace(node.attributes, scalar=None) if is_inside else node.attributes
            self._operate(opcode, [(source, offset, size)], result, asked)

    def _expand(self, source: int, target: int) -> int:
        """Repeat an operand of one element along an axis, one operation a tile of the result."""
        narrow, wide = self._regions[source].tensor.shape, self._regions[target].tensor.shape
        if len(narrow) != len(wide):
            raise PlanError(
                f"{self._node.place}: operands {list(narrow)} and {list(wide)} of different "
                "dimensions are not planned; unsqueeze one"
            )
        axes = [k for k, (a, b) in enumerate(zip(narrow, wide, strict=True)) if a != b]
        if len(axes) != 1:
            raise PlanError(
                f"{self._node.place}: {list(narrow)} is repeated to {list(wide)}; upstream repeats "
                "one axis at once"
            )
        asked = replace(self._node.attributes, axis=axes[0], scalar=None, function="")
        for offset, extent in self._tiles(wide):
            box = [
                (0, 1) if k in axes else each
                for k, each in enumerate(zip(offset, extent, strict=True))
            ]
            start, size = tuple(zip(*box, strict=True))
            if size == extent and self._node.opcode != "EXPAND":  # a last tile of one element
                self._regions[target].tiles[offset] = self._read(source, start, size)
                continue
            opcode = "REGISTER_COPY" if size == extent else "EXPAND"
            output = self._written(target, offset, extent)
            self._operate(opcode, [(source, start, size)], [output], asked)
        return target

    def _reduce(self) -> None:
        """Reduce an axis: its tiles in pairs, then one tile to one element.

        Halves of the greatest power of two of tiles, level by level; those beyond it join where as
        many are left (interface/operation/vector/reduction.cpp:29, TileReduceNew).
        """
        node = self._node
        (source,), (target,) = node.inputs, node.outputs
        axis, shape = node.attributes.axis, self._regions[target].tensor.shape
        for offset, extent in self._tiles(shape):
            whole = self._regions[source].tensor.shape[axis]
            size = (*extent[:axis], whole, *extent[axis + 1 :])
            joined = self._join(source, offset, size, axis)
            self._reduce_tile(joined, self._written(target, offset, extent), axis)

    def _join(self, source: int, offset: Shape, size: Shape, axis: int) -> Box:
        """The region, the place and the extents of the one tile that an axis was brought to."""
        node, step = self._node, self._node.tile_shape[axis]
        count = -(-size[axis] // step)
        width = 1 << (count.bit_length() - 1)
        rest, following = count - width, width

        def part(k: int) -> Box:
            start, extent = k * step, min(step, size[axis] - k * step)
            return source, at(offset, axis, start), at(size, axis, extent)

        level = [part(k) for k in range(width)]
        asked = replace(node.attributes, axis=-1)
        held = self._regions[source].tensor

        def pair(a: Box, b: Box, into: int, k: int) -> Box:
            place = at((0,) * len(size), axis, k * step), at(size, axis, step)
            written = [self._written(into, *place)]
            boxes = [_group(each, offset, size, axis, width * step) for each in (a, b)]
            self._operate(PAIRED[node.opcode], [a, b], written, asked, boxes)
            return into, *place

        while width > 1:
            width //= 2
            for others in (
                [level[k + width] for k in range(width)],
                [part(following + k) for k in range(width)] if rest >= width else [],
            ):
                if others:
                    into = self._region(replace(held, shape=size, valid=held.part(offset, size)))
                    level = [pair(level[k], others[k], into, k) for k in range(width)]
            if rest >= width:
                rest, following = rest - width, following + width
        return level[0]

    def _reduce_tile(self, source: Box, result: int, axis: int) -> None:
        node, extent = self._node, source[2]
        fmt = self._regions[source[0]].tensor.format
        opcode = node.opcode
        if axis != len(extent) - 1:
            opcode = opcode.replace("_SINGLE", "LINE")
        outputs, row = [result], TILE_OPCODES[opcode]
        self.raw_tiles.append(self._tile)  # upstream makes one more, which nothing uses
        scratch = reduction_scratch(row, extent, axis, element_bytes(fmt), DEFAULT_CHIP)
        if scratch is not None:
            outputs.append(self._tensor(self._raw(TileTensor(format=fmt, shape=scratch))))
        self._operate(opcode, [source], outputs, node.attributes, [(source[1:],)])


def _group(
    tile: tuple[int, Shape, Shape], offset: Shape, size: Shape, axis: int, step: int
) -> Boxes:
    """The boxes that a tile of a reduction is told as a part of: all of the axis, and a half."""
    start = (tile[1][axis] - offset[axis]) // step * step
    half = at(size, axis, min(step, size[axis] - start))
    return (offset, size), (at(offset, axis, offset[axis] + start), half)
