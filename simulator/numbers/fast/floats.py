"""Fast steps of float sources: between FP64, FP32, FP16 and BF16, to integers, to integral FP32.

Every step is written for magnitudes up to a limit; `Beyond` serves NaN, infinity and overflow.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.convert import INF_NAN, Overflow, Policy, convert, round_to_integral
from simulator.numbers.fast.pieces import PIECE_ELEMS, Beyond, Step, exceed, mended
from simulator.numbers.fast.places import CUT_BITS, INTEGRAL, UPPER_HALF, Floats, Words
from simulator.numbers.formats import (
    BF16,
    FP16,
    FP32,
    FP64,
    INT64,
    Codes,
    FloatFormat,
    Format,
    IntFormat,
)
from simulator.numbers.rounding import RoundMode

HalfCodes = npt.NDArray[np.uint16]

_HALF_CODE: Final = FP16.code_dtype
_CODE: Final = FP32.code_dtype
_VALUE: Final = FP32.dtype
_BY_LIBRARY: Final = {
    (FP64, FP32),
    (FP32, FP64),
    (FP32, BF16),
    (BF16, FP32),
    (BF16, FP64),
}
"""Pairs that numpy or ml_dtypes convert directly, and fast."""
_UPPER_HALF: Final = np.array(CUT_BITS, _CODE)
"""Shift to the upper half of a FP32 code: sign, exponent field, 7 fraction bits; a BF16 code."""


def from_float(src: FloatFormat, dst: Format, mode: RoundMode, policy: Policy) -> Step | None:
    """Find the step of a conversion from FP32, or of one that the library makes."""
    step: Step | None = None
    limit = 0
    if isinstance(dst, FloatFormat) and (src, dst) in _BY_LIBRARY:
        step = _by_library(src, dst, mode, policy)
    if step is not None:
        return step
    if src is FP32 and isinstance(dst, IntFormat):
        step, limit = _fp32_to_int(dst, mode, policy)
    elif src is FP32 and dst is FP16:
        step, limit = _fp32_to_fp16(mode), _at_most(FP16, FP16.max_code)
    elif src is FP32 and dst is BF16:
        step, limit = _fp32_to_bf16(mode), _at_most(BF16, BF16.max_code)
    if step is None:
        return None
    return mended(
        step, Beyond.tabulate(src, limit, lambda codes: convert(codes, src, dst, mode, policy))
    )


def _by_library(src: FloatFormat, dst: FloatFormat, mode: RoundMode, policy: Policy) -> Step | None:
    """Leave it to the library's cast, which rounds to nearest even, and mend what is not finite.

    That is NaN, infinity, and whatever the library found to overflow. The narrower side tells.
    """
    widens = src.bits < dst.bits
    if not widens and mode is not RoundMode.RINT:
        return None
    narrow = src if widens else dst
    finite = _at_most(narrow, narrow.max_code, src)
    beyond = Beyond.tabulate(src, finite, lambda codes: convert(codes, src, dst, mode, policy))

    def run(codes: Codes, out: Codes) -> None:
        np.copyto(out.view(dst.dtype), codes.view(src.dtype), casting="unsafe")
        if exceed(codes if widens else out, narrow, narrow.max_code):
            beyond.mend(codes, out)

    return Step(run=run)


def to_integral(mode: RoundMode) -> Step | None:
    """Find the step that rounds FP32 to integral FP32: NaN becomes the one NaN, -0 becomes +0."""
    if mode is RoundMode.ODD:
        return None
    round_integral = INTEGRAL[mode]
    zero = np.array(0, _VALUE)

    def run(codes: Codes, out: Codes, spare: Floats) -> None:
        values = out.view(_VALUE)
        round_integral(codes.view(_VALUE), values, spare)
        # -0 + +0 is +0; nothing else changes.
        np.add(values, zero, out=values)

    return mended(
        Step(run=run, scratch=(_VALUE,)),
        Beyond.tabulate(FP32, FP32.max_code, lambda codes: round_to_integral(codes, FP32, mode)),
    )


def _at_most(fmt: Format, code: int, src: FloatFormat = FP32) -> int:
    """Code of the largest source number that does not exceed a positive one of another format."""
    codes = np.array([code], fmt.code_dtype)
    return int(convert(codes, fmt, src, RoundMode.TRUNC, INF_NAN)[0])


def _fp32_to_int(dst: IntFormat, mode: RoundMode, policy: Policy) -> tuple[Step | None, int]:
    """Round in FP32, then let numpy truncate what has no fraction any more.

    No value up to the limit rounds out of the integers it is cast to. Low bits (WRAP) are taken
    from 64-bit integers; every FP32 number beyond those has zeros there.
    """
    wraps = policy.overflow is Overflow.WRAP
    if not dst.signed or dst.bits < 8 or (wraps and dst is INT64):
        return None, 0
    round_integral = INTEGRAL[mode]

    def run(codes: Codes, out: Codes, rounded: Floats, spare: Floats) -> None:
        round_integral(codes.view(_VALUE), rounded, spare)
        np.copyto(out.view(dst.dtype), rounded, casting="unsafe")

    def run_wrapping(
        codes: Codes, out: Codes, rounded: Floats, spare: Floats, wide: npt.NDArray[np.int64]
    ) -> None:
        round_integral(codes.view(_VALUE), rounded, spare)
        np.copyto(wide, rounded, casting="unsafe")
        np.copyto(out, wide, casting="unsafe")

    if wraps:
        wrapping = Step(run=run_wrapping, scratch=(_VALUE, _VALUE, INT64.dtype))
        return wrapping, _at_most(INT64, INT64.max)
    return Step(run=run, scratch=(_VALUE, _VALUE)), _at_most(dst, dst.max)


def _widen(codes: Codes, out: Codes) -> None:
    """Make BF16 codes the upper halves of FP32 codes."""
    np.copyto(out, codes)
    np.left_shift(out, _UPPER_HALF, out=out)


def _fp32_to_bf16(mode: RoundMode) -> Step:
    """Cut the lower half off; both formats have the same exponents, subnormal numbers included."""
    bias = UPPER_HALF[mode]

    def run(codes: Words, out: Codes, work: Words) -> None:
        np.right_shift(bias(codes, work), _UPPER_HALF, out=work)
        np.copyto(out, work, casting="unsafe")

    return Step(run=run, scratch=(_CODE,))


# Exponent fields where BF16 and the upper half of FP32 have them, above 7 fraction bits.
_FIELD: Final = BF16.man_bits
_SIGN: Final = np.array(BF16.sign_code, _HALF_CODE)
_EXPONENT: Final = np.array(BF16.sign_code - (1 << _FIELD), _HALF_CODE)
_FP16_EMIN: Final = FP16.emin + FP32.bias
_FP16_EMIN_FIELDS: Final = np.full(PIECE_ELEMS, _FP16_EMIN << _FIELD, _HALF_CODE)
"""A whole array: numpy takes the larger of two arrays much faster than of an array and a scalar."""
_RECIPROCAL: Final = np.array((2 * FP32.bias + FP16.man_bits) << _FIELD, _HALF_CODE)
_FIELD_TO_FP16: Final = np.array(1 << (FP16.man_bits - _FIELD), _HALF_CODE)
_FP16_SUBNORMAL: Final = np.array((_FP16_EMIN << FP16.man_bits) & 0xFFFF, _HALF_CODE)


def _fp32_to_fp16(mode: RoundMode) -> Step:
    """Round in units of the last place, as the definition does, with the FPU's own rounding.

        FP32 code, upper half   s EEEEEEEE mmmmmmm
        field F                   EEEEEEEE 0000000   but at least that of FP16's emin
        quantum q = 2**(F - 127 - 10), and 1/q has the field 254 + 10 - F
        r = round(x * (1/q))    -2048 <= r <= 2048, a small integer
        FP16 code               sign | ((F - field of emin) << 10) + |r|

    Multiplying by 1/q is exact: a power of two, and no product is subnormal or overflows, for even
    2**-149 / 2**-24 is normal. So r is rounded once. The implicit bit of |r| adds the one that F
    lacks, and a carry to |r| = 2048 moves to the next binade by itself. Subnormal results and zeros
    are no special case; -0 keeps the sign bit of its source.
    """
    round_integral = INTEGRAL[mode]

    def run(
        codes: Codes,
        out: HalfCodes,
        scaled: Floats,
        spare: Floats,
        field: HalfCodes,
        small: HalfCodes,
    ) -> None:
        word = scaled.view(_CODE)
        np.right_shift(codes, _UPPER_HALF, out=word)
        np.copyto(field, word, casting="unsafe")
        np.bitwise_and(field, _SIGN, out=out)
        np.bitwise_and(field, _EXPONENT, out=field)
        np.maximum(field, _FP16_EMIN_FIELDS[: field.size], out=field)
        np.subtract(_RECIPROCAL, field, out=small)
        _widen(small, word)
        np.multiply(codes.view(_VALUE), scaled, out=scaled)
        round_integral(scaled, scaled, spare)
        kept = small.view(np.int16)
        np.copyto(kept, scaled, casting="unsafe")
        np.absolute(kept, out=kept)
        # Modulo 2**16 from here: the true sum is a FP16 code.
        np.multiply(field, _FIELD_TO_FP16, out=field)
        np.subtract(field, _FP16_SUBNORMAL, out=field)
        np.add(field, small, out=field)
        np.bitwise_or(out, field, out=out)

    return Step(run=run, scratch=(_VALUE, _VALUE, _HALF_CODE, _HALF_CODE))
