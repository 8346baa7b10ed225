"""Casts of torch and ml_dtypes to E8M0 and to E2M1, where they are not those of the definition.

To E8M0 both read the exponent field of a float32 and add one from a half of the fraction on. Below
the least normal float32 that field is 0 and the fraction has no implicit one: the half there is
2^-127, the least number of E8M0, which a tie keeps, and everything above it becomes 2^-126.
Neither has an infinity in E8M0; out of range both give NaN. They differ on what E8M0 cannot hold:
torch drops the sign and takes 0 to the least number, ml_dtypes makes NaN of 0 and of negatives.

E2M1 has no NaN. ml_dtypes makes a zero of it, with the sign that the NaN does not have.

Source: c10/util/Float8_e8m0fnu.h of PyTorch 2.13; ml_dtypes 0.6.0, measured.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.numbers.convert import INF_NAN, Conversion, unpack
from simulator.numbers.formats import E2M1, E8M0, FP32, Codes, FloatFormat, Format
from simulator.numbers.rounding import RoundMode

_NAN_EXPONENT: Final = (1 << FP32.exp_bits) - 1
"""The exponent field of infinity and NaN in float32; the code of NaN in E8M0."""
_FRACTION: Final = (1 << FP32.man_bits) - 1
_HALF: Final = 1 << (FP32.man_bits - 1)


def to_scale(codes: Codes, src: Format, *, takes_magnitudes: bool) -> Codes:
    """Cast to E8M0 by way of float32.

    Args:
        codes: source codes, any shape.
        src: their format.
        takes_magnitudes: drop the sign and take 0 to the least number, as torch does; else 0 and
            negative numbers become NaN.

    Returns:
        Codes of E8M0, same shape; NaN, infinity and overflow are NaN.
    """
    bits = codes
    if src is not FP32:
        widen = Conversion(src=src, dst=FP32, mode=RoundMode.RINT, policy=INF_NAN)
        bits = widen.reference(codes)
    exponents = (bits >> FP32.man_bits) & _NAN_EXPONENT
    fractions = bits & _FRACTION
    goes_up = (fractions > _HALF) | ((fractions == _HALF) & (exponents > 0))
    scales: Codes = np.minimum(exponents + goes_up, _NAN_EXPONENT).astype(E8M0.code_dtype)
    if not takes_magnitudes:
        scales[(bits == 0) | (bits >= FP32.sign_code)] = _NAN_EXPONENT
    return scales


def with_zero_for_nan(codes: Codes, src: FloatFormat, results: Codes) -> Codes:
    """Codes of E2M1 with the zeros that ml_dtypes makes of NaN.

    Args:
        codes: source codes, any shape.
        src: their format.
        results: codes of E2M1, same shape; not modified.
    """
    is_negative = (codes & src.code_dtype.type(src.sign_code)) != 0
    zeros = np.where(is_negative, 0, E2M1.sign_code)
    found: Codes = np.where(unpack(codes, src).nan, zeros, results).astype(E2M1.code_dtype)
    return found
