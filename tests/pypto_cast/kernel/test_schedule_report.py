"""A schedule as a report: lines, buffers in UB over time, tasks over cores; and its command."""

from __future__ import annotations

import html
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.environment.command import Command, command
from support.programs.perfetto_document import check_document
from support.programs.upstream_dumps import DUMPS, kernel_of, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule.body_runs import body_runs
from ascend_kernels.schedule.parts import Branch, Loop, Run
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.views.task_times import (
    schedule_cycles,
    simulated_leaf_times,
    simulated_task_times,
    task_times,
)
from pypto_cast.kernel.reports.schedule_report import schedule_report
from pypto_cast.kernel.tile_choice import replaced_tiles
from pypto_cast.report.figure import Figure
from pypto_cast.report.report import Report, document
from pypto_cast.report.terminal import _lines

__all__ = ["command"]

SOFTMAX = f"{DUMPS / 'softmax.py'}::softmax"
WHEEL = ("--release", "0.2.0", "--chip", "Ascend910B2")


@pytest.fixture(scope="module")
def planned() -> Schedule:
    tensor = pypto.tensor([128, 512], pypto.DT_FP32)
    with pypto.options(release="0.2.0", chip="Ascend910B2"):
        return kernel_of("softmax").schedule(tensor, tensor)


def drawn(report: Report, kind: str) -> list[Figure]:
    (part,) = (part for part in report.parts if part.kind == kind)
    return [each for each in part.figures if isinstance(each, Figure)]


def test_the_table_by_line(planned: Schedule) -> None:
    told = document(schedule_report(planned))

    assert (told["peak_ub_bytes"], told["needed_ub_bytes"]) == (181_248, 131_072)
    assert (told["origin"], told["leaves"], told["tasks"], told["tasks_in_all"]) == (
        *("planner", 1, 4),
        4,
    )
    figures = [
        (row["line"], row["operations"], row["copied_bytes"], row["cycles"])
        for row in told["lines"]
    ]
    assert figures == [  # a tile has 32 x 256 x 4 bytes; two are copied in, and two out
        ("softmax.py:12", 4, 65_536, 2 * 1748 + 2528 + 82),
        ("softmax.py:13", 5, 0, 31 + 2 * 259 + 2 * 281),
        ("softmax.py:14", 7, 65_536, 4685),
    ]


def test_leaves_of_the_same_work_share_a_row(planned: Schedule) -> None:
    (body,), leaves = planned.bodies, planned.leaves * 60
    tasks = tuple(replace(body.tasks[0], leaf=leaf) for leaf in range(60) if leaf != 7)
    many = replace(planned, leaves=leaves, bodies=(replace(body, tasks=tasks),))
    report = schedule_report(many)
    rows = list(report.tables[0].texts())

    assert [[*row[:3], row[5]] for row in rows] == [
        ["softmax.py:12", "0 to 59", "4", "59"],
        ["softmax.py:13", "0 to 59", "5", "59"],
        ["softmax.py:14", "0 to 59", "7", "59"],
    ]
    assert len(document(report)["lines"]) == 180
    names = [figure.title for figure in drawn(report, "ub")]
    assert names == ["Leaf 0 and 59 like it: buffers", "Leaf 0 and 59 like it: bytes alive"]


