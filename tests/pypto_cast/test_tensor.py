"""Tensors: what they take, what they refuse, and that a cast never cares how an array lies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX
from pypto_cast import DataType

Array = npt.NDArray[Any]

BYTES = {
    "DT_INT4": 1,
    "DT_INT8": 1,
    "DT_INT16": 2,
    "DT_INT32": 4,
    "DT_INT64": 8,
    "DT_FP8": 1,
    "DT_FP16": 2,
    "DT_FP32": 4,
    "DT_BF16": 2,
    "DT_HF4": 1,
    "DT_HF8": 1,
    "DT_UINT8": 1,
    "DT_UINT16": 2,
    "DT_UINT32": 4,
    "DT_UINT64": 8,
    "DT_BOOL": 1,
    "DT_DOUBLE": 8,
    "DT_FP8E4M3": 1,
    "DT_FP8E5M2": 1,
    "DT_FP8E8M0": 1,
    "DT_FP4_E2M1X2": 1,
    "DT_FP4_E1M2X2": 1,
    "DT_FP4_E2M1": 1,
    "DT_FP4_E1M2": 1,
}
CAST_MODES = ["NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD"]

SOURCES = list(dict.fromkeys(DataType[f"DT_{rule.src.name}"] for rule in MATRIX.values()))
TARGETS = {
    src: [DataType[f"DT_{rule.dst.name}"] for rule in MATRIX.values() if rule.src is src.format]
    for src in SOURCES
}


def holder(dtype: DataType) -> np.dtype[Any]:
    """The numpy dtype of a DataType, by the format's own row."""
    assert dtype.format is not None
    return dtype.format.dtype


def codes(array: Array) -> bytes:
    """The bits of an array's elements, in row-major order."""
    return array.astype(array.dtype.newbyteorder("="), order="C").tobytes()


# --- Enums and names ---------------------------------------------------------------------------


def test_dtypes_are_ordered_and_numbered_as_upstream() -> None:
    assert [dtype.name for dtype in DataType] == [*BYTES, "DT_BOTTOM"]
    assert [int(dtype) for dtype in DataType] == list(range(25))


@pytest.mark.parametrize("name", BYTES)
def test_bytes_of(name: str) -> None:
    assert pypto.bytes_of(DataType[name]) == BYTES[name]


def test_bytes_of_what_is_no_type() -> None:
    with pytest.raises(ValueError, match="DT_BOTTOM marks the end of the list of dtypes"):
        pypto.bytes_of(pypto.DT_BOTTOM)
    for wrong in (7, "DT_FP32", np.float32, None):
        with pytest.raises(TypeError, match=r"dtype must be a pypto\.DataType such as pypto\.DT_"):
            pypto.bytes_of(wrong)


@pytest.mark.parametrize("member", [*DataType, *pypto.CastMode], ids=lambda m: m.name)
def test_members_are_at_hand_bare(member: Any) -> None:
    assert getattr(pypto, member.name) is member
    assert member.name in pypto.__all__


def test_modes_are_numbered_as_upstream() -> None:
    assert [mode.name for mode in pypto.CastMode] == [f"CAST_{name}" for name in CAST_MODES]
    assert [int(mode) for mode in pypto.CastMode] == list(range(7))
    assert {mode.name: int(mode) for mode in pypto.SaturationMode} == {"ON": 0, "OFF": 1}
    assert [layout.name for layout in pypto.TileOpFormat] == ["TILEOP_ND", "TILEOP_NZ"]


def test_how_enums_read() -> None:
    assert repr(pypto.CAST_RINT) == "CastMode.CAST_RINT"
    assert repr(pypto.DT_FP16) == "DataType.DT_FP16"
    assert str(pypto.DT_FP16) == "DT_FP16"
    assert repr(pypto.SaturationMode.OFF) == "SaturationMode.OFF"
    assert repr(pypto.TileOpFormat.TILEOP_ND) == "TileOpFormat.TILEOP_ND"


def test_all_names_what_there_is() -> None:
    assert len(set(pypto.__all__)) == len(pypto.__all__)
    for name in pypto.__all__:
        assert getattr(pypto, name) is not None
    scope: dict[str, object] = {}
    exec("from pypto_cast import *", scope)
    assert set(pypto.__all__) <= set(scope)
    assert pypto.tensor is pypto.Tensor


