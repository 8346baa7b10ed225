"""The command: tune."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import pytest
from support.environment.command import Command, command

import pypto_cast as pypto
from pypto_cast.tuning.records import COLUMNS
from pypto_cast.tuning.report_page import sections
from pypto_cast.tuning.tune import tune
from tiling.chips import CHIPS
from tiling.cost import COST_SETS

__all__ = ["command"]  # a fixture

ASK = ("tune", "--shape", "32,127,128,64", "--from", "DT_FP32", "--to", "DT_FP16")
SMALL = ("tune", "--shape", "64,96", "--from", "fp32", "--to", "fp16")
TOML = """\
name = "calibrated"
[figures]
read_startup_cycles = 251.0
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_the_table(command: Command) -> None:
    ran = command(*ASK)
    assert (ran.code, ran.err) == (0, "")
    heading, table, facts = ran.out.rstrip("\n").split("\n\n")
    found = pypto.tune([32, 127, 128, 64], pypto.DT_FP32, pypto.DT_FP16)
    legal = f"{found.legal_count:,} legal tile shapes"
    assert heading == f"[32, 127, 128, 64]: FP32 -> FP16, CAST_RINT, {legal}"
    rows = table.splitlines()[1:]
    assert len(rows) == 10
    for row, candidate in zip(rows, found.candidates, strict=True):
        assert row.startswith(f"{candidate.rank:>2}  {list(candidate.tile_shape)} ")
        assert f" {candidate.estimate.cycles:,.0f} " in row
    words = " ".join(facts.split())
    assert found.stability in words
    assert "cost set pto-isa-910b3, objective time; no figure was measured on a device" in words


def test_one_is_singular(command: Command) -> None:
    ask = ("tune", "--shape", "3", "--from", "fp32", "--to", "fp16")
    assert command(*ask).out.splitlines()[0].endswith(", 1 legal tile shape")
    found = tune([3], pypto.DT_FP32, pypto.DT_FP16, chip="Ascend910B3")
    by_key = {section.kind: section for section in sections(found)}
    assert by_key["grid"].lead.startswith("[3] in 1 tile of [3], ")
    figure = by_key["landscape"].figures[0]
    assert figure.rows[0].marks[0].tip.endswith("\n1 tile")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "keywords"),
    [
        ("--chip Ascend910B1", {"chip": "Ascend910B1"}),
        ("--mode floor", {"mode": pypto.CAST_FLOOR}),
        ("--objective ub", {"objective": "ub"}),
        ("--top 3", {"top": 3}),
        ("--max-tiles 20", {"max_tiles": 20}),
        ("--cost-set documented", {"cost_set": "documented"}),
    ],
)
def test_options_are_those_of_tune(
    command: Command, words: str, keywords: dict[str, object]
) -> None:
    ran = command(*SMALL, *words.split(), "--json")
    found = pypto.tune([64, 96], pypto.DT_FP32, pypto.DT_FP16, **keywords)
    assert [c["tile_shape"] for c in ran.json["candidates"]] == [
        list(c.tile_shape) for c in found.candidates
    ]
    assert [c["cycles"] for c in ran.json["candidates"]] == [
        c.estimate.cycles for c in found.candidates
    ]


def test_satmode(command: Command) -> None:
    words = ("tune", "--shape", "64,96", "--from", "fp16", "--to", "int8", "--json")
    on, off = (command(*words, "--satmode", mode).json for mode in ("ON", "OFF"))
    assert (on["satmode"], off["satmode"]) == ("ON", "OFF")
    assert off["candidates"][0]["cycles"] > on["candidates"][0]["cycles"]


def test_json(command: Command) -> None:
    ran = command(*SMALL, "--top", 4, "-o", "x.json")
    assert (ran.code, ran.err) == (0, "")
    assert "written to x.json" in ran.out
    read = json.loads(Path("x.json").read_text(encoding="utf-8"))
    assert read == command(*SMALL, "--top", 4, "--json").json
    asked = {name: read[name] for name in ("shape", "src", "dst", "mode", "satmode", "top")}
    assert asked == {
        "shape": [64, 96],
        "src": "DT_FP32",
        "dst": "DT_FP16",
        "mode": "CAST_NONE",
        "satmode": "ON",
        "top": 4,
    }
    assert read["best"] == read["candidates"][0]["tile_shape"]
    assert [view["cost_set"] for view in read["views"]] == list(COST_SETS)
    first = read["candidates"][0]
    assert list(first["cycles_by_set"]) == list(COST_SETS)
    assert set(first["pipe_cycles"]) == {"MTE2", "V", "MTE3", "GM", "S"}


