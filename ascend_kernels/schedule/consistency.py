"""Checks that each part a schedule refers to exists, and that control flow nests within bounds.

It is not judged here whether the hardware permits a schedule: executing it tells that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from ascend_kernels.schedule.part_types import WANTED, fits, shown
from ascend_kernels.schedule.parts import (
    BETWEEN_CORES,
    SYNCS,
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
from ascend_kernels.schedule.scalars import MAX_NESTED, Scalar, check_operands
from simulator.machine.tile_opcodes import TILE_OPCODES

CORES: Final = ("AIV", "AIC", "HUB")
_is_whole: Final = fits(int)
_SCALAR_TESTS: Final = (_is_whole, *map(fits, (str, tuple)))


def check_parameters(parameters: Sequence[Parameter]) -> None:
    """Refuse two parameters of one name, one without elements, and one planned in another shape.

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
        planned = parameter.planned_shape
        if planned and not (
            len(planned) == len(parameter.shape)
            and all(
                extent == wanted if isinstance(wanted, int) else extent >= 1
                for extent, wanted in zip(planned, parameter.shape, strict=True)
            )
        ):
            raise ValueError(
                f"parameter {parameter.name} has the shape {list(parameter.shape)}, and is planned "
                f"for {list(planned)}"
            )


def check_numbers(parameters: Sequence[Parameter], names: Collection[str]) -> None:
    """Refuse parameters whose elements steer the kernel, and that are not read or are not there.

    Raises:
        ValueError: names the parameter.
    """
    read = {each.name for each in parameters if each.is_read}
    if missing := sorted(set(names) - read):
        raise ValueError(
            f"parameter {missing[0]} is not read, and a loop, a condition or an offset goes by it"
        )


def check_leaf(leaf: Leaf) -> None:
    """Refuse a core, or a pipe, that the operations contradict, and buffers that are not alive.

    Raises:
        ValueError: names the operation.
    """
    if leaf.core not in CORES:
        raise ValueError(f"{leaf.name} is of core {leaf.core!r}; there are {', '.join(CORES)}")
    for index, operation in enumerate(leaf.operations):
        where = f"{leaf.name}, operation {index} {operation.opcode}"
        row = TILE_OPCODES.get(operation.opcode)
        if row is not None and operation.pipe != row.pipe.name:
            raise ValueError(
                f"{where}: it is of pipe {operation.pipe!r}, and the opcode of {row.pipe.name}"
            )
        if leaf.core == "HUB" and any(x.buffer is not None for x in _operands(operation)):
            raise ValueError(f"{where}: it has tiles in UB, and on a HUB nothing runs")
        flag = operation.flag
        is_sync = operation.opcode.startswith(SYNCS)
        if is_sync != (flag is not None):
            raise ValueError(f"{where}: {'it has no flag' if is_sync else 'it has a flag'}")
        if (
            flag is not None
            and operation.opcode not in BETWEEN_CORES
            and (flag.setter == flag.waiter) != operation.opcode.startswith("BAR.")
        ):
            raise ValueError(f"{where}: it is between {flag.setter} and {flag.waiter}")
        if flag is not None and (operation.inputs or operation.outputs):
            raise ValueError(f"{where}: it has tiles, and is a sync")
        if flag is None and not operation.outputs:
            raise ValueError(f"{where}: it writes no tile")
        if row is not None and row.has_scratch and len(operation.outputs) <= row.results:
            raise ValueError(f"{where}: it has no scratch memory, which the opcode works in")
        if any(x.access is not None for x in operation.outputs) and not operation.inputs:
            raise ValueError(f"{where}: it reads no tile, and writes one in GM")
        for operand in _operands(operation):
            _check_scalars(operand.valid_shape, where)
            if len(operand.shape) != len(operand.valid_shape):
                raise ValueError(
                    f"{where}: a tile of {len(operand.shape)} axes, whose valid shape has "
                    f"{len(operand.valid_shape)}"
                )
            if operand.is_packed and (len(operand.shape) < 2 or operand.shape[-1] != 1):
                raise ValueError(f"{where}: a packed tile of the shape {operand.shape}")
            if operand.buffer is None:
                continue
            if not 0 <= operand.buffer < len(leaf.buffers):
                raise ValueError(f"{where}: buffer {operand.buffer} of {len(leaf.buffers)}")
            if not len(operand.shape) == len(operand.offset) == len(operand.valid_shape) > 0:
                raise ValueError(f"{where}: an operand's shapes and offset differ in their axes")
            if min(operand.start_bytes, *operand.shape, *operand.offset) < 0:
                raise ValueError(
                    f"{where}: a tile at byte {operand.start_bytes} of its buffer, {operand.shape} "
                    f"from {operand.offset}"
                )
    for buffer in leaf.buffers:
        if min(buffer.address, buffer.size_bytes, buffer.first, buffer.last - buffer.first) < 0:
            raise ValueError(
                f"{leaf.name}, buffer {buffer.name}: {buffer.size_bytes} B at {buffer.address}, "
                f"from operation {buffer.first} to {buffer.last}"
            )
    for place, (first, last) in lives(leaf.operations).items():
        buffer = leaf.buffers[place]
        if not buffer.first <= first <= last <= buffer.last:
            raise ValueError(
                f"{leaf.name}, buffer {buffer.name}: it lives from operation {buffer.first} to "
                f"{buffer.last}, and is used from {first} to {last}"
            )


