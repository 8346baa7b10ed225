"""Converting long arrays in chunks that stay in cache, with a fallback for rare special elements.

A fast path is a `ChunkFunction`, which converts one chunk with numpy operations on all of it. It
may be right on ordinary codes only; `with_fallback` then converts the others by an exact function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from simulator.numbers import float_environment
from simulator.numbers.formats import Codes, FloatFormat

Loop = Callable[[Codes, Codes], None]
"""(source codes, destination codes): 1-D, contiguous, equally long; writes all of the latter."""

ChunkFunction = Callable[[Codes], Codes]
"""Destination codes of a chunk of source codes, which it does not modify."""

CHUNK_ELEMS: Final = 1 << 17
"""Elements per chunk: few enough for its intermediate results to stay in the outer cache, and so
many that allocating them costs little (measured)."""

REFERENCE_ELEMS: Final = 1 << 14
"""Elements that the definition takes at once: it needs some 100 B for each."""


def in_chunks(function: ChunkFunction) -> Loop:
    """Make a loop that applies a function chunk by chunk.

    Floating-point warnings are silenced: an inexact operation is part of a conversion, not an
    accident.
    """

    def run(codes: Codes, out: Codes) -> None:
        with float_environment.quiet():
            for start in range(0, codes.size, CHUNK_ELEMS):
                stop = start + CHUNK_ELEMS
                out[start:stop] = function(codes[start:stop])

    return run


def in_small_chunks(reference: ChunkFunction) -> ChunkFunction:
    """Make the function that takes few codes at once through the definition."""

    def run(codes: Codes) -> Codes:
        starts = range(0, max(codes.size, 1), REFERENCE_ELEMS)
        chunks = [reference(codes[start : start + REFERENCE_ELEMS]) for start in starts]
        return np.concatenate(chunks)

    return run


def with_fallback(
    fast: ChunkFunction, needs_fallback: Callable[[Codes], Any], exact: ChunkFunction
) -> ChunkFunction:
    """Join a fast function with an exact one for the codes that need it, the outliers.

    The fast one may give anything there, for numpy casts any float to some integer.
    """

    def run(codes: Codes) -> Codes:
        out = fast(codes)
        outliers = needs_fallback(codes)
        if outliers.any():
            out[outliers] = exact(codes[outliers])
        return out

    return run


def exceeds(fmt: FloatFormat, limit: int) -> Callable[[Codes], Any]:
    """Make the test for codes whose magnitude is more than `limit`, as those of NaNs are.

    Two reductions tell whether any is. Read as signed integers only positive floats are positive,
    read as unsigned ones the negative floats are the largest; both orders follow the magnitude.
    """
    magnitude, largest = np.array([fmt.sign_code - 1, limit], fmt.code_dtype)
    signed = f"i{fmt.code_dtype.itemsize}"

    def run(codes: Codes) -> Any:
        if codes.view(signed).max() <= limit and codes.max() <= fmt.sign_code + limit:
            return np.False_
        return (codes & magnitude) > largest

    return run
