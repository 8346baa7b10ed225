"""The formats' derived limits, and the definition of a conversion against those that others make.

numpy and ml_dtypes are compared where they convert directly, in one rounding. Where they do not
(float64 to 16 bits and below, 32-bit and 64-bit integers to bfloat16), fractions decide.
"""

from __future__ import annotations

import bisect
import copy
import itertools
import math
import pickle
from fractions import Fraction
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from simulator.numbers import formats as f
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    SATURATE_KEEP_NAN,
    WRAP,
    Overflow,
    Policy,
    codes_of,
    convert,
    round_to_integral,
    values_of,
)
from simulator.numbers.formats import FORMATS, Codes, FloatFormat, Format, IntFormat, Specials
from simulator.numbers.rounding import RoundMode

RNG_SEED = 20251117
RANDOM_ELEMS = 4000

FLOATS = [fmt for fmt in FORMATS.values() if isinstance(fmt, FloatFormat) and not fmt.is_scale]
INTS = [fmt for fmt in FORMATS.values() if isinstance(fmt, IntFormat)]
NUMBERS = [fmt for fmt in FORMATS.values() if fmt not in (f.BOOL, f.E8M0)]
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


# --- Formats -----------------------------------------------------------------------------------


def test_there_are_25_formats() -> None:
    assert (
        list(FORMATS)
        == [fmt.name for fmt in FORMATS.values()]
        == [str(x) for x in FORMATS.values()]
    )
    assert (len(FLOATS), len(INTS)) == (11, 13)
    assert len(FORMATS) == 25


@pytest.mark.parametrize("fmt", FLOATS, ids=str)
def test_float_limits_are_those_of_finfo(fmt: FloatFormat) -> None:
    info = ml_dtypes.finfo(fmt.dtype)
    assert fmt.bits == info.bits
    assert fmt.man_bits == info.nmant
    assert fmt.bits == 1 + fmt.exp_bits + fmt.man_bits
    assert fmt.emin == int(info.minexp)
    assert fmt.max_code == one_code(info.max, fmt)
    assert fmt.max_code | fmt.sign_code == one_code(info.min, fmt)
    assert one_code(info.smallest_normal, fmt) == 1 << fmt.man_bits
    assert one_code(info.smallest_subnormal, fmt) == 1
    assert math.ldexp(1.0, fmt.min_quantum) == float(info.smallest_subnormal)


@pytest.mark.parametrize("fmt", FLOATS, ids=str)
def test_quantum_is_the_gap_to_the_next_number(fmt: FloatFormat) -> None:
    positive = values_of(np.arange(min(fmt.max_code, 2**15), dtype=fmt.code_dtype), fmt)
    if fmt.bits > 16:
        positive = np.array(
            [1.0, 1.5, 2.0, 1024.0, float(ml_dtypes.finfo(fmt.dtype).tiny)], fmt.dtype
        )
    following = values_of(codes_of(positive, fmt) + fmt.code_dtype.type(1), fmt)
    for value, after in zip(positive.astype(float), following.astype(float), strict=True):
        exponent = math.frexp(value)[1] - 1 if value else fmt.emin - 100
        assert Fraction(after) - Fraction(value) == Fraction(2) ** fmt.quantum(exponent)


@pytest.mark.parametrize("fmt", INTS, ids=str)
def test_integer_limits_are_those_of_iinfo(fmt: IntFormat) -> None:
    if fmt is f.BOOL:
        assert (fmt.min, fmt.max, fmt.bits) == (0, 1, 1)
        return
    info = ml_dtypes.iinfo(fmt.dtype)
    assert (fmt.min, fmt.max, fmt.bits) == (int(info.min), int(info.max), info.bits)
    assert fmt.signed == (info.min < 0)
    assert fmt.quantum(40) == 0


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_codes_are_as_wide_as_values_in_numpy(fmt: Format) -> None:
    assert fmt.code_dtype.kind == "u"
    assert fmt.code_dtype.itemsize == fmt.dtype.itemsize == max(fmt.bits, 8) // 8


