"""Lays the operands of a tile out in UB: rows padded to whole blocks, in two slots."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tiling.chips import Chip
from tiling.grid import Count, Ints, Shape, as_shapes, as_tiles

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
    """The places of the operands in UB: two slots in turn, so copies run beside vector work.

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


def padded_row_bytes(cols: Count, bits: int, chip: Chip) -> Count:
    """Bytes of a row of `cols` elements in UB, padded to whole blocks."""
    return -(-cols * bits // (8 * chip.block_bytes)) * chip.block_bytes


def aligned_elems(bits: ElementBits, chip: Chip) -> int:
    """Elements whose bytes are whole blocks in the input and in the output."""
    return 8 * chip.block_bytes // min(bits.src, bits.dst)


def buffer_bytes(rows: Count, cols: Count, bits: ElementBits, chip: Chip) -> dict[str, Count]:
    """UB bytes of each operand of a tile, by role; scratch only where the cast needs some.

    Args:
        rows: product of the extents of all axes but the last; an int, or one entry per tile.
        cols: the extent of the last axis, likewise.
        bits: element widths.
        chip: whose blocks rows are padded to.
    """
    source = rows * padded_row_bytes(cols, bits.src, chip)
    sizes = {"in": source, "out": rows * padded_row_bytes(cols, bits.dst, chip)}
    if bits.tmp:
        # Scratch rows hold as many elements as padded input rows, so one instruction spans both.
        sizes["tmp"] = source * bits.tmp // bits.src
    return sizes


def charged_bytes(rows: Count, cols: Count, bits: ElementBits, chip: Chip) -> Count:
    """UB that upstream's rule charges for a tile: input and output, without scratch."""
    sizes = buffer_bytes(rows, cols, bits, chip)
    return sizes["in"] + sizes["out"]


def slots_bytes(rows: Count, cols: Count, bits: ElementBits, chip: Chip) -> Count:
    """UB of a tile in both slots. Scratch is used by vector work alone and needs one slot."""
    sizes = buffer_bytes(rows, cols, bits, chip)
    return SLOTS * (sizes["in"] + sizes["out"]) + sizes.get("tmp", 0)


def nearest_fits(
    tiles: Ints, needed: Callable[[Ints, Ints], Ints], limit_bytes: int, unit: int
) -> Ints:
    """Shrink tiles until they fit, outer axes first, so that rows stay whole as long as they can.

    Args:
        tiles: shape (n, axes): the tiles asked for.
        needed: bytes of tiles by rows and cols; grows evenly with rows and with whole units of
            cols.
        limit_bytes: what fits.
        unit: the last axis shrinks to multiples of this, and not below it.
    """

    def bytes_of(tiles: Ints) -> Ints:
        return needed(tiles[:, :-1].prod(axis=1), tiles[:, -1])

    found = tiles.copy()
    for axis in range(tiles.shape[1]):
        over = bytes_of(found) > limit_bytes
        if not over.any():
            break
        step = unit if axis == tiles.shape[1] - 1 else 1
        least = found.copy()
        least[:, axis] = step
        room = np.minimum(limit_bytes // bytes_of(least), found[:, axis] // step)
        found[:, axis] = np.where(over, np.maximum(room, 1) * step, found[:, axis])
    return found


def pass_shapes(tiles: Ints, bits: ElementBits, chip: Chip) -> Ints:
    """The part of each tile that a slot holds: the tile where both slots fit, else the nearest.

    They keep to the documented safe budget: the user's own tile may go beyond it with a warning,
    the planner's own choice may not.
    """
    return nearest_fits(
        tiles,
        lambda rows, cols: slots_bytes(rows, cols, bits, chip),
        chip.ub_safe_bytes,
        aligned_elems(bits, chip),
    )


def lay_out(tile: Shape, bits: ElementBits, chip: Chip) -> UbLayout:
    """Place two slots: of the whole tile where both fit, else of as large a part as fits twice."""
    (pass_shape,) = as_shapes(pass_shapes(as_tiles([tile]), bits, chip))
    sizes = buffer_bytes(math.prod(pass_shape[:-1]), pass_shape[-1], bits, chip)
    buffers: list[UbBuffer] = []
    offset = 0
    for slot in range(SLOTS):
        for role, size in sizes.items():
            if slot and role == "tmp":
                continue
            buffers.append(UbBuffer(role=role, slot=slot, offset_bytes=offset, size_bytes=size))
            offset += size
    return UbLayout(tile_shape=tile, pass_shape=pass_shape, buffers=tuple(buffers))
