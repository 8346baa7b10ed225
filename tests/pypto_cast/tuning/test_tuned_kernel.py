"""The tile shapes of a kernel, ranked: bounds, recordings, the command."""

from __future__ import annotations

import json
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.environment.command import Command, command
from support.programs.upstream_dumps import DUMPS

import pypto_cast as pypto
from ascend_kernels.schedule.planner.cycle_bound import CycleBound
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.task_times import schedule_cycles
from benchmarks.tuned_kernels import SMALL, compared
from pypto_cast.cli.commands.certainty_command import kernel_named
from pypto_cast.kernel.tile_choice import replaced_tiles, tile_calls
from pypto_cast.tuning import kernel_search
from pypto_cast.tuning.kernel_search import _made, _Search, tune_kernel
from tiling.search import tiles_within

__all__ = ["command"]
SOURCE = """\
import pypto_cast as pypto

T = pypto.Tensor([64, 64], pypto.DT_FP32)
R = pypto.Tensor([4, 32], pypto.DT_FP32)

@pypto.jit
def rows(x: R, y: R):
    pypto.set_vec_tile_shapes(4, 32)
    e = pypto.exp(x - pypto.amax(x, -1, keepdim=True))
    y[:] = e / pypto.sum(e, -1, keepdim=True)

@pypto.jit
def turned(x: T, y: T):
    pypto.set_vec_tile_shapes(32, 32)
    t = pypto.transpose(pypto.exp(x), 0, 1)
    pypto.set_vec_tile_shapes(32, 32)
    y[:] = pypto.add(t, t)

@pypto.jit
def looped(x: T, y: T):
    pypto.set_vec_tile_shapes(16, 32)
    for k in pypto.loop(2):
        pypto.set_vec_tile_shapes(16, 64)
        part = pypto.view(x, [32, 64], [k * 32, 0])
        pypto.assemble(pypto.exp(part), [k * 32, 0], y)

W = pypto.Tensor([64, 512], pypto.DT_FP32)

@pypto.jit
def large(x: W, y: W):
    pypto.set_vec_tile_shapes(64, 512)
    e = pypto.exp(x)
    f = pypto.exp(e) + x
    y[:] = e * f

@pypto.jit
def unset(x: T, y: T):
    y[:] = pypto.exp(x)

@pypto.jit
def failing(x: T, y: T):
    raise ZeroDivisionError("of the kernel's own")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(SOURCE)
    return path


def kernel_and_tensors(file: Path, name: str) -> tuple[Any, list[Any]]:
    _, kernel = kernel_named(f"{file}::{name}")
    given = kernel.signature.tensors.values()
    return kernel, [pypto.tensor(list(each.shape), each.dtype) for each in given]


def choose(monkeypatch: pytest.MonkeyPatch, *shapes: tuple[int, ...]) -> None:
    """Have these be all tile shapes of each call."""
    monkeypatch.setattr(kernel_search, "tiles_within", lambda *_: list(shapes))


@pytest.mark.parametrize("name", ["rows", "turned", "looped"])
def test_replaced_graphs_are_those_recorded_anew_and_not_below_the_bound(
    file: Path, name: str
) -> None:
    kernel, tensors = kernel_and_tensors(file, name)
    search = _Search(kernel, tuple(tensors), {}, 1, 10, 60, lambda done, total: None)
    drawn = random.Random(35)
    calls = tile_calls(kernel, *tensors)
    planned = 0
    for _ in range(3):
        tiles = {
            call.place: (drawn.choice([4, 16, 24, 64]), drawn.choice([16, 32, 64]))
            for call in calls
        }
        with replaced_tiles(tiles):
            recorded, _ = kernel._recorded_for_plan(tuple(tensors), {})
            anew = kernel._graphs_of(recorded, recorded.calls)
        assert search._plans.replaced(tiles) == anew
        try:
            with replaced_tiles(tiles):
                schedule = kernel.schedule(*tensors)
        except PlanError:
            continue
        planned += 1
        bound = CycleBound(anew, 48).cycles()
        assert 0 <= bound <= schedule_cycles(schedule).cycles
    assert planned


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *((name, 2) for name in ("cast_1d", "column_sum", "softmax_3d")),
        *(
            pytest.param(name, 30, marks=pytest.mark.exhaustive)
            for name in ("softmax", "swiglu", "layernorm_fp32", "add_3d", "column_amax", "cast_1d")
        ),
    ],
)
@pytest.mark.parametrize("model", ["tasks", "latencies"])
def test_no_drawn_tile_shape_is_below_the_bound(name: str, count: int, model: str) -> None:
    kernel, tensors = kernel_and_tensors(DUMPS / f"{name}.py", name)
    (call,) = tile_calls(kernel, *tensors)
    shape = tuple(map(int, tensors[0].shape))
    drawn = random.Random(name)
    legal = tiles_within(shape, 32, 1 << 14, 1000)
    for tile in drawn.sample([each for each in legal if each[-1] >= 64], count):
        with replaced_tiles({call.place: tile}):
            try:
                schedule = kernel.schedule(*tensors)
            except PlanError:
                continue
            graphs = kernel._graphs_of(*_recorded(kernel, tensors))
        planned = _made(schedule, {}, None, 0, model)
        assert planned is not None
        assert 0 < CycleBound(graphs, 48, model).cycles() <= planned.cycles


@pytest.mark.parametrize("model", ["tasks", "latencies"])
@pytest.mark.parametrize("name", ["rows", "turned"])
def test_bounds_of_many_tile_shapes_are_those_of_each(file: Path, name: str, model: str) -> None:
    """One of them is the tile shape of the other call, so that equal tiles are computed once."""
    kernel, tensors = kernel_and_tensors(file, name)
    search = _Search(kernel, tuple(tensors), {}, 1, 10, 60, lambda done, total: None)
    search._bound = CycleBound(search._plans.graphs, 48, model)
    shapes = [(rows, cols) for rows in (1, 3, 16, 32, 64) for cols in (16, 24, 32, 64)]
    for call in search._calls:
        alone = {
            each: CycleBound(search._plans.replaced({call.place: each}), 48, model).cycles()
            for each in shapes
        }
        assert search._bounds(call.place, shapes) == alone
        assert len({*alone.values()}) > 1


def test_no_drawn_tiling_is_below_the_best() -> None:
    found = compared(SMALL, 20, 60)
    assert found["drawn"] == 20
    assert found["fit"]
    assert found["worst_loss_%"] == 0


def test_a_kernel_without_cycles_is_ranked_by_latencies(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        kernel_search, "schedule_cycles", lambda each: replace(schedule_cycles(each), cycles=None)
    )
    kernel, tensors = kernel_and_tensors(file, "rows")
    found = tune_kernel(kernel, tuple(tensors), {}, top=1)
    assert found.model == "latencies"
    assert "has no cycles by the model tasks" in found.report.standing
    assert found.planned + found.excluded + found.not_fitting == found.looked_at


def test_no_candidate_fits(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, (64, 504))
    kernel, tensors = kernel_and_tensors(file, "large")
    with pytest.raises(PlanError, match=r"fits; kernels.py:\d+: .*set_vec_tile_shapes") as error:
        tune_kernel(kernel, tuple(tensors), {})
    assert "\n" not in str(error.value)


def _recorded(kernel: Any, tensors: list[Any]) -> tuple[Any, Any]:
    recorded, _ = kernel._recorded_for_plan(tuple(tensors), {})
    return recorded, recorded.calls


def test_the_best_is_planned_and_the_kernel_stays(file: Path) -> None:
    kernel, tensors = kernel_and_tensors(file, "rows")
    before = kernel.schedule(*tensors)

    found = kernel.tune(*tensors, top=3)

    assert isinstance(found, pypto.TunedKernel)
    assert list(found.best) == [8]
    assert [each.rank for each in found.candidates] == [1, 2, 3]
    assert found.present is not None
    assert found.candidates[0].cycles <= found.present.cycles
    assert found.planned + found.excluded + found.not_fitting == found.looked_at
    assert found.looked_at + found.left == found.combinations
    assert all(each.reason for each in found.candidates)
    assert kernel.schedule(*tensors) is before
    tile = ", ".join(map(str, found.best[8]))
    assert found.lines == (f"pypto.set_vec_tile_shapes({tile})  # kernels.py:8",)
    assert found._repr_html_().startswith("<div")


def test_several_calls_are_varied_one_at_a_time_and_then_together(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(monkeypatch, (32, 64), (64, 64))
    kernel, tensors = kernel_and_tensors(file, "turned")

    found = tune_kernel(kernel, tuple(tensors), {}, top=40)

    assert list(found.best) == [14, 16]
    assert found.looked_at <= 6 < found.combinations
    assert {each.varied for each in found.candidates} >= {14, 16}


@pytest.mark.parametrize("is_spawned", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_processes_that_plan_ahead_change_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch, is_spawned: bool
) -> None:
    """Threads with pickled plans stand for processes."""

    class Pool(ThreadPoolExecutor):
        def __init__(self, processes: int, **_: object) -> None:
            super().__init__(processes)

        def submit(self, run: Any, /, *given: Any, **named: Any) -> Any:
            return super().submit(pickle.loads(pickle.dumps(run)), *given, **named)

    kernel, tensors = kernel_and_tensors(file, "rows")
    alone = kernel.tune(*tensors, top=3)
    monkeypatch.setattr(kernel_search, "_ALONE_SECONDS", 0)
    if not is_spawned:
        monkeypatch.setattr(kernel_search, "ProcessPoolExecutor", Pool)
    assert kernel.tune(*tensors, top=3, processes=2) == alone


@pytest.mark.parametrize("processes", [0, True, 1.5])
def test_processes_are_a_positive_number(file: Path, processes: Any) -> None:
    kernel, tensors = kernel_and_tensors(file, "rows")
    with pytest.raises(ValueError, match="processes is their number, 1 or more; got"):
        kernel.tune(*tensors, processes=processes)


def test_calls_in_loops_are_candidates(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, (32, 32))
    kernel, tensors = kernel_and_tensors(file, "looped")
    assert 23 in tune_kernel(kernel, tuple(tensors), {}, top=2).best


def test_the_command(command: Command, file: Path) -> None:
    read = json.loads(command("tune", f"{file}::rows", "--top", 2, "--json").out)
    assert read["report_kind"] == "tune-kernel"
    assert len(read["candidates"]) == 2
    written = command("tune", f"{file}::rows", "--write")
    assert written.out == f"{read['lines'][0]}\n"
    shown = command("tune", f"{file}::rows", "--top", 2, "--chip", "Ascend910B3")
    assert "combinations looked at" in " ".join(shown.out.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("::none", "has no kernel none; it has rows, turned, looped, large, unset, failing"),
        ("::failing", "of the kernel's own"),
        ("::unset", "calls no set_vec_tile_shapes before an operation"),
        ("::rows --top 0", "--top is the number of candidates to show, 1 or more; got 0"),
        ("::rows --from fp32", "--from would change nothing beside"),
        ("::rows --to fp32", "--to would change nothing beside"),
        ("::rows --shape 64,64", "--shape is NAME=N,N"),
        ("::rows --release 9", "release"),
    ],
)
def test_errors_of_a_kernel_are_one_line(
    command: Command, file: Path, words: str, says: str
) -> None:
    first, *rest = words.split()
    assert says in command("tune", f"{file}{first}", *rest).error


def test_the_former_name_of_config_line_warns(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--shape", "64,96", "--from", "fp32", "--to", "fp16", "--config", "c.json")
    ran = command("tune", *words, "--kernel", "elsewhere.py:29")
    assert ran.code == 0
    assert "tune --kernel is --config-line now" in ran.err
