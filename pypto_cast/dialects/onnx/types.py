"""The element types of ONNX tensors: TensorProto's numbers and names, and the formats behind them.

Source: TensorProto.DataType of onnx.proto (ONNX 1.23); type constraints T1 and T2 of Cast-28.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from pypto_cast.dtypes.names import Names, text_of
from simulator.numbers import formats as f
from simulator.numbers.formats import Format


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

_NAMES: Final = Names(
    {known.name: known for known in TensorType},
    {fmt.dtype.name: known for known, fmt in FORMATS.items()} | {"string": TensorType.STRING},
    {int(known): known for known in TensorType},
)
_UNDEFINED: Final = ("0", "UNDEFINED")
_COMPLEX: Final = {
    spelling: name
    for number, name in ((14, "COMPLEX64"), (15, "COMPLEX128"))
    for spelling in (str(number), name)
}
_BY_DTYPE: Final[Mapping[np.dtype[Any], TensorType]] = MappingProxyType(
    {fmt.dtype: tensor_type for tensor_type, fmt in FORMATS.items()}
)
_STRING_KINDS: Final = "USOT"
"""numpy's str, bytes, object (whose elements `cast` looks at) and StringDType."""


def tensor_type(to: object) -> TensorType:
    """The type that an argument `to` names.

    Args:
        to: a number of TensorProto.DataType, any name of a type, or a dtype of numpy, ml_dtypes,
            pypto, torch, Paddle or OpenVINO.

    Raises:
        TypeError: a complex type, a dtype that ONNX has no type for, or no name of a type at all.
        ValueError: a number or a name that TensorProto.DataType does not have, or UNDEFINED.
    """
    if isinstance(to, (bool, np.bool_)):
        raise TypeError(f"to must be a type, not {to!r}; BOOL is {TensorType.BOOL.value}")
    given: Any = int(to) if isinstance(to, np.integer) else to
    if (found := _NAMES.get(given)) is not None:
        return found
    if (text := text_of(given)) is not None:
        raise _unknown(given, text)
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


def _unknown(given: object, text: str) -> Exception:
    """The refusal of a number or a name."""
    complex_name = _COMPLEX.get(text.rpartition(".")[2].upper())
    if complex_name is not None:
        shown = f"{given!r} ({complex_name})" if text.isdigit() else repr(given)
        return TypeError(f"casting to complex is not supported: to={shown}")
    if text in _UNDEFINED:
        return ValueError(f"to={given!r} is UNDEFINED; name the type to cast to")
    near = _NAMES.near(given)
    return ValueError(f"TensorProto.DataType has no {given!r}{near}; it has {_known()}")


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
