"""Intervals of casts from and to the small floats, which hold what doubted rules give otherwise.

The ends stand in the total order, whatever the order of the codes is.
"""

from __future__ import annotations

import numpy as np
import pytest

from ascend_kernels.matrix import MATRIX, CastRule
from simulator.arithmetic import total_order
from simulator.arithmetic.casts import cast
from simulator.arithmetic.interval import Enclosure
from simulator.arithmetic.trust import ASSUMPTIONS, Trust
from simulator.numbers.convert import INF_NAN, SATURATE, Conversion, convert, values_of
from simulator.numbers.formats import E1M2, E2M1, E4M3FN, E5M2, FP32, HF8, Codes, FloatFormat
from simulator.numbers.rounding import RoundMode
from tiling.chips import ASCEND_950

SMALL = (E4M3FN, E5M2, HF8, E2M1, E1M2)
RULES = [rule for pair, rule in MATRIX[ASCEND_950].items() if {*pair} & {*SMALL}]
NOTHING_ASSUMED = Trust(name="nothing", assumed=frozenset())
every_rule = pytest.mark.parametrize("rule", RULES, ids=str)


def codes_of_source(rule: CastRule) -> Codes:
    bits = rule.src.bits
    if bits <= 16:
        return np.arange(1 << bits, dtype=rule.src.code_dtype)
    rng = np.random.default_rng(3)
    near = rng.integers(100 << 23, 150 << 23, 5000, dtype=np.uint32)
    special = np.array([0, 1, 0x7F800000, 0x7FC00000, 0x7F7FFFFF, 0x47200000], np.uint32)
    codes = np.concatenate([near, special])
    return np.concatenate([codes, codes ^ np.uint32(1 << 31)])


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_keys_are_the_order_of_the_numbers(fmt: FloatFormat) -> None:
    codes = np.arange(1 << fmt.bits, dtype=np.uint8)
    values = values_of(codes, fmt)
    numbers = convert(codes, fmt, FP32, RoundMode.RINT, INF_NAN).view(np.float32)
    keys = total_order.keys(values, fmt)
    nan = total_order.is_nan(values, fmt)
    np.testing.assert_array_equal(nan, np.isnan(numbers))
    order = np.argsort(keys[~nan].astype(np.int64), kind="stable")
    ascending = numbers[~nan][order]
    assert (np.diff(ascending[np.isfinite(ascending)]) >= 0).all()
    assert len({*keys[~nan].tolist()}) == (~nan).sum()
    back = total_order.from_keys(keys, fmt).view(np.uint8)
    np.testing.assert_array_equal(back[~nan], codes[~nan])


@every_rule
def test_ends_contain_the_value_and_its_saturated_one(rule: CastRule) -> None:
    src, dst = rule.src, rule.dst
    assert isinstance(dst, FloatFormat)
    codes = codes_of_source(rule)
    mode = rule.default or RoundMode.RINT
    step = Conversion(src=src, dst=dst, mode=mode, policy=rule.overflow)
    found = cast((step,), Enclosure(values=values_of(codes, src)), trust=NOTHING_ASSUMED)
    wanted = convert(codes, src, dst, mode, rule.overflow)
    np.testing.assert_array_equal(found.values.view(dst.code_dtype), wanted)
    saturated = convert(codes, src, dst, mode, SATURATE)
    keys = [
        total_order.keys(values, dst).astype(np.int64)
        for values in (found.low, found.high, found.values, values_of(saturated, dst))
    ]
    nan = total_order.is_nan(found.values, dst)
    assert (keys[0] <= keys[2])[~nan].all()
    assert (keys[2] <= keys[1])[~nan].all()
    if rule.saturation is not rule.overflow:
        lost = total_order.is_nan(values_of(saturated, dst), dst)
        assert (keys[0] <= keys[3])[~lost].all()
        assert (keys[3] <= keys[1])[~lost].all()


@every_rule
def test_what_is_assumed_leaves_nothing_open(rule: CastRule) -> None:
    codes = codes_of_source(rule)
    mode = rule.default or RoundMode.RINT
    step = Conversion(src=rule.src, dst=rule.dst, mode=mode, policy=rule.overflow)
    trust = Trust(name="all", assumed=ASSUMPTIONS)
    assert cast((step,), Enclosure(values=values_of(codes, rule.src)), trust=trust).interval is None
