"""The twin under AddressSanitizer and UndefinedBehaviorSanitizer, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.environment.sources import ROOT
from support.programs.twin_programs import needs_twin

FLAGS = ("-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

DRAWN = 100
"""Cases of a family, by the seed of --drawn-by, besides two shapes of each row."""

RUN = f"""\
import random
import sys
import numpy as np
from ascend_kernels import twin
from simulator.machine.execute import execute
from simulator.numbers.rounding import boundary_codes
from simulator.numbers.convert import values_of
from test_twin import SHAPES
from support.programs.twin_programs import CASES, DISTINCT, random_codes

twin.FLAGS = (*twin.FLAGS, *{FLAGS!r})
drawn = random.Random(int(sys.argv[1]))
family = drawn.choice(sorted({{case.rule.family for case in CASES}}))  # each is a library
CASES, DISTINCT = ([x for x in each if x.rule.family == family] for each in (CASES, DISTINCT))
for case in drawn.sample(CASES, {DRAWN}):  # the others differ in a mode or a bit
    values = values_of(boundary_codes(case.rule.src)[:20_000], case.rule.src)
    program = case.program(values.shape, (min(4096, values.size),))
    expected = execute(program, values)
    np.testing.assert_array_equal(twin.execute(program, values, threads=2), expected)
for case in DISTINCT:
    for shape, tile in drawn.sample(SHAPES, 2):
        tile = (*tile[:-1], min(tile[-1], 6000))
        values = values_of(random_codes(case.rule.src, int(np.prod(shape)), 1), case.rule.src)
        program = case.program(shape, tile)
        expected = execute(program, values)
        np.testing.assert_array_equal(twin.execute(program, values.reshape(shape)), expected)
        if len(program.plan.grid) < 100:
            assert twin.trace(program, 0) == list(program.instructions(0))
values = np.zeros((4100, 2050), np.float32)
case = next(x for x in DISTINCT if x.rule.src.name == "FP32")
program = case.program(values.shape, (32, 700))  # large enough to be streamed
assert not twin.execute(program, values).any()
print("clean")
"""


@pytest.mark.sanitizers
def test_the_twin_runs_clean(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    needs_twin()
    runtime = subprocess.run(
        ["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    environment = {
        **os.environ,
        "CXX": "g++",
        "XDG_CACHE_HOME": str(tmp_path),
        "LD_PRELOAD": runtime.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]),
    }
    seed = str(request.config.getoption("drawn_by"))
    done = subprocess.run(
        [sys.executable, "-c", RUN, seed],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == "clean\n"
