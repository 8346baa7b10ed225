"""Upstream's wheel compiles drawn kernels: what it makes of them is read and executed."""

from __future__ import annotations

import runpy
import secrets
from pathlib import Path

import numpy as np
import pytest
from support.environment.upstream_wheel import python_with_wheel

import pypto_cast as pypto
from benchmarks.upstream_kernels import drawn
from pypto_cast.testing import assert_schedule_ok
from pypto_cast.upstream.wheel_compile import compile_kernel

DRAWN = 20


@pytest.mark.upstream
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_drawn_kernels_are_compiled_and_executed(tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    python = python_with_wheel(tmp_path)
    random = np.random.default_rng(seed)
    for number in range(DRAWN):
        kernel = drawn(random)
        print(kernel.text)
        file, dump = tmp_path / f"drawn_{number}.py", tmp_path / f"drawn_{number}.dump"
        file.write_text(kernel.text, encoding="utf-8")
        compile_kernel(file, kernel.name, kernel.tensors, dump, python=str(python))
        schedule = pypto.read_schedule(dump)
        assert len(schedule.parameters) == len(kernel.tensors)
        assert_schedule_ok(schedule, runpy.run_path(str(file))[kernel.name])
