"""Products of matrices: every order of their sums lies inside, and exact ones are certain."""

from __future__ import annotations

import math
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.devices.cube_model import WAYS, rounded, summed

from simulator.arithmetic import (
    ASSUME_CUBE_HF32,
    ASSUME_CUBE_RNE,
    DEFAULT,
    DOCUMENTED,
    Enclosure,
    Interval,
)
from simulator.arithmetic.cube import float_product, matmul, matrix_operand, matrix_product
from simulator.arithmetic.cube.float_product import last_bits
from simulator.arithmetic.reduction_order import NO_BITS
from simulator.arithmetic.trust import EXACT, Trust
from simulator.numbers import float_environment
from simulator.numbers.formats import BF16, FP16, FP32, INT8, INT16, INT32, FloatFormat, Format

FLOATS = (FP32, FP16, BF16)
SEEDS = st.integers(0, 2**32 - 1)
INF, NAN = np.float32(np.inf), np.float32(np.nan)


def exactly(values: np.ndarray) -> Enclosure:
    return Enclosure(values=values)


def between(values: np.ndarray, low: np.ndarray, high: np.ndarray, cause: int = 0) -> Enclosure:
    causes = np.full(values.shape, cause, np.uint16)
    interval = Interval(low=low, high=high, may_be_nan=None, cause=causes)
    return Enclosure(values=values, interval=interval)


def numbers(rng: np.random.Generator, fmt: FloatFormat, shape: tuple, kind: str) -> np.ndarray:
    """Arrays that sums are hard on."""
    if kind == "integers":
        x = rng.integers(-9, 10, shape).astype(np.float64)
    elif kind == "spread":
        reach = 10 if fmt is FP16 else 40
        x = rng.standard_normal(shape) * 2.0 ** rng.integers(-reach, 15, shape)
    elif kind == "tiny":
        x = rng.standard_normal(shape) * 2.0 ** rng.integers(-75, -50, shape)
    elif kind == "subnormal":
        x = rng.standard_normal(shape) * 2.0 ** rng.integers(fmt.emin - 3, fmt.emin + 3, shape)
    else:
        x = rng.standard_normal(shape)
        half = shape[-1] // 2
        x[..., half : 2 * half] = -x[..., :half] * (1 + rng.integers(0, 2, 1) * 2.0**-7)
    return x.astype(np.float32).astype(fmt.dtype)


