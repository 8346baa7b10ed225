"""The operands of a tile in UB, and the parts in which tiles pass through it.

Rows are padded to whole blocks, in two slots. Axes are merged first: where a tile is whole along an
axis, that axis and the one before it are one stretch of GM after another, so they count as one
axis. A tile that is whole along all axes but its first is then one row.

Rows of a part lie at one pitch in elements, whole 32 B blocks in the input and in the output, so
that one instruction spans them all. What lies between them is never copied out: DataCopyPad fills
the last block of a row with its first element, and skips whole blocks, which keep what UB held
(both documented, CANN asc-devkit, DataCopyPad). Cast converts lane by lane (inferred from its
document), so what is made of them meets no other element. Where this takes more parts than rows
padded each to their own blocks, rows lie differently far apart on both sides instead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tiling.chips import Chip
from tiling.grid import Count, Grid, Ints, Shape, as_shapes, as_tiles

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

    Shapes have the axes that `tiling.ub` merges.

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


def merged(shape: Shape, tiles: Ints) -> tuple[Ints, Ints]:
    """The tensor's shape and tile shapes with axes merged; vacated axes have the extent 1.

    Tiles keep their number, their order and their elements.

    Args:
        shape: of the tensor.
        tiles: shape (n, axes): tile shapes, each within the tensor.

    Returns:
        Both of shape (n, axes), for axes merge by tile shape.
    """
    shapes: Ints = np.broadcast_to(np.array(shape, dtype=np.int64), tiles.shape).copy()
    tiles = tiles.copy()
    for axis in range(tiles.shape[1] - 1):
        joins = tiles[:, axis + 1] == shapes[:, axis + 1]
        for extents in (tiles, shapes):
            extents[:, axis + 1] *= np.where(joins, extents[:, axis], 1)
            extents[joins, axis] = 1
    return shapes, tiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Tile shapes of a tensor, and the part of each that a slot of UB holds; one row a tile shape.

    Attributes:
        shape: the tensor's, axes merged.
        tiles: tile shapes, likewise.
        has_one_pitch: rows lie equally far apart, in elements, in the input and the output.
        own: where they do not, the most that a slot holds.
        bits: element widths.
        chip: whose UB.
    """

    shape: Ints
    tiles: Ints
    has_one_pitch: npt.NDArray[np.bool_]
    own: Ints
    bits: ElementBits
    chip: Chip

    def of(self, extents: Ints) -> Ints:
        """Cut tiles, full ones or tails, into as few and as equal parts as possible.

        A part is cut along one axis and holds one of every axis further out. Along the last axis
        cuts are whole lines of GM, or whole blocks where there is no room for that.
        """
        unit = aligned_elems(self.bits, self.chip)
        most = _at_one_pitch(extents, self.bits, self.chip)
        most = np.where(self.has_one_pitch[:, None], most, np.minimum(extents, self.own))
        numbers = -(-extents // most)
        equal: Ints = -(-extents // numbers)
        for step in (unit * GM_LINE_BYTES // self.chip.block_bytes, unit):
            rounded = round_up(-(-extents[:, -1] // numbers[:, -1]), step)
            fits = (numbers[:, -1] > 1) & (rounded <= most[:, -1])
            equal[:, -1] = np.where(fits & (equal[:, -1] % step > 0), rounded, equal[:, -1])
        return equal


def passes(shape: Shape, tiles: Ints, bits: ElementBits, chip: Chip) -> Passes:
    """Decide how the tiles of a tensor pass through UB.

    They keep to the documented safe budget: the user's own tile may go beyond it with a warning,
    the planner's own choice may not.

    Args:
        shape: of the tensor.
        tiles: shape (n, axes): tile shapes, each within the tensor.
        bits: element widths.
        chip: whose UB.
    """
    shapes, tiles = merged(shape, tiles)
    own = nearest_fits(
        tiles,
        lambda rows, cols: slots_bytes(rows, cols, bits, chip),
        chip.ub_safe_bytes,
        aligned_elems(bits, chip),
    )
    at_one_pitch = _at_one_pitch(tiles, bits, chip)
    more = (-(-tiles // at_one_pitch)).prod(axis=1) > (-(-tiles // own)).prod(axis=1)
    return Passes(
        shape=shapes,
        tiles=tiles,
        has_one_pitch=~(more & bits.rows_may_differ),
        own=own,
        bits=bits,
        chip=chip,
    )


def fit_twice(shape: Shape, tiles: Ints, bits: ElementBits, chip: Chip) -> npt.NDArray[np.bool_]:
    """True where a tile shape passes whole, as `passes` lays it out."""
    cut = passes(shape, tiles, bits, chip)
    fits: npt.NDArray[np.bool_] = (cut.of(cut.tiles) == cut.tiles).all(axis=1)
    return fits


def _at_one_pitch(extents: Ints, bits: ElementBits, chip: Chip) -> Ints:
    unit = aligned_elems(bits, chip)
    elem_bits = SLOTS * (bits.src + bits.dst) + bits.tmp
    room = 8 * chip.ub_safe_bytes // elem_bits // unit * unit
    return nearest_fits(extents, lambda rows, cols: rows * round_up(cols, unit), room, unit)


def lay_out(shape: Shape, tile: Shape, bits: ElementBits, chip: Chip) -> tuple[Grid, UbLayout]:
    """Place two slots that hold the largest part of a tile or tail.

    Returns:
        The tiles with axes merged, and UB.
    """
    found = passes(shape, as_tiles([tile]), bits, chip)
    (shape,), (tile,) = as_shapes(found.shape), as_shapes(found.tiles)
    extents = list(_extents(shape, tile))
    parts = [as_shapes(found.of(as_tiles([box])))[0] for box in extents]
    has_one_pitch = bool(found.has_one_pitch[0])
    if has_one_pitch:
        unit = aligned_elems(bits, chip)
        elems = ((math.prod(part[:-1]), part[-1]) for part in parts)
        most = max(rows * round_up(cols, unit) if rows > 1 else cols for rows, cols in elems)
        sizes = buffer_bytes(1, most, bits, chip)
    else:
        (own,) = as_shapes(found.own)
        sizes = buffer_bytes(math.prod(own[:-1]), own[-1], bits, chip)
    buffers: list[UbBuffer] = []
    offset = 0
    for slot in range(SLOTS):
        for role, size in sizes.items():
            if slot and role == "tmp":
                continue
            buffers.append(UbBuffer(role=role, slot=slot, offset_bytes=offset, size_bytes=size))
            offset += size
    layout = UbLayout(
        tile_shape=tile,
        passes=tuple(zip(extents, parts, strict=True)),
        has_one_pitch=has_one_pitch,
        buffers=tuple(buffers),
    )
    return Grid(shape=shape, tile_shape=tile), layout


def _extents(shape: Shape, tile: Shape) -> Iterator[Shape]:
    """The extents of tiles that occur: the full one first, then tails."""
    along = (dict.fromkeys((t, s % t or t)) for s, t in zip(shape, tile, strict=True))
    return itertools.product(*along)
