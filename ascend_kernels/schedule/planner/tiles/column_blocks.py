"""Columns that an operation repeats along rows: packed, then a block for each element.

Where a kernel has such an operation upstream packs its columns, which it calls combined axes
(r0.2.0, framework/src/passes/tile_graph_pass/graph_constraint/axis_combine.cpp; the option is set
by vector/expand_exp_dif.cpp:61). Only a column that is copied in and read so alone is planned.
A part of wider rows, and one beside a tile that is put together, cut along its rows or reduced
across them, is not packed but fills rows (axis_combine_marker.cpp).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ascend_kernels.schedule.parts import OUTWARD
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    BLOCK_BYTES,
    Attributes,
    Memory,
    Node,
    PlanError,
    TileGraph,
    consumers,
    in_order,
    place_of,
    producers,
)
from simulator.machine.tile_opcodes import REDUCTIONS, TILE_OPCODES, TileWork

BLOCKS_OF_COLUMN: Final = "BRCB"
"""The opcode that fills a block with each element of a column."""

_ALIKE: Final = frozenset(
    (TileWork.ELEMENTS, TileWork.PAIR, TileWork.COMPARE, TileWork.PAD, TileWork.EXPAND)
)
"""Works of which upstream combines the axes of all operands or of none."""


def packing_operation(graphs: Sequence[TileGraph]) -> str:
    """The first operation with which columns of a kernel are packed, with its place; "" of none."""
    return next((x.place for graph in graphs for x in graph.nodes if _takes_blocks(x)), "")


def repeat_columns(graph: TileGraph, packing: str) -> TileGraph:
    """Give each operation that takes columns of blocks such a column, beside rows that are wider.

    Args:
        graph: with copies.
        packing: the operation with which the kernel's columns are packed; "" if none is.

    Raises:
        PlanError: another column in UB, which upstream packs too, or extents known only when the
            kernel runs.
    """
    if not packing:
        return graph
    takers = [each for each in graph.nodes if _takes_blocks(each)]
    users, made, apart = consumers(graph.nodes), producers(graph.nodes), _kept_apart(graph)
    tensors, nodes = list(graph.tensors), {each.number: each for each in graph.nodes}
    for node in graph.nodes:
        for each in node.outputs[:1]:
            held = graph.tensors[each]
            if held.memory is not Memory.UB or len(held.shape) < 2 or held.shape[-1] != 1:
                continue
            is_copied = all(x.opcode == "COPY_IN" for x in made[each])
            if not is_copied or not all(map(_takes_blocks, users.get(each, ()))):
                raise PlanError(
                    f"{place_of(node, users)}: a column beside {packing} is not planned; "
                    "upstream packs it, which is followed for a column of an argument alone"
                )
    number, raw_tiles = graph.next_number, list(graph.raw_tiles)
    for node in takers:
        width = max(graph.tensors[each].shape[-1] for each in node.inputs)
        for each in dict.fromkeys(node.inputs):
            held = graph.tensors[each]
            if held.shape[-1] == width:
                continue
            if held.is_open:
                raise PlanError(
                    f"{node.place}: a column of an extent known only when the kernel runs is not "
                    "planned"
                )
            is_apart = each in apart
            elems = width if is_apart else BLOCK_BYTES // held.format.dtype.itemsize
            shape = (*held.shape[:-1], elems)
            tensors.append(
                replace(held, shape=shape, raw=graph.first_raw + len(raw_tiles), raw_shape=())
            )
            raw_tiles.append(held.tile)
            place = node.attributes
            axis = len(shape) - 1 if is_apart else -1
            asked = Attributes(axis=axis, file=place.file, line=place.line)
            nodes[number] = Node(
                opcode="EXPAND" if is_apart else BLOCKS_OF_COLUMN,
                number=number,
                inputs=(each,),
                outputs=(len(tensors) - 1,),
                attributes=asked,
                subgraph=node.subgraph,
            )
            reader = nodes[node.number]
            inputs = tuple(len(tensors) - 1 if x == each else x for x in reader.inputs)
            nodes[node.number] = replace(reader, inputs=inputs)
            number += 1
    return replace(
        graph,
        nodes=in_order(tuple(nodes.values())),
        tensors=tuple(tensors),
        raw_tiles=tuple(raw_tiles),
    )


def _takes_blocks(node: Node) -> bool:
    row = TILE_OPCODES.get(node.opcode)
    return row is not None and row.takes_blocks


def _kept_apart(graph: TileGraph) -> frozenset[int]:
    """Tensors whose last axis is not combined with the one before, and those they meet."""
    found: set[int] = set()
    ordered = [x for x in in_order(graph.nodes) if x.opcode not in OUTWARD and x.outputs]
    for node in ordered:
        source, result = (graph.tensors[x[0]] for x in (node.inputs or node.outputs, node.outputs))
        work = TILE_OPCODES[node.opcode].work if node.opcode in TILE_OPCODES else None
        is_column = node.opcode == "COPY_IN" and result.shape[-1] == 1
        is_cut = (is_column or node.opcode == "VIEW") and source.shape[-1] != result.shape[-1]
        if is_cut or node.opcode == "ASSEMBLE":
            found.add(node.outputs[0])
        if work in REDUCTIONS and node.attributes.axis % len(source.shape) == len(source.shape) - 2:
            found.update((node.inputs[0], node.outputs[0]))
    for node in reversed(ordered):
        source, result = (graph.tensors[x[0]] for x in (node.inputs or node.outputs, node.outputs))
        if node.opcode in ("VIEW", "ASSEMBLE") and source.shape[-1] != result.shape[-1]:
            continue
        if _meets_alike(node) and found.intersection((*node.inputs, node.outputs[0])):
            found.update(node.inputs)
    return frozenset(found)


def _meets_alike(node: Node) -> bool:
    """True for an operation of which no operand is combined unless the others are."""
    row = TILE_OPCODES.get(node.opcode)
    return node.opcode in ("VIEW", "ASSEMBLE") or (row is not None and row.work in _ALIKE)
