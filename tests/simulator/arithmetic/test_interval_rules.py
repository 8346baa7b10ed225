"""Intervals of single operations: their ends, NaN flags, causes and shapes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support.numbers.float_environments import ENVIRONMENTS, foreign
from test_arithmetic_trust import between, ends, exact, flagged, run, steps

from simulator.arithmetic import evaluation, interval
from simulator.arithmetic.evaluation import evaluate
from simulator.arithmetic.interval import Enclosure, Interval
from simulator.arithmetic.operation import IntervalRule
from simulator.arithmetic.reduction import reduce
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.trust import (
    ASSUME_NAN_PATTERN,
    DEFAULT,
    DOCUMENTED,
    IEEE,
    NAMING_CHOICES,
)
from simulator.numbers.formats import BOOL, FP16, FP32, INT16

# --- single rules ------------------------------------------------------------------------------


def test_a_product_takes_four_corners_and_a_square_two() -> None:
    x, y = between(-2, 3), between(-5, 4)
    assert ends(run("mul", x, y)) == (-15, 12)
    assert ends(run("mul", x, x)) == (0, 9)
    assert not np.signbit(ends(run("mul", x, x))[0])
    assert ends(run("mul", x, between(-2, 3))) == (-6, 9)
    assert ends(run("abs", x)) == (0, 3)


def test_saturation_hides_no_member() -> None:
    operands = [between(-0.5, np.inf, FP16), exact(-np.inf, fmt=FP16)]
    found = evaluate(OPERATIONS["div"], operands, FP16, inf_nan_mode=False)
    assert np.signbit(ends(found)).tolist() == [True, False]
    assert not flagged(found)


def test_a_divisor_with_zero_inside_gives_anything() -> None:
    found = run("div", exact(1), between(-1, 1))
    assert ends(found) == (-np.inf, np.inf)
    assert flagged(found)
    assert ends(run("div", exact(1), between(2, 4), trust=IEEE)) == (0.25, 0.5)
    assert ends(run("reciprocal", between(-0.0, 1))) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("name", "operands", "low", "high"),
    [
        ("sqrt", [(-1, 4)], -0.0, 2),
        ("log", [(-1, 1)], -np.inf, 0),
        ("rsqrt", [(-1, 4)], -np.inf, np.inf),
        ("mul", [(0, 2), (1, np.inf)], 0, np.inf),
        ("add", [(1, np.inf), (-np.inf, 1)], -np.inf, np.inf),
        ("sub", [(1, np.inf), (1, np.inf)], -np.inf, np.inf),
        ("div", [(1, np.inf), (1, np.inf)], 0, np.inf),
    ],
)
def test_what_can_be_nan_is_flagged(name: str, operands, low: float, high: float) -> None:
    trust = IEEE if name in ("div", "sqrt") else DEFAULT
    found = run(name, *(between(*x) for x in operands), trust=trust)
    assert flagged(found)
    found_low, found_high = ends(found)
    assert found_low <= low
    assert high <= found_high
    if name != "log":
        assert (found_low, found_high) in ((low, high), (-0.0, high))


def test_nan_alone_is_certain_and_flags_travel() -> None:
    assert run("sqrt", between(-4, -1)).interval is None
    assert np.isnan(run("sqrt", between(-4, -1)).values).all()
    one_nan = DOCUMENTED.also(ASSUME_NAN_PATTERN)
    assert run("sub", exact(np.inf), exact(np.inf), trust=one_nan).interval is None
    assert flagged(run("sub", exact(np.inf), exact(np.inf), trust=DOCUMENTED))
    x = between(1, 2, nan=True)
    for name in ("add", "mul", "maximum", "minimum", "div"):
        assert flagged(run(name, x, exact(3)))
    assert flagged(run("relu", x))
    compared = run("lt", x, exact(3))
    assert (compared.low.item(), compared.high.item()) == (False, True)
    assert not run("lt", x, exact(0.5)).values.any()
    assert run("lt", x, exact(0.5)).interval is None
    truth = run("logical_not", between(0, 0, nan=True))
    assert (truth.low.item(), truth.high.item()) == (False, True)


def test_comparisons_are_open_only_where_intervals_meet() -> None:
    cases = {
        "lt": [((1, 2), (3, 4), (1, 1)), ((1, 3), (2, 4), (0, 1)), ((3, 4), (1, 2), (0, 0))],
        "le": [((1, 2), (2, 4), (1, 1)), ((2, 3), (1, 2), (0, 1))],
        "gt": [((3, 4), (1, 2), (1, 1)), ((1, 2), (2, 4), (0, 0))],
        "ge": [((2, 4), (1, 2), (1, 1)), ((1, 2), (2, 4), (0, 1))],
        "eq": [((1, 2), (3, 4), (0, 0)), ((1, 2), (2, 4), (0, 1)), ((-0.0, 0), (0, 0), (1, 1))],
        "ne": [((1, 2), (3, 4), (1, 1)), ((1, 2), (2, 4), (0, 1)), ((-0.0, 0), (0, 0), (0, 0))],
    }
    for name, rows in cases.items():
        for a, b, wanted in rows:
            found = run(name, between(*a), between(*b))
            assert (int(found.low.item()), int(found.high.item())) == wanted, (name, a, b)


def test_where_takes_the_hull_where_the_condition_is_open() -> None:
    condition = between(
        [False, False, True, False], [False, True, True, True], fmt=BOOL, cause=[0, 2, 0, 2]
    )
    a = between([1, 1, 1, np.nan], [2, 2, 2, np.nan], cause=3)
    b = exact(5, 5, 5, 5)
    found = run("where", condition, a, b)
    np.testing.assert_array_equal(found.low, np.float32([5, 1, 1, 5]))
    np.testing.assert_array_equal(found.high, np.float32([5, 5, 2, 5]))
    assert found.interval.may_be_nan.tolist() == [False, False, False, True]
    assert found.interval.certain().tolist() == [True, False, False, False]
    decided = Enclosure(values=np.array([True, False]))
    assert run("where", decided, exact(1, 1), exact(2, 2)).interval is None


def test_integers_that_may_wrap_take_the_whole_range_and_few_members_are_tried() -> None:
    near = between(32760, 32765, fmt=INT16)
    assert ends(run("add", near, exact(2, fmt=INT16), fmt=INT16)) == (32762, 32767)
    assert ends(run("add", near, exact(10, fmt=INT16), fmt=INT16)) == (-32766, -32761)
    assert ends(run("add", near, exact(5, fmt=INT16), fmt=INT16)) == (-32768, 32767)
    clamped = evaluate(OPERATIONS["add"], [near, exact(5, fmt=INT16)], INT16, inf_nan_mode=False)
    assert ends(clamped) == (32765, 32767)
    one = exact(1, fmt=INT16)
    assert ends(run("bitwise_and", between(4, 8, fmt=INT16), one, fmt=INT16)) == (0, 1)
    assert ends(run("bitwise_and", between(4, 19, fmt=INT16), one, fmt=INT16)) == (0, 1)
    assert ends(run("bitwise_and", between(4, 20, fmt=INT16), one, fmt=INT16)) == (-32768, 32767)
    thousand = exact(1000, fmt=INT16)
    assert ends(run("mul", between(64, 66, fmt=INT16), thousand, fmt=INT16)) == (-1536, 464)
    assert ends(run("neg", between(-32768, -32767, fmt=INT16), fmt=INT16)) == (-32768, 32767)


@pytest.mark.parametrize(
    ("name", "low", "high", "operand", "expected"),
    [
        ("add", -20000, 12000, 5, (-19995, 12005)),
        ("add", -32768, 30000, 2767, (-30001, 32767)),
        ("add", 1000, 30000, 32000, (-32536, -3536)),
        ("sub", -30000, 32767, 2768, (-32768, 29999)),
        ("mul", -10000, 6000, 3, (-30000, 18000)),
        ("neg", -32767, 20000, None, (-20000, 32767)),
    ],
)
def test_many_integers_that_wrap_equally_often_keep_their_order(
    name: str, low: int, high: int, operand: int | None, expected: tuple[int, int]
) -> None:
    others = [] if operand is None else [exact(operand, fmt=INT16)]
    assert ends(run(name, between(low, high, fmt=INT16), *others, fmt=INT16)) == expected


# --- causes ------------------------------------------------------------------------------------


def test_the_wider_cause_wins_and_the_earlier_at_a_tie() -> None:
    narrow, wide = between(1, steps(1, 2), cause=5), between(1, steps(1, 9), cause=6)
    same = between(1, steps(1, 2), cause=3)
    assert run("add", narrow, wide).interval.cause.tolist() == [6]
    assert run("add", wide, narrow).interval.cause.tolist() == [6]
    assert run("add", narrow, same).interval.cause.tolist() == [3]
    assert run("add", same, narrow).interval.cause.tolist() == [3]
    assert run("add", between(1, 1, nan=True, cause=8), wide).interval.cause.tolist() == [8]
    assert run("div", narrow, exact(3)).interval.cause.tolist() == [5]
    assert run("div", between(1, steps(1, 1), cause=5), exact(3)).interval.cause.tolist() == [7]
    assert run("div", exact(1), exact(3)).interval.cause.tolist() == [7]
    mixed = run("mul", between([1, 2], [steps(1, 1), 2], cause=[4, 4]), exact(2))
    assert mixed.interval.cause.tolist() == [4, 4]


def test_certain_elements_of_two_operands_take_no_cause_from_each_other() -> None:
    a = between([1, 2], [1, 3], cause=[4, 5])
    b = between([1, 2], [2, 2], cause=[6, 3])
    assert run("add", a, b).interval.cause.tolist() == [6, 5]


# --- shapes, memory, environment ---------------------------------------------------------------


def test_exact_operands_carry_nothing_and_ends_that_meet_are_dropped() -> None:
    x = exact(1, 2, 3)
    for name in ("add", "sub", "mul", "maximum", "eq"):
        assert run(name, x, x).interval is None
    assert run("maximum", between(1, 2), exact(5)).interval is None
    found = run("div", exact(*range(1, 100)), exact(3))
    assert not any(found.interval.cause.strides)
    assert found.interval.may_be_nan is None


@pytest.mark.parametrize("elems", [1, 7, 64])
def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch, elems: int) -> None:
    rng = np.random.default_rng(2)
    a = between(*np.sort(rng.standard_normal((2, 6, 35)).astype(np.float32), axis=0), nan=False)
    row = between(*np.sort(rng.standard_normal((2, 1, 35)).astype(np.float32), axis=0), cause=2)
    whole = run("mul", a, row)
    original = evaluation.pieces
    monkeypatch.setattr(evaluation, "pieces", lambda shape: original(shape, elems))
    pieced = run("mul", a, row)
    for name in ("low", "high", "cause"):
        np.testing.assert_array_equal(getattr(whole.interval, name), getattr(pieced.interval, name))


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_another_float_environment_is_refused(environment: str) -> None:
    x = exact(1, 2)
    with foreign(environment):
        with pytest.raises(RuntimeError, match="floating-point unit"):
            run("add", x, x)
        with pytest.raises(RuntimeError, match="floating-point unit"):
            reduce(OPERATIONS["sum"], x, FP32, axis=0)


# --- memory ------------------------------------------------------------------------------------


def locked(values: np.ndarray) -> np.ndarray:
    """The values as nothing may write them."""
    values.flags.writeable = False
    return values


@pytest.mark.parametrize("name", OPERATIONS)
def test_ends_that_share_memory_are_not_written_and_results_have_their_own(name: str) -> None:
    """Both ends and the values of an operand are often one array."""
    row = OPERATIONS[name]
    fmt = FP32 if FP32 in row.formats else INT16
    numbers = [0.0, -0.0, 1.0, -3.0, 1e-40, 3e38, np.inf, -np.inf, np.nan]
    with np.errstate(invalid="ignore"):
        one = locked(np.array(numbers).astype(fmt.dtype)[:, None])
    nan = locked(np.isnan(one) | (one == 1)) if fmt is FP32 else None
    cause = np.broadcast_to(np.uint16(1), one.shape)
    opened = Interval(low=one, high=one, may_be_nan=nan, cause=cause)
    operands = [Enclosure(values=one, interval=opened), Enclosure(values=one.T), exact(2, fmt=fmt)]
    if row.copies:
        operands.insert(0, Enclosure(values=locked(np.ones(one.shape, np.bool_))))
    for trust in (DEFAULT, DOCUMENTED, NAMING_CHOICES):
        if row.rule is IntervalRule.FOLD:
            found = reduce(row, operands[0], fmt, axis=0, trust=trust)
        else:
            found = evaluate(row, operands[: row.operands], fmt, trust=trust)
        results = (found.values, found.low, found.high)
        assert not any(np.shares_memory(result, one) for result in results)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.int64])
def test_axes_in_another_order(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block by block and at once: the elements are those of a transposed view."""
    rng = np.random.default_rng(7)
    for shape in ((300,), (130, 200), (3, 65, 70), (2, 3, 40, 90), (1, 200, 1, 129)):
        array = rng.integers(0, 200, shape).astype(dtype)
        for least in (1, 1 << 14):
            monkeypatch.setattr(interval, "_LARGE_PLANE", least)
            for perm in itertools.permutations(range(len(shape))):
                found = interval.permuted(array, perm)
                assert found.flags.c_contiguous
                np.testing.assert_array_equal(found, array.transpose(perm))
