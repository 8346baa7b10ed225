"""The tile shapes of a kernel, ranked: bounds and recordings."""

from __future__ import annotations

import json
import pickle
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.programs.upstream_dumps import DUMPS

import pypto_cast as pypto
from ascend_kernels.schedule.planner.cycle_bound import CycleBound
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.views.task_times import schedule_cycles
from benchmarks.tuned_kernels import SMALL, compared
from pypto_cast.cli.commands.certainty_command import kernel_named
from pypto_cast.kernel.tile_choice import replaced_tiles, tile_recording
from pypto_cast.tuning import candidate_plans, kernel_search
from pypto_cast.tuning.candidate_plans import candidate_of
from pypto_cast.tuning.kernel_search import _reasoned, _Search, tune_kernel
from pypto_cast.tuning.sweep.jobs import open_results
from tiling.search import tiles_within

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

@pypto.jit
def misnamed(x: T, y: T):
    y[:] = pypto.add(x, other)
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
    calls = tile_recording(kernel, tensors, {}).calls
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
    (call,) = tile_recording(kernel, tensors, {}).calls
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
        planned = candidate_of(schedule, {}, None, 0, model)
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
        candidate_plans, "schedule_cycles", lambda each: replace(schedule_cycles(each), cycles=None)
    )
    kernel, tensors = kernel_and_tensors(file, "rows")
    found = tune_kernel(kernel, tuple(tensors), {}, top=1)
    assert found.model == "latencies"
    assert found.standing == (
        "model latencies: cycles that the scheduler of upstream's release 0.2.0 counts, not of a "
        "device"
    )
    assert "an opcode has no cycles by the model tasks" in found.notes
    assert found.planned + found.excluded + found.not_fitting == found.looked_at


