"""Codes around every number of a small format."""

from __future__ import annotations

import numpy as np

from simulator.numbers.convert import INF_NAN, convert
from simulator.numbers.formats import Codes, FloatFormat, Format
from simulator.numbers.rounding import RoundMode


def magnitudes_near(src: FloatFormat, dst: Format) -> Codes:
    """The codes of every number of a small destination, of the midpoints, and their neighbours."""
    if dst.bits > 16:
        return np.empty(0, src.code_dtype)
    every = np.arange(1 << dst.bits, dtype=dst.code_dtype)
    exact = convert(every, dst, src, RoundMode.RINT, INF_NAN)
    exact = np.unique(exact & src.code_dtype.type(src.sign_code - 1))
    # Codes are evenly spaced within a binade: the midpoint of two codes is that of the numbers.
    midpoints = exact[:-1] + (exact[1:] - exact[:-1]) // 2
    near = np.concatenate(
        [at + np.array(d).astype(src.code_dtype) for at in (exact, midpoints) for d in (-1, 0, 1)]
    )
    return np.concatenate([near, near ^ src.code_dtype.type(src.sign_code)])
