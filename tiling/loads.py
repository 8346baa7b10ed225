"""The work of a cast, and its counts under given tile shapes: copies, bytes, repeats, no cycles.

Many tile shapes of one tensor are counted at once, each in closed form: the tiles of a core fall
into at most two extents along each axis, the full one and the tail, and so do the parts of a tile
that does not fit UB twice. Nothing is walked through, so the number of tiles does not matter.

Counts are of core 0. It has as many tiles as any core and the first ones of the row-major order,
which of all equally long stretches has the fewest tails; so no core copies more. But it begins
where the tensor does, on a line of GM: of the tiles of a kind, as large a share counts as on lines
as on core 1, which stands for the other cores, if that has some.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
import math
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tiling.chips import Chip
from tiling.grid import Count, Ints, Shape, first_tile
from tiling.ub import (
    GM_LINE_BYTES,
    ElementBits,
    Passes,
    aligned_elems,
    padded_row_bytes,
    passes,
    round_up,
)

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

MAX_STRIDE_BYTES: Final = 2**32 - 1
"""The widest gap that one DataCopyPad bridges from block to block."""
MAX_REP_STRIDE: Final = 255
"""The widest stride, in blocks, from repeat to repeat of a vector instruction."""
_WORST_SHARE: Final = 0.7
"""Of the bandwidth, off the lines of GM (CANN asc-devkit, guide on memory access; A2, one core)."""


class VectorKind(enum.Enum):
    """Instructions that differ in cycles per repeat."""

    CAST = "cast"
    BITWISE = "bitwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorStep:
    """One pass of the vector unit over a part of a tile in UB.

    Attributes:
        kind: of instruction.
        bits: width of the wider type, of which a repeat covers 256 B.
        goes_by_rows: takes several instructions where input and output rows lie differently far
            apart in elements; otherwise one spans all rows with their padding.
        is_one_block: covers 32 B, whatever the part; otherwise all of its rows.
        takes_rest: whole repeats are one instruction, and what is left is another.
        pays_startup: every instruction pays the start-up, wherever it stands in a stream.
        follows_barrier: a PipeBarrier comes before it and ends the stream.
    """

    kind: VectorKind
    bits: int
    goes_by_rows: bool = False
    is_one_block: bool = False
    takes_rest: bool = False
    pays_startup: bool = False
    follows_barrier: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorWork:
    """The vector steps that are executed on every part of a tile between its copies.

    Attributes:
        steps: in order.
        part_barriers: PipeBarriers between one part and the next.
        part_scalars: registers set within a part.
        set_up_scalars: registers set before the first.
    """

    steps: tuple[VectorStep, ...]
    part_barriers: int = 0
    part_scalars: int = 0
    set_up_scalars: int = 2


def one_cast(bits: ElementBits) -> VectorWork:
    """The work of a cast that is one Cast instruction from the input to the output."""
    wider = max(bits.src, bits.dst)
    step = VectorStep(kind=VectorKind.CAST, bits=wider, goes_by_rows=True)
    return VectorWork(steps=(step,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Work of one part, or of all parts of a core; one entry per tile shape.

    Attributes:
        parts: passes through UB.
        in_bytes: read from GM.
        out_bytes: written to GM.
        in_lost_bytes: what reading blocks off the lines of GM costs beyond their bytes, at worst.
        out_lost_bytes: the same of writing.
        in_copies: copy instructions that read.
        out_copies: copy instructions that write.
        cast_repeats: repeats of Cast.
        bitwise_repeats: repeats of And and Duplicate.
        starts: vector instructions that pay a start-up if it is paid once per stream.
        vector_instructions: all of them.
    """

    parts: Floats
    in_bytes: Floats
    out_bytes: Floats
    in_lost_bytes: Floats
    out_lost_bytes: Floats
    in_copies: Floats
    out_copies: Floats
    cast_repeats: Floats
    bitwise_repeats: Floats
    starts: Floats
    vector_instructions: Floats

    def plus(self, other: Load, times: Ints | int) -> Load:
        """This and `times` as much of another."""
        return Load(**{n: getattr(self, n) + getattr(other, n) * times for n in _COUNTS})

    def slowed(self, loss: float) -> Load:
        """This load with a share of the lost bytes, 0 to 1, added to its bytes."""
        return dataclasses.replace(
            self,
            in_bytes=self.in_bytes + loss * self.in_lost_bytes,
            out_bytes=self.out_bytes + loss * self.out_lost_bytes,
        )


