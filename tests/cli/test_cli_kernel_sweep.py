"""The command: sweep over kernels."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from support.environment.command import Command, command

from pypto_cast.cli import kernel_sweep
from pypto_cast.kernel.tuned_kernel import TunedKernel

__all__ = ["command"]
SOURCE = """\
import pypto_cast as pypto

Open = pypto.Tensor([pypto.DYNAMIC, 32], pypto.DT_FP32)

@pypto.jit
def rows(x: Open, y: Open):
    pypto.set_vec_tile_shapes(4, 32)
    y[:] = pypto.exp(x)

@pypto.jit
def ends(x: Open, y: Open):
    raise SystemExit(0)
"""
CONFIG = """\
releases = "all"
seconds = 5
[[kernels]]
kernel = "k.py::rows"
shapes = { x = [4, 32], y = [4, 32] }
"""
SHAPES = ["x=4,32", "y=4,32"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "k.py").write_text(SOURCE)
    path = tmp_path / "kernels.toml"
    path.write_text(CONFIG)
    return path


def test_kernels_are_tuned_kept_and_not_tuned_again(
    command: Command, config: Path, tmp_path: Path
) -> None:
    output = config.with_suffix(".jsonl")
    ran = command("sweep", config, "--jobs", 1, "--json", "--csv", tmp_path / "x.csv")
    found = ran.json["jobs"]
    assert [(each["kernel"], each["release"]) for each in found] == [
        ("k.py::rows", "0.2.0"),
        ("k.py::rows", "head"),
    ]
    assert found[1]["shapes"] == SHAPES
    assert [json.loads(line) for line in output.read_text().splitlines()] == found
    line, _, tile = found[1]["candidates"][0]["tiles"][0].partition("=")
    words = [word for each in SHAPES for word in ("--shape", each)]
    tuned = command("tune", f"{tmp_path}/k.py::rows", *words, "--top", 1, "--json").json
    assert tuned["best"] == {line: [int(each) for each in tile.split(",")]}
    with (tmp_path / "x.csv").open(newline="") as file:
        assert [row["tiles"] for row in csv.DictReader(file)] == [f"{line}={tile}"] * 2
    before = output.stat().st_mtime_ns
    shown = command("sweep", config, "--jobs", 1)
    assert "k.py::rows" in shown.out
    assert output.stat().st_mtime_ns == before

    (tmp_path / "k.py").write_text(SOURCE + "\n# another source is another job\n")
    assert command("sweep", config, "--jobs", 1).code == 0
    assert len(output.read_text().splitlines()) == 4


def test_an_interrupted_sweep_goes_on_where_it_was(
    command: Command, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, tuned = config.with_suffix(".jsonl"), kernel_sweep.kernel_tuned
    ran: list[str] = []

    def interrupted(named: str, *rest: Any) -> TunedKernel:
        ran.append(named)
        if len(ran) == 2:
            # As SIGINT, but also where the shell started the tests with SIGINT ignored.
            raise KeyboardInterrupt
        return tuned(named, *rest)

    monkeypatch.setattr(kernel_sweep, "kernel_tuned", interrupted)
    error = command("sweep", config, "--jobs", 1).error
    assert error == f"interrupted; 1 of 2 jobs are in {output}, and the same command does the rest"
    assert len(output.read_text().splitlines()) == 1
    assert command("sweep", config, "--jobs", 1).code == 0
    assert (len(ran), len(output.read_text().splitlines())) == (3, 2)
    assert [each.name for each in config.parent.iterdir() if "-part" in each.name] == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("seconds = 5", "seconds = 0", "seconds must be an int of at least 1, not 0"),
        ("seconds = 5", "shapes = [[4]]", "unknown key 'shapes' beside kernels"),
        ('releases = "all"', 'releases = ["9"]', "a release is one of 0.2.0, head; got '9'"),
        ("k.py::rows", "../k.py::rows", "kernel must be a file in the config's folder"),
        ("k.py::rows", "rows", "a kernel is named FILE::KERNEL"),
        ("k.py::rows", "none.py::rows", "none.py: No such file"),
        ("k.py::rows", "k.py::none", "2 of 2 jobs failed"),
        ("k.py::rows", "k.py::ends", "k.py ends the program, with 0, as a kernel of it runs"),
        ("x = [4, 32]", "x = [0, 32]", "positive ints"),
        ("x = [4, 32]", "q = [4, 32]", "rows takes x, y, not q"),
        ("shapes = {", "tiles = {", "unknown key 'tiles' of a kernel"),
        ("seconds = 5", 'output = "k.py"', "is the input"),
    ],
)
def test_bad_configs_are_one_line(
    command: Command, config: Path, tmp_path: Path, old: str, new: str, says: str
) -> None:
    config.write_text(CONFIG.replace(old, new))
    assert says in command("sweep", config, "--jobs", 1).error
    assert (tmp_path / "k.py").read_text() == SOURCE
