"""Running the pipes of one core: in order within a pipe, at worst between pipes, and their races.

The scalar pipe issues the program. The other pipes take their instructions in order and stop at a
WaitFlag until its flag is raised. Which pipe goes next is otherwise open on the device, so the user
picks an extreme: copies land as late as the flags allow, or as early.

An instruction knows another one to be done only through a flag or a barrier: a flag carries what
its setter knew to whoever waits for it, and the scalar pipe, which issues to the others, what it
waited for to whatever it issues later. Two instructions that touch the same bytes, one of them
writing, without such knowledge race: on the device either may come first, whatever happened here.
(Vector clocks, one component a pipe.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from simulator.machine.core import Registers, VectorCore, left_behind, next_registers
from simulator.machine.isa import (
    EVENT_IDS,
    HardEvent,
    Instruction,
    Pipe,
    PipeBarrier,
    RestoreCtrl,
    SetCtrl,
    SetDeqScale,
    SetFlag,
    WaitFlag,
)
from simulator.machine.memory import Lives, Region, SimulatorFault, UbRange

_PIPES: Final = (Pipe.MTE2, Pipe.V, Pipe.MTE3)
_KEPT: Final = 64
"""Accesses of a pipe that are kept before the settled ones are dropped."""
Clock = Mapping[Pipe, int]
"""For each pipe, up to which of its instructions everything is known to be done; never changed."""


@dataclass(frozen=True, slots=True)
class _Access:
    number: int
    index: int
    instruction: Instruction
    reads: tuple[Region, ...]
    writes: tuple[Region, ...]


class Hazards:
    """Accesses in flight on one core, and the instructions that each pipe knows to be done.

    Args:
        name: names an instruction of the core by its index.
    """

    def __init__(self, name: Callable[[int], str]) -> None:
        self._name = name
        nothing: Clock = dict.fromkeys(_PIPES, 0)
        self._issued = dict(nothing)
        self._known = dict.fromkeys((*_PIPES, Pipe.S), nothing)
        self._begun = dict.fromkeys(_PIPES, nothing)
        self._in_flight: dict[Pipe, deque[_Access]] = {pipe: deque() for pipe in _PIPES}

    @property
    def issue_clock(self) -> Clock:
        """The knowledge of the scalar pipe, and with it of all that it issues from here on."""
        return self._known[Pipe.S]

    def begin(self, pipe: Pipe, issue_clock: Clock) -> None:
        """Start an instruction, which knows as much as the scalar pipe did when it issued it."""
        if pipe in self._begun and self._begun[pipe] is not issue_clock:
            self._begun[pipe] = issue_clock
            self.learn(pipe, issue_clock)

    def access(
        self,
        index: int,
        instruction: Instruction,
        reads: tuple[Region, ...],
        writes: tuple[Region, ...],
    ) -> None:
        """Note the bytes that an instruction touches as it starts.

        Raises:
            SimulatorFault: it races with one that is not known to be done.
        """
        pipe = instruction.pipe
        self._issued[pipe] += 1
        mine = _Access(self._issued[pipe], index, instruction, reads, writes)
        known = self._known[pipe]
        for other_pipe in _PIPES:
            done = known[other_pipe]
            for other in reversed(self._in_flight[other_pipe]):
                if other.number <= done:
                    break
                self._check_pair(mine, other)
        self._in_flight[pipe].append(mine)
        if len(self._in_flight[pipe]) > _KEPT:
            self._forget()

    def step(self, pipe: Pipe) -> int:
        """Count an instruction that touches no memory; its number on the pipe."""
        if pipe not in self._issued:
            return 0
        self._issued[pipe] += 1
        return self._issued[pipe]

    def knows(self, pipe: Pipe, other: Pipe, number: int) -> bool:
        """Whether a pipe knows that an instruction of one that accesses memory is done."""
        return self._known[pipe][other] >= number

    def snapshot(self, pipe: Pipe) -> Clock:
        """Returns the clock of a flag set by `pipe`: all it knows, and all it did itself."""
        clock = dict(self._known[pipe])
        if pipe in self._issued:
            clock[pipe] = self._issued[pipe]
        return clock

    def learn(self, pipe: Pipe, clock: Clock) -> None:
        """Give a waiting pipe the knowledge of a flag."""
        known = self._known[pipe]
        self._known[pipe] = {other: max(known[other], clock[other]) for other in _PIPES}

    def barrier(self, pipe: Pipe) -> None:
        """All earlier instructions of a pipe (or of all of them) are done."""
        if pipe is Pipe.ALL:
            for each in self._known:
                self.learn(each, self._issued)
        elif pipe in self._issued:
            self._known[pipe] = {**self._known[pipe], pipe: self._issued[pipe]}

    def _forget(self) -> None:
        """Drop accesses that every pipe knows to be done."""
        for pipe, accesses in self._in_flight.items():
            settled = min(self._known[each][pipe] for each in _PIPES)
            while accesses and accesses[0].number <= settled:
                accesses.popleft()

    def _check_pair(self, mine: _Access, other: _Access) -> None:
        for verb, my_regions, doing, other_regions in (
            ("reads", mine.reads, "writes", other.writes),
            ("writes", mine.writes, "reads", other.reads),
            ("writes", mine.writes, "writes", other.writes),
        ):
            for my_region in my_regions:
                for other_region in other_regions:
                    if my_region.touches(other_region):
                        raise SimulatorFault(
                            f"{verb} {my_region} while {self._name(other.index)} {doing} "
                            f"{other_region}: no flag or barrier puts "
                            f"{other.instruction.pipe.name} before {mine.instruction.pipe.name}",
                            my_region.shared(other_region),
                        )


CopyCompletion = Literal["latest", "earliest"]
COPY_COMPLETIONS: Final[tuple[CopyCompletion, ...]] = get_args(CopyCompletion)

_ORDER: Final[dict[CopyCompletion, tuple[Pipe, ...]]] = {
    "latest": (Pipe.V, Pipe.MTE3, Pipe.MTE2),
    "earliest": (Pipe.MTE2, Pipe.MTE3, Pipe.V),
}
_WINDOW: Final = 48
"""Instructions issued ahead; any number would do, since flags bound the order."""

Flag = tuple[HardEvent, int]


class Fault(Exception):
    """A fault of an instruction of a core, by its index, and the memory and byte it is about."""

    def __init__(self, index: int, text: str, at: tuple[str, int] | None = None) -> None:
        super().__init__(text)
        self.index = index
        self.at = at


@dataclass(frozen=True, slots=True)
class _Issued:
    """An instruction, and the state of the core as the scalar pipe issued it."""

    index: int
    instruction: Instruction
    registers: Registers = field(default_factory=Registers)
    lives: Lives = field(default_factory=dict)
    clock: Clock = field(default_factory=dict)


class Scheduler:
    """The pipes of one core while it runs a program.

    Args:
        core: memory, and the meaning of each instruction.
        copy_completion: copies complete as late or as early as the flags allow.
        name: names an instruction of the program by its index.
    """

    def __init__(
        self, core: VectorCore, copy_completion: CopyCompletion, name: Callable[[int], str]
    ) -> None:
        self._core = core
        self._order = _ORDER[copy_completion]
        self._name = name
        self._hazards = Hazards(name)
        self._flags: dict[Flag, tuple[Clock, int]] = {}
        self._waits: dict[Flag, tuple[int, int]] = {}
        self._queues: dict[Pipe, deque[_Issued]] = {pipe: deque() for pipe in self._order}
        self._waiting = 0
        self._registers = Registers()
        self._set_by: dict[int | None, int] = {}
        self._lives: Lives = {}

    def run(self, program: Iterable[Instruction | UbRange]) -> None:
        """Run a program to its end.

        Args:
            program: the instructions in program order, and before them the buffers that are
                allocated there.

        Raises:
            Fault: an instruction faults, waits for ever, or leaves a flag behind.
        """
        index = 0
        for each in program:
            if isinstance(each, UbRange):
                self._lives = {**self._lives, each: index}
                continue
            hazards = self._hazards
            self._issue(_Issued(index, each, self._registers, self._lives, hazards.issue_clock))
            index += 1
            while self._waiting > _WINDOW and self._step():
                pass
        while self._step():
            pass
        self._check_finished()

    def check_left(self) -> None:
        """Check that the program leaves the registers to the next one as it must.

        Raises:
            Fault: it does not; of the instruction that set one last.
        """
        for register, text in left_behind(self._registers):
            raise Fault(self._set_by[register], text)

    def _issue(self, issued: _Issued) -> None:
        instruction = issued.instruction
        if isinstance(instruction, (SetFlag, WaitFlag)) and not (
            0 <= instruction.event_id < EVENT_IDS
        ):
            raise Fault(issued.index, f"event id must be 0 to {EVENT_IDS - 1}")
        if isinstance(instruction, (SetCtrl, RestoreCtrl, SetDeqScale)):
            try:
                self._registers = next_registers(self._registers, instruction)
            except SimulatorFault as fault:
                raise Fault(issued.index, str(fault)) from None
            self._set_by[instruction.bit if isinstance(instruction, SetCtrl) else None] = (
                issued.index
            )
        elif isinstance(instruction, PipeBarrier) and instruction.of is Pipe.ALL:
            while self._step():
                pass
            self._check_drained()
            self._hazards.barrier(Pipe.ALL)
        elif instruction.pipe is Pipe.S:
            while not self._is_runnable(issued) and self._step():
                pass
            if not self._is_runnable(issued):
                raise Fault(issued.index, self._why_stuck(issued))
            self._execute(issued)
        else:
            self._queues[instruction.pipe].append(issued)
            self._waiting += 1

    def _step(self) -> bool:
        """Execute one instruction of the pipe that goes first; False if every pipe is stuck."""
        for pipe in self._order:
            queue = self._queues[pipe]
            if queue and self._is_runnable(queue[0]):
                self._waiting -= 1
                self._execute(queue.popleft())
                return True
        return False

    def _is_runnable(self, issued: _Issued) -> bool:
        instruction = issued.instruction
        if not isinstance(instruction, WaitFlag):
            return True
        return (instruction.event, instruction.event_id) in self._flags

    def _execute(self, issued: _Issued) -> None:
        instruction = issued.instruction
        self._hazards.begin(instruction.pipe, issued.clock)
        try:
            match instruction:
                case SetFlag():
                    self._set_flag(issued, instruction)
                case WaitFlag():
                    clock, _ = self._flags.pop(_flag(instruction))
                    self._hazards.learn(instruction.pipe, clock)
                    number = self._hazards.step(instruction.pipe)
                    self._waits[_flag(instruction)] = number, issued.index
                case PipeBarrier():
                    self._hazards.barrier(instruction.of)
                case _:
                    effect = self._core.effect(instruction)
                    self._hazards.access(issued.index, instruction, effect.reads, effect.writes)
                    self._core.apply(
                        issued.index, instruction, effect, issued.registers, issued.lives
                    )
        except SimulatorFault as fault:
            raise Fault(issued.index, str(fault), fault.at or _operand(instruction)) from None

    def _set_flag(self, issued: _Issued, instruction: SetFlag) -> None:
        flag = _flag(instruction)
        if flag in self._flags:
            raise SimulatorFault(
                f"is already set, by {self._name(self._flags[flag][1])}, and nobody waited for it"
            )
        if flag in self._waits:
            number, index = self._waits[flag]
            waiter = instruction.event.waiter
            # The scalar pipe issues in program order: what comes behind its wait is set after it.
            if not (
                issued.index > index
                if waiter is Pipe.S
                else self._hazards.knows(instruction.pipe, waiter, number)
            ):
                raise SimulatorFault(
                    f"may come before {self._name(index)} has waited for the last set: no flag or "
                    f"barrier tells {instruction.pipe.name} that it has"
                )
        self._flags[flag] = (self._hazards.snapshot(instruction.pipe), issued.index)

    def _check_finished(self) -> None:
        self._check_drained()
        for _, index in self._flags.values():
            raise Fault(index, "is never waited for: the flag is still set at the end")

    def _check_drained(self) -> None:
        for queue in self._queues.values():
            if queue:
                raise Fault(queue[0].index, self._why_stuck(queue[0]))

    def _why_stuck(self, issued: _Issued) -> str:
        """The text on a wait: for a flag that nothing sets, or in a circle of waits."""
        assert isinstance(issued.instruction, WaitFlag)
        wanted = _flag(issued.instruction)
        for pipe, queue in self._queues.items():
            for other in queue:
                if isinstance(other.instruction, SetFlag) and _flag(other.instruction) == wanted:
                    return (
                        f"waits for ever: {pipe.name}, which sets this flag in "
                        f"{self._name(other.index)}, is stuck in {self._name(queue[0].index)}: "
                        "a dead-lock"
                    )
        return "waits for ever: no instruction sets this flag"


def _operand(instruction: Instruction) -> tuple[str, int] | None:
    """The first byte that an instruction reads, or writes where it reads none."""
    for name in ("src", "src0", "dst"):
        address = getattr(instruction, name, None)
        if address is not None:
            return address.space, address.offset_bytes
    return None


def _flag(instruction: SetFlag | WaitFlag) -> Flag:
    return instruction.event, instruction.event_id
