"""The AscendC kernel of a cast as a schedule: a task a core, which loops over tiles in two slots.

The same type and the same executor as a schedule of upstream's compiler, which has a task a tile.
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Final

from ascend_kernels.matrix import DEFAULT_CONTROLS, Operand, resolve
from ascend_kernels.program import TileProgram
from ascend_kernels.schedule.parts import (
    Access,
    Body,
    Buffer,
    Flag,
    Leaf,
    Parameter,
    Run,
    Task,
    Temporary,
    TileOperand,
    TileOperation,
    lives,
)
from ascend_kernels.schedule.schedule import Schedule
from simulator.machine.isa import (
    DataCopyPad,
    Pipe,
    PipeBarrier,
    RestoreCtrl,
    SetCtrl,
    SetDeqScale,
    SetFlag,
    UbAddress,
    WaitFlag,
)
from simulator.machine.memory import UbRange
from simulator.numbers.formats import Format
from tiling.grid import Tile
from tiling.ub import aligned_elems, padded_row_bytes, round_up

ORIGIN: Final = "ascendc"
_MERGED: Final = "merged"


def cast_schedule(program: TileProgram, file: str = "", line: int = 0) -> Schedule:
    """The schedule of a cast's program: the same copies, flags, addresses and cores.

    The steps of a conversion are one tile operation, CAST. Where tiles run on over several axes,
    these are one axis of a temporary in the memory of the argument.

    Args:
        program: of one cast.
        file, line: the place of the cast in a kernel's source; "" and 0 if it is in none.

    Raises:
        ValueError: a chain of other steps than a cast's, elements that share a byte, or a float
            mode that a schedule does not follow.
    """
    rule = program.resolution.rule
    formats = rule.src, rule.dst
    for name, value in asdict(program.controls).items():
        if value != getattr(DEFAULT_CONTROLS, name):
            raise ValueError(f"{rule}: a schedule does not follow {name}={value}; leave it out")
    if min(each.bits for each in formats) < 8:
        raise ValueError(f"{rule}: elements that share a byte are in no schedule; cast INT8")
    saturate = _saturates(program)
    leaves: dict[tuple[tuple[TileOperation, ...], tuple[Buffer, ...]], int] = {}
    tasks = []
    for core in program.cores:
        walk = _Core(program, saturate=saturate, file=file, line=line)
        walk.run(core)
        leaf = leaves.setdefault(walk.found, len(leaves))
        tasks.append(Task(leaf=leaf, accesses=tuple(walk.accesses), successors=()))
    merged = program.plan.merged.shape
    ends = list(zip((program.input, program.output), formats, strict=True))
    temporaries = (
        Temporary(name=_seen(program, name), format=fmt, shape=merged, alias=name)
        for name, fmt in ends
        if merged != program.plan.shape
    )
    return Schedule(
        kernel="cast",
        release="",
        chip=program.chip.name,
        origin=ORIGIN,
        parameters=tuple(
            Parameter(
                name=name,
                format=fmt,
                shape=program.plan.shape,
                is_read=name == program.input,
                is_written=name == program.output,
            )
            for name, fmt in ends
        ),
        leaves=tuple(
            Leaf(name=f"cast core {place}", core="AIV", operations=operations, buffers=buffers)
            for place, (operations, buffers) in enumerate(leaves)
        ),
        bodies=(Body(name="cast", tasks=tuple(tasks), temporaries=tuple(temporaries)),),
        steps=(Run(body=0),),
    )


def _saturates(program: TileProgram) -> bool:
    rule, mode = program.resolution.rule, program.resolution.mode
    for saturate in (True, False):
        resolved = resolve(rule.family, rule.src, rule.dst, mode, saturate=saturate)
        if resolved.steps == program.resolution.steps:
            return saturate
    raise ValueError(f"{rule}: a program of other steps than a cast's has no schedule")


def _seen(program: TileProgram, name: str) -> str:
    """The name under which tasks see a tensor of GM."""
    return name if program.plan.merged.shape == program.plan.shape else f"{name} {_MERGED}"


class _Core:
    """The tile operations of a core, of the instructions that its program issues."""

    def __init__(self, program: TileProgram, *, saturate: bool, file: str, line: int) -> None:
        self._program, self._saturate = program, saturate
        self._file, self._line = file, line
        self._operations: list[TileOperation] = []
        self._buffers: list[Buffer] = []
        self._held: dict[str, int] = {}
        self._spans: dict[int, tuple[int, int]] = {}
        self._done: set[str] = set()
        self._parts = 0
        self.accesses: list[Access] = []

    @property
    def found(self) -> tuple[tuple[TileOperation, ...], tuple[Buffer, ...]]:
        """Operations and buffers: all that makes two cores alike."""
        operations = tuple(self._operations)
        spans = {**self._spans, **lives(operations)}
        buffers = (
            replace(each, first=spans[place][0], last=spans[place][1])
            for place, each in enumerate(self._buffers)
        )
        return operations, tuple(buffers)

    def run(self, core: int) -> None:
        """Walk through the program of a core; each part begins where it takes its buffers."""
        parts = self._program.parts(core)
        part = None
        takes = False
        for each in self._program.issued(core):
            if isinstance(each, UbRange) and not takes:
                part = next(parts)
                self._parts += 1
                self._done.clear()
            takes = isinstance(each, UbRange)
            match each:
                case UbRange():
                    self._take(each)
                case DataCopyPad():
                    assert part is not None
                    opcode = "COPY_IN" if isinstance(each.dst, UbAddress) else "COPY_OUT"
                    self._once(opcode, each.pipe, part)
                case SetFlag() | WaitFlag():
                    opcode = "SYNC_SRC" if isinstance(each, SetFlag) else "SYNC_DST"
                    self._sync(opcode, each.event.setter, each.event.waiter, each.event_id)
                case PipeBarrier():
                    self._sync("BAR.V", each.of, each.of, -1)
                case SetCtrl() | RestoreCtrl() | SetDeqScale():
                    pass  # registers that conversions follow
                case _:
                    assert part is not None
                    self._once("CAST", Pipe.V, part)

    def _take(self, buffer: UbRange) -> None:
        self._held[buffer.name[:-1]] = len(self._buffers)  # its role, without the slot
        self._buffers.append(
            Buffer(
                name=f"{buffer.name} of part {self._parts}",
                address=buffer.offset_bytes,
                size_bytes=buffer.size_bytes,
                first=0,
                last=0,
            )
        )

    def _once(self, opcode: str, pipe: Pipe, part: Tile) -> None:
        """Add the operation of a part, whose instructions come one after another."""
        if opcode in self._done:
            return
        self._done.add(opcode)
        rule, is_cast = self._program.resolution.rule, opcode == "CAST"
        source = self._tile(Operand.IN, rule.src, part)
        result = self._tile(Operand.OUT, rule.dst, part)
        if opcode == "COPY_IN":
            source, result = self._outside(rule.src, self._program.input, part), source
        elif opcode == "COPY_OUT":
            source, result = result, self._outside(rule.dst, self._program.output, part)
        elif Operand.TMP.value in self._held:
            index = len(self._operations)
            self._spans[self._held[Operand.TMP.value]] = index, index
        self._operations.append(
            TileOperation(
                opcode=opcode,
                pipe=pipe.name,
                inputs=(source,),
                outputs=(result,),
                mode=self._program.resolution.mode if is_cast else None,
                saturate=self._saturate or not is_cast,
                file=self._file,
                line=self._line,
            )
        )

    def _sync(self, opcode: str, setter: Pipe, waiter: Pipe, event_id: int) -> None:
        flag = Flag(setter=setter.name, waiter=waiter.name, event_id=event_id)
        self._operations.append(TileOperation(opcode=opcode, flag=flag))

    def _outside(self, fmt: Format, tensor: str, part: Tile) -> TileOperand:
        """The box of a part in GM."""
        name = _seen(self._program, tensor)
        self.accesses.append(Access(tensor=name, offset=part.offset, shape=part.shape))
        return TileOperand(access=len(self.accesses) - 1, format=fmt)

    def _tile(self, operand: Operand, fmt: Format, part: Tile) -> TileOperand:
        """A part in its buffer, rows at the program's pitch."""
        return TileOperand(
            buffer=self._held[operand.value],
            format=fmt,
            shape=(*part.shape[:-1], self._pitch_elems(fmt, part)),
            valid_shape=part.shape,
            offset=(0,) * len(part.shape),
        )

    def _pitch_elems(self, fmt: Format, part: Tile) -> int:
        plan, cols = self._program.plan, part.shape[-1]
        if plan.ub.has_one_pitch and math.prod(part.shape[:-1]) > 1:
            return round_up(cols, aligned_elems(plan.bits, plan.chip))
        return int(padded_row_bytes(cols, fmt.bits, plan.chip)) * 8 // fmt.bits
