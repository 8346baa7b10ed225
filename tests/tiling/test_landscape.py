"""`landscape` of tiling/ranking.py, a slice of the legal tile shapes: it agrees with the search."""

from __future__ import annotations

import math

import pytest

import pypto_cast as pypto
from ascend_kernels.vector_work import element_bits, vector_work
from pypto_cast.cast.cast_plan import resolve_cast
from tiling.chips import DEFAULT_CHIP
from tiling.cost import COST_SETS, DEFAULT_COST_SET
from tiling.loads import Job
from tiling.ranking import Cell, CellKind, Landscape, TuningResult, landscape, tune
from tiling.search import legal_tiles

SHAPES = ([1000], [5000000], [40, 300], [3, 7], [9, 5000], [4, 127, 128, 64], [2, 3, 1000], [3])
PAIRS = {
    "fp32-fp16": ("FP32", "FP16"),
    "fp16-int4": ("FP16", "INT4"),
    "int64-fp32": ("INT64", "FP32"),
}


def job_of(shape: list[int], pair: str, satmode: str = "ON") -> Job:
    src, dst = (pypto.DataType[f"DT_{name}"] for name in PAIRS[pair])
    cast = resolve_cast(src, dst, pypto.CAST_NONE, pypto.SaturationMode[satmode])
    bits = element_bits(cast)
    shape = [*shape[:-1], shape[-1] + shape[-1] % 2]
    return Job(shape=tuple(shape), bits=bits, work=vector_work(cast), chip=DEFAULT_CHIP)


def everything(job: Job, max_tiles: int = 18000) -> TuningResult:
    return tune(job, top=10**9, max_tiles=max_tiles)


def cells(found: Landscape) -> list[Cell]:
    return [cell for row in found.cells for cell in row]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_legal_cells_are_those_of_the_search(shape: list[int], pair: str) -> None:
    job = job_of(shape, pair)
    fitting = set(map(tuple, legal_tiles(job, 2**40).asked.tolist()))
    for max_tiles in (18000, 60):
        tiles = legal_tiles(job, max_tiles)
        legal = set(map(tuple, tiles.asked.tolist()))
        best = tune(job, top=1, max_tiles=max_tiles).best
        bounded = None if tiles.exceeds_max_tiles else max_tiles
        found = landscape(job, best, DEFAULT_COST_SET, max_tiles=bounded)
        for cell in cells(found):
            assert (cell.refusal == "") == (cell.tile_shape in legal), cell
            assert (cell.estimate is None) == (cell.refusal != "")
            assert (cell.kind is CellKind.LEGAL) == (cell.refusal == "")
            fits = cell.tile_shape in fitting
            assert (cell.kind is CellKind.TOO_MANY_TILES) == (fits and cell.refusal != "")
        assert best in [cell.tile_shape for cell in cells(found)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [[40, 300], [5, 6, 100], [1000]], ids=str)
def test_costs_are_those_of_tune(shape: list[int]) -> None:
    job = job_of(shape, "fp32-fp16")
    known = {c.tile_shape: c for c in everything(job).candidates}
    found = landscape(job, everything(job).best, DEFAULT_COST_SET, max_tiles=18000)
    legal = [cell for cell in cells(found) if cell.estimate is not None]
    assert len(legal) == found.legal_count > 0
    for cell in legal:
        assert cell.estimate == known[cell.tile_shape].estimate
        assert cell.tile_count == known[cell.tile_shape].tile_count
    assert set(legal[0].estimate.cycles_by_set) == set(COST_SETS)


def test_a_short_axis_is_complete() -> None:
    job = job_of([5, 60], "fp32-fp16")
    found = landscape(job, (5, 64), DEFAULT_COST_SET, max_tiles=18000)
    assert (found.rows, found.cols, found.leading) == ((1, 2, 3, 4, 5), (16, 32, 48, 64), ())
    assert found.unit == 16
    assert found.is_complete


def test_a_long_axis_is_sampled_past_what_fits() -> None:
    job = job_of([40000, 40000], "fp32-fp16")
    best = tune(job, top=1).best
    found = landscape(job, best, DEFAULT_COST_SET, max_tiles=None)
    assert not found.is_complete
    assert len(found.rows) <= 41
    assert len(found.cols) <= 41
    assert best[0] in found.rows
    assert best[1] in found.cols
    assert list(found.rows) == sorted(set(found.rows))
    assert all(col % found.unit == 0 for col in found.cols)
    assert found.cells[0][-1].refusal
    assert found.cells[-1][0].refusal


def test_reasons_name_figure_and_limit() -> None:
    job = job_of([4096, 4096], "fp32-fp16")
    best = tune(job, top=1).best
    found = landscape(job, best, DEFAULT_COST_SET, max_tiles=18000)
    large = found.cells[-1][0]
    assert large.refusal == "two tiles do not fit the 188,160 B of UB that are safe for user code"
    small = found.cells[0][0]
    count = math.prod(-(-4096 // t) for t in small.tile_shape)
    assert small.refusal == f"it makes {count:,} tiles; fewer than 18,000 are allowed"
    without = landscape(job, best, DEFAULT_COST_SET, max_tiles=None)
    assert without.cells[0][0].refusal == ""
    assert without.legal_count > found.legal_count
