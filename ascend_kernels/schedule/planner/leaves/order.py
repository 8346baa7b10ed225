"""The order in which a leaf's operations and allocations would run one after another.

Source: upstream pypto at tag r0.2.0, framework/src/passes/block_graph_pass/schedule_ooo/
optimize_sort.cpp: AllocAhead (:774), PriorDFS (:262), PromoteOps (:218).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ascend_kernels.schedule.parts import TileOperation
from ascend_kernels.schedule.planner.leaves.leaf_graph import LeafGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Taking the bytes of a buffer."""

    buffer: int


OrderEntry = int | Allocation
"""An operation by its place in the graph, or an allocation."""
_ALLOCATION, _COPY_IN, _OTHER = 0, 2, 10
"""The classes by which the needs of an operation are sorted; the last is visited first."""
_ASSEMBLE, _COPY_OUT, _LATER = 0, 1, 2
"""The classes of ready entries; the first goes first."""
_FIRST: Final = {"ASSEMBLE": _ASSEMBLE, "COPY_OUT": _COPY_OUT}


def first_order(graph: LeafGraph, allocations: Sequence[int]) -> tuple[OrderEntry, ...]:
    """Order operations so that few buffers live at once.

    From each operation that nothing needs, the deepest first, all that it needs is visited: the
    deepest operand first, then copies, then the allocations of its results. After that whatever is
    ready to leave UB is promoted.

    Args:
        graph: operations whose buffers are shared.
        allocations: the buffers, as `allocation_order` gives them.
    """
    steps: list[OrderEntry] = [Allocation(buffer=each) for each in allocations]
    base = len(steps)
    place = {buffer: index for index, buffer in enumerate(allocations)}
    needs: list[set[int]] = [set() for _ in steps]
    writers = graph.writers
    for index, operation in enumerate(graph.operations):
        steps.append(index)
        needs.append(
            {base + writer for number in graph.reads[index] for writer in writers.get(number, ())}
            | {place[each.buffer] for each in operation.outputs if each.buffer is not None}
        )
    visited = _visited(needs, [_class_of(graph.operations, step) for step in steps])
    rank = {index: position for position, index in enumerate(visited)}
    followers: list[list[int]] = [[] for _ in steps]
    missing = [len(each) for each in needs]
    for index, needed in enumerate(needs):
        for need in needed:
            followers[need].append(index)

    def entry(index: int) -> tuple[int, int, int]:
        step = steps[index]
        promoted = _LATER
        if isinstance(step, int):
            promoted = _FIRST.get(graph.operations[step].opcode, _LATER)
        return promoted, rank[index], index

    ready = [entry(index) for index, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    found: list[OrderEntry] = []
    while ready:
        *_, index = heapq.heappop(ready)
        found.append(steps[index])
        for each in followers[index]:
            missing[each] -= 1
            if not missing[each]:
                heapq.heappush(ready, entry(each))
    return tuple(found)


def _class_of(operations: Sequence[TileOperation], step: OrderEntry) -> int:
    if isinstance(step, Allocation):
        return _ALLOCATION
    return _COPY_IN if operations[step].opcode == "COPY_IN" else _OTHER


def _visited(needs: Sequence[set[int]], classes: Sequence[int]) -> list[int]:
    """All steps, each behind those that it needs, by a search from those that nothing needs."""
    depths: list[int] = []
    below: list[int] = []
    for each in needs:
        depths.append(1 + max((depths[need] for need in each), default=0))
        mask = 0
        for need in each:
            mask |= below[need] | 1 << need
        below.append(mask)
    needed = set().union(*needs)
    ends = sorted(set(range(len(needs))) - needed)
    ends.sort(key=lambda index: -depths[index])
    found: list[int] = []
    done = 0
    while ends:
        # The first is the deepest; from then on the one that still needs the fewest.
        end = min(ends, key=lambda index: (below[index] & ~done).bit_count()) if done else ends[0]
        ends.remove(end)
        waiting = [end]
        while waiting:
            index = waiting[-1]
            if done >> index & 1:
                waiting.pop()
                continue
            open_ = [need for need in needs[index] if not done >> need & 1]
            if open_:
                waiting += sorted(open_, key=lambda need: (classes[need], depths[need], need))
                continue
            waiting.pop()
            done |= 1 << index
            found.append(index)
    return found
