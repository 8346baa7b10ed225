"""Reductions of a tile along one axis, in the order of the instructions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from simulator.arithmetic import reduction_order
from simulator.arithmetic.computed import unify_nan
from simulator.arithmetic.evaluation import evaluate, require_default_environment
from simulator.arithmetic.interval import (
    Bounds,
    Enclosure,
    Interval,
    either,
    enclosed,
    exactly,
    join_arrays,
    with_open_nans,
)
from simulator.arithmetic.operation import Array, IntervalRule, Operation
from simulator.arithmetic.reduction_order import (
    ORDERS,
    Order,
    Orders,
    Tiles,
    growth_of,
    is_unrounded,
    last_bit,
    onto_zero,
    order_bound,
    row_pieces,
    slabs,
    underflow_of,
)
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.total_order import (
    Bools,
    from_keys,
    greater,
    is_nan,
    keys,
    lesser,
    nan_value,
    same_code,
    wrap_apart,
)
from simulator.arithmetic.trust import (
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_INF_NAN_MODE,
    ASSUME_NAN_PATTERN,
    ASSUME_SUM_ORDER,
    DEFAULT,
    Assumption,
    Causes,
    Trust,
    cause_along,
    meeting,
    own_cause,
)
from simulator.arithmetic.widen import Widening
from simulator.numbers import float_environment
from simulator.numbers.engines import Engine
from simulator.numbers.formats import FP16, FP32, FloatFormat, Format, IntFormat
from tiling.chips import A2_A3

if TYPE_CHECKING:  # the native executor is loaded when it is first used
    from simulator.arithmetic.native.executor_library import Executor
    from simulator.arithmetic.native.small_programs import Programs

_SAMPLE: Final = 8
_ORDERED: Final = ("sum", "prod")
_STEPS: Final = {"amax": "maximum", "amin": "minimum", "sum": "add", "prod": "mul"}


def reduce(
    operation: Operation,
    operand: Enclosure,
    fmt: Format,
    *,
    axis: int,
    trust: Trust = DEFAULT,
    inf_nan_mode: bool = True,
    cause: int = 0,
    engine: Engine = "auto",
    threads: int = 1,
    family: str = A2_A3,
    is_joined: bool = False,
    programs: Programs | None = None,
) -> Enclosure:
    """Reduce one axis of a tile, or of several tiles that lie side by side on the other axes.

    A sum takes the order of pto-isa's TRowSum along the last axis and of TColSum along others; the
    axis is that of one tile, so its length decides the order. A product takes that of TRowProd and
    of TColProd; the orders of a family are a row of `ORDERS`. Rounding, infinity and NaN are those
    of the operation that joins two elements.
    Inside a repeat the maximum and the minimum are found first and saturated then; a sum saturates
    at every step (tables 35 to 41).

    Args:
        operation: amax, amin, sum or prod.
        operand: values of `fmt`'s dtype, at least one along the axis.
        fmt: the format that the instruction runs in.
        axis: which axis; negative ones count from the last.
        trust: what is taken for granted; without ASSUME_SUM_ORDER a float sum lies in the bound of
            all orders, by its number of terms, a product in that of `any_product`, and an integer
            one that may clamp anywhere.
        inf_nan_mode: the default float mode; else saturation mode.
        cause: the caller's index of this operation.
        engine, threads: as for `evaluate`.
        family: of the chip.
        is_joined: the axis is that of several tiles, whose order no document states.
        programs: takes the program of few exact elements; see `evaluation.RepeatedRows`.

    Returns:
        The reduced array; the axis stays, with one element.

    Raises:
        ValueError: no reduction, a format it does not run in, an axis that is not there or empty.
        RuntimeError: this thread does not round to nearest or flushes subnormal numbers.

    Warns:
        EngineWarning: the native executor cannot run here; see `executor_for`.
    """
    from simulator.arithmetic.native import operation_nodes as native

    require_default_environment()
    axis = _check(operation, operand, fmt, axis)
    executor = native.executor_for(engine)
    if executor is not None and (fmt is not FP32 or axis != len(operand.shape) - 1):
        executor = None
    orders = ORDERS[family]
    if operation.name == "prod" and operand.shape[axis] == 1:  # it keeps the bits of a NaN
        executor = None
    name = orders.native.get(operation.name, operation.name)
    if executor and _is_plain(operation, operand, fmt, trust, inf_nan_mode):
        return native.reduced_rows(executor, operation, name, operand, None, threads, programs)
    row = _Row(
        operation=operation,
        fmt=fmt,
        last=axis == len(operand.shape) - 1,
        trust=trust,
        inf_nan_mode=inf_nan_mode,
        cause=cause,
        executor=executor,
        threads=threads,
        orders=orders,
        is_joined=is_joined,
    )
    by_numpy = partial(_by_numpy, row, axis)
    if operation.name == "prod":  # of intervals by steps: it does not grow with its factors
        return by_numpy(operand)
    found = None
    if executor and _is_ordered(operation, fmt, trust, inf_nan_mode):
        found = native.rows_of_interval(executor, name, operand, None, by_numpy, threads=threads)
    elif executor and inf_nan_mode and trust.names_choices and operand.shape[axis] > 1:
        found = _by_choices(executor, name, operation, operand, None, trust, by_numpy, threads)
    return by_numpy(operand) if found is None else found


def _by_choices(
    executor: Executor,
    name: str,
    operation: Operation,
    operand: Enclosure,
    tiles: Tiles | None,
    trust: Trust,
    by_numpy: Callable[[Enclosure], Enclosure],
    threads: int,
) -> Enclosure | None:
    """A reduction of FP32 rows whose causes name choices, natively; see `_any_order` for a sum."""
    from simulator.arithmetic.native import operation_nodes as native

    rule, own = None, 0
    if operation.name == "sum":
        if name != "sum":  # the ends of sums in any order have that order alone
            return None
        ulps = OPERATIONS["add"].ulps(FP32, trust)
        is_ordered = ASSUME_SUM_ORDER in trust.assumed
        if not ulps or is_ordered or ("add", FP32) in trust.measured:
            return None
        terms = operand.shape[-1]
        growth, underflow = growth_of(terms, FP32, trust), 0.0
        if ASSUME_GRADUAL_UNDERFLOW not in trust.assumed:
            underflow = underflow_of(terms, FP32)
        rule = np.array([ulps, growth, underflow], np.float64)
        own = own_cause(0, trust, *operation.assumes)
    return native.rows_by_choices(
        executor, name, operand, tiles, by_numpy, rule=rule, own=own, threads=threads
    )


def _by_numpy(row: _Row, axis: int, operand: Enclosure) -> Enclosure:
    """Reduce an axis, values and ends one after the other; see `reduce`."""
    shape, count = operand.shape, operand.shape[axis]
    beside = (math.prod(shape[:axis]), count)
    if row.trust.names_choices and operand.interval is not None:
        settled = operand.interval
        settled = replace(settled, cause=settled.cause * ~settled.certain())
        operand = Enclosure(values=operand.values, interval=settled)
    flat = operand.reshape(beside if row.last else (*beside, math.prod(shape[axis + 1 :])))
    with float_environment.quiet():
        reduced = row.reduce(flat)
        if row.starts_at_zero(count):
            reduced = onto_zero(reduced, row.fmt)
    return reduced.reshape((*shape[:axis], 1, *shape[axis + 1 :]))


def reduce_tiles(
    operation: Operation,
    operand: Enclosure,
    tiles: Tiles,
    fmt: Format,
    *,
    by_numpy: Callable[[Enclosure], Enclosure],
    trust: Trust = DEFAULT,
    engine: Engine = "auto",
    threads: int = 1,
    family: str = A2_A3,
    programs: Programs | None = None,
) -> Enclosure | None:
    """Join tiles of the last axis to each other, then reduce the first of them, natively.

    Args:
        operation: sum or prod.
        operand: FP32 values, at least one along the axis.
        tiles: their extent, and the order in which they are joined.
        by_numpy: evaluates each step.
        fmt, trust, engine, threads, family, programs: as for `reduce`.

    Returns:
        As `reduce`; None where each step has to be evaluated: without the native executor, in other
        formats, and where an interval has no native rule, as of any product.
    """
    from simulator.arithmetic.native import operation_nodes as native

    require_default_environment()
    _check(operation, operand, fmt, -1)
    executor = native.executor_for(engine)
    orders = ORDERS[family]
    if executor is None or fmt is not FP32:
        return None
    name = orders.native.get(operation.name, operation.name)
    if not _is_plain(operation, operand, fmt, trust, True):
        if operation.name == "prod":
            return None
        if not _is_ordered(operation, fmt, trust, True):
            if not trust.names_choices or operand.shape[-1] == 1:
                return None
            return _by_choices(executor, name, operation, operand, tiles, trust, by_numpy, threads)
        return native.rows_of_interval(executor, name, operand, tiles, by_numpy, threads=threads)
    return native.reduced_rows(executor, operation, name, operand, tiles, threads, programs)


def _is_plain(
    operation: Operation, operand: Enclosure, fmt: Format, trust: Trust, inf_nan_mode: bool
) -> bool:
    """Values alone are asked for: no result is open."""
    from simulator.arithmetic.native.operation_nodes import may_be_open

    return _is_ordered(operation, fmt, trust, inf_nan_mode) and not may_be_open(operand)


def _is_ordered(operation: Operation, fmt: Format, trust: Trust, inf_nan_mode: bool) -> bool:
    """The reduction of exact operands is exact, and that of ends an end."""
    step = OPERATIONS[_STEPS[operation.name]]
    widening = Widening(step, fmt, trust, inf_nan_mode=inf_nan_mode)
    is_ordered = operation.name not in ("sum", "prod") or ASSUME_SUM_ORDER in trust.assumed
    return widening.is_none and is_ordered and not trust.names_choices


def _check(operation: Operation, operand: Enclosure, fmt: Format, axis: int) -> int:
    if operation.rule is not IntervalRule.FOLD:
        raise ValueError(f"{operation.name} is no reduction; evaluate() evaluates it")
    operation.check(fmt, operand.dtype)
    dimensions = len(operand.shape)
    if not -dimensions <= axis < dimensions:
        raise ValueError(f"axis {axis} of an array of {dimensions} dimensions")
    if operand.shape[axis] == 0:
        raise ValueError(f"{operation.name} of no element: axis {axis} is empty")
    return axis % dimensions


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One reduction: rows [n, lanes] or, along other axes, [n, groups, lanes]."""

    operation: Operation
    fmt: Format
    last: bool
    trust: Trust
    inf_nan_mode: bool
    cause: int
    executor: Executor | None
    threads: int
    orders: Orders
    is_joined: bool

    @property
    def axis(self) -> int:
        return -1 if self.last else -2

    @property
    def _step(self) -> Operation:
        return OPERATIONS[_STEPS[self.operation.name]]

    @property
    def _is_sum(self) -> bool:
        return self.operation.name == "sum"

    @property
    def _is_product(self) -> bool:
        return self.operation.name == "prod"

    @property
    def _repeat(self) -> int:
        return reduction_order.REPEAT_BYTES * 8 // self.fmt.bits

    @property
    def _order(self) -> Order[Any]:
        if self.last and self._is_sum:
            if isinstance(self.fmt, IntFormat):
                return reduction_order.row_sum_of_integers
            return self.orders.row_sum
        if self.last:
            return self.orders.row_product if self._is_product else reduction_order.row_extreme
        if self._is_sum:
            return self.orders.column_sum
        return self.orders.column_product if self._is_product else reduction_order.column_extreme

    def starts_at_zero(self, count: int) -> bool:
        """+0 is among the terms of a sum of so many."""
        is_float = isinstance(self.fmt, FloatFormat)
        return (
            self.orders.starts_at_zero and self._is_sum and is_float and (self.last or count == 1)
        )

    def reduce(self, x: Enclosure) -> Enclosure:
        if self._is_product:
            found = self._by_steps(x)
            if ASSUME_SUM_ORDER in self.trust.assumed or x.shape[self.axis] == 1:
                return found
            from simulator.arithmetic.product_bound import any_product  # loaded when first used

            wraps = self.inf_nan_mode and ASSUME_INF_NAN_MODE in self.trust.assumed
            return any_product(
                x, found, self.fmt, self.axis, self.trust, self.cause, integers_wrap=wraps
            )
        widening = Widening(self._step, self.fmt, self.trust, inf_nan_mode=self.inf_nan_mode)
        steps_matter = self.fmt is not FP32 and not self.inf_nan_mode
        if steps_matter or (self.fmt is FP16 and (self._is_sum or widening.may_saturate)):
            return self._any_order(x, self._by_steps(x))
        values = self._values(x.values)
        if not self._is_sum or isinstance(self.fmt, IntFormat):
            found = self._ends_of_any_order(x, values)
            if self._is_sum and isinstance(self.fmt, IntFormat) and widening.may_saturate:
                return self._clamped_in_any_order(x, found, self.fmt, ASSUME_INF_NAN_MODE)
            if widening.nan_is_open:
                return with_open_nans(found, self.fmt, self.trust, self.cause)
            return found
        if not widening.is_none:
            return self._any_order(x, self._by_steps(x))
        return self._any_order(x, self._sums_of_ends(x, values))

    def _values(self, x: Array) -> Array:
        """Reduce exact arrays; the order matters to float sums alone."""
        if self.executor is not None:
            from simulator.arithmetic.native import operation_nodes as native

            name = self.orders.native.get(self.operation.name, self.operation.name)
            return native.row_node(self.executor, name, x, None, self.threads).computed()
        if not self._is_sum:
            return _extreme(self._step, x, self.axis, self.fmt)
        if isinstance(self.fmt, IntFormat):
            return np.add.reduce(x, axis=self.axis, dtype=x.dtype, keepdims=True)
        shape = list(x.shape)
        shape[self.axis] = 1
        out = np.empty(shape, x.dtype)
        for index in slabs(x.shape, self.last):
            out[index] = self._order(x[index], self._repeat, np.add, np.concatenate)
        unify_nan(out, self.fmt)
        return out

    def _by_steps(self, x: Enclosure) -> Enclosure:
        """Evaluate each step as the operation that it is."""

        def join(a: Enclosure, b: Enclosure, inf_nan_mode: bool = self.inf_nan_mode) -> Enclosure:
            return evaluate(
                self._step,
                (a, b),
                self.fmt,
                trust=self.trust,
                inf_nan_mode=inf_nan_mode,
                cause=self.cause,
            )

        lanes: Enclosure = self._order(x, self._repeat, join, _glue)
        if not self.last or lanes.shape[-1] == 1:
            return lanes
        # Inside a repeat nothing is saturated; the scalar unit wraps.
        held = reduction_order.tree(lanes, partial(join, inf_nan_mode=True), _glue)
        if self._is_sum:
            return held
        return evaluate(self._step, (held, held), self.fmt, inf_nan_mode=self.inf_nan_mode)

    def _sums_of_ends(self, x: Enclosure, values: Array) -> Enclosure:
        """Sum lower and upper ends; rows that are not finite take every step by its rule."""
        if x.interval is None:
            return Enclosure(values=values)
        low, high = self._values(x.interval.low), self._values(x.interval.high)
        flags = self._flags(x.interval)
        cause = self._widest(x.interval)
        outliers = ~(np.isfinite(low) & np.isfinite(high))
        if outliers.any():
            rows = np.asarray(outliers.reshape(outliers.shape[0], -1).any(axis=1))
            ends = Bounds(low=low, high=high, nan=flags)
            ends = ends.patched(rows, self._by_steps(x[rows]).bounds())
            low, high, flags = ends.low, ends.high, ends.nan
        return enclosed(values, low, high, flags, cause)

    def _ends_of_any_order(self, x: Enclosure, values: Array) -> Enclosure:
        """Reduce lower and upper ends, where the order does not matter."""
        if x.interval is None:
            return Enclosure(values=values)
        flags = self._flags(x.interval)
        ends = [x.interval.low, x.interval.high]
        if self._is_sum:
            assert isinstance(self.fmt, IntFormat)
            sums = [np.sum(end, axis=self.axis, dtype=np.int64, keepdims=True) for end in ends]
            crosses = wrap_apart(np.asarray(sums[0]), np.asarray(sums[1]), self.fmt)
            low, high = (
                np.where(crosses, limit, end).astype(self.fmt.dtype)
                for limit, end in zip((self.fmt.min, self.fmt.max), sums, strict=True)
            )
        else:
            low, high = (_extreme(self._step, end, self.axis, self.fmt) for end in ends)
        cause = self._of_open(low, high, flags, self._widest(x.interval))
        return enclosed(values, low, high, flags, cause)

    def _flags(self, interval: Interval) -> Bools | None:
        nan = interval.may_be_nan
        return None if nan is None else np.asarray(nan.any(axis=self.axis, keepdims=True))

    def _any_order(self, x: Enclosure, ordered: Enclosure) -> Enclosure:
        """Widen a sum to the bound of every order, where the order matters and is not assumed."""
        if ASSUME_SUM_ORDER in self.trust.assumed or not self._is_sum or x.shape[self.axis] == 1:
            return ordered
        if isinstance(self.fmt, IntFormat):
            return self._clamped_in_any_order(x, ordered, self.fmt, ASSUME_SUM_ORDER)
        assert isinstance(self.fmt, FloatFormat)
        reach = order_bound(x.low, x.high, self.axis, self.fmt, self.trust)
        ends = ordered.interval or exactly(ordered.values)
        undefined = is_nan(ends.low, self.fmt)
        # A NaN of this order may come from an overflow that another order does not meet.
        terms = is_nan(x.low, self.fmt).any(axis=self.axis, keepdims=True)
        rises, falls = (
            (end == limit).any(axis=self.axis, keepdims=True)
            for end, limit in ((x.low, np.inf), (x.high, -np.inf))
        )
        sure = undefined & (terms | rises & falls) | self._unrounded(x)
        if self.orders.is_stated and self.last and x.shape[-1] <= self._repeat:
            # Of terms that are all -0 no document says whether +0 is added.
            sure = sure | (not self.is_joined) & (ends.low != 0) & (ends.high != 0)
        low, high = (
            np.where(sure, end, np.where(undefined, limit, extreme(end, limit, self.fmt)))
            for end, limit, extreme in (
                (ends.low, reach.low, lesser),
                (ends.high, reach.high, greater),
            )
        )
        flags = either(either(ends.may_be_nan, reach.nan), undefined)
        flags = None if flags is None else flags & ~sure
        if ASSUME_NAN_PATTERN not in self.trust.assumed:
            flags = either(flags, undefined)
        causes = own_cause(self.cause, self.trust, *self.operation.assumes)
        own = np.full(low.shape, causes, np.uint16)
        cause = (
            own
            if x.interval is None
            else np.where(
                ends.widths(self.fmt) * 2
                > Interval(low=low, high=high, may_be_nan=flags, cause=own).widths(self.fmt),
                meeting(self.trust, ends.cause, own),
                meeting(self.trust, own, ends.cause),
            )
        )
        return enclosed(ordered.values, low, high, flags, self._of_open(low, high, flags, cause))

    def _of_open(self, low: Array, high: Array, flags: Bools | None, cause: Causes) -> Causes:
        """The causes, without choices of elements that are certain."""
        if not self.trust.names_choices:
            return cause
        is_open = ~same_code(low, high)
        return cause * (is_open if flags is None else is_open | flags)

    def _unrounded(self, x: Enclosure) -> Bools:
        """Finds sums of exact terms that no order rounds; of -0 alone a sum may start at +0."""
        fmt = self.fmt
        assert isinstance(fmt, FloatFormat)
        shape = list(x.shape)
        shape[self.axis] = 1
        magnitude = np.empty(shape, np.float64)
        for index in row_pieces(x.shape, self.axis):
            part = x.values[index].astype(np.float64)
            np.abs(part, out=part)
            np.add.reduce(part, axis=self.axis, keepdims=True, out=magnitude[index])

        def fits(part: Array) -> Bools:
            last = last_bit(part).min(axis=self.axis, keepdims=True)
            return is_unrounded(magnitude, last, fmt)

        few = slice(0, _SAMPLE)  # the least bit of all terms is not above that of a few
        some = x.values[..., few] if self.last else x.values[..., few, :]
        if not fits(some.astype(np.float64)).any():
            return np.zeros(magnitude.shape, np.bool_)
        terms = x.values.astype(np.float64)
        exact = x.certain().all(axis=self.axis, keepdims=True)
        zeros = ((terms == 0) & np.signbit(terms)).all(axis=self.axis, keepdims=True)
        unrounded: Bools = exact & fits(terms) & ~zeros
        return unrounded

    def _clamped_in_any_order(
        self, x: Enclosure, ordered: Enclosure, fmt: IntFormat, unless: Assumption
    ) -> Enclosure:
        """Integers that clamp have one sum as long as no partial sum can leave the format."""
        least, most = (
            np.sum(part, axis=self.axis, dtype=np.int64, keepdims=True)
            for part in (np.minimum(x.low, 0), np.maximum(x.high, 0))
        )
        clamps = (least < fmt.min) | (most > fmt.max)
        ends = ordered.interval or exactly(ordered.values)
        low, high = (
            np.where(clamps, limit, end).astype(fmt.dtype)
            for limit, end in ((fmt.min, ends.low), (fmt.max, ends.high))
        )
        own = np.uint16(own_cause(self.cause, self.trust, unless))
        cause = np.where(clamps, meeting(self.trust, own, ends.cause), ends.cause)
        return enclosed(ordered.values, low, high, None, cause)

    def _widest(self, interval: Interval) -> Causes:
        """The cause of the widest element of each row; at a tie the first's."""
        shape = list(interval.low.shape)
        shape[self.axis] = 1
        if not any(interval.cause.strides):
            return np.broadcast_to(interval.cause.flat[0], shape)
        cause = np.empty(shape, np.uint16)
        for index in slabs(interval.low.shape, self.last):
            part = interval.piece(interval.low.shape, index)
            widest = part.widths(self.fmt).argmax(axis=self.axis, keepdims=True)
            is_open = ~part.certain() if self.trust.names_choices else True
            cause[index] = cause_along(self.trust, part.cause, widest, is_open, self.axis)
        return cause