@settings(deadline=None, max_examples=60)
@given(
    seed=SEEDS,
    fmt=st.sampled_from(FLOATS),
    kind=st.sampled_from(("integers", "spread", "tiny", "subnormal", "cancelling")),
    way=st.sampled_from(WAYS),
    has_bias=st.booleans(),
    truncates=st.booleans(),
    flushes=st.booleans(),
)
def test_every_order_lies_inside(
    seed: int,
    fmt: FloatFormat,
    kind: str,
    way: str,
    has_bias: bool,
    truncates: bool,
    flushes: bool,
) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = rng.integers(1, 4), rng.integers(1, 40), rng.integers(1, 4)
    a, b = numbers(rng, fmt, (m, k), kind), numbers(rng, fmt, (n, k), kind).T
    bias = numbers(rng, FP32, (1, n), kind) if has_bias else None
    trust = DEFAULT if truncates else DEFAULT.also(ASSUME_CUBE_RNE)
    found = matmul(
        exactly(a),
        exactly(b),
        fmt,
        bias=None if bias is None else exactly(bias),
        trust=trust,
    )
    device = np.empty((m, n), np.float32)
    add = partial(rounded, truncates=truncates, flushes=flushes)
    for i in range(m):
        for j in range(n):
            terms = [(float(x), float(y)) for x, y in zip(a[i], b[:, j], strict=True)]
            start = None if bias is None else float(bias[0, j])
            device[i, j] = float(summed(terms, start, Random(seed), way, add))
    held = found.interval
    if held is None:
        assert np.array_equal(found.values, device)
    else:
        assert held.may_be_nan is None
        assert held.contains(device, FP32).all()
        assert held.contains(found.values, FP32).all()


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, fmt=st.sampled_from(FLOATS), trusted=st.booleans())
def test_products_of_any_numbers_in_the_intervals_lie_inside(
    seed: int, fmt: FloatFormat, trusted: bool
) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = rng.integers(1, 4), rng.integers(1, 30), rng.integers(1, 4)

    def operand(shape: tuple) -> tuple[Enclosure, np.ndarray]:
        three = np.sort(numbers(rng, fmt, (3, *shape), "spread").astype(np.float64), axis=0)
        three[:, rng.random(shape) < 0.5] = three[1, rng.random(shape) < 2][0]
        low, middle, high = three.astype(np.float32).astype(fmt.dtype)
        return between(middle, low, high), rng.choice((low, middle, high))

    (a, of_a), (b, of_b), (bias, of_bias) = operand((m, k)), operand((k, n)), operand((1, n))
    bias = Enclosure(
        values=bias.values.astype(np.float32),
        interval=Interval(
            low=bias.low.astype(np.float32),
            high=bias.high.astype(np.float32),
            may_be_nan=None,
            cause=np.zeros((1, n), np.uint16),
        ),
    )
    found = matmul(a, b, fmt, bias=bias, trust=DEFAULT if trusted else DOCUMENTED)
    exact = of_a.astype(np.float64) @ of_b.astype(np.float64) + of_bias.astype(np.float64)
    assert found.interval is None or found.interval.contains(exact.astype(np.float32), FP32).all()


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, fmt=st.sampled_from(FLOATS))
def test_infinities_and_nan_lie_inside(seed: int, fmt: FloatFormat) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = rng.integers(1, 5), rng.integers(1, 12), rng.integers(1, 5)
    large = 60000.0 if fmt is FP16 else 2.0**63.5
    pool = np.array([0.0, -0.0, 1.0, -2.5, large, -large, np.inf, -np.inf, np.nan], np.float32)
    weights = np.array([4, 1, 8, 8, 2, 2, 0.6, 0.6, 0.3])
    a, b = (
        rng.choice(pool, shape, p=weights / weights.sum()).astype(fmt.dtype)
        for shape in ((m, k), (k, n))
    )
    found = matmul(exactly(a), exactly(b), fmt)
    order = rng.permutation(k)
    with np.errstate(all="ignore"):
        device = np.zeros((m, n), np.float32)
        for t in order:
            device += a[:, t, None].astype(np.float32) * b[None, t].astype(np.float32)
    held = found.interval or Interval(
        low=found.values, high=found.values, may_be_nan=None, cause=np.zeros((m, n), np.uint16)
    )
    assert held.contains(device, FP32).all()
    assert held.contains(found.values, FP32).all()


@pytest.mark.parametrize("fmt", FLOATS)
@pytest.mark.parametrize("trust", [DEFAULT, EXACT], ids=["default", "exact"])
def test_a_nan_that_may_be_in_one_row_opens_that_row_alone(fmt: FloatFormat, trust: Trust) -> None:
    values = np.array([[1, 2], [3, 4]], fmt.dtype)
    flags = np.array([[False, True], [False, False]])
    ends = Interval(low=values, high=values, may_be_nan=flags, cause=np.zeros((2, 2), np.uint16))
    a, b = Enclosure(values=values, interval=ends), exactly(np.ones_like(values))
    found = matmul(a, b, fmt, trust=trust)
    assert found.values.tolist() == [[3, 3], [7, 7]]
    assert found.interval is not None
    assert found.interval.certain().tolist() == [[False, False], [True, True]]


def one(a: list, b: list, fmt: FloatFormat = FP32, **more: object) -> Enclosure:
    return matmul(
        exactly(np.array([a], fmt.dtype)), exactly(np.array([b], fmt.dtype).T), fmt, **more
    )


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([INF, 1], [2, -3], INF),
        ([INF, -INF], [2, 3], NAN),
        ([INF, -INF], [2, -3], INF),
        ([INF, 1], [0, 1], NAN),
        ([NAN, 1], [0, 1], NAN),
        ([-1, -2], [0, 0], np.float32(0)),
        ([3, -3], [5, 5], np.float32(0)),
        ([0.5, 1024], [0.25, 3], np.float32(3072.125)),
    ],
)
def test_sums_that_every_order_gives(a: list, b: list, expected: np.float32) -> None:
    found = one(a, b)
    assert found.certain().all()
    assert found.values.view(np.uint32) == expected.view(np.uint32) or (
        np.isnan(expected) and found.values.view(np.uint32) == 0x7FFFFFFF
    )


