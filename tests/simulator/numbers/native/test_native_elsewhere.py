"""The native engine under AddressSanitizer and UBSan, and on aarch64 under qemu-user."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
from support.environment.sources import ROOT
from support.numbers.native_cases import (
    Chain,
    codes_of_interest,
    define,
    matrix_rows,
    name,
    policies,
)

from simulator.numbers.convert import Conversion
from simulator.numbers.formats import FORMATS
from simulator.numbers.native import library
from simulator.numbers.native.library import _steps
from simulator.numbers.rounding import RoundMode

SANITIZED = "-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all"
FORMAT_NAMES = "FP32 FP16 BF16 INT4 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL E4M3FN"
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"

TESTS = [str(Path(__file__).with_name(f"test_native{part}.py")) for part in ("", "_environment")]
SHARE = 4
"""Of the rows and pairs one in four runs at each level, by the seed of --drawn-by."""
LEFT_OUT = "not many_codes and not rows_of_the_matrix and not every_policy and not threads"


@pytest.mark.sanitizers
def test_the_engine_runs_clean(tmp_path: Path) -> None:
    if shutil.which("cmake") is None or shutil.which("g++") is None:
        pytest.skip("cmake and g++ are not both installed")
    settings = ["-DCMAKE_CXX_COMPILER=g++", f"-DCMAKE_CXX_FLAGS_RELEASE={SANITIZED}"]
    for step in (["-S", library.SOURCES, "-B", tmp_path, *settings], ["--build", tmp_path]):
        subprocess.run(["cmake", *step], capture_output=True, check=True)
    runtime = subprocess.run(
        ["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", LEFT_OUT, *TESTS],
        cwd=ROOT,
        env={
            **os.environ,
            library.LIBRARY_VARIABLE: str(tmp_path / f"{library.NAME}.so"),
            "LD_PRELOAD": runtime.stdout.strip(),
            "ASAN_OPTIONS": "detect_leaks=0",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def pairs() -> list[Chain]:
    formats = [FORMATS[fmt] for fmt in FORMAT_NAMES.split()]
    return [
        (Conversion(src=src, dst=dst, mode=mode, policy=policy),)
        for src in formats
        if src is not FORMATS["E4M3FN"]
        for dst in formats
        for mode in RoundMode
        for policy in policies(dst)
    ]


@pytest.mark.native
def test_on_aarch64(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if shutil.which(COMPILER) is None or shutil.which(EMULATOR) is None:
        pytest.skip(f"{COMPILER} and {EMULATOR} are not both installed")
    driver = tmp_path / "driver"
    sources = [str(library.SOURCES / f"{part}.cpp") for part in ("engine", "baseline")]
    flags = ["-std=c++17", "-O3", "-frounding-math", "-Wno-psabi", "-static"]
    macro = f'-DPYPTO_CAST_DIGEST="{library.digest()}"'
    own = str(ROOT / "tests" / "support" / "numbers" / "native_driver.cpp")
    subprocess.run([COMPILER, *flags, macro, *sources, own, "-o", str(driver)], check=True)
    random = Random(request.config.getoption("drawn_by"))
    for chains, elems in ((matrix_rows(), 20_000), (pairs(), 1_000)):
        for level in (0, 1):
            check(driver, level, random.sample(chains, len(chains) // SHARE), elems)


def check(driver: Path, level: int, chains: list[Chain], elems: int) -> None:
    jobs, expected = [], []
    for chain in chains:
        codes = codes_of_interest(chain[0].src, elems)
        codes = np.ascontiguousarray(codes[:: max(1, codes.size // elems)])
        wanted = define(chain, codes)
        head = struct.pack("5q", level, len(chain), codes.size, codes.nbytes, wanted.nbytes)
        jobs.append(head + bytes(_steps(chain)) + codes.tobytes())
        expected.append(wanted)
    done = subprocess.run(
        [EMULATOR, str(driver)], input=b"".join(jobs), capture_output=True, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    start = 0
    for chain, wanted in zip(chains, expected, strict=True):
        found = np.frombuffer(done.stdout, wanted.dtype, wanted.size, start)
        np.testing.assert_array_equal(found, wanted, name(chain))
        start += wanted.nbytes
    assert start == len(done.stdout)