def test_csv(command: Command) -> None:
    assert command(*SMALL, "--csv", "x.csv").code == 0
    text = Path("x.csv").read_text(encoding="utf-8")
    assert command(*SMALL, "--csv", "-").out == text
    rows = list(csv.DictReader(text.splitlines()))
    found = pypto.tune([64, 96], pypto.DT_FP32, pypto.DT_FP16)
    assert list(rows[0]) == list(COLUMNS)
    assert [row["tile_shape"] for row in rows] == [
        ",".join(map(str, c.tile_shape)) for c in found.candidates
    ]
    assert [float(row["cycles"]) for row in rows] == [c.estimate.cycles for c in found.candidates]


@pytest.mark.slow
def test_html(command: Command) -> None:
    ran = command(*ASK, "--html", "report.html")
    assert (ran.code, ran.err) == (0, "")
    assert "written to report.html" in ran.out
    text = Path("report.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")
    assert "pypto.set_vec_tile_shapes(" in text


# --- The config of upstream's tuner --------------------------------------------------------------


def inserted(config: dict[str, object]) -> list[str]:
    """The lines that the tuner puts into the kernel, one run each, as its README describes it."""
    (file,) = config["files"]
    ((path, (line,)),) = file.items()
    assert path == config["test_name"]
    # tuner.py takes a line with three entries for one that is tuned.
    assert len(line) == 3
    (name,) = set(line) - {"line", "string"}
    return [line["string"].format(**{name: value}) for value in line[name]]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", ["5000", "64,96", "4,64,96", "2,4,64,96"])
def test_config(command: Command, shape: str) -> None:
    ask = ("tune", "--shape", shape, "--from", "fp32", "--to", "fp16", "--top", 5)
    ran = command(*ask, "--config", "config.json")
    assert (ran.code, ran.err) == (0, "")
    assert "config.json names kernel.py, line 1: put your kernel there" in ran.out
    config = json.loads(Path("config.json").read_text(encoding="utf-8"))
    extents = [int(entry) for entry in shape.split(",")]
    found = pypto.tune(extents, pypto.DT_FP32, pypto.DT_FP16, top=5)
    with pypto.options():
        for line, candidate in zip(inserted(config), found.candidates, strict=True):
            exec(line, {"pypto": pypto})
            assert pypto.get_vec_tile_shapes() == list(candidate.tile_shape)
    assert config["save_best_k"] == 5
    assert config["repeats"] >= 1
    assert config["results_folder"]


def test_config_for_a_kernel(command: Command) -> None:
    Path("my_kernel.py").write_text(
        "import pypto\n\n\ndef kernel():\n    pypto.set_vec_tile_shapes(8, 8)\n", encoding="utf-8"
    )
    ran = command(*SMALL, "--config", "c.json", "--config-line", "my_kernel.py:5")
    assert ran.code == 0
    assert "put your kernel there" not in ran.out
    config = json.loads(Path("c.json").read_text(encoding="utf-8"))
    assert config["files"][0]["my_kernel.py"][0]["line"] == 5
    wrong = command(*SMALL, "--config", "d.json", "--config-line", "my_kernel.py:4").error
    assert wrong == ("line 4 of my_kernel.py does not call set_vec_tile_shapes; it is called on 5")
    assert (
        "it is called on 5"
        in command(*SMALL, "--config", "d", "--config-line", "my_kernel.py:9").error
    )
    Path("my_kernel.py").write_text("import pypto\n", encoding="utf-8")
    assert (
        "no line does" in command(*SMALL, "--config", "d", "--config-line", "my_kernel.py:1").error
    )


def test_a_kernel_elsewhere_is_taken_at_its_word(command: Command) -> None:
    assert (
        command(*SMALL, "--config", "c.json", "--config-line", "models/on_device.py:29").code == 0
    )
    config = json.loads(Path("c.json").read_text(encoding="utf-8"))
    assert config["test_name"] == "models/on_device.py"


# --- A cost set of the user's own ----------------------------------------------------------------


def test_a_cost_file(command: Command) -> None:
    Path("mine.toml").write_text(TOML, encoding="utf-8")
    read = command(*SMALL, "--cost-set", "mine.toml", "--json").json
    assert read["cost_set"] == "calibrated"
    assert "calibrated" in read["candidates"][0]["cycles_by_set"]


def test_a_path_is_a_file_whatever_its_ending(command: Command) -> None:
    Path("sets").mkdir()
    Path("sets/documented").write_text(TOML, encoding="utf-8")
    for path in ("sets/documented", Path("sets/documented").resolve()):
        assert command(*SMALL, "--cost-set", path, "--json").json["cost_set"] == "calibrated"
    assert command(*SMALL, "--cost-set", "documented", "--json").json["cost_set"] == "documented"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("speed = 1.0", "no figure speed; known: clock_hz"),
        ("write_startup_cycles = -1.0", "write_startup_cycles must be 0 or more, is -1.0"),
        ("gm_bytes_per_second = 0", "gm_bytes_per_second must be positive, is 0"),
        ("[extra]", "unknown key 'extra'; known: name, base, standing, figures, sources"),
        ("flag_cycles = 'two'", "figure flag_cycles must be a number"),
        ("= 3", "mine.toml"),
    ],
)
def test_bad_cost_files(command: Command, line: str, says: str) -> None:
    Path("mine.toml").write_text(f"{TOML}{line}\n", encoding="utf-8")
    error = command(*SMALL, "--cost-set", "mine.toml", "-o", "x.json").error
    assert error.startswith("mine.toml: ")
    assert says in error
    assert os.listdir() == ["mine.toml"]


