"""The same kernel file with upstream's package and with this one: only the import differs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.environment.sources import ROOT
from support.environment.upstream_wheel import run

KERNELS = ROOT / "tests" / "support" / "devices" / "upstream_kernels.py"
NAMES = ("whole", "rows_in_views", "slices", "quantise")


def test_our_package_runs_upstreams_file_once_the_import_is_changed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    source = KERNELS.read_text(encoding="utf-8")
    assert source.count("\nimport pypto\n") == 1
    ours = tmp_path / "kernels.py"
    ours.write_text(source.replace("import pypto\n", "import pypto_cast as pypto\n"))
    done = run(sys.executable, "-W", "ignore", str(ours), cwd=tmp_path, path=str(ROOT))
    assert done.stdout.splitlines() == [f"{name}: accepted and right" for name in NAMES], done


@pytest.mark.upstream
def test_upstreams_front_end_accepts_the_same_file(python_with_wheel: Path, tmp_path: Path) -> None:
    """Its SIM mode writes no outputs, so there is nothing to compare."""
    done = run(str(python_with_wheel), str(KERNELS), cwd=tmp_path)
    accepted = [line for line in done.stdout.splitlines() if ": accepted" in line]
    assert [line.split(":")[0] for line in accepted] == list(NAMES), done.stdout + done.stderr
