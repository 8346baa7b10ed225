"""The table of upstream's tests: verdicts, limits, and rows that stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.environment.sources import ROOT

from benchmarks import upstream_tests
from benchmarks.upstream_tests import Outcomes, Result, Verdict, files_of, judged, kept, report

_PASSING = "import pypto\ndef test_it():\n    assert pypto.DT_FP16.name == 'DT_FP16'\n"
_FAILING = "def test_it():\n    raise KeyError('mine')\n"
_SKIPPED = "import pytest\n@pytest.mark.skip\ndef test_it():\n    pass\n"
_INTERNAL = "import pypto.ir\ndef test_it():\n    pass\n"
_REFUSED = """
import numpy as np, pypto, pytest

@pypto.frontend.jit
def kernel(x: pypto.Tensor([], pypto.DT_FP32)):
    return

def test_it():
    with pytest.raises(pypto.error.ParserError):
        kernel(np.zeros((2, 8), np.float32))

def test_that_strict_fails():
    kernel(np.zeros((2, 8), np.float32))
"""
_ENDLESS = "import time\ndef test_it():\n    time.sleep(600)\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in (
        ("python/tests/ut/test_a.py", _PASSING),
        ("python/tests/ut/test_b.py", _FAILING),
        ("python/tests/ut/test_c.py", _SKIPPED),
        ("python/tests/ut/test_d.py", _INTERNAL),
        ("python/tests/ut/test_e.py", "X = 1\n"),
        ("python/tests/ut/pypto_pro/test_f.py", _FAILING),
        ("python/tests/st/operation/test_g.py", _ENDLESS),
        ("python/tests/ut/test_j.py", _REFUSED),
        ("examples/h.py", "import pypto\n"),
        ("examples/i.py", "import pypto\npypto.sofmax\n"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_files_with_tests_and_examples_are_found(checkout: Path) -> None:
    assert [path.stem for path in files_of(checkout)] == [
        *("test_f", "test_a", "test_b", "test_c", "test_d", "test_j", "test_g", "h", "i")
    ]


VERDICTS = {
    "a": (Verdict.AGREES, ""),
    "b": (Verdict.FAILS, "KeyError: 'mine'"),
    "c": (Verdict.SKIPPED, ""),
    "d": (Verdict.INTERNALS, "has no 'ir'"),
    "f": (Verdict.ONLY_950, "second language"),
    "h": (Verdict.AGREES, ""),
    "j": (Verdict.AGREES, ""),
    "i": (Verdict.FAILS, "did you mean 'softmax'?"),
}


@pytest.mark.slow
@pytest.mark.parametrize("names", ["bh", pytest.param("acdfij", marks=pytest.mark.exhaustive)])
def test_each_file_gets_its_verdict(checkout: Path, names: str) -> None:
    """Each runs in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.upstream_tests", "--seconds", "60"]
    environment = {**os.environ, upstream_tests.CHECKOUT: str(checkout)}
    for path in files_of(checkout):
        if path.stem[-1] not in names:
            (checkout / path).unlink()
    printed = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    found = {Path(each.file).stem[-1]: each for each in kept(printed)}
    assert sorted(found) == list(names)
    for name in names:
        verdict, why = VERDICTS[name]
        assert (found[name].verdict, why in found[name].why) == (verdict, True), found[name]


def test_a_fault_here_outweighs_what_is_out_of_reach() -> None:
    text = "pypto_cast has no 'ir': upstream's ir is a part of upstream's compiler"
    found = Outcomes(passed={"a"}, raised={"b": text, "c": text})
    assert judged("a.py", found).verdict is Verdict.INTERNALS
    found.raised["d"] = "ValueError: x|y"
    assert judged("a.py", found).why == "ValueError: x/y"


def test_what_strict_passes_counts() -> None:
    found = Outcomes(passed={"a"}, skipped=1, raised={"b": "x", "c": "y", "d": "z"})
    strict = Outcomes(passed={"b", "c"}, raised={"a": "u", "c": "in its teardown", "d": "v"})
    both = found.with_strict(strict)
    assert both == Outcomes(passed={"a", "b"}, skipped=1, raised={"c": "y", "d": "z"})


def test_rows_of_a_table_are_read_again() -> None:
    rows = [
        judged("a.py", Outcomes(passed={"a"}, skipped=2)),
        judged("b.py", Outcomes(raised={"b": "ValueError: x|y"})),
    ]
    assert list(kept(report(rows))) == rows
    assert "Of the 2 files of the first and the last kind 1 run and agree." in report(rows)


def test_the_committed_table_says_what_it_counts() -> None:
    text = upstream_tests.TABLE.read_text(encoding="utf-8")
    found: list[Result] = list(kept(text))
    assert len({each.file for each in found}) == len(found) > 300
    assert report(found) in text


def test_a_missing_checkout_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert upstream_tests.main([], {}) == 2
    assert "PYPTO_CAST_UPSTREAM must name a checkout" in capsys.readouterr().out