@pytest.mark.parametrize(("a", "b", "wanted"), [(7, 2, 4), (8, 2, 4), (0, 5, 0), (1, 100, 1)])
def test_ceildiv(a: int, b: int, wanted: int) -> None:
    assert pypto.ceildiv(a, b) == wanted


# --- Declaring ---------------------------------------------------------------------------------


def test_the_first_argument_is_a_shape() -> None:
    x = pypto.tensor([2], pypto.DT_FP16)
    assert (x.shape, x.dtype, x.dim, x.has_data) == ([2], pypto.DT_FP16, 1, False)
    assert x.format is pypto.TileOpFormat.TILEOP_ND
    assert pypto.tensor((2, np.int64(3))).shape == [2, 3]
    assert pypto.tensor([2]).dtype is pypto.DT_FP32


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (2, "shape must be a list or tuple of ints, not 2"),
        ("23", "shape must be a list or tuple of ints, not '23'"),
        ([300.0, -300.0], r"shape \[300.0, -300.0\]: 300.0 is no int .*values go to data="),
        ([True], r"shape \[True\]: True is no int"),
        ([None], r"None is no int"),
    ],
    ids=["int", "str", "floats", "bool", "none"],
)
def test_shapes_are_lists_of_ints(shape: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        pypto.tensor(shape)


def test_a_dimension_may_be_unknown_but_not_negative() -> None:
    assert pypto.tensor([-1, 4]).shape == [-1, 4]
    with pytest.raises(ValueError, match=r"shape \[4, -2\]: -2 is negative; only -1"):
        pypto.tensor([4, -2])


@pytest.mark.parametrize("dtype", [7, "DT_FP32", np.float32, float], ids=repr)
def test_an_unknown_dtype(dtype: Any) -> None:
    with pytest.raises(
        TypeError, match=r"dtype must be a pypto\.DataType such as pypto\.DT_FP16, not"
    ):
        pypto.tensor([2], dtype)
    with pytest.raises(
        TypeError, match=r"dtype must be a pypto\.DataType such as pypto\.DT_FP16, not"
    ):
        pypto.cast(pypto.tensor([2]), dtype)


def test_repr_says_shape_dtype_name_and_some_values() -> None:
    assert repr(pypto.tensor([2, -1])) == "Tensor(shape=[2, -1], dtype=DT_FP32)"
    named = pypto.tensor([3], pypto.DT_BF16, "w", data=[1, 2.5, float("nan")])
    assert repr(named) == "Tensor(shape=[3], dtype=DT_BF16, name='w', data=[1, 2.5, nan])"
    six = pypto.tensor(dtype=pypto.DT_INT8, data=[[1, 2, 3], [4, 5, 6]])
    assert repr(six).endswith("data=[1, 2, 3, 4, 5, 6])")
    seven = pypto.tensor(dtype=pypto.DT_INT8, data=list(range(7)))
    assert repr(seven).endswith("data=[0, 1, 2, 3, 4, 5, ...])")


# --- Python numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype", "wanted"),
    [
        ([1.5, -2.0], pypto.DT_FP32, np.float32([1.5, -2.0])),
        ([1, 2], pypto.DT_FP16, np.float16([1, 2])),
        ([True, False], pypto.DT_FP16, np.float16([1, 0])),
        ([[1, 2], [3, 4]], pypto.DT_INT8, np.int8([[1, 2], [3, 4]])),
        (((1.0,), (2.0,)), pypto.DT_INT32, np.int32([[1], [2]])),
        ([True, False], pypto.DT_BOOL, np.array([True, False])),
        ([2**64 - 1], pypto.DT_UINT64, np.uint64([2**64 - 1])),
        ([-(2**63), 2**63 - 1], pypto.DT_INT64, np.int64([-(2**63), 2**63 - 1])),
        ([-8, 7], pypto.DT_INT4, np.array([-8, 7], ml_dtypes.int4)),
        ([1.0, -0.0], pypto.DT_BF16, np.array([1.0, -0.0], ml_dtypes.bfloat16)),
        ([np.float64(3.0)], pypto.DT_FP32, np.float32([3.0])),
        ([[[[1.0]]]], pypto.DT_FP32, np.float32([[[[1.0]]]])),
    ],
    ids=[
        *("floats", "ints", "bools", "nested", "whole-floats", "bool", "uint64", "int64"),
        *("int4", "bf16", "float64", "4d"),
    ],
)
def test_python_numbers_are_taken(data: Any, dtype: DataType, wanted: Array) -> None:
    x = pypto.tensor(dtype=dtype, data=data)
    assert x.shape == list(wanted.shape)
    assert x.dtype is dtype
    assert x.numpy().dtype == wanted.dtype
    assert codes(x.numpy()) == codes(wanted)