_COUNTS: Final = tuple(Load.__dataclass_fields__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreLoads:
    """The work of one core under each of many tile shapes.

    Attributes:
        first: its first part.
        previous: the part before the last; the last where there is but one.
        last: its last part.
        total: all of its parts.
        kinds: a part of each kind, and how many there are of it; together they are the total.
        tile_counts: tiles of the tensor.
        busy_cores: cores that have some.
    """

    first: Load
    previous: Load
    last: Load
    total: Load
    kinds: tuple[tuple[Load, Ints], ...]
    tile_counts: Ints
    busy_cores: Ints

    def slowed(self, loss: float) -> CoreLoads:
        """The same with a share of the bytes lost off the lines of GM, 0 to 1, added."""
        loads = {name: getattr(self, name).slowed(loss) for name in _LOADS}
        kinds = tuple((load.slowed(loss), number) for load, number in self.kinds)
        return dataclasses.replace(self, **loads, kinds=kinds)


_LOADS: Final = ("first", "previous", "last", "total")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A cast of one tensor on one chip, as far as its cost goes."""

    shape: Shape
    bits: ElementBits
    work: VectorWork
    chip: Chip

    @property
    def elems(self) -> int:
        return math.prod(self.shape)

    @property
    def in_bytes(self) -> int:
        return self.elems * self.bits.src // 8

    @property
    def out_bytes(self) -> int:
        return self.elems * self.bits.dst // 8


def core_loads(job: Job, tiles: Ints) -> CoreLoads:
    """Count the work of the core that is the last to finish.

    Args:
        job: the cast.
        tiles: shape (n, axes): tile shapes, each within the tensor.
    """
    cut = passes(job.shape, tiles, job.bits, job.chip)
    counts = -(-cut.shape // cut.tiles)
    tile_counts: Ints = counts.prod(axis=1)
    none, every = np.zeros_like(tile_counts), np.ones_like(tile_counts)
    stop = first_tile(every, tile_counts, job.chip.vector_cores)
    stop_of_next = first_tile(every + 1, tile_counts, job.chip.vector_cores)
    tails = cut.shape - (counts - 1) * cut.tiles
    steps = np.stack([_tiles_to_a_line(cut, bits) for bits in (job.bits.src, job.bits.dst)])

    kinds: list[tuple[Load, Ints]] = []
    until, until_next = _digits(stop, counts), _digits(stop_of_next, counts)
    for is_tail in itertools.product((False, True), repeat=len(job.shape)):
        times = _tiles_of_kind(is_tail, until, counts, every)
        if not times.any():
            continue
        times_next = _tiles_of_kind(is_tail, until_next, counts, every) - times
        on_lines = []
        for step in np.maximum(steps, 1):
            here = _tiles_of_kind(is_tail, until, counts, step)
            there = _tiles_of_kind(is_tail, until_next, counts, step) - here
            has_some = times_next > 0
            on_lines.append(
                np.where(has_some, there, here)
                / np.where(has_some, times_next, np.maximum(times, 1))
            )
        main, last, mains, lasts = _parts(np.where(np.array(is_tail), tails, cut.tiles), cut)
        for part, number in ((main, mains * times), (last, lasts * times)):
            if number.any():
                kinds.append((_part_load(job, cut, part, (steps > 0) * on_lines), number))
    (load, number), *others = kinds
    total = load.plus(load, number - 1)
    for load, number in others:
        total = total.plus(load, number)

    def tile_at(index: Ints) -> tuple[Ints, Floats]:
        """The extents of a tile; 1 if it begins on a line, in the input and in the output."""
        digits, on_next = (_digits(index + more, counts) for more in (none, stop))
        is_alike = ((digits == counts - 1) == (on_next == counts - 1)).all(axis=1)
        at = np.where(is_alike & (stop_of_next > stop), on_next[:, -1], digits[:, -1])
        are_on_lines = (steps > 0) & (at % np.maximum(steps, 1) == 0)
        return np.where(digits == counts - 1, tails, cut.tiles), are_on_lines.astype(np.float64)

    first, first_on_lines = tile_at(none)
    final, final_on_lines = tile_at(stop - 1)
    before_it, earlier_on_lines = tile_at(np.maximum(stop - 2, 0))
    main, last, mains, _ = _parts(final, cut)
    _, earlier, _, _ = _parts(before_it, cut)
    is_main = mains > 0
    previous = np.where(is_main[:, None], main, earlier)
    previous_on_lines = np.where(is_main, final_on_lines, earlier_on_lines)
    return CoreLoads(
        first=_part_load(job, cut, cut.of(first), first_on_lines),
        previous=_part_load(job, cut, previous, previous_on_lines),
        last=_part_load(job, cut, last, final_on_lines),
        total=total,
        kinds=tuple(kinds),
        tile_counts=tile_counts,
        busy_cores=np.minimum(tile_counts, job.chip.vector_cores),
    )


def _digits(index: Ints, counts: Ints) -> Ints:
    """`index` in the mixed radix of the grid; the first digit may reach its count."""
    digits = np.empty_like(counts)
    rest = index
    for axis in range(counts.shape[1] - 1, 0, -1):
        rest, digits[:, axis] = np.divmod(rest, counts[:, axis])
    digits[:, 0] = rest
    return digits


def _tiles_of_kind(is_tail: tuple[bool, ...], digits: Ints, counts: Ints, step: Ints) -> Ints:
    """Of the tiles before the one with these digits, those that are tails along just these axes.

    The tail along an axis is its last tile, be it shorter than the others or not. Along the last
    axis only every so many tiles count, from the first on: `step`.
    """
    axes = counts.shape[1]
    within = np.ones(len(counts), dtype=np.int64)  # of a whole block of the axes further in
    found = np.zeros(len(counts), dtype=np.int64)
    for axis in range(axes - 1, -1, -1):
        last = counts[:, axis] - 1
        digit = digits[:, axis]
        every: Ints | int = step if axis == axes - 1 else 1
        if is_tail[axis]:
            below, of_all = np.maximum(digit - last, 0) * (last % every == 0), last % every == 0
        else:
            below, of_all = -(-np.minimum(digit, last) // every), -(-last // every)
        # Tiles of whole blocks before this digit, then those of the block that it opens.
        found = below * within + np.where((digit == last) == is_tail[axis], found, 0)
        within = within * of_all
    return found


def _parts(extents: Ints, cut: Passes) -> tuple[Ints, Ints, Ints, Ints]:
    """Split tiles into parts: the shape of all but the last ones, that of the last, and how many.

    A pass is cut along one axis and holds one of every axis further out, so two shapes occur.
    """
    main = cut.of(extents)
    numbers = -(-extents // main)
    last = extents - (numbers - 1) * main
    axis = numbers.shape[1] - 1 - np.argmax(numbers[:, ::-1] > 1, axis=1)
    parts: Ints = numbers.prod(axis=1)
    lasts = parts // np.take_along_axis(numbers, axis[:, None], axis=1)[:, 0]
    return main, last, parts - lasts, lasts


def _part_load(job: Job, cut: Passes, part: Ints, on_lines: Floats) -> Load:
    """The work of a part; `on_lines` is the share of those that begin on a line, in and out."""
    bits = job.bits
    cols = part[:, -1]
    rows: Ints = part[:, :-1].prod(axis=1)
    elems = rows * cols
    repeats = {kind: np.zeros(len(part), dtype=np.int64) for kind in VectorKind}
    starts = np.zeros(len(part), dtype=np.int64)
    instructions = np.zeros(len(part), dtype=np.int64)
    for number, step in enumerate(job.work.steps):
        count, covered = _vector_counts(job, cut, part, step)
        repeats[step.kind] += covered
        instructions += count
        if step.pays_startup:
            starts += count
        elif number == 0 or step.follows_barrier:
            starts += 1
    counts = {
        "parts": np.ones(len(part)),
        "in_bytes": elems * bits.src // 8,
        "out_bytes": elems * bits.dst // 8,
        "in_lost_bytes": _lost_bytes(part, bits.src, on_lines[0]),
        "out_lost_bytes": _lost_bytes(part, bits.dst, on_lines[1]),
        "in_copies": _copies(cut.shape, part, bits.src),
        "out_copies": _copies(cut.shape, part, bits.dst),
        "cast_repeats": repeats[VectorKind.CAST],
        "bitwise_repeats": repeats[VectorKind.BITWISE],
        "starts": starts,
        "vector_instructions": instructions,
    }
    return Load(**{name: count.astype(np.float64) for name, count in counts.items()})


def _vector_counts(job: Job, cut: Passes, part: Ints, step: VectorStep) -> tuple[Ints, Ints]:
    """The instructions of a step on a part, and the repeats of all of them."""
    chip = job.chip
    cols = part[:, -1]
    rows: Ints = part[:, :-1].prod(axis=1)
    lanes = 8 * chip.repeat_bytes // step.bits
    ones = np.ones_like(rows)
    if step.is_one_block:
        return ones, ones
    unit = aligned_elems(job.bits, chip)
    pitch = np.where(
        cut.has_one_pitch, round_up(cols, unit), _pitch_elems(cols, job.bits.src, chip)
    )
    span = (rows - 1) * pitch + cols
    count = ones
    if step.takes_rest:
        count = np.minimum(span // lanes, 1) + np.minimum(span % lanes, 1)
    covered = -(-span // lanes)
    if step.goes_by_rows and not cut.has_one_pitch.all():
        is_split = _is_ragged(job, cut, cols) & (rows > 1)
        each = -(-cols // lanes)
        sides = (_pitch_elems(cols, bits, chip) for bits in (job.bits.src, job.bits.dst))
        goes_by_rows = by_rows(rows, cols, np.maximum(*sides), lanes, chip)
        split = np.where(goes_by_rows, rows, -(-rows // chip.max_repeat) * each)
        count = np.where(is_split, split, count)
        covered = np.where(is_split, rows * each, covered)
    return count, covered


def by_rows(rows: Count, cols: Count, pitch: Count, lanes: int, chip: Chip) -> Bools | bool:
    """True where one Cast a row issues no more instructions than Casts by repeats.

    Repeats are rows then, as many as an instruction has, and every stretch of lanes takes
    instructions of its own.

    Args:
        rows: of a part that lie differently far apart on both sides.
        cols: their elements.
        pitch: elements from row to row, on the side where they are more.
        lanes: elements of a repeat.
        chip: whose repeats.
    """
    repeated = -(-rows // chip.max_repeat) * -(-cols // lanes)
    blocks = chip.repeat_bytes // chip.block_bytes
    return (rows <= repeated) | (pitch * blocks > MAX_REP_STRIDE * lanes)


def _is_ragged(job: Job, cut: Passes, cols: Ints) -> Bools:
    """True where rows lie differently far apart, in elements, in the input and the output."""
    bits = job.bits
    differ = _pitch_elems(cols, bits.src, job.chip) != _pitch_elems(cols, bits.dst, job.chip)
    ragged: Bools = differ & ~cut.has_one_pitch
    return ragged


def _pitch_elems(cols: Ints, bits: int, chip: Chip) -> Ints:
    return padded_row_bytes(cols, bits, chip) * 8 // bits


def _copies(shape: Ints, part: Ints, bits: int) -> Ints:
    """Copy instructions of a part: one for all rows along its longest axis of rows."""
    rows: Ints = part[:, :-1].prod(axis=1)
    if part.shape[1] == 1:
        return np.ones(len(part), dtype=np.int64)
    axis = part.shape[1] - 2 - np.argmax(part[:, -2::-1], axis=1)
    inner = shape[:, ::-1].cumprod(axis=1)[:, ::-1]
    stride = np.take_along_axis(inner, axis[:, None] + 1, axis=1)[:, 0]
    longest: Ints = part[:, :-1].max(axis=1)
    is_far = (stride - part[:, -1]) * bits // 8 > MAX_STRIDE_BYTES
    return np.where(is_far, rows, rows // longest)


def lost_bytes(
    blocks: Ints | int, block_bytes: Ints | int, *, are_on_lines: Bools | bool
) -> Floats:
    """Bytes that moving blocks costs beyond their own because they are off the lines of GM.

    Off a line it is three tenths of the bandwidth at worst (documented), and no more than a line a
    block (inferred: only the lines at its ends are moved in part). A block that begins on a line
    can only lose the rest of its last one.

    Args:
        blocks: how many there are.
        block_bytes: bytes of each.
        are_on_lines: each of them begins on a line.
    """
    worst = np.minimum(np.multiply(block_bytes, 1 / _WORST_SHARE - 1), GM_LINE_BYTES)
    rest = np.minimum(worst, -np.asarray(block_bytes) % GM_LINE_BYTES)
    lost: Floats = np.asarray(blocks * np.where(are_on_lines, rest, worst))
    return lost


def _tiles_to_a_line(cut: Passes, bits: int) -> Ints:
    """Every so many tiles along the last axis one begins on a line; 0 if rows are off lines."""
    row_bytes = cut.shape[:, ::-1].cumprod(axis=1)[:, -2::-1] * bits // 8
    are_off = np.any((cut.shape[:, :-1] > 1) & (row_bytes % GM_LINE_BYTES > 0), axis=1)
    tile_bytes = cut.tiles[:, -1] * bits // 8
    return np.where(are_off, 0, GM_LINE_BYTES // np.gcd(tile_bytes, GM_LINE_BYTES))


def _lost_bytes(part: Ints, bits: int, on_lines: Floats) -> Floats:
    rows: Ints = part[:, :-1].prod(axis=1)
    off, on = (
        lost_bytes(rows, part[:, -1] * bits // 8, are_on_lines=each) for each in (False, True)
    )
    return off + on_lines * (on - off)
