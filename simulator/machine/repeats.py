"""Instructions by repeats: the bytes that masks and strides choose, and what they must not be.

Source: CANN asc-devkit, Cast and the guide on masks, repeats and strides.
"""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.machine.addresses import Addresses, Effect
from simulator.machine.isa import (
    AndRepeat,
    CastRepeat,
    UbAddress,
)
from simulator.machine.memory import UB, Region, SimulatorFault
from simulator.numbers.formats import INT16, Format
from tiling.chips import Chip
from tiling.loads import MAX_REP_STRIDE

Repeated = CastRepeat | AndRepeat


MAX_BLK_STRIDE: Final = 65535
"""Of Cast; And's has 8 bits, as every stride of repeats (UnaryRepeatParams, BinaryRepeatParams)."""


_Operand = tuple[str, UbAddress, Format, int, int]
"""Of an instruction by repeats: name, address, format, strides of blocks and of repeats."""


def operands(instruction: Repeated) -> tuple[_Operand, ...]:
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
    if instruction.repeat_times == 0 or not _mask_lanes(instruction, space.chip).any():
        return Effect()
    dst, *sources = (
        _repeat_regions(instruction, address, fmt, blk_stride, rep_stride, space)
        for _, address, fmt, blk_stride, rep_stride in operands(instruction)
    )
    for src in sources:
        check_overlap(src, dst)
        if src == dst and _repeats_overlap(instruction, src):
            raise SimulatorFault(
                f"in place, repeats overlap: one reads what another wrote, at {src[0]}"
            )
    return Effect(reads=tuple(itertools.chain.from_iterable(sources)), writes=dst)


def overwritten_bytes(cast: CastRepeat, chip: Chip) -> int:
    """Bytes of results that a later repeat of a sound cast overwrites."""
    written = repeat_bytes(cast, cast.dst_format, cast.dst_blk_stride, cast.dst_rep_stride, chip)
    return written.size - np.unique(written).size


def _repeats_overlap(cast: Repeated, blocks: tuple[Region, ...]) -> bool:
    """Tells whether two repeats touch the same bytes; blocks of one repeat never do."""
    if cast.repeat_times > 1 and cast.dst_rep_stride == 0:
        return True
    return any(one.touches(other) for one, other in itertools.combinations(blocks, 2))


def _repeat_regions(
    cast: Repeated,
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
    whole = int(repeat_bytes(cast, fmt, blk_stride, rep_stride, space.chip).max()) + 1
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


def check_overlap(src: tuple[Region, ...], dst: tuple[Region, ...]) -> None:
    if src == dst:
        return
    for read in src:
        for written in dst:
            if read.touches(written):
                raise SimulatorFault(
                    f"source {read} and destination {written} overlap in part; only the same bytes "
                    "may be both"
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
    elif any(not 0 <= word < 1 << 64 for word in mask) or _mask_bits(instruction) >> lanes:
        raise SimulatorFault(f"mask {mask} has bits beyond the {lanes} lanes of this pair")
    if any(fmt.bits == 4 for _, _, fmt, _, _ in given):
        pairs = _mask_lanes(instruction, chip).reshape(-1, 2)
        if (pairs[:, 0] != pairs[:, 1]).any():
            raise SimulatorFault("two elements of 4 bits share a byte: mask them in pairs")


def _repeat_lanes(instruction: Repeated, chip: Chip) -> int:
    """Elements of one repeat: as many as 256 B hold of the wider type, at most 128."""
    wider = max(fmt.bits for _, _, fmt, _, _ in operands(instruction))
    return chip.repeat_bytes * 8 // wider


def _mask_bits(cast: Repeated) -> int:
    if isinstance(cast.mask, int):
        return (1 << cast.mask) - 1
    return cast.mask[0] | cast.mask[1] << 64


def _mask_lanes(cast: Repeated, chip: Chip) -> npt.NDArray[np.bool_]:
    bits = _mask_bits(cast)
    return np.array([bits >> lane & 1 for lane in range(_repeat_lanes(cast, chip))], np.bool_)


def _row_bytes(cast: Repeated, fmt: Format, chip: Chip) -> npt.NDArray[np.int64]:
    """Bytes of the active lanes of a repeat, its blocks side by side."""
    active = np.flatnonzero(_mask_lanes(cast, chip)).astype(np.int64)
    if fmt.bits == 4:
        return active[::2] // 2
    width = fmt.bits // 8
    return (active[:, None] * width + np.arange(width)).reshape(-1)


def repeat_bytes(
    cast: Repeated, fmt: Format, blk_stride: int, rep_stride: int, chip: Chip
) -> npt.NDArray[np.int64]:
    """Offsets of every byte that the active lanes of all repeats touch, repeat by repeat."""
    in_row = _row_bytes(cast, fmt, chip)
    line = chip.block_bytes
    in_repeat = in_row // line * blk_stride * line + in_row % line
    starts = np.arange(cast.repeat_times) * rep_stride * line
    offsets: npt.NDArray[np.int64] = (starts[:, None] + in_repeat).reshape(-1)
    return offsets
