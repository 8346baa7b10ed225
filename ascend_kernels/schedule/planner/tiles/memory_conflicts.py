"""A copy of an argument that a kernel gives back in another shape.

A reshape moves nothing, so that an output made by it alone would lie where the argument does.
Paths are those of upstream pypto at tag r0.2.0, framework/src/passes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Memory,
    Node,
    PlanError,
    TileGraph,
    consumers,
    in_order,
    producers,
)
from tiling.grid import Shape

_MOST_ELEMS: Final = 16384
_LEAST_ROW: Final = 32
_LASTING: Final = (Memory.ARGUMENT, Memory.SLOT)


def copy_reshaped(graph: TileGraph) -> TileGraph:
    """Copy an argument that is reshaped and nothing else, before it is assembled in an output.

    The copy is cut by the tile shape of the reshape, if that has an extent for each dimension of
    the result (tensor_graph_pass/infer_memory_conflict.cpp:335, :466).

    Raises:
        PlanError: there are several; upstream orders their copies by addresses of its own.
    """
    copied = [(node, reshape) for node in graph.nodes if (reshape := _given_back(graph, node))]
    if not copied:
        return graph
    if len(copied) > 1:
        (_, first), (_, second), *_ = copied
        raise PlanError(f"{first.place} and {second.place}: two copied to outputs are not planned")
    ((node, reshape),) = copied
    (reshaped,) = reshape.outputs
    shape = graph.tensors[reshaped].shape
    copy = Node(
        opcode="REGISTER_COPY",
        number=graph.next_number,
        inputs=(reshaped,),
        outputs=(len(graph.tensors),),
        tile_shape=reshape.tile_shape if len(reshape.tile_shape) == len(shape) else _tile(shape),
    )
    nodes = [
        each if each is not node else replace(node, inputs=copy.outputs) for each in graph.nodes
    ]
    return replace(
        graph,
        nodes=in_order([*nodes, copy]),
        tensors=(*graph.tensors, replace(graph.tensors[reshaped], raw=graph.next_raw)),
        first_raw=graph.next_raw + 1,
    )


def _given_back(graph: TileGraph, node: Node) -> Node | None:
    """The reshape of an argument whose only reader is a node that writes an output."""
    if graph.tensors[node.outputs[0]].memory not in _LASTING:
        return None
    made, read = producers(graph.nodes), consumers(graph.nodes)
    chain = [node]
    while chain[-1].inputs and (before := made.get(chain[-1].inputs[0])):
        chain.append(before[0])
    if [each.opcode for each in chain[1:]] != ["RESHAPE", "VIEW"]:
        return None
    is_given = graph.tensors[chain[-1].inputs[0]].memory in _LASTING
    return chain[1] if is_given and read[node.inputs[0]] == [node] else None


def _tile(shape: Shape) -> Shape:
    """Powers of two that cover the last axes (:381)."""
    left, tile = _MOST_ELEMS, []
    for place, extent in enumerate(reversed(shape)):
        wanted = max(1 << (extent - 1).bit_length(), 1 if place else _LEAST_ROW)
        tile.append(max(1, min(left, wanted)))
        left //= tile[-1]
    return tuple(reversed(tile))
