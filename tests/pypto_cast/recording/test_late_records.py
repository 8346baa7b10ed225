"""Steps and boxes that are made when somebody asks are those that were entered at once."""

from __future__ import annotations

import _thread
import gc
import random
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.recording import steps
from pypto_cast.recording.recording import Recording
from pypto_cast.recording.steps import OperationStep, StepList, origin_of
from tiling.box_map import _MOST_LATE, BoxWrites
from tiling.grid import Shape

D = pypto.STATIC
Rows = pypto.Tensor([D, D], pypto.DT_FP32)
_HEIGHT = 12


@dataclass(frozen=True)
class _Patch:
    offset: Shape
    extent: Shape
    number: int


_Part = tuple[Shape, Shape, Iterator[_Patch]]


def _parts(start: int, height: int, number: int) -> Iterator[_Part]:
    for row in range(start, start + height):
        patch = _Patch((row, 0), (1, 4), number)
        half = _Patch((row, 2), (1, 2), number + 1)
        yield (row, 0), (1, 4), iter([patch, half][: 1 + row % 2])


@pytest.mark.parametrize("seed", range(20))
def test_boxes_are_those_that_were_entered_at_once(seed: int) -> None:
    chosen, late, at_once = random.Random(seed), BoxWrites[_Patch](), BoxWrites[_Patch]()
    kept = []
    for number in range(0, 200, 2):
        start = chosen.randrange(_HEIGHT)
        height = chosen.randint(1, _HEIGHT - start)
        box, is_whole = ((start, 0), (height, 4)), chosen.random() < 0.1
        for writes in (late, at_once):
            patches = [_Patch(*box, number)]
            writes.put_for_good(box, patches, is_whole=is_whole)
        if chosen.random() < 0.5:
            for writes in (late, at_once):
                writes.divide(box, lambda a=start, b=height, c=number: _parts(a, b, c))
        assert at_once.counts()
        assert bool(late)
        if chosen.random() < 0.1:
            kept.append((late.origins(), at_once.origins()()))
        if chosen.random() < 0.05:
            assert late.patches_near(*box) == at_once.patches_near(*box)
        if chosen.random() < 0.05:
            undo = [writes.put(box, [], is_whole=True) for writes in (late, at_once)]
            for each in undo:
                for step in reversed(each):
                    step()
        covered = [{*range(top, top + rows)} for (top, _), (rows, _) in late]
        expected_rows = [{*range(top, top + rows)} for (top, _), (rows, _), _ in at_once.counts()]
        assert set().union(*covered) == set().union(*expected_rows)
    for gives, expected in kept:
        assert gives() == gives() == expected
    assert late.counts() == at_once.counts()
    assert late.patches() == at_once.patches()
    assert set(late) == set(at_once)


def test_boxes_that_are_overwritten_do_not_pile_up() -> None:
    writes = BoxWrites[_Patch]()
    box = (0, 0), (_HEIGHT, 4)
    for number in range(1000):
        writes.put_for_good(box, [_Patch(*box, number)], is_whole=False)
        writes.divide(box, lambda: _parts(0, _HEIGHT, 0))
        assert len(writes._late) <= _MOST_LATE
    assert len(writes._patches) < 3 * _HEIGHT


class _InterruptedError(Exception):
    pass


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="the system sends no signals")
def test_boxes_are_entered_though_a_handler_raises() -> None:
    writes, main = BoxWrites[_Patch](), threading.main_thread().ident
    box = (0, 0), (_HEIGHT, 4)

    def interrupted() -> Iterator[_Part]:
        for part in _parts(0, _HEIGHT, 0):
            yield part
            signal.pthread_kill(main or 0, signal.SIGUSR1)
            time.sleep(0.001)

    def handler(*_: object) -> None:
        raise _InterruptedError

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        writes.put_for_good(box, [], is_whole=False)
        writes.divide(box, interrupted)
        with pytest.raises(_InterruptedError):
            writes.counts()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [start for start, _, _ in writes.counts()] == [(row, 0) for row in range(_HEIGHT)]


