"""Codes in the order of their values: ranks from 0 on, NaN left out, -0 right before +0."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from simulator.numbers.formats import Codes, FloatFormat, Format, IntFormat

Ranks = npt.NDArray[np.uint64]


def last_rank(fmt: Format) -> int:
    """The rank of the largest value: of infinity where there is one."""
    if isinstance(fmt, IntFormat):
        return fmt.max - fmt.min
    return 2 * _largest(fmt) + 1


def nan_codes(fmt: Format) -> tuple[int, int]:
    """The number of NaN codes, and the first of them; (0, 0) where there is none."""
    if isinstance(fmt, IntFormat) or fmt.nan_code is None:
        return 0, 0
    return 2 * (fmt.sign_code - 1 - _largest(fmt)), _largest(fmt) + 1


def codes_at(ranks: Ranks, fmt: Format) -> Codes:
    """The codes of ranks, of the format's code dtype."""
    if isinstance(fmt, IntFormat):
        # Low bits: numpy wraps.
        values = ranks + np.uint64(fmt.min & 0xFFFFFFFFFFFFFFFF)
        codes: Codes = (values & np.uint64((1 << fmt.bits) - 1)).astype(fmt.code_dtype)
        return codes
    negatives = np.uint64(_largest(fmt) + 1)
    magnitude = np.where(ranks < negatives, negatives - np.uint64(1) - ranks, ranks - negatives)
    sign = np.where(ranks < negatives, np.uint64(fmt.sign_code), np.uint64(0))
    return (magnitude | sign).astype(fmt.code_dtype)


def ranks_of(codes: Codes, fmt: Format) -> Ranks:
    """The ranks of codes, none of which is a NaN."""
    wide = codes.astype(np.uint64)
    if isinstance(fmt, IntFormat):
        # Two's complement without its sign bit's weight: the smallest value is rank 0.
        return wide ^ np.uint64(1 << (fmt.bits - 1)) if fmt.signed else wide
    negatives = np.uint64(_largest(fmt) + 1)
    magnitude = wide & np.uint64(fmt.sign_code - 1)
    negative = wide >= np.uint64(fmt.sign_code)
    return np.where(negative, negatives - np.uint64(1) - magnitude, negatives + magnitude)


def code_pieces(low: int, high: int, fmt: Format, most: int) -> Iterator[tuple[int, Codes]]:
    """Yields the codes of the ranks from `low` to `high` in pieces, each with its first rank."""
    # Within a sign the codes ascend or descend one by one.
    change = fmt.max - fmt.min + 1 >> 1 if isinstance(fmt, IntFormat) else _largest(fmt) + 1
    steps = np.arange(most, dtype=np.uint64).astype(fmt.code_dtype)
    start = low
    while start <= high:
        stop = min(start + most, high + 1)
        if start < change < stop:
            stop = change
        first = codes_at(np.array([start], np.uint64), fmt)
        descends = isinstance(fmt, FloatFormat) and start < change
        offsets = steps[: stop - start]
        yield start, first - offsets if descends else first + offsets
        start = stop


def is_nan(codes: Codes, fmt: Format) -> npt.NDArray[np.bool_]:
    """Whether each code is NaN."""
    if isinstance(fmt, IntFormat):
        return np.zeros(codes.shape, np.bool_)
    magnitude = codes & fmt.code_dtype.type(fmt.sign_code - 1)
    found: npt.NDArray[np.bool_] = magnitude > fmt.code_dtype.type(_largest(fmt))
    return found


def _largest(fmt: FloatFormat) -> int:
    """The code of the largest value."""
    return fmt.max_code if fmt.inf_code is None else fmt.inf_code
