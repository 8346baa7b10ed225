"""Two schedules of one kernel, beside each other: in which parts they are equal."""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ascend_kernels.schedule.parts import (
    Body,
    Branch,
    ControlStep,
    Leaf,
    Loop,
    Renewal,
    Run,
    Task,
    TileOperand,
    TileOperation,
)
from ascend_kernels.schedule.scalars import Scalar
from ascend_kernels.schedule.schedule import DUMP, Schedule
from simulator.machine.tile_opcodes import TILE_OPCODES

PARTS: Final = ("steps", "leaves", "tasks", "operations", "order", "addresses", "peak", "flags")
"""Parts in which two schedules are compared: control flow, with results left to other bodies; leaf
functions, by number; tasks, by all that their copies move and the tasks that wait for them; of each
leaf the multiset of operations, their order, the bytes of operands, the peak of UB, and the syncs
with their places. Bodies are compared in the order in which the steps name them."""


def leaf_in(task: Task, leaf: Leaf) -> Leaf:
    """A leaf without names, as a task runs it.

    The last pass writes the extents of tiles as numbers of the task; and to scratch it gives those
    of the result beside it, which say nothing of scratch.
    """

    def known(operand: TileOperand) -> TileOperand:
        return replace(operand, valid_shape=tuple(map(extent, operand.valid_shape)))

    def extent(each: Scalar) -> Scalar:
        match each:
            case (_, int(access), int(axis)):
                return task.accesses[access].shape[axis]
        return each

    operations = []
    for each in leaf.operations:
        results = [known(x) for x in each.outputs[:1]]
        scratch = [replace(x, valid_shape=x.shape) for x in each.outputs[1:]]
        inputs = tuple(known(x) for x in each.inputs)
        numbers = tuple(map(extent, each.numbers))
        found = replace(each, inputs=inputs, outputs=(*results, *scratch), numbers=numbers)
        operations.append(found)
    buffers = tuple(replace(each, name="") for each in leaf.buffers)
    return replace(leaf, name="", operations=tuple(operations), buffers=buffers)


def computing(schedule: Schedule) -> dict[int, Leaf]:
    """The leaves in which something runs, as their first task runs them."""
    tasks: dict[int, Task] = {}
    for task in (task for body in schedule.bodies for task in body.tasks):
        if task.leaf is not None:
            tasks.setdefault(task.leaf, task)
    listed = enumerate(schedule.leaves)
    return {
        place: leaf_in(tasks[place], x) if place in tasks else x
        for place, x in listed
        if x.core != "HUB"
    }


def tasks_of(schedule: Schedule, body: Body) -> list[Any]:
    """Each task of a body by its leaf, all that its copies move, and the tasks that wait for it."""
    leaves: dict[int | None, int] = {x: k for k, x in enumerate(computing(schedule))}
    parameters = {each.name for each in schedule.parameters}
    found = []
    for task in body.tasks:
        moved = []
        for each in task.accesses if task.leaf in leaves else ():
            name = each.tensor if each.tensor in parameters else bool(each.tensor)
            moved.append((name, each.offset, each.shape if each.tensor else ()))
        found.append((leaves.get(task.leaf), moved, len(task.successors)))
    return sorted(found, key=repr)


def in_order_of_steps(schedule: Schedule) -> Schedule:
    """The same with bodies as the steps name them first, and leaves as these bodies run them.

    A dump lists bodies as they were compiled, and has a loop of one iteration around all its steps,
    which is left out. Variables of loops are named by the depth of their loop.
    """
    steps = schedule.steps
    match steps:
        case (Loop(begin=0, end=1, step=1, steps=inner),) if schedule.origin == DUMP:
            steps = inner
    steps, variables = _with_variables(steps)
    bodies_named = [
        _named(body, variables.get(place, {})) for place, body in enumerate(schedule.bodies)
    ]
    schedule = replace(schedule, bodies=tuple(bodies_named))
    listed = dict.fromkeys([*_bodies_run(steps), *range(len(schedule.bodies))])
    bodies = [schedule.bodies[place] for place in listed]
    leaves = dict.fromkeys(
        leaf
        for body in bodies
        for leaf in sorted({task.leaf for task in body.tasks if task.leaf is not None})
    )
    places = {leaf: place for place, leaf in enumerate((*leaves, *_others(schedule, leaves)))}

    def renumbered(task: Task) -> Task:
        return task if task.leaf is None else replace(task, leaf=places[task.leaf])

    return replace(
        schedule,
        leaves=tuple(schedule.leaves[leaf] for leaf in places),
        bodies=tuple(replace(x, tasks=tuple(map(renumbered, x.tasks))) for x in bodies),
        steps=_with_bodies(steps, {place: number for number, place in enumerate(listed)}),
    )


