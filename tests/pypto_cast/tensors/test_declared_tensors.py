"""Dtypes, modes and declared tensors: names, numbers, shapes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pypto_cast as pypto
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
    assert str(pypto.DT_FP16) == "DataType.DT_FP16"
    assert f"{pypto.DT_FP16}" == "DT_FP16"
    assert str(pypto.OutType.BIT) == "OutType.BIT"
    assert int(pypto.AtomicRMWMode.MIN) == 2
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
