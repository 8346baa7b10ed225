"""Counts of the instructions of a cast, against pto-isa's for the same tile and against the fewest.

pto-isa's counts are written down here from its sources (a2a3, TLoad, TStore and TCvt): a copy moves
the rows along the last axis but one, and one is issued for every position of the axes before; a
row's whole repeats are converted 255 at a time, row by row, and what is left of all rows by
repeats, 255 rows at a time. What passes through UB at once is a tile there.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator

import pytest
from support.numbers.codes import SEED
from support.programs.tile_programs import CASTS, program_of

from ascend_kernels.matrix import CastStep
from ascend_kernels.program import TileProgram
from simulator.machine.isa import Cast, CastRepeat, DataCopyPad, Pipe
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from tiling.chips import DEFAULT_CHIP
from tiling.cost import COST_SETS, DEFAULT_COST_SET
from tiling.estimate import estimates
from tiling.grid import Shape, Tile, as_tiles
from tiling.loads import Job, one_cast
from tiling.plan import TileShapeError, choose_tile_shape
from tiling.ub import ElementBits

DEVICE = [
    ((4096, 1024), (32, 512)),
    ((4096, 7), (512, 7)),
    ((4096, 1000), (32, 1000)),
    ((4096, 1000), (32, 500)),
    ((8, 16, 16, 64), (4, 8, 8, 64)),
]
COUNTS = [(512, 512, 512), (8, 8, 8), (384, 384, 384), (512, 512, 512), (32, 32, 16)]
"""Copies in, copies out and Casts of the tensors above, FP32 to FP16."""

Counts = Counter[str]


def lanes(step: CastStep) -> int:
    return 2048 // max(step.src.bits, step.dst.bits)


def issued(program: TileProgram, part: Tile) -> Counts:
    found: Counts = Counter()
    for instruction in program.part_instructions(part, 0, reused=False):
        if isinstance(instruction, DataCopyPad):
            found["in" if instruction.pipe is Pipe.MTE2 else "out"] += 1
        if isinstance(instruction, (Cast, CastRepeat)):
            found["casts"] += 1
    return found


def of_pto_isa(program: TileProgram, box: Shape) -> Counts:
    rows, cols = math.prod(box[:-1]), box[-1]
    copies = math.prod(box[:-2])
    casts = 0
    for step in program.resolution.casts:
        whole, rest = divmod(cols, lanes(step))
        casts += rows * math.ceil(whole / 255) + (math.ceil(rows / 255) if rest else 0)
    return Counter({"in": copies, "out": copies, "casts": casts})


def fewest(program: TileProgram, part: Tile) -> Counts:
    """DataCopyPad calls with one stride for each, and Casts of 255 repeats for rows as they lie."""
    shape = program.plan.merged.shape
    rows, cols = math.prod(part.shape[:-1]), part.shape[-1]
    bits = program.plan.bits
    copies = rows // max((*part.shape[:-1], 1))
    for axis in range(1, len(shape)):  # nothing is left that could be one stretch of GM
        is_whole = part.shape[axis] == shape[axis] > 1
        assert not is_whole or math.prod(part.shape[:axis]) == 1
    unit = 256 // min(bits.src, bits.dst)
    span = (rows - 1) * math.ceil(cols / unit) * unit + cols
    casts = 0
    for step in program.resolution.casts:
        each = math.ceil(cols / lanes(step))
        together = math.ceil(math.ceil(span / lanes(step)) / 255)
        apart = min(rows * math.ceil(each / 255), math.ceil(rows / 255) * each)
        casts += together if program.plan.ub.has_one_pitch else apart
    return Counter({"in": copies, "out": copies, "casts": casts})


def others() -> Iterator[tuple[Shape, Shape, Format, Format, bool]]:
    chance = random.Random(SEED)
    found = 0
    while found < 200:
        src, dst, saturate = chance.choice(CASTS)
        axes = chance.randint(1, 4)
        shape = [chance.randint(1, (60000, 900, 60, 16)[axes - 1]) for _ in range(axes)]
        shape[-1] += shape[-1] % 2
        tile = [chance.choice([s, chance.randint(1, s)]) for s in shape]
        tile[-1] += tile[-1] % 2
        if math.prod(-(-s // t) for s, t in zip(shape, tile, strict=True)) > 60:
            continue
        try:
            program_of(tuple(shape), tuple(tile), src, dst, saturate=saturate)
        except TileShapeError:
            continue
        found += 1
        yield tuple(shape), tuple(tile), src, dst, saturate


GRID = [*((*case, f.FP32, f.FP16, True) for case in DEVICE), *others()]


def test_no_more_instructions_than_pto_isa_and_hardly_more_than_the_fewest() -> None:
    total, least = Counts(), Counts()
    for shape, tile, src, dst, saturate in GRID:
        program = program_of(shape, tile, src, dst, saturate=saturate)
        for core in program.cores:
            for part in program.parts(core):
                found = issued(program, part)
                whole = program.plan.grid.tile(part.index)
                passes_whole = math.prod(part.shape) == math.prod(whole.shape)
                theirs = of_pto_isa(program, whole.shape if passes_whole else part.shape)
                bound = fewest(program, part)
                for kind in ("in", "out", "casts"):
                    assert found[kind] <= theirs[kind], (shape, tile, part, kind)
                    assert found[kind] <= 1.1 * bound[kind], (shape, tile, part, kind)
                total += found
                least += bound
    assert all(total[kind] <= least[kind] for kind in total)


@pytest.mark.parametrize(("case", "counts"), zip(DEVICE, COUNTS, strict=True), ids=str)
def test_counts_of_tensors(case: tuple[Shape, Shape], counts: tuple[int, int, int]) -> None:
    program = program_of(*case)
    found = Counts()
    for core in program.cores:
        for part in program.parts(core):
            found += issued(program, part)
    assert (found["in"], found["out"], found["casts"]) == counts


# --- The planner's own choice ------------------------------------------------------------------

LARGE = [
    (2**24,),
    (2**24 - 3,),
    (4096, 4096),
    (4097, 4097),
    (2**21, 8),
    (5000, 3356),
    (3, 5592406),
    (4096, 7, 600),
    (1000, 1000, 17),
    (127, 131, 1011),
    (8, 16, 16, 8192),
    (64, 64, 64, 64),
    (32, 127, 128, 64),
    (2**26,),
]
"""2^24 elements and more, even and odd. Rows shorter than a block are not among them: upstream's UB
rule counts a block for each, which leaves tiles of a few KB."""


OTHER_WIDTHS = [
    pytest.param(w, marks=pytest.mark.exhaustive) for w in ((16, 32), (64, 32), (16, 8))
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("bits", [(32, 16), *OTHER_WIDTHS], ids=str)
@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_the_default_tile_reaches_nine_tenths_of_the_bound(
    shape: Shape, bits: tuple[int, int]
) -> None:
    widths = ElementBits(src=bits[0], dst=bits[1])
    tile = choose_tile_shape(shape, widths, DEFAULT_CHIP)
    clipped = tuple(min(t, s) for t, s in zip(tile, shape, strict=True))
    job = Job(shape=shape, bits=widths, work=one_cast(widths), chip=DEFAULT_CHIP)
    (found,) = estimates(job, as_tiles([clipped]), DEFAULT_COST_SET, COST_SETS.values())
    assert found.bound_share >= 0.9
