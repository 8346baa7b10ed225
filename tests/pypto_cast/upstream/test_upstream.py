"""The same kernel file with upstream's package and with this one: only the import differs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
KERNELS = ROOT / "tests" / "support" / "devices" / "upstream_kernels.py"
UPSTREAM = "pypto==0.2.0"
NAMES = ("whole", "rows_in_views", "slices", "quantise")


def run(*command: str, cwd: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": path, "HOME": str(cwd)}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_our_package_runs_upstreams_file_once_the_import_is_changed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    source = KERNELS.read_text(encoding="utf-8")
    assert source.count("\nimport pypto\n") == 1
    ours = tmp_path / "kernels.py"
    ours.write_text(source.replace("import pypto\n", "import pypto_cast as pypto\n"))
    done = run(sys.executable, "-W", "ignore", str(ours), cwd=tmp_path, path=str(ROOT))
    assert done.stdout.splitlines() == [f"{name}: accepted and right" for name in NAMES], done


@pytest.mark.upstream
def test_upstreams_front_end_accepts_the_same_file(tmp_path: Path) -> None:
    """Its SIM mode writes no outputs, so there is nothing to compare."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("upstream needs torch, which is not installed")
    environment = tmp_path / "venv"
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
    done = run(str(python), str(KERNELS), cwd=tmp_path)
    accepted = [line for line in done.stdout.splitlines() if ": accepted" in line]
    assert [line.split(":")[0] for line in accepted] == list(NAMES), done.stdout + done.stderr
