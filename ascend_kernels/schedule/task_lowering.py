"""Lowering a schedule into the machine: each run of a task becomes a `TileTask`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy.typing as npt

from ascend_kernels.schedule.boxes import Box, WrittenBoxes
from ascend_kernels.schedule.parts import (
    Access,
    Barrier,
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
from ascend_kernels.schedule.scalars import Scalar, UnknownNumberError, Values, evaluate
from ascend_kernels.schedule.step_lowering import NotExecutedError, step_of, sync_of
from simulator.machine.memory import UB, SimulatorFault, UbRange
from simulator.machine.tasks import TileInstruction, TileTask
from simulator.machine.tile_core import taken_otherwise
from simulator.machine.tile_opcodes import (
    TILE_OPCODES,
    UNBOUND,
)
from simulator.machine.tile_steps import TileBox
from simulator.numbers.formats import Format

_UNBOUND: Final = {each.name for each in TILE_OPCODES.values() if each.work in UNBOUND}
MAX_TASKS: Final = 1 << 15
"""Of one run of a kernel, and rounds of its loops: more take hours and gigabytes."""
MAX_TEMPORARY_BYTES: Final = 1 << 28
"""Of temporaries and spills together; beside each byte there are ten of records."""
SPILL: Final = "spill"
"""The name that the memory of a task for spills begins with."""


class TaskOrder(Protocol):
    """Takes the tasks of a schedule in order."""

    def add(self, after: Iterable[int], uses: Sequence[tuple[str, Box]]) -> None:
        """Take the next task: the tasks before it, and its boxes with their memory."""

    def close_run(self) -> None:
        """Take the end of a run of a body."""


@dataclass(slots=True)
class Lowering:
    """The tasks of a kernel in the order of execution.

    A task follows those of its body that its results come from, as the schedule says, and those of
    earlier bodies that wrote a box which it reads last: nothing else orders two runs of bodies. As
    upstream's runtime notes writers, an axis of a length that is known only when the kernel runs
    is one place, of the last body that wrote there (r0.2.0, framework/src/machine/utils/dynamic/
    dev_encode.cpp, `InitPartialUpdateCellMatch`, and dyn_topo.txt of dumps).

    Attributes:
        isa: the family of the chip's instructions.
        leaves, bodies: of the schedule.
        extents: of each parameter.
        tensors: what lies in GM; spills and temporaries are added as their tasks come.
        open_axes: of each parameter, those whose length is known only when the kernel runs.
        arrays: the parameters that no task writes.
        unable: the leaves that cannot be executed, with the reason.
        met: those of them that some task runs.
        reasons: what else is not executed.
        blocked: the tasks that cannot be executed, or need the results of one.
        aliases: tensors that lie in the memory of another.
        order: takes each task; None: the tasks are to be executed.
    """

    isa: str
    leaves: Sequence[Leaf]
    bodies: Sequence[Body]
    extents: Mapping[str, tuple[int, ...]]
    tensors: dict[str, tuple[Format, tuple[int, ...]]]
    open_axes: dict[str, frozenset[int]]
    arrays: Mapping[str, npt.NDArray[Any]]
    unable: Mapping[int, str]
    met: set[int] = field(default_factory=set)
    reasons: dict[str, None] = field(default_factory=dict)
    blocked: set[int] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)
    order: TaskOrder | None = None
    _written: dict[str, WrittenBoxes] = field(default_factory=dict)
    _slots: dict[int, str] = field(default_factory=dict)
    _unknown: set[str] = field(default_factory=set)
    _steps: dict[object, TileInstruction] = field(default_factory=dict)
    _barrier: int = 0
    _count: int = 0
    _rounds: int = 0

    def tasks(self, steps: Sequence[ControlStep], symbols: Mapping[str, int]) -> Iterator[TileTask]:
        """The tasks of steps, loops unrolled.

        Raises:
            SimulatorFault: a loop without an end, a number outside a parameter, or a task whose
                operands contradict the tensors in GM; names body, task and operation.
            NotExecutedError: more tasks, rounds of loops or temporary memory than are executed.
        """
        values = self._values(symbols)
        for step in steps:
            match step:
                case Loop():
                    bounds = self._known(step, (step.begin, step.end, step.step), values)
                    if bounds and bounds[2] <= 0:
                        raise SimulatorFault(f"loop {step.variable} goes by {bounds[2]}")
                    if bounds and self.order is None:  # the order of the first rounds is of use
                        begin, end, by = bounds
                        count = -((begin - end) // by)
                        check_most(self._rounds + count, MAX_TASKS, "rounds of loops")
                    for index in range(*bounds) if bounds else ():
                        self._rounds += 1
                        check_most(self._rounds, MAX_TASKS, "rounds of loops")
                        yield from self.tasks(step.steps, {**symbols, step.variable: index})
                case Branch():
                    for holds in self._known(step, (step.condition,), values):
                        yield from self.tasks(step.steps if holds else step.otherwise, symbols)
                case Run():
                    body, suffix = self.bodies[step.body], f"@{self._count}"
                    try:
                        with _faults_of(body.name):
                            self._place(body, suffix, values)
                    except UnknownNumberError as error:
                        self._pass_over((step,), f"{body.name}: {error}")
                    else:
                        yield from self._run(body, suffix, symbols)
                case Renewal():
                    self._renew(step)
                case Barrier():
                    self._barrier = self._count

    def written(self, memory: str) -> tuple[Box, ...]:
        """The boxes that the tasks so far write, but those that later ones cover."""
        return tuple(self._written.get(memory, ()))

    def _values(self, symbols: Mapping[str, int]) -> Values:
        return Values(symbols=symbols, extents=self.extents, arrays=self.arrays)

    def _known(self, step: ControlStep, scalars: Sequence[Scalar], values: Values) -> Sequence[int]:
        """The numbers that a step goes by; where one is unknown, none: it is passed over."""
        where = f"loop {step.variable}" if isinstance(step, Loop) else "a condition"
        try:
            with _faults_of(where):
                return [evaluate(each, values) for each in scalars]
        except UnknownNumberError as error:
            self._pass_over((step,), f"{where}: {error}")
            return ()

    def _pass_over(self, steps: Sequence[ControlStep], reason: str) -> None:
        """Leave steps out: nothing that their bodies write is known."""
        self.reasons[reason] = None
        for step in steps:
            match step:
                case Loop():
                    self._pass_over(step.steps, reason)
                case Branch():
                    self._pass_over((*step.steps, *step.otherwise), reason)
                case Run():
                    body = self.bodies[step.body]
                    for task in body.tasks:
                        self._unknown |= {
                            access.tensor for _, access, _ in self._copied(task, "outputs")
                        } & self.extents.keys()
                    for slot in (slot for each in body.temporaries for slot in each.writes_slots):
                        self._slots[slot] = f"slot {slot}, not executed"
                        self._unknown.add(self._slots[slot])

    def _renew(self, step: Renewal) -> None:
        for slot in filter(self._slots.__contains__, step.slots):
            held = self._slots.pop(slot)
            if not step.is_certain:
                self._slots[slot] = held
                self._unknown.add(held)
                self.reasons[f"the dump does not say whether slot {slot} is new in a loop"] = None

    def _place(self, body: Body, suffix: str, values: Values) -> None:
        """Give the temporaries of a run their memory: their own, a slot's or another tensor's."""
        places = {each.name: each for each in body.temporaries}
        for temporary in body.temporaries:
            name = temporary.name + suffix
            shape = tuple(evaluate(each, values) for each in temporary.shape)
            if min(shape, default=0) < 0:
                raise ValueError(f"temporary {temporary.name} has the shape {list(shape)}")
            self.tensors[name] = temporary.format, shape
            self.open_axes[name] = open_axes(temporary.shape)
            target = temporary.name
            for _ in places:
                target = places[target].alias or target if target in places else target
            memory, held = target, places.get(target)
            if held is not None:
                slots = held.writes_slots if held.is_partial else ()
                taken = slots if held.reads_slot is None else (held.reads_slot,)
                own = target + suffix
                memory = next((self._slots[each] for each in taken if each in self._slots), own)
            if memory != name:
                self.aliases[name] = memory
            if temporary.unknown:
                self.reasons[temporary.unknown] = None
                self._unknown.add(memory)

    def _run(self, body: Body, suffix: str, symbols: Mapping[str, int]) -> Iterator[TileTask]:
        """One run of a body, which follows the writes of earlier runs."""
        before = [set(range(self._barrier)) for _ in body.tasks]
        written: dict[str, list[Box]] = {}
        for place, task in enumerate(body.tasks):
            number = self._count
            check_most(number + 1, MAX_TASKS, "tasks")
            for successor in task.successors:
                before[successor].add(number)
            leaf = None if task.leaf is None else self.leaves[task.leaf]
            where = f"{body.name}, task {place}"
            with _faults_of(where):
                values, reason = self._task_values(task, symbols)
                read, given = (
                    list(self._boxes(task, suffix, values, ends)) for ends in ("inputs", "outputs")
                )
            for memory, box in read:
                if memory in self._written:
                    before[place].update(x.task for x in self._written[memory].touching(box))
            for memory, box in given:
                written.setdefault(memory, []).append(box)
            if self.order is not None:
                self.order.add(before[place], (*read, *given))
            if task.leaf is not None and task.leaf in self.unable:
                self.met.add(task.leaf)
                self.blocked.add(number)
            elif reason:
                self.reasons[f"{where}: {reason}"] = None
                self.blocked.add(number)
            elif not self.blocked.isdisjoint(before[place]) or any(
                memory in self._unknown for memory, _ in (*read, *given)
            ):
                self.blocked.add(number)
            yield self._task(
                None if number in self.blocked or self.order is not None else leaf,
                task,
                values,
                suffix,
                sorted(before[place]),
            )
        if self.order is not None:
            self.order.close_run()
        for memory, boxes in written.items():
            self._written.setdefault(memory, WrittenBoxes()).replace(boxes)
        for temporary in body.temporaries:
            for slot in temporary.writes_slots:
                self._slots[slot] = self._memory_of(temporary.name + suffix)

    def _task_values(self, task: Task, symbols: Mapping[str, int]) -> tuple[Values, str]:
        """The numbers of a task, and the reason for which some are not known."""
        values = self._values(symbols)
        try:
            valid = tuple(
                tuple(evaluate(each, values) for each in access.shape) for access in task.accesses
            )
            for each in (each for access in task.accesses for each in access.offset):
                evaluate(each, values)
        except UnknownNumberError as error:
            return values, str(error)
        return replace(values, valid=valid), ""

    def _copied(self, task: Task, ends: str) -> Iterator[tuple[int, Access, TileOperand]]:
        """The accesses that a task reads, or writes: operation, access, tile at the other end."""
        operations = () if task.leaf is None else self.leaves[task.leaf].operations
        for index, operation in enumerate(operations):
            pair = operation.inputs, operation.outputs
            here, there = pair if ends == "inputs" else pair[::-1]
            for operand in here:
                if operand.access is not None and task.accesses[operand.access].tensor:
                    yield index, task.accesses[operand.access], there[0]

    def _boxes(
        self, task: Task, suffix: str, values: Values, ends: str
    ) -> Iterator[tuple[str, Box]]:
        """The memory and the box of each tensor that the copies of a task read, or write."""
        for index, access, tile in self._copied(task, ends):
            assert task.leaf is not None
            name, spans, cells = self._name_of(access, suffix), None, None
            whole = self.tensors[name][1]
            if values.valid:
                begins = [evaluate(each, values) for each in access.offset]
                extents = [evaluate(each, values) for each in access.shape or tile.valid_shape]
                spans = tuple((a, a + n) for a, n in zip(begins, extents, strict=True))
                cells = tuple(
                    (0, whole[axis]) if axis in self.open_axes[name] else span
                    for axis, span in enumerate(spans)
                )
            box = Box(
                task=self._count,
                leaf=task.leaf,
                operation=index,
                tensor_shape=whole,
                spans=spans,
                cells=cells,
                is_written=ends == "outputs",
            )
            yield self._memory_of(name), box

    def _task(
        self,
        leaf: Leaf | None,
        task: Task,
        values: Values,
        suffix: str,
        after: Sequence[int],
    ) -> TileTask:
        number, self._count = self._count, self._count + 1
        if leaf is None:
            return TileTask(name="HUB", after=tuple(after), program=(), buffers=(), where=str)
        spill = f"{SPILL}@{number}"
        ranges = [
            UbRange(name=each.name, offset_bytes=each.address, size_bytes=each.size_bytes)
            for each in leaf.buffers
        ]

        def extents_of(operand: TileOperand) -> tuple[int, ...]:
            return tuple(evaluate(each, values) for each in operand.valid_shape)

        def gm_tile(operand: TileOperand, other: TileOperand) -> TileBox:
            assert operand.access is not None
            access = task.accesses[operand.access]
            offset = tuple(evaluate(each, values) for each in access.offset)
            shape = _as_row(values.valid[operand.access] or extents_of(other), other)
            if not access.tensor:
                self._record_spill(spill, offset[0] + other.size_bytes, operand.format)
                return TileBox(
                    space=f"gm.{spill}",
                    start_bytes=offset[0],
                    tensor_shape=_as_row(other.shape, other),
                    offset=(0,) * len(other.shape),
                    shape=shape,
                    format=operand.format,
                )
            name = self._name_of(access, suffix)
            fmt, extents = self.tensors[name]
            if fmt != operand.format:
                raise ValueError(f"its tile of {access.tensor} is {operand.format}, and that {fmt}")
            if other.is_packed and extents[-1:] != (1,):
                raise ValueError(f"its tile is packed, and {access.tensor} of {list(extents)}")
            return TileBox(
                space=f"gm.{self._memory_of(name)}",
                start_bytes=0,
                tensor_shape=_as_row(extents, other),
                offset=_as_row(offset, other),
                shape=shape,
                format=fmt,
            )

        def tile(operand: TileOperand, other: TileOperand) -> TileBox:
            if operand.buffer is None:
                return gm_tile(operand, other)
            return TileBox(
                space=UB,
                start_bytes=ranges[operand.buffer].offset_bytes + operand.start_bytes,
                tensor_shape=_as_row(operand.shape, operand),
                offset=_as_row(operand.offset, operand),
                shape=_as_row(extents_of(operand), operand),
                format=operand.format,
                buffer=ranges[operand.buffer],
            )

        def lowered(operation: TileOperation) -> TileInstruction:
            if operation.flag is not None:
                return sync_of(operation)
            ends = operation.outputs[0], (*operation.inputs, operation.outputs[0])[0]
            count = TILE_OPCODES[operation.opcode].results
            step = step_of(
                operation,
                self.isa,
                tuple(tile(each, ends[0]) for each in operation.inputs),
                (
                    *(tile(each, ends[1]) for each in operation.outputs[:count]),
                    *(_scratch(tile(each, ends[1])) for each in operation.outputs[count:]),
                ),
            )
            numbers = tuple(evaluate(each, values) for each in operation.numbers)
            return replace(step, numbers=numbers) if numbers else step

        def kept(index: int, operation: TileOperation) -> TileInstruction:
            operands = (*operation.inputs, *operation.outputs)
            if any(each.buffer is None for each in operands):
                return lowered(operation)
            try:
                numbers = tuple(evaluate(each, values) for each in operation.numbers)
                key = task.leaf, index, numbers, *map(extents_of, operands)
            except (ValueError, SimulatorFault):  # there may be an earlier reason
                return lowered(operation)
            if key not in self._steps:  # inside UB all tasks with these numbers do the same
                self._steps[key] = lowered(operation)
            return self._steps[key]

        program: list[TileInstruction] = []

        def where(index: int) -> str:
            operation = leaf.operations[index]
            at = operation.at if operation.flag is None else _beside(leaf.operations, index)
            return f"operation {index} {program[index]}{at}"

        try:
            for index, operation in enumerate(leaf.operations):
                program.append(kept(index, operation))
        except (ValueError, SimulatorFault) as error:
            failed = leaf.operations[len(program)]
            at = f"task {number} ({leaf.name}), operation {len(program)} {failed.opcode}{failed.at}"
            if isinstance(error, UnknownNumberError):
                raise NotExecutedError(f"{at}: {error}") from None
            with _faults_of(at):
                raise
        is_unbound = any(each.opcode in _UNBOUND for each in leaf.operations)
        for index, reason in taken_otherwise(program) if is_unbound else ():
            raise SimulatorFault(f"task {number} ({leaf.name}), {where(index)}: {reason}")

        return TileTask(
            name=leaf.name,
            after=tuple(after),
            program=program,
            buffers=[
                (buffer, each.first, each.last)
                for buffer, each in zip(ranges, leaf.buffers, strict=True)
            ],
            where=where,
        )

    def _name_of(self, access: Access, suffix: str) -> str:
        name = access.tensor if access.tensor in self.extents else access.tensor + suffix
        if name not in self.tensors:
            raise ValueError(f"no tensor {access.tensor!r} is in GM")
        return name

    def _memory_of(self, name: str) -> str:
        """The tensor in whose memory one lies."""
        return self.aliases.get(name, name)

    def _record_spill(self, name: str, stop_bytes: int, fmt: Format) -> None:
        before, (elems,) = self.tensors.get(name, (fmt, (0,)))  # formats of several widths
        stop_bytes = max(stop_bytes, elems * before.dtype.itemsize)
        self.tensors[name] = fmt, (-(-stop_bytes // fmt.dtype.itemsize),)


@contextlib.contextmanager
def _faults_of(where: str) -> Iterator[None]:
    """Name the place of a fault; parts that contradict each other are one."""
    try:
        yield
    except UnknownNumberError:
        raise
    except NotExecutedError as error:
        raise NotExecutedError(f"{where}: {error}") from None
    except SimulatorFault as fault:
        raise SimulatorFault(f"{where}: {fault}", fault.at) from None
    except ValueError as error:
        raise SimulatorFault(f"{where}: {error}") from None


def check_most(found: int, most: int, of: str) -> None:
    if found > most:
        raise NotExecutedError(f"the kernel has more than {most} {of}; it is not executed")


def open_axes(shape: Sequence[Scalar]) -> frozenset[int]:
    """The axes of a tensor whose length is known only when the kernel runs."""
    return frozenset(axis for axis, extent in enumerate(shape) if not isinstance(extent, int))


def _as_row(extents: tuple[int, ...], tile: TileOperand) -> tuple[int, ...]:
    """Extents, or an offset, with the last two axes as the row that they are in a packed tile."""
    return (*extents[:-2], *extents[:-3:-1]) if tile.is_packed else extents


def _scratch(tile: TileBox) -> TileBox:
    """All of the memory that a scratch operand has, from its offset on: nothing in it is valid."""
    return replace(tile, shape=tile.tensor_shape)


def _beside(operations: Sequence[TileOperation], index: int) -> str:
    """The operation that a sync is for, which has the source line: of its pipe, the nearest."""
    flag = operations[index].flag
    assert flag is not None
    is_set = operations[index].opcode == "SYNC_SRC"
    pipe = flag.setter if is_set else flag.waiter
    places = range(index - 1, -1, -1) if is_set else range(index + 1, len(operations))
    beside = (x for x in places if operations[x].flag is None and operations[x].pipe == pipe)
    if (found := next(beside, None)) is None:
        return ""
    other = operations[found]
    place = f", {other.place}" if other.place else ""
    return f" ({'behind' if is_set else 'before'} operation {found} {other.opcode}{place})"
