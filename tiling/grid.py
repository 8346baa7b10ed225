"""Tiles of a shape laid over a larger one and shared among cores, never listed; division of C."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Shape = tuple[int, ...]
Ints: TypeAlias = npt.NDArray[np.int64]
Count = TypeVar("Count", int, Ints)
"""A number, or one for each of many tile shapes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One box of a tensor: where it starts and how far it reaches, in elements."""

    index: int
    offset: Shape
    shape: Shape

    @property
    def elems(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Tiles of one shape laid over a larger shape, row-major, the last axis fastest."""

    shape: Shape
    tile_shape: Shape

    @property
    def counts(self) -> Shape:
        """Tiles along each axis."""
        return tuple(-(-s // t) for s, t in zip(self.shape, self.tile_shape, strict=True))

    def __len__(self) -> int:
        return math.prod(self.counts)

    def tile(self, index: int) -> Tile:
        """The tile at a position of the row-major order.

        Raises:
            IndexError: no such tile.
        """
        counts = self.counts
        if not 0 <= index < math.prod(counts):
            raise IndexError(f"tile {index} of {len(self)}")
        offset = []
        rest = index
        for count, step in zip(reversed(counts), reversed(self.tile_shape), strict=True):
            rest, position = divmod(rest, count)
            offset.append(position * step)
        start = tuple(reversed(offset))
        extent = tuple(
            min(t, s - o) for s, t, o in zip(self.shape, self.tile_shape, start, strict=True)
        )
        return Tile(index=index, offset=start, shape=extent)


def first_tile(core: Count, tile_count: Count, cores: int) -> Count:
    """The first tile of a core; it has those up to the first one of the next core.

    Shares are contiguous, and the first cores have a tile more where they do not come out even.
    """
    share, extra = tile_count // cores, tile_count % cores
    return core * share + extra - (extra - core) * (core < extra)


def as_tiles(shapes: Iterable[Shape]) -> Ints:
    """Tile shapes as an array of shape (n, axes)."""
    return np.array(list(shapes), dtype=np.int64)


def as_shapes(tiles: Ints) -> list[Shape]:
    """The tile shapes of an array of shape (n, axes)."""
    return [tuple(tile) for tile in tiles.tolist()]


def quotient(dividend: int, divisor: int) -> int:
    """The quotient without its fraction: -7 / 2 is -3.

    Raises:
        ZeroDivisionError: by zero.
    """
    found = abs(dividend) // abs(divisor)
    return found if (dividend < 0) == (divisor < 0) else -found


def remainder(dividend: int, divisor: int) -> int:
    """The remainder of that quotient, which has the dividend's sign: -7 % 3 is -1.

    Raises:
        ZeroDivisionError: by zero.
    """
    return dividend - divisor * quotient(dividend, divisor)
