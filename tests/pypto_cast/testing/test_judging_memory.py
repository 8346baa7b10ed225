"""Judging beside a golden takes the same memory for dumps of any size."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from pypto_cast.testing import judge
from pypto_cast.testing.precision import Standard, pieces_observed

TENTH_OF_INPUTS_BYTES = 10**8 * 2 * 4 // 10
"""Of two FP32 dumps of 10^8 elements."""


def peak_bytes(elems: int, standard: Standard) -> int:
    golden = np.linspace(-4, 4, elems, dtype=np.float32)
    result = golden.copy()
    result[::1000] += np.float32(1)
    tracemalloc.start()
    try:
        judge(result, golden, standard=standard)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("standard", ["bits", "community"])
def test_memory_does_not_grow_with_the_dumps(standard: Standard) -> None:
    small, large = (peak_bytes(elems, standard) for elems in (5_000_000, 10_000_000))
    assert large <= small + 100_000
    assert large <= TENTH_OF_INPUTS_BYTES


def test_every_piece_is_told() -> None:
    golden = np.linspace(-4, 4, 1_000_000, dtype=np.float32)
    told: list[int] = []
    with pieces_observed(told.append):
        judge(golden, golden)
    assert max(told) <= 1 << 18
    assert sum(told) % golden.size == 0
