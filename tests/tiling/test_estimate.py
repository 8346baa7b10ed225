"""The closed form of the cost: against the event simulation, against bounds, against its inputs."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.numbers.codes import SEED
from support.programs.tile_programs import CAST_IDS, CASTS

from ascend_kernels.matrix import Resolution, resolve
from ascend_kernels.program import lower
from ascend_kernels.vector_work import element_bits, vector_work
from simulator.machine.isa import AndRepeat, Cast, CastRepeat, DataCopyPad, Duplicate, Pipe
from simulator.numbers import formats as f
from simulator.traces.trace import timeline, trace
from tiling.chips import A2_A3, DEFAULT_CHIP
from tiling.cost import COST_SETS, DEFAULT_COST_SET, CostParameters, figure_names
from tiling.estimate import Limit, bound_cycles, cycle_sums, estimates
from tiling.grid import Shape, as_tiles
from tiling.loads import Job, core_loads, one_cast
from tiling.plan import TilePlan, TileShapeError, plan
from tiling.ub import ElementBits, charged_bytes, passes

WITHIN = 0.02
FP32_FP16 = resolve(A2_A3, f.FP32, f.FP16)
ISSUING = DEFAULT_COST_SET.replaced("issuing", issue_cycles=2.0)
EACH = dataclasses.replace(DEFAULT_COST_SET, name="each", is_startup_per_stream=False)

every_set = pytest.mark.parametrize("parameters", [*COST_SETS.values(), EACH, ISSUING], ids=str)
every_cast = pytest.mark.parametrize(("src", "dst", "saturate"), CASTS, ids=CAST_IDS)


def job_of(shape: Shape, resolution: Resolution = FP32_FP16) -> Job:
    return Job(
        shape=shape,
        bits=element_bits(resolution),
        work=vector_work(resolution),
        chip=DEFAULT_CHIP,
    )


def closed_form(job: Job, tile: Shape, parameters: CostParameters) -> float:
    (found,) = estimates(job, np.array([tile], dtype=np.int64), parameters, ())
    return found.cycles


def simulated(made: TilePlan, resolution: Resolution, parameters: CostParameters) -> float:
    """The makespan of the event simulation: of the cores at both ends and in the middle."""
    last = lower(made, resolution).cores[-1]
    cores = {0, min(1, last), last // 2, min(last // 2 + 1, last), max(last - 1, 0), last}
    return makespan(made, resolution, parameters, cores)


def makespan(
    made: TilePlan, resolution: Resolution, parameters: CostParameters, cores: Iterable[int]
) -> float:
    program = lower(made, resolution)
    return max(timeline(trace(program, core, parameters)).makespan_cycles for core in cores)


# --- Against the event simulation --------------------------------------------------------------

GRID = [
    ((15680 * 3,), (15680,)),
    ((2**20,), (8192,)),
    ((2**20,), (1024,)),
    ((40 * 4096 + 17,), (4096,)),
    ((1000,), (16,)),
    ((1024, 1024), (8, 1024)),
    ((1024, 1024), (16, 512)),
    ((1024, 1024), (61, 512)),
    ((1000, 1000), (10, 1000)),
    ((77, 4096), (2, 4096)),
    ((3, 32768), (1, 32768)),
    ((64, 3000), (4, 1024)),
    ((16, 64, 256), (1, 32, 256)),
    ((16, 64, 256), (2, 16, 128)),
    ((5, 7, 1000), (2, 7, 512)),
    ((4, 8, 64, 128), (1, 1, 64, 128)),
    ((4, 8, 64, 256), (2, 2, 16, 128)),
    ((2, 3, 100, 300), (1, 3, 16, 304)),
    ((6, 10, 20, 64), (4, 3, 7, 64)),
    ((1, 1, 1, 2), (1, 1, 1, 16)),
    ((237608,), (320,)),
    ((3, 54), (2, 54)),
    ((23, 64, 8), (1, 59, 8)),
    ((18, 37, 76), (1, 4, 64)),
    ((2, 17, 20, 70), (1, 3, 1, 64)),
]
"""Few and many tiles, tails along one and several axes, tiles that pass in parts, 1 to 4 axes; some
tiles on lines of GM and others not, large and small ones in turn.
"""


@every_set
@pytest.mark.parametrize(("shape", "tile"), GRID, ids=str)
@pytest.mark.sampled(16)
def test_a_grid_of_shapes_and_tiles(shape: Shape, tile: Shape, parameters: CostParameters) -> None:
    job = job_of(shape)
    made = plan(shape, tile, job.bits, DEFAULT_CHIP)
    span = simulated(made, FP32_FP16, parameters)
    assert closed_form(job, made.tile_shape, parameters) == pytest.approx(span, rel=WITHIN)


@pytest.mark.slow
@every_set
@every_cast
@pytest.mark.sampled(4)
def test_every_kind_of_vector_work(
    src: f.Format, dst: f.Format, saturate: bool, parameters: CostParameters
) -> None:
    resolution = resolve(A2_A3, src, dst, saturate=saturate)
    for shape, tile in (((160, 512), (4, 256)), ((200, 300), (5, 128)), ((37, 34), (37, 34))):
        job = job_of(shape, resolution)
        made = plan(shape, tile, job.bits, DEFAULT_CHIP)
        span = simulated(made, resolution, parameters)
        assert closed_form(job, made.tile_shape, parameters) == pytest.approx(span, rel=WITHIN)


@pytest.mark.parametrize(
    "figure", sorted({*figure_names()} - {"gm_line_loss", "scalar_cycles", "issue_cycles"})
)
@pytest.mark.sampled(8)
def test_what_dwarfs_the_rest_is_counted_as_often_as_it_is_met(figure: str) -> None:
    large = 100 * getattr(DEFAULT_COST_SET, figure)
    parameters = DEFAULT_COST_SET.replaced("large", **{figure: large})
    resolution = resolve(A2_A3, f.FP16, f.INT8, saturate=False)
    for shape, tile in (((2**20,), (1024,)), ((237608,), (320,)), ((2, 17, 20, 70), (1, 3, 1, 64))):
        job = job_of(shape, resolution)
        made = plan(shape, tile, job.bits, DEFAULT_CHIP)
        span = simulated(made, resolution, parameters)
        assert closed_form(job, made.tile_shape, parameters) == pytest.approx(span, rel=0.01)


def random_plans(number: int) -> Iterator[tuple[TilePlan, Resolution]]:
    """Plans of any shape and aligned tiles, each axis as likely short as long."""
    chance = random.Random(SEED)
    found = 0
    while found < number:
        src, dst, saturate = chance.choice(CASTS)
        resolution = resolve(A2_A3, src, dst, saturate=saturate)
        axes = chance.randint(1, 4)
        longest = (1_000_000, 1500, 200, 50)[axes - 1]
        shape = [int(longest ** chance.random()) for _ in range(axes)]
        shape[-1] = 2 * max(shape[-1], int(longest ** chance.random()))
        tile = [int(extent ** chance.random()) for extent in shape]
        tile[-1] = -(-tile[-1] // 64) * 64
        try:
            made = plan(tuple(shape), tuple(tile), element_bits(resolution), DEFAULT_CHIP)
        except TileShapeError:
            continue
        if len(made.core_tiles(0)) <= 100:
            found += 1
            yield made, resolution


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "share"), [(60, 0.075), pytest.param(250, 0.045, marks=pytest.mark.exhaustive)]
)
def test_random_shapes_and_tiles(number: int, share: float) -> None:
    """The bounds of `tiling.estimate` hold for plans with large and small parts mixed.

    Of 17 seeds 1.6 % of 250 plans were further off, at least 0.2 % and at most 2.8 % of one seed's;
    the limit lies five standard deviations above the mean.
    """
    errors = []
    for made, resolution in random_plans(number):
        for parameters in (DEFAULT_COST_SET, COST_SETS["documented"]):
            span = simulated(made, resolution, parameters)
            cycles = closed_form(job_of(made.shape, resolution), made.tile_shape, parameters)
            if abs(cycles / span - 1) > WITHIN:  # the slowest core may be another one
                every = lower(made, resolution).cores
                span = makespan(made, resolution, parameters, every)
            errors.append(abs(cycles / span - 1))
    assert np.mean(np.array(errors) > WITHIN) <= share
    assert max(errors) < 0.25


@every_set
def test_pipes_work_as_long_as_in_the_simulation(parameters: CostParameters) -> None:
    """One core alone, so that no copy waits for another in GM."""
    job = job_of((15, 512))
    made = plan(job.shape, (15, 512), job.bits, DEFAULT_CHIP)
    (found,) = estimates(job, np.array([made.tile_shape]), parameters, ())
    (core,) = timeline(trace(lower(made, FP32_FP16), 0, parameters)).cores
    for limit, pipe in ((Limit.MTE2, Pipe.MTE2), (Limit.V, Pipe.V), (Limit.MTE3, Pipe.MTE3)):
        assert found.pipe_cycles[limit] == pytest.approx(core.busy_cycles[pipe])


# --- What is counted ---------------------------------------------------------------------------


@pytest.mark.slow
def test_counts_are_those_of_the_program() -> None:
    """Copies, bytes, repeats and vector instructions of core 0, instruction by instruction."""
    for made, resolution in random_plans(150):
        job = job_of(made.shape, resolution)
        total = core_loads(job, np.array([made.tile_shape])).total
        program = lower(made, resolution)
        instructions = list(program.instructions(0))
        copies = [i for i in instructions if isinstance(i, DataCopyPad)]
        vector = [
            i for i in instructions if isinstance(i, (Cast, CastRepeat, AndRepeat, Duplicate))
        ]
        reads = [i for i in copies if i.pipe is Pipe.MTE2]
        writes = [i for i in copies if i.pipe is Pipe.MTE3]
        assert total.parts == len(list(program.parts(0)))
        assert (total.in_copies, total.out_copies) == (len(reads), len(writes))
        assert total.in_bytes == sum(i.block_count * i.block_len_bytes for i in reads)
        assert total.out_bytes == sum(i.block_count * i.block_len_bytes for i in writes)
        assert total.vector_instructions == len(vector)
        repeats = [
            -(-i.count * max(i.src_format.bits, i.dst_format.bits) // 2048)
            for i in vector
            if isinstance(i, Cast)
        ]
        repeats += [i.repeat_times for i in vector if isinstance(i, CastRepeat)]
        assert total.cast_repeats == sum(repeats)
        masks = [1 for i in vector if isinstance(i, Duplicate)]
        masked = [i.repeat_times for i in vector if isinstance(i, AndRepeat)]
        assert total.bitwise_repeats == sum(masks) + sum(masked)


def test_no_core_has_more_to_do_than_the_first() -> None:
    for made, _ in random_plans(150):
        elems = [sum(t.elems for t in made.tiles(core)) for core in range(made.busy_cores)]
        assert elems[0] == max(elems)


def test_parts_and_bytes_are_those_of_the_plan() -> None:
    """Many tiles at once give what each gives alone."""
    by_kind = defaultdict(list)
    for made, _ in random_plans(150):
        by_kind[made.bits, made.shape].append(made)
    for (bits, shape), plans in by_kind.items():
        tiles = as_tiles(made.tile_shape for made in plans)
        cut = passes(shape, tiles, bits, DEFAULT_CHIP)
        charged = charged_bytes(tiles[:, :-1].prod(axis=1), tiles[:, -1], bits, DEFAULT_CHIP)
        assert cut.of(cut.tiles).tolist() == [list(made.ub.pass_shape) for made in plans]
        assert cut.has_one_pitch.tolist() == [made.ub.has_one_pitch for made in plans]
        assert charged.tolist() == [made.tile_bytes for made in plans]


@pytest.mark.parametrize(("more", "in_copies"), [(31, 1), (32, 2)])
def test_copies_that_are_too_far_apart_are_single(more: int, in_copies: int) -> None:
    """Rows of INT64 lie 2^32 - 8 bytes apart, then 2^32: one more than a stride of 32 bits."""
    job = job_of((2, 2**29 + more), resolve(A2_A3, f.INT64, f.FP32))
    loads = core_loads(job, np.array([[2, 32]]))
    assert (loads.first.in_copies, loads.first.out_copies) == (in_copies, 1)


def test_vector_work_of_a_few_casts() -> None:
    assert vector_work(FP32_FP16) == one_cast(ElementBits(src=32, dst=16))
    (scaled,) = vector_work(resolve(A2_A3, f.INT32, f.FP16)).steps
    assert scaled.pays_startup
    low_bytes = vector_work(resolve(A2_A3, f.FP16, f.INT8, saturate=False))
    assert len(low_bytes.steps) == 6
    assert low_bytes.part_scalars > 0
    assert vector_work(resolve(A2_A3, f.FP16, f.INT16, saturate=False)).part_barriers == 1


# --- Bounds and monotonicity -------------------------------------------------------------------

tiled = st.sampled_from([*GRID, ((100, 100), (3, 112)), ((9, 9, 9), (2, 4, 16))])
bandwidths = st.sampled_from([n for n in figure_names() if n.endswith(("_cycle", "_second"))])


@pytest.mark.slow
@given(tiled, bandwidths, st.floats(1, 100), st.sampled_from(list(COST_SETS.values())))
@settings(deadline=None, max_examples=200)
def test_more_bandwidth_never_costs_time(
    tiled: tuple[Shape, Shape], field: str, factor: float, parameters: CostParameters
) -> None:
    shape, tile = tiled
    tile = tuple(min(t, s) for t, s in zip(tile, shape, strict=True))
    faster = parameters.replaced("faster", **{field: getattr(parameters, field) * factor})
    job = job_of(shape)
    assert closed_form(job, tile, faster) <= closed_form(job, tile, parameters) * (1 + 1e-12)


@every_set
@every_cast
@pytest.mark.sampled(3)
def test_no_tile_beats_the_bound(
    src: f.Format, dst: f.Format, saturate: bool, parameters: CostParameters
) -> None:
    for shape in ((64, 256), (7, 3, 130), (2**20,)):
        job = job_of(shape, resolve(A2_A3, src, dst, saturate=saturate))
        extents = ([1, 2, 5, s] if s > 5 else [1, s] for s in shape[:-1])
        lasts = [64, shape[-1] // 128 * 64 or 64, min(shape[-1], 8192)]
        tiles = np.array(list(itertools.product(*extents, lasts)))
        cycles = cycle_sums(job, core_loads(job, tiles), parameters).cycles
        assert (cycles >= bound_cycles(job, parameters)).all()


@given(st.permutations(range(40)))
@settings(deadline=None, max_examples=30)
def test_the_order_of_evaluation_does_not_matter(order: list[int]) -> None:
    job = job_of((100, 700))
    tiles = np.array([(1 + row % 8, 16 * (1 + row // 8)) for row in range(40)])
    cycles = cycle_sums(job, core_loads(job, tiles), DEFAULT_COST_SET).cycles
    again = cycle_sums(job, core_loads(job, tiles[order]), DEFAULT_COST_SET).cycles
    np.testing.assert_array_equal(again, cycles[order])
    alone = [closed_form(job, tuple(tiles[row]), DEFAULT_COST_SET) for row in order[:3]]
    assert alone == [cycles[row] for row in order[:3]]


# --- What an estimate says ---------------------------------------------------------------------


def test_an_estimate_names_its_set_and_the_range() -> None:
    job = job_of((1024, 1024))
    (found,) = estimates(job, np.array([[8, 1024]]), DEFAULT_COST_SET, COST_SETS.values())
    assert found.cost_set == "pto-isa-910b3"
    assert list(found.cycles_by_set) == list(COST_SETS)
    assert found.cycles_by_set["pto-isa-910b3"] == found.cycles
    assert found.low_cycles < found.cycles <= found.high_cycles
    assert found.microseconds == pytest.approx(found.cycles / 1850)
    assert found.copied_bytes == 6 * 2**20
    assert found.gb_per_second == pytest.approx(6 * 2**20 / found.microseconds / 1000)
    assert found.limit is Limit.GM
    assert 0.5 < found.bound_share < 1
    text = str(found)
    assert "cost set pto-isa-910b3; " in text
    assert "over all sets" in text


def test_writing_is_unsettled_and_shows() -> None:
    """One core alone writes at 16.4 or at 109.4 bytes a cycle, as the source says."""
    job = job_of((8, 1024), resolve(A2_A3, f.FP16, f.FP32))
    (found,) = estimates(job, np.array([[8, 1024]]), DEFAULT_COST_SET, COST_SETS.values())
    assert found.limit is Limit.MTE2 or found.limit is Limit.MTE3
    assert found.high_cycles > 3 * found.low_cycles
    by_set = found.cycles_by_set
    assert by_set["pto-isa-910b3"] > 2 * by_set["pto-isa-flat-write"]


@pytest.mark.parametrize(
    ("figure", "limit"),
    [
        ("read_startup_cycles", Limit.MTE2),
        ("cast_cycles_per_repeat", Limit.V),
        ("write_startup_cycles", Limit.MTE3),
        ("issue_cycles", Limit.S),
    ],
)
def test_what_is_slow_is_the_limit(figure: str, limit: Limit) -> None:
    slow = DEFAULT_COST_SET.replaced("slow", **{figure: 1e5})
    (found,) = estimates(job_of((1024, 1024)), np.array([[8, 512]]), slow, ())
    assert found.limit is limit
