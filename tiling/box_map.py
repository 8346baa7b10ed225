"""Boxes of a tensor by their place, so that those near another are found without all of them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from tiling.grid import Shape

_T = TypeVar("_T")
_Box = tuple[Shape, Shape, _T]
_Cell = tuple[Shape, Shape]
"""The binary logarithms of a grid's extents, and a position in it."""


class BoxMap(Generic[_T]):
    """Boxes of one tensor, none of them empty, in the order in which they came.

    A box lies in the cells of a grid as wide as itself, extents rounded up to powers of two, so in
    at most two along an axis. To find boxes, the cells of a few grids are looked up, not all boxes.
    """

    def __init__(self) -> None:
        self._held: dict[int, _Box[_T]] = {}
        self._cells: dict[_Cell, set[int]] = {}
        self._grids: dict[Shape, set[int]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[_T]:
        return (self._held[number][2] for number in sorted(self._held))

    def put(self, offset: Shape, extent: Shape, thing: _T) -> Callable[[], None]:
        """Add a box, which takes the place of all that it covers.

        Returns:
            A function that undoes this, once everything later is undone.
        """
        covered = self._drop_covered(offset, extent)
        added = self._next
        self.add(offset, extent, thing)

        def undo() -> None:
            self._remove(added)
            for number, box in covered:
                self._add(number, box)

        return undo

    def add(self, offset: Shape, extent: Shape, thing: _T) -> None:
        """Add a box beside those that it covers."""
        added, self._next = self._next, self._next + 1
        self._add(added, (offset, extent, thing))

    def drop_covered(self, offset: Shape, extent: Shape) -> None:
        """Forget the boxes that a box covers."""
        self._drop_covered(offset, extent)

    def _drop_covered(self, offset: Shape, extent: Shape) -> list[tuple[int, _Box[_T]]]:
        covered = []
        for number in self._touching(offset, extent):
            start, size, _ = self._held[number]
            if all(
                a <= b and b + d <= a + c
                for a, b, c, d in zip(offset, start, extent, size, strict=True)
            ):
                covered.append((number, self._remove(number)))
        return covered

    def touching(self, offset: Shape, extent: Shape) -> list[_T]:
        """The things of the boxes that may have elements in a box, the first that came first."""
        return [self._held[number][2] for number in self._touching(offset, extent)]

    def _touching(self, offset: Shape, extent: Shape) -> list[int]:
        found: set[int] = set()
        for grid, members in self._grids.items():
            if math.prod((e >> g) + 2 for e, g in zip(extent, grid, strict=True)) > len(members):
                found |= members
                continue
            for cell in _cells(grid, offset, extent):
                found.update(self._cells.get((grid, cell), ()))
        return sorted(found)

    def _add(self, number: int, box: _Box[_T]) -> None:
        offset, extent, _ = self._held[number] = box
        grid = _grid_of(extent)
        for cell in _cells(grid, offset, extent):
            self._cells.setdefault((grid, cell), set()).add(number)
        self._grids.setdefault(grid, set()).add(number)

    def _remove(self, number: int) -> _Box[_T]:
        offset, extent, _ = box = self._held.pop(number)
        grid = _grid_of(extent)
        for cell in _cells(grid, offset, extent):
            members = self._cells[grid, cell]
            members.remove(number)
            if not members:
                del self._cells[grid, cell]
        self._grids[grid].remove(number)
        if not self._grids[grid]:
            del self._grids[grid]
        return box


@functools.lru_cache(maxsize=1 << 8)
def _grid_of(extent: Shape) -> Shape:
    return tuple((length - 1).bit_length() for length in extent)


def _cells(grid: Shape, offset: Shape, extent: Shape) -> Iterator[Shape]:
    """The cells of a grid in which a box that is not empty has elements."""
    return itertools.product(
        *(
            range(start >> log, (start + length - 1 >> log) + 1)
            for log, start, length in zip(grid, offset, extent, strict=True)
        )
    )
