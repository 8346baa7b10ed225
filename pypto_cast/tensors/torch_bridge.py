"""Which torch dtype holds which DataType; imports torch only when asked."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any

from pypto_cast.dtypes import DataType, bytes_of


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
    holders = ", ".join(str(known) for known in _data_types().values())
    raise TypeError(f"no torch tensor holds {dtype}; these are held: {holders}")


@functools.cache
def _data_types() -> Mapping[Any, DataType]:
    """torch and numpy (with ml_dtypes) give the same names to the types that both have."""
    torch = importlib.import_module("torch")
    return {
        getattr(torch, dtype.format.dtype.name): dtype
        for dtype in DataType
        if dtype.format is not None
        and dtype.format.bits in (1, 8 * bytes_of(dtype))
        and hasattr(torch, dtype.format.dtype.name)
    }
