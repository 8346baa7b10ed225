"""Checks that each part a schedule refers to exists, and that control flow nests within bounds.

It is not judged here whether the hardware permits a schedule: executing it tells that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ascend_kernels.schedule.document import check_type
from ascend_kernels.schedule.parts import (
    Body,
    Branch,
    ControlStep,
    Leaf,
    Loop,
    Parameter,
    Run,
    Scalars,
    Task,
    TileOperand,
    TileOperation,
    lives,
)
from ascend_kernels.schedule.scalars import MAX_NESTED, Scalar


def check_parameters(parameters: Sequence[Parameter]) -> None:
    """Refuse two parameters of one name, and one without elements.

    Raises:
        ValueError: names the parameter.
    """
    names = [each.name for each in parameters]
    if len(set(names)) < len(names):
        raise ValueError(f"two parameters have one name: {', '.join(names)}")
    for parameter in parameters:
        if any(isinstance(each, int) and each < 1 for each in parameter.shape):
            raise ValueError(f"parameter {parameter.name} has the shape {list(parameter.shape)}")
        _check_scalars(parameter.shape, f"parameter {parameter.name}")


def check_leaf(leaf: Leaf) -> None:
    """Refuse operations whose buffer is not there, or not alive.

    Raises:
        ValueError: names the operation.
    """
    for index, operation in enumerate(leaf.operations):
        where = f"{leaf.name}, operation {index} {operation.opcode}"
        is_sync = operation.opcode.startswith(("SYNC_", "BAR."))
        if is_sync != (operation.flag is not None):
            raise ValueError(f"{where}: {'it has no flag' if is_sync else 'it has a flag'}")
        for operand in _operands(operation):
            if operand.buffer is None:
                continue
            if not 0 <= operand.buffer < len(leaf.buffers):
                raise ValueError(f"{where}: buffer {operand.buffer} of {len(leaf.buffers)}")
            if not len(operand.shape) == len(operand.offset) == len(operand.valid_shape) > 0:
                raise ValueError(f"{where}: an operand's shapes and offset differ in their axes")
            _check_scalars(operand.valid_shape, where)
    for place, (first, last) in lives(leaf.operations).items():
        buffer = leaf.buffers[place]
        if not buffer.first <= first <= last <= buffer.last:
            raise ValueError(
                f"{leaf.name}, buffer {buffer.name}: it lives from operation {buffer.first} to "
                f"{buffer.last}, and is used from {first} to {last}"
            )


def check_body(body: Body, leaves: Sequence[Leaf]) -> None:
    """Refuse tasks whose leaf, accesses or successors are not there.

    Raises:
        ValueError: names the task.
    """
    for temporary in body.temporaries:
        _check_scalars(temporary.shape, f"temporary {temporary.name}")
    for place, task in enumerate(body.tasks):
        where = f"{body.name}, task {place}"
        if not all(place < each < len(body.tasks) for each in task.successors):
            raise ValueError(f"{where}: its successors, {task.successors}, do not follow it")
        _check_task(task, leaves, where)


def _check_task(task: Task, leaves: Sequence[Leaf], where: str) -> None:
    for access in task.accesses:
        _check_scalars((*access.offset, *access.shape), where)
    if task.leaf is None:
        return
    if not 0 <= task.leaf < len(leaves):
        raise ValueError(f"{where}: leaf {task.leaf} of {len(leaves)}")
    for operand in chain.from_iterable(map(_operands, leaves[task.leaf].operations)):
        if operand.access is None:
            continue
        if not 0 <= operand.access < len(task.accesses):
            raise ValueError(f"{where}: access {operand.access} of {len(task.accesses)}")
        if not task.accesses[operand.access].offset:
            raise ValueError(f"{where}: access {operand.access} has no offset")


def check_steps(steps: Iterable[ControlStep], bodies: int) -> None:
    """Refuse runs of bodies that are not there, and steps that are nested too deeply.

    Raises:
        ValueError: names the step.
    """
    open_steps = [(step, 1) for step in steps]
    while open_steps:
        step, depth = open_steps.pop()
        if depth > MAX_NESTED:
            raise ValueError(f"its loops and conditions are nested more than {MAX_NESTED} deep")
        match step:
            case Run():
                if not 0 <= step.body < bodies:
                    raise ValueError(f"a run of body {step.body} of {bodies}")
            case Loop():
                _check_scalars((step.begin, step.end, step.step), f"loop {step.variable}")
                open_steps += [(each, depth + 1) for each in step.steps]
            case Branch():
                _check_scalars((step.condition,), "a condition")
                open_steps += [(each, depth + 1) for each in (*step.steps, *step.otherwise)]


def _check_scalars(scalars: Scalars, where: str) -> None:
    level: list[Scalar] = list(scalars)
    for _ in range(MAX_NESTED):
        for each in level:
            if not isinstance(each, tuple):
                check_type(each, object, where)
        level = [inner for each in level if isinstance(each, tuple) for inner in each]
        if not level:
            return
    raise ValueError(f"{where}: a number of it is nested more than {MAX_NESTED} deep")


def _operands(operation: TileOperation) -> Iterator[TileOperand]:
    return chain(operation.inputs, operation.outputs)
