"""The vector instructions: what they may touch, and what they make of UB and its shadow.

Source of the two forms of Cast: CANN asc-devkit, Cast and the guide on masks, repeats and strides.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

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
from simulator.machine.memory import Region, SimulatorFault, VectorMemory, load, packed
from simulator.machine.registers import Registers
from simulator.machine.repeats import (
    check_overlap,
    operands,
    repeat_bytes,
    repeat_effect,
)
from simulator.machine.scalar_work import SCALAR_FORMATS, ScalarWork
from simulator.numbers import elementwise
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import FP16, INT16, INT32, Codes, Format
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
                check_overlap(src, dst)
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
            for read in reads:
                check_overlap((read,), writes)
            return Effect(reads=reads, writes=writes)
        case AndRepeat():
            return repeat_effect(instruction, space)
        case VectorScalar():
            _check_scalar(instruction)
            bits = instruction.format.bits
            reads = space.span(instruction.src, instruction.count, bits)
            writes = space.span(instruction.dst, instruction.count, bits)
            check_overlap(reads, writes)
            return Effect(reads=reads, writes=writes)


def carry_out(
    instruction: VectorInstruction,
    effect: Effect,
    chip: Chip,
    ub: VectorMemory,
    registers: Registers,
    exact: bool,
    corrections: Corrections,
) -> None:
    """Do what a checked instruction does; the shadow of written bytes goes along.

    Raises:
        SimulatorFault: a register is not set as the instruction needs it.
    """
    match instruction:
        case Cast():
            _cast(instruction, effect, ub, registers, exact, corrections)
        case CastRepeat():
            _cast_repeat(instruction, chip, ub, registers, exact, corrections)
        case Duplicate():
            region = effect.writes[0]
            _ub_int16(region, ub)[:] = np.uint16(instruction.value & 0xFFFF)
            ub.written[region.start : region.stop] = True
        case And():
            first, second = effect.reads
            target = effect.writes[0]
            written = ub.written
            np.bitwise_and(_ub_int16(first, ub), _ub_int16(second, ub), out=_ub_int16(target, ub))
            written[target.start : target.stop] = (
                written[first.start : first.stop] & written[second.start : second.stop]
            )
        case AndRepeat():
            into, one, other = (
                address.offset_bytes + repeat_bytes(instruction, INT16, blk, rep, chip)
                for _, address, _, blk, rep in operands(instruction)
            )
            for memory in (ub.bytes, ub.written):
                memory[into] = memory[one] & memory[other]
        case VectorScalar():
            if not registers.inf_nan:
                raise SimulatorFault(
                    f"{instruction.op.value} is simulated with CTRL[{CTRL_FLOAT}] = 1 alone"
                )
            _combine(instruction, effect, ub)


def _ub_int16(region: Region, ub: VectorMemory) -> npt.NDArray[np.uint16]:
    return ub.bytes[region.start : region.stop].view(np.uint16)


def _convert(
    cast: Cast | CastRepeat,
    codes: Codes,
    registers: Registers,
    exact: bool,
    corrections: Corrections,
) -> Codes:
    if (cast.src_format, cast.dst_format) == (INT32, FP16) and registers.deq_scale != 1.0:
        raise SimulatorFault(
            f"INT32 -> FP16 multiplies by the deq scale, which is {registers.deq_scale}; "
            "SetDeqScale 1 first"
        )
    formats = cast.src_format, cast.dst_format
    convert = _kernel(*formats, cast.mode, registers, exact, corrections)
    result = np.empty(codes.shape, cast.dst_format.code_dtype)
    convert(codes, result)
    return result


def _cast(
    cast: Cast,
    effect: Effect,
    ub: VectorMemory,
    registers: Registers,
    exact: bool,
    corrections: Corrections,
) -> None:
    src, dst = effect.reads[0], effect.writes[0]
    codes = load(ub.bytes[src.start : src.stop], cast.src_format)
    result = _convert(cast, codes, registers, exact, corrections)
    shadow = ub.written
    ub.bytes[dst.start : dst.stop] = packed(result, cast.dst_format)
    if shadow[src.start : src.stop].all():
        shadow[dst.start : dst.stop] = True
        return
    lanes = _lanes_of_bytes(shadow[src.start : src.stop], cast.src_format)
    shadow[dst.start : dst.stop] = _bytes_of_lanes(lanes, cast.dst_format)


def _combine(instruction: VectorScalar, effect: Effect, ub: VectorMemory) -> None:
    src, dst = effect.reads[0], effect.writes[0]
    fmt = instruction.format
    codes = load(ub.bytes[src.start : src.stop], fmt)
    work = ScalarWork(op=instruction.op, format=fmt, scalar=instruction.scalar)
    lanes = _lanes_of_bytes(ub.written[src.start : src.stop], fmt)
    ub.bytes[dst.start : dst.stop] = packed(work.define(codes), fmt)
    ub.written[dst.start : dst.stop] = _bytes_of_lanes(lanes, fmt)


def _cast_repeat(
    cast: CastRepeat,
    chip: Chip,
    ub: VectorMemory,
    registers: Registers,
    exact: bool,
    corrections: Corrections,
) -> None:
    dst, src = (
        address.offset_bytes + repeat_bytes(cast, fmt, blk_stride, rep_stride, chip)
        for _, address, fmt, blk_stride, rep_stride in operands(cast)
    )
    codes = load(ub.bytes[src].reshape(-1), cast.src_format)
    result = packed(_convert(cast, codes, registers, exact, corrections), cast.dst_format)
    lanes = _lanes_of_bytes(ub.written[src].reshape(-1), cast.src_format)
    ub.bytes[dst] = result
    ub.written[dst] = _bytes_of_lanes(lanes, cast.dst_format)


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
    if is_shift and not 0 <= instruction.scalar <= fmt.bits:
        raise SimulatorFault(f"{name} moves by 0 to {fmt.bits} bits, not {instruction.scalar}")


def _lanes_of_bytes(written: npt.NDArray[np.bool_], fmt: Format) -> npt.NDArray[np.bool_]:
    if fmt.bits == 4:
        return written.repeat(2)
    lanes: npt.NDArray[np.bool_] = np.logical_and.reduce(written.reshape(-1, fmt.bits // 8), axis=1)
    return lanes


def _bytes_of_lanes(lanes: npt.NDArray[np.bool_], fmt: Format) -> npt.NDArray[np.bool_]:
    if fmt.bits == 4:
        pairs: npt.NDArray[np.bool_] = np.logical_and.reduce(lanes.reshape(-1, 2), axis=1)
        return pairs
    return lanes.repeat(fmt.bits // 8)
