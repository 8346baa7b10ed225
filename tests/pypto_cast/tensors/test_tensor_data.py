"""Data of a tensor: Python numbers, numpy arrays and DLPack, and what is refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.numbers.cast_arrays import SOURCES, Array, codes, holder

import pypto_cast as pypto
from pypto_cast import DataType
from pypto_cast.dtypes.data_types import numpy_dtype
from pypto_cast.testing import assert_bits_equal


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


@pytest.mark.parametrize("dtype", [pypto.DT_FP32, pypto.DT_FP16, pypto.DT_BF16], ids=str)
def test_floats_are_made_of_ints_of_64_bits(dtype: DataType) -> None:
    pypto.tensor(dtype=dtype, data=[[2**64 - 1, -(2**63)]])
    for beyond in (2**64, -(2**63) - 1):
        shown = rf"data\[0, 1\] is {beyond}: an int of more than 64 bits"
        with pytest.raises(OverflowError, match=shown):
            pypto.tensor(dtype=dtype, data=[[1, beyond]])


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


@pytest.mark.parametrize("dtype", [pypto.DT_DOUBLE, pypto.DT_HF4, pypto.DT_BOTTOM], ids=str)
def test_dtypes_that_hold_no_data_are_refused(dtype: DataType) -> None:
    with pytest.raises(TypeError, match=f"{dtype} can be declared but holds no data here; these"):
        pypto.tensor(dtype=dtype, data=[1.0])
    assert pypto.tensor([1], dtype).dtype is dtype


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (1.0, r"1 to 5 dimensions; shape \[\] has 0"),
        ([], r"no empty tensor; shape \[0\] has 0 elements"),
        ([[], []], r"no empty tensor; shape \[2, 0\] has 0 elements"),
        ([[[[[[1.0]]]]]], r"1 to 5 dimensions; shape \[1, 1, 1, 1, 1, 1\] has 6"),
    ],
    ids=["0d", "empty", "empty-axis", "6d"],
)
def test_data_of_a_shape_that_no_operation_takes(data: Any, text: str) -> None:
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
    torch = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
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


# --- Formats of which numpy has no values -------------------------------------------------------


@pytest.mark.parametrize("dtype", [pypto.DT_HF8, pypto.DT_FP4_E1M2X2], ids=str)
def test_codes_are_taken_as_bytes_and_given_as_a_dtype_that_computes_nothing(
    dtype: DataType,
) -> None:
    codes = np.array([[0, 1, 7, 5]], np.uint8)
    x = pypto.tensor([1, 4], dtype, data=codes)
    held = x.numpy()
    np.testing.assert_array_equal(held.view(np.uint8), codes)
    assert pypto.from_numpy(held).dtype is dtype
    for use in (np.isnan, lambda a: a + a, lambda a: a.astype(np.float32)):
        with pytest.raises((TypeError, ValueError)):
            use(held)
    numbers = pypto.tensor([3], dtype, data=[0.0, 1.5, -1.0]).numpy().view(np.uint8)
    wanted = {pypto.DT_HF8: [0x00, 0x0C, 0x88], pypto.DT_FP4_E1M2X2: [0, 6, 12]}
    assert numbers.tolist() == wanted[dtype]


def test_bytes_are_no_floats_elsewhere() -> None:
    bytes_of_codes = np.zeros((1, 4), np.uint8)
    for dtype in (pypto.DT_FP8E4M3, pypto.DT_FP8E5M2, pypto.DT_FP8E8M0, pypto.DT_FP4_E2M1X2):
        held = numpy_dtype(dtype)
        with pytest.raises(TypeError, match=rf"data has dtype uint8.*\.view\(ml_dtypes\.{held}\)"):
            pypto.tensor([1, 4], dtype, data=bytes_of_codes)
        assert pypto.tensor([1, 4], dtype, data=bytes_of_codes.view(held)).dtype is dtype


def test_two_codes_of_fp4_in_a_byte_are_refused() -> None:
    """ml_dtypes would read another number, and en_dtypes another one still."""
    packed = np.array([[0x21, 0x43]], np.uint8)
    with pytest.raises(ValueError, match=r"the byte 0x43; a code of DT_FP4_E1M2X2 has 4 bits"):
        pypto.tensor([1, 2], pypto.DT_FP4_E1M2X2, data=packed)
    for array in (packed, packed[:, ::-1], packed[::2]):
        with pytest.raises(ValueError, match=r"the byte 0x43; a code of DT_FP4_E2M1X2 has 4 bits"):
            pypto.from_numpy(array.view(ml_dtypes.float4_e2m1fn))
    assert pypto.from_numpy(packed.view(ml_dtypes.int4)).dtype is pypto.DT_INT4


def test_values_of_en_dtypes_are_taken() -> None:
    en_dtypes = pytest.importorskip("en_dtypes", reason="en_dtypes is not installed")
    x = np.array([1.0, 0.5, -3.0], np.float32)
    for name, dtype in (
        ("hifloat8", pypto.DT_HF8),
        ("float8_e8m0", pypto.DT_FP8E8M0),
        ("float4_e2m1", pypto.DT_FP4_E2M1X2),
        ("float4_e1m2", pypto.DT_FP4_E1M2X2),
    ):
        theirs = np.array(x, getattr(en_dtypes, name))
        taken = pypto.from_numpy(theirs)
        assert taken.dtype is dtype
        assert taken.numpy().dtype == numpy_dtype(dtype)
        np.testing.assert_array_equal(taken.numpy().view(np.uint8), theirs.view(np.uint8))
        assert_bits_equal(taken, theirs)


def test_a_kernel_writes_values_of_en_dtypes() -> None:
    en_dtypes = pytest.importorskip("en_dtypes", reason="en_dtypes is not installed")

    @pypto.frontend.jit
    def kernel(
        x: pypto.Tensor[[1, 64], pypto.DT_BF16], y: pypto.Tensor[[1, 64], pypto.DT_FP4_E2M1X2]
    ) -> None:
        pypto.set_vec_tile_shapes(1, 64)
        y[:] = pypto.cast(x, pypto.DT_FP4_E2M1X2)

    y = np.zeros((1, 64), en_dtypes.float4_e2m1)
    with pypto.options(chip="Ascend950PR"):
        kernel(np.full((1, 64), 2.4, ml_dtypes.bfloat16), y)
    np.testing.assert_array_equal(y.astype(np.float32), 2.0)


def test_values_in_the_place_of_the_shape() -> None:
    values = np.zeros((64, 64), np.float32)
    for first in (values, values.tolist()):
        with pytest.raises(TypeError, match="the first argument is the shape") as error:
            pypto.tensor(first, pypto.DT_HF8)
        assert len(str(error.value)) < 400
    with pytest.raises(TypeError, match=r"DT_HF8 holds codes, as uint8: convert with pypto\.cast"):
        pypto.tensor([64, 64], pypto.DT_HF8, data=values)
