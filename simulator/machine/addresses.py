"""Addresses of a core, checked: aligned, inside their memory, inside one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simulator.machine.isa import GmAddress, UbAddress
from simulator.machine.memory import GlobalMemory, Region, SimulatorFault, UbRange
from tiling.chips import Chip

ELEM_BYTES: Final = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The bytes that an instruction reads and writes."""

    reads: tuple[Region, ...] = ()
    writes: tuple[Region, ...] = ()


class Addresses:
    """The memory that a core can address: its UB, by buffers if there are any, and GM.

    Raises:
        SimulatorFault: buffers overlap, are not aligned or do not fit UB.
    """

    def __init__(self, chip: Chip, gm: GlobalMemory, buffers: Sequence[UbRange]) -> None:
        self.chip = chip
        self.gm = gm
        self.buffers = buffers
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
