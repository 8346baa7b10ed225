"""Reductions whose causes name choices: the native executor's are numpy's, in every code and cause.

By documents neither the rounding nor the order of a sum is known.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.arithmetic.native_executor import LEVELS, at, same_codes
from support.numbers.codes import SEED

from pypto_cast.operations.reduction_functions import joins
from simulator.arithmetic import OPERATIONS, Enclosure, Tiles, reduce
from simulator.arithmetic.interval import Interval
from simulator.arithmetic.native import executor_library
from simulator.arithmetic.native.deferred_intervals import DeferredInterval
from simulator.arithmetic.native.operation_nodes import deferring
from simulator.arithmetic.reduction import reduce_tiles
from simulator.arithmetic.trust import ASSUME_SUM_ORDER, NAMING_CHOICES, Trust
from simulator.numbers.formats import FP32

Array = npt.NDArray[Any]
LENGTHS = (2, 3, 63, 64, 65, 127, 128, 129, 200, 320, 321, 1000)
KINDS = ("any", "positive", "integers", "some exact", "certain")


def rows(kind: str, length: int, rng: Any) -> Enclosure:
    """Rows of numbers, each a few codes wide."""
    values = (rng.standard_normal((19, length)) * 4).astype(np.float32)
    steps = rng.integers(0, 3, values.shape).astype(np.int32)
    if kind == "positive":
        values = np.abs(values) + np.float32(1)
    if kind == "integers":
        values = np.round(values) + np.float32(0)
    if kind == "some exact":
        values[::3], steps[::3] = np.round(values[::3]) + np.float32(0), 0
        values[5], values[6] = -0.0, 0.0
    if kind == "certain":
        steps[:] = 0
    away = np.where(values < 0, -steps, steps)
    low, high = ((values.view(np.int32) + s * away).view(np.float32) for s in (-1, 1))
    low, high = (np.where(values == 0, values, end) for end in (low, high))
    cause = rng.integers(0, 1 << 13, values.shape).astype(np.uint16)
    held = Interval(low=low, high=high, may_be_nan=None, cause=cause)
    return Enclosure(values=values, interval=held)


def same(found: Enclosure, expected: Enclosure, named: object) -> None:
    assert (found.interval is None) == (expected.interval is None), named
    for part in ("values", "low", "high"):
        same_codes(getattr(found, part), getattr(expected, part), (named, part))
    if found.interval is not None and expected.interval is not None:
        is_open = ~expected.certain()
        same_codes(found.interval.cause[is_open], expected.interval.cause[is_open], named)
        assert expected.interval.may_be_nan is None or not expected.interval.may_be_nan.any()


def natively(name: str, x: Enclosure, trust: Trust = NAMING_CHOICES) -> tuple[Enclosure, bool]:
    """The result, and if the executor's rules held."""
    with deferring():
        found = reduce(OPERATIONS[name], x, FP32, axis=-1, trust=trust)
        is_native = isinstance(found, DeferredInterval)
        held = Enclosure(values=found.values, interval=found.interval)
        if isinstance(found, DeferredInterval):
            is_native = not found.parts.fell_back
    return held, is_native


@pytest.mark.sampled(21)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["sum", "amax", "amin"])
def test_reductions(name: str, kind: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = at(level)
    monkeypatch.setattr(executor_library, "find", lambda: executor)
    rng = np.random.default_rng(SEED)
    for length in LENGTHS:
        x = rows(kind, length, rng)
        assert x.interval is not None
        one = replace(x.interval, cause=np.broadcast_to(np.uint16(9), x.shape))
        for interval in (x.interval, one, None):
            given = Enclosure(values=x.values, interval=interval)
            how = {"axis": -1, "trust": NAMING_CHOICES}
            expected = reduce(OPERATIONS[name], given, FP32, engine="numpy", **how)
            found, is_native = natively(name, given)
            same(found, expected, (kind, length))
            assert is_native, (kind, length)


@pytest.mark.parametrize("name", ["sum", "amax"])
def test_numbers_without_a_native_rule_are_numpys(name: str) -> None:
    """Infinities, NaN, subnormal numbers, and sums that may overflow."""
    at("baseline")
    rng = np.random.default_rng(SEED)
    least = np.float32(2.0**-126)
    for strange in (np.inf, -np.inf, np.nan, 1e-40, np.float32(3e38), -np.float32(3.4e38), least):
        x = rows("any", 100, rng)
        x.values[3, 7] = strange
        given = Enclosure(values=x.values)
        expected = reduce(
            OPERATIONS[name], given, FP32, axis=-1, trust=NAMING_CHOICES, engine="numpy"
        )
        found, _ = natively(name, given)
        same_codes(found.values, expected.values, strange)
        same_codes(found.low, expected.low, strange)
        same_codes(found.high, expected.high, strange)
        flags = [x.interval and x.interval.may_be_nan for x in (found, expected)]
        assert (flags[0] is None) == (flags[1] is None)
        if flags[0] is not None and flags[1] is not None:
            np.testing.assert_array_equal(*flags)


def test_a_known_order_is_not_any_order() -> None:
    """An order taken for granted leaves the bound of all orders out."""
    at("baseline")
    x = Enclosure(values=rows("any", 200, np.random.default_rng(SEED)).values)
    trust = NAMING_CHOICES.also(ASSUME_SUM_ORDER)
    expected = reduce(OPERATIONS["sum"], x, FP32, axis=-1, trust=trust, engine="numpy")
    found, is_native = natively("sum", x, trust)
    same(found, expected, "a known order")
    assert not is_native
    wider, _ = natively("sum", x)
    assert bool((wider.low < found.low).all())


def test_values_are_ordered_by_tiles_and_ends_by_nothing() -> None:
    at("baseline")
    rng = np.random.default_rng(SEED)
    tiles = Tiles(extent=64, joins=joins(5))

    def by_numpy(_: Enclosure) -> Enclosure:
        raise AssertionError("all numbers are normal")

    for kind in KINDS:
        x = rows(kind, 300, rng)
        found = reduce_tiles(
            OPERATIONS["sum"], x, tiles, FP32, by_numpy=by_numpy, trust=NAMING_CHOICES
        )
        values = reduce_tiles(
            OPERATIONS["sum"], Enclosure(values=x.values), tiles, FP32, by_numpy=by_numpy
        )
        whole = reduce(OPERATIONS["sum"], x, FP32, axis=-1, trust=NAMING_CHOICES, engine="numpy")
        assert found is not None
        assert values is not None
        same_codes(found.values, values.values, kind)
        same_codes(found.low, whole.low, kind)
        same_codes(found.high, whole.high, kind)


def test_every_order_and_rounding_lies_inside() -> None:
    """Ends drawn from the intervals, added in random orders, each step rounded anyhow."""
    at("baseline")
    rng = np.random.default_rng(SEED)
    x = rows("any", 65, rng)
    found, is_native = natively("sum", x)
    assert is_native
    for row in range(x.shape[0]):
        for _ in range(3):
            ends = np.stack([x.low[row], x.high[row]])
            terms = rng.permutation(ends[rng.integers(0, 2, 65), np.arange(65)]).tolist()
            total = np.float32(terms[0])
            for term in terms[1:]:
                exact = Fraction(float(total)) + Fraction(term)
                near = np.float32(float(exact))
                towards = np.float32(math.inf if Fraction(float(near)) < exact else -math.inf)
                is_exact = Fraction(float(near)) == exact
                other = near if is_exact else np.nextafter(near, towards)
                total = (near, other)[rng.integers(0, 2)]
            assert found.low[row, 0] <= total <= found.high[row, 0]
