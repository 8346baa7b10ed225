"""Hypothesis strategies: arrays of a dtype with any bits, and tile shapes that fit them.

    @given(strategies.tiled(pypto.DT_FP32, pypto.DT_FP16))
    def test_no_result_depends_on_the_tile(case): ...

Needs hypothesis, which the extra `test` installs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from pypto_cast.cast.cast_plan import plan_cast
from pypto_cast.dtypes.data_types import (
    CastMode,
    DataType,
    SaturationMode,
    check_dtype,
    numpy_dtype,
)
from pypto_cast.options.context import options
from pypto_cast.testing.values import special_values
from simulator.numbers.convert import values_of
from tiling.grid import Shape
from tiling.plan import MAX_DIMS, TileShapeError

_MAX_SIDE: Final = 40
_NIBBLE_BITS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiled:
    """An array and a tile shape for casting it."""

    array: npt.NDArray[Any]
    tile_shape: Shape


def shapes(
    *, min_dims: int = 1, max_dims: int = MAX_DIMS, max_side: int = _MAX_SIDE
) -> st.SearchStrategy[Shape]:
    """Shapes that a cast takes."""
    side = st.integers(1, max_side)
    return st.lists(side, min_size=min_dims, max_size=max_dims).map(tuple)


def arrays(
    dtype: DataType, shape: Shape | st.SearchStrategy[Shape] | None = None
) -> st.SearchStrategy[npt.NDArray[Any]]:
    """Arrays of a dtype: any bits, special values among them more often than chance has it.

    Args:
        dtype: one that numpy or ml_dtypes holds.
        shape: a shape, a strategy for it, or None for any of `shapes`.

    Raises:
        TypeError: no DataType, or one that holds no data here.
    """
    numpy_dtype(check_dtype(dtype))
    if isinstance(shape, tuple):
        return _filled(dtype, shape)
    return (shapes() if shape is None else shape).flatmap(lambda drawn: _filled(dtype, drawn))


def tile_shapes(shape: Shape, src: DataType, dst: DataType) -> st.SearchStrategy[Shape]:
    """Tile shapes that fit a cast of a tensor, aligned or not, larger than it or not."""
    step = 2 if _share_bytes(src, dst) else 1
    last = st.integers(1, (shape[-1] + 3) // step).map(lambda count: count * step)
    sides = [*(st.integers(1, side + 3) for side in shape[:-1]), last]
    return st.tuples(*sides).filter(lambda tile: _fits(tile, shape, src, dst))


def tiled(
    src: DataType, dst: DataType, shape: Shape | st.SearchStrategy[Shape] | None = None
) -> st.SearchStrategy[Tiled]:
    """Arrays of a source dtype, each with a tile shape for the cast.

    Where two elements of 4 bits share a byte, the last axis of shapes that are not given is even.
    """
    if shape is None and _share_bytes(src, dst):
        shape = shapes().map(lambda drawn: (*drawn[:-1], drawn[-1] + drawn[-1] % 2))
    return arrays(src, shape).flatmap(
        lambda array: tile_shapes(array.shape, src, dst).map(
            lambda tile: Tiled(array=array, tile_shape=tile)
        )
    )


def _share_bytes(src: DataType, dst: DataType) -> bool:
    return _NIBBLE_BITS in (src.number_format.bits, dst.number_format.bits)


def _filled(dtype: DataType, shape: Shape) -> st.SearchStrategy[npt.NDArray[Any]]:
    return st.binary(min_size=8, max_size=8).map(lambda seed: _mixed(dtype, shape, seed))


def _mixed(dtype: DataType, shape: Shape, seed: bytes) -> npt.NDArray[Any]:
    """Random codes, a third of them special; the drawn bytes are the seed."""
    fmt = dtype.number_format
    random = np.random.default_rng(list(seed))
    count = math.prod(shape)
    codes = random.integers(0, 1 << fmt.bits, count, np.uint64, endpoint=False)
    special = special_values(dtype)
    values = values_of(codes.astype(fmt.code_dtype), fmt).copy()
    chosen = random.random(count) < 1 / 3
    values[chosen] = special[random.integers(0, special.size, int(chosen.sum()))]
    return values.reshape(shape)


def _fits(tile: Shape, shape: Shape, src: DataType, dst: DataType) -> bool:
    with options(vec_tile_shapes=tile, strict=False):
        try:
            plan_cast(shape, src, dst, CastMode.CAST_NONE, SaturationMode.ON)
        except TileShapeError:
            return False
    return True