@pytest.mark.parametrize("is_main", [True, False])
def test_boxes_are_entered_where_no_thread_can_start(
    is_main: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = BoxWrites[_Patch]()
    box = (0, 0), (_HEIGHT, 4)
    writes.put_for_good(box, [], is_whole=False)
    writes.divide(box, lambda: _parts(0, _HEIGHT, 0))

    def none_left(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", none_left)
    if not is_main:
        monkeypatch.setattr(threading, "main_thread", object)
    assert len(writes.counts()) == _HEIGHT


def test_what_fails_to_make_boxes_is_raised() -> None:
    writes = BoxWrites[_Patch]()
    box = (0, 0), (_HEIGHT, 4)
    writes.put_for_good(box, [], is_whole=False)
    writes.divide(box, lambda: _parts(0, 1 // 0, 0))
    with pytest.raises(ZeroDivisionError):
        writes.counts()


def test_an_origin_is_made_without_the_lock() -> None:
    """Making it takes long: a process that forks then would leave the lock held for good."""
    array, held = np.zeros(4, np.float32), list[bool]()

    def made() -> tuple[steps.Patch, ...]:
        held.append(steps._LOCK.locked())
        return ()

    steps.remember_array(array, array, made)
    assert origin_of(array) == ()
    assert held == [False]


@pytest.mark.parametrize("seed", range(20))
def test_steps_are_those_of_a_list(seed: int) -> None:
    chosen, steps, plain = random.Random(seed), StepList[int](), list[int]()
    for number in range(300):
        place = chosen.randrange(len(plain) + 1)
        is_near = chosen.random() < 0.9  # the end, as operations ask for it
        place = max(place, len(plain) - 3) if is_near else place
        match chosen.randrange(6):
            case 0:
                made = list(range(number, number + chosen.randrange(4)))
                steps.extend_later(len(made), lambda made=made: iter(made))
                plain += made
            case 1:
                steps.insert(place, number)
                plain.insert(place, number)
            case 2:
                steps.append(number)
                plain.append(number)
            case 3:
                assert steps[place:] == plain[place:]
                assert steps[-2:] == plain[-2:]
            case 4 if place < len(plain):
                assert steps[place] == plain[place]
                steps[place] = plain[place] = number
            case 5 if chosen.random() < 0.3:
                del steps[place:], plain[place:]
        assert len(steps) == len(plain)
    assert list(steps) == plain
    assert list(reversed(steps)) == plain[::-1]


def test_nothing_is_made_of_iterations_that_nobody_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pypto_cast.kernel import loop_replay

    made: list[int] = []
    moved, moved_step = loop_replay._moved, loop_replay._moved_step
    recordings: list[Recording] = []
    commit = Recording.commit
    monkeypatch.setattr(loop_replay, "_moved", lambda *x: made.append(1) or moved(*x))
    monkeypatch.setattr(loop_replay, "_moved_step", lambda *x: made.append(1) or moved_step(*x))
    monkeypatch.setattr(Recording, "commit", lambda x: recordings.append(x) or commit(x))

    @pypto.jit
    def rows(x: Rows, out: Rows) -> None:
        pypto.set_vec_tile_shapes(1, 8)
        for i in pypto.loop(x.shape[0]):
            out[i : i + 1, :] = pypto.exp(x[i : i + 1, :])

    x = np.ones((40, 8), np.float32)
    out = np.zeros_like(x)
    rows(x, out)
    assert not made
    assert (out == out[0, 0]).all()
    assert out[0, 0] > 2
    (recording,) = recordings
    assert len(recording.steps) == 40
    assert not made
    assert [step.loops for step in recording.steps] == [(f"loop idx={k}",) for k in range(40)]
    assert len(made) == 37
    assert [patch.record.loops for patch in origin_of(out)] == [
        step.loops for step in recording.steps
    ]
    assert len(made) == 2 * 37


def test_the_origin_of_an_array_keeps_no_step() -> None:
    """A step may hold results, to tell whether they are open."""

    def steps() -> int:
        gc.collect()
        return sum(type(x) is OperationStep for x in gc.get_objects())

    @pypto.jit
    def rows(x: Rows, out: Rows) -> None:
        pypto.set_vec_tile_shapes(1, 8)
        for i in pypto.loop(x.shape[0]):
            out[i : i + 1, :] = pypto.exp(x[i : i + 1, :])

    x, before = np.ones((20, 8), np.float32), steps()
    out = np.zeros_like(x)
    rows(x, out)
    assert steps() == before
    assert len(origin_of(out)) == 20
