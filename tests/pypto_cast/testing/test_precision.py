"""Last places, errors and standards, against sums of fractions and hand-made cases."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.numbers.codes import SEED
from support.numbers.small_floats import SMALL_FLOATS

import pypto_cast as pypto
from pypto_cast.testing import judge
from pypto_cast.testing.precision import (
    COMMUNITY,
    MIXED,
    MOST_RATIOS,
    SMALL_VALUES,
    Standard,
    accepted,
    compared,
    errors_of,
)
from simulator.numbers import formats as f


def test_all_pairs_of_some_codes_are_so_far_apart() -> None:
    """The rank of a code is its place in a list of all numbers, made by value and sign."""
    codes = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    values = codes.view(np.float16)
    numbers = codes[~np.isnan(values)]
    order = sorted(numbers.tolist(), key=lambda c: _key(np.uint16(c).view(np.float16)))
    rank = {code: place for place, code in enumerate(order)}
    rng = np.random.default_rng(SEED)
    a, b = (rng.choice(codes, 4000).view(np.float16) for _ in range(2))
    found = compared(a, b)
    wanted: Counter[int] = Counter()
    for x, y in zip(a.view(np.uint16).tolist(), b.view(np.uint16).tolist(), strict=True):
        if x in rank and y in rank and x != y:
            apart = abs(rank[x] - rank[y])
            wanted[1 << (apart - 1).bit_length()] += 1
    nans = np.isnan(a), np.isnan(b)
    assert dict(found.by_ulp) == wanted
    assert found.nans == np.count_nonzero(nans[0] ^ nans[1])
    same = (a.view(np.uint16) == b.view(np.uint16)) | (nans[0] & nans[1])
    assert found.equal == np.count_nonzero(same)
    assert found.elems == 4000 == found.equal + found.nans + sum(found.by_ulp.values())


@pytest.mark.parametrize("name", ["HF8", "E4M3FN", "E5M2"])
def test_small_floats_are_so_far_apart(name: str) -> None:
    """The rank of a code is the place of its number among those of the format's document."""
    form = SMALL_FLOATS[name]
    rank = {code: place for place, (_, code) in enumerate(form.numbers)}
    rank |= {code | form.sign: -place for code, place in rank.items() if place}
    codes = np.array(sorted(rank), np.uint8)
    dtype = f.FORMATS[name].dtype
    a, b = np.roll(codes, 1).view(dtype), codes.view(dtype)
    wanted = Counter(
        1 << (abs(rank[x] - rank[y]) - 1).bit_length()
        for x, y in zip(np.roll(codes, 1).tolist(), codes.tolist(), strict=True)
        if rank[x] != rank[y]
    )
    found = compared(a, b)
    assert dict(found.by_ulp) == wanted
    assert found.errors is not None
    assert found.errors.rmse > 0


def _key(value: np.float16) -> tuple[float, float]:
    return float(value), math.copysign(1.0, float(value))


@pytest.mark.parametrize("fmt", [f.FP16, f.FP32])
def test_errors_are_those_of_fractions(fmt: f.FloatFormat) -> None:
    rng = np.random.default_rng(SEED)
    golden = (rng.standard_normal(500) * 10.0 ** rng.integers(-6, 2, 500)).astype(fmt.dtype)
    result = (golden * (1 + rng.standard_normal(500) * 1e-1)).astype(fmt.dtype)
    limits = SMALL_VALUES[fmt]
    pairs = [(Fraction(float(x)), Fraction(float(g))) for x, g in zip(result, golden, strict=True)]
    large = [(x, g) for x, g in pairs if abs(g) >= limits.below]
    relative = [abs(x - g) / (abs(g) + Fraction(1e-7)) for x, g in large]
    found = errors_of(result, golden)
    assert found.mare == pytest.approx(float(max(relative)), rel=1e-12)
    assert found.mere == pytest.approx(float(sum(relative) / len(relative)), rel=1e-12)
    squares = sum((x - g) ** 2 for x, g in large) / len(large)
    assert found.rmse == pytest.approx(math.sqrt(squares), rel=1e-12)
    small = [(x, g) for x, g in pairs if abs(g) < limits.below]
    assert found.small_wrong == sum(abs(x - g) > limits.error for x, g in small) > 0


