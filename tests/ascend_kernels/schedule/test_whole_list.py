"""Kernels written from rows of a list or drawn, and the command that tries a whole list."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from support.programs.upstream_dumps import compiler, interpreter

from benchmarks import upstream_schedules
from benchmarks.upstream_kernels import drawn, written, written_model
from pypto_cast.kernel.jit import Kernel

COLUMNS = ("id", "kernel", "shape", "tile", "dropped")


def list_of(folder: Path, *rows: tuple[str, str, str, str]) -> Path:
    path = folder / "list.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([COLUMNS, *((*row, "") for row in rows)])
    return path


SAME = "128x512:float32 128x512:float32"


def test_drawn_kernels_are_kernels_of_one_to_four_dimensions() -> None:
    random = np.random.default_rng(1)
    dims = set()
    for _ in range(60):
        kernel = drawn(random)
        space: dict[str, object] = {}
        exec(kernel.text, space)
        found = space[kernel.name]
        assert isinstance(found, Kernel)
        shapes = [tuple(each.shape) for each in found.signature.tensors.values()]
        assert shapes == [shape for shape, _ in kernel.tensors]
        dims.add(len(shapes[0]))
    assert dims == {1, 2, 3, 4}


def test_a_row_that_does_not_say_enough_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="do not say what it computes"):
        written("exs_rope", SAME, "32x256")
    with pytest.raises(ValueError, match="argument True is no tensor"):
        written("one_abs_f32", "4:float32 True", "4")
    row = {"id": "m", "kernel": "models/a.py:k", "shape": "4:float32 3", "dropped": ""}
    with pytest.raises(ValueError, match="the checkouts given do not have it"):
        written_model(row, [tmp_path])
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.py").write_text("def k(x, n): pass")
    assert written_model(row, [tmp_path]).tensors == (((4,), "float32"),)
    cut = {**row, "dropped": "pass.nbuffer={'all': 8, 'one': runtime.workspace"}
    assert "[('pass', 'nbuffer'), ('runtime', 'workspace')]" in written_model(cut, [tmp_path]).text
    with pytest.raises(ValueError, match="its arguments are not listed"):
        written_model({**row, "shape": ""}, [tmp_path])
    with pytest.raises(ValueError, match="an argument was cut short"):
        written_model({**row, "shape": "4:float32 Config(tile=["}, [tmp_path])
    with pytest.raises(ValueError, match="is made by another function"):
        written_model({**row, "kernel": "models/a.py:make.k"}, [tmp_path])


def test_the_command_counts_what_became_of_each_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("softmax_z", "", SAME, "32x256"), ("nonsense", "", SAME, "32x256")]
    path = list_of(tmp_path, *((name, name, *rest) for name, _, *rest in rows))
    words = ["--list", str(path), "--python", str(compiler(tmp_path))]

    assert upstream_schedules.main(words) == 0
    printed = capsys.readouterr().out
    assert "2 kernels" in printed
    assert "| the bits of the tensor level | 1 |" in printed
    assert "| cannot be written again from the list | 1 |" in printed
    assert "| its name and its columns do not say what it computes | nonsense |" in printed

    path = list_of(tmp_path, ("one_abs_f32", "one_abs_f32", SAME, "32x256"))
    assert upstream_schedules.main(words) == 1
    assert "| a guard, or a result outside the intervals | 1 |" in capsys.readouterr().out

    refusing = interpreter(tmp_path, "echo 'RuntimeError: too large'")
    assert upstream_schedules.main([*words[:3], str(refusing)]) == 0
    assert "| RuntimeError: too large" in capsys.readouterr().out.replace("one_abs_f32: ", "")


def test_without_the_list_the_command_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--list", str(tmp_path / "none.csv"), "--python", "python3"]
    assert upstream_schedules.main(words) == 2
    assert "none.csv is not there" in capsys.readouterr().out
