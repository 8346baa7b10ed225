"""The memory of a kernel's arguments: strides, byte order, sharing, torch's tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from test_kernel_arguments import annotated, scaled, specials, to_bf16, wanted

import pypto_cast as pypto
from pypto_cast.testing import assert_bits_equal, assert_possible, load_bounds, save_bounds

Array = npt.NDArray[Any]

pytestmark = pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")


@pytest.fixture(autouse=True)
def _clean(pypto_sim: object) -> None:
    """Default options and no tile shape."""


# --- Memory --------------------------------------------------------------------------------------


def strided(kind: str) -> Array:
    """An empty (24, 32) BF16 array that lies in memory in some way."""
    bf16 = ml_dtypes.bfloat16
    return {
        "contiguous": lambda: np.zeros((24, 32), bf16),
        "columns": lambda: np.zeros((24, 64), bf16)[:, ::2],
        "transposed": lambda: np.zeros((32, 24), bf16).T,
        "reversed": lambda: np.zeros((24, 32), bf16)[::-1, ::-1],
        "fortran": lambda: np.zeros((24, 32), bf16, order="F"),
        "inside": lambda: np.zeros((30, 40), bf16)[3:27, 4:36],
    }[kind]()


@pytest.mark.parametrize(
    "kind", ["contiguous", "columns", "transposed", "reversed", "fortran", "inside"]
)
def test_outputs_are_written_however_they_lie(kind: str) -> None:
    out = strided(kind)
    x = np.asfortranarray(specials())[::-1][::-1]
    before = x.copy()
    to_bf16(x, out)
    assert_bits_equal(out, wanted())
    assert_bits_equal(x, before)
    if kind == "columns":
        assert out.base is not None
        assert not out.base[:, 1::2].any()
    if not out.flags.c_contiguous:
        with pypto.options(strict=True), pytest.raises(ValueError, match="not contiguous"):
            to_bf16(specials(), out)


def test_big_endian_arrays() -> None:
    x, out = specials().astype(">f4"), np.zeros((24, 32), ">i2")

    @pypto.jit
    def kernel(x: pypto.Tensor, out: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(8, 16)
        out[:] = pypto.cast(x, pypto.DT_INT16)

    kernel(x, out)
    native = np.zeros((24, 32), np.int16)
    kernel(specials(), native)
    assert_bits_equal(out, native)


def test_memory_that_cannot_be_written() -> None:
    x = specials()
    frozen = np.zeros((24, 32), ml_dtypes.bfloat16)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="out is a read-only array; the kernel writes to it"):
        to_bf16(x, frozen)
    spread = np.lib.stride_tricks.as_strided(np.zeros(32, ml_dtypes.bfloat16), (24, 32), (0, 2))
    with pytest.raises(ValueError, match="out is written, but elements of it share memory"):
        to_bf16(x, spread)
    to_bf16(np.broadcast_to(x[:1], x.shape), np.zeros(x.shape, ml_dtypes.bfloat16))


def test_an_output_shares_memory_with_nothing_else() -> None:
    copy = annotated(pypto.Tensor)
    line = np.arange(16, dtype=np.float32)
    with pytest.raises(ValueError, match="out is written, but shares memory with x"):
        copy(line[0:8], line[4:12])
    assert line.tolist() == list(range(16))
    copy(line[::2], line[1::2])
    assert line[:4].tolist() == [0, 0, 2, 2]


def test_inputs_may_share_memory_with_each_other() -> None:
    """As pages that hold codes and their scales; outputs of one page lie apart in it."""

    @pypto.jit
    def kernel(
        x: pypto.Tensor[[4, 16], pypto.DT_FP32],
        y: pypto.Tensor[[4, 16], pypto.DT_INT32],
        total: pypto.Tensor[[4, 16], pypto.DT_FP32],
        whole: pypto.Tensor[[4, 16], pypto.DT_INT32],
    ) -> None:
        pypto.set_vec_tile_shapes(4, 16)
        total[:] = x + pypto.cast(y, pypto.DT_FP32)
        whole[:] = pypto.cast(x, pypto.DT_INT32)

    pages = np.arange(4 * 32, dtype=np.float32).reshape(4, 32)
    x, y = pages[:, :16], pages.view(np.int32)[:, 8:24]
    results = np.zeros((4, 32), np.float32)
    parts = results[:, :16], results.view(np.int32)[:, 16:]
    kernel(x, y, *parts)
    np.testing.assert_array_equal(parts[0], x + y.astype(np.float32))
    np.testing.assert_array_equal(parts[1], x.astype(np.int32))
    with pytest.raises(ValueError, match="total is written, but shares memory with whole"):
        kernel(x, y, parts[0], results.view(np.int32)[:, 8:24])


def test_in_place() -> None:
    @pypto.jit
    def whole(x: pypto.Tensor, out: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(16)
        out[:] = pypto.cast(x, pypto.DT_FP32, mode=pypto.CAST_FLOOR)

    x = np.float32([1.5, -1.5])
    whole(x, x)
    assert x.tolist() == [1, -2]


def test_an_array_for_two_parameters_is_an_output_of_either_name(tmp_path: Path) -> None:
    @pypto.jit
    def update(
        cache: pypto.Tensor[[4, 8], pypto.DT_FP32],
        x: pypto.Tensor[[4, 8], pypto.DT_FP32],
        cache_out: pypto.Tensor[[4, 8], pypto.DT_FP32],
    ) -> None:
        pypto.set_vec_tile_shapes(4, 8)
        cache_out[:] = cache + x

    array, x = np.ones((4, 8), np.float32), np.full((4, 8), 2, np.float32)
    found = update.certainty(array, x, array)
    save_bounds(found, tmp_path / "bounds.npz")
    for bounds in (found, load_bounds(tmp_path / "bounds.npz")):
        assert list(bounds) == ["cache"]
        assert bounds["cache_out"] is bounds["cache"]
        assert "cache_out" in bounds
        assert (bounds.values["cache_out"] == 3).all()
        assert_possible({"cache_out": x + 1}, bounds)
        with pytest.raises(ValueError, match="actual has other, bounds cache"):
            assert_possible({"other": x + 1}, bounds)
    assert list(update.certainty(array, x, x.copy())) == ["cache_out"]


def test_empty_arrays_are_fine_where_no_cast_sees_them() -> None:
    @pypto.jit
    def rows(x: pypto.Tensor, out: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(1, 16)
        for row in pypto.loop(x.shape[0]):
            out[row : row + 1, :] = pypto.cast(x[row : row + 1, :], pypto.DT_FP16)

    rows(np.zeros((0, 16), np.float32), np.zeros((0, 16), np.float16))
    with pytest.raises(pypto.ShapeError, match="no empty tensor"):
        to_bf16(np.zeros((0, 16), np.float32), np.zeros((0, 16), ml_dtypes.bfloat16))


def test_int4_and_scalars_without_dimensions() -> None:
    nibbles = np.zeros(16, ml_dtypes.int4)
    scaled(np.arange(-8, 8).astype(np.float16), nibbles, 64)
    assert nibbles.astype(int).tolist() == list(range(-8, 8))
    single = np.zeros((), np.int32)
    scaled(np.array(2.5, np.float32), single, 16)
    assert single == 2


# --- torch ---------------------------------------------------------------------------------------


def test_torch_gives_the_bits_of_numpy_and_shares_memory() -> None:
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(specials())
    for out in (
        torch.zeros(24, 32, dtype=torch.bfloat16),
        torch.zeros(32, 24, dtype=torch.bfloat16).T,
        torch.zeros(24, 64, dtype=torch.bfloat16)[:, ::2],
    ):
        place = out.data_ptr()
        to_bf16(x, out)
        assert out.data_ptr() == place
        assert_bits_equal(out, wanted())
    assert_bits_equal(x, specials())


def test_torch_bf16_is_not_copied() -> None:
    torch = pytest.importorskip("torch")
    held = torch.zeros(8, dtype=torch.bfloat16)
    tensor = pypto.from_torch(held, "t", dynamic_axis=[0])
    held[3] = 1.5
    assert tensor.numpy()[3] == 1.5
    assert (tensor.dtype, tensor.name, tensor.shape) == (pypto.DT_BF16, "t", [8])
    assert tensor.shape[0].min(4) == 4
    assert tensor.numpy().ctypes.data == held.data_ptr()
    x = pypto.from_torch(torch.ones(8), "x")
    with pypto.function("main", x, tensor):
        pypto.set_vec_tile_shapes(16)
        tensor[:] = pypto.cast(x, pypto.DT_BF16)
    assert (held == 1).all()


TORCH_DTYPES = [
    *("float16", "bfloat16", "float32", "float8_e5m2", "float8_e4m3fn", "bool"),
    *("int8", "uint8", "int16", "int32", "int64"),
]


@pytest.mark.parametrize("name", TORCH_DTYPES)
def test_from_torch_knows_the_dtypes(name: str) -> None:
    torch = pytest.importorskip("torch")
    held = torch.zeros(2, 4, dtype=getattr(torch, name))
    tensor = pypto.from_torch(held)
    assert tensor.numpy().ctypes.data == held.data_ptr()
    assert pypto.bytes_of(tensor.dtype) == held.element_size()


@pytest.mark.parametrize(
    ("dtype", "codes"),
    [("DT_INT32", [0x3F800000, -(2**31)]), ("DT_FP16", [0x0000, 0x3F80]), ("DT_UINT8", [0, 0])],
)
def test_from_torch_reads_memory_as_another_dtype(dtype: str, codes: list[int]) -> None:
    torch = pytest.importorskip("torch")
    with pytest.warns(pypto.ReinterpretedMemoryWarning, match="without a conversion"):
        tensor = pypto.from_torch(torch.tensor([1.0, -0.0]), dtype=getattr(pypto, dtype))
    assert tensor.dtype is getattr(pypto, dtype)
    array = tensor.numpy()
    assert array.view(f"i{array.itemsize}").tolist() == codes


def test_what_from_torch_refuses() -> None:
    torch = pytest.importorskip("torch")
    assert pypto.from_torch(torch.tensor(2.0)).shape == [1]
    with (
        pytest.warns(pypto.ReinterpretedMemoryWarning),
        pytest.raises(TypeError, match=r"DT_FP32 tensor as DT_INT64.* it has no 2 of them"),
    ):
        pypto.from_torch(torch.zeros(2), dtype=pypto.DT_INT64)
    with pytest.raises(TypeError, match=r"takes a torch\.Tensor, not ndarray"):
        pypto.from_torch(np.zeros(2))
    with pytest.raises(TypeError, match=r"on meta .* use \.cpu\(\)"):
        pypto.from_torch(torch.zeros(2, device="meta"))
    with pytest.raises(TypeError, match=r"tensor_format must be a pypto\.TileOpFormat"):
        pypto.from_torch(torch.zeros(2), tensor_format=1)
    with pypto.options(strict=True), pytest.raises(ValueError, match="not contiguous"):
        pypto.from_torch(torch.zeros(4)[::2])
    with pytest.raises(TypeError, match="numpy dtype complex64"):
        pypto.from_torch(torch.zeros(2, dtype=torch.complex64))


def test_tensors_with_gradients() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(24, 32, requires_grad=True)
    out = torch.zeros(24, 32, dtype=torch.bfloat16)
    to_bf16(x, out)
    assert (out == 1).all()
    assert x.grad is None
