"""The command that lays planned schedules beside those of upstream's wheel."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from support.programs.upstream_dumps import unpacked

import pypto_cast as pypto
from ascend_kernels.schedule.parts import Buffer, Leaf, TileOperation
from ascend_kernels.schedule.views.schedule_differences import PARTS, differences, has_spill
from benchmarks import planned_schedules
from benchmarks.planned_schedules import LIST, Case, Verdict, drawn, judged, listed
from benchmarks.upstream_kernels import written

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
Change = Callable[[Leaf], Leaf]


def in_operation(index: int, change: Callable[[TileOperation], TileOperation]) -> Change:
    return lambda leaf: replace(
        leaf,
        operations=tuple(
            change(each) if place == index else each for place, each in enumerate(leaf.operations)
        ),
    )


def in_buffers(change: Callable[[Buffer], Buffer]) -> Change:
    return lambda leaf: replace(leaf, buffers=tuple(map(change, leaf.buffers)))


CHANGES: dict[str, tuple[Change, tuple[str, ...]]] = {
    "nothing": (lambda leaf: leaf, ()),
    "line": (in_operation(0, lambda each: replace(each, line=99)), ()),
    "latency": (
        in_operation(0, lambda each: replace(each, latency=1)),
        ("operations", "order"),
    ),
    "buffers moved": (
        in_buffers(lambda each: replace(each, address=each.address + 32)),
        ("addresses", "peak"),
    ),
    "flag left out": (
        lambda leaf: replace(leaf, operations=tuple(x for x in leaf.operations if not x.flag)),
        ("flags",),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_parts_that_differ_are_named(change: str, tmp_path: Path) -> None:
    schedule = pypto.read_schedule(unpacked("abs_1d", tmp_path))
    (leaf, *others) = schedule.leaves
    changed, parts = CHANGES[change]
    spoiled = replace(schedule, leaves=(changed(leaf), *others))
    assert differences(spoiled, schedule) == parts


def test_a_task_that_copies_elsewhere_is_another(tmp_path: Path) -> None:
    schedule = pypto.read_schedule(unpacked("abs_1d", tmp_path))
    (body,) = schedule.bodies
    fewer = replace(schedule, bodies=(replace(body, tasks=body.tasks[:-1]),))
    assert differences(fewer, schedule) == ("tasks",)
    other = pypto.read_schedule(unpacked("softmax_ragged", tmp_path))
    assert differences(other, schedule) == PARTS[1:]  # both run one body


def test_a_slot_that_no_body_reads_is_no_difference(tmp_path: Path) -> None:
    """Upstream leaves in one whatever a name of Python still stands for."""
    schedule = pypto.read_schedule(unpacked("loop_sum", tmp_path))
    left = replace(
        schedule,
        bodies=tuple(
            replace(
                body,
                temporaries=tuple(
                    replace(x, writes_slots=(*x.writes_slots, 99) if x.writes_slots else ())
                    for x in body.temporaries
                ),
            )
            for body in schedule.bodies
        ),
    )
    assert left != schedule
    assert differences(left, schedule) == ()


def test_spills_are_known(tmp_path: Path) -> None:
    found = {name: has_spill(pypto.read_schedule(unpacked(name, tmp_path))) for name in SPILLS}
    assert found == SPILLS


SPILLS = {"spill": True, "abs_1d": False, "softmax": False}


def test_drawn_kernels_are_planned_and_executed(capsys: pytest.CaptureFixture[str]) -> None:
    assert planned_schedules.main(["--drawn", "4", "--seed", "4", "--processes", "1"]) == 0
    assert "| planned and executed | 4 |" in capsys.readouterr().out


def test_drawn_kernels_are_those_of_their_seed() -> None:
    texts = [case.kernel.text for case in islice(drawn(3), 8)]
    assert texts == [case.kernel.text for case in islice(drawn(3), 8)]
    assert texts[5:] == [case.kernel.text for case in islice(drawn(3, 5), 3)]
    assert [case.dims for case in islice(drawn(3), 8)] == [1, 2, 3, 4] * 2
    assert len(set(texts)) == 8


def test_a_kernel_that_is_not_planned_is_refused_with_a_reason(tmp_path: Path) -> None:
    kernel = written("gather_topk", "8x256:float32 8x8:float32 8x8:int32", "8x64")
    result = judged(Case(group="written", kernel=kernel), tmp_path, None)
    assert result.verdict is Verdict.REFUSED
    assert result.why.startswith("TOPK: rows of 256 elements that upstream cuts into tiles, which")


def test_the_list_has_kernels_of_all_dimensions() -> None:
    cases = list(listed(LIST))
    with LIST.open(newline="", encoding="utf-8") as file:
        assert len(cases) == len(list(csv.DictReader(file)))
    assert len({case.kernel.id for case in cases}) == len(cases) >= 150
    assert min(Counter(case.dims for case in cases)[dims] for dims in (1, 3, 4)) >= 40


def test_a_dump_without_control_flow_is_not_compared(tmp_path: Path) -> None:
    """The wheel stopped behind the leaves, as it does at a sum in a nested loop."""
    kernel = replace(written("clip_0", "300:float32 300:float32", "128"), id="abs_1d")
    (unpacked("abs_1d", tmp_path) / "dyn_topo.txt").unlink(missing_ok=True)
    for path in (tmp_path / "abs_1d").glob("Pass_36*/*_ROOT.json"):
        path.unlink()
    for path in (tmp_path / "abs_1d" / "kernel_aicpu").glob("controlFlow*"):
        path.unlink()
    result = judged(Case(group="written", kernel=kernel), tmp_path, None)
    assert result.verdict is Verdict.NOT_COMPILED
    assert "the compiler stopped before it" in result.why
