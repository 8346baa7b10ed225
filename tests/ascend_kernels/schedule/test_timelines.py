"""Timelines beside ours: those of upstream's simulator as they are, and with something planted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.environment.command import Command, command
from support.programs.upstream_dumps import unpacked

import pypto_cast as pypto
from ascend_kernels.schedule.reader.dump_files import DumpError
from ascend_kernels.schedule.reader.timeline_files import TIMELINES, read_timeline, task_places
from ascend_kernels.schedule.views.timeline_differences import TimelineComparison, compare_timeline

__all__ = ["command"]

TASKS, OPERATIONS, TRACE = TIMELINES
CLOCK_HZ = 1_850_000_000
Change = Callable[[list[Any]], object]


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("timeline", tmp_path_factory.mktemp("dump"))


def _compared(dump: Path, path: Path) -> TimelineComparison:
    places = task_places(pypto.read_schedule(dump), dump, None)
    return compare_timeline(pypto.read_schedule(dump), places, read_timeline(path, CLOCK_HZ))


def _planted(dump: Path, folder: Path, name: str, change: Change) -> TimelineComparison:
    document = json.loads((dump / name).read_text())
    change(document)
    path = folder / "planted.json"
    path.write_text(json.dumps(document))
    return _compared(dump, path)


def _of_device(document: list[Any]) -> None:
    """A timeline as a device's runtime writes it: ticks of 50 MHz, no word of the simulator's."""
    document[:] = [core for core in document if core["tasks"]]
    for core in document:
        for task in core["tasks"]:
            del task["completeSeq"]
            for end in ("execStart", "execEnd"):
                task[end] = 10**9 + round(task[end] * 50e6 / CLOCK_HZ)


def _task(document: list[Any], number: int) -> dict[str, Any]:
    tasks = (x for core in document if core["coreType"] == "AIV" for x in core["tasks"])
    return next(task for task in tasks if task["taskId"] == number)


@pytest.mark.parametrize("name", TIMELINES)
def test_the_simulators_own_timelines_differ_in_nothing(dump: Path, name: str) -> None:
    found = _compared(dump, dump / name)
    assert (found.differing, found.unknown) == (0, ())
    assert len(found.tasks) + len(found.operations) == (10 if name == OPERATIONS else 16)


def test_a_timeline_of_a_device_is_read_by_its_clock(dump: Path, tmp_path: Path) -> None:
    found = _planted(dump, tmp_path, TASKS, _of_device)
    assert (found.timeline.origin, found.differing) == ("device", 0)
    assert len(found.tasks) == 16
    for each in found.tasks:
        assert each.cycles is not None
        assert each.known_cycles is not None
        assert abs(each.cycles - each.known_cycles) <= 37  # a tick


def _without(document: list[Any]) -> None:
    for core in document:
        core["tasks"] = [task for task in core["tasks"] if task["taskId"] != 2]


def _twice(document: list[Any]) -> None:
    idle = next(x for x in document if x["coreType"] == "AIV" and not x["tasks"])
    idle["tasks"].append(dict(_task(document, 2)))


def _longer(document: list[Any]) -> None:
    task = _task(document, 5)
    task["execEnd"] += 2 * (task["execEnd"] - task["execStart"])


def _too_early(document: list[Any]) -> None:
    first, second = _task(document, 1), _task(document, 5)
    length = second["execEnd"] - second["execStart"]
    second["execStart"] = first["execStart"] + 10
    second["execEnd"] = second["execStart"] + length


def _exchanged(document: list[Any]) -> None:
    first, second = _task(document, 3), _task(document, 4)
    first["taskId"], second["taskId"] = 4, 3


def _unknown(document: list[Any]) -> None:
    _task(document, 2)["taskId"] = 77


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_without, {2: "missing"}),
        (_twice, {2: "there 2 times"}),
        (_longer, {5: "takes 3.00 times as long"}),
        (_too_early, {5: "begins before task 2 ends"}),
        (_exchanged, {3: "begins as number 4, not 3", 4: "begins as number 3, not 4"}),
        (_unknown, {2: "missing"}),
    ],
    ids=lambda x: x.__name__.strip("_") if callable(x) else "",
)
@pytest.mark.parametrize("is_device", [False, True], ids=["simulator", "device"])
def test_what_is_planted_in_a_task_is_named(
    dump: Path, tmp_path: Path, change: Change, words: dict[int, str], is_device: bool
) -> None:
    def both(document: list[Any]) -> None:
        change(document)
        if is_device:
            _of_device(document)

    found = _planted(dump, tmp_path, TASKS, both)
    places = {x.key: (x.run, x.task) for x in task_places(pypto.read_schedule(dump), dump, None)}
    by_task = {(x.run, x.task): x.words for x in found.tasks}
    for number, text in words.items():
        told = by_task[places[0, number]]
        close = [x for x in told if x.startswith("takes")]
        assert text in told or (is_device and close and text.startswith("takes"))
    if change is not _too_early:  # that changes whose turn it is
        assert {key for key, told in by_task.items() if told} == {places[0, x] for x in words}
    assert len(found.unknown) == (change is _unknown)


def _logs(document: list[Any]) -> list[dict[str, Any]]:
    return [core["pipeLogs"] for core in document if core.get("pipeLogs", {}).get("VECTOR_ALU")]


def _no_exp(document: list[Any]) -> None:
    for logs in _logs(document):
        kept = [log for log in logs["VECTOR_ALU"] if " EXP " not in log["tileOp"]]
        logs["VECTOR_ALU"] = kept


def _slow_add(document: list[Any]) -> None:
    for logs in _logs(document):
        for log in logs["VECTOR_ALU"]:
            log["execEnd"] += 100 * (" ADD " in log["tileOp"])


def _add_first(document: list[Any]) -> None:
    for logs in _logs(document):
        entries = {log["tileOp"].split()[1]: log for log in logs["VECTOR_ALU"]}
        if "ADD" in entries:
            one, other = entries["EXP"], entries["ADD"]
            one["tileOp"], other["tileOp"] = other["tileOp"], one["tileOp"]


@pytest.mark.parametrize(
    ("change", "opcode", "word"),
    [
        (_no_exp, "EXP", "missing"),
        (_slow_add, "ADD", "takes 1.85 times as long"),
        (_add_first, "EXP", "ADD is in its turn"),
    ],
    ids=lambda x: x.__name__.strip("_") if callable(x) else "",
)
def test_what_is_planted_in_an_operation_is_named(
    dump: Path, tmp_path: Path, change: Change, opcode: str, word: str
) -> None:
    found = _planted(dump, tmp_path, OPERATIONS, change)
    (told,) = (each.words for each in found.operations if each.opcode == opcode)
    assert word in told
    others = {each.opcode for each in found.operations if each.words} - {opcode}
    assert others <= {"ADD"}


def _cut(text: str) -> str:
    return text[: len(text) // 2]


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (TASKS, _cut, "planted.json"),
        (TASKS, lambda _: "[]", "no task of a vector core"),
        (TASKS, lambda _: '{"a": 1}', "neither a list of cores nor a trace"),
        (TASKS, lambda text: text.replace('"taskId"', '"number"'), "'taskId' is missing"),
        (TASKS, lambda text: text.replace('"execEnd": ', '"execEnd": -'), "ends before it begins"),
        (OPERATIONS, lambda text: text.replace("ask[", "asc["), "no operation of a task"),
        (TRACE, lambda text: text.replace('"taskId"', '"number"'), "have no taskId"),
    ],
)
def test_a_file_that_is_no_timeline_is_refused(
    dump: Path, tmp_path: Path, name: str, change: Callable[[str], str], said: str
) -> None:
    path = tmp_path / "planted.json"
    path.write_text(change((dump / name).read_text()))
    with pytest.raises(DumpError, match=r"planted\.json: .") as error:
        read_timeline(path, CLOCK_HZ)
    assert said in str(error.value)


def test_a_dump_without_its_run_is_refused(tmp_path: Path) -> None:
    folder = unpacked("timeline", tmp_path)
    topology = next(folder.glob("**/dyn_topo.txt"))
    lines = topology.read_text().splitlines()
    topology.write_text("\n".join([*lines[:2], lines[2].replace(",10005,", ",5,")]))
    schedule = pypto.read_schedule(folder)
    with pytest.raises(DumpError, match="of a root that is not in the dump"):
        task_places(schedule, folder, None)
    topology.unlink()
    with pytest.raises(DumpError, match="runtime_debug_mode 1 writes it"):
        task_places(schedule, folder, None)


def test_the_command_compares_a_timeline(command: Command, dump: Path, tmp_path: Path) -> None:
    ran = command("schedule", "--upstream-dump", dump, "--timeline", dump / TASKS)
    assert ran.code == 0
    assert "16 tasks, none differs" in ran.out
    document = json.loads((dump / TASKS).read_text())
    _without(document)
    path = tmp_path / "tilefwk_L1_prof_data.json"
    path.write_text(json.dumps(document))
    ran = command("schedule", "--upstream-dump", dump, "--timeline", path, "--json")
    assert ran.code == 1
    assert (ran.json["differing"], ran.json["origin"]) == (1, "simulator")
    assert [x["differs"] for x in ran.json["tasks"]].count("missing") == 1
    ran = command("schedule", "--upstream-dump", dump, "--timeline", dump / OPERATIONS, "--json")
    assert ran.code == 0
    assert [x["opcode"] for x in ran.json["operations"]][:2] == ["COPY_IN", "EXP"]


def test_a_timeline_without_its_dump_is_refused(command: Command, dump: Path) -> None:
    said = command("schedule", "kernel.py::softmax", "--timeline", dump / TASKS).error
    assert said.startswith("--timeline goes with --upstream-dump DIR")
    said = command(
        *("schedule", "--upstream-dump", dump, "--timeline", dump / TASKS, "--against", dump)
    ).error
    assert "of a comparison with a timeline" in said
