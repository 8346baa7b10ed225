"""torch tensors as numpy arrays and back, sharing their memory, and which dtype is which.

torch is imported only to make a tensor or to name a dtype of it.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Mapping
from typing import Any, Final

import numpy.typing as npt

from pypto_cast.dtypes.data_types import ROW_OF, DataType

_OF_NUMPY: Final = 1
"""`isbuiltin` of numpy's own dtypes; those of ml_dtypes have another."""


def is_torch_tensor(value: object) -> bool:
    """True if a value is a torch tensor; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def array_over(tensor: Any, label: str) -> npt.NDArray[Any]:
    """The numpy array over the memory of a torch tensor; BF16 and narrower types are ml_dtypes'.

    Args:
        tensor: a torch tensor of any strides and rank.
        label: what messages call it.

    Raises:
        TypeError: it is not dense in CPU memory, or numpy and ml_dtypes have no such dtype.
        RuntimeError: a lazy conjugate or negative of torch, which has no memory of its own.
    """
    torch = sys.modules["torch"]
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        raise TypeError(
            f"{label} is on {tensor.device} ({tensor.layout}); the simulator takes dense tensors "
            "in CPU memory: use .cpu()"
        )
    plain = tensor.detach()
    held = _data_types().get(plain.dtype)
    if held is None or held.format is None or held.format.dtype.isbuiltin == _OF_NUMPY:
        try:
            values: npt.NDArray[Any] = plain.numpy()
        except TypeError:
            raise TypeError(
                f"{label} is of {plain.dtype}, which no array here holds; elements take a byte "
                "each at least, in a dtype that pypto has"
            ) from None
        return values
    codes: npt.NDArray[Any] = plain.view(_codes_dtype(plain.element_size())).numpy()
    return codes.view(held.format.dtype)


def through_torch(values: Any) -> Any:
    """A torch tensor in CPU memory over a DLPack object; None where torch is absent or refuses."""
    try:
        taken = importlib.import_module("torch").from_dlpack(values)
    except (ImportError, BufferError, RuntimeError, TypeError, ValueError):
        return None
    return taken if taken.device.type == "cpu" else None


def tensor_over(values: npt.NDArray[Any], dtype: DataType) -> Any:
    """The torch tensor over the memory of a writable numpy array.

    Args:
        values: elements of `dtype`, or their codes; any shape.
        dtype: one that torch has a dtype for.

    Raises:
        TypeError: torch has none for it.
        ImportError: torch is not installed.
    """
    holder = torch_dtype_of(dtype)
    codes = values.view(f"i{values.itemsize}")
    return importlib.import_module("torch").from_numpy(codes).view(holder)


def data_type_of(dtype: Any) -> DataType:
    """The DataType of a torch dtype.

    Raises:
        TypeError: pypto has none for it; the text names the torch dtypes that have.
    """
    found = _data_types().get(dtype)
    if found is None:
        known = ", ".join(str(holder) for holder in _data_types())
        raise TypeError(f"{dtype} has no pypto dtype; these have: {known}")
    return found


def torch_dtype_of(dtype: DataType) -> Any:
    """The torch dtype that holds values of a DataType.

    Raises:
        TypeError: torch has none for it.
    """
    for holder, known in _data_types().items():
        if known is dtype:
            return holder
    holders = ", ".join(format(known) for known in _data_types().values())
    way = "" if dtype.format is None else ". pypto.cast gives a pypto Tensor, which holds it"
    raise TypeError(f"no torch tensor holds {dtype}; these are held: {holders}{way}")


def _codes_dtype(size_bytes: int) -> Any:
    """The torch dtype that numpy has too, to look at elements of a size through."""
    return getattr(importlib.import_module("torch"), f"int{8 * size_bytes}")


@functools.cache
def _data_types() -> Mapping[Any, DataType]:
    """The DataType that holds values of each dtype of the installed torch."""
    torch = importlib.import_module("torch")
    return {
        getattr(torch, row.torch): dtype
        for dtype, row in ROW_OF.items()
        if dtype.format is not None and row.torch is not None and hasattr(torch, row.torch)
    }
