"""A measured timeline of a schedule beside the times of this package, by task and operation.

The cycles of this package are those of upstream's simulator, see `simulated_cycles`; a device may
take others. So what is missing, in another order or before what it needs is told apart from what
takes longer or shorter.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ascend_kernels.schedule.parts import Body, Leaf, Task
from ascend_kernels.schedule.reader.timeline_files import (
    MeasuredOperation,
    MeasuredTask,
    TaskPlace,
    Timeline,
)
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.views.task_times import (
    TaskTime,
    simulated_leaf_times,
    simulated_task_times,
)

SLACK: Final = 1.1
"""So many times longer or shorter is no difference, beside two ticks of the clock."""
MISSING: Final = "missing"
_PIPES: Final = {"MTE_IN": "MTE2", "VECTOR_ALU": "V", "MTE_OUT": "MTE3", "PIPE_S": "S"}
"""The pipes as upstream's simulator names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskComparison:
    """A task of one run of a body.

    Attributes:
        run: of the body, its sequence and number.
        body, task, leaf: its places in the schedule.
        core: that had it; empty if it is missing.
        start_cycle, cycles: as measured, from the start of the run; None if it is missing.
        known_cycles: by this package; None where they are not estimated.
        words: what differs.
    """

    run: tuple[int, int]
    body: int
    task: int
    leaf: int
    core: str = ""
    start_cycle: float | None = None
    cycles: float | None = None
    known_cycles: int | None
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationComparison:
    """An operation of a leaf, over all tasks that a timeline has of the leaf.

    Attributes:
        leaf, index: its places in the schedule.
        opcode, pipe, place: what it is, and the source line.
        runs: how often the timeline has it.
        cycles: as measured, the median; None if it is missing.
        known_cycles: by this package; None where they are not estimated.
        words: what differs.
    """

    leaf: int
    index: int
    opcode: str
    pipe: str
    place: str
    runs: int
    cycles: float | None
    known_cycles: int | None
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineComparison:
    """A timeline beside the times of this package.

    Attributes:
        timeline: as it was read.
        tasks: all of the schedule's runs; empty where the timeline has operations.
        operations: all of the leaves that ran; empty where it has tasks.
        unknown: in words, what the timeline has and the schedule has not.
    """

    timeline: Timeline
    tasks: tuple[TaskComparison, ...]
    operations: tuple[OperationComparison, ...]
    unknown: tuple[str, ...]

    @property
    def differing(self) -> int:
        """The number of tasks or operations that differ, with those that are unknown."""
        both: Iterable[Any] = (*self.tasks, *self.operations)
        return sum(bool(each.words) for each in both) + len(self.unknown)


def compare_timeline(
    schedule: Schedule, places: Sequence[TaskPlace], timeline: Timeline
) -> TimelineComparison:
    """Compare a timeline with the times of this package.

    Args:
        schedule: of which the timeline is.
        places: the tasks that the numbers of the timeline mean.
        timeline: as measured.

    Raises:
        ValueError: operations of several sequences, which only tasks are told apart by.
    """
    if timeline.operations:
        operations, unknown = _operations(schedule, places, timeline)
        return TimelineComparison(
            timeline=timeline, tasks=(), operations=tuple(operations), unknown=tuple(unknown)
        )
    held: dict[tuple[int, int], list[MeasuredTask]] = defaultdict(list)
    for each in timeline.tasks:
        held[each.key].append(each)
    known = {place.key for place in places}
    return TimelineComparison(
        timeline=timeline,
        tasks=tuple(_tasks(schedule, places, held, timeline.tick_cycles)),
        operations=(),
        unknown=tuple(
            f"task {number} of sequence {sequence} on {each.core}"
            for (sequence, number), runs in held.items()
            if (sequence, number) not in known
            for each in runs
        ),
    )


# --- Tasks ---------------------------------------------------------------------------------------


def _tasks(
    schedule: Schedule,
    places: Sequence[TaskPlace],
    held: Mapping[tuple[int, int], Sequence[MeasuredTask]],
    tick: float,
) -> Iterator[TaskComparison]:
    by_run: dict[tuple[int, int], list[TaskPlace]] = defaultdict(list)
    for place in places:
        by_run[place.run].append(place)
    for of_run in by_run.values():
        body = schedule.bodies[of_run[0].body]
        times = _times(schedule, body, [x.task for x in sorted(of_run, key=lambda x: x.key)])
        first = {x.task: held[x.key][0] for x in of_run if x.key in held}
        start = min((each.start_cycle for each in first.values()), default=0.0)
        words = dict(_order(first, {x: times[x].start_cycle for x in first if x in times}))
        for place in of_run:
            measured = held.get(place.key, ())
            time = times.get(place.task)
            leaf = body.tasks[place.task].leaf
            assert leaf is not None
            known = None if time is None else time.end_cycle - time.start_cycle
            told = [f"there {len(measured)} times"] if len(measured) > 1 else []
            told += [MISSING] if not measured else []
            told += words.get(place.task, [])
            for each in measured[:1]:
                told += [
                    f"begins before task {needed} ends"
                    for needed in _needed(body.tasks, place.task)
                    if needed in first and each.start_cycle < first[needed].end_cycle - tick
                ]
                told += _duration(each.end_cycle - each.start_cycle, known, tick)
            yield TaskComparison(
                run=place.run,
                body=place.body,
                task=place.task,
                leaf=leaf,
                core=measured[0].core if measured else "",
                start_cycle=measured[0].start_cycle - start if measured else None,
                cycles=measured[0].end_cycle - measured[0].start_cycle if measured else None,
                known_cycles=known,
                words=tuple(told),
            )


