"""GM and UB as bytes, with the last writer of each, and the checked addresses of a core.

The last writer is a core in GM, an instruction in UB. An address must be aligned, inside its memory
and inside one buffer. UB starts as garbage, and so does a buffer each time that it is allocated. A
shadow names the instruction that wrote each byte last, and whether it wrote garbage: garbage goes
through casts, so it may lie in padding lanes and be converted there, but not reach GM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.corrections import NIBBLES
from simulator.machine.isa import GmAddress, UbAddress
from simulator.numbers.formats import Codes, FloatFormat, Format
from tiling.chips import Chip

Bytes = npt.NDArray[np.uint8]
Known = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.int64]

GARBAGE: Final = 0xA5
"""The value of an unwritten byte of UB; the shadow tells which bytes were written."""
UB: Final = "ub"
ELEM_BYTES: Final = (1, 2, 4, 8)
_SEVERAL: Final = np.uint8(255)
"""In the record of readers: more than one core."""


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
        """True if any byte belongs to both."""
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
        """True for each byte from `low` to `high` belongs to the region."""
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
    written need no record of their readers.
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
            seen = region.view(self._record(self._readers, tensor))
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
        writers = self._record(self._writers, tensor)
        _check_foreign(region, core, "writes", "wrote", writers)
        _check_foreign(region, core, "writes", "read", self._readers.get(tensor))
        region.view(writers)[:] = np.uint8(core + 1)
        region.view(memory)[:] = values

    def writer(self, space: str, byte: int) -> int | None:
        """The core that wrote a byte; None: none did."""
        record = self._writers.get(space.removeprefix("gm."))
        if record is None or not 0 <= byte < record.size or not record[byte]:
            return None
        return int(record[byte]) - 1

    @property
    def written_tensors(self) -> tuple[str, ...]:
        """The tensors that some core wrote to."""
        return tuple(self._writers)

    def unwritten(self, tensor: str) -> tuple[range, ...]:
        """The bytes that no core wrote, as stretches from the first on."""
        record = self._record(self._writers, tensor)
        if record.all():
            return ()
        missing = record == 0
        edges = np.flatnonzero(np.diff(missing, prepend=False, append=False))
        return tuple(range(start, stop) for start, stop in edges.reshape(-1, 2).tolist())

    def _record(self, records: dict[str, Bytes], tensor: str) -> Bytes:
        """A byte for each byte of a tensor: 0, or one more than the core."""
        if tensor not in records:
            records[tensor] = np.zeros(self.tensors[tensor].size, np.uint8)
        return records[tensor]


def _check_foreign(region: Region, core: int, verb: str, did: str, record: Bytes | None) -> None:
    if record is None:
        return
    rows = region.view(record)
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
        """True where bytes of the buffer that holds byte `start` are no garbage."""
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

    def check_written(self, region: Region, life: tuple[str, int] | None = None) -> None:
        """Refuse garbage.

        Args:
            region: the bytes.
            life: the buffer that they belong to, and since which instruction; None: the allocated
                buffer that holds the first of them.

        Raises:
            SimulatorFault: a byte of the region is garbage; names the first.
        """
        rows: npt.NDArray[np.int32] = region.view(self.writers).view(np.int32)
        name, since = self._life(region.start) if life is None else life
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The bytes that an instruction reads and writes.

    Those of `late_writes` it writes behind a barrier inside of it.
    """

    reads: tuple[Region, ...] = ()
    writes: tuple[Region, ...] = ()
    late_writes: tuple[Region, ...] = ()


