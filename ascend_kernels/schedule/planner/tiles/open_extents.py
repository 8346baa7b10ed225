"""Extents that hold data and are known only when the kernel runs, from operation to operation.

Source: upstream pypto at tag r0.2.0, framework/src/interface/operation/op_infer_shape_impl.cpp:23
(ElewiseInferFunc) and passes/block_graph_pass/infer_param_index.cpp:36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ascend_kernels.schedule.parts import COPIES, OUTWARD, PUTTERS, Scalars
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Node,
    PlanError,
    TileGraph,
    TileTensor,
    exchanged,
)
from ascend_kernels.schedule.scalars import Scalar, clamped
from simulator.machine.tile_opcodes import FROM_GM, REDUCTIONS, TILE_OPCODES, TileWork

GIVES_EXTENTS = (TileWork.EXPAND, TileWork.FILL)
"""Kinds of work whose results hold data in extents of their own."""
_BY_ELEMENTS = (TileWork.ELEMENTS, TileWork.CAST, TileWork.COMPARE, TileWork.REDUCE)
"""Kinds of work whose results hold data where operands do."""
_OF_OWN_SHAPE: Final = frozenset(
    (
        *(TileWork.PATTERN, TileWork.ONE_HOT, TileWork.BYTES, TileWork.BLOCKS),
        *(TileWork.SORT32, TileWork.MERGE, TileWork.EXTRACT),
        *(TileWork.EXTREME, TileWork.PAIR_EXTREME),
        *(TileWork.QUANTIZE, TileWork.DEQUANTIZE),
    )
)
"""Kinds of work whose results hold data in all of their shape."""


def of_result(
    place: str, opcode: str, operands: Sequence[TileTensor], shape: Sequence[int]
) -> Scalars:
    """The extents of a whole result that hold data: along each axis those of an operand as long.

    Args:
        place: of the operation, for messages.
        opcode: upstream's name.
        operands: whole tensors.
        shape: of the result.

    Returns:
        Them, () if no operand has extents known only when the kernel runs.

    Raises:
        PlanError: an operation that is not planned with such an operand.
    """
    work = TILE_OPCODES[opcode].work if opcode in TILE_OPCODES else None
    if work is TileWork.PAD or not any(each.is_open for each in operands):
        return ()
    if work not in _BY_ELEMENTS or any(len(each.shape) != len(shape) for each in operands):
        raise PlanError(f"{place}: extents known only when the kernel runs are not planned for it")
    found: list[Scalar] = []
    for axis, extent in enumerate(shape):
        held = [each.extents[axis] for each in operands if each.shape[axis] == extent]
        found.append(held[0] if held else extent)
    return tuple(found)


def inferred(
    graph: TileGraph,
    nodes: Sequence[Node],
    own: Callable[[Node], Scalars],
    *,
    of_leaf: bool = False,
) -> Mapping[int, Scalars]:
    """The extents of each tensor in UB that nodes write.

    Args:
        graph: the nodes'.
        nodes: sorted.
        own: the extents of the result of a copy into UB, or of other work that gives them.
        of_leaf: a leaf's; to it every extent is a number of the task, so that the first counts.
    """
    found: dict[int, Scalars] = {}
    for node in nodes:
        if node.opcode in OUTWARD or node.opcode in PUTTERS:
            continue
        held = graph.tensors[node.outputs[0]]
        work = TILE_OPCODES[node.opcode].work if node.opcode in TILE_OPCODES else None
        inputs = [found[each] for each in node.inputs if each in found]
        if node.opcode in COPIES or work in GIVES_EXTENTS or (not inputs and work not in FROM_GM):
            result = own(node)
        elif node.opcode == "VIEW":
            result = tuple(map(clamped, inputs[0], node.attributes.offset, held.shape))
        elif node.opcode in ("ASSEMBLE", "RESHAPE") or work is TileWork.PAD:
            result = held.extents
        elif work in (TileWork.WEIGH, TileWork.SCATTER, TileWork.ADD_AT):
            result = inputs[0]
        elif work in _OF_OWN_SHAPE | FROM_GM or _has_blocks(graph, node):
            result = held.shape
        elif work is TileWork.TRANSPOSE:
            result = exchanged(inputs[0], node.attributes.axes)
        elif work not in REDUCTIONS and _are_whole(graph, node, found):
            result = held.shape
        else:
            shapes = [graph.tensors[each].shape for each in node.inputs if each in found]
            # The longer tile of a pair keeps its rest; other work ends where an operand does.
            chosen = max if work is TileWork.PAIR else min
            result = tuple(
                1
                if work in REDUCTIONS and axis == node.attributes.axis
                else _along([x[axis] for x in shapes], [x[axis] for x in inputs], chosen, of_leaf)
                for axis in range(len(held.shape))
            )
        if node.opcode == "ASSEMBLE" and graph.tensors[node.inputs[0]].is_open:
            raise PlanError(
                f"{node.place}: parts whose extents are known only when the kernel runs are put "
                "together in UB, which is not planned"
            )
        found[node.outputs[0]] = result
        for scratch in node.outputs[1:]:
            found[scratch] = graph.tensors[scratch].shape
    return found


def _has_blocks(graph: TileGraph, node: Node) -> bool:
    """True for an operation with a column of blocks, whose extents are known."""
    row = TILE_OPCODES.get(node.opcode)
    shapes = {graph.tensors[each].shape for each in node.inputs}
    return row is not None and row.takes_blocks and len(shapes) > 1


def _are_whole(graph: TileGraph, node: Node, extents: Mapping[int, Scalars]) -> bool:
    """True if all that a node reads in UB has the shape of its result, and data in all of it."""
    shape = graph.tensors[node.outputs[0]].shape
    return all(
        graph.tensors[each].shape == extents[each] == shape
        for each in node.inputs
        if each in extents
    )


def _along(
    shape: Sequence[int],
    extents: Sequence[Scalar],
    chosen: Callable[[Iterable[int]], int],
    of_leaf: bool,
) -> Scalar:
    """The extent of a result along an axis: the first that is open, else the one chosen."""
    longer = [extent for length, extent in zip(shape, extents, strict=True) if length != 1]
    if 0 < len(longer) < len(extents):
        return longer[-1]
    if of_leaf:
        return extents[0]
    is_open = (each for each in extents if not isinstance(each, int))
    opened = next(is_open, None)
    return chosen(each for each in extents if isinstance(each, int)) if opened is None else opened