def _extreme(step: Operation, x: Array, axis: int, fmt: Format) -> Array:
    """The greatest or least in the total order; NaN where there is any."""
    ufunc = np.maximum if step.name == "maximum" else np.minimum
    if x.dtype.kind != "f" or x.itemsize > 2:
        found: Array = ufunc.reduce(x, axis=axis, keepdims=True)
        if x.dtype.kind != "f" or bool((found != 0).all()):
            return _one_nan(found, np.isnan(found), fmt)
    shape = list(x.shape)
    shape[axis] = 1
    found = np.empty(shape, x.dtype)
    nan = np.empty(shape, np.bool_)
    for index in slabs(x.shape, axis == -1):
        part = x[index]
        found[index] = from_keys(ufunc.reduce(keys(part, fmt), axis=axis, keepdims=True), fmt)
        nan[index] = is_nan(part, fmt).any(axis=axis, keepdims=True)
    return _one_nan(found, nan, fmt)


def _one_nan(values: Array, nan: Any, fmt: Format) -> Array:
    if not isinstance(fmt, FloatFormat) or not nan.any():
        return values
    return np.where(nan, nan_value(fmt), values)


def _glue(parts: Sequence[Enclosure], axis: int) -> Enclosure:
    return join_arrays(lambda arrays: np.concatenate(arrays, axis=axis), parts)
