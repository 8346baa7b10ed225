"""The moment at which a leaf needs more of UB than there is, and the buffers alive then.

A short file because its types are public: the planner raises them, and reports show them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from simulator.numbers.formats import Format
from tiling.grid import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBuffer:
    """A buffer that is alive at the moment, or is asked for then.

    Attributes:
        size_bytes: of the buffer.
        text: the tile operation that writes it, with its line.
        opcode: of that operation.
        place: the source line that it serves, as "softmax.py:12"; "" of none.
        format: the format of an element; None where it is not known.
        shape: the extents in UB, padding included.
    """

    size_bytes: int
    text: str
    opcode: str
    place: str
    format: Format | None = None
    shape: Shape = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UBOverflow:
    """More in UB at one moment than it holds.

    Attributes:
        reason: one line, for errors.
        opcode: of the tile operation that finds no room.
        place: the source line that it serves, as "softmax.py:12"; "" of none.
        ub_bytes: of the chip.
        buffers: alive at that moment, with those that the operation asks for; the largest first.
    """

    reason: str
    opcode: str
    place: str
    ub_bytes: int
    buffers: tuple[LiveBuffer, ...]

    def __str__(self) -> str:
        return f"{self.reason}: `pypto-cast schedule FILE::KERNEL` names the nearest, and why"

    @property
    def needed_bytes(self) -> int:
        """The sum of the buffers.

        Where it is no more than UB has, the free bytes are not in one piece.
        """
        return sum(each.size_bytes for each in self.buffers)

    @property
    def lines(self) -> tuple[tuple[str, int], ...]:
        """The bytes alive by source line, the most first."""
        found: dict[str, int] = {}
        for each in self.buffers:
            found[each.place] = found.get(each.place, 0) + each.size_bytes
        return tuple(sorted(found.items(), key=lambda item: -item[1]))

    @property
    def culprit(self) -> str:
        """The source line that owns most of the bytes alive; of equal ones that of the largest."""
        return self.lines[0][0]


class UBOverflowError(PlanError):
    """A kernel with more in UB at one moment than it holds; names operation, line and buffers."""

    @property
    def overflow(self) -> UBOverflow:
        """The moment."""
        found = self.args[0]
        assert isinstance(found, UBOverflow)
        return found
