"""`pypto-cast run`: programs that import pypto, and what they may ask of an NPU."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.environment.command import Command, command

import pypto_cast

__all__ = ["command"]

KERNELS = Path(__file__).parents[1] / "support" / "devices" / "upstream_kernels.py"
HEAD = """
import sys
import numpy as np
import pypto

@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def halved(x: pypto.Tensor([], pypto.DT_FP32), out: pypto.Tensor([], pypto.DT_FP16)):
    pypto.set_vec_tile_shapes(8, 16)
    out[:] = pypto.cast(x, pypto.DT_FP16)

def run(x, out):
    halved(x, out)
    print("right" if bool((out == 1).all()) else "wrong")
"""
NUMPY = "run(np.ones((4, 16), np.float32), np.zeros((4, 16), np.float16))\n"
TORCH = "import torch\nx, out = torch.ones(4, 16), torch.zeros(4, 16, dtype=torch.float16)\n"
RAN = "pypto-cast: 1 kernel ran (halved once with 1 cast); 64 results certain, 0 undecided"
REQUESTS = {
    "import torch_npu\n": "import torch_npu",
    "import torch_npu.npu\n": "import torch_npu",
    "x = x.npu()\n": r".npu()",
    "x = x.to('npu:0')\n": "device 'npu:0'",
    "x = x.to(device='npu')\n": "device 'npu'",
    "out = torch.zeros(4, 16, dtype=torch.float16, device='npu')\n": "device 'npu'",
    "x = x.to(torch.device('npu:1'))\n": "device 'npu:1'",
    "torch.npu.set_device(0)\n": "torch.npu",
    "torch.nn.Linear(2, 3).to('npu')\n": "device 'npu'",
    "torch.nn.Linear(2, 3).npu()\n": ".npu()",
    "out = torch.zeros(4, 16, dtype=torch.float16, device=0)\n": "device 'npu:0'",
    "x = x.to(torch.device(0))\n": "device 'npu:0'",
    "library = torch.library.Library('program', 'FRAGMENT')\n"
    "library.define('f(Tensor x) -> Tensor')\n"
    "@torch.library.impl(library, 'f', 'NPU')\n"
    "def f(x): return x + 1\nx = torch.ops.program.f(x)"
    " - 1\n": "an implementation for dispatch key 'NPU'",
}


def program(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")
    return path


def state() -> tuple[object, ...]:
    names = {name for name in sys.modules if name.partition(".")[0] in ("pypto", "torch_npu")}
    finders = [f for f in sys.meta_path if type(f).__module__.startswith("pypto_cast")]
    return names, list(sys.argv), list(sys.path), finders, "TILE_FWK_DEVICE_ID" in os.environ


@pytest.fixture(autouse=True)
def _restored() -> Any:
    before = state()
    yield
    assert state() == before


def test_upstreams_file_runs_unmodified(command: Command) -> None:
    pytest.importorskip("torch")
    ran = command("run", KERNELS)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert len(lines) == 4
    assert all(line.endswith("accepted and right") for line in lines)
    assert ran.err.splitlines()[-1] == (
        "pypto-cast: 4 kernels ran (quantise once with 3 casts, rows_in_views once with 3 casts, "
        "slices once with 4 casts, whole once with 1 cast); 10,684 results certain, 0 undecided"
    )


def test_arguments_names_and_neighbours_are_the_programs(command: Command, tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_the_program.py").write_text("import pypto\nNAME = pypto.__name__\n")
    text = (
        "import sys\nimport neighbour_of_the_program as n\nprint(sys.argv[1:], __name__, n.NAME)\n"
    )
    ran = command("run", program(tmp_path, text), "--run_mode", "sim", "--help", "-3")
    assert ran.out == "['--run_mode', 'sim', '--help', '-3'] __main__ pypto_cast\n"
    assert ran.err == "pypto-cast: no kernel ran\n"
    del sys.modules["neighbour_of_the_program"]


def test_timelines_are_written_where_upstream_writes_them(command: Command, tmp_path: Path) -> None:
    unplanned = """
