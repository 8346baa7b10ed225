"""Fast steps from floats to integers by truncation, which is what the library's own cast does.

It does so in range only. Two reductions over a piece tell whether anything is beyond; if so, it is
clipped to the limits first, and the few results that this does not put right are set after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.convert import Overflow, Policy, convert
from simulator.numbers.fast.pieces import Step
from simulator.numbers.formats import BF16, FP32, FP64, INT32, Codes, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode

_DEFINED_ELEMS: Final = 1 << 15


def truncate(src: FloatFormat, dst: Format, mode: RoundMode, policy: Policy) -> Step | None:
    """Find the step of a truncating conversion from FP64, FP32 or BF16 to an integer."""
    if not isinstance(dst, IntFormat) or mode is not RoundMode.TRUNC or dst.bits == 1:
        return None
    if src not in (FP64, FP32, BF16):
        return None
    if policy.overflow is Overflow.WRAP:
        return _low_bits(src, dst, policy) if dst.bits < 8 else None
    return _clamped(src, dst) if dst.bits >= 8 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """Codes between which everything truncates to a number of an integer format.

    Read as signed integers only positive floats are positive, read as unsigned ones the negative
    floats are the largest; both orders follow the magnitude, and NaNs lie beyond infinity.

    Attributes:
        positive: the largest good code without a sign.
        negative: the largest good code with a sign.
    """

    positive: int
    negative: int

    @staticmethod
    def of(src: FloatFormat, dst: IntFormat) -> _Limits:
        power = dst.bits - dst.signed
        positive = ((power + src.bias) << src.man_bits) - 1
        if not dst.signed:
            below_one = (src.bias << src.man_bits) - 1
            return _Limits(positive=positive, negative=src.sign_code + below_one)
        # The largest magnitude below 2**power + 1: a fraction more than 2**power, if it has any.
        fraction = (1 << max(src.man_bits - power, 0)) - 1
        return _Limits(positive=positive, negative=src.sign_code + positive + 1 + fraction)


def _signed(codes: Codes) -> npt.NDArray[np.signedinteger[Any]]:
    return codes.view(f"i{codes.itemsize}")


def _clamped(src: FloatFormat, dst: IntFormat) -> Step:
    limits = _Limits.of(src, dst)
    infinity = src.sign_code - (1 << src.man_bits)
    magnitude = np.array(src.sign_code - 1, src.code_dtype)
    highest = np.array(limits.positive, f"i{src.code_dtype.itemsize}")
    clip = _clip_codes(src, limits) if src is BF16 else _clip_values(src, limits)
    # Of the numbers below 2**k the largest truncates to the largest integer, or is one itself that
    # falls short of it.
    falls_short = dst.bits - dst.signed > src.man_bits + 1

    def run(codes: Codes, out: Codes, tame: Codes) -> None:
        integers = out.view(dst.dtype)
        positive, negative = np.maximum.reduce(_signed(codes)), np.maximum.reduce(codes)
        source = codes
        if positive > limits.positive or negative > limits.negative:
            clip(codes, tame)
            source = tame
        np.copyto(integers, source.view(src.dtype), casting="unsafe")
        if falls_short and positive > limits.positive:
            np.copyto(integers, dst.dtype.type(dst.max), where=_signed(codes) > highest)
        if positive > infinity or negative > src.sign_code + infinity:
            nan = np.bitwise_and(codes, magnitude, out=tame) > infinity
            np.copyto(integers, dst.dtype.type(0), where=nan)

    return Step(run=run, scratch=(src.code_dtype,))


def _clip_values(src: FloatFormat, limits: _Limits) -> Callable[[Codes, Codes], None]:
    """As numbers; a NaN stays, and is mended later."""
    codes = np.array([limits.negative, limits.positive], src.code_dtype)
    lowest, highest = codes.view(src.dtype)

    def clip(codes: Codes, tame: Codes) -> None:
        np.clip(codes.view(src.dtype), lowest, highest, out=tame.view(src.dtype))

    return clip


def _clip_codes(src: FloatFormat, limits: _Limits) -> Callable[[Codes, Codes], None]:
    """As codes, for ml_dtypes clips slowly; twice, for a minimum with a scalar is no faster."""
    nothing, lowest = np.array([0, limits.negative], src.code_dtype)
    signed = np.dtype(f"i{src.code_dtype.itemsize}")
    least, highest = np.array([np.iinfo(signed).min, limits.positive], signed)

    def clip(codes: Codes, tame: Codes) -> None:
        np.clip(codes, nothing, lowest, out=tame)
        np.clip(_signed(tame), least, highest, out=_signed(tame))

    return clip


def _low_bits(src: FloatFormat, dst: IntFormat, policy: Policy) -> Step:
    """Truncate to 32-bit integers and keep low bits; the definition serves what is beyond."""
    limits = _Limits.of(src, INT32)
    mask = np.array((1 << dst.bits) - 1, dst.code_dtype)

    def run(codes: Codes, out: Codes, wide: npt.NDArray[np.int32]) -> None:
        positive, negative = np.maximum.reduce(_signed(codes)), np.maximum.reduce(codes)
        if positive > limits.positive or negative > limits.negative:
            for start in range(0, codes.size, _DEFINED_ELEMS):
                piece = slice(start, start + _DEFINED_ELEMS)
                out[piece] = convert(codes[piece], src, dst, RoundMode.TRUNC, policy)
            return
        np.copyto(wide, codes.view(src.dtype), casting="unsafe")
        np.copyto(out, wide, casting="unsafe")
        np.bitwise_and(out, mask, out=out)

    return Step(run=run, scratch=(INT32.dtype,))
