"""The tile shape of an operation: long enough, and small enough for UB."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pypto_cast.options import context as options
from pypto_cast.recording import recording
from tiling.grid import Shape
from tiling.plan import TileShapeError
from tiling.ub import padded_row_bytes

_ShapeAndBits = tuple[Shape, int]
"""The shape of an input or output and the bits of an element."""


def tile_of(name: str, shape: Shape, *, exact_rank: bool = False) -> Shape | None:
    """The tile of an operation on a shape, no longer than it; None if no tile shape is set.

    Args:
        name: of the operation.
        shape: the one that the tile shape must match: the output's, of a reduction the input's.
        exact_rank: more entries than dimensions are refused too.

    Raises:
        TileShapeError: too few entries.
    """
    tile = options.current().vec_tile_shapes
    if not tile:
        return None
    if len(tile) < len(shape) or (exact_rank and len(tile) != len(shape)):
        asked = "exactly" if exact_rank else "at least"
        raise TileShapeError(
            f"{name}: tile shape {list(tile)} has {len(tile)} entries; {list(shape)} needs "
            f"{asked} {len(shape)}, one for each dimension"
        )
    return tuple(map(min, tile, shape))


def check_memory_of(
    name: str,
    tile: Shape | None,
    operands: Sequence[_ShapeAndBits],
    scratch: Callable[[Shape], int] = lambda tile: 0,
) -> None:
    """Refuse a tile whose inputs, outputs and scratch exceed UB, but where a schedule decides that.

    Args:
        name: of the operation.
        tile: extents of a tile; None if no tile shape is set.
        operands: inputs and outputs; along an axis where one has 1 element its tile has 1.
        scratch: bytes, by tile.

    Raises:
        TileShapeError: naming the bytes and a tile that fits.

    Source: upstream's schedule_state.cpp, which charges every operand of one operation once.
    """
    if tile is None:
        return
    chip = options.current().chip

    def needed(extents: Shape) -> int:
        total = scratch(extents)
        for shape, bits in operands:
            own = tuple(map(min, extents[-len(shape) :], shape))
            total += math.prod(own[:-1]) * int(padded_row_bytes(own[-1], bits, chip))
        return total

    asked = needed(tile)
    if asked <= chip.ub_bytes:
        return
    refusal = recording.plan_refusal()
    if refusal is None:
        return
    fits = list(tile)
    while needed(tuple(fits)) > chip.ub_bytes and max(fits) > 1:
        axis = next((k for k, extent in enumerate(fits[:-1]) if extent > 1), len(fits) - 1)
        fits[axis] = -(-fits[axis] // 2)
    raise TileShapeError(
        f"{name}: inputs, output and scratch of a tile {list(tile)} take {asked} B of UB; it has "
        f"{chip.ub_bytes} B; {fits} fits" + (refusal and f"; no schedule is planned: {refusal}")
    )


def check_copied_rows(name: str, shape: Shape, bits: int) -> None:
    """Refuse a tile whose last entry is no whole number of 32 B blocks, as upstream's copies do.

    A tile passes UB once; upstream removes the second buffer of a copy where it can.

    Raises:
        TileShapeError: that, too few entries, or more UB than there is.
    """
    tile = tile_of(name, shape)
    last = (options.current().vec_tile_shapes or (0,))[-1]
    if tile is not None and last * bits % 256:
        raise TileShapeError(
            f"{name} copies rows of tiles: the last entry of tile shape "
            f"{list(options.current().vec_tile_shapes)} must be a multiple of {256 // bits} "
            f"elements (32 B), not {last}"
        )
    check_memory_of(name, tile, [(shape, bits)])
