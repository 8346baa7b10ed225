"""Fast functions of integers: by the library's cast, or by way of floats that hold enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from simulator.numbers.convert import Conversion, Overflow
from simulator.numbers.fast.bit_tricks import carry, round_to_odd
from simulator.numbers.fast.chunks import ChunkFunction, with_fallback
from simulator.numbers.fast.floats import to_float
from simulator.numbers.formats import BF16, FP16, FP32, FP64, Codes, FloatFormat, IntFormat
from simulator.numbers.rounding import Bools, RoundMode

_FOLDED_BITS: Final = 11
"""Low bits that leave at most 53 of a 64-bit integer."""

_EXACT_BITS: Final = FP32.man_bits + 1
"""FP32 holds all integers of so many bits."""


def to_int_or_exact(src: IntFormat, conversion: Conversion) -> ChunkFunction | None:
    """The function that leaves the conversion to the library's own cast, after a clamp if need be.

    From an integer to a float numpy rounds once, to nearest even; ml_dtypes goes to BF16 through
    float32, which holds 16-bit integers. Into an unsigned word every integer cast is defined: it
    takes the low bits, or extends the sign. ml_dtypes has learnt some of its casts with time.
    """
    dst = conversion.dst
    target = dst.dtype
    low, high = src.min, src.max
    if isinstance(dst, FloatFormat):
        exact = src.bits - src.signed <= dst.man_bits + 1
        once = dst in (FP64, FP32) or (dst is BF16 and src.bits <= 16)
        if not once or not (exact or conversion.mode is RoundMode.RINT):
            return None
    elif dst.bits > 1:
        if conversion.policy.overflow is not Overflow.WRAP:
            low, high = max(low, dst.min), min(high, dst.max)
        if min(src.bits, dst.bits) >= 8:
            target = dst.code_dtype
        elif (low, high) != (src.min, src.max):
            return None
    clamps = (low, high) != (src.min, src.max)
    try:
        np.zeros(1, src.dtype).astype(target)
    except TypeError:
        return None
    least, most = src.dtype.type(low), src.dtype.type(high)
    mask = dst.code_dtype.type((1 << dst.bits) - 1)

    def run(codes: Codes) -> Codes:
        values = codes.view(src.dtype)
        if clamps:
            values = np.clip(values, least, most)
        out: Codes = values.astype(target).view(dst.code_dtype)
        return out & mask if 1 < dst.bits < 8 else out

    return run


def to_rounded_float(
    src: IntFormat, dst: FloatFormat, conversion: Conversion
) -> ChunkFunction | None:
    """The function from an integer of 32 or 64 bits to a float that needs a round mode.

    By way of FP64; of FP32 to FP16, where nothing is rounded twice: larger integers than FP32 holds
    stay finite and of their sign, which is all that an overflow depends on.
    """
    to_double = _to_double(src)
    if dst is FP32:
        cut = FP64.man_bits - FP32.man_bits
        carried = carry(conversion.mode, FP64.code_dtype, cut)
        if carried is None:
            return None
        kept = np.array(-1 << cut, np.int64).view(np.uint64)

        def to_fp32(codes: Codes) -> Codes:
            double = carried(to_double(codes)) & kept
            rounded: Codes = double.view(FP64.dtype).astype(FP32.dtype).view(FP32.code_dtype)
            return rounded

        return to_fp32
    wide, widen = FP64, to_double
    if dst is FP16:
        wide, widen = FP32, _cast(src, FP32)
    narrowing = to_float(wide, dst, replace(conversion, src=wide))
    if narrowing is None:
        return None
    narrow = narrowing

    def run(codes: Codes) -> Codes:
        return narrow(widen(codes))

    if dst is BF16 and conversion.mode is RoundMode.RINT:
        return with_fallback(_cast(src, BF16), _longer(src, _EXACT_BITS), run)
    return run


def _cast(src: IntFormat, dst: FloatFormat) -> ChunkFunction:
    return lambda codes: codes.view(src.dtype).astype(dst.dtype).view(dst.code_dtype)


def _longer(src: IntFormat, bits: int) -> Callable[[Codes], Bools]:
    """Make the test for integers whose magnitude exceeds a power of two."""
    limit = src.code_dtype.type(1 << bits)

    def run(codes: Codes) -> Bools:
        longer: Bools = np.abs(codes.view(src.dtype)).view(src.code_dtype) > limit
        return longer

    return run


def _to_double(src: IntFormat) -> ChunkFunction:
    """The function to FP64, exact up to 53 bits; of longer integers 11 bits are rounded to odd.

    FP32 and everything narrower drop all but 24 bits: the odd one lies below their guard bit and
    tells every mode the truth.
    """
    cast = _cast(src, FP64)
    if src.bits <= FP64.man_bits:
        return cast
    longer = _longer(src, FP64.man_bits)
    odd = round_to_odd(src.code_dtype, _FOLDED_BITS)
    kept = np.array(-1 << _FOLDED_BITS, np.int64).view(np.uint64)
    return lambda codes: cast(np.where(longer(codes), odd(codes) & kept, codes))
