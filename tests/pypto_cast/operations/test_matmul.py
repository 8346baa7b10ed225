"""matmul as pypto's: dtypes, batches, bias and scales, layouts, and what it gives a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pypto_cast as pypto
from pypto_cast.tensors.nz_layout import from_nz, to_nz
from tiling.plan import ShapeError, TileShapeError

BF16 = np.dtype(ml_dtypes.bfloat16)
FP16, FP32 = np.dtype(np.float16), np.dtype(np.float32)
ND, NZ = pypto.TileOpFormat.TILEOP_ND, pypto.TileOpFormat.TILEOP_NZ
TILES = ([32, 32], [32, 32], [32, 32])
DTYPES = {
    np.dtype(np.int8): pypto.DT_INT8,
    np.dtype(np.int32): pypto.DT_INT32,
    np.dtype(np.uint64): pypto.DT_UINT64,
    FP16: pypto.DT_FP16,
    BF16: pypto.DT_BF16,
    FP32: pypto.DT_FP32,
}


@pytest.fixture(autouse=True)
def cube_tiles() -> Iterator[None]:
    with pypto.options(cube_tile_shapes=list(TILES)):
        yield


def integers(shape: tuple[int, ...], dtype: np.dtype, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


def held(array: np.ndarray, format: Any = ND, **more: Any) -> pypto.Tensor:
    return pypto.tensor(list(array.shape), DTYPES[array.dtype], "x", format, data=array, **more)


def certain(x: pypto.Tensor) -> np.ndarray:
    enclosure = x.enclosure()
    assert enclosure is not None
    return enclosure.certain()


@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        (np.dtype(np.int8), pypto.DT_INT32),
        *((dtype, out) for dtype in (FP16, BF16, FP32) for out in (pypto.DT_FP32, pypto.DT_BF16)),
        (FP16, pypto.DT_FP16),
    ],
)
@pytest.mark.parametrize("a_trans", [False, True])
@pytest.mark.parametrize("b_trans", [False, True])
def test_dtypes_and_transposed_operands(
    dtype: np.dtype, out: pypto.DataType, a_trans: bool, b_trans: bool
) -> None:
    a, b = integers((5, 6), dtype), integers((6, 7), dtype, 1)
    found = pypto.matmul(
        held(np.ascontiguousarray(a.T) if a_trans else a),
        held(np.ascontiguousarray(b.T) if b_trans else b),
        out,
        a_trans=a_trans,
        b_trans=b_trans,
    )
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert found.dtype is out
    assert np.array_equal(found.numpy(), expected.astype(np.float32).astype(found.numpy().dtype))
    assert certain(found).all()


def test_the_method_and_the_operator() -> None:
    a, b = integers((5, 6), np.dtype(np.int8)), integers((6, 7), np.dtype(np.int8), 1)
    expected = a.astype(np.int32) @ b.astype(np.int32)
    assert np.array_equal((held(a) @ held(b)).numpy(), expected)
    assert np.array_equal(
        held(a).matmul(held(b.T.copy()), pypto.DT_INT32, b_trans=True).numpy(), expected
    )
    assert (held(a.astype(BF16)) @ held(b.astype(BF16))).dtype is pypto.DT_BF16


def test_batches_broadcast() -> None:
    a, b = integers((2, 1, 5, 6), FP32), integers((1, 3, 6, 7), FP32, 1)
    assert np.array_equal(pypto.matmul(held(a), held(b), pypto.DT_FP32).numpy(), a @ b)
    a, b = integers((5, 3, 6), BF16), integers((3, 6, 7), BF16, 1)
    found = pypto.experimental.transposed_batchmatmul(held(a), held(b), pypto.DT_BF16)
    expected = np.swapaxes(np.swapaxes(a, 0, 1).astype(FP32) @ b.astype(FP32), 0, 1).astype(BF16)
    assert np.array_equal(found.numpy(), expected)
    assert (found.shape, found.valid_shape) == ([5, 3, 7], [5, 3, 7])


def test_the_smaller_valid_k_counts() -> None:
    a, b = integers((8, 16), FP32), integers((16, 4), FP32, 1)
    out = np.zeros((8, 4), np.float32)

    @pypto.jit
    def kernel(
        x: pypto.Tensor[[8, 16], pypto.DT_FP32],
        y: pypto.Tensor[[16, 4], pypto.DT_FP32],
        z: pypto.Tensor[[8, 4], pypto.DT_FP32],
    ) -> None:
        left = pypto.view(x, [8, 16], [0, 0], valid_shape=[5, 11])
        right = pypto.view(y, [16, 4], [0, 0], valid_shape=[13, 3])
        product = pypto.matmul(left, right, pypto.DT_FP32)
        assert product.valid_shape == [5, 3]
        z[:] = product

    kernel(a, b, out)
    assert np.array_equal(out[:5, :3], a[:5, :11] @ b[:11, :3])
    assert not out[5:].any()


def test_bias_relu_and_scales() -> None:
    a, b = integers((5, 6), FP16), integers((6, 7), FP16, 1)
    bias = integers((1, 7), FP16, 2)
    extend = {"bias_tensor": held(bias), "relu_type": pypto.ReLuType.RELU}
    found = pypto.matmul(held(a), held(b), pypto.DT_FP16, extend_params=extend)
    assert np.array_equal(found.numpy(), np.maximum(a @ b + bias, 0))
    assert certain(found).all()
    assert set(extend) == {"bias_tensor", "relu_type"}

    eights = np.dtype(np.int8)
    a, b = integers((5, 6), eights), integers((6, 7), eights, 1)
    sums = a.astype(np.int32) @ b.astype(np.int32)
    bias = integers((1, 7), np.dtype(np.int32), 2)
    found = pypto.matmul(
        held(a),
        held(b),
        pypto.DT_FP16,
        extend_params={"bias_tensor": held(bias), "scale": 0.25, "relu_type": pypto.ReLuType.RELU},
    )
    assert np.array_equal(found.numpy(), np.maximum(sums + bias, 0).astype(FP16) / 4)
    scales = np.linspace(0.5, 8, 7, dtype=np.float32)[None]
    words = scales.view(np.uint32).astype(np.uint64) | np.uint64(1 << 46)
    found = pypto.matmul(
        held(a), held(b), pypto.DT_FP16, extend_params={"scale_tensor": held(words)}
    )
    read = (scales.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    enclosure = found.enclosure()
    assert enclosure is not None
    low, high = (end.astype(np.float64) for end in (enclosure.low, enclosure.high))
    exact = sums * read.astype(np.float64)
    assert ((low <= exact.astype(FP16)) & (exact.astype(FP16) <= high)).all()
    assert certain(found).mean() > 0.8


@pytest.mark.parametrize("dtype", [np.dtype(np.int8), FP16, BF16, FP32])
@pytest.mark.parametrize("relu", [pypto.ReLuType.NO_RELU, pypto.ReLuType.RELU])
def test_scaled_sums_are_rounded_to_int8(dtype: np.dtype, relu: pypto.ReLuType) -> None:
    a, b = integers((2, 3, 40, 60), dtype), integers((2, 3, 60, 33), dtype, 1)
    scales = np.random.default_rng(2).uniform(-0.3, 0.3, (2, 1, 1, 33)).astype(np.float32)
    scales[..., :9] = 0.125  # gives ties
    words = scales.view(np.uint32).astype(np.uint64) | np.uint64(1 << 46)
    found = pypto.matmul(
        *(held(a), held(b), pypto.DT_INT8),
        extend_params={"scale_tensor": held(words), "relu_type": relu},
    )
    read = (scales.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    sums = a.astype(np.int64) @ b.astype(np.int64)
    if relu is pypto.ReLuType.RELU:
        sums = np.maximum(sums, 0)
    wanted = [
        min(max(round(Fraction(int(total)) * Fraction(float(scale))), -128), 127)
        for total, scale in np.nditer([sums, np.broadcast_to(read, sums.shape)])
    ]
    exact = np.array(wanted, np.int8).reshape(sums.shape)
    enclosure = found.enclosure()
    assert enclosure is not None
    assert ((enclosure.low <= exact) & (exact <= enclosure.high)).all()
    assert np.array_equal(found.numpy()[certain(found)], exact[certain(found)])
    assert certain(found).mean() > 0.99
    assert (np.abs(exact) == 127).any() or (exact == -128).any()
    assert certain(found)[..., :9].all()


@pytest.mark.parametrize("dtype", [FP16, BF16, FP32])
def test_an_int8_result_is_open_where_orders_of_a_sum_give_two(dtype: np.dtype) -> None:
    a = np.array([[6e4, -6e4, 0.5], [1, 1, 0.5]], FP32).astype(dtype)
    b = np.array([[1], [1], [1 + 2.0**-7]], FP32).astype(dtype)
    found = pypto.matmul(held(a), held(b), pypto.DT_INT8, extend_params={"scale": 0.9921875})
    enclosure = found.enclosure()
    assert enclosure is not None
    exact = [
        round(
            sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(row, b[:, 0], strict=True))
            * Fraction(0.9921875)
        )
        for row in a
    ]
    assert ((enclosure.low[:, 0] <= exact) & (exact <= enclosure.high[:, 0])).all()
    assert certain(found).tolist() == [[False], [True]]


def test_what_int8_makes_of_infinities_and_nan() -> None:
    a = np.array([[np.inf, 1], [-np.inf, 1], [np.inf, -np.inf], [np.nan, 1]], FP32)
    found = pypto.matmul(
        held(a), held(np.ones((2, 1), FP32)), pypto.DT_INT8, extend_params={"scale": 1.0}
    )
    enclosure = found.enclosure()
    assert enclosure is not None
    assert enclosure.low[:, 0].tolist() == [127, -128, -128, -128]
    assert enclosure.high[:, 0].tolist() == [127, -128, 127, 127]


def test_scales_that_are_not_certain_leave_the_result_open() -> None:
    eights = np.dtype(np.int8)
    a, b = integers((5, 6), eights), integers((6, 7), eights, 1)
    powers = pypto.exp(held(np.linspace(20, 21, 7, dtype=np.float32)[None]))
    words = pypto.cast(powers, pypto.DT_INT64)
    assert not certain(words).any()
    found = pypto.matmul(held(a), held(b), pypto.DT_FP16, extend_params={"scale_tensor": words})
    assert not certain(found).any()
    decided = pypto.cast(held(np.full((1, 7), 2.0**30, np.float32)), pypto.DT_INT64)
    found = pypto.matmul(held(a), held(b), pypto.DT_FP16, extend_params={"scale_tensor": decided})
    assert certain(found).any()


def test_a_scaled_sum_too_large_for_fp16_may_be_infinite() -> None:
    a = np.full((1, 100), 127, np.int8)
    found = pypto.matmul(
        held(a), held(-a.T.copy()), pypto.DT_FP16, extend_params={"scale": 1.0}
    ).enclosure()
    assert found is not None
    assert (found.low[0, 0], found.high[0, 0], found.values[0, 0]) == (-np.inf, -65504, -65504)


def test_split_k_adds_the_sums_of_cores_in_order() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 320), (320, 4)))
    whole = pypto.matmul(held(a), held(b), pypto.DT_FP32)
    with pypto.options(cube_tile_shapes=[*TILES, True]):
        split = pypto.matmul(held(a), held(b), pypto.DT_FP32)
        with pytest.raises(TileShapeError, match="DT_FP32 or DT_INT32, not DT_BF16"):
            pypto.matmul(held(a), held(b), pypto.DT_BF16)
        with pytest.raises(TileShapeError, match="no place for bias"):
            pypto.matmul(
                held(a),
                held(b),
                pypto.DT_FP32,
                extend_params={"bias_tensor": held(np.ones((1, 4), np.float32))},
            )
    widths = []
    for found in (whole, split):
        enclosure = found.enclosure()
        assert enclosure is not None
        widths.append((enclosure.high.astype(np.float64) - enclosure.low).mean())
    assert widths[1] < widths[0] / 4
    pieces = [a[:, k : k + 32].astype(np.float64) @ b[k : k + 32] for k in range(0, 320, 32)]
    total = pieces[0].astype(np.float32)
    for piece in pieces[1:]:
        total = total + piece.astype(np.float32)
    assert np.array_equal(split.numpy(), total)


def test_assumptions_are_named_in_the_options() -> None:
    a = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    b = a.T.copy()
    plain = pypto.matmul(held(a), held(b), pypto.DT_FP32).enclosure()
    with pypto.options(assume=["ASSUME_CUBE_RNE"]):
        nearest = pypto.matmul(held(a), held(b), pypto.DT_FP32).enclosure()
    assert plain is not None
    assert nearest is not None
    assert ((plain.high - plain.low) > 1.5 * (nearest.high - nearest.low)).all()
    one = held(np.array([[1 + 2.0**-12, 1]], np.float32))
    other = held(np.array([[1], [0]], np.float32))
    with pypto.options(assume=["ASSUME_CUBE_HF32"]):
        assert pypto.matmul(one, other, pypto.DT_FP32).numpy()[0, 0] == 1
    with (
        pytest.raises(ValueError, match=r"ASSUME_RNE.* none of ASSUME_CUBE_RNE, ASSUME_CUBE_HF32"),
        pypto.options(assume=["ASSUME_RNE"]),
    ):
        pass


def test_the_cause_names_the_line() -> None:
    a = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)

    @pypto.jit
    def kernel(
        x: pypto.Tensor[[4, 64], pypto.DT_FP32], z: pypto.Tensor[[4, 4], pypto.DT_FP32]
    ) -> None:
        z[:] = pypto.matmul(x, x, pypto.DT_FP32, b_trans=True)

    (output,) = kernel.certainty(a, np.zeros((4, 4), np.float32)).outputs
    causes = {output.causes[k].operation for k in np.unique(output.cause)}
    assert causes == {"matmul"}
    assert output.causes[int(output.cause[0, 0])].file == __file__


# --- NZ ----------------------------------------------------------------------------------------


@given(
    batch=st.lists(st.integers(1, 3), max_size=2),
    rows=st.integers(1, 50),
    columns=st.integers(1, 70),
    dtype=st.sampled_from((np.int8, np.float16, np.float32)),
)
def test_nz_is_the_vendors_formula(batch: list[int], rows: int, columns: int, dtype: Any) -> None:
    array = np.arange(np.prod([*batch, rows, columns])).reshape(*batch, rows, columns).astype(dtype)
    fractals = to_nz(array)
    width = 32 // array.itemsize
    assert fractals.shape == (*batch, -(-columns // width), -(-rows // 16), 16, width)
    assert np.array_equal(from_nz(fractals, rows, columns), array)
    for i in {0, rows // 2, rows - 1}:
        for j in {0, columns // 2, columns - 1}:
            place = (j // width, i // 16, i % 16, j % width)
            assert np.array_equal(fractals[(..., *place)], array[..., i, j])
    inside = np.zeros(fractals.shape, np.bool_)
    inside[...] = to_nz(np.ones(array.shape, np.int8).astype(dtype)) == 1
    assert not fractals[~inside].any()


def test_nz_of_the_vendors_example() -> None:
    fractals = to_nz(np.arange(20 * 28, dtype=np.float16).reshape(20, 28))
    assert fractals[0, 1, :4, 0].tolist() == [448, 476, 504, 532]
    assert fractals[1, 0, 1, -5:].tolist() == [55, 0, 0, 0, 0]


def test_weights_in_nz_as_they_are_and_as_they_lie() -> None:
    a, b = integers((16, 32), np.dtype(np.int8)), integers((32, 64), np.dtype(np.int8), 1)
    expected = a.astype(np.int32) @ b.astype(np.int32)

    @pypto.jit
    def kernel(
        x: pypto.Tensor[[16, 32], pypto.DT_INT8],
        w: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_INT8, NZ],
        z: pypto.Tensor[[16, 64], pypto.DT_INT32],
    ) -> None:
        assert w.format is NZ
        z[:] = pypto.matmul(x, w, pypto.DT_INT32)

    for weights in (b, to_nz(b)):
        out = np.zeros(expected.shape, np.int32)
        kernel(a, weights, out)
        assert np.array_equal(out, expected)
    laid_out = pypto.tensor([32, 64], pypto.DT_INT8, "w", NZ, data=to_nz(b))
    assert np.array_equal(pypto.matmul(held(a), laid_out, pypto.DT_INT32).numpy(), expected)


def test_nz_that_is_refused() -> None:
    with pytest.raises(ValueError, match="FP32 in TILEOP_ND alone"):
        pypto.matmul(
            held(integers((16, 16), FP32), NZ), held(integers((16, 16), FP32)), pypto.DT_FP32
        )
    bad = held(integers((16, 24), FP16), NZ)
    with pytest.raises(ShapeError, match=r"\[16, 24\] of DT_FP16 in TILEOP_NZ .* 16 x 16"):
        pypto.matmul(bad, held(integers((24, 16), FP16)), pypto.DT_FP16)
    bad = held(integers((24, 16), FP16), NZ)
    with pytest.raises(ShapeError, match="whole fractals"):
        pypto.matmul(held(integers((16, 24), FP16)), bad, pypto.DT_FP16)
    with pytest.raises(ValueError, match="add takes tensors in TILEOP_ND, not TILEOP_NZ"):
        pypto.add(bad, bad)
    with pytest.raises(ShapeError, match="ends in fractals of 16 x 16"):
        from_nz(np.zeros((2, 2, 16, 8), np.float16))
    with pytest.raises(ShapeError, match=r"hold at most \[32, 32\]"):
        from_nz(np.zeros((2, 2, 16, 16), np.float16), 33, 1)
    with pytest.raises(ShapeError, match="holds none"):
        to_nz(np.zeros(4, np.float16))
