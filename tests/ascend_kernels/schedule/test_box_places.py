"""Boxes found by their place: the verdicts of comparing all with all, with far fewer looked at."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import pypto_cast as pypto
from ascend_kernels.schedule.boxes import Box, Spans, WrittenBoxes
from ascend_kernels.schedule.planner.tiles.tile_graph import in_order
from ascend_kernels.schedule.time_limit import OutOfTimeError, planned_until
from ascend_kernels.schedule.unordered_tasks import FirstUnordered
from pypto_cast.kernel.tile_choice import replaced_tiles

_SHAPES = ((12, 40), (48, 10))
_TENSOR = pypto.Tensor([128, 512], pypto.DT_FP32)


def drawn(rng: np.random.Generator, task: int) -> Box:
    """A box of any extent, now and then empty, of an unknown place, or of another shape."""
    shape = _SHAPES[int(rng.random() < 0.1)]
    begins = [int(rng.integers(0, n)) for n in shape]
    spans: Spans | None = tuple(
        (a, min(n, a + int(rng.integers(0 if rng.random() < 0.1 else 1, 6))))
        for a, n in zip(begins, shape, strict=True)
    )
    if rng.random() < 0.05:
        spans = None
    return Box(
        task=task,
        leaf=0,
        operation=0,
        tensor_shape=shape,
        spans=spans,
        cells=spans,
        is_written=bool(rng.random() < 0.4),
    )


@pytest.mark.parametrize("seed", range(20))
def test_written_boxes_are_those_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    held, plain = WrittenBoxes(), list[Box]()
    for run in range(12):
        boxes = [drawn(rng, 8 * run + number) for number in range(8)]
        for asked in boxes:
            found = {each.task for each in held.touching(asked)}
            assert found == {each.task for each in plain if each.touches(asked)}
        held.replace(boxes)
        plain = [x for x in plain if not any(box.covers(x) for box in boxes)] + boxes


def _all_pairs(
    runs: Sequence[Sequence[Box]], is_before: Callable[[int, int], bool]
) -> tuple[Box, Box] | None:
    """The first two that nothing orders, of the first run that has such."""
    known: list[Box] = []
    for run in runs:
        boxes = [each for each in run if each.spans is not None]
        known += boxes
        for one, other in itertools.product(known, boxes):
            shape = known[0].tensor_shape
            places = [
                each.spans if each.tensor_shape == shape else tuple((0, n) for n in shape)
                for each in (one, other)
            ]
            first, second = (np.array(each) for each in places)
            meets = ((first[:, 0] < second[:, 1]) & (second[:, 0] < first[:, 1])).all()
            is_used = one.is_written or other.is_written
            if meets and is_used and one.task < other.task and not is_before(one.task, other.task):
                return one, other
    return None


@pytest.mark.parametrize("chance", [0.3, 0.9, 1.0])
@pytest.mark.parametrize("seed", range(20))
def test_the_first_without_an_order_is_that_of_all_pairs(seed: int, chance: float) -> None:
    rng = np.random.default_rng(seed)
    order, runs, before = FirstUnordered(), list[list[Box]](), list[set[int]]()
    for run in range(6):
        runs.append([])
        for task in range(6 * run, 6 * run + 6):
            after = [each for each in range(task) if rng.random() < chance]
            before.append(set(after).union(*(before[each] for each in after)))
            box = drawn(rng, task)
            runs[-1].append(box)
            order.add(after, [("x", box)])
        order.close_run()
    wanted = _all_pairs(runs, lambda one, other: one in before[other])

    assert order.unordered == (None if wanted is None else ("x", *wanted))
    assert wanted is not None or chance > 0.3
    assert wanted is None or chance < 1


@pypto.jit
def by_rows(x: _TENSOR, out: _TENSOR) -> None:
    pypto.set_vec_tile_shapes(32, 256)
    for i in pypto.loop(4):
        rows = pypto.view(x, [32, 512], [i * 32, 0])
        pypto.assemble(pypto.exp(rows), [i * 32, 0], out)


def test_a_plan_is_given_up_in_its_passes_and_among_its_tasks() -> None:
    shapes = dict.fromkeys(("x", "out"), (128, 512))
    arrays = [np.zeros(shape, np.float32) for shape in shapes.values()]
    with replaced_tiles((16, 64)):
        with planned_until(0), pytest.raises(OutOfTimeError):
            by_rows.schedule(*arrays)
        with planned_until(None):
            planned = by_rows.schedule(*arrays)

    with planned_until(0), pytest.raises(OutOfTimeError):
        in_order(())
    with planned_until(0), pytest.raises(OutOfTimeError):
        planned.unordered(shapes, {})
    assert planned.unordered(shapes, {}) == ""


def test_the_tasks_of_a_loop_are_not_all_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 runs of 512 tasks, none of which meets another: 1.5 million pairs."""
    looked_at = 0
    touches, covers = Box.touches, Box.covers

    def counted(compare: Callable[[Box, Box], bool]) -> Callable[[Box, Box], bool]:
        def compared(self: Box, other: Box) -> bool:
            nonlocal looked_at
            looked_at += 1
            return compare(self, other)

        return compared

    monkeypatch.setattr(Box, "touches", counted(touches))
    monkeypatch.setattr(Box, "covers", counted(covers))
    with replaced_tiles((1, 32)):
        x, out = (np.zeros((128, 512), np.float32) for _ in range(2))
        planned = by_rows.schedule(x, out)

    assert sum(len(body.tasks) for body in planned.bodies) >= 512
    assert looked_at < 4096
