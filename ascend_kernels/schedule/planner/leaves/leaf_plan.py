"""A leaf from its tile operations: buffers, order, addresses, flags, as upstream plans them.

A short file: it only puts the stages in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ascend_kernels.schedule.parts import COPIES, Buffer, Flag, Leaf, TileOperation
from ascend_kernels.schedule.planner.leaves.addresses import (
    Copy,
    StartedLeaf,
    started,
    with_lives,
)
from ascend_kernels.schedule.planner.leaves.leaf_graph import LeafGraph
from ascend_kernels.schedule.planner.leaves.order import first_order
from ascend_kernels.schedule.planner.leaves.shared_buffers import (
    allocation_order,
    other_allocation_orders,
    with_shared_buffers,
)
from ascend_kernels.schedule.planner.leaves.syncs import with_syncs
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.planner.ub_overflow import UBOverflowError
from simulator.machine.tile_opcodes import TILE_OPCODES

_VECTOR: Final = "V"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLeaf:
    """A leaf, and the tensors that its copies move.

    Attributes:
        leaf: with addresses and syncs; its copies are numbered in the order of issue.
        copies: of each, the access of the operations that were given, or the place of a spill.
        taken: the accesses of the operations that read GM, in the order of issue.
        given: the copies among these operations.
        simplified: the rule that is applied in part, and where; "" if none is.
    """

    leaf: Leaf
    copies: tuple[Copy, ...]
    taken: tuple[int, ...]
    given: int
    simplified: str = ""


def plan_leaf(name: str, graph: LeafGraph, ub_bytes: int) -> PlannedLeaf:
    """Plan a leaf of the vector core.

    Args:
        name: of the leaf.
        graph: its tile operations; each tensor in UB has a buffer of its own but where it is a part
            of another.
        ub_bytes: of UB.

    Raises:
        ValueError: an opcode without a row, or more in UB at one moment than it holds; names the
            operation and its line. PlanError, a kind of it: two that write the same bytes at once.
    """
    shared = with_shared_buffers(graph)
    run = started(shared, first_order(shared, allocation_order(shared)), ub_bytes)
    found = run.leaf
    given = sum(each.opcode in COPIES for each in graph.operations)
    tensors = [each.tensor for each in found.copies]
    tensors += (graph.gm_tensors[each] for each in found.taken)
    tensors += graph.gm_tensors[given + len(found.taken) :]
    operations = with_syncs(found.operations, found.buffers, tensors)
    _check_written_in_turn(operations, found.buffers)
    return PlannedLeaf(
        leaf=Leaf(
            name=name,
            core="AIV",
            operations=operations,
            buffers=with_lives(found.buffers, operations),
        ),
        copies=found.copies,
        taken=found.taken,
        given=given,
        simplified=_simplified(shared, run, ub_bytes),
    )


def _check_written_in_turn(operations: Sequence[TileOperation], buffers: Sequence[Buffer]) -> None:
    """Refuse two buffers at one address that the vector's pipe writes, if nothing orders them.

    Upstream's compiler orders what is read between, and so no scratch.
    """
    ended: dict[str, int] = {}  # by pipe, how many of the vector's operations it has waited for
    told: dict[Flag, int] = {}
    written: list[tuple[int, Buffer, TileOperation]] = []
    count = 0
    for operation in operations:
        match operation.flag:
            case Flag(setter=setter) as flag if operation.opcode == "SYNC_SRC":
                told[flag] = count if setter == _VECTOR else ended.get(setter, 0)
            case Flag(waiter=waiter) as flag:
                ended[waiter] = max(ended.get(waiter, 0), told.get(flag, count))
        if operation.pipe != _VECTOR:
            continue
        written = [each for each in written if each[0] >= ended.get(_VECTOR, 0)]
        row = TILE_OPCODES.get(operation.opcode)
        results = [each.buffer for each in operation.outputs if each.buffer is not None]
        early = results[1:] if row is not None and row.is_late else results
        for buffer in (buffers[each] for each in dict.fromkeys(early)):
            for _, other, earlier in written:
                if (
                    other is not buffer
                    and buffer.address < other.address + other.size_bytes
                    and other.address < buffer.address + buffer.size_bytes
                ):
                    raise PlanError(
                        f"{earlier.opcode}{earlier.at}: upstream's compiler puts no barrier "
                        f"between it and {operation.opcode}{operation.at}, which writes the same "
                        "bytes"
                    )
        written += ((count, buffers[each], operation) for each in dict.fromkeys(results))
        count += 1


def _simplified(graph: LeafGraph, found: StartedLeaf, ub_bytes: int) -> str:
    """The first operation whose results may lie elsewhere, as their numbers are not followed."""
    for operation, allocations in other_allocation_orders(graph):
        try:
            other = started(graph, first_order(graph, allocations), ub_bytes)
        except UBOverflowError:
            other = None
        if other is None or not found.is_as(other):
            return (
                f"the order in which the results of {operation.opcode}{operation.at} are "
                "allocated, so that they may lie at other addresses: upstream's numbers of tensors "
                "that several tasks hand over are not followed"
            )
    return ""
