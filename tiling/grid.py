"""Tiles of one shape laid over a larger one. Lazy: a grid never lists its tiles."""

from __future__ import annotations

import math
from dataclasses import dataclass

Shape = tuple[int, ...]


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
        if not 0 <= index < len(self):
            raise IndexError(f"tile {index} of {len(self)}")
        offset = []
        rest = index
        for count, step in zip(reversed(self.counts), reversed(self.tile_shape), strict=True):
            rest, position = divmod(rest, count)
            offset.append(position * step)
        start = tuple(reversed(offset))
        extent = tuple(
            min(t, s - o) for s, t, o in zip(self.shape, self.tile_shape, start, strict=True)
        )
        return Tile(index=index, offset=start, shape=extent)
