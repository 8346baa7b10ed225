"""Boxes of tensors that tasks read and write, and those written last, found by their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tiling.box_map import BoxMap
from tiling.grid import Shape

Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A box of a tensor that a task reads or writes.

    Attributes:
        task: its number.
        leaf, operation: the copy.
        tensor_shape: of the tensor as that task sees it.
        spans: begin and end an axis; None where they are not known.
        cells: the same as upstream's runtime notes them, an open axis whole.
        is_written: True if the task writes it.
    """

    task: int
    leaf: int
    operation: int
    tensor_shape: tuple[int, ...]
    spans: Spans | None
    cells: Spans | None
    is_written: bool

    def touches(self, other: Box) -> bool:
        """Return True if both may have an element in common."""
        if self.tensor_shape != other.tensor_shape or self.cells is None or other.cells is None:
            return True
        pairs = zip(self.cells, other.cells, strict=True)
        return all(a < d and c < b for (a, b), (c, d) in pairs)

    def covers(self, other: Box) -> bool:
        """Return True if every element of the other is in this one."""
        if self.tensor_shape != other.tensor_shape or self.cells is None or other.cells is None:
            return False
        pairs = zip(self.cells, other.cells, strict=True)
        return all(a <= c and d <= b for (a, b), (c, d) in pairs)


def placed(spans: Spans | None) -> tuple[Shape, Shape] | None:
    """Offset and extent of a box for a `BoxMap`; None where they are not known or it is empty."""
    if spans is None or any(end <= begin for begin, end in spans):
        return None
    return tuple(begin for begin, _ in spans), tuple(end - begin for begin, end in spans)


@dataclass(slots=True)
class WrittenBoxes:
    """The boxes of one memory that tasks wrote and no later run has covered, by their cells.

    Tasks of a kernel write thousands of tiles: those near a box are looked up, not all compared.
    """

    _maps: dict[Shape, BoxMap[Box]] = field(default_factory=dict)
    _others: list[Box] = field(default_factory=list)

    def __iter__(self) -> Iterator[Box]:
        for held in self._maps.values():
            yield from held
        yield from self._others

    def touching(self, box: Box) -> Iterator[Box]:
        """The boxes that may have an element in common with one."""
        place = placed(box.cells)
        for shape, held in self._maps.items():
            near = held if place is None or shape != box.tensor_shape else held.touching(*place)
            yield from filter(box.touches, near)
        yield from filter(box.touches, self._others)

    def replace(self, boxes: Sequence[Box]) -> None:
        """Take the boxes of a run, and forget those of earlier runs that one of them covers."""
        places = [placed(each.cells) for each in boxes]
        self._others = [
            each
            for each in self._others
            if each.cells is None or not any(box.covers(each) for box in boxes)
        ]
        for box, place in zip(boxes, places, strict=True):
            if place is not None and box.tensor_shape in self._maps:
                self._maps[box.tensor_shape].drop_covered(*place)
        for box, place in zip(boxes, places, strict=True):
            if place is None:
                self._others.append(box)
            else:
                self._maps.setdefault(box.tensor_shape, BoxMap()).add(*place, box)
