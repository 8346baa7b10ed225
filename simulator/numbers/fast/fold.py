"""Folding 64-bit integers so that FP64 holds them and no later rounding is misled.

    63                              11 10 ....... 0
    b b b b b b b b b b b b b b b b  d d d d d d d      | v
                                  `------------- set if any d is; the d become 0

That rounds to odd, in two's complement on both sides of zero. At most 53 bits remain above the
zeros (52 and a sign), so FP64 is exact. FP32 and everything narrower drop all but 24 of them: the
sticky bit lies below their guard bit and tells every mode the truth.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.formats import FP64

Signed = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint64]

_FOLDED_BITS: Final = 11
_FOLDED: Final = (1 << _FOLDED_BITS) - 1
_LARGE: Final = np.array(52, np.int64)
_SIGN_SHIFT: Final = np.array(63, np.int64)
_SIGNED_FOLDED: Final = np.array(_FOLDED, np.int64)
_LARGE_UNSIGNED: Final = np.array(53, np.uint64)
_ONE: Final = np.array(1, np.uint64)
_UNSIGNED_FOLDED: Final = np.array(_FOLDED, np.uint64)
_HIGH: Final = np.array(_FOLDED_BITS, np.uint64)
_HIGH_UNIT: Final = np.array(1 << _FOLDED_BITS, FP64.dtype)


def fold(values: Signed, out: Signed, mask: Signed) -> Signed:
    """Fold the integers whose magnitude has more than 52 bits.

    Args:
        values: the integers.
        out: the folded ones go here, if there is anything to fold.
        mask: overwritten.

    Returns:
        `out`, or `values` as they are.
    """
    if not _needs_folding(values):
        return values
    # mask = 0x7FF where the bits from 52 on differ from the sign, else 0: bits that differ make a
    # positive number, whose negative has the sign bit set.
    np.right_shift(values, _SIGN_SHIFT, out=mask)
    np.bitwise_xor(values, mask, out=mask)
    np.right_shift(mask, _LARGE, out=mask)
    np.negative(mask, out=mask)
    np.right_shift(mask, _SIGN_SHIFT, out=mask)
    np.bitwise_and(mask, _SIGNED_FOLDED, out=mask)
    _fold_masked(values, out, mask)
    return out


def unsigned_to_double(
    values: Unsigned, out: npt.NDArray[np.float64], folded: Unsigned, mask: Unsigned
) -> None:
    """Convert unsigned integers to FP64, those of more than 53 bits folded.

    In two halves, which numpy converts as signed integers much faster than the whole as an unsigned
    one; both are exact, and so is their sum.

    Args:
        values: the integers.
        out: the doubles.
        folded: overwritten.
        mask: overwritten; may share the memory of `out`.
    """
    np.right_shift(values, _LARGE_UNSIGNED, out=mask)
    np.minimum(mask, _ONE, out=mask)
    np.multiply(mask, _UNSIGNED_FOLDED, out=mask)
    _fold_masked(values, folded, mask)
    np.right_shift(folded, _HIGH, out=mask)
    np.copyto(out, mask.view(np.int64), casting="unsafe")
    np.multiply(out, _HIGH_UNIT, out=out)
    np.bitwise_and(folded, _UNSIGNED_FOLDED, out=folded)
    low = folded.view(np.float64)
    np.copyto(low, folded.view(np.int64), casting="unsafe")
    np.add(out, low, out=out)


def _needs_folding(values: Signed) -> bool:
    return bool(np.maximum.reduce(values) >= 1 << 52 or np.minimum.reduce(values) < -(1 << 52))


def _fold_masked(values: npt.NDArray[Any], out: npt.NDArray[Any], mask: npt.NDArray[Any]) -> None:
    """Or the carry of (low bits + mask), which is 1 if any low bit is set, into the bit above."""
    np.bitwise_and(values, mask, out=out)
    np.add(out, mask, out=out)
    np.bitwise_or(out, values, out=out)
    np.invert(mask, out=mask)
    np.bitwise_and(out, mask, out=out)