@pytest.mark.parametrize(
    ("data", "dtype", "shown"),
    [
        ([1, 300], pypto.DT_INT8, r"data\[1\] is 300, which DT_INT8 \(int8\) cannot hold"),
        ([[1], [-129]], pypto.DT_INT8, r"data\[1, 0\] is -129, .* from -128 to 127"),
        ([-1], pypto.DT_UINT8, r"data\[0\] is -1, which DT_UINT8 .* from 0 to 255"),
        ([8], pypto.DT_INT4, r"data\[0\] is 8, which DT_INT4 .* from -8 to 7"),
        ([2**31], pypto.DT_INT32, r"2147483648, which DT_INT32"),
        ([2**63], pypto.DT_INT64, r"9223372036854775808, which DT_INT64"),
        ([2], pypto.DT_BOOL, r"data\[0\] is 2, which DT_BOOL .* from 0 to 1"),
        ([0.5], pypto.DT_INT8, r"data\[0\] is 0.5, which DT_INT8"),
        ([float("nan")], pypto.DT_INT8, r"data\[0\] is nan, which DT_INT8"),
        ([float("inf")], pypto.DT_INT64, r"data\[0\] is inf, which DT_INT64"),
        ([2.0**63], pypto.DT_INT64, r"which DT_INT64 \(int64\) cannot hold"),
        ([2.0**64], pypto.DT_UINT64, r"which DT_UINT64 \(uint64\) cannot hold"),
        ([2**64], pypto.DT_INT32, r"which DT_INT32 \(int32\) cannot hold"),
        ([-(2**63) - 1], pypto.DT_INT64, r"which DT_INT64 \(int64\) cannot hold"),
    ],
    ids=[
        *("300-int8", "-129-int8", "-1-uint8", "8-int4", "2^31-int32", "2^63-int64", "2-bool"),
        *("half-int8", "nan-int8", "inf-int64", "2.0^63-int64", "2.0^64-uint64", "2^64-int32"),
        "below-int64",
    ],
)
def test_numbers_that_an_integer_dtype_cannot_hold(data: Any, dtype: DataType, shown: str) -> None:
    with pytest.raises(OverflowError, match=shown):
        pypto.tensor(dtype=dtype, data=data)


def bf16_code(number: float) -> int:
    x = pypto.tensor(dtype=pypto.DT_BF16, data=[number])
    return int(x.numpy().view(np.uint16)[0])


def test_python_floats_are_rounded_once() -> None:
    assert bf16_code(1 + 2**-8 + 2**-40) == 0x3F81
    assert bf16_code(1 + 2**-8) == 0x3F80
    assert bf16_code(1 + 3 * 2**-8) == 0x3F82
    assert bf16_code(1 + 3 * 2**-8 - 2**-40) == 0x3F81


def test_python_ints_are_rounded_once() -> None:
    """2^60 + 2^36 + 1 lies above the tie of FP32; by way of float64 it would fall on it."""
    tie = 2**60 + 2**36
    above = np.float32(2**60 + 2**37)
    assert pypto.tensor(dtype=pypto.DT_FP32, data=[tie + 1]).numpy()[0] == above
    assert pypto.tensor(dtype=pypto.DT_FP32, data=[tie]).numpy()[0] == np.float32(2**60)


def test_a_float_in_the_list_does_not_cost_an_int_its_low_bits() -> None:
    exact = pypto.tensor(dtype=pypto.DT_INT64, data=[2**53 + 1, 1.0])
    assert exact.numpy().tolist() == [2**53 + 1, 1]
    rounded = pypto.tensor(dtype=pypto.DT_FP32, data=[2**60 + 2**36 + 1, 0.5])
    assert rounded.numpy().tolist() == [float(2**60 + 2**37), 0.5]


