"""Boxes of a tensor by their place, so that those near another are found without all of them.

And those that were written. Where one was written for many, which is how iterations of a loop are
carried out together, often nobody asks for the many: they are entered when somebody does.
"""

from __future__ import annotations

import _thread
import contextvars
import functools
import itertools
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, Protocol, TypeVar

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


_Place = tuple[Shape, Shape]
"""The offset and extent of a box."""
_NO_THREAD: Final = "can't start new thread"
"""The text of Python's RuntimeError where no thread is left, or none can be."""
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


_Thing = TypeVar("_Thing", bound=Boxed)
Undo = Callable[[], object]
Parts = Callable[[], Iterable[tuple[Shape, Shape, Iterable[_Thing]]]]
"""Gives offset and extent of smaller boxes, and the patches of each, which lie in it."""


class BoxWrites(Generic[_Thing]):
    """The boxes of a tensor that were written, how often each was, and the patches they left.

    A patch says of a box where its elements came from; it takes the place of those that it covers.
    """

    __slots__ = ("_counts", "_late", "_patches")

    def __init__(self) -> None:
        self._counts: dict[_Place, int] = {}
        self._patches: BoxMap[_Thing] = BoxMap()
        self._late: list[tuple[_Place, Callable[[BoxWrites[_Thing]], object]]] = []

    def __bool__(self) -> bool:
        return bool(self._counts or self._late)

    def __iter__(self) -> Iterator[_Place]:
        """Boxes that together cover all that was written, fewer than were where some wait."""
        return iter(dict.fromkeys([*self._counts, *(box for box, _ in self._late)]))

    def counts(self) -> tuple[tuple[Shape, Shape, int], ...]:
        """Offset and extent of each box, and how often it was written."""
        self._enter()
        return tuple((*box, count) for box, count in self._counts.items())

    def patches(self) -> list[_Thing]:
        """All patches, in the order in which they came."""
        self._enter()
        return list(self._patches)

    def patches_near(self, offset: Shape, extent: Shape) -> list[_Thing]:
        """Those that the elements of a box may have come from."""
        self._enter()
        return self._patches.touching(offset, extent)

    def origins(self) -> Callable[[], tuple[_Thing, ...]]:
        """Gives the patches of now, whatever is written until it is called."""
        patches = tuple(self._patches)
        if not self._late:
            return lambda: patches
        counts, late = self._counts.copy(), self._late.copy()

        def found() -> tuple[_Thing, ...]:
            copied: BoxWrites[_Thing] = BoxWrites()
            copied._counts, copied._late = counts.copy(), late.copy()
            for patch in patches:
                copied._patches.add(patch.offset, patch.extent, patch)
            return tuple(copied.patches())

        return functools.cache(found)

    def put(self, box: _Place, patches: Sequence[_Thing], *, is_whole: bool) -> list[Undo]:
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

    def put_for_good(self, box: _Place, patches: Sequence[_Thing], *, is_whole: bool) -> None:
        """As `put`, where nothing undoes it."""
        if self._late:
            self._wait(box, lambda own: own.put(box, patches, is_whole=is_whole))
        else:
            self.put(box, patches, is_whole=is_whole)

    def divide(self, box: _Place, parts: Parts[_Thing]) -> None:
        """Have smaller boxes in the place of one that was just written, and only once.

        Args:
            box: its offset and extent.
            parts: none of them reaches into another; it may be called more than once.
        """
        self._wait(box, lambda own: own._divide(box, parts()))

    def _divide(self, box: _Place, parts: Iterable[tuple[Shape, Shape, Iterable[_Thing]]]) -> None:
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

    def _wait(self, box: _Place, enter: Callable[[BoxWrites[_Thing]], object]) -> None:
        self._late.append((box, enter))
        if len(self._late) > _MOST_LATE:
            self._enter()

    def _enter(self) -> None:
        """Enter those that wait, all of them even if the handler of a signal raises.

        Python calls handlers in the main thread: so another does the work, and this one waits.
        """
        late = self._late
        if not late:
            return
        by_turns, failed = threading.Lock(), list[BaseException]()

        def work() -> None:
            with by_turns:
                if self._late is late:  # no thread before this one took them
                    self._late = []
                    try:
                        for _, enter in late:
                            enter(self)
                    except BaseException as error:
                        failed.append(error)

        if threading.current_thread() is threading.main_thread():
            failed[:0] = _waited_for(work)
        else:
            work()
        if failed:
            raise failed[0]


def _waited_for(work: Callable[[], None]) -> list[BaseException]:
    """Run a function in another thread, again until that and waiting for it are not interrupted.

    Returns:
        The exceptions of handlers of signals.
    """
    raised: list[BaseException] = []
    while True:
        done = _thread.allocate_lock()
        done.acquire()
        try:  # threading.Thread.start does not stand an interruption
            _thread.start_new_thread(_run_in, (contextvars.copy_context(), work, done))
            done.acquire()
            return raised
        except BaseException as error:
            raised.append(error)
            if str(error) == _NO_THREAD:
                work()
                return raised[:-1]


def _run_in(context: contextvars.Context, work: Callable[[], None], done: _thread.LockType) -> None:
    try:
        context.run(work)
    finally:
        done.release()
