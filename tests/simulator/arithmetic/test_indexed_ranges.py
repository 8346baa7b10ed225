"""Every choice of members, ties and orders gives a result inside the interval of the indexed ones.

The references are plain Python: they index, sort and add one element after another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.arithmetic import ASSUME_STABLE_SORT, ASSUME_SUM_ORDER, DEFAULT
from simulator.arithmetic.indexed.gather_scatter import gather, read_box, scatter, write_box
from simulator.arithmetic.indexed.running_sums import RunningSums, prefix_scan
from simulator.arithmetic.indexed.sort import sort
from simulator.arithmetic.interval import Enclosure, Interval
from simulator.numbers.formats import FP32, INT32, Format

FEW = settings(max_examples=12, deadline=None)
seeds = st.integers(0, 2**32 - 1)
POOL = np.array([-2, -1, -0.0, 0.0, 0.5, 1, 1, 3, 7.25], np.float32)
CAUSE = 5


def order_of(x: np.ndarray) -> np.ndarray:
    """Integers in the order of the numbers, -0 below +0."""
    if x.dtype.kind != "f":
        return x.astype(np.int64)
    codes = x.view(np.int32).astype(np.int64)
    return np.where(codes < 0, -(codes & 0x7FFFFFFF) - 1, codes)


def assert_inside(values: np.ndarray, found: Enclosure) -> None:
    low, high = np.broadcast_to(found.low, values.shape), np.broadcast_to(found.high, values.shape)
    inside = (order_of(low) <= order_of(values)) & (order_of(values) <= order_of(high))
    if values.dtype.kind == "f":
        flags = found.interval.may_be_nan if found.interval is not None else None
        allowed = np.isnan(low) | (False if flags is None else flags)
        inside = np.where(np.isnan(values), allowed, inside & ~np.isnan(low))
    assert inside.all(), (values[~inside], low[~inside], high[~inside])


def some_numbers(rng: np.random.Generator, shape: tuple[int, ...], *, nan: float = 0) -> Enclosure:
    """Intervals of numbers, half of them points, of few values so that there are ties."""
    a, b = rng.choice(POOL, shape), rng.choice(POOL, shape)
    b = np.where(rng.random(shape) < 0.5, a, b)
    swap = order_of(a) > order_of(b)
    low, high = np.where(swap, b, a), np.where(swap, a, b)
    flags = rng.random(shape) < nan
    interval = Interval(
        low=low, high=high, may_be_nan=flags, cause=np.full(shape, CAUSE, np.uint16)
    )
    return Enclosure(values=low.copy(), interval=interval)


def some_indices(rng: np.random.Generator, shape: tuple[int, ...], size: int) -> Enclosure:
    low = rng.integers(0, size, shape).astype(np.int32)
    wide = rng.integers(0, 3, shape) * (rng.random(shape) < 0.5)
    high = np.minimum(low + wide, size - 1).astype(np.int32)
    interval = Interval(low=low, high=high, may_be_nan=None, cause=np.full(shape, 9, np.uint16))
    return Enclosure(values=high.copy(), interval=interval)


def member(rng: np.random.Generator, x: Enclosure) -> np.ndarray:
    """One of the arrays that a quantity stands for."""
    picked = np.where(rng.random(x.shape) < 0.5, x.low, x.high)
    if x.values.dtype.kind == "i":
        return rng.integers(x.low, x.high, endpoint=True).astype(x.values.dtype)
    assert x.interval is not None
    if x.interval.may_be_nan is not None:
        picked = np.where(x.interval.may_be_nan & (rng.random(x.shape) < 0.5), np.nan, picked)
    return picked.astype(x.values.dtype)


def scattered(
    x: np.ndarray, index: np.ndarray, given: np.ndarray, join: Callable[[float, float], float]
) -> np.ndarray:
    """Rows written one element after another."""
    out = x.copy()
    for row in range(index.shape[0]):
        for k in range(index.shape[1]):
            out[row, index[row, k]] = join(out[row, index[row, k]], given[row, k])
    return out


# --- Reading ---------------------------------------------------------------------------------


@FEW
@given(seeds)
def test_gather_takes_the_hull_of_the_candidates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, index = some_numbers(rng, (3, 6), nan=0.2), some_indices(rng, (3, 4), 6)
    found = gather(source, index, FP32, axis=1)
    for _ in range(20):
        x, at = member(rng, source), member(rng, index)
        assert_inside(np.array([[x[r, k] for k in at[r]] for r in range(3)]), found)
    expected = [[source.values[r, k] for k in index.values[r]] for r in range(3)]
    assert (order_of(found.values) == order_of(np.array(expected))).all()


def test_many_candidates_take_the_whole_axis() -> None:
    source = Enclosure(values=np.arange(200, dtype=np.float32))
    low, high = np.array([3, 10], np.int32), np.array([3, 150], np.int32)
    interval = Interval(low=low, high=high, may_be_nan=None, cause=np.full(2, 9, np.uint16))
    found = gather(source, Enclosure(values=high, interval=interval), FP32, axis=0)
    assert found.low.tolist() == [3, 0]
    assert found.high.tolist() == [3, 199]
    assert found.interval is not None
    assert found.interval.cause[1] == 9


def test_a_candidate_outside_may_be_anything() -> None:
    source = Enclosure(values=np.arange(4, dtype=np.float32))
    low, high = np.array([3], np.int32), np.array([4], np.int32)
    interval = Interval(low=low, high=high, may_be_nan=None, cause=np.zeros(1, np.uint16))
    found = gather(source, Enclosure(values=low, interval=interval), FP32, axis=0).interval
    assert found is not None
    assert (found.low[0], found.high[0], found.may_be_nan[0]) == (-np.inf, np.inf, True)


def test_exact_indices_make_no_interval() -> None:
    source = Enclosure(values=np.arange(12, dtype=np.float32).reshape(3, 4))
    index = Enclosure(values=np.array([[3, 0], [1, 1], [2, 3]]))
    found = gather(source, index, FP32, axis=1)
    assert found.interval is None
    assert found.values.tolist() == [[3, 0], [5, 5], [10, 11]]


# --- Writing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("adds", [False, True])
@FEW
@given(seeds)
def test_scatter_leaves_each_candidate_open(adds: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    target, given_ = some_numbers(rng, (2, 6)), some_numbers(rng, (2, 4))
    index = some_indices(rng, (2, 4), 6)

    def join(a: Enclosure, b: Enclosure) -> Enclosure:
        ends = [np.add(p, q) for p, q in ((a.low, b.low), (a.high, b.high))]
        interval = Interval(
            low=ends[0], high=ends[1], may_be_nan=None, cause=np.zeros(a.shape, np.uint16)
        )
        return Enclosure(values=a.values + b.values, interval=interval)

    def add(a: float, b: float) -> float:
        return np.float32(a) + np.float32(b)

    found = scatter(target, index, given_, FP32, axis=1, join=join if adds else None)
    plain = add if adds else (lambda a, b: b)
    for _ in range(20):
        values = (member(rng, q) for q in (target, index, given_))
        assert_inside(scattered(*values, plain), found)
    expected = scattered(target.values, index.values, given_.values, plain)
    assert (order_of(found.values) == order_of(expected)).all()


@FEW
@given(seeds)
def test_writes_without_an_order_leave_all_of_them_open(seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = Enclosure(values=rng.choice(POOL, (1, 4)))
    given_ = Enclosure(values=rng.choice(POOL, (1, 5)))
    index = Enclosure(values=rng.integers(0, 4, (1, 5)))
    found = scatter(target, index, given_, FP32, axis=1, in_order=False)
    for _ in range(20):
        order = rng.permutation(5)
        other = scattered(
            target.values, index.values[:, order], given_.values[:, order], lambda a, b: b
        )
        assert_inside(other, found)
    if len(set(index.values[0].tolist())) == 5:
        assert found.interval is None


def test_negative_indices_write_nothing() -> None:
    target = Enclosure(values=np.zeros((1, 3), np.float32))
    index = Enclosure(values=np.array([[-1, 2]]))
    found = scatter(target, index, Enclosure(values=np.float32(4)), FP32, axis=1)
    assert found.values.tolist() == [[0, 0, 4]]
    assert (target.values == 0).all()


@pytest.mark.parametrize("skips_negative", [False, True])
@pytest.mark.parametrize(("low", "high"), [(-1, 1), (1, 3)])
def test_a_candidate_outside_may_write_anywhere(low: int, high: int, skips_negative: bool) -> None:
    target = Enclosure(values=np.zeros((2, 3), np.float32))
    interval = Interval(
        low=np.array([[low, 0]]),
        high=np.array([[high, 0]]),
        may_be_nan=None,
        cause=np.array([[9, 0]], np.uint16),
    )
    index = Enclosure(values=np.array([[1, 0]]), interval=interval)
    four = Enclosure(values=np.float32(4))
    found = scatter(target, index, four, FP32, axis=1, skips_negative=skips_negative)
    assert found.values.tolist() == [[4, 4, 0], [0, 0, 0]]
    assert found.interval is not None
    if low < 0 and skips_negative:
        assert found.certain().tolist() == [[True, False, True], [True, True, True]]
        assert (found.low[0, 1], found.high[0, 1]) == (0, 4)
    else:
        assert np.isinf(found.low).all()
        assert (found.interval.cause == 9).all()


def test_equal_indices_after_an_open_one_keep_their_own_shapes() -> None:
    target = Enclosure(values=np.zeros((4, 2), np.float32))
    low, high = np.array([[0], [3], [3]]), np.array([[1], [3], [3]])
    interval = Interval(low=low, high=high, may_be_nan=None, cause=np.full((3, 1), 9, np.uint16))
    index = Enclosure(values=low, interval=interval).map(lambda a: np.broadcast_to(a, (3, 2)))
    source = Enclosure(values=np.array([[1, 1], [2, 2], [3, 3]], np.float32))
    found = scatter(target, index, source, FP32, axis=0, in_order=False, cause=CAUSE)
    assert found.low[:, 0].tolist() == [0, 0, 0, 2]
    assert found.high[:, 0].tolist() == [1, 1, 0, 3]
    assert found.interval is not None
    assert found.interval.cause[:, 0].tolist()[::3] == [9, CAUSE]


# --- Boxes -----------------------------------------------------------------------------------


@FEW
@given(seeds)
def test_boxes_at_any_of_their_places(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole, part = some_numbers(rng, (4, 7), nan=0.2), some_numbers(rng, (2, 3), nan=0.2)
    spread = (4 - 2, 7 - 3)
    at = tuple(int(rng.integers(0, most + 1)) for most in spread)
    read = read_box(whole, FP32, at=at, extent=(2, 3), cause=CAUSE)
    left = write_box(whole, part, FP32, at=at, cause=CAUSE)
    for place in [at, *np.ndindex(spread[0] + 1, spread[1] + 1)]:
        box = tuple(slice(o, o + n) for o, n in zip(place, (2, 3), strict=True))
        before = member(rng, whole)
        assert_inside(before[box], read)
        before[box] = member(rng, part)
        assert_inside(before, left)
    box = tuple(slice(o, o + n) for o, n in zip(at, (2, 3), strict=True))
    expected = whole.values.copy()
    assert (order_of(read.values) == order_of(expected[box])).all()
    expected[box] = part.values
    assert (order_of(left.values) == order_of(expected)).all()


def test_elements_of_every_box_are_those_written() -> None:
    whole = Enclosure(values=np.zeros(6, np.float32))
    part = Enclosure(values=np.full(4, 5, np.float32))
    left = write_box(whole, part, FP32, at=(1,), cause=CAUSE)
    assert left.certain().tolist() == [False, False, True, True, False, False]


# --- Sums ------------------------------------------------------------------------------------


@FEW
@given(seeds)
def test_sums_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    terms = (rng.standard_normal((6, 3)) * 10.0 ** rng.integers(-6, 6, (6, 3))).astype(np.float32)
    start = rng.choice(POOL, 3)
    sums, total = RunningSums(Enclosure(values=start), FP32), start.copy()
    for term in terms:
        sums.add(..., Enclosure(values=term))
        total = total + term
    found = sums.widened(Enclosure(values=total), ..., DEFAULT, CAUSE)
    for _ in range(20):
        other = start.copy()
        for k in rng.permutation(6):
            other = other + terms[k]
        assert_inside(other, found)
    assert found.interval is not None
    assert (found.interval.cause == CAUSE).all()


def test_two_terms_have_one_sum() -> None:
    start = Enclosure(values=np.array([0, 1], np.float32))
    sums = RunningSums(start, FP32)
    for value in (0.1, 0.2):
        sums.add(..., Enclosure(values=np.full(2, value, np.float32)))
    total = Enclosure(values=np.array([0.3, 1.3], np.float32))
    assert sums.widened(total, ..., DEFAULT, 0).certain().tolist() == [True, False]
    sums.start_again(slice(0, 2), start)
    sums.add(..., start)
    assert sums.widened(total, ..., DEFAULT, 0).interval is None


def doubled(x: list[np.float32], extent: int) -> list[np.float32]:
    """Sums up to each element in the order of upstream's tile operation."""
    out: list[np.float32] = []
    for start in range(0, len(x), extent):
        held = list(x[start : start + extent])
        result, step = list(held), 1
        while step < len(held):
            sums = [held[k] + held[k + step] for k in range(len(held) - step)]
            result[step:] = sums
            held[step:] = [s + np.float32(0) for s in sums]
            step *= 2
        carry = out[-1] if out else None
        out += result if carry is None else [r + carry for r in result]
    return out


