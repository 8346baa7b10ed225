"""Tasks that use the same elements, one of them writing, in no order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ascend_kernels.schedule.task_lowering import Box


@dataclass(slots=True)
class _Uses:
    """The boxes of one memory that tasks used, and those of the last run."""

    shape: tuple[int, ...]
    all: list[Box] = field(default_factory=list)
    own: list[Box] = field(default_factory=list)

    def spans(self, boxes: Sequence[Box]) -> npt.NDArray[np.int64]:
        """Begin and end of each box and axis; whole where a task sees another shape."""
        whole = tuple((0, extent) for extent in self.shape)
        is_same = (each.tensor_shape == self.shape for each in boxes)
        found = [each.spans if same else whole for each, same in zip(boxes, is_same, strict=True)]
        return np.array(found, np.int64).reshape(len(boxes), -1, 2)


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
        """Take the next task: the tasks before it, and its boxes with their memory."""
        known = 0
        for other in after:
            known |= self._done[other] | 1 << other
        self._done.append(known)
        for memory, box in uses:
            if box.spans is not None:
                self._uses.setdefault(memory, _Uses(box.tensor_shape)).own.append(box)

    def close_run(self) -> None:
        """Compare the run's boxes with each other and with those of earlier runs."""
        for memory, uses in self._uses.items():
            uses.all += uses.own
            if uses.own and self.unordered is None:
                self._compare(memory, uses)
            uses.own = []

    def _compare(self, memory: str, uses: _Uses) -> None:
        writes = [np.array([x.is_written for x in each]) for each in (uses.all, uses.own)]
        meet = writes[0][:, None] | writes[1]
        if not meet.any():
            return
        before, now = uses.spans(uses.all)[:, None], uses.spans(uses.own)[None]
        meet &= ((before[..., 0] < now[..., 1]) & (now[..., 0] < before[..., 1])).all(-1)
        for one, other in np.argwhere(meet).tolist():
            first, second = uses.all[one], uses.own[other]
            if first.task < second.task and not self._done[second.task] >> first.task & 1:
                self.unordered = memory, first, second
                return
