"""Values of the operations, against numpy's float64 and exact integers, code by code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.tensors.tensor import Tensor

BF16 = np.dtype(ml_dtypes.bfloat16)
CODES = {1: np.uint8, 2: np.uint16, 4: np.uint32}


@pytest.fixture(autouse=True)
def tile() -> Iterator[None]:
    with pypto.options(vec_tile_shapes=(8, 64)):
        yield


def codes(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(CODES[values.dtype.itemsize])


def numbers(dtype: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((8, 64)) * 4).astype(np.float32).astype(dtype)


def rounded(exact: np.ndarray, dtype: Any) -> np.ndarray:
    """By way of FP32, where the operations of both 16-bit formats run (or could)."""
    return exact.astype(np.float32).astype(dtype)


BINARY: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16], ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary_operations(name: str, dtype: Any) -> None:
    a, b = numbers(dtype, 1), numbers(dtype, 2)
    result = getattr(pypto, name)(pypto.from_numpy(a), pypto.from_numpy(b))
    exact = BINARY[name](a.astype(np.float64), b.astype(np.float64))
    assert (codes(result.numpy()) == codes(rounded(exact, dtype))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16], ids=str)
def test_quotients(dtype: Any) -> None:
    a, b = numbers(dtype, 1), numbers(dtype, 2)
    result = pypto.from_numpy(a) / pypto.from_numpy(b)
    exact = a.astype(np.float64) / b.astype(np.float64)
    assert (codes(result.numpy()) == codes(rounded(exact, dtype))).all()


UNARY: dict[str, Callable[..., np.ndarray]] = {
    "abs": np.abs,
    "neg": np.negative,
    "relu": lambda x: np.maximum(x, 0.0),
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "reciprocal": lambda x: 1.0 / x,
    "round": lambda x: np.rint(x) + 0.0,
    "floor": lambda x: np.floor(x) + 0.0,
    "ceil": lambda x: np.ceil(x) + 0.0,
    "trunc": lambda x: np.trunc(x) + 0.0,
}


@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary_operations(name: str, dtype: Any) -> None:
    x = np.abs(numbers(dtype)) if name in ("log", "sqrt") else numbers(dtype)
    result = getattr(pypto, name)(pypto.from_numpy(x))
    exact = UNARY[name](x.astype(np.float64))
    assert (codes(result.numpy()) == codes(rounded(exact, dtype))).all()


@pytest.mark.parametrize("name", ["abs", "exp", "sqrt", "reciprocal"])
def test_fp16_stays_fp16(name: str) -> None:
    x = np.abs(numbers(np.float16))
    result = getattr(pypto, name)(pypto.from_numpy(x)).numpy()
    assert (codes(result) == codes(UNARY[name](x.astype(np.float64)).astype(np.float16))).all()


@pytest.mark.parametrize("dtype", [np.int16, np.int32], ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_integers_wrap(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(3)
    ends = np.iinfo(dtype)
    a, b = (rng.integers(ends.min, ends.max, (8, 64), dtype, endpoint=True) for _ in range(2))
    result = getattr(pypto, name)(pypto.from_numpy(a), pypto.from_numpy(b)).numpy()
    exact = BINARY[name](a.astype(object), b.astype(object))
    size = 1 << ends.bits
    wrapped = (exact - ends.min) % size + ends.min
    assert (result == wrapped.astype(dtype)).all()


def test_integer_quotients_are_fp32() -> None:
    x = pypto.from_numpy(np.arange(-32, 32, dtype=np.int16))
    result = x / 7
    assert result.dtype is pypto.DT_FP32
    exact = np.array([np.float32(Fraction(k, 7)) for k in range(-32, 32)], np.float32)
    assert (codes(result.numpy()) == codes(exact)).all()


def test_operators_in_both_orders() -> None:
    data = numbers(np.float32)
    x = pypto.from_numpy(data)
    one = np.float32(1)
    cases: list[tuple[Tensor, np.ndarray]] = [
        (2.0 + x, data + np.float32(2)),
        (2.0 * x, data * np.float32(2)),
        (x - 3, data - np.float32(3)),
        (3 - x, -(data - np.float32(3))),
        (3 / x, one / data * np.float32(3)),
        (x / 3, data / np.float32(3)),
        (x // 3, np.floor(data / np.float32(3)) + 0.0),
        (-x, -data),
        (+x, data),
    ]
    for result, wanted in cases:
        assert (codes(result.numpy()) == codes(wanted.astype(np.float32))).all()


def test_a_number_less_itself_is_minus_zero() -> None:
    x = pypto.tensor([8], pypto.DT_FP32, data=[3.0] * 8)
    assert np.signbit((3.0 - x).numpy()).all()
    assert not np.signbit((x - 3.0).numpy()).any()


def test_scalars_come_as_fp32() -> None:
    x = pypto.tensor([8], pypto.DT_FP32, data=[1.0] * 8)
    assert (x * 0.1).numpy()[0] == np.float32(0.1)
    assert (x * 3.4028235e38).numpy()[0] == np.finfo(np.float32).max
    i = pypto.tensor([8], pypto.DT_INT32, data=[1] * 8)
    assert (pypto.maximum(i, 2.7).numpy() == 2).all()


COMPARED = {
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "greater": np.greater,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=str)
@pytest.mark.parametrize("name", COMPARED)
def test_comparisons(name: str, dtype: Any) -> None:
    a, b = np.rint(numbers(dtype, 1)), np.rint(numbers(dtype, 2))
    a[0, 0] = np.nan
    x, y = pypto.from_numpy(a), pypto.from_numpy(b)
    assert (getattr(pypto, name)(x, y).numpy() == COMPARED[name](a, b)).all()
    assert (getattr(pypto, name)(x, 1.0).numpy() == COMPARED[name](a, 1.0)).all()


def test_operators_compare() -> None:
    data = np.array([-1, 0, 1, np.nan] * 2, np.float32)
    x = pypto.from_numpy(data)
    for result, wanted in (
        (x == 0.0, data == 0),
        (x != 0.0, [True, False, True, False] * 2),
        (x < 0.0, data < 0),
        (x <= 0.0, data <= 0),
        (x > 0.0, data > 0),
        (x >= x, data >= data),
    ):
        assert (result.numpy() == wanted).all()


def test_where_takes_bits_as_they_are() -> None:
    odd_nan = np.array([0x7FC12345, 0x80000000] * 4, np.uint32).view(np.float32)
    condition = pypto.tensor([8], pypto.DT_BOOL, data=np.arange(8) < 4)
    result = pypto.where(condition, pypto.from_numpy(odd_nan), 1.5).numpy()
    assert (codes(result[:4]) == codes(odd_nan[:4])).all()
    assert (result[4:] == 1.5).all()
    assert (pypto.where(condition, 1.0, 0.0).numpy() == (np.arange(8) < 4)).all()


def test_logic_compares_with_zero() -> None:
    x = pypto.from_numpy(np.array([0, -0.0, np.nan, 1, 0, 2, 0, 3], np.float32))
    y = pypto.from_numpy(np.array([1, 1, 1, 0, 0, 5, 0, 7], np.int8))
    assert pypto.logical_not(x).numpy().tolist() == [1, 1, 0, 0, 1, 0, 1, 0]
    assert pypto.logical_and(x, y).numpy().tolist() == [0, 0, 1, 0, 0, 1, 0, 1]


def test_bits_and_shifts() -> None:
    a = np.array([0x0F0F, -1, 1, -32768, 5, 6, 7, 8], np.int16)
    x = pypto.from_numpy(a)
    assert (pypto.bitwise_and(x, 0xFF).numpy() == (a & 0xFF)).all()
    assert (pypto.bitwise_or(x, 1).numpy() == (a | 1)).all()
    assert (pypto.bitwise_xor(x, x).numpy() == 0).all()
    assert (pypto.bitwise_not(x).numpy() == ~a).all()
    assert (
        pypto.bitwise_left_shift(x, 4).numpy() == (a.astype(np.int32) << 4).astype(a.dtype)
    ).all()
    assert (pypto.bitwise_left_shift(x, 17).numpy() == 0).all()
    assert (pypto.bitwise_right_shift(x, 3).numpy() == a >> 3).all()
    assert (pypto.bitwise_right_shift(x, -1).numpy() == np.where(a < 0, -1, 0)).all()


def test_clip_takes_the_upper_bound_last() -> None:
    x = pypto.from_numpy(np.array([-5, 0, 5, np.nan] * 2, np.float32))
    result = pypto.clip(x, 2.0, 1.0).numpy()
    assert (result[:3] == 1.0).all()
    assert np.isnan(result[3])
    assert pypto.clip(x) is x


@pytest.mark.parametrize("decimals", [1, 2, -1])
def test_rounding_to_decimals(decimals: int) -> None:
    data = numbers(np.float32)
    power = np.float32(10.0**decimals)
    scaled = np.rint(data * power) + np.float32(0)
    result = pypto.round(pypto.from_numpy(data), decimals).numpy()
    assert (codes(result) == codes(scaled / power)).all()
    half = data.astype(np.float16)
    scaled = np.rint(half.astype(np.float32) * power) + np.float32(0)
    wanted = (scaled * np.float32(1.0 / 10.0**decimals)).astype(np.float16)
    assert (codes(pypto.round(pypto.from_numpy(half), decimals).numpy()) == codes(wanted)).all()


def test_rsqrt_is_a_root_and_a_quotient() -> None:
    data = np.abs(numbers(np.float32))
    wanted = np.float32(1) / np.sqrt(data)
    assert (codes(pypto.rsqrt(pypto.from_numpy(data)).numpy()) == codes(wanted)).all()
    half = data.astype(np.float16)
    wanted = (np.float32(1) / np.sqrt(half.astype(np.float32))).astype(np.float16)
    assert (codes(pypto.rsqrt(pypto.from_numpy(half)).numpy()) == codes(wanted)).all()


def test_saturation_mode_reaches_results() -> None:
    x = pypto.tensor([8], pypto.DT_BF16, data=np.full(8, 3e38, BF16))
    assert np.isinf((x + x).numpy().astype(np.float32)).all()
    with pypto.options(inf_nan_mode=False):
        assert (codes((x + x).numpy()) == 0x7F7F).all()


def pairwise(terms: list[np.ndarray]) -> np.ndarray:
    """Tiles in the order of upstream's TileReduceNew, as its document lists it by count."""
    orders: dict[int, Any] = {1: 0, 2: (0, 1), 3: ((0, 1), 2), 4: ((0, 2), (1, 3))}
    orders |= {5: (((0, 2), (1, 3)), 4), 6: (((0, 2), 4), ((1, 3), 5))}
    orders |= {7: ((((0, 2), 4), ((1, 3), 5)), 6)}

    def total(order: Any) -> np.ndarray:
        if isinstance(order, int):
            return terms[order]
        a, b = map(total, order)
        joined = a.copy()
        joined[: len(b)] += b
        return joined

    return total(orders[len(terms)])