@pytest.mark.parametrize("extent", [3, 4, 8, 20])
@FEW
@given(seeds)
def test_prefix_sums(extent: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((2, 13)) * 10.0 ** rng.integers(-4, 4, (2, 13))).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = x[0, :6] = -0.0
    trust = DEFAULT.without(ASSUME_SUM_ORDER)
    for chosen in (DEFAULT, trust):
        found = prefix_scan(
            Enclosure(values=x),
            FP32,
            axis=1,
            extent=extent,
            trust=chosen,
            cause=CAUSE,
            by_scalars=False,
        )
        expected = np.array([doubled(list(row), extent) for row in x], np.float32)
        assert (found.values.view(np.int32) == expected.view(np.int32)).all()
        assert (found.interval is None) is (chosen is DEFAULT)
    sequential = np.zeros_like(x)
    total = np.zeros(2, np.float32)
    for k in range(x.shape[1]):
        total = x[:, k] if k == 0 else total + x[:, k]
        sequential[:, k] = total
    assert_inside(sequential, found)


@FEW
@given(seeds)
def test_prefix_sums_of_open_terms_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = some_numbers(rng, (3, 9), nan=0.1)
    options = {"axis": 1, "extent": 4, "cause": CAUSE, "by_scalars": False}
    found = prefix_scan(x, FP32, trust=DEFAULT.without(ASSUME_SUM_ORDER), **options)
    assert found.interval is not None
    for _ in range(20):
        terms, order = member(rng, x), rng.permutation(9)
        sums = np.stack(
            [functools.reduce(np.add, terms.T[order[order <= k]]) for k in range(9)], axis=1
        )
        assert_inside(sums, found)
    ends = [np.cumsum(end.astype(np.float64), 1) for end in (x.low, x.high)]
    known = np.cumsum(x.interval.may_be_nan, 1) == 0
    assert (found.low[known] >= ends[0][known] - 1e-4).all()
    assert (found.high[known] <= ends[1][known] + 1e-4).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_prefix_sums_of_an_open_term_reach_what_another_order_gives(sign: int) -> None:
    large, small = np.float32(sign * 2**24), np.full(8, sign * 1.5, np.float32)
    low, high = (np.array([[end, *small]]) for end in sorted((np.float32(0), large)))
    interval = Interval(low=low, high=high, may_be_nan=None, cause=np.zeros((1, 9), np.uint16))
    options = {"axis": 1, "extent": 16, "cause": CAUSE, "by_scalars": False}
    x = Enclosure(values=low, interval=interval)
    ordered = prefix_scan(x, FP32, trust=DEFAULT, **options)
    found = prefix_scan(x, FP32, trust=DEFAULT.without(ASSUME_SUM_ORDER), **options)
    one_by_one = functools.reduce(np.add, small, large)  # the tile's order adds the large one last
    far, of_tile = (q.high[0, 8] if sign > 0 else q.low[0, 8] for q in (found, ordered))
    assert abs(of_tile) < abs(one_by_one) <= abs(far) < abs(one_by_one) + 64
    assert found.interval is not None
    assert found.interval.may_be_nan is None