@pytest.mark.parametrize("fmt", FLOATS, ids=str)
def test_special_codes(fmt: FloatFormat) -> None:
    has_inf, has_nan = fmt.specials is Specials.IEEE, fmt.specials is not Specials.NONE
    assert (fmt.inf_code is not None) == has_inf
    assert (fmt.nan_code is not None) == has_nan
    if fmt.inf_code is not None:
        assert fmt.inf_code == one_code(np.inf, fmt)
        assert fmt.max_code == fmt.inf_code - 1
    if fmt.nan_code is not None:
        value = values_of(np.array([fmt.nan_code], fmt.code_dtype), fmt)
        assert np.isnan(value.astype(np.float64)).all()
    negative_zero = values_of(np.array([fmt.sign_code], fmt.code_dtype), fmt).astype(np.float64)[0]
    assert fmt.has_negative_zero == (negative_zero == 0)


@pytest.mark.parametrize(
    ("fmt", "nan", "inf", "largest"),
    [
        (f.FP32, 0x7FFFFFFF, 0x7F800000, 0x7F7FFFFF),
        (f.FP16, 0x7FFF, 0x7C00, 0x7BFF),
        (f.BF16, 0x7FFF, 0x7F80, 0x7F7F),
        (f.E5M2, 0x7F, 0x7C, 0x7B),
        (f.E4M3FN, 0x7F, None, 0x7E),
        (f.E5M2FNUZ, 0x80, None, 0x7F),
        (f.E4M3FNUZ, 0x80, None, 0x7F),
        (f.E2M3, None, None, 0x1F),
        (f.E3M2, None, None, 0x1F),
        (f.E2M1, None, None, 0x7),
        (f.E8M0, 0xFF, None, 0xFE),
    ],
    ids=str,
)
def test_special_codes_literally(
    fmt: FloatFormat, nan: int | None, inf: int | None, largest: int
) -> None:
    assert (fmt.nan_code, fmt.inf_code, fmt.max_code) == (nan, inf, largest)


# --- Source codes ------------------------------------------------------------------------------


@lru_cache
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


# --- All pairs under RINT ----------------------------------------------------------------------


def is_direct(src: Format, dst: Format) -> bool:
    """Tells whether numpy or ml_dtypes convert a number to a float in one rounding."""
    if src is f.FP64:
        return dst in (f.FP64, f.FP32, f.FP16)
    # Integers above 2**24 overflow FP16 and everything narrower: their detour loses nothing there.
    return not (src in WIDE_INTS and dst is f.BF16)


PAIRS = [
    pytest.param(src, dst, id=f"{src}-{dst}".lower())
    for src in FORMATS.values()
    for dst in FORMATS.values()
]
TO_FLOAT = [p for p in PAIRS if p.values[1] in FLOATS and is_direct(*p.values)]
TO_INT = [p for p in PAIRS if isinstance(p.values[1], IntFormat) and p.values[1] is not f.BOOL]


def test_every_pair_is_compared_with_something() -> None:
    left = {tuple(p.values) for p in PAIRS} - {tuple(p.values) for p in TO_FLOAT + TO_INT}
    by_fractions = {(f.FP64, dst) for dst in SMALL_FLOATS} | {(src, f.BF16) for src in WIDE_INTS}
    assert left - by_fractions == {(s, d) for s in FORMATS.values() for d in (f.BOOL, f.E8M0)}
    assert len(PAIRS) == 625


