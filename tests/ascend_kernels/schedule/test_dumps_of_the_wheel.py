"""Upstream's wheel compiles drawn kernels again: the dumps of the tests are what it makes."""

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
def test_drawn_kernels_compile_to_the_dumps_of_the_tests(tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    python = python_with_wheel(tmp_path)
    for name in np.random.default_rng(seed).permutation(NAMES)[:DRAWN].tolist():
        compiled(name, tmp_path / f"{name}.dump", str(python))
        schedule = pypto.read_schedule(tmp_path / f"{name}.dump")
        assert schedule == pypto.read_schedule(unpacked(name, tmp_path)), name
        assert_schedule_ok(schedule, kernel_of(name), arrays_of(schedule))
