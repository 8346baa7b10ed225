"""The element types of ONNX tensors: TensorProto's numbers and names, and the formats behind them.

Source: TensorProto.DataType of onnx.proto (ONNX 1.23); type constraints T1 and T2 of Cast-28.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from simulator import formats as f
from simulator.formats import Format


class TensorType(enum.IntEnum):
    """TensorProto.DataType, without UNDEFINED and the complex types, which no cast takes."""

    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26
    FLOAT6E2M3 = 27
    FLOAT6E3M2 = 28


FORMATS: Final[Mapping[TensorType, Format]] = MappingProxyType(
    {
        TensorType.FLOAT: f.FP32,
        TensorType.UINT8: f.UINT8,
        TensorType.INT8: f.INT8,
        TensorType.UINT16: f.UINT16,
        TensorType.INT16: f.INT16,
        TensorType.INT32: f.INT32,
        TensorType.INT64: f.INT64,
        TensorType.BOOL: f.BOOL,
        TensorType.FLOAT16: f.FP16,
        TensorType.DOUBLE: f.FP64,
        TensorType.UINT32: f.UINT32,
        TensorType.UINT64: f.UINT64,
        TensorType.BFLOAT16: f.BF16,
        TensorType.FLOAT8E4M3FN: f.E4M3FN,
        TensorType.FLOAT8E4M3FNUZ: f.E4M3FNUZ,
        TensorType.FLOAT8E5M2: f.E5M2,
        TensorType.FLOAT8E5M2FNUZ: f.E5M2FNUZ,
        TensorType.UINT4: f.UINT4,
        TensorType.INT4: f.INT4,
        TensorType.FLOAT4E2M1: f.E2M1,
        TensorType.FLOAT8E8M0: f.E8M0,
        TensorType.UINT2: f.UINT2,
        TensorType.INT2: f.INT2,
        TensorType.FLOAT6E2M3: f.E2M3,
        TensorType.FLOAT6E3M2: f.E3M2,
    }
)
"""Every type but STRING."""

_UNDEFINED: Final = 0
_COMPLEX: Final = {14: "COMPLEX64", 15: "COMPLEX128"}
_BY_DTYPE: Final[Mapping[np.dtype[Any], TensorType]] = MappingProxyType(
    {fmt.dtype: tensor_type for tensor_type, fmt in FORMATS.items()}
)
_STRING_KINDS: Final = "USOT"
"""numpy's str, bytes, object (whose elements `cast` looks at) and StringDType."""


def tensor_type(to: object) -> TensorType:
    """The type that an argument `to` names.

    Args:
        to: a number of TensorProto.DataType, its name, or a numpy or ml_dtypes dtype.

    Raises:
        TypeError: a complex type, a dtype that ONNX has no type for, or no name of a type at all.
        ValueError: a number or a name that TensorProto.DataType does not have, or UNDEFINED.
    """
    if isinstance(to, (bool, np.bool_)):
        raise TypeError(f"to must be a type, not {to!r}; BOOL is {TensorType.BOOL.value}")
    if isinstance(to, (int, np.integer)):
        return _by_number(int(to))
    if isinstance(to, str):
        return _by_name(to)
    given: Any = to
    try:
        if given is None:  # float64 to numpy
            raise TypeError
        dtype = np.dtype(given)
    except TypeError:
        raise TypeError(
            "to must be a number or a name of TensorProto.DataType or a numpy or ml_dtypes dtype, "
            f"not {to!r}"
        ) from None
    return type_of_dtype(dtype)


def _by_number(number: int) -> TensorType:
    if number in _COMPLEX:
        raise TypeError(f"casting to complex is not supported: to={number} ({_COMPLEX[number]})")
    if number == _UNDEFINED:
        raise ValueError("to=0 is UNDEFINED; name the type to cast to")
    try:
        return TensorType(number)
    except ValueError:
        raise ValueError(f"TensorProto.DataType has no {number}; it has {_known()}") from None


def _by_name(name: str) -> TensorType:
    if name in _COMPLEX.values():
        raise TypeError(f"casting to complex is not supported: to={name!r}")
    try:
        return TensorType[name]
    except KeyError:
        raise ValueError(f"TensorProto.DataType has no {name!r}; it has {_known()}") from None


def _known() -> str:
    return ", ".join(f"{known.name}={known.value}" for known in TensorType)


def type_of_dtype(dtype: np.dtype[Any]) -> TensorType:
    """The type of a numpy dtype, in any byte order; str, bytes, StringDType and object are STRING.

    Raises:
        TypeError: a complex dtype, or one that ONNX has no type for.
    """
    if dtype.kind in _STRING_KINDS:
        return TensorType.STRING
    found = _BY_DTYPE.get(dtype.newbyteorder("="))
    if found is not None:
        return found
    if dtype.kind == "c":
        raise TypeError(f"casting from or to complex is not supported: {dtype}")
    holders = ", ".join(str(known) for known in _BY_DTYPE)
    raise TypeError(f"ONNX has no tensor type for {dtype}; it has types for str and {holders}")
