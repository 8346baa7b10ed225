"""Samples of cases: one in n by default, each other under the marker `exhaustive`."""

from __future__ import annotations

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


def ran(pytester: pytest.Pytester, words: str) -> set[str]:
    found = pytester.runpytest_inprocess("-p", "support.environment.sampled", "-v", "-m", words)
    return {line.split()[0].partition("::")[2] for line in found.outlines if " PASSED" in line}


def test_every_case_is_in_one_of_both_runs(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    sampled(n)\n    exhaustive\n")
    pytester.makepyfile(CASES)
    usual, rest = ran(pytester, "not exhaustive"), ran(pytester, "exhaustive")
    assert len(usual | rest) == 13
    assert not usual & rest
    assert "test_whole" in usual
    assert sum(name.startswith("test_many") for name in usual) == 3


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
