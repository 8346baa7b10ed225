"""Outputs of kernels with undecided elements, made of arrays; the interval of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import pypto_cast as pypto
from pypto_cast.dtypes.data_types import dtype_of_numpy
from pypto_cast.kernel.certainty import Cause, OutputCertainty
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Interval

Array = npt.NDArray[Any]

DIV = Cause(operation="div", file="/models/norm.py", line=14)
EXP = Cause(operation="exp", file="/models/norm.py", line=9)


def interval_of(x: Tensor) -> Interval | None:
    """The interval of a tensor that has values; None if it is exact."""
    held = x.enclosure()
    assert held is not None
    return held.interval


def exact(name: str, values: Array) -> OutputCertainty:
    """An output of which every element is certain."""
    return OutputCertainty(
        name=name,
        dtype=dtype_of_numpy(values.dtype),
        values=values,
        low=values,
        high=values,
        may_be_nan=None,
        cause=np.broadcast_to(np.uint16(0), values.shape),
        causes=(),
    )


def between(
    low: Array,
    high: Array,
    *,
    name: str = "out",
    may_be_nan: npt.NDArray[np.bool_] | None = None,
    cause: Array | int = 0,
    causes: tuple[Cause, ...] = (DIV, EXP),
) -> OutputCertainty:
    """An output between two arrays, whose values are the lower ends."""
    return OutputCertainty(
        name=name,
        dtype=dtype_of_numpy(low.dtype),
        values=low.copy(),
        low=low,
        high=high,
        may_be_nan=may_be_nan,
        cause=np.broadcast_to(np.asarray(cause, np.uint16), low.shape),
        causes=causes,
    )


def scattered(
    shape: tuple[int, ...], share: float, *, name: str = "out", causes: int = 2
) -> OutputCertainty:
    """An INT8 output of which about that share is undecided, at places that are always the same."""
    random = np.random.default_rng(5)
    low = random.integers(-100, 100, shape).astype(np.int8)
    high = low + (random.random(shape) < share).astype(np.int8)
    kinds = random.integers(0, causes, shape).astype(np.uint16)
    named = tuple(Cause(operation="div", file=f"/models/part{n}.py", line=n) for n in range(causes))
    assert dtype_of_numpy(low.dtype) is pypto.DT_INT8
    return between(low, high, name=name, cause=kinds, causes=named)
