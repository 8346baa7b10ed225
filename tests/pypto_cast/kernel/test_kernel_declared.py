"""view, assemble and tensors that a kernel declares: what is held, read, moved and refused."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from support.numbers.cast_arrays import converted, specials

import pypto_cast as pypto
from pypto_cast.testing import assert_bits_equal

ANY = pypto.Tensor[[], pypto.DT_FP32]

pytestmark = pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")


@pytest.fixture(autouse=True)
def _clean(pypto_sim: object) -> None:
    """Default options and no tile shape."""


def test_view_reads_bits_as_another_dtype() -> None:
    @pypto.jit
    def kernel(x: ANY, out: pypto.Tensor[[], pypto.DT_INT16]) -> None:
        out[:] = pypto.view(x, dtype=pypto.DT_INT16)

    x, out = specials(pypto.DT_FP32, (3, 4)), np.zeros((3, 8), np.int16)
    kernel(x, out)
    assert_bits_equal(out, x.view(np.int16))


def test_assemble_takes_a_list() -> None:
    @pypto.jit
    def kernel(x: ANY, y: ANY, out: ANY) -> None:
        pypto.assemble([(x, [0, 0]), (y, [2, 2])], out, parallel=True)

    out = np.zeros((4, 4), np.float32)
    kernel(np.full((2, 2), 1, np.float32), np.full((2, 2), 2, np.float32), out)
    assert out.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 2, 2], [0, 0, 2, 2]]


def test_a_declared_tensor_holds_what_is_written_to_it() -> None:
    @pypto.jit
    def kernel(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
        pypto.set_vec_tile_shapes(4, 16)
        both = pypto.tensor([8, 16], pypto.DT_FP16, name="both")
        pypto.assemble(pypto.cast(x[0:4, :], pypto.DT_FP16), [0, 0], both)
        both[4:8, :] = pypto.cast(x[4:8, :], pypto.DT_FP16)
        before = both[0:4, :]
        both[0:4, :] = both[4:8, :]
        out[0:4, :] = before
        out[4:8, :] = both[0:4, :]

    x, out = specials(pypto.DT_FP32, (8, 16)), np.zeros((8, 16), np.float16)
    kernel(x, out)
    assert_bits_equal(out, converted(x, pypto.DT_FP16))


def test_what_was_never_written_is_not_read() -> None:
    tmp = pypto.tensor([8], name="tmp")

    @pypto.jit
    def kernel(x: ANY, out: ANY, count: int) -> None:
        for index in pypto.loop(count):
            tmp[index : index + 1] = x[index : index + 1]
        out[:] = tmp

    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    with pytest.raises(ValueError, match=r"'tmp' is read at \[3\], which the kernel has not wr"):
        kernel(x, out, 3)
    kernel(x, out, 8)
    assert (out == 1).all()
    with pytest.raises(ValueError, match=r"'tmp' is read at \[0\], which the kernel has not"):
        kernel(x, out, 0)


def test_what_nobody_wrote_may_be_moved_and_overwritten() -> None:
    @pypto.jit
    def kernel(x: ANY, out: ANY, is_overwritten: bool) -> None:
        kept = pypto.tensor([8], name="kept")
        kept[:] = pypto.tensor([8], name="tmp")
        kept[:] = kept + x
        if is_overwritten:
            kept[:] = x
        out[:] = kept

    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    kernel(x, out, True)
    assert (out == 1).all()
    with pytest.raises(ValueError, match=r"'kept' is read at \[0\], which the kernel has not"):
        kernel(x, out, False)


def test_a_tensor_of_the_kernel_takes_shape_and_dtype_of_what_is_written() -> None:
    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        kept = pypto.tensor()
        kept[:] = pypto.cast(x, pypto.DT_FP16)
        kept[:] = pypto.cast(kept, pypto.DT_FP32).reshape([2, 4])
        part = x[0:4]
        part[:] = pypto.cast(kept, pypto.DT_FP16)
        out[:] = pypto.cast(part, pypto.DT_FP32)

    x, out = np.arange(8, dtype=np.float32), np.zeros((2, 4), np.float32)
    for _ in range(2):
        kernel(x, out)
        assert (out == x.reshape(2, 4)).all()


def test_what_a_kernel_declared_ends_with_it() -> None:
    tmp = pypto.tensor([8], name="tmp")

    @pypto.jit
    def inner(x: ANY, part: ANY) -> None:
        part[:] = x
        held.append(part)

    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        inner(x, tmp)
        out[:] = tmp
        held.append(tmp)

    held: list[pypto.Tensor] = []
    x, out = specials(pypto.DT_FP32, (8,)), np.zeros(8, np.float32)
    kernel(x, out)
    assert_bits_equal(out, x)
    assert [(t.has_data, t.elements(), t.patches()) for t in held] == [(False, None, ())] * 2


def test_looking_at_a_tensor_changes_nothing() -> None:
    """From outside the kernel that declared it: from a thread, and from a program to look at."""
    tmp = pypto.tensor([8], name="tmp")
    seen: list[bool] = []

    @pypto.jit
    def copies(x: ANY, out: ANY) -> None:
        out[:] = x

    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        tmp[:] = x
        thread = threading.Thread(target=lambda: seen.append(tmp.has_data))
        thread.start()
        thread.join()
        assert len(copies.program(tmp, pypto.tensor([8]))) == 0
        out[:] = tmp

    x, out = specials(pypto.DT_FP32, (8,)), np.zeros(8, np.float32)
    kernel(x, out)
    assert_bits_equal(out, x)
    assert seen == [False]


def test_what_a_failed_inner_kernel_declared_ends_with_it() -> None:
    tmp = pypto.tensor([8], name="tmp")

    @pypto.jit
    def inner(x: ANY) -> None:
        tmp[:] = x
        raise ZeroDivisionError

    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        with pytest.raises(ZeroDivisionError):
            inner(x)
        out[:] = tmp

    with pytest.raises(ValueError, match=r"'tmp' is read at \[0\], which the kernel has not"):
        kernel(np.ones(8, np.float32), np.zeros(8, np.float32))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (([4], [0, 0]), ValueError, "shape must be 2 ints"),
        (([4, 4], [0]), ValueError, "offsets must be 2 ints"),
        (([4, 4], [0, -1]), ValueError, "offsets must be 2 ints from 0"),
        (([4, 4], [8, 0]), ValueError, r"offsets \[8, 0\] lie outside"),
        (([4, 4], [0, 0], [9, 4]), ValueError, "reaches beyond"),
        (([4, 4], [6, 0], [4, 4]), ValueError, "reaches beyond"),
        (([4.0, 4], [0, 0]), TypeError, "shape must be a list of ints"),
        ((8, 0), TypeError, "shape must be a list of ints"),
        (([4, 4],), TypeError, "a shape and offsets, or a dtype"),
        (([4, 4], [0, 0], None, pypto.DT_INT8), TypeError, "a shape and offsets, or a dtype"),
    ],
    ids=str,
)
def test_views_that_do_not_exist(arguments: Any, error: type[Exception], text: str) -> None:
    x = pypto.from_numpy(np.zeros((8, 8), np.float32))
    with pytest.raises(error, match=text):
        pypto.view(x, *arguments)


def test_a_view_whose_shape_upstream_cannot_know() -> None:
    @pypto.jit
    def kernel(x: pypto.Tensor[[pypto.DYNAMIC], pypto.DT_FP32], out: ANY) -> None:
        out[:] = pypto.view(x, [x.shape[0].min(4)], [0])

    with pytest.raises(TypeError, match="depends on a loop or a dynamic dimension"):
        kernel(np.zeros(8, np.float32), np.zeros(4, np.float32))


def test_a_shape_calculated_of_ints_alone_is_a_constant() -> None:
    @pypto.jit
    def kernel(x: pypto.Tensor[[pypto.DYNAMIC], pypto.DT_FP32], out: ANY) -> None:
        rows = pypto.min(8, 4) // 2 * pypto.SymbolicScalar(2)
        out[:] = pypto.reshape(pypto.view(x, [rows], [0]), [rows // 2, 2]).reshape([rows])

    given, out = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    kernel(given, out)
    assert out.tolist() == given[:4].tolist()


@pytest.mark.parametrize(
    ("written", "error", "text"),
    [
        (lambda out, x: out.assemble(x, [1]), ValueError, r"\[8\] at \[1\] do not fit"),
        (lambda out, x: out.move(x[0:4]), ValueError, r"'out' has shape \[8\]"),
        (lambda out, x: out.__setitem__(np.s_[0:2], x[0:4]), ValueError, r"index takes \[2\]"),
        (lambda out, x: out.__setitem__(np.s_[:], 1.0), TypeError, "writes tensors, not 1.0"),
        (lambda out, x: out.__setitem__(0, x[0:1]), ValueError, "index takes 0 dimensions"),
        (
            lambda out, x: out[0:4].assemble(x[0:4], [0]),
            TypeError,
            "is a view or a constant, not an output",
        ),
        (lambda out, x: out.move(pypto.cast(x, pypto.DT_FP16)), TypeError, "DT_FP16: cast it"),
        (lambda out, x: pypto.assemble(x, out, [0]), TypeError, "assemble takes"),
    ],
)
def test_writes_that_upstream_would_get_wrong(
    written: Any, error: type[Exception], text: str
) -> None:
    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        pypto.set_vec_tile_shapes(16)
        written(out, x)

    out = np.full(8, -9, np.float32)
    with pytest.raises(error, match=text):
        kernel(np.ones(8, np.float32), out)
    assert (out == -9).all()
    with pytest.raises(error, match=text):
        kernel.program(pypto.tensor([8]), pypto.tensor([8]))


def test_a_tensor_of_unknown_dimensions_is_written_whole() -> None:
    @pypto.jit
    def kernel(x: pypto.Tensor[[4, 8], pypto.DT_FP32], out: pypto.Tensor[[4, 8]]) -> None:
        declared = pypto.tensor([-1, 8], pypto.DT_FP32, "held")
        if x.shape[0] == 4:
            with pytest.raises(ValueError, match=r"declared with shape \[-1, 8\]"):
                pypto.assemble(x, [0, 0], declared)
        declared[:] = x
        out[:] = declared

    out = np.zeros((4, 8), np.float32)
    kernel(np.ones((4, 8), np.float32), out)
    assert (out == 1).all()


def test_tensors_are_written_in_kernels_only() -> None:
    x = pypto.from_numpy(np.ones(8, np.float32))
    with pytest.raises(TypeError, match=r"written outside a kernel; decorate .* pypto\.jit"):
        pypto.tensor([8])[:] = x


def test_every_axis_whole_is_the_whole_tensor() -> None:
    @pypto.jit
    def kernel(
        x: pypto.Tensor[[4, 64], pypto.DT_FP32], out: pypto.Tensor[[4, 64], pypto.DT_FP16]
    ) -> None:
        pypto.set_vec_tile_shapes(2, 64)
        out[:, :] = pypto.cast(x[0:2], pypto.DT_FP16)

    out = np.full((4, 64), 7, np.float16)
    with pytest.raises(ValueError, match=r"\[2, 64\]"):
        kernel(np.ones((4, 64), np.float32), out)
    assert (out == 7).all()