def _with_variables(
    given: Sequence[ControlStep],
) -> tuple[tuple[ControlStep, ...], dict[int, Mapping[str, str]]]:
    """The steps with loops named by depth, and the names of the variables of each body."""
    found: dict[int, Mapping[str, str]] = {}

    def named(steps: Sequence[ControlStep], names: Mapping[str, str]) -> tuple[ControlStep, ...]:
        made: list[ControlStep] = []
        for step in steps:
            match step:
                case Run(body=body):
                    found.setdefault(body, names)
                case Loop(variable=variable, steps=inner):
                    depth = f"loop {len({*names.values()}) + 1}"
                    bounds = (_named(each, names) for each in (step.begin, step.end, step.step))
                    begin, end, by = bounds
                    inside = named(inner, {**names, variable: depth})
                    step = Loop(variable=depth, begin=begin, end=end, step=by, steps=inside)
                case Branch(condition=condition, steps=inner, otherwise=others):
                    step = Branch(
                        condition=_named(condition, names),
                        steps=named(inner, names),
                        otherwise=named(others, names),
                    )
            made.append(step)
        return tuple(made)

    return named(given, {}), found


def _named(given: Any, names: Mapping[str, str]) -> Any:
    """Scalars, or parts that hold some, with other names of variables."""
    match given:
        case ("symbol", str(name)):
            return "symbol", names.get(name, name)
        case tuple():
            return tuple(_named(each, names) for each in given)
        case Body(tasks=tasks, temporaries=temporaries) if names:
            accesses = (
                replace(
                    each,
                    accesses=tuple(
                        replace(x, offset=_named(x.offset, names), shape=_named(x.shape, names))
                        for x in each.accesses
                    ),
                )
                for each in tasks
            )
            shaped = (replace(each, shape=_named(each.shape, names)) for each in temporaries)
            return replace(given, tasks=tuple(accesses), temporaries=tuple(shaped))
    return given


def _others(schedule: Schedule, leaves: Collection[int]) -> Iterator[int]:
    return (leaf for leaf in range(len(schedule.leaves)) if leaf not in leaves)


def _bodies_run(steps: Sequence[ControlStep]) -> Iterator[int]:
    for step in steps:
        match step:
            case Run(body=body):
                yield body
            case Loop(steps=inner):
                yield from _bodies_run(inner)
            case Branch(steps=inner, otherwise=others):
                yield from _bodies_run((*inner, *others))


def _with_bodies(
    steps: Sequence[ControlStep], places: Mapping[int, int]
) -> tuple[ControlStep, ...]:
    """The steps with other places of bodies."""

    def renumbered(step: ControlStep) -> ControlStep:
        match step:
            case Run(body=body):
                return Run(body=places[body])
            case Loop(steps=inner):
                return replace(step, steps=_with_bodies(inner, places))
            case Branch(steps=inner, otherwise=others):
                held, failed = _with_bodies(inner, places), _with_bodies(others, places)
                return replace(step, steps=held, otherwise=failed)
        return step

    return tuple(map(renumbered, steps))


