"""The pytest option --pypto-cast: a test-suite written for upstream's pypto."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.environment.sources import ROOT

CONFTEST = """
import pypto

@pypto.frontend.jit
def halved(x: pypto.Tensor([], pypto.DT_FP32), out: pypto.Tensor([], pypto.DT_FP16)):
    pypto.set_vec_tile_shapes(8, 16)
    out[:] = pypto.cast(x, pypto.DT_FP16)
"""
SUITE = """
import numpy as np
import pypto
from conftest import halved
from pypto.experimental import set_operation_options

def test_one():
    out = np.zeros((8, 16), np.float16)
    halved(np.ones((8, 16), np.float32), out)
    assert (out == 1).all() and pypto.__name__ == "pypto_cast"

def test_two():
    test_one()
"""
LEFT_OUT = """
def test_upstreams_default_of_satmode():
    for _ in range(2):
        large = pypto.from_numpy(np.full(32, 300, np.float16))
        assert pypto.cast(large, pypto.DT_INT8).numpy().tolist() == [44] * 32
"""
DEVICE = """
import torch

def test_device():
    assert torch.zeros(2, device="npu").npu().sum() == 0

def test_import():
    import torch_npu
"""


def run(
    folder: Path, suite: str, *options: str, conftest: str = CONFTEST
) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(conftest, encoding="utf-8")
    (folder / "test_suite.py").write_text(suite, encoding="utf-8")
    plugin = ("-p", "pypto_cast.pytest_plugin", "-p", "no:cacheprovider")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_suite_runs_with_the_package_in_its_place(tmp_path: Path) -> None:
    done = run(tmp_path, SUITE + LEFT_OUT, "--pypto-cast")
    assert done.returncode == 0, done.stdout + done.stderr
    counted = "pypto-cast: 1 kernel ran (halved 2 times with 2 casts), 2 casts outside; "
    assert counted in done.stdout
    assert "stands for the NPU" not in done.stdout
    assert done.stdout.count("cast names no satmode: upstream's default, OFF") == 1


@pytest.mark.exhaustive
def test_workers_report_together(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    done = run(tmp_path, SUITE, "--pypto-cast", "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pypto-cast: 1 kernel ran (halved 2 times with 2 casts); " in done.stdout


@pytest.mark.slow
def test_strict_makes_errors_of_what_upstream_refuses(tmp_path: Path) -> None:
    suite = SUITE.replace("halved(", "returning(").replace("import halved", "import returning")
    conftest = CONFTEST.replace("halved(", "returning(") + "    return\n"
    done = run(tmp_path, suite, "--pypto-cast", conftest=conftest)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run(tmp_path, suite, "--pypto-cast", "--pypto-strict", conftest=conftest)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ParserError: returning: upstream refuses `return` in a kernel" in done.stdout


@pytest.mark.slow
def test_without_the_option_nothing_stands_in(tmp_path: Path) -> None:
    done = run(tmp_path, SUITE)
    assert done.returncode != 0
    assert "No module named 'pypto'" in done.stdout + done.stderr


@pytest.mark.exhaustive  # three suites in processes of their own
def test_devices_are_refused_or_the_cpu(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = run(tmp_path, DEVICE, "--pypto-cast")
    assert "2 failed" in done.stdout
    assert "asks for an NPU (device 'npu'), and none is here" in done.stdout
    assert "asks for an NPU (import torch_npu), and none is here" in done.stdout
    done = run(tmp_path, DEVICE, "--pypto-cast", "--pypto-npu-on-cpu")
    assert "2 passed" in done.stdout, done.stdout
    assert done.stdout.count("the CPU stands for the NPU; nothing here runs on a device") == 2


@pytest.mark.slow
def test_an_installed_pypto_is_not_replaced(tmp_path: Path) -> None:
    package = tmp_path / "pypto"
    package.mkdir()
    (package / "__init__.py").write_text("")
    done = run(tmp_path, SUITE, "--pypto-cast")
    assert done.returncode == 4
    assert "--pypto-cast: pypto is installed here" in done.stderr
    done = run(tmp_path, SUITE, "--pypto-cast", "--pypto-replace-installed")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_pytest_rewrites_no_assert_of_the_package(tmp_path: Path) -> None:
    """It marks the modules of a distribution that has a plugin, and would parse them all."""
    ours = ("tiling", "simulator", "ascend_kernels", "pypto_cast.cast", "pypto_cast.kernel")
    suite = f"""
import sys

import pytest

pytest.register_assert_rewrite(*{ours}, "beside")

def test_modules():
    import beside
    import pypto_cast

    assert callable(pypto_cast.cast)
    found = {{
        name
        for name, module in sys.modules.items()
        if type(getattr(module, "__loader__", None)).__name__ == "AssertionRewritingHook"
    }}
    assert "beside" in found
    assert not [name for name in found if "." in name and name.startswith({ours})]
"""
    (tmp_path / "beside.py").touch()
    done = run(tmp_path, suite, conftest="")
    assert done.returncode == 0, done.stdout + done.stderr