def check_body(body: Body, leaves: Sequence[Leaf]) -> None:
    """Refuse temporaries in the memory of each other, and tasks whose leaf, accesses or successors
    are not there.

    Raises:
        ValueError: names the task.
    """
    held = {each.name: each for each in body.temporaries}
    if len(held) < len(body.temporaries):
        names = ", ".join(each.name for each in body.temporaries)
        raise ValueError(f"{body.name}: two temporaries have one name: {names}")
    for temporary in body.temporaries:
        where = f"{body.name}, temporary {temporary.name}"
        _check_scalars(temporary.shape, where)
        lies_in, steps = temporary, 0
        while lies_in.alias in held and steps <= len(held):
            lies_in, steps = held[lies_in.alias], steps + 1
        if steps > len(held):
            raise ValueError(f"{where}: it lies in the memory of {temporary.alias}, in a circle")
    copied: dict[int, list[int]] = {}
    for place, task in enumerate(body.tasks):
        where = f"{body.name}, task {place}"
        if not all(place < each < len(body.tasks) for each in task.successors):
            raise ValueError(f"{where}: its successors, {task.successors}, do not follow it")
        _check_task(task, leaves, copied, where)


def _check_task(
    task: Task, leaves: Sequence[Leaf], copied: dict[int, list[int]], where: str
) -> None:
    """Of each leaf, the accesses of its copies are kept for the tasks behind."""
    for access in task.accesses:
        _check_scalars((*access.offset, *access.shape), where)
    if task.leaf is None:
        return
    if not 0 <= task.leaf < len(leaves):
        raise ValueError(f"{where}: leaf {task.leaf} of {len(leaves)}")
    if task.leaf not in copied:
        operands = chain.from_iterable(map(_operands, leaves[task.leaf].operations))
        copied[task.leaf] = [each.access for each in operands if each.access is not None]
    for place in copied[task.leaf]:
        if not 0 <= place < len(task.accesses):
            raise ValueError(f"{where}: access {place} of {len(task.accesses)}")
        if not task.accesses[place].offset:
            raise ValueError(f"{where}: access {place} has no offset")


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
    level: list[Scalar] = [each for each in scalars if not _is_whole(each)]
    for _ in range(MAX_NESTED):
        for each in level:
            if not any(is_fit(each) for is_fit in _SCALAR_TESTS):
                raise ValueError(f"{where}: {WANTED[object]} is wanted, not {shown(each)}")
            try:
                check_operands(each)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from None
        level = [inner for each in level if isinstance(each, tuple) for inner in each]
        if not level:
            return
    raise ValueError(f"{where}: a number of it is nested more than {MAX_NESTED} deep")


def _operands(operation: TileOperation) -> Iterator[TileOperand]:
    return chain(operation.inputs, operation.outputs)