def test_prefix_sums_of_open_terms_and_of_integers_that_wrap() -> None:
    rng = np.random.default_rng(3)
    x = some_numbers(rng, (4, 9))
    options = {"axis": 1, "extent": 4, "trust": DEFAULT, "cause": 0, "by_scalars": True}
    found = prefix_scan(x, FP32, **options)
    for _ in range(50):
        assert_inside(np.cumsum(member(rng, x), 1, dtype=np.float32), found)
    many = Enclosure(values=np.full((1, 3), 2**30, np.int32))
    wrapped = prefix_scan(many, INT32, **options)
    assert wrapped.values.tolist() == [[2**30, -(2**31), -(2**30)]]


# --- Order -----------------------------------------------------------------------------------


def sorted_somehow(
    rng: np.random.Generator, row: np.ndarray, descending: bool, stable: bool
) -> list[int]:
    """The indices of a row in order; zeros of both signs in any, equal ones too if not stable."""
    zero_first = rng.random() < 0.5
    noise = rng.permutation(row.size)

    def rank(k: int) -> tuple[float, float, int]:
        value = float(row[k])
        sign = float(np.signbit(row[k])) if value == 0 else 0.0
        first = sign if zero_first else 0.0
        return (-value if descending else value, first, k if stable else int(noise[k]))

    return sorted(range(row.size), key=rank)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("stable", [False, True])