@pypto.frontend.jit
def unplanned(x: pypto.Tensor([], pypto.DT_FP32), out: pypto.Tensor([], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(4, 16)
    out[:] = pypto.where(x > 0.0, 1.0, 0.0)

unplanned(np.ones((4, 16), np.float32), np.ones((4, 16), np.float32))
"""
    folder = tmp_path / "output"
    ran = command("run", "--timelines", folder, program(tmp_path, HEAD + NUMPY + NUMPY + unplanned))
    assert ran.code == 0, ran.err
    (of_halved,) = (path for path in folder.iterdir() if f"_{os.getpid()}_" in path.name)
    assert of_halved.name.endswith("_halved")
    trace = json.loads((of_halved / "CostModelSimulationOutput/merged_swimlane.json").read_text())
    assert {"COPY_IN", "CAST", "COPY_OUT"} <= {each["name"] for each in trace["traceEvents"]}
    assert ran.err.count("unplanned has no timeline: ") == 1


@pytest.mark.parametrize(
    ("ending", "code", "said"),
    [("sys.exit(3)", 3, ""), ("sys.exit()", 0, ""), ("sys.exit('no')", 1, "no\n")],
)
def test_the_exit_code_is_the_programs(
    command: Command, tmp_path: Path, ending: str, code: int, said: str
) -> None:
    ran = command("run", program(tmp_path, HEAD + NUMPY + ending))
    assert (ran.code, ran.out) == (code, "right\n")
    assert said in ran.err
    assert ran.err.endswith(RAN + "\n")


def test_an_error_of_the_program_has_its_traceback(command: Command, tmp_path: Path) -> None:
    path = program(tmp_path, HEAD + NUMPY + "raise KeyError('mine')\n")
    ran = command("run", path)
    assert ran.code == 1
    first, where, *_ = ran.err[ran.err.index("Traceback") :].splitlines()
    assert first == "Traceback (most recent call last):"
    assert str(path) in where
    assert "KeyError: 'mine'" in ran.err
    assert ran.err.endswith(RAN + "\n")


def test_a_missing_name_ends_in_our_words(command: Command, tmp_path: Path) -> None:
    for text in ("from pypto import konv", "import pypto.bindings", "import pypto\npypto.konv"):
        ran = command("run", program(tmp_path, text))
        assert ran.code == 1
        assert "pypto_cast covers cast and the operations of kernels" in ran.err


def test_a_file_that_is_not_there(command: Command, tmp_path: Path) -> None:
    assert "there is no such file" in command("run", tmp_path / "none.py").error


def test_casts_outside_of_kernels_count_too(command: Command, tmp_path: Path) -> None:
    text = "import pypto\nx = pypto.tensor([1], pypto.DT_FP32, data=[1.0])\n"
    ran = command("run", program(tmp_path, text + "pypto.cast(x, pypto.DT_FP16)\n" * 2))
    assert ran.err.splitlines()[-1] == "pypto-cast: no kernel ran, 2 casts outside"


def test_operations_and_undecided_results_are_counted(command: Command, tmp_path: Path) -> None:
    text = (
        "import numpy as np, pypto\n@pypto.jit\n"
        "def third(x: pypto.Tensor(), out: pypto.Tensor()):\n"
        "    pypto.set_vec_tile_shapes(8)\n    out[:] = pypto.cast(x / 3.0 + 0.0, pypto.DT_FP32)\n"
        "third(np.arange(8, dtype=np.float32), np.zeros(8, np.float32))\n"
        "pypto.from_numpy(np.ones(8, np.float32)) * 2.0\n"
    )
    ran = command("run", program(tmp_path, text))
    assert ran.err.splitlines()[-1] == (
        "pypto-cast: 1 kernel ran (third once with 0 casts and 2 operations), 0 casts and 1 "
        "operation outside; 1 results certain, 7 undecided"
    )


def test_a_program_runs_on_the_chip_that_is_named(command: Command, tmp_path: Path) -> None:
    """The 950's NaN to E2M1 is a reading, which the program's kernel takes."""
    text = """
import numpy as np, pypto
x = pypto.cast(pypto.from_numpy(np.full((2, 64), np.nan, np.float32)), pypto.DT_BF16)
print(np.asarray(pypto.cast(x, pypto.DT_FP4_E2M1X2).numpy(), np.float32).max())
"""
    path = program(tmp_path, text)
    assert "Chips of 950 cast it" in command("run", path).err
    on_950 = ("run", "--chip", "Ascend950PR")
    assert command(*on_950, path).out == "0.0\n"
    assert command(*on_950, "--reading", "nan-e2m1=max", path).out == "6.0\n"
    refused = command("run", "--reading", "nan-e2m1=max", path)
    assert (refused.code, refused.out) == (2, "")
    assert "is of chips of 950" in refused.err


def test_what_torch_npu_adds_for_drivers(command: Command, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = (
        "import torch_npu, pypto\ntorch_npu.npu.config.allow_internal_format = True\n"
        "x = torch_npu.npu_format_cast(x, torch_npu.Format.FRACTAL_NZ)\n"
        "pypto.runtime._device_synchronize()\nprint(torch.npu.get_device_name())\nrun(x, out)\n"
    )
    ran = command("run", "--npu-on-cpu", program(tmp_path, HEAD + TORCH + text))
    assert ran.out == "Ascend910B3\nright\n", ran.err


WRAPS = """
import numpy as np
import {module} as pypto
pypto.set_vec_tile_shapes(32)
for value in (3, 300, 300):
    x = pypto.from_numpy(np.full(32, value, np.float16))
    print(pypto.cast(x, pypto.DT_INT8).numpy()[0])
"""


def test_a_satmode_that_is_left_out_is_upstreams(command: Command, tmp_path: Path) -> None:
    with pypto_cast.options(vec_tile_shapes=()):
        ran = command("run", program(tmp_path, WRAPS.format(module="pypto")))
        assert ran.out.split() == ["3", "44", "44"]
        assert ran.err.count("warning: cast names no satmode") == 1
        ran = command("run", program(tmp_path, WRAPS.format(module="pypto_cast")))
    assert ran.out.split() == ["3", "127", "127"]
    assert "satmode" not in ran.err


# --- Devices -------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", REQUESTS, ids=str.strip)
def test_a_request_for_a_device_ends_in_one_line(
    command: Command, tmp_path: Path, request_: str
) -> None:
    pytest.importorskip("torch")
    ran = command("run", program(tmp_path, HEAD + TORCH + request_ + "run(x, out)\n"))
    assert ran.error == (
        f"the program asks for an NPU ({REQUESTS[request_]}), and none is here; kernels run "
        "without one: leave that out, or have it mean the CPU with --npu-on-cpu"
    )


@pytest.mark.parametrize("request_", [r for r in REQUESTS if "torch_npu.npu" not in r])
def test_the_cpu_stands_for_the_device(command: Command, tmp_path: Path, request_: str) -> None:
    pytest.importorskip("torch")
    text = HEAD + TORCH + request_ + "run(x, out)\n"
    ran = command("run", "--npu-on-cpu", program(tmp_path, text))
    assert (ran.code, ran.out) == (0, "right\n"), ran.err
    first, *_, last = ran.err.splitlines()
    assert first.endswith("the CPU stands for the NPU; nothing below ran on a device")
    assert last.endswith("the CPU stood for the NPU; nothing above ran on a device")
    assert ran.err.splitlines()[-2] == RAN


def test_a_driver_that_looks_first_is_told_the_truth(command: Command, tmp_path: Path) -> None:
    """It looks as upstream's drivers do, before they move anything."""
    pytest.importorskip("torch")
    text = (
        "import os\n"
        "try:\n    import torch_npu\n    found = torch.npu.is_available()\n"
        "except ImportError:\n    found = False\n"
        "print(found, os.environ.get('TILE_FWK_DEVICE_ID'), hasattr(torch.Tensor, 'npu'))\n"
        "print(isinstance(torch.device('cpu'), torch.device), x.device)\n"
        "run(x, out)\n"
    )
    path = program(tmp_path, HEAD + TORCH + text)
    assert command("run", path).out == "False None True\nTrue cpu\nright\n"
    assert command("run", "--npu-on-cpu", path).out == "True 0 True\nTrue cpu\nright\n"


def test_torch_is_as_before() -> None:
    torch = pytest.importorskip("torch")
    assert not hasattr(torch.Tensor, "npu")
    assert not hasattr(torch, "npu")
    assert type(torch.device) is type
    with pytest.raises(RuntimeError, match="device type at start of device string: npu"):
        torch.zeros(1, device="npu")


# --- An installed pypto --------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pypto that Python finds."""
    package = tmp_path / "site" / "pypto"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("WHOSE = 'upstream'\n")
    monkeypatch.syspath_prepend(package.parent)
    return package / "__init__.py"


def test_an_installed_pypto_is_not_replaced(
    command: Command, tmp_path: Path, installed: Path
) -> None:
    path = program(tmp_path, "import pypto\nprint(pypto.__name__)\n")
    error = command("run", path).error
    assert f"pypto is installed here ({installed})" in error
    assert "--replace-installed" in error
    ran = command("run", "--replace-installed", path)
    assert ran.out == "pypto_cast\n"
    assert f"stands for the pypto that is installed here ({installed})" in ran.err


def test_as_pypto_gives_back_what_was_imported(installed: Path) -> None:
    import pypto

    assert pypto.WHOSE == "upstream"
    with pytest.raises(ImportError, match="does not take its name unless asked"):
        pypto_cast.as_pypto().__enter__()
    replacing = pypto_cast.as_pypto(replace_installed=True)
    with pytest.warns(UserWarning, match="stands for the pypto"):
        replacing.__enter__()
    import pypto as ours

    assert ours is pypto_cast
    replacing.__exit__(None, None, None)
    assert sys.modules["pypto"] is pypto
    del sys.modules["pypto"]


def test_a_folder_named_pypto_is_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pypto").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pypto_cast.as_pypto():
        import pypto

        assert pypto is pypto_cast


def test_submodules_and_nesting() -> None:
    statements = """
import pypto, pypto.pypto_impl as impl, pypto.frontend
from pypto import CastMode, experimental, pypto_impl
from pypto.experimental import set_operation_options
from pypto.operation import op_wrapper
from pypto.platform import platform
assert impl is pypto_impl and platform is pypto.platform
assert experimental.set_operation_options is set_operation_options
"""
    with pypto_cast.as_pypto() as given:
        exec(statements, found := {})
        assert found["pypto"] is given is pypto_cast
        with pypto_cast.as_pypto():
            exec(statements, {})
        exec(statements, {})
        with pytest.raises(ImportError, match=r"pypto_cast\.experimental has no 'shmem_load'"):
            exec("from pypto.experimental import shmem_load", {})
    with pytest.raises(ModuleNotFoundError, match="No module named 'pypto'"):
        exec("import pypto", {})
    assert type(pypto_cast.platform).__name__ == "_PlatformQuery"


def test_a_dump_of_the_operations(command: Command, tmp_path: Path) -> None:
    text = HEAD.replace("    out[:] = ", "    assert x.numpy()[0, 0] == 1\n    out[:] = ")
    path, folder = program(tmp_path, text + NUMPY), tmp_path / "dump"
    ran = command("run", "--dump", folder, path)
    assert (ran.code, ran.out) == (0, "right\n")
    assert "0 results certain, 64 undecided" in ran.err
    (line,) = (folder / "index.jsonl").read_text().splitlines()
    entry = json.loads(line)
    assert (entry["operation"], entry["line"], entry["kernel"]) == ("cast", 10, "halved")
    held = [np.load(folder / each["file"]) for each in entry["tensors"]]
    assert [each.dtype.name for each in held] == ["float32", "float16"]
    assert all((each == 1).all() for each in held)
    error = command("run", "--dump", folder, path).error
    assert error == f"{folder} has files already; a dump needs a folder of its own"


def test_a_file_that_is_no_program(command: Command, tmp_path: Path) -> None:
    path, folder = tmp_path / "kernel.py", tmp_path / "dump"
    path.write_text("import pypto\nx = (1 +\n")
    for words in ((), ("--dump", folder)):
        ran = command("run", *words, path)
        assert (ran.code, ran.out) == (2, "")
        (line,) = ran.err.splitlines()
        assert line.startswith(f"pypto-cast: error: {path}:2: SyntaxError: ")
    assert list(folder.iterdir()) == []
    path.write_text("print('right')")
    assert command("run", "--dump", folder, path).out == "right\n"
    path.write_bytes(b"x\0")
    ran = command("run", path)
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    (tmp_path / "other.py").write_text("x = (1 +\n")
    path.write_text("import other")
    ran = command("run", path)
    assert ran.code == 1
    assert ran.err.startswith("Traceback (most recent call last):")
