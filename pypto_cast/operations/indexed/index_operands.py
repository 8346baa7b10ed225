"""Tensors of indices: their values, once they are known to lie where they lead."""

from __future__ import annotations

import numpy as np

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.operations.indexed.indexed_rows import INDEXED_ROWS
from pypto_cast.operations.lowering import check_tensor
from pypto_cast.operations.movement import held_by
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure


def element_tensor(name: str, x: object, *, in_gm: bool = False) -> Tensor:
    """Refuses what the row of this name does not take as elements; see `check_tensor`."""
    return check_tensor(name, x, INDEXED_ROWS[name].dtypes, in_gm=in_gm)


def index_tensor(name: str, x: object, *, in_gm: bool = False) -> Tensor:
    """Refuses what the row of this name does not take as indices; see `check_tensor`."""
    return check_tensor(name, x, INDEXED_ROWS[name].index_dtypes, in_gm=in_gm)


def held_indices(name: str, x: Tensor, length: int, *, least: int = 0) -> Enclosure | None:
    """The values of a tensor of indices; None if it has none.

    Raises:
        IndexError: one lies outside `least` to `length` - 1.
        ValueError: some of them nobody wrote.
    """
    held = held_by(x) if 0 not in x.valid_shape else None
    if held is not None:
        check_range(name, held.values, length, least=least)
    return held


def check_range(name: str, indices: np.ndarray, length: int, *, least: int = 0) -> None:
    """Refuses indices that lead outside.

    Raises:
        IndexError: with the first of them.
    """
    outside = (indices < least) | (indices >= length)
    if outside.any():
        place = tuple(map(int, np.argwhere(outside)[0]))
        raise IndexError(
            f"{name}: index {indices[place]} at {list(place)} lies outside 0 to {length - 1}; a "
            "device would go elsewhere in memory"
        )


def same_dtype(name: str, first: Tensor, second: Tensor) -> DataType:
    """The dtype of two tensors.

    Raises:
        TypeError: they differ.
    """
    if first.dtype is not second.dtype:
        raise TypeError(f"{name} takes one dtype, not {first.dtype} and {second.dtype}; cast one")
    return first.dtype
