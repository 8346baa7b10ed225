"""A sample of the benchmark of planted causes: each is named first in one kernel.

The ordinary run has every fourth.
"""

from __future__ import annotations

import pytest
from support.numbers.codes import SEED

from benchmarks.planted_causes import (
    CAUSES,
    SKETCHES,
    Planted,
    blamed_and_missed,
    golden_is_named,
    planted,
)


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
    verdict = planted(SKETCHES[CAUSES.index(cause) % len(SKETCHES)], cause, 1)
    assert verdict.first is not None
    assert verdict.is_named, verdict.first


def test_members_are_never_blamed_and_one_element_outside_is_found() -> None:
    assert blamed_and_missed(100, SEED % 1000) == (0, 0)


def test_a_golden_with_a_planted_mistake_is_named() -> None:
    assert golden_is_named(SKETCHES[1], CAUSES[1], 1)
