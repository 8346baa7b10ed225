"""The dtypes of casts, arrays of their special values, and the bits of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ascend_kernels.matrix import MATRIX
from pypto_cast import DataType, cast, from_numpy, options
from pypto_cast.testing import special_values
from tiling.chips import A2_A3

Array = npt.NDArray[Any]

SOURCES = list(dict.fromkeys(DataType[f"DT_{rule.src.name}"] for rule in MATRIX[A2_A3].values()))
TARGETS = {
    src: [
        DataType[f"DT_{rule.dst.name}"] for rule in MATRIX[A2_A3].values() if rule.src is src.format
    ]
    for src in SOURCES
}


def holder(dtype: DataType) -> np.dtype[Any]:
    """The numpy dtype of a DataType, by the format's own row."""
    assert dtype.format is not None
    return dtype.format.dtype


def specials(dtype: DataType, shape: Sequence[int]) -> Array:
    """The special values of a dtype, as many times as fill a shape."""
    return np.resize(special_values(dtype), tuple(shape))


def converted(array: Array, dst: DataType) -> Array:
    """Converts an array by `cast` outside any kernel."""
    with options(vec_tile_shapes=[1, 1, 16, 16][-array.ndim :]):
        return cast(from_numpy(array), dst).numpy()


def codes(array: Array) -> bytes:
    """The bits of an array's elements, in row-major order."""
    return array.astype(array.dtype.newbyteorder("="), order="C").tobytes()