def test_a_terminal_of_80_columns_has_no_stray_comma(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = command("schedule", SOFTMAX, *WHEEL).out.splitlines()
    place = next(number for number, line in enumerate(lines) if "    opcodes" in line)

    # The figures stay beside the line, and the long list alone is under it.
    assert lines[place - 1].split()[3:] == ["65,536", "6,106", "4"]
    assert lines[place] == "    opcodes 2 x COPY_IN, PAIRMAX, ROWMAX_SINGLE"
    assert not any(line.endswith(",") for line in lines)
    assert max(map(len, lines)) <= 80


def test_cells_with_commas_are_parted_by_semicolons() -> None:
    assert list(_lines(("opcodes EXP, SUB", "tasks 4"), 80)) == ["opcodes EXP, SUB; tasks 4"]
    assert list(_lines(("bytes 65,536", "tasks 4"), 80)) == ["bytes 65,536, tasks 4"]


def test_of_more_entries_than_dimensions_the_leading_ones_count(command: Command) -> None:
    line = 1 + Path(SOFTMAX.split("::")[0]).read_text().splitlines().index(
        "    pypto.set_vec_tile_shapes(32, 256)"
    )
    few, more = (
        command("schedule", SOFTMAX, *WHEEL, "--tile", f"{line}={tile}", "--json").out
        for tile in ("16,256", "16,256,2")
    )

    assert json.loads(few)["tasks"] == 8
    assert more == few
    assert "the leading ones count" in " ".join(command("schedule", "--help").out.split())
    error = command("schedule", SOFTMAX, "--tile", "16,256,2").error
    assert "sets no tile shape of 3 entries" in error


def test_buffers_are_bars_at_their_addresses(planned: Schedule) -> None:
    (leaf,) = planned.leaves
    ub, alive = drawn(schedule_report(planned), "ub")
    *bars, line = ub.rows[0].marks

    assert [(bar.foot * 196_608, bar.height * 196_608) for bar in bars] == [
        (each.address, each.size_bytes) for each in leaf.buffers
    ]
    # Sixteen tile operations; the flags between them have no column.
    assert (ub.extent, bars[0].left, bars[0].width, bars[-1].left) == (16, 0, 6, 13)
    assert (bars[0].tip.split("\n")[0], bars[0].text) == ("COPY_IN, softmax.py:12", "12")
    assert (line.kind, line.foot * 196_608) == ("range", 181_248)
    assert max(mark.height for mark in alive.rows[0].marks) * 196_608 == 131_072
    assert "131,072 B are needed" in alive.caption


def test_tasks_over_cores_and_pipes(planned: Schedule) -> None:
    (leaf,) = planned.leaves
    (timeline,) = drawn(schedule_report(planned), "timeline")
    times = {each.index: (each.start_cycle, each.end_cycle) for each in simulated_leaf_times(leaf)}

    assert [row.label for row in timeline.rows[:4]] == ["0 MTE2", "0 V", "0 MTE3", "1 MTE2"]
    assert (len(timeline.rows), timeline.extent) == (12, 12234)
    assert (times[0], times[1]) == ((4, 1752), (1754, 3502))
    assert [mark.kind for mark in timeline.rows[0].marks] == ["copy-in", "copy-in"]
    assert timeline.rows[1].marks[0].left == 3504  # the first operation of V reads both tiles
    assert [key for key, _ in timeline.keys] == ["copy-in", "vector", "copy-out"]


def test_a_task_waits_for_those_it_needs_and_for_a_core(planned: Schedule) -> None:
    (body,) = planned.bodies
    first, *others = body.tasks
    chained = replace(body, tasks=(replace(first, successors=(3,)), *others))
    many = replace(body, tasks=body.tasks * 13)

    assert [each.start_cycle for each in task_times(planned, chained)] == [0, 0, 0, 1815]
    times, end = simulated_task_times(planned, chained)
    assert [each.start_cycle for each in times] == [0, 200, 400, 11635 + 390]
    assert (end, schedule_cycles(planned).cycles) == (24050, simulated_task_times(planned, body)[1])
    found = task_times(planned, many)
    assert [(each.core, each.start_cycle) for each in found[47:50]] == [
        *((47, 0), (0, 1815)),
        (1, 1815),
    ]


def test_one_iteration_and_all(tmp_path: Path) -> None:
    told = document(schedule_report(pypto.read_schedule(unpacked("loop_barrier", tmp_path))))
    assert (told["tasks"], told["tasks_in_all"]) == (2, 6)
    assert [(row["tasks"], row["runs"]) for row in told["bodies"]] == [(1, 4), (1, 2)]
    open_ended = document(schedule_report(pypto.read_schedule(unpacked("loop_rows", tmp_path))))
    assert (open_ended["tasks"], open_ended["tasks_in_all"]) == (4, None)
    inner = Loop(variable="j", begin=0, end=5, step=2, steps=(Run(body=1),))
    steps = (Run(body=0), Loop(variable="i", begin=0, end=4, step=1, steps=(inner, Run(body=0))))
    assert body_runs(steps) == {0: 5, 1: 12}


def test_a_task_that_runs_nothing_is_counted_nowhere() -> None:
    """A reshape of an argument is a task of no leaf."""

    @pypto.frontend.jit
    def flattened(
        x: pypto.Tensor([4, 16, 64], pypto.DT_FP32), y: pypto.Tensor([64, 64], pypto.DT_FP32)
    ) -> None:
        pypto.set_vec_tile_shapes(32, 64)
        y[:] = pypto.exp(pypto.reshape(x, [64, 64]))

    given = [pypto.tensor(shape, pypto.DT_FP32) for shape in ([4, 16, 64], [64, 64])]
    schedule = flattened.schedule(*given)
    assert [task.leaf for task in schedule.bodies[0].tasks] == [None, 0, 0]
    told = document(schedule_report(schedule))
    assert (told["tasks"], told["tasks_in_all"], told["bodies"][0]["tasks"]) == (2, 2, 2)
    assert "flattened: 2 tasks" in str(schedule)
    assert flattened.estimate(*given, model="tasks").total.tasks == 2
    present = flattened.tune(*given, top=1, seconds=0).present
    assert present is not None
    assert present.tasks == 2
    diff = document(pypto.ScheduleDiff(first=schedule, second=schedule).report)
    assert [row["first"] for row in diff["figures"] if row["figure"] == "tasks"] == [2]


def test_a_plan_compares_no_dynamic_shape_of_the_kernel() -> None:
    """Upstream refuses that in a kernel, and so it would be an error under `strict`."""

    @pypto.frontend.jit
    def grown(
        x: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32),
        y: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32),
    ) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        y[:] = pypto.exp(x)

    given = [pypto.tensor([64, 64], pypto.DT_FP32)] * 2
    with pytest.warns(pypto.DynamicOperandWarning) as told:
        grown.schedule(*given)
    assert {each.category for each in told} == {pypto.DynamicOperandWarning}


