"""Where the operands of a tile lie in UB: rows padded to whole blocks, one slot or two."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tiling.chips import Chip
from tiling.grid import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class UbBuffer:
    """A piece of UB with a role: "in", "out" or "tmp", and its number if double-buffered."""

    role: str
    slot: int
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UbLayout:
    """Where the operands of one pass lie in UB.

    Attributes:
        depth: 2 if double-buffered (a copy-in can run while the other slot is converted), else 1.
        pass_shape: the part of a tile that is in UB at once; the tile itself unless scratch memory
            leaves no room for all of it.
        buffers: every buffer, in address order.
    """

    depth: int
    pass_shape: Shape
    buffers: tuple[UbBuffer, ...]

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
    """Place the operands: two slots where both fit, else one, else a part of the tile.

    Two slots must fit the documented safe budget: the user's own tile may go beyond it with a
    warning, the planner's convenience may not.
    """

    def needed(candidate: Shape, depth: int) -> int:
        sizes = buffer_bytes(candidate, bits, chip, scratch=True)
        return depth * (sizes["in"] + sizes["out"]) + sizes.get("tmp", 0)

    depth = 2 if needed(tile, 2) <= chip.ub_safe_bytes else 1
    pass_shape = nearest_fit(
        tile, lambda part: needed(part, depth) <= chip.ub_bytes, aligned_elems(bits, chip)
    )
    sizes = buffer_bytes(pass_shape, bits, chip, scratch=True)
    buffers: list[UbBuffer] = []
    offset = 0
    for slot in range(depth):
        for role, size in sizes.items():
            if slot and role == "tmp":
                continue
            buffers.append(UbBuffer(role=role, slot=slot, offset_bytes=offset, size_bytes=size))
            offset += size
    return UbLayout(depth=depth, pass_shape=pass_shape, buffers=tuple(buffers))