def tree(lanes: np.ndarray) -> np.float32:
    while len(lanes) > 1:
        odd = lanes[len(lanes) // 2 * 2 :]
        pairs = len(lanes) // 2 * 2
        lanes = np.concatenate([lanes[0:pairs:2] + lanes[1:pairs:2], odd])
    return np.float32(lanes[0])


@pytest.mark.parametrize("columns", [32, 50, 64, 90, 100, 128, 160, 192, 200, 224])
def test_a_sum_follows_the_tile(columns: int) -> None:
    rng = np.random.default_rng(columns)
    data = (rng.standard_normal((3, columns)) * 10.0 ** rng.integers(-3, 4, columns)).astype(
        np.float32
    )
    x = pypto.from_numpy(data)
    with pypto.options(vec_tile_shapes=(2, 32)):
        result = x.sum(-1).numpy()
        column = pypto.from_numpy(data.T.copy())
        pypto.set_vec_tile_shapes(32, 8)
        over_rows = column.sum(0).numpy()
    for row, (found, below) in enumerate(zip(result, over_rows, strict=True)):
        tiles = [data[row, k : k + 32] for k in range(0, columns, 32)]
        joined = pairwise(tiles)
        assert found == tree(joined)
        assert below == column_order(joined)


def column_order(rows: np.ndarray) -> np.float32:
    """Neighbours in pairs; an odd one joins the first."""
    while len(rows) > 1:
        pairs = rows[0 : len(rows) // 2 * 2 : 2] + rows[1 : len(rows) // 2 * 2 : 2]
        if len(rows) % 2:
            pairs[0] += rows[-1]
        rows = pairs
    return np.float32(rows[0])


def test_a_sum_depends_on_the_tile() -> None:
    data = np.random.default_rng(5).standard_normal((4, 256)).astype(np.float32)
    sums = set()
    for columns in (32, 64, 128, 256):
        with pypto.options(vec_tile_shapes=(4, columns)):
            sums.add(pypto.sum(pypto.from_numpy(data), -1).numpy().tobytes())
    assert len(sums) > 1


def test_a_sum_without_a_tile_warns() -> None:
    x = pypto.from_numpy(numbers(np.float32))
    with (
        pypto.options(vec_tile_shapes=()),
        pytest.warns(pypto.TileShapeWarning, match="no tile shape is set: one tile"),
    ):
        x.sum(-1)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.int32, np.int16], ids=str)
def test_extremes(axis: int, dtype: Any) -> None:
    data = numbers(dtype)
    x = pypto.from_numpy(data)
    wide = data.astype(np.float64)
    for name, oracle in (("amax", np.max), ("amin", np.min)):
        kept = getattr(pypto, name)(x, axis, True)
        assert (kept.numpy().astype(np.float64) == oracle(wide, axis=axis, keepdims=True)).all()
        assert getattr(pypto, name)(x, axis).shape == list(oracle(wide, axis=axis).shape)


def test_a_reduction_of_one_dimension_keeps_it() -> None:
    x = pypto.from_numpy(np.arange(8, dtype=np.float32))
    assert (x.sum(0).shape, x.sum(0).numpy().tolist()) == ([1], [28.0])
