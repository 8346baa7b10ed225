"""Ends of products of matrices: the native pass, numpy's and the one with a product less agree."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Final

import numpy as np
import pytest
from support.arithmetic.native_executor import at

from simulator.arithmetic.cube import float_product, matmul, product_blocks
from simulator.arithmetic.cube.matrix_operand import Scratch
from simulator.arithmetic.cube.product_blocks import ProductBlocks
from simulator.arithmetic.evaluation import evaluate
from simulator.arithmetic.interval import Enclosure, Interval
from simulator.arithmetic.native import executor_library, product_bounds
from simulator.arithmetic.native.executor_library import Executor, find
from simulator.arithmetic.native.operation_nodes import deferring
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.trust import (
    ASSUME_CUBE_HF32,
    ASSUME_CUBE_RNE,
    ASSUME_GRADUAL_UNDERFLOW,
    DEFAULT,
    DOCUMENTED,
    NAMING_CHOICES,
    Trust,
)
from simulator.numbers.formats import FP32

Array = np.ndarray[Any, np.dtype[Any]]
_TRUSTS: Final = (
    *(DEFAULT, DOCUMENTED, NAMING_CHOICES),
    *(DEFAULT.also(each) for each in (ASSUME_CUBE_RNE, ASSUME_CUBE_HF32)),
)
_SPECIALS: Final = (np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-40, -1e-42, 3e38, 2.0**-126)
_WIDTHS: Final = ("none", "one", "many", "any", "few", "infinite", "nan")


both_engines = pytest.mark.parametrize("engine", ["auto", "numpy"])


def numbers(random: np.random.Generator, shape: tuple[int, ...], kind: str) -> Array:
    """Numbers as kernels have them, and those that need care."""
    x = random.standard_normal(shape).astype(np.float32)
    if kind == "integers":
        return np.round(4 * x)
    if kind == "all magnitudes":
        return np.ldexp(x, random.integers(-140, 60, shape)).astype(np.float32)
    if kind == "special":
        for each in _SPECIALS:
            x[random.random(shape) < 0.004] = each
    return x


def opened(random: np.random.Generator, x: Array, width: str) -> Enclosure:
    """Numbers with ends some codes away: the same everywhere, any, or of few elements."""
    if width == "none":
        return Enclosure(values=x)
    steps = {"one": 1, "many": 4000}.get(width)
    if steps is None:
        below, above = (random.integers(0, 300, x.shape) for _ in range(2))
        if width == "few":
            below, above = (each * (random.random(x.shape) < 0.03) for each in (below, above))
    else:
        below = above = np.full(x.shape, steps)
    codes = x.view(np.int32).astype(np.int64)
    magnitude = codes & 0x7FFFFFFF
    moves = (magnitude > 4000) & (magnitude < 0x7E000000)
    sign = np.where(codes < 0, -1, 1)
    low, high = (
        np.where(moves, codes + sign * step, codes).astype(np.int32).view(np.float32)
        for step in (-below, above)
    )
    low, high = np.minimum(low, high), np.maximum(low, high)
    if width == "infinite":
        high = np.where(random.random(x.shape) < 0.001, np.float32(np.inf), high)
    flags = random.random(x.shape) < 0.001 if width == "nan" else None
    cause = random.integers(1, 9, x.shape).astype(np.uint16)
    if width in ("one", "infinite"):
        cause = np.broadcast_to(np.uint16(7), x.shape)
    return Enclosure(values=x, interval=Interval(low=low, high=high, may_be_nan=flags, cause=cause))


def bits(x: Enclosure) -> list[bytes]:
    """Everything that is known of a product."""
    if x.interval is None:
        return [x.values.tobytes()]
    ends = x.interval
    flags = np.zeros(x.shape, np.bool_) if ends.may_be_nan is None else ends.may_be_nan
    return [
        np.ascontiguousarray(each).tobytes()
        for each in (x.values, ends.low, ends.high, flags, ends.cause)
    ]


@pytest.mark.parametrize("kind", ["normal", "integers", "all magnitudes", "special"])
@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_engines_and_ways_give_the_same_bits(
    level: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = at(level)
    monkeypatch.setattr(executor_library, "find", lambda: executor)
    random = np.random.default_rng(3)
    for (left, right), trust in itertools.product(
        [*((width, "none") for width in _WIDTHS), ("none", "any"), ("many", "few")], _TRUSTS
    ):
        a = opened(random, numbers(random, (2, 23, 40), kind), left)
        b = opened(random, numbers(random, (2, 40, 19), kind), right)

        def product(engine: Any, a: Enclosure = a, b: Enclosure = b, t: Trust = trust) -> Enclosure:
            return matmul(a, b, FP32, trust=t, cause=0 if t.names_choices else 3, engine=engine)

        found = bits(product("auto"))
        assert bits(product("numpy")) == found, (left, right, trust.name)
        with monkeypatch.context() as patch:  # all products of magnitudes
            patch.setattr(float_product._Block, "_put_weighed", lambda *_: False)
            assert bits(product("numpy")) == found, (left, right, trust.name)


@pytest.mark.parametrize("width", ["one", "many"])
def test_rows_with_one_side_take_a_product_less(
    width: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    a = opened(random, numbers(random, (600, 64), "normal"), width)
    b = Enclosure(values=numbers(random, (64, 512), "normal"))
    multiplied: list[str] = []
    product = Scratch.product

    def counted(self: Scratch, name: str, *matrices: Any) -> Any:
        multiplied.append(name)
        return product(self, name, *matrices)

    monkeypatch.setattr(Scratch, "product", counted)
    found = matmul(a, b, FP32, cause=3)
    assert multiplied == ["products", "sizes", "middles"]
    assert found.interval is not None
    assert a.interval is not None
    mine = np.full((600, 512), 3)
    theirs = np.broadcast_to(found.interval.cause, mine.shape)
    assert (theirs == mine).all() == (width == "one")


def rows_of_one_side(shape: tuple[int, int], scale: float = 1.0) -> Enclosure:
    """Open rows that are weighed, beside a matrix that adds nothing by itself."""
    random = np.random.default_rng(11)
    x = np.float32(scale) * (1 + random.random(shape, np.float32))
    return opened(random, x, "many")


def with_another_way(
    monkeypatch: pytest.MonkeyPatch, a: Enclosure, b: Array, engine: Any, **given: Any
) -> Enclosure:
    """The product, once it is that of all products of magnitudes, too."""

    def product() -> Enclosure:
        return matmul(a, Enclosure(values=b), FP32, cause=3, engine=engine, **given)

    found = product()
    with monkeypatch.context() as patch:
        patch.setattr(float_product._Block, "_put_weighed", lambda *_: False)
        assert bits(product()) == bits(found)
    return found


@both_engines
def test_subnormal_numbers_that_may_be_flushed_add_to_a_sum(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = np.full((5, 3), 1e-39, np.float32)
    trust = DEFAULT.without(ASSUME_GRADUAL_UNDERFLOW)
    found = with_another_way(monkeypatch, rows_of_one_side((4, 5), 2.0**60), b, engine, trust=trust)
    assert (found.low <= 0).all()
    assert (found.high > 1e-21).all()


@both_engines
def test_open_rows_start_at_the_bias(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    b, bias = np.ones((5, 3), np.float32), np.float32([[1e3, 2e3, 3e3]])
    a = rows_of_one_side((4, 5))
    found = with_another_way(monkeypatch, a, b, engine, bias=Enclosure(values=bias))
    assert (np.abs(found.values - bias) <= 10).all()
    assert (np.abs(found.low - bias) <= 10).all()


@both_engines
@pytest.mark.parametrize("strange", [np.inf, np.nan])
def test_columns_with_infinity_or_nan_stay_so(
    strange: float, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = np.ones((5, 3), np.float32)
    b[2, 1] = strange
    found = with_another_way(monkeypatch, rows_of_one_side((4, 5)), b, engine)
    assert np.isfinite(found.values).all(axis=0).tolist() == [True, False, True]


@both_engines
def test_sums_that_may_overflow_may_be_anything(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = np.ones((20, 3), np.float32)
    b[:, 1] = -1
    found = with_another_way(monkeypatch, rows_of_one_side((4, 20), 2e37), b, engine)
    assert found.interval is not None
    assert found.interval.may_be_nan is not None
    assert found.interval.may_be_nan.all()
    assert (found.low == -np.inf).all()
    assert (found.high == np.inf).all()


@both_engines
def test_sums_near_the_underflow_are_open_by_it(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = np.full((5, 3), 2.0**-70, np.float32)
    found = with_another_way(monkeypatch, rows_of_one_side((4, 5), 2.0**-50), b, engine)
    assert found.interval is not None
    assert (found.interval.cause == 3).all()


def test_a_weighed_block_that_needs_care_is_not_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    at("baseline")
    a, b = rows_of_one_side((4, 5)), Enclosure(values=np.ones((5, 3), np.float32))
    expected = bits(matmul(a, b, FP32, cause=3, engine="numpy"))
    monkeypatch.setattr(product_bounds, "bound", lambda *_, **__: None)
    assert bits(matmul(a, b, FP32, cause=3)) == expected


@both_engines
@pytest.mark.parametrize("is_open_first", [False, True])
def test_open_and_certain_blocks_are_those_of_the_whole(
    is_open_first: bool, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = np.full((8, 6), 3, np.float32)
    a[:4] += np.float32(2.0**-20)
    a = a if is_open_first else a[::-1].copy()
    factors = Enclosure(values=a), Enclosure(values=np.full((6, 5), 2 + 2.0**-8, np.float32))
    whole = matmul(*factors, FP32, cause=3, engine=engine)
    assert whole.interval is not None
    is_certain = whole.interval.certain().all(axis=1)
    assert is_certain.tolist() == [each == 3 for each in a[:, 0]]
    monkeypatch.setattr(float_product, "BLOCK_ELEMS", 24)
    monkeypatch.setattr(
        product_blocks, "_room", lambda shape, dtype: np.full(shape, 77).astype(dtype)
    )
    found = matmul(*factors, FP32, cause=3, engine=engine)
    for name in ("values", "low", "high"):
        assert getattr(found, name).tobytes() == getattr(whole, name).tobytes()
    assert found.interval is not None
    assert found.interval.cause[:, 0].tolist() == [0 if each else 3 for each in is_certain]


def test_blocks_of_rows_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)
    a = opened(random, numbers(random, (70, 33), "normal"), "any")
    b = Enclosure(values=numbers(random, (33, 20), "normal"))
    whole = bits(matmul(a, b, FP32, cause=3))
    monkeypatch.setattr(float_product, "_CACHED_ELEMS", 1)
    monkeypatch.setattr(float_product, "_CACHED_ROWS", 16)
    assert bits(matmul(a, b, FP32, cause=3)) == whole


def test_the_native_pass_runs_where_nothing_needs_care(monkeypatch: pytest.MonkeyPatch) -> None:
    if not isinstance(find(), Executor):
        pytest.skip("the native executor is not installed")
    calls: list[bool | None] = []
    bound = product_bounds.bound

    def counted(*given: Any, **named: Any) -> bool | None:
        calls.append(bound(*given, **named))
        return calls[-1]

    monkeypatch.setattr(product_bounds, "bound", counted)
    random = np.random.default_rng(9)
    x = Enclosure(values=numbers(random, (5, 5), "normal"))
    most = Enclosure(values=np.full((5, 5), 3e38, np.float32))
    for a, expected in ((x, [True]), (most, [None])):
        calls.clear()
        matmul(a, most if a is most else x, FP32)
        assert calls == expected


def test_blocks_keep_one_cause_until_they_differ() -> None:
    blocks = ProductBlocks((3, 2), np.dtype(np.float32))
    for row, cause in enumerate((4, 4, 5)):
        ends = Interval(
            low=np.zeros(2, np.float32),
            high=np.ones(2, np.float32),
            may_be_nan=None,
            cause=np.broadcast_to(np.uint16(cause), 2),
        )
        blocks.put((row,), Enclosure(values=ends.low, interval=ends))
        found = blocks.enclosure().interval
        assert found is not None
        assert any(found.cause.strides) == (row == 2)
    assert found.cause.tolist() == [[4, 4], [4, 4], [5, 5]]


def test_ends_are_filled_where_blocks_are_written_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fills = itertools.count(1)
    monkeypatch.setattr(
        product_blocks, "_room", lambda shape, dtype: np.full(shape, next(fills)).astype(dtype)
    )
    for settles in (False, True):
        blocks = ProductBlocks((3, 2), np.dtype(np.float32))
        if settles:
            blocks.settle((0,))
        low, high = blocks.ends_at((1,))
        assert ((low == high) & (low == blocks.values[1])).all() == settles


def test_results_that_a_later_program_computes_give_up_their_operands() -> None:
    at("baseline")
    x = Enclosure(values=np.ones((64, 4096), np.float32))
    with deferring():
        power = evaluate(OPERATIONS["exp"], (x,), FP32)
        middle = evaluate(OPERATIONS["neg"], (power,), FP32)
        held = evaluate(OPERATIONS["exp"], (middle,), FP32)
        last = evaluate(OPERATIONS["add"], (held, held), FP32)
        is_open = middle.openness
        operand = weakref.ref(x.values)
        del x, power, middle
        assert operand() is not None
        assert last.interval is not None
        assert operand() is None
        assert is_open()
    assert held.interval is not None