@pytest.mark.parametrize("open_operand", ["a", "b", "bias"])
def test_values_are_those_of_exact_operands_though_an_end_is_infinite(open_operand: str) -> None:
    rng = np.random.default_rng(3)
    operands = {"a": (4, 8), "b": (8, 4), "bias": (1, 4)}
    held = {name: rng.integers(-9, 10, shape) for name, shape in operands.items()}
    exact = {name: exactly(values.astype(np.float32)) for name, values in held.items()}
    values = exact[open_operand].values
    low, high = values.copy(), values.copy()
    low[0, 1], high[0, 2] = -INF, INF
    opened = {**exact, open_operand: between(values, low, high)}
    expected, found = (
        matmul(each["a"], each["b"], FP32, bias=each["bias"]) for each in (exact, opened)
    )
    assert (found.values == expected.values).all()
    assert (found.low <= found.values).all()
    assert (found.values <= found.high).all()


def test_a_sum_that_may_overflow_can_be_anything() -> None:
    found = one([3e38, 3e38, -3e38], [1, 1, 1])
    held = found.interval
    assert held is not None
    assert (held.low[0, 0], held.high[0, 0]) == (-np.inf, np.inf)
    assert held.may_be_nan is not None
    assert held.may_be_nan.all()


def test_sums_of_24_bits_are_certain_and_of_25_are_not() -> None:
    assert one([2.0**23, 2.0**23], [1, 1]).certain().all()
    assert one([2.0**24 - 1, 1], [1, 1]).certain().all()
    assert not one([2.0**24 - 1, 2], [1, 1]).certain().all()


def test_multiples_of_a_subnormal_number_may_be_flushed() -> None:
    assert one([2.0**-63, 2.0**-62], [2.0**-63, 2.0**-63]).certain().all()
    assert not one([2.0**-64, 2.0**-62], [2.0**-63, 2.0**-63]).certain().all()


def test_a_bias_of_minus_zero_leaves_the_sign_of_zero_open() -> None:
    bias = exactly(np.array([[-0.0]], np.float32))
    held = one([-1.0], [0.0], bias=bias).interval
    assert held is not None
    assert [bool(np.signbit(end[0, 0])) for end in (held.low, held.high)] == [True, False]
    assert one([1.0], [2.0], bias=bias).certain().all()


def test_rounding_to_nearest_halves_the_bound() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 500), (500, 4)))
    widths = []
    for trust in (DEFAULT, DEFAULT.also(ASSUME_CUBE_RNE)):
        held = matmul(exactly(a), exactly(b), FP32, trust=trust).interval
        assert held is not None
        widths.append(held.high.astype(np.float64) - held.low)
    assert np.allclose(widths[0] / widths[1], 2, rtol=0.01)
    size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    assert (widths[0] >= 2 * 500 * 2.0**-23 * size * (1 - 1e-3)).all()


def test_hf32_rounds_what_is_multiplied_and_its_products_are_exact() -> None:
    a, b = [1 + 2.0**-12, 1 + 3 * 2.0**-12, -(1 + 2.0**-11)], [1, 1, 1 + 2.0**-23]
    trust = DEFAULT.also(ASSUME_CUBE_HF32)
    found = one(a, b, trust=trust)
    assert found.certain().all()
    assert found.values[0, 0] == 1 + (1 + 2.0**-10) - (1 + 2.0**-11)
    assert one([INF, 1], [1, 1], trust=trust).values[0, 0] == INF
    bias = exactly(np.array([[1 + 2.0**-23]], np.float32))
    assert one([0.0], [1], bias=bias, trust=trust).values[0, 0] == np.float32(1 + 2.0**-23)


def test_subnormal_operands_may_be_zero_where_nothing_is_assumed() -> None:
    assert one([2.0**-130], [2.0**100]).certain().all()
    held = one([2.0**-130], [2.0**100], trust=DOCUMENTED).interval
    assert held is not None
    assert held.low[0, 0] <= 0 < held.high[0, 0]


def test_the_cause_is_the_operands_where_it_adds_more() -> None:
    a = np.ones((2, 4), np.float32)
    wide = between(a, a - np.float32(0.5) * np.eye(2, 4, dtype=np.float32), a, cause=7)
    b = exactly(np.full((4, 3), 1.1, np.float32))
    held = matmul(wide, b, FP32, cause=9).interval
    assert held is not None
    assert (held.cause == 7).all()
    held = matmul(wide[:, 2:], b[2:], FP32, cause=9).interval
    assert held is not None
    assert (held.cause == 9).all()