def test_extents_of_the_call_say_how_often_a_body_runs(
    command: Command,
) -> None:
    file = f"{DUMPS / 'loop_paths.py'}::loop_paths"
    shapes = ("--shape", "x=320,64", "--shape", "y=320,64")
    told = command("schedule", file, *shapes, "--json").json
    assert told["tasks_in_all"] == sum(row["tasks"] * row["runs"] for row in told["bodies"]) == 16
    assert sorted(row["runs"] for row in told["bodies"]) == [1, 1, 1, 13]

    loops = kernel_of("loop_rows")
    one, other = (
        loops.schedule(*(np.zeros((rows, 256), np.float32) for _ in range(2)))
        for rows in (512, 1024)
    )
    assert one == other == Schedule.from_json(one.to_json())
    assert [each.extents["x"] for each in (one, other)] == [(512, 256), (1024, 256)]
    assert Schedule.from_json(one.to_json()).extents == one.extents
    runs = [document(schedule_report(each))["bodies"][0]["runs"] for each in (one, other)]
    assert runs[1] == 2 * runs[0]
    assert f"tasks, {runs[1]} runs" in str(other)
    assert schedule_cycles(other).cycles == 2 * (schedule_cycles(one).cycles or 0) > 0
    elsewhere = replace(one.parameters[0], planned_shape=(512, 128))
    with pytest.raises(ValueError, match=r"x has the shape .* is planned for \[512, 128\]"):
        replace(one, parameters=(elsewhere, *one.parameters[1:]))
    # Rows of a view hold data as far as the call has them.
    assert "COPY_OUT; at most 16384 B moved" in " ".join(str(one).split())