def test_what_is_no_number_in_one_alone_is_an_infinite_error() -> None:
    golden = np.array([np.inf, -np.inf, np.nan, 1.0], np.float32)
    assert errors_of(golden, golden).mare == 0
    for place in range(4):
        other = golden.copy()
        other[place] = 2.0 if place < 3 else np.nan
        assert errors_of(other, golden).mare == math.inf
    turned = np.array([-np.inf, np.inf, np.nan, 1.0], np.float32)
    assert errors_of(turned, golden).mare == math.inf


def test_the_limits_are_those_of_the_source() -> None:
    assert {str(fmt): (s.below, s.error) for fmt, s in SMALL_VALUES.items()} == {
        "FP16": (2**-11, 2**-16),
        "BF16": (2**-8, 2**-16),
        "FP32": (2**-14, 2**-30),
        "HF8": (2**-4, 2**-6),
        "E4M3FN": (2**-4, 2**-6),
    }
    assert MOST_RATIOS == {"2.1:L0": (10, 2, 2), "2.1:L1": (5, 1.5, 1.5), "2.1:L2": (2, 1.2, 1.2)}
    assert {str(fmt): t for fmt, t in COMMUNITY.items()} == {
        "FP16": 2**-10,
        "BF16": 2**-7,
        "FP32": 2**-13,
        "E4M3FN": 2**-3,
        "E5M2": 2**-2,
    }
    assert {str(fmt): (m.relative, m.absolute, m.largest) for fmt, m in MIXED.items()} == {
        "FP16": (2**-9, 2**-9, 0.1),
        "BF16": (2**-6, 2**-6, 1),
        "FP32": (2**-10, 2**-16, 0.01),
        "E4M3FN": (2**-2, 2**-4, 4),
        "E5M2": (2**-1, 2**-3, 8),
    }


def test_each_level_at_its_limit() -> None:
    """One value of 1, whose golden is off by 2^-10: the result by so many times that."""
    precise = np.array([1.0], np.float64)
    golden = np.array([1 + 2**-10], np.float16)
    for times, levels in ((1, 3), (2, 1), (3, 0)):
        result = np.array([1 + times * 2**-10], np.float16)
        passing = [s for s in MOST_RATIOS if accepted(s, result, golden, precise).passes]
        assert len(passing) == levels, (times, passing)


@pytest.mark.parametrize(
    ("standard", "sixteenths", "passes"),
    [
        ("2.1:L0", [159, 0], True),
        ("2.1:L0", [161, 0], False),
        ("2.1:L1", [79, 0], True),
        ("2.1:L1", [81, 0], False),
        ("2.1:L2", [31, 0], True),
        ("2.1:L2", [33, 0], False),
        ("2.1:L1", [24, 24], True),
        ("2.1:L1", [25, 25], False),
        ("2.1:L2", [19, 19], True),
        ("2.1:L2", [20, 20], False),
    ],
)
def test_the_largest_and_the_mean_error_have_limits(
    standard: Standard, sixteenths: list[int], passes: bool
) -> None:
    """Of values of 1 the golden is off by 2^-10: of two, and of many of which one result is off by
    more, so that the largest error alone is at its limit."""
    count = 2 if sixteenths[1] else 1024
    precise = np.ones(count)
    golden = np.full(count, 1 + 2**-10, np.float32)
    result = golden.copy()
    for place, times in enumerate(sixteenths):
        result[place] = 1 + (times or 16) * 2**-14
    assert accepted(standard, result, golden, precise).passes == passes


