"""Writing along an axis at indices that may be open."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simulator.arithmetic.cells import Cells
from simulator.arithmetic.indexed.running_sums import RunningSums
from simulator.arithmetic.interval import Enclosure, union
from simulator.arithmetic.total_order import Bools
from simulator.arithmetic.trust import DEFAULT, Trust
from simulator.numbers.formats import Format

Join = Callable[[Enclosure, Enclosure], Enclosure]
"""(element, number written to it) -> result."""


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
