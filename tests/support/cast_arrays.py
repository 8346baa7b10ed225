"""The dtypes of casts, their numpy dtypes, and the bits of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ascend_kernels.matrix import MATRIX
from pypto_cast import DataType

Array = npt.NDArray[Any]

SOURCES = list(dict.fromkeys(DataType[f"DT_{rule.src.name}"] for rule in MATRIX.values()))
TARGETS = {
    src: [DataType[f"DT_{rule.dst.name}"] for rule in MATRIX.values() if rule.src is src.format]
    for src in SOURCES
}


def holder(dtype: DataType) -> np.dtype[Any]:
    """The numpy dtype of a DataType, by the format's own row."""
    assert dtype.format is not None
    return dtype.format.dtype


def codes(array: Array) -> bytes:
    """The bits of an array's elements, in row-major order."""
    return array.astype(array.dtype.newbyteorder("="), order="C").tobytes()
