"""A cast gives the same codes in any floating-point environment, and leaves it as it was."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from support.numbers.native_cases import LEVELS, Chain, at, codes_of_interest, define, matrix_rows

LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
WORDS = 8
"""Of a fenv_t: on x86-64 seven of the x87 unit, then MXCSR; on aarch64 FPCR and FPSR."""
X86 = platform.machine() in ("x86_64", "AMD64")
CONTROL_WORD = 7 if X86 else 0
FLAG_WORD = 7 if X86 else 1
FLUSH = 0x8040 if X86 else 1 << 24
"""Flush results to zero, and on x86-64 take subnormal operands for zero."""
DIRECTION_SHIFT = 13 if X86 else 22


@contextmanager
def environment(change: int) -> Iterator[None]:
    """Flip bits of the control word; after the block nothing else may have changed."""
    before, changed, after = ((ctypes.c_uint32 * WORDS)() for _ in range(3))
    LIBM.fegetenv(before)
    ctypes.memmove(changed, before, ctypes.sizeof(before))
    changed[CONTROL_WORD] ^= change
    LIBM.fesetenv(changed)
    try:
        yield
    finally:
        LIBM.fegetenv(after)
        LIBM.fesetenv(before)
    assert list(after) == list(changed)


CHANGES = [FLUSH, *(direction << DIRECTION_SHIFT for direction in range(4))]
CHANGES.append(FLUSH | 3 << DIRECTION_SHIFT)


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64", "aarch64"),
    reason=f"the layout of fenv_t on {platform.machine()} is unknown here",
)
@pytest.mark.parametrize("level", LEVELS)
def test_foreign_environments(level: str) -> None:
    native = at(level)
    for chain in matrix_rows():
        codes, expected = case(chain)
        kernel = native.loop(chain)
        assert kernel is not None
        for change in CHANGES:
            out = np.empty_like(expected)
            with environment(change):
                kernel(codes, out)
            np.testing.assert_array_equal(out, expected, hex(change))


@functools.cache
def case(chain: Chain) -> tuple[np.ndarray, np.ndarray]:
    codes = codes_of_interest(chain[0].src, 1_000)
    codes = np.ascontiguousarray(codes[:: max(1, codes.size // 500)])
    return codes, define(chain, codes)
