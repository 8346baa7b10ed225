"""The machine: a tile program over GM, every instruction at worst, or all tiles of a cast at once.

GM and UB are byte arrays. At fidelity "instructions" a result leaves the machine only through a
copy from UB to GM, and whatever the hardware does not permit is a SimulatorFault.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from simulator import corrections as element_work
from simulator.corrections import NIBBLES, NO_CORRECTIONS, Corrections, ElementStep
from simulator.machine.core import VectorCore
from simulator.machine.isa import DataCopy, DataCopyPad, Instruction
from simulator.machine.memory import (
    UB,
    Bytes,
    GlobalMemory,
    SimulatorFault,
    UbRange,
    load,
    packed,
)
from simulator.machine.pipes import CopyCompletion, Fault, Scheduler, check_completion
from simulator.numbers import result_memory
from simulator.numbers.convert import codes_of
from simulator.numbers.engines import Engine
from simulator.numbers.formats import Codes
from tiling.chips import Chip

Fidelity = Literal["fast", "instructions"]
FIDELITIES: Final[tuple[Fidelity, ...]] = get_args(Fidelity)


class Program(Protocol):
    """The interface of a program that the machine runs."""

    @property
    def chip(self) -> Chip:
        """The chip it was written for."""

    @property
    def cores(self) -> range:
        """Cores that have work."""

    def instructions(self, core: int) -> Iterable[Instruction]:
        """The instructions of one core, in program order."""


@runtime_checkable
class MappedProgram(Program, Protocol):
    """A program that tells where things are: faults name them, and accesses must keep to them."""

    def ub_ranges(self, core: int) -> Sequence[UbRange]:
        """The buffers in the UB of a core."""

    def issued(self, core: int) -> Iterable[Instruction | UbRange]:
        """The instructions of a core and, where it is allocated, each buffer.

        From there on a buffer holds garbage to the instructions that follow, whatever was written
        before. Buffers that are not allocated keep what they hold.
        """

    def where(self, core: int, index: int) -> str:
        """Names the part of the program that an instruction belongs to, such as a tile."""


@runtime_checkable
class ElementwiseProgram(Program, Protocol):
    """A program whose tiles partition a tensor and treat every element alike."""

    @property
    def conversions(self) -> tuple[ElementStep, ...]:
        """The steps that each element goes through, in order."""

    @property
    def input(self) -> str:
        """Name of the tensor read in GM."""

    @property
    def output(self) -> str:
        """Name of the tensor written in GM."""


def execute(
    program: ElementwiseProgram,
    values: npt.NDArray[Any],
    *,
    fidelity: Fidelity = "fast",
    copy_completion: CopyCompletion = "latest",
    exact: bool = False,
    engine: Engine = "auto",
    threads: int = 1,
    corrections: Corrections = NO_CORRECTIONS,
    first_nibble: str = NIBBLES.default,
) -> Codes:
    """Put values into GM, run a cast program over them, and take the result out of GM.

    Args:
        program: the tile program of a cast.
        values: its input, any shape, strides and byte order; not modified.
        fidelity: "fast" takes all tiles together, piece by piece; "instructions" executes every
            instruction of every core. Both give the same bits.
        copy_completion: at "instructions", copies complete as late or as early as the flags allow.
        exact: convert by the definition instead of the fast paths.
        engine: what converts at "fast", as for `elementwise.loop`; instructions take numpy.
        threads: threads that share the work of "fast".
        corrections: what a measured device converts in its own way.
        first_nibble: at "instructions", as for `load`; the results are the same.

    Returns:
        Destination codes, one element each, 1-D in row-major order.

    Raises:
        SimulatorFault: "instructions" only.
        ValueError: an unknown fidelity, or completion of copies at "instructions".

    Warns:
        EngineWarning: see `elementwise.loop`.
    """
    if fidelity not in FIDELITIES:
        raise ValueError(f"fidelity must be one of {FIDELITIES}, not {fidelity!r}")
    steps = program.conversions
    src, dst = steps[0].src, steps[-1].dst
    if fidelity == "fast":
        out: Codes = result_memory.empty(values.size, dst.code_dtype)
        element_work.run(
            steps, values, out, corrections, exact=exact, engine=engine, threads=threads
        )
        return out
    native = values.astype(values.dtype.newbyteorder("<"), order="C", copy=False)
    gm = {
        program.input: packed(codes_of(native.reshape(-1), src), src, first_nibble).view(),
        program.output: np.empty(values.size * dst.bits // 8, np.uint8),
    }
    gm[program.input].flags.writeable = False
    run(
        program,
        gm,
        copy_completion=copy_completion,
        exact=exact,
        corrections=corrections,
        first_nibble=first_nibble,
    )
    return load(gm[program.output], dst, first_nibble)


def run(
    program: Program,
    gm: Mapping[str, Bytes],
    *,
    copy_completion: CopyCompletion = "latest",
    exact: bool = False,
    corrections: Corrections = NO_CORRECTIONS,
    first_nibble: str = NIBBLES.default,
) -> GlobalMemory:
    """Execute every instruction of a program over global memory.

    Args:
        program: the tile program.
        gm: one byte array per tensor; outputs are written in place.
        copy_completion: "latest" lets copies complete as late as the flags allow, "earliest"
            as early. A program without races gives the same bits.
        exact: convert by the definition instead of the fast paths.
        corrections: what a measured device converts in its own way.
        first_nibble: as for `load`.

    Returns:
        The global memory, which knows what was written.

    Raises:
        SimulatorFault: naming core, instruction, tile and what is wrong with it.
        ValueError: an unknown completion of copies.
    """
    check_completion(copy_completion)
    memory = GlobalMemory(gm)
    # isinstance() looks for each name of a protocol, which takes longer than an instruction.
    mapped = program if isinstance(program, MappedProgram) else None
    elementwise = program if isinstance(program, ElementwiseProgram) else None
    vector_core: VectorCore | None = None
    for core in program.cores:
        ranges: Sequence[UbRange] = ()
        issued: Iterable[Instruction | UbRange] = program.instructions(core)
        if mapped is not None:
            ranges, issued = mapped.ub_ranges(core), mapped.issued(core)
        try:
            vector_core = VectorCore(
                *(core, program.chip, memory, ranges),
                exact=exact,
                corrections=corrections,
                first_nibble=first_nibble,
                like=vector_core,
            )
        except SimulatorFault as fault:
            raise SimulatorFault(f"core {core}: {fault}") from None
        name = functools.partial(_name, program, core)
        try:
            scheduler = Scheduler(vector_core, copy_completion, name, isa=program.chip.isa)
            scheduler.run(issued)
            if elementwise is not None:
                scheduler.check_left()
        except Fault as fault:
            text = f"core {core}, {name(fault.index)}: {fault}"
            if fault.at is not None:
                text += f"; {_last_writer(program, memory, vector_core, core, fault)}"
            raise SimulatorFault(text, fault.at) from None
    if elementwise is not None:
        _check_output(elementwise, memory)
    return memory


def _name(program: Program, core: int, index: int) -> str:
    """An instruction with its place in the program, and in the text that it was made from."""
    where = program.where(core, index) if isinstance(program, MappedProgram) else ""
    instruction = next(itertools.islice(program.instructions(core), index, None))
    return f"instruction {index}{f', {where}' if where else ''} ({instruction})"


def _last_writer(
    program: Program, memory: GlobalMemory, vector_core: VectorCore, core: int, fault: Fault
) -> str:
    """Says which instruction wrote the byte that a fault is about."""
    assert fault.at is not None
    space, byte = fault.at
    core_of, index, how = core, -1, ""
    if space == UB:
        number = vector_core.writer(byte)
        index, how = abs(number) - 1, ", with garbage," if number < 0 else ""
    elif (writer := memory.writer(space, byte)) is not None:
        core_of = writer
        copies = _copies_to(program, memory, writer, space, byte)
        index = max((i for i in copies if i < fault.index or writer != core), default=copies[0])
    if index < 0:
        return f"no instruction wrote byte {byte} of {space}"
    other = "" if core_of == core else f"core {core_of}, "
    name = _name(program, core_of, index)
    return f"byte {byte} of {space} was last written{how} by {other}{name}"


def _copies_to(
    program: Program, memory: GlobalMemory, core: int, space: str, byte: int
) -> list[int]:
    """The copies of a core, one at least, that write a byte of GM."""
    vector_core = VectorCore(core, program.chip, memory)
    found = []
    for index, instruction in enumerate(program.instructions(core)):
        if isinstance(instruction, (DataCopy, DataCopyPad)) and instruction.dst.space == space:
            # Copies that never ran may be faulty too.
            with contextlib.suppress(SimulatorFault):
                writes = vector_core.effect(instruction).writes
                found += [index for region in writes if byte in region]
    return found


def _check_output(program: ElementwiseProgram, memory: GlobalMemory) -> None:
    missing = memory.unwritten(program.output)
    if missing:
        raise SimulatorFault(
            f"the program ends with {sum(map(len, missing))} B of gm.{program.output} never "
            f"written, the first at byte {missing[0].start}"
        )
