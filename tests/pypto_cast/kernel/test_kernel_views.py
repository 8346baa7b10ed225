"""Views, slices and assemble in kernels: tails, valid shapes, and what is written where."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from support.numbers.cast_arrays import converted, holder, specials

import pypto_cast as pypto
from pypto_cast.testing import assert_bits_equal

Array = npt.NDArray[Any]
ANY = pypto.Tensor[[], pypto.DT_FP32]

pytestmark = pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")


@pytest.fixture(autouse=True)
def _clean(pypto_sim: object) -> None:
    """Default options and no tile shape."""


@pypto.frontend.jit(use_cache=False, host_options=None)
def whole(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
    """Upstream's documented example: a tile of 8 along each axis."""
    pypto.set_vec_tile_shapes(*[8] * len(x.shape))
    out[:] = pypto.cast(x, pypto.DT_FP16)


# --- What upstream's examples and tests do -------------------------------------------------------


@pytest.mark.parametrize("shape", [(2,), (3, 21), (2, 3, 17), (2, 3, 4, 9)], ids=str)
def test_one_to_four_dimensions(shape: tuple[int, ...]) -> None:
    x = specials(pypto.DT_FP32, shape)
    out = np.zeros(shape, np.float16)
    assert whole(x, out) is None
    assert_bits_equal(out, converted(x, pypto.DT_FP16))


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 96])
def test_a_dynamic_first_axis(rows: int) -> None:
    @pypto.jit
    def kernel(
        x: pypto.Tensor[[pypto.DYNAMIC, 48], pypto.DT_INT32],
        out: pypto.Tensor[[pypto.DYN, pypto.STATIC], pypto.DT_FP32],
    ) -> None:
        pypto.set_vec_tile_shapes(8, 48)
        for index in pypto.loop(pypto.ceildiv(x.shape[0], 32)):
            start = index * 32
            left = (x.shape[0] - start).min(32)
            part = pypto.view(x, [32, 48], [start, 0], valid_shape=[left, 48])
            out[start:, 0:] = pypto.cast(part, pypto.DT_FP32)

    x = specials(pypto.DT_INT32, (rows, 48))
    out = np.zeros(x.shape, np.float32)
    kernel(x, out)
    assert_bits_equal(out, converted(x, pypto.DT_FP32))


class Viewed(NamedTuple):
    """Upstream's system tests of Cast: nested loops over views of a tensor."""

    src: str
    dst: str
    shape: tuple[int, ...]
    view: tuple[int, ...]
    tile: tuple[int, ...]


