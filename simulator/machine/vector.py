"""The vector instructions: what they may touch, and what they make of UB and its shadow.

Source of the two forms of Cast: CANN asc-devkit, Cast and the guide on masks, repeats and strides.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable

import numpy as np

from simulator.corrections import Corrections, kernel
from simulator.machine.addresses import Addresses, Effect
from simulator.machine.cast_table import CAST_TABLE, CTRL_FLOAT, cast_policy
from simulator.machine.isa import (
    And,
    AndRepeat,
    Cast,
    CastRepeat,
    Duplicate,
    ScalarOp,
    VectorScalar,
)
from simulator.machine.memory import (
    Known,
    Offsets,
    Region,
    SimulatorFault,
    VectorMemory,
    load,
    packed,
)
from simulator.machine.registers import Registers
from simulator.machine.repeats import (
    active_bytes,
    operands,
    refuse_overlap,
    repeat_effect,
)
from simulator.machine.scalar_work import SCALAR_FORMATS, ScalarWork
from simulator.numbers import elementwise
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import FP16, INT32, Codes, Format, IntFormat
from simulator.numbers.rounding import RoundMode
from tiling.chips import Chip

VectorInstruction = Cast | CastRepeat | Duplicate | And | AndRepeat | VectorScalar


def effect(instruction: VectorInstruction, space: Addresses) -> Effect:
    """Check an instruction's form and addresses, and say what it touches.

    Raises:
        SimulatorFault: the hardware does not permit it.
    """
    match instruction:
        case Cast():
            _check_cast(instruction)
            src = space.span(instruction.src, instruction.count, instruction.src_format.bits)
            dst = space.span(instruction.dst, instruction.count, instruction.dst_format.bits)
            if not _narrows_in_place(instruction):
                _check_overlap(src, dst)
            return Effect(reads=src, writes=dst)
        case CastRepeat():
            _check_cast(instruction)
            return repeat_effect(instruction, space)
        case Duplicate():
            return Effect(writes=space.span(instruction.dst, instruction.count, 16))
        case And():
            sources = (instruction.src0, instruction.src1)
            reads = tuple(r for a in sources for r in space.span(a, instruction.count, 16))
            writes = space.span(instruction.dst, instruction.count, 16)
            _check_overlap(reads, writes)
            return Effect(reads=reads, writes=writes)
        case AndRepeat():
            return repeat_effect(instruction, space)
        case VectorScalar():
            _check_scalar(instruction)
            bits = instruction.format.bits
            reads = space.span(instruction.src, instruction.count, bits)
            writes = space.span(instruction.dst, instruction.count, bits)
            _check_overlap(reads, writes)
            return Effect(reads=reads, writes=writes)


def _check_overlap(reads: tuple[Region, ...], writes: tuple[Region, ...]) -> None:
    for read, written in itertools.product(reads, writes):
        if read != written:
            refuse_overlap(read, written)


def carry_out(
    instruction: VectorInstruction,
    effect: Effect,
    chip: Chip,
    ub: VectorMemory,
    registers: Registers,
    exact: bool,
    corrections: Corrections,
) -> None:
    """Do what a checked instruction does; the shadow of its bytes goes along.

    Raises:
        SimulatorFault: a register is not set as the instruction needs it.
    """
    target, *sources = _places(instruction, effect, chip)
    match instruction:
        case Cast() | CastRepeat():
            convert = _conversion(instruction, registers, exact, corrections)
            formats = instruction.src_format, instruction.dst_format
            _map_elements(ub, sources[0], target, *formats, convert)
        case Duplicate():
            ub.bytes[target].view(np.uint16)[:] = np.uint16(instruction.value & 0xFFFF)
            ub.note(target)
        case And() | AndRepeat():
            known = np.logical_and(*(ub.known(source, _first(source)) for source in sources))
            ub.bytes[target] = np.bitwise_and(*(ub.bytes[source] for source in sources))
            ub.note(target, known)
        case VectorScalar():
            if not registers.inf_nan:
                raise SimulatorFault(
                    f"{instruction.op.value} is simulated with CTRL[{CTRL_FLOAT}] = 1 alone"
                )
            fmt = instruction.format
            work = ScalarWork(op=instruction.op, format=fmt, scalar=instruction.scalar)
            _map_elements(ub, sources[0], target, fmt, fmt, work.define)


_Place = slice | Offsets
"""The bytes of an operand in UB, in the order of its elements."""


def _places(instruction: VectorInstruction, effect: Effect, chip: Chip) -> tuple[_Place, ...]:
    """The destination, then the sources."""
    if isinstance(instruction, (CastRepeat, AndRepeat)):
        return tuple(
            operand[1].offset_bytes + active_bytes(instruction, operand, chip)
            for operand in operands(instruction)
        )
    return tuple(slice(each.start, each.stop) for each in (*effect.writes, *effect.reads))


def _first(place: _Place) -> int:
    return place.start if isinstance(place, slice) else int(place[0])


def _map_elements(
    ub: VectorMemory,
    source: _Place,
    target: _Place,
    src: Format,
    dst: Format,
    work: Callable[[Codes], Codes],
) -> None:
    """Work on elements one by one; of an element of which a byte is garbage, all of it is."""
    known = ub.known(source, _first(source))
    ub.bytes[target] = packed(work(load(ub.bytes[source], src)), dst)
    if known.all():
        ub.note(target)
    else:
        ub.note(target, _bytes_of_lanes(_lanes_of_bytes(known, src), dst))


def _conversion(
    cast: Cast | CastRepeat, registers: Registers, exact: bool, corrections: Corrections
) -> Callable[[Codes], Codes]:
    formats = cast.src_format, cast.dst_format
    if formats == (INT32, FP16) and registers.deq_scale != 1.0:
        raise SimulatorFault(
            f"INT32 -> FP16 multiplies by the deq scale, which is {registers.deq_scale}; "
            "SetDeqScale 1 first"
        )
    run = _kernel(*formats, cast.mode, registers, exact, corrections)

    def convert(codes: Codes) -> Codes:
        result = np.empty(codes.shape, cast.dst_format.code_dtype)
        run(codes, result)
        return result

    return convert


@functools.lru_cache(maxsize=256)
def _kernel(
    src: Format,
    dst: Format,
    mode: RoundMode | None,
    registers: Registers,
    exact: bool,
    corrections: Corrections,
) -> elementwise.Kernel:
    conversion = Conversion(
        src=src,
        dst=dst,
        mode=RoundMode.RINT if mode is None else mode,
        policy=cast_policy(dst, registers.ctrl),
    )
    return kernel((conversion,), corrections, exact=exact, engine="numpy")


def _narrows_in_place(cast: Cast) -> bool:
    """Tells whether a Cast by count writes narrower elements from its source's own address on.

    Cast's document calls only widening unsafe where addresses overlap. The rule that source and
    destination coincide wholly or not at all is for the form by repeats (CANN asc-devkit, general
    restrictions, address overlap). CANN's own kernels narrow by count in place (ops-nn,
    ascend_quant_v2, INT32 -> FP16).
    """
    return cast.src == cast.dst and cast.dst_format.bits < cast.src_format.bits


def _check_cast(cast: Cast | CastRepeat) -> None:
    row = CAST_TABLE.get((cast.src_format, cast.dst_format))
    if row is None:
        raise SimulatorFault(f"Cast has no pair {cast.src_format} -> {cast.dst_format}")
    if not (row.has_none if cast.mode is None else cast.mode in row.modes):
        modes = [mode.name for mode in row.modes] + ["NONE"] * row.has_none
        raise SimulatorFault(f"Cast has only the modes {', '.join(modes)} for this pair")


def _check_scalar(instruction: VectorScalar) -> None:
    name, fmt, known = instruction.op.value, instruction.format, SCALAR_FORMATS[instruction.op]
    if fmt not in known:
        raise SimulatorFault(f"{name} has {', '.join(map(str, known))} here, not {fmt}")
    is_shift = instruction.op in (ScalarOp.SHIFT_LEFT, ScalarOp.SHIFT_RIGHT)
    scalar = instruction.scalar
    if is_shift and (not 0 <= scalar <= fmt.bits or scalar % 1):
        raise SimulatorFault(f"{name} moves by 0 to {fmt.bits} bits, not {scalar}")
    if isinstance(fmt, IntFormat):
        is_number = fmt.min <= scalar <= fmt.max and not scalar % 1
    else:
        is_number = not math.isfinite(scalar) or abs(scalar) <= float(np.finfo(fmt.dtype).max)
    if not is_number:
        raise SimulatorFault(f"{name} takes a number of {fmt}, not {scalar}")


def _lanes_of_bytes(known: Known, fmt: Format) -> Known:
    if fmt.bits == 4:
        return known.repeat(2)
    lanes: Known = np.logical_and.reduce(known.reshape(-1, fmt.bits // 8), axis=1)
    return lanes


def _bytes_of_lanes(lanes: Known, fmt: Format) -> Known:
    if fmt.bits == 4:
        pairs: Known = np.logical_and.reduce(lanes.reshape(-1, 2), axis=1)
        return pairs
    return lanes.repeat(fmt.bits // 8)
