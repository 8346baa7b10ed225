"""The definition of a conversion against numpy and ml_dtypes where they round once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.numbers.source_codes import (
    FLOATS,
    IN_NUMPY,
    NUMBERS,
    POLICIES,
    SMALL_FLOATS,
    WIDE_INTS,
    as_float64,
    assert_same_numbers,
    convert_one,
    source_codes,
    wide_values,
)

from simulator.numbers import formats as f
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    SATURATE_KEEP_NAN,
    WRAP,
    Policy,
    codes_of,
    convert,
    round_to_integral,
    values_of,
)
from simulator.numbers.formats import FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode


def is_direct(src: Format, dst: Format) -> bool:
    """True if numpy or ml_dtypes convert a number to a float in one rounding."""
    if src is f.FP64:
        return dst in (f.FP64, f.FP32, f.FP16)
    # Integers above 2**24 overflow FP16 and everything narrower: their detour loses nothing there.
    return not (src in WIDE_INTS and dst is f.BF16)


PAIRS = [pytest.param(src, dst, id=f"{src}-{dst}".lower()) for src in IN_NUMPY for dst in IN_NUMPY]
TO_FLOAT = [p for p in PAIRS if p.values[1] in FLOATS and is_direct(*p.values)]
TO_INT = [p for p in PAIRS if isinstance(p.values[1], IntFormat) and p.values[1] is not f.BOOL]


def test_every_pair_is_compared_with_something() -> None:
    left = {tuple(p.values) for p in PAIRS} - {tuple(p.values) for p in TO_FLOAT + TO_INT}
    by_fractions = {(f.FP64, dst) for dst in SMALL_FLOATS} | {(src, f.BF16) for src in WIDE_INTS}
    assert left - by_fractions == {(s, d) for s in IN_NUMPY for d in (f.BOOL, f.E8M0)}
    assert len(PAIRS) == 625


@pytest.mark.sampled(3)
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
@pytest.mark.sampled(16)
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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("src", IN_NUMPY, ids=str)
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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fmt", IN_NUMPY, ids=str)
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
