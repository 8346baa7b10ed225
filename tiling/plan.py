"""TilePlan: which tile covers which elements, on which core, and where it lies in UB.

Pure arithmetic on shapes and bytes; nothing here knows a number format. A plan is lazy: it never
lists its tiles, so its size does not depend on their number.

Rules: the tile shape section of upstream pypto's documents, its UB check as measured on pypto 0.2.0
(rows of both operands padded to 32 B, their sum at most the UB), and the limits of the pypto.cast
document (1 to 4 dimensions, at most 2147483647 elements).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tiling.chips import Chip
from tiling.grid import Grid, Shape, Tile, as_shapes, as_tiles, first_tile
from tiling.loads import VectorWork, one_cast
from tiling.search import MAX_TILES, best_tile
from tiling.ub import ElementBits, UbLayout, aligned_elems, charged_bytes, lay_out, nearest_fits

MAX_DIMS: Final = 4
MOST_DIMS: Final = 5
"""Of a tensor that holds data; one operation takes them, the convolution along three axes."""
MAX_ELEMS: Final = 2**31 - 1


class ShapeError(ValueError):
    """A tensor shape that no cast takes."""


class TileShapeError(ValueError):
    """A tile shape that cannot be used for this cast."""


class TileMemoryError(TileShapeError):
    """A tile that takes more UB than there is."""


class TileShapeWarning(UserWarning):
    """A tile shape that works here and is advised against on the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TilePlan:
    """Everything that is decided about a cast before an instruction is written.

    Attributes:
        shape: the tensor's shape.
        tile_shape: the tile's, clipped to the tensor.
        merged: the same tiles with axes merged, of which programs are made.
        bits: element widths.
        chip: whose UB and cores it is for.
        ub: buffers of one pass.
        tile_bytes: UB that pypto's rule charges for a whole tile, input and output rows padded.
        diagnostics: what a user should be warned of, in words.
    """

    shape: Shape
    tile_shape: Shape
    merged: Grid
    bits: ElementBits
    chip: Chip
    ub: UbLayout
    tile_bytes: int
    diagnostics: tuple[str, ...]

    @property
    def grid(self) -> Grid:
        return Grid(shape=self.shape, tile_shape=self.tile_shape)

    @property
    def tails(self) -> Shape:
        """Along each axis, the extent of the last tile where it is a remainder, else 0."""
        return tuple(s % t for s, t in zip(self.shape, self.tile_shape, strict=True))

    @property
    def busy_cores(self) -> int:
        """Cores that get at least one tile."""
        return min(self.chip.vector_cores, len(self.grid))

    def core_tiles(self, core: int) -> range:
        """Indices of a core's tiles: contiguous, and no core has two tiles more than another."""
        count = len(self.grid)
        cores = self.chip.vector_cores
        return range(first_tile(core, count, cores), first_tile(core + 1, count, cores))

    def tiles(self, core: int) -> Iterator[Tile]:
        """A core's tiles, one at a time."""
        grid = self.grid
        return (grid.tile(index) for index in self.core_tiles(core))

    def parts(self, tile: Tile) -> Iterator[Tile]:
        """The parts of one of the merged tiles that UB holds at once; usually the tile itself."""
        grid = Grid(shape=tile.shape, tile_shape=self.ub.pass_of(tile.shape))
        if grid.tile_shape == tile.shape:
            yield tile
            return
        for index in range(len(grid)):
            part = grid.tile(index)
            offset = tuple(a + b for a, b in zip(tile.offset, part.offset, strict=True))
            yield Tile(index=tile.index, offset=offset, shape=part.shape)

    @property
    def buffering(self) -> str:
        """Words on buffering: double where two whole tiles fit UB."""
        if self.ub.is_double_buffered:
            return "double-buffered"
        parts = len(Grid(shape=self.ub.tile_shape, tile_shape=self.ub.pass_shape))
        return f"single-buffered, a tile passing in {parts} parts of {list(self.ub.pass_shape)}"

    def __str__(self) -> str:
        return (
            f"{list(self.shape)} in {len(self.grid)} tiles of {list(self.tile_shape)} "
            f"(grid {list(self.grid.counts)}, tails {list(self.tails)}), "
            f"{self.busy_cores} of {self.chip.vector_cores} cores of {self.chip}, "
            f"UB {self.tile_bytes} of {self.chip.ub_bytes} B a tile, "
            f"{self.buffering}"
        )


