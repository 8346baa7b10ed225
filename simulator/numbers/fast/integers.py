"""Fast steps of integer sources: to integers, to FP32, FP64 and BF16, and through FP32 to FP16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.convert import Overflow, Policy
from simulator.numbers.fast.floats import from_float
from simulator.numbers.fast.fold import fold
from simulator.numbers.fast.pieces import Step
from simulator.numbers.formats import BF16, FP16, FP32, FP64, Codes, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode

Doubles = npt.NDArray[np.float64]


def cast_by_numpy(src: IntFormat, dst: Format, mode: RoundMode, policy: Policy) -> Step | None:
    """Find the step that leaves the conversion to the library's own cast, after a clamp if need be.

    From an integer to a float numpy rounds once, to nearest even; ml_dtypes goes to BF16 through
    float32, which holds 16-bit integers. Into an unsigned word every integer cast is defined: it
    takes the low bits, or extends the sign. ml_dtypes' integers below 8 bits lie in the low bits of
    a byte, like their codes.
    """
    if isinstance(dst, FloatFormat):
        exact = src.bits - src.signed <= dst.man_bits + 1
        once = dst in (FP64, FP32) or (dst is BF16 and src.bits <= 16)
        return _copy(src, dst.dtype) if once and (exact or mode is RoundMode.RINT) else None
    if dst.bits == 1:
        return _copy(src, dst.dtype)
    low, high = max(src.min, dst.min), min(src.max, dst.max)
    fits = (low, high) == (src.min, src.max)
    if policy.overflow is not Overflow.WRAP and not fits:
        return _clamp(src, low, high) if min(src.bits, dst.bits) >= 8 else None
    if 1 < src.bits < 8 and dst.bits < 8:
        return _extend_sign(src, dst) if src.signed else _mask(min(src.bits, dst.bits))
    return _copy(src, dst.dtype if min(src.bits, dst.bits) < 8 else dst.code_dtype)


def from_wide_int(src: IntFormat, dst: Format, mode: RoundMode, policy: Policy) -> Step | None:
    """Find the step from an integer of 32 or 64 bits to a float that needs a round mode."""
    if dst is FP16:
        return _through_fp32(src, mode, policy)
    if dst is FP32 and (src.bits <= 32 or src.signed):
        return _int_to_fp32(src, mode)
    return None


def _copy(src: IntFormat, dtype: np.dtype[Any]) -> Step | None:
    """Let the library cast, if it does: ml_dtypes has learnt some of its casts with time."""
    try:
        np.zeros(1, src.dtype).astype(dtype)
    except TypeError:
        return None

    def run(codes: Codes, out: Codes) -> None:
        np.copyto(out.view(dtype), codes.view(src.dtype), casting="unsafe")

    return Step(run=run, single_pass=True)


def _mask(bits: int) -> Step:
    """Copy codes that are the same in both formats, clean of what lies above them in a byte."""
    mask = np.array((1 << bits) - 1, np.uint8)

    def run(codes: Codes, out: Codes) -> None:
        np.bitwise_and(codes, mask, out=out)

    return Step(run=run, single_pass=True)


def _extend_sign(src: IntFormat, dst: IntFormat) -> Step:
    """Copy the sign bit into the bits that the destination has above it, within a byte."""
    source, sign, kept = np.array(
        [(1 << src.bits) - 1, 1 << (src.bits - 1), (1 << dst.bits) - 1], np.uint8
    )

    def run(codes: Codes, out: Codes) -> None:
        np.bitwise_and(codes, source, out=out)
        np.bitwise_xor(out, sign, out=out)
        np.subtract(out, sign, out=out)
        np.bitwise_and(out, kept, out=out)

    return Step(run=run)


def _clamp(src: IntFormat, low: int, high: int) -> Step:
    minimum, maximum = np.array(low, src.dtype), np.array(high, src.dtype)

    def run(codes: Codes, out: Codes, clamped: npt.NDArray[np.integer[Any]]) -> None:
        np.clip(codes.view(src.dtype), minimum, maximum, out=clamped)
        np.copyto(out, clamped, casting="unsafe")

    return Step(run=run, scratch=(src.dtype,))


def _through_fp32(src: IntFormat, mode: RoundMode, policy: Policy) -> Step | None:
    """Convert to FP32 first, by numpy, and from there to FP16.

    Nothing is rounded twice: integers up to 2**24 are exact in FP32, and larger ones stay at least
    2**24, finite and of their sign, which is all that an overflow depends on.
    """
    narrowing = from_float(FP32, FP16, mode, policy)
    if narrowing is None:
        return None

    def run(codes: Codes, out: Codes, wide: Codes, *scratch: npt.NDArray[Any]) -> None:
        np.copyto(wide.view(FP32.dtype), codes.view(src.dtype), casting="unsafe")
        narrowing.run(wide, out, *scratch)

    return Step(run=run, scratch=(FP32.code_dtype, *narrowing.scratch))


def _int_to_fp32(src: IntFormat, mode: RoundMode) -> Step | None:
    """Convert to FP64, nudge, and let numpy round what is left to the nearest FP32 number.

    The first conversion is exact because magnitudes from 2**52 on are folded.
    """
    if mode not in _NUDGES:
        return None
    nudge = _NUDGES[mode]

    def run(codes: Codes, out: Codes, double: Doubles, work: Doubles) -> None:
        source = codes.view(src.dtype)
        if src.bits > 32:
            source = fold(source, work.view(src.dtype), double.view(src.dtype))
        np.copyto(double, source, casting="unsafe")
        nudge(double, work)
        np.copyto(out.view(FP32.dtype), work, casting="unsafe")

    return Step(run=run, scratch=(FP64.dtype, FP64.dtype))


# A FP64 code is rounded to FP32 as it stands, to nearest even, by numpy's cast. Another mode shows
# the cast a neighbouring code on which that rounding gives what the mode wants:
#
#     s eeeeeeeeeee k k k ... k | d d d ... d 0     k kept, d dropped (29 bits, the last is 0)
#
# The last bit is 0 because the integers here have at most 52 bits. So dropped bits are either 0, or
# at least 2; and they are either half a unit (2**28), or at least 2 away from it. A nudge of the
# code moves the magnitude, whatever the sign, and may cross into the next binade as a carry does.
_DROPPED_BITS: Final = FP64.man_bits - FP32.man_bits
_KEPT: Final = np.array(-1 << _DROPPED_BITS, np.int64).view(np.uint64)
_ALMOST_HALF: Final = np.array((1 << (_DROPPED_BITS - 1)) - 1, np.uint64)
_LEAST: Final = np.array(1, np.uint64)


def _half_away(double: Doubles, out: Doubles) -> None:
    """Turn a tie into more than a tie; nothing else is that near to one."""
    np.add(double.view(np.uint64), _LEAST, out=out.view(np.uint64))


def _toward_zero(double: Doubles, out: Doubles) -> None:
    """Clear the dropped bits."""
    np.bitwise_and(double.view(np.uint64), _KEPT, out=out.view(np.uint64))


def _away_from_zero(double: Doubles, out: Doubles) -> None:
    """Add almost half a unit: dropped bits of 2 and more then round up, 0 still rounds down."""
    np.add(double.view(np.uint64), _ALMOST_HALF, out=out.view(np.uint64))


def _downward(double: Doubles, out: Doubles) -> None:
    """Take the smaller of both directions; 0 stays 0. Overwrites its source."""
    _toward_zero(double, out)
    _away_from_zero(double, double)
    np.minimum(double, out, out=out)


def _upward(double: Doubles, out: Doubles) -> None:
    """Take the larger of both directions; 0 becomes a number that rounds to 0."""
    _toward_zero(double, out)
    _away_from_zero(double, double)
    np.maximum(double, out, out=out)


_NUDGES: Final[dict[RoundMode, Callable[[Doubles, Doubles], None]]] = {
    RoundMode.ROUND: _half_away,
    RoundMode.FLOOR: _downward,
    RoundMode.CEIL: _upward,
    RoundMode.TRUNC: _toward_zero,
}
