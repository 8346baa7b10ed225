"""Operations by index give what plain Python gives: reading, writing, order, padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from pypto_cast.experimental import gather_in_l1, gather_in_ub
from support.devices.certainties import interval_of

import pypto_cast as pypto
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure, Interval

Array = npt.NDArray[Any]
RNG = np.random.default_rng(7)
DATA = RNG.standard_normal((3, 5, 6)).astype(np.float32)
SIM = {"run_mode": pypto.RunMode.SIM}
F32 = pypto.Tensor[[...], pypto.DT_FP32]


@pytest.fixture(autouse=True)
def tile() -> Iterator[None]:
    with pypto.options(vec_tile_shapes=(8, 8, 16)):
        yield


def tensor(values: Any, dtype: Any = None) -> Tensor:
    return pypto.from_numpy(np.array(values, dtype))


def same_bits(found: Tensor, expected: Array) -> None:
    values = found.numpy()
    assert values.dtype == expected.dtype
    unsigned = f"u{values.itemsize}"
    assert (values.view(unsigned) == np.ascontiguousarray(expected).view(unsigned)).all()


# --- Reading -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int16])
def test_gather(dim: int, dtype: Any) -> None:
    shape = [2, 4, 3]
    shape[dim] = 7
    x, index = (DATA * 9).astype(dtype), RNG.integers(0, DATA.shape[dim], shape)
    expected = np.empty(shape, dtype)
    for place in np.ndindex(*shape):
        source = list(place)
        source[dim] = index[place]
        expected[place] = x[tuple(source)]
    found = pypto.gather(tensor(x), dim, tensor(index, np.int32))
    same_bits(found, expected)
    assert interval_of(found) is None


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_index_select(dim: int, shape: tuple[int, ...]) -> None:
    index = RNG.integers(0, DATA.shape[dim], shape)
    with pypto.options(vec_tile_shapes=(8, 8, 8, 8)):
        found = pypto.index_select(tensor(DATA), dim, tensor(index))
    same_bits(found, np.take(DATA, index, dim))


def paged(cache: Array, tokens: Array, table: Array, block: int) -> Array:
    """Rows of a cache, one token after another."""
    rows = [cache[table[0, token // block] * block + token % block] for token in tokens[0]]
    return np.array(rows)


def test_a_paged_cache_is_read_beyond_the_view() -> None:
    cache = np.arange(48, dtype=np.float32).reshape(12, 4)
    tokens, table = np.array([[0, 5, 3, 7]], np.int32), np.array([[4, 0, 5, 1]], np.int32)
    expected = paged(cache, tokens, table, 2)
    x, pages, where = tensor(cache), tensor(table), tensor(tokens)
    same_bits(gather_in_ub(x, where, pages, 2, -2), expected)
    first = pypto.view(x, [4, 4], [0, 0], valid_shape=[2, 3])
    part = pypto.view(where, [1, 4], [0, 0], valid_shape=[1, 3])
    found = gather_in_ub(first, part, pages, 2, -2)
    assert (found.shape, found.valid_shape) == ([4, 4], [3, 3])
    same_bits(found, expected[:3, :3])
    below = pypto.view(pypto.view(x, [8, 4], [2, 0]), [4, 4], [2, 0])
    same_bits(
        gather_in_ub(below, tensor([[1]], np.int32), tensor([[3]], np.int32), 2, -2), cache[11:]
    )
    same_bits(gather_in_l1(x, where, pages, 2, 3, True, False), expected[:, :3])


def test_an_open_page_table_leaves_every_row_open() -> None:
    _, pages = pypto.topk(tensor([[1.0, 3.0, 3.0, 0.0]], np.float32) / 7, 2)
    assert interval_of(pages) is not None
    cache, tokens = tensor(np.arange(16).reshape(8, 2), np.float16), tensor([[0, 3]], np.int32)
    expected = paged(cache.numpy(), tokens.numpy(), pages.numpy(), 2)
    for found in (
        gather_in_ub(cache, tokens, pages, 2, -2),
        gather_in_l1(cache, tokens, pages, 2, 2, False, False),
    ):
        same_bits(found, expected)
        interval = interval_of(found)
        assert interval is not None
        assert not interval.certain().any()
        assert (interval.cause == interval_of(pages).cause.flat[0]).all()


def test_an_open_index_carries_its_candidates() -> None:
    scores = tensor([[1.0, 3.0, 3.0, 0.0]], np.float32) / 7
    _, order = pypto.topk(scores, 2)
    assert interval_of(order) is not None
    found = pypto.gather(tensor([[10, 20, 30, 40]], np.float32), -1, order)
    interval = interval_of(found)
    assert interval is not None
    assert interval.low.tolist() == [[20, 20]]
    assert interval.high.tolist() == [[30, 30]]
    mask = interval_of(pypto.scatter(tensor(np.zeros((1, 4), np.float32)), 1, order, 1.0))
    assert mask is not None
    assert mask.low.tolist() == [[0, 0, 0, 0]]
    assert mask.high.tolist() == [[0, 1, 1, 0]]
    with pypto.options(vec_tile_shapes=(8, 8, 4)):
        hot = interval_of(pypto.one_hot(order, 4))
    assert hot is not None
    assert hot.high.tolist() == [[[0, 1, 1, 0]] * 2]


# --- Writing -----------------------------------------------------------------------------------


def scattered(x: Array, dim: int, index: Array, given: Array | float, reduce: str | None) -> Array:
    """Elements written one after another, FP16 and BF16 in FP32 where they are added."""
    wide = x.dtype if reduce is None or x.dtype.kind in "iu" else np.dtype(np.float32)
    out = x.astype(wide)
    for place in np.ndindex(*index.shape):
        where = list(place)
        where[dim] = index[place]
        value = wide.type(given[place] if isinstance(given, np.ndarray) else given)
        old = out[tuple(where)]
        with np.errstate(over="ignore"):
            out[tuple(where)] = {None: value, "add": old + value, "multiply": old * value}[reduce]
    return out.astype(x.dtype)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("reduce", [None, "add", "multiply"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32])
def test_scatter(dim: int, reduce: str | None, dtype: Any) -> None:
    x, given = (DATA * 9).astype(dtype), (DATA[::-1] * 5).astype(dtype)
    index = RNG.integers(0, DATA.shape[dim], [2, 4, 3])
    found = pypto.scatter(tensor(x), dim, tensor(index), tensor(given), reduce=reduce)
    same_bits(found, scattered(x, dim, index, given, reduce))
    found = pypto.scatter(tensor(x), dim, tensor(index), 2.0, reduce=reduce)
    same_bits(found, scattered(x, dim, index, 2.0, reduce))


def test_a_tensor_as_the_end_of_a_slice_is_an_index() -> None:
    index = np.array([[2, 0, 1, 1]], np.int32)

    @pypto.jit(runtime_options=SIM)
    def kernel(x: F32, i: pypto.Tensor, out: F32) -> None:
        out[1:i] = x[1:i]

    x, out = DATA[0, :1, :4].copy(), np.zeros((1, 4), np.float32)
    kernel(x, index, out)
    gathered = np.take_along_axis(x, index, 1)
    assert (out == scattered(np.zeros_like(x), 1, index, gathered, None)).all()


def test_scatter_adds_in_any_order_where_none_is_assumed() -> None:
    x, given = np.zeros((1, 2), np.float32), np.array([[1e8, 1, -1e8, 1]], np.float32)
    index = tensor(np.zeros((1, 4), np.int32))
    for trust, is_open in (("default", False), ("documented", True)):
        with pypto.options(trust=trust):
            found = interval_of(pypto.scatter(tensor(x), 1, index, tensor(given), reduce="add"))
        assert (found is not None) is is_open
    assert found is not None
    assert found.low[0, 0] <= 0
    assert found.high[0, 0] >= 2
    assert found.certain()[0, 1]


def test_scatter_update() -> None:
    x, src = np.zeros((8, 4), np.int32), np.arange(16, dtype=np.int32).reshape(4, 4)
    index = tensor([[1, -1], [4, 5]])
    expected = x.copy()
    expected[[1, 4, 5]] = src[[0, 2, 3]]
    same_bits(pypto.scatter_update(tensor(x), -2, index, tensor(src)), expected)
    with pypto.options(vec_tile_shapes=(8, 8, 8, 8)):
        blocks = pypto.scatter_update(
            tensor(x.reshape(2, 4, 1, 4)), -2, index, tensor(src.reshape(2, 2, 1, 4))
        )
    same_bits(blocks, expected.reshape(2, 4, 1, 4))
    twice = interval_of(pypto.scatter_update(tensor(x), -2, tensor([[2, 2]] * 2), tensor(src)))
    assert twice is not None
    assert twice.low[2].tolist() == [0, 1, 2, 3]
    assert twice.high[2].tolist() == [12, 13, 14, 15]


def test_scatter_update_reads_the_rows_that_its_indices_name() -> None:
    @pypto.jit(runtime_options=SIM)
    def kernel(x: F32, src: F32, index: pypto.Tensor, out: F32) -> None:
        part = pypto.view(src, [2, 4], [0, 0], valid_shape=[1, 4])
        declared = pypto.Tensor([2, 4], pypto.DT_FP32)
        pypto.assemble(part, [0, 0], declared)
        used = pypto.view(index, [1, 2], [0, 0], valid_shape=[1, 1])
        out.move(pypto.scatter_update(x, -2, used, declared))

    x, out = np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)
    src = np.arange(8, dtype=np.float32).reshape(2, 4)
    kernel(x, src, np.array([[3, 9]], np.int32), out)
    x[3] = src[0]
    assert (out == x).all()
    index = pypto.view(tensor([[1, 7], [3, 7]]), [2, 2], [0, 0], valid_shape=[2, 1])
    wide = np.arange(16, dtype=np.int32).reshape(4, 4)
    found = pypto.scatter_update(tensor(np.zeros((4, 4), np.int32)), -2, index, tensor(wide))
    expected = np.zeros((4, 4), np.int32)
    expected[[1, 3]] = wide[[0, 2]]
    same_bits(found, expected)


@pypto.jit(runtime_options=SIM)
def put(x: F32, i: pypto.Tensor, j: pypto.Tensor, values: F32, accumulate: bool) -> None:
    pypto.index_put_(x, (i, j), values, accumulate)


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(accumulate: bool) -> None:
    x, values = DATA.copy(), np.arange(12, dtype=np.float32).reshape(2, 6)
    i, j = np.array([2, 0], np.int32), np.array([4, 1], np.int32)
    put(x, i, j, values, accumulate)
    expected = DATA.copy()
    expected[[2, 0], [4, 1]] = values + (DATA[[2, 0], [4, 1]] if accumulate else np.float32(0))
    assert (x == expected).all()


def test_index_put_twice_is_open() -> None:
    x, values = np.zeros((2, 2, 1), np.float32), np.array([[1], [3]], np.float32)
    i = j = np.zeros(2, np.int32)
    found = put.certainty(x, i, j, values, False)["x"]
    assert (found.low[0, 0, 0], found.high[0, 0, 0]) == (1, 3)
    assert found.undecided == 1
    assert put.certainty(x, i, j, values, True)["x"].undecided == 0


OPEN_INDICES = {  # what of x [4, 8] is left certain, row by row
    "a candidate of each row": ([[0, 1], [2, 2]], [False, False, True, True]),
    "one below 0": ([[-1, 0], [2, 2]], [False] * 4),
    "one beyond": ([[2, 4], [1, 1]], [False] * 4),
}


@pytest.mark.parametrize("name", OPEN_INDICES)
@pytest.mark.parametrize("accumulates", [False, True])
@pytest.mark.parametrize("columns", [0, 2])
def test_open_indices_are_put_at_every_candidate(
    name: str, accumulates: bool, columns: int
) -> None:
    rows, certain = OPEN_INDICES[name]
    low, high = np.array([*rows, [2, 2]], np.int32).T
    count = 3

    @pypto.jit
    def kernel(
        x: pypto.Tensor[[4, 8], pypto.DT_FP32], values: pypto.Tensor[[3, 8], pypto.DT_FP32]
    ) -> None:
        pypto.set_vec_tile_shapes(4, 8)
        interval = Interval(low=low, high=high, may_be_nan=None, cause=np.zeros(count, np.uint16))
        held = Enclosure(values=np.maximum(low, 0), interval=interval)
        index = pypto.Tensor._from_result((count,), pypto.DT_INT32, data=held)
        if columns:
            second = pypto.full([count], columns, pypto.DT_INT32)
            column = pypto.reshape(values[:, 0:1], [count])
            pypto.index_put_(x, (index, second), column, accumulates)
        else:
            pypto.index_put_(x, (index,), values, accumulates)

    found = kernel.certainty(np.zeros((4, 8), np.float32), np.ones((3, 8), np.float32))["x"]
    if all(certain) or not any(certain):
        assert found.certain.tolist() == [[False] * 8] * 4
    elif columns:
        assert found.certain[:, columns].tolist() == [False, False, True, True]
    else:
        assert found.certain.all(axis=1).tolist() == certain


def test_scatter_update_leaves_out_what_lies_below_0() -> None:
    @pypto.jit
    def kernel(x: F32, source: F32, out: F32) -> None:
        pypto.set_vec_tile_shapes(8, 8)
        low, high = np.array([[-1, 3]], np.int32), np.array([[1, 3]], np.int32)
        interval = Interval(low=low, high=high, may_be_nan=None, cause=np.zeros((1, 2), np.uint16))
        held = Enclosure(values=low, interval=interval)
        index = pypto.Tensor._from_result((1, 2), pypto.DT_INT32, data=held)
        out[:] = pypto.scatter_update(x, -2, index, source)

    x, source = np.zeros((4, 8), np.float32), np.ones((2, 8), np.float32)
    found = kernel.certainty(x, source, x.copy())["out"]
    assert found.certain.all(axis=1).tolist() == [False, False, True, True]
    assert found.values[:, 0].tolist() == [0, 0, 0, 1]


@pypto.jit(runtime_options=SIM)
def accumulate(parts: F32, out: F32) -> None:
    pypto.set_vec_tile_shapes(1, 8)
    for k in pypto.loop(parts.shape[0]):
        pypto.atomic_add(pypto.view(parts, [1, 8], [k, 0]), [0, 0], out)


def test_atomic_add_has_no_order() -> None:
    parts = (RNG.standard_normal((5, 8)) * 10.0 ** RNG.integers(-5, 5, (5, 8))).astype(np.float32)
    parts[:3, :2] = 0
    found = accumulate.certainty(parts, np.zeros((2, 8), np.float32))["out"]
    assert found.certain[0].tolist() == [True] * 2 + [False] * 6
    assert found.certain[1].all()
    for _ in range(30):
        total = np.zeros(8, np.float32)
        for k in RNG.permutation(5):
            total = total + parts[k]
        assert found.contains(np.stack([total, np.zeros(8, np.float32)])).all()
    assert [str(cause).split(" at ")[0] for cause in found.undecided_by_cause] == ["atomic_add"]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int16])
def test_atomic_add_rounds_every_sum(dtype: Any) -> None:
    @pypto.jit(runtime_options=SIM)
    def kernel(parts: pypto.Tensor, out: pypto.Tensor) -> None:
        for k in pypto.loop(4):
            pypto.atomic_add(pypto.view(parts, [1, 16], [k, 0]), [0, 0], out)

    parts = (RNG.standard_normal((4, 16)) * 10000).astype(dtype)
    out = np.zeros((1, 16), dtype)
    found = kernel.certainty(parts, out)["out"]
    assert found.certain.all() is np.bool_(dtype is np.int16)
    with np.errstate(over="ignore"):
        for order in ([0, 1, 2, 3], *(RNG.permutation(4) for _ in range(20))):
            total = np.zeros(16, dtype)
            for k in order:
                total = total + parts[k]
            assert found.contains(total[None]).all()
            assert list(order) != [0, 1, 2, 3] or (found.values == total).all()


def test_atomic_add_starts_again_where_it_is_overwritten() -> None:
    @pypto.jit(runtime_options=SIM)
    def kernel(parts: F32, out: F32) -> None:
        for _ in pypto.loop(4):
            pypto.atomic_add(parts, [0, 0], out)
        out[:] = pypto.full([1, 8], 0.0, pypto.DT_FP32)
        pypto.atomic_add(parts, [0, 0], out)
        pypto.atomic_add(parts, [0, 0], out)

    parts = DATA[0, :1, :1] + np.zeros((1, 8), np.float32)
    found = kernel.certainty(parts, np.zeros((1, 8), np.float32))["out"]
    assert found.undecided == 0
    assert (found.values == parts * 2).all()


# --- Order -------------------------------------------------------------------------------------


def test_topk_and_argsort() -> None:
    x = np.array([[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8]], np.float32)
    with pypto.options(vec_tile_shapes=(2, 32)):
        for largest in (True, False):
            values, indices = pypto.topk(tensor(x), 5, largest=largest)
            order = [
                sorted(range(8), key=lambda k, row=row: (-row[k] if largest else row[k], k))
                for row in x
            ]
            assert indices.numpy().tolist() == [row[:5] for row in order]
            same_bits(values, np.take_along_axis(x, np.array(order)[:, :5], 1))
            found = pypto.argsort(tensor(x.astype(np.float16)), -1, largest)
            same_bits(found, np.array(order, np.int32))
    with pypto.options(vec_tile_shapes=(32, 8)):
        assert pypto.argsort(tensor(x), 0).numpy().tolist() == [
            [1, 0, 1, 0, 1, 1, 1, 0],
            [0, 1, 0, 1, 0, 0, 0, 1],
        ]


def test_sort32_gives_pairs_of_each_32_elements() -> None:
    x = np.random.default_rng(3).integers(-5, 5, (2, 40)).astype(np.float32) + 0.5
    with pypto.options(vec_tile_shapes=(1, 64)):
        found = pypto.sort32(tensor(x), 7).numpy()
    assert found.shape == (2, 80)
    for row, pairs in zip(x, found, strict=True):
        order = sorted(range(40), key=lambda k, row=row: (k // 32, -row[k], k))
        assert pairs[::2].tolist() == row[order].tolist()
        assert pairs[1::2].copy().view(np.int32).tolist() == [k + 7 for k in order]


def test_the_pairs_of_a_row_with_nan_are_open() -> None:
    @pypto.jit
    def kernel(x: pypto.Tensor[[], pypto.DT_FP32], out: pypto.Tensor[[], pypto.DT_FP32]) -> None:
        pypto.set_vec_tile_shapes(2, 64)
        out[:] = pypto.sort32(x)

    x = np.arange(128, dtype=np.float32).reshape(2, 64)
    x[1, 40] = np.nan
    certain = kernel.certainty(x, np.zeros((2, 128), np.float32))["out"].certain
    assert certain[0].all()
    assert certain[1, :64].all()
    assert not certain[1, 64:].any()


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_argmax(name: str, dim: int, dtype: Any) -> None:
    x = np.round(DATA).astype(dtype)
    found = getattr(pypto, name)(tensor(x), dim, True)
    expected = getattr(np, name)(x.astype(np.float32), axis=dim, keepdims=True)
    same_bits(found, expected.astype(np.int32))
    assert getattr(pypto, name)(tensor(x), dim).shape == list(np.squeeze(expected, dim).shape)


def test_argmax_takes_the_hidden_fp32_value() -> None:
    x = pypto.from_numpy(np.array([[1.0, 1.0]], ml_dtypes.bfloat16))
    hidden = x + pypto.from_numpy(np.array([[0.001, 0.002]], ml_dtypes.bfloat16))
    assert pypto.argmax(hidden).numpy().tolist() == [1]
    assert pypto.argmax(pypto.clone(hidden)).numpy().tolist() == [0]


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_cumsum_of_integers(dim: int) -> None:
    x = (DATA * 100).astype(np.int16)
    same_bits(pypto.cumsum(tensor(x), dim), np.cumsum(x, dim, dtype=np.int64))


def test_cumsum_rounds_16_bits_once() -> None:
    x = np.array([[1.0, 2**-8, 2**-8, 2**-8]], ml_dtypes.bfloat16)
    expected = np.cumsum(x.astype(np.float32), 1).astype(ml_dtypes.bfloat16)
    same_bits(pypto.cumsum(tensor(x), 1), expected)


# --- Padding, variance -------------------------------------------------------------------------


def test_pad_and_fillpad() -> None:
    found = pypto.pad(tensor(DATA), [0, 2, 0, 1], value=-np.inf)
    same_bits(found, np.pad(DATA, [(0, 0), (0, 1), (0, 2)], constant_values=-np.inf))
    same_bits(pypto.pad(tensor([1, 2], np.int8), [0, 1], value=-3), np.array([1, 2, -3], np.int8))
    part = pypto.view(tensor(DATA[0]), [5, 6], [0, 0], valid_shape=[2, 3])
    filled = pypto.fillpad(part, value=9.0)
    expected = np.full((5, 6), 9, np.float32)
    expected[:2, :3] = DATA[0, :2, :3]
    assert filled.valid_shape == [5, 6]
    same_bits(filled, expected)
    opened = interval_of(pypto.pad(tensor(DATA) / 3, [0, 1, 0, 0]))
    assert opened is not None
    assert opened.certain()[..., -1].all()


def test_one_hot() -> None:
    with pypto.options(vec_tile_shapes=(8, 5)):
        found = pypto.one_hot(tensor([3, 0, 4], np.int16), 5)
    same_bits(found, np.eye(5, dtype=np.int64)[[3, 0, 4]])


@pytest.mark.parametrize(("low", "high"), [(2, 4), (2, 5), (-1, 2)])
def test_one_hot_of_an_open_class(low: int, high: int) -> None:
    ends = {"low": np.array([0, low], np.int32), "high": np.array([0, high], np.int32)}
    interval = Interval(**ends, may_be_nan=None, cause=np.zeros(2, np.uint16))
    held = Enclosure(values=np.array([0, 2], np.int32), interval=interval)
    with pypto.options(vec_tile_shapes=(8, 5)):
        found = pypto.one_hot(Tensor._from_result((2,), pypto.DT_INT32, data=held), 5).enclosure()
    assert found is not None
    assert found.values.argmax(1).tolist() == [0, 2]
    inside = [[True] * 5, [True, True, False, False, False]]
    assert found.certain().tolist() == (inside if high == 4 else [[False] * 5] * 2)


@pytest.mark.parametrize("dim", [0, -1, [0, 2], None])
def test_var_is_that_of_its_steps(dim: Any) -> None:
    x = tensor(DATA)
    found = pypto.var(x, dim, correction=0)
    axes = tuple(range(3)) if dim is None else tuple(np.atleast_1d(dim))
    expected = np.var(DATA.astype(np.float64), axis=axes)
    held = found.enclosure()
    assert held is not None
    assert held.interval is not None
    assert (held.interval.low <= expected).all()
    assert (expected <= held.interval.high).all()
    assert found.shape == (list(expected.shape) or [1])
