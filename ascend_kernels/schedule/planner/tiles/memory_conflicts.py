"""Copies of arguments that a kernel gives back, whole, in part or in another shape.

Views and reshapes move nothing, so that an output made by these alone would lie where the argument
does.
Paths are those of upstream pypto at tag r0.2.0, framework/src/passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Attributes,
    Memory,
    Node,
    TileGraph,
    in_order,
    producers,
)
from tiling.grid import Shape

_MOST_ELEMS: Final = 16384
_LEAST_ROW: Final = 32
_LASTING: Final = (Memory.ARGUMENT, Memory.SLOT)


def copy_given_back(graph: TileGraph) -> TileGraph:
    """Copy an argument that nothing but views and a reshape leads to an output, before it is there.

    The copy is cut by the tile shape of the last of these, if that has an extent for each dimension
    of the result (tensor_graph_pass/infer_memory_conflict.cpp:335, :466). Several are made in the
    order of the nodes; upstream orders them by addresses of its own. A copy has the line of the
    view or reshape; upstream names it only where that stands in the statement of the output.
    """
    made = producers(graph.nodes)
    nodes: list[Node] = []
    copies: list[Node] = []
    tensors = [*graph.tensors]
    for node in graph.nodes:
        if last := _given_back(graph, made, node):
            (source,) = last.outputs
            shape = tensors[source].shape
            is_fitting = len(last.tile_shape) == len(shape)
            copy = Node(
                opcode="REGISTER_COPY",
                number=graph.next_number + len(copies),
                inputs=(source,),
                outputs=(len(tensors),),
                tile_shape=last.tile_shape if is_fitting else _tile(shape),
                attributes=Attributes(file=last.attributes.file, line=last.attributes.line),
            )
            tensors.append(replace(tensors[source], raw=graph.next_raw + len(copies)))
            node = replace(node, inputs=copy.outputs)
            copies.append(copy)
        nodes.append(node)
    if not copies:
        return graph
    return replace(
        graph,
        nodes=in_order([*nodes, *copies]),
        tensors=tuple(tensors),
        first_raw=graph.next_raw + len(copies),
    )


def unordered_copies(graph: TileGraph) -> Iterator[str]:
    """The copies of a graph that the plan may have in another order.

    Several; and one of a view that another operation reads under another tile shape, whose leaf
    comes before that operation's in the wheel's dumps of two kernels, and behind it here.
    """
    made = producers(graph.nodes)
    found = [last for node in graph.nodes if (last := _given_back(graph, made, node))]
    if len(found) > 1:
        places = ", ".join(dict.fromkeys(each.place for each in found))
        yield (
            f"{places}: copies of arguments in the order of the operations; upstream takes that of "
            "addresses of its own"
        )
    for last in found:
        for node in graph.nodes:
            if last.outputs[0] in node.inputs and node.tile_shape not in ((), last.tile_shape):
                yield (
                    f"{node.place}: reads what {last.place} gives to an output, under another tile "
                    "shape; the tasks of the two may be in another order"
                )


def _given_back(graph: TileGraph, made: Mapping[int, Sequence[Node]], node: Node) -> Node | None:
    """The view or reshape of an argument that a node writes to an output."""
    if node.opcode != "ASSEMBLE" or graph.tensors[node.outputs[0]].memory not in _LASTING:
        return None
    chain = [node]
    while before := made.get(chain[-1].inputs[0]):
        chain.append(before[0])
        if chain[-1].opcode not in ("VIEW", "RESHAPE"):
            return None
    if [each.opcode for each in chain[2:-1]].count("RESHAPE"):
        return None
    is_given = graph.tensors[chain[-1].inputs[0]].memory in _LASTING
    return chain[1] if is_given and len(chain) > 1 else None


def _tile(shape: Shape) -> Shape:
    """Powers of two that cover the last axes (:381)."""
    left, tile = _MOST_ELEMS, []
    for place, extent in enumerate(reversed(shape)):
        wanted = max(1 << (extent - 1).bit_length(), 1 if place else _LEAST_ROW)
        tile.append(max(1, min(left, wanted)))
        left //= tile[-1]
    return tuple(reversed(tile))