@pytest.mark.parametrize(("src", "dst"), TO_FLOAT)
def test_rint_to_floats_agrees_with_numpy_and_ml_dtypes(src: Format, dst: FloatFormat) -> None:
    codes = source_codes(src)
    values = values_of(codes, src)
    if src.bits < 8 or (isinstance(src, FloatFormat) and src.bits == 8) or src is f.BF16:
        values = values.astype(np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        wanted = values.astype(dst.dtype)
    actual = convert(codes, src, dst, RoundMode.RINT, INF_NAN)
    assert (actual.dtype, actual.shape) == (dst.code_dtype, codes.shape)
    if dst.nan_code is None:
        defined = ~np.isnan(as_float64(values))
        actual, wanted = actual[defined], wanted[defined]
    assert_same_numbers(actual, wanted, dst)


@pytest.mark.parametrize(("src", "dst"), TO_INT)
def test_rint_to_integers_agrees_with_numpy_and_clamps(src: Format, dst: IntFormat) -> None:
    values = wide_values(src)
    wanted = []
    for value in values.tolist():
        if isinstance(value, float) and not math.isfinite(value):
            wanted.append(0 if math.isnan(value) else dst.max if value > 0 else dst.min)
        else:
            wanted.append(min(max(round(value), dst.min), dst.max))
    holder = np.uint64 if dst is f.UINT64 else np.int64
    expected = np.array(wanted, holder).astype(dst.dtype)
    actual = convert(source_codes(src), src, dst, RoundMode.RINT, INF_NAN)
    assert (actual.dtype, actual.shape) == (dst.code_dtype, expected.shape)
    np.testing.assert_array_equal(actual, codes_of(expected, dst))


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("src", FORMATS.values(), ids=str)
def test_to_bool_is_not_zero(src: Format, policy: Policy) -> None:
    wanted = wide_values(src) != 0
    for mode in RoundMode:
        actual = convert(source_codes(src), src, f.BOOL, mode, policy)
        np.testing.assert_array_equal(actual, wanted.view(np.uint8))
    assert wanted.any()
    assert wanted.all() == (src is f.E8M0)


@pytest.mark.parametrize("dst", NUMBERS, ids=str)
def test_from_bool_is_zero_or_one(dst: Format) -> None:
    codes = np.array([0, 1, 0], np.uint8)
    for policy in (INF_NAN, SATURATE):
        out = values_of(convert(codes, f.BOOL, dst, RoundMode.RINT, policy), dst)
        assert out.astype(np.float64).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
@pytest.mark.parametrize("mode", RoundMode, ids=str)
def test_a_format_to_itself_changes_nothing_but_nan_patterns(fmt: Format, mode: RoundMode) -> None:
    codes = source_codes(fmt)
    actual = convert(codes, fmt, fmt, mode, INF_NAN)
    if not isinstance(fmt, FloatFormat):
        np.testing.assert_array_equal(actual, codes)
        return
    nan = np.isnan(wide_values(fmt))
    np.testing.assert_array_equal(actual[~nan], codes[~nan])
    assert set(actual[nan].tolist()) == ({fmt.nan_code} if fmt.nan_code is not None else set())


# --- 64-bit integers ---------------------------------------------------------------------------

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


# --- Every mode, by fractions ------------------------------------------------------------------


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


# --- Policies ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "dst", "inf", "negative_inf", "nan", "beyond"),
    [
        (INF_NAN, f.FP16, 0x7C00, 0xFC00, 0x7FFF, 0x7C00),
        (SATURATE, f.FP16, 0x7BFF, 0xFBFF, 0, 0x7BFF),
        (SATURATE_KEEP_NAN, f.FP16, 0x7BFF, 0xFBFF, 0x7FFF, 0x7BFF),
        (INF_NAN, f.E4M3FN, 0x7F, 0x7F, 0x7F, 0x7F),
        (SATURATE, f.E4M3FN, 0x7E, 0xFE, 0, 0x7E),
        (SATURATE_KEEP_NAN, f.E4M3FN, 0x7E, 0xFE, 0x7F, 0x7E),
        (INF_NAN, f.E4M3FNUZ, 0x80, 0x80, 0x80, 0x80),
        (SATURATE_KEEP_NAN, f.E4M3FNUZ, 0x7F, 0xFF, 0x80, 0x7F),
        (INF_NAN, f.E2M1, 0x7, 0xF, 0, 0x7),
        (SATURATE, f.E2M1, 0x7, 0xF, 0, 0x7),
        (INF_NAN, f.INT8, 127, 128, 0, 127),
        (SATURATE, f.INT8, 127, 128, 0, 127),
        (WRAP, f.INT8, 127, 128, 0, 0),
        (INF_NAN, f.UINT8, 255, 0, 0, 255),
    ],
    ids=lambda part: str(part) if isinstance(part, (Policy, FloatFormat, IntFormat)) else "",
)
def test_specials_follow_the_policy(
    policy: Policy, dst: Format, inf: int, negative_inf: int, nan: int, beyond: int
) -> None:
    codes = codes_of(np.array([np.inf, -np.inf, np.nan, -np.nan, 2.0**100], np.float32), f.FP32)
    out = convert(codes, f.FP32, dst, RoundMode.RINT, policy)
    assert out.tolist() == [inf, negative_inf, nan, nan, beyond]


@pytest.mark.parametrize("dst", FLOATS, ids=str)
def test_low_bits_of_a_float_are_refused(dst: FloatFormat) -> None:
    with pytest.raises(ValueError, match=f"WRAP keeps low bits of an integer; {dst} is a float"):
        convert_one(0, f.INT32, dst, policy=WRAP)
    assert convert_one(0, f.INT32, dst, policy=SATURATE) == 0
    assert convert_one(257, f.INT32, f.UINT8, policy=WRAP) == 1


