"""Every member of the operands, computed with every permitted error, lies inside the interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.devices.other_device import (
    is_possible,
    nudged,
    order_of,
    unrounded,
    with_flushed,
)

from simulator.arithmetic.evaluation import evaluate
from simulator.arithmetic.interval import Enclosure, Interval
from simulator.arithmetic.operation import IntervalRule
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.trust import (
    IEEE,
    TRUSTS,
)
from simulator.numbers.formats import FP16, FP32, INT8, INT16, INT32, UINT8, UINT16

SIZE = 400
FEW = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**32 - 1)
UNSIGNED = {FP32: np.uint32, FP16: np.uint16}


def some_floats(rng: np.random.Generator, fmt, size: int = SIZE) -> np.ndarray:
    """Ordinary numbers, and all kinds of special ones."""
    limits = np.finfo(fmt.dtype)
    specials = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, limits.max, limits.min]
    specials += [s * k * limits.smallest_subnormal for s in (1, -1) for k in (1, 2, 7)]
    specials += [s * limits.smallest_normal for s in (1, -1)]
    ordinary = rng.standard_normal(size) * 10.0 ** rng.integers(-3, 3, size)
    codes = rng.integers(0, 1 << fmt.bits, size, dtype=np.uint64).astype(UNSIGNED[fmt])
    rare = np.array(specials, fmt.dtype)[rng.integers(0, len(specials), size)]
    kind = rng.integers(0, 10, size)
    with np.errstate(all="ignore"):
        found = np.where(kind < 6, ordinary.astype(fmt.dtype), codes.view(fmt.dtype))
    return np.where(kind > 7, rare, found).astype(fmt.dtype)


def assert_inside(values: np.ndarray, found: Enclosure, *context) -> None:
    flags = None if found.interval is None else found.interval.may_be_nan
    possible = is_possible(values, found.low, found.high, flags)
    if not possible.all():
        where = tuple(int(k) for k in np.argwhere(~possible)[0])
        flag = None if flags is None else flags[where]
        details = [c[where] if isinstance(c, np.ndarray) else c for c in context]
        raise AssertionError(
            f"{np.broadcast_to(values, possible.shape)[where]!r} is not in "
            f"[{found.low[where]!r}, {found.high[where]!r}] NaN {flag}: {details}"
        )


def some_interval(rng: np.random.Generator, fmt, size: int = SIZE) -> Enclosure:
    """Intervals of all widths, points among them, with and without a possible NaN."""
    if fmt in UNSIGNED:
        a, b = some_floats(rng, fmt, size), some_floats(rng, fmt, size)
        near = rng.integers(0, 3, size)
        with np.errstate(all="ignore"):
            b = np.where(near == 0, np.nextafter(a, b), np.where(near == 1, a, b))
        undefined = np.isnan(a) | np.isnan(b)
        nan = np.array(fmt.nan_code, UNSIGNED[fmt]).view(fmt.dtype)
        a, b = np.where(undefined, nan, a), np.where(undefined, nan, b)
    else:
        a = rng.integers(fmt.min, fmt.max, size, endpoint=True).astype(fmt.dtype)
        step = rng.integers(0, 20, size)
        b = np.clip(a.astype(np.int64) + step, fmt.min, fmt.max).astype(fmt.dtype)
        wide = rng.integers(fmt.min, fmt.max, size, endpoint=True).astype(fmt.dtype)
        b = np.where(rng.integers(0, 4, size) == 0, wide, b)
    swap = order_of(a) > order_of(b)
    low, high = np.where(swap, b, a), np.where(swap, a, b)
    flags = rng.integers(0, 5, size) == 0 if fmt in UNSIGNED else None
    cause = rng.integers(0, 9, size).astype(np.uint16)
    interval = Interval(low=low, high=high, may_be_nan=flags, cause=cause)
    return Enclosure(values=low, interval=interval)


def some_member(rng: np.random.Generator, x: Enclosure, fmt) -> np.ndarray:
    """One possible value an element: an end, a number between, zero, or NaN."""
    low, high = order_of(x.low), order_of(x.high)
    kind = rng.integers(0, 5, low.shape)
    middle = low + (rng.random(low.shape) * (high - low + 1)).astype(np.int64)
    picked = np.where(kind == 0, low, np.where(kind == 1, high, np.clip(middle, low, high)))
    zero = rng.integers(-1, 1, low.shape) if fmt in UNSIGNED else np.zeros(low.shape, np.int64)
    picked = np.where((kind == 4) & (low <= zero) & (zero <= high), zero, picked)
    if fmt not in UNSIGNED:
        return picked.astype(fmt.dtype)
    sign = np.int64(1) << (fmt.bits - 1)
    codes = np.where(picked < 0, (-(picked + 1)) | sign, picked).astype(UNSIGNED[fmt])
    values = codes.view(fmt.dtype)
    if x.interval is not None and x.interval.may_be_nan is not None:
        flip = x.interval.may_be_nan & (rng.integers(0, 2, low.shape) == 0)
        values = np.where(flip, np.array(np.nan, fmt.dtype), values)
    return values


def is_settled(operation: str, members: list[np.ndarray], fmt) -> np.ndarray:
    """Operands whose results the vendor's tables give, and powers far beyond the format."""
    settled = np.zeros(members[0].shape, bool)
    for x in members:
        settled = settled | (x == 0) | ~np.isfinite(x)
    if operation == "exp":
        x = members[0].astype(float)
        most, least = (95.6, -110.2) if fmt is FP32 else (18.0, -23.5)
        settled = settled | (x > most) | (x < least)
    return settled


