"""The steps of a kernel, in their order; those of many iterations are made when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence
from typing import Any, TypeVar, overload

_Step = TypeVar("_Step")


class StepList(MutableSequence[_Step]):
    """A list, some stretches of which are made when an element up to their end is asked for.

    What comes after all such stretches is added, found and deleted without making any: so an
    operation that runs after thousands of iterations, which were carried out together, is recorded
    without looking at them.
    """

    __slots__ = ("_before", "_last", "_start")

    def __init__(self) -> None:
        self._before: list[list[_Step] | Callable[[], Iterable[_Step]]] = []
        self._start = 0
        """The number of those in `_before`."""
        self._last: list[_Step] = []

    def __len__(self) -> int:
        return self._start + len(self._last)

    def extend_later(self, count: int, make: Callable[[], Iterable[_Step]]) -> None:
        """Add so many elements, which a function makes; it may be called more than once."""
        self._before += self._last, make
        self._start += len(self._last) + count
        self._last = []

    def _made(self) -> list[_Step]:
        """All elements, as one list that this one is from now on."""
        if self._before:
            whole: list[_Step] = []
            for each in self._before:
                whole += each() if callable(each) else each
            whole += self._last
            self._before, self._start, self._last = [], 0, whole
        return self._last

    def _at(self, index: int | slice) -> tuple[list[_Step], int | slice]:
        """The list that an index is of, and the index in it."""
        start = self._start
        if not start:
            return self._last, index
        if isinstance(index, int):
            return (self._last, index - start) if index >= start else (self._made(), index)
        first, is_open = index.start, index.stop is None and index.step is None
        if is_open and first is not None and first >= start:
            return self._last, slice(first - start, None)
        return self._made(), index

    @overload
    def __getitem__(self, index: int) -> _Step: ...

    @overload
    def __getitem__(self, index: slice) -> list[_Step]: ...

    def __getitem__(self, index: int | slice) -> _Step | list[_Step]:
        own, at = self._at(index)
        return own[at]

    @overload
    def __setitem__(self, index: int, value: _Step) -> None: ...

    @overload
    def __setitem__(self, index: slice, value: Iterable[_Step]) -> None: ...

    def __setitem__(self, index: int | slice, value: Any) -> None:
        own, at = self._at(index)
        own[at] = value

    def __delitem__(self, index: int | slice) -> None:
        own, at = self._at(index)
        del own[at]

    def insert(self, index: int, value: _Step) -> None:
        """Put an element before that at an index, or at the end."""
        if index < self._start:
            self._made()
        self._last.insert(index - self._start, value)

    def append(self, value: _Step) -> None:
        """Put an element at the end."""
        self._last.append(value)
