"""Views and slices in kernels: tails, valid shapes, and what is written where."""

from __future__ import annotations

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
ONE = pypto.Tensor[[], pypto.DT_INT32]

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
    Viewed("FP16", "FP32", (4, 127, 128, 64), (2, 42, 44, 29), (1, 28, 8, 112)),
]


LARGEST = Viewed("FP16", "FP32", (32, 127, 128, 64), (2, 42, 44, 29), (1, 28, 8, 112))


@pytest.mark.parametrize(
    "case",
    [*VIEWED, pytest.param(LARGEST, marks=pytest.mark.exhaustive)],
    ids=lambda c: f"{c.src}-{c.dst}-{c.shape}",
)
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


def test_parts_of_a_view_that_hold_data_have_the_methods_of_scalars() -> None:
    x = pypto.tensor([32, 32], pypto.DT_FP32)
    extents: list[Any] = x.view([32, 32], [0, 0], valid_shape=[16, 8]).unsqueeze(0).valid_shape
    assert [each.concrete() for each in extents] == extents == [1, 16, 8]
    assert all(each.is_concrete() and type(each.concrete()) is int for each in extents)


@pytest.mark.parametrize(
    ("shape", "offsets", "valid"),
    [([2, 4], [0, 0, 0], None), ([4, 8, 1], [4, 0, 0], None), ([4, 8, 1], [0, 0, 0], [5, 8, 1])],
)
def test_a_view_that_upstream_refuses_is_an_error_of_its_frontend(
    shape: list[int], offsets: list[int], valid: list[int] | None
) -> None:
    x = pypto.tensor([4, 8, 1], pypto.DT_FP32)
    for kind in (pypto.error.FeError, ValueError):
        with pytest.raises(kind, match=r"one for each dimension|outside|reaches beyond"):
            pypto.view(x, shape, offsets, valid_shape=valid)


_A = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
_AT = np.arange(4, dtype=np.int32).reshape(1, 4)
_B = np.full((1, 4), 10, np.float32)
_BITS = np.array([[0.9405094, 0.20237109], [0.99819463, 0.13246714]], np.float32)
_READ: dict[str, tuple[str, Any, object]] = {
    "slices": ("a[:2, :2]", _A, [[1, 2], [5, 6]]),
    "an int and a slice": ("a[1, 1:3]", _A, [6, 7]),
    "from the end": ("a[-1, -3:-1]", _A, [14, 15]),
    "the rest": ("a[..., 1:3]", _A, [[2, 3], [6, 7], [10, 11], [14, 15]]),
    "gather": ("a[0:at]", _A, [[1, 6, 11, 16]]),
    "a view": ("pypto.view(a, [4, 2], [0, 2])", _A, _A[:, 2:].tolist()),
    "its dtype": (
        "pypto.view(a, dtype=pypto.DT_INT8)",
        _BITS,
        [[57, -59, 112, 63, 94, 58, 79, 62], [-81, -119, 127, 63, 119, -91, 7, 62]],
    ),
}
_WRITTEN: dict[str, tuple[str, list[int]]] = {
    "slices": ("a[0:, 0:] = pypto.view(b, [1, 2], [0, 0])", [0, 1]),
    "an int and a slice": ("a[0, 1:3] = b[0, 0:2]", [1, 2]),
    "from the end": ("a[-1, -3:-1] = b[0, 0:2]", [13, 14]),
    "the rest": ("a[..., 2:4] = b[:, 0:2]", [2, 3]),
    "scatter": ("a[0:at] = b", [0, 5, 10, 15]),
}


@pytest.mark.parametrize("form", _READ)
def test_each_documented_form_of_reading(form: str) -> None:
    """Upstream's pypto-Tensor-getitem.md and pypto-view.md, with their numbers."""
    text, data, wanted = _READ[form]
    pypto.set_vec_tile_shapes(4, 8)
    found = eval(text, {"pypto": pypto, "a": pypto.from_numpy(data), "at": pypto.from_numpy(_AT)})
    assert found.numpy().tolist() == wanted


def test_an_element_is_read_as_a_number() -> None:
    a = pypto.from_numpy(_A.astype(np.int32))
    assert int(a[0, 0]) == 1
    assert a[3, -1] == 16


@pytest.mark.parametrize("form", _WRITTEN)
def test_each_documented_form_of_assignment(form: str) -> None:
    """Upstream's pypto-Tensor-getitem.md: only the named elements become 10."""
    text, wanted = _WRITTEN[form]

    @pypto.jit
    def kernel(a: ANY, b: ANY, at: pypto.Tensor[[], pypto.DT_INT32]) -> None:
        pypto.set_vec_tile_shapes(4, 8)
        exec(text, {"pypto": pypto, "a": a, "b": b, "at": at})

    a = np.zeros((4, 4), np.float32)
    kernel(a, _B, _AT)
    assert np.flatnonzero(a == 10).tolist() == wanted
    assert (a.ravel()[~np.isin(np.arange(16), wanted)] == 0).all()


def test_an_element_is_assigned() -> None:
    @pypto.jit
    def kernel(a: ONE, b: ONE) -> None:
        a[2, 3] = 5
        a[-1, 0] = b[0, 1] + b[1, 0]

    a, b = np.zeros((4, 4), np.int32), np.int32([[1, 2], [3, 4]])
    kernel(a, b)
    assert (a[2, 3], a[3, 0], a.sum()) == (5, 5, 10)


def test_an_assigned_element_is_as_open_as_its_number() -> None:
    @pypto.jit
    def kernel(x: ANY, a: ONE) -> None:
        pypto.set_vec_tile_shapes(8)
        found = pypto.cast(pypto.exp(x) * 65536.0, pypto.DT_INT32)
        a[0, 0] = found[0] - found[1]
        a[0, 1] = found[2]

    x, a = np.float32([8.0, 0.0, 0.0, 0, 0, 0, 0, 0]), np.zeros((1, 2), np.int32)
    assert kernel.certainty(x, a).outputs[0].certain.tolist() == [[False, True]]


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("a[0, 0] = 1.5", TypeError, "assigned an int, not 1.5"),
        ("a[0, 0] = True", TypeError, "assigned an int, not True"),
        ("a[0, 0] = 2**31", OverflowError, "an assigned element: DT_INT32 holds"),
        ("a[4, 0] = 1", IndexError, "ends there"),
        ("x[0, 0] = 1", TypeError, "assigned in DT_INT32 only, not in DT_FP32"),
        ("a[0] = 1", TypeError, "a kernel writes tensors, not 1"),
    ],
)
def test_a_bad_assignment_to_an_element(text: str, error: type[Exception], match: str) -> None:
    @pypto.jit
    def kernel(x: ANY, a: ONE) -> None:
        exec(text, {"x": x, "a": a})

    x, a = np.zeros((4, 4), np.float32), np.zeros((4, 4), np.int32)
    with pytest.raises(error, match=match):
        kernel(x, a)
    assert not x.any()
    assert not a.any()
