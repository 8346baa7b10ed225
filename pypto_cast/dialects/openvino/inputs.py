"""Inputs of OpenVINO's nodes as numpy arrays: numbers, lists, and tensors of other libraries."""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dialects.openvino.element_types import HELD_FORMATS
from pypto_cast.tensors.arrays import memory_of
from simulator.numbers.convert import canonical_bools

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