def test_causes_meet_by_line() -> None:
    a, b = np.ones((2, 3), np.int8), np.ones((3, 2), np.int8)
    wide = between(a, a, a + np.array([[0, 1, 0], [0, 0, 0]], np.int8), cause=4)
    held = matmul(wide, exactly(b), INT8).interval
    assert held is not None
    assert held.certain().tolist() == [[False, False], [True, True]]
    assert (held.cause[0] == 4).all()
    other = between(b, b, b + np.array([[0, 0], [0, 0], [3, 0]], np.int8), cause=6)
    bias = np.zeros((1, 2), np.int32)
    open_bias = between(bias, bias, bias + np.array([0, 1], np.int32), cause=8)
    held = matmul(wide, other, INT8, bias=open_bias, cause=2).interval
    assert held is not None
    assert held.cause.tolist() == [[4, 4], [6, 8]]


@settings(deadline=None, max_examples=50)
@given(seed=SEEDS)
def test_integers_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = rng.integers(1, 6), int(rng.choice((1, 3, 1023, 1024, 1025, 3001))), 3
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
    if rng.random() < 0.3:
        a, b = (np.full_like(x, rng.choice((-128, 127))) for x in (a, b))
    bias = rng.integers(-(2**30), 2**30, (1, n), np.int32)
    found = matmul(exactly(a), exactly(b), INT8, bias=exactly(bias))
    assert found.interval is None
    assert np.array_equal(found.values, a.astype(np.int64) @ b.astype(np.int64) + bias)
    assert found.values.dtype == INT32.dtype


@settings(deadline=None, max_examples=50)
@given(seed=SEEDS)
def test_integer_intervals_are_the_hull(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 4))
    ends = np.sort(rng.integers(-128, 128, (2, 1, k), np.int8), axis=0)
    other = np.sort(rng.integers(-128, 128, (2, k, 1), np.int8), axis=0)
    if rng.random() < 0.5:
        other[1] = other[0]
    found = matmul(between(ends[0], ends[0], ends[1]), between(other[0], other[0], other[1]), INT8)
    corners = [
        sorted(int(x) * int(y) for x in ends[:, 0, t] for y in other[:, t, 0]) for t in range(k)
    ]
    low, high = sum(c[0] for c in corners), sum(c[-1] for c in corners)
    held_low, held_high = int(found.low[0, 0]), int(found.high[0, 0])
    assert held_low <= low <= high <= held_high
    if np.array_equal(other[0], other[1]):
        assert (held_low, held_high) == (low, high)


def test_integers_beyond_31_bits_are_unknown() -> None:
    a = np.full((1, 131072), -128, np.int8)
    found = matmul(exactly(a), exactly(a.T), INT8)
    assert (int(found.low[0, 0]), int(found.high[0, 0])) == (INT32.min, INT32.max)
    assert found.values[0, 0] == INT32.min
    assert matmul(exactly(a[:, 1:]), exactly(a.T[1:]), INT8).interval is None
    bias = exactly(np.array([[INT32.max]], np.int32))
    assert not matmul(exactly(a[:, :1]), exactly(a.T[:1]), INT8, bias=bias).certain().any()
    zeros = np.zeros_like(a)
    assert matmul(exactly(zeros), exactly(a.T), INT8, bias=bias).certain().all()


def test_batches_broadcast_and_blocks_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    a = rng.integers(-9, 9, (2, 1, 5, 6)).astype(np.float32)
    b = rng.integers(-9, 9, (3, 6, 7)).astype(np.float32)
    a[0, 0, 4, 0] = 0.1
    expected = a @ b
    whole = matmul(exactly(a), exactly(b), FP32)
    assert np.array_equal(whole.values[:, :, :4], expected[:, :, :4])
    assert whole.certain()[:, :, :4].all()
    monkeypatch.setattr("simulator.arithmetic.cube.float_product.BLOCK_ELEMS", 12)
    cut = matmul(exactly(a), exactly(b), FP32)
    for one_end, other in ((whole.low, cut.low), (whole.high, cut.high)):
        assert np.array_equal(one_end, other)
    integers = [exactly(x.astype(np.int8)) for x in (a, b)]
    assert np.array_equal(matmul(*integers, INT8).values, np.trunc(a) @ b)


