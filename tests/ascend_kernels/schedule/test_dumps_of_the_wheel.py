"""Upstream's wheel compiles drawn kernels: what it makes of them is executed, and planned here."""

from __future__ import annotations

import runpy
import secrets
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from support.environment.upstream_wheel import python_with_wheel

import pypto_cast as pypto
from benchmarks.planned_schedules import Case, Verdict, drawn, in_brief, judged
from benchmarks.upstream_kernels import drawn as drawn_operation
from pypto_cast.testing import assert_schedule_ok

DRAWN = 20
LEAST_EQUAL = 17
"""A draw may find what is not planned as upstream does; benchmarks/planned_schedules.md counts."""


@pytest.mark.upstream
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_drawn_kernels_are_compiled_executed_and_planned(tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    python = str(python_with_wheel(tmp_path))
    random = np.random.default_rng(seed)
    cases = list(islice(drawn(seed), DRAWN // 2))
    for number in range(DRAWN - len(cases)):
        kernel = replace(drawn_operation(random), id=f"drawn_{number}")
        cases.append(Case(group="drawn", kernel=kernel))
    equal = 0
    for case in cases:
        kernel = case.kernel
        print(kernel.text)
        result = judged(case, tmp_path, python)
        print(result.verdict, result.parts, result.why)
        assert result.verdict not in (Verdict.WRONG, Verdict.NOT_COMPILED)
        equal += result.verdict is not Verdict.REFUSED and in_brief(result)
        schedule = pypto.read_schedule(tmp_path / kernel.id)
        assert_schedule_ok(schedule, runpy.run_path(str(tmp_path / f"{kernel.id}.py"))[kernel.name])
    assert equal >= LEAST_EQUAL
