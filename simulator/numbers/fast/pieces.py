"""Working through long arrays in pieces that stay in cache, and mending the rare special elements.

A fast path is a `Step`, which converts one piece with whole-piece numpy operations. It may be right
on ordinary codes only; `mended` then gives the other elements to a step that is right on all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from simulator.numbers import float_environment
from simulator.numbers.formats import Codes, FloatFormat

Kernel = Callable[[Codes, Codes], None]
"""(source codes, destination codes): 1-D, contiguous, equally long; writes all of the latter."""

Step = Callable[[Codes], Codes]
"""Destination codes of a piece of source codes, which it does not modify."""

PIECE_ELEMS: Final = 1 << 17
"""Elements per piece: few enough for its intermediate results to stay in the outer cache, and so
many that allocating them costs little (measured)."""

PART_ELEMS: Final = 1 << 14
"""Elements that the definition takes at once: it needs some 100 B for each."""


def in_pieces(step: Step) -> Kernel:
    """Make a kernel that applies `step` piece by piece.

    Floating-point warnings are silenced: an inexact operation is part of a conversion, not an
    accident.
    """

    def run(codes: Codes, out: Codes) -> None:
        with float_environment.quiet():
            for start in range(0, codes.size, PIECE_ELEMS):
                stop = start + PIECE_ELEMS
                out[start:stop] = step(codes[start:stop])

    return run


def in_parts(define: Step) -> Step:
    """Make a step of the definition that takes few codes at once."""

    def run(codes: Codes) -> Codes:
        starts = range(0, max(codes.size, 1), PART_ELEMS)
        return np.concatenate([define(codes[start : start + PART_ELEMS]) for start in starts])

    return run


def mended(step: Step, beyond: Callable[[Codes], Any], rest: Step) -> Step:
    """Join a step with another one for the codes that lie `beyond` what the first is right on.

    The first step may give anything there, for numpy casts any float to some integer.
    """

    def run(codes: Codes) -> Codes:
        out = step(codes)
        wild = beyond(codes)
        if wild.any():
            out[wild] = rest(codes[wild])
        return out

    return run


def exceeds(fmt: FloatFormat, limit: int) -> Callable[[Codes], Any]:
    """Make the test whether the magnitude of a code is more than `limit`, as those of NaNs are.

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
