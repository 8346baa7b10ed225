"""Cycles of operations, tasks and runs as upstream's simulator counts them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.programs.upstream_dumps import unpacked

import pypto_cast as pypto
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.simulated_cycles import (
    STANDINGS,
    TASKS,
    CycleForm,
    body_cycles,
    leaf_cycles,
    simulated_cycles,
)
from ascend_kernels.schedule.views.task_times import schedule_cycles
from benchmarks.simulated_cycles import rank_correlation

_TIMELINE = {
    **{"COPY_IN": 1748, "PAIRMAX": 2528, "ROWMAX_SINGLE": 82, "EXPAND": 31, "SUB": 259},
    **{"EXP": 281, "PAIRSUM": 2567, "ROWSUM_SINGLE": 17, "DIV": 301, "CAST": 151},
    **{"COPY_OUT": 520},
}
"""Of one task of `softmax` in the timeline that pypto 0.2.0 writes."""
_TASK = 11662


@pypto.frontend.jit
def softmax(
    x: pypto.Tensor([128, 512], pypto.DT_FP32), out: pypto.Tensor([128, 512], pypto.DT_FP16)
) -> None:
    pypto.set_vec_tile_shapes(32, 256)
    e = pypto.exp(x - pypto.amax(x, dim=-1, keepdim=True))
    out[:] = pypto.cast(e / pypto.sum(e, dim=-1, keepdim=True), pypto.DT_FP16)


@pytest.fixture(scope="module")
def planned() -> Schedule:
    return softmax.schedule(*_declared())


def _declared() -> tuple[pypto.Tensor, pypto.Tensor]:
    return pypto.tensor([128, 512], pypto.DT_FP32), pypto.tensor([128, 512], pypto.DT_FP16)


def test_operations_and_a_task_are_those_of_the_wheels_timeline(planned: Schedule) -> None:
    (leaf,) = planned.leaves
    operations = [each for each in leaf.operations if each.flag is None]
    assert {each.opcode for each in operations} == _TIMELINE.keys()
    for each in operations:  # the forms are fitted: a cycle or two are lost to rounding
        assert abs((simulated_cycles(each) or 0) - _TIMELINE[each.opcode]) <= 2, each.opcode
    cycles, missing = leaf_cycles(leaf)
    assert cycles is not None
    assert (abs(cycles - _TASK) <= 2 * len(operations), missing) == (True, frozenset())


def test_what_was_not_measured_is_not_estimated(planned: Schedule) -> None:
    (leaf,) = planned.leaves
    unknown = replace(
        leaf,
        operations=tuple(
            replace(each, opcode="BRCB") if each.opcode == "EXP" else each
            for each in leaf.operations
        ),
    )
    assert leaf_cycles(unknown) == (None, frozenset({"BRCB"}))
    total = schedule_cycles(replace(planned, leaves=(unknown,)))
    assert (total.cycles, total.not_estimated, total.tasks) == (None, ("BRCB",), 4)
    one_size = CycleForm(once=0, each=11, per_kib=0, least_bytes=4, most_bytes=4)
    assert (one_size.cycles(2, 4), one_size.cycles(1, 8)) == (22, None)
    cube = schedule_cycles(replace(planned, leaves=(replace(leaf, core="AIC"),)))
    assert (cube.cycles, cube.not_estimated) == (None, ("a leaf of the cube",))


def test_tasks_are_handed_out_and_looked_at_one_after_another(planned: Schedule) -> None:
    (body,) = planned.bodies
    first, second, *_ = body.tasks
    alone = replace(body, tasks=(first,))
    assert body_cycles(alone, [1000], 48) == 1000 + 390
    assert body_cycles(replace(body, tasks=(first,) * 4), [1000], 48) == 1000 + 4 * 390
    # One core: the second begins when the first is done.
    assert body_cycles(replace(body, tasks=(first,) * 2), [1000], 1) == 2 * 1000 + 390
    chain = replace(body, tasks=(replace(first, successors=(1,)), second))
    assert body_cycles(chain, [1000], 48) == 2 * (1000 + 390)


def test_all_runs_count(tmp_path: Path) -> None:
    loops = pypto.read_schedule(unpacked("loop_barrier", tmp_path))
    total = schedule_cycles(loops)
    once = [
        body_cycles(body, [leaf_cycles(leaf)[0] or 0 for leaf in loops.leaves], total.cores)
        for body in loops.bodies
    ]
    assert (total.tasks, total.not_estimated) == (6, ())
    assert total.cycles == 4 * once[0] + 2 * once[1] > 0
    open_ended = schedule_cycles(pypto.read_schedule(unpacked("loop_rows", tmp_path)))
    assert (open_ended.cycles, open_ended.tasks) == (None, 4)
    assert "a loop of an open number of runs" in open_ended.not_estimated


def test_an_estimate_names_its_model(planned: Schedule) -> None:
    found = softmax.estimate(*_declared(), model="tasks")
    assert (found.schedule, found.cycles) == (planned, schedule_cycles(planned).cycles)
    assert str(found).startswith(f"kernel softmax: {found.cycles:,} cycles, model tasks, 4 tasks")
    assert STANDINGS[TASKS] in str(found)
    assert found.report.standing == STANDINGS[TASKS]
    assert "model loop" in str(found)
    assert "<table" in found._repr_html_()

    loop = softmax.estimate(*_declared(), model="loop")
    assert loop == softmax.estimate(*_declared())
    unknown: Any = "both"
    with pytest.raises(ValueError, match="unknown model 'both'; known: tasks, loop"):
        softmax.estimate(*_declared(), model=unknown)
    with pytest.raises(ValueError, match="the model tasks takes no cost set, here documented"):
        softmax.estimate(*_declared(), model="tasks", **{"cost": "documented"})


def test_rank_correlation() -> None:
    assert rank_correlation([1, 5, 9], [10, 20, 30]) == pytest.approx(1)
    assert rank_correlation([1, 5, 9], [30, 20, 10]) == pytest.approx(-1)
    assert rank_correlation([1, 2, 2, 4], [1, 3, 2, 4]) == pytest.approx(math.sqrt(0.9))
    assert math.isnan(rank_correlation([1, 1], [1, 2]))
