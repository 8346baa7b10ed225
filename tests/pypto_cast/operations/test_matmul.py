"""matmul as pypto's: dtypes, layouts, tiles, batches, and what it gives to a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pypto_cast as pypto
from pypto_cast.tensors.nz_layout import from_nz, to_nz
from tiling.plan import ShapeError, TileShapeError, TileShapeWarning

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
    quantity = x.quantity()
    assert quantity is not None
    return quantity.certain()


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
    quantity = found.quantity()
    assert quantity is not None
    low, high = (end.astype(np.float64) for end in (quantity.low, quantity.high))
    exact = sums * read.astype(np.float64)
    assert ((low <= exact.astype(FP16)) & (exact.astype(FP16) <= high)).all()
    assert certain(found).mean() > 0.8


def test_a_scaled_sum_too_large_for_fp16_may_be_infinite() -> None:
    a = np.full((1, 100), 127, np.int8)
    found = pypto.matmul(
        held(a), held(-a.T.copy()), pypto.DT_FP16, extend_params={"scale": 1.0}
    ).quantity()
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
        quantity = found.quantity()
        assert quantity is not None
        widths.append((quantity.high.astype(np.float64) - quantity.low).mean())
    assert widths[1] < widths[0] / 4
    pieces = [a[:, k : k + 32].astype(np.float64) @ b[k : k + 32] for k in range(0, 320, 32)]
    total = pieces[0].astype(np.float32)
    for piece in pieces[1:]:
        total = total + piece.astype(np.float32)
    assert np.array_equal(split.numpy(), total)


def test_assumptions_are_named_in_the_options() -> None:
    a = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    b = a.T.copy()
    plain = pypto.matmul(held(a), held(b), pypto.DT_FP32).quantity()
    with pypto.options(assume=["ASSUME_CUBE_RNE"]):
        nearest = pypto.matmul(held(a), held(b), pypto.DT_FP32).quantity()
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


# --- Bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tiles", "dtype", "says"),
    [
        (([0, 16], [32, 32], [32, 32]), FP16, "at least 1"),
        (([16, 24], [32, 32], [32, 32]), FP16, "m in L1, 24, must be a multiple of m in L0, 16"),
        (([32, 16], [32, 32], [32, 32]), FP16, "m in L1, 16, must be a multiple"),
        (([16, 16], [32, 48], [32, 32]), FP16, "k in L1, 48"),
        (([16, 16], [32, 64, 48], [32, 32]), FP16, "k in L1, 48"),
        (([16, 16], [24, 24], [32, 32]), FP16, "k in L0 must be a multiple of 16 .* 32 would do"),
        (([16, 16], [16, 16], [32, 32]), np.dtype(np.int8), "k in L0 must be a multiple of 32"),
        (([16, 16], [32, 32], [48, 48]), np.dtype(np.int8), "n in L0 must be a multiple of 32"),
        (([16, 16], [32, 64, 96], [32, 32]), FP16, r"one must be a multiple .* not \[64, 96\]"),
        (([256, 256], [256, 256], [16, 16]), FP16, "takes 131072 B of L0A; it has 65536 B"),
        (([16, 16], [256, 256], [256, 256]), FP16, "131072 B of L0B; it has 65536"),
        (([256, 256], [16, 16], [256, 256]), FP16, "262144 B of L0C; it has 131072"),
        (([128, 1024], [64, 1024], [128, 128]), FP32, "of L1; it has 524288"),
    ],
)
def test_cube_tiles_that_are_refused(tiles: tuple, dtype: np.dtype, says: str) -> None:
    a = pypto.tensor([1024, 1024], DTYPES[dtype])
    out = pypto.DT_INT32 if dtype == np.int8 else pypto.DT_FP32
    with (
        pypto.options(cube_tile_shapes=list(tiles)),
        pytest.raises(TileShapeError, match=says),
    ):
        pypto.matmul(a, a, out)


def test_tiles_are_no_longer_than_their_matrix() -> None:
    with pypto.options(cube_tile_shapes=[[16, 16], [512, 2048], [128, 128]]):
        a, b = integers((16, 2048), FP32), integers((2048, 24), FP32)
        pypto.matmul(held(a), held(b), pypto.DT_FP32)
        with pytest.raises(TileShapeError, match="L0B"):
            pypto.matmul(held(a), held(np.tile(b, 2)), pypto.DT_FP32)


def test_rows_of_a_transposed_matrix_are_whole_blocks() -> None:
    a = held(integers((16, 16), FP16))
    with pypto.options(cube_tile_shapes=[[1, 1], [16, 16], [16, 16]]):
        pypto.matmul(a, a, pypto.DT_FP32)
        with pytest.raises(TileShapeError, match="m in L0 must be a multiple of 16"):
            pypto.matmul(a, a, pypto.DT_FP32, a_trans=True)
        with pytest.raises(TileShapeError, match="m in L0 must be a multiple of 16"):
            pypto.matmul(held(integers((16, 16), FP16), NZ), a, pypto.DT_FP32)


def test_rows_of_biases_and_scales_fit_their_buffers() -> None:
    a = pypto.tensor([16, 16], pypto.DT_FP16)
    b = pypto.tensor([16, 272], pypto.DT_FP16)
    bias = {"bias_tensor": pypto.tensor([1, 272], pypto.DT_FP32)}
    with (
        pypto.options(cube_tile_shapes=[[16, 16], [16, 16], [272, 272]]),
        pytest.raises(TileShapeError, match="1088 B of the BiasTable buffer; it has 1024"),
    ):
        pypto.matmul(a, b, pypto.DT_FP32, extend_params=bias)
    a, b = pypto.tensor([32, 32], pypto.DT_INT8), pypto.tensor([32, 288], pypto.DT_INT8)
    scales = {"scale_tensor": pypto.tensor([1, 288], pypto.DT_UINT64)}
    with (
        pypto.options(cube_tile_shapes=[[32, 32], [32, 32], [288, 288]]),
        pytest.raises(TileShapeError, match="2304 B of the Fixpipe buffer; it has 2048"),
    ):
        pypto.matmul(a, b, pypto.DT_FP16, extend_params=scales)


def test_no_cube_tiles_warn() -> None:
    a = held(integers((4, 4), FP32))
    with pypto.options():
        pypto.reset_options()
        with pytest.warns(TileShapeWarning, match="no cube tile shapes are set"):
            pypto.matmul(a, a, pypto.DT_FP32)


def declared(*shape: int, dtype: Any = pypto.DT_FP16) -> pypto.Tensor:
    return pypto.tensor(list(shape), dtype)


ROW = declared(1, 16, dtype=pypto.DT_FP32)


@pytest.mark.parametrize(
    ("a", "b", "out", "named", "error", "says"),
    [
        (declared(16, 16), declared(32, 16), pypto.DT_FP16, {}, ShapeError, r"got \[16, 16\] and"),
        (
            declared(16, 16),
            declared(1, 16, 16),
            pypto.DT_FP16,
            {},
            ShapeError,
            "as many dimensions",
        ),
        (declared(2, 16, 16), declared(3, 16, 16), pypto.DT_FP16, {}, ShapeError, "equal or 1"),
        (declared(16), declared(16), pypto.DT_FP16, {}, ShapeError, "2 to 4 dimensions"),
        (declared(1, 65536), declared(65536, 1), pypto.DT_FP16, {}, ShapeError, "at most 65535"),
        (declared(16, 16), ROW, pypto.DT_FP16, {}, TypeError, "not DT_FP16 and DT_FP32"),
        (ROW, ROW, pypto.DT_INT32, {"b_trans": True}, TypeError, "gives DT_FP32.*not DT_INT32"),
        (declared(4, 4, dtype=pypto.DT_INT32),) * 2
        + (pypto.DT_INT32, {}, TypeError, "not DT_INT32; cast"),
        (declared(16, 16), 3, pypto.DT_FP16, {}, TypeError, "takes a pypto Tensor"),
        (declared(16, 16), declared(16, 16), pypto.DT_FP16, {"a_trans": 1}, TypeError, "a_trans"),
        (
            declared(16, 16),
            declared(16, 16),
            pypto.DT_FP16,
            {"c_matrix_nz": True},
            ValueError,
            "must be False",
        ),
    ],
)
def test_what_is_refused(
    a: Any, b: Any, out: Any, named: dict, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        pypto.matmul(a, b, out, **named)


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ([], TypeError, "must be a dict"),
        ({"bias": ROW}, TypeError, r"takes bias_tensor, .* not \['bias'\]"),
        ({"bias_tensor": 1}, TypeError, "bias_tensor takes a pypto Tensor"),
        ({"bias_tensor": declared(1, 16, dtype=pypto.DT_BF16)}, TypeError, "not DT_BF16"),
        ({"bias_tensor": declared(2, 16)}, ShapeError, r"\[1, 16\], not \[2, 16\]"),
        ({"bias_tensor": declared(1, 8)}, ShapeError, r"\[1, 16\], not \[1, 8\]"),
        ({"relu_type": 1}, TypeError, "a pypto.ReLuType"),
        ({"scale": "1"}, TypeError, "scale must be a float"),
        ({"scale": 1e39}, ValueError, "finite FP32"),
        ({"scale": 2.0}, ValueError, "takes no scale"),
        ({"trans_mode": pypto.TransMode.CAST_RINT}, ValueError, "which A2/A3 does not"),
    ],
)
def test_extend_params_that_are_refused(given: Any, error: type[Exception], says: str) -> None:
    x = declared(16, 16)
    with pytest.raises(error, match=says):
        pypto.matmul(x, x, pypto.DT_FP16, extend_params=given)


def test_scales_that_are_refused() -> None:
    a = held(integers((32, 32), np.dtype(np.int8)))
    with pytest.raises(ValueError, match="needs scale or scale_tensor"):
        pypto.matmul(a, a, pypto.DT_FP16)
    for word, says in ((1 << 36, "bit 36"), (0x7F800000, "an FP32 number")):
        words = held(np.full((1, 32), word, np.uint64))
        with pytest.raises(ValueError, match=says):
            pypto.matmul(a, a, pypto.DT_FP16, extend_params={"scale_tensor": words})


def test_transposed_batches_that_are_refused() -> None:
    multiply = pypto.experimental.transposed_batchmatmul
    with pytest.raises(ShapeError, match=r"\[M, B, K\] and \[B, K, N\]"):
        multiply(declared(4, 2, 16), declared(3, 16, 4), pypto.DT_FP16)
    with pytest.raises(TypeError, match="not DT_FP32"):
        multiply(declared(4, 2, 16), declared(2, 16, 4), pypto.DT_FP32)


def test_a_program_is_listed_without_values() -> None:
    assert pypto.matmul(declared(16, 16), declared(16, 32), pypto.DT_BF16).shape == [16, 32]