def as_values(row, members: list[np.ndarray], fmt, inf_nan_mode: bool) -> np.ndarray:
    """Evaluate points; the values are tested elsewhere."""
    operands = [Enclosure(values=m) for m in members]
    return evaluate(row, operands, fmt, trust=IEEE, inf_nan_mode=inf_nan_mode).values


CASES = [
    (name, fmt)
    for name, row in OPERATIONS.items()
    if row.rule not in (IntervalRule.FOLD, IntervalRule.SELECT)
    for fmt in row.formats
    if fmt in (FP32, FP16, INT8, UINT8, INT16, UINT16, INT32)
]


@pytest.mark.parametrize("trust", TRUSTS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1]}")
@settings(max_examples=2, deadline=None)
@given(seed=seeds, inf_nan_mode=st.booleans())
@pytest.mark.sampled(24)
def test_every_member_lies_inside(case, trust: str, seed: int, inf_nan_mode: bool) -> None:
    assert_members_inside(case, trust, seed, inf_nan_mode)


@pytest.mark.exhaustive
@pytest.mark.parametrize("trust", TRUSTS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1]}")
@settings(max_examples=5, deadline=None)
@given(seed=seeds, inf_nan_mode=st.booleans())
def test_more_members_lie_inside(case, trust: str, seed: int, inf_nan_mode: bool) -> None:
    assert_members_inside(case, trust, seed, inf_nan_mode)


def assert_members_inside(case, trust: str, seed: int, inf_nan_mode: bool) -> None:
    name, fmt = case
    row, rng = OPERATIONS[name], np.random.default_rng(seed)
    operands = [some_interval(rng, fmt) for _ in range(row.operands)]
    exact = rng.integers(0, 3, row.operands) == 0
    operands = [
        Enclosure(values=x.values) if e else x for x, e in zip(operands, exact, strict=True)
    ]
    found = evaluate(row, operands, fmt, trust=TRUSTS[trust], inf_nan_mode=inf_nan_mode)
    for _ in range(4):
        members = [some_member(rng, x, fmt) for x in operands]
        used = members
        if trust == "documented" and row.may_flush(fmt, TRUSTS[trust]):
            used = [with_flushed(rng, m) for m in members]
        saturates_halves = fmt is FP16 and not inf_nan_mode and not row.gives_truth
        result = as_values(row, used, fmt, inf_nan_mode or saturates_halves)
        ulps = row.ulps(fmt, TRUSTS[trust])
        if ulps:
            with np.errstate(all="ignore"):
                settled = is_settled(name, used, fmt) | unrounded(name, used, result)
            result = nudged(rng, result, ulps, settled)
        if used is not members:
            result = with_flushed(rng, result)
        either_mode = trust == "documented" and not (row.gives_truth or row.copies)
        if saturates_halves or (fmt is FP16 and either_mode and rng.integers(2)):
            most = np.finfo(np.float16).max
            result = np.where(np.isnan(result), np.float16(0), np.clip(result, -most, most))
        elif row.saturates and either_mode and fmt not in UNSIGNED and rng.integers(2):
            result = as_values(row, used, fmt, False)
        assert_inside(result, found, name, *members, *(x.low for x in operands))
