"""DataCopy and DataCopyPad: what they may touch, and what they move.

Source of limits and padding: CANN asc-devkit, DataCopy and DataCopyPad between GM and UB for A2/A3.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.machine.addresses import Addresses, Effect, check_elem_bytes, check_gm_alignment
from simulator.machine.isa import DataCopy, DataCopyPad, GmAddress, UbAddress
from simulator.machine.memory import (
    UB,
    Bytes,
    GlobalMemory,
    Known,
    Region,
    SimulatorFault,
    VectorMemory,
)
from tiling.chips import Chip
from tiling.loads import MAX_STRIDE_BYTES

MAX_BLOCK_COUNT: Final = 4095
MAX_BLOCK_LEN_BYTES: Final = 2097151


def copy_effect(copy: DataCopy, space: Addresses) -> Effect:
    check_elem_bytes(copy.elem_bytes)
    line = space.chip.block_bytes
    whole = copy.size_bytes // line * line
    if copy.size_bytes < 0:
        raise SimulatorFault(f"size must not be negative, is {copy.size_bytes} B")
    if whole == 0:
        return Effect()
    match copy.src, copy.dst:
        case GmAddress() as gm, UbAddress() as ub:
            check_gm_alignment(gm, copy.elem_bytes)
            return Effect(reads=(space.gm_region(gm, whole),), writes=(space.ub_region(ub, whole),))
        case UbAddress() as ub, GmAddress() as gm:
            check_gm_alignment(gm, copy.elem_bytes)
            return Effect(reads=(space.ub_region(ub, whole),), writes=(space.gm_region(gm, whole),))
    raise SimulatorFault("DataCopy moves between GM and UB")


def copy_pad_effect(copy: DataCopyPad, space: Addresses) -> Effect:
    _check_copy_pad(copy, space.chip)
    if copy.block_count == 0 or copy.block_len_bytes == 0:
        return Effect()
    line = space.chip.block_bytes
    padding = (copy.left_padding + copy.right_padding) * copy.elem_bytes
    width = -(-(copy.block_len_bytes + padding) // line) * line
    match copy.src, copy.dst:
        case GmAddress() as gm, UbAddress() as ub:
            source = _gm_blocks(gm, copy, copy.src_stride, space)
            pitch = width + copy.dst_stride * line
            return Effect(
                reads=(source,),
                writes=(space.ub_region(ub, width, copy.block_count, pitch),),
            )
        case UbAddress() as ub, GmAddress() as gm:
            target = _gm_blocks(gm, copy, copy.dst_stride, space)
            pitch = width + copy.src_stride * line
            source = space.ub_region(ub, copy.block_len_bytes, copy.block_count, pitch)
            return Effect(reads=(source,), writes=(target,))
    raise SimulatorFault("DataCopyPad moves between GM and UB")


def _gm_blocks(address: GmAddress, copy: DataCopyPad, stride: int, space: Addresses) -> Region:
    if not 0 <= stride <= MAX_STRIDE_BYTES:
        raise SimulatorFault(f"GM stride must be 0 to {MAX_STRIDE_BYTES} B, is {stride}")
    pitch = copy.block_len_bytes + stride
    return space.gm_region(address, copy.block_len_bytes, copy.block_count, pitch)


def carry_out(
    copy: DataCopy | DataCopyPad, effect: Effect, ub: VectorMemory, gm: GlobalMemory, core: int
) -> None:
    source, target = effect.reads[0], effect.writes[0]
    if source.space == UB:
        ub.check_written(source)
        rows: Bytes = source.view(ub.bytes).view(np.uint8)
        gm.write(target, rows, core)
        return
    rows = gm.read(source, core)
    lines: Bytes = target.view(ub.bytes).view(np.uint8)
    if isinstance(copy, DataCopy):
        lines[:] = rows
        ub.note(target)
        return
    left = copy.left_padding * copy.elem_bytes
    stop = left + copy.block_len_bytes
    lines[:, left:stop] = rows
    ub.note(target, _pad(copy, lines, rows, left, stop))


def _check_copy_pad(copy: DataCopyPad, chip: Chip) -> None:
    check_elem_bytes(copy.elem_bytes)
    if not 0 <= copy.block_count <= MAX_BLOCK_COUNT:
        raise SimulatorFault(f"blockCount must be 0 to {MAX_BLOCK_COUNT}, is {copy.block_count}")
    if not 0 <= copy.block_len_bytes <= MAX_BLOCK_LEN_BYTES:
        raise SimulatorFault(
            f"blockLen must be 0 to {MAX_BLOCK_LEN_BYTES} B, is {copy.block_len_bytes}"
        )
    if copy.block_len_bytes % copy.elem_bytes:
        raise SimulatorFault(f"blockLen is no multiple of the element's {copy.elem_bytes} B")
    in_ub = copy.dst_stride if isinstance(copy.dst, UbAddress) else copy.src_stride
    if in_ub < 0:
        raise SimulatorFault(f"UB stride must not be negative, is {in_ub} blocks")
    for name, elems in (("left", copy.left_padding), ("right", copy.right_padding)):
        if not 0 <= elems * copy.elem_bytes <= chip.block_bytes:
            raise SimulatorFault(
                f"{name}Padding must be 0 to {chip.block_bytes} B, is {elems * copy.elem_bytes} B"
            )
    if isinstance(copy.dst, GmAddress) and (copy.left_padding or copy.right_padding):
        raise SimulatorFault("a copy to GM takes no padding")
    if copy.elem_bytes == 8 and copy.padding_value:
        raise SimulatorFault("paddingValue must be 0 for elements of 8 B")
    if not 0 <= copy.padding_value < 1 << 8 * copy.elem_bytes:
        raise SimulatorFault(
            f"paddingValue must be a code of {copy.elem_bytes} B, is {copy.padding_value:#x}"
        )


def _pad(copy: DataCopyPad, lines: Bytes, rows: Bytes, left: int, stop: int) -> Known | None:
    """Fill the bytes that a copy to UB adds around each block.

    Returns:
        Of each byte whether it is known; None: all are.
    """
    width = lines.shape[1]
    if width == copy.block_len_bytes:
        return None
    if (left or copy.right_padding) and not copy.is_pad:
        known: Known = np.zeros(lines.shape, np.bool_)
        known[:, left:stop] = True
        return known
    if copy.is_pad:
        value = np.array([copy.padding_value], f"<u{copy.elem_bytes}").view(np.uint8)
        first = np.broadcast_to(value, (rows.shape[0], copy.elem_bytes))
    else:
        first = rows[:, : copy.elem_bytes]
    for part in (slice(0, left), slice(stop, width)):
        size = lines[:, part].shape[1]
        lines[:, part] = np.tile(first, -(-size // copy.elem_bytes))[:, :size]
    return None
