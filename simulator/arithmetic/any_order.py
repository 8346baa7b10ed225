"""The reach of a sum whose order is not known."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.interval import Bounds
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import Bools, outward
from simulator.arithmetic.trust import ASSUME_GRADUAL_UNDERFLOW, ASSUME_RNE, Trust
from simulator.numbers.convert import values_of
from simulator.numbers.formats import FloatFormat

Exponents = npt.NDArray[np.int64]
NO_BITS: Final = 1 << 10
"""The exponent of the last bit of zero: above that of any product of two numbers."""


def last_bit(numbers: Array) -> Exponents:
    """The exponent of the least bit set of finite float64 numbers; `NO_BITS` of zeros."""
    codes = np.ascontiguousarray(numbers).view(np.int64)
    stored = (codes >> 52) & 0x7FF
    significand = codes & ((1 << 52) - 1) | np.where(stored > 0, np.int64(1) << 52, np.int64(0))
    least = significand & -significand
    position = (least.astype(np.float64).view(np.int64) >> 52) - 1023
    exponents = np.maximum(stored, 1) - 1075 + position
    return np.where(significand == 0, np.int64(NO_BITS), exponents)


def is_unrounded(magnitude: Array, last: Exponents, fmt: FloatFormat) -> Bools:
    """Finds sums that no order rounds: of multiples of a power of two, below 2**p of it.

    It is a normal number, so that no partial sum is subnormal.

    Args:
        magnitude: the sum of the terms' magnitudes, in float64.
        last: the least exponent of a bit of theirs.
        fmt: the format in which the device adds, of precision p.
    """
    limit = np.ldexp(1.0, np.minimum(last + fmt.man_bits + 1, 1000).astype(np.int32))
    return np.asarray((magnitude <= np.minimum(limit, _largest(fmt))) & (last >= fmt.emin))


def _largest(fmt: FloatFormat) -> float:
    return float(values_of(np.array([fmt.max_code], fmt.code_dtype), fmt)[0])


def order_bound(low: Array, high: Array, axis: int, fmt: FloatFormat, trust: Trust) -> Bounds:
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
        Bounds with one element along the axis, and NaN as possible where a term is infinite or a
        partial sum may overflow.
    """
    ends = [end.astype(np.float64) for end in (low, high)]
    magnitude = np.maximum(np.abs(ends[0]), np.abs(ends[1])).sum(axis=axis, keepdims=True)
    sums = [end.sum(axis=axis, keepdims=True) for end in ends]
    return reach(sums[0], sums[1], magnitude, low.shape[axis], fmt, trust)


def reach(
    low: Array, high: Array, magnitude: Array, terms: int | Array, fmt: FloatFormat, trust: Trust
) -> Bounds:
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
    outliers = ~(magnitude + off < _largest(fmt))
    lower, upper = (
        np.where(outliers, limit, end).astype(fmt.dtype)
        for limit, end in ((-np.inf, low - off), (np.inf, high + off))
    )
    lower, upper = (
        np.where(end == 0, zero, end).astype(fmt.dtype)
        for end, zero in ((lower, -0.0), (upper, 0.0))
    )
    lower, upper = outward(lower, upper, 1, fmt, (None, None))
    return Bounds(low=lower, high=upper, nan=outliers if outliers.any() else None)
