"""Python's work in a kernel: flat by elements, and as much for each further operation or tile."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from benchmarks.kernel_growth import add, chain
from pypto_cast.kernel import loops
from simulator.arithmetic.native import executor_library

D = pypto.STATIC
Rows = pypto.Tensor([D, D], pypto.DT_FP32)
_MORE = 1.01
"""The calls of two runs differed by up to 0.3 %."""
_MOST_CALLS = 98
"""Of Python's and C's functions for an addition in a kernel: 95; 213 before it was settled."""


@pypto.jit
def rows(x: Rows, out: Rows) -> None:
    pypto.set_vec_tile_shapes(1, 64)
    for i in pypto.loop(x.shape[0]):
        part = pypto.view(x, [1, 16], [i, 0])
        pypto.assemble(pypto.exp(pypto.sub(part, pypto.amax(part, -1, True))), [i, 0], out)


@pytest.fixture(autouse=True)
def _uncollected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def _calls(run: Callable[[], object]) -> int:
    """The calls of Python's and C's functions in a second run."""
    run()
    found = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def _run(kernel: Any, *shape: int, others: tuple[object, ...] = ()) -> Callable[[], object]:
    x = np.ones(shape, np.float32)
    out = np.zeros_like(x)
    return lambda: kernel(x, out, *others)


def test_the_calls_of_an_operation_do_not_depend_on_its_elements() -> None:
    counts = [_calls(_run(add, length, 64)) for length in (128, 512, 1024)]
    assert counts[0] == counts[1] == counts[2]


def test_each_further_operation_takes_as_many_calls() -> None:
    counts = [_calls(_run(chain, 8, 8, others=(count,))) for count in (20, 40, 160)]
    assert counts[2] - counts[1] <= _MORE * 6 * (counts[1] - counts[0])
    if isinstance(executor_library.find(), executor_library.Executor):
        assert counts[1] - counts[0] <= _MOST_CALLS * 20


def test_each_further_tile_takes_as_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_replay", lambda *_: None)
    counts = [_calls(_run(rows, count, 16)) for count in (32, 64, 256)]
    assert counts[2] - counts[1] <= _MORE * 6 * (counts[1] - counts[0])


def test_tiles_that_are_carried_out_together_take_no_further_calls() -> None:
    counts = [_calls(_run(rows, count, 16)) for count in (512, 1024, 4096)]
    assert counts[2] <= _MORE * counts[0]
