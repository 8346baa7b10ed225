"""Sweeps: what a config may say, what a job gives, and where jobs are carried out."""

from __future__ import annotations

import csv
import dataclasses
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from support.environment.command import Command, command
from support.environment.sources import ROOT
from support.environment.sweep_config import CONFIG

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX
from pypto_cast.dask_pool import code_version, source_files
from pypto_cast.tuning.records import csv_text
from pypto_cast.tuning.sweep.config import Sweep, read_config
from pypto_cast.tuning.sweep.jobs import SweepJob, dask, evaluate, local
from tiling.chips import CHIPS
from tiling.cost import COST_SETS

__all__ = ["command"]  # a fixture

EXAMPLE = ROOT / "examples" / "sweep.toml"
CALIBRATED = """\
name = "calibrated"
[figures]
read_startup_cycles = 1000.0
"""


def config(folder: Path, text: str = CONFIG) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text, encoding="utf-8")
    return path


def sweep(folder: Path, text: str = CONFIG) -> Sweep:
    return read_config(config(folder, text))


def slow_jobs(folder: Path, count: int) -> tuple[SweepJob, ...]:
    """Jobs with so many tile shapes that the last ones wait while the first ones run."""
    shapes = [[2, 64, 96, 64 + n] for n in range(count)]
    return sweep(folder, f"shapes = {shapes}\npairs = [['fp32', 'fp16']]\n").jobs


# --- The config -----------------------------------------------------------------------------------


def test_jobs_in_the_order_of_the_config(tmp_path: Path) -> None:
    read = sweep(tmp_path)
    assert [str(job) for job in read.jobs] == [
        f"{shape} {pair}, CAST_NONE, satmode ON, Ascend910B3"
        for shape in ("[64, 96]", "[1000]")
        for pair in ("DT_FP32 -> DT_FP16", "DT_FP16 -> DT_INT8")
    ]
    assert read.output == tmp_path / "sweep.jsonl"
    assert len({job.key for job in read.jobs}) == 4


def test_all_of_everything(tmp_path: Path) -> None:
    text = (
        'shapes = [[64, 64]]\npairs = "all"\nmodes = "all"\nsatmodes = "all"\nchips = "all"\n'
        'objective = "ub"\ntop = 3\nmax_tiles = 100\ncost_set = "documented"\noutput = "x.jsonl"\n'
    )
    read = sweep(tmp_path, text)
    pairs = sum(len(MATRIX[chip.isa]) for chip in CHIPS.values())
    assert len(read.jobs) == pairs * len(pypto.CastMode) * 2
    job = read.jobs[-1]
    assert (job.objective, job.top, job.max_tiles, job.cost_set) == ("ub", 3, 100, "documented")
    assert read.output == tmp_path / "x.jsonl"


