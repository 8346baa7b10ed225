"""The legal tile shapes of a cast, all of them, and the cheapest among them.

A tile shape is legal if

    its last axis is a multiple of as many elements as make whole 32 B blocks on both sides, as
    upstream asks (it may reach over the end of the tensor by less than that);
    no other axis is longer than the tensor's;
    by upstream's rule it fits the part of UB that is documented as safe for user code, and so do
    two of it as they are laid out, with the scratch of one: without a second slot no pipe runs
    beside another;
    it makes fewer than `max_tiles` tiles, unless every tile shape that fits makes as many.

UB bounds their number, whatever the tensor: a block of the narrower and as many elements of the
wider type fit it twice some 1500 times, and 200,000 tuples of four extents have a product up to
that. So nothing is left out and nothing is sampled; the best is the best of all. Where the last
axis is whole, rows have no padding in UB, so by upstream's rule alone there may be more of them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tiling.chips import Chip
from tiling.cost import COST_SETS, DEFAULT_COST_SET, CostParameters
from tiling.estimate import cycle_sums
from tiling.grid import Ints, Shape, as_shapes
from tiling.loads import Floats, Job, VectorWork, core_loads
from tiling.ub import ElementBits, aligned_elems, charged_bytes, fit_twice, round_up, slots_bytes

MAX_TILES: Final = 18000
"""From here on upstream advises against a tile shape (compile and scheduling time)."""
_CHUNK: Final = 16384
"""Tile shapes counted at once; bounds the memory, changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalTiles:
    """All legal tile shapes of a cast, in a fixed order.

    Attributes:
        asked: shape (n, axes): as to be set; the last axis is whole blocks.
        clipped: the same within the tensor.
        exceeds_max_tiles: each of them makes `max_tiles` or more.
    """

    asked: Ints
    clipped: Ints
    exceeds_max_tiles: bool

    def __len__(self) -> int:
        return len(self.asked)


