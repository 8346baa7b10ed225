"""Tensors through cast: no layout changes a bit, declarations stay so, and bad arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.numbers.cast_arrays import SOURCES, TARGETS, Array, codes, holder

import pypto_cast as pypto
from pypto_cast import DataType


def values(dtype: DataType, shape: tuple[int, ...]) -> Array:
    """Random codes of a dtype, all kinds of NaN among them."""
    fmt = dtype.format
    assert fmt is not None
    rng = np.random.default_rng(20251117)
    raw = rng.integers(0, 1 << fmt.bits, shape, dtype=fmt.code_dtype)
    if fmt.bits == 4:
        return ((raw ^ 8).astype(np.int8) - 8).astype(fmt.dtype)
    return raw.view(fmt.dtype)


def read_only(array: Array) -> Array:
    frozen = array.copy()
    frozen.flags.writeable = False
    return frozen


def unaligned(array: Array) -> Array:
    room = np.zeros(array.nbytes + 1, np.uint8)
    shifted: Array = room[1:].view(array.dtype).reshape(array.shape)
    shifted[...] = array
    return shifted


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "read-only": read_only,
    "fortran": np.asfortranarray,
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "big-endian-strided": lambda a: np.repeat(a.astype(a.dtype.newbyteorder(">")), 2, 1)[:, ::2],
    "negative": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "one-row-for-all": lambda a: np.broadcast_to(a[:1], a.shape),
    "unaligned": unaligned,
}


@pytest.mark.parametrize("fidelity", ["fast", "instructions"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("src", SOURCES, ids=str)
@pytest.mark.sampled(10)
def test_the_layout_of_an_array_changes_no_bit(src: DataType, layout: str, fidelity: Any) -> None:
    array = LAYOUTS[layout](values(src, (20, 192)))
    plain = np.ascontiguousarray(array.astype(holder(src)))
    assert plain.flags.c_contiguous
    before = codes(array)
    assert before == plain.tobytes()
    for dst in TARGETS[src]:
        with pypto.options(vec_tile_shapes=[8, 64], fidelity=fidelity):
            wanted = pypto.cast(pypto.from_numpy(plain), dst, mode=pypto.CAST_RINT)
            actual = pypto.cast(pypto.from_numpy(array), dst, mode=pypto.CAST_RINT)
        assert actual.numpy().dtype == holder(dst)
        assert actual.numpy().shape == (20, 192)
        assert codes(actual.numpy()) == codes(wanted.numpy())
        assert codes(array) == before
        assert not np.shares_memory(actual.numpy(), array)


def test_layouts_are_what_they_say() -> None:
    array = values(pypto.DT_FP32, (20, 192))
    made = {name: layout(array) for name, layout in LAYOUTS.items()}
    contiguous = {name for name, a in made.items() if a.flags.c_contiguous}
    assert contiguous == {"read-only", "big-endian", "unaligned"}
    assert not made["read-only"].flags.writeable
    assert not made["big-endian"].dtype.isnative
    assert not made["unaligned"].flags.aligned
    assert made["negative"].strides[0] < 0


@pytest.mark.parametrize("src", SOURCES, ids=str)
@pytest.mark.parametrize("fidelity", ["fast", "instructions"])
def test_a_failed_cast_leaves_the_input_alone(src: DataType, fidelity: Any) -> None:
    array = values(src, (4, 64))
    before = array.copy()
    x = pypto.from_numpy(array)
    dst = TARGETS[src][0]
    with pypto.options(vec_tile_shapes=[4, 64], strict=True, fidelity=fidelity):
        with pytest.raises(pypto.UnsupportedCastError, match="does not cast"):
            pypto.cast(x, pypto.DT_FP8E4M3)
        pypto.set_vec_tile_shapes(64)
        with pytest.raises(pypto.TileShapeError, match="has 1 entry"):
            pypto.cast(x, dst)
        pypto.set_vec_tile_shapes(4, 2)
        with pytest.raises(pypto.TileShapeError, match="its last axis is"):
            pypto.cast(x, dst)
    assert codes(array) == codes(before)
    assert array.flags.writeable


@pytest.mark.parametrize("src", SOURCES, ids=str)
def test_the_result_is_the_callers_to_change(src: DataType) -> None:
    array = values(src, (4, 64))
    before = array.tobytes()
    with pypto.options(vec_tile_shapes=[4, 64]):
        y = pypto.cast(pypto.from_numpy(array), TARGETS[src][0], mode=pypto.CAST_RINT).numpy()
        again = pypto.cast(pypto.from_numpy(array), TARGETS[src][0], mode=pypto.CAST_RINT).numpy()
    y.fill(0)
    assert array.tobytes() == before
    assert again.any()


# --- Declared tensors through cast -------------------------------------------------------------


def test_casting_a_declaration_declares() -> None:
    x = pypto.tensor([3, 64], pypto.DT_FP32, "x")
    with pypto.options(vec_tile_shapes=[3, 64]):
        y = pypto.cast(x, pypto.DT_FP16)
    assert (y.shape, y.dtype, y.name, y.has_data) == ([3, 64], pypto.DT_FP16, "x", False)
    with pytest.raises(ValueError, match="declared without values"):
        y.numpy()


def test_unknown_dimensions_stay_unknown() -> None:
    x = pypto.tensor([-1, 64], pypto.DT_FP32)
    with warnings.catch_warnings(), pypto.options(vec_tile_shapes=[3, 64]):
        warnings.simplefilter("error")
        y = pypto.cast(x, pypto.DT_INT32)
    assert (y.shape, y.dtype, y.has_data) == ([-1, 64], pypto.DT_INT32, False)
    with (
        pypto.options(vec_tile_shapes=[64]),
        pytest.raises(pypto.TileShapeError, match=r"output \[-1, 64\] needs at least 2 entries"),
    ):
        pypto.cast(x, pypto.DT_INT32)


WITHOUT_A_CAST = (pypto.DT_UINT16, pypto.DT_BOOL, pypto.DT_DOUBLE, pypto.DT_HF8, pypto.DT_BOTTOM)

either_strictness = pytest.mark.parametrize("strict", [False, True], ids=["loose", "strict"])


@pytest.mark.parametrize("dst", [pypto.DT_FP16, pypto.DT_FP32], ids=str)
@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (None, r"1 to 4 dimensions; shape \[\] has 0"),
        ([0], r"no empty tensor; shape \[0\]"),
        ([1] * 5, r"1 to 4 dimensions; shape \[1, 1, 1, 1, 1\] has 5"),
        ([65536, 65536], r"at most 2147483647 elements; .* has 4294967296"),
        ([-1, 0], r"1 to 4 dimensions, none of them 0; got \[-1, 0\]"),
        ([-1] * 5, r"1 to 4 dimensions, none of them 0; got \[-1, -1, -1, -1, -1\]"),
    ],
    ids=["none", "empty", "5d", "too-many", "unknown-empty", "unknown-5d"],
)
@either_strictness
def test_declarations_that_no_cast_takes(
    shape: Any, text: str, dst: DataType, strict: bool
) -> None:
    with pypto.options(strict=strict), pytest.raises(pypto.ShapeError, match=text):
        pypto.cast(pypto.tensor(shape), dst)


@either_strictness
@pytest.mark.parametrize("shape", [[2, 64], [-1, 64]], ids=str)
def test_a_cast_to_the_dtype_it_has_needs_a_whole_tile(shape: Any, strict: bool) -> None:
    x = pypto.tensor(shape)
    wanted = rf"tile shape \[64\] has 1 entry; the output \{shape} needs at least 2 entries"
    with (
        pypto.options(vec_tile_shapes=[64], strict=strict),
        pytest.raises(pypto.TileShapeError, match=wanted),
    ):
        pypto.cast(x, pypto.DT_FP32)
    for tile in ([2, 64], [2, 64, 7]):
        with pypto.options(vec_tile_shapes=tile, strict=strict):
            assert pypto.cast(x, pypto.DT_FP32) is x


@either_strictness
@pytest.mark.parametrize("dtype", WITHOUT_A_CAST, ids=str)
def test_a_dtype_that_is_never_cast_is_not_cast_to_itself(dtype: DataType, strict: bool) -> None:
    wanted = r"A2/A3 does not cast (\w+) -> \1: \1 converts to nothing; sources are FP32, "
    with pypto.options(strict=strict), pytest.raises(pypto.UnsupportedCastError, match=wanted):
        pypto.cast(pypto.tensor([64], dtype), dtype)


@pytest.mark.parametrize("dtype", SOURCES, ids=str)
def test_every_dtype_that_is_cast_is_cast_to_itself(dtype: DataType) -> None:
    x = pypto.tensor([64], dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pypto.cast(x, dtype) is x


def test_no_length_of_an_unknown_dimension_makes_these_legal() -> None:
    with pytest.raises(pypto.ShapeError, match="2147483647"):
        pypto.cast(pypto.tensor([-1, 2**31]), pypto.DT_FP16)
    for src in (pypto.DT_FP16, pypto.DT_INT4):
        with pytest.raises(pypto.ShapeError, match="last axis must be even"):
            pypto.cast(pypto.tensor([-1, 3], src), pypto.DT_INT4)


# --- Arguments of cast -------------------------------------------------------------------------


def test_equal_dtypes_give_the_input_back() -> None:
    x = pypto.tensor(data=[1.5])
    assert pypto.cast(x, pypto.DT_FP32) is x
    h = pypto.tensor(dtype=pypto.DT_FP16, data=[1.5])
    assert pypto.cast(h, pypto.DT_FP16, mode=pypto.CAST_FLOOR) is h
    with pypto.options(vec_tile_shapes=[8]):
        y = pypto.cast(x, pypto.DT_FP32, mode=pypto.CAST_FLOOR)
    assert y is not x
    assert y.numpy().tolist() == [1.0]
    assert x.numpy().tolist() == [1.5]


@pytest.mark.parametrize("wrong", [1, "CAST_RINT", None, pypto.SaturationMode.ON], ids=repr)
def test_a_mode_is_a_cast_mode(wrong: Any) -> None:
    x = pypto.tensor([64])
    with pytest.raises(TypeError, match=r"mode must be a pypto.CastMode \(CAST_NONE, CAST_RINT, "):
        pypto.cast(x, pypto.DT_FP16, mode=wrong)
    with pypto.options(vec_tile_shapes=[64]):
        assert pypto.cast(x, pypto.DT_FP16, mode=pypto.CAST_RINT).shape == [64]


@pytest.mark.parametrize("wrong", [0, True, "ON", pypto.CAST_RINT], ids=repr)
def test_a_satmode_is_a_saturation_mode(wrong: Any) -> None:
    x = pypto.tensor([64])
    with pytest.raises(TypeError, match=r"satmode must be a pypto.SaturationMode \(ON, OFF\), not"):
        pypto.cast(x, pypto.DT_FP16, satmode=wrong)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [([1.0], "builtins.list"), (np.zeros(2, np.float32), "numpy.ndarray"), (1.0, "builtins.float")],
    ids=["list", "array", "float"],
)
def test_cast_takes_tensors(wrong: Any, named: str) -> None:
    wanted = (
        rf"cast takes a pypto Tensor, not {named}; make one with pypto.from_torch\(tensor\), "
        r"pypto.from_numpy\(array\) or pypto.tensor\("
    )
    with pytest.raises(TypeError, match=wanted):
        pypto.cast(wrong, pypto.DT_FP16)


def test_cast_takes_nd_only() -> None:
    nz = pypto.tensor([64], format=pypto.TileOpFormat.TILEOP_NZ)
    with pytest.raises(ValueError, match="a cast takes tensors in TILEOP_ND, not TILEOP_NZ"):
        pypto.cast(nz, pypto.DT_FP16)


@pytest.mark.parametrize("wrong", ["TILEOP_ND", 0], ids=repr)
def test_a_layout_is_a_tile_op_format(wrong: Any) -> None:
    with pytest.raises(TypeError, match="TileOpFormat"):
        pypto.tensor([64], format=wrong)
