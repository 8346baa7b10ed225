"""A product and a sum of one instruction, whose product may be rounded or not."""

from __future__ import annotations

import numpy as np

from simulator.arithmetic.computed import unify_nan
from simulator.arithmetic.evaluation import evaluate
from simulator.arithmetic.interval import (
    Bounds,
    Cells,
    Enclosure,
    changed,
    either,
    enclosed,
    union,
)
from simulator.arithmetic.operation import Array
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.trust import DEFAULT, Trust, meeting
from simulator.numbers import float_environment
from simulator.numbers.formats import FP32


def open_to_fusion(
    rounded: Enclosure,
    y: Enclosure,
    x: Enclosure,
    alpha: Enclosure,
    *,
    trust: Trust = DEFAULT,
    cause: int = 0,
) -> Enclosure:
    """alpha * x + y in FP32, of which both steps are rounded, opened to one rounding at the end.

    No public text says whether vaxpy of A2/A3 rounds the product; that of the 950 does not
    (asc-devkit, precision of the vector interfaces). Infinity and NaN are those of the steps, but
    where the product alone overflows.

    Args:
        rounded: the sum by both steps, with the interval of each.
        y, x: FP32 values, which broadcast to its shape.
        alpha: one FP32 number.
        trust: what is taken for granted.
        cause: the caller's index of the operation.
    """
    shape = rounded.shape
    once = _once(*(each.bounds(shape) for each in (y, x, alpha)))
    nothing = Enclosure(values=np.full((), -0.0, np.float32))
    fused = evaluate(  # the sum is itself; what the trust opens of a sum, it opens here
        OPERATIONS["add"],
        (Enclosure(values=once.low, interval=once.interval(cause)), nothing),
        FP32,
        trust=trust,
        cause=cause,
    )
    before = rounded.bounds()
    hull = union(before, fused.bounds(), FP32)
    wider = changed(before, hull)
    if not wider.any():
        return rounded
    cells = Cells(rounded, FP32)
    held = 0 if rounded.interval is None else np.broadcast_to(rounded.interval.cause, shape)[wider]
    part = hull.piece(wider)
    cells.put_interval(wider, part.interval(meeting(trust, np.uint16(cause), np.asarray(held))))
    return cells.enclosure()


@float_environment.quiet()
def fused(rounded: Enclosure, y: Enclosure, x: Enclosure, alpha: Enclosure) -> Enclosure:
    """alpha * x + y in FP32, rounded once, to the nearest, ties to even, as IEEE 754's FMA.

    Args:
        rounded: the sum by both steps, whose open elements stay open, with their causes.
        y, x, alpha: as of `open_to_fusion`.
    """
    shape = rounded.shape
    product = alpha.values.astype(np.float64) * x.values.astype(np.float64)
    term = y.values.astype(np.float64)
    total = np.broadcast_to(product + term, shape)
    away = _error(product, term, total)
    # Rounding to odd in float64 keeps what a second rounding needs (Boldo and Melquiond, 2008).
    is_even = total.view(np.uint64) & np.uint64(1) == 0
    moved = np.nextafter(total, np.copysign(np.inf, away))
    odd = np.where((away != 0) & is_even & np.isfinite(total), moved, total)
    values = odd.astype(np.float32)
    unify_nan(values, FP32)
    if rounded.interval is None:
        return Enclosure(values=values)
    bounds = _once(*(each.bounds(shape) for each in (y, x, alpha)))
    certain = rounded.certain()
    low, high = (np.where(certain, values, end) for end in (bounds.low, bounds.high))
    nan = np.zeros(shape, np.bool_) if bounds.nan is None else bounds.nan & ~certain
    return enclosed(values, low, high, nan, np.broadcast_to(rounded.interval.cause, shape))


def _error(product: Array, term: Array, total: Array) -> Array:
    """The rounding error of the sum of two float64 numbers (Knuth's TwoSum)."""
    back = total - product
    lost: Array = (product - (total - back)) + (term - back)
    return np.where(np.isfinite(lost), lost, 0.0)


@float_environment.quiet()
def _once(y: Bounds, x: Bounds, alpha: Bounds) -> Bounds:
    """The ends of alpha * x + y, rounded once: float64 holds the product, and its sum is moved by
    its own rounding error.
    """
    factor, ends = alpha.low.astype(np.float64), [x.low, x.high]
    products = [factor * end.astype(np.float64) for end in ends]
    smaller, greater = np.minimum(*products), np.maximum(*products)
    low, high = smaller + y.low.astype(np.float64), greater + y.high.astype(np.float64)
    undefined = np.isnan(low) | np.isnan(high)
    nan = either(either(x.nan, y.nan), undefined if undefined.any() else None)
    exact = [_is_exact(a, b, c) for a, b, c in ((smaller, y.low, low), (greater, y.high, high))]
    lower = np.where(exact[0], low, np.nextafter(low, -np.inf)).astype(np.float32)
    upper = np.where(exact[1], high, np.nextafter(high, np.inf)).astype(np.float32)
    if undefined.any():
        sure = np.isnan(low) & np.isnan(high) & (nan is not None)
        lower = np.where(undefined & ~sure, np.float32(-np.inf), lower)
        upper = np.where(undefined & ~sure, np.float32(np.inf), upper)
        nan = None if nan is None else nan & ~sure
        unify_nan(lower, FP32)
        unify_nan(upper, FP32)
    return Bounds(low=lower, high=upper, nan=nan)


def _is_exact(product: Array, y: Array, total: Array) -> Array:
    """Finds sums of two float64 numbers without a rounding error."""
    error = _error(product, y.astype(np.float64), total)
    return np.asarray((error == 0) | ~np.isfinite(total))
