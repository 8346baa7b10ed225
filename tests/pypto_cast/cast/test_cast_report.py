"""The report of a cast: hand-computed cases, and an exact recount of random codes of every pair."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from support.numbers.codes import SEED

from ascend_kernels.matrix import MATRIX
from pypto_cast.cast.cast_report import CastReport, report
from simulator.numbers.convert import INF_NAN, SATURATE, convert, round_to_integral, values_of
from simulator.numbers.formats import (
    BF16,
    FP16,
    FP32,
    INT8,
    INT32,
    INT64,
    FloatFormat,
    Format,
    IntFormat,
)
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

PAIRS = [pytest.param(*pair, id=f"{pair[0]}-{pair[1]}".lower()) for pair in MATRIX[A2_A3]]


def converted(codes: npt.NDArray[np.unsignedinteger], src: Format, dst: Format, mode: RoundMode):
    """Source and result values."""
    if src is dst and isinstance(src, FloatFormat):
        result = round_to_integral(codes, src, mode)
    else:
        policy = INF_NAN if isinstance(dst, FloatFormat) else SATURATE
        result = convert(codes, src, dst, mode, policy)
    return values_of(codes, src), values_of(result, dst)


def exact(value: object) -> Fraction | None:
    """A value as a fraction; None for NaN and infinity."""
    if isinstance(value, (int, np.integer, ml_dtypes.int4)):
        return Fraction(int(value))
    number = float(value)
    return Fraction(number) if math.isfinite(number) else None


def test_fp32_to_fp16_by_hand() -> None:
    source = np.array([1.0, 1 + 2**-12, 70000.0, 1e-6, 1e-9, np.nan, np.inf, -0.0], np.float32)
    _, result = converted(source.view(np.uint32), FP32, FP16, RoundMode.RINT)
    found = report(source, result, FP32, FP16, name="x")
    assert (found.elems, found.inexact, found.overflows) == (8, 4, 1)
    assert (found.nans_in, found.nans_out) == (1, 1)
    assert (found.subnormals, found.zeros) == (1, 1)
    assert found.compared == 5
    assert found.ulp_max == 0.25
    assert found.worst is not None
    assert (found.worst.tensor, found.worst.index) == ("x", (1,))
    assert found.relative_max == 1.0
    assert found.relative_elems == 4


@pytest.mark.parametrize(
    ("value", "dst", "overflows"),
    [(65519.0, FP16, 0), (65520.0, FP16, 1), (127.9, INT8, 0), (128.0, INT8, 1), (-0.5, INT8, 0)],
)
def test_rounding_at_the_limit_is_no_overflow(value: float, dst: Format, overflows: int) -> None:
    source = np.array([value], np.float32)
    _, result = converted(source.view(np.uint32), FP32, dst, RoundMode.RINT)
    assert report(source, result, FP32, dst).overflows == overflows


def test_last_place_of_integers_is_one() -> None:
    source = np.array([[1.25, -130.0], [300.0, np.nan]], np.float16)
    result = np.array([[1, -128], [127, 0]], np.int8)
    found = report(source, result, FP16, INT8)
    assert found.overflows == 2
    assert found.ulp_max == 173.0
    assert found.ulp_sum == 0.25 + 2 + 173
    assert found.ulp_mean == found.ulp_sum / 3
    assert found.worst is not None
    assert found.worst.index == (1, 0)
    assert (found.nans_in, found.nans_out, found.zeros) == (1, 0, 0)


def test_rounding_to_integral_counts_in_ones() -> None:
    found = report(np.array([0.25], np.float32), np.array([0.0], np.float32), FP32, FP32)
    assert found.ulp_max == 0.25


def test_int64_beyond_float64_is_compared_exactly() -> None:
    source = np.array([2**53, 2**53 + 1, 2**63 - 1, -(2**63)], np.int64)
    result = np.array([2**53, 2**53, 2**63, -(2**63)], np.float32)
    assert report(source, result, INT64, FP32).inexact == 2


def test_a_float_at_the_limit_of_int64_overflows() -> None:
    source = np.array(
        [2.0**63, -(2.0**63), np.nextafter(np.float32(2**63), np.float32(0))], np.float32
    )
    _, result = converted(source.view(np.uint32), FP32, INT64, RoundMode.TRUNC)
    assert report(source, result, FP32, INT64).overflows == 1


def test_signalling_nans_pass_in_silence(recwarn: pytest.WarningsRecorder) -> None:
    source, result = converted(np.array([0x7F800001], np.uint32), FP32, BF16, RoundMode.RINT)
    assert report(source, result, FP32, BF16).nans_in == 1
    assert not recwarn.list


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[2\] and \[3\]"):
        report(np.zeros(2, np.int32), np.zeros(3, np.float32), INT32, FP32)


@pytest.mark.parametrize("order", ["C", "F"])
def test_pieces_add_up(order: str) -> None:
    rng = np.random.default_rng(SEED)
    source = np.asarray(rng.standard_normal((7, 30)), np.float32, order=order)
    result = source.astype(np.float16)
    whole = report(source, result, FP32, FP16)
    pieces = report(source, result, FP32, FP16, piece_elems=11)
    assert pieces.ulp_sum == pytest.approx(whole.ulp_sum)
    assert (pieces.worst, pieces.inexact) == (whole.worst, whole.inexact)
    assert whole + CastReport() == whole


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_counts_are_those_of_an_exact_recount(src: Format, dst: Format) -> None:
    rng = np.random.default_rng(SEED)
    codes = rng.integers(0, 2**src.bits, 400, np.uint64).astype(src.code_dtype)
    source, result = converted(codes, src, dst, RoundMode.TRUNC)
    pairs = [(exact(s), exact(r)) for s, r in zip(source, result, strict=True)]
    if isinstance(dst, IntFormat):
        low, high = Fraction(dst.min - 1), Fraction(dst.max + 1)
    else:
        largest = values_of(np.array([dst.max_code - 1, dst.max_code], dst.code_dtype), dst)
        below, largest_value = (exact(value) or Fraction(0) for value in largest)
        high = 2 * largest_value - below
        low = -high
    found = report(source, result, src, dst)
    assert found.overflows == sum(s is not None and not low < s < high for s, _ in pairs)
    assert found.inexact == sum(s is not None and s != r for s, r in pairs)
    assert found.compared == sum(s is not None and r is not None for s, r in pairs)
    nans = sum(math.isnan(float(value)) for value in source)
    assert found.nans_in == nans
    zeros = sum(r == 0 and s != 0 for s, r in pairs) - (nans if isinstance(dst, IntFormat) else 0)
    assert found.zeros == zeros
