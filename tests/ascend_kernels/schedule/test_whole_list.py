"""Kernels written from rows of a list or drawn, and the command that tries a whole list."""

from __future__ import annotations

import csv
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.programs.upstream_dumps import compiler, interpreter, unpacked

import pypto_cast as pypto
from benchmarks import upstream_drivers, upstream_schedules
from benchmarks.upstream_kernels import drawn, written
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


MODEL = """\
import pypto

SHAPE = [128, 512]


def make(tile):
    @pypto.frontend.jit(pass_options={"later": 1})
    def kernel(x: pypto.Tensor(SHAPE, pypto.DT_FP32), y: pypto.Tensor(SHAPE, pypto.DT_FP32)):
        pypto.set_vec_tile_shapes(*tile)
        e = pypto.exp(x - pypto.amax(x, dim=-1, keepdim=True))
        y[:] = e / pypto.sum(e, dim=-1, keepdim=True)

    return kernel
"""
DRIVER = """\
import pytest
import torch
import torch_npu
from softmax_impl import make


def compare(given, wanted):
    assert given is wanted, "a kernel that is not wanted has no results"


def test_of_another_shape():
    make((32, 256))(torch.ones(64, 512).npu(), torch.ones(64, 512).npu())
    compare(1, 2)


@pytest.mark.skip(reason="needs a device")
def test_softmax():
    make((32, 256))(torch.ones(128, 512, device="npu:0"), torch.ones(128, 512).npu())
"""


def test_a_kernel_of_a_model_is_reached_by_its_driver(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    models = tmp_path / "checkout" / "models"
    models.mkdir(parents=True)
    (models / "softmax_impl.py").write_text(MODEL, encoding="utf-8")
    (models / "drive_softmax.py").write_text(DRIVER, encoding="utf-8")
    monkeypatch.setenv(upstream_schedules.MODELS, str(tmp_path / "checkout"))
    rows = ("made", "models/softmax_impl.py:make.kernel"), ("gone", "models/none.py:kernel")
    path = list_of(tmp_path, *((*row, "", "") for row in rows))
    refusing = interpreter(tmp_path, "echo 'Error ../in/checkout/models/softmax_impl.py'")
    upstream_schedules.main(["--list", str(path), "--python", str(refusing)])
    assert "Error models/softmax_impl.py |" in capfd.readouterr().out

    words = ["--list", str(path), "--python", str(compiler(tmp_path))]
    assert upstream_schedules.main(words) == 0
    printed = capfd.readouterr().out
    leaves = len(pypto.read_schedule(tmp_path / "softmax").leaves)
    row = f"| made | yes | {leaves} of {leaves} | the bits of the tensor level |"
    assert row in printed
    assert (
        "| gone | no |  | cannot be written again from the list | no checkout has it |" in printed
    )

    before = tmp_path / "before.md"
    before.write_text(printed, encoding="utf-8")
    assert upstream_schedules.main([*words, "gone", "--seconds", "7", "--keep", str(before)]) == 0
    kept = capfd.readouterr().out
    assert row in kept
    assert re.search(r"\| gone \|.* 7 s \|", kept)


CONFIGURED = """\
class FlashAttentionTileShapeConfig:
    def __init__(self, **fields):
        self.fields = fields


def flash_attention_varlen_forward_kernel_910(q, tile_config):
    return q, tile_config.fields
"""


def test_a_kernel_without_a_driver_gets_the_object_that_its_row_cuts_short(tmp_path: Path) -> None:
    name = "flash_attention_varlen_forward_kernel_910"
    (tmp_path / "impl.py").write_text(CONFIGURED, encoding="utf-8")
    shape = "200x2x128:bfloat16 FlashAttentionTileShapeConfig(q_tile=128, k_tile=2048, c1_cu"
    row = {"id": "u", "kernel": f"impl.py:{name}", "shape": shape}
    _, written = upstream_drivers.driven(row, [tmp_path])
    assert written.tensors == (((200, 2, 128), "bfloat16"),)
    (tmp_path / "called.py").write_text(written.text, encoding="utf-8")
    given, fields = runpy.run_path(str(tmp_path / "called.py"))[name]("q")
    assert given == "q"
    assert (fields["q_tile"], fields["k_tile"]) == (128, 2048)
    assert set(fields) == {
        *("q_tile", "k_tile", "c1_cube_tile", "v1_tile", "c2_cube_tile", "v2_tile")
    }


def test_options_reach_the_wheel_with_its_types(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, object]] = []
    entry = SimpleNamespace(jit=lambda *, host_options=None: None)
    wheel = SimpleNamespace(
        __name__="pypto",
        get_options_tree=lambda: "host.monitor: 0\nhost.stage: 0",
        get_host_options=lambda: {"monitor": False, "stage": 0},
        set_host_options=lambda **options: given.append(options),
        options=lambda **_: None,
        frontend=SimpleNamespace(jit=lambda **options: given.append(options["host_options"])),
    )
    monkeypatch.setattr(upstream_drivers, "pypto", wheel)
    monkeypatch.setitem(sys.modules, "pypto.frontend.parser.entry", entry)
    upstream_drivers.drop_unknown()
    wheel.frontend.jit(host_options={"monitor": 1, "stage": 1, "later": 1})
    wheel.set_host_options(monitor=1, stage=1, later=1)
    assert [str(each) for each in given] == ["{'monitor': True, 'stage': 1}"] * 2


@pytest.mark.slow
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


def test_a_kernel_that_the_list_lacks_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = list_of(tmp_path, ("one_abs_f32", "one_abs_f32", SAME, "32x256"))
    words = ["one_abs", "--list", str(path), "--python", "python3"]
    assert upstream_schedules.main(words) == 2
    assert "has no kernel one_abs" in capsys.readouterr().out


def test_no_leaf_of_a_kernel_beyond_a_limit_counts_as_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = written("softmax_z", SAME, "32x256")
    file = tmp_path / "kernel.py"
    file.write_text(kernel.text, encoding="utf-8")
    monkeypatch.setattr("ascend_kernels.schedule.task_lowering.MAX_TASKS", 2)
    found = upstream_schedules.judged(
        kernel, file, unpacked("softmax", tmp_path), lambda text: None, lambda result: None
    )
    assert (found.status, found.leaves) == (upstream_schedules.Status.NOT_EXECUTED, "0 of 1")
    assert "more than 2 tasks" in found.why
