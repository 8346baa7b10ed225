"""Upstream's wheel compiles drawn kernels again: what it makes now is read and executed.

Two compilations of one kernel are not always equal, so the schedules are not compared with the
dumps of the tests, but with the kernel at tensor level, as those are.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import numpy as np
import pytest
from support.environment.upstream_wheel import python_with_wheel
from support.programs.upstream_dumps import NAMES, arrays_of, compiled, kernel_of, unpacked

import pypto_cast as pypto
from pypto_cast.testing import assert_schedule_ok

DRAWN = 20


@pytest.mark.upstream
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_drawn_kernels_are_compiled_and_executed(tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    python = python_with_wheel(tmp_path)
    for name in np.random.default_rng(seed).permutation(NAMES)[:DRAWN].tolist():
        compiled(name, tmp_path / f"{name}.dump", str(python))
        schedule = pypto.read_schedule(tmp_path / f"{name}.dump")
        known = pypto.read_schedule(unpacked(name, tmp_path))
        assert (schedule.kernel, schedule.parameters) == (known.kernel, known.parameters)
        assert_schedule_ok(schedule, kernel_of(name), arrays_of(schedule))
