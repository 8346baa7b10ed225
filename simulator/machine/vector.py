"""The vector instructions: what they may touch, and what they make of UB and its shadow.

Source of the two forms of Cast: CANN asc-devkit, Cast and the guide on masks, repeats and strides.
"""

from __future__ import annotations

import functools
import itertools
from typing import Final

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
    UbAddress,
    VectorScalar,
)
from simulator.machine.memory import UB, Region, SimulatorFault, VectorMemory, load, packed
from simulator.machine.registers import Registers
from simulator.machine.scalar_work import SCALAR_FORMATS, ScalarWork
from simulator.numbers import elementwise
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import FP16, INT16, INT32, Codes, Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import Chip
from tiling.loads import MAX_REP_STRIDE

VectorInstruction = Cast | CastRepeat | Duplicate | And | AndRepeat | VectorScalar
_Repeated = CastRepeat | AndRepeat

MAX_BLK_STRIDE: Final = 65535
"""Of Cast; And's has 8 bits, as every stride of repeats (UnaryRepeatParams, BinaryRepeatParams)."""


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
            return _repeat_effect(instruction, space)
        case Duplicate():
            return Effect(writes=space.span(instruction.dst, instruction.count, 16))
        case And():
            sources = (instruction.src0, instruction.src1)
            reads = tuple(r for a in sources for r in space.span(a, instruction.count, 16))
            writes = space.span(instruction.dst, instruction.count, 16)
            for read in reads:
                _check_overlap((read,), writes)
            return Effect(reads=reads, writes=writes)
        case AndRepeat():
            return _repeat_effect(instruction, space)
        case VectorScalar():
            _check_scalar(instruction)
            bits = instruction.format.bits
            reads = space.span(instruction.src, instruction.count, bits)
            writes = space.span(instruction.dst, instruction.count, bits)
            _check_overlap(reads, writes)
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
                address.offset_bytes + _repeat_bytes(instruction, INT16, blk, rep, chip)
                for _, address, _, blk, rep in _operands(instruction)
            )
            for memory in (ub.bytes, ub.written):
                memory[into] = memory[one] & memory[other]
        case VectorScalar():
            if not registers.inf_nan:
                raise SimulatorFault(
                    f"{instruction.op.value} is simulated with CTRL[{CTRL_FLOAT}] = 1 alone"
                )
            _combine(instruction, effect, ub)


def overwritten_bytes(cast: CastRepeat, chip: Chip) -> int:
    """Bytes of results that a later repeat of a sound cast overwrites."""
    written = _repeat_bytes(cast, cast.dst_format, cast.dst_blk_stride, cast.dst_rep_stride, chip)
    return written.size - np.unique(written).size


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


_Operand = tuple[str, UbAddress, Format, int, int]
"""Of an instruction by repeats: name, address, format, strides of blocks and of repeats."""


def _operands(instruction: _Repeated) -> tuple[_Operand, ...]:
    """The destination, then the sources."""
    i = instruction
    if isinstance(i, CastRepeat):
        return (
            ("dst", i.dst, i.dst_format, i.dst_blk_stride, i.dst_rep_stride),
            ("src", i.src, i.src_format, i.src_blk_stride, i.src_rep_stride),
        )
    return (
        ("dst", i.dst, INT16, i.dst_blk_stride, i.dst_rep_stride),
        ("src0", i.src0, INT16, i.src0_blk_stride, i.src0_rep_stride),
        ("src1", i.src1, INT16, i.src1_blk_stride, i.src1_rep_stride),
    )


def _repeat_effect(instruction: _Repeated, space: Addresses) -> Effect:
    _check_repeat(instruction, space.chip)
    if instruction.repeat_times == 0 or not _mask_lanes(instruction, space.chip).any():
        return Effect()
    dst, *sources = (
        _repeat_regions(instruction, address, fmt, blk_stride, rep_stride, space)
        for _, address, fmt, blk_stride, rep_stride in _operands(instruction)
    )
    for src in sources:
        _check_overlap(src, dst)
        if src == dst and _repeats_overlap(instruction, src):
            raise SimulatorFault(
                f"in place, repeats overlap: one reads what another wrote, at {src[0]}"
            )
    return Effect(reads=tuple(itertools.chain.from_iterable(sources)), writes=dst)


def _repeats_overlap(cast: _Repeated, blocks: tuple[Region, ...]) -> bool:
    """Tells whether two repeats touch the same bytes; blocks of one repeat never do."""
    if cast.repeat_times > 1 and cast.dst_rep_stride == 0:
        return True
    return any(one.touches(other) for one, other in itertools.combinations(blocks, 2))