def _times(schedule: Schedule, body: Body, order: Sequence[int]) -> dict[int, TaskTime]:
    """The times of tasks that are handed out in an order, which is that of their numbers."""
    rest = [place for place in range(len(body.tasks)) if place not in set(order)]
    listed = [*rest, *order]
    new = {place: at for at, place in enumerate(listed)}
    tasks = tuple(
        replace(body.tasks[x], successors=tuple(sorted(new[y] for y in body.tasks[x].successors)))
        for x in listed
    )
    found = simulated_task_times(schedule, replace(body, tasks=tasks))[0]
    return {listed[each.task]: each for each in found}


def _needed(tasks: Sequence[Task], task: int) -> list[int]:
    """The tasks whose results one needs, also through those that run nothing."""
    found: list[int] = []
    for place, each in enumerate(tasks):
        if task in each.successors:
            found += [place] if each.leaf is not None else _needed(tasks, place)
    return found


def _order(
    first: Mapping[int, MeasuredTask], known: Mapping[int, int]
) -> Iterator[tuple[int, list[str]]]:
    """The tasks that begin out of turn; those that begin together have the order known here."""
    both = sorted(known)
    here = sorted(both, key=lambda task: (known[task], task))
    turn = {task: place for place, task in enumerate(here)}
    there = sorted(both, key=lambda task: (first[task].start_cycle, turn[task]))
    for place, task in enumerate(there):
        if turn[task] != place:
            yield task, [f"begins as number {place + 1}, not {turn[task] + 1}"]


def _duration(cycles: float, known: int | None, tick: float) -> list[str]:
    if known is None or known / SLACK - 2 * tick <= cycles <= known * SLACK + 2 * tick:
        return []
    return [f"takes {cycles / max(known, 1):.2f} times as long"]


# --- Operations ----------------------------------------------------------------------------------


def _operations(
    schedule: Schedule, places: Sequence[TaskPlace], timeline: Timeline
) -> tuple[list[OperationComparison], list[str]]:
    if len({place.key[0] for place in places}) > 1:
        raise ValueError("operations of several sequences cannot be told apart; compare the tasks")
    leaf_of = {x.key[1]: schedule.bodies[x.body].tasks[x.task].leaf for x in places}
    by_task: dict[int, list[MeasuredOperation]] = defaultdict(list)
    unknown = []
    for each in timeline.operations:
        if each.number in leaf_of:
            by_task[each.number].append(each)
        else:
            unknown.append(f"{each.opcode} of task {each.number}")
    by_leaf: dict[int, list[list[MeasuredOperation]]] = defaultdict(list)
    for number, leaf in leaf_of.items():
        assert leaf is not None
        by_leaf[leaf].append(by_task[number])
    found: list[OperationComparison] = []
    for place, runs in sorted(by_leaf.items()):
        compared, others = _leaf(place, schedule.leaves[place], runs, timeline.tick_cycles)
        found += compared
        unknown += others
    return found, unknown


def _leaf(
    place: int, leaf: Leaf, runs: Sequence[Sequence[MeasuredOperation]], tick: float
) -> tuple[list[OperationComparison], list[str]]:
    """The operations of a leaf, each beside the run of its opcode with the same turn in a task."""
    times = {each.index: each for each in simulated_leaf_times(leaf)}
    listed = [index for index, each in enumerate(leaf.operations) if each.flag is None]
    issued = sorted(listed, key=lambda x: (times[x].start_cycle if times else 0, x))
    named: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index in issued:
        named[leaf.operations[index].pipe, leaf.operations[index].opcode].append(index)
    taken: dict[int, list[float]] = defaultdict(list)
    turns: dict[int, set[str]] = defaultdict(set)
    unknown: list[str] = []
    for run in runs:
        counts: dict[tuple[str, str], int] = defaultdict(int)
        there: dict[str, list[int]] = defaultdict(list)
        for each in run:
            key = _PIPES.get(each.pipe, each.pipe), each.opcode
            at = counts[key]
            counts[key] += 1
            if at >= len(named.get(key, ())):
                unknown.append(f"{each.opcode} number {at + 1} on {key[0]} of task {each.number}")
                continue
            index = named[key][at]
            taken[index].append(each.end_cycle - each.start_cycle)
            there[key[0]].append(index)
        for indices in there.values():
            here = [index for index in issued if index in set(indices)]
            for index, other in zip(here, indices, strict=True):
                if index != other:
                    turns[index].add(f"{leaf.operations[other].opcode} is in its turn")
    found = []
    for index in listed:
        operation, time = leaf.operations[index], times.get(index)
        known = None if time is None else time.end_cycle - time.start_cycle
        if not taken[index] and operation.opcode in ("VIEW", "ASSEMBLE"):
            continue  # those take no pipe
        cycles = statistics.median(taken[index]) if taken[index] else None
        absent = len(runs) - len(taken[index])
        words = [MISSING if cycles is None else f"missing in {absent} tasks"] if absent else []
        words += sorted(turns[index])
        words += [] if cycles is None else _duration(cycles, known, tick)
        found.append(
            OperationComparison(
                leaf=place,
                index=index,
                opcode=operation.opcode,
                pipe=operation.pipe,
                place=operation.place,
                runs=len(taken[index]),
                cycles=cycles,
                known_cycles=known,
                words=tuple(words),
            )
        )
    return found, unknown
