"""Times the instructions of a core, with the figures of a cost set, and adds them up.

The scalar pipe issues in program order. Each pipe takes its instructions in order, one at a time; a
WaitFlag holds its pipe until its flag was set, a PipeBarrier until what came before it is done.
Copies of a core share its part of the GM bandwidth: whose first byte is due first goes first.

Cycles follow from the figures alone; values, addresses and races are the machine's business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

from simulator.machine.core import VectorInstruction
from simulator.machine.execute import Program
from simulator.machine.isa import (
    And,
    AndRepeat,
    Cast,
    CastRepeat,
    DataCopy,
    DataCopyPad,
    Duplicate,
    HardEvent,
    Instruction,
    Pipe,
    PipeBarrier,
    SetFlag,
    VectorScalar,
    WaitFlag,
)
from simulator.machine.memory import SimulatorFault
from simulator.numbers.formats import FP16, INT32
from tiling import cost
from tiling.chips import DEFAULT_CHIP, Chip
from tiling.cost import CostParameters, Direction
from tiling.grid import Tile
from tiling.loads import lost_bytes
from tiling.ub import GM_LINE_BYTES

PIPES: Final = (Pipe.MTE2, Pipe.V, Pipe.MTE3, Pipe.S)
_COPIERS: Final = (Pipe.MTE2, Pipe.MTE3)
_LOOKAHEAD: Final = 4096
"""Instructions seen ahead, to tell which of two copies goes first; any large number would do."""


@runtime_checkable
class LocatedProgram(Program, Protocol):
    """A program that tells the tile of each instruction as it goes."""

    def located(self, core: int) -> Iterable[tuple[Tile | None, Instruction]]:
        """The instructions of one core with the part of a tile each belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagEdge:
    """A flag from where it was set: by which instruction of the core, and when."""

    event: HardEvent
    event_id: int
    set_index: int
    set_cycle: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvent:
    """One instruction on its pipe.

    Attributes:
        core: which core.
        index: place in the program of the core.
        pipe: where it ran; a barrier of every pipe is the scalar pipe's.
        instruction: what ran.
        start_cycle: since the core's start, when its pipe took it up.
        end_cycle: when its pipe was free again.
        where: the tile it belongs to, in words; empty if the program does not tell.
        edge: of a SetFlag or WaitFlag, the flag.
    """

    core: int
    index: int
    pipe: Pipe
    instruction: Instruction
    start_cycle: float
    end_cycle: float
    where: str
    edge: FlagEdge | None

    @property
    def cycles(self) -> float:
        return self.end_cycle - self.start_cycle

    @property
    def is_work(self) -> bool:
        """Not only an order among other instructions."""
        return not isinstance(self.instruction, (SetFlag, WaitFlag, PipeBarrier))

    @property
    def copied_bytes(self) -> int:
        """Bytes moved between GM and UB, without padding."""
        return _copied_bytes(self.instruction)

    def __str__(self) -> str:
        line = (
            f"{self.core:>4}  {self.index:>6}  {self.pipe.name:<4}  {self.start_cycle:>12.1f}  "
            f"{self.end_cycle:>12.1f}  {self.instruction}"
        )
        if self.edge is not None and isinstance(self.instruction, WaitFlag):
            line += f"  (set by {self.edge.set_index} at {self.edge.set_cycle:.1f})"
        return f"{line}  # {self.where}" if self.where else line


def trace(program: Program, core: int, parameters: CostParameters) -> Iterator[TraceEvent]:
    """The instructions of one core with the cycles they take, each pipe in order.

    Nothing is kept of a tile once it is done. All busy cores of the program share GM.

    Args:
        program: what runs.
        core: one that has work.
        parameters: the figures.

    Raises:
        ValueError: the core has no work.
        SimulatorFault: a flag is waited for and never set, set twice, or never waited for.
    """
    if core not in program.cores:
        raise ValueError(f"core {core} has no work; cores {program.cores} have")
    pipes = _Pipes(core, program.chip, parameters, len(program.cores))
    return pipes.run(_with_places(program, core))


