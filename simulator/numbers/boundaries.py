"""Codes at which rounding decides: every cut through every exponent, with the bits around it set.

Whatever the last place of the destination is, some cut lies there; the dropped bits then run
through nothing, the least, just below half, half, just above half, and the most. So the list holds
the neighbourhoods of representable values and midpoints for every destination, unseen.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulator.numbers.formats import Codes, FloatFormat, Format


def boundary_codes(fmt: Format) -> Codes:
    """The codes of a format that deserve a look, ascending and without repetition.

    For formats of at most 16 bits these are all there are; wider ones give some 10^5 codes: zeros,
    infinities, NaNs of both signs, subnormal numbers, limits and powers of two with their
    neighbours, and the bits around every cut.
    """
    if fmt.bits <= 16:
        return np.arange(1 << fmt.bits, dtype=fmt.code_dtype)
    if isinstance(fmt, FloatFormat):
        fractions = np.array(list(set(_around_cuts(fmt.man_bits))), np.uint64)
        fields = np.arange(1 << fmt.exp_bits, dtype=np.uint64) << np.uint64(fmt.man_bits)
        exact = np.bitwise_or.outer(fields, fractions).reshape(-1)
    else:
        magnitudes = {
            1 << length | rest for length in range(fmt.bits) for rest in _around_cuts(length)
        }
        exact = np.array([0, *magnitudes], np.uint64)
    word = (1 << fmt.bits) - 1
    near = np.concatenate([exact - np.uint64(1), exact, exact + np.uint64(1)])
    flipped = near ^ np.uint64(1 << (fmt.bits - 1)) if isinstance(fmt, FloatFormat) else -near
    codes = np.sort(np.concatenate([near, flipped]) & np.uint64(word))
    # np.unique of newer numpy hashes, which takes 70 times as long here.
    is_new = np.append(True, codes[1:] != codes[:-1])
    distinct: Codes = codes[is_new].astype(fmt.code_dtype)
    return distinct


def _around_cuts(width: int) -> Iterator[int]:
    """Fractions of `width` bits: some kept bits, then dropped bits on, below and above half."""
    for dropped in range(width + 1):
        half = 1 << dropped >> 1
        kept_ones = (1 << (width - dropped)) - 1
        for kept in {0, 1 & kept_ones, kept_ones, kept_ones // 3, kept_ones // 3 << 1 & kept_ones}:
            for rest in {0, 1, half - 1, half, half + 1, (1 << dropped) - 1}:
                if 0 <= rest < 1 << dropped:
                    yield kept << dropped | rest
