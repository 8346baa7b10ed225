"""FLOAT8E8M0, a power of two, in every mode: ONNX's table and fractions decide."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from pypto_cast.dialects import onnx
from pypto_cast.dialects.onnx.types import FORMATS
from simulator.numbers.convert import INF_NAN, SATURATE_KEEP_NAN, WRAP, convert, values_of
from simulator.numbers.formats import BF16, E8M0, FP16, FP32, FP64, INT64, UINT64, Format, IntFormat
from simulator.numbers.rounding import RoundMode, boundary_codes

MODES = {"up": RoundMode.CEIL, "down": RoundMode.FLOOR, "nearest": RoundMode.ROUND}
LEAST, GREATEST = Fraction(1, 2**127), Fraction(2**127)
NAN = 0xFF


def expected(value: float | int, mode: str, saturate: bool) -> int:
    """By the table: whatever lies outside of 2**-127 .. 2**127 saturates or is NaN."""
    if isinstance(value, float) and math.isnan(value):
        return NAN
    if value == math.inf or (value != -math.inf and Fraction(value) > GREATEST):
        return 254 if saturate else NAN
    if value == -math.inf or Fraction(value) < LEAST:
        return 0 if saturate else NAN
    exact = Fraction(value)
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > exact
    power = Fraction(2) ** exponent
    if mode == "up":
        exponent += exact != power
    elif mode == "nearest":
        exponent += exact >= power * 3 / 2
    return exponent + 127


def test_every_code_is_the_power_that_ml_dtypes_says() -> None:
    codes = np.arange(256, dtype=np.uint8)
    wanted = codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    got = values_of(convert(codes, E8M0, FP64, RoundMode.RINT, INF_NAN), FP64)
    np.testing.assert_array_equal(got, wanted)
    assert got[:255].tolist() == [2.0 ** (code - 127) for code in range(255)]


def test_limits() -> None:
    assert (E8M0.bits, E8M0.emin, E8M0.min_quantum, E8M0.max_code) == (8, -127, -127, 254)
    assert (E8M0.inf_code, E8M0.nan_code, E8M0.has_negative_zero) == (None, 255, False)
    assert E8M0.is_scale
    assert not FP32.is_scale


@pytest.mark.sampled(6)
@pytest.mark.parametrize("saturate", [True, False], ids=["saturate", "no-saturate"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("src", [FP32, FP64, BF16, FP16, INT64, UINT64], ids=str)
def test_every_mode_by_fractions(src: Format, mode: str, saturate: bool) -> None:
    codes = boundary_codes(src)
    codes = codes[:: max(codes.size // 3000, 1)]
    ends = [0.0, -0.0, 2.0**-127, 2.0**-128, 2.0**127, 1.01 * 2.0**127, 1.5 * 2.0**-127]
    if not isinstance(src, IntFormat):
        with np.errstate(all="ignore"):
            near = np.array([*ends, -1.0, np.inf, -np.inf, np.nan]).astype(src.dtype)
        codes = np.concatenate([codes, near.view(src.code_dtype)])
    values = values_of(codes, src)
    with np.errstate(invalid="ignore"):
        numbers = (values if isinstance(src, IntFormat) else values.astype(np.float64)).tolist()
    policy = SATURATE_KEEP_NAN if saturate else INF_NAN
    wanted = [expected(number, mode, saturate) for number in numbers]
    assert convert(codes, src, E8M0, MODES[mode], policy).tolist() == wanted
    got = onnx.cast(values, "FLOAT8E8M0", round_mode=mode, saturate=saturate)
    assert got.view(np.uint8).tolist() == wanted


@pytest.mark.parametrize(
    ("value", "saturated_up", "unsaturated_nearest"),
    [
        (0.0, 0x00, NAN),
        (np.nan, NAN, NAN),
        (np.inf, 0xFE, NAN),
        (3e38, 0xFE, NAN),
        (1e-39, 0x00, NAN),
        (-1.0, 0x00, NAN),
        (-0.0, 0x00, NAN),
    ],
)
def test_the_table_of_the_operator(
    value: float, saturated_up: int, unsaturated_nearest: int
) -> None:
    x = np.array([value], np.float32)
    assert onnx.cast(x, 24).view(np.uint8).tolist() == [saturated_up]
    got = onnx.cast(x, 24, saturate=False, round_mode="nearest")
    assert got.view(np.uint8).tolist() == [unsaturated_nearest]


def test_round_mode_concerns_no_other_type() -> None:
    x = np.array([1.0625, 1.1, 7.3], np.float32)
    for to in FORMATS:
        if FORMATS[to] is not E8M0:
            results = {onnx.cast(x, to, round_mode=mode).tobytes() for mode in MODES}
            assert len(results) == 1


def test_low_bits_are_of_integers() -> None:
    with pytest.raises(ValueError, match="E8M0 is a float format"):
        convert(np.zeros(1, np.uint32), FP32, E8M0, RoundMode.RINT, WRAP)