def text(events: Iterable[TraceEvent]) -> Iterator[str]:
    """A listing, one line an instruction, with a line of headings."""
    times = f"{'start_cycle':>12}  {'end_cycle':>12}"
    yield f"{'core':>4}  {'index':>6}  {'pipe':<4}  {times}  instruction"
    yield from map(str, events)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTimeline:
    """The work of one core, added up.

    Attributes:
        core: which core.
        makespan_cycles: when its last instruction ended.
        busy_cycles: by pipe, in copies, vector and scalar instructions; not in flags and barriers.
            A copy that waits for its turn in GM keeps its pipe busy.
        copied_bytes: by pipe, between GM and UB.
    """

    core: int
    makespan_cycles: float
    busy_cycles: Mapping[Pipe, float]
    copied_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The work of several cores, added up; all of them start together."""

    cores: tuple[CoreTimeline, ...]

    @property
    def makespan_cycles(self) -> float:
        """Until the last core is done; the launch of the kernel comes on top."""
        return max((core.makespan_cycles for core in self.cores), default=0.0)

    @property
    def copied_bytes(self) -> int:
        return sum(core.copied_bytes for core in self.cores)

    def busy_share(self, pipe: Pipe) -> float:
        """Part of the makespan that a pipe works, 0 to 1, in the mean of the cores."""
        total = self.makespan_cycles * len(self.cores)
        return sum(core.busy_cycles[pipe] for core in self.cores) / total if total else 0.0

    @property
    def limiting_pipe(self) -> Pipe:
        """The pipe that works most."""
        return max(PIPES, key=self.busy_share)


def timeline(events: Iterable[TraceEvent]) -> Timeline:
    """Add up the events of any number of cores, in any order."""
    ends: dict[int, float] = {}
    busy: dict[int, dict[Pipe, float]] = {}
    copied: dict[int, int] = {}
    for event in events:
        core = event.core
        if core not in ends:
            ends[core] = 0.0
            busy[core] = dict.fromkeys(PIPES, 0.0)
            copied[core] = 0
        ends[core] = max(ends[core], event.end_cycle)
        if event.is_work:
            busy[core][event.pipe] += event.cycles
            copied[core] += event.copied_bytes
    return Timeline(
        cores=tuple(
            CoreTimeline(
                core=core,
                makespan_cycles=ends[core],
                busy_cycles=MappingProxyType(busy[core]),
                copied_bytes=copied[core],
            )
            for core in sorted(ends)
        )
    )


@dataclass(frozen=True, slots=True)
class _Issued:
    index: int
    instruction: Instruction
    where: str
    cycle: float


class _Pipes:
    """The pipes of one core, each with the cycle from which on it is free."""

    def __init__(self, core: int, chip: Chip, parameters: CostParameters, busy_cores: int) -> None:
        self._core = core
        self._chip = chip
        self._parameters = parameters
        self._busy_cores = busy_cores
        self._queues: dict[Pipe, deque[_Issued]] = {pipe: deque() for pipe in PIPES}
        self._free = dict.fromkeys(PIPES, 0.0)
        self._gm_free = 0.0
        self._flags: dict[tuple[HardEvent, int], FlagEdge] = {}
        self._in_stream = False

    def run(self, placed: Iterable[tuple[str, Instruction]]) -> Iterator[TraceEvent]:
        for index, (where, instruction) in enumerate(placed):
            pipe = Pipe.S if instruction.pipe is Pipe.ALL else instruction.pipe
            if pipe is not Pipe.S:
                self._free[Pipe.S] += self._parameters.issue_cycles
            issued = _Issued(index, instruction, where, self._free[Pipe.S])
            self._queues[pipe].append(issued)
            yield from self._settle(at_end=False)
        yield from self._settle(at_end=True)
        for edge in self._flags.values():
            raise SimulatorFault(
                f"core {self._core}: instruction {edge.set_index} (SetFlag {edge.event.name} "
                f"{edge.event_id}) is never waited for"
            )

    def _settle(self, *, at_end: bool) -> Iterator[TraceEvent]:
        """Run the instructions that can run by now, up to a copy that another may precede."""
        while (pipe := self._next(at_end)) is not None:
            yield self._execute(pipe, self._queues[pipe].popleft())
        for queue in self._queues.values() if at_end else (self._queues[Pipe.S],):
            if queue:
                raise SimulatorFault(
                    f"core {self._core}: instruction {queue[0].index} ({queue[0].instruction}) "
                    "waits for ever"
                )

    def _next(self, at_end: bool) -> Pipe | None:
        """The pipe to go on with: any but a copier, else the copier whose bytes are due first."""
        copiers = []
        for pipe, queue in self._queues.items():
            if not queue or not self._is_runnable(queue[0].instruction):
                continue
            if not isinstance(queue[0].instruction, (DataCopy, DataCopyPad)):
                return pipe
            copiers.append(pipe)
        if not (at_end or self._queues[Pipe.S] or self._sees_both_copiers()):
            return None
        return min(copiers, key=self._due_cycle, default=None)

    def _sees_both_copiers(self) -> bool:
        """True if each copier has work, or so much is issued that it has to go on."""
        waiting = sum(map(len, self._queues.values()))
        return all(self._queues[pipe] for pipe in _COPIERS) or waiting >= _LOOKAHEAD

    def _is_runnable(self, instruction: Instruction) -> bool:
        match instruction:
            case WaitFlag():
                return (instruction.event, instruction.event_id) in self._flags
            case PipeBarrier(of=Pipe.ALL):
                return not any(self._queues[pipe] for pipe in PIPES if pipe is not Pipe.S)
        return True

    def _due_cycle(self, pipe: Pipe) -> float:
        """Returns the cycle at which the copy at the head of a pipe asks GM for its first byte."""
        startup = cost.dma_startup_cycles(self._parameters, _DIRECTIONS[pipe])
        return max(self._free[pipe], self._queues[pipe][0].cycle) + startup

    def _execute(self, pipe: Pipe, issued: _Issued) -> TraceEvent:
        instruction = issued.instruction
        start = max(self._free[pipe], issued.cycle)
        edge: FlagEdge | None = None
        match instruction:
            case SetFlag():
                end = start + self._parameters.flag_cycles
                edge = self._set_flag(issued.index, instruction, end)
            case WaitFlag():
                edge = self._flags.pop((instruction.event, instruction.event_id))
                end = max(start, edge.set_cycle) + self._parameters.flag_cycles
            case PipeBarrier():
                held = self._free.values() if instruction.of is Pipe.ALL else ()
                end = max([start, *held]) + self._parameters.barrier_cycles
            case DataCopy() | DataCopyPad():
                lost = _lost_bytes(instruction) * self._parameters.gm_line_loss
                end = self._copy(pipe, _copied_bytes(instruction) + lost, start)
            case Cast() | CastRepeat() | Duplicate() | And() | AndRepeat() | VectorScalar():
                end = start + self._vector_cycles(instruction)
            case _:
                end = start + self._parameters.scalar_cycles
        self._take(pipe, instruction, end)
        return TraceEvent(
            core=self._core,
            index=issued.index,
            pipe=pipe,
            instruction=instruction,
            start_cycle=start,
            end_cycle=end,
            where=issued.where,
            edge=edge,
        )

    def _take(self, pipe: Pipe, instruction: Instruction, end: float) -> None:
        """Keep a pipe until `end`; flags and barriers end a stream of vector instructions.

        A barrier of every pipe keeps the scalar pipe, which issues nothing to the others meanwhile.
        """
        self._free[pipe] = end
        if pipe is Pipe.V or instruction.pipe is Pipe.ALL:
            self._in_stream = not isinstance(instruction, (SetFlag, WaitFlag, PipeBarrier))

    def _set_flag(self, index: int, instruction: SetFlag, end: float) -> FlagEdge:
        flag = (instruction.event, instruction.event_id)
        if flag in self._flags:
            raise SimulatorFault(
                f"core {self._core}: instruction {index} ({instruction}) sets a flag that is set, "
                f"by instruction {self._flags[flag].set_index}"
            )
        edge = FlagEdge(event=flag[0], event_id=flag[1], set_index=index, set_cycle=end)
        self._flags[flag] = edge
        return edge

    def _copy(self, pipe: Pipe, size_bytes: float, start: float) -> float:
        """Returns the end of a copy in cycles: by its own speed, or after earlier copies in GM."""
        if size_bytes == 0:
            return start
        direction = _DIRECTIONS[pipe]
        first_byte = start + cost.dma_startup_cycles(self._parameters, direction)
        shared = cost.gm_share_cycles(self._parameters, size_bytes, self._busy_cores)
        self._gm_free = max(self._gm_free, first_byte) + shared
        alone = cost.dma_cycles(self._parameters, direction, size_bytes, self._busy_cores)
        return max(start + alone, self._gm_free)

    def _vector_cycles(self, instruction: VectorInstruction) -> float:
        repeats = _repeats(instruction, self._chip)
        if isinstance(instruction, (Duplicate, And, AndRepeat, VectorScalar)):
            return cost.bitwise_cycles(self._parameters, repeats, starts_stream=not self._in_stream)
        # A scaled conversion comes with a register and a barrier of its own (pto-isa, TCVT).
        scaled = (instruction.src_format, instruction.dst_format) == (INT32, FP16)
        starts = scaled or not self._in_stream
        return cost.cast_cycles(self._parameters, repeats, starts_stream=starts)


_BLOCK_BYTES: Final = DEFAULT_CHIP.block_bytes
_DIRECTIONS: Final = {Pipe.MTE2: Direction.READ, Pipe.MTE3: Direction.WRITE}


def _copied_bytes(instruction: Instruction) -> int:
    match instruction:
        case DataCopy():
            return instruction.size_bytes // _BLOCK_BYTES * _BLOCK_BYTES
        case DataCopyPad():
            return instruction.block_count * instruction.block_len_bytes
    return 0


def _lost_bytes(copy: DataCopy | DataCopyPad) -> float:
    """Returns the bytes that the blocks of a copy lose off the lines of GM, at worst."""
    gm = copy.src if copy.pipe is Pipe.MTE2 else copy.dst
    blocks, block_bytes, apart = 1, _copied_bytes(copy), 0
    if isinstance(copy, DataCopyPad):
        blocks, block_bytes = copy.block_count, copy.block_len_bytes
        gap = copy.src_stride if copy.pipe is Pipe.MTE2 else copy.dst_stride
        apart = block_bytes + gap if blocks > 1 else 0
    are_on_lines = gm.offset_bytes % GM_LINE_BYTES == apart % GM_LINE_BYTES == 0
    return float(lost_bytes(blocks, block_bytes, are_on_lines=are_on_lines))


def _repeats(instruction: VectorInstruction, chip: Chip) -> int:
    """Stretches of a repeat's bytes, of the wider type, that a vector instruction goes through."""
    match instruction:
        case CastRepeat() | AndRepeat():
            return instruction.repeat_times
        case Cast():
            bits = max(instruction.src_format.bits, instruction.dst_format.bits)
        case VectorScalar():
            bits = instruction.format.bits
        case _:
            bits = 16
    return -(-instruction.count * bits // (8 * chip.repeat_bytes))


def _with_places(program: Program, core: int) -> Iterator[tuple[str, Instruction]]:
    """Instructions with their tiles in words, which are put together once a tile."""
    if not isinstance(program, LocatedProgram):
        yield from (("", instruction) for instruction in program.instructions(core))
        return
    last: Tile | None = None
    where = ""
    for tile, instruction in program.located(core):
        if tile is not last:
            last = tile
            where = ""
            if tile is not None:
                where = f"tile {tile.index} at {list(tile.offset)}, {list(tile.shape)} elements"
        yield where, instruction
