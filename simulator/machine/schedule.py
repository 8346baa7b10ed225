"""Running the pipes of one core: in order within a pipe, at worst between pipes.

The scalar pipe issues the program. The other pipes take their instructions in order and stop at a
WaitFlag until its flag is raised. Which pipe goes next is otherwise open on the device, so the user
picks an extreme: copies land as late as the flags allow, or as early.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from simulator.machine.core import VectorCore
from simulator.machine.hazards import Clock, Hazards
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
from simulator.machine.memory import SimulatorFault
from simulator.machine.registers import Registers, next_registers

Landing = Literal["latest", "earliest"]
LANDINGS: Final[tuple[Landing, ...]] = get_args(Landing)

_ORDER: Final[dict[Landing, tuple[Pipe, ...]]] = {
    "latest": (Pipe.V, Pipe.MTE3, Pipe.MTE2),
    "earliest": (Pipe.MTE2, Pipe.MTE3, Pipe.V),
}
_WINDOW: Final = 48
"""Instructions issued ahead; any number would do, the flags bound what matters."""

Flag = tuple[HardEvent, int]


class Fault(Exception):
    """A fault with the instruction it belongs to, before it is put into words."""

    def __init__(self, index: int, instruction: Instruction | None, text: str) -> None:
        super().__init__(text)
        self.index = index
        self.instruction = instruction
        self.text = text


@dataclass(frozen=True, slots=True)
class _Issued:
    index: int
    instruction: Instruction
    registers: Registers


class Scheduler:
    """The pipes of one core while it runs a program."""

    def __init__(self, core: VectorCore, landing: Landing) -> None:
        self._core = core
        self._order = _ORDER[landing]
        self._hazards = Hazards()
        self._flags: dict[Flag, tuple[Clock, int]] = {}
        self._waits: dict[Flag, tuple[int, int]] = {}
        self._queues: dict[Pipe, deque[_Issued]] = {pipe: deque() for pipe in self._order}
        self._waiting = 0
        self._registers = Registers()

    def run(self, instructions: Iterable[Instruction]) -> Registers:
        """Run a program to its end.

        Returns:
            The registers as the program leaves them.

        Raises:
            Fault: an instruction faults, waits for ever, or leaves a flag behind.
        """
        for index, instruction in enumerate(instructions):
            self._issue(_Issued(index, instruction, self._registers))
            while self._waiting > _WINDOW and self._step():
                pass
        while self._step():
            pass
        self._check_finished()
        return self._registers

    def _issue(self, issued: _Issued) -> None:
        instruction = issued.instruction
        if isinstance(instruction, (SetFlag, WaitFlag)):
            self._check_event_id(issued.index, instruction)
        if isinstance(instruction, (SetCtrl, RestoreCtrl, SetDeqScale)):
            try:
                self._registers = next_registers(self._registers, instruction)
            except SimulatorFault as fault:
                raise Fault(issued.index, instruction, str(fault)) from None
        elif isinstance(instruction, PipeBarrier) and instruction.of is Pipe.ALL:
            while self._step():
                pass
            self._check_drained()
            self._hazards.barrier(Pipe.ALL)
        elif instruction.pipe is Pipe.S:
            while not self._is_runnable(issued) and self._step():
                pass
            if not self._is_runnable(issued):
                raise Fault(issued.index, instruction, self._why_stuck(issued))
            self._execute(issued)
        else:
            self._queues[instruction.pipe].append(issued)
            self._waiting += 1

    def _check_event_id(self, index: int, instruction: SetFlag | WaitFlag) -> None:
        if not 0 <= instruction.event_id < EVENT_IDS:
            raise Fault(index, instruction, f"event id must be 0 to {EVENT_IDS - 1}")

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
                    self._core.apply(instruction, effect, issued.registers)
        except SimulatorFault as fault:
            raise Fault(issued.index, instruction, str(fault)) from None

    def _set_flag(self, issued: _Issued, instruction: SetFlag) -> None:
        flag = _flag(instruction)
        if flag in self._flags:
            raise SimulatorFault(
                f"is already set, by instruction {self._flags[flag][1]}, and nobody waited for it"
            )
        if flag in self._waits:
            number, index = self._waits[flag]
            if not self._hazards.knows(instruction.pipe, instruction.event.waiter, number):
                raise SimulatorFault(
                    f"may come before instruction {index} has waited for the last set: no flag or "
                    f"barrier tells {instruction.pipe.name} that it has"
                )
        self._flags[flag] = (self._hazards.snapshot(instruction.pipe), issued.index)

    def _check_finished(self) -> None:
        self._check_drained()
        for (event, event_id), (_, index) in self._flags.items():
            raise Fault(
                index,
                SetFlag(event=event, event_id=event_id),
                "is never waited for: the flag is still set at the end",
            )

    def _check_drained(self) -> None:
        for queue in self._queues.values():
            if queue:
                raise Fault(queue[0].index, queue[0].instruction, self._why_stuck(queue[0]))

    def _why_stuck(self, issued: _Issued) -> str:
        """Tell a wait that nobody will answer from a circle of waits."""
        assert isinstance(issued.instruction, WaitFlag)
        wanted = _flag(issued.instruction)
        for pipe, queue in self._queues.items():
            for other in queue:
                if isinstance(other.instruction, SetFlag) and _flag(other.instruction) == wanted:
                    return (
                        f"waits for ever: {pipe.name}, which sets this flag in instruction "
                        f"{other.index}, is stuck in instruction {queue[0].index} "
                        f"({queue[0].instruction}): a dead-lock"
                    )
        return "waits for ever: no instruction sets this flag"


def _flag(instruction: SetFlag | WaitFlag) -> Flag:
    return instruction.event, instruction.event_id
