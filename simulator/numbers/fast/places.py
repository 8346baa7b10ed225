"""Two ways to round a whole piece quickly, each with one entry per round mode.

`INTEGRAL` rounds floats to integral values with the FPU's own rounding; `UPPER_HALF` readies codes
for dropping their lower halves, with integer arithmetic. Both leave only exact operations to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.rounding import RoundMode

Floats = npt.NDArray[np.float32]
Integral = Callable[[Floats, Floats, Floats], Any]
"""(values, out, spare): `out` may be `values`; `spare` is overwritten."""

_SIGN_BIT: Final = np.array(1 << 31, np.uint32)
_HALF: Final = np.array(0.5, np.float32)
_BELOW_HALF: Final = np.nextafter(_HALF, np.float32(0)).view(np.uint32)


def _half_away(values: Floats, out: Floats, spare: Floats) -> None:
    """Round to nearest, ties away from zero: add almost one half outward, then drop the fraction.

    The addend is the float just below 0.5. With 0.5 itself, 0.49999997 + 0.5 would round up to 1;
    with this one it gives the float below 1, while a tie n + 0.5 lands so close below n + 1 that
    the addition itself rounds to it (for n = 0 the sum ends exactly half-way, and n + 1 is even).
    From 2**23 on values are integral and the addition rounds back to them.
    """
    signed = spare.view(np.uint32)
    np.bitwise_and(values.view(np.uint32), _SIGN_BIT, out=signed)
    np.bitwise_or(signed, _BELOW_HALF, out=signed)
    np.add(values, spare, out=out)
    np.trunc(out, out=out)


def _to_odd(values: Floats, out: Floats, spare: Floats) -> None:
    """Round inexact values to the odd neighbour; magnitudes up to 2**126.

    Let s = floor + ceil. For an integer n, s = 2n and s - rint(s/2) = n. Between n and n + 1,
    s/2 = n + 1/2 is a tie, rint takes the even neighbour, and s minus that is the odd one.
    Fractions exist below 2**23 only, so s is exact.
    """
    np.floor(values, out=spare)
    np.ceil(values, out=out)
    np.add(out, spare, out=out)
    np.multiply(out, _HALF, out=spare)
    np.rint(spare, out=spare)
    np.subtract(out, spare, out=out)


INTEGRAL: Final[dict[RoundMode, Integral]] = {
    RoundMode.RINT: lambda values, out, spare: np.rint(values, out=out),
    RoundMode.ROUND: _half_away,
    RoundMode.FLOOR: lambda values, out, spare: np.floor(values, out=out),
    RoundMode.CEIL: lambda values, out, spare: np.ceil(values, out=out),
    RoundMode.TRUNC: lambda values, out, spare: np.trunc(values, out=out),
    RoundMode.ODD: _to_odd,
}
"""How a mode rounds float32 values to integral ones. -0 and the sign of a zero result are kept by
all but ODD; infinity and NaN are not for ODD."""


# Rounding a sign-magnitude code ahead of dropping its lower half:
#
#     sign exponent kept... L | G R R R ... R
#                               `-- 16 bits -'
#
# A bias below the cut carries into the kept bits exactly where the mode rounds away from zero, and
# a carry out of the fraction runs into the exponent as it should. After that the low bits are
# rubbish, to be shifted out.
CUT_BITS: Final = 16
_CUT: Final = np.array(CUT_BITS, np.uint32)
_LAST: Final = np.array(1, np.uint32)
_GUARD: Final = np.array(1 << (CUT_BITS - 1), np.uint32)
_STICKY: Final = np.array((1 << (CUT_BITS - 1)) - 1, np.uint32)
_DROPPED: Final = np.array((1 << CUT_BITS) - 1, np.uint32)
_SIGN_SHIFT: Final = np.array(31, np.int32)

Words = npt.NDArray[np.uint32]
Bias = Callable[[Words, Words], Words]
"""(codes, work): the biased codes, in `work` or, where there is nothing to add, `codes` itself."""


def _bias_to_even(codes: Words, work: Words) -> Words:
    """Add half a unit, less one if the last kept bit is 0: then a tie carries to even only."""
    np.right_shift(codes, _CUT, out=work)
    np.bitwise_and(work, _LAST, out=work)
    np.add(work, _STICKY, out=work)
    return np.add(work, codes, out=work)


def _bias_half(codes: Words, work: Words) -> Words:
    """Add half a unit: a set guard bit carries."""
    return np.add(codes, _GUARD, out=work)


def _ones_if_negative(codes: Words, work: Words) -> Words:
    """Spread the sign over the word and keep as many ones of it as will be dropped."""
    np.right_shift(codes.view(np.int32), _SIGN_SHIFT, out=work.view(np.int32))
    return np.right_shift(work, _CUT, out=work)


def _bias_down(codes: Words, work: Words) -> Words:
    """Add all ones to negative codes: any dropped bit carries."""
    return np.add(_ones_if_negative(codes, work), codes, out=work)


def _bias_up(codes: Words, work: Words) -> Words:
    """Add all ones to positive codes: any dropped bit carries."""
    np.bitwise_xor(_ones_if_negative(codes, work), _DROPPED, out=work)
    return np.add(work, codes, out=work)


def _sticky_into_last(codes: Words, work: Words) -> Words:
    """Or the carry of (dropped bits + all ones), which is 1 if any is set, into the last bit."""
    np.bitwise_and(codes, _DROPPED, out=work)
    np.add(work, _DROPPED, out=work)
    return np.bitwise_or(work, codes, out=work)


UPPER_HALF: Final[dict[RoundMode, Bias]] = {
    RoundMode.RINT: _bias_to_even,
    RoundMode.ROUND: _bias_half,
    RoundMode.FLOOR: _bias_down,
    RoundMode.CEIL: _bias_up,
    RoundMode.TRUNC: lambda codes, work: codes,
    RoundMode.ODD: _sticky_into_last,
}
"""How a mode readies 32-bit codes for keeping their upper halves."""
