"""The reach of a sum whose order is not known."""

from __future__ import annotations

import numpy as np

from simulator.arithmetic.ends import Ends
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import outward
from simulator.arithmetic.trust import ASSUME_GRADUAL_UNDERFLOW, ASSUME_RNE, Trust
from simulator.numbers.convert import values_of
from simulator.numbers.formats import FloatFormat


def order_bound(low: Array, high: Array, axis: int, fmt: FloatFormat, trust: Trust) -> Ends:
    """The reach of a float sum in any order of its terms.

    A sum of n terms is off by at most ((1 + u)**(n - 1) - 1) times the sum of their magnitudes,
    where u is half an ulp if each step rounds to nearest, and as many ulp more as it may be off
    otherwise, one if that is not known (Higham, Accuracy and Stability of Numerical Algorithms,
    4.2). Additions of subnormal numbers are exact; if the device flushes them, each term and each
    step may lose one.

    Args:
        low, high: ends of the terms.
        axis: of the terms.
        fmt: their format.
        trust: what is taken for granted.

    Returns:
        Ends with one element along the axis, and NaN as possible where a term is infinite or a
        partial sum may overflow.
    """
    ends = [end.astype(np.float64) for end in (low, high)]
    magnitude = np.maximum(np.abs(ends[0]), np.abs(ends[1])).sum(axis=axis, keepdims=True)
    sums = [end.sum(axis=axis, keepdims=True) for end in ends]
    return reach(sums[0], sums[1], magnitude, low.shape[axis], fmt, trust)


def reach(
    low: Array, high: Array, magnitude: Array, terms: int | Array, fmt: FloatFormat, trust: Trust
) -> Ends:
    """The bound of `order_bound`, of sums that are there already.

    Args:
        low, high: sums of the terms' ends, in float64.
        magnitude: the sum of their magnitudes.
        terms: how many they are.
        fmt: the format in which the device adds.
        trust: what is taken for granted.
    """
    half_ulp = 2.0 ** -(fmt.man_bits + 1)
    ulps = trust.measured.get(("add", fmt), int(ASSUME_RNE not in trust.assumed))
    unit = (1 + 2 * ulps) * half_ulp
    # The last factor covers the float64 arithmetic of this function itself.
    off = magnitude * (np.expm1((terms - 1) * np.log1p(unit)) + terms * 2.0**-50)
    if ASSUME_GRADUAL_UNDERFLOW not in trust.assumed:
        off = off + 2 * terms * 2.0**fmt.emin
    largest = float(values_of(np.array([fmt.max_code], fmt.code_dtype), fmt)[0])
    wild = ~(magnitude + off < largest)
    lower, upper = (
        np.where(wild, limit, end).astype(fmt.dtype)
        for limit, end in ((-np.inf, low - off), (np.inf, high + off))
    )
    lower, upper = (
        np.where(end == 0, zero, end).astype(fmt.dtype)
        for end, zero in ((lower, -0.0), (upper, 0.0))
    )
    lower, upper = outward(lower, upper, 1, fmt, (None, None))
    return Ends(low=lower, high=upper, nan=wild if wild.any() else None)
