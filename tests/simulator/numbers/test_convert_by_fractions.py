"""The definition of a conversion in every mode against exact fractions.

numpy and ml_dtypes round to nearest only, and twice from float64 to 16 bits and below and from wide
integers to bfloat16.
"""

from __future__ import annotations

import bisect
import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from support.numbers.source_codes import (
    INTS,
    RANDOM_ELEMS,
    SMALL_FLOATS,
    WIDE_INTS,
    convert_one,
    one_code,
    source_codes,
)

from simulator.numbers import formats as f
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    WRAP,
    Overflow,
    Policy,
    codes_of,
    convert,
    values_of,
)
from simulator.numbers.formats import Codes, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode

NEAR_THE_ENDS = [
    sign * (2**power + step)
    for power in (24, 31, 32, 53, 62, 63, 64)
    for step in (-1025, -1024, -513, -512, -3, -2, -1, 0, 1, 2, 3, 512, 513, 1024, 1025)
    for sign in (1, -1)
]


@pytest.mark.parametrize("src", [f.INT64, f.UINT64], ids=str)
@pytest.mark.parametrize("dst", INTS[:-1], ids=str)
def test_64_bit_integers_are_exact(src: IntFormat, dst: IntFormat) -> None:
    numbers = [n for n in NEAR_THE_ENDS if src.min <= n <= src.max] + [src.min, src.max]
    codes = codes_of(np.array(numbers, src.dtype), src)
    clamped = values_of(convert(codes, src, dst, RoundMode.RINT, SATURATE), dst)
    assert [int(n) for n in clamped] == [min(max(n, dst.min), dst.max) for n in numbers]
    wrapped = convert(codes, src, dst, RoundMode.RINT, WRAP)
    assert wrapped.tolist() == [n % 2**dst.bits for n in numbers]


@pytest.mark.parametrize("src", [f.INT64, f.UINT64], ids=str)
@pytest.mark.parametrize("mode", RoundMode, ids=str)
@pytest.mark.parametrize("dst", [f.FP64, f.FP32, f.BF16, f.FP16], ids=str)
def test_64_bit_integers_to_floats(src: IntFormat, mode: RoundMode, dst: FloatFormat) -> None:
    numbers = [n for n in NEAR_THE_ENDS if src.min <= n <= src.max] + [src.min, src.max]
    codes = codes_of(np.array(numbers, src.dtype), src)
    actual = convert(codes, src, dst, mode, INF_NAN)
    wanted = [expected_code(Fraction(n), dst, mode, INF_NAN) for n in numbers]
    assert actual.tolist() == wanted


@pytest.mark.parametrize("src", [f.FP64, f.FP32], ids=str)
@pytest.mark.parametrize("dst", [f.INT64, f.UINT64], ids=str)
@pytest.mark.parametrize("policy", [SATURATE, WRAP], ids=str)
def test_large_floats_to_64_bit_integers(src: FloatFormat, dst: IntFormat, policy: Policy) -> None:
    numbers = [
        sign * math.ldexp(significand, power)
        for power in (0, 30, 40, 41, 62, 63, 64, 65, 66, 86, 87, 88, 100, 115, 116, 117, 126)
        for significand in (1.0, 1.0 + 2.0**-src.man_bits, 1.75, 2.0 - 2.0**-src.man_bits)
        for sign in (1, -1)
    ]
    codes = codes_of(np.array(numbers, src.dtype), src)
    actual = convert(codes, src, dst, RoundMode.TRUNC, policy)
    exact = [int(x) for x in numbers]
    if policy is WRAP:
        assert actual.tolist() == [n % 2**64 for n in exact]
    else:
        assert actual.tolist() == [min(max(n, dst.min), dst.max) % 2**64 for n in exact]


@lru_cache
def magnitudes(fmt: FloatFormat) -> list[Fraction]:
    """All finite magnitudes of a format by code, and the one that would come next."""
    found = []
    for code in range(fmt.max_code + 2):
        field, fraction = divmod(code, 2**fmt.man_bits)
        place = Fraction(2) ** (max(field, 1) - fmt.bias - fmt.man_bits)
        found.append(place * (fraction + (2**fmt.man_bits if field else 0)))
    return found


def bracket(magnitude: Fraction, dst: Format) -> tuple[int, Fraction]:
    """The last number at or below a magnitude, as a code, and how far towards the next it lies."""
    if isinstance(dst, IntFormat):
        whole = math.floor(magnitude)
        return whole, magnitude - whole
    if dst.bits <= 8:
        table = magnitudes(dst)
        code = min(bisect.bisect_right(table, magnitude) - 1, dst.max_code + 1)
        if code > dst.max_code:
            return code, Fraction(0)
        return code, (magnitude - table[code]) / (table[code + 1] - table[code])
    if not magnitude:
        return 0, Fraction(0)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    units = magnitude / Fraction(2) ** (max(exponent, dst.emin) - dst.man_bits)
    binade = max(exponent, dst.emin) - dst.emin
    return binade * 2**dst.man_bits + math.floor(units), units - math.floor(units)


