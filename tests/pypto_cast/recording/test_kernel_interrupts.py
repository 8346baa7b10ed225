"""Ctrl-C in a kernel: its outputs are written as a whole or not at all."""

from __future__ import annotations

import contextvars
import gc
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.environment.signals import heard
from support.numbers.codes import SEED

import pypto_cast as pypto
from pypto_cast.recording.buffers import Buffer

ANY = pypto.Tensor[[], pypto.DT_FP32]
HALF = pypto.Tensor[[], pypto.DT_FP16]
ROWS = 64
ROUNDS = 60

pytestmark = pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")


@pytest.fixture(autouse=True)
def _clean(pypto_sim: object) -> Iterator[None]:
    """Default options; the handler that was there before is there afterwards.

    Nothing is collected meanwhile: an interrupt within a callback of the collector, as hypothesis
    has one, is lost.
    """
    with heard():
        handler = signal.getsignal(signal.SIGINT)
        gc.disable()
        yield
        gc.enable()
        assert signal.signal(signal.SIGINT, handler) is handler


@pypto.jit
def kernel(x: ANY, rows: ANY, whole: HALF) -> None:
    """Writes one output row by row, the other at once."""
    for index in pypto.loop(ROWS):
        rows[index : index + 1] = x[index : index + 1]
    pypto.set_vec_tile_shapes(ROWS, 16)
    whole[:] = pypto.cast(x, pypto.DT_FP16)


def as_function(x: Any, rows: Any, whole: Any) -> None:
    """The same as a `pypto.function`."""
    tensors = [pypto.from_numpy(array) for array in (x, rows, whole)]
    with pypto.function("kernel", *tensors):
        source, first, second = tensors
        first[:] = source
        pypto.set_vec_tile_shapes(ROWS, 16)
        second[:] = pypto.cast(source, pypto.DT_FP16)


def arrays() -> tuple[Any, Any, Any]:
    return (
        np.ones((ROWS, 16), np.float32),
        np.zeros((ROWS, 16), np.float32),
        np.zeros((ROWS, 16), np.float16),
    )


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C arrives between two boxes of an output, and again after each output."""
    write_back = Buffer.write_back

    def write_and_interrupt(self: Buffer[Any]) -> None:
        writes = self._memory.writes
        first, *others = writes
        self._memory.writes = [first]
        write_back(self)
        signal.raise_signal(signal.SIGINT)
        self._memory.writes = others
        write_back(self)
        self._memory.writes = writes
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Buffer, "write_back", write_and_interrupt)


@pytest.mark.parametrize("call", [kernel, as_function], ids=["jit", "function"])
@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_while_outputs_are_written_comes_afterwards(call: Callable[..., None]) -> None:
    x, rows, whole = arrays()
    with pytest.raises(KeyboardInterrupt):
        call(x, rows, whole)
    assert rows.all()
    assert whole.all()


@pytest.mark.usefixtures("interrupted")
def test_the_handler_of_the_user_is_called_once_and_stays() -> None:
    seen: list[int] = []

    def handler(number: int, frame: object) -> None:
        seen.append(number)

    before = signal.signal(signal.SIGINT, handler)
    try:
        kernel(*arrays())
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


@pytest.mark.usefixtures("interrupted")
def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        kernel(*arrays())
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_handler_is_restored_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Buffer, "write_back", fail)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError):
        kernel(*arrays())
    assert signal.getsignal(signal.SIGINT) is before


def test_threads_other_than_the_main_one_leave_the_handler() -> None:
    """Only the main thread may set it."""
    results = arrays()
    thread = threading.Thread(target=kernel, args=results)
    thread.start()
    thread.join()
    assert results[1].all()
    assert results[2].all()


def test_an_interrupt_at_any_time_leaves_all_or_nothing() -> None:
    """In a context of its own: one that arrives as a context variable is set may leave it set."""
    kernel(*arrays())
    start = time.perf_counter()
    kernel(*arrays())
    usual = time.perf_counter() - start
    delays = random.Random(SEED)
    for _ in range(ROUNDS):
        x, rows, whole = arrays()
        delay = delays.uniform(0, 1.2 * usual)
        sender = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        try:
            sender.start()
            contextvars.copy_context().run(kernel, x, rows, whole)
            sender.join()
            time.sleep(5)
            pytest.fail("no interrupt arrived")
        except KeyboardInterrupt:
            sender.join()
        assert rows.all() == whole.all() == rows.any() == whole.any()
