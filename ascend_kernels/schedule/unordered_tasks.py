"""Tasks that use the same elements, one of them writing, in no order.

A file of its own because the lowering hands it tasks and does not know for what.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ascend_kernels.schedule.boxes import Box, Spans, placed
from ascend_kernels.schedule.time_limit import check_time
from tiling.box_map import BoxMap

_Used = tuple[int, Box]
"""A box, and how many of its memory came before it."""


@dataclass(slots=True)
class _Uses:
    """The boxes of one memory that tasks used, by their spans, and those of the last run.

    Boxes that read are apart, for two of them need no order. An empty one, which has no place, is
    looked at with each.
    """

    shape: tuple[int, ...]
    own: list[_Used] = field(default_factory=list)
    count: int = 0
    _reads: BoxMap[_Used] = field(default_factory=BoxMap)
    _writes: BoxMap[_Used] = field(default_factory=BoxMap)
    _empty: list[_Used] = field(default_factory=list)

    def add(self, box: Box) -> None:
        """Take a box of the run."""
        self.own.append((self.count, box))
        self.count += 1

    def hold_own(self) -> None:
        """Put the boxes of the run to those that are found."""
        for used in self.own:
            if (place := placed(self.spans(used[1]))) is None:
                self._empty.append(used)
            else:
                (self._writes if used[1].is_written else self._reads).add(*place, used)

    def spans(self, box: Box) -> Spans:
        """Begin and end of each axis; whole where a task sees another shape."""
        assert box.spans is not None
        is_same = box.tensor_shape == self.shape
        return box.spans if is_same else tuple((0, extent) for extent in self.shape)

    def meeting(self, box: Box) -> Iterator[_Used]:
        """The boxes that share elements with one, where it or they are written."""
        spans = self.spans(box)
        place = placed(spans)
        for held in (self._writes, self._reads)[: 1 + box.is_written]:
            for used in held if place is None else held.touching(*place):
                if _meet(self.spans(used[1]), spans):
                    yield used
        for used in self._empty:
            if (used[1].is_written or box.is_written) and _meet(self.spans(used[1]), spans):
                yield used


def _meet(one: Spans, other: Spans) -> bool:
    return all(a < d and c < b for (a, b), (c, d) in zip(one, other, strict=True))


@dataclass(slots=True)
class FirstUnordered:
    """Follows the tasks of a schedule, and keeps the first two that nothing orders.

    Boxes whose place is not known are left out.

    Attributes:
        unordered: the memory, and the box of the earlier and of the later task; None of none.
    """

    unordered: tuple[str, Box, Box] | None = None
    _done: list[int] = field(default_factory=list)
    _uses: dict[str, _Uses] = field(default_factory=dict)

    def add(self, after: Iterable[int], uses: Sequence[tuple[str, Box]]) -> None:
        """Take the next task: the tasks before it, and its boxes with their memory.

        Raises:
            OutOfTimeError: the time of the plan is over.
        """
        check_time()
        known = 0
        for other in after:
            known |= self._done[other] | 1 << other
        self._done.append(known)
        for memory, box in uses:
            if box.spans is not None:
                self._uses.setdefault(memory, _Uses(box.tensor_shape)).add(box)

    def close_run(self) -> None:
        """Compare the run's boxes with each other and with those of earlier runs."""
        for memory, uses in self._uses.items():
            if uses.own and self.unordered is None:
                uses.hold_own()
                self._compare(memory, uses)
            uses.own = []

    def _compare(self, memory: str, uses: _Uses) -> None:
        found = [
            (one, other, first, second)
            for other, second in uses.own
            for one, first in uses.meeting(second)
            if first.task < second.task and not self._done[second.task] >> first.task & 1
        ]
        if found:
            _, _, first, second = min(found, key=lambda each: each[:2])
            self.unordered = memory, first, second