def expected_code(value: Fraction, dst: Format, mode: RoundMode, policy: Policy) -> int:
    """The code of a finite value, from the rules' text."""
    negative = value < 0
    kept, rest = bracket(abs(value), dst)
    odd = kept % 2 == 1
    half = Fraction(1, 2)
    up = {
        RoundMode.RINT: rest > half or (rest == half and odd),
        RoundMode.ROUND: rest >= half,
        RoundMode.FLOOR: negative and rest > 0,
        RoundMode.CEIL: not negative and rest > 0,
        RoundMode.TRUNC: False,
        RoundMode.ODD: rest > 0 and not odd,
    }[mode]
    kept += up
    if isinstance(dst, IntFormat):
        number = -kept if negative else kept
        if policy.overflow is not Overflow.WRAP:
            number = min(max(number, dst.min), dst.max)
        return number % 2**dst.bits
    if kept > dst.max_code:
        away = {
            RoundMode.RINT: True,
            RoundMode.ROUND: True,
            RoundMode.FLOOR: negative,
            RoundMode.CEIL: not negative,
            RoundMode.TRUNC: False,
            RoundMode.ODD: False,
        }[mode]
        kept = dst.max_code
        if away and policy.overflow is Overflow.IEEE:
            if dst.inf_code is None and dst.nan_code is not None:
                return dst.nan_code
            kept = dst.max_code if dst.inf_code is None else dst.inf_code
    if kept == 0 and not dst.has_negative_zero:
        return 0
    return kept | (dst.sign_code if negative else 0)


FRACTION_PAIRS = [
    *((f.FP64, dst) for dst in (*SMALL_FLOATS, f.FP16, f.FP32, f.INT4, f.UINT8, f.INT32, f.INT64)),
    *((f.FP32, dst) for dst in (f.FP16, f.BF16, f.E4M3FN, f.E4M3FNUZ, f.INT16)),
    *((src, f.BF16) for src in WIDE_INTS),
    (f.INT64, f.FP32),
    (f.UINT64, f.E5M2),
]


@lru_cache
def fraction_source(src: Format, dst: Format) -> Codes:
    """Finite source codes at, halfway between and just beside numbers of the destination."""
    codes = source_codes(src)
    marks = codes[: codes.size - 2 * RANDOM_ELEMS]
    chosen = [marks[:: max(1, marks.size // 500)], codes[-2 * RANDOM_ELEMS :: 40]]
    if isinstance(src, FloatFormat) and isinstance(dst, FloatFormat) and dst.bits <= 8:
        table = magnitudes(dst)
        between = [(low + high) / 2 for low, high in itertools.pairwise(table)]
        exact = np.array([float(x) for x in table + between], src.dtype).view(src.code_dtype)
        chosen += [exact, exact + exact.dtype.type(1), exact[1:] - exact.dtype.type(1)]
        chosen += [part | src.code_dtype.type(src.sign_code) for part in chosen[-3:]]
    every = np.unique(np.concatenate(chosen))
    if isinstance(src, FloatFormat):
        every = every[np.isfinite(values_of(every, src))]
    return every


@pytest.mark.parametrize("mode", RoundMode, ids=str)
@pytest.mark.parametrize(
    ("src", "dst"), FRACTION_PAIRS, ids=[f"{src}-{dst}".lower() for src, dst in FRACTION_PAIRS]
)
@pytest.mark.sampled(32)
def test_every_mode_by_fractions(src: Format, dst: Format, mode: RoundMode) -> None:
    codes = fraction_source(src, dst)
    assert codes.size > 400
    values = [Fraction(value) for value in values_of(codes, src).tolist()]
    negative_zeros = isinstance(src, FloatFormat) & (codes == 1 << (src.bits - 1))
    for policy in (INF_NAN, WRAP) if isinstance(dst, IntFormat) else (INF_NAN, SATURATE):
        wanted = np.array(
            [expected_code(value, dst, mode, policy) for value in values], dst.code_dtype
        )
        if isinstance(dst, FloatFormat) and dst.has_negative_zero:
            wanted[negative_zeros] = dst.sign_code
        np.testing.assert_array_equal(convert(codes, src, dst, mode, policy), wanted)


def test_one_rounding_where_two_would_differ() -> None:
    """1 + 2^-8 + 2^-40 is above the tie of BF16; by way of FP32 it would fall on it."""
    code = one_code(1 + 2**-8 + 2**-40, f.FP64)
    assert convert_one(code, f.FP64, f.BF16) == 0x3F81
    assert convert_one(one_code(1 + 2**-8, f.FP64), f.FP64, f.BF16) == 0x3F80
    assert convert_one(one_code(2**40 + 2**32 + 1, f.INT64), f.INT64, f.BF16) == 0x5381
    assert convert_one(one_code(2**40 + 2**32, f.INT64), f.INT64, f.BF16) == 0x5380
