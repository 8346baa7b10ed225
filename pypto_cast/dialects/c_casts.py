"""C's casts from floating-point numbers to integers on x86-64, also where C leaves them open.

C17 6.3.1.4 defines only what is in range after truncation. numpy, torch and OpenVINO leave the rest
to the processor, whose instructions give the least integer of 32 or 64 bits for what these cannot
hold; a narrower type then gets the low bits of that. Other processors clamp instead.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.convert import SATURATE, convert, unpack
from simulator.numbers.formats import INT32, INT64, UINT64, Codes, FloatFormat, IntFormat
from simulator.numbers.rounding import Bools, RoundMode

_PATHS_DIFFER: Final = 32
"""Width from which unsigned integers have several code paths, which disagree out of range."""
_FLOAT8_BITS: Final = 8
"""Width of floats whose casts are compiled apart, with different results for infinity and NaN."""


def word_of(dst: IntFormat) -> IntFormat:
    """The integer that a cast truncates to before it takes low bits."""
    return INT32 if dst.bits <= INT32.bits else INT64


def describe(src: FloatFormat, dst: IntFormat, word: IntFormat) -> str:
    """The rule of a pair in a line."""
    if _has_paths(dst):
        return "truncated; out of range, infinity and NaN depend on the code path"
    least = f"-2^{word.bits - 1}"
    rest = "" if dst is word else f", then the low {dst.bits} bits"
    special = "beyond it and NaN" if src.bits > _FLOAT8_BITS else "beyond it"
    return f"truncated to {word.name.lower()}, {special} {least}{rest}"


def truncate(codes: Codes, src: FloatFormat, dst: IntFormat, word: IntFormat) -> Codes:
    """Cast floats to integers as x86-64 does.

    Truncated; what `word` cannot hold, infinity and NaN become its least integer; then the low
    bits. Where `leaves_open` tells of no settled result, the clamped integer stands in.

    Args:
        codes: source codes, any shape.
        src: their format.
        dst: any integer format but BOOL.
        word: INT32 or INT64, the integer on the way.

    Returns:
        Destination codes, same shape.

    Source: C17 6.3.1.4; Intel SDM, CVTTSS2SI (the integer indefinite value).
    """
    if _has_paths(dst):
        return convert(codes, src, dst, RoundMode.TRUNC, SATURATE)
    integers, nan = _integers(codes, src)
    # No float is the largest 64-bit integer: that one stands for all beyond it.
    inside = (integers >= word.min) & (integers <= min(word.max, INT64.max - 1)) & ~nan
    words = np.where(inside, integers, np.int64(word.min))
    low_bits = words.view(np.uint64) & np.uint64((1 << dst.bits) - 1)
    return low_bits.astype(dst.code_dtype)


def leaves_open(codes: Codes, src: FloatFormat, dst: IntFormat) -> Bools:
    """Marks codes without a settled result: libraries, or code paths of one, disagree on them."""
    value = unpack(codes, src)
    special: Bools = value.nan | value.inf
    if _has_paths(dst):
        integers, _ = _integers(codes, src)
        words = convert(codes, src, UINT64, RoundMode.TRUNC, SATURATE)
        greatest = np.uint64(min(dst.max, UINT64.max - 1))
        outside: Bools = special | (integers < 0) | (words > greatest)
        return outside
    return special if src.bits <= _FLOAT8_BITS else np.zeros(codes.shape, np.bool_)


def _has_paths(dst: IntFormat) -> bool:
    return not dst.signed and dst.bits >= _PATHS_DIFFER


def _integers(codes: Codes, src: FloatFormat) -> tuple[npt.NDArray[np.int64], Bools]:
    """Truncated and clamped to 64 bits; and which are NaN."""
    clamped = convert(codes, src, INT64, RoundMode.TRUNC, SATURATE)
    return clamped.view(np.int64), unpack(codes, src).nan
