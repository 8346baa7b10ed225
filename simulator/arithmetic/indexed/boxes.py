"""Reading and writing a box of an array that may start at several places, along each axis."""

from __future__ import annotations

import numpy as np

from simulator.arithmetic.ends import Ends, either, union
from simulator.arithmetic.indexed.cells import Cells, as_interval
from simulator.arithmetic.indexed.gather import Positions, gather
from simulator.arithmetic.interval import Interval, Quantity
from simulator.arithmetic.spread import ends_of
from simulator.numbers.formats import Format

_Shape = tuple[int, ...]


def read_box(source: Quantity, fmt: Format, *, at: _Shape, extent: _Shape, cause: int) -> Quantity:
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
    target: Quantity, source: Quantity, fmt: Format, *, at: _Shape, cause: int
) -> Quantity:
    """Write a box: the values at its place, and the hull of what each other place would leave.

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
    new = ends_of(moved, shape)
    hull = union(ends_of(target, shape), new, fmt)
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
    cells.put_interval(..., as_interval(Ends(low=low_end, high=high_end, nan=nan), cause))
    return cells.quantity()


def _gathered(
    source: Quantity,
    fmt: Format,
    axis: int,
    values: Positions,
    low: Positions,
    high: Positions,
    cause: int,
) -> Quantity:
    along = _along(axis, len(source.shape))
    values, low, high = (line.reshape(along) for line in (values, low, high))
    causes = np.broadcast_to(np.uint16(cause), values.shape)
    interval = Interval(low=low, high=high, may_be_nan=None, cause=causes)
    return gather(source, Quantity(values=values, interval=interval), fmt, axis=axis)


def _along(axis: int, count: int) -> _Shape:
    return tuple(-1 if k == axis else 1 for k in range(count))
