"""Assumptions and bounds, each switched, and a kernel of a device that is off within them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.arithmetic.casts import cast
from simulator.arithmetic.evaluation import evaluate
from simulator.arithmetic.interval import Enclosure, Interval
from simulator.arithmetic.operation import IntervalRule
from simulator.arithmetic.reduction import reduce
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.trust import (
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_RNE,
    BOUNDS,
    DEFAULT,
    DOCUMENTED,
    IEEE,
    TRUSTS,
    Assumption,
)
from simulator.numbers.convert import INF_NAN, Conversion
from simulator.numbers.formats import FP16, FP32, INT8, INT32
from simulator.numbers.rounding import RoundMode


def exact(*values: float, fmt=FP32) -> Enclosure:
    return Enclosure(values=np.array(values).astype(fmt.dtype))


def between(low, high, fmt=FP32, nan=None, cause=1) -> Enclosure:
    low, high = (np.atleast_1d(np.array(end)).astype(fmt.dtype) for end in (low, high))
    flags = None if nan is None else np.broadcast_to(np.array(nan), low.shape)
    causes = np.broadcast_to(np.array(cause, np.uint16), low.shape)
    interval = Interval(low=low, high=high, may_be_nan=flags, cause=causes)
    return Enclosure(values=low, interval=interval)


def run(name: str, *operands: Enclosure, fmt=FP32, trust=DEFAULT, cause: int = 7) -> Enclosure:
    return evaluate(OPERATIONS[name], operands, fmt, trust=trust, cause=cause)


def ends(found: Enclosure) -> tuple[float, float]:
    return found.low.astype(float).item(), found.high.astype(float).item()


def flagged(found: Enclosure) -> bool:
    return found.interval is not None and found.interval.may_be_nan is not None


def steps(value: float, count: int, fmt=FP32) -> float:
    value, toward = fmt.dtype.type(value), fmt.dtype.type(np.copysign(np.inf, count))
    for _ in range(abs(count)):
        value = np.nextafter(value, toward)
    return float(value)


# --- assumptions and bounds, each switched -----------------------------------------------------


@pytest.mark.parametrize("fmt", [FP32, FP16], ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_rounding_is_exact_under_its_assumption(name: str, fmt) -> None:
    operands = exact(1.3, fmt=fmt), exact(0.0271, fmt=fmt)
    value = run(name, *operands, fmt=fmt).values.item()
    assert run(name, *operands, fmt=fmt).interval is None
    found = run(name, *operands, fmt=fmt, trust=DEFAULT.without(ASSUME_RNE))
    assert ends(found) == (steps(value, -1, fmt), steps(value, 1, fmt))
    assert found.interval.cause.tolist() == [7]


@pytest.mark.parametrize("fmt", [FP32, FP16], ids=str)
@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("add", (1.3, 0.0)),
        ("add", (-0.0, 1.3)),
        ("sub", (1.3, 0.0)),
        ("add", (np.inf, 1.3)),
        ("mul", (1.3, 0.0)),
    ],
)
def test_zero_and_infinity_need_no_rounding(name: str, operands, fmt) -> None:
    given = [exact(x, fmt=fmt) for x in operands]
    assert run(name, *given, fmt=fmt, trust=DEFAULT.without(ASSUME_RNE)).interval is None


@pytest.mark.parametrize(
    ("name", "operands", "possible"),
    [
        ("add", (1e-40, 2e-40), (0.0, 3e-40)),
        ("mul", (1e-20, -1e-20), (-1e-40, -0.0)),
        ("mul", (1e-40, 1e30), (0.0, 1e-10)),
        ("div", (1e-20, 1e20), (0.0, 1e-40)),
        ("sqrt", (1e-40,), (0.0, 1e-20)),
        ("exp", (-90.0,), (0.0, 8.19e-40)),
    ],
)
def test_subnormal_numbers_are_kept_under_an_assumption(name: str, operands, possible) -> None:
    trust = DEFAULT.without(ASSUME_GRADUAL_UNDERFLOW)
    found = run(name, *map(exact, operands), trust=trust)
    low, high = ends(found)
    kept = ends(run(name, *map(exact, operands)))
    assert 0.0 in (low, high)
    assert 0.0 not in kept
    np.testing.assert_allclose((low, high), possible, rtol=1e-3)
    assert np.signbit([low, high]).tolist() == np.signbit(possible).tolist()


@pytest.mark.parametrize("fmt", [FP32, FP16], ids=str)
@pytest.mark.parametrize(
    ("name", "operands", "ulps"),
    [
        ("div", (1.0, 3.0), 1),
        ("reciprocal", (3.0,), 1),
        ("sqrt", (3.0,), 1),
        ("exp", (1.0,), 2),
        ("log", (3.0,), 2),
        ("rsqrt", (3.0,), None),
    ],
)
def test_each_bound_widens_by_its_ulps(name: str, operands, ulps: int | None, fmt) -> None:
    given = [exact(x, fmt=fmt) for x in operands]
    found = run(name, *given, fmt=fmt)
    value = found.values.item()
    if ulps is None:
        relative = {FP32: 4e-4, FP16: 4e-3}[fmt]
        assert ends(found)[0] <= value * (1 - relative)
        assert value * (1 + relative) <= ends(found)[1]
    else:
        assert ends(found) == (steps(value, -ulps, fmt), steps(value, ulps, fmt))
    is_bounded = run(name, *given, fmt=fmt, trust=IEEE).interval is not None
    assert is_bounded == (name not in ("div", "reciprocal", "sqrt"))


@pytest.mark.parametrize(
    ("name", "assumption"),
    [(row.name, each) for row in OPERATIONS.values() for each in row.assumes],
    ids=str,
)
def test_every_assumption_of_a_row_decides_something(name: str, assumption: Assumption) -> None:
    """Results that are certain with it, or narrower, and contained in those without it."""
    row = OPERATIONS[name]
    x = exact(1.3, 1e-40, 3e38, -90.0, 1e-20, 1e-20, -1e-40, 1e-14)
    y = exact(2.7, 2e-40, 3.0, 1e20, 1e20, 1e-20, 1.0, 1e-12)

    def found(trust) -> Enclosure:
        if row.rule is IntervalRule.FOLD:
            pairs = Enclosure(values=np.stack([x.values, y.values, x.values], 1))
            return reduce(row, pairs, FP32, axis=1, trust=trust)
        return run(name, *(x, y)[: row.operands], trust=trust)

    held, dropped = found(DEFAULT), found(DEFAULT.without(assumption))
    assert dropped.interval is not None
    assert dropped.interval.contains(held.low, FP32).all()
    assert dropped.interval.contains(held.high, FP32).all()
    assert ((dropped.low < held.low) | (held.high < dropped.high)).any()


def test_every_bound_has_a_source_and_no_device_document_states_it() -> None:
    for bound in BOUNDS:
        assert bound.source
        assert not bound.published
        assert any(row.bound is bound for row in OPERATIONS.values())


def test_results_that_the_tables_fix_are_certain() -> None:
    inf, nan = np.inf, np.nan
    for name, operands in {
        "div": [(0, 3), (-0.0, 3), (inf, 3), (3, inf), (3, 0), (0, 0), (nan, 3), (inf, inf)],
        "sqrt": [(0,), (-0.0,), (inf,), (nan,), (-1,)],
        "exp": [(0,), (-0.0,), (inf,), (-inf,), (nan,), (-1e4,), (1e4,)],
        "log": [(0,), (-0.0,), (inf,), (nan,), (-1,)],
        "reciprocal": [(0,), (-0.0,), (inf,), (-inf,), (nan,)],
    }.items():
        for values in operands:
            assert run(name, *map(exact, values)).interval is None, (name, values)
    documented = run("add", exact(0.0, 1.5), exact(1.5, np.inf), trust=DOCUMENTED)
    assert documented.interval is None


def test_quotients_that_overflow_or_vanish_may_do_otherwise() -> None:
    largest = float(np.finfo(np.float32).max)
    least = float(np.finfo(np.float32).smallest_subnormal)
    assert ends(run("div", exact(3e38), exact(0.5))) == (largest, np.inf)
    assert ends(run("div", exact(1e-45), exact(8))) == (0.0, least)
    assert ends(run("div", exact(1e-45), exact(-8))) == (-least, -0.0)


def test_the_statement_on_subnormal_numbers_names_the_instructions_that_rest_on_it() -> None:
    """Maxima, comparisons and moves are exact; they rest on no assumption."""
    named = set(re.findall(r"\bv[a-z]+", ASSUME_GRADUAL_UNDERFLOW.statement))
    resting, others = (
        {
            {"vmuls": "vmul"}.get(word, word)
            for row in OPERATIONS.values()
            if (ASSUME_GRADUAL_UNDERFLOW in row.assumes) is rests
            for word in re.findall(r"\bv[a-z]+", row.instruction)
        }
        for rests in (True, False)
    )
    assert named == resting - {"vector"}
    assert not named & others
    for name in ("maximum", "minimum", "relu", "abs"):
        operands = [exact(1e-40), exact(3e-40)][: OPERATIONS[name].operands]
        assert run(name, *operands, trust=DOCUMENTED).interval is None


@pytest.mark.parametrize("trust", [DEFAULT, DOCUMENTED], ids=lambda trust: trust.name)
def test_operands_without_dimensions_have_the_results_of_arrays_of_one(trust) -> None:
    for name in ("add", "clip", "div", "exp", "lt"):
        given = [between(1, k + 2) for k in range(OPERATIONS[name].operands)]
        array = run(name, *given, trust=trust)
        found = run(name, *(x.reshape(()) for x in given), trust=trust)
        assert found.shape == found.low.shape == ()
        assert ends(found) == ends(array)


# --- chains ------------------------------------------------------------------------------------


def softly(rng: np.random.Generator, x: np.ndarray, ulps: int) -> np.ndarray:
    """Move numbers by some codes, but none to zero, through it or to infinity."""
    moved = (x.view(np.int32) + rng.integers(-ulps, ulps + 1, x.shape, np.int32)).view(np.float32)
    least, most = np.float32(1e-44), np.float32(3.4e38)
    return np.where((np.abs(x) < least) | ~(np.abs(x) < most), x, moved)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), trust=st.sampled_from(sorted(TRUSTS)))
def test_a_quantising_kernel_of_another_device_lies_inside(seed: int, trust: str) -> None:
    """amax, a scale by division, products, softmax-like exponentials, sums, casts to INT8."""
    rng = np.random.default_rng(seed)
    chosen = TRUSTS[trust]
    x = rng.standard_normal((4, 96)).astype(np.float32)
    x *= np.float32(10) ** rng.integers(-3, 4, (4, 1)).astype(np.float32)

    def go(name: str, *operands: Enclosure, cause: int) -> Enclosure:
        return evaluate(OPERATIONS[name], operands, FP32, trust=chosen, cause=cause)

    q = Enclosure(values=x)
    most = reduce(OPERATIONS["amax"], go("abs", q, cause=1), FP32, axis=1, trust=chosen)
    scale = go("div", most, exact(127), cause=2)
    scaled = go("div", q, scale, cause=3)
    shifted = go("exp", go("sub", scaled, exact(127), cause=4), cause=5)
    total = reduce(OPERATIONS["sum"], shifted, FP32, axis=1, trust=chosen, cause=6)
    share = go("div", shifted, total, cause=7)
    root = go("sqrt", go("mul", share, share, cause=8), cause=9)
    to_int8 = (
        Conversion(src=FP32, dst=INT32, mode=RoundMode.RINT, policy=INF_NAN),
        Conversion(src=INT32, dst=INT8, mode=RoundMode.RINT, policy=INF_NAN),
    )
    codes = cast(to_int8, scaled)

    division = 0 if trust == "ieee" else 1
    with np.errstate(all="ignore"):
        for _ in range(4):
            peak = np.abs(x).max(axis=1, keepdims=True)
            a_scale = softly(rng, peak / np.float32(127), division)
            a_scaled = softly(rng, x / a_scale, division)
            rounded = np.clip(np.rint(a_scaled), -128, 127)
            depth = a_scaled - np.float32(127)
            power = softly(rng, np.exp(depth.astype(np.float64)).astype(np.float32), 2)
            power = np.where(depth == 0, np.float32(1), power)  # table 2
            order = rng.permutation(96) if trust == "documented" else None
            if order is None:
                a_total = reduce(OPERATIONS["sum"], Enclosure(values=power), FP32, axis=1).values
            else:
                a_total = np.cumsum(power[:, order], axis=1, dtype=np.float32)[:, -1:]
            a_share = softly(rng, power / a_total, division)
            a_root = softly(rng, np.sqrt(a_share * a_share), division)
            for found, values in (
                (scale, a_scale),
                (scaled, a_scaled),
                (shifted, power),
                (total, a_total),
                (share, a_share),
                (root, a_root),
                (codes, rounded),
            ):
                nan = np.isnan(found.low)
                if found.interval is not None and found.interval.may_be_nan is not None:
                    nan = nan | found.interval.may_be_nan
                inside = (found.low <= values) & (values <= found.high)
                inside = np.where(np.isnan(values), nan, inside)
                assert inside.all(), values[~inside][0]
    assert codes.certain().mean() > 0.5
