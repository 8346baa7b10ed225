"""Running the pipes of one core: in order within a pipe, at worst between pipes.

The scalar pipe issues the program. The other pipes take their instructions in order and stop at a
WaitFlag until its flag is raised. Which pipe goes next is otherwise open on the device, so the user
picks an extreme: copies land as late as the flags allow, or as early.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NamedTuple, Protocol, get_args

from simulator.machine.core import Registers, left_behind, next_registers
from simulator.machine.hazards import Clock, Hazards
from simulator.machine.isa import (
    EVENT_IDS,
    HardEvent,
    Pipe,
    PipeBarrier,
    RestoreCtrl,
    SetCtrl,
    SetDeqScale,
    SetFlag,
    WaitFlag,
)
from simulator.machine.memory import Effect, Lives, SimulatorFault, UbRange

CopyCompletion = Literal["latest", "earliest"]
COPY_COMPLETIONS: Final[tuple[CopyCompletion, ...]] = get_args(CopyCompletion)

_ORDER: Final[dict[CopyCompletion, tuple[Pipe, ...]]] = {
    "latest": (Pipe.V, Pipe.MTE3, Pipe.MTE2),
    "earliest": (Pipe.MTE2, Pipe.MTE3, Pipe.V),
}
_WINDOW: Final = 48
"""Instructions issued ahead; any number would do, since flags bound the order."""

Flag = tuple[HardEvent, int]


def check_completion(given: str) -> None:
    """Refuse a value that is no completion of copies.

    Raises:
        ValueError: it is neither "latest" nor "earliest".
    """
    if given not in COPY_COMPLETIONS:
        raise ValueError(f"copy_completion must be one of {COPY_COMPLETIONS}, not {given!r}")


class Core(Protocol):
    """The memory of a core, and the meaning of the instructions of its pipes."""

    def effect(self, instruction: Any, /) -> Effect:
        """Check an instruction, and return the bytes that it touches."""

    def apply(
        self, index: int, instruction: Any, effect: Effect, registers: Registers, lives: Lives, /
    ) -> None:
        """Execute an instruction whose effect was checked."""


class OnPipe(Protocol):
    """An instruction of the core, or another step that runs in a queue."""

    @property
    def pipe(self) -> Pipe: ...


class Fault(Exception):
    """A fault of an instruction of a core, by its index, and the memory and byte it is about."""

    def __init__(self, index: int, text: str, at: tuple[str, int] | None = None) -> None:
        super().__init__(text)
        self.index = index
        self.at = at


class _Issued(NamedTuple):
    """An instruction, and the state of the core as the scalar pipe issued it.

    Attributes:
        place: its index among the instructions.
        flag: the one that it sets or waits for, if it does.
    """

    place: int
    instruction: OnPipe
    pipe: Pipe
    flag: Flag | None
    registers: Registers
    lives: Lives
    clock: Clock


class Scheduler:
    """The pipes of one core while it runs a program.

    Args:
        core: memory, and the meaning of each instruction.
        copy_completion: copies complete as late or as early as the flags allow.
        name: names an instruction of the program by its index.
        doubt: takes what is no fault then: a flag that may be set again before the wait which lies
            between in the program is over. It is set when that wait is.
        isa: the family of the chip, whose control bits the program may set.
        scalar_accesses: the scalar pipe reads and writes UB too.
    """

    def __init__(
        self,
        core: Core,
        copy_completion: CopyCompletion,
        name: Callable[[int], str],
        doubt: Callable[[Fault], object] | None = None,
        *,
        isa: str,
        scalar_accesses: bool = False,
    ) -> None:
        self._core = core
        self._isa = isa
        self._order = _ORDER[copy_completion]
        self._name = name
        self._doubt = doubt
        self._hazards = Hazards(name, scalar_accesses=scalar_accesses)
        self._flags: dict[Flag, tuple[Clock, int]] = {}
        self._waits: dict[Flag, tuple[int, int]] = {}
        self._waits_issued: dict[Flag, int] = {}
        self._waits_between: dict[int, int] = {}
        self._queues: dict[Pipe, deque[_Issued]] = {pipe: deque() for pipe in self._order}
        self._waiting = 0
        self._registers = Registers()
        self._set_by: dict[int | None, int] = {}
        self._lives: Lives = {}

    def run(self, program: Iterable[OnPipe | UbRange]) -> None:
        """Run a program to its end.

        Args:
            program: the instructions in program order, and before them the buffers that are
                allocated there.

        Raises:
            Fault: an instruction faults, waits for ever, or leaves a flag behind.
        """
        index, hazards = 0, self._hazards
        for each in program:
            if isinstance(each, UbRange):
                self._lives = {**self._lives, each: index}
                continue
            flag, clock = _flag(each), hazards.issue_clock
            self._issue(_Issued(index, each, each.pipe, flag, self._registers, self._lives, clock))
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
        if issued.flag is not None:
            self._note_flag(issued.place, instruction, issued.flag)
        elif isinstance(instruction, (SetCtrl, RestoreCtrl, SetDeqScale)):
            try:
                self._registers = next_registers(self._registers, instruction, self._isa)
            except SimulatorFault as fault:
                raise Fault(issued.place, str(fault)) from None
            self._set_by[instruction.bit if isinstance(instruction, SetCtrl) else None] = (
                issued.place
            )
            return
        elif isinstance(instruction, PipeBarrier) and instruction.of is Pipe.ALL:
            while self._step():
                pass
            self._check_drained()
            self._hazards.barrier(Pipe.ALL)
            return
        if issued.pipe is Pipe.S:
            while not self._is_runnable(issued) and self._step():
                pass
            if not self._is_runnable(issued):
                raise Fault(issued.place, self._why_stuck(issued))
            self._execute(issued)
        else:
            self._queues[issued.pipe].append(issued)
            self._waiting += 1

    def _note_flag(self, index: int, instruction: OnPipe, flag: Flag) -> None:
        """Note the waits that lie between two sets of a flag in the program."""
        if not 0 <= flag[1] < EVENT_IDS:
            raise Fault(index, f"event id must be 0 to {EVENT_IDS - 1}")
        if isinstance(instruction, WaitFlag):
            self._waits_issued[flag] = index
        elif flag in self._waits_issued:
            self._waits_between[index] = self._waits_issued.pop(flag)

    def _step(self) -> bool:
        """Execute one instruction of the pipe that goes first; False if every pipe is stuck."""
        for queue in self._queues.values():
            if queue and (queue[0].flag is None or self._is_runnable(queue[0])):
                self._waiting -= 1
                self._execute(queue.popleft())
                return True
        return False

    def _is_runnable(self, issued: _Issued) -> bool:
        if issued.flag is None:
            return True
        if isinstance(issued.instruction, WaitFlag):
            return issued.flag in self._flags
        return issued.place not in self._waits_between or issued.flag not in self._flags

    def _execute(self, issued: _Issued) -> None:
        index, instruction, pipe, flag, registers, lives, clock = issued
        hazards = self._hazards
        hazards.begin(pipe, clock)
        try:
            if flag is None:
                if isinstance(instruction, PipeBarrier):
                    hazards.barrier(instruction.of)
                    return
                effect = self._core.effect(instruction)
                hazards.access(index, pipe, effect)
                self._core.apply(index, instruction, effect, registers, lives)
            elif isinstance(instruction, SetFlag):
                self._set_flag(issued, instruction, flag)
            else:
                set_clock, _ = self._flags.pop(flag)
                hazards.learn(pipe, set_clock)
                self._waits[flag] = hazards.step(pipe), index
        except SimulatorFault as fault:
            raise Fault(index, str(fault), fault.at or _operand(instruction)) from None

    def _set_flag(self, issued: _Issued, instruction: SetFlag, flag: Flag) -> None:
        is_behind_wait = self._waits_between.pop(issued.place, None) is not None
        if flag in self._flags:
            raise SimulatorFault(
                f"is already set, by {self._name(self._flags[flag][1])}, and nobody waited for it"
            )
        if flag in self._waits:
            number, index = self._waits[flag]
            waiter = instruction.event.waiter
            # The scalar pipe issues in program order: what comes behind its wait is set after it.
            if not (
                issued.place > index
                if waiter is Pipe.S
                else self._hazards.knows(issued.pipe, waiter, number)
            ):
                text = (
                    f"may come before {self._name(index)} has waited for the last set: no flag or "
                    f"barrier tells {issued.pipe.name} that it has"
                )
                if self._doubt is None or not is_behind_wait:
                    raise SimulatorFault(text)
                self._doubt(Fault(issued.place, text))
        self._flags[flag] = (self._hazards.snapshot(issued.pipe), issued.place)

    def _check_finished(self) -> None:
        self._check_drained()
        for _, index in self._flags.values():
            raise Fault(index, "is never waited for: the flag is still set at the end")

    def _check_drained(self) -> None:
        for queue in self._queues.values():
            if queue:
                raise Fault(queue[0].place, self._why_stuck(queue[0]))

    def _why_stuck(self, issued: _Issued) -> str:
        """The text on a wait: for a flag that nothing sets, or in a circle of waits.

        A set that a wait is to come before is stuck where that wait is behind it in a circle.
        """
        if isinstance(issued.instruction, SetFlag):
            wait = self._waits_between[issued.place]
            return f"comes before {self._name(wait)} has waited for the last set: a dead-lock"
        for pipe, queue in self._queues.items():
            for other in queue:
                if isinstance(other.instruction, SetFlag) and other.flag == issued.flag:
                    return (
                        f"waits for ever: {pipe.name}, which sets this flag in "
                        f"{self._name(other.place)}, is stuck in {self._name(queue[0].place)}: "
                        "a dead-lock"
                    )
        return "waits for ever: no instruction sets this flag"


def _operand(instruction: OnPipe) -> tuple[str, int] | None:
    """The first byte that an instruction reads, or writes where it reads none."""
    for name in ("src", "src0", "dst"):
        address = getattr(instruction, name, None)
        if address is not None:
            return address.space, address.offset_bytes
    return None


def _flag(instruction: OnPipe) -> Flag | None:
    """The flag that an instruction sets or waits for; None of another."""
    if isinstance(instruction, (SetFlag, WaitFlag)):
        return instruction.event, instruction.event_id
    return None
