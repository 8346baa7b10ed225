"""Results computed once in a body: of the same elements alone, and no more than a limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.arithmetic import remembered_results
from simulator.numbers import result_memory

Array = npt.NDArray[Any]


def test_results_of_the_same_elements_are_remembered_in_the_body_alone() -> None:
    calls: list[int] = []

    def compute() -> Array:
        calls.append(1)
        return np.zeros(4, np.uint8)

    x, y = np.arange(8, dtype=np.uint8), np.arange(8, dtype=np.uint8)
    find = remembered_results.remembered
    assert find("a", (x,), compute) is not find("a", (x,), compute)
    with remembered_results.remembering():
        calls.clear()
        first = find("a", (x,), compute)
        assert find("a", (x[:],), compute) is first
        others = [("b", (x,)), ("a", (y,)), ("a", (x[::2],)), ("a", (x[4:],)), ("a", (x, y))]
        others.append(("a", (x.view(np.int8),)))
        for operation, given in others:
            assert find(operation, given, compute) is not first
        assert len(calls) == 1 + len(others)
        with remembered_results.remembering():
            assert find("a", (x,), compute) is not first
    assert find("a", (x,), compute) is not first


def test_no_more_than_the_limit_is_remembered() -> None:
    token = result_memory.LIMIT_BYTES.set(24)
    try:
        with remembered_results.remembering():
            x, y = np.zeros(8, np.uint8), np.zeros(8, np.uint8)
            find = remembered_results.remembered
            first = find("a", (x,), lambda: np.zeros(8, np.uint8))
            assert find("b", (y,), lambda: np.zeros(8, np.uint8)) is not find("b", (y,), y.copy)
            assert find("a", (x,), y.copy) is first
    finally:
        result_memory.LIMIT_BYTES.reset(token)
