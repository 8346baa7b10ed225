"""Casts of intervals: every member's cast lies inside, and what collapses is certain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.arithmetic.casts import cast
from simulator.arithmetic.interval import Enclosure, Interval
from simulator.numbers.convert import INF_NAN, SATURATE, WRAP, Conversion, Policy
from simulator.numbers.formats import (
    BF16,
    BOOL,
    E4M3FN,
    FP16,
    FP32,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    FloatFormat,
    Format,
)
from simulator.numbers.rounding import RoundMode


def conversion(src: Format, dst: Format, mode: str = "RINT", policy: Policy = INF_NAN):
    return Conversion(src=src, dst=dst, mode=RoundMode[mode], policy=policy)


CHAINS = {
    "fp32-fp16": (conversion(FP32, FP16),),
    "fp32-fp16-odd": (conversion(FP32, FP16, "ODD"),),
    "fp32-fp16-saturated": (conversion(FP32, FP16, "RINT", SATURATE),),
    "fp32-bf16": (conversion(FP32, BF16),),
    "fp32-fp32": (conversion(FP32, FP32, "FLOOR"),),
    "fp32-int32": (conversion(FP32, INT32, "TRUNC"),),
    "fp32-int8": (
        conversion(FP32, INT32),
        conversion(INT32, FP16),
        conversion(FP16, INT8, "TRUNC"),
    ),
    "fp32-int16-off": (conversion(FP32, INT32), conversion(INT32, INT16, "RINT", WRAP)),
    "fp16-int8-off": (conversion(FP16, INT32), conversion(INT32, INT8, "RINT", WRAP)),
    "fp16-uint8-off": (conversion(FP16, UINT8, "RINT", WRAP),),
    "fp32-uint8-off": (conversion(FP32, UINT8, "RINT", WRAP),),
    "fp16-int4": (conversion(FP16, INT4, "TRUNC"),),
    "fp16-fp32": (conversion(FP16, FP32),),
    "int32-fp16": (conversion(INT32, FP16),),
    "int32-fp32": (conversion(INT32, FP32),),
    "int64-int32-off": (conversion(INT64, INT32, "RINT", WRAP),),
    "fp32-bool": (conversion(FP32, BOOL),),
    "fp32-fp16-bool": (conversion(FP32, FP16), conversion(FP16, BOOL)),
    "int32-bool": (conversion(INT32, BOOL),),
    "fp32-e4m3fn": (conversion(FP32, E4M3FN),),
}
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def order_of(values: np.ndarray, fmt: Format) -> np.ndarray:
    if not isinstance(fmt, FloatFormat):
        return values.astype(np.int64)
    codes = values.view(UNSIGNED[values.itemsize]).astype(np.int64)
    return np.where(codes < fmt.sign_code, codes, -(codes - fmt.sign_code) - 1)


def with_orders(orders: np.ndarray, fmt: Format) -> np.ndarray:
    if not isinstance(fmt, FloatFormat):
        return orders.astype(fmt.dtype)
    codes = np.where(orders < 0, -(orders + 1) + fmt.sign_code, orders)
    return codes.astype(fmt.code_dtype).view(fmt.dtype)


def some_intervals(rng: np.random.Generator, fmt: Format, size: int) -> Enclosure:
    """Narrow and wide ones, around numbers that the destinations tell apart."""
    if isinstance(fmt, FloatFormat):
        inf = fmt.max_code + 1
        centres = np.float32([0, 0.5, 1, 1.5, 126.5, 127.5, 128, 255.5, 300, 32767.5, 65519, 1e9])
        signed = rng.choice(centres, size) * rng.choice([-1, 1], size)
        with np.errstate(over="ignore"):
            first = order_of(signed.astype(fmt.dtype), fmt)
        codes = rng.integers(-inf - 1, inf + 1, size)
        first = np.where(rng.integers(0, 3, size) == 0, codes, first)
        bounds = (-inf - 1, inf)
    else:
        first = rng.integers(-(2**18), 2**18, size)
        bounds = (fmt.min, fmt.max)
    widths = rng.integers(0, 2 ** rng.integers(0, 18, size))
    low = np.clip(first, *bounds)
    high = np.clip(first + widths, *bounds)
    flags = rng.integers(0, 4, size) == 0 if isinstance(fmt, FloatFormat) else None
    low, high = with_orders(low, fmt), with_orders(high, fmt)
    cause = np.arange(size).astype(np.uint16)
    interval = Interval(low=low, high=high, may_be_nan=flags, cause=cause)
    return Enclosure(values=high, interval=interval)


def define(chain: tuple[Conversion, ...], values: np.ndarray) -> np.ndarray:
    codes = values.view(chain[0].src.code_dtype)
    for step in chain:
        codes = step.reference(codes)
    return codes.view(chain[-1].dst.dtype)


def is_nan(values: np.ndarray, fmt: Format) -> np.ndarray:
    if not isinstance(fmt, FloatFormat):
        return np.zeros(values.shape, bool)
    return np.isnan(values.astype(np.float64))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", CHAINS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_cast_of_every_member_lies_inside(name: str, seed: int) -> None:
    chain, rng = CHAINS[name], np.random.default_rng(seed)
    src, dst = chain[0].src, chain[-1].dst
    x = some_intervals(rng, src, 500)
    found = cast(chain, x)
    np.testing.assert_array_equal(
        found.values.view(dst.code_dtype), define(chain, x.values).view(dst.code_dtype)
    )
    low, high = order_of(x.low, src), order_of(x.high, src)
    possible_nan = is_nan(found.low, dst)
    if found.interval is not None and found.interval.may_be_nan is not None:
        possible_nan = possible_nan | found.interval.may_be_nan
    for _ in range(6):
        member = with_orders(low + (rng.random(500) * (high - low + 1)).astype(np.int64), src)
        if x.interval.may_be_nan is not None:
            nan = with_orders(np.array(src.nan_code), src)
            member = np.where(x.interval.may_be_nan & (rng.integers(0, 2, 500) == 0), nan, member)
        result = define(chain, member)
        order = order_of(result, dst)
        between = (order_of(found.low, dst) <= order) & (order <= order_of(found.high, dst))
        inside = np.where(is_nan(result, dst), possible_nan, between)
        assert inside.all(), (member[~inside][0], result[~inside][0])


@pytest.mark.parametrize("name", CHAINS)
def test_points_stay_certain(name: str) -> None:
    chain = CHAINS[name]
    x = some_intervals(np.random.default_rng(1), chain[0].src, 300)
    point = Interval(low=x.low, high=x.low, may_be_nan=None, cause=x.interval.cause)
    assert cast(chain, Enclosure(values=x.low, interval=point)).interval is None
    assert cast(chain, Enclosure(values=x.low)).interval is None


def between(low: float, high: float, fmt: Format, nan: bool = False) -> Enclosure:
    ends = [np.array([end]).astype(fmt.dtype) for end in (low, high)]
    interval = Interval(
        low=ends[0],
        high=ends[1],
        may_be_nan=np.array([True]) if nan else None,
        cause=np.array([3], np.uint16),
    )
    return Enclosure(values=ends[0], interval=interval)


def ends(name: str, *interval: float, nan: bool = False) -> tuple[float, float]:
    found = cast(CHAINS[name], between(*interval, CHAINS[name][0].src, nan=nan))
    return found.low.astype(float).item(), found.high.astype(float).item()


def test_a_narrow_interval_collapses_or_names_two_codes() -> None:
    assert ends("fp32-int8", 2.501, 2.51) == (3, 3)
    assert ends("fp32-int8", 2.499, 2.501) == (2, 3)
    found = cast(CHAINS["fp32-int8"], between(2.499, 2.501, FP32))
    assert found.interval.cause.tolist() == [3]
    assert found.certain().tolist() == [False]
    assert cast(CHAINS["fp32-int8"], between(2.501, 2.51, FP32)).interval is None


def test_nan_becomes_zero_of_an_integer_and_truth_of_a_bool() -> None:
    assert ends("fp32-int8", 5, 6, nan=True) == (0, 6)
    assert ends("fp32-int8", -6, -5, nan=True) == (-6, 0)
    assert ends("fp32-fp16-saturated", 5, 6, nan=True) == (0, 6)
    assert ends("fp32-bool", 0, 0, nan=True) == (0, 1)
    flagged = cast(CHAINS["fp32-fp16"], between(5, 6, FP32, nan=True)).interval
    assert flagged.may_be_nan.tolist() == [True]


def test_low_bits_stay_exact_inside_one_window() -> None:
    assert ends("int64-int32-off", 2**33 + 5, 2**33 + 9) == (5, 9)
    assert ends("int64-int32-off", 2**31 - 1, 2**31) == (-(2**31), 2**31 - 1)
    assert ends("fp16-int8-off", 300, 302) == (44, 46)
    assert ends("fp16-uint8-off", 255, 256) == (0, 255)
    assert ends("fp16-uint8-off", 257, 259) == (1, 3)
    assert ends("fp16-uint8-off", 300, np.inf) == (0, 255)
    assert ends("fp32-uint8-off", 2.0**64, 2.0**65) == (0, 0)
    assert ends("fp32-uint8-off", 2.0**64, np.inf) == (0, 255)


def test_truth_is_open_only_where_zero_is_among_the_members() -> None:
    assert ends("fp32-bool", -1, -0.5) == (1, 1)
    assert ends("fp32-bool", -1, 1) == (0, 1)
    assert ends("fp32-bool", -0.0, 0.0) == (0, 0)
    assert ends("fp32-fp16-bool", -1, -1e-30) == (0, 1)


def test_overflow_to_nan_is_said() -> None:
    found = cast(CHAINS["fp32-e4m3fn"], between(1, 1e6, FP32)).interval
    assert found.may_be_nan.tolist() == [True]
    assert found.high.astype(float).item() == 448
