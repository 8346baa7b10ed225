"""GM and UB as bytes, with what a checker must know of each: written or not, by which core, when.

UB starts as garbage. A shadow says which bytes were written since; it travels with copies and
casts, so garbage may lie in padding lanes and be converted there, but not reach GM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.formats import Codes, Format

Bytes = npt.NDArray[np.uint8]
Written = npt.NDArray[np.bool_]

GARBAGE: Final = 0xA5
"""The value of an unwritten byte of UB; the shadow tells which bytes were written."""
UB: Final = "ub"
_SEVERAL: Final = np.uint8(255)
"""In the book of readers: more than one core."""


class SimulatorFault(RuntimeError):
    """An instruction, or an order of instructions, that the hardware does not permit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Bytes of one memory: `count` stretches of `width` bytes, `pitch` apart, from `start` on."""

    space: str
    start: int
    width: int
    count: int = 1
    pitch: int = 0

    @property
    def stop(self) -> int:
        return self.start + (self.count - 1) * self.pitch + self.width

    def touches(self, other: Region) -> bool:
        """Tells whether any byte belongs to both."""
        if self.space != other.space or self.stop <= other.start or other.stop <= self.start:
            return False
        if self.count == 1 and other.count == 1:
            return True
        if self.pitch == other.pitch and self.count > 1 and other.count > 1:
            return self._touches_alike(other)
        low, high = max(self.start, other.start), min(self.stop, other.stop)
        return bool((self._member(low, high) & other._member(low, high)).any())

    def _touches_alike(self, other: Region) -> bool:
        """Rows that repeat alike meet where two neighbours do: only their distance counts."""
        rows_apart, between = divmod(other.start - self.start, self.pitch)
        return (between < self.width and -other.count < rows_apart < self.count) or (
            self.pitch - between < other.width and -other.count < rows_apart + 1 < self.count
        )

    def _member(self, low: int, high: int) -> Written:
        offset = np.arange(low, high) - self.start
        inside = offset < self.width if self.count == 1 else offset % self.pitch < self.width
        member: Written = inside & (offset >= 0) & (offset < self.stop - self.start)
        return member

    def view(self, memory: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """The stretches as rows of a (count, width) view of `memory`."""
        if self.count == 1:
            return memory[self.start : self.stop].reshape(1, self.width)
        return np.ndarray(
            (self.count, self.width),
            memory.dtype,
            memory,
            self.start * memory.itemsize,
            (self.pitch * memory.itemsize, memory.itemsize),
        )

    def __str__(self) -> str:
        return f"{self.space}+{self.start}..{self.stop}"


class GlobalMemory:
    """The tensors in GM, and which core touched which byte of them.

    Cores are not ordered: what one writes, no other may read or write. Tensors that cannot be
    written need no book of who read them.
    """

    def __init__(self, tensors: Mapping[str, Bytes]) -> None:
        self.tensors = tensors
        self._writers: dict[str, Bytes] = {}
        self._readers: dict[str, Bytes] = {}

    def size_bytes(self, tensor: str) -> int:
        """Bytes of a tensor.

        Raises:
            SimulatorFault: there is none of this name.
        """
        if tensor not in self.tensors:
            raise SimulatorFault(f"GM has no tensor {tensor!r}, only {', '.join(self.tensors)}")
        return self.tensors[tensor].size

    def read(self, region: Region, core: int) -> Bytes:
        """The bytes of a region, which no other core may have written."""
        tensor = region.space.removeprefix("gm.")
        memory = self.tensors[tensor]
        if memory.flags.writeable:
            _check_foreign(region, core, "reads", "wrote", self._writers.get(tensor))
            seen = region.view(self._book(self._readers, tensor))
            seen[:] = np.where((seen == 0) | (seen == core + 1), np.uint8(core + 1), _SEVERAL)
        rows: Bytes = region.view(memory).view(np.uint8)
        return rows

    def write(self, region: Region, values: Bytes, core: int) -> None:
        """Write a region, which no other core may have touched."""
        tensor = region.space.removeprefix("gm.")
        memory = self.tensors[tensor]
        if not memory.flags.writeable:
            raise SimulatorFault(f"gm.{tensor} is read-only")
        writers = self._book(self._writers, tensor)
        _check_foreign(region, core, "writes", "wrote", writers)
        _check_foreign(region, core, "writes", "read", self._readers.get(tensor))
        region.view(writers)[:] = np.uint8(core + 1)
        region.view(memory)[:] = values

    @property
    def written_tensors(self) -> tuple[str, ...]:
        """The tensors that some core wrote to."""
        return tuple(self._writers)

    def unwritten(self, tensor: str) -> tuple[range, ...]:
        """The bytes that no core wrote, as stretches from the first on."""
        missing = self._book(self._writers, tensor) == 0
        edges = np.flatnonzero(np.diff(missing, prepend=False, append=False))
        return tuple(range(start, stop) for start, stop in edges.reshape(-1, 2).tolist())

    def _book(self, books: dict[str, Bytes], tensor: str) -> Bytes:
        """A byte for each byte of a tensor: 0, or one more than the core."""
        if tensor not in books:
            books[tensor] = np.zeros(self.tensors[tensor].size, np.uint8)
        return books[tensor]


def _check_foreign(region: Region, core: int, verb: str, did: str, book: Bytes | None) -> None:
    if book is None:
        return
    rows = region.view(book)
    if not rows.any():
        return
    foreign = (rows != 0) & (rows != np.uint8(core + 1))
    if foreign.any():
        row, column = (int(axis[0]) for axis in np.nonzero(foreign))
        number = int(rows[row, column])
        other = "another core" if number == _SEVERAL else f"core {number - 1}"
        raise SimulatorFault(
            f"{verb} byte {region.start + row * region.pitch + column} of {region.space}, "
            f"which {other} {did}; cores are not ordered"
        )


class VectorMemory:
    """The UB of one core, with its shadow of written bytes."""

    def __init__(self, size_bytes: int) -> None:
        self.bytes: Bytes = np.full(size_bytes, GARBAGE, np.uint8)
        self.written: Written = np.zeros(size_bytes, np.bool_)

    def check_written(self, region: Region) -> None:
        """Refuse garbage.

        Raises:
            SimulatorFault: a byte of the region was never written; names the first.
        """
        rows = region.view(self.written)
        if rows.all():
            return
        row, column = (int(axis[0]) for axis in np.nonzero(~rows.astype(np.bool_)))
        raise SimulatorFault(
            f"reads {region}, whose byte {region.start + row * region.pitch + column} was never "
            "written: garbage would reach GM"
        )


def load(memory: Bytes, fmt: Format) -> Codes:
    """Codes that lie in memory; two of 4 bits share a byte, the low nibble first."""
    if fmt.bits == 4:
        return np.stack([memory & 15, memory >> 4], axis=-1).reshape(-1)
    codes: Codes = memory.view(fmt.code_dtype)
    return codes


def packed(codes: Codes, fmt: Format) -> Bytes:
    """Codes as memory holds them, the inverse of `load`."""
    if fmt.bits != 4:
        return codes.view(np.uint8)
    pairs: Bytes = codes.astype(np.uint8, copy=False).reshape(-1, 2)
    both: Bytes = pairs[:, 0] | (pairs[:, 1] << np.uint8(4))
    return both
