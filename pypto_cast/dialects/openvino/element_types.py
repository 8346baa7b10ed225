"""OpenVINO's element types by name, and inputs of its nodes as numpy arrays of them."""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes.data_types import ROWS, DtypeRow
from pypto_cast.dtypes.names import Names, text_of
from pypto_cast.tensors.arrays import memory_of
from simulator.numbers import formats as f
from simulator.numbers.convert import canonical_bools
from simulator.numbers.formats import FloatFormat, Format, IntFormat


class OpenVINOError(RuntimeError):
    """A type or an input that OpenVINO refuses; the text begins with OpenVINO's own sentence."""


class TypeKind(enum.Enum):
    """The kind of an element type, by which promotion rules tell types of one width apart."""

    REAL = "floating-point number"
    SIGNED = "signed integer"
    UNSIGNED = "unsigned integer"
    BOOLEAN = "truth value"
    DYNAMIC = "not known yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementType:
    """An element type.

    Attributes:
        name: OpenVINO's name.
        kind: what it counts as in promotion.
        bits: width of one element; 0 for "dynamic".
        format: its number format; None where numpy has no dtype for it ("u1", "dynamic").
    """

    name: str
    kind: TypeKind
    bits: int
    format: Format | None

    def __str__(self) -> str:
        return self.name


OTHER_TYPES: Final = ("u2", "u3", "u6", "nf4", "f4e2m1", "f8e8m0", "string")
"""The types that ConvertPromoteTypes does not take."""


def _element_type(name: str, row: DtypeRow) -> ElementType:
    format = row.format
    if isinstance(format, FloatFormat):
        kind = TypeKind.REAL
    elif isinstance(format, IntFormat) and format.signed:
        kind = TypeKind.SIGNED
    elif format is f.BOOL:
        return ElementType(name=name, kind=TypeKind.BOOLEAN, bits=8, format=format)
    else:
        kind = TypeKind.UNSIGNED if row.bits else TypeKind.DYNAMIC
    return ElementType(name=name, kind=kind, bits=row.bits, format=format)


ELEMENT_TYPES: Final[Mapping[str, ElementType]] = MappingProxyType(
    {
        row.openvino: _element_type(row.openvino, row)
        for row in ROWS
        if row.openvino is not None and row.openvino not in OTHER_TYPES
    }
)
"""The types that ConvertPromoteTypes takes."""

HELD_FORMATS: Final[Mapping[str, Format]] = {
    t.name: t.format for t in ELEMENT_TYPES.values() if t.format is not None
}
"""The number formats of the types that arrays hold."""

_BY_DTYPE: Final[Mapping[np.dtype[Any], str]] = {
    row.dtype: row.openvino for row in ROWS if row.dtype is not None and row.openvino is not None
}
_NAMES: Final = Names(
    {name: name for name in (*ELEMENT_TYPES, *OTHER_TYPES)}, lambda row: row.openvino
)


def known_name(given: object) -> str:
    """OpenVINO's spelling of an element type.

    Args:
        given: any name of it, or a dtype of OpenVINO, numpy, pypto, torch or Paddle.

    Raises:
        TypeError: neither a name nor a dtype; a dtype of numpy that is no element type.
        OpenVINOError: no element type has that name.
    """
    if isinstance(given, (type, np.dtype)):
        return name_of_dtype(np.dtype(given))
    if isinstance(given, int) or text_of(given) is None:
        raise TypeError(
            f"an element type is named by a str such as 'f32', not {given!r} "
            f"({type(given).__name__})"
        )
    found = _NAMES.get(given)
    if found is None:
        raise OpenVINOError(
            f'"{given}" is not a member of enum element::Type_t{_NAMES.near(given)}; members: '
            f"{', '.join((*ELEMENT_TYPES, *OTHER_TYPES))}"
        )
    return found


def name_of_dtype(dtype: np.dtype[Any]) -> str:
    """The name of the element type that a numpy dtype of either byte order holds.

    Raises:
        TypeError: none does; the text lists those that do.
    """
    native = dtype.newbyteorder("=")
    if native in _BY_DTYPE:
        return _BY_DTYPE[native]
    if native.kind in "SUT":
        return "string"
    holders = ", ".join(f"{known} ({name})" for known, name in _BY_DTYPE.items())
    raise TypeError(f"numpy dtype {dtype} is no element type of OpenVINO; these are: {holders}")


Array = npt.NDArray[Any]

_PYTHON_NUMBERS: Final = ((bool, np.bool_), (int, np.int64), (float, np.float64))
"""bool before int, whose subclass it is."""
_NIBBLE: Final = 4


def array_of(value: object, label: str) -> Array:
    """An input of a node as a contiguous array in native byte order; nothing is modified.

    Args:
        value: a numpy array or scalar; a Python number or a nested list of them, which OpenVINO
            makes a constant: bool boolean, int i64, float f64; an openvino.Tensor, a torch CPU
            tensor or a pypto Tensor with values.
        label: what messages call it.

    Raises:
        TypeError: something else, a masked array, a ragged list, or an openvino.Tensor of a type
            that no numpy dtype holds here.
        OverflowError: a Python int that i64 does not hold.
    """
    array = canonical_bools(_array(value, label))
    return np.asarray(array, array.dtype.newbyteorder("="), order="C")


def _array(value: object, label: str) -> Array:
    openvino = sys.modules.get("openvino")
    if openvino is not None and isinstance(value, openvino.Tensor):
        return _array_of_tensor(value, label)
    if isinstance(value, np.generic):
        return np.asarray(value)
    for kind, dtype in _PYTHON_NUMBERS:
        if isinstance(value, kind):
            return np.array(value, dtype)
    if isinstance(value, (list, tuple)):
        try:
            return np.array(value)
        except ValueError as error:
            raise TypeError(f"{label} is no regular list of numbers: {error}") from None
    try:
        return memory_of(value, label)
    except TypeError as error:
        raise TypeError(
            f"{error}; a number, a nested list of numbers or an openvino.Tensor does too"
        ) from None


def _array_of_tensor(tensor: Any, label: str) -> Array:
    """The numbers of an openvino.Tensor, whose `data` is float16 for bf16 and packs 4-bit types."""
    name = tensor.element_type.get_type_name()
    shape = tuple(tensor.shape)
    if (fmt := HELD_FORMATS.get(name)) is None:
        raise TypeError(
            f"{label} is an openvino.Tensor of {name}, which no numpy dtype holds here; these are "
            f"held: {', '.join(HELD_FORMATS)}"
        )
    stored = np.ascontiguousarray(tensor.data).reshape(-1)
    if fmt.bits == _NIBBLE:
        octets = stored.view(np.uint8)
        nibbles = np.stack([octets & 15, octets >> _NIBBLE], axis=-1).reshape(-1)
        stored = nibbles[: int(np.prod(shape))]
    return stored.view(fmt.dtype).reshape(shape)
