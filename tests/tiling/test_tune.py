"""tune(): every legal tile and no other, the best first, and what it says about itself."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.programs.tile_programs import CAST_IDS, CASTS
from test_estimate import closed_form, job_of, simulated

import pypto_cast as pypto
from ascend_kernels.matrix import resolve
from pypto_cast.dtypes.data_types import DataType, SaturationMode
from simulator.numbers import formats as f
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, CHIPS, DEFAULT_CHIP, Chip
from tiling.cost import COST_SETS, DEFAULT_COST_SET, CostParameters
from tiling.estimate import estimates
from tiling.grid import Shape
from tiling.loads import Job
from tiling.plan import ShapeError, plan
from tiling.ranking import OBJECTIVES, TuningResult, tune
from tiling.search import MAX_TILES, best_tile, legal_tiles

FP32, FP16, INT8 = DataType.DT_FP32, DataType.DT_FP16, DataType.DT_INT8
SMALL: list[Shape] = [(1,), (40,), (5000,), (7, 50), (130, 40), (3, 5, 70), (2, 3, 4, 40)]
SLOW: list[Shape] = [(5000,), (130, 40)]  # with the default figures alone, unless exhaustive


def every_tile(shape: Shape, unit: int) -> Iterator[Shape]:
    """All tile shapes within a tensor, rows of whole blocks."""
    outer = (range(1, extent + 1) for extent in shape[:-1])
    lasts = range(unit, -(-shape[-1] // unit) * unit + 1, unit)
    return itertools.product(*outer, lasts)


def is_legal(job: Job, tile: Shape, max_tiles: int) -> bool:
    """By the plan: safe UB, two slots hold the whole tile, and there are not too many."""
    made = plan(job.shape, tile, job.bits, job.chip)
    fits = made.tile_bytes <= job.chip.ub_safe_bytes and made.ub.is_double_buffered
    return fits and len(made.grid) < max_tiles


@functools.cache
def legal_small_tiles(shape: Shape) -> list[Shape]:
    job = job_of(shape)
    return [tile for tile in every_tile(shape, 16) if is_legal(job, tile, 18000)]


def clipped(tile: Shape, shape: Shape) -> Shape:
    return tuple(min(t, s) for t, s in zip(tile, shape, strict=True))


# --- The best ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "shape"),
    [
        pytest.param(
            chosen,
            shape,
            id=f"{chosen}-{shape}",
            marks=pytest.mark.exhaustive if chosen != DEFAULT_COST_SET and shape in SLOW else (),
        )
        for chosen in COST_SETS.values()
        for shape in SMALL
    ],
)
@pytest.mark.sampled(32)
def test_brute_force_finds_nothing_better(shape: Shape, chosen: CostParameters) -> None:
    job = job_of(shape)
    costs = {
        tile: closed_form(job, clipped(tile, shape), chosen) for tile in legal_small_tiles(shape)
    }
    result = tune(job, parameters=chosen, top=len(costs) + 1)
    assert result.legal_count == len(costs) == len(result.candidates)
    assert {c.tile_shape: c.estimate.cycles for c in result.candidates} == costs
    least = min(costs.values())
    assert costs[result.best] == pytest.approx(least, abs=1e-3)
    cycles = [c.estimate.cycles for c in result.candidates]
    assert all(a <= b + 1e-3 for a, b in itertools.pairwise(cycles))
    assert [c.rank for c in result.candidates] == list(range(1, len(costs) + 1))


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(5000,), (130, 40), (3, 5, 70)], ids=str)
def test_the_event_simulation_finds_hardly_better(shape: Shape) -> None:
    """The best of the closed form is within both models' disagreement of the simulation's best."""
    job = job_of(shape)
    resolution = resolve(A2_A3, f.FP32, f.FP16)
    spans = {
        tile: simulated(plan(shape, tile, job.bits, DEFAULT_CHIP), resolution, DEFAULT_COST_SET)
        for tile in every_tile(shape, 16)
        if is_legal(job, tile, 100)
    }
    assert spans[tune(job).best] <= 1.02 * min(spans.values())


@pytest.mark.slow
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=3),
    st.sampled_from(CASTS),
    st.sampled_from(list(CHIPS.values())),
)
@settings(deadline=None, max_examples=60)
@example([1], CASTS[0], DEFAULT_CHIP)
def test_the_planner_takes_the_best(
    extents: list[int], cast: tuple[f.Format, f.Format, bool], chip: Chip
) -> None:
    src, dst, saturate = cast
    shape = (*extents[:-1], 2 * extents[-1])
    job = job_of(shape, resolve(A2_A3, src, dst, saturate=saturate))
    job = dataclasses.replace(job, chip=chip)
    best = tune(job, objective="robust", top=1).best
    assert best_tile(shape, job.bits, job.work, job.chip) == best
    made = plan(shape, None, job.bits, job.chip, work=job.work)
    assert made.tile_shape == clipped(best, shape)


@pytest.mark.parametrize(
    ("src", "dst", "satmode"),
    [
        (FP32, FP16, SaturationMode.ON),
        (DataType.DT_INT32, FP16, SaturationMode.ON),
        (FP16, INT8, SaturationMode.OFF),
    ],
    ids=["fp32-fp16", "int32-fp16", "fp16-int8-off"],
)
def test_a_cast_without_a_tile_takes_the_best(
    src: DataType, dst: DataType, satmode: SaturationMode
) -> None:
    """The steps of the cast count too: some of these would have another tile with one Cast."""
    x = pypto.tensor([64, 4100], src)
    best = pypto.tune(x, src, dst, satmode=satmode, objective="robust").best
    says = re.escape(f"the planner chose {list(best)} for [64, 4100]")
    with pytest.warns(pypto.TileShapeWarning, match=says):
        pypto.cast(x, dst, satmode=satmode)


def test_ties_are_broken_by_the_longer_rows() -> None:
    free = DEFAULT_COST_SET.replaced(
        "free", read_startup_cycles=0.0, write_startup_cycles=0.0, vector_startup_cycles=0.0,
        cast_cycles_per_repeat=0.0, flag_cycles=0.0, scalar_cycles=0.0, read_bytes_per_cycle=1e30,
        write_bytes_per_cycle=1e30, gm_bytes_per_second=1e30,
    )  # fmt: skip
    result = tune(job_of((2, 3, 32)), parameters=free, top=100)
    shapes = [c.tile_shape for c in result.candidates]
    assert shapes == sorted(shapes, key=lambda tile: tile[::-1], reverse=True)
    assert result.best == (2, 3, 32)
    assert tune(job_of((2, 3, 32)), parameters=free, top=100) == result


# --- Legality ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("src", "dst", "saturate"), CASTS, ids=CAST_IDS)
@pytest.mark.sampled(12)
def test_no_candidate_is_illegal(src: f.Format, dst: f.Format, saturate: bool) -> None:
    for shape in ((3, 40000), (300, 200, 10)):
        job = job_of(shape, resolve(A2_A3, src, dst, saturate=saturate))
        found = legal_tiles(job, 500)
        assert not found.exceeds_max_tiles
        assert len(np.unique(found.asked, axis=0)) == len(found)
        rows = range(0, len(found), max(1, len(found) // 300))
        for tile in (tuple(map(int, found.asked[row])) for row in rows):
            made = plan(shape, tile, job.bits, DEFAULT_CHIP, strict=True)
            assert made.diagnostics == ()
            assert made.ub.is_double_buffered
            assert len(made.grid) < 500


@pytest.mark.parametrize(
    ("shape", "legal", "illegal"),
    [
        pytest.param((40, 100), (8, 16), (8, 8), id="rows-of-half-a-block"),
        pytest.param((40, 100), (8, 112), (8, 100), id="rows-of-the-tensor-unaligned"),
        pytest.param((40000,), (15680,), (15696,), id="two-do-not-fit-the-safe-ub"),
        pytest.param((40, 100), (40, 16), (41, 16), id="longer-than-the-tensor"),
        pytest.param((40, 100), (40, 112), (40, 128), id="rows-longer-than-the-tensor"),
        pytest.param((18000, 16), (2, 16), (1, 16), id="18000-tiles"),
    ],
)
def test_each_reason_for_illegality(shape: Shape, legal: Shape, illegal: Shape) -> None:
    found = {tuple(map(int, tile)) for tile in legal_tiles(job_of(shape), 18000).asked}
    assert legal in found
    assert illegal not in found


def test_rows_of_4_bits_are_whole_bytes() -> None:
    job = job_of((6, 200), resolve(A2_A3, f.FP16, f.INT4))
    assert {int(tile[-1]) for tile in legal_tiles(job, 18000).asked} == {64, 128, 192, 256}


def test_scratch_counts() -> None:
    """FP16 to INT8 by OFF needs 4 B of scratch an element, beside 2 x (2 + 1)."""
    job = job_of((40000,), resolve(A2_A3, f.FP16, f.INT8, saturate=False))
    assert legal_tiles(job, 18000).asked.max() == 188160 // (2 * 3 + 4) // 32 * 32


def test_too_many_tiles_are_left_out_if_not_all_are() -> None:
    result = tune(job_of((100, 100)), max_tiles=11, top=1000)
    assert max(c.tile_count for c in result.candidates) == 10
    assert result.notes == ()
    every = tune(job_of((100, 100)), max_tiles=1)
    (note,) = every.notes
    assert note == "every tile shape that fits UB makes 1 tiles or more; all of them compete"
    assert every.legal_count == 700


# --- What a candidate says ---------------------------------------------------------------------


def test_a_candidate_in_full() -> None:
    result = tune(job_of((1000, 1000)), top=300)
    for candidate in result.candidates:
        made = plan(result.shape, candidate.tile_shape, result.bits, result.chip)
        assert candidate.tile_count == len(made.grid)
        assert candidate.busy_cores == made.busy_cores
        assert (candidate.vector_cores, candidate.ub_limit_bytes) == (40, 196608)
        assert candidate.ub_bytes == made.tile_bytes
        assert candidate.is_double_buffered
        cells = len(made.grid) * math.prod(made.tile_shape)
        assert candidate.tail_waste == pytest.approx(1 - 10**6 / cells)
        assert candidate.warnings[: len(made.diagnostics)] == made.diagnostics
        assert list(candidate.estimate.cycles_by_set) == list(COST_SETS)
        assert candidate.estimate.bound_cycles == result.bound_cycles
        assert "limited by " in candidate.reason
        assert "\n" not in candidate.reason


@pytest.mark.slow
def test_reasons_tell_what_is_lost() -> None:
    result = tune(job_of((64, 256)), top=2000)
    by_tile = {c.tile_shape: c for c in result.candidates}
    assert by_tile[result.best].reason.startswith("no legal tile shape of 1021 takes fewer cycles")
    few_cores = by_tile[32, 256]
    assert "38 of 40 vector cores have no tile" in few_cores.warnings
    place = r"\d+\.\d% more cycles than the fastest; limited by copies into UB; most of what"
    assert re.match(place, few_cores.reason)
    assert "an uneven share (38 of 40 cores idle)" in few_cores.reason
    every = " ".join(c.reason for c in tune(job_of((1000, 1000)), top=10**6).candidates)
    assert re.search(r"an uneven share \(\d+ tiles on the busiest of 40 cores\)", every)
    assert "start and end, in which one pipe waits for another" in every
    assert "start-up of copies and the speed of one core" in every


@pytest.mark.slow
def test_idle_cores_and_many_tiles_are_warned_of() -> None:
    (candidate, *_) = tune(job_of((18000, 32)), max_tiles=1, top=1).candidates
    assert candidate.tile_count < 18000
    slow = tune(job_of((18000, 16)), max_tiles=10**9, top=20000).candidates
    many = [c for c in slow if c.tile_count >= 18000]
    assert many
    assert all("upstream advises fewer than 18000" in c.warnings[0] for c in many)


@pytest.mark.slow
def test_the_objective_ub() -> None:
    job = job_of((1000, 1000))
    fast, small = (tune(job, objective=objective, top=10**6) for objective in OBJECTIVES[:2])
    least = fast.candidates[0].estimate.cycles
    assert all(c.estimate.cycles <= 1.05 * least for c in small.candidates)
    ub_bytes = [c.ub_bytes for c in small.candidates]
    assert ub_bytes == sorted(ub_bytes)
    near = [c for c in fast.candidates if c.estimate.cycles <= 1.05 * least]
    assert min(c.ub_bytes for c in near) == small.candidates[0].ub_bytes
    assert len(near) == len(small.candidates)


@pytest.mark.slow
def test_the_objective_robust() -> None:
    """No tile shape is less bad over all sets, by its worst excess over a set's own best."""
    job = job_of((1000, 1000))
    tiles = legal_tiles(job, MAX_TILES)
    least = {
        name: tune(job, parameters=parameters, top=1).candidates[0].estimate.cycles
        for name, parameters in COST_SETS.items()
    }
    found = tune(job, objective="robust", top=3)
    assert found.objective == "robust"
    worst = [
        max(candidate.estimate.cycles_by_set[name] / least[name] for name in COST_SETS)
        for candidate in found.candidates
    ]
    assert worst == pytest.approx(sorted(worst), abs=1e-6)
    for tile in tiles.clipped[:: len(tiles) // 50]:
        (estimate,) = estimates(job, tile[None], DEFAULT_COST_SET, COST_SETS.values())
        excess = max(estimate.cycles_by_set[name] / least[name] for name in COST_SETS)
        assert excess >= worst[0] - 1e-6


@pytest.mark.slow
def test_contiguous_tiles_win_where_the_figures_say_so() -> None:
    """Rows of 64 are 256 B and 128 B: cut, no block lies on the lines of GM."""
    job = job_of((32, 127, 128, 64))
    for objective in ("time", "robust"):
        best = tune(job, objective=objective, top=1)
        assert best.best[-1] == 64
        assert best.candidates[0].estimate.lost_share == 0
    (cut,) = estimates(job, np.array([[1, 3, 128, 32]]), DEFAULT_COST_SET, COST_SETS.values())
    assert cut.lost_share == pytest.approx(0.3)
    assert cut.cycles > 1.3 * best.candidates[0].estimate.cycles
    unsettled = cut.cycles_by_set["pto-isa-any-address"]
    assert unsettled < 1.03 * best.candidates[0].estimate.cycles_by_set["pto-isa-any-address"]


# --- Stability ---------------------------------------------------------------------------------


def checked_views(result: TuningResult) -> None:
    for name, view in result.views.items():
        own = tune(
            Job(shape=result.shape, bits=result.bits, work=job_of((2,)).work, chip=result.chip),
            parameters=COST_SETS[name],
            top=1,
        )
        assert (view.cost_set, view.best) == (name, own.best)
        assert view.best_cycles == own.candidates[0].estimate.cycles
        assert view.chosen_cycles == result.candidates[0].estimate.cycles_by_set[name]
        assert view.excess >= -1e-9


def test_a_stable_choice() -> None:
    result = tune(job_of((16,)))
    checked_views(result)
    assert result.is_stable
    assert result.stability == "stable: [16] is the best under each of 7 cost sets"


def test_a_choice_that_is_not_stable() -> None:
    result = tune(job_of((64, 256)))
    checked_views(result)
    assert not result.is_stable
    most = max(result.views.values(), key=lambda view: view.excess)
    assert most.excess > 0.02
    assert result.stability == (
        f"not stable: cost set {most.cost_set} prefers {list(most.best)}, and finds "
        f"{list(result.best)} {most.excess:.1%} slower"
    )
    assert result.stability in str(result)


def test_a_set_of_the_users_is_in_the_range() -> None:
    mine = DEFAULT_COST_SET.replaced("mine", write_bytes_per_cycle=60.0)
    result = tune(job_of((64, 256)), parameters=mine)
    assert list(result.views) == [*COST_SETS, "mine"]
    assert result.views["mine"].excess == 0
    assert result.candidates[0].estimate.cost_set == "mine"
    assert "mine" in result.candidates[0].estimate.cycles_by_set


# --- Size --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_large_tensor_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        result = pypto.tune([64, 128, 512, 256], FP32, FP16)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 200e6
    assert result.legal_count > 50000
    assert result.candidates[0].estimate.bound_share > 0.99


# --- pypto.tune --------------------------------------------------------------------------------


def test_the_best_can_be_set() -> None:
    x = pypto.tensor([100, 100], FP32)
    result = pypto.tune(x, FP32, FP16)
    assert result == pypto.tune([100, 100], FP32, FP16)
    assert (result.chip, result.parameters) == (DEFAULT_CHIP, DEFAULT_COST_SET)
    assert (len(result.candidates), result.max_tiles) == (10, 18000)
    with pypto.options():
        pypto.set_vec_tile_shapes(*result.best)
        assert pypto.get_vec_tile_shapes() == list(result.best)


def test_a_result_carries_its_job() -> None:
    result = pypto.tune([64, 96], FP32, FP16, mode=pypto.CAST_CEIL, top=3)
    job = result.job
    assert (job.src, job.dst, job.mode) == (FP32, FP16, pypto.CAST_CEIL)
    assert job.resolution == resolve(A2_A3, f.FP32, f.FP16, RoundMode.CEIL)
    assert (result.shape, result.bits, result.chip) == (job.shape, job.bits, job.chip)
    assert (result.top, result.cost_set) == (3, DEFAULT_COST_SET.name)
    assert result.candidates == tune(job, top=3).candidates
    assert result.plan == plan((64, 96), result.best, job.bits, job.chip) == result.program.plan
    assert result.program.resolution is job.resolution


def test_the_chip_is_that_of_the_context() -> None:
    with pypto.options(chip="Ascend910B1"):
        assert pypto.tune([99], FP32, FP16).chip.name == "Ascend910B1"
        assert pypto.tune([99], FP32, FP16, chip="Ascend910B3").chip.name == "Ascend910B3"


def test_saturation_off_is_more_work() -> None:
    on, off = (pypto.tune([64, 512], FP16, INT8, satmode=satmode) for satmode in SaturationMode)
    assert off.candidates[0].estimate.cycles > on.candidates[0].estimate.cycles
    assert off.bits.tmp == 32


def test_what_cast_would_warn_of_is_noted() -> None:
    (note,) = pypto.tune([64], FP32, FP16, satmode=SaturationMode.OFF).notes
    assert note.startswith("SaturationMode.OFF does not act on FP32 -> FP16")
    (note,) = pypto.tune([64], FP16, INT8, mode=pypto.CAST_ODD).notes
    assert note.startswith("FP16 -> INT8 has no mode CAST_ODD")


def test_a_cost_set_from_a_name_and_a_file(tmp_path: Path) -> None:
    assert pypto.tune([64], FP32, FP16, cost_set="documented").parameters.name == "documented"
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\n[figures]\nread_startup_cycles = 1\n', encoding="utf-8")
    assert pypto.tune([64], FP32, FP16, cost_set=path).parameters.read_startup_cycles == 1


@pytest.mark.parametrize(
    ("shape", "changes", "error", "says"),
    [
        ([9], {"chip": "Ascend1"}, ValueError, "unknown chip 'Ascend1'; known: Ascend910B1, "),
        ([], {}, ShapeError, r"1 to 4 dimensions; shape \[\] has 0"),
        ([1] * 5, {}, ShapeError, r"1 to 4 dimensions; .* has 5"),
        ([4, 0], {}, ShapeError, r"every length of the tensor; shape \[4, 0\]"),
        ([-4, -4], {}, ShapeError, r"every length of the tensor; shape \[-4, -4\]"),
        ([2**31], {}, ShapeError, "at most 2147483647 elements"),
        ([7], {"src": FP16, "dst": DataType.DT_INT4}, ShapeError, "last axis must be even"),
        ([9.0], {}, TypeError, "a shape is 1 to 4 positive ints; got 9.0"),
        ([True], {}, TypeError, "a shape is 1 to 4 positive ints; got True"),
        (9, {}, TypeError, "a pypto Tensor or a shape such as"),
        ("99", {}, TypeError, "a pypto Tensor or a shape such as"),
        ([9], {"dst": INT8}, pypto.UnsupportedCastError, "does not cast FP32 -> INT8"),
        ([9], {"dst": FP32, "src": FP16, "mode": 1}, TypeError, "mode must be a pypto.CastMode"),
        ([9], {"satmode": 0}, TypeError, "satmode must be a pypto.SaturationMode"),
        ([9], {"dst": "fp16"}, TypeError, "dtype must be a pypto.DataType"),
        ([9], {"objective": "speed"}, ValueError, "one of time, ub, robust; got 'speed'"),
        ([9], {"top": 0}, ValueError, "top must be an int of at least 1, not 0"),
        ([9], {"max_tiles": True}, ValueError, "max_tiles must be an int of at least 1, not True"),
        ([9], {"cost_set": "mine"}, ValueError, "unknown cost set 'mine'; known: documented, "),
        ([9], {"cost_set": 5}, TypeError, "cost_set must be a name, a path or a set, not 5"),
    ],
)  # fmt: skip
def test_what_is_refused(
    shape: Any, changes: dict[str, Any], error: type[Exception], says: str
) -> None:
    arguments: dict[str, Any] = {"src": FP32, "dst": FP16} | changes
    with pytest.raises(error, match=says) as caught:
        pypto.tune(shape, arguments.pop("src"), arguments.pop("dst"), **arguments)
    assert "\n" not in str(caught.value)


def test_a_tensor_of_another_dtype_is_refused() -> None:
    with pytest.raises(TypeError, match="the tensor is DT_FP16, and src says DT_FP32"):
        pypto.tune(pypto.tensor([9], FP16), FP32, FP16)
