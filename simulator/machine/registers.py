"""The registers of a core that a cast depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from simulator.machine.cast_table import CTRL_CAST, CTRL_FLOAT
from simulator.machine.isa import RestoreCtrl, SetCtrl, SetDeqScale
from simulator.machine.memory import SimulatorFault


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers:
    """Control bits and deq scale, as an instruction finds them when it is issued.

    Attributes:
        inf_nan: CTRL_FLOAT.
        truncate: CTRL_CAST.
        deq_scale: None: never set.
        changed: the control bits that were set and not restored since, whatever their value: what
            a program finds in them is not known before.
    """

    inf_nan: bool = True
    truncate: bool = False
    deq_scale: float | None = None
    changed: frozenset[int] = frozenset()

    @property
    def ctrl(self) -> Mapping[int, bool]:
        return {CTRL_FLOAT: self.inf_nan, CTRL_CAST: self.truncate}


def next_registers(
    registers: Registers, instruction: SetCtrl | RestoreCtrl | SetDeqScale
) -> Registers:
    """The registers after a scalar instruction.

    Raises:
        SimulatorFault: A2/A3 has no such control bit.
    """
    if isinstance(instruction, SetDeqScale):
        return replace(registers, deq_scale=instruction.scale)
    if isinstance(instruction, RestoreCtrl):
        return Registers(deq_scale=registers.deq_scale)
    changed = registers.changed | {instruction.bit}
    if instruction.bit == CTRL_FLOAT:
        return replace(registers, inf_nan=instruction.value, changed=changed)
    if instruction.bit == CTRL_CAST:
        return replace(registers, truncate=instruction.value, changed=changed)
    raise SimulatorFault(f"A2/A3 has no control bit {instruction.bit} for Cast")


def left_behind(registers: Registers) -> Iterator[tuple[int | None, str]]:
    """Yields the registers that a program does not leave to the next one as it must, and a text.

    Those are control bits that are not restored, and the deq scale, which cannot be read, where it
    is not 1: it has no bit.
    """
    for bit in sorted(registers.changed):
        ends = "the program ends with another CTRL than it found"
        yield bit, f"{ends}: bit {bit} was set and not restored"
    if registers.deq_scale not in (None, 1.0):
        yield None, f"the program leaves the deq scale at {registers.deq_scale:g}, not 1"