def test_a_cost_set_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(CALIBRATED, encoding="utf-8")
    (job, *_) = sweep(tmp_path, CONFIG + 'cost_set = "mine.toml"\n').jobs
    assert job.cost_set == "calibrated"
    assert dict(job.figures)["read_startup_cycles"] == 1000
    own = evaluate(job)["candidates"][0]
    default = evaluate(sweep(tmp_path).jobs[0])["candidates"][0]
    assert own["cycles"] > default["cycles"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shapes = [[64, 96]", "sweep.toml: "),
        ("shapes = " + "[" * 100_000, "sweep.toml: lists are nested too deeply"),
        (CONFIG + "shape = 1\n", "unknown key 'shape'; known: shapes, pairs, modes"),
        ('pairs = "all"\n', "shapes is missing"),
        ("shapes = [[64]]\n", "pairs is missing"),
        ('shapes = []\npairs = "all"\n', "shapes is empty; name at least one"),
        ('shapes = "all"\npairs = "all"\n', "shapes must be a list, not 'all'"),
        ('shapes = [[]]\npairs = "all"\n', r"shape \[\]"),
        ('shapes = [[64, 0]]\npairs = "all"\n', r"positive ints, as in .*; got \[64, 0\]"),
        ('shapes = [[64, -1]]\npairs = "all"\n', r"got \[64, -1\]"),
        ('shapes = [[true]]\npairs = "all"\n', r"got \[True\]"),
        ('shapes = [[1, 2, 3, 4, 5]]\npairs = "all"\n', r"\[1, 2, 3, 4, 5\]"),
        ('shapes = [[64], [64]]\npairs = "all"\n', r"shapes names \[64\] twice"),
        ('shapes = [[64]]\npairs = [["fp32"]]\n', r"a pair is two dtypes.*; got \['fp32'\]"),
        ('shapes = [[64]]\npairs = [["fp32", "fp33"]]\n', "unknown dtype 'fp33'"),
        ('shapes = [[64]]\npairs = [["fp32", "uint8"]]\n', "does not cast FP32 -> UINT8"),
        ('shapes = [[65]]\npairs = [["fp16", "int4"]]\n', "DT_FP16 -> DT_INT4: "),
        (CONFIG + 'modes = ["up"]\n', "unknown mode 'up'"),
        (CONFIG + 'satmodes = ["maybe"]\n', "unknown satmode 'maybe'"),
        (CONFIG + 'chips = ["Ascend1"]\n', "Ascend1.*Ascend910B3"),
        (CONFIG + "chips = [1]\n", "a name must be a text, not 1"),
        (CONFIG + 'cost_set = "none"\n', "documented"),
        (CONFIG + 'cost_set = "none.toml"\n', "none.toml"),
        (
            CONFIG + 'objective = "money"\n',
            "objective must be one of time, ub, robust; got 'money'",
        ),
        (CONFIG + "top = 0\n", "top must be an int of at least 1, not 0"),
        (CONFIG + "max_tiles = -5\n", "max_tiles must be an int of at least 1, not -5"),
        (CONFIG + "top = 1.5\n", "top must be an int of at least 1, not 1.5"),
        (CONFIG + 'output = ""\n', "output must be a text, not ''"),
        *(
            (
                CONFIG + f"output = '{path}'\n",
                "sweep.toml: output must be a file in the config's folder, not ",
            )
            for path in ("/tmp/x.jsonl", "../x.jsonl", "a/../../x.jsonl", r"C:\x", r"..\x", "c:x")
        ),
    ],
)
def test_configs_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        sweep(tmp_path, text)


