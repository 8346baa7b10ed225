"""Reading and writing along an axis at indices that may be open, and boxes at several places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.indexed.running_sums import RunningSums
from simulator.arithmetic.interval import Bounds, Cells, Enclosure, Interval, either, union
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import Bools, from_keys, is_nan, keys
from simulator.arithmetic.trust import DEFAULT, Trust
from simulator.numbers.formats import Format

_Shape = tuple[int, ...]
Positions = npt.NDArray[np.int64]

_EPSILON: Final = 1e-6
"""upstream pypto, tileop/utils: EPSILON."""
_FEW: Final = 64
"""So many candidates are read one by one."""


def gather(
    source: Enclosure,
    index: Enclosure,
    fmt: Format,
    *,
    axis: int,
    place: Callable[[Positions], Positions] | None = None,
) -> Enclosure:
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
    hull, nowhere = _hull(source.bounds(), where, low, high, fmt, axis, place)
    cells = Cells(taken, fmt)
    cells.put_interval(where, hull.interval(cause))
    if nowhere.any():
        cells.forget(tuple(each[nowhere] for each in where), int(cause[nowhere][0]))
    return cells.enclosure()


def _taken(source: Enclosure, positions: Positions, axis: int) -> Enclosure:
    if positions.size == positions.shape[axis]:
        line = positions.reshape(-1)
        return source.map(lambda array: np.take(array, line, axis))
    return source.map(lambda array: np.take_along_axis(array, positions, axis))


def _hull(
    source: Bounds,
    where: tuple[npt.NDArray[np.intp], ...],
    low: Positions,
    high: Positions,
    fmt: Format,
    axis: int,
    place: Callable[[Positions], Positions] | None,
) -> tuple[Bounds, npt.NDArray[np.bool_]]:
    """The hull of all candidates of some elements, and where one of them leads nowhere."""
    size = source.low.shape[axis]
    wide = high - low >= _FEW
    nowhere = wide & np.array(place is not None) | wide & ((low < 0) | (high >= size))

    def read(positions: Positions) -> Bounds:
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
        hull = hull.patched(wide, whole)
    return hull, nowhere


def along(ends: Bounds, axis: int, fmt: Format) -> Bounds:
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
    return Bounds(
        low=extreme(ends.low, np.minimum, bounds.max),
        high=extreme(ends.high, np.maximum, bounds.min),
        nan=either(flags, np.asarray(some) if some.any() else None),
    )


def read_box(
    source: Enclosure, fmt: Format, *, at: _Shape, extent: _Shape, cause: int
) -> Enclosure:
    """Read a box: the values at its place, and the hull of all boxes of that extent.

    Args:
        source: the elements of all of them.
        fmt: their format.
        at: where the values start in the source.
        extent: of the box.
        cause: the caller's index of what leaves the place open.
    """
    result = source
    for axis, (length, offset) in enumerate(zip(extent, at, strict=True)):
        line = np.arange(length)
        spread = source.shape[axis] - length
        result = _gathered(result, fmt, axis, line + offset, line, line + spread, cause)
    return result


def write_box(
    target: Enclosure, source: Enclosure, fmt: Format, *, at: _Shape, cause: int
) -> Enclosure:
    """Write a box: the values at its place, and the hull over all other places.

    Args:
        target: the elements of all boxes; not modified.
        source: what is written.
        fmt: of both.
        at: where the values go in the target.
        cause: the caller's index of what leaves the place open.
    """
    shape, moved, is_sure = target.shape, source, np.ones((), np.bool_)
    for axis, (length, offset) in enumerate(zip(source.shape, at, strict=True)):
        places = np.arange(shape[axis])
        low = np.maximum(places - (shape[axis] - length), 0)
        high = np.minimum(places, length - 1)
        chosen = np.clip(places - offset, 0, length - 1)
        moved = _gathered(moved, fmt, axis, chosen, low, high, cause)
        covered = (places >= shape[axis] - length) & (places < length)
        is_sure = is_sure & covered.reshape(_along(axis, len(shape)))
    new = moved.bounds(shape)
    hull = union(target.bounds(shape), new, fmt)
    nan = either(
        None if new.nan is None else is_sure & new.nan,
        None if hull.nan is None else ~is_sure & hull.nan,
    )
    low_end, high_end = (
        np.where(is_sure, sure, other)
        for sure, other in ((new.low, hull.low), (new.high, hull.high))
    )
    cells = Cells(target, fmt)
    box = tuple(slice(o, o + n) for o, n in zip(at, source.shape, strict=True))
    cells.values[box] = source.values
    cells.put_interval(..., Bounds(low=low_end, high=high_end, nan=nan).interval(cause))
    return cells.enclosure()


def _gathered(
    source: Enclosure,
    fmt: Format,
    axis: int,
    values: Positions,
    low: Positions,
    high: Positions,
    cause: int,
) -> Enclosure:
    along = _along(axis, len(source.shape))
    values, low, high = (line.reshape(along) for line in (values, low, high))
    causes = np.broadcast_to(np.uint16(cause), values.shape)
    interval = Interval(low=low, high=high, may_be_nan=None, cause=causes)
    return gather(source, Enclosure(values=values, interval=interval), fmt, axis=axis)


def _along(axis: int, count: int) -> _Shape:
    return tuple(-1 if k == axis else 1 for k in range(count))


Join = Callable[[Enclosure, Enclosure], Enclosure]
"""(element, number written to it) -> result."""


def is_factor(number: float) -> bool:
    """True if additions by index multiply their terms by a number: not if it is nearly 1."""
    return abs(number - 1) >= _EPSILON


def scatter(
    target: Enclosure,
    index: Enclosure,
    source: Enclosure,
    fmt: Format,
    *,
    axis: int,
    join: Join | None = None,
    in_order: bool = True,
    skips_negative: bool = False,
    sums: RunningSums | None = None,
    cause: int = 0,
    trust: Trust = DEFAULT,
) -> Enclosure:
    """Write elements along an axis, one position of the index after another.

    An open index may write at any of its candidates: each becomes the hull of itself and of what
    is written. A candidate outside the target makes all of it unknown.

    Args:
        target: what is written to; not modified.
        index: integers, with as many dimensions; along each but `axis` no more than the target.
            Values are positions in the target.
        source: what is written, of a shape that broadcasts to the index's.
        fmt: of target and source.
        axis: from 0.
        join: what an element becomes, where it is not simply overwritten.
        skips_negative: an index below 0 writes nothing; else it lies outside.
        in_order: of several writes to an element the last one holds; else any of them may.
        sums: takes up the terms, where they are added in an order that is open; at first it holds
            the part of the target that the index may reach.
        cause: the caller's index of the operation.
        trust: what is taken for granted of additions.
    """
    region = tuple(
        slice(None) if k == axis else slice(0, length) for k, length in enumerate(index.shape)
    )
    cells = Cells(target[region], fmt)
    shape = cells.values.shape
    size = shape[axis]
    given = source.map(lambda array: np.broadcast_to(array, index.shape))
    grid = list(np.indices(tuple(1 if k == axis else n for k, n in enumerate(shape)), sparse=True))
    written = np.zeros(shape, np.bool_)
    lost = None
    places = np.arange(size).reshape([size if k == axis else 1 for k in range(len(shape))])
    for position in range(index.shape[axis]):
        line = (*(slice(None),) * axis, slice(position, position + 1))
        where, value = index[line], given[line]
        low, high = (end.astype(np.int64) for end in (where.low, where.high))
        is_open = low != high
        grid[axis] = where.values.astype(np.int64)
        closed = _cells(grid, ~is_open & (grid[axis] >= 0))
        chosen = _selected(value, ~is_open & (grid[axis] >= 0))
        _write(cells, closed, chosen, join, None if in_order else written, cause)
        if sums is not None:
            sums.add(closed, chosen)
        written[closed] = True
        if not is_open.any():
            continue
        assert where.interval is not None
        among = is_open & (places >= low) & (places <= high)
        offered = _selected(value.map(lambda array: np.broadcast_to(array, shape)), among)
        held = cells.at(among)
        result = offered if join is None else join(held, offered)
        hull = union(held.bounds(), result.bounds(), fmt)
        own = _cells(grid, is_open & (grid[axis] >= 0))
        new = _selected(value, is_open & (grid[axis] >= 0))
        cells.values[own] = (new if join is None else join(cells.at(own), new)).values
        causes = np.broadcast_to(where.interval.cause, shape)[among]
        cells.put_interval(among, hull.interval(causes))
        if sums is not None:
            sums.add(among, offered, is_sure=False)
        written[among] = True
        outside = is_open & ((high >= size) | ((low < 0) & (not skips_negative)))
        if lost is None and outside.any():
            lost = int(where.interval.cause[outside][0])
    result = cells.enclosure()
    if sums is not None:
        result = sums.widened(result, ..., trust, cause)
    whole = Cells(target, fmt)
    whole.put(region, result)
    if lost is not None:
        whole.forget(..., lost)
    return whole.enclosure()


def _write(
    cells: Cells,
    where: tuple[np.ndarray, ...],
    x: Enclosure,
    join: Join | None,
    before: Bools | None,
    cause: int,
) -> None:
    held = cells.at(where)
    result = x if join is None else join(held, x)
    cells.put(where, result)
    if before is None or join is not None or not (again := before[where]).any():
        return
    twice = tuple(each[again] for each in where)
    ends = union(held.bounds().piece(again), x.bounds().piece(again), cells.fmt)
    cells.put_interval(twice, ends.interval(cause))


def _cells(grid: list[np.ndarray], chosen: Bools) -> tuple[np.ndarray, ...]:
    return tuple(np.broadcast_to(each, chosen.shape)[chosen] for each in grid)


def _selected(x: Enclosure, chosen: Bools) -> Enclosure:
    return x.map(lambda array: np.asarray(np.broadcast_to(array, chosen.shape)[chosen]))
