"""A matrix in float64: midpoints, radii, and what is known of each of its lines.

A line is a row of the left matrix or a column of the right one: the terms of one sum.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.any_order import NO_BITS, Exponents, last_bit
from simulator.arithmetic.cause_codes import Causes, cause_along
from simulator.arithmetic.interval import Quantity
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import Bools, same_code
from simulator.arithmetic.trust import ASSUME_CUBE_HF32, ASSUME_GRADUAL_UNDERFLOW, Trust
from simulator.numbers import elementwise
from simulator.numbers.convert import INF_NAN, Conversion, codes_of
from simulator.numbers.formats import BF16, FP16, FP32, FloatFormat
from simulator.numbers.rounding import RoundMode

Doubles = npt.NDArray[np.float64]

_HF32_MAN_BITS: Final = 11
_WIDEN: Final = {
    fmt: (Conversion(src=fmt, dst=FP32, mode=RoundMode.RINT, policy=INF_NAN),)
    for fmt in (FP16, BF16)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixOperand:
    """A block of whole lines; what is not finite is 0 in `middle`, `radius` and `values`.

    Attributes:
        values: the values computed here.
        middle: of each interval; the same object as `values` where all are exact.
        radius: at least the distance of both ends from it; None where all are exact.
        reach: the greatest magnitude.
        exact: by line, one code is possible for each element.
        wild: by line, an element may be infinite or NaN.
        may_be_nan: by line, an element may be NaN; those that are NaN for sure do not count.
        is_nan: by line, an element is NaN for sure.
        cause: by line, of the widest interval; None where all are exact.
        raw: values with infinities and NaN, for lines that are wild.
    """

    values: Doubles
    middle: Doubles
    radius: Doubles | None
    reach: Doubles
    exact: Bools
    wild: Bools
    may_be_nan: Bools
    is_nan: Bools
    cause: Causes | None
    raw: Doubles


def operand_of(x: Quantity, fmt: FloatFormat, axis: int, trust: Trust) -> MatrixOperand:
    """Prepare a block.

    Args:
        x: two dimensions, values of `fmt`.
        fmt: FP16, BF16 or FP32.
        axis: that the terms of a sum lie along.
        trust: ASSUME_CUBE_HF32 rounds FP32; without ASSUME_GRADUAL_UNDERFLOW subnormal elements may
            be zero.
    """
    rounds = fmt is FP32 and ASSUME_CUBE_HF32 in trust.assumed
    values = _in_float64(x.values, fmt, rounds)
    if x.interval is None:
        low = high = values
    else:
        low, high = (_in_float64(end, fmt, rounds) for end in (x.low, x.high))
    if ASSUME_GRADUAL_UNDERFLOW not in trust.assumed:
        low, high = _with_flushed(low, high, 2.0**fmt.emin)
    none = np.zeros(values.shape[1 - axis], np.bool_)
    reach = np.abs(values) if low is high else np.maximum(np.abs(low), np.abs(high))
    raw, strange = values, None
    wild: Bools = none
    is_nan: Bools = none
    flags: Bools = none
    if not np.isfinite(reach.max(initial=0.0)):
        strange = ~np.isfinite(reach)
        wild = np.asarray(strange.any(axis=axis))
        is_nan = np.asarray(np.isnan(low).any(axis=axis))
        was_exact = low is high
        values, high, reach = (np.where(strange, 0.0, part) for part in (values, high, reach))
        low = high if was_exact else np.where(strange, 0.0, low)
    if low is high:
        return MatrixOperand(
            values=values,
            middle=values,
            radius=None,
            reach=reach,
            exact=~none,
            wild=wild,
            may_be_nan=none,
            is_nan=is_nan,
            cause=None,
            raw=raw,
        )
    middle = (low + high) / 2
    # The factor covers the rounding of the difference.
    radius = np.maximum(high - middle, middle - low) * (1 + 2.0**-51)
    settled, cause = radius == 0, None
    if x.interval is not None:
        settled &= same_code(x.low, x.high)
        widest = radius if strange is None else np.where(strange, np.inf, radius)
        if x.interval.may_be_nan is not None:
            flags = np.asarray(x.interval.may_be_nan.any(axis=axis))
            settled &= ~x.interval.may_be_nan
            widest = np.where(x.interval.may_be_nan, np.inf, widest)
        at = np.where(settled, -1.0, widest).argmax(axis=axis)
        of_lines = np.moveaxis(np.broadcast_to(x.interval.cause, radius.shape), axis, 0)
        is_open = np.moveaxis(~settled, axis, 0)
        cause = cause_along(trust, of_lines, at[None], is_open, 0)[0]
    return MatrixOperand(
        values=values,
        middle=middle,
        radius=radius,
        reach=reach,
        exact=np.asarray(settled.all(axis=axis)),
        wild=wild,
        may_be_nan=flags,
        is_nan=is_nan,
        cause=cause,
        raw=raw,
    )


def last_bits(numbers: Doubles, axis: int) -> Exponents:
    """By line, the exponent of the least bit set in any finite number; `NO_BITS` for zeros."""
    found: Exponents = last_bit(numbers).min(axis, initial=NO_BITS)
    return found


def _with_flushed(low: Doubles, high: Doubles, least: float) -> tuple[Doubles, Doubles]:
    positive = (low > 0) & (low < least)
    negative = (high < 0) & (high > -least)
    if not (positive.any() or negative.any()):
        return low, high
    return np.where(positive, 0.0, low), np.where(negative, -0.0, high)


def _in_float64(values: Array, fmt: FloatFormat, rounds: bool) -> Doubles:
    if values.ndim == 2 and values.T.flags.c_contiguous and not values.flags.c_contiguous:
        return _in_float64(values.T, fmt, rounds).T
    flat = np.ascontiguousarray(values).reshape(-1)
    if fmt is FP32:
        single = _hf32(flat) if rounds else flat
    else:
        single = np.empty(flat.size, np.float32)
        _widening(fmt)(codes_of(flat, fmt), codes_of(single, FP32))
    return single.astype(np.float64).reshape(values.shape)


@functools.cache
def _widening(fmt: FloatFormat) -> Any:
    return elementwise.kernel(_WIDEN[fmt])


def _hf32(values: Array) -> Array:
    """Round FP32 to 11 mantissa bits, to nearest, ties to even; infinity and NaN stay."""
    dropped = FP32.man_bits - _HF32_MAN_BITS
    codes = values.view(np.uint32)
    half, unit = np.uint32((1 << dropped - 1) - 1), np.uint32(1)
    rounded = codes + half + (codes >> np.uint32(dropped) & unit)
    rounded &= ~np.uint32((1 << dropped) - 1)
    kept: Array = np.where(np.isfinite(values), rounded, codes).view(np.float32)
    return kept
