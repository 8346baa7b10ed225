"""Sorts and merges of a device: equal elements, and scores that are lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.devices.checks_on_twin import run_on_twin
from support.devices.planted_devices import DESCRIPTION
from support.devices.planted_instructions import (
    StandIn,
    last_first,
    last_greatest,
    later_lists_first,
    lost_score,
)
from support.programs.twin_programs import needs_twin

from ascend_kernels.checks.check_program import SORTS, CheckProgram
from pypto_cast.device.device_model import (
    MERGE_ORDER,
    SORT_ORDER,
    SORTED_SCORES,
    model_from,
)
from pypto_cast.device.facts import Agreement, DeviceFact, DeviceFacts
from pypto_cast.device.sort_check import SORT_FACTS, check_extremes, check_sorts
from simulator.arithmetic.trust import ASSUME_STABLE_SORT, DEFAULT, DOCUMENTED
from simulator.numbers.formats import FP16, FP32, FloatFormat
from tiling.chips import DEFAULT_CHIP

Sorts = Callable[..., Any]


def _found(device: Any, fmt: FloatFormat = FP32) -> dict[str, DeviceFact]:
    return {fact.name: fact for fact in check_sorts(device, fmt, DEFAULT_CHIP)}


@pytest.mark.parametrize("fmt", [FP32, FP16], ids=str)
def test_the_kernels_sort_as_is_assumed(fmt: FloatFormat) -> None:
    needs_twin()
    found = _found(run_on_twin, fmt)
    assert list(found) == list(SORT_FACTS)
    assert {fact.verdict for fact in found.values()} == {Agreement.AGREES}
    assert {fact.stability for fact in found.values()} == {"stable"}
    assert found[SORTED_SCORES].tested == len(SORTS) * 128


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("sorts", "fact"),
    [
        (last_first, SORT_ORDER),
        (later_lists_first, MERGE_ORDER),
        (lost_score, SORTED_SCORES),
    ],
    ids=["last first", "later lists first", "lost score"],
)
def test_another_sort_is_one_fact(sorts: Sorts, fact: str) -> None:
    found = _found(StandIn(sorts=sorts))
    assert {n for n, x in found.items() if x.verdict is Agreement.DIFFERS} == {fact}
    assert "assumed" in found[fact].example


@pytest.mark.slow
def test_a_core_that_sorts_otherwise_is_named() -> None:
    device = StandIn()

    def broken(program: CheckProgram) -> np.ndarray:
        found = device(program).reshape(program.tiling["passes"], -1).copy()
        found[5 :: program.cores, 4] ^= 1  # the first index of a row
        return found.reshape(-1)

    fact = _found(broken)[SORTED_SCORES]
    assert set(fact.varying.values()) == {"core-dependent: core 5"}


@pytest.mark.parametrize("fmt", [FP32, FP16], ids=str)
def test_extremes_of_the_twin_are_as_assumed(fmt: FloatFormat) -> None:
    needs_twin()
    fact = check_extremes(run_on_twin, fmt, DEFAULT_CHIP)
    assert (fact.verdict, fact.tested) == (Agreement.AGREES, 2 * 4096)


@pytest.mark.slow
def test_argmax_that_takes_the_last_is_found_and_assumed_no_more() -> None:
    sorts = _found(StandIn()).values()
    for planted, is_kept in (({}, True), ({"argmax": last_greatest}, False)):
        fact = check_extremes(StandIn(planted=planted), FP32, DEFAULT_CHIP)
        assert (fact.verdict is Agreement.AGREES) is is_kept
        assert set(fact.by_pair) == (set() if is_kept else {"argmax FP32"})
        followed = model_from(DeviceFacts(device=DESCRIPTION, facts=(*sorts, fact)))
        assert (ASSUME_STABLE_SORT in followed.trusting(DOCUMENTED).assumed) is is_kept
        assert (ASSUME_STABLE_SORT in followed.trusting(DEFAULT).assumed) is is_kept


@pytest.mark.slow
def test_equal_elements_are_followed() -> None:
    for sorts, is_kept in ((None, True), (last_first, False), (later_lists_first, False)):
        device = StandIn() if sorts is None else StandIn(sorts=sorts)
        facts = DeviceFacts(device=DESCRIPTION, facts=tuple(_found(device).values()))
        followed = model_from(facts)
        assert not followed.unfollowed
        assert (ASSUME_STABLE_SORT in followed.trusting(DEFAULT).assumed) == is_kept
        assert ASSUME_STABLE_SORT not in followed.trusting(DOCUMENTED).assumed
    lost = DeviceFacts(device=DESCRIPTION, facts=tuple(_found(StandIn(sorts=lost_score)).values()))
    assert model_from(lost).unfollowed == tuple(
        f"{SORTED_SCORES}: {name} FP32" for name in sorted(SORTS)
    )
