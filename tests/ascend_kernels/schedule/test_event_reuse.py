"""An event that a leaf sets again: a fault, a doubt, or an error under strict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.programs.upstream_dumps import arrays_of, kernel_of, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule.parts import TileOperation
from ascend_kernels.schedule.schedule import Schedule
from benchmarks.schedule_damages import with_operations
from pypto_cast.testing import assert_schedule_ok
from pypto_cast.testing.schedule_checks import ScheduleError
from simulator.machine.pipes import COPY_COMPLETIONS, CopyCompletion

DOUBT = (
    r"leaf0_8, operation 4 SetFlag MTE2_V 0 \(behind operation 3 COPY_IN\): may come before "
    r"operation 2 WaitFlag MTE2_V 0 \(before operation 6 PAIRMAX, softmax\.py:12\) has waited .*"
    r"cceapi_0106 .* is inferred$"
)
Order = Callable[[Sequence[TileOperation]], Sequence[TileOperation]]


def waited(leaf: Sequence[TileOperation]) -> Sequence[TileOperation]:
    """Set, wait, set: the copies of softmax by one event, one after the other."""
    first, second, put, take, *others = leaf
    return first, put, take, second, put, take, *others


def not_waited(leaf: Sequence[TileOperation]) -> Sequence[TileOperation]:
    first, second, put, take, *others = leaf
    return first, put, second, put, take, take, *others


def stuck(leaf: Sequence[TileOperation]) -> Sequence[TileOperation]:
    """The first wait is behind one for a flag that is set behind the second set."""
    first, second, put, take, *others = leaf
    assert put.flag is not None
    late = replace(put.flag, event_id=1)
    waits, sets = replace(take, flag=late), replace(put, flag=late)
    return first, put, waits, take, second, put, sets, take, *others


@pytest.fixture
def softmax(tmp_path: Path) -> Schedule:
    return pypto.read_schedule(unpacked("softmax", tmp_path))


def ordered(schedule: Schedule, order: Order, origin: str = "upstream's dump") -> Schedule:
    (leaf,) = schedule.leaves
    changed = with_operations(leaf, order(leaf.operations))
    return replace(schedule, leaves=(changed,), origin=origin)


@pytest.mark.parametrize("origin", ["upstream's dump", "planner"])
def test_an_event_that_is_set_again_behind_its_wait_is_a_doubt(
    origin: str, softmax: Schedule
) -> None:
    schedule = ordered(softmax, waited, origin)
    expected, late, early, called = (arrays_of(softmax) for _ in range(4))
    softmax.run(*expected)

    with pytest.warns(pypto.EventReuseWarning, match=DOUBT) as caught:
        schedule.run(*late)
    assert [each.filename for each in caught] == [__file__]
    with pytest.warns(pypto.EventReuseWarning, match=DOUBT):
        schedule.run(*early, copy_completion="earliest")
    with (
        pytest.warns(pypto.EventReuseWarning, match=DOUBT) as caught,
        pypto.options(fidelity="instructions", schedule=schedule),
    ):
        kernel_of("softmax")(*called)
    assert [each.filename for each in caught] == [__file__]
    with pytest.warns(pypto.EventReuseWarning, match=DOUBT):
        assert_schedule_ok(schedule, kernel_of("softmax"))

    for arrays in (late, early, called):
        np.testing.assert_array_equal(arrays[1].view(np.uint8), expected[1].view(np.uint8))


def test_under_strict_a_doubt_is_a_fault(softmax: Schedule) -> None:
    schedule = ordered(softmax, waited)
    x, y = arrays_of(schedule)
    before = y.copy()
    said = "operation 4 SetFlag MTE2_V 0 .* may come before operation 2 WaitFlag"

    with pytest.raises(pypto.SimulatorFault, match=said):
        schedule.run(x, y, strict=True)
    with (
        pytest.raises(pypto.SimulatorFault, match=said),
        pypto.options(fidelity="instructions", schedule=schedule, strict=True),
    ):
        kernel_of("softmax")(x, y)
    with pytest.raises(ScheduleError, match=said), pypto.options(strict=True):
        assert_schedule_ok(schedule)
    with pytest.raises(pypto.SimulatorFault, match=said):
        ordered(softmax, waited, "written by hand").run(x, y)
    np.testing.assert_array_equal(y, before)


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (not_waited, r"operation 3 SetFlag .* (is already set, by operation 1|may come before)"),
        (stuck, r"operation 5 SetFlag .* a dead-lock"),
    ],
)
@pytest.mark.parametrize("completion", COPY_COMPLETIONS)
def test_an_event_that_is_certainly_set_twice_is_a_fault(
    order: Order, said: str, completion: CopyCompletion, softmax: Schedule
) -> None:
    arrays, schedule = arrays_of(softmax), ordered(softmax, order)
    with pytest.raises(pypto.SimulatorFault, match=said):
        schedule.run(*arrays, copy_completion=completion)
