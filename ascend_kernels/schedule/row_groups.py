"""Rows of a kernel's tensors that the tasks of a schedule compute without any others.

A group is a run of rows, the same in every tensor that is cut, of which some tasks read and write
all, and no other task one. A call of a part of the rows computes the same of them if its schedule
has the operations and copies of their groups, with every box moved to the first row: `rows_work`
of both are equal.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ascend_kernels.schedule.boxes import Box
from ascend_kernels.schedule.parts import Leaf, TileOperation
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.task_lowering import NotExecutedError
from tiling.grid import Shape

Rows = tuple[int, int]
Work = Counter[tuple[object, ...]]
_Uses = Sequence[tuple[str, Box]]
_CUT = "rows"
"""Stands for all tensors that are cut: their rows are the same."""


_HANDED_OVER: Final = ("EXPAND",)
"""Copies of a column into a tile, which a task makes of a column that another hands over."""


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
        lowering = schedule._lowering(extents, {})
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
        self._schedule, self._uses, self._extents = schedule, tasks.uses, extents
        self._operations = [_operations_of(leaf) for leaf in schedule.leaves]

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
        """The operations and copies of groups, and how often, seen from a row.

        Args:
            groups: some neighbours; None: all tasks are meant.
            first: the row.
        """
        whole = range(len(self._uses))
        tasks = whole if groups is None else (task for group in groups for task in group.tasks)
        work: Work = Counter()
        for task in tasks:
            for leaf in {box.leaf for _, box in self._uses[task]}:
                work.update(self._operations[leaf])
            for name, box in self._uses[task]:
                if name not in self._extents:
                    continue  # what tasks hand to each other is where they are cut
                opcode = self._schedule.leaves[box.leaf].operations[box.operation].opcode
                begin = first if name in self.cut else 0
                (low, high), *others = box.spans or ((0, 0),)
                work[(opcode, name, low - begin, high - begin, *others)] += 1
        return work


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


def _operations_of(leaf: Leaf) -> Work:
    """The operations of a leaf between tiles, wherever in UB these lie."""
    return Counter(
        _signature(each)
        for each in leaf.operations
        if each.flag is None
        and each.opcode not in _HANDED_OVER
        and all(x.buffer is not None for x in (*each.inputs, *each.outputs))
    )


def _signature(operation: TileOperation) -> tuple[object, ...]:
    sides = (
        tuple((x.format, x.shape, x.valid_shape) for x in side)
        for side in (operation.inputs, operation.outputs)
    )
    return (
        *(operation.opcode, operation.mode, operation.saturate, operation.scalar),
        *(operation.scalar_first, operation.axis, operation.axes, operation.function),
        *(operation.file, operation.line, *sides),
    )
