"""The command: sweep."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.environment.command import Command, command
from support.environment.signals import heard
from support.environment.sources import ROOT
from support.environment.sweep_config import CONFIG

import pypto_cast as pypto
from pypto_cast.tuning.records import COLUMNS
from pypto_cast.unfinished import unfinished

__all__ = ["command"]  # a fixture


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def test_the_table(command: Command, config: Path) -> None:
    ran = command("sweep", config, "--jobs", 1)
    assert (ran.code, ran.err) == (0, "")
    heading, *rows = ran.out.split("\n\n")[0].splitlines()
    assert heading.split()[:3] == ["shape", "cast", "mode"]
    assert len(rows) == 4
    best = pypto.tune([64, 96], pypto.DT_FP32, pypto.DT_FP16).best
    assert rows[0].startswith("[64, 96]  DT_FP32 -> DT_FP16  CAST_NONE  Ascend910B3")
    assert str(list(best)) in rows[0]
    assert "cost set pto-isa-910b3, objective time; no figure was measured" in ran.out
    assert f"written to {config.with_suffix('.jsonl')}" in ran.out


@pytest.mark.slow
def test_what_is_done_is_not_done_again(command: Command, config: Path, tmp_path: Path) -> None:
    output = config.with_suffix(".jsonl")
    command("sweep", config, "--jobs", 1)
    lines = output.read_bytes().splitlines(keepends=True)
    output.write_bytes(b"".join(lines[1:3]))
    ran = command("sweep", config, "--jobs", 2, "--json")
    again = output.read_bytes().splitlines(keepends=True)
    assert again[:2] == lines[1:3]
    assert sorted(again) == sorted(lines)
    assert [record["shape"] for record in ran.json["jobs"]] == [[64, 96], [64, 96], [1000], [1000]]
    assert [json.loads(line) for line in lines] == ran.json["jobs"]
    before = output.stat().st_mtime_ns
    assert command("sweep", config).code == 0
    assert output.stat().st_mtime_ns == before


def test_csv(command: Command, config: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    assert command("sweep", config, "--jobs", 1, "--csv", path).code == 0
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(COLUMNS)
    assert [row["shape"] for row in rows] == ["64,96", "64,96", "1000", "1000"]
    assert "exists; --force replaces it" in command("sweep", config, "--csv", path).error
    assert command("sweep", config, "--csv", path, "--force").code == 0


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('chips = ["Ascend1"]', "Ascend1"),
        ("speed = 1", "unknown key 'speed'"),
        ("top = -1", "top must be an int of at least 1, not -1"),
    ],
)
def test_bad_configs(command: Command, config: Path, line: str, text: str) -> None:
    config.write_text(CONFIG + line + "\n", encoding="utf-8")
    error = command("sweep", config).error
    assert error.startswith(f"{config}: ")
    assert text in error
    assert not config.with_suffix(".jsonl").exists()


def test_other_errors(command: Command, config: Path, tmp_path: Path) -> None:
    assert "No such file" in command("sweep", tmp_path / "none.toml").error
    assert "no directory" in command("sweep", config, "--csv", tmp_path / "no" / "x.csv").error
    assert "--jobs" in command("sweep", config, "--jobs", 0).error
    config.with_suffix(".jsonl").write_text("a diary\n", encoding="utf-8")
    assert "line 1: no result of a sweep or of tune" in command("sweep", config).error


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["free", "force"])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("sweep.toml", "is the input"),
        ("mine.toml", "is the input"),
        ("sweep.jsonl", "would be the same file"),
    ],
)
def test_the_csv_takes_no_file_of_the_sweep(
    command: Command, config: Path, name: str, says: str, force: tuple[str, ...]
) -> None:
    costs = config.with_name("mine.toml")
    costs.write_text('name = "mine"\n', encoding="utf-8")
    text = f'{CONFIG}cost_set = "mine.toml"\n'
    config.write_text(text, encoding="utf-8")
    path = config.parent / "." / name
    assert says in command("sweep", config, "--csv", path, *force).error
    assert config.read_text(encoding="utf-8") == text
    assert costs.read_text(encoding="utf-8") == 'name = "mine"\n'
    assert not config.with_suffix(".jsonl").exists()


def test_the_results_take_no_file_of_the_sweep(command: Command, config: Path) -> None:
    config.write_text(f'{CONFIG}output = "sweep.toml"\n', encoding="utf-8")
    assert "is the input" in command("sweep", config).error


def test_what_a_pair_does_not_take_is_left_out_and_counted(command: Command, config: Path) -> None:
    config.write_text(
        "shapes = [[65], [64]]\npairs = [['fp16', 'int4'], ['fp16', 'fp32'], ['int4', 'fp16']]\n"
        "satmodes = 'all'\n",
        encoding="utf-8",
    )
    ran = command("sweep", config, "--jobs", 1, "--json")
    assert ran.code == 0
    assert ran.err.startswith(
        f"pypto-cast: warning: {config}: 4 of 12 jobs are left out, the first for [65] "
        "DT_FP16 -> DT_INT4: "
    )
    assert ran.err.count("\n") == 1
    done = [(record["shape"], record["src"], record["dst"]) for record in ran.json["jobs"]]
    assert done[::2] == done[1::2]
    assert done[::2] == [
        ([65], "DT_FP16", "DT_FP32"),
        ([64], "DT_FP16", "DT_INT4"),
        ([64], "DT_FP16", "DT_FP32"),
        ([64], "DT_INT4", "DT_FP16"),
    ]


def test_of_two_sweeps_the_second_is_refused(command: Command, config: Path) -> None:
    output = config.with_suffix(".jsonl")
    with unfinished(output):
        assert command("sweep", config).error == f"another run writes {output} just now"
    assert not output.exists()


def test_a_cluster_has_its_own_processes(command: Command, config: Path) -> None:
    words = ("--jobs", 2, "--scheduler", "tcp://127.0.0.1:1")
    assert command("sweep", config, *words).error == (
        "--jobs and --scheduler exclude each other; choose one"
    )


def test_the_progress_bar(command: Command, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # what is no terminal counts as one
    monkeypatch.delenv("NO_COLOR", raising=False)
    ran = command("sweep", config, "--jobs", 1, "--json")
    assert "4/4" in ran.err
    assert len(ran.json["jobs"]) == 4


def test_a_mode_that_the_pair_lacks_is_told(command: Command, config: Path) -> None:
    config.write_text(
        "shapes = [[64], [32]]\npairs = [['int32', 'fp16']]\nmodes = ['ceil']\n", encoding="utf-8"
    )
    (note,) = pypto.tune([64], pypto.DT_INT32, pypto.DT_FP16, mode=pypto.CAST_CEIL).notes
    assert command("sweep", config, "--jobs", 1).out.count(note) == 1


def test_jobs_that_fail(command: Command, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Successful jobs are kept, and the failure names its job."""
    monkeypatch.setattr("pypto_cast.tuning.sweep.config.code_version", lambda: "0.0.0+0")
    error = command("sweep", config, "--jobs", 1).error
    assert error.startswith("4 of 4 jobs failed, the others are in ")
    assert "[64, 96] DT_FP32 -> DT_FP16, CAST_NONE" in error
    assert "RuntimeError: this worker runs pypto-cast " in error


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send to a process")
def test_an_interrupted_sweep_resumes(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "large.toml"
    config.write_text(
        f"shapes = {[[4, 64, 96, 64 + n] for n in range(200)]}\npairs = [['fp32', 'fp16']]\n",
        encoding="utf-8",
    )
    output = config.with_suffix(".jsonl")
    words = [sys.executable, "-m", "pypto_cast", "sweep", str(config), "--jobs", "2"]
    words.append("--no-progress")  # on a slow machine the rest of the time would be said too
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with heard():
        ran = subprocess.Popen(
            words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
    with ran:
        while ran.poll() is None and (not output.exists() or output.read_bytes().count(b"\n") < 3):
            time.sleep(0.01)
        ran.send_signal(signal.SIGINT)
        out, err = ran.communicate(timeout=60)
    assert (ran.returncode, out) == (2, "")
    done = output.read_bytes().splitlines()
    assert 3 <= len(done) < 200
    assert err == (
        f"pypto-cast: error: interrupted; {len(done)} of 200 jobs are in {output}, and the same "
        "command does the rest\n"
    )
    config.write_text(
        f"shapes = {[json.loads(line)['shape'] for line in done]}\npairs = [['fp32', 'fp16']]\n",
        encoding="utf-8",
    )
    assert command("sweep", config).code == 0
    assert output.read_bytes().splitlines() == done
