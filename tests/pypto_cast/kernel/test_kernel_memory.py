"""Outputs that hold results and inputs as they are, until a part of them is written."""

from __future__ import annotations

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
    seen.append(quotient.quantity().interval)
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
