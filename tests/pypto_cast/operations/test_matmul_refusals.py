"""Bad input of matmul: cube tiles, operands and extend_params that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_matmul import DTYPES, FP16, FP32, NZ, held, integers
from test_matmul import cube_tiles as cube_tiles  # set for every test here, too

import pypto_cast as pypto
from tiling.plan import ShapeError, TileShapeError, TileShapeWarning


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


def test_int8_results_that_are_refused() -> None:
    a = held(integers((32, 32), np.dtype(np.float16)))
    with pytest.raises(ValueError, match="needs scale or scale_tensor"):
        pypto.matmul(a, a, pypto.DT_INT8)
    with pypto.options(release="0.2.0"), pytest.raises(TypeError, match=r"0\.2\.0.*no DT_INT8"):
        pypto.matmul(a, a, pypto.DT_INT8, extend_params={"scale": 2.0})
    for word, says in ((0x3F800000, "bit 46 clear"), (0x3F800000 | 1 << 46 | 1 << 37, "offset")):
        words = held(np.full((1, 32), word, np.uint64))
        with pytest.raises(ValueError, match=says):
            pypto.matmul(a, a, pypto.DT_INT8, extend_params={"scale_tensor": words})


def test_transposed_batches_that_are_refused() -> None:
    multiply = pypto.experimental.transposed_batchmatmul
    with pytest.raises(ShapeError, match=r"\[M, B, K\] and \[B, K, N\]"):
        multiply(declared(4, 2, 16), declared(3, 16, 4), pypto.DT_FP16)
    with pytest.raises(TypeError, match="not DT_FP32"):
        multiply(declared(4, 2, 16), declared(2, 16, 4), pypto.DT_FP32)


def test_a_program_is_listed_without_values() -> None:
    assert pypto.matmul(declared(16, 16), declared(16, 32), pypto.DT_BF16).shape == [16, 32]
