"""Times of a schedule in cycles: of the operations of a leaf on its pipes, of tasks on cores.

In the timelines of `leaf_times` and `task_times` the cycles of an operation are those that
upstream's scheduler counts (`TileOperation.latency`), the same for every opcode. `schedule_cycles`
goes by those of upstream's simulator. Neither is measured on a device.
"""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.schedule.body_runs import body_runs
from ascend_kernels.schedule.parts import Body, Leaf
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.simulated_cycles import (
    FORMS,
    TASKS,
    Forms,
    body_cycles,
    leaf_cycles,
    operation_spans,
    task_spans,
)
from tiling.chips import chip_named


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationTime:
    """The cycles in which an operation of a leaf has its pipe, from the start of the task.

    Attributes:
        index: the place of the operation in the leaf.
        pipe: the queue that it runs in; of a flag, the one that sets it or waits for it.
        start_cycle, end_cycle: a wait ends when its flag is set.
    """

    index: int
    pipe: str
    start_cycle: int
    end_cycle: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleCycles:
    """The cycles of a schedule by a named model; none is the time of a device.

    Attributes:
        model: the name of the model.
        cycles: of all runs of all bodies, one after another; None where an operation, a task of
            the cube or a number of runs has none.
        not_estimated: the opcodes that have no cycles, and in words what else has none.
        cores: the number of vector cores of the chip.
        tasks: the number of tasks that run, of all runs; of a body whose number of runs is open,
            those of one.
    """

    model: str
    cycles: int | None
    not_estimated: tuple[str, ...]
    cores: int
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTime:
    """The cycles in which a task has its core, from the start of the body.

    Attributes:
        task: its place in the body.
        core: the number of a vector core.
        start_cycle, end_cycle: equal where nothing runs.
    """

    task: int
    core: int
    start_cycle: int
    end_cycle: int


def leaf_times(leaf: Leaf) -> tuple[OperationTime, ...]:
    """The times of each operation and flag, pipes side by side, each in the order of issue.

    Empty where an operation has no cycles, as in a schedule of origin "ascendc".
    """
    free: dict[str, int] = {}
    flags: dict[tuple[str, str, int], int] = {}
    found = []
    for index, each in enumerate(leaf.operations):
        flag, due = each.flag, 0
        if flag is None and not each.latency:
            return ()
        pipe = each.pipe
        if flag is not None:
            key = flag.setter, flag.waiter, flag.event_id
            is_wait = each.opcode == "SYNC_DST"
            pipe = flag.waiter if is_wait else flag.setter
            due = flags.get(key, 0) if is_wait else 0
        start = free.get(pipe, 0)
        free[pipe] = max(start, due) + each.latency
        if each.opcode == "SYNC_SRC":
            flags[key] = free[pipe]
        found.append(OperationTime(index=index, pipe=pipe, start_cycle=start, end_cycle=free[pipe]))
    return tuple(found)


def task_times(schedule: Schedule, body: Body) -> tuple[TaskTime, ...]:
    """The times of one run of a body: each task, in order, takes the core that is free first.

    A task begins when all whose results it needs are done. Empty where a leaf of it has no cycles
    or is one of the cube.
    """
    cores = [0] * chip_named(schedule.chip).vector_cores
    ready = [0] * len(body.tasks)
    cycles = {}
    for place in {each.leaf for each in body.tasks if each.leaf is not None}:
        leaf = schedule.leaves[place]
        times = leaf_times(leaf)
        if leaf.core == "AIC" or (leaf.operations and not times):
            return ()
        cycles[place] = max((each.end_cycle for each in times), default=0)
    found = []
    for place, task in enumerate(body.tasks):
        core = min(range(len(cores)), key=lambda each: (max(cores[each], ready[place]), each))
        start = max(cores[core], ready[place]) if task.leaf is not None else ready[place]
        end = start + (cycles[task.leaf] if task.leaf is not None else 0)
        if task.leaf is not None:
            cores[core] = end
        for successor in task.successors:
            ready[successor] = max(ready[successor], end)
        found.append(TaskTime(task=place, core=core, start_cycle=start, end_cycle=end))
    return tuple(found)


def simulated_leaf_times(leaf: Leaf) -> tuple[OperationTime, ...]:
    """The times of each operation as upstream's simulator counts them; flags take none.

    Empty where an operation, or a leaf of the cube, is not estimated.
    """
    spans, _ = operation_spans(leaf)
    return tuple(
        OperationTime(
            index=place, pipe=leaf.operations[place].pipe, start_cycle=start, end_cycle=end
        )
        for place, (start, end) in (spans or {}).items()
    )


def simulated_task_times(schedule: Schedule, body: Body) -> tuple[tuple[TaskTime, ...], int | None]:
    """The times of the tasks of one run of a body, by the model "tasks", and its cycles.

    None, and no times, where a leaf of it is not estimated. Tasks that run nothing have no time.
    """
    cycles = [0] * len(schedule.leaves)
    for place in {each.leaf for each in body.tasks if each.leaf is not None}:
        known, _ = leaf_cycles(schedule.leaves[place])
        if known is None:
            return (), None
        cycles[place] = known
    spans, end = task_spans(body, cycles, chip_named(schedule.chip).vector_cores)
    return tuple(
        TaskTime(
            task=place,
            core=core,
            start_cycle=start,
            end_cycle=start + cycles[body.tasks[place].leaf or 0],
        )
        for place, (core, start) in sorted(spans.items())
    ), end


def schedule_cycles(schedule: Schedule, forms: Forms = FORMS) -> ScheduleCycles:
    """The cycles of all bodies with their numbers of runs, by the model "tasks".

    Those that upstream's simulator counts, and no device: see `simulated_cycles`.

    Args:
        schedule: of upstream's compiler or of the planner.
        forms: the cycles of operations.
    """
    by_leaf = [leaf_cycles(leaf, forms) for leaf in schedule.leaves]
    missing = dict.fromkeys(sorted(frozenset().union(*(opcodes for _, opcodes in by_leaf))))
    if any(leaf.core == "AIC" for leaf in schedule.leaves):
        missing["a leaf of the cube"] = None
    cores = chip_named(schedule.chip).vector_cores
    cycles = tasks = 0
    for place, runs in body_runs(schedule.steps, schedule.extents).items():
        if runs is None:
            missing["a loop of an open number of runs"] = None
        body, count = schedule.bodies[place], 1 if runs is None else runs
        tasks += count * body.task_count
        if not missing:
            cycles += count * body_cycles(body, [known or 0 for known, _ in by_leaf], cores)
    return ScheduleCycles(
        model=TASKS,
        cycles=None if missing else cycles,
        not_estimated=tuple(missing),
        cores=cores,
        tasks=tasks,
    )