def plan(
    shape: Shape,
    tile_shape: Shape | None,
    bits: ElementBits,
    chip: Chip,
    *,
    strict: bool = False,
    work: VectorWork | None = None,
    is_scheduled: bool = False,
) -> TilePlan:
    """Split a tensor into tiles, share them among the cores and lay them out in UB.

    Args:
        shape: the tensor's shape, 1 to 4 axes of positive length, at most 2147483647 elements.
        tile_shape: as set by the user, positive ints, at least one per axis; of more the leading
            ones count. Clipped to the tensor. None: the planner chooses, and a diagnostic says
            what.
        bits: element widths.
        chip: the chip to plan for.
        strict: refuse a tile whose rows are not whole blocks, instead of a diagnostic.
        work: what is executed on every part of a tile, for the planner's choice; None: one Cast.
        is_scheduled: a schedule of the whole kernel says that the tile fits UB.

    Raises:
        ShapeError: the tensor is no shape for a cast.
        TileShapeError: the tile has too few entries, is not positive, does not fit UB, or is
            unaligned under `strict`.
    """
    check_shape(shape, bits)
    if tile_shape is not None:
        check_tile_shape(tile_shape, shape)
        tile_shape = tile_shape[: len(shape)]
    diagnostics: list[str] = []
    if tile_shape is None:
        tile_shape = choose_tile_shape(shape, bits, chip, work)
        diagnostics.append(
            f"no tile shape is set; the planner chose {list(tile_shape)} for {list(shape)}. On the "
            f"NPU the same program would fail: call set_vec_tile_shapes{tile_shape} first"
        )
    clipped = tuple(min(t, s) for t, s in zip(tile_shape, shape, strict=True))
    if clipped[-1] * min(bits.src, bits.dst) % 8:
        raise TileShapeError(
            f"tile shape {list(tile_shape)}: two elements of 4 bits share a byte, so the last axis "
            f"of a tile must be even; it is {clipped[-1]}"
        )
    tile_bytes = charged_bytes(math.prod(clipped[:-1]), clipped[-1], bits, chip)
    if tile_bytes > chip.ub_bytes and not is_scheduled:
        raise _too_large(clipped, tile_bytes, bits, chip)
    if chip.ub_safe_bytes < tile_bytes <= chip.ub_bytes:
        diagnostics.append(
            f"tile shape {list(clipped)} takes {tile_bytes} B of UB; {chip} has {chip.ub_bytes} B, "
            f"but only {chip.ub_safe_bytes} B are documented as safe for user code"
        )
    unaligned = _unaligned(tile_shape, bits, chip)
    if unaligned and strict:
        raise TileShapeError(unaligned)
    if unaligned:
        diagnostics.append(unaligned)
    tile_count = len(Grid(shape=shape, tile_shape=clipped))
    if tile_count >= MAX_TILES:
        diagnostics.append(
            f"tile shape {list(clipped)} makes {tile_count} tiles of {list(shape)}; upstream "
            f"advises fewer than {MAX_TILES}"
        )
    merged, ub = lay_out(shape, clipped, bits, chip)
    return TilePlan(
        shape=shape,
        tile_shape=clipped,
        merged=merged,
        bits=bits,
        chip=chip,
        ub=ub,
        tile_bytes=tile_bytes,
        diagnostics=tuple(diagnostics),
    )


