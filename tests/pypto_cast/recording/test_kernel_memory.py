"""Outputs that hold results and inputs as they are, until a part of them is written."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

import pypto_cast as pypto

_N = pypto.DYNAMIC


@pytest.fixture(autouse=True)
def tile() -> None:
    pypto.set_vec_tile_shapes(8)


def numbers(start: float) -> np.ndarray:
    return np.arange(start, start + 8, dtype=np.float32)


@pypto.jit
def swap(a: pypto.Tensor([_N], pypto.DT_FP32), b: pypto.Tensor([_N], pypto.DT_FP32)) -> None:
    held = b[0:8]
    b[:] = a
    a[:] = held


def test_each_of_two_arrays_gets_what_the_other_was() -> None:
    a, b = numbers(0), numbers(100)
    swap(a, b)
    assert (a == numbers(100)).all()
    assert (b == numbers(0)).all()


@pypto.jit
def patched(x: pypto.Tensor([_N], pypto.DT_FP32), out: pypto.Tensor([_N], pypto.DT_FP32)) -> None:
    total = x + x
    out[:] = x
    before = out[0:4]
    out[0:4] = total[0:4]
    out[4:8] = before


def test_a_part_that_is_written_changes_neither_the_source_nor_what_was_read() -> None:
    x, out = numbers(1), np.zeros(8, np.float32)
    patched(x, out)
    assert (x == numbers(1)).all()
    assert out.tolist() == [2, 4, 6, 8, 1, 2, 3, 4]


@pypto.jit
def copied(x: pypto.Tensor([_N], pypto.DT_FP32), out: pypto.Tensor([_N], pypto.DT_FP32)) -> None:
    out[:] = x


def test_a_certainty_keeps_its_values_when_the_input_changes() -> None:
    x = numbers(1)
    found = copied.certainty(x, np.zeros(8, np.float32))
    x[:] = 0
    assert (found.values["out"] == numbers(1)).all()


@pypto.jit
def thirds(
    x: pypto.Tensor([_N], pypto.DT_FP32), out: pypto.Tensor([_N], pypto.DT_FP32), seen: list
) -> None:
    quotient = x / 3.0
    seen.append(quotient.enclosure().interval)
    out[:] = quotient
    out[0:2] = x[0:2]


def test_a_call_finds_no_interval_and_gives_the_same_values() -> None:
    x, out, seen = numbers(1), np.zeros(8, np.float32), []
    thirds(x, out, seen)
    found = thirds.certainty(x, np.zeros(8, np.float32), seen)
    assert seen[0] is None
    assert seen[1] is not None
    assert (found.values["out"].view(np.uint32) == out.view(np.uint32)).all()
    assert found["out"].undecided == 6


@pypto.jit
def shapes(x: pypto.Tensor([_N], pypto.DT_FP32), out: pypto.Tensor([_N], pypto.DT_FP32)) -> None:
    square = pypto.Tensor([2, 4], pypto.DT_FP32)
    square[0:1, :] = pypto.view(x, [4], [0]).reshape([1, 4]) / 3.0
    square[1:2, :] = pypto.view(x, [4], [4]).reshape([1, 4])
    line = pypto.reshape(square, [8], inplace=True)
    for row in pypto.loop(2):
        out[row * 4 : row * 4 + 4] = line[row * 4 : row * 4 + 4]


def in_a_function() -> None:
    x, out = pypto.from_numpy(numbers(1)), pypto.from_numpy(numbers(0))
    with pypto.function("sum", x, out):
        out[:] = x + x


@pytest.mark.parametrize("unroll", [None, [8, 3]], ids=["plain", "unrolled"])
def test_a_loop_holds_no_list_of_its_iterations(unroll: list[int] | None) -> None:
    tracemalloc.start()
    try:
        assert next(pypto.loop(10**7, unroll_list=unroll)) == 0
        assert tracemalloc.get_traced_memory()[1] < 1 << 18
    finally:
        tracemalloc.stop()


CALLS: dict[str, Callable[[], object]] = {
    "call": lambda: shapes(numbers(1), numbers(0)),
    "certainty": lambda: shapes.certainty(numbers(1), numbers(0)),
    "program": lambda: shapes.program(numbers(1), numbers(0)),
    "in place": lambda: swap(numbers(1), numbers(0)),
    "function": in_a_function,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_kernel_leaves_nothing_to_the_collector(call: Callable[[], object]) -> None:
    """Its arrays go when it ends, however many there are before the next collection."""
    pypto.set_vec_tile_shapes(8, 8)
    call()
    gc.freeze()
    gc.disable()
    try:
        call()
        assert gc.collect() == 0
    finally:
        gc.enable()