@pytest.mark.parametrize("mode", RoundMode, ids=str)
def test_round_to_integral_gives_whole_numbers_and_positive_zeros(mode: RoundMode) -> None:
    codes = source_codes(f.FP32)
    out = round_to_integral(codes, f.FP32, mode)
    nan = (codes & 0x7FFFFFFF) > 0x7F800000
    assert set(out[nan].tolist()) == {0x7FFFFFFF}
    codes, out = codes[~nan], out[~nan]
    values = values_of(codes, f.FP32)
    rounded = values_of(out, f.FP32)
    away = np.copysign(np.floor(np.abs(values.astype(np.float64)) + 0.5), values)
    whole = np.trunc(values)
    to_odd = np.where(
        (whole != values) & (np.fmod(np.clip(whole, -(2.0**24), 2.0**24), 2) == 0),
        whole + np.copysign(np.float32(1), values),
        whole,
    )
    wanted = {
        RoundMode.RINT: np.rint(values),
        RoundMode.ROUND: away,
        RoundMode.FLOOR: np.floor(values),
        RoundMode.CEIL: np.ceil(values),
        RoundMode.TRUNC: whole,
        RoundMode.ODD: to_odd,
    }[mode]
    np.testing.assert_array_equal(rounded, wanted.astype(np.float32))
    assert np.isinf(rounded).any()
    assert not np.signbit(rounded[rounded == 0]).any()


# --- Arrays ------------------------------------------------------------------------------------

ARRAY_PAIRS = [
    (f.FP32, f.FP16),
    (f.FP16, f.INT8),
    (f.INT64, f.FP32),
    (f.INT32, f.INT16),
    (f.FP64, f.BOOL),
    (f.E5M2FNUZ, f.E2M1),
]
array_pairs = pytest.mark.parametrize(
    ("src", "dst"), ARRAY_PAIRS, ids=[f"{src}-{dst}".lower() for src, dst in ARRAY_PAIRS]
)


@array_pairs
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3), (2, 1, 3, 2, 2)], ids=str)
def test_arrays_keep_their_shape(src: Format, dst: Format, shape: tuple[int, ...]) -> None:
    size = math.prod(shape)
    codes = np.resize(source_codes(src)[50:], size)
    flat = convert(codes, src, dst, RoundMode.RINT, INF_NAN)
    out = convert(codes.reshape(shape), src, dst, RoundMode.RINT, INF_NAN)
    assert (out.shape, out.dtype) == (shape, dst.code_dtype)
    np.testing.assert_array_equal(out.reshape(-1), flat)


@array_pairs
@pytest.mark.parametrize("mode", RoundMode, ids=str)
def test_the_source_is_not_modified(src: Format, dst: Format, mode: RoundMode) -> None:
    codes = source_codes(src).copy()
    before = codes.copy()
    out = convert(codes, src, dst, mode, INF_NAN)
    np.testing.assert_array_equal(codes, before)
    assert not np.shares_memory(out, codes)
    codes.flags.writeable = False
    np.testing.assert_array_equal(convert(codes, src, dst, mode, INF_NAN), out)


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_codes_and_values_are_views_of_each_other(fmt: Format) -> None:
    codes = np.array([0, 1], fmt.code_dtype)
    values = values_of(codes, fmt)
    assert values.dtype == fmt.dtype
    assert np.shares_memory(values, codes)
    np.testing.assert_array_equal(codes_of(values, fmt), codes)
    assert np.shares_memory(codes_of(values, fmt), codes) == (fmt.bits not in (2, 4, 6))


def test_unused_bits_of_a_4_bit_code_are_cleared() -> None:
    values = np.array([-1, -8, 7, 0], ml_dtypes.int4)
    assert codes_of(values, f.INT4).tolist() == [15, 8, 7, 0]
    assert values_of(codes_of(values, f.INT4), f.INT4).astype(int).tolist() == [-1, -8, 7, 0]


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_a_format_stays_itself(fmt: Format) -> None:
    """Code asks `src is FP32`, in other processes too."""
    assert pickle.loads(pickle.dumps(fmt)) is fmt
    assert copy.deepcopy(fmt) is fmt
    assert copy.copy(fmt) is fmt


def test_a_format_of_ones_own_is_not_mistaken_for_another() -> None:
    mine = IntFormat(name="INT8", bits=7, signed=True, dtype=np.dtype(np.int8))
    with pytest.raises(pickle.PicklingError, match="not the same object"):
        pickle.dumps(mine)
