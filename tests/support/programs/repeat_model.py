"""A Cast by repeats, element by element in plain Python, from the documents of Cast and its masks.

Source: CANN asc-devkit, Cast and the guide on masks, repeats and strides. Numbers are small enough
for every format, so converting one is not the question; where it lies is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simulator.machine.isa import CastRepeat
from simulator.numbers.formats import UINT8, Format

BLOCK = 32
LANES = {64: 32, 32: 64, 16: 128}
"""Elements of a repeat of 256 B, by the bits of the wider type."""


def is_active(mask: int | tuple[int, int], lane: int) -> bool:
    if isinstance(mask, int):
        return lane < mask
    return bool(mask[lane // 64] >> lane % 64 & 1)


def bit_of(lane: int, bits: int, repeat_number: int, blk_stride: int, rep_stride: int) -> int:
    """Returns the place of a lane of a repeat, in bits from the operand's address.

    A repeat starts `rep_stride` blocks behind the one before. In it elements fill blocks of 32 B,
    each of which lies `blk_stride` blocks behind the one before.
    """
    per_block = BLOCK * 8 // bits
    block, place = divmod(lane, per_block)
    return (repeat_number * rep_stride + block * blk_stride) * BLOCK * 8 + place * bits


def get_bits(memory_bytes: bytearray, start: int, bits: int) -> int:
    if bits == 4:
        return memory_bytes[start // 8] >> start % 8 & 15
    return int.from_bytes(memory_bytes[start // 8 : (start + bits) // 8], "little")


def put_bits(memory_bytes: bytearray, start: int, bits: int, code: int) -> None:
    if bits == 4:
        kept = memory_bytes[start // 8] & (0xF0 if start % 8 == 0 else 0x0F)
        memory_bytes[start // 8] = kept | code << start % 8
        return
    memory_bytes[start // 8 : (start + bits) // 8] = code.to_bytes(bits // 8, "little")


def convert_one_by_one(cast: CastRepeat, source: bytes, target: bytes) -> bytes:
    """Returns the destination's bytes after a cast of every element on its own, by its address."""
    src, dst = cast.src_format, cast.dst_format
    read, written = bytearray(source), bytearray(target)
    for number in range(cast.repeat_times):
        for lane in range(LANES[max(src.bits, dst.bits)]):
            if not is_active(cast.mask, lane):
                continue
            start = bit_of(lane, src.bits, number, cast.src_blk_stride, cast.src_rep_stride)
            code = get_bits(read, start, src.bits)
            start = bit_of(lane, dst.bits, number, cast.dst_blk_stride, cast.dst_rep_stride)
            put_bits(written, start, dst.bits, converted(code, src, dst))
    return bytes(written)


def converted(code: int, src: Format, dst: Format) -> int:
    """Of small integers, which every format has."""
    return code_of(value_of(code, src), dst)


def value_of(code: int, fmt: Format) -> int:
    if fmt.bits == 4:
        return (code ^ 8) - 8
    return int(np.array([code], fmt.code_dtype).view(fmt.dtype)[0])


def code_of(value: int, fmt: Format) -> int:
    if fmt.bits == 4:
        return value & 15
    return int(np.array([value]).astype(fmt.dtype).view(fmt.code_dtype)[0])


def small_integers(
    fmt: Format, size_bytes: int, salt: int, *, signed: bool = True
) -> npt.NDArray[np.uint8]:
    """Codes of -8 to 7 (0 to 7 where there is no sign), which survive every pair unchanged."""
    rng = np.random.default_rng(salt)
    low = -8 if signed and fmt is not UINT8 else 0
    values = rng.integers(low, 8, size_bytes * 8 // fmt.bits)
    if fmt.bits == 4:
        nibbles = (values & 15).astype(np.uint8).reshape(-1, 2)
        return nibbles[:, 0] | nibbles[:, 1] << 4
    return values.astype(fmt.dtype).view(np.uint8)
