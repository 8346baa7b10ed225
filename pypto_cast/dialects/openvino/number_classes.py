"""OpenVINO's own number classes, float16 and bfloat16, which round differently from IEEE 754.

Both are made of a float32 and turn back into one; no other conversion of theirs is their own.
Measured with openvino 2026.4.1: all codes that rounding can tell apart.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pypto_cast.dialects.openvino.nan_payloads import Payload, carry_nan
from pypto_cast.options.context import current
from simulator.numbers import elementwise
from simulator.numbers.convert import INF_NAN, Conversion
from simulator.numbers.formats import BF16, FP16, FP32, Codes
from simulator.numbers.rounding import RoundMode

_TO_FP16: Final = Conversion(src=FP32, dst=FP16, mode=RoundMode.RINT, policy=INF_NAN)
_FROM_FP16: Final = Conversion(src=FP16, dst=FP32, mode=RoundMode.RINT, policy=INF_NAN)

_DROPPED_BITS: Final = FP32.man_bits - FP16.man_bits
_CARRYING: Final = np.uint32((1 << FP32.man_bits) - (1 << (_DROPPED_BITS - 1)))
"""The fractions that rounding to float16's 11 significant bits carries to the next power of two."""
_MAGNITUDE: Final = np.uint32(FP32.sign_code - 1)
_NEXT_POWER: Final = np.uint32(1 << FP32.man_bits)
_DOUBLED_BELOW: Final = np.uint32((FP16.emin - 1 + FP32.bias) << FP32.man_bits)
"""2**-15: what lies below and carries does not reach float16's smallest normal number."""

_BF16_BITS: Final = np.uint32(FP32.bits - BF16.bits)
_LAST_KEPT: Final = np.uint32(1 << (FP32.bits - BF16.bits))


def float16_of(words: Codes, out: Codes) -> None:
    """Make float16 codes of float32 codes, to nearest, ties to even.

    Beyond the largest number infinity; -0 and subnormal numbers are kept; a NaN keeps its sign and
    the upper ten bits of its payload (one without any of them, which arithmetic never gives, ends
    in Convert as the infinity it becomes here).

    One fault: a number whose 11-bit rounding carries to the next power of two while float16 has
    only a subnormal number for it comes out twice as large (7.9999 * 2**-24 gives 2**-20), because
    the carry raises the exponent for the second, gradual rounding too.

    Args:
        words: FP32 codes, 1-D, contiguous.
        out: FP16 codes, as many.
    """
    to_nearest = elementwise.kernel((_TO_FP16,), engine=current().converter)
    to_nearest(words, out)
    carrying = words & _CARRYING == _CARRYING
    np.logical_and(carrying, words & _MAGNITUDE < _DOUBLED_BELOW, out=carrying)
    if carrying.any():
        where = np.flatnonzero(carrying)
        doubled = np.empty(where.size, out.dtype)
        to_nearest(words[where] + _NEXT_POWER, doubled)
        out[where] = doubled
    carry_nan(words, FP32, out, FP16, Payload.CUT)


def float_of_float16(codes: Codes, out: Codes) -> None:
    """Make float32 codes of float16 codes; exact, a NaN with its sign and payload."""
    elementwise.kernel((_FROM_FP16,), engine=current().converter)(codes, out)
    carry_nan(codes, FP16, out, FP32, Payload.CUT)


def bfloat16_of(words: Codes, out: Codes) -> None:
    """Make bfloat16 codes of float32 codes: half a unit is added only to an odd last place.

        sign exponent kkkkkkL | G ddddddddddddddd      L = 0: cut;  L = 1: + half, then cut

    So 1.005 becomes 1.0, and 1 + 3 * 2**-8 becomes 1 + 2**-6 as usual. -0 and subnormal numbers are
    kept, the largest numbers overflow to infinity. A NaN is treated as if it were a number: it
    keeps its sign and the upper bits of its payload, or becomes infinity where those are zero; with
    the upper eight fraction bits set it becomes a zero of the other sign.

    Args:
        words: FP32 codes, 1-D, contiguous.
        out: BF16 codes, as many.
    """
    half = (words & _LAST_KEPT) >> np.uint32(1)
    half += words
    half >>= _BF16_BITS
    np.copyto(out, half, casting="unsafe")


def float_of_bfloat16(codes: Codes, out: Codes) -> None:
    """Make float32 codes of bfloat16 codes: the upper half, NaNs too."""
    np.left_shift(codes.astype(np.uint32), _BF16_BITS, out=out)
