"""prod, cumprod, expand_exp_dif, axpy_ and index_add: orders, bits, ends and refusals.

The references are written with numpy and fractions from the instructions, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pypto_cast as pypto
from simulator.arithmetic.interval import Enclosure
from simulator.arithmetic.product_bound import any_product
from simulator.arithmetic.trust import ASSUME_SUM_ORDER, DEFAULT
from simulator.numbers.formats import FP32

Array = np.ndarray[Any, Any]
F = np.float32
RNG = np.random.default_rng


@pytest.fixture(autouse=True)
def tile() -> Iterator[None]:
    with pypto.options(vec_tile_shapes=(8, 64)), np.errstate(all="ignore"):
        yield


def row_product(row: Array, lanes: int) -> Any:
    """Blocks of lanes one after another onto ones, then the lanes from the first to the last."""
    held = np.ones(lanes, row.dtype)
    for start in range(0, row.size, lanes):
        part = row[start : start + lanes]
        held[: part.size] = held[: part.size] * part
    found = held[0]
    for lane in held[1:]:
        found = (found * lane).astype(row.dtype) if row.dtype.kind == "i" else found * lane
    return found


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 16, 37, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int16])
def test_a_product_of_rows_takes_the_instructions_order(length: int, dtype: Any) -> None:
    x = RNG(length).normal(0, 40, (8, length)).astype(dtype)
    found = pypto.prod(pypto.from_numpy(x), -1).numpy()
    lanes = 32 // x.itemsize
    assert_array_equal(found, np.array([row_product(row, lanes) for row in x], dtype))


def test_a_product_of_columns_goes_row_by_row() -> None:
    x = RNG(1).normal(0, 2, (7, 33)).astype(F)
    expected = x[0]
    for row in x[1:]:
        expected = expected * row
    assert_array_equal(pypto.prod(pypto.from_numpy(x), 0).numpy(), expected)


def test_tiles_are_multiplied_in_pairs_before() -> None:
    x = RNG(2).normal(0, 2, (2, 48)).astype(F)
    with pypto.options(vec_tile_shapes=(2, 16)):
        found = pypto.prod(pypto.from_numpy(x), -1).numpy()
    joined = (x[:, :16] * x[:, 16:32]) * x[:, 32:]
    assert_array_equal(found, np.array([row_product(row, 8) for row in joined]))


@pytest.mark.parametrize("axis", [0, 1])
def test_running_products_double_their_distance(axis: int) -> None:
    x = RNG(3).normal(0, 2, (8, 37)).astype(F)
    x[2, 3] = -0.0
    held = x.T if axis == 0 else x
    found = held.copy()
    distance = 1
    while distance < held.shape[1]:
        total = held[:, :-distance] * held[:, distance:]
        found = np.concatenate([found[:, :distance], total], 1)
        held = np.concatenate([held[:, :distance], total + F(0)], 1)
        distance *= 2
    expected = found.T if axis == 0 else found
    result = pypto.cumprod(pypto.from_numpy(x), axis).numpy()
    assert_array_equal(result.view(np.int32), expected.view(np.int32))


def any_order(row: Array, random: np.random.Generator) -> Any:
    held = [row[k] for k in random.permutation(row.size)]
    while len(held) > 1:
        k = int(random.integers(0, len(held) - 1))
        held[k : k + 2] = [held[k] * held[k + 1]]
    return held[0]


@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e9])
@pytest.mark.parametrize("running", [False, True])
def test_another_order_stays_within_the_ends(scale: float, running: bool) -> None:
    random = RNG(4)
    x = (random.normal(0, 1, (8, 24)) * scale).astype(F)
    x[0, :], x[1, 5], x[2, 7] = random.choice([1.0, -2.0, 0.5], 24), 0.0, np.inf
    tensor = pypto.from_numpy(x)
    with pypto.options(trust="documented"):
        found = (pypto.cumprod if running else pypto.prod)(tensor, 1).enclosure()
    assert found is not None
    assert found.interval is not None
    for _ in range(20):
        for k, row in enumerate(x):
            other = any_order(row, random)
            place = (k, -1) if running else (k,)
            low, high = found.low[place], found.high[place]
            flags = found.interval.may_be_nan
            may_be_nan = flags is not None and bool(flags[place])
            inside = low <= other <= high
            assert inside or (np.isnan(other) and (may_be_nan or np.isnan(low))), (scale, k, other)


def test_products_without_a_rounding_are_certain_in_any_order() -> None:
    x = np.array([[1, -2, 4, 0.5], [3, 5, 7, 9], [1e30, 1e30, 0, 1]], F)
    with pypto.options(trust="documented"):
        found = pypto.prod(pypto.from_numpy(x), 1).enclosure()
    assert found is not None
    assert_array_equal(found.values[:2], np.array([-4, 945], F))
    assert_array_equal(found.certain(), [True, True, False])  # 1e30 * 1e30 may come first


@pytest.mark.parametrize("running", [False, True])
def test_products_are_certain_in_any_order_where_the_odd_part_fits(running: bool) -> None:
    x = RNG(6).integers(1, 40, (400, 6)).astype(F) * F(0.25)
    ordered = np.cumprod(x, 1)[:, None if running else -1 :]
    trust = DEFAULT.without(ASSUME_SUM_ORDER)
    given, product = Enclosure(values=x), Enclosure(values=ordered)
    found = any_product(given, product, FP32, 1, trust, 0, is_running=running)
    fits = np.zeros(ordered.shape, np.bool_)
    for row, place in np.ndindex(ordered.shape):
        count = place + 1 if running else x.shape[1]
        whole = math.prod(int(4 * each) for each in x[row, :count])
        fits[row, place] = count <= 2 or whole // (whole & -whole) < 2**24
    assert_array_equal(found.certain(), fits)
    assert 0.2 < fits.mean() < 0.99


def test_the_difference_is_rounded_before_its_power() -> None:
    x = RNG(5).normal(0, 3, (8, 40)).astype(np.float16)
    y = x.max(1, keepdims=True)
    found = pypto.expand_exp_dif(pypto.from_numpy(x), pypto.from_numpy(y)).numpy()
    difference = (x - y).astype(np.float64)
    assert_array_equal(found, np.exp(difference).astype(np.float16))


@pytest.mark.parametrize("alpha", [2.0, 0.3, -1.7e-3])
def test_axpy_gives_both_roundings_and_holds_the_one_of_a_fused_sum(alpha: float) -> None:
    x, y = RNG(6).normal(0, 1, (2, 4, 16)).astype(F)
    y[0] = -(x[0] * F(alpha))  # the product's rounding error alone is left

    @pypto.jit
    def kernel(
        x: pypto.Tensor[[4, 16], pypto.DT_FP32],
        y: pypto.Tensor[[4, 16], pypto.DT_FP32],
        out: pypto.Tensor[[4, 16], pypto.DT_FP32],
    ) -> None:
        pypto.set_vec_tile_shapes(4, 16)
        out[:] = y
        out.axpy_(x, alpha)

    out = np.zeros((4, 16), F)
    kernel(x, y, out)
    assert_array_equal(out, F(alpha) * x + y)
    found = kernel.certainty(x, y, np.zeros((4, 16), F))["out"]
    exact = [
        Fraction(float(F(alpha))) * Fraction(float(a)) + Fraction(float(b))
        for a, b in zip(x.ravel(), y.ravel(), strict=True)
    ]
    fused = np.array([rounded(each) for each in exact], F).reshape(x.shape)
    assert found.contains(fused).all()
    assert_array_equal(found.certain & (fused != out), False)
    assert (fused != out).any() or alpha == 2.0


def rounded(exact: Fraction) -> np.float32:
    """The nearest FP32 number; float64 of a fraction is the nearest, and is looked at around."""
    near = np.float32(float(exact))
    around = (np.nextafter(near, F(-np.inf)), near, np.nextafter(near, F(np.inf)))
    ranked = sorted(
        around, key=lambda each: (abs(Fraction(float(each)) - exact), int(each.view(np.int32)) & 1)
    )
    return ranked[0]


@pytest.mark.parametrize("name", ["index_add", "index_add_ub"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int16])
@pytest.mark.parametrize("alpha", [1, 3])
def test_terms_are_added_in_the_order_of_the_index(
    name: str, axis: int, dtype: Any, alpha: int
) -> None:
    random = RNG(7)
    x, terms = (random.normal(0, 9000, shape).astype(dtype) for shape in ((5, 6), (5, 6)))
    where = np.array([3, 0, 3, 1, 4, 3][: terms.shape[axis]], np.int32)
    expected = x.copy()
    for place, index in enumerate(where):
        line = np.take(terms, place, axis) * dtype(alpha)
        if axis == 0:
            expected[index] = expected[index] + line
        else:
            expected[:, index] = expected[:, index] + line
    function = getattr(pypto, name)
    given = [pypto.from_numpy(each) for each in (x, where, terms)]
    found = function(given[0], axis, given[1], given[2], alpha=alpha)
    assert_array_equal(found.numpy(), expected)
    assert_array_equal(given[0].numpy(), x)


def test_int8_wraps_in_memory_and_clamps_in_release_0_2_0() -> None:
    x, terms = np.full((1, 4), 100, np.int8), np.full((2, 4), 60, np.int8)
    given = [pypto.from_numpy(each) for each in (x, np.zeros(2, np.int32), terms)]
    assert_array_equal(pypto.index_add(given[0], 0, *given[1:]).numpy(), np.int8(-36))
    with pypto.options(release="0.2.0"):
        assert_array_equal(pypto.index_add(given[0], 0, *given[1:]).numpy(), np.int8(127))


@pytest.mark.parametrize("where", [np.int32, np.int64])
def test_fp16_is_rounded_after_each_step_in_ub_but_for_int64_indices(where: Any) -> None:
    x, terms = np.full((1, 4), 2048, np.float16), np.ones((4, 4), np.float16)
    given = [pypto.from_numpy(each) for each in (x, np.zeros(4, where), terms)]
    steps, whole = np.float16(2048), np.float16(2052)
    expected = whole if where is np.int64 else steps
    assert_array_equal(pypto.index_add_ub(given[0], 0, *given[1:]).numpy(), expected)
    assert_array_equal(pypto.index_add(given[0], 0, *given[1:]).numpy(), whole)


def _t(values: Any, dtype: Any = np.float32) -> Any:
    return pypto.from_numpy(np.asarray(values, dtype))


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (TypeError, "prod takes", lambda: pypto.prod(_t([[1]], np.float16), 0)),
        (ValueError, "dimension 2", lambda: pypto.prod(_t([[1.0]]), 2)),
        (TypeError, "keepdim", lambda: pypto.prod(_t([[1.0]]), 0, 1)),
        (TypeError, "cumprod takes", lambda: pypto.cumprod(_t([[1]], np.int32), 0)),
        (ValueError, "dimension -3", lambda: pypto.cumprod(_t([[1.0]]), -3)),
        (TypeError, "one dtype", lambda: pypto.expand_exp_dif(_t([1.0]), _t([1], np.float16))),
        (
            ValueError,
            "do not broadcast",
            lambda: pypto.expand_exp_dif(_t(np.ones((2, 3))), _t(np.ones((2, 2)))),
        ),
        (
            IndexError,
            "index 2 at",
            lambda: pypto.index_add(_t([[1.0]] * 2), 0, _t([2], np.int32), _t([[1.0]])),
        ),
        (
            IndexError,
            "index -1 at",
            lambda: pypto.index_add_ub(_t([[1.0]] * 2), 0, _t([-1], np.int32), _t([[1.0]])),
        ),
        (
            TypeError,
            "index_add takes DT_INT32",
            lambda: pypto.index_add(_t([[1.0]] * 2), 0, _t([np.nan]), _t([[1.0]])),
        ),
        (
            ValueError,
            "takes indices",
            lambda: pypto.index_add(_t([[1.0]] * 2), 0, _t([0, 1], np.int32), _t([[1.0]])),
        ),
        (
            OverflowError,
            "40000",
            lambda: pypto.index_add(
                _t([[1]], np.int16), 0, _t([0], np.int32), _t([[1]], np.int16), alpha=40000
            ),
        ),
        (
            OverflowError,
            "inf",
            lambda: pypto.index_add(_t([[1.0]]), 0, _t([0], np.int32), _t([[1.0]]), alpha=np.inf),
        ),
        (
            TypeError,
            "alpha",
            lambda: pypto.index_add(_t([[1.0]]), 0, _t([0], np.int32), _t([[1.0]]), alpha="1"),
        ),
        (TypeError, "axpy_ takes", lambda: pypto.axpy_(_t([1], np.int32), _t([1], np.int32))),
        (TypeError, "one dtype", lambda: pypto.axpy_(_t([1], np.float16), _t([1.0]))),
        (ValueError, "does not broadcast", lambda: pypto.axpy_(_t([1.0]), _t([1.0, 2.0]))),
        (OverflowError, "nan", lambda: pypto.axpy_(_t([1.0]), _t([1.0]), np.nan)),
    ],
)
def test_bad_operands_are_refused_in_one_error(
    error: type[Exception], text: str, call: Callable[[], object]
) -> None:
    with pytest.raises(error, match=text):
        call()


def test_a_refused_addition_leaves_the_output_as_it_was() -> None:
    @pypto.jit
    def kernel(
        x: pypto.Tensor[[2, 4], pypto.DT_FP32],
        at: pypto.Tensor[[2], pypto.DT_INT32],
        out: pypto.Tensor[[2, 4], pypto.DT_FP32],
    ) -> None:
        pypto.set_vec_tile_shapes(2, 8)
        out.index_add_(0, at, x)

    out = np.full((2, 4), 7, F)
    with pytest.raises(IndexError, match="index 5"):
        kernel(np.ones((2, 4), F), np.array([0, 5], np.int32), out)
    assert_array_equal(out, 7)


@pytest.mark.parametrize("name", ["triu", "tril"])
def test_triangles_in_place_are_those_of_the_function(name: str) -> None:
    x = RNG(8).normal(0, 1, (3, 5)).astype(F)
    tensor = pypto.from_numpy(x.copy())
    expected = getattr(pypto, name)(pypto.from_numpy(x), 1).numpy()

    @pypto.jit
    def kernel(
        x: pypto.Tensor[[3, 5], pypto.DT_FP32], out: pypto.Tensor[[3, 5], pypto.DT_FP32]
    ) -> None:
        pypto.set_vec_tile_shapes(3, 8)
        held = x * 1.0
        assert getattr(held, f"{name}_")(1) is held
        out[:] = held

    out = np.zeros((3, 5), F)
    kernel(tensor.numpy(), out)
    assert_array_equal(out, expected)
