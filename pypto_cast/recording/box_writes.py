"""The boxes of a tensor that a kernel wrote, and the patches that tell where elements came from.

Iterations of a loop that are carried out together write one box, which stands for one of each. A
run may have thousands, and often nobody asks for them: they, and all that is written after them,
are entered when somebody does.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, Protocol, TypeVar

from tiling.box_map import BoxMap
from tiling.grid import Shape

Box = tuple[Shape, Shape]
"""The offset and extent of a box."""
_MOST_LATE: Final = 64
"""Of so many that wait, each may cover those before it: they are entered."""


class Boxed(Protocol):
    """Something about a box of a tensor."""

    @property
    def offset(self) -> Shape:
        """The place of its first element."""

    @property
    def extent(self) -> Shape:
        """Its length along each axis."""


_Patch = TypeVar("_Patch", bound=Boxed)
Undo = Callable[[], object]
Parts = Callable[[], Iterable[tuple[Shape, Shape, Iterable[_Patch]]]]
"""Gives offset and extent of smaller boxes, and the patches of each, which lie in it."""


class BoxWrites(Generic[_Patch]):
    """The boxes of a tensor that were written, how often each was, and the patches of the last."""

    __slots__ = ("_counts", "_late", "_patches")

    def __init__(self) -> None:
        self._counts: dict[Box, int] = {}
        self._patches: BoxMap[_Patch] = BoxMap()
        self._late: list[tuple[Box, Callable[[BoxWrites[_Patch]], object]]] = []

    def __bool__(self) -> bool:
        return bool(self._counts or self._late)

    def __iter__(self) -> Iterator[Box]:
        """Boxes that cover together what those that were written do."""
        return iter(dict.fromkeys([*self._counts, *(box for box, _ in self._late)]))

    def counts(self) -> tuple[tuple[Shape, Shape, int], ...]:
        """Offset and extent of each box, and how often it was written."""
        self._enter()
        return tuple((*box, count) for box, count in self._counts.items())

    def patches(self) -> list[_Patch]:
        """All patches, in the order in which they came."""
        self._enter()
        return list(self._patches)

    def patches_near(self, offset: Shape, extent: Shape) -> list[_Patch]:
        """Those that the elements of a box may have come from."""
        self._enter()
        return self._patches.touching(offset, extent)

    def origins(self) -> Callable[[], tuple[_Patch, ...]]:
        """Gives the patches of now, whatever is written until it is called."""
        patches = tuple(self._patches)
        if not self._late:
            return lambda: patches
        counts, late = self._counts.copy(), self._late.copy()

        def found() -> tuple[_Patch, ...]:
            copied: BoxWrites[_Patch] = BoxWrites()
            copied._counts, copied._late = counts.copy(), late.copy()
            for patch in patches:
                copied._patches.add(patch.offset, patch.extent, patch)
            return tuple(copied.patches())

        return functools.cache(found)

    def put(self, box: Box, patches: Sequence[_Patch], *, is_whole: bool) -> list[Undo]:
        """Add a box, whose patches take the place of those that they cover.

        Args:
            box: its offset and extent.
            patches: of its elements.
            is_whole: no patch of before is left.

        Returns:
            Functions that undo it, the last one first.
        """
        self._enter()
        undo: list[Undo] = []
        if is_whole:
            undo.append(functools.partial(setattr, self, "_patches", self._patches))
            self._patches = BoxMap()
        before = self._counts.get(box)
        self._counts[box] = (before or 0) + 1
        undo.append(
            functools.partial(self._counts.pop, box)
            if before is None
            else functools.partial(self._counts.__setitem__, box, before)
        )
        undo += [self._patches.put(patch.offset, patch.extent, patch) for patch in patches]
        return undo

    def put_for_good(self, box: Box, patches: Sequence[_Patch], *, is_whole: bool) -> None:
        """As `put`, where nothing undoes it."""
        if self._late:
            self._wait(box, lambda own: own.put(box, patches, is_whole=is_whole))
        else:
            self.put(box, patches, is_whole=is_whole)

    def divide(self, box: Box, parts: Parts[_Patch]) -> None:
        """Have smaller boxes in the place of one that was just written, and only once.

        Args:
            box: its offset and extent.
            parts: none of them reaches into another; it may be called more than once.
        """
        self._wait(box, lambda own: own._divide(box, parts()))

    def _divide(self, box: Box, parts: Iterable[tuple[Shape, Shape, Iterable[_Patch]]]) -> None:
        if self._counts[box] > 1:
            self._counts[box] -= 1
        else:
            del self._counts[box]
        self._patches.drop_covered(*box)
        for start, size, patches in parts:
            self._counts[start, size] = self._counts.get((start, size), 0) + 1
            others = iter(patches)
            for patch in itertools.islice(others, 1):  # what it covers was covered by the whole
                self._patches.add(patch.offset, patch.extent, patch)
            for patch in others:
                self._patches.put(patch.offset, patch.extent, patch)

    def _wait(self, box: Box, enter: Callable[[BoxWrites[_Patch]], object]) -> None:
        self._late.append((box, enter))
        if len(self._late) > _MOST_LATE:
            self._enter()

    def _enter(self) -> None:
        """Enter those that wait."""
        late, self._late = self._late, []
        for _, enter in late:
            enter(self)
