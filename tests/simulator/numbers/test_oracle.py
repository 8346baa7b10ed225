"""The oracle itself, against literal numbers from the rules and against direct outside casts."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from support.numbers.codes import DIRECT_PAIRS, NUMPY
from support.numbers.oracle import (
    FORMATS,
    M5,
    MODES,
    OFF_PAIRS,
    ROW_OF,
    ROWS,
    Float,
    decode,
    expected,
    expected_codes,
    expected_table,
)

PATTERNS = 4096


def fp32(value: float) -> int:
    """The code of a value that FP32 holds exactly."""
    code = int(np.float32(value).view(np.uint32))
    assert float(np.uint32(code).view(np.float32)) == value
    return code


def fp16(value: float) -> int:
    """The code of a value that FP16 holds exactly."""
    code = int(np.float16(value).view(np.uint16))
    assert float(np.uint16(code).view(np.float16)) == value
    return code


def by_mode(code: int, src: str, dst: str, *, inf_nan_mode: bool = True) -> dict[str, int]:
    return {
        mode: expected(code, src, dst, mode, inf_nan_mode=inf_nan_mode)
        for mode in ROW_OF[src, dst].modes
    }


# --- The table of pairs -----------------------------------------------------------------------


def test_there_are_25_rows_and_each_pair_has_one() -> None:
    assert len(ROWS) == len({(row.src, row.dst) for row in ROWS}) == 25


def test_the_default_is_trunc_from_float_to_integer_and_rint_otherwise() -> None:
    for row in ROWS:
        to_integer = row.src in ("FP32", "FP16", "BF16") and row.dst.lstrip("U").startswith("INT")
        assert row.default == ("TRUNC" if to_integer else "RINT"), row


def test_only_fp32_to_fp16_has_odd() -> None:
    assert [(row.src, row.dst) for row in ROWS if "ODD" in row.modes] == [("FP32", "FP16")]


def test_saturation_off_acts_on_six_pairs() -> None:
    assert {
        ("FP16", "UINT8"),
        ("FP16", "INT8"),
        ("FP16", "INT16"),
        ("FP32", "INT16"),
        ("INT64", "INT32"),
        ("INT32", "INT16"),
    } == OFF_PAIRS


def test_a_mode_that_the_pair_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="ODD"):
        expected(0, "FP32", "INT32", "ODD")
    with pytest.raises(ValueError, match="FLOOR"):
        expected(0, "INT32", "FP16", "FLOOR")


# --- Decoding ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "fmt", "value"),
    [
        (0x0001, "FP16", 2.0**-24),
        (0x03FF, "FP16", 1023 * 2.0**-24),
        (0x0400, "FP16", 2.0**-14),
        (0x3F00, "FP16", 1.75),
        (0x7BFF, "FP16", 65504.0),
        (0xBC00, "FP16", -1.0),
        (0x0001, "BF16", 2.0**-133),
        (0x7F7F, "BF16", 255 * 2.0**120),
        (0x00000001, "FP32", 2.0**-149),
        (0x3FE00000, "FP32", 1.75),
        (0xC0000000, "FP32", -2.0),
        (0x8, "INT4", -8),
        (0x7, "INT4", 7),
        (0xFF, "UINT8", 255),
        (0xFF, "INT8", -1),
        (0x8000, "INT16", -32768),
        (0x8000000000000000, "INT64", -(2**63)),
    ],
)
def test_decode(code: int, fmt: str, value: float) -> None:
    kind, negative, magnitude = decode(code, fmt)
    assert (kind, negative, magnitude) == ("finite", value < 0, Fraction(abs(value)))


@pytest.mark.slow
@pytest.mark.parametrize(("fmt", "dtype"), [("FP16", np.float16), ("BF16", ml_dtypes.bfloat16)])
def test_decode_of_every_16_bit_float(fmt: str, dtype: type) -> None:
    with np.errstate(invalid="ignore"):
        values = np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(np.float64)
    for code, value in enumerate(values.tolist()):
        kind, negative, magnitude = decode(code, fmt)
        if value != value:
            assert kind == "nan"
        elif value in (float("inf"), float("-inf")):
            assert (kind, negative) == ("inf", value < 0)
        else:
            assert (kind, negative, magnitude) == ("finite", code >= 0x8000, Fraction(abs(value)))


# --- Rounding ---------------------------------------------------------------------------------


def test_half_plus_a_tie_to_fp16() -> None:
    low, high = fp16(0.5), fp16(0.5 + 2**-11)
    assert by_mode(fp32(0.5 + 2**-12), "FP32", "FP16") == {
        "RINT": low,
        "ROUND": high,
        "FLOOR": low,
        "CEIL": high,
        "TRUNC": low,
        "ODD": high,
    }


def test_int32_to_fp32() -> None:
    low, high = fp32(2.0**25), fp32(2.0**25 + 4)
    assert by_mode(2**25 + 3, "INT32", "FP32") == {
        "RINT": high,
        "ROUND": high,
        "FLOOR": low,
        "CEIL": high,
        "TRUNC": low,
    }
    assert expected(-16777217 & 0xFFFFFFFF, "INT32", "FP32", "FLOOR") == fp32(-16777218.0)


def test_int64_to_fp32() -> None:
    low, high = fp32(2.0**35 + 2**12), fp32(2.0**35 + 2**13)
    assert by_mode(2**35 + 2**12 + 2**11, "INT64", "FP32") == {
        "RINT": high,
        "ROUND": high,
        "FLOOR": low,
        "CEIL": high,
        "TRUNC": low,
    }
    assert expected(2**63 - 1, "INT64", "FP32", "RINT") == fp32(2.0**63)


def test_fp32_to_bf16() -> None:
    low, high = 0x3F00, 0x3F01
    assert by_mode(fp32(0.5 + 2**-9 + 2**-11), "FP32", "BF16") == {
        "RINT": high,
        "ROUND": high,
        "FLOOR": low,
        "CEIL": high,
        "TRUNC": low,
    }


@pytest.mark.parametrize(
    ("value", "rint", "round_", "floor", "ceil", "trunc"),
    [
        (0.5, 0, 1, 0, 1, 0),
        (1.5, 2, 2, 1, 2, 1),
        (2.5, 2, 3, 2, 3, 2),
        (2.25, 2, 2, 2, 3, 2),
        (-0.5, 0, -1, -1, 0, 0),
        (-1.5, -2, -2, -2, -1, -1),
        (-2.5, -2, -3, -3, -2, -2),
        (-2.75, -3, -3, -3, -2, -2),
        (7.0, 7, 7, 7, 7, 7),
    ],
)
def test_float_to_integer(
    value: float, rint: int, round_: int, floor: int, ceil: int, trunc: int
) -> None:
    wanted = {
        mode: number & 0xFFFF
        for mode, number in zip(M5, (rint, round_, floor, ceil, trunc), strict=True)
    }
    assert by_mode(fp32(value), "FP32", "INT16") == wanted
    assert by_mode(fp16(value), "FP16", "INT16") == wanted


def test_subnormals_are_gradual() -> None:
    assert expected(fp32(2.0**-24), "FP32", "FP16", "RINT") == 0x0001
    assert expected(fp32(2.0**-25), "FP32", "FP16", "RINT") == 0x0000
    assert expected(fp32(2.0**-25) + 1, "FP32", "FP16", "RINT") == 0x0001
    assert expected(fp32(2.0**-25), "FP32", "FP16", "ROUND") == 0x0001
    assert expected(fp32(2.0**-14) - 1, "FP32", "FP16", "RINT") == 0x0400
    assert expected(fp32(2.0**-14) - 1, "FP32", "FP16", "TRUNC") == 0x03FF
    assert expected(0x00010000, "FP32", "BF16", "TRUNC") == 0x0001
    assert expected(0x00018000, "FP32", "BF16", "RINT") == 0x0002
    assert expected(0x0001, "FP16", "FP32", "RINT") == fp32(2.0**-24)
    assert expected(0x0001, "BF16", "FP32", "RINT") == 0x00010000


def test_odd_below_the_smallest_subnormal() -> None:
    assert expected(0x00000001, "FP32", "FP16", "ODD") == 0x0001
    assert expected(0x80000001, "FP32", "FP16", "ODD") == 0x8001
    assert expected(fp32(2.0**-23 + 2**-40), "FP32", "FP16", "ODD") == 0x0003


def test_a_carry_runs_into_the_exponent() -> None:
    assert expected(0x3FFFFFFF, "FP32", "FP16", "RINT") == 0x4000
    assert expected(0x3FFFFFFF, "FP32", "BF16", "CEIL") == 0x4000
    assert expected(0xBFFFFFFF, "FP32", "BF16", "FLOOR") == 0xC000


# --- Integers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("src", "code", "dst", "wanted"),
    [
        ("FP16", 0x5810, "INT8", 127),
        ("FP16", 0x5CB0, "INT8", 127),
        ("FP16", 0xDCB0, "INT8", 0x80),
        ("FP16", 0x5240, "INT8", 50),
        ("FP16", 0x7C00, "UINT8", 255),
        ("FP16", 0xFC00, "UINT8", 0),
        ("FP16", 0xBC00, "UINT8", 0),
        ("FP16", 0x7C00, "INT4", 7),
        ("FP16", 0xFC00, "INT4", 8),
        ("FP16", 0xBC00, "INT4", 15),
        ("FP16", 0x7BFF, "INT16", 32767),
        ("FP16", 0x7BFF, "INT32", 65504),
        ("FP32", 0x4F000000, "INT32", 0x7FFFFFFF),
        ("FP32", 0xCF000000, "INT32", 0x80000000),
        ("FP32", 0x7F800000, "INT64", 0x7FFFFFFFFFFFFFFF),
        ("FP32", 0xFF800000, "INT64", 0x8000000000000000),
        ("FP32", 0x7F7FFFFF, "INT64", 0x7FFFFFFFFFFFFFFF),
        ("BF16", 0x7F7F, "INT32", 0x7FFFFFFF),
        ("INT64", 2**31, "INT32", 0x7FFFFFFF),
        ("INT64", 2**63, "INT32", 0x80000000),
        ("INT32", 0x8000, "INT16", 0x7FFF),
        ("INT32", 0x80000000, "INT16", 0x8000),
        ("INT32", 0x80000000, "INT64", 0xFFFFFFFF80000000),
    ],
)
def test_out_of_range_takes_the_limit(src: str, code: int, dst: str, wanted: int) -> None:
    assert expected(code, src, dst, "TRUNC") == wanted


@pytest.mark.parametrize(
    ("src", "code", "dst", "wanted"),
    [
        ("FP32", 0x7F800000, "INT16", 0xFFFF),
        ("FP32", 0xFF800000, "INT16", 0x0000),
        ("FP32", 0x7FC00000, "INT16", 0x0000),
        ("FP32", 0x471C4000, "INT16", 40000),
        ("FP32", 0x4F000000, "INT16", 0xFFFF),
        ("FP32", 0xCF000000, "INT16", 0x0000),
        ("FP16", 0x7C00, "INT16", 0xFFFF),
        ("FP16", 0xFC00, "INT16", 0x0000),
        ("FP16", 0x7BFF, "INT16", -32 & 0xFFFF),
        ("FP16", 0x5CB0, "INT8", 44),
        ("FP16", 0xDCB0, "INT8", -44 & 0xFF),
        ("FP16", 0x7C00, "INT8", 0xFF),
        ("FP16", 0xFC00, "INT8", 0x00),
        ("FP16", 0x7E00, "INT8", 0x00),
        ("FP16", 0xBC00, "UINT8", 255),
        ("FP16", 0x5C04, "UINT8", 1),
        ("FP16", 0xFBFF, "UINT8", 32),
        ("FP16", 0x7C00, "UINT8", 255),
        ("FP16", 0xFC00, "UINT8", 0),
        ("FP16", 0x7E00, "UINT8", 0),
        ("INT64", 0x123456789ABCDEF0, "INT32", 0x9ABCDEF0),
        ("INT64", 2**63, "INT32", 0),
        ("INT64", 2**63 - 1, "INT32", 0xFFFFFFFF),
        ("INT32", 0x12345678, "INT16", 0x5678),
    ],
)
def test_saturation_off_keeps_low_bits(src: str, code: int, dst: str, wanted: int) -> None:
    assert expected(code, src, dst, "TRUNC", satmode="OFF") == wanted


def test_saturation_off_clamps_elsewhere() -> None:
    assert expected(0x4F000000, "FP32", "INT32", "RINT", satmode="OFF") == 0x7FFFFFFF
    assert expected(0x7C00, "FP16", "INT4", "RINT", satmode="OFF") == 7


def test_nan_and_zeros_become_the_integer_zero() -> None:
    for row in ROWS:
        form = FORMATS[row.src]
        if isinstance(form, Float) and not isinstance(FORMATS[row.dst], Float):
            for code in (form.inf + 1, form.nan, form.sign_bit | form.nan, 0, form.sign_bit):
                assert set(by_mode(code, row.src, row.dst).values()) == {0}


# --- Float results ----------------------------------------------------------------------------

FP16_OVERFLOW = {
    +1: dict(zip(MODES, (0x7C00, 0x7C00, 0x7BFF, 0x7C00, 0x7BFF, 0x7BFF), strict=True)),
    -1: dict(zip(MODES, (0xFC00, 0xFC00, 0xFC00, 0xFBFF, 0xFBFF, 0xFBFF), strict=True)),
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("magnitude", [65520.0, 65536.0, 2.0**127])
def test_overflow_to_fp16(sign: int, magnitude: float) -> None:
    code = fp32(sign * magnitude)
    assert by_mode(code, "FP32", "FP16") == FP16_OVERFLOW[sign]
    largest = 0x7BFF if sign > 0 else 0xFBFF
    assert set(by_mode(code, "FP32", "FP16", inf_nan_mode=False).values()) == {largest}


def test_just_below_the_overflow_of_fp16() -> None:
    assert by_mode(fp32(65520.0) - 1, "FP32", "FP16") == FP16_OVERFLOW[1] | {
        "RINT": 0x7BFF,
        "ROUND": 0x7BFF,
    }


def test_overflow_to_bf16() -> None:
    assert expected(0x7F7F7FFF, "FP32", "BF16", "RINT") == 0x7F7F
    assert expected(0x7F7F8000, "FP32", "BF16", "RINT") == 0x7F80
    assert expected(0x7F7F8000, "FP32", "BF16", "TRUNC") == 0x7F7F
    assert expected(0x7F7F0001, "FP32", "BF16", "CEIL") == 0x7F80
    assert expected(0xFF7F0001, "FP32", "BF16", "CEIL") == 0xFF7F
    assert expected(0xFF7F0001, "FP32", "BF16", "FLOOR") == 0xFF80
    assert expected(0xFF7F8000, "FP32", "BF16", "RINT", inf_nan_mode=False) == 0xFF7F


def test_int32_to_fp16() -> None:
    assert expected(65519, "INT32", "FP16", "RINT") == 0x7BFF
    assert expected(65520, "INT32", "FP16", "RINT") == 0x7C00
    assert expected(-65520 & 0xFFFFFFFF, "INT32", "FP16", "RINT") == 0xFC00
    assert expected(65520, "INT32", "FP16", "RINT", inf_nan_mode=False) == 0x7BFF
    assert expected(2049, "INT32", "FP16", "RINT") == fp16(2048.0)
    assert expected(2051, "INT32", "FP16", "RINT") == fp16(2052.0)


@pytest.mark.parametrize("mode", MODES)
def test_inf_and_nan_to_fp16(mode: str) -> None:
    for nan in (0x7F800001, 0x7FC00000, 0xFF800001, 0xFFFFFFFF):
        assert expected(nan, "FP32", "FP16", mode) == 0x7FFF
        assert expected(nan, "FP32", "FP16", mode, inf_nan_mode=False) == 0x0000
    assert expected(0x7F800000, "FP32", "FP16", mode) == 0x7C00
    assert expected(0xFF800000, "FP32", "FP16", mode) == 0xFC00
    assert expected(0xFF800000, "FP32", "FP16", mode, inf_nan_mode=False) == 0xFBFF


def test_inf_and_nan_in_fp32_results() -> None:
    for inf_nan_mode in (True, False):
        assert expected(0xFE01, "FP16", "FP32", "RINT", inf_nan_mode=inf_nan_mode) == 0x7FFFFFFF
        assert expected(0xFC00, "FP16", "FP32", "RINT", inf_nan_mode=inf_nan_mode) == 0xFF800000
        assert expected(0x7F81, "BF16", "FP32", "RINT", inf_nan_mode=inf_nan_mode) == 0x7FFFFFFF
        assert expected(0xFF80, "BF16", "FP32", "RINT", inf_nan_mode=inf_nan_mode) == 0xFF800000


def test_zero_keeps_its_sign_between_float_formats() -> None:
    assert expected(0x80000000, "FP32", "FP16", "CEIL") == 0x8000
    assert expected(0x80000001, "FP32", "BF16", "CEIL") == 0x8000
    assert expected(0x8000, "FP16", "FP32", "RINT") == 0x80000000
    assert expected(0x8000, "BF16", "FP32", "RINT") == 0x80000000
    assert expected(0, "INT16", "FP16", "FLOOR") == 0


@pytest.mark.parametrize(
    ("code", "rint", "round_", "floor", "ceil", "trunc"),
    [
        (0x3F000000, 0, 0x3F800000, 0, 0x3F800000, 0),
        (0xBF000000, 0, 0xBF800000, 0xBF800000, 0, 0),
        (0xBFC00000, 0xC0000000, 0xC0000000, 0xC0000000, 0xBF800000, 0xBF800000),
        (0x80000000, 0, 0, 0, 0, 0),
        (0x4B000001, 0x4B000001, 0x4B000001, 0x4B000001, 0x4B000001, 0x4B000001),
        (0x4AFFFFFF, 0x4B000000, 0x4B000000, 0x4AFFFFFE, 0x4B000000, 0x4AFFFFFE),
        (0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF),
        (0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000),
        (0xFF800001, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF),
    ],
)
def test_fp32_to_an_integral_fp32(
    code: int, rint: int, round_: int, floor: int, ceil: int, trunc: int
) -> None:
    wanted = dict(zip(M5, (rint, round_, floor, ceil, trunc), strict=True))
    assert by_mode(code, "FP32", "FP32") == wanted
    assert by_mode(code, "FP32", "FP32", inf_nan_mode=False) == wanted


# --- Outside ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("src", "dst"), DIRECT_PAIRS)
@pytest.mark.sampled(2)
def test_rint_agrees_with_a_direct_outside_cast(src: str, dst: str) -> None:
    """Evenly spread codes, an odd stride apart; NaN is compared as a class."""
    bits = FORMATS[src].bits
    stride = max((1 << bits) // PATTERNS, 1) | 1
    codes = np.arange(0, 1 << bits, stride, dtype=f"uint{bits}")
    with np.errstate(over="ignore", invalid="ignore"):
        outside = codes.view(NUMPY[src]).astype(NUMPY[dst])
    ours = expected_codes(codes, src, dst, "RINT")
    nan = np.isnan(outside)
    form = FORMATS[dst]
    assert isinstance(form, Float)
    np.testing.assert_array_equal(ours == form.nan, nan)
    np.testing.assert_array_equal(ours[~nan], outside.view(ours.dtype)[~nan])


def test_the_table_lists_all_codes_in_order() -> None:
    table = expected_table("INT4", "FP16", "RINT")
    numbers = [0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1]
    np.testing.assert_array_equal(table, np.array(numbers, np.float16).view(np.uint16))
