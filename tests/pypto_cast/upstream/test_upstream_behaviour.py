"""Kernels that upstream runs and that depend on its behaviour in detail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.testing import assert_bits_equal

FP32, FP16 = pypto.DT_FP32, pypto.DT_FP16
ANY: Any = pypto.Tensor[[], FP32]
HALF: Any = pypto.Tensor[[], FP16]
NZ: Any = pypto.Tensor([8, 16], FP32, format=pypto.TileOpFormat.TILEOP_NZ)


@pytest.fixture(autouse=True)
def _clean(pypto_sim: Any) -> None:
    """No tile shape outlives a test."""
    pypto.set_vec_tile_shapes(8, 16)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


# --- Annotations ---------------------------------------------------------------------------------


def test_static_and_dynamic_entries_take_a_tensor_of_higher_rank() -> None:
    seen = []

    @pypto.jit
    def kernel(
        x: pypto.Tensor[[pypto.STATIC, pypto.DYNAMIC], FP32],
        out: ANY,
    ) -> None:
        seen.append(x.shape)
        out[:] = x

    x = numbers(1, 1, 16)
    out = np.zeros_like(x)
    kernel(x, out)
    assert_bits_equal(out, x)
    assert seen == [[1, 1, 16]]
    with pytest.raises(ValueError, match=r"\[STATIC, DYNAMIC\].*has shape \[16\]"):
        kernel(x[0, 0], out)


def test_nz_tensors_are_moved_but_not_cast() -> None:
    @pypto.jit
    def moving(x: NZ, out: ANY) -> None:
        assert x.format is pypto.TileOpFormat.TILEOP_NZ
        out[0:4] = x[0:4]
        pypto.assemble(pypto.view(x, [4, 16], [4, 0]), [4, 0], out)

    x, out = numbers(8, 16), np.zeros((8, 16), np.float32)
    moving(x, out)
    assert_bits_equal(out, x)


@pytest.mark.parametrize(
    "part",
    [
        lambda x: x,
        lambda x: x[0:4],
        lambda x: pypto.view(x, [4, 16], [0, 0]),
        lambda x: x[0],
        lambda x: pypto.view(x, dtype=pypto.DT_INT32),
    ],
    ids=["whole", "slice", "view", "row", "dtype"],
)
def test_no_part_of_an_nz_tensor_is_cast(part: Any) -> None:
    @pypto.jit
    def casting(x: NZ, out: ANY) -> None:
        pypto.cast(part(x), pypto.DT_INT64)

    out = np.zeros((8, 16), np.float32)
    with pytest.raises(ValueError, match="a cast takes tensors in TILEOP_ND, not TILEOP_NZ"):
        casting(numbers(8, 16), out)
    with pytest.raises(ValueError, match="not TILEOP_NZ"):
        casting.program(pypto.tensor([8, 16]), pypto.tensor([8, 16]))


def test_a_kernel_inside_may_ask_for_nz() -> None:
    @pypto.jit
    def inner(x: NZ, out: HALF) -> None:
        out[:] = pypto.cast(x, FP16)

    @pypto.jit
    def outer(x: ANY, out: HALF) -> None:
        inner(x, out)

    with pytest.raises(ValueError, match="not TILEOP_NZ"):
        outer(numbers(8, 16), np.zeros((8, 16), np.float16))


# --- Memory that is input and output -------------------------------------------------------------


def test_one_array_is_input_and_output_across_iterations() -> None:
    """Each row is written from the one before, which the iteration before wrote."""

    @pypto.jit
    def shifted(cache: ANY, out: ANY) -> None:
        for row in pypto.loop(1, cache.shape[0]):
            out[row : row + 1] = cache[row - 1 : row]

    values = numbers(8, 16)
    expected = np.repeat(values[:1], 8, axis=0)
    shifted(values, values)
    assert_bits_equal(values, expected)


def test_one_array_as_three_parameters() -> None:
    @pypto.jit
    def kernel(a: ANY, b: ANY, out: ANY) -> None:
        out[0:1] = a[1:2]
        out[2:3] = b[0:1]

    values = numbers(3, 16)
    expected = values[[1, 1, 1]]
    kernel(values, values, values)
    assert_bits_equal(values, expected)


# --- Computed tensors that are written to --------------------------------------------------------


def test_a_result_takes_over_values_across_iterations() -> None:
    @pypto.jit
    def kernel(x: ANY, out: HALF) -> None:
        acc = pypto.cast(x[0:1], FP16)
        for row in pypto.loop(x.shape[0]):
            out[row : row + 1] = acc
            acc[:] = pypto.cast(x[row : row + 1], FP16)
        acc.move(pypto.cast(x[0:1], FP16))
        out[1:2] = acc

    x, out = numbers(4, 16), np.zeros((4, 16), np.float16)
    kernel(x, out)
    assert_bits_equal(out, x[[0, 0, 1, 2]].astype(np.float16))
    assert len(kernel.program(pypto.tensor([4, 16]), pypto.tensor([4, 16], FP16)).casts) == 6


def test_a_result_that_takes_over_keeps_shape_and_dtype() -> None:
    @pypto.jit
    def kernel(x: ANY, out: HALF, wrong: Any) -> None:
        acc = pypto.cast(x, FP16)
        acc[:] = wrong(x)
        out[:] = acc

    out = np.zeros((8, 16), np.float16)
    for error, wrong in ((TypeError, lambda x: x), (ValueError, lambda x: x[0:4])):
        with pytest.raises(error, match=r"cast it|has shape"):
            kernel(numbers(8, 16), out, wrong)
    assert not out.any()


def test_what_a_failed_kernel_gave_to_a_result_is_taken_back() -> None:
    @pypto.jit
    def inner(acc: HALF, value: HALF) -> None:
        raise ZeroDivisionError

    @pypto.jit
    def kernel(x: ANY, out: HALF) -> None:
        acc = pypto.cast(x, FP16)
        acc[:] = pypto.cast(x, FP16, mode=pypto.CAST_TRUNC)
        with pytest.raises(ZeroDivisionError):
            inner(acc, acc)
        out[:] = acc

    x, out = numbers(8, 16), np.zeros((8, 16), np.float16)
    kernel(x, out)
    magnitudes = np.abs(out.astype(np.float32))
    assert (magnitudes <= np.abs(x)).all()


# --- Parts that nobody wrote ---------------------------------------------------------------------


def tail_kernel(take: Any) -> Any:
    """Writes 5 of 8 rows of a tensor of its own and hands the whole of it on."""

    @pypto.jit
    def kernel(x: ANY, out: HALF) -> None:
        own = pypto.tensor([8, 16], FP32, "own")
        own[0:5] = x[0:5]
        take(own, out)

    return kernel


def cast_all_and_write_five(own: Any, out: Any) -> None:
    out[0:5] = pypto.cast(own, FP16)[0:5]


def through_a_second_tensor(own: Any, out: Any) -> None:
    other = pypto.tensor([8, 16], FP16, "other")
    other[:] = pypto.cast(own, FP16)
    out[0:5] = pypto.view(other, [8, 16], [0, 0], valid_shape=[5, 16])[0:5]


def by_rows(own: Any, out: Any) -> None:
    halves = pypto.cast(own, FP16)
    out[4] = halves[4]
    out[0:4] = halves[0:4]


@pytest.mark.parametrize("take", [cast_all_and_write_five, through_a_second_tensor, by_rows])
def test_a_tail_that_decides_nothing_may_be_read(take: Any) -> None:
    x, out = numbers(8, 16), np.zeros((8, 16), np.float16)
    tail_kernel(take)(x, out)
    assert_bits_equal(out[:5], x[:5].astype(np.float16))
    assert not out[5:].any()


def write_all(own: Any, out: Any) -> None:
    out[:] = pypto.cast(own, FP16)


def write_one_row_too_many(own: Any, out: Any) -> None:
    out[0:6] = pypto.cast(own, FP16)[0:6]


def write_the_row(own: Any, out: Any) -> None:
    out[5] = pypto.cast(own, FP16)[5]


def write_through_a_second_tensor(own: Any, out: Any) -> None:
    other = pypto.tensor([8, 16], FP16, "own")
    other[:] = pypto.cast(own, FP16)
    out[:] = other


def write_through_a_result(own: Any, out: Any) -> None:
    acc = pypto.cast(own[0:5], FP16)
    whole = pypto.cast(own, FP16)
    whole[:] = pypto.cast(own, FP16)
    out[0:5] = acc
    out[:] = whole


@pytest.mark.parametrize(
    "take",
    [
        write_all,
        write_one_row_too_many,
        write_the_row,
        write_through_a_second_tensor,
        write_through_a_result,
    ],
)
def test_a_tail_that_reaches_an_output_is_an_error(take: Any) -> None:
    x, out = numbers(8, 16), np.zeros((8, 16), np.float16)
    with pytest.raises(ValueError, match=r"is read at \[5, 0\], which the kernel has not written"):
        tail_kernel(take)(x, out)
    assert not out.any()


def test_a_tail_decides_no_offset() -> None:
    whole: Any = pypto.Tensor[[], pypto.DT_INT32]

    @pypto.jit
    def kernel(x: whole, out: whole, use: Any) -> None:
        own = pypto.tensor([8, 16], pypto.DT_INT32, "own")
        own[0:5] = x[0:5]
        use(own)
        out[:] = x

    x, out = np.arange(128, dtype=np.int32).reshape(8, 16), np.zeros((8, 16), np.int32)
    kernel(x, out, lambda own: own[4, 3])
    with pytest.raises(ValueError, match="reaches a number that the kernel computes with"):
        kernel(x, out, lambda own: own[5, 3])


def test_a_tail_stays_one_under_another_dtype() -> None:
    @pypto.jit
    def kernel(x: ANY, out: HALF, rows: int) -> None:
        own = pypto.tensor([8, 16], pypto.DT_FP32)
        own[0:5] = x[0:5]
        out[0:rows] = pypto.view(own, dtype=FP16)[0:rows]

    x, out = numbers(8, 16), np.zeros((8, 32), np.float16)
    kernel(x, out, 5)
    assert_bits_equal(out[:5], x[:5].view(np.float16))
    with pytest.raises(ValueError, match=r"is read at \[5, 0\], which the kernel has not written"):
        kernel(x, out, 6)


# --- view(dtype=) --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "length", "kept"),
    [
        (pypto.DT_INT32, 5, 5),
        (FP16, 5, 10),
        (pypto.DT_INT8, 3, 12),
        (pypto.DT_INT64, 6, 3),
        (pypto.DT_INT64, 5, 2),
    ],
)
def test_a_partly_valid_view_is_read_as_another_dtype(
    dtype: pypto.DataType, length: int, kept: int
) -> None:
    """The last valid dimension changes with the width; half an element does not count."""
    shapes = []
    numpy = {FP16: np.float16, pypto.DT_INT8: np.int8, pypto.DT_INT64: np.int64}.get(
        dtype, np.int32
    )
    ratio = 4 / np.dtype(numpy).itemsize
    columns = int(16 * ratio)

    @pypto.jit
    def kernel(x: ANY, out: pypto.Tensor[[], dtype]) -> None:
        part = pypto.view(x, [8, 16], [0, 0], valid_shape=[3, length])
        found = pypto.view(part, dtype=dtype)
        shapes.append((found.shape, found.valid_shape))
        pypto.assemble(found, [0, 0], out)

    x, out = numbers(8, 16), np.zeros((8, columns), numpy)
    kernel(x, out)
    assert shapes == [([8, columns], [3, kept])]
    expected = np.zeros_like(out)
    expected[:3, :kept] = x.view(numpy)[:3, :kept]
    assert out.tobytes() == expected.tobytes()