def flow_of(schedule: Schedule) -> object:
    """The steps, and by slot that is read the bodies that use it, with the shape.

    Slots are numbered as the steps renew them; those that none renews have no number.
    """
    numbers: dict[int, int] = {}

    def renewed(steps: Sequence[ControlStep]) -> tuple[ControlStep, ...]:
        made: list[ControlStep] = []
        for step in steps:
            match step:
                case Renewal(slots=slots):
                    found = tuple(numbers.setdefault(x, len(numbers)) for x in sorted(slots))
                    step = replace(step, slots=found)
                case Loop(steps=inner):
                    step = replace(step, steps=renewed(inner))
                case Branch(steps=inner, otherwise=others):
                    step = replace(step, steps=renewed(inner), otherwise=renewed(others))
            made.append(step)
        return tuple(made)

    steps = renewed(schedule.steps)
    used: dict[int, list[tuple[object, ...]]] = {}
    for place, body in enumerate(schedule.bodies):
        for each in body.temporaries:
            kind = place, each.format.name, each.shape, each.is_partial
            for slot in each.writes_slots:
                used.setdefault(slot, []).append(("writes", *kind))
            if each.reads_slot is not None:
                used.setdefault(each.reads_slot, []).append(("reads", *kind))
    slots = (
        (numbers.get(slot), sorted(found, key=repr))
        for slot, found in used.items()
        if any(kind == "reads" for kind, *_ in found)
    )
    return steps, sorted(slots, key=repr)


def has_spill(schedule: Schedule) -> bool:
    """True if a task copies to memory of its own."""
    accesses = (x for body in schedule.bodies for task in body.tasks for x in task.accesses)
    return any(not each.tensor and each.offset for each in accesses)


def differences(schedule: Schedule, other: Schedule) -> tuple[str, ...]:
    """The parts in which two schedules differ, of `PARTS`, in its order."""
    schedule, other = in_order_of_steps(schedule), in_order_of_steps(other)
    bodies = (schedule.bodies, other.bodies)
    leaves, others = ([*computing(each).values()] for each in (schedule, other))
    has_dump = DUMP in (schedule.origin, other.origin)
    of_leaves, of_others = (
        [[*_operations(leaf, has_dump=has_dump)] for leaf in x] for x in (leaves, others)
    )
    tasks, other_tasks = (
        # The order in which a leaf copies is the order of its operations.
        [[(leaf, sorted(moved, key=repr), count) for leaf, moved, count in of] for of in found]
        for found in (
            [tasks_of(x, body) for body in found]
            for x, found in zip((schedule, other), bodies, strict=True)
        )
    )
    equal = {
        "steps": flow_of(schedule) == flow_of(other),
        "leaves": len(leaves) == len(others),
        "tasks": [sorted(x, key=repr) for x in tasks] == [sorted(x, key=repr) for x in other_tasks],
        "operations": [collections.Counter(each) for each in of_leaves]
        == [collections.Counter(each) for each in of_others],
        "order": of_leaves == of_others,
        "addresses": [[*_addresses(x)] for x in leaves] == [[*_addresses(x)] for x in others],
        "peak": [x.peak_ub_bytes for x in leaves] == [x.peak_ub_bytes for x in others],
        "flags": [[*_flags(x)] for x in leaves] == [[*_flags(x)] for x in others],
    }
    return tuple(part for part in PARTS if not equal[part])


def _computed(leaf: Leaf) -> Iterator[TileOperation]:
    return (each for each in leaf.operations if each.flag is None)


def _operations(leaf: Leaf, *, has_dump: bool) -> Iterator[TileOperation]:
    """The operations but syncs, each without the place of its operands in memory.

    Beside a dump also without two numbers, which a dump has no text for.
    """
    for each in _computed(leaf):
        row = TILE_OPCODES.get(each.opcode)
        if has_dump and row is not None and row.scalars == 2:
            each = replace(each, scalar=None, other_scalar=None)
        inputs, outputs = (
            tuple(
                replace(x, buffer=None if x.buffer is None else 0, access=None, start_bytes=0)
                for x in operands
            )
            for operands in (each.inputs, each.outputs)
        )
        yield replace(each, inputs=inputs, outputs=outputs, file="", line=0)


def _addresses(leaf: Leaf) -> Iterator[tuple[int | None, ...]]:
    for each in _computed(leaf):
        operands = (*each.inputs, *each.outputs)
        yield tuple(
            None if x.buffer is None else leaf.buffers[x.buffer].address + x.start_bytes
            for x in operands
        )


def _flags(leaf: Leaf) -> Iterator[object]:
    return (each.opcode if each.flag is None else each for each in leaf.operations)
