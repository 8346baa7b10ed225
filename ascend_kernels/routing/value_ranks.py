"""The order of codes: the rank of a code among those of its format, by value.

Ranks count from 0 on in the order of values, NaN left out, -0 right before +0 where there is one. A
result out of the range of a format without infinity is NaN, and ranks beyond the largest value, or
below the least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeGuard

import numpy as np
import numpy.typing as npt

from simulator.arithmetic import total_order
from simulator.numbers import formats
from simulator.numbers.convert import values_of
from simulator.numbers.formats import Codes, FloatFormat, Format, IntFormat

Ranks = npt.NDArray[np.uint64]
Function = Callable[[Codes], Codes]
"""Converts source codes to destination codes."""
_SHORT_BITS: Final = 16
"""Codes of that many bits are all taken at once."""


def last_rank(fmt: Format) -> int:
    """The rank of the largest value: of infinity where there is one."""
    if isinstance(fmt, IntFormat):
        return fmt.max - fmt.min
    return 2 * _largest(fmt) + fmt.has_negative_zero


def nan_codes(fmt: Format) -> tuple[range, ...]:
    """The NaN codes of each sign; none where there is none."""
    if isinstance(fmt, IntFormat) or fmt.nan_code is None:
        return ()
    if fmt.nan_is_negative_zero:
        return (range(fmt.nan_code, fmt.nan_code + 1),)
    positive = range(_largest(fmt) + 1, fmt.sign_code)
    return positive, range(positive.start | fmt.sign_code, fmt.sign_code << 1)


def codes_at(ranks: Ranks, fmt: Format) -> Codes:
    """The codes of ranks, of the format's code dtype."""
    if isinstance(fmt, IntFormat):
        # Low bits: numpy wraps.
        values = ranks + np.uint64(fmt.min & 0xFFFFFFFFFFFFFFFF)
        codes: Codes = (values & np.uint64((1 << fmt.bits) - 1)).astype(fmt.code_dtype)
        return codes
    largest, positive = _ends_of_signs(fmt)
    negative = ranks < positive
    magnitude = np.where(negative, largest - ranks, ranks - positive)
    magnitude = formats.taper_of(fmt).codes[magnitude] if fmt.dots else magnitude
    sign = np.where(negative, np.uint64(fmt.sign_code), np.uint64(0))
    return (magnitude | sign).astype(fmt.code_dtype)


def ranks_of(codes: Codes, fmt: Format) -> Ranks:
    """The ranks of codes, none of which is a NaN."""
    wide = codes.astype(np.uint64)
    if isinstance(fmt, IntFormat):
        # Two's complement without its sign bit's weight: the smallest value is rank 0.
        return wide ^ np.uint64(1 << (fmt.bits - 1)) if fmt.signed else wide
    largest, positive = _ends_of_signs(fmt)
    magnitude = wide & np.uint64(fmt.sign_code - 1)
    magnitude = formats.taper_of(fmt).ranks[magnitude] if fmt.dots else magnitude
    negative = wide >= np.uint64(fmt.sign_code)
    return np.where(negative, largest - magnitude, positive + magnitude)


def _ends_of_signs(fmt: FloatFormat) -> tuple[np.uint64, np.uint64]:
    """The rank of the negative zero, if there were one, and that of the positive zero."""
    largest = _largest(fmt)
    return np.uint64(largest), np.uint64(largest + fmt.has_negative_zero)


def result_ranks(function: Function, ranks: Ranks, src: Format, dst: Format) -> Ranks:
    """The ranks of a function's results; no source is a NaN.

    Where `dst` has NaN and no infinity, NaN is what became of a value out of range: it ranks 0 of
    a negative source and beyond the largest value of others, and all ranks are one higher.
    """
    results = function(codes_at(ranks, src))
    if not _has_beyond(dst):
        return ranks_of(results, dst)
    nan = is_nan(results, dst)
    found = ranks_of(np.where(nan, results.dtype.type(0), results), dst) + np.uint64(1)
    zero = ranks_of(np.zeros(1, src.code_dtype), src)
    return np.where(nan, np.where(ranks < zero, 0, np.uint64(last_rank(dst) + 2)), found)


def result_codes(ranks: Ranks, dst: Format) -> Codes:
    """The codes of such ranks."""
    if not _has_beyond(dst):
        return codes_at(ranks, dst)
    inside = (ranks > 0) & (ranks < np.uint64(last_rank(dst) + 2))
    codes = codes_at(np.where(inside, ranks, np.uint64(1)) - np.uint64(1), dst)
    return np.where(inside, codes, dst.code_dtype.type(dst.nan_code))


def _has_beyond(fmt: Format) -> TypeGuard[FloatFormat]:
    return isinstance(fmt, FloatFormat) and fmt.inf_code is None and fmt.nan_code is not None


def code_pieces(low: int, high: int, fmt: Format, most: int) -> Iterator[tuple[int, Codes]]:
    """Yields the codes of the ranks from `low` to `high` in pieces, each with its first rank."""
    if isinstance(fmt, FloatFormat) and fmt.bits <= _SHORT_BITS:
        yield low, codes_at(np.arange(low, high + 1, dtype=np.uint64), fmt)
        return
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
    """True where a code is NaN."""
    return total_order.is_nan(values_of(codes, fmt), fmt)


def _largest(fmt: FloatFormat) -> int:
    """The largest value's place among those that are not negative."""
    return fmt.max_rank + (fmt.inf_code is not None)