def nested_loops(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """A pypto.loop in a pypto.loop, one for each count."""
    if not counts:
        yield ()
        return
    for index in pypto.loop(counts[0]):
        for inner in nested_loops(counts[1:]):
            yield (index, *inner)


VIEWED = [
    Viewed("FP32", "FP16", (512, 128), (512, 128), (64, 128)),
    Viewed("FP32", "FP16", (1024, 256), (1024, 256), (64, 128)),
    Viewed("FP32", "INT16", (512, 256), (512, 256), (64, 64)),
    Viewed("FP16", "FP32", (512, 128), (512, 128), (64, 64)),
    Viewed("FP16", "INT32", (32, 32), (32, 32), (32, 32)),
    Viewed("FP16", "INT8", (64, 64), (64, 64), (32, 32)),
    Viewed("INT32", "FP16", (107, 145), (107, 145), (16, 16)),
    Viewed("INT32", "FP32", (1, 1), (1, 1), (16, 16)),
    Viewed("INT16", "FP32", (32, 32), (32, 32), (16, 16)),
    Viewed("INT8", "FP16", (128, 128), (128, 128), (64, 64)),
    Viewed("INT32", "FP32", (16, 384), (7, 169), (215, 48)),
    Viewed("BF16", "FP32", (16, 1, 64), (5, 2, 18), (310, 6, 16)),
    Viewed("FP16", "FP32", (32, 127, 128, 64), (2, 42, 44, 29), (1, 28, 8, 112)),
]


@pytest.mark.parametrize("case", VIEWED, ids=lambda c: f"{c.src}-{c.dst}-{c.shape}")
def test_views_with_tails(case: Viewed) -> None:
    src, dst = pypto.DataType[f"DT_{case.src}"], pypto.DataType[f"DT_{case.dst}"]

    @pypto.jit
    def kernel(x: pypto.Tensor[[], src], out: pypto.Tensor[[], dst], counts: list[int]) -> None:
        pypto.set_vec_tile_shapes(*case.tile)
        for indices in nested_loops(counts):
            offsets = [index * length for index, length in zip(indices, case.view, strict=True)]
            pypto.assemble(pypto.cast(pypto.view(x, case.view, offsets), dst), offsets, out)

    x = specials(src, case.shape)
    out = np.zeros(case.shape, holder(dst))
    kernel(x, out, [-(-s // v) for s, v in zip(case.shape, case.view, strict=True)])
    assert_bits_equal(out, converted(x, dst))


def test_rows_outside_the_valid_shape_stay_as_they_are() -> None:
    """Upstream's dynamic test: 20 of 32 rows are valid."""

    @pypto.jit
    def kernel(x: ANY, out: pypto.Tensor[[32, 64], pypto.DT_INT32], rows: int) -> None:
        pypto.set_vec_tile_shapes(1, 16)
        part = pypto.view(x, [32, 64], [0, 0], valid_shape=[rows, 64])
        out[:] = pypto.cast(part, pypto.DT_INT32, mode=pypto.CastMode.CAST_ROUND)

    out = np.full((32, 64), -99, np.int32)
    kernel(np.ones((32, 64), np.float32), out, rows=20)
    assert (out[:20] == 1).all()
    assert (out[20:] == -99).all()
    x, out = np.ones((32, 64), np.float32), np.full((32, 64), -99, np.int32)
    kernel(x, out, 0)
    assert (out == -99).all()
    assert len(kernel.program(x, out, 0)) == 0


def test_only_the_valid_part_is_in_the_program() -> None:
    @pypto.jit
    def kernel(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
        pypto.set_vec_tile_shapes(8, 16)
        part = pypto.view(x, [8, 16], [16, 0])
        assert (part.shape, part.valid_shape) == ([8, 16], [4, 16])
        narrower = pypto.view(part, [8, 8], [2, 8])
        assert narrower.valid_shape == [2, 8]
        out[16:24, :] = pypto.cast(part, pypto.DT_FP16)

    x, out = specials(pypto.DT_FP32, (20, 16)), np.zeros((20, 16), np.float16)
    kernel(x, out)
    assert (out[:16] == 0).all()
    assert_bits_equal(out[16:], converted(x[16:], pypto.DT_FP16))
    (plan,) = kernel.plan(x, out)
    assert plan.shape == (4, 16)


def test_a_tile_too_large_for_the_whole_view_is_refused_at_its_tail_too() -> None:
    """Upstream plans the view, whatever of it is valid."""

    @pypto.jit
    def kernel(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
        pypto.set_vec_tile_shapes(4096, 16)
        out[:] = pypto.cast(pypto.view(x, [4096, 16], [0, 0]), pypto.DT_FP16)

    with pytest.raises(pypto.TileShapeError, match="of UB for input and output"):
        kernel(np.ones((4, 16), np.float32), np.ones((4096, 16), np.float16))


def test_the_three_casts_of_a_quantisation() -> None:
    @pypto.jit(runtime_options={"run_mode": pypto.RunMode.SIM, "stitch_function_max_num": 128})
    def quantise(x: ANY, out: pypto.Tensor[[], pypto.DT_INT8]) -> None:
        pypto.set_vec_tile_shapes(32)
        whole = pypto.cast(x, pypto.DT_INT32, mode=pypto.CastMode.CAST_RINT)
        half = pypto.cast(whole, pypto.DT_FP16, mode=pypto.CastMode.CAST_RINT)
        out[:] = pypto.cast(
            half,
            pypto.DT_INT8,
            mode=pypto.CastMode.CAST_TRUNC,
            satmode=pypto.SaturationMode.ON,
        )

    x = np.float32([0.5, 1.5, -2.5, 127.5, 200, -129, 1e9, -np.inf, np.nan, 70000, -0.0, 3])
    out = np.zeros(12, np.int8)
    quantise(x, out)
    assert out.tolist() == [0, 2, -2, 127, 127, -128, 127, -128, 0, 127, 0, 3]


# --- Slices --------------------------------------------------------------------------------------

KEYS: list[Any] = [
    np.s_[:2, :2],
    np.s_[1:3],
    np.s_[..., 1:3],
    np.s_[1, 1:3],
    np.s_[-1, -3:-1],
    np.s_[2],
    np.s_[:, 3],
    np.s_[...],
    np.s_[1:, ...],
    np.s_[0:4, 0:4],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_slices_are_numpys(key: Any) -> None:
    @pypto.jit
    def get(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
        pypto.set_vec_tile_shapes(*[16] * out.dim)
        out[:] = pypto.cast(x[key], pypto.DT_FP16)

    @pypto.jit
    def put(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
        pypto.set_vec_tile_shapes(*[16] * x.dim)
        out[key] = pypto.cast(x, pypto.DT_FP16)

    x = np.arange(16, dtype=np.float32).reshape(4, 4) + 0.1
    out = np.zeros(x[key].shape, np.float16)
    get(x, out)
    assert_bits_equal(out, x[key].astype(np.float16))
    wanted, full = np.full((4, 4), -9, np.float16), np.full((4, 4), -9, np.float16)
    wanted[key] = x[key].astype(np.float16)
    put(np.ascontiguousarray(x[key]), full)
    assert_bits_equal(full, wanted)


def test_an_open_slice_takes_the_extent_of_what_is_written() -> None:
    """As upstream's documents show it: a[0:, 0:] = b and a[..., 2:4] = b with b of 2 x 2."""

    @pypto.jit
    def put(x: ANY, a: ANY, b: ANY) -> None:
        a[0:, 0:] = x
        b[..., 2:4] = x

    a, b = np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)
    put(np.full((2, 2), 10, np.float32), a, b)
    assert a.sum() == b.sum() == 40
    assert (a[:2, :2] == 10).all()
    assert (b[:2, 2:] == 10).all()


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (np.s_[::2], ValueError),
        (np.s_[2:2], ValueError),
        (np.s_[3:1, :], ValueError),
        (np.s_[7:9], IndexError),
        (np.s_[1, 2, 3], IndexError),
        (np.s_[..., ...], IndexError),
        (np.s_[True], TypeError),
        (np.s_[None], TypeError),
        (np.s_[1.0:2], TypeError),
        (np.s_[[0, 1]], TypeError),
    ],
    ids=str,
)
def test_what_is_no_slice_of_a_tensor(key: Any, error: type[Exception]) -> None:
    @pypto.jit
    def get(x: ANY, out: ANY) -> None:
        out[:] = x[key]

    with pytest.raises(error):
        get(np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32))


def test_a_single_int32_may_steer_the_kernel() -> None:
    @pypto.jit
    def kernel(
        rows: pypto.Tensor[[1], pypto.DT_INT32], x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]
    ) -> None:
        pypto.set_vec_tile_shapes(1, 16)
        for row in pypto.loop(rows[0]):
            out[row : row + 1, :] = pypto.cast(x[row : row + 1, :], pypto.DT_FP16)

    x, out = np.ones((8, 16), np.float32), np.zeros((8, 16), np.float16)
    kernel(np.int32([3]), x, out)
    assert out[:, 0].tolist() == [1, 1, 1, 0, 0, 0, 0, 0]

    @pypto.jit
    def wrong(x: ANY, out: ANY) -> None:
        out[0:1] = x[x[0] : 1]

    with pytest.raises(TypeError, match="single elements are read of DT_INT32 only"):
        wrong(np.zeros(4, np.float32), np.zeros(4, np.float32))


# --- view, assemble and tensors that the kernel declares -----------------------------------------


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
        (([4, 4], [0, 0], [5, 4]), ValueError, "reaches beyond"),
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
