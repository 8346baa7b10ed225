"""Both engines leave the same bits behind in kernels as they are written: this project's examples,
and upstream's examples and models, from a checkout that an environment variable names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.programs.engine_digests import ENGINES, MARK

from simulator.arithmetic.native import executor_library

ROOT = Path(__file__).parents[3]
CHECKOUT = "PYPTO_CAST_UPSTREAM"
OWN = ("hello_cast.py", "quantise.py", "quantised_linear.py", "topk_router.py")
SECONDS = 200

pytestmark = pytest.mark.skipif(
    executor_library.in_use().name == "numpy", reason="the native executor is not built"
)


def digests(files: Sequence[Path], folder: Path) -> list[list[str]]:
    """The lines of programs on each engine; those of a program that took too long are cut."""
    parents = [files[0].parent, *list(files[0].parents)[:3]]
    paths = os.pathsep.join(map(str, (ROOT / "tests", ROOT, *parents)))
    command = [sys.executable, "-m", "support.programs.engine_digests", *map(str, files)]
    try:
        text = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=folder,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        ).stdout
    except subprocess.TimeoutExpired as late:
        text = late.stdout or b""
    found = [
        line.split(" ", 2) for line in text.decode("utf-8", "replace").splitlines() if MARK in line
    ]
    return [
        [rest[0] for mark, name, *rest in found if (mark, name) == (MARK, engine)]
        for engine in ENGINES
    ]


@pytest.mark.slow
def test_on_examples_of_this_project(tmp_path: Path) -> None:
    native, by_numpy = digests([ROOT / "examples" / name for name in OWN], tmp_path)
    assert native.count("outcome 0") == len(OWN)
    assert len(native) >= 2 * len(OWN)
    assert native == by_numpy


def _programs() -> list[Path]:
    root = Path(os.environ[CHECKOUT]) if CHECKOUT in os.environ else None
    if root is None:
        return []
    found = [*root.glob("examples/**/*.py"), *root.glob("models/**/*.py")]
    return sorted(file for file in found if "__main__" in file.read_text("utf-8"))


@pytest.mark.exhaustive
@pytest.mark.skipif(CHECKOUT not in os.environ, reason=f"{CHECKOUT} names no checkout of upstream")
@pytest.mark.parametrize("file", _programs(), ids=lambda file: file.stem)
def test_on_examples_and_models_of_upstream(file: Path, tmp_path: Path) -> None:
    native, by_numpy = digests([file], tmp_path)
    count = min(map(len, (native, by_numpy)))
    assert native[:count] == by_numpy[:count]