def check_shape(
    shape: Shape, bits: ElementBits, asked_by: str = "a cast", *, most_dims: int = MAX_DIMS
) -> None:
    """Refuse a tensor that no cast takes, and no other operation but one of more dimensions.

    Raises:
        ShapeError: naming the limit and what was found.
    """
    if not 1 <= len(shape) <= most_dims:
        raise ShapeError(
            f"{asked_by} takes tensors of 1 to {most_dims} dimensions; shape {list(shape)} has "
            f"{len(shape)}"
        )
    elems = math.prod(shape)
    if min(shape) < 0:
        raise ShapeError(f"{asked_by} takes no negative length; got shape {list(shape)}")
    if elems < 1:
        raise ShapeError(
            f"{asked_by} takes no empty tensor; shape {list(shape)} has {elems} elements"
        )
    if elems > MAX_ELEMS:
        raise ShapeError(
            f"{asked_by} takes at most {MAX_ELEMS} elements; shape {list(shape)} has {elems}"
        )
    if shape[-1] * min(bits.src, bits.dst) % 8:
        raise ShapeError(
            f"two elements of 4 bits share a byte, so the last axis must be even; shape "
            f"{list(shape)} ends in {shape[-1]}"
        )


def check_tile_shape(tile_shape: Shape, shape: Shape) -> None:
    """Refuse a tile that is not a positive int for each axis. More entries than axes are legal.

    Raises:
        TileShapeError: naming the tile and the tensor.

    Source: upstream's TiledCastOperation, which walks the entries from the first, an axis each.
    """
    if len(tile_shape) < len(shape):
        raise TileShapeError(
            f"tile shape {list(tile_shape)} has {_entries(len(tile_shape))}; the output "
            f"{list(shape)} needs at least {_entries(len(shape))}, one for each dimension"
        )
    if any(isinstance(t, bool) or not isinstance(t, int) or t < 1 for t in tile_shape):
        raise TileShapeError(f"tile shape {list(tile_shape)}: every entry must be a positive int")


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def choose_tile_shape(
    shape: Shape, bits: ElementBits, chip: Chip, work: VectorWork | None = None
) -> Shape:
    """The legal tile shape that takes the fewest cycles under the default cost set.

    `tiling.ranking` ranks the same tile shapes and tells why.

    Args:
        shape: as for `plan`.
        bits: element widths.
        chip: the chip to plan for.
        work: what is executed on every part of a tile; None: one Cast.
    """
    return best_tile(shape, bits, one_cast(bits) if work is None else work, chip)


def _too_large(tile: Shape, needed: int, bits: ElementBits, chip: Chip) -> TileMemoryError:
    """The error of a tile that pypto's UB rule charges more for than there is."""
    (nearest,) = as_shapes(
        nearest_fits(
            as_tiles([tile]),
            lambda rows, cols: charged_bytes(rows, cols, bits, chip),
            chip.ub_bytes,
            aligned_elems(bits, chip),
        )
    )
    fits = charged_bytes(math.prod(nearest[:-1]), nearest[-1], bits, chip)
    return TileMemoryError(
        f"tile shape {list(tile)} needs {needed} B of UB for input and output (rows "
        f"padded to {chip.block_bytes} B); {chip} has {chip.ub_bytes} B. "
        f"The nearest tile that fits is {list(nearest)} with {fits} B"
    )


def _unaligned(tile_shape: Shape, bits: ElementBits, chip: Chip) -> str | None:
    """Say that the rows of a tile, as it was set, are not whole blocks; None if they are.

    The tile is judged as set, not as clipped: a tensor may have any last axis, and its rows are
    padded like those of any tail tile.
    """
    unit = aligned_elems(bits, chip)
    if tile_shape[-1] % unit == 0:
        return None
    row_bytes = [f"{tile_shape[-1] * width / 8:g}" for width in (bits.src, bits.dst)]
    return (
        f"tile shape {list(tile_shape)}: its last axis is {row_bytes[0]} B in the input and "
        f"{row_bytes[1]} B in the output; upstream asks for multiples of {chip.block_bytes} B, "
        f"that is for a multiple of {unit} elements here"
    )