@FEW
@given(seeds)
def test_values_and_candidates_of_sorted_rows(descending: bool, stable: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = some_numbers(rng, (3, 7))
    trust = DEFAULT if stable else DEFAULT.without(ASSUME_STABLE_SORT)
    found = sort(x, 4, descending=descending, trust=trust, cause=CAUSE)
    for _ in range(20):
        rows = member(rng, x)
        order = [sorted_somehow(rng, row, descending, stable)[:4] for row in rows]
        assert_inside(np.array(order, np.int32), found.indices)
        assert_inside(np.take_along_axis(rows, np.array(order), 1), found.values)


@pytest.mark.parametrize("descending", [False, True])
def test_exact_rows_without_doubt_make_no_interval(descending: bool) -> None:
    x = Enclosure(values=np.array([[3, 1, 3, 2], [4, 4, 4, 4]], np.float32))
    found = sort(x, 3, descending=descending, trust=DEFAULT, cause=CAUSE)
    assert found.values.interval is None
    assert found.indices.interval is None
    assert found.indices.values.tolist() == [[0, 2, 3] if descending else [1, 3, 0], [0, 1, 2]]
    any_order = sort(
        x, 3, descending=descending, trust=DEFAULT.without(ASSUME_STABLE_SORT), cause=CAUSE
    ).indices
    assert any_order.low.tolist()[1] == [0, 0, 0]
    assert any_order.high.tolist()[1] == [3, 3, 3]
    assert any_order.interval is not None
    assert (any_order.interval.cause[1] == CAUSE).all()


@pytest.mark.parametrize("descending", [False, True])
def test_ties_beside_an_open_element_stay_certain(descending: bool) -> None:
    low, high = np.array([[2, 5, 5, 2]], np.float32), np.array([[2, 5, 5, 3]], np.float32)
    interval = Interval(low=low, high=high, may_be_nan=None, cause=np.zeros((1, 4), np.uint16))
    x = Enclosure(values=low, interval=interval)
    found = sort(x, 4, descending=descending, trust=DEFAULT, cause=CAUSE).indices
    assert found.values.tolist() == [[1, 2, 0, 3] if descending else [0, 3, 1, 2]]
    assert found.certain().tolist() == [
        [True, True, False, False] if descending else [True, True, True, True]
    ]


def test_a_row_with_nan_may_come_in_any_order() -> None:
    x = Enclosure(values=np.array([[1, np.nan, 3], [1, 2, 3]], np.float32))
    found = sort(x, 2, descending=True, trust=DEFAULT, cause=CAUSE)
    assert found.indices.certain().tolist() == [[False, False], [True, True]]
    assert found.indices.high.tolist() == [[2, 2], [2, 1]]
    assert found.values.interval is not None
    assert found.values.interval.may_be_nan.tolist() == [[True, True], [False, False]]
    assert (found.values.low[0] == 1).all()
    assert (found.values.high[0] == 3).all()


def test_zeros_of_both_signs_may_come_in_either_order() -> None:
    x = Enclosure(values=np.array([[0.0, -0.0, 1.0], [0.0, 0.0, 1.0]], np.float32))
    found = sort(x, 3, descending=True, trust=DEFAULT, cause=CAUSE)
    assert found.indices.certain().tolist() == [[True, False, False], [True, True, True]]
    assert np.signbit(found.values.low[0, 1:]).all()
    assert not np.signbit(found.values.high[0, 1:]).any()


@pytest.mark.parametrize("fmt", [FP32, INT32])
def test_no_operand_is_modified(fmt: Format) -> None:
    x = Enclosure(values=np.arange(6, dtype=fmt.dtype).reshape(2, 3))
    index = Enclosure(values=np.array([[0], [2]]))
    x.values.flags.writeable = index.values.flags.writeable = False
    gather(x, index, fmt, axis=1)
    result = scatter(x, index, Enclosure(values=np.array(9, fmt.dtype)), fmt, axis=1)
    assert result.values.tolist() == [[9, 1, 2], [3, 4, 9]]
