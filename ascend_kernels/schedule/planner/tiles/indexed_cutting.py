"""Operations by indices on tiles of whole axes.

Paths are those of upstream pypto at tag r0.2.0, framework/src.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from ascend_kernels.schedule.planner.tiles.scratch_memory import element_bytes
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    BLOCK_BYTES,
    REPEAT_BYTES,
    Attributes,
    PlanError,
    TileTensor,
)
from ascend_kernels.schedule.planner.tiles.tile_regions import Box, TileRegions, at
from simulator.arithmetic.indexed.gather_scatter import is_factor
from simulator.machine.tile_steps import GROUP_ELEMS, NUMBERS, ROUNDED
from simulator.numbers.formats import BF16, FP16, FP32, INT8, INT32, INT64, Format
from simulator.numbers.rounding import RoundMode
from tiling.grid import Shape
from tiling.ub import round_up

PUT_TARGET: Final = MappingProxyType({"INDEX_OUTCAST": 2, "INDEX_PUT": 0})
"""By opcode, the place of the operand that is written to."""
_PAIRS: Final = 8
"""Of so many pairs a multiple is merged."""
_SORTED_BYTES: Final = 2 * 4 * 4
"""Upstream counts so many for each element of rows that are sorted whole (sort.cpp:503)."""
_SORTED_UB_BYTES: Final = 196_608
_LINE_ELEMS: Final = 3 * REPEAT_BYTES // element_bytes(FP32)
_SHORT_BLOCK: Final = BLOCK_BYTES // element_bytes(BF16)


class IndexedCutter(TileRegions):
    """The rules of operations that take indices."""

    def _gather(self) -> None:
        """All of the axis for each tile of indices (vector/indexing.cpp:407)."""
        node = self._node
        (source, index), (target,) = node.inputs, node.outputs
        axis, fmt = node.attributes.axis, self._regions[index].tensor.format
        whole = self._regions[source].tensor.shape
        for offset, extent in self._tiles(self._regions[target].tensor.shape):
            steps = zip(node.tile_shape, whole, offset, strict=False)
            size = tuple(min(step, held - first) for step, held, first in steps)
            read = source, at(offset, axis, 0), at(size, axis, whole[axis])
            elems = 2 * round_up(extent[-1], BLOCK_BYTES // element_bytes(fmt))
            result = self._written(target, offset, extent)
            scratch = self._tensor(self._raw(TileTensor(format=fmt, shape=(elems,))))
            boxes = [read, (index, offset, extent)]
            self._operate(node.opcode, boxes, [result, scratch], node.attributes)

    def _select(self) -> None:
        """All of the axis, and the indices of each tile (vector/indexing.cpp:262)."""
        node = self._node
        (source, index), (target,) = node.inputs, node.outputs
        axis, whole = node.attributes.axis, self._regions[source].tensor.shape
        end = axis + len(self._regions[index].tensor.shape)
        for offset, extent in self._tiles(self._regions[target].tensor.shape):
            start, size = (*offset[:axis], 0, *offset[end:]), (*extent[:axis], whole[axis])
            boxes = [
                (source, start, (*size, *extent[end:])),
                (index, offset[axis:end], extent[axis:end]),
            ]
            result = [self._written(target, offset, extent)]
            self._operate(node.opcode, boxes, result, node.attributes)

    def _paged_rows(self) -> None:
        """All rows, the indices of each tile and the whole table (operation_impl.cpp:1348)."""
        node = self._node
        (source, index, table), (target,) = node.inputs, node.outputs
        rows = self._regions[source].tensor.shape[0]
        blocks = self._regions[table].tensor.shape
        for offset, extent in self._tiles(self._regions[target].tensor.shape):
            boxes = [
                (source, at(offset, 0, 0), at(extent, 0, rows)),
                (index, (0, offset[0]), (1, extent[0])),
                (table, (0, 0), blocks),
            ]
            result = [self._written(target, offset, extent)]
            self._operate(node.opcode, boxes, result, node.attributes)

    def _put(self) -> None:
        """All rows and indices, of INDEX_PUT for each tile of columns.

        Where rows are cut nothing orders the tasks.

        Source: vector/indexing.cpp:930, :963, :1104.
        """
        node = self._node
        place = PUT_TARGET[node.opcode]
        values, index = (each for k, each in enumerate(node.inputs) if k != place)
        shape = self._regions[values].tensor.shape
        steps = node.tile_shape[:1] if node.opcode == "INDEX_PUT" else node.tile_shape
        if node.inputs[place] in (values, index):
            raise PlanError(
                f"{node.place} is not planned: its rows or indices are the tensor that it writes; "
                "give it a copy, as x * 1"
            )
        is_cut = any(map(int.__lt__, steps, shape))
        if len(shape) == 2 and node.opcode == "INDEX_OUTCAST":
            rows, batch = node.tile_shape[0], self._regions[index].tensor.shape[1]
            is_cut = is_cut or -(-rows // batch) < self._regions[index].tensor.shape[0]
            if node.tile_shape[1] > shape[1]:
                raise PlanError(
                    f"{node.place}: upstream's compiler takes a tile of {shape[1]} columns alone, "
                    f"not of {node.tile_shape[1]}, as set_vec_tile_shapes({rows}, {shape[1]}) sets"
                )
        if is_cut:
            raise PlanError(
                f"{node.place} is not planned: it needs several tasks that write to GM at places "
                "which data name, in no order"
            )
        (target,), count = node.outputs, self._regions[index].tensor.shape
        whole = self._regions[target].tensor.shape
        result = [self._written(target, (0,) * len(whole), whole)]  # which each of them changes
        for offset, extent in self._tiles(shape):
            size = (*whole[:1], *extent[1:]) if node.opcode == "INDEX_PUT" else whole
            boxes = [(values, offset, extent), (index, (0,) * len(count), count)]
            boxes.insert(place, (node.inputs[place], at(offset, 0, 0), size))
            self._operate(node.opcode, boxes, result, node.attributes)

    def _scatter(self) -> None:
        """All of the axis, and the indices of each tile (vector/indexing.cpp:528, :678)."""
        node = self._node
        (source, index, *given), (target,) = node.inputs, node.outputs
        axis = node.attributes.axis
        whole, places = (self._regions[each].tensor.shape for each in (source, index))
        if at(places, axis, whole[axis]) != whole:
            raise PlanError(
                f"{node.place}: indices {list(places)} that leave elements of {list(whole)} out "
                f"along another axis than {axis} are not planned; upstream writes no tile of those"
            )
        for offset, extent in self._tiles(whole):
            size = at(extent, axis, places[axis])
            boxes = [(source, offset, extent), *((each, offset, size) for each in (index, *given))]
            outputs = [self._written(target, offset, extent)]
            if given:
                fmt = self._regions[index].tensor.format
                outputs.append(self._tensor(self._raw(TileTensor(format=fmt, shape=size[-1:]))))
            self._operate(node.opcode, boxes, outputs, node.attributes)

    def _add_at(self) -> None:
        """All of the axis of elements and of terms (vector/indexing.cpp:56 to 171).

        INT8 is added in FP16; BF16, and FP16 by INT64 without a factor, in FP32.
        """
        node = self._node
        (source, terms, index), (target,) = node.inputs, node.outputs
        fmt, axis = self._regions[source].tensor.format, node.attributes.axis
        whole, count = (self._regions[each].tensor.shape for each in (source, index))
        is_scaled = is_factor(node.attributes.scalar or 0)
        is_whole = self._regions[index].tensor.format is INT64 and not is_scaled
        wide, back = fmt, RoundMode.RINT
        if fmt is INT8:
            wide, back = FP16, RoundMode.TRUNC
        elif fmt is BF16 or (fmt is FP16 and is_whole):
            wide = FP32
        asked = node.attributes
        if fmt is BF16 and not is_whole:
            asked = replace(asked, function=ROUNDED)
        steps = at(node.tile_shape[: len(whole)], axis, whole[axis])
        for offset, extent in self._tiles(whole, steps):
            result = self._written(target, offset, extent)
            boxes = (source, offset, extent), (terms, offset, at(extent, axis, *count))
            short = self._raw(TileTensor(format=BF16, shape=_aligned((1,) * len(extent))))
            if wide is fmt:
                tiles = [self._read(*each) for each in (*boxes, (index, (0,), count))]
                self._emit(node.opcode, tiles, [result, self._tensor(short)], asked)
                continue
            tiles = [self._converted(each, wide) for each in boxes]
            held = self._tensor(self._raw(TileTensor(format=wide, shape=extent)))
            if wide is FP32:
                row = _aligned((1,) * (axis + 1) + extent[axis + 1 :])
                short = self._raw(TileTensor(format=BF16, shape=row))
            tiles.append(self._read(index, (0,), count))
            self._emit(node.opcode, tiles, [held, self._tensor(short)], asked)
            self._cast(held, result, back)

    def _sort(self) -> None:
        """Whole rows: groups of 32, merged, and taken apart (vector/sort.cpp:48, :257, :547).

        Rows that upstream cuts, or that are no whole groups, are refused.
        """
        node = self._node
        source, *others = node.inputs[0], *node.outputs
        whole = self._regions[source].tensor.shape
        length, count = whole[-1], self._regions[node.outputs[0]].tensor.shape[-1]
        steps, asked = node.tile_shape[: len(whole)], node.attributes
        row = round_up(steps[-1], GROUP_ELEMS)
        is_cut = node.opcode == "TOPK" and length > row
        if node.opcode == "SORT":
            elements = math.prod(steps) // steps[-1] * round_up(length, GROUP_ELEMS)
            is_cut = elements * _SORTED_BYTES >= _SORTED_UB_BYTES
        if is_cut or length % GROUP_ELEMS:
            raise PlanError(
                f"{node.place}: rows of {length} elements that "
                + (
                    "upstream cuts into tiles, which are merged in pairs, are not planned"
                    if is_cut
                    else f"are no whole groups of {GROUP_ELEMS} are not planned"
                )
            )
        for offset, extent in self._tiles(whole, (*steps[:-1], length)):
            wide = (*extent[:-1], 2 * length)
            short = TileTensor(format=FP32, shape=(1, 2 * length)[-len(extent) :])
            if node.opcode == "BITSORT":
                pairs = self._written(node.outputs[0], offset, wide)
            else:
                pairs = self._tensor(self._raw(TileTensor(format=FP32, shape=wide)))
            scratch = self._tensor(self._raw(short))
            tile = self._read(source, offset, extent)
            self._emit("BITSORT", [tile], [pairs, scratch], asked)
            if node.opcode == "BITSORT":
                continue
            held = (*extent[:-1], 2 * round_up(count, _PAIRS))
            merged = self._tensor(self._raw(TileTensor(format=FP32, shape=held)))
            if node.opcode == "TOPK":
                scratch = self._tensor(self._raw(short))
            plain = Attributes(file=asked.file, line=asked.line)
            merging = replace(plain, axis=asked.axis)
            self._emit("MRGSORT", [pairs], [merged, scratch], merging)
            if node.opcode == "TOPK":
                self.raw_tiles.append(self._tile)  # for merging, which nothing uses
            for target, function in zip(others, (asked.function, NUMBERS), strict=True):
                result = self._written(target, offset, (*extent[:-1], count))
                taken = replace(plain, function=function)
                self._emit("EXTRACT", [merged], [result], taken)

    def _extreme(self) -> None:
        """The extreme of each tile along the axis with its place, and of these by pairs.

        Source: 883e7dfb0, vector/reduction.cpp:205.
        """
        node = self._node
        (source,), (target,) = node.inputs, node.outputs
        held, axis = self._regions[source].tensor, node.attributes.axis
        place = Attributes(file=node.attributes.file, line=node.attributes.line)
        name, step = node.opcode.removesuffix("_SINGLE"), node.tile_shape[axis]
        is_last = axis == len(held.shape) - 1
        opcode = f"{name}WITHVALUE_{'SINGLE' if is_last else 'LINE'}"
        for offset, extent in self._tiles(self._regions[target].tensor.shape):
            found = []
            for start in range(0, held.shape[axis], step):
                size = at(extent, axis, min(step, held.shape[axis] - start))
                shapes = held.format, extent, INT32, extent
                value, index = self._two(*shapes)
                row = size[-2:] if is_last else (1, _LINE_ELEMS)
                scratch = self._tensor(self._raw(TileTensor(format=held.format, shape=row)))
                tile = self._read(source, at(offset, axis, start), size)
                self._emit(opcode, [tile], [value, index, scratch], replace(place, axis=axis))
                moved = self._tensor(self._raw(TileTensor(format=INT32, shape=extent)))
                self._emit("ADDS", [index], [moved], replace(place, scalar=float(start)))
                found.append((value, moved))
            while len(found) > 1:
                pairs, joined = itertools.zip_longest(found[::2], found[1::2]), []
                for first, second in pairs:
                    if second is None:
                        joined.append(first)
                        continue
                    joined.append(self._two(held.format, extent, INT32, extent))
                    self._emit(name.replace("ROW", "PAIR"), [*first, *second], [*joined[-1]], place)
                found = joined
            result = self._written(target, offset, extent)
            self._emit("ADDS", [found[0][1]], [result], replace(place, scalar=0.0))

    def _two(self, fmt: Format, shape: Shape, other: Format, size: Shape) -> tuple[int, int]:
        """Two tiles in memory of their own."""
        first = self._tensor(self._raw(TileTensor(format=fmt, shape=shape)))
        return first, self._tensor(self._raw(TileTensor(format=other, shape=size)))

    def _converted(self, box: Box, fmt: Format) -> int:
        """A tile of other format that a cast gives."""
        made = self._tensor(self._raw(TileTensor(format=fmt, shape=box[2])))
        self._cast(self._read(*box), made, None)
        return made

    def _cast(self, tile: int, result: int, mode: RoundMode | None) -> None:
        asked = self._node.attributes
        placed = Attributes(mode=mode, file=asked.file, line=asked.line)
        self._emit("CAST", [tile], [result], placed)


def _aligned(shape: Shape) -> Shape:
    """Extents whose last one is of whole blocks of BF16."""
    return (*shape[:-1], round_up(shape[-1], _SHORT_BLOCK))
