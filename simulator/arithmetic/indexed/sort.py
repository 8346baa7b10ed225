"""Sorting along the last axis, and which elements may stand at a place.

Values: the sorted lower ends and the sorted upper ends are the ends of the sorted values. Indices:
an element's least rank is the number of those that surely come before it, its greatest leaves room
for those that surely come after it; a place has as candidates all whose ranks reach it.
Sources: pto-isa a2a3/TSort32.hpp, TMrgSort.hpp (vbitsort, vmrgsort). The place of NaN among numbers
and the order of -0 and +0 are not public.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.interval import Cells, Enclosure, Interval, exactly
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import Bools, from_keys, is_nan, keys
from simulator.arithmetic.trust import ASSUME_STABLE_SORT, Trust, cause_along, meeting, own_cause
from simulator.numbers import float_environment
from simulator.numbers.formats import FP32, INT32

_Order = npt.NDArray[np.int64]


class Sorted(NamedTuple):
    """The first places of sorted rows: values, and INT32 indices of where they stood."""

    values: Enclosure
    indices: Enclosure


@float_environment.quiet()
def sort(x: Enclosure, count: int, *, descending: bool, trust: Trust, cause: int) -> Sorted:
    """Sort rows of FP32, and keep the first places.

    In a row with a NaN every place may hold any of its elements; the values computed here have it
    last. Zeros of both signs may come in either order.

    Args:
        x: the rows, along the last axis.
        count: how many places.
        descending: the greatest first.
        trust: without ASSUME_STABLE_SORT equal elements may come in any order.
        cause: the caller's index of the operation, for places that it leaves open itself.
    """
    cause = own_cause(cause, trust, ASSUME_STABLE_SORT)
    shape = (*x.shape[:-1], count)
    rows = x.reshape((-1, x.shape[-1]))
    # Without its NaN, the negative of a row in ascending order is the row in descending order.
    sought = -rows.values if descending else rows.values
    order = np.argsort(sought, axis=-1, kind="stable")[:, :count].astype(np.int32)
    values = Cells(Enclosure(values=np.take_along_axis(rows.values, order, -1)), FP32)
    indices = Cells(Enclosure(values=order), INT32)
    for row in np.flatnonzero(_needs_care(rows, trust)):
        low, high, nan = _ends_of_row(rows, row)
        causes = np.full(low.size, cause, np.uint16)
        if rows.interval is not None:
            open_causes = np.broadcast_to(rows.interval.cause, rows.shape)[row]
            causes = np.where(rows.certain()[row], causes, open_causes).astype(np.uint16)
        if nan.any():
            flags = None if rows.interval is None else rows.interval.may_be_nan
            is_open = flags is not None and bool(flags[row].any())
            _anywhere(row, (low, high), nan, causes, values, indices, trust, is_open=is_open)
            continue
        _places(row, (low, high), causes, values, indices, descending=descending, trust=trust)
    return Sorted(
        values.enclosure().reshape(shape),
        indices.enclosure().reshape(shape),
    )


def _needs_care(rows: Enclosure, trust: Trust) -> Bools:
    """Finds the rows that may come out in more than one way."""
    x = rows.values
    care = np.isnan(x).any(axis=-1)
    zero = x == 0
    care |= (zero & np.signbit(x)).any(axis=-1) & (zero & ~np.signbit(x)).any(axis=-1)
    if rows.interval is not None:
        care |= ~rows.certain().all(axis=-1)
    if ASSUME_STABLE_SORT not in trust.assumed:
        held = np.sort(x, axis=-1)
        care |= (held[:, 1:] == held[:, :-1]).any(axis=-1)
    found: Bools = np.asarray(care, np.bool_)
    return found


def _ends_of_row(rows: Enclosure, row: Any) -> tuple[_Order, _Order, Bools]:
    """Places in the total order, where zeros of both signs are both, and where NaN is possible."""
    interval = rows.interval or exactly(rows.values)
    low, high = interval.low[row], interval.high[row]
    nan = is_nan(low, FP32)
    if interval.may_be_nan is not None:
        nan = nan | interval.may_be_nan[row]
    least, most = (keys(end, FP32).astype(np.int64) for end in (low, high))
    if ((least <= -1) & (most >= -1)).any() and ((least <= 0) & (most >= 0)).any():
        least, most = np.where(least == 0, -1, least), np.where(most == -1, 0, most)
    return least, most, nan


def _anywhere(
    row: Any,
    ends: tuple[_Order, _Order],
    nan: Bools,
    causes: npt.NDArray[np.uint16],
    values: Cells,
    indices: Cells,
    trust: Trust,
    *,
    is_open: bool,
) -> None:
    """Let each place have any element of a row; the bits of NaN alone may be open too."""
    numbers = ~is_nan(_value(ends[0]), FP32)
    low, high = ends[0][numbers], ends[1][numbers]
    cause = cause_along(trust, causes, np.flatnonzero(nan)[:1], True, 0)[0]
    count = values.values.shape[-1]
    bounds = _value(np.array([low.min(), high.max()] if low.size else ends[0][:1].repeat(2)))
    may_be_nan = is_open or bool(low.size)
    values.put_interval(row, _spread(bounds, count, cause, may_be_nan=may_be_nan))
    indices.put_interval(row, _spread(np.array([0, nan.size - 1], np.int32), count, cause))


def _places(
    row: Any,
    ends: tuple[_Order, _Order],
    causes: npt.NDArray[np.uint16],
    values: Cells,
    indices: Cells,
    *,
    descending: bool,
    trust: Trust,
) -> None:
    """Find the values and the candidates of each place of a row of numbers."""
    low, high = ends
    sign = -1 if descending else 1
    count, size = values.values.shape[-1], low.size
    places = (np.sort(end)[::sign][:count] for end in (low, high))
    least, most = map(_value, places)
    # From here on the first place is the least: what comes before has the smaller number.
    first, last = (low, high) if sign > 0 else (~high, ~low)
    if ASSUME_STABLE_SORT in trust.assumed:
        position = np.arange(size)
        first, last = first * size + position, last * size + position
    else:
        first, last = first * size, last * size
    earliest = np.searchsorted(np.sort(last), first, side="left")
    latest = np.searchsorted(np.sort(first), last, side="right") - 1
    lowest, highest = np.full(count, size), np.full(count, -1)
    widest = np.zeros(count, np.uint16)
    fixed = np.flatnonzero((earliest == latest) & (earliest < count))
    np.minimum.at(lowest, earliest[fixed], fixed)
    np.maximum.at(highest, earliest[fixed], fixed)
    widest[earliest[fixed]] = causes[fixed]
    for element in np.flatnonzero((earliest < latest) & (earliest < count)):
        reached = slice(earliest[element], min(latest[element] + 1, count))
        np.minimum(lowest[reached], element, out=lowest[reached])
        np.maximum(highest[reached], element, out=highest[reached])
        widest[reached] = meeting(trust, causes[element], widest[reached])
    values.put_interval(row, Interval(low=least, high=most, may_be_nan=None, cause=widest))
    lows, highs = lowest.astype(np.int32), highest.astype(np.int32)
    indices.put_interval(row, Interval(low=lows, high=highs, may_be_nan=None, cause=widest))


def _value(order: _Order) -> Array:
    return from_keys(order.astype(np.int32), FP32)


def _spread(
    bounds: Sequence[Any] | Array, count: int, cause: Any, *, may_be_nan: bool = False
) -> Interval:
    low, high = (np.full(count, end) for end in bounds)
    return Interval(
        low=low,
        high=high,
        may_be_nan=np.full(count, may_be_nan),
        cause=np.full(count, cause, np.uint16),
    )
