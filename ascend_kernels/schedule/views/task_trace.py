"""The operations of a schedule against the clock: in the order of tasks, and for Perfetto.

Cores and times are those of `simulated_task_times`: of upstream's simulator, not of a device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ascend_kernels.schedule.parts import Body, TileOperation
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.simulated_cycles import simulated_cycles
from ascend_kernels.schedule.views.task_times import simulated_leaf_times, simulated_task_times
from simulator.traces.perfetto import Clock, slice_entry, trace_text, track_names
from simulator.traces.trace import PIPES
from tiling.chips import chip_named

_PIPES: Final = {pipe.name: pipe for pipe in PIPES}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRun:
    """One run of an operation on a pipe of a core.

    Attributes:
        core: the number of a vector core.
        pipe: the pipe.
        task, leaf, index: the task in its body, its leaf, the operation's place in it.
        operation: the operation.
        start_cycle, end_cycle: from the start of the body.
    """

    core: int
    pipe: str
    task: int
    leaf: int
    index: int
    operation: TileOperation
    start_cycle: int
    end_cycle: int


def operation_runs(schedule: Schedule, body: Body) -> Iterator[OperationRun]:
    """The operations of one run of a body, task by task; nothing where some are not estimated."""
    by_leaf = {
        place: simulated_leaf_times(schedule.leaves[place])
        for place in {task.leaf for task in body.tasks}
        if place is not None
    }
    for time in simulated_task_times(schedule, body)[0]:
        place = body.tasks[time.task].leaf
        for each in by_leaf[place] if place is not None else ():
            yield OperationRun(
                core=time.core,
                pipe=each.pipe,
                task=time.task,
                leaf=place or 0,
                index=each.index,
                operation=schedule.leaves[place or 0].operations[each.index],
                start_cycle=time.start_cycle + each.start_cycle,
                end_cycle=time.start_cycle + each.end_cycle,
            )


def schedule_perfetto(schedule: Schedule, standing: str) -> Iterator[str]:
    """Write a schedule as JSON for Perfetto: a track for each pipe of each core.

    One run of each body, one behind the other, in microseconds of the chip's clock.

    Args:
        schedule: of any origin.
        standing: what the cycles rest on.

    Yields:
        Pieces of one JSON object; joined they are the file.

    Raises:
        ValueError: no body has cycles.
    """
    if not any(simulated_task_times(schedule, body)[0] for body in schedule.bodies):
        raise ValueError(
            f"{schedule.kernel}: there is nothing to trace; {_without_cycles(schedule)}"
        )
    about = {
        "kernel": schedule.kernel,
        "origin": schedule.origin,
        "release": schedule.release,
        "chip": schedule.chip,
        "note": standing,
    }
    return trace_text(about, _entries(schedule))


def _without_cycles(schedule: Schedule) -> str:
    """The operations for which no body has cycles, each with its dtype."""
    if any(leaf.core == "AIC" for leaf in schedule.leaves):
        return "a leaf of the cube has no cycles here"
    operations = dict.fromkeys(
        f"{each.opcode} of {(*each.inputs, *each.outputs)[0].format}"
        for leaf in schedule.leaves
        for each in leaf.operations
        if each.flag is None and simulated_cycles(each) is None
    )
    return f"upstream's simulator has no cycles for {', '.join(sorted(operations))}"


def _entries(schedule: Schedule) -> Iterator[dict[str, Any]]:
    clock_hz = chip_named(schedule.chip).clock_hz
    start, named = 0, set[int]()
    for body in schedule.bodies:
        clock = Clock(clock_hz=clock_hz, start_cycle=start)
        runs = [each for each in operation_runs(schedule, body) if each.pipe in _PIPES]
        for each in runs:
            if each.core not in named:
                named.add(each.core)
                yield from track_names(each.core)
            yield slice_entry(
                each.operation.opcode,
                clock,
                each.core,
                _PIPES[each.pipe],
                (each.start_cycle, each.end_cycle),
                is_work=True,
                arguments={
                    "body": body.name,
                    "task": each.task,
                    "leaf": each.leaf,
                    "index": each.index,
                    "line": each.operation.place,
                    "cycles": each.end_cycle - each.start_cycle,
                },
            )
        start += max((each.end_cycle for each in runs), default=0)
