"""The operands of a tile in UB: rows padded to whole blocks, in two slots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tiling.chips import Chip
from tiling.grid import Count, Ints, Shape

SLOTS: Final = 2
"""Double buffering: one slot is copied while the other is converted."""
GM_LINE_BYTES: Final = 512
"""To which addresses in GM are best aligned (CANN asc-devkit, guide on memory access)."""


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

    Shapes have the axes that `tiling.passes` merges.

    Attributes:
        tile_shape: the tile.
        passes: for the extents of the tile, and of every tail, what one slot holds: all of it
            where both slots fit, else a part.
        has_one_pitch: rows lie equally far apart, in elements, in the input and the output.
        buffers: every buffer, in address order.
    """

    tile_shape: Shape
    passes: tuple[tuple[Shape, Shape], ...]
    has_one_pitch: bool
    buffers: tuple[UbBuffer, ...]

    @property
    def pass_shape(self) -> Shape:
        """The part of a tile, not a tail, that one slot holds."""
        return self.passes[0][1]

    def pass_of(self, extents: Shape) -> Shape:
        """The part of a tile or a tail with these extents that one slot holds."""
        return next(part for box, part in self.passes if box == extents)

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
    """Widths of one element of a cast, in bits.

    Attributes:
        src: of the input.
        dst: of the output.
        tmp: of the scratch; 0: there is none.
        rows_may_differ: rows may lie differently far apart in the input and the output; not where
            either holds something narrower on the way.
    """

    src: int
    dst: int
    tmp: int = 0
    rows_may_differ: bool = True


def round_up(count: Count, unit: int) -> Count:
    """The next multiple of `unit`."""
    return -(-count // unit) * unit


def padded_row_bytes(cols: Count, bits: int, chip: Chip) -> Count:
    """Bytes of a row of `cols` elements in UB, padded to whole blocks."""
    return round_up(cols * bits, 8 * chip.block_bytes) // 8


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
