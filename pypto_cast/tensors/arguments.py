"""Checks the arguments of a Tensor: shape, layout and data."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes.data_types import DataType, TileOpFormat, numpy_dtype
from pypto_cast.tensors.annotations import Dimension, checked_dimensions
from pypto_cast.tensors.python_data import from_python
from pypto_cast.tensors.symbolic import StatusType, Symbol
from tiling.grid import Shape
from tiling.plan import check_shape
from tiling.ub import ElementBits

DYNAMIC: Final = -1


def checked_format(format: object) -> TileOpFormat:
    if isinstance(format, TileOpFormat):
        return format
    choices = ", ".join(member.name for member in TileOpFormat)
    raise TypeError(f"format must be a pypto.TileOpFormat ({choices}), not {format!r}")


def declared_dimensions(shape: object) -> tuple[tuple[Dimension, ...], Shape]:
    """Return a shape as an annotation has it, and as a tensor has it, with -1 where not known."""
    if isinstance(shape, (list, tuple)) and any(map(_is_annotation, shape)):
        dimensions = checked_dimensions(shape)
        known = [entry for entry in dimensions if entry is not Ellipsis]
        return dimensions, tuple(e if isinstance(e, int) else DYNAMIC for e in known)
    entries = checked_shape(shape)
    return entries, entries


def _is_annotation(entry: object) -> bool:
    return entry is Ellipsis or isinstance(entry, StatusType | Symbol)


def checked_shape(shape: object) -> tuple[int, ...]:
    if shape is None:
        return ()
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"shape must be a list or tuple of ints, not {shape!r}")
    entries = []
    for entry in shape:
        if isinstance(entry, (bool, np.bool_)) or not hasattr(entry, "__index__"):
            raise TypeError(
                f"shape {list(shape)}: {entry!r} is no int (the first argument is the shape; "
                "values go to data=)"
            )
        if operator.index(entry) < DYNAMIC:
            raise ValueError(
                f"shape {list(shape)}: {entry} is negative; only -1 (not known yet) may be"
            )
        entries.append(operator.index(entry))
    return tuple(entries)


def matched_shape(
    shape: tuple[int, ...], data: npt.NDArray[Any], *, declared: bool
) -> tuple[int, ...]:
    """The shape of the data, once it agrees with what was declared and a cast takes it."""
    agrees = len(shape) == data.ndim and all(
        want in (DYNAMIC, have) for want, have in zip(shape, data.shape, strict=False)
    )
    if declared and not agrees:
        raise ValueError(f"data has shape {list(data.shape)}; {list(shape)} was declared")
    check_shape(data.shape, ElementBits(src=8, dst=8))
    return data.shape


def values_held(data: object, dtype: DataType) -> npt.NDArray[Any]:
    """Take values in: an array as it is, Python numbers converted."""
    wanted = numpy_dtype(dtype)
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError("data is a masked array, whose mask would be lost; fill it first")
    if isinstance(data, (list, tuple, int, float)):
        return from_python(data, dtype)
    array: npt.NDArray[Any] = np.asarray(data)
    if array.dtype.kind in "OSUMmc" or array.dtype.names is not None:
        raise TypeError(f"data of dtype {array.dtype} holds no numbers that a cast takes")
    if array.dtype.newbyteorder("=") == wanted:
        return array
    way = ".astype" if array.dtype.newbyteorder("=") == np.float64 else "pypto.cast or .astype"
    raise TypeError(
        f"data has dtype {array.dtype}, {dtype} holds {wanted}: convert with {way} first"
    )
