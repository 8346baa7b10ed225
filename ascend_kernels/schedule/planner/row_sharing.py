"""Kernels of many alike rows of tiles: a few rows are planned, and the others follow from them.

Along an axis that no operation joins, rows differ in the places of their copies alone, and the
numbers of raw tensors, on which the order of allocations depends, grow by as much with each row.
Three rows are planned at least; where a row is not the one before it moved by a tile, the numbers
made for two rows differ in count, or tasks depend on each other, all rows are planned; also where
there would be so many alike tasks that those which share a neighbour are merged over the cores.
Where how many parts are alike decides what is merged, the rows are so many that it stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from typing import Final

from ascend_kernels.schedule.parts import Access, Task
from ascend_kernels.schedule.planner.subgraphs import TiledKernel
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Memory,
    PlanError,
    TileGraph,
    TileTensor,
)
from simulator.machine.tile_opcodes import FROM_GM, REDUCTIONS, TILE_OPCODES, TO_GM, TileWork
from tiling.grid import Shape

_FEWEST: Final = 3
"""The rows that are planned at least: the first, the last, and one between, which is repeated."""
_READS_INDICES: Final = {TileWork.ADD_AT, TileWork.GATHER, TileWork.SCATTER}
_NOT_BY_ROWS: Final = FROM_GM | TO_GM | {TileWork.BYTES}
_ALONG: Final = REDUCTIONS | _READS_INDICES | {TileWork.ACCUMULATE, TileWork.EXTREME}
"""Of operations that read all tiles along an axis."""
Plan = Callable[[TileGraph], TiledKernel]


def with_shared_rows(graph: TileGraph, plan: Plan, axis: int = 0) -> TiledKernel:
    """Plan a kernel, of many alike rows only a few.

    Args:
        graph: operations over whole tensors.
        plan: plans all rows of a graph.
        axis: the first along which rows may be alike.
    """
    if axis >= max((len(each.shape) for each in graph.tensors), default=0):
        return plan(graph)
    step, length = step_and_length(graph, axis)
    rows, rest = divmod(length, step or 1)
    count = _fewest(graph, step, rest)
    while step and count < rows:
        few = of_length(graph, axis, count * step + rest)
        try:
            kernel = with_shared_rows(few, plan, axis + 1)
        except PlanError:  # which names the shapes of the few
            break
        if count < kernel.fewest:
            count = kernel.fewest
            continue
        alike = {each.name for each in graph.tensors if each.shape[axis] == 1}
        alike |= {each.name for body in kernel.bodies for each in body.temporaries}
        found = _Rows(axis=axis, step=step, count=count, alike=alike, kernel=kernel)
        if rows <= count * kernel.spread and found.are_apart and found.are_alike:
            return found.extended(rows)
        break
    return with_shared_rows(graph, plan, axis + 1)


def _fewest(graph: TileGraph, step: int, rest: int) -> int:
    """The rows from which on a tensor that is assembled of tiles is more than one common box.

    See `split_assembled`: boxes of whole tiles and of the rest behind them.
    """
    is_joined = any(
        node.opcode in ("VIEW", "ASSEMBLE", "REGISTER_COPY")
        and {graph.tensors[each].memory for each in (*node.inputs, *node.outputs)} == {Memory.UB}
        for node in graph.nodes
    )
    return max(_FEWEST, math.lcm(step, rest) // step + 1 if is_joined and rest else 0)


def step_and_length(graph: TileGraph, axis: int) -> tuple[int, int]:
    """The extent of a tile along an axis, and of the tensors; 0 where operations join tiles."""
    ranks = {len(each.shape) for each in graph.tensors}
    if len(ranks) > 1 or any(each.is_open for each in graph.tensors):
        return 0, 0
    steps: set[int] = set()
    for node in graph.nodes:
        row, asked = TILE_OPCODES.get(node.opcode), node.attributes
        is_along = row is not None and (
            row.work in _NOT_BY_ROWS or (row.work in _ALONG and asked.axis == axis)
        )
        is_moved = axis in asked.axes or any(asked.offset[axis : axis + 1])
        if node.opcode == "RESHAPE" or is_along or is_moved or asked.number is not None:
            return 0, 0
        if node.opcode not in ("VIEW", "ASSEMBLE"):
            steps.update(node.tile_shape[axis : axis + 1] or (0,))
    lengths = {each.shape[axis] for each in graph.tensors} - {1}
    return (max(steps), max(lengths)) if len(steps) == len(lengths) == 1 else (0, 0)


def of_length(graph: TileGraph, axis: int, length: int) -> TileGraph:
    """The same operations over tensors of another length along an axis."""

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
        count: the whole rows.
        alike: the tensors that all rows read the same elements of, and those of the last row alone.
        kernel: as planned.
    """

    axis: int
    step: int
    count: int
    alike: AbstractSet[str]
    kernel: TiledKernel

    @property
    def are_apart(self) -> bool:
        """No whole row waits for a task or is waited for; the rest behind them may."""
        return not any(
            self._row(each) < self.count
            for body in self.kernel.bodies
            for task in body.tasks
            if task.successors
            for each in (task, *map(body.tasks.__getitem__, task.successors))
        )

    @property
    def are_alike(self) -> bool:
        """Each whole row is the one before it, moved by a tile, and nothing else grows with rows.

        The numbers that a row more brings are those of a row in the middle: no leaf may have them,
        and before each buffer as many are made for one row as for another.
        """
        (body,) = self.kernel.bodies
        runs = [(row, [*found]) for row, found in groupby(body.tasks, self._row)]
        ends = (-1, []), *runs, (self.count, [])
        for (row, tasks), (following, others) in pairwise(ends):
            is_next = 0 < following < self.count or -1 < row < self.count - 1
            moved = [self._moved(task, 1) for task in tasks] if is_next else ()
            if is_next and (following != row + 1 or moved != others):
                return False
        lengths = (each.shape[self.axis] for each in body.temporaries)
        if any(not isinstance(each, int) or each > self.step for each in lengths):
            return False
        buffers = {each for leaf in self.kernel.leaves for each in leaf.buffers}
        made = dict.fromkeys(range(1, self.count), 0)
        number = 0
        for tile, count in self.kernel.raws:
            row = self._row_of(tile)
            if number in buffers and (
                row == self._repeated or len({made[each] for each in made if each != row}) > 1
            ):
                return False
            if row in made:
                made[row] += count
            number += count
        return True

    def _row_of(self, tile: Shape) -> int:
        return tile[self.axis] // self.step if tile else self.count

    @property
    def _repeated(self) -> int:
        """The row that further ones are as."""
        return self.count - 2

    def extended(self, rows: int) -> TiledKernel:
        """The kernel of so many rows."""
        (body,), added = self.kernel.bodies, rows - self.count
        raws = tuple(
            (tile, count * (1 + added * (self._row_of(tile) == self._repeated)))
            for tile, count in self.kernel.raws
        )
        numbers = dict(zip(_numbers(self.kernel.raws), _numbers(raws), strict=True))
        return replace(
            self.kernel,
            leaves=tuple(leaf.in_buffers(numbers) for leaf in self.kernel.leaves),
            bodies=(replace(body, tasks=tuple(self._tasks(body.tasks, added))),),
            spread=self.kernel.spread * self.count / rows,
            raws=raws,
        )

    def _tasks(self, tasks: Sequence[Task], added: int) -> Iterator[Task]:
        """All tasks: those of the last whole row as often as it takes, the rest behind them."""
        last = self.count - 1
        rows = [self._row(each) for each in tasks]
        places = list(accumulate((1 + added * (row == last) for row in rows), initial=0))
        for is_last, found in groupby(range(len(tasks)), lambda place: rows[place] == last):
            alike = list(found)
            for count in range(added + 1) if is_last else (0,):
                for place in alike:
                    task, later = tasks[place], tuple(places[x] for x in tasks[place].successors)
                    task = replace(task, successors=later) if later else task
                    yield self._moved(task, added if rows[place] > last else count)

    def _row(self, task: Task) -> int:
        starts = [each.offset[self.axis] for each in task.accesses if each.tensor not in self.alike]
        if not starts:
            return self.count
        return max(start for start in starts if isinstance(start, int)) // self.step

    def _moved(self, task: Task, rows: int) -> Task:
        """A task some rows further."""

        def further(access: Access) -> Access:
            offset = list(access.offset)
            start = offset[self.axis]
            assert isinstance(start, int)
            offset[self.axis] = start + rows * self.step
            return Access(tensor=access.tensor, offset=tuple(offset), shape=access.shape)

        if not rows:
            return task
        accesses = (each if each.tensor in self.alike else further(each) for each in task.accesses)
        return replace(task, accesses=tuple(accesses))


def _numbers(raws: Sequence[tuple[Shape, int]]) -> Iterator[int]:
    """The number of the first raw tensor of each entry."""
    return accumulate((count for _, count in raws[:-1]), initial=0)
