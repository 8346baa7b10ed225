"""Arrays of other libraries as tensors, sharing their memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.call_sites import warn_caller
from pypto_cast.dtypes.data_types import (
    DataType,
    TileOpFormat,
    check_choice,
    check_dtype,
    dtype_of_numpy,
    numpy_dtype,
    with_our_dtype,
)
from pypto_cast.options.context import current
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.tensors.torch_bridge import array_over, is_torch_tensor, through_torch
from pypto_cast.unsupported import tolerate

_BYTE_BITS: Final = 8


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


def from_torch(
    tensor: Any,
    name: str = "",
    *,
    dynamic_axis: Sequence[int] | None = None,
    tensor_format: TileOpFormat | None = None,
    dtype: DataType | None = None,
) -> Tensor:
    """Make a tensor of a torch CPU tensor, without a copy, BF16 too.

    Args:
        tensor: any strides; under `options(strict=True)` contiguous, as upstream asks. One without
            dimensions becomes a tensor of shape [1].
        name: for messages and listings.
        dynamic_axis: axes whose length upstream learns when the kernel runs.
        tensor_format: TILEOP_ND, as a cast takes, or TILEOP_NZ, which matmul takes besides.
        dtype: another dtype than the elements have takes the memory as it is, as upstream does:
            nothing is converted. Of one whose elements are not held here the tensor is only
            declared.

    Raises:
        TypeError: no torch tensor in CPU memory, or `dtype` needs more bytes than there are.
        ValueError: a shape that no cast takes, or not contiguous under `strict`.

    Warns:
        UpstreamRefusalWarning: not contiguous.
        ReinterpretedMemoryWarning: the elements have another dtype than `dtype`.
    """
    if not is_torch_tensor(tensor):
        raise TypeError(f"from_torch takes a torch.Tensor, not {type(tensor).__name__}")
    if tensor_format is not None:
        check_choice("tensor_format", tensor_format, TileOpFormat)
    label = f"tensor {name!r}" if name else "the tensor"
    array = array_of(tensor, label)
    check_contiguous(array, label)
    held = dtype_of_numpy(array.dtype)
    if dtype is not None and check_dtype(dtype) is not held:
        held, values = dtype, _reinterpreted(array, held, dtype)
    else:
        values = array
    made = Tensor(list(array.shape), held, name, tensor_format, data=values)
    made.mark_dynamic(frozenset(axis % made.dim for axis in dynamic_axis or ()))
    return made


class ReinterpretedMemoryWarning(UserWarning):
    """The memory of a tensor is read as another dtype than it was written as."""


def _reinterpreted(
    array: npt.NDArray[Any], held: DataType, dtype: DataType
) -> npt.NDArray[Any] | None:
    """The first bytes of an array's memory as so many elements of another dtype.

    None if no elements of that dtype are held here: the tensor is only declared.
    """
    text = f"from_torch reads the memory of a {held} tensor as {dtype}, without a conversion"
    warn_caller(f"{text}; cast it if its numbers are meant", ReinterpretedMemoryWarning)
    if dtype.format is None:
        return None
    holder = numpy_dtype(dtype)
    is_packed = dtype.format.bits < _BYTE_BITS
    if is_packed or holder.itemsize > array.dtype.itemsize or not array.flags.c_contiguous:
        raise TypeError(f"{text}, and it has no {array.size} of them in a row")
    memory = array.reshape(-1).view(np.uint8)[: array.size * holder.itemsize]
    return memory.view(holder).reshape(array.shape)


def from_dlpack(values: Any, name: str = "") -> Tensor:
    """Make a tensor of another library's array through DLPack, without a copy.

    Args:
        values: an object with `__dlpack__` in CPU memory. numpy takes it; BF16, which numpy does
            not know, is taken by torch.
        name: for messages and listings.

    Raises:
        TypeError: no such object, or a dtype that no pypto dtype stands for.
        BufferError: it is not in CPU memory, or BF16 and torch is not installed.
        ValueError: a shape that no cast takes.
    """
    if is_torch_tensor(values):
        return from_torch(values, name)
    if not hasattr(values, "__dlpack__") or not hasattr(values, "__dlpack_device__"):
        raise TypeError(
            f"from_dlpack takes an object with __dlpack__, not {type(values).__name__}; for Python "
            "numbers use pypto.tensor(shape, dtype, data=...)"
        )
    try:
        array = np.from_dlpack(values)
    except (BufferError, RuntimeError) as error:
        taken = through_torch(values)
        if taken is None:
            text = f"numpy takes no such elements or memory, and torch does not either: {error}"
            raise BufferError(text) from error
        return from_torch(taken, name)
    return from_numpy(array.reshape(1) if array.ndim == 0 else array, name)


def array_of(value: Any, label: str) -> npt.NDArray[Any]:
    """A numpy array over the memory of a numpy array or a torch CPU tensor.

    Args:
        value: the array; without dimensions it counts as shape [1].
        label: what messages call it.

    Raises:
        TypeError: something else, a masked array, or a tensor that is not in CPU memory.
    """
    array = memory_of(value, label)
    return array.reshape(1) if array.ndim == 0 else array


def check_contiguous(array: npt.NDArray[Any], label: str) -> None:
    """Warn of strides that upstream refuses in a kernel's argument.

    Raises:
        UpstreamRefusalError: under `options(strict=True)`.
    """
    if not array.flags.c_contiguous:
        text = f"{label} is not contiguous (strides {list(array.strides)} B)"
        tolerate(f"{text}, which upstream refuses; make a copy", strict=current().strict)


def memory_of(value: Any, label: str) -> npt.NDArray[Any]:
    """The same with any strides, and rank 0 as it is.

    Raises:
        TypeError: as for `array_of`.
    """
    if is_torch_tensor(value):
        return array_over(value, label)
    if isinstance(value, Tensor) and (held := value.elements()) is not None:
        return held
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{label} is a masked array, whose mask would be lost; fill it first")
    if isinstance(value, np.ndarray):
        return with_our_dtype(value.view(np.ndarray))
    raise TypeError(
        f"{label} must be a torch CPU tensor or a numpy array, not {type(value).__name__}"
    )
