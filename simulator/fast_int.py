"""Fast steps of integer sources: to integers, to FP32 and FP64, and through FP32 to FP16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.convert import Overflow, Policy
from simulator.fast_float import from_float
from simulator.fast_pieces import Step
from simulator.formats import FP16, FP32, FP64, Codes, FloatFormat, Format, IntFormat
from simulator.rounding import RoundMode

Doubles = npt.NDArray[np.float64]


def cast_by_numpy(src: IntFormat, dst: Format, mode: RoundMode, policy: Policy) -> Step | None:
    """Find the step that leaves the conversion to numpy's own cast, after a clamp if need be.

    From an integer to a float numpy rounds once, to nearest even. Into an unsigned word every
    integer cast is defined: it takes the low bits, or extends the sign.
    """
    if src.bits < 8 or dst.bits < 8:
        return None
    if isinstance(dst, FloatFormat):
        exact = src.bits - src.signed <= dst.man_bits + 1
        native = dst is FP64 or dst is FP32
        return _copy(src, dst.dtype) if native and (exact or mode is RoundMode.RINT) else None
    low, high = max(src.min, dst.min), min(src.max, dst.max)
    if policy.overflow is Overflow.WRAP or (low, high) == (src.min, src.max):
        return _copy(src, dst.code_dtype)
    return _clamp(src, low, high)


def from_wide_int(src: IntFormat, dst: Format, mode: RoundMode, policy: Policy) -> Step | None:
    """Find the step from an integer of 32 or 64 bits to a float that needs a round mode."""
    if dst is FP16:
        return _through_fp32(src, mode, policy)
    if dst is FP32 and (src.bits <= 32 or src.signed):
        return _int_to_fp32(src, mode)
    return None


def _copy(src: IntFormat, dtype: np.dtype[Any]) -> Step:
    def run(codes: Codes, out: Codes) -> None:
        np.copyto(out.view(dtype), codes.view(src.dtype), casting="unsafe")

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
        if src.bits > 32 and _needs_folding(source):
            source = work.view(src.dtype)
            _fold(codes.view(src.dtype), source, double.view(src.dtype))
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

_FOLDED: Final = np.array((1 << 11) - 1, np.int64)
_LARGE: Final = np.array(52, np.int64)
_SIGN_SHIFT: Final = np.array(63, np.int64)


def _needs_folding(values: npt.NDArray[np.int64]) -> bool:
    return bool(np.maximum.reduce(values) >= 1 << 52 or np.minimum.reduce(values) < -(1 << 52))


def _fold(
    values: npt.NDArray[np.int64], out: npt.NDArray[np.int64], mask: npt.NDArray[np.int64]
) -> None:
    """Where a magnitude has more than 52 bits, fold its low 11 bits into one sticky bit above.

        63                              11 10 ....... 0
        s b b b b b b b b b b b b b b b  d d d d d d d      | v
                                      `------------- set if any d is; the d become 0

    That rounds to odd, in two's complement on both sides of zero, and at most 52 bits remain above
    the zeros. FP32 drops all but 24, so the sticky bit lies below its guard bit and tells every
    mode the truth. Elsewhere the mask is 0 and nothing changes.
    """
    # mask = 0x7FF where the bits from 52 on differ from the sign, else 0: bits that differ make a
    # positive number, whose negative has the sign bit set.
    np.right_shift(values, _SIGN_SHIFT, out=mask)
    np.bitwise_xor(values, mask, out=mask)
    np.right_shift(mask, _LARGE, out=mask)
    np.negative(mask, out=mask)
    np.right_shift(mask, _SIGN_SHIFT, out=mask)
    np.bitwise_and(mask, _FOLDED, out=mask)
    # The carry of (low bits + mask) is 1 if any low bit is set.
    np.bitwise_and(values, mask, out=out)
    np.add(out, mask, out=out)
    np.bitwise_or(out, values, out=out)
    np.invert(mask, out=mask)
    np.bitwise_and(out, mask, out=out)
