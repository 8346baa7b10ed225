"""The order of a sum, element by element, and what other orders and roundings would give."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.devices.sum_orders import column_sum, row_sum

from simulator.arithmetic.evaluation import evaluate
from simulator.arithmetic.interval import Enclosure, Interval
from simulator.arithmetic.reduction import reduce
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.trust import (
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_RNE,
    ASSUME_SUM_ORDER,
    DEFAULT,
    DOCUMENTED,
)
from simulator.numbers.formats import FP16, FP32, INT16, INT32

SUM, AMAX, AMIN = (OPERATIONS[name] for name in ("sum", "amax", "amin"))
LENGTHS = (1, 2, 3, 5, 7, 63, 64, 65, 100, 127, 128, 129, 191, 192, 200, 256, 320, 321, 449, 1000)


@pytest.mark.parametrize("fmt", [FP32, FP16], ids=str)
@pytest.mark.parametrize("length", LENGTHS)
def test_rows_and_columns_are_added_in_the_order_of_the_instructions(length: int, fmt) -> None:
    rng = np.random.default_rng(length)
    rows = (rng.standard_normal((6, length)) * 10.0 ** rng.integers(-2, 3, (6, length))).astype(
        fmt.dtype
    )
    by_row = reduce(SUM, Enclosure(values=rows), fmt, axis=-1).values
    by_column = reduce(SUM, Enclosure(values=np.ascontiguousarray(rows.T)), fmt, axis=0).values
    expected = [row_sum(list(row), 256 // fmt.dtype.itemsize) for row in rows]
    np.testing.assert_array_equal(by_row[:, 0], np.array(expected, fmt.dtype))
    expected = [column_sum(list(row)) for row in rows]
    np.testing.assert_array_equal(by_column[0], np.array(expected, fmt.dtype))


def test_the_order_matters_and_depends_on_the_length() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((200, 256)).astype(np.float32)
    whole = reduce(SUM, Enclosure(values=rows), FP32, axis=1).values
    halves = [reduce(SUM, Enclosure(values=h), FP32, axis=1).values for h in np.split(rows, 2, 1)]
    columns = reduce(SUM, Enclosure(values=rows.T.copy()), FP32, axis=0).values.T
    one_by_one = np.cumsum(rows, axis=1)[:, -1:]
    assert (whole != halves[0] + halves[1]).any()
    assert (whole != columns).any()
    assert (whole != one_by_one).any()


@pytest.mark.parametrize("fmt", [INT16, INT32], ids=str)
def test_integer_sums_wrap_or_clamp_block_by_block(fmt) -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(fmt.min, fmt.max, (9, 101), dtype=np.int64, endpoint=True)
    x = Enclosure(values=rows.astype(fmt.dtype))
    for axis in (0, 1):
        exact = rows.sum(axis=axis, keepdims=True).astype(fmt.dtype)
        np.testing.assert_array_equal(reduce(SUM, x, fmt, axis=axis).values, exact)
    lanes = 32 // fmt.dtype.itemsize
    expected = []
    for row in rows.tolist():
        held = [0] * lanes
        for start in range(0, len(row), lanes):
            for lane, more in enumerate(row[start : start + lanes]):
                held[lane] = min(max(held[lane] + more, fmt.min), fmt.max)
        expected.append(sum(held))
    found = reduce(SUM, x, fmt, axis=1, inf_nan_mode=False).values[:, 0]
    np.testing.assert_array_equal(found, np.array(expected).astype(fmt.dtype))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), fmt=st.sampled_from([INT16, INT32]))
def test_clamping_makes_the_order_of_integers_matter(seed: int, fmt) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(fmt.min, fmt.max, (6, 20), endpoint=True) >> rng.integers(0, 8, (6, 1))
    x = Enclosure(values=rows.astype(fmt.dtype))
    trust = DEFAULT.without(ASSUME_SUM_ORDER)
    assert reduce(SUM, x, fmt, axis=1, trust=trust).interval is None, (
        "sums that wrap have one value"
    )
    found = reduce(SUM, x, fmt, axis=1, trust=trust, inf_nan_mode=False, cause=3)
    for row, low, high, value in zip(rows, found.low, found.high, found.values, strict=True):
        held = 0
        for term in rng.permutation(row).tolist():
            held = min(max(held + term, fmt.min), fmt.max)
        assert low[0] <= min(held, value[0])
        assert max(held, value[0]) <= high[0]
        positive, negative = row[row > 0].sum(), row[row < 0].sum()
        assert (low[0] == high[0]) == (fmt.min <= negative and positive <= fmt.max)


@pytest.mark.parametrize("fmt", [FP32, FP16], ids=str)
def test_extremes_know_zeros_and_nan(fmt) -> None:
    rows = np.array([[-0.0, 0.0, -1], [-0.0, -0.0, -2], [np.nan, 1, 2], [-np.inf, 3, np.inf]])
    for x, axis in ((rows, 1), (rows.T.copy(), 0)):
        q = Enclosure(values=x.astype(fmt.dtype))
        most, least = (reduce(row, q, fmt, axis=axis).values.ravel() for row in (AMAX, AMIN))
        assert np.signbit(most[:2]).tolist() == [False, True]
        np.testing.assert_array_equal(most, np.array([0, 0, np.nan, np.inf], fmt.dtype))
        np.testing.assert_array_equal(least, np.array([-1, -2, np.nan, -np.inf], fmt.dtype))
        assert most.view(f"u{fmt.bits // 8}")[2] == fmt.nan_code
    zeros = Enclosure(values=np.array([[0.0, -0.0, 0.0]], fmt.dtype))
    assert np.signbit(reduce(AMIN, zeros, fmt, axis=1).values).all()


def some_rows(rng: np.random.Generator, fmt, specials: bool) -> np.ndarray:
    length = int(rng.integers(1, 300))
    rows = rng.standard_normal((8, length)) * 10.0 ** rng.integers(-3, 4, (8, length))
    if rng.integers(0, 2):
        rows[:, ::2] = -rows[:, 1::2][:, : rows[:, ::2].shape[1]].sum(axis=1, keepdims=True)
    if specials:
        pool = [np.inf, -np.inf, np.nan, 0.0, -0.0, float(np.finfo(fmt.dtype).max), 1e-42]
        chosen = rng.integers(0, 3 * length, rows.shape) == 0
        rows = np.where(chosen, np.array(pool)[rng.integers(0, len(pool), rows.shape)], rows)
    with np.errstate(over="ignore"):
        return rows.astype(fmt.dtype)


def spread(x: np.ndarray, rng: np.random.Generator) -> Enclosure:
    """Some elements with a few codes of play, some of them with NaN besides."""
    width = rng.integers(0, 3, x.shape)
    with np.errstate(all="ignore"):
        low, high = x, x
        for _ in range(2):
            low = np.where(width > 0, np.nextafter(low, np.array(-np.inf, x.dtype)), low)
            high = np.where(width > 1, np.nextafter(high, np.array(np.inf, x.dtype)), high)
    flags = (rng.integers(0, 50 * x.shape[1], x.shape) == 0) & ~np.isnan(x)
    cause = np.broadcast_to(np.uint16(4), x.shape)
    interval = Interval(low=low, high=high, may_be_nan=flags, cause=cause)
    return Enclosure(values=x, interval=interval)


def contains(found: Enclosure, values: np.ndarray) -> np.ndarray:
    nan = np.isnan(values)
    flagged = np.isnan(found.low)
    if found.interval is not None and found.interval.may_be_nan is not None:
        flagged = flagged | found.interval.may_be_nan
    return np.where(nan, flagged, (found.low <= values) & (values <= found.high))


def random_order(elements: list, rng: np.random.Generator) -> object:
    held = list(elements)
    rng.shuffle(held)
    while len(held) > 1:
        k = int(rng.integers(0, len(held) - 1))
        held[k : k + 2] = [held[k] + held[k + 1]]
    return held[0]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), specials=st.booleans(), fmt=st.sampled_from([FP32, FP16]))
def test_another_order_lies_in_the_bound(seed: int, specials: bool, fmt) -> None:
    assert_orders_bounded(seed, specials, fmt)


@pytest.mark.exhaustive
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), specials=st.booleans(), fmt=st.sampled_from([FP32, FP16]))
def test_many_other_orders_lie_in_the_bound(seed: int, specials: bool, fmt) -> None:
    assert_orders_bounded(seed, specials, fmt)


def assert_orders_bounded(seed: int, specials: bool, fmt) -> None:
    rng = np.random.default_rng(seed)
    x = spread(some_rows(rng, fmt, specials), rng)
    assumed = reduce(SUM, x, fmt, axis=1)
    any_order = reduce(SUM, x, fmt, axis=1, trust=DEFAULT.without(ASSUME_SUM_ORDER))
    documented = reduce(SUM, x, fmt, axis=1, trust=DOCUMENTED)
    for wider, tighter in ((any_order, assumed), (documented, any_order), (documented, assumed)):
        for end in (tighter.low, tighter.high):
            assert contains(wider, end).all()
    with np.errstate(all="ignore"):
        for end in (x.low, x.high, x.values):
            ordered = np.array([[row_sum(list(row), 256 // fmt.dtype.itemsize)] for row in end])
            assert contains(assumed, ordered).all()
            other = np.array([[random_order(list(row), rng)] for row in end])
            assert contains(any_order, other).all()
            assert contains(documented, other).all()
    flagged = np.isnan(x.low).any(axis=1) | x.interval.may_be_nan.any(axis=1)
    assert contains(assumed, np.full((8, 1), np.nan))[flagged].all()


def test_the_bound_of_all_orders_grows_with_the_terms_and_is_needed() -> None:
    rows = np.float32([[1.0] + [2.0**-24] * 127])
    x = Enclosure(values=rows)
    trust = DEFAULT.without(ASSUME_SUM_ORDER)
    assert reduce(SUM, x, FP32, axis=1).interval is None
    found = reduce(SUM, x, FP32, axis=1, trust=trust, cause=6)
    lost, kept = np.float32(1), np.float32(1 + 127 * 2.0**-24)
    assert found.low <= lost
    assert kept <= found.high
    assert found.interval.cause.tolist() == [[6]]
    exact = Fraction(1) + 127 * Fraction(1, 2**24)
    reach = exact * 127 * Fraction(1, 2**24)
    assert Fraction(float(found.high[0, 0])) - exact < 2 * reach
    short = reduce(SUM, Enclosure(values=rows[:, :2]), FP32, axis=1, trust=trust)
    assert short.high - short.low < found.high - found.low
    single = reduce(SUM, Enclosure(values=rows[:, :1]), FP32, axis=1, trust=DOCUMENTED)
    assert single.interval is None


def test_partial_sums_overflow_in_some_orders() -> None:
    for row in ([3e38, 3e38, -3e38, -3e38], [3e38, -3e38, 3e38, -3e38]):
        x = Enclosure(values=np.float32([row]))
        found = reduce(SUM, x, FP32, axis=1, trust=DEFAULT.without(ASSUME_SUM_ORDER))
        assert (found.low.item(), found.high.item()) == (-math.inf, math.inf)
        assert found.interval.may_be_nan.all()


def test_infinities_of_an_interval_do_not_make_nan_of_other_rows() -> None:
    low = np.float32([[1, 2, 3], [-np.inf, 2, 3], [1, np.inf, 3], [1, 2, 3]])
    high = np.float32([[1, 2, np.inf], [1, np.inf, 3], [1, np.inf, 4], [1, 2, 3]])
    cause = np.arange(12, dtype=np.uint16).reshape(4, 3)
    interval = Interval(low=low, high=high, may_be_nan=None, cause=cause)
    found = reduce(SUM, Enclosure(values=low, interval=interval), FP32, axis=1)
    np.testing.assert_array_equal(found.low[:, 0], np.float32([6, -np.inf, np.inf, 6]))
    np.testing.assert_array_equal(found.high[:, 0], np.float32([np.inf, np.inf, np.inf, 6]))
    assert found.interval.may_be_nan[:, 0].tolist() == [False, True, False, False]
    assert found.interval.cause[:3, 0].tolist() == [2, 3, 8]


def test_each_assumption_changes_a_sum() -> None:
    rows = np.float32([[1.0, 2.0**-24, 2.0**-24, 3.0]])
    x = Enclosure(values=rows)
    tiny = Enclosure(values=np.float32([[1e-40, 2e-40]]))
    for assumption, operand in (
        (ASSUME_RNE, x),
        (ASSUME_SUM_ORDER, x),
        (ASSUME_GRADUAL_UNDERFLOW, tiny),
    ):
        assert reduce(SUM, operand, FP32, axis=1).interval is None
        trust = DEFAULT.without(assumption)
        assert reduce(SUM, operand, FP32, axis=1, trust=trust).interval is not None, assumption


def test_shapes_and_causes() -> None:
    rng = np.random.default_rng(1)
    values = rng.standard_normal((3, 70, 5)).astype(np.float32)
    divided = evaluate(
        OPERATIONS["div"],
        [Enclosure(values=values), Enclosure(values=np.float32(3))],
        FP32,
        cause=9,
    )
    for axis, shape in ((0, (1, 70, 5)), (1, (3, 1, 5)), (2, (3, 70, 1)), (-2, (3, 1, 5))):
        for row in (SUM, AMAX, AMIN):
            found = reduce(row, divided, FP32, axis=axis)
            assert found.values.shape == found.low.shape == shape
            assert (found.interval.cause == 9).all()
    assert math.prod(reduce(SUM, divided[:, :, :0].map(np.copy), FP32, axis=0).shape) == 0