def test_community_judges_small_values_too() -> None:
    """The source has no small values: 2^-12 for 2^-13 is a relative error of 1."""
    golden = np.array([1.0, 2**-13], np.float16)
    assert accepted("community", golden, golden).passes
    result = np.array([1.0, 2**-12], np.float16)
    assert not accepted("community", result, golden).passes
    assert errors_of(result, golden).mare == 0
    for last, passes in ((10, True), (11, False)):  # MARE < 10 t, and MERE < t of 16 elements
        golden = np.ones(16, np.float16)
        result = golden.copy()
        result[3] += np.float16(last * 2**-10)
        assert accepted("community", result, golden).passes == passes, last
    result = golden + np.float16(2**-9)
    assert not accepted("community", result, golden).passes
    assert accepted("community", result, golden, result.astype(np.float64)).passes


def test_mixed_tolerance_by_hand() -> None:
    """FP32 of 1: 2^-10 + 2^-16 is within, of 100 elements one may be farther, none beyond 0.01."""
    golden = np.ones(100, np.float32)
    within = np.float32(1 + 2**-10 + 2**-16)
    assert accepted("mixed", golden * within, golden).passes
    beyond = np.nextafter(within, np.float32(2))
    for count, passes in ((1, True), (2, False)):
        result = golden.copy()
        result[:count] = beyond
        assert accepted("mixed", result, golden).passes == passes, count
    for wrong, passes in ((1.0099, True), (1.0101, False), (np.nan, False), (np.inf, False)):
        result = golden.copy()
        result[7] = wrong
        assert accepted("mixed", result, golden).passes == passes, wrong
    for same in (np.nan, -np.inf):
        result = np.full(3, same, np.float32)
        assert accepted("mixed", result, result).passes
    assert not accepted("mixed", -result, result).passes
    zero = np.zeros(1, np.float32)
    assert accepted("mixed", zero + np.float32(2**-16), zero).passes
    assert not accepted("mixed", zero + np.float32(2**-15), zero).passes


def test_a_small_value_of_the_golden_that_is_no_number_excuses_nothing() -> None:
    precise = np.array([1.0, 0.0])
    golden = np.array([1 + 2**-10, np.nan], np.float16)
    assert accepted("2.1:L2", np.array([1 + 2**-10, 0], np.float16), golden, precise).passes
    assert not accepted("2.1:L2", np.array([9, 0], np.float16), golden, precise).passes
    assert not accepted("2.1:L0", golden, golden, precise).passes


@pytest.mark.parametrize(("odd", "wrong"), [(np.nan, 2), (np.inf, 6)])
def test_of_small_values_of_the_golden_only_infinities_are_wrong(odd: float, wrong: int) -> None:
    """Of three of the golden: six of the result may be wrong, or the two of a right golden."""
    precise, golden = np.zeros(8), np.zeros(8, np.float16)
    golden[:3] = odd
    for count in range(9):
        result = np.zeros(8, np.float16)
        result[:count] = 2**-15
        assert accepted("2.1:L0", result, golden, precise).passes == (count <= wrong), count


@pytest.mark.parametrize("given", [0.0, 3.0, np.inf])
def test_a_golden_that_is_no_nan_where_the_precise_is_excuses_nothing(given: float) -> None:
    precise = np.array([1.0, np.nan])
    golden = np.array([1 + 2**-10, given], np.float16)
    assert accepted("2.1:L2", np.array([1 + 2**-10, np.nan], np.float16), golden, precise).passes
    assert not accepted("2.1:L0", np.array([9, np.nan], np.float16), golden, precise).passes
    assert not accepted("2.1:L0", golden, golden, precise).passes


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_a_small_value_that_is_no_number_fails(odd: float) -> None:
    """The source passes one: it compares no NaN with a threshold, and one infinity may be wrong."""
    precise, golden = np.array([1.0, 0.0]), np.array([1, 0], np.float16)
    assert not accepted("2.1:L0", np.array([1, odd], np.float16), golden, precise).passes