def test_what_a_round_does_may_go_by_its_number() -> None:
    variable = ("symbol", "i")
    first = Branch(condition=("eq", variable, 0), steps=(Run(body=0),), otherwise=(Run(body=1),))
    rest = Loop(variable="j", begin=variable, end=4, step=1, steps=(Run(body=2),))
    end = ("div", ("extent", "x", 0), 8)
    loop = Loop(variable="i", begin=0, end=end, step=1, steps=(first, rest))

    assert body_runs((loop,), {"x": (32,)}) == {0: 1, 1: 3, 2: 10}
    assert body_runs((loop,), {"x": (7,)}) == {0: 0, 1: 0, 2: 0}
    assert body_runs((loop,)) == {0: None, 1: None, 2: None}
    many = replace(loop, end=10**9)
    assert body_runs((many,)) == {0: None, 1: None, 2: None}
    assert body_runs((replace(many, steps=(Run(body=0),)),)) == {0: 10**9}
    unknown = replace(loop, steps=(replace(first, condition=("data", "x", variable)),))
    assert body_runs((unknown,), {"x": (32,)}) == {0: None, 1: None}


def test_without_cycles_there_is_no_timeline() -> None:
    @pypto.frontend.jit
    def rounded(
        x: pypto.Tensor([64, 64], pypto.DT_FP32), y: pypto.Tensor([64, 64], pypto.DT_FP16)
    ) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        y[:] = pypto.cast(x, pypto.DT_FP16)

    x = pypto.tensor([64, 64], pypto.DT_FP32)
    y = pypto.tensor([64, 64], pypto.DT_FP16)
    (schedule,) = rounded.program(x, y).schedules
    line = rounded._function.__code__.co_firstlineno + 5
    assert {row["line"] for row in document(schedule_report(schedule))["lines"]} == {
        f"test_schedule_report.py:{line}"
    }
    report = schedule_report(schedule)
    assert [part.kind for part in report.parts] == ["ub"]
    assert {row["cycles"] for row in document(report)["lines"]} == {None}
    assert document(report)["not_estimated"] == "CAST, COPY_IN, COPY_OUT"
    assert any("not estimated" in row for row in report.tables[0].texts())
    assert "UB needed" in (schedule._repr_html_() or "")


