"""One vector core: its UB, and what each instruction touches and does."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.corrections import NO_CORRECTIONS, Corrections
from simulator.machine import copies, vector
from simulator.machine.addresses import Addresses, Effect
from simulator.machine.isa import (
    And,
    AndRepeat,
    Cast,
    CastRepeat,
    DataCopy,
    DataCopyPad,
    Duplicate,
    Instruction,
    VectorScalar,
)
from simulator.machine.memory import GlobalMemory, Lives, UbRange, VectorMemory
from simulator.machine.registers import Registers
from tiling.chips import Chip


class VectorCore:
    """The memory of one AIV core and the meaning of each instruction.

    Args:
        number: which core.
        chip: sizes and limits.
        gm: global memory, shared by all cores.
        buffers: parts of UB that accesses must keep to; any part of UB if there are none.
        exact: convert by the definition instead of the fast paths.
        corrections: what a measured device converts in its own way.

    Raises:
        SimulatorFault: buffers overlap, are not aligned or do not fit UB.
    """

    def __init__(
        self,
        number: int,
        chip: Chip,
        gm: GlobalMemory,
        buffers: Sequence[UbRange] = (),
        *,
        exact: bool = False,
        corrections: Corrections = NO_CORRECTIONS,
    ) -> None:
        self._number = number
        self._space = Addresses(chip, gm, buffers)
        # Of UB only what an access may reach.
        self._ub = VectorMemory(max((each.stop for each in buffers), default=chip.ub_bytes))
        self._exact = exact
        self._corrections = corrections

    def effect(self, instruction: Instruction) -> Effect:
        """Check an instruction's form and addresses, and say what it touches.

        Raises:
            SimulatorFault: the hardware does not permit it.
        """
        match instruction:
            case DataCopyPad():
                return copies.copy_pad_effect(instruction, self._space)
            case DataCopy():
                return copies.copy_effect(instruction, self._space)
            case Cast() | CastRepeat() | Duplicate() | And() | AndRepeat() | VectorScalar():
                return vector.effect(instruction, self._space)
        return Effect()

    def writer(self, byte: int) -> int:
        """The number of the instruction that wrote a byte of UB last, as `VectorMemory.writers`."""
        writers = self._ub.writers
        return int(writers[byte]) if 0 <= byte < writers.size else 0

    def apply(
        self,
        index: int,
        instruction: Instruction,
        effect: Effect,
        registers: Registers,
        lives: Lives,
    ) -> None:
        """Carry out an instruction whose effect was checked.

        Args:
            index: its place in the program of the core.
            instruction: the instruction.
            effect: the bytes that it touches.
            registers: as they were when it was issued.
            lives: likewise, the buffers that were allocated.

        Raises:
            SimulatorFault: garbage would reach GM, GM is not this core's to touch, or a register is
                not set as the instruction needs it.
        """
        if not effect.writes:
            return
        space = self._space
        self._ub.begin(index, lives)
        match instruction:
            case DataCopy() | DataCopyPad():
                copies.carry_out(instruction, effect, self._ub, space.gm, self._number)
            case Cast() | CastRepeat() | Duplicate() | And() | AndRepeat() | VectorScalar():
                vector.carry_out(
                    instruction,
                    effect,
                    space.chip,
                    self._ub,
                    registers,
                    self._exact,
                    self._corrections,
                )