def test_an_infinity_of_all_three_excuses_nothing() -> None:
    """The source's error of one is NaN, and any result passes."""
    precise, golden = np.array([1.0, np.inf]), np.array([1 + 2**-10, np.inf], np.float16)
    assert accepted("2.1:L2", golden, golden, precise).passes
    assert not accepted("2.1:L0", np.array([9, np.inf], np.float16), golden, precise).passes


def test_small_values_count_apart() -> None:
    precise = np.zeros(8, np.float64)
    golden = np.zeros(8, np.float16)
    result = golden.copy()
    for wrong in range(1, 5):
        result[wrong] = 2**-15
        found = accepted("2.1:L0", result, golden, precise)
        assert found.passes == (wrong <= 2), found


def test_a_golden_without_a_number_lets_pass_as_in_the_source() -> None:
    precise, golden = np.array([1.0]), np.array([np.nan], np.float16)
    assert accepted("2.1:L2", np.array([9.0], np.float16), golden, precise).passes


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((np.ones(3), None), ValueError, "by a golden, by bounds, or by both"),
        ((np.ones(3), None, np.ones(3)), ValueError, "by a golden, by bounds"),
        (({"a": np.ones(3)}, {"b": np.ones(3)}), ValueError, "the golden has b; the results are a"),
        (([np.ones(3)], [np.ones(3)] * 2), ValueError, "2 arrays"),
        (("x", np.ones(3)), TypeError, "result"),
    ],
)
def test_what_is_no_question(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        judge(*arguments)


def test_integers_have_last_places_and_no_standard() -> None:
    a, b = np.array([-3, 0, 127], np.int8), np.array([-4, 0, 125], np.int8)
    found = compared(a, b)
    assert (dict(found.by_ulp), found.equal, found.errors) == ({1: 1, 2: 1}, 1, None)
    with pytest.raises(TypeError, match="limits for FP16"):
        accepted("community", a, b)


def test_several_outputs_by_order() -> None:
    ones = np.ones(3, np.float32)
    found = judge([ones[:2], ones], [ones[:2], ones - 1])
    assert [each.passes for each in found.outputs] == [True, False]
    assert not found.passes
    assert "result 1: bits: fails; 3 of 3 elements" in str(found)


def test_bounds_judge_the_golden_too() -> None:
    @pypto.frontend.jit
    def doubled(
        x: pypto.Tensor[[2, 16], pypto.DT_FP32], y: pypto.Tensor[[2, 16], pypto.DT_FP32]
    ) -> None:
        pypto.set_vec_tile_shapes(2, 16)
        y[:] = x * 2.0

    x = np.arange(32, dtype=np.float32).reshape(2, 16)
    bounds = doubled.certainty(x, np.zeros_like(x))
    golden = x * np.float32(2)
    golden[1, 3] += 1
    found = judge(x * np.float32(2), golden, bounds=bounds)
    (output,) = found.outputs
    assert (output.impossible, output.golden_impossible) == (0, 1)
    assert found.passes
    assert "the golden cannot come from a device" in str(found)
    with pytest.raises(ValueError, match="dtype"):
        judge(x.astype(np.float16), bounds=bounds)


def test_a_scalar_is_shown_as_one() -> None:
    """It does for shape [1], and is not said to have it."""
    scalar, four = np.array(3, np.float32), np.ones(4, np.float32)
    assert judge(scalar, np.array([3], np.float32)).passes
    for arguments, words in (
        ((scalar, four), r"the result has shape \[\], the golden \[4\]"),
        ((four, scalar), r"the result has shape \[4\], the golden \[\]"),
        ((four, four, scalar), r"the result has shape \[4\], the precise \[\]"),
    ):
        with pytest.raises(ValueError, match=words):
            judge(*arguments, standard="2.1:L0")