@pytest.mark.parametrize("data", [[70000.0], [float("inf")]], ids=["overflow", "inf"])
def test_python_floats_beyond_a_float_dtype_are_infinite(data: list[float]) -> None:
    assert pypto.tensor(dtype=pypto.DT_FP16, data=data).numpy()[0] == np.inf


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([1j], r"data\[0\] is 1j \(complex\), not a real number"),
        (np.zeros(2, np.complex64), "complex64 holds no numbers that a cast takes"),
        (["1.0"], r"data\[0\] is '1.0' \(str\), not a real number"),
        ("1.0", "holds no numbers that a cast takes"),
        (b"1.0", "holds no numbers that a cast takes"),
        ([None, 1], r"data\[0\] is None \(NoneType\), not a real number"),
        (np.zeros(2, object), "object holds no numbers that a cast takes"),
        (np.zeros(2, "M8[s]"), "holds no numbers that a cast takes"),
        (np.zeros(2, [("a", np.float32)]), "holds no numbers that a cast takes"),
        (np.ma.masked_array(np.zeros(2, np.float32), [True, False]), "mask would be lost"),
        (np.zeros(2), "data has dtype float64, DT_FP32 holds float32"),
        (np.zeros(2, np.float16), "data has dtype float16, DT_FP32 holds float32"),
        (np.zeros(2, np.int32), "data has dtype int32, DT_FP32 holds float32"),
        ({1.0}, "holds no numbers"),
    ],
    ids=[
        *("complex-list", "complex", "str-list", "str", "bytes", "none", "object", "datetime"),
        *("structured", "masked", "float64", "float16", "int32", "set"),
    ],
)
def test_other_data_is_refused(data: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        pypto.tensor(data=data)
    pypto.tensor(data=np.zeros(2, np.float32))


@pytest.mark.parametrize("dtype", [pypto.DT_DOUBLE, pypto.DT_HF8, pypto.DT_BOTTOM], ids=str)
def test_dtypes_that_hold_no_data_are_refused(dtype: DataType) -> None:
    with pytest.raises(TypeError, match=f"{dtype} can be declared but holds no data here; these"):
        pypto.tensor(dtype=dtype, data=[1.0])
    assert pypto.tensor([1], dtype).dtype is dtype


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (1.0, r"1 to 4 dimensions; shape \[\] has 0"),
        ([], r"no empty tensor; shape \[0\] has 0 elements"),
        ([[], []], r"no empty tensor; shape \[2, 0\] has 0 elements"),
        ([[[[[1.0]]]]], r"1 to 4 dimensions; shape \[1, 1, 1, 1, 1\] has 5"),
    ],
    ids=["0d", "empty", "empty-axis", "5d"],
)
def test_data_of_a_shape_that_no_cast_takes(data: Any, text: str) -> None:
    with pytest.raises(pypto.ShapeError, match=text):
        pypto.tensor(data=data)


def test_data_beyond_2147483647_elements() -> None:
    many = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (65536, 32768), (0, 0))
    with pytest.raises(pypto.ShapeError, match=r"at most 2147483647 elements; .* has 2147483648"):
        pypto.from_numpy(many)
    assert pypto.from_numpy(many[:, 1:]).shape == [65536, 32767]


def test_data_agrees_with_the_declared_shape() -> None:
    assert pypto.tensor([2, 1], data=[[1.0], [2.0]]).shape == [2, 1]
    assert pypto.tensor([-1, 1], data=[[1.0], [2.0]]).shape == [2, 1]
    for shape in ([3], [1, 2], [2, 2], [-1, 2], [2, 1, 1]):
        with pytest.raises(ValueError, match=r"data has shape \[2, 1\]; .* was declared"):
            pypto.tensor(shape, data=[[1.0], [2.0]])


# --- numpy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", SOURCES, ids=str)
def test_from_numpy_keeps_the_array(dtype: DataType) -> None:
    array = np.zeros((2, 4), holder(dtype))
    x = pypto.from_numpy(array, "x")
    assert (x.dtype, x.shape, x.name) == (dtype, [2, 4], "x")
    assert x.numpy() is array
    assert pypto.tensor([2, 4], dtype, data=array).numpy() is array