class Addresses:
    """The memory that a core can address: its UB, by buffers if there are any, and GM.

    Attributes:
        effects: of instructions inside UB that were checked, by their `id`, which no other has
            while they are held beside it.

    Raises:
        SimulatorFault: buffers overlap, are not aligned or do not fit UB.
    """

    def __init__(self, chip: Chip, gm: GlobalMemory, buffers: Sequence[UbRange]) -> None:
        self.chip = chip
        self.gm = gm
        self.buffers = buffers
        self.effects: dict[int, tuple[object, Effect]] = {}
        _check_buffers(buffers, chip)

    def ub_region(self, address: UbAddress, width: int, count: int = 1, pitch: int = 0) -> Region:
        """A region of UB, once it is aligned, inside UB and inside one buffer."""
        line = self.chip.block_bytes
        start = address.offset_bytes
        region = Region(space=address.space, start=start, width=width, count=count, pitch=pitch)
        if start % line:
            raise SimulatorFault(f"{address} is not aligned to {line} B", (region.space, start))
        _check_range(region, self.chip.ub_bytes)
        if self.buffers:
            self._check_buffer(region)
        return region

    def _check_buffer(self, region: Region) -> None:
        """Check that one buffer holds the region; of those that share bytes, any may."""
        widest: UbRange | None = None
        for buffer in self.buffers:
            if buffer.offset_bytes <= region.start < buffer.stop and (
                widest is None or buffer.stop > widest.stop
            ):
                widest = buffer
        if widest is None:
            raise SimulatorFault(f"{region} lies in no buffer", (region.space, region.start))
        if region.stop > widest.stop:
            raise SimulatorFault(
                f"{region} leaves buffer {widest.name}, which ends at ub+{widest.stop}",
                (region.space, widest.stop),
            )

    def span(self, address: UbAddress, count: int, bits: int) -> tuple[Region, ...]:
        if count < 0 or count * bits % 8:
            raise SimulatorFault(
                f"count {count} is no whole number of bytes of {bits}-bit elements"
            )
        if count == 0:
            return ()
        return (self.ub_region(address, count * bits // 8),)

    def gm_region(self, address: GmAddress, width: int, count: int = 1, pitch: int = 0) -> Region:
        size_bytes = self.gm.size_bytes(address.tensor)
        region = Region(
            space=address.space,
            start=address.offset_bytes,
            width=width,
            count=count,
            pitch=pitch,
        )
        _check_range(region, size_bytes)
        return region


def _check_buffers(buffers: Sequence[UbRange], chip: Chip) -> None:
    ordered = sorted(buffers, key=lambda buffer: buffer.offset_bytes)
    for buffer in ordered:
        if buffer.offset_bytes % chip.block_bytes:
            raise SimulatorFault(
                f"buffer {buffer.name} starts at ub+{buffer.offset_bytes}, which is not aligned to "
                f"{chip.block_bytes} B"
            )
        if buffer.offset_bytes < 0 or buffer.stop > chip.ub_bytes:
            raise SimulatorFault(
                f"buffer {buffer.name}, ub+{buffer.offset_bytes}..{buffer.stop}, does not fit the "
                f"{chip.ub_bytes} B of UB"
            )
    for second in range(1, len(ordered)):
        first, last = max(ordered[:second], key=lambda buffer: buffer.stop), ordered[second]
        if first.stop > last.offset_bytes and not (first.may_overlap and last.may_overlap):
            raise SimulatorFault(
                f"buffers {first.name} (to ub+{first.stop}) and {last.name} (from "
                f"ub+{last.offset_bytes}) overlap"
            )


def _check_range(region: Region, size_bytes: int) -> None:
    if region.start < 0 or region.stop > size_bytes:
        raise SimulatorFault(
            f"{region.space}: bytes {region.start} to {region.stop} are outside the "
            f"{size_bytes} B there are",
            (region.space, region.start if region.start < 0 else max(region.start, size_bytes)),
        )


def check_elem_bytes(elem_bytes: int) -> None:
    if elem_bytes not in ELEM_BYTES:
        raise SimulatorFault(f"an element has 1, 2, 4 or 8 B, not {elem_bytes}")


def check_gm_alignment(address: GmAddress, elem_bytes: int) -> None:
    if address.offset_bytes % elem_bytes:
        raise SimulatorFault(
            f"{address} is not aligned to its elements of {elem_bytes} B",
            (address.space, address.offset_bytes),
        )


def load(memory: Bytes, fmt: Format, first_nibble: str = NIBBLES.default) -> Codes:
    """Codes that lie in memory; two of 4 bits share a byte.

    Args:
        memory: bytes.
        fmt: of the elements.
        first_nibble: "low" or "high": of two floats the place of the first; integers have it low.
    """
    if fmt.bits != 4:
        codes: Codes = memory.view(fmt.code_dtype)
        return codes
    low, high = _shifts(fmt, first_nibble)
    return np.stack([memory >> low & 15, memory >> high & 15], axis=-1).reshape(-1)


def packed(codes: Codes, fmt: Format, first_nibble: str = NIBBLES.default) -> Bytes:
    """Codes as memory holds them, the inverse of `load`."""
    if fmt.bits != 4:
        return codes.view(np.uint8)
    pairs: Bytes = codes.astype(np.uint8, copy=False).reshape(-1, 2)
    first, second = _shifts(fmt, first_nibble)
    both: Bytes = (pairs[:, 0] << first) | (pairs[:, 1] << second)
    return both


def _shifts(fmt: Format, first_nibble: str) -> tuple[np.uint8, np.uint8]:
    """The places of the first and the second element in a byte."""
    is_high = isinstance(fmt, FloatFormat) and first_nibble == "high"
    return (np.uint8(4), np.uint8(0)) if is_high else (np.uint8(0), np.uint8(4))
