"""The element types of ONNX tensors: the formats behind them, and their names.

Source: type constraints T1 and T2 of Cast-28.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from pypto_cast.dtypes.data_types import ROWS, TensorType
from pypto_cast.dtypes.names import Names, text_of
from simulator.numbers.formats import Format

FORMATS: Final[Mapping[TensorType, Format]] = MappingProxyType(
    {row.onnx: row.format for row in ROWS if row.onnx is not None and row.format is not None}
)
"""Every type but STRING."""

_NAMES: Final = Names(
    {known.name: known for known in TensorType},
    lambda row: row.onnx,
    {int(known): known for known in TensorType},
)
_UNDEFINED: Final = ("0", "UNDEFINED")
_COMPLEX: Final = {
    spelling: name
    for number, name in ((14, "COMPLEX64"), (15, "COMPLEX128"))
    for spelling in (str(number), name)
}
_BY_DTYPE: Final[Mapping[np.dtype[Any], TensorType]] = {
    fmt.dtype: tensor_type for tensor_type, fmt in FORMATS.items()
}
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
    near, known = _NAMES.near(given), ", ".join(f"{each.name}={each.value}" for each in TensorType)
    return ValueError(f"TensorProto.DataType has no {given!r}{near}; it has {known}")


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
