"""A sample of the benchmark of planted causes: each is named first in one kernel.

The ordinary run has every fourth. The seed is that of all tests, which the report prints.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.numbers.codes import SEED

from benchmarks.planted_causes import (
    CAUSES,
    Planted,
    blamed_and_missed,
    golden_is_named,
    planted,
)
from benchmarks.planted_kernels import SKETCHES

FIRST_SEED = SEED % 1000


def test_there_are_20_causes_and_8_kernels() -> None:
    assert (len({cause.name for cause in CAUSES}), len(set(map(str, SKETCHES)))) == (20, 8)


@pytest.mark.parametrize(
    "cause",
    [
        pytest.param(cause, id=cause.name, marks=[pytest.mark.exhaustive] * (number % 4 > 0))
        for number, cause in enumerate(CAUSES)
    ],
)
def test_a_planted_cause_is_named_first(cause: Planted) -> None:
    number = CAUSES.index(cause)
    sketch = SKETCHES[(number + FIRST_SEED) % len(SKETCHES)]
    verdicts = (planted(sketch, cause, seed) for seed in range(FIRST_SEED, FIRST_SEED + 8))
    verdict = next(each for each in verdicts if each.counts)
    assert verdict.is_named, verdict


def test_another_place_or_a_contradiction_is_not_the_cause() -> None:
    sketch, cause = SKETCHES[0], CAUSES[0]
    verdict = planted(sketch, cause, FIRST_SEED)
    first = verdict.first
    assert first is not None
    assert verdict.is_named
    for change in (
        {"hypotheses": (f"{first.hypotheses[0]}0",)},
        {"explained": first.explained - 1},
        {"contradicted": 1},
    ):
        assert not replace(verdict, first=replace(first, **change)).is_named


def test_members_are_never_blamed_and_one_element_outside_is_found() -> None:
    assert blamed_and_missed(100, FIRST_SEED) == (0, 0)


@pytest.mark.parametrize("number", [1, FIRST_SEED % 15])
def test_a_golden_with_a_planted_mistake_is_named(number: int) -> None:
    cause = [each for each in CAUSES if each.mistake is not None][number]
    assert golden_is_named(SKETCHES[FIRST_SEED % len(SKETCHES)], cause, FIRST_SEED)
