"""The reach of a product in no known order, of all elements of an axis or of those up to each."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.interval import Bounds, Cells, Enclosure, unknown
from simulator.arithmetic.operation import Array
from simulator.arithmetic.reduction_order import NO_BITS, last_bit
from simulator.arithmetic.total_order import Bools, is_nan, outward
from simulator.arithmetic.trust import (
    ASSUME_RNE,
    ASSUME_SUM_ORDER,
    Trust,
    meeting,
    own_cause,
)
from simulator.numbers import float_environment
from simulator.numbers.formats import FloatFormat, Format, IntFormat

_Doubles = npt.NDArray[np.float64]
_COMMUTES: Final = 2
"""So many factors have one product in either order."""
_FACTORS: Final = 4
"""The rounding errors of a product are counted so often: of the order here, of another, and of the
float64 arithmetic of this module."""


@float_environment.quiet()
def any_product(
    x: Enclosure,
    ordered: Enclosure,
    fmt: Format,
    axis: int,
    trust: Trust,
    cause: int,
    *,
    is_running: bool = False,
    integers_wrap: bool = True,
    keeps_signs: bool = True,
) -> Enclosure:
    """Let products that were multiplied in some order have the bits of any order.

    Integers that wrap have one product. A float product of which no part can overflow or be
    subnormal lies within its rounding errors; one that is not rounded has one value, as has that of
    a zero among numbers that cannot overflow. Any other may be any number.

    Args:
        x: the factors.
        ordered: their products in some order, one along the axis or as many as factors.
        fmt: the format in which the device multiplies.
        axis: of the factors.
        trust: what is taken for granted.
        cause: the caller's index of the operation.
        is_running: there is a product of all elements up to each.
        integers_wrap: they do not clamp.
        keeps_signs: a partial product of -0 stays -0; else one of three factors or more that is
            zero may have either sign.
    """
    if isinstance(fmt, IntFormat):
        if integers_wrap:
            return ordered
        settled = _fits(x, fmt, axis, is_running)
        near = np.zeros(settled.shape, np.bool_)
        errors: Any = 0.0
    else:
        assert isinstance(fmt, FloatFormat)
        settled, near, errors = _judged(x, fmt, axis, is_running, trust)
        settled = settled | is_nan(ordered.low, fmt) & _reduced(
            np.logical_or, is_nan(x.low, fmt), axis, is_running
        )
    cells = Cells(ordered, fmt)
    own = own_cause(cause, trust, ASSUME_SUM_ORDER)
    held = 0 if ordered.interval is None else np.broadcast_to(ordered.interval.cause, ordered.shape)
    causes = np.broadcast_to(meeting(trust, np.uint16(own), np.asarray(held)), ordered.shape)
    wide = ~settled & ~near
    near = near & ~settled
    if near.any():
        assert isinstance(fmt, FloatFormat)
        part = ordered.bounds().piece(near)
        low, high = (end.astype(np.float64) for end in (part.low, part.high))
        slack = np.broadcast_to(errors, near.shape)[near]
        ends = [
            (end + sign * np.abs(end) * slack).astype(fmt.dtype)
            for end, sign in ((low, -1), (high, 1))
        ]
        lower, upper = outward(ends[0], ends[1], 1, fmt, (None, None))
        bounds = Bounds(low=lower, high=upper, nan=part.nan)
        cells.put_interval(near, bounds.interval(causes[near]))
    if wide.any():
        anything = unknown(ordered.values[wide], fmt, 0)
        part = Bounds(low=anything.low, high=anything.high, nan=anything.may_be_nan)
        cells.put_interval(wide, part.interval(causes[wide]))
    if not keeps_signs and isinstance(fmt, FloatFormat):
        terms = _reduced(np.add, np.ones(x.shape), axis, is_running)
        zeros = settled & (terms > _COMMUTES) & (ordered.low == 0) & (ordered.high == 0)
        zero = np.zeros(np.count_nonzero(zeros), fmt.dtype)
        both = Bounds(low=-zero, high=zero, nan=None)
        cells.put_interval(zeros, both.interval(causes[zeros]))
    return cells.enclosure()


def _reduced(ufunc: np.ufunc, each: Array, axis: int, is_running: bool) -> Array:
    if is_running:
        return np.asarray(ufunc.accumulate(each, axis=axis))
    return np.asarray(ufunc.reduce(each, axis=axis, keepdims=True))


def _fits(x: Enclosure, fmt: IntFormat, axis: int, is_running: bool) -> Bools:
    """Finds integer products of which no part can leave the format."""
    most = np.maximum(np.abs(x.low.astype(np.float64)), np.abs(x.high.astype(np.float64)))
    whole = _reduced(np.multiply, np.maximum(most, 1.0), axis, is_running)
    return np.asarray(whole * (1 + 2.0**-40) < fmt.max)


def _judged(
    x: Enclosure, fmt: FloatFormat, axis: int, is_running: bool, trust: Trust
) -> tuple[Bools, Bools, _Doubles]:
    """Float products: those of one value, those within rounding errors, and these errors."""
    ends = [end.astype(np.float64) for end in (x.low, x.high)]
    undefined = is_nan(x.low, fmt)
    if x.interval is not None and x.interval.may_be_nan is not None:
        undefined = undefined | x.interval.may_be_nan
    sizes = [np.abs(end) for end in ends]
    most = np.where(undefined, np.inf, np.maximum(sizes[0], sizes[1]))
    crosses = np.sign(ends[0]) != np.sign(ends[1])
    least = np.where(undefined | crosses, 0.0, np.minimum(sizes[0], sizes[1]))
    certain = x.certain()
    greatest = _reduced(np.multiply, np.maximum(most, 1.0), axis, is_running)
    smallest = _reduced(np.multiply, np.minimum(least, 1.0), axis, is_running)
    ulps = 1 + 2 * int(ASSUME_RNE not in trust.assumed)
    unit = ulps * 2.0 ** -(fmt.man_bits + 1)
    terms = _reduced(np.add, np.ones(x.shape), axis, is_running)
    errors = np.expm1(_FACTORS * (terms + 4) * unit)
    is_bounded = greatest * (1 + errors) < float(np.finfo(fmt.dtype).max)
    is_normal = smallest * (1 - errors) > 2.0 ** (fmt.emin + 1)
    exact = _reduced(np.logical_and, certain, axis, is_running)
    finite = np.where(np.isfinite(ends[0]), ends[0], 0.0)
    last = last_bit(finite)
    odd = np.where(last == NO_BITS, 1.0, np.abs(np.ldexp(finite, -last)))
    # The product of odd parts is that of the product: one that fits has only divisors that fit.
    is_short = _reduced(np.multiply, odd, axis, is_running) < 2.0 ** (fmt.man_bits + 1)
    has_zero = _reduced(np.logical_or, certain & (ends[0] == 0), axis, is_running)
    settled = (terms <= _COMMUTES) | exact & is_bounded & (is_normal & is_short | has_zero)
    return np.asarray(settled), np.asarray(is_bounded & is_normal), np.asarray(errors)
