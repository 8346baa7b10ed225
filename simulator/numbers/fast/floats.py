"""Fast functions of float sources: to integers, to integral FP32, to other floats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from simulator.numbers.convert import INF_NAN, Conversion, Overflow, convert
from simulator.numbers.fast.bit_tricks import INTEGRAL, carry, round_to_odd
from simulator.numbers.fast.chunks import (
    REFERENCE_ELEMS,
    ChunkFunction,
    exceeds,
    in_small_chunks,
    with_fallback,
)
from simulator.numbers.formats import (
    BF16,
    BOOL,
    FP16,
    FP32,
    FP64,
    INT32,
    INT64,
    Codes,
    FloatFormat,
    IntFormat,
)
from simulator.numbers.rounding import RoundMode

_BY_LIBRARY: Final = {
    (FP64, FP32),
    (FP64, FP16),
    (FP32, FP64),
    (FP32, BF16),
    (BF16, FP32),
    (BF16, FP64),
}
"""Pairs that numpy or ml_dtypes convert directly, rounding once, to nearest even."""

_TABLE_BITS: Final = 21
"""Bits left of the widest source that is rounded to odd and looked up."""


def to_integral(conversion: Conversion) -> ChunkFunction | None:
    """The function that rounds FP32 to integral FP32: NaN becomes the one NaN, -0 becomes +0."""
    if conversion.src is not FP32 or conversion.mode not in INTEGRAL:
        return None
    integral, zero = INTEGRAL[conversion.mode], np.float32(0)

    def run(codes: Codes) -> Codes:
        # -0 + +0 is +0; nothing else changes.
        rounded: Codes = (integral(codes.view(FP32.dtype)) + zero).view(FP32.code_dtype)
        return rounded

    return with_fallback(
        run, lambda codes: np.isnan(codes.view(FP32.dtype)), in_small_chunks(conversion.reference)
    )


def to_int(src: FloatFormat, dst: IntFormat, conversion: Conversion) -> ChunkFunction | None:
    """Round, clip, and let numpy truncate what has no fraction any more.

    The definition serves NaN, what exceeds a largest integer that is no float, and under WRAP what
    exceeds the integers whose low bits are kept. BF16 goes through FP32, which holds it.
    """
    mode = conversion.mode
    if src not in (FP64, FP32, BF16) or (mode not in INTEGRAL and dst is not BOOL):
        return None
    work = FP64 if src is FP64 else FP32
    if dst is BOOL:
        # NaN is not equal to zero.
        zero = np.array(0, src.dtype)
        return lambda codes: np.not_equal(codes.view(src.dtype), zero).view(BOOL.code_dtype)
    wraps = conversion.policy.overflow is Overflow.WRAP
    word = dst
    if wraps or dst.bits < 8:
        word = INT32 if dst.bits < INT32.bits else INT64
    limits = word if wraps else dst
    low, high = work.dtype.type(limits.min), _at_most(limits, work).view(work.dtype)[0]
    last = high if int(high) < limits.max else work.dtype.type(np.inf)
    mask = dst.code_dtype.type((1 << dst.bits) - 1)

    def cast(values: Any) -> Codes:
        words: Codes = values.astype(word.dtype).view(word.code_dtype)
        out: Codes = words.astype(dst.code_dtype, copy=False)
        return out & mask if dst.bits < 8 else out

    def run(codes: Codes) -> Codes:
        values: Any = codes.view(src.dtype).astype(work.dtype, copy=False)
        if mode is not RoundMode.TRUNC:
            values = INTEGRAL[mode](values)
        if values.min() >= low and values.max() <= high:
            return cast(values)
        out = cast(np.clip(values, low, high))
        outliers = ~((values >= low) & (values <= high)) if wraps else ~(values <= last)
        out[outliers] = in_small_chunks(conversion.reference)(codes[outliers])
        return out

    return run


def to_float(src: FloatFormat, dst: FloatFormat, conversion: Conversion) -> ChunkFunction | None:
    """The function of a conversion between floats."""
    nearest, policy = conversion.mode is RoundMode.RINT, conversion.policy
    if (src, dst) in _BY_LIBRARY and (nearest or src.bits < dst.bits):
        return _within_range(_cast(src, dst), src, dst, conversion)
    if src is FP32 and dst is BF16:
        function = _to_upper_half(conversion.mode)
        return None if function is None else _within_range(function, src, dst, conversion)
    to_infinity = policy.overflow is Overflow.IEEE and policy.keeps_inf
    if src is FP64 and dst is BF16 and nearest and to_infinity:
        return _through_fp32(conversion)
    if src not in (FP64, FP32) or dst.bits > 16:
        return None
    return _by_table(src, dst, conversion)


def _cast(src: FloatFormat, dst: FloatFormat) -> ChunkFunction:
    return lambda codes: codes.view(src.dtype).astype(dst.dtype).view(dst.code_dtype)


def _within_range(
    function: ChunkFunction, src: FloatFormat, dst: FloatFormat, conversion: Conversion
) -> ChunkFunction:
    """Leave numbers that the destination may not hold to the definition."""
    beyond = exceeds(src, int(_at_most(dst, src)[0]))
    return with_fallback(function, beyond, in_small_chunks(conversion.reference))


def _to_upper_half(mode: RoundMode) -> ChunkFunction | None:
    """From FP32 to BF16, which has the same exponents, subnormal numbers included."""
    cut = FP32.man_bits - BF16.man_bits
    carried, shift = carry(mode, FP32.code_dtype, cut), np.uint32(cut)
    if carried is None:
        return None
    return lambda codes: (carried(codes) >> shift).astype(BF16.code_dtype)


def _through_fp32(conversion: Conversion) -> ChunkFunction:
    """From FP64 to BF16: keep so few bits, the last one odd, that FP32 holds them, and go on.

    To nearest only. FP32 does not hold what is smaller than 2**-137, but neither is that anything
    but zero in BF16; nor what overflows, which becomes infinity in both.
    """
    cut = FP64.man_bits - BF16.man_bits - 2
    odd = round_to_odd(FP64.code_dtype, cut)
    kept = np.array(-1 << cut, np.int64).view(np.uint64)
    to_fp32 = _cast(FP64, FP32)
    narrow = to_float(FP32, BF16, replace(conversion, src=FP32))
    assert narrow is not None
    return lambda codes: narrow(to_fp32(odd(codes) & kept))


def _at_most(fmt: FloatFormat | IntFormat, src: FloatFormat) -> Codes:
    """Code of the largest source number that does not exceed the largest of another format."""
    code = fmt.max if isinstance(fmt, IntFormat) else fmt.max_code
    codes: Codes = np.array([code], fmt.code_dtype)
    return convert(codes, fmt, src, RoundMode.TRUNC, INF_NAN)


def _by_table(src: FloatFormat, dst: FloatFormat, conversion: Conversion) -> ChunkFunction | None:
    """Round to odd until a table holds the rest.

    Making the last kept bit odd if any bit below it was set loses nothing that matters, provided
    two more bits are kept than the destination has: guard and sticky. What is left is rounded as
    the code itself would be, in any mode. NaN stays NaN and infinity infinity: only a NaN has
    fraction bits to make a sticky bit of.
    """
    # As fine as two bits below the last place of the destination, for subnormal sources too.
    kept = max(dst.man_bits, src.emin - dst.min_quantum) + 2
    cut = src.man_bits - kept
    if src.bits - cut > _TABLE_BITS:
        return None
    shift = src.code_dtype.type(cut)
    table = np.empty(1 << (src.bits - cut), dst.code_dtype)
    for start in range(0, table.size, REFERENCE_ELEMS):
        stop = min(start + REFERENCE_ELEMS, table.size)
        every = np.arange(start, stop, dtype=src.code_dtype)
        table[start:stop] = conversion.reference(every << shift)
    odd = round_to_odd(src.code_dtype, cut)
    # Signed, for `take` converts unsigned 64-bit indices at a cost.
    index = f"i{src.code_dtype.itemsize}"
    return lambda codes: table.take((odd(codes) >> shift).view(index), mode="wrap")
