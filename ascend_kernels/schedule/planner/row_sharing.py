"""Kernels of many alike rows of tiles: a few rows are planned, and the others follow from them.

Along an axis that no operation joins, rows differ in the places of their copies alone, and the
numbers of raw tensors, on which the order of allocations depends, grow by as much with each row.
Three lengths are planned; where the third is not what follows from the first two, or tasks depend
on each other, all rows are planned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Final

from ascend_kernels.schedule.parts import Access, Task, TileOperand
from ascend_kernels.schedule.planner.leaves.leaf_graph import LeafGraph
from ascend_kernels.schedule.planner.subgraphs import TiledKernel
from ascend_kernels.schedule.planner.tiles.partition import MANY
from ascend_kernels.schedule.planner.tiles.tile_graph import TileGraph, TileTensor

_PLANNED: Final = (MANY, MANY + 1, MANY + 2)
"""The rows that are planned: from so many on, no rule of merging depends on their number."""
Plan = Callable[[TileGraph], TiledKernel]


def with_shared_rows(graph: TileGraph, plan: Plan) -> TiledKernel:
    """Plan a kernel, of many alike rows only a few.

    Args:
        graph: operations over whole tensors.
        plan: plans all rows of a graph.
    """
    for axis in range(max((len(each.shape) for each in graph.tensors), default=0)):
        step, length = _step_and_length(graph, axis)
        rows, rest = divmod(length, step or 1)
        if rows > sum(_PLANNED):
            planned = (
                with_shared_rows(_of_length(graph, axis, count * step + rest), plan)
                for count in _PLANNED
            )
            few = next(planned)
            alike = {each.name for each in graph.tensors if each.shape[axis] == 1}
            alike |= {each.name for body in few.bodies for each in body.temporaries}
            few_rows = _Rows(axis=axis, step=step, alike=alike, kernel=few)
            if few_rows.are_apart:
                more, most = planned
                found = few_rows.extended(more, rows)
                if found is not None and few_rows.extended(more, _PLANNED[2]) == most:
                    return found
    return plan(graph)


def _step_and_length(graph: TileGraph, axis: int) -> tuple[int, int]:
    """The extent of a tile along an axis, and of the tensors; 0 where operations may join tiles."""
    ranks = {len(each.shape) for each in graph.tensors}
    if len(ranks) > 1 or any(each.is_open for each in graph.tensors):
        return 0, 0
    steps: set[int] = set()
    for node in graph.nodes:
        if node.opcode == "RESHAPE" or any(node.attributes.offset[axis : axis + 1]):
            return 0, 0
        if node.opcode not in ("VIEW", "ASSEMBLE"):
            steps.update(node.tile_shape[axis : axis + 1] or (0,))
    lengths = {each.shape[axis] for each in graph.tensors} - {1}
    return (max(steps), max(lengths)) if len(steps) == len(lengths) == 1 else (0, 0)


def _of_length(graph: TileGraph, axis: int, length: int) -> TileGraph:
    def cut(tensor: TileTensor) -> TileTensor:
        extents = list(tensor.shape)
        extents[axis] = 1 if extents[axis] == 1 else length
        return replace(tensor, shape=tuple(extents))

    return replace(graph, tensors=tuple(map(cut, graph.tensors)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """A kernel of few rows.

    Attributes:
        axis, step: the axis, and the extent of a tile along it.
        alike: the tensors that all rows read the same elements of, and those of the last row alone.
        kernel: as planned.
    """

    axis: int
    step: int
    alike: AbstractSet[str]
    kernel: TiledKernel

    @property
    def are_apart(self) -> bool:
        """No whole row waits for a task or is waited for; the rest behind them may."""
        return not any(
            self._row(each) < _PLANNED[0]
            for body in self.kernel.bodies
            for task in body.tasks
            if task.successors
            for each in (task, *map(body.tasks.__getitem__, task.successors))
        )

    def extended(self, more: TiledKernel, rows: int) -> TiledKernel | None:
        """The kernel of so many rows; None where that of one row more has other leaves."""
        leaves = list(zip(self.kernel.leaves, more.leaves, strict=False))
        (body,), added = self.kernel.bodies, rows - _PLANNED[0]
        if len(self.kernel.leaves) != len(more.leaves) or any(
            one.renumbered() != other.renumbered() for one, other in leaves
        ):
            return None
        return TiledKernel(
            leaves=tuple(_in_buffers_of(*pair, added) for pair in leaves),
            bodies=(replace(body, tasks=tuple(self._tasks(body.tasks, added))),),
        )

    def _tasks(self, tasks: Sequence[Task], added: int) -> Iterator[Task]:
        """All tasks: those of the last whole row as often as it takes, the rest behind them."""
        last = _PLANNED[0] - 1
        rows = [self._row(each) for each in tasks]
        places = list(accumulate((1 + added * (row == last) for row in rows), initial=0))
        for is_last, found in groupby(range(len(tasks)), lambda place: rows[place] == last):
            alike = list(found)
            for count in range(added + 1) if is_last else (0,):
                for place in alike:
                    task = replace(
                        tasks[place],
                        successors=tuple(places[each] for each in tasks[place].successors),
                    )
                    yield self._moved(task, added if rows[place] > last else count)

    def _row(self, task: Task) -> int:
        starts = [each.offset[self.axis] for each in task.accesses if each.tensor not in self.alike]
        if not starts:
            return _PLANNED[0]
        return max(start for start in starts if isinstance(start, int)) // self.step

    def _moved(self, task: Task, rows: int) -> Task:
        """A task some rows further."""

        def further(access: Access) -> Access:
            offset = list(access.offset)
            start = offset[self.axis]
            assert isinstance(start, int)
            offset[self.axis] = start + rows * self.step
            return replace(access, offset=tuple(offset))

        if not rows:
            return task
        accesses = (each if each.tensor in self.alike else further(each) for each in task.accesses)
        return replace(task, accesses=tuple(accesses))


def _in_buffers_of(leaf: LeafGraph, longer: LeafGraph, added: int) -> LeafGraph:
    """A leaf with the numbers that its buffers have when rows are added."""

    numbers: dict[int, int] = {}

    def further(pairs: Iterable[tuple[TileOperand, TileOperand]]) -> tuple[TileOperand, ...]:
        made = []
        for one, other in pairs:
            if one.buffer is not None and other.buffer is not None:
                moved = one.buffer + (other.buffer - one.buffer) * added
                numbers[one.buffer] = moved
                one = replace(one, buffer=moved)
            made.append(one)
        return tuple(made)

    operations = tuple(
        replace(
            one,
            inputs=further(zip(one.inputs, other.inputs, strict=True)),
            outputs=further(zip(one.outputs, other.outputs, strict=True)),
        )
        for one, other in zip(leaf.operations, longer.operations, strict=True)
    )
    guessed = frozenset(numbers[each] for each in leaf.guessed)
    return replace(leaf, operations=operations, guessed=guessed)
