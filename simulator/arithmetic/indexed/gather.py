"""Reading along an axis at indices that may be open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.ends import Ends, either, union
from simulator.arithmetic.indexed.cells import Cells, as_interval
from simulator.arithmetic.interval import Quantity
from simulator.arithmetic.operation import Array
from simulator.arithmetic.spread import ends_of
from simulator.arithmetic.total_order import from_keys, is_nan, keys
from simulator.numbers.formats import Format

Positions = npt.NDArray[np.int64]

_FEW: Final = 64
"""So many candidates are read one by one."""


def gather(
    source: Quantity,
    index: Quantity,
    fmt: Format,
    *,
    axis: int,
    place: Callable[[Positions], Positions] | None = None,
) -> Quantity:
    """Read elements along an axis.

    Args:
        source: what is read.
        index: integers, with as many dimensions; along each but `axis` as many as the source, or 1.
            Their values lead to elements of the source.
        fmt: of the source.
        axis: from 0.
        place: the position along the axis that an index stands for, -1 for none; the index itself
            if not given.

    Returns:
        The values at the index's values. An open index gives the hull of what its candidates lead
        to; anything, where one of them leads nowhere, and where there are many of a `place`.
    """
    positions = index.values.astype(np.int64)
    taken = _taken(source, positions if place is None else place(positions), axis)
    if index.interval is None:
        return taken
    is_open = np.broadcast_to(index.low != index.high, taken.shape)
    if not is_open.any():
        return taken
    where = np.nonzero(is_open)
    low, high = (
        np.broadcast_to(end, taken.shape)[where].astype(np.int64) for end in (index.low, index.high)
    )
    cause = np.broadcast_to(index.interval.cause, taken.shape)[where]
    hull, nowhere = _hull(ends_of(source, source.shape), where, low, high, fmt, axis, place)
    cells = Cells(taken, fmt)
    cells.put_interval(where, as_interval(hull, cause))
    if nowhere.any():
        cells.forget(tuple(each[nowhere] for each in where), int(cause[nowhere][0]))
    return cells.quantity()


def _taken(source: Quantity, positions: Positions, axis: int) -> Quantity:
    if positions.size == positions.shape[axis]:
        line = positions.reshape(-1)
        return source.map(lambda array: np.take(array, line, axis))
    return source.map(lambda array: np.take_along_axis(array, positions, axis))


def _hull(
    source: Ends,
    where: tuple[npt.NDArray[np.intp], ...],
    low: Positions,
    high: Positions,
    fmt: Format,
    axis: int,
    place: Callable[[Positions], Positions] | None,
) -> tuple[Ends, npt.NDArray[np.bool_]]:
    """The hull of all candidates of some elements, and where one of them leads nowhere."""
    size = source.low.shape[axis]
    wide = high - low >= _FEW
    nowhere = wide & np.array(place is not None) | wide & ((low < 0) | (high >= size))

    def read(positions: Positions) -> Ends:
        cell = list(where)
        cell[axis] = np.clip(positions, 0, size - 1)
        return source.piece(tuple(cell))

    hull = read(low if place is None else place(low))
    for step in range(int(np.minimum(high - low, _FEW - 1).max()) + 1):
        candidates = np.minimum(low + step, high)
        positions = candidates if place is None else place(candidates)
        nowhere |= (positions < 0) | (positions >= size)
        hull = union(hull, read(positions), fmt)
    if wide.any():
        line = [each[wide] for each in where]
        line[axis] = np.zeros_like(line[axis])
        whole = union(hull.piece(wide), along(source, axis, fmt).piece(tuple(line)), fmt)
        hull.low[wide], hull.high[wide] = whole.low, whole.high
        flags = np.zeros(low.shape, np.bool_) if hull.nan is None else hull.nan
        flags[wide] = False if whole.nan is None else whole.nan
        hull = Ends(low=hull.low, high=hull.high, nan=flags)
    return hull, nowhere


def along(ends: Ends, axis: int, fmt: Format) -> Ends:
    """The hull of all elements along an axis, which stays with one."""
    undefined = is_nan(ends.low, fmt)
    every = undefined.all(axis=axis, keepdims=True)

    def extreme(end: Array, ufunc: np.ufunc, neutral: int) -> Array:
        order = keys(end, fmt)
        order = np.where(undefined, order.dtype.type(neutral), order)
        found = from_keys(ufunc.reduce(order, axis=axis, keepdims=True), fmt)
        return np.where(every, np.take(end, [0], axis), found)

    bounds = np.iinfo(keys(ends.low[(slice(0, 1),) * ends.low.ndim], fmt).dtype)
    some = undefined.any(axis=axis, keepdims=True) & ~every
    flags = None if ends.nan is None else np.asarray(ends.nan.any(axis=axis, keepdims=True))
    return Ends(
        low=extreme(ends.low, np.minimum, bounds.max),
        high=extreme(ends.high, np.maximum, bounds.min),
        nan=either(flags, np.asarray(some) if some.any() else None),
    )
