"""Instructions by repeats: the bytes that masks and strides choose, and the limits on them.

Source: CANN asc-devkit, Cast and the guide on masks, repeats and strides.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.machine.isa import (
    AndRepeat,
    CastRepeat,
    UbAddress,
)
from simulator.machine.memory import UB, Addresses, Effect, Offsets, Region, SimulatorFault
from simulator.numbers.formats import INT16, Format
from tiling.chips import Chip
from tiling.loads import MAX_REP_STRIDE

Repeated = CastRepeat | AndRepeat
Mask = int | tuple[int, int]

MAX_BLK_STRIDE: Final = 65535
"""Of Cast; And's has 8 bits, as every stride of repeats (UnaryRepeatParams, BinaryRepeatParams)."""


RepeatOperand = tuple[str, UbAddress, Format, int, int]
"""Of an instruction by repeats: name, address, format, strides of blocks and of repeats."""


def operands(instruction: Repeated) -> tuple[RepeatOperand, ...]:
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


def repeat_effect(instruction: Repeated, space: Addresses) -> Effect:
    _check_repeat(instruction, space.chip)
    if instruction.repeat_times == 0 or not _mask_bits(instruction.mask):
        return Effect()
    dst, *sources = operands(instruction)
    written = _repeat_region(instruction, dst, space)
    reads = []
    for src in sources:
        read = _repeat_region(instruction, src, space)
        reads.append(read)
        touched, changed = (active_bytes(instruction, each, space.chip) for each in (src, dst))
        if src[1] != dst[1] or not np.array_equal(touched, changed):
            refuse_overlap(read, written)
        elif (np.bincount(changed - changed.min()) > 1).any():
            raise SimulatorFault(
                f"in place, repeats overlap: one reads what another wrote, at {read}",
                (read.space, read.start),
            )
    return Effect(reads=tuple(reads), writes=(written,))


def overwritten_bytes(cast: CastRepeat, chip: Chip) -> int:
    """Bytes of results that a later repeat of a sound cast overwrites."""
    written = active_bytes(cast, operands(cast)[0], chip)
    return written.size - np.unique(written).size


def _repeat_region(instruction: Repeated, operand: RepeatOperand, space: Addresses) -> Region:
    """The bytes of the active lanes over all repeats, once they lie in one buffer."""
    _, address, fmt, blk_stride, rep_stride = operand
    chip = space.chip
    row = _row_bytes(instruction.mask, _repeat_lanes(instruction, chip), fmt.bits, blk_stride, chip)
    width = int(row.max()) + 1
    pitch = rep_stride * chip.block_bytes
    count = instruction.repeat_times if pitch else 1
    # From the address on, for the first lanes may be masked out.
    space.ub_region(address, (count - 1) * pitch + width)
    first = int(row.min())
    is_whole = np.unique(row).size == width - first and (width - first <= pitch or count == 1)
    return Region(
        space=UB,
        start=address.offset_bytes + first,
        width=width - first,
        count=count,
        pitch=pitch,
        pattern=None if is_whole else tuple((row - first).tolist()),
    )


def refuse_overlap(src: Region, dst: Region) -> None:
    if src.touches(dst):
        raise SimulatorFault(
            f"source {src} and destination {dst} overlap in part; only the same bytes may be both",
            src.shared(dst),
        )


def _check_repeat(instruction: Repeated, chip: Chip) -> None:
    if not 0 <= instruction.repeat_times <= chip.max_repeat:
        raise SimulatorFault(
            f"repeatTime must be 0 to {chip.max_repeat}, is {instruction.repeat_times}"
        )
    given = operands(instruction)
    most = MAX_BLK_STRIDE if isinstance(instruction, CastRepeat) else MAX_REP_STRIDE
    for name, _, _, blk_stride, rep_stride in given:
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
    elif any(not 0 <= word < 1 << 64 for word in mask) or _mask_bits(mask) >> lanes:
        raise SimulatorFault(f"mask {mask} has bits beyond the {lanes} lanes of this pair")
    if any(fmt.bits == 4 for _, _, fmt, _, _ in given):
        pairs = _mask_lanes(mask, lanes).reshape(-1, 2)
        if (pairs[:, 0] != pairs[:, 1]).any():
            raise SimulatorFault("two elements of 4 bits share a byte: mask them in pairs")


def _repeat_lanes(instruction: Repeated, chip: Chip) -> int:
    """Elements of one repeat: as many as 256 B hold of the wider type, at most 128."""
    wider = max(fmt.bits for _, _, fmt, _, _ in operands(instruction))
    return chip.repeat_bytes * 8 // wider


def _mask_bits(mask: Mask) -> int:
    if isinstance(mask, int):
        return (1 << mask) - 1
    return mask[0] | mask[1] << 64


@functools.lru_cache(maxsize=256)
def _mask_lanes(mask: Mask, lanes: int) -> npt.NDArray[np.bool_]:
    bits = _mask_bits(mask)
    return np.array([bits >> lane & 1 for lane in range(lanes)], np.bool_)


@functools.lru_cache(maxsize=256)
def _row_bytes(mask: Mask, lanes: int, bits: int, blk_stride: int, chip: Chip) -> Offsets:
    """Offsets of the bytes of the active lanes of one repeat, from its address on."""
    active = np.flatnonzero(_mask_lanes(mask, lanes)).astype(np.int64)
    if bits == 4:
        side_by_side = active[::2] // 2
    else:
        side_by_side = (active[:, None] * (bits // 8) + np.arange(bits // 8)).reshape(-1)
    block, byte = np.divmod(side_by_side, chip.block_bytes)
    row: Offsets = block * blk_stride * chip.block_bytes + byte
    return row


def active_bytes(instruction: Repeated, operand: RepeatOperand, chip: Chip) -> Offsets:
    """Offsets of every byte that the active lanes of all repeats touch, repeat by repeat."""
    _, _, fmt, blk_stride, rep_stride = operand
    row = _row_bytes(instruction.mask, _repeat_lanes(instruction, chip), fmt.bits, blk_stride, chip)
    starts = np.arange(instruction.repeat_times) * rep_stride * chip.block_bytes
    offsets: Offsets = (starts[:, None] + row).reshape(-1)
    return offsets