# --- What cannot be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--shape 64,96 --from fp32", "--to"),
        ("--from fp32 --to fp16", "--shape"),
        ("--shape= --from fp32 --to fp16", "as in 64,128; got ''"),
        ("--shape 64,0 --from fp32 --to fp16", "positive ints with commas between"),
        ("--shape 64,-1 --from fp32 --to fp16", "positive ints with commas between"),
        ("--shape 64x96 --from fp32 --to fp16", "got '64x96'"),
        ("--shape 1,1,1,1,8 --from fp32 --to fp16", "1 to 4 dimensions"),
        ("--shape 65536,65536 --from fp32 --to fp16", "at most 2147483647 elements"),
        ("--shape 8,7 --from fp16 --to int4", "the last axis must be even"),
        (
            "--shape 64 --from fp17 --to fp16",
            "unknown dtype 'fp17' (did you mean DT_FP16?)",
        ),
        ("--shape 64 --from fp32 --to int8", "does not cast FP32 -> INT8"),
        ("--shape 64 --from bf16 --to bf16", "BF16"),
        ("--shape 64 --from fp32 --to fp16 --mode up", "unknown mode 'up'; known: CAST_NONE"),
        ("--shape 64 --from fp32 --to fp16 --satmode maybe", "unknown satmode 'maybe'"),
        (
            "--shape 64 --from fp32 --to fp16 --objective speed",
            "one of time, ub, robust; got 'speed'",
        ),
        ("--shape 64 --from fp32 --to fp16 --top 0", "top must be an int of at least 1"),
        ("--shape 64 --from fp32 --to fp16 --max-tiles 0", "max_tiles must be an int"),
        (
            "--shape 64 --from fp32 --to fp16 --cost-set guessed",
            "unknown cost set 'guessed'; known:",
        ),
        ("--shape 64 --from fp32 --to fp16 --cost-set none.toml", "none.toml: No such file"),
        (
            "--shape 64 --from fp32 --to fp16 --config-line k.py:1",
            "--config-line goes with --config",
        ),
        ("--shape 64 --from fp32 --to fp16 --html -", "only --csv takes - to print"),
        ("--shape 64 --from fp32 --to fp16 --config -", "only --csv takes - to print"),
        ("--shape 64 --from fp32 --to fp16 --csv x -o ./x", "would be the same file"),
        ("--shape 64 --from fp32 --to fp16 --csv - --json", "exclude each other"),
        ("--shape 64 --from fp32 --to fp16 --csv no/x.csv", "no is no directory"),
        ("--shape 64 --from fp32 --to fp16 --config c --config-line k.py", "as in kernel.py:29"),
        ("--shape 64 --from fp32 --to fp16 --config c --config-line k.py:0", "as in kernel.py:29"),
    ],
)
def test_errors_are_one_line_and_leave_no_file(command: Command, words: str, says: str) -> None:
    assert says in command("tune", *words.split()).error
    assert os.listdir() == []


def test_an_unknown_chip_lists_the_known(command: Command) -> None:
    error = command(*SMALL, "--chip", "Ascend310").error
    assert error.startswith("unknown chip 'Ascend310'; known: ")
    assert all(name in error for name in CHIPS)


@pytest.mark.parametrize("option", ["--csv", "--output", "--config"])
def test_no_file_is_replaced_unasked(command: Command, option: str) -> None:
    Path("x").write_text("mine", encoding="utf-8")
    assert "x exists; --force replaces it" in command(*SMALL, option, "x").error
    assert Path("x").read_text(encoding="utf-8") == "mine"
    assert command(*SMALL, option, "x", "--force").code == 0
    assert Path("x").read_text(encoding="utf-8") != "mine"


def test_nothing_is_written_if_one_file_cannot_be(command: Command) -> None:
    Path("taken.json").write_text("mine", encoding="utf-8")
    assert "exists" in command(*SMALL, "--csv", "x.csv", "-o", "taken.json").error
    assert os.listdir() == ["taken.json"]


def test_a_hostile_name_is_shown_on_its_line(command: Command) -> None:
    Path("mine.toml").write_text('name = "a\\nb\\u001b[31m"\n', encoding="utf-8")
    out = command(*SMALL, "--cost-set", "mine.toml").out
    assert "\x1b" not in out
    assert re.search(r"^cost set +a b\\x1b\[31m, objective", out, re.MULTILINE)