def legal_tiles(job: Job, max_tiles: int) -> LegalTiles:
    """List the legal tile shapes.

    Args:
        job: the cast; its shape one that `tiling.plan.check_shape` lets pass.
        max_tiles: a tile shape that makes so many or more is left out, if not all do.
    """
    unit = aligned_elems(job.bits, job.chip)
    most_cols = round_up(job.shape[-1], unit)
    outer = _outer_extents(job, max(_row_room(job, unit), _row_room(job, most_cols)))
    rows: Ints = outer.prod(axis=1)
    pieces = []
    for cols in range(unit, most_cols + 1, unit):
        number = int(np.searchsorted(rows, _row_room(job, cols), side="right"))
        pieces.append(np.column_stack([outer[:number], np.full(number, cols, dtype=np.int64)]))
        if number == 0:
            break
    asked = np.concatenate(pieces)
    shape = np.array(job.shape, dtype=np.int64)
    clipped = np.minimum(asked, shape)
    is_whole = np.flatnonzero(asked[:, -1] == most_cols)  # the others have room by their number
    fits = np.ones(len(asked), dtype=np.bool_)
    fits[is_whole] = are_legal(job, clipped[is_whole])
    asked, clipped = asked[fits], clipped[fits]
    few = (-(-shape // clipped)).prod(axis=1) < max_tiles
    if few.any():
        asked = asked[few]
        clipped = clipped[few]
    return LegalTiles(asked=asked, clipped=clipped, exceeds_max_tiles=not few.any())


def are_legal(job: Job, tiles: Ints) -> npt.NDArray[np.bool_]:
    """True where a tile shape, within the tensor, fits UB as the rules of this module ask."""
    rows: Ints = tiles[:, :-1].prod(axis=1)
    fits: npt.NDArray[np.bool_] = (
        charged_bytes(rows, tiles[:, -1], job.bits, job.chip) <= job.chip.ub_safe_bytes
    )
    open_ones = np.flatnonzero(fits)
    fits[open_ones] = fit_twice(job.shape, tiles[open_ones], job.bits, job.chip)
    return fits


def cycles_of_all(job: Job, tiles: LegalTiles, sets: tuple[CostParameters, ...]) -> Floats:
    """Cycles of every tile shape under every set; shape (sets, n)."""
    cycles = np.empty((len(sets), len(tiles)))
    for start in range(0, len(tiles), _CHUNK):
        stop = start + _CHUNK
        loads = core_loads(job, tiles.clipped[start:stop])
        for row, parameters in enumerate(sets):
            cycles[row, start:stop] = cycle_sums(job, loads, parameters).cycles
    return cycles


def ranking(tiles: LegalTiles, cycles: Floats) -> Ints:
    """Positions of the tile shapes from the cheapest on.

    Equal cycles, to a thousandth, are told apart by the tile shape: the longer last axis first,
    then the longer axis before it, and so on. Long rows are long stretches of GM.
    """
    axes = [-tiles.asked[:, axis] for axis in range(tiles.asked.shape[1])]
    return np.lexsort((*axes, np.round(cycles, 3)))


def robust_ranking(tiles: LegalTiles, cycles: Floats, own: int) -> Ints:
    """Positions of the tile shapes from the one on that is least bad over all sets.

    A tile shape is as bad as it is, at worst, slower than the best one under a set. Those equally
    bad, to a millionth, are told apart as in `ranking`.

    Args:
        tiles: the tile shapes.
        cycles: theirs under every set; shape (sets, n).
        own: the set whose cycles tell equally bad ones apart.
    """
    excess = (cycles / cycles.min(axis=1, keepdims=True)).max(axis=0)
    order = ranking(tiles, cycles[own])
    robust: Ints = order[np.argsort(np.round(excess, 6)[order], kind="stable")]
    return robust


@functools.lru_cache(maxsize=256)
def best_tile(shape: Shape, bits: ElementBits, work: VectorWork, chip: Chip) -> Shape:
    """The tile shape that is least bad over all cost sets.

    Args:
        shape: of a tensor that `tiling.plan.check_shape` lets pass.
        bits: element widths.
        work: what is executed on every part of a tile.
        chip: whose UB and cores.

    Returns:
        As it is to be set: the last axis is whole blocks, and may reach over the tensor's end.
    """
    job = Job(shape=shape, bits=bits, work=work, chip=chip)
    tiles = legal_tiles(job, MAX_TILES)
    sets = tuple(COST_SETS.values())
    cycles = cycles_of_all(job, tiles, sets)
    order = robust_ranking(tiles, cycles, sets.index(DEFAULT_COST_SET))
    (best,) = as_shapes(tiles.asked[order[:1]])
    return best


def _row_room(job: Job, cols: int) -> int:
    """The most rows of so many elements, of which more may fit where they are whole."""
    chip = job.chip
    if cols < job.shape[-1]:
        return chip.ub_safe_bytes // slots_bytes(1, cols, job.bits, chip)
    return chip.ub_safe_bytes // charged_bytes(1, job.shape[-1], job.bits, chip)


def _outer_extents(job: Job, room: int) -> Ints:
    """Extents of all axes but the last whose product is at most `room`, by their product."""
    outer = np.ones((1, 0), dtype=np.int64)
    products = np.ones(1, dtype=np.int64)
    for extent in job.shape[:-1]:
        most = np.minimum(room // products, extent)
        outer = np.repeat(outer, most, axis=0)
        ends = np.cumsum(most)
        steps = np.arange(1, ends[-1] + 1) - np.repeat(ends - most, most)
        products = np.repeat(products, most) * steps
        outer = np.column_stack([outer, steps])
    return outer[np.argsort(products, kind="stable")]


def tiles_within(shape: Shape, unit: int, most_elems: int, most: int) -> list[Shape]:
    """Tile shapes of a tensor, the last axis in steps of `unit`, of at most so many elements.

    All of them where they are at most `most`; else of each axis only the shortest extent that makes
    a number of tiles; and if these are still more, of those the numbers that are powers of two.

    Args:
        shape: the tensor's; the last axis may be exceeded by less than a unit.
        unit: of the last axis, in elements.
        most_elems: of a tile.
        most: tile shapes.
    """

    units = (*(1 for _ in shape[1:]), unit)
    for counted in (_every, _fewest, _powers):
        lengths = [counted(extent, step) for extent, step in zip(shape, units, strict=True)]
        found = list(itertools.islice(_products(lengths, most_elems), most + 1))
        if len(found) <= most:
            break
    return found[:most]


def _every(extent: int, step: int) -> list[int]:
    return list(range(step, round_up(extent, step) + 1, step))


def _fewest(extent: int, step: int) -> list[int]:
    """Of the lengths that make a number of tiles, the shortest."""
    counts = (-(-extent // length) for length in _every(extent, step))
    return sorted({round_up(-(-extent // count), step) for count in counts})


def _powers(extent: int, step: int) -> list[int]:
    counts = (1 << place for place in range((-(-extent // step)).bit_length()))
    return sorted({round_up(-(-extent // count), step) for count in counts})


def _products(lengths: Sequence[Sequence[int]], room: int) -> Iterator[Shape]:
    """A length of each axis, of a product within `room`."""
    if not lengths and room:
        yield ()
    if not lengths or not room:
        return
    for length in lengths[0]:
        for rest in _products(lengths[1:], room // length):
            yield (length, *rest)
