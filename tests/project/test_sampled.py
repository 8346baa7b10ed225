"""Samples of cases: one in n by default, each other under the marker `exhaustive`."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

CASES = """
import pytest
@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", range(10))
def test_many(n): pass
@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_few(n): pass
def test_whole(): pass
"""


def ran(pytester: pytest.Pytester, marks: str, *words: str) -> set[str]:
    plugin = "support.environment.sampled"
    found = pytester.runpytest_inprocess("-p", plugin, "-v", "-m", marks, *words)
    return {line.split()[0].partition("::")[2] for line in found.outlines if " PASSED" in line}


def test_every_case_is_in_one_of_both_runs(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    sampled(n)\n    exhaustive\n")
    pytester.makepyfile(CASES)
    usual, rest = ran(pytester, "not exhaustive"), ran(pytester, "exhaustive")
    assert len(usual | rest) == 13
    assert not usual & rest
    assert "test_whole" in usual
    assert sum(name.startswith("test_many") for name in usual) == 3


@pytest.mark.slow
def test_the_seed_draws_the_cases(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    sampled(n)\n    exhaustive\n")
    pytester.makepyfile(CASES)
    drawn = set()
    for seed in range(8):
        monkeypatch.setattr("support.environment.sampled.SEED", seed)
        drawn.add(frozenset(ran(pytester, "not exhaustive")))
    assert len(drawn) > 1


def test_one_in_some_of_the_chosen_cases(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    sampled(n)\n    exhaustive\n")
    pytester.makepyfile(CASES)
    whole = ran(pytester, "exhaustive")
    some = ran(pytester, "exhaustive", "--one-in", "3")
    others = ran(pytester, "exhaustive", "--one-in", "3", "--drawn-by", "5")
    assert some < whole > others
    assert [sum(name.startswith("test_many") for name in each) for each in (some, others)] == [3, 3]
    assert some != others
    assert {name.partition("[")[0] for name in some} == {"test_many", "test_few"}


@pytest.mark.slow
def test_none_starts_once_the_time_is_over(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(monotonic=itertools.count().__next__)  # a second from test to test
    monkeypatch.setattr("support.environment.sampled.time", clock)
    pytester.makeini("[pytest]\nmarkers =\n    sampled(n)\n    exhaustive\n")
    for name in "abc":
        tests = f"def test_{name}_first(): pass\ndef test_{name}_second(): pass\n"
        (pytester.path / f"test_{name}.py").write_text(tests, encoding="utf-8")
    first = {tuple(ran(pytester, "", "--within", "2", "--drawn-by", str(n))) for n in range(9)}
    assert first == {(f"test_{name}_first",) for name in "abc"}
    plugin = "support.environment.sampled"
    found = pytester.runpytest_inprocess("-p", plugin, "-rs", "--within", "2")
    found.assert_outcomes(passed=1, skipped=5)
    found.stdout.fnmatch_lines(["*the 2 s of --within are over"])
    assert len(ran(pytester, "", "--within", "7")) == 6


def test_one_in_some_of_the_tests_of_a_folder_that_have_one_case(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    sampled(n)\n    exhaustive\n")
    folder = pytester.mkpydir("folder")
    files = (pytester.path / "test_here.py", folder / "test_one.py", folder / "test_other.py")
    for file in files:
        tests = "".join(f"def {file.stem}_{n}(): pass\n" for n in range(6))
        file.write_text(tests, encoding="utf-8")
    drawn = [
        ran(pytester, "not exhaustive", "--one-in", "3", "-k", words)
        for words in ("test_here", "test_one or test_other", "test_one_4")
    ]
    assert [len(each) for each in drawn] == [2, 4, 1]
