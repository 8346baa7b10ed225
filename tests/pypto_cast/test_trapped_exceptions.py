"""Exceptions of the floating-point unit stay inside: none traps, and numpy raises nothing."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("safetensors", reason="safetensors is not installed (extra cli)")
ENTRIES = importlib.import_module("support.programs.trapped_entries")
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("group", ENTRIES.GROUPS)
def test_special_values_end_no_process_that_traps_exceptions(tmp_path: Path, group: str) -> None:
    program = ROOT / "tests" / "support" / "programs" / "trapped_entries.py"
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    ran = subprocess.run(
        [sys.executable, program, group],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, "\n".join(ran.stderr.splitlines()[-40:])
    assert ran.stderr.splitlines()[-1] == "done"
