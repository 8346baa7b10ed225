"""Every result gives one report: its JSON follows the schema, its keys are the same everywhere."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.devices.certainties import between
from support.environment.command import Command, command, npy
from support.environment.sources import ROOT
from support.programs.upstream_dumps import DUMPS, compiler, unpacked

from ascend_kernels.schedule.reader.timeline_files import TIMELINES
from pypto_cast.cli.commands.certainty_command import kernel_named
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.report.figure import HEAT, heat
from pypto_cast.report.report import VERSION, Column, Report, Table, Words, document, plain, schema

__all__ = ["command", "npy"]  # fixtures

KERNEL = """\
import pypto_cast as pypto

@pypto.frontend.jit
def scaled(x: pypto.Tensor[[8, 32], pypto.DT_FP32], out: pypto.Tensor[[8, 32], pypto.DT_FP16]):
    pypto.set_vec_tile_shapes(4, 32)
    out[:] = pypto.cast(pypto.exp(x), pypto.DT_FP16)

W = pypto.Tensor([128, 512], pypto.DT_FP32)

@pypto.frontend.jit
def large(x: W, out: W):
    pypto.set_vec_tile_shapes(128, 512)
    out[:] = pypto.exp(x)
"""
PAIR = ("--from", "fp16", "--to", "int8")


@pytest.fixture
def words(tmp_path: Path, npy: Path) -> dict[str, tuple[object, ...]]:
    """A command line for each kind of report."""
    (tmp_path / "wheel").mkdir()
    (tmp_path / "k.py").write_text(KERNEL, encoding="utf-8")
    np.savez(tmp_path / "in.npz", x=np.ones((8, 32), np.float32))
    (tmp_path / "s.toml").write_text('shapes = [[64, 96]]\npairs = [["fp32", "fp16"]]\n')
    save_file({"w": np.float32([[1, 2], [3, 1e6]])}, tmp_path / "m.safetensors")
    model = ("checkpoint", tmp_path / "m.safetensors", "--to", "fp16")
    return {
        "cast": ("cast", npy, "--to", "fp16"),
        "trace": ("trace", npy, "--to", "fp16"),
        "explain": ("explain", "0.1", *PAIR),
        "compare": ("compare", "130", *PAIR, "--all-values"),
        "matrix": ("matrix",),
        "operation": ("operations", "exp"),
        "operations": ("operations",),
        "verify": ("verify", "--pair", "fp16-int8", "--mode", "RINT", "--jobs", 1),
        "route": ("route", "--from", "int32", "--to", "bf16"),
        "chain": ("route", "--from", "fp32", "--to", "int8", "--through", "fp16:rint,int8:rint"),
        "tune": ("tune", "--shape", "64,96", "--from", "fp32", "--to", "fp16"),
        "tune-kernel": ("tune", f"{tmp_path}/k.py::scaled", "--top", 2),
        "fit": ("schedule", f"{tmp_path}/k.py::large"),
        "schedule-diff": ("schedule", f"{tmp_path}/k.py::scaled", "--against", "tile=8,32"),
        "sweep": ("sweep", tmp_path / "s.toml", "--jobs", 1),
        "certainty": ("certainty", f"{tmp_path}/k.py::scaled", "--inputs", tmp_path / "in.npz"),
        "checkpoint": model,
        "checkpoint-plan": (*model, "-o", tmp_path / "out.safetensors", "--dry-run"),
        "diff": ("diff", npy, npy),
        "judge": ("judge", npy, "--golden", npy),
        "device-check": ("facts",),
        "device-check-plan": ("device-check", "--dry-run"),
        "schedule": ("schedule", "--upstream-dump", unpacked("softmax", tmp_path / "planned")),
        "timeline-comparison": (
            *("schedule", "--upstream-dump", unpacked("timeline", tmp_path / "timed")),
            *("--timeline", tmp_path / "timed" / "timeline" / TIMELINES[0]),
        ),
        "check-schedule": ("check-schedule", "--upstream-dump", unpacked("softmax", tmp_path)),
        "compile": (
            *("compile", f"{DUMPS / 'softmax.py'}::softmax", "-o", tmp_path / "dump"),
            *("--python", compiler(tmp_path / "wheel")),
        ),
    }


TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "null": type(None),
}


def faults(value: Any, rule: dict[str, Any], where: str = "") -> Iterator[str]:
    """Yields what a value has against a JSON Schema, of which it knows the words used here."""
    if "$ref" in rule:
        name = rule["$ref"].removeprefix("#/$defs/")
        yield from faults(value, schema()["$defs"][name], where)
    for each in rule.get("allOf", []):
        yield from faults(value, each, where)
    if "if" in rule and not any(faults(value, rule["if"])):
        yield from faults(value, rule["then"], where)
    if "const" in rule and value != rule["const"]:
        yield f"{where} is {value!r}"
    if "enum" in rule and value not in rule["enum"]:
        yield f"{where} is {value!r}"
    if "type" in rule:
        names = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        if not any(type(value) is TYPES[name] for name in names):
            yield f"{where} is no {' or '.join(names)}"
    if isinstance(value, dict):
        yield from (f"{where} lacks {key}" for key in rule.get("required", []) if key not in value)
        for key, of in rule.get("properties", {}).items():
            if key in value:
                yield from faults(value[key], of, f"{where} {key}".strip())
    if isinstance(value, list) and "items" in rule:
        for entry in value:
            yield from faults(entry, rule["items"], where)


def every_dict(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for entry in value.values() if isinstance(value, dict) else value:
        if isinstance(entry, (dict, list)):
            yield from every_dict(entry)


def kinds_in_the_source() -> set[str]:
    """Those of the reports with facts or totals, which JSON is made of; the others are of pages."""
    found = set()
    for path in (ROOT / "pypto_cast").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Report":
                words = {each.arg: each.value for each in node.keywords}
                if words.keys() & {"facts", "totals"}:
                    found.add(ast.literal_eval(words["kind"]))
    return found


@pytest.mark.slow
def test_json_follows_the_schema(command: Command, words: dict[str, tuple[object, ...]]) -> None:
    kinds = schema()["properties"]["report_kind"]["enum"]
    assert sorted([*words, "estimate", "task-estimate"]) == kinds == sorted(kinds_in_the_source())
    for kind, line in words.items():
        ran = command(*line, "--json")
        assert (ran.json["report_version"], ran.json["report_kind"]) == (VERSION, kind)
        assert list(faults(ran.json, schema())) == []
        for found in every_dict(ran.json):
            former = {
                new: found[old] for old, new in (("from", "src"), ("to", "dst")) if old in found
            }
            assert former.items() <= found.items(), kind


def test_the_schema_notices_what_is_wrong(command: Command) -> None:
    good = command("explain", "0.1", *PAIR, "--json").json
    without = {key: value for key, value in good.items() if key != "bits"}
    for bad, fault in (
        (without, " lacks bits"),
        ({**good, "report_version": 0}, "report_version is 0"),
        ({**good, "report_kind": "poem"}, "report_kind is 'poem'"),
        ({**good, "src": None}, "src is no string"),
        ({**good, "results": [{}]}, "results lacks mode"),
    ):
        assert fault in list(faults(bad, schema()))


def test_an_estimate_has_a_report(tmp_path: Path) -> None:
    (tmp_path / "wheel").mkdir()
    (tmp_path / "k.py").write_text(KERNEL, encoding="utf-8")
    _, kernel = kernel_named(f"{tmp_path}/k.py::scaled")
    found = kernel.estimate(np.ones((8, 32), np.float32), np.zeros((8, 32), np.float16))
    told = document(found.report)
    assert list(faults(told, schema())) == []
    assert (told["cycles"], told["operations"]) == (found.cycles, 2)
    (cast,) = told["casts"]
    assert (cast["shape"], cast["tile_shape"], cast["count"]) == ([8, 32], [4, 32], 1)
    assert "CAST_RINT" in found._repr_html_()
    tasks = kernel.estimate(
        np.ones((8, 32), np.float32), np.zeros((8, 32), np.float16), model="tasks"
    )
    told = document(tasks.report)
    assert list(faults(told, schema())) == []
    assert (told["report_kind"], told["tasks"]) == ("task-estimate", 2)


def test_a_cell_is_a_value_for_programs_and_a_text_for_people() -> None:
    table = Table(
        key="rows",
        columns=(Column(key="a", heading="A", spec=".1%"), Column(heading="B"), Column(key="c")),
        rows=[(0.25, "told", Words(value=[1], text="one"))],
    )
    report = Report(kind="x", title="", facts=plain(later=lambda: 3), tables=(table,))
    assert document(report) == {
        "report_version": VERSION,
        "report_kind": "x",
        "later": 3,
        "rows": [{"a": 0.25, "c": [1]}],
    }
    assert list(table.texts()) == [["25.0%", "told"]]


def test_the_scale_of_heat_can_be_read_in_grey_and_numbers_on_it() -> None:
    """Its luminance grows from end to end, so that a printer and the colour-blind see the order."""

    def luminance(color: str) -> float:
        parts = [part / 255 for part in bytes.fromhex(color.removeprefix("#"))]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return float(np.dot((0.2126, 0.7152, 0.0722), linear))

    styles = [re.fullmatch("background:(.*);color:#(.*)", heat(n / 500)) for n in range(501)]
    papers = [luminance(style[1]) for style in styles if style]
    inks = [1.0 if style[2] == "fff" else 0.0 for style in styles if style]
    assert (styles[0][1], styles[-1][1]) == (HEAT[0], HEAT[-1])
    assert np.diff(papers[::10]).min() > 0
    for paper, ink in zip(papers, inks, strict=True):
        assert (max(paper, ink) + 0.05) / (min(paper, ink) + 0.05) >= 4.5


# --- Without Jinja2 ------------------------------------------------------------------------------


@pytest.fixture
def without_jinja(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def lacking(name: str, *rest: Any, **named: Any) -> Any:
        if name.split(".")[0] == "jinja2":
            raise ModuleNotFoundError("No module named 'jinja2'", name="jinja2")
        return imported(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", lacking)


@pytest.mark.usefixtures("without_jinja")
@pytest.mark.parametrize("kind", ["tune", "checkpoint", "certainty"])
def test_html_ends_with_the_install_line_before_any_work(
    command: Command, words: dict[str, tuple[object, ...]], tmp_path: Path, kind: str
) -> None:
    line = (*words[kind], "--html", tmp_path / "page.html")
    if kind == "certainty":
        (tmp_path / "k.py").write_text("raise SystemExit('it was run')", encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    assert 'needs jinja2: pip install ".[cli]"' in command(*line).error
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("without_jinja")
def test_everything_else_works_without_it(
    command: Command, words: dict[str, tuple[object, ...]], tmp_path: Path
) -> None:
    assert command(*words["tune"]).code == 0
    found = Certainty(outputs=(between(np.int8([1]), np.int8([2])),))
    assert "<table>" in found._repr_html_()
    with pytest.raises(
        ModuleNotFoundError, match=r'a page of HTML needs jinja2: pip install "\.\[c'
    ):
        found.html(tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
