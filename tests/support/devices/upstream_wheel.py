"""Upstream's wheel in an environment of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

UPSTREAM = "pypto==0.2.0"


def run(
    *command: str, cwd: Path, path: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command that finds neither this package nor a configuration of the user."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": path, "HOME": str(cwd), **variables}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def upstream_python(folder: Path) -> Path:
    """The interpreter of a new environment in a folder that has the wheel, and the tests' torch."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("upstream needs torch, which is not installed")
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    installed = subprocess.run(
        [str(python), "-m", "pip", "install", "-q", "--no-deps", UPSTREAM],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        pytest.skip(f"{UPSTREAM} cannot be installed: {installed.stderr.strip()[-300:]}")
    (site,) = (environment / "lib").glob("python*/site-packages")
    torch = sysconfig.get_paths()["purelib"]
    (site / "torch_of_the_tests.pth").write_text(f"{torch}\n", encoding="utf-8")
    return python
