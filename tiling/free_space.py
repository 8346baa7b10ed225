"""A memory from which buffers are taken and to which they return, by best fit.

Source: upstream pypto at tag r0.2.0, framework/src/passes/block_graph_pass/schedule_ooo/
buffer_pool.cpp: best fit (:24 to 64, :156), runs of neighbours (:65 to 115), compaction (:318).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping


class FreeSpace:
    """The bytes of a memory that no buffer holds.

    Args:
        size_bytes: of the memory, kept as an attribute.
    """

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._held: dict[int, tuple[int, int]] = {}

    @property
    def held(self) -> Mapping[int, tuple[int, int]]:
        """First byte and end of every buffer, in the order of addresses."""
        return dict(sorted(self._held.items(), key=lambda item: item[1]))

    def take(self, buffer: int, size_bytes: int) -> int | None:
        """Take the smallest free piece that is large enough, of equal ones the lowest.

        Returns:
            The first byte; None where no piece is large enough.
        """
        fitting = [
            (stop - start, start) for start, stop in self._pieces() if stop - start >= size_bytes
        ]
        if not fitting:
            return None
        _, start = min(fitting)
        self._held[buffer] = start, start + size_bytes
        return start

    def fits(self, size_bytes: int) -> bool:
        """Some free piece is large enough."""
        return any(stop - start >= size_bytes for start, stop in self._pieces())

    def give_back(self, buffer: int) -> None:
        """Free the bytes of a buffer."""
        del self._held[buffer]

    def compact(self) -> None:
        """Move all buffers to the beginning, the largest first, of equal ones the lower number."""
        sizes = {buffer: stop - start for buffer, (start, stop) in self._held.items()}
        order = sorted(sorted(sizes), key=lambda buffer: -sizes[buffer])
        stops = list(itertools.accumulate(sizes[buffer] for buffer in order))
        self._held = {
            buffer: (stop - sizes[buffer], stop) for buffer, stop in zip(order, stops, strict=True)
        }

    def neighbours(self, size_bytes: int) -> Iterator[tuple[int, ...]]:
        """Each smallest run of neighbouring buffers whose return would make a piece that large."""
        spans = [(buffer, *span) for buffer, span in self.held.items()]
        first = 0
        while first < len(spans):
            start = spans[first - 1][2] if first else 0
            if self.size_bytes - start < size_bytes:
                return
            last = first
            while last < len(spans) and spans[last][1] - start < size_bytes:
                last += 1
            stop = spans[last][1] if last < len(spans) else self.size_bytes
            while first < last - 1 and stop - spans[first][2] >= size_bytes:
                first += 1
            yield tuple(buffer for buffer, _, _ in spans[first:last])
            first += 1

    def _pieces(self) -> Iterator[tuple[int, int]]:
        end = 0
        for start, stop in sorted(self._held.values()):
            if end < start:
                yield end, start
            end = stop
        if end < self.size_bytes:
            yield end, self.size_bytes