@given(st.floats(width=64, allow_nan=False, allow_infinity=False))
def test_last_bits(x: float) -> None:
    found = int(last_bits(np.array([[x]]), 0)[0])
    if x == 0:
        assert found == NO_BITS
    else:
        assert math.ldexp(x, -found) % 2 == 1 if abs(found) < 1000 else True


def test_what_is_refused() -> None:
    x = exactly(np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"not \[2, 3\] and \[2, 3\]"):
        matmul(x, x, FP32)
    with pytest.raises(ValueError, match=r"matmul takes INT8.*not INT16"):
        matmul(x, x, INT16)
    with pytest.raises(ValueError, match="dtype float32, not int8"):
        matmul(x, x, INT8)


@pytest.mark.parametrize("fmt", [BF16, FP16], ids=str)
def test_every_code_of_16_bits_widens_and_tells_what_is_not_finite(fmt: FloatFormat) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    with float_environment.quiet():  # NaN that signal
        expected = codes.view(fmt.dtype).astype(np.float64)
        found = matrix_operand._in_float64(codes.view(fmt.dtype).reshape(2, -1), fmt, False)
    found = found.reshape(-1)
    is_number = ~np.isnan(expected)
    same = found.view(np.uint64) == expected.view(np.uint64)
    assert np.array_equal(np.isnan(found), ~is_number)
    assert same[is_number].all()
    finite = [
        matrix_operand._are_codes_finite(x, fmt) for x in codes.view(fmt.dtype).reshape(-1, 1)
    ]
    assert np.array_equal(finite, np.isfinite(expected))
    assert matrix_operand._are_codes_finite(codes[:0].view(fmt.dtype), fmt)


def test_pieces_of_a_wide_matrix_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.arange(0x3F80, 0x3F80 + 35, dtype=np.uint16).view(BF16.dtype).reshape(5, 7)
    monkeypatch.setattr(matrix_operand, "_PIECE_ELEMS", 8)
    assert np.array_equal(matrix_operand._wide_bf16(codes), codes.astype(np.float64))


# --- Nothing that is not asked for ---------------------------------------------------------------


def refuse(*_: object) -> None:
    pytest.fail("a bound is computed that nobody asked for")


@pytest.mark.parametrize("fmt", [FP16, FP32, INT8], ids=str)
def test_values_alone_need_no_bounds(fmt: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough terms for INT8 that its sums might wrap."""
    for name in ("last_bits", "_inward"):
        monkeypatch.setattr(float_product, name, refuse)
    monkeypatch.setattr(float_product._Block, "_is_exact", refuse)
    monkeypatch.setattr(matrix_product, "_magnitude", refuse)
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, shape).astype(fmt.dtype) for shape in ((2, 1 << 18), (1 << 18, 2)))
    found = matmul(Enclosure(values=a), Enclosure(values=b), fmt, trust=EXACT)
    assert found.interval is None
    np.testing.assert_array_equal(found.values, a.astype(np.int64) @ b.astype(np.int64))


def test_few_open_integers_are_added_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the products of whole matrices have it, none of which is computed."""
    rng = np.random.default_rng(6)

    def partly_open(shape: tuple[int, int]) -> Enclosure:
        values = rng.integers(-128, 128, shape).astype(np.int8)
        low, high = values.copy(), values.copy()
        at = rng.random(shape) < 0.003
        low[at] = np.maximum(values[at].astype(int) - rng.integers(0, 9, at.sum()), -128)
        high[at] = np.minimum(values[at].astype(int) + rng.integers(0, 9, at.sum()), 127)
        cause = np.full(shape, 3, np.uint16)
        interval = Interval(low=low, high=high, may_be_nan=None, cause=cause)
        return Enclosure(values=values, interval=interval)

    a, b = partly_open((90, 300)), partly_open((300, 70))
    with monkeypatch.context() as patched:
        patched.setattr(matrix_product, "_SPARSE", 1 << 40)
        wanted = matmul(a, b, INT8)
    monkeypatch.setattr(matrix_product, "_dense", refuse)
    monkeypatch.setattr(matrix_product, "BLOCK_ELEMS", 700)
    found = matmul(a, b, INT8)
    assert wanted.interval is not None
    assert found.interval is not None
    np.testing.assert_array_equal(found.low, wanted.low)
    np.testing.assert_array_equal(found.high, wanted.high)
    assert not found.certain().all()