def test_files_that_are_no_config(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes('output = "\xe9"'.encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.toml: TOML is UTF-8"):
        read_config(tmp_path / "latin.toml")
    with pytest.raises(FileNotFoundError):
        read_config(tmp_path / "none.toml")


def test_a_negative_figure(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(CALIBRATED.replace("1000.0", "-1.0"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"mine\.toml: .*read_startup_cycles"):
        sweep(tmp_path, CONFIG + 'cost_set = "mine.toml"\n')


def test_the_example_spells_the_defaults_out(tmp_path: Path) -> None:
    example = read_config(EXAMPLE)
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    short = "\n".join(line for line in lines if line.startswith(("shapes", "pairs")))
    assert sweep(tmp_path, short).jobs == example.jobs
    assert example.output == EXAMPLE.with_suffix(".jsonl")


# --- Jobs and their results -----------------------------------------------------------------------


def test_a_job_is_a_call_of_tune(tmp_path: Path) -> None:
    job = dataclasses.replace(sweep(tmp_path).jobs[0], top=2)
    record = evaluate(job)
    found = pypto.tune([64, 96], pypto.DT_FP32, pypto.DT_FP16, top=2)
    assert [one["tile_shape"] for one in record["candidates"]] == [
        list(one.tile_shape) for one in found.candidates
    ]
    best = found.candidates[0]
    assert record["candidates"][0]["cycles"] == best.estimate.cycles
    assert record["candidates"][0]["reason"] == best.reason
    assert record["stability"] == found.stability
    assert (record["key"], record["src"]) == (job.key, "DT_FP32")
    assert json.loads(json.dumps(record)) == record


def test_a_key_tells_everything_that_counts(tmp_path: Path) -> None:
    job = sweep(tmp_path).jobs[0]
    changes = {
        "shape": (64, 97),
        "src": pypto.DT_FP16,
        "dst": pypto.DT_BF16,
        "mode": pypto.CAST_CEIL,
        "satmode": pypto.SaturationMode.OFF,
        "chip": "Ascend910B1",
        "objective": "ub",
        "top": 2,
        "max_tiles": 17,
        "cost_set": "documented",
        "figures": job.figures[1:],
        "code": "0.0.0+0",
    }
    assert set(changes) == {field.name for field in dataclasses.fields(SweepJob)}
    keys = {dataclasses.replace(job, **{name: value}).key for name, value in changes.items()}
    assert len(keys | {job.key}) == len(changes) + 1
    assert pickle.loads(pickle.dumps(job)).key == job.key


def test_a_worker_with_other_code_refuses(tmp_path: Path) -> None:
    job = dataclasses.replace(sweep(tmp_path).jobs[0], code="0.0.0+0")
    with pytest.raises(RuntimeError, match=r"runs pypto-cast .*, the sweep 0\.0\.0\+0"):
        evaluate(job)
    assert code_version().startswith(f"{pypto.__version__}+")


@pytest.mark.slow
def test_the_code_of_a_result_is_all_that_it_imports() -> None:
    program = (
        "import sys, pypto_cast.tuning.sweep.jobs\n"
        "for module in list(sys.modules.values()):\n"
        "    print(getattr(module, '__file__', None) or '')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rooms = tuple(
        str(ROOT / room) for room in ("tiling", "simulator", "ascend_kernels", "pypto_cast")
    )
    loaded = {Path(file) for file in ran.stdout.splitlines() if file.startswith(rooms)}
    assert loaded <= {path for _, path in source_files()}
    assert len(loaded) > 50


def test_rows_for_csv(tmp_path: Path) -> None:
    record = evaluate(dataclasses.replace(sweep(tmp_path).jobs[0], top=2))
    rows = list(csv.DictReader(csv_text([record]).splitlines()))
    assert [row["rank"] for row in rows] == ["1", "2"]
    assert {row["shape"] for row in rows} == {"64,96"}
    assert rows[0]["tile_shape"] == ",".join(map(str, record["candidates"][0]["tile_shape"]))


@pytest.mark.slow
def test_the_same_in_other_processes(tmp_path: Path) -> None:
    jobs = sweep(tmp_path).jobs
    here = {one.job.key: one.record for one in local(1)(jobs)}
    there = {one.job.key: one.record for one in local(2)(jobs)}
    assert here == there
    assert set(here) == {job.key for job in jobs}


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_failure_names_its_job(tmp_path: Path, processes: int) -> None:
    jobs = sweep(tmp_path).jobs
    broken = dataclasses.replace(jobs[1], code="0.0.0+0")
    found = {one.job: one for one in local(processes)([jobs[0], broken])}
    assert found[jobs[0]].record is not None
    assert found[broken].record is None
    assert found[broken].failure.startswith("RuntimeError: this worker runs pypto-cast ")


@pytest.mark.slow
def test_a_process_that_dies(tmp_path: Path) -> None:
    jobs = slow_jobs(tmp_path, 12)
    running = local(2)(jobs)
    found = [next(running)]
    for process in multiprocessing.active_children():
        process.kill()
    found += running
    assert {one.job for one in found} == set(jobs)
    assert found[0].record is not None
    assert found[-1].failure.startswith("BrokenProcessPool: ")


def test_dask_has_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r'needs Dask: pip install "\.\[dask\]" in the c'):
        dask("tcp://127.0.0.1:1")


def test_who_names_a_scheduler_is_told_to_trust_it(command: Command) -> None:
    page = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
    for text in (dask.__doc__, command("sweep", "-h").out, page):
        assert text is not None
        assert "trust" in text[text.lower().index("scheduler") :]


def test_every_named_set_survives_the_way_to_a_worker(tmp_path: Path) -> None:
    for name in COST_SETS:
        job = sweep(tmp_path, CONFIG + f'cost_set = "{name}"\n').jobs[0]
        record = evaluate(pickle.loads(pickle.dumps(job)))
        found = pypto.tune([64, 96], pypto.DT_FP32, pypto.DT_FP16, cost_set=name)
        assert record["candidates"][0]["cycles"] == found.candidates[0].estimate.cycles


@pytest.mark.slow
def test_workers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """They hold its stdout, which ends only after the last of them."""
    script = tmp_path / "script.py"
    script.write_text(
        "import time\n\nfrom pypto_cast.tuning.sweep.jobs import spawned_pool\n\n"
        "if __name__ == '__main__':\n"
        "    print(spawned_pool(2).submit(abs, -1).result(), flush=True)\n    time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment
    ) as ran:
        assert ran.stdout is not None
        try:
            assert ran.stdout.readline() == "1\n"
        finally:
            ran.kill()
        assert ran.communicate(timeout=60)[0] == ""
