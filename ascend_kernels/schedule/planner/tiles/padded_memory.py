"""The places of tiles in the raw tensors of UB, and the extents that these take with padding.

Paths are those of upstream pypto at tag r0.2.0, framework/src/passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ascend_kernels.schedule.planner.tiles.column_blocks import BLOCKS_OF_COLUMN
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    BLOCK_BYTES,
    Memory,
    Node,
    PlanError,
    TileGraph,
    TileTensor,
    consumers,
    place_of,
)
from simulator.machine.tile_opcodes import TILE_OPCODES, TileWork
from tiling.grid import Shape
from tiling.ub import round_up

_ROW_BLOCKS: Final = 8
_WIDENED: Final = frozenset(
    (
        *("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "CMP", "CMPS"),
        *("PAIRSUM", "PAIRMAX", "PAIRMIN", "PAIRPROD"),
    )
)
"""Opcodes whose operands are padded to the widest of them (interface/operation/opcode.cpp)."""


@dataclass(frozen=True, slots=True)
class RawPlace:
    """The place of a tile in UB: a raw tensor, by one of its tiles, and the offset in it."""

    raw: int
    offset: Shape


def parts_of_raw(graph: TileGraph) -> Mapping[int, RawPlace]:
    """By tensor in UB, the raw tensor that it lies in.

    A view lies in what it is a view of, what is assembled in the result
    (tile_graph_pass/graph_constraint/replace_tensor.cpp).

    Raises:
        PlanError: a tile that is assembled twice.
    """
    inside: dict[int, tuple[int, Shape]] = {}
    for node in graph.nodes:
        if node.opcode in ("VIEW", "ASSEMBLE"):
            part, whole = node.inputs[0], node.outputs[0]
            if node.opcode == "VIEW":
                part, whole = whole, part
            if part in inside or whole == part:
                place = place_of(node, consumers(graph.nodes))
                raise PlanError(f"{place}: a tile that lies in two others is not planned")
            inside[part] = whole, _known(node)
    found = {}
    for tensor, held in enumerate(graph.tensors):
        raw, offset = tensor, (0,) * len(held.shape)
        while raw in inside:
            raw, start = inside[raw]
            offset = tuple(map(int.__add__, offset, start))
        if held.memory is Memory.UB:
            found[tensor] = RawPlace(raw, offset)
    return found


def _known(node: Node) -> Shape:
    """The offset of a part in UB.

    Raises:
        PlanError: it is known only when the kernel runs.
    """
    offset = tuple(each for each in node.attributes.offset if isinstance(each, int))
    if len(offset) < len(node.attributes.offset):
        raise PlanError(f"{node.place}: a part at a place known only when the kernel runs, in UB")
    return offset


def padded(graph: TileGraph, parts: Mapping[int, RawPlace]) -> Mapping[int, Shape]:
    """By raw tensor in UB, the extents that it takes, padding included.

    The last dimension is whole blocks, decided by the first operation that reads the tensor, or
    that writes it where none does; of operands that are combined the widest decides, unless one is
    within a block (tile_graph_pass/graph_constraint/pad_local_buffer.cpp:249, :434, :496). A column
    that is repeated in blocks has whole blocks of rows instead, and so have these blocks (:667).
    """
    found: dict[int, Shape] = {}
    packed = {
        tensor: tensor in node.inputs
        for node in graph.nodes
        if node.opcode == BLOCKS_OF_COLUMN
        for tensor in (*node.inputs, *node.outputs)
    }
    reads = [(node, tensor) for node in graph.nodes for tensor in node.inputs]
    writes = [(node, tensor) for node in graph.nodes for tensor in node.outputs]
    for node, tensor in (*reads, *writes):
        if tensor in parts and parts[tensor].raw == tensor and tensor not in found:
            *outer, last = graph.tensors[tensor].shape
            row = _padded_row(graph, node, graph.tensors[tensor])
            if tensor in packed:
                outer[-1] = round_up(outer[-1], math.lcm(_ROW_BLOCKS, row))
            found[tensor] = (*outer, last if packed.get(tensor) else round_up(last, row))
    visited: set[int] = set()
    for node, tensor in reads:
        if tensor in visited or tensor not in parts:
            continue
        visited.add(tensor)
        *outer, last = found[parts[tensor].raw]
        fmt, opcode = graph.tensors[tensor].format, TILE_OPCODES[node.opcode]
        is_deep = opcode.work is TileWork.WEIGH and len(outer) > 1
        if outer and fmt in opcode.in_repeats and not is_deep:
            blocks = last * fmt.dtype.itemsize // BLOCK_BYTES
            outer[-1] += -(-_ROW_BLOCKS // blocks) - 1
            found[parts[tensor].raw] = (*outer, last)
    return found


def _padded_row(graph: TileGraph, node: Node, tensor: TileTensor) -> int:
    block_elems = BLOCK_BYTES // tensor.format.dtype.itemsize
    last = tensor.shape[-1]
    if node.opcode in _WIDENED:
        lasts = [graph.tensors[each].shape[-1] for each in node.inputs]
        first_elems = BLOCK_BYTES // graph.tensors[node.inputs[0]].format.dtype.itemsize
        if min(lasts) > first_elems:
            last = max(lasts)
    return round_up(last, block_elems)