def _repeat_regions(
    cast: _Repeated,
    address: UbAddress,
    fmt: Format,
    blk_stride: int,
    rep_stride: int,
    space: Addresses,
) -> tuple[Region, ...]:
    """Returns the bytes of the active lanes: a region for each block, over all repeats."""
    line = space.chip.block_bytes
    in_row = _row_bytes(cast, fmt, space.chip)
    blocks = dict.fromkeys(int(block) * blk_stride for block in np.unique(in_row // line))
    whole = int(_repeat_bytes(cast, fmt, blk_stride, rep_stride, space.chip).max()) + 1
    space.ub_region(address, whole)
    count = cast.repeat_times if rep_stride else 1
    start = address.offset_bytes
    return tuple(
        Region(
            space=UB,
            start=start + block * line,
            width=min(line, whole - block * line),
            count=count,
            pitch=rep_stride * line,
        )
        for block in blocks
    )


def _cast_repeat(
    cast: CastRepeat,
    chip: Chip,
    ub: VectorMemory,
    registers: Registers,
    exact: bool,
    corrections: Corrections,
) -> None:
    dst, src = (
        address.offset_bytes + _repeat_bytes(cast, fmt, blk_stride, rep_stride, chip)
        for _, address, fmt, blk_stride, rep_stride in _operands(cast)
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


def _check_overlap(src: tuple[Region, ...], dst: tuple[Region, ...]) -> None:
    if src == dst:
        return
    for read in src:
        for written in dst:
            if read.touches(written):
                raise SimulatorFault(
                    f"source {read} and destination {written} overlap in part; only the same bytes "
                    "may be both"
                )


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


def _check_repeat(instruction: _Repeated, chip: Chip) -> None:
    if not 0 <= instruction.repeat_times <= chip.max_repeat:
        raise SimulatorFault(
            f"repeatTime must be 0 to {chip.max_repeat}, is {instruction.repeat_times}"
        )
    operands = _operands(instruction)
    most = MAX_BLK_STRIDE if isinstance(instruction, CastRepeat) else MAX_REP_STRIDE
    for name, _, _, blk_stride, rep_stride in operands:
        least = 1 if name == "dst" else 0
        if not 0 <= rep_stride <= MAX_REP_STRIDE:
            raise SimulatorFault(
                f"{name}RepStride must be 0 to {MAX_REP_STRIDE} blocks (8 bits), is {rep_stride}"
            )
        if not least <= blk_stride <= most:
            raise SimulatorFault(
                f"{name}BlkStride must be {least} to {most} blocks, is {blk_stride}"
            )
    mask, lanes = instruction.mask, _repeat_lanes(instruction, chip)
    if isinstance(mask, int):
        if not 0 <= mask <= lanes:
            raise SimulatorFault(f"mask must be 0 to {lanes} lanes for this pair, is {mask}")
    elif any(not 0 <= word < 1 << 64 for word in mask) or _mask_bits(instruction) >> lanes:
        raise SimulatorFault(f"mask {mask} has bits beyond the {lanes} lanes of this pair")
    if any(fmt.bits == 4 for _, _, fmt, _, _ in operands):
        pairs = _mask_lanes(instruction, chip).reshape(-1, 2)
        if (pairs[:, 0] != pairs[:, 1]).any():
            raise SimulatorFault("two elements of 4 bits share a byte: mask them in pairs")


def _repeat_lanes(instruction: _Repeated, chip: Chip) -> int:
    """Elements of one repeat: as many as 256 B hold of the wider type, at most 128."""
    wider = max(fmt.bits for _, _, fmt, _, _ in _operands(instruction))
    return chip.repeat_bytes * 8 // wider


def _mask_bits(cast: _Repeated) -> int:
    if isinstance(cast.mask, int):
        return (1 << cast.mask) - 1
    return cast.mask[0] | cast.mask[1] << 64


def _mask_lanes(cast: _Repeated, chip: Chip) -> npt.NDArray[np.bool_]:
    bits = _mask_bits(cast)
    return np.array([bits >> lane & 1 for lane in range(_repeat_lanes(cast, chip))], np.bool_)


def _row_bytes(cast: _Repeated, fmt: Format, chip: Chip) -> npt.NDArray[np.int64]:
    """Bytes of the active lanes of a repeat, its blocks side by side."""
    active = np.flatnonzero(_mask_lanes(cast, chip)).astype(np.int64)
    if fmt.bits == 4:
        return active[::2] // 2
    width = fmt.bits // 8
    return (active[:, None] * width + np.arange(width)).reshape(-1)


def _repeat_bytes(
    cast: _Repeated, fmt: Format, blk_stride: int, rep_stride: int, chip: Chip
) -> npt.NDArray[np.int64]:
    """Offsets of every byte that the active lanes of all repeats touch, repeat by repeat."""
    in_row = _row_bytes(cast, fmt, chip)
    line = chip.block_bytes
    in_repeat = in_row // line * blk_stride * line + in_row % line
    starts = np.arange(cast.repeat_times) * rep_stride * line
    offsets: npt.NDArray[np.int64] = (starts[:, None] + in_repeat).reshape(-1)
    return offsets


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
