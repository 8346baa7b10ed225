"""Tensor: a declared shape and dtype, with values or without."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes import (
    DataType,
    TileOpFormat,
    check_dtype,
    dtype_of_numpy,
    numpy_dtype,
)
from pypto_cast.python_data import from_python
from tiling.plan import check_shape
from tiling.ub import ElementBits

DYNAMIC: Final = -1
_SHOWN_VALUES: Final = 6


class Tensor:
    """A tensor of 1 to 4 dimensions that `cast` takes and gives.

    Without `data` it only declares a shape and a dtype, as upstream's does. With `data` it holds
    values; an array is held as it is, without a copy, and is never written to.

    Args:
        shape: a list or tuple of ints; -1 is a dimension that is not known yet.
        dtype: DT_FP32 unless given.
        name: for messages and listings.
        format: TILEOP_ND; upstream's cast refuses NZ.
        data: values. An array must have the dtype that is declared; Python numbers are converted
            to it, rounded once to the nearest (ties to even).

    Raises:
        TypeError: a shape that is no list of ints, an unknown dtype, or data of another dtype,
            complex, float64, object or text.
        ValueError: data of another shape than declared, or of one that no cast takes (0 or more
            than 4 dimensions, empty, more than 2147483647 elements); a shape without data is
            judged when it is cast.
        OverflowError: a Python number that an integer dtype cannot hold, or an int of more than 64
            bits.
    """

    __slots__ = ("_data", "_dtype", "_format", "_shape", "name")

    def __init__(
        self,
        shape: Sequence[int] | None = None,
        dtype: DataType | None = None,
        name: str = "",
        format: TileOpFormat | None = None,
        *,
        data: object = None,
    ) -> None:
        self._dtype = DataType.DT_FP32 if dtype is None else check_dtype(dtype)
        self._shape = _checked_shape(shape)
        self._format = TileOpFormat.TILEOP_ND if format is None else _checked_format(format)
        self.name = name
        self._data: npt.NDArray[Any] | None = None
        if data is not None:
            self._data = _values(data, self._dtype)
            self._shape = _matched_shape(self._shape, self._data, declared=shape is not None)

    @property
    def shape(self) -> list[int]:
        """Dimensions, as a list like upstream's; -1 where not known."""
        return list(self._shape)

    @property
    def dtype(self) -> DataType:
        """Element type."""
        return self._dtype

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def format(self) -> TileOpFormat:
        """Memory layout."""
        return self._format

    @property
    def has_data(self) -> bool:
        """Whether the tensor holds values."""
        return self._data is not None

    def numpy(self) -> npt.NDArray[Any]:
        """The values, without a copy; BF16 and narrower types are ml_dtypes'.

        Raises:
            ValueError: the tensor is only declared.
        """
        if self._data is None:
            raise ValueError(
                f"{self!r} is declared without values; give data= or use pypto.from_numpy"
            )
        return self._data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self.numpy()
        if dtype is not None and np.dtype(dtype) != values.dtype:
            if copy is False:
                raise ValueError(f"no view of {self.dtype} as {np.dtype(dtype)} without a copy")
            return values.astype(dtype)
        return values.copy() if copy else values

    def __dlpack__(self, **arguments: Any) -> Any:
        """Export through DLPack; BufferError where numpy has no such dtype (BF16, 4-bit types)."""
        return self.numpy().__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self.numpy().__dlpack_device__()
        return int(kind), int(index)

    def __repr__(self) -> str:
        parts = [f"shape={self.shape}", f"dtype={self.dtype}"]
        if self.name:
            parts.append(f"name={self.name!r}")
        if self._data is not None:
            shown = ", ".join(str(value) for value in self._data.flat[:_SHOWN_VALUES])
            parts.append(f"data=[{shown}{', ...' if self._data.size > _SHOWN_VALUES else ''}]")
        return f"Tensor({', '.join(parts)})"


tensor = Tensor


def from_numpy(array: npt.NDArray[Any], name: str = "") -> Tensor:
    """Make a tensor of an array, without a copy; the dtype follows from the array's.

    Strided, read-only, Fortran-ordered and big-endian arrays are taken as they are.

    Raises:
        TypeError: no numpy array, a masked one, or a dtype that no pypto dtype stands for.
        ValueError: a shape that no cast takes.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"from_numpy takes a numpy.ndarray, not {type(array).__name__}; for Python numbers use "
            "pypto.tensor(shape, dtype, data=...)"
        )
    return Tensor(dtype=dtype_of_numpy(array.dtype), name=name, data=array)


def _checked_format(format: object) -> TileOpFormat:
    if isinstance(format, TileOpFormat):
        return format
    choices = ", ".join(member.name for member in TileOpFormat)
    raise TypeError(f"format must be a pypto.TileOpFormat ({choices}), not {format!r}")


def _checked_shape(shape: object) -> tuple[int, ...]:
    if shape is None:
        return ()
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"shape must be a list or tuple of ints, not {shape!r}")
    entries = []
    for entry in shape:
        if isinstance(entry, bool) or not hasattr(entry, "__index__"):
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


def _matched_shape(
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


def _values(data: object, dtype: DataType) -> npt.NDArray[Any]:
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
