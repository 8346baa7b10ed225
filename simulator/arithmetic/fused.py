"""A product and a sum of one instruction, whose product may be rounded or not."""

from __future__ import annotations

import numpy as np

from simulator.arithmetic.computed import unify_nan
from simulator.arithmetic.evaluation import evaluate
from simulator.arithmetic.interval import Bounds, Cells, Enclosure, changed, either, union
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
    """Finds sums of two float64 numbers without a rounding error (Knuth's TwoSum)."""
    term = y.astype(np.float64)
    back = total - product
    error = (product - (total - back)) + (term - back)
    return np.asarray((error == 0) & np.isfinite(total) | ~np.isfinite(total))
