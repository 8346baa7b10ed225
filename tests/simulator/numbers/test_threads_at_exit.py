"""Work shared among threads: also while the process ends, or where no thread can be started."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

from simulator.numbers import elementwise

_CASTS = """
import atexit, sys, threading
import numpy as np
import pypto_cast as pypto
from simulator.numbers import elementwise

elementwise._NATIVE_THREAD_ELEMS = elementwise._THREAD_ELEMS
x = pypto.from_numpy(np.arange(1 << 18, dtype=np.float32))

def cast():
    with pypto.options(vec_tile_shapes=[8192], threads=3):
        found = pypto.cast(x, pypto.DT_FP16).numpy()
    print((found == np.arange(1 << 18, dtype=np.float32).astype(np.float16)).all())

def late():
    threading.main_thread().join()
    cast()

threading.Thread(target=late).start()
atexit.register(cast)
"""


@pytest.mark.slow
def test_casts_after_the_main_thread_ended() -> None:
    command = [sys.executable, "-W", "ignore", "-c", _CASTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("True\nTrue\n", "")


def test_a_system_that_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    elementwise._pool.cache_clear()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    counts = np.zeros(1000, np.int64)

    def work(span: slice) -> None:
        counts[span] += 1

    elementwise.share(work, counts.size, 4, least=1)
    elementwise._pool.cache_clear()
    assert (counts == 1).all()


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_every_element_is_in_one_span(count: int) -> None:
    """Of two callers at once, whose threads are the same."""
    counts = np.zeros((2, count), np.int64)

    def call(row: int) -> None:
        def work(span: slice) -> None:
            counts[row, span] += 1

        for _ in range(20):
            elementwise.share(work, count, 4, least=1)

    other = threading.Thread(target=call, args=(1,))
    other.start()
    call(0)
    other.join()
    assert (counts == 20).all()


@pytest.mark.parametrize("failing", [0, 250])
def test_nothing_works_any_more_when_an_error_leaves(failing: int) -> None:
    """All four wait for each other, so that each has a span when one of them fails."""
    met, working = threading.Barrier(4), set[int]()

    def work(span: slice) -> None:
        working.add(span.start)
        met.wait(60)
        if span.start == failing:
            raise ZeroDivisionError
        for _ in range(1000):
            np.sqrt(np.ones(1000))
        working.remove(span.start)

    with pytest.raises(ZeroDivisionError):
        elementwise.share(work, 1000, 4, least=1)
    assert working == {failing}
