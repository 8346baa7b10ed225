"""Casts on several threads while the process ends, or where no thread can be started."""

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
