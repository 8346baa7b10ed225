"""Sums of all elements up to each, along an axis that is cut into tiles.

Inside a tile the element 1 before is added to each, then the one 2 before, 4, 8 and so on; the last
element of a tile is added to all of the next. Sources: upstream pypto,
framework/src/interface/tileop/vector/cum_operation.h and operation/vector/math.cpp.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from simulator.arithmetic.any_order import is_unrounded, last_bit, reach
from simulator.arithmetic.cause_codes import meeting, own_cause
from simulator.arithmetic.ends import union
from simulator.arithmetic.evaluation import evaluate
from simulator.arithmetic.indexed.cells import Cells, as_interval
from simulator.arithmetic.interval import Quantity, join_arrays
from simulator.arithmetic.spread import ends_of
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.total_order import is_nan
from simulator.arithmetic.trust import ASSUME_SUM_ORDER, Trust
from simulator.numbers import float_environment
from simulator.numbers.formats import FloatFormat, Format


def prefix_sum(
    x: Quantity, fmt: Format, *, axis: int, extent: int, trust: Trust, cause: int, by_scalars: bool
) -> Quantity:
    """Add up along an axis.

    Args:
        x: what is added, of FP32 or INT32, which wraps.
        fmt: that format.
        axis: from 0.
        extent: elements of a tile along the axis.
        trust: without ASSUME_SUM_ORDER each float sum lies in the bound of all orders.
        cause: the caller's index of the operation.
        by_scalars: the scalar unit adds, so that partial sums of -0 keep their sign.
    """
    add = partial(evaluate, OPERATIONS["add"], fmt=fmt, trust=trust, cause=cause)
    zero = Quantity(values=np.zeros((), fmt.dtype))

    def part(of: Quantity, start: int | None, stop: int | None) -> Quantity:
        return of[(*(slice(None),) * axis, slice(start, stop))]

    def glued(*parts: Quantity) -> Quantity:
        return join_arrays(lambda arrays: np.concatenate(arrays, axis), parts)

    tiles: list[Quantity] = []
    for start in range(0, x.shape[axis], extent):
        held = result = part(x, start, start + extent)
        step = 1
        while step < held.shape[axis]:
            total = add((part(held, None, -step), part(held, step, None)))
            result = glued(part(result, None, step), total)
            kept = total if by_scalars else add((total, zero))
            held = glued(part(held, None, step), kept)
            step *= 2
        tiles.append(add((result, part(tiles[-1], -1, None))) if tiles else result)
    ordered = glued(*tiles)
    if ASSUME_SUM_ORDER in trust.assumed or not isinstance(fmt, FloatFormat):
        return ordered
    return _in_any_order(x, ordered, fmt, axis, trust, cause)


@float_environment.quiet()
def _in_any_order(
    x: Quantity, ordered: Quantity, fmt: FloatFormat, axis: int, trust: Trust, cause: int
) -> Quantity:
    terms = np.arange(1, x.shape[axis] + 1)
    terms = terms.reshape([-1 if k == axis else 1 for k in range(len(x.shape))])
    ends = ends_of(x, x.shape)
    undefined = is_nan(ends.low, fmt) | (False if ends.nan is None else ends.nan)
    low, high = (
        np.where(undefined, np.inf, end.astype(np.float64)) for end in (ends.low, ends.high)
    )
    magnitude = np.maximum(np.abs(low), np.abs(high))
    sums = [np.cumsum(each, axis) for each in (low, high, magnitude)]
    bound = reach(sums[0], sums[1], sums[2], terms, fmt, trust)
    last = np.minimum.accumulate(last_bit(low), axis)
    exact = np.logical_and.accumulate(x.certain(), axis) & is_unrounded(sums[2], last, fmt)
    cells = Cells(ordered, fmt)
    zeros = np.logical_and.accumulate((low == 0) & np.signbit(low), axis)
    several = (terms > 1) & ~(exact & ~zeros)
    hull = union(ends_of(ordered, x.shape), bound, fmt).piece(several)
    own, held = own_cause(cause, trust, ASSUME_SUM_ORDER), ordered.interval
    inner = 0 if held is None else np.broadcast_to(held.cause, x.shape)[several]
    cells.put_interval(several, as_interval(hull, meeting(trust, own, inner)))
    return cells.quantity()
