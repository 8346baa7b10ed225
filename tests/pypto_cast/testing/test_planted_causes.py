"""A sample of the benchmark of planted causes: each is named first in one kernel.

The ordinary run has two, drawn by the seed. The seed is that of all tests, which the report prints.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
from support.numbers.codes import SEED

from benchmarks.planted_causes import (
    CAUSES,
    Verdict,
    blamed_and_missed,
    golden_is_named,
    planted,
)
from benchmarks.planted_kernels import SKETCHES, Sketch

FIRST_SEED = SEED % 1000


def test_there_are_20_causes_and_8_kernels() -> None:
    assert (len({cause.name for cause in CAUSES}), len(set(map(str, SKETCHES)))) == (20, 8)


def exhaustive_but(number: int, count: int) -> list[pytest.MarkDecorator]:
    """The marks of one of so many, of which the ordinary run has one."""
    return [] if number == FIRST_SEED % count else [pytest.mark.exhaustive]


@functools.lru_cache(maxsize=1)
def judged(number: int) -> tuple[Sketch, Verdict]:
    sketch = SKETCHES[(number + FIRST_SEED) % len(SKETCHES)]
    seeds = range(FIRST_SEED, FIRST_SEED + 8)
    verdicts = (planted(sketch, CAUSES[number], seed) for seed in seeds)
    return sketch, next(each for each in verdicts if each.counts)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, id=cause.name, marks=exhaustive_but(number % 10, 10))
        for number, cause in enumerate(CAUSES)
    ],
)
def test_a_planted_cause_is_named_first(number: int) -> None:
    _, verdict = judged(number)
    assert verdict.is_named, verdict


@pytest.mark.slow
def test_another_place_or_a_contradiction_is_not_the_cause() -> None:
    _, verdict = judged(FIRST_SEED % 10 + 10)
    first = verdict.first
    assert first is not None
    assert verdict.is_named
    for change in (
        {"hypotheses": tuple(f"{each}0" for each in first.hypotheses)},
        {"explained": first.explained - 1},
        {"contradicted": 1},
    ):
        assert not replace(verdict, first=replace(first, **change)).is_named


def test_members_are_never_blamed_and_one_element_outside_is_found() -> None:
    assert blamed_and_missed(100, FIRST_SEED) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [pytest.param(each, marks=exhaustive_but(each, 16)) for each in range(16)]
)
def test_a_golden_with_a_planted_mistake_is_named(number: int) -> None:
    cause = [each for each in CAUSES if each.mistake is not None][number]
    assert golden_is_named(SKETCHES[(number + FIRST_SEED) % len(SKETCHES)], cause, FIRST_SEED)
