"""Rows of a kernel's tensors that the tasks of a schedule compute without any others.

A group is a run of rows, the same in every tensor that is cut, of which some tasks read and write
all, and no other task one. A call of a part of the rows computes the same of them if every box that
its tasks write has its elements by the same operations from the same boxes, all of them moved to
the first row: `RowTasks.work` of both are equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ascend_kernels.schedule.boxes import Box
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.step_lowering import NotExecutedError
from ascend_kernels.schedule.views.tile_flow import TileFlow, Work, leaf_steps
from tiling.grid import Shape

Rows = tuple[int, int]
_Uses = Sequence[tuple[str, Box]]
_CUT = "rows"
"""Stands for all tensors that are cut: their rows are the same."""


class NotCutError(ValueError):
    """A call whose rows depend on each other, or are not known to be apart; gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """Rows that are computed without others.

    Attributes:
        rows: the first one, and the one behind the last.
        tasks: that compute them, by their place in the order of execution.
    """

    rows: Rows
    tasks: tuple[int, ...]


@dataclass(slots=True)
class _TaskBoxes:
    """The boxes of each task, in order."""

    uses: list[_Uses] = field(default_factory=list)

    def add(self, after: Iterable[int], uses: Sequence[tuple[str, Box]]) -> None:
        """Take the next task."""
        self.uses.append(tuple(uses))

    def close_run(self) -> None:
        """Nothing is kept of runs."""


class RowTasks:
    """The tasks of a schedule by the rows that they compute.

    Args:
        schedule: of a call.
        extents: the shape of each of its parameters.

    Raises:
        NotCutError: numbers in tensors steer the kernel, tasks have places that are not known, or
            outputs have different numbers of rows.
    """

    def __init__(self, schedule: Schedule, extents: Mapping[str, Shape]) -> None:
        if schedule.numbers_read or schedule.not_executed:
            raise NotCutError("its loops, offsets or tasks go by what only a run tells")
        tasks = _TaskBoxes()
        lowering = schedule.lowering(extents, {})
        lowering.order = tasks
        try:
            for _ in lowering.tasks(schedule.steps, {}):
                pass
        except NotExecutedError as error:
            raise NotCutError(str(error)) from error
        boxes = [box for uses in tasks.uses for _, box in uses]
        if lowering.reasons or any(box.spans is None for box in boxes):
            raise NotCutError("the places of its tasks are known only in a run")
        rows = {extents[each.name][0] for each in schedule.parameters if each.is_written}
        if len(rows) != 1:
            raise NotCutError("its outputs have different numbers of rows")
        (self.count,) = rows
        self.cut = frozenset(name for name, shape in extents.items() if shape[0] == self.count)
        self._uses, self._extents = tasks.uses, extents
        self._leaves = [leaf_steps(leaf) for leaf in schedule.leaves]

    def groups(self) -> tuple[RowGroup, ...]:
        """The rows that do not depend on each other, in order.

        Raises:
            NotCutError: all of them depend on each other.
        """
        groups = []
        for members in _apart(self._uses, self.cut):
            rows = [
                spans[0]
                for task in members
                for name, box in self._uses[task]
                if name in self.cut and (spans := box.spans)
            ]
            if not rows:
                raise NotCutError("some of its tasks use no rows")
            whole = min(a for a, _ in rows), max(b for _, b in rows)
            groups.append(RowGroup(rows=whole, tasks=tuple(members)))
        groups.sort(key=lambda group: group.rows)
        if any(a.rows[1] > b.rows[0] for a, b in itertools.pairwise(groups)):
            raise NotCutError("rows that depend on each other lie between others")
        if len(groups) < 2:
            raise NotCutError("all its rows depend on each other")
        return tuple(groups)

    def work(self, groups: Iterable[RowGroup] | None = None, first: int = 0) -> Work:
        """The boxes that groups write, each with the way its elements came, seen from a row.

        Args:
            groups: some neighbours; None: all tasks are meant.
            first: the row.
        """
        whole = range(len(self._uses))
        tasks = whole if groups is None else (task for group in groups for task in group.tasks)
        flow = TileFlow(self._leaves, frozenset(self._extents), self.cut, first)
        for task in sorted(tasks):
            flow.run(self._uses[task])
        return flow.written


def _apart(uses: Sequence[_Uses], cut: frozenset[str]) -> Iterator[list[int]]:
    """Tasks that share no rows, and no memory that one of them writes."""
    parents = list(range(len(uses)))

    def root(task: int) -> int:
        while parents[task] != task:
            parents[task] = parents[parents[task]]
            task = parents[task]
        return task

    written = {name for task in uses for name, box in task if box.is_written}
    places: dict[str, list[tuple[int, int, int]]] = {}
    for task, boxes in enumerate(uses):
        for name, box in boxes:
            if name in cut or name in written:
                first, last = (box.spans or ((0, 1),))[0]
                places.setdefault(_CUT if name in cut else name, []).append((first, last, task))
    for spans in places.values():
        end, of = -1, 0
        for first, last, task in sorted(spans):
            if first < end:
                parents[root(task)] = root(of)
            if last > end:
                end, of = last, task
    members: dict[int, list[int]] = {}
    for task, boxes in enumerate(uses):
        if boxes:
            members.setdefault(root(task), []).append(task)
    yield from members.values()
