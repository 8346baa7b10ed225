"""The registers of a core that a cast depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from simulator.machine.cast_table import CTRL_CAST, CTRL_FLOAT
from simulator.machine.isa import SetCtrl, SetDeqScale
from simulator.machine.memory import SimulatorFault


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers:
    """Control bits and deq scale, as an instruction finds them when it is issued."""

    inf_nan: bool = True
    truncate: bool = False
    deq_scale: float | None = None

    @property
    def ctrl(self) -> Mapping[int, bool]:
        return {CTRL_FLOAT: self.inf_nan, CTRL_CAST: self.truncate}


def next_registers(registers: Registers, instruction: SetCtrl | SetDeqScale) -> Registers:
    """The registers after a scalar instruction.

    Raises:
        SimulatorFault: A2/A3 has no such control bit.
    """
    if isinstance(instruction, SetDeqScale):
        return replace(registers, deq_scale=instruction.scale)
    if instruction.bit == CTRL_FLOAT:
        return replace(registers, inf_nan=instruction.value)
    if instruction.bit == CTRL_CAST:
        return replace(registers, truncate=instruction.value)
    raise SimulatorFault(f"A2/A3 has no control bit {instruction.bit} for Cast")