def test_a_notebook_has_the_figures_of_the_page(
    planned: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = schedule_report(planned)
    count = sum(len(part.figures) for part in report.parts)
    text = planned._repr_html_() or ""
    (frame,) = re.findall(r'<iframe [^>]*srcdoc="([^"]*)"', text)

    page = html.unescape(frame)
    assert count == 3
    assert page.count('<div class="figure') == count
    assert page.count("By source line") + page.count("UB of the chip, B") == 0
    assert "UB needed" in text

    monkeypatch.setitem(sys.modules, "jinja2", None)
    without = planned._repr_html_() or ""
    assert "<iframe" not in without
    assert "UB needed" in without
    assert "The figures need jinja2" in without


def test_the_command(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "softmax.html"
    ran = command("schedule", SOFTMAX, *WHEEL, "--html", page)
    assert (ran.code, ran.err) == (0, "")
    assert "UB as allocated, B       181,248" in ran.out
    text = page.read_text(encoding="utf-8")
    assert "181,248 B as allocated" in text
    assert "bottom:58.85417%" in text  # the buffer at 115,712 of 196,608
    assert "exists; --force replaces it" in command("schedule", SOFTMAX, "--html", page).error
    dump = command("schedule", "--upstream-dump", unpacked("softmax", tmp_path), "--json").json
    ours = command("schedule", SOFTMAX, *WHEEL, "--json").json
    assert dump["origin"] == "upstream's dump"
    for key in ("buffers", "tasks", "peak_ub_bytes", "needed_ub_bytes"):
        assert dump[key] == ours[key]


def test_perfetto_has_a_track_for_each_core_and_pipe(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    assert command("schedule", SOFTMAX, *WHEEL, "--output", out, "--json").json["output"] == str(
        out
    )
    found = json.loads(out.read_bytes())
    check_document(found)
    assert {entry["pid"] for entry in found["traceEvents"]} == {1, 2, 3, 4}
    slices = [entry for entry in found["traceEvents"] if entry["ph"] == "X"]
    assert len(slices) == 4 * 16
    assert slices[0]["name"] == "COPY_IN"
    assert slices[0]["args"] == {
        "body": slices[0]["args"]["body"],
        **{"task": 0, "leaf": 0, "index": 0, "line": slices[0]["args"]["line"], "cycles": 1748},
    }
    assert {entry["ph"] for entry in found["traceEvents"]} == {"M", "X"}


def test_tile_shapes_are_replaced(command: Command) -> None:
    own = command("schedule", SOFTMAX, *WHEEL, "--json").json
    for tile in ("32,256", "11=32,256"):
        assert command("schedule", SOFTMAX, *WHEEL, "--tile", tile, "--json").json == own
    small = command(
        "schedule", SOFTMAX, *WHEEL, "--tile", "64,512", "--tile", "11=16,256", "--json"
    )
    assert small.json["tasks"] == 8
    for tile in ("8", "13=32,256"):
        error = command("schedule", SOFTMAX, "--tile", tile).error
        assert "sets no tile shape of" in error
        assert "its calls: softmax.py:11: set_vec_tile_shapes(32, 256)" in error
    assert "a tile is positive ints" in command("schedule", SOFTMAX, "--tile", "11=a").error
    for one, other, place in (
        ("32,256", "16,256", "2 entries"),
        ("11=32,256", "11=16,256", "line 11"),
        ("11=32,256", "11=32,256", "line 11"),
    ):
        error = command("schedule", SOFTMAX, "--tile", one, "--tile", other).error
        assert error == f"--tile names a tile shape of {place} twice: {one} {other}"


def test_two_schedules_beside_each_other(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "diff.html"
    ran = command("schedule", SOFTMAX, *WHEEL, "--against", "tile=16,256", "--html", page)
    assert ran.code == 1
    assert "they differ in tasks, operations, order, addresses" in ran.out
    assert "-65,536" in ran.out
    assert "UB over time: tile=16,256" in page.read_text(encoding="utf-8")
    dump = unpacked("softmax", tmp_path)
    same = command("schedule", SOFTMAX, *WHEEL, "--against", dump, "--json")
    assert (same.code, same.json["equal"], same.json["lines"]) == (0, True, [])
    assert command("schedule", "--upstream-dump", dump, "--against", dump).code == 0
    unpacked("abs_1d", tmp_path)
    words = ("schedule", SOFTMAX, *WHEEL, "--against", tmp_path, "--kernel")
    assert command(*words, "softmax").code == 0
    assert "no kernel 'sofmax'; it holds abs_1d, softmax" in command(*words, "sofmax").error
    refused = command("schedule", "--upstream-dump", dump, "--against", "chip=Ascend910B3").error
    assert "plans again, which a dump cannot be" in refused
    assert "release=NAME, chip=NAME; got 'nowhere'" in (
        command("schedule", SOFTMAX, "--against", "nowhere").error
    )


def test_a_diff_in_python_and_in_a_notebook(planned: Schedule, tmp_path: Path) -> None:
    dump = pypto.read_schedule(unpacked("softmax", tmp_path))
    assert pypto.ScheduleDiff(first=planned, second=dump).is_equal
    told = pypto.ScheduleDiff(first=planned, second=dump)
    assert str(told).startswith("softmax: no part differs")
    assert "UB needed" in told._repr_html_()
    assert "UB needed" in (planned._repr_html_() or "")
    assert "softmax.py:13, leaf 0, 4 tasks: EXPAND, 2 x SUB, 2 x EXP; 0 B moved" in str(planned)
    with pypto.options(release="head"):
        head = kernel_of("softmax").schedule(*[pypto.tensor([128, 512], pypto.DT_FP32)] * 2)
    assert max(map(len, str(head).splitlines())) <= 80
    assert "AutoCast's lists of head, for Ascend910B3 UB 181248 B" in " ".join(str(head).split())


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("y[:] = x * (1 / 0)", "raises.py:6: ZeroDivisionError: division by zero"),
        ("y[:] = pypto.nothing(x)", "raises.py:6: "),
        ("y[:] = x +", "raises.py:6: SyntaxError: "),
    ],
)
def test_a_kernel_that_raises(command: Command, tmp_path: Path, body: str, says: str) -> None:
    file = tmp_path / "raises.py"
    tensor = "pypto.Tensor([64, 64], pypto.DT_FP32)"
    file.write_text(
        "import pypto_cast as pypto\n\n@pypto.frontend.jit\n"
        f"def raises(x: {tensor}, y: {tensor}):\n"
        f"    pypto.set_vec_tile_shapes(32, 64)\n    {body}\n"
    )
    assert says in command("schedule", f"{file}::raises").error


def test_prints_of_a_kernel_are_not_of_the_command(command: Command, tmp_path: Path) -> None:
    """Standard output is JSON, or the lines to paste, alone."""
    file = tmp_path / "prints.py"
    tensor = "pypto.Tensor([64, 64], pypto.DT_FP32)"
    file.write_text(
        "import pypto_cast as pypto\n\nprint('of the file')\n\n@pypto.frontend.jit\n"
        f"def prints(x: {tensor}, y: {tensor}):\n    print('of the kernel')\n"
        "    pypto.set_vec_tile_shapes(32, 64)\n    y[:] = x + 1.0\n"
    )
    kernel = f"{file}::prints"
    np.savez(tmp_path / "in.npz", x=np.ones((64, 64), np.float32))

    assert command("schedule", kernel, "--json").json["kernel"] == "prints"
    assert command("schedule", kernel, "--against", "tile=16,64", "--json").json["equal"] is False
    assert command("tune", kernel, "--top", 1, "--json").json["kernel"] == "prints"
    (line,) = command("tune", kernel, "--top", 1, "--write").out.splitlines()
    assert line.startswith("pypto.set_vec_tile_shapes(")
    ran = command("certainty", kernel, "--inputs", tmp_path / "in.npz", "--json")
    assert ran.json["kernel"] == "prints"
    assert {"of the file", "of the kernel"} <= {*ran.err.splitlines()}


def test_a_folder_that_is_read_only_is_told_before_anything_is_planned(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To a superuser no folder is read-only.
    monkeypatch.setattr("os.access", lambda path, _: path != tmp_path)
    file = tmp_path / "raises.py"
    file.write_text("raise SystemExit('it was run')")
    for words in (("schedule", "-o"), ("schedule", "--html"), ("tune", "-o")):
        name, option = words
        error = command(name, f"{file}::raises", option, tmp_path / "out.json").error
        assert error == f"{tmp_path} is read-only; out.json cannot be written to it"


def test_shapes_that_annotations_leave_open(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "twice.py"
    file.write_text(
        "import pypto_cast as pypto\n\n\n@pypto.frontend.jit\ndef twice(\n"
        "    x: pypto.Tensor([], pypto.DT_FP32), y: pypto.Tensor([], pypto.DT_FP32)\n):\n"
        "    pypto.set_vec_tile_shapes(32, 256)\n    y[:] = x * 2.0\n"
    )
    kernel = f"{file}::twice"
    np.savez(tmp_path / "in.npz", **dict.fromkeys("xy", np.zeros((64, 256), np.float32)))

    assert "of x is open; say --shape x=N,N" in command("schedule", kernel).error
    said = command("schedule", kernel, "--shape", "x=96,256", "--shape", "y=96,256", "--json")
    assert said.json["tasks"] == 3
    assert command("schedule", kernel, "--inputs", tmp_path / "in.npz", "--json").json["tasks"] == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "name either FILE::KERNEL or --upstream-dump DIR"),
        ((SOFTMAX, "--upstream-dump", "d"), "name either FILE::KERNEL or --upstream-dump DIR"),
        ((SOFTMAX, "--kernel", "softmax"), "--kernel would change nothing beside"),
        (
            (SOFTMAX, "--kernel", "softmax", "--against", "tile=16,256"),
            "it is of a dump",
        ),
        ((SOFTMAX, "--kernel", "softmax", "--against", SOFTMAX), "it is of a dump"),
        (("--upstream-dump", "d", "--chip", "Ascend910B2"), "--chip would change nothing"),
        ((f"{DUMPS / 'softmax.py'}::sofmax",), "has no kernel sofmax; it has softmax"),
        ((SOFTMAX, "--release", "9"), "'9'"),
        (
            (SOFTMAX, *("--against", "release=head", "--against", "release=0.2.0")),
            "--against names a release or a chip twice: release=head release=0.2.0",
        ),
    ],
)
def test_what_is_refused(command: Command, words: tuple[str, ...], says: str) -> None:
    assert says in command("schedule", *words).error


@pytest.mark.parametrize(
    ("kernel", "line", "opcodes", "copied_bytes"),
    [
        ("layernorm_bf16", 14, "COPY_IN, CAST, ROWSUM_SINGLE, MULS", 16 * 512 * 2),
        ("spill", 12, "COPY_IN, EXP, COPY_OUT", 2 * 16 * 1024 * 4),
    ],
)
def test_inserted_operations_stand_at_the_line_they_serve(
    kernel: str, line: int, opcodes: str, copied_bytes: int
) -> None:
    # A copy of BF16 serves a cast that AutoCast inserted; a spill, the line that wrote its tile.
    found = kernel_of(kernel)
    tensors = [pypto.tensor(list(x.shape), x.dtype) for x in found.signature.tensors.values()]
    with pypto.options(release="0.2.0", chip="Ascend910B2"):
        rows = document(schedule_report(found.schedule(*tensors)))["lines"]

    (row,) = (each for each in rows if each["line"] == f"{kernel}.py:{line}")
    assert (row["opcodes"], row["copied_bytes"]) == (opcodes, copied_bytes)


def test_a_loop_that_runs_another_number_of_times_is_a_difference(planned: Schedule) -> None:
    loop = Loop(variable="i", begin=0, end=8, step=1, steps=planned.steps)
    often = replace(planned, steps=(loop,))
    other = replace(planned, steps=(replace(loop, end=0),))

    assert pypto.ScheduleDiff(first=often, second=other).parts == ("steps",)
    assert pypto.ScheduleDiff(first=often, second=often).is_equal


def test_a_comparison_tells_which_of_the_two_does_not_fit(command: Command) -> None:
    words = ("schedule", SOFTMAX, "--against", "tile=128,512")

    ran = command(*words)
    assert (ran.code, "does not fit in UB" in ran.out) == (2, True)
    assert "Not compared: tile=128,512." in ran.out
    assert command(*words, "--fail-over-ub").code == 1


def test_an_open_dtype_is_no_open_shape(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "scaled.py"
    file.write_text(
        "import pypto\n\n@pypto.frontend.jit\n"
        "def scaled(x: pypto.Tensor(), y: pypto.Tensor()):\n    y[:] = x * 2.0\n"
    )

    ran = command("schedule", f"{file}::scaled", "--shape", "x=8,8", "--shape", "y=8,8")

    assert ran.error == "the dtype of x is open; annotate it, as pypto.DT_FP32"


def test_little_ub_is_drawn_larger_and_the_page_says_so(planned: Schedule) -> None:
    """Both pictures of all leaves have one scale, the chip's UB or a half of it and so on."""
    (part,) = (part for part in schedule_report(planned).parts if part.kind == "ub")
    assert "are drawn" not in part.lead
    tensor = pypto.tensor([128, 512], pypto.DT_FP32)
    with replaced_tiles((4, 512)):
        little = kernel_of("softmax").schedule(tensor, tensor)
    peak = little.peak_ub_bytes
    (part,) = (part for part in schedule_report(little).parts if part.kind == "ub")
    (whole,) = (each for each in (196_608 >> n for n in range(18)) if peak <= each // 2 < 2 * peak)
    assert "of 196,608 B, address 0" in part.lead
    assert f"The lowest {whole:,} B are drawn; the rest is free." in part.lead
    bars, alive = drawn(schedule_report(little), "ub")
    assert max(each.foot for each in bars.rows[0].marks if each.kind == "range") == peak / whole
    assert max(each.height for each in alive.rows[0].marks) == little.needed_ub_bytes / whole