def test_counts_are_those_of_the_model_that_ranks(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel as it stands does not fit, and the first that does has no cycles."""
    choose(monkeypatch, (64, 512), (64, 504), (64, 496), (64, 256), (32, 256), (16, 512))
    monkeypatch.setattr(
        candidate_plans, "schedule_cycles", lambda each: replace(schedule_cycles(each), cycles=None)
    )
    kernel, tensors = kernel_and_tensors(file, "large")
    told = list[tuple[int, int]]()

    found = tune_kernel(kernel, tuple(tensors), {}, progress=lambda *each: told.append(each))

    assert (found.model, found.present) == ("latencies", None)
    assert found.not_fitting >= 1
    assert found.planned + found.excluded + found.not_fitting == found.looked_at
    assert found.looked_at + found.left == found.combinations == 6
    assert max(told) == told[-1] == (6, 6)


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
    assert json.loads(found.to_json())["best"] == {"8": list(found.best[8])}
    shown = str(found).splitlines()
    assert shown[0] == f"rows: 3 candidates; as it stands {found.present.cycles:,} cycles"
    assert shown[1] == f"  {found.lines[0]}"
    assert shown[2].endswith(found.candidates[0].reason)


def test_several_calls_are_varied_one_at_a_time_and_then_together(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(monkeypatch, (32, 64), (64, 64))
    kernel, tensors = kernel_and_tensors(file, "turned")

    found = tune_kernel(kernel, tuple(tensors), {}, top=40)

    assert list(found.best) == [14, 16]
    assert found.looked_at <= 6 < found.combinations
    assert {each.varied for each in found.candidates} >= {14, 16}


@pytest.mark.slow
def test_of_equal_cycles_the_tile_shape_that_the_kernel_sets_is_first(file: Path) -> None:
    """A row of tiles of a view is one task under any of these."""
    kernel, tensors = kernel_and_tensors(file, "looped")

    found = tune_kernel(kernel, tuple(tensors), {}, top=2, seconds=5)

    assert found.present is not None
    if found.candidates[0].cycles == found.present.cycles:
        assert dict(found.best) == dict(found.present.tiles)
        assert found.candidates[0].reason.endswith("the one that the kernel sets is first")


def test_a_tile_shape_that_is_best_as_it_stands_stays_in_all_together(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three calls the second and the third are better with the other tile shape."""
    choose(monkeypatch, (16, 64))
    file.write_text(
        SOURCE
        + """
@pypto.jit
def thrice(x: T, y: T, z: T, w: T):
    pypto.set_vec_tile_shapes(64, 64)
    y[:] = pypto.exp(x)
    pypto.set_vec_tile_shapes(1, 64)
    z[:] = pypto.exp(x)
    pypto.set_vec_tile_shapes(1, 64)
    w[:] = pypto.exp(x)
"""
    )
    kernel, tensors = kernel_and_tensors(file, "thrice")

    found = tune_kernel(kernel, tuple(tensors), {}, top=9)

    assert [*found.best.values()] == [(64, 64), (16, 64), (16, 64)]
    assert {tuple(each.tiles.values()) for each in found.candidates} >= {((16, 64),) * 3}
    assert (found.looked_at, found.left) == (6, 0)


def test_calls_share_the_time(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan takes 20 seconds by a clock that the test sets."""
    choose(monkeypatch, *((rows, 64) for rows in range(1, 20)))
    kernel, tensors = kernel_and_tensors(file, "turned")
    moment = time.time()
    plan = candidate_plans.planned_schedule

    def planned(*given: Any, **named: Any) -> Any:
        nonlocal moment
        moment += 20
        return plan(*given, **named)

    monkeypatch.setattr(candidate_plans, "planned_schedule", planned)
    monkeypatch.setattr(time, "time", lambda: moment)
    found = tune_kernel(kernel, tuple(tensors), {}, seconds=130, top=20)

    assert {each.varied for each in found.candidates} >= {14, 16}
    assert re.search(r"\d candidates? left, whose bound .*; give more seconds", str(found))


def test_counts_are_of_the_candidates(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, (32, 64), (64, 64), (16, 64))
    kernel, tensors = kernel_and_tensors(file, "turned")

    text = " ".join(str(tune_kernel(kernel, tuple(tensors), {})).split())

    assert re.search(r"\b8 of 8 candidates looked at: .*; 0 left; calls are varied one at", text)
    assert "all together they have 16 combinations" in text


def test_a_slow_candidate_is_given_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is over while the third is being planned, by a clock that the test sets."""
    choose(monkeypatch, (8, 64), (4, 64), (2, 64), (1, 64))
    kernel, tensors = kernel_and_tensors(file, "looped")
    begun, ended, moment = 0, 0, time.time()
    plan = candidate_plans.planned_schedule

    def planned(*given: Any, **named: Any) -> Any:
        nonlocal begun, ended, moment
        begun += 1
        moment += 1e6 * (begun == 3)
        made = plan(*given, **named)
        ended += 1
        return made

    monkeypatch.setattr(candidate_plans, "planned_schedule", planned)
    monkeypatch.setattr(time, "time", lambda: moment)
    found = tune_kernel(kernel, tuple(tensors), {}, seconds=100)

    assert (begun, ended, found.planned) == (3, 2, 2)
    assert len(found.candidates) == 2
    assert found.left > 0
    assert f"; {found.left} left" in str(found)


def test_time_that_is_over_is_over_for_every_call(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel as it stands does not fit, and the first candidate that does comes late."""
    choose(monkeypatch, (32, 64), (64, 64), (16, 64))
    kernel, tensors = kernel_and_tensors(file, "turned")
    begun, moment = 0, time.time()
    plan = candidate_plans.planned_schedule

    def planned(*given: Any, **named: Any) -> Any:
        nonlocal begun, moment
        begun += 1
        if begun == 1:
            raise PlanError("no room")
        made = plan(*given, **named)
        moment += 1e6
        return made

    monkeypatch.setattr(candidate_plans, "planned_schedule", planned)
    monkeypatch.setattr(time, "time", lambda: moment)
    found = tune_kernel(kernel, tuple(tensors), {}, seconds=100)

    assert (begun, found.planned, len(found.candidates)) == (2, 1, 1)
    assert re.search(r"\d candidates? left, whose bound .*; give more seconds", str(found))


@pytest.mark.parametrize("seconds", [-1, float("nan"), True, "60", None])
def test_a_limit_of_time_is_a_number_of_seconds(file: Path, seconds: Any) -> None:
    kernel, tensors = kernel_and_tensors(file, "rows")
    with pytest.raises(ValueError, match="seconds is a limit of time of 0 or more"):
        tune_kernel(kernel, tuple(tensors), {}, seconds=seconds)


@pytest.mark.parametrize("figure", ["tasks", "busy_cores", "moved_bytes", "pipe_cycles"])
def test_one_of_a_thing_is_no_plural(file: Path, figure: str) -> None:
    kernel, tensors = kernel_and_tensors(file, "rows")
    found = tune_kernel(kernel, tuple(tensors), {}, top=1).candidates[0]
    counts = (2, 1) if figure == "busy_cores" else (1, 2)  # fewer cores make no cycles less
    one, other = (
        replace(found, cycles=found.cycles + apart, **{figure: count})
        for apart, count in enumerate(counts)
    )

    text = " ".join(each.reason for each in _reasoned([one, other], {}))

    assert re.search(r"\b1 (task|busy core|byte moved|cycle of \w+) instead of 2", text)
    assert "1 cycle less than place 2" in text


def test_a_reason_is_none_that_speaks_against_the_place(file: Path) -> None:
    kernel, tensors = kernel_and_tensors(file, "rows")
    best = tune_kernel(kernel, tuple(tensors), {}, top=1).candidates[0]
    worse = replace(best, cycles=best.cycles + 9, moved_bytes=best.moved_bytes - 1)

    first, second = (each.reason for each in _reasoned([best, worse], {}))

    assert first.endswith("9 cycles less than place 2: other leaves")
    assert second.endswith("9 cycles more than place 1: other leaves")


def test_of_equal_last_axes_none_is_said_to_be_longer(file: Path) -> None:
    kernel, tensors = kernel_and_tensors(file, "rows")
    best = tune_kernel(kernel, tuple(tensors), {}, top=1).candidates[0]
    one, other = (replace(best, tiles={9: tile}) for tile in ((1, 2, 8), (2, 1, 8)))

    for each in _reasoned([one, other], {}):
        assert each.reason.endswith("the one longer on the last axis that differs is first")


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
        monkeypatch.setattr(kernel_search, "spawned_pool", Pool)
    assert kernel.tune(*tensors, top=3, processes=2) == alone


@pytest.mark.parametrize("model", ["tasks", "latencies"])
def test_a_search_resumes_from_the_candidates_that_are_kept(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """Interrupted after three plans, then to its end, then without any plan but the confirmed."""
    if model == "latencies":
        monkeypatch.setattr(
            candidate_plans,
            "schedule_cycles",
            lambda each: replace(schedule_cycles(each), cycles=None),
        )
    choose(monkeypatch, (64, 512), (64, 504), (64, 256), (32, 512), (32, 256), (16, 512), (8, 512))
    kernel, tensors = kernel_and_tensors(file, "large")
    plain = tune_kernel(kernel, tuple(tensors), {}, top=3)
    whole = candidate_plans.planned_schedule
    planned = 0

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal planned
        planned += 1
        if planned == 4:
            raise KeyboardInterrupt
        return whole(*given, **named)

    monkeypatch.setattr(candidate_plans, "planned_schedule", counted)
    with open_results(tmp_path / "kept.jsonl") as kept, pytest.raises(KeyboardInterrupt):
        tune_kernel(kernel, tuple(tensors), {}, top=3, kept=kept)
    first = (tmp_path / "kept.jsonl").read_text().splitlines()
    assert len(first) == 3
    with open_results(tmp_path / "kept.jsonl") as kept:
        resumed = tune_kernel(kernel, tuple(tensors), {}, top=3, kept=kept)
    held = (tmp_path / "kept.jsonl").read_text().splitlines()
    assert held[:3] == first
    assert planned - 4 == len(held) - 3 > 0
    with open_results(tmp_path / "kept.jsonl") as kept:
        again = tune_kernel(kernel, tuple(tensors), {}, top=3, kept=kept)
    assert planned == len(held) + 1
    assert resumed.notes[-1] == "3 were planned by an earlier search"
    assert again.notes[-1] == f"{len(held)} were planned by an earlier search"
    assert replace(resumed, notes=plain.notes) == replace(again, notes=plain.notes) == plain
    assert {json.loads(each)["outcome"] for each in held} >= {"planned", "not planned"}


def test_what_is_kept_is_of_one_kernel_chip_release_and_code(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tuned(name: str) -> int:
        """The number of candidates that were planned, and kept."""
        kernel, tensors = kernel_and_tensors(file, name)
        with open_results(tmp_path / "kept.jsonl") as kept:
            tune_kernel(kernel, tuple(tensors), {}, top=1, kept=kept)
        return len((tmp_path / "kept.jsonl").read_text().splitlines())

    first = tuned("rows")
    assert tuned("rows") == first
    with pypto.options(chip="Ascend910B4"):
        second = tuned("rows")
    with pypto.options(release="0.2.0"):
        third = tuned("rows")
    file.write_text(SOURCE.replace("set_vec_tile_shapes(4, 32)", "set_vec_tile_shapes(2, 32)"))
    assert first < second < third == tuned("rows")
    file.write_text(SOURCE.replace("pypto.exp(x - ", "pypto.exp(x + "))
    assert third < (fourth := tuned("rows"))
    monkeypatch.setattr(candidate_plans, "code_version", lambda: "another")
    assert fourth < tuned("rows")


@pytest.mark.parametrize("processes", [0, True, 1.5])
def test_processes_are_a_positive_number(file: Path, processes: Any) -> None:
    kernel, tensors = kernel_and_tensors(file, "rows")
    with pytest.raises(ValueError, match="processes is their number, 1 or more; got"):
        kernel.tune(*tensors, processes=processes)


def test_calls_in_loops_are_candidates(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, (32, 32))
    kernel, tensors = kernel_and_tensors(file, "looped")
    assert 23 in tune_kernel(kernel, tuple(tensors), {}, top=2).best


def test_without_bounds_the_first_make_about_as_many_tiles(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The smallest tile makes most tasks, whose plan may take all the time."""
    choose(monkeypatch, (1, 8), (4, 8), (32, 32))
    planned = []
    plan = _Search._planned_once

    def noted(search: _Search, tiles: Any, *given: Any) -> Any:
        planned.extend(tiles.values())
        return plan(search, tiles, *given)

    monkeypatch.setattr(_Search, "_planned_once", noted)
    kernel, tensors = kernel_and_tensors(file, "looped")

    tune_kernel(kernel, tuple(tensors), {})

    assert planned[:3] == [(32, 32), (4, 8), (1, 8)]
