"""Where the operands of a tile lie in UB: rows padded to whole blocks, in two slots."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tiling.chips import Chip
from tiling.grid import Shape

SLOTS: Final = 2
"""Double buffering: one slot is copied while the other is converted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UbBuffer:
    """A piece of UB with a role: "in", "out" or "tmp", and its number if double-buffered."""

    role: str
    slot: int
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UbLayout:
    """Where the operands lie in UB: two slots that take turns, so copies run beside vector work.

    Attributes:
        tile_shape: the tile.
        pass_shape: what one slot holds: the tile where both slots fit, else a part of it.
        buffers: every buffer, in address order.
    """

    tile_shape: Shape
    pass_shape: Shape
    buffers: tuple[UbBuffer, ...]

    @property
    def is_double_buffered(self) -> bool:
        """Both slots hold a whole tile. Otherwise a tile passes through them part by part."""
        return self.pass_shape == self.tile_shape

    @property
    def used_bytes(self) -> int:
        return sum(buffer.size_bytes for buffer in self.buffers)

    def buffer(self, role: str, slot: int = 0) -> UbBuffer:
        """The buffer of a role; scratch has one slot only."""
        return next(b for b in self.buffers if b.role == role and b.slot == slot)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementBits:
    """Widths of one element of a cast's input, output and scratch (0: no scratch)."""

    src: int
    dst: int
    tmp: int = 0


def padded_row_bytes(elems: int, bits: int, chip: Chip) -> int:
    """Bytes of a row of `elems` elements in UB, padded to whole blocks."""
    return -(-elems * bits // (8 * chip.block_bytes)) * chip.block_bytes


def aligned_elems(bits: ElementBits, chip: Chip) -> int:
    """Elements whose bytes are whole blocks in the input and in the output."""
    return 8 * chip.block_bytes // min(bits.src, bits.dst)


def nearest_fit(tile_shape: Shape, fits: Callable[[Shape], bool], unit: int) -> Shape:
    """Shrink a tile until it fits, outer axes first, so that rows stay whole as long as they can.

    Args:
        tile_shape: the tile asked for.
        fits: tells whether a tile fits; it must fit all smaller ones too.
        unit: the last axis shrinks to multiples of this.
    """
    tile = list(tile_shape)
    for axis in range(len(tile)):
        step = unit if axis == len(tile) - 1 else 1
        low, high = 0, tile[axis] // step
        if fits(tuple(tile)):
            break
        while low < high:
            middle = (low + high + 1) // 2
            tile[axis] = middle * step
            if fits(tuple(tile)):
                low = middle
            else:
                high = middle - 1
        tile[axis] = max(low, 1) * step
    return tuple(tile)


def pass_bytes(tile: Shape, bits: ElementBits, chip: Chip, *, scratch: bool) -> int:
    return sum(buffer_bytes(tile, bits, chip, scratch=scratch).values())


def buffer_bytes(tile: Shape, bits: ElementBits, chip: Chip, *, scratch: bool) -> dict[str, int]:
    """UB bytes of each operand of a tile: rows are padded, axes above the last are rows."""
    rows = math.prod(tile[:-1])
    src_row = padded_row_bytes(tile[-1], bits.src, chip)
    sizes = {"in": rows * src_row, "out": rows * padded_row_bytes(tile[-1], bits.dst, chip)}
    if scratch and bits.tmp:
        # Scratch rows hold as many elements as padded input rows, so one instruction spans both.
        sizes["tmp"] = rows * src_row * bits.tmp // bits.src
    return sizes


def lay_out(tile: Shape, bits: ElementBits, chip: Chip) -> UbLayout:
    """Place two slots: of the whole tile where both fit, else of as large a part as fits twice.

    They keep to the documented safe budget: the user's own tile may go beyond it with a warning,
    the planner's convenience may not. Scratch is used by vector work alone and needs one slot.
    """

    def needed(candidate: Shape) -> int:
        sizes = buffer_bytes(candidate, bits, chip, scratch=True)
        return SLOTS * (sizes["in"] + sizes["out"]) + sizes.get("tmp", 0)

    pass_shape = nearest_fit(
        tile, lambda part: needed(part) <= chip.ub_safe_bytes, aligned_elems(bits, chip)
    )
    sizes = buffer_bytes(pass_shape, bits, chip, scratch=True)
    buffers: list[UbBuffer] = []
    offset = 0
    for slot in range(SLOTS):
        for role, size in sizes.items():
            if slot and role == "tmp":
                continue
            buffers.append(UbBuffer(role=role, slot=slot, offset_bytes=offset, size_bytes=size))
            offset += size
    return UbLayout(tile_shape=tile, pass_shape=pass_shape, buffers=tuple(buffers))
