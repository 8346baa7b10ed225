"""GM and UB as bytes, with the last writer of each: a core in GM, an instruction in UB.

UB starts as garbage, and so does a buffer each time that it is allocated. A shadow names the
instruction that wrote each byte last, and tells whether it wrote garbage: garbage travels with
casts, so it may lie in padding lanes and be converted there, but not reach GM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.formats import Codes, Format

Bytes = npt.NDArray[np.uint8]
Known = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.int64]

GARBAGE: Final = 0xA5
"""The value of an unwritten byte of UB; the shadow tells which bytes were written."""
UB: Final = "ub"
_SEVERAL: Final = np.uint8(255)
"""In the book of readers: more than one core."""


class SimulatorFault(RuntimeError):
    """An instruction, or an order of instructions, that the hardware does not permit.

    Args:
        text: a description of the fault.
        at: the memory and the byte in question, if it is about one.
    """

    def __init__(self, text: str, at: tuple[str, int] | None = None) -> None:
        super().__init__(text)
        self.at = at


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Bytes of one memory: `count` rows of `width` bytes, `pitch` apart, from `start` on.

    Attributes:
        space: "ub", or "gm." and the name of a tensor.
        start: the first byte.
        width: bytes of a row.
        count: rows; those of a pattern may overlap.
        pitch: bytes from the start of a row to that of the next.
        pattern: the bytes of a row that belong to it, by their offsets; None: all.
    """

    space: str
    start: int
    width: int
    count: int = 1
    pitch: int = 0
    pattern: tuple[int, ...] | None = None

    @property
    def stop(self) -> int:
        return self.start + (self.count - 1) * self.pitch + self.width

    def __contains__(self, byte: int) -> bool:
        return bool(self._member(byte, byte + 1)[0])

    def shared(self, other: Region) -> tuple[str, int]:
        """Names the first byte that belongs to both of two regions that touch."""
        low, high = max(self.start, other.start), min(self.stop, other.stop)
        return self.space, low + int(np.argmax(self._member(low, high) & other._member(low, high)))

    def touches(self, other: Region) -> bool:
        """Whether any byte belongs to both."""
        if self.space != other.space or self.stop <= other.start or other.stop <= self.start:
            return False
        if self.pattern is None and other.pattern is None:
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

    def _member(self, low: int, high: int) -> Known:
        """Whether each byte from `low` to `high` belongs to the region."""
        if self.pattern is not None:
            rows = self.start - low + self.pitch * np.arange(self.count)[:, None]
            offsets = (rows + np.array(self.pattern)).reshape(-1)
            found = np.zeros(high - low, np.bool_)
            found[offsets[(offsets >= 0) & (offsets < high - low)]] = True
            return found
        offset = np.arange(low, high) - self.start
        inside = offset < self.width if self.count == 1 else offset % self.pitch < self.width
        member: Known = inside & (offset >= 0) & (offset < self.stop - self.start)
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

    def first(self, rows: npt.NDArray[np.bool_]) -> tuple[str, int]:
        """Names the first byte of which a (count, width) array is true."""
        row, column = (int(axis[0]) for axis in np.nonzero(rows))
        return self.space, self.start + row * self.pitch + column

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
            raise SimulatorFault(
                f"writes {region}, but gm.{tensor} is read-only", (region.space, region.start)
            )
        writers = self._book(self._writers, tensor)
        _check_foreign(region, core, "writes", "wrote", writers)
        _check_foreign(region, core, "writes", "read", self._readers.get(tensor))
        region.view(writers)[:] = np.uint8(core + 1)
        region.view(memory)[:] = values

    def writer(self, space: str, byte: int) -> int | None:
        """The core that wrote a byte; None: none did."""
        book = self._writers.get(space.removeprefix("gm."))
        if book is None or not 0 <= byte < book.size or not book[byte]:
            return None
        return int(book[byte]) - 1

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
        number = int(rows[foreign][0])
        other = "another core" if number == _SEVERAL else f"core {number - 1}"
        at = region.first(foreign)
        raise SimulatorFault(
            f"{verb} byte {at[1]} of {region.space}, which {other} {did}; cores are not ordered", at
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UbRange:
    """A named part of UB that an access may not leave.

    Attributes:
        name: for messages.
        offset_bytes: the first byte.
        size_bytes: how many.
        may_overlap: it may share bytes with others of which this is true.
    """

    name: str
    offset_bytes: int
    size_bytes: int
    may_overlap: bool = False

    @property
    def stop(self) -> int:
        return self.offset_bytes + self.size_bytes


Lives = Mapping[UbRange, int]
"""For each buffer that was allocated, how many instructions had been issued by then."""


class VectorMemory:
    """The UB of one core, with a shadow that names the last writer of each byte.

    Attributes:
        bytes: what it holds.
        writers: for each byte 0, or one more than the index of the instruction that wrote it last,
            negative if it wrote garbage.
    """

    def __init__(self, size_bytes: int) -> None:
        self.bytes: Bytes = np.full(size_bytes, GARBAGE, np.uint8)
        self.writers: npt.NDArray[np.int32] = np.zeros(size_bytes, np.int32)
        self._number = 0
        self._lives: Lives = {}

    def begin(self, index: int, lives: Lives) -> None:
        """Take the turn of an instruction: the bytes noted from here on are written by it.

        Program order decides which life of a buffer it works on: no instruction before the last
        allocation that precedes it belongs to that life, whichever pipe runs ahead.
        """
        self._number = index + 1
        self._lives = lives

    def known(self, where: slice | Offsets, start: int) -> Known:
        """Whether bytes of the buffer that holds byte `start` are no garbage."""
        found: Known = self.writers[where] > self._life(start)[1]
        return found

    def note(self, where: slice | Offsets | Region, known: Known | None = None) -> None:
        """Note bytes as written; where `known` is false, with garbage."""
        number = np.int32(self._number)
        numbers = number if known is None else np.where(known, number, -number)
        if isinstance(where, Region):
            where.view(self.writers)[:] = numbers
        else:
            self.writers[where] = numbers

    def check_written(self, region: Region) -> None:
        """Refuse garbage.

        Raises:
            SimulatorFault: a byte of the region is garbage; names the first.
        """
        rows: npt.NDArray[np.int32] = region.view(self.writers).view(np.int32)
        name, since = self._life(region.start)
        if rows.min() > since:
            return
        at = region.first(rows <= since)
        writer = int(self.writers[at[1]])
        why = "was never written" if writer == 0 else "was written with garbage"
        if writer > 0:
            why = f"was not written since {name} was allocated anew"
        raise SimulatorFault(
            f"reads {region}, whose byte {at[1]} {why}: garbage would reach GM", at
        )

    def _life(self, start: int) -> tuple[str, int]:
        """The buffer that holds a byte, if it was allocated, and since which instruction."""
        for buffer, since in self._lives.items():
            if buffer.offset_bytes <= start < buffer.stop:
                return buffer.name, since
        return "", 0


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