@pytest.mark.parametrize(
    ("array", "text"),
    [
        ([1.0], "takes a numpy.ndarray, not list"),
        (np.float32(1), "takes a numpy.ndarray, not float32"),
        (np.zeros(2), r"float64 has no pypto dtype \(float64: use .astype\(numpy.float32\)\)"),
        (np.zeros(2, ">f8"), r"float64: use .astype"),
        (np.zeros(2, np.complex64), "complex64 has no pypto dtype"),
        (np.zeros(2, object), "object has no pypto dtype"),
        (np.zeros(2, "U3"), "has no pypto dtype; these have: .*float16, float32, bfloat16"),
        (np.zeros(2, [("a", np.float32)]), "has no pypto dtype"),
        (np.ma.masked_array(np.zeros(2, np.float32)), "mask would be lost; fill it first"),
    ],
    ids=["list", "scalar", "float64", ">f8", "complex", "object", "str", "structured", "masked"],
)
def test_from_numpy_refuses(array: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        pypto.from_numpy(array)


def test_a_declared_tensor_has_no_values() -> None:
    x = pypto.tensor([2], name="x")
    wanted = (
        r"Tensor\(shape=\[2\], dtype=DT_FP32, name='x'\) is declared without values; give data="
    )
    with pytest.raises(ValueError, match=wanted):
        x.numpy()
    with pytest.raises(ValueError, match="declared without values"):
        np.asarray(x)
    with pytest.raises(ValueError, match="declared without values"):
        np.from_dlpack(x)


def test_numpy_reads_a_tensor() -> None:
    array = np.float16([1.5, -2.0])
    x = pypto.from_numpy(array)
    assert np.shares_memory(np.asarray(x), array)
    assert not np.shares_memory(x.__array__(copy=True), array)
    widened = np.asarray(x, dtype=np.float32)
    assert widened.dtype == np.float32
    assert widened.tolist() == [1.5, -2.0]
    assert np.shares_memory(x.__array__(np.float16, copy=False), array)
    with pytest.raises(ValueError, match="no view of DT_FP16 as float32 without a copy"):
        x.__array__(np.float32, copy=False)


@pytest.mark.parametrize(
    "dtype",
    [np.float16, np.float32, np.int8, np.int16, np.int32, np.int64, np.uint8],
    ids=lambda d: d.__name__,
)
def test_dlpack_round_trip(dtype: Any) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    x = pypto.from_numpy(array)
    back = np.from_dlpack(x)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, array)
    assert np.shares_memory(back, array)
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_refuses_what_numpy_cannot_export() -> None:
    x = pypto.from_numpy(np.zeros(4, ml_dtypes.int4))
    with pytest.raises(BufferError, match="DLPack only supports"):
        np.from_dlpack(x)
    with pytest.raises(BufferError, match="DLPack only supports"):
        x.__dlpack__()


class Giver:
    """A library's array that has DLPack and nothing else."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._held.__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self._held.__dlpack_device__()


def test_from_dlpack_shares_memory() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = pypto.from_dlpack(Giver(array), "x")
    assert (x.name, x.dtype, x.shape) == ("x", pypto.DT_FP32, [2, 3])
    assert np.shares_memory(x.numpy(), array)
    assert pypto.from_dlpack(Giver(np.array(3, np.float32))).shape == [1]
    with pytest.raises(TypeError, match="takes an object with __dlpack__, not list"):
        pypto.from_dlpack([1.0])


def test_bf16_goes_through_torch() -> None:
    torch = pytest.importorskip("torch", reason='BF16 goes through torch: "pypto-cast[torch]"')
    given = torch.tensor([1.0, -2.5, float("nan")]).to(torch.bfloat16)
    for source in (given, Giver(given)):
        x = pypto.from_dlpack(source)
        assert x.dtype is pypto.DT_BF16
        assert x.numpy().view(np.int16).tolist() == given.view(torch.int16).tolist()
    done = pypto.cast(pypto.tensor([2], pypto.DT_FP32, data=[1.0, -2.5]), pypto.DT_BF16)
    back = torch.from_dlpack(done)
    assert back.dtype is torch.bfloat16
    assert back.tolist() == [1.0, -2.5]
    assert torch.from_dlpack(pypto.from_dlpack(back)).data_ptr() == back.data_ptr()


# --- Layouts through cast ----------------------------------------------------------------------


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
