"""Lowering a schedule into the machine: each run of a task becomes a `TileTask`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ascend_kernels.matrix import MATRIX, resolve
from ascend_kernels.program import conversions
from ascend_kernels.schedule.parts import (
    Access,
    Body,
    Branch,
    Leaf,
    Loop,
    Run,
    Step,
    Task,
    TileOperand,
    TileOperation,
)
from ascend_kernels.schedule.scalars import Values, evaluate
from simulator.machine.isa import HardEvent, Pipe, PipeBarrier, SetFlag, WaitFlag
from simulator.machine.memory import UB, UbRange
from simulator.machine.tasks import TileInstruction, TileTask
from simulator.machine.tile_core import TileBox, TileStep
from simulator.machine.tile_opcodes import NO_ROW, TILE_OPCODES, TileWork
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import Format

MAX_TASKS: Final = 1 << 15
"""Of one run of a kernel, and rounds of its loops: more take hours and gigabytes."""
MAX_TEMPORARY_BYTES: Final = 1 << 28
"""Of temporaries and spills together; beside each byte there are ten of records."""
SPILL: Final = "spill"
"""The name that the memory of a task for spills begins with."""
_EVENTS: Final = {(event.setter, event.waiter): event for event in HardEvent}


class NotExecutedError(ValueError):
    """A leaf that cannot be executed: the text names each operation that has no row."""


@dataclass(slots=True)
class Lowering:
    """The tasks of a kernel in the order of execution.

    Attributes:
        isa: the family of the chip's instructions.
        leaves, bodies: of the schedule.
        extents: of each parameter.
        tensors: what lies in GM; spills and temporaries are added as their tasks come.
        unable: the leaves that cannot be executed, with the reason.
        met: those of them that some task runs.
        blocked: the tasks that run such a leaf, or need the results of one.
        aliases: tensors that lie in the memory of another.
    """

    isa: str
    leaves: Sequence[Leaf]
    bodies: Sequence[Body]
    extents: Mapping[str, tuple[int, ...]]
    tensors: dict[str, tuple[Format, tuple[int, ...]]]
    unable: Mapping[int, str] = field(default_factory=dict)
    met: set[int] = field(default_factory=set)
    blocked: set[int] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)
    _writers: dict[str, list[int]] = field(default_factory=dict)
    _count: int = 0
    _rounds: int = 0

    def tasks(self, steps: Sequence[Step], symbols: Mapping[str, int]) -> Iterator[TileTask]:
        """The tasks of steps, loops unrolled.

        Raises:
            ValueError: a bound or an offset that is not known, or more tasks, rounds of loops or
                temporary memory than can be executed.
        """
        values = Values(symbols=symbols, extents=self.extents)
        for step in steps:
            match step:
                case Loop():
                    begin, end, by = (
                        evaluate(each, values) for each in (step.begin, step.end, step.step)
                    )
                    if by <= 0:
                        raise ValueError(f"loop {step.variable} goes by {by}")
                    for index in range(begin, end, by):
                        self._rounds += 1
                        check_most(self._rounds, MAX_TASKS, "rounds of loops")
                        yield from self.tasks(step.steps, {**symbols, step.variable: index})
                case Branch():
                    chosen = step.steps if evaluate(step.condition, values) else step.otherwise
                    yield from self.tasks(chosen, symbols)
                case Run():
                    yield from self._run(self.bodies[step.body], symbols)

    def _run(self, body: Body, symbols: Mapping[str, int]) -> Iterator[TileTask]:
        """One run of a body: its temporaries are new, and it follows what earlier runs wrote."""
        first = self._count
        suffix = f"@{first}"
        values = Values(symbols=symbols, extents=self.extents)
        for temporary in body.temporaries:
            shape = tuple(evaluate(each, values) for each in temporary.shape)
            self.tensors[temporary.name + suffix] = temporary.format, shape
            if temporary.alias:
                own = "" if temporary.alias in self.extents else suffix
                self.aliases[temporary.name + suffix] = temporary.alias + own
        before: list[set[int]] = [set() for _ in body.tasks]
        numbers: list[int] = []
        written: dict[str, list[int]] = {}
        for place, task in enumerate(body.tasks):
            number = self._count
            check_most(number + 1, MAX_TASKS, "tasks")
            numbers.append(number)
            for successor in task.successors:
                before[successor].add(number)
            leaf = None if task.leaf is None else self.leaves[task.leaf]
            for access in task.accesses:
                before[place].update(self._writers.get(access.tensor, ()))
            if task.leaf is not None and task.leaf in self.unable:
                self.met.add(task.leaf)
                self.blocked.add(number)
            elif not self.blocked.isdisjoint(before[place]):
                self.blocked.add(number)
            yield self._task(
                None if number in self.blocked else leaf,
                task,
                symbols,
                suffix,
                sorted(before[place]),
            )
            for operation in () if leaf is None else leaf.operations:
                for operand in operation.outputs:
                    if operand.access is not None:
                        tensor = task.accesses[operand.access].tensor
                        written.setdefault(tensor, []).append(number)
        # These tasks follow whoever wrote the tensor before: they had access to it.
        self._writers.update(written)

    def _task(
        self,
        leaf: Leaf | None,
        task: Task,
        symbols: Mapping[str, int],
        suffix: str,
        after: Sequence[int],
    ) -> TileTask:
        number = self._count
        self._count += 1
        if leaf is None:
            return TileTask(name="HUB", after=tuple(after), program=(), buffers=(), where=str)
        values = Values(symbols=symbols, extents=self.extents)
        valid = tuple(
            tuple(evaluate(extent, values) for extent in access.shape) for access in task.accesses
        )
        values = Values(symbols=symbols, extents=self.extents, valid=valid)
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
            shape = valid[operand.access] or extents_of(other)
            if not access.tensor:
                self._record_spill(spill, offset[0] + _bytes_of(other), operand.format)
                return TileBox(
                    space=f"gm.{spill}",
                    start_bytes=offset[0],
                    tensor_shape=other.shape,
                    offset=(0,) * len(other.shape),
                    shape=shape,
                    format=operand.format,
                )
            name = self._name_of(access, suffix)
            fmt, extents = self.tensors[name]
            return TileBox(
                space=f"gm.{self._memory_of(name)}",
                start_bytes=0,
                tensor_shape=extents,
                offset=offset,
                shape=shape,
                format=fmt,
            )

        def tile(operand: TileOperand, other: TileOperand) -> TileBox:
            if operand.buffer is None:
                return gm_tile(operand, other)
            return TileBox(
                space=UB,
                start_bytes=ranges[operand.buffer].offset_bytes + operand.start_bytes,
                tensor_shape=operand.shape,
                offset=operand.offset,
                shape=extents_of(operand),
                format=operand.format,
                buffer=ranges[operand.buffer],
            )

        def lowered(operation: TileOperation) -> TileInstruction:
            if operation.flag is not None:
                return _sync(operation)
            if not operation.outputs:
                raise ValueError("it writes no tile")
            ends = operation.outputs[0], (*operation.inputs, operation.outputs[0])[0]
            return _step(
                operation,
                self.isa,
                tuple(tile(each, ends[0]) for each in operation.inputs),
                (
                    *(tile(each, ends[1]) for each in operation.outputs[:1]),
                    *(_scratch(tile(each, ends[1])) for each in operation.outputs[1:]),
                ),
            )

        program: list[TileInstruction] = []
        for index, operation in enumerate(leaf.operations):
            try:
                program.append(lowered(operation))
            except ValueError as error:
                place = f" ({operation.place})" if operation.place else ""
                text = f"task {number} ({leaf.name}), operation {index} {operation.opcode}{place}"
                raise type(error)(f"{text}: {error}") from None

        def where(index: int) -> str:
            operation = leaf.operations[index]
            place = f" ({operation.place})" if operation.place else ""
            return f"operation {index} {program[index]}{place}"

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
        for _ in self.aliases:
            name = self.aliases.get(name, name)
        return name

    def _record_spill(self, name: str, stop_bytes: int, fmt: Format) -> None:
        elems = -(-stop_bytes // fmt.dtype.itemsize)
        _, (known,) = self.tensors.get(name, (fmt, (0,)))
        self.tensors[name] = fmt, (max(known, elems),)


def check_most(found: int, most: int, of: str) -> None:
    if found > most:
        raise ValueError(f"the kernel has more than {most} {of}; it is not executed")


def _scratch(tile: TileBox) -> TileBox:
    """All of the memory that a scratch operand has: nothing in it is valid."""
    whole = tile.tensor_shape
    return replace(tile, offset=(0,) * len(whole), shape=whole)


def _bytes_of(operand: TileOperand) -> int:
    return math.prod(operand.shape) * operand.format.dtype.itemsize


def not_executed(leaf: Leaf, isa: str) -> str:
    """The reason for which a leaf cannot be executed; "" where it can."""
    if leaf.core != "AIV":
        return f"{leaf.name} runs on the cube"
    missing = dict.fromkeys(
        each.opcode
        for each in leaf.operations
        if each.flag is None and each.opcode not in TILE_OPCODES
    )
    if missing:
        needed = dict.fromkeys(NO_ROW[name] for name in missing if name in NO_ROW)
        reasons = f" (it needs {'; '.join(needed)})" if needed else ""
        return f"{leaf.name} has {', '.join(missing)}, without a row{reasons}"
    for each in leaf.operations:
        row = TILE_OPCODES.get(each.opcode)
        if row is not None and not row.has_scalar and each.scalar not in (None, 1):
            return f"{leaf.name} has {each.opcode} with the scalar {each.scalar:g}"
        if row is not None and row.has_scalar and each.scalar is None:
            return f"{leaf.name} has {each.opcode} with a number that the dump's JSON cannot hold"
        if each.opcode == "CAST" and each.inputs and each.outputs:
            pair = each.inputs[0].format, each.outputs[0].format
            if pair not in MATRIX[isa]:
                return f"{leaf.name} has CAST {pair[0]} -> {pair[1]}, which {isa} lacks"
    in_gm = dict.fromkeys(
        each.opcode
        for each in leaf.operations
        for operand in (*each.inputs, *each.outputs)
        if operand.buffer is None and operand.access is None
    )
    return f"{leaf.name} has {', '.join(in_gm)} between tensors in GM" if in_gm else ""


def _sync(operation: TileOperation) -> SetFlag | WaitFlag | PipeBarrier:
    flag = operation.flag
    assert flag is not None
    try:
        setter, waiter = Pipe[flag.setter], Pipe[flag.waiter]
        if operation.opcode.startswith("BAR."):
            return PipeBarrier(of=setter)
        event = _EVENTS[setter, waiter]
    except KeyError:
        raise NotExecutedError(
            f"{operation.opcode} from {flag.setter} to {flag.waiter} is no event of a vector core"
        ) from None
    kind = SetFlag if operation.opcode == "SYNC_SRC" else WaitFlag
    return kind(event=event, event_id=flag.event_id)


def _step(
    operation: TileOperation,
    isa: str,
    inputs: tuple[TileBox, ...],
    outputs: tuple[TileBox, ...],
) -> TileStep:
    row = TILE_OPCODES[operation.opcode]
    chain: tuple[Conversion, ...] = ()
    if row.work is TileWork.CAST and inputs:
        pair = inputs[0].format, outputs[0].format
        chain = conversions(resolve(isa, *pair, operation.mode, saturate=operation.saturate))
    return TileStep(
        opcode=row,
        inputs=inputs,
        outputs=outputs,
        scalar=operation.scalar if row.has_scalar else None,
        scalar_first=operation.scalar_first,
        function=operation.function,
        axis=operation.axis,
        axes=operation.axes,
        conversions=chain,
    )
