"""Codes of every format that are worth converting, and what all tests of a conversion share."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from simulator.numbers import formats as f
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    SATURATE_KEEP_NAN,
    WRAP,
    Policy,
    codes_of,
    convert,
    values_of,
)
from simulator.numbers.formats import FORMATS, Codes, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode

RNG_SEED = 20251117
RANDOM_ELEMS = 4000

HELD_AS_BYTES = (f.E1M2, f.HF8)
"""Formats of which neither numpy nor ml_dtypes has values."""
FLOATS = [
    fmt
    for fmt in FORMATS.values()
    if isinstance(fmt, FloatFormat) and not fmt.is_scale and fmt not in HELD_AS_BYTES
]
IN_NUMPY = [fmt for fmt in FORMATS.values() if fmt not in HELD_AS_BYTES]
INTS = [fmt for fmt in FORMATS.values() if isinstance(fmt, IntFormat)]
NUMBERS = [fmt for fmt in FORMATS.values() if fmt not in (f.BOOL, f.E8M0, *HELD_AS_BYTES)]
POLICIES = [INF_NAN, SATURATE, SATURATE_KEEP_NAN, WRAP]
WIDE_INTS = (f.INT32, f.INT64, f.UINT32, f.UINT64)
SMALL_FLOATS = (f.BF16, f.E5M2, f.E4M3FN, f.E5M2FNUZ, f.E4M3FNUZ, f.E2M3, f.E3M2, f.E2M1)

Values = npt.NDArray[Any]


def one_code(value: object, fmt: Format) -> int:
    """The code of a numpy scalar, as numpy or ml_dtypes stores it."""
    return int(codes_of(np.array([value], fmt.dtype), fmt)[0])


def convert_one(
    code: int, src: Format, dst: Format, mode: RoundMode = RoundMode.RINT, policy: Policy = INF_NAN
) -> int:
    return int(convert(np.array([code], src.code_dtype), src, dst, mode, policy)[0])


def source_codes(fmt: Format) -> Codes:
    """All codes up to 16 bits; beyond them boundaries of every format, neighbours, random ones."""
    if fmt.bits <= 16:
        codes: Codes = np.arange(1 << fmt.bits, dtype=fmt.code_dtype)
        return codes
    rng = np.random.default_rng(RNG_SEED)
    random = rng.integers(0, 1 << fmt.bits, RANDOM_ELEMS, dtype=fmt.code_dtype)
    marks = {0, 1, 2, 3, (1 << fmt.bits) - 1, (1 << fmt.bits) - 2}
    if isinstance(fmt, FloatFormat):
        ordinary = [Fraction(n, 8) for n in range(300)]
        for other in FLOATS[1:]:
            largest = Fraction(float(ml_dtypes.finfo(other.dtype).max))
            ulp = Fraction(2) ** other.quantum(math.frexp(float(largest))[1] - 1)
            ordinary += [largest, largest + ulp / 2, largest + ulp]
            least = Fraction(2) ** other.min_quantum
            ordinary += [least * n / 2 for n in range(1, 9)]
        for power in (3, 4, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64, 65, 70, 100):
            ordinary += [2**power + Fraction(n, 2) for n in range(-3, 4)]
        with np.errstate(over="ignore", under="ignore"):
            near = np.array([float(x) for x in ordinary]).astype(fmt.dtype).view(fmt.code_dtype)
        for code in near.tolist():
            marks |= {max(code + step, 0) for step in (-1, 0, 1)}
        assert fmt.inf_code is not None
        marks |= {fmt.inf_code, fmt.inf_code + 1, fmt.sign_code - 1, fmt.max_code}
        marks |= {code | fmt.sign_code for code in marks}
        # As many random ones where results are neither zero nor out of range.
        width = 40 << fmt.man_bits
        low = (fmt.bias - 20) << fmt.man_bits
        random = np.concatenate(
            [random, rng.integers(low, low + width, RANDOM_ELEMS).astype(fmt.code_dtype)]
        )
    else:
        for power in range(fmt.bits):
            for step in (-2, -1, 0, 1, 2):
                marks |= {(1 << power) + step & ((1 << fmt.bits) - 1)}
                marks |= {-(1 << power) + step & ((1 << fmt.bits) - 1)}
        shifts = rng.integers(0, fmt.bits, RANDOM_ELEMS).astype(fmt.code_dtype)
        random = np.concatenate([random, random >> shifts])
    codes = np.concatenate([np.array(sorted(marks), fmt.code_dtype), random])
    codes.flags.writeable = False
    return codes


def as_float64(values: Values) -> npt.NDArray[np.float64]:
    """The same numbers; a signaling NaN among them is no reason to warn."""
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)


def wide_values(fmt: Format) -> Values:
    """Source values, exactly: float64 for floats, the integer's own dtype otherwise."""
    values = values_of(source_codes(fmt), fmt)
    if isinstance(fmt, FloatFormat):
        return as_float64(values)
    return values.astype(np.int64) if fmt.bits < 8 else values


def assert_same_numbers(actual: Codes, wanted: Values, dst: Format) -> None:
    """Codes must agree, apart from NaN, which is compared as a class."""
    got = values_of(actual, dst)
    if not isinstance(dst, FloatFormat):
        np.testing.assert_array_equal(actual, codes_of(wanted.astype(dst.dtype), dst))
        return
    nan = np.isnan(as_float64(wanted))
    np.testing.assert_array_equal(np.isnan(as_float64(got)), nan)
    np.testing.assert_array_equal(actual[~nan], codes_of(wanted, dst)[~nan])
