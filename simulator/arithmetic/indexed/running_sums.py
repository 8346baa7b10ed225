"""Sums of terms that come in an order that nobody knows, and sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from simulator.arithmetic.evaluation import evaluate
from simulator.arithmetic.interval import Bounds, Cells, Enclosure, join_arrays, union
from simulator.arithmetic.operation import Array
from simulator.arithmetic.reduction_order import is_unrounded, last_bit, reach
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.total_order import is_nan
from simulator.arithmetic.trust import ASSUME_SUM_ORDER, Trust, meeting, own_cause
from simulator.arithmetic.widen import Widening
from simulator.numbers import float_environment
from simulator.numbers.engines import Engine
from simulator.numbers.formats import FP32, FloatFormat, Format

_COMMUTES: Final = 2
"""So many terms have one sum in either order; terms that are 0 do not count."""


class RunningSums:
    """The ends, magnitudes and number of the terms that each element of an array has taken up.

    Args:
        start: the elements before the first addition.
        fmt: the format in which the device adds.
    """

    def __init__(self, start: Enclosure, fmt: FloatFormat) -> None:
        self.fmt = fmt
        self.low, self.high, self.magnitude = (np.zeros(start.shape) for _ in range(3))
        self.terms = np.zeros(start.shape, np.int64)
        self.add(..., start)

    @float_environment.quiet()
    def add(self, where: Any, term: Enclosure, *, is_sure: bool = True) -> None:
        """Take up terms at an index of numpy's that names no element twice.

        Args:
            where: the index.
            term: one for each of the elements.
            is_sure: they are added; else they may be.
        """
        low, high, magnitude = _terms(term, self.fmt)
        self.terms[where] += (low != 0) | (high != 0)
        self.magnitude[where] += magnitude
        self.low[where] += low if is_sure else np.minimum(low, 0)
        self.high[where] += high if is_sure else np.maximum(high, 0)

    def start_again(self, where: Any, x: Enclosure) -> None:
        """Start the sums of elements again, as they are overwritten."""
        for array in (self.low, self.high, self.magnitude, self.terms):
            array[where] = 0
        self.add(where, x)

    @float_environment.quiet()
    def widened(self, x: Enclosure, where: Any, trust: Trust, cause: int) -> Enclosure:
        """Let sums that were added in some order have the bits of any order.

        Args:
            x: the sums of the elements at an index of numpy's.
            where: the index.
            trust: what is taken for granted.
            cause: the caller's index of the operation.
        """
        many = self.terms[where] > _COMMUTES
        if not many.any():
            return x
        bound = reach(
            self.low[where][many],
            self.high[where][many],
            self.magnitude[where][many],
            self.terms[where][many],
            self.fmt,
            trust,
        )
        hull: Bounds = union(x.bounds().piece(many), bound, self.fmt)
        cells = Cells(x, self.fmt)
        held = 0 if x.interval is None else np.broadcast_to(x.interval.cause, x.shape)[many]
        cells.put_interval(many, hull.interval(meeting(trust, cause, held)))
        return cells.enclosure()

    def copy(self) -> RunningSums:
        """The same, to go back to."""
        return self._moved(np.copy)

    def reshape(self, shape: tuple[int, ...]) -> RunningSums:
        """The same memory under another shape: terms added to either are in both."""
        return self._moved(lambda array: array.reshape(shape))

    def _moved(self, move: Callable[[Array], Array]) -> RunningSums:
        other = RunningSums.__new__(RunningSums)
        other.fmt = self.fmt
        other.low, other.high = move(self.low), move(self.high)
        other.magnitude, other.terms = move(self.magnitude), move(self.terms)
        return other


def prefix_scan(
    x: Enclosure,
    fmt: Format,
    *,
    step: Literal["add", "mul"] = "add",
    axis: int,
    extent: int,
    trust: Trust,
    cause: int,
    by_scalars: bool = False,
    in_turn: bool = False,
    engine: Engine = "auto",
    threads: int = 1,
) -> Enclosure:
    """Sum or multiply all elements up to each along an axis that is cut into tiles.

    Inside a tile the element 1 before is joined to each, then the one 2 before, 4, 8 and so on; in
    release 0.2.0 each element to the sum of all before. The last element of a tile is joined to all
    of the next. Sources: upstream pypto, framework/src/interface/tileop/vector/cum_operation.h,
    in r0.2.0 cumsum.h, and operation/vector/math.cpp.

    Args:
        x: what is joined, of FP32 or INT32, which wraps.
        fmt: that format.
        step: the row that joins two elements.
        axis: from 0.
        extent: elements of a tile along the axis.
        trust: without ASSUME_SUM_ORDER each float result lies in the bound of all orders.
        cause: the caller's index of the operation.
        by_scalars: the scalar unit works, so that partial results of -0 keep their sign.
        in_turn: as release 0.2.0 adds.
        engine, threads: as for `evaluate`.

    Warns:
        EngineWarning: the native executor cannot run here; see `executor_for`.
    """
    is_known = not in_turn and axis == len(x.shape) - 1 and _is_plain(x, fmt, step, trust)
    from simulator.arithmetic.native.executor_library import executor_for  # loaded when first used
    from simulator.arithmetic.native.row_scans import scan_rows

    if is_known and (executor := executor_for(engine)) is not None:
        values = scan_rows(
            executor, x.values, extent, step=step, keeps_signs=by_scalars, threads=threads
        )
        return Enclosure(values=values)
    join, add = (
        partial(evaluate, OPERATIONS[name], fmt=fmt, trust=trust, cause=cause, engine=engine)
        for name in (step, "add")
    )
    zero = Enclosure(values=np.zeros((), fmt.dtype))

    def part(of: Enclosure, start: int | None, stop: int | None) -> Enclosure:
        return of[(*(slice(None),) * axis, slice(start, stop))]

    def glued(*parts: Enclosure) -> Enclosure:
        return join_arrays(lambda arrays: np.concatenate(arrays, axis), parts)

    def joined_in_turn(terms: Enclosure) -> Enclosure:
        lines = [part(terms, 0, 1)]
        for place in range(1, terms.shape[axis]):
            lines.append(join((lines[-1], part(terms, place, place + 1))))
        return glued(*lines)

    def joined_in_steps(terms: Enclosure) -> Enclosure:
        held = result = terms
        distance = 1
        while distance < held.shape[axis]:
            total = join((part(held, None, -distance), part(held, distance, None)))
            result = glued(part(result, None, distance), total)
            kept = total if by_scalars else add((total, zero))
            held = glued(part(held, None, distance), kept)
            distance *= 2
        return result

    tiles: list[Enclosure] = []
    for start in range(0, x.shape[axis], extent):
        terms = part(x, start, start + extent)
        result = joined_in_turn(terms) if in_turn else joined_in_steps(terms)
        tiles.append(join((result, part(tiles[-1], -1, None))) if tiles else result)
    ordered = glued(*tiles)
    if step == "mul" and ASSUME_SUM_ORDER not in trust.assumed:
        keeps_signs = by_scalars or in_turn
        from simulator.arithmetic.product_bound import any_product  # loaded when first used

        return any_product(
            x, ordered, fmt, axis, trust, cause, is_running=True, keeps_signs=keeps_signs
        )
    if ASSUME_SUM_ORDER in trust.assumed or not isinstance(fmt, FloatFormat):
        return ordered
    return _in_any_order(x, ordered, fmt, axis, trust, cause)


def _is_plain(x: Enclosure, fmt: Format, step: str, trust: Trust) -> bool:
    """Values alone are asked for: no result of FP32 is open."""
    if fmt is not FP32 or x.interval is not None or ASSUME_SUM_ORDER not in trust.assumed:
        return False
    rows = (OPERATIONS[name] for name in {step, "add"})
    return all(Widening(row, fmt, trust, inf_nan_mode=True).is_none for row in rows)


@float_environment.quiet()
def _in_any_order(
    x: Enclosure, ordered: Enclosure, fmt: FloatFormat, axis: int, trust: Trust, cause: int
) -> Enclosure:
    terms = np.arange(1, x.shape[axis] + 1)
    terms = terms.reshape([-1 if k == axis else 1 for k in range(len(x.shape))])
    low, high, magnitude = _terms(x, fmt)
    sums = [np.cumsum(each, axis) for each in (low, high, magnitude)]
    bound = reach(sums[0], sums[1], sums[2], terms, fmt, trust)
    last = np.minimum.accumulate(last_bit(low), axis)
    exact = np.logical_and.accumulate(x.certain(), axis) & is_unrounded(sums[2], last, fmt)
    cells = Cells(ordered, fmt)
    zeros = np.logical_and.accumulate((low == 0) & np.signbit(low), axis)
    several = (terms > 1) & ~(exact & ~zeros)
    hull = union(ordered.bounds(x.shape), bound, fmt).piece(several)
    own, held = own_cause(cause, trust, ASSUME_SUM_ORDER), ordered.interval
    inner = 0 if held is None else np.broadcast_to(held.cause, x.shape)[several]
    cells.put_interval(several, hull.interval(meeting(trust, own, inner)))
    return cells.enclosure()


def _terms(x: Enclosure, fmt: FloatFormat) -> tuple[Array, Array, Array]:
    """Lower ends, upper ends and magnitudes in float64; infinite where an element may be NaN."""
    ends = x.bounds()
    undefined = is_nan(ends.low, fmt) | (False if ends.nan is None else ends.nan)
    low, high = (
        np.where(undefined, np.inf, end.astype(np.float64)) for end in (ends.low, ends.high)
    )
    return low, high, np.maximum(np.abs(low), np.abs(high))
