"""Tensor: a declared shape and dtype, with values or without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes import DataType, TileOpFormat, check_dtype, dtype_of_numpy
from pypto_cast.kernel import recording
from pypto_cast.tensors.annotations import Dimension, TensorAnnotation, annotation_of
from pypto_cast.tensors.arguments import (
    DYNAMIC,
    checked_format,
    declared_dimensions,
    matched_shape,
    values_held,
)
from pypto_cast.tensors.parts import Parts

__all__ = ["DYNAMIC", "Tensor", "from_numpy", "tensor"]

_SHOWN_VALUES: Final = 6


class Tensor(Parts):
    """A tensor of 1 to 4 dimensions that `cast` takes and gives.

    Without `data` it only declares a shape and a dtype, as upstream's does. With `data` it holds
    values; an array is held as it is, without a copy, and only a kernel that has it as an output
    writes to it. In an annotation, `Tensor[[pypto.DYNAMIC, 64], pypto.DT_FP32]` says what a
    parameter of a kernel must be.

    Args:
        shape: a list or tuple of ints; -1 is a dimension that is not known yet. In an annotation
            also pypto.STATIC, pypto.DYNAMIC and `...`.
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

    __slots__ = ("_annotation", "_format")

    def __init__(
        self,
        shape: Sequence[Dimension] | None = None,
        dtype: DataType | None = None,
        name: str = "",
        format: TileOpFormat | None = None,
        *,
        data: object = None,
    ) -> None:
        dimensions, known = declared_dimensions(shape)
        super().__init__(known, DataType.DT_FP32 if dtype is None else check_dtype(dtype), name)
        self._format = TileOpFormat.TILEOP_ND if format is None else checked_format(format)
        self._annotation = TensorAnnotation(
            shape=dimensions, dtype=dtype, name=name, format=self._format
        )
        if data is not None:
            self._data = values_held(data, self._dtype)
            self._shape = matched_shape(self._shape, self._data, declared=shape is not None)

    def __class_getitem__(cls, parameters: object) -> TensorAnnotation:
        """`Tensor[[shape], dtype, format, name]`, in any order, or a dict of them."""
        return annotation_of(parameters)

    @property
    def annotation(self) -> TensorAnnotation:
        """What the tensor says where it stands as an annotation."""
        return self._annotation

    @property
    def format(self) -> TileOpFormat:
        """Memory layout."""
        return self._format

    def numpy(self) -> npt.NDArray[Any]:
        """The values, without a copy; BF16 and narrower types are ml_dtypes'.

        Raises:
            ValueError: the tensor is only declared.
            TypeError: a kernel is running; no device program holds what Python makes of them.
        """
        if recording.current() is not None:
            raise TypeError(
                "a kernel does not see values: what Python computes of them would not be in the "
                "device program"
            )
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
        if self._valid is not None:
            parts.append(f"valid_shape={self.valid_shape}")
        data = self._data if self._buffer is None or self._buffer.home is None else self.elements()
        if data is not None:
            shown = ", ".join(str(value) for value in data.flat[:_SHOWN_VALUES])
            parts.append(f"data=[{shown}{', ...' if data.size > _SHOWN_VALUES else ''}]")
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
