"""The operations of a schedule against the clock: in the order of tasks, and for Perfetto.

Cores and times are those of `task_times`; none is measured.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ascend_kernels.schedule.parts import Body, Flag, TileOperation
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.task_times import leaf_times, task_times
from simulator.traces.perfetto import Clock, flow_end, slice_entry, trace_text, track_names
from simulator.traces.trace import PIPES
from tiling.chips import chip_named

_PIPES: Final = {pipe.name: pipe for pipe in PIPES}
_FLAG_WORDS: Final = {"SYNC_SRC": "SetFlag", "SYNC_DST": "WaitFlag"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRun:
    """One run of an operation or a flag on a pipe of a core.

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

    @property
    def is_wait(self) -> bool:
        """True if it waits for a flag."""
        return self.operation.opcode == "SYNC_DST"

    @property
    def label(self) -> str:
        """The opcode, or the flag that it sets or waits for."""
        flag, word = self.operation.flag, _FLAG_WORDS.get(self.operation.opcode)
        if flag is None or word is None:
            return self.operation.opcode
        return f"{word} {_flag_name(flag)}"


def operation_runs(schedule: Schedule, body: Body) -> Iterator[OperationRun]:
    """The operations of one run of a body, task by task; nothing where `task_times` has none."""
    by_leaf = {
        place: leaf_times(schedule.leaves[place])
        for place in {task.leaf for task in body.tasks}
        if place is not None
    }
    for time in task_times(schedule, body):
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
    if not any(task_times(schedule, body) for body in schedule.bodies):
        raise ValueError(f"{schedule.kernel}: no body has cycles; there is nothing to trace")
    about = {
        "kernel": schedule.kernel,
        "origin": schedule.origin,
        "release": schedule.release,
        "chip": schedule.chip,
        "note": standing,
    }
    return trace_text(about, _entries(schedule))


def _entries(schedule: Schedule) -> Iterator[dict[str, Any]]:
    clock_hz = chip_named(schedule.chip).clock_hz
    start, flows, named = 0, 0, set[int]()
    for body in schedule.bodies:
        clock = Clock(clock_hz=clock_hz, start_cycle=start)
        pending: dict[tuple[int, Flag], deque[tuple[int, OperationRun]]] = defaultdict(deque)
        waits: dict[tuple[int, int], tuple[int, int]] = {}
        runs = [each for each in operation_runs(schedule, body) if each.pipe in _PIPES]
        for each in runs:
            flag = each.operation.flag
            if flag is None or each.label == each.operation.opcode:
                continue
            key = each.task, flag
            if not each.is_wait:
                pending[key].append((flows, each))
                flows += 1
            elif pending[key]:
                number, setter = pending[key].popleft()
                waits[each.task, each.index] = number, setter.end_cycle
                waits[setter.task, setter.index] = number, setter.start_cycle
        for each in runs:
            if each.core not in named:
                named.add(each.core)
                yield from track_names(each.core)
            core, pipe, flag = each.core, _PIPES[each.pipe], each.operation.flag
            yield slice_entry(
                each.label,
                clock,
                core,
                pipe,
                (each.start_cycle, each.end_cycle),
                is_work=flag is None,
                arguments={
                    "body": body.name,
                    "task": each.task,
                    "leaf": each.leaf,
                    "index": each.index,
                    "line": each.operation.place,
                    "cycles": each.end_cycle - each.start_cycle,
                },
            )
            if flag is not None and (each.task, each.index) in waits:
                number, cycle = waits[each.task, each.index]
                yield flow_end(
                    _flag_name(flag),
                    clock,
                    core,
                    pipe,
                    max(each.start_cycle, cycle),
                    number=number,
                    is_wait=each.is_wait,
                )
        start += max((each.end_cycle for each in runs), default=0)


def _flag_name(flag: Flag) -> str:
    return f"{flag.setter}_{flag.waiter} {flag.event_id}"
