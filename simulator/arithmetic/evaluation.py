"""Evaluating an operation of the table on whole arrays: values, intervals, causes.

Arrays are worked through in pieces that stay in the cache, for an operation is a dozen passes once
intervals take part in it. The bounds of a result are collected piece by piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from simulator.arithmetic.computed import compute, native_node
from simulator.arithmetic.interval import (
    Bounds,
    Choices,
    Enclosure,
    Index,
    Interval,
    Operands,
    all_same_code,
    pieces,
    union,
)
from simulator.arithmetic.operation import Array, IntervalRule, Operation
from simulator.arithmetic.propagation import propagate
from simulator.arithmetic.total_order import Bools, same_code
from simulator.arithmetic.trust import ASSUME_INF_NAN_MODE, DEFAULT, Causes, Trust, choice_bits
from simulator.arithmetic.widen import Widening, saturated
from simulator.numbers import float_environment, result_memory
from simulator.numbers.engines import Engine
from simulator.numbers.formats import BOOL, FP16, FP32, Format, IntFormat

if TYPE_CHECKING:  # the native executor is loaded when it is first used
    from simulator.arithmetic.native.executor_library import Executor
    from simulator.arithmetic.native.small_programs import Programs

_FEW: Final = 8
"""Causes are found for the open elements alone where at most one of so many is open."""


class BoundsCollector:
    """The interval of a result under construction.

    What is alike everywhere takes no memory: a cause that is the only one, and NaN where there is
    none.

    Args:
        shape: of the result.
        dtype: of its values.
        operands: the operands, for the causes they hand on.
        fmt: their format.
        own_width: how many codes the operation itself adds, 0 if it adds nothing.
        cause: the caller's index of the operation.
        names_choices: causes hold choices, those of all operands.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        operands: Sequence[Enclosure],
        fmt: Format,
        *,
        own_width: int,
        cause: int,
        names_choices: bool = False,
    ) -> None:
        self.shape = shape
        self.low: Array = new_array(shape, dtype)
        self.high: Array = new_array(shape, dtype)
        self.may_be_nan: Bools | None = None
        self.any_open = False
        self._fmt = fmt
        self._own_width = own_width
        self._names_choices = names_choices
        self._own_cause = np.uint16(cause)
        self._sources = [x.interval for x in operands if x.interval is not None]
        self._is_condition = [
            x.values.dtype == BOOL.dtype for x in operands if x.interval is not None
        ]
        self._cause: Causes | None = None
        if self._only_cause() is None:
            self._cause = new_array(shape, np.dtype(np.uint16))

    def _only_cause(self) -> Causes | None:
        """The causes, where they can be taken as they are."""
        if self._names_choices:
            return None
        if len(self._sources) == 1 and not self._own_width:
            return np.broadcast_to(self._sources[0].cause, self.shape)
        if not self._sources:
            return np.broadcast_to(self._own_cause, self.shape)
        firsts = {int(x.cause.flat[0]) for x in self._sources if x.cause.size}
        if (
            not self._own_width
            and len(firsts) == 1
            and all(not any(x.cause.strides) or x.cause.size <= 1 for x in self._sources)
        ):
            return np.broadcast_to(self._sources[0].cause, self.shape)
        return None

    def put(self, index: Index, ends: Bounds, choices: Any = 0) -> None:
        """Take in the ends of one piece.

        Args:
            index: of the piece.
            ends: of its elements.
            choices: that the operation itself adds, as bits.
        """
        low, high = self.low[index], self.high[index]
        np.copyto(low, ends.low)
        np.copyto(high, ends.high)
        nan = ends.nan if ends.nan is not None and ends.nan.any() else None
        if nan is not None:
            if self.may_be_nan is None:
                self.may_be_nan = np.zeros(self.shape, np.bool_)
            np.copyto(self.may_be_nan[index], nan)
        if self._cause is None:
            self.any_open = self.any_open or nan is not None or not all_same_code(low, high)
            return
        is_open = ~same_code(low, high)
        if nan is not None:
            is_open |= nan
        count = int(np.count_nonzero(is_open))
        self.any_open = self.any_open or count > 0
        cause = self._cause[index]
        if self._names_choices:
            np.copyto(cause, choices)
            for source in self._sources:
                cause |= np.broadcast_to(source.cause, self.shape)[index]
            cause *= is_open
            return
        if count * _FEW > cause.size:
            np.copyto(cause, self._widest(index))
        else:
            cause.fill(0)
            if count:
                cause[is_open] = self._widest(index, is_open)

    def _widest(self, index: Index, among: Bools | None = None) -> Causes:
        """Of several causes the wider interval's; at a tie the earlier, which is the lower index.

        The operation's own cause is the last one.
        """
        found = [
            (piece.widths(BOOL if is_condition else self._fmt), piece.cause)
            for source, is_condition in zip(self._sources, self._is_condition, strict=True)
            for piece in (source.piece(self.shape, index, among),)
        ]
        widths, causes = found[0]
        for width, cause in found[1:]:
            if any(causes.strides) or any(cause.strides):
                wins = (width > widths) | (width == widths) & (cause < causes)
                causes = np.where(wins, cause, causes)
            else:
                one, other = (int(each.flat[0]) for each in (causes, cause))
                causes = _chosen(width >= widths if other < one else width > widths, other, one)
            np.maximum(width, widths, out=widths)
        if self._own_width:
            own, narrow = int(self._own_cause), widths < self._own_width
            if any(causes.strides):
                causes = np.where(narrow, self._own_cause, causes)
            else:
                causes = _chosen(narrow, own, int(causes.flat[0]))
        return causes

    def interval(self) -> Interval | None:
        """The interval, or None where every element turned out certain."""
        if not self.any_open:
            return None
        cause = self._only_cause() if self._cause is None else self._cause
        assert cause is not None
        return Interval(low=self.low, high=self.high, may_be_nan=self.may_be_nan, cause=cause)


def _chosen(where: Bools, cause: int, other: int) -> Causes:
    """One of two causes for each element."""
    chosen: Causes = where.astype(np.uint16)
    chosen *= np.uint16(cause ^ other)
    chosen ^= np.uint16(other)
    return chosen


def new_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A C-contiguous array of any content; a large one may have the memory of one that is gone."""
    return result_memory.empty(math.prod(shape), dtype).reshape(shape)


def evaluate(
    operation: Operation,
    operands: Sequence[Enclosure],
    fmt: Format,
    *,
    trust: Trust = DEFAULT,
    inf_nan_mode: bool = True,
    cause: int = 0,
    engine: Engine = "auto",
    threads: int = 1,
) -> Enclosure:
    """Evaluate an elementwise operation.

    The same `Enclosure` twice as operand counts as one unknown: x * x is never negative.

    Args:
        operation: a row that is no reduction.
        operands: as many as the row says, of shapes that broadcast; values of `fmt`'s dtype, the
            condition of `where` of BOOL's. Not modified.
        fmt: the format that the instruction runs in, one of the row's.
        trust: what is taken for granted of the device.
        inf_nan_mode: the default float mode; else saturation mode, in which FP16 results that are
            infinite become the largest number and NaN becomes +0, and integer sums clamp.
        cause: the caller's index of this operation, for elements that it leaves open.
        engine: "auto" takes the native executor where it has the operation; "numpy" never. The
            bits are the same.
        threads: that share native work, at most.

    Returns:
        Values of `fmt`'s dtype (BOOL's for a truth) and of the broadcast shape, C-contiguous, with
        an interval where some element is open.

    Raises:
        ValueError: operands that the row or the format does not have.
        RuntimeError: this thread does not round to nearest or flushes subnormal numbers.

    Warns:
        EngineWarning: the native executor cannot run here; see `executor_for`.
    """
    executor_for, result_at = _native_executor()
    require_default_environment()
    executor = executor_for(engine)
    dtypes = tuple([x.dtype for x in operands])
    widening, is_native, programs = _widening(operation, fmt, dtypes, trust, inf_nan_mode, executor)
    if not is_native:
        executor = None
    elif programs:
        known = result_at(operands, 0 if widening.is_none else cause, programs)
        if known is not None:
            return known
    from simulator.arithmetic.native import operation_nodes as native
    from simulator.arithmetic.native import small_programs

    shapes = {x.shape for x in operands}
    wanted = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
    shape = wanted or (1,)  # numpy makes numbers of arrays without dimensions
    is_exact = widening.is_none and not any(map(native.may_be_open, operands))
    most = small_programs.most_elems() if is_exact else None
    is_small = bool(executor and wanted) and small_programs.are_few(shape, operands, most)
    if executor and is_exact:
        make = partial(native_node, executor, operation, fmt=fmt, shape=shape, threads=threads)
        if is_small:
            values = small_programs.values_of(
                *(executor, operation, operands, fmt, shape, make), programs=programs
            )
            if values is not None:
                return Enclosure(values=values)
        node = make(list(map(native.operand_of, operands)))
        return (
            native.enclosure_of(node) if wanted else Enclosure(values=node.computed().reshape(()))
        )
    by_numpy = partial(_by_pieces, operation, fmt, wanted, widening, inf_nan_mode, cause, executor)
    names_choices = trust.names_choices and (operation.name, fmt) not in trust.measured
    if executor and wanted and fmt in (FP32, BOOL) and (widening.rounds_alone or names_choices):
        choices = widening.rounding_bits if names_choices else None
        found = native.interval_of(
            executor,
            operation,
            operands,
            wanted,
            by_numpy,
            added=native.Added(
                ulps=widening.ulps, width=widening.width, cause=cause, choices=choices
            ),
            threads=threads,
            programs=programs if is_small else None,
        )
        if found is not None:
            return found
    return by_numpy(operands)


class Repeated:
    """An operation that is evaluated again and again with all but operands and cause the same.

    Args:
        operation, fmt, trust, inf_nan_mode, engine: as for `evaluate`.
        dtypes: of its operands.
    """

    __slots__ = ("_is_none", "_programs")

    def __init__(
        self,
        operation: Operation,
        dtypes: tuple[np.dtype[Any], ...],
        fmt: Format,
        *,
        trust: Trust,
        inf_nan_mode: bool,
        engine: Engine,
    ) -> None:
        executor = _native_executor()[0](engine)
        widening, is_native, programs = _widening(
            operation, fmt, dtypes, trust, inf_nan_mode, executor
        )
        self._is_none = widening.is_none
        self._programs = programs if is_native else {}

    def result(self, operands: Sequence[Enclosure], cause: int) -> Enclosure | None:
        """As `evaluate` gives it, of few exact elements; None where that itself is needed.

        Raises:
            RuntimeError: as `evaluate` does.
        """
        if not self._programs:
            return None
        if not float_environment.is_default():
            require_default_environment()
        return _native_executor()[1](operands, 0 if self._is_none else cause, self._programs)


class RepeatedRows:
    """A reduction of rows that is evaluated again and again with all but the operand the same.

    Attributes:
        programs: what `reduce` and `reduce_tiles` are to be given, which keep theirs in it.
    """

    __slots__ = ("programs",)

    def __init__(self) -> None:
        self.programs: Programs = {}

    def result(self, operand: Enclosure) -> Enclosure | None:
        """As those give it, of few exact elements; None where they are needed.

        Raises:
            RuntimeError: as they do.
        """
        if not self.programs:
            return None
        if not float_environment.is_default():
            require_default_environment()
        return _native_executor()[1]([operand], 0, self.programs)


@lru_cache(maxsize=1 << 12)
def _widening(
    operation: Operation,
    fmt: Format,
    dtypes: tuple[np.dtype[Any], ...],
    trust: Trust,
    inf_nan_mode: bool,
    executor: Executor | None,
) -> tuple[Widening, bool, Programs]:
    """The widening of an operation that takes such operands, and whether the executor has it.

    The last are its programs on few exact operands, where its results are exact, too.
    """
    from simulator.arithmetic.native import operation_nodes as native

    _check(operation, dtypes, fmt)
    is_native = executor is not None and native.has_function(executor, operation, fmt, inf_nan_mode)
    return Widening(operation, fmt, trust, inf_nan_mode=inf_nan_mode), is_native, {}


@lru_cache(maxsize=1)
def _native_executor() -> tuple[
    Callable[[Engine], Executor | None],
    Callable[[Sequence[Enclosure], int, Programs], Enclosure | None],
]:
    """Functions of the native executor, which is loaded when it is first used."""
    from simulator.arithmetic.native import executor_library, small_programs

    return executor_library.executor_for, small_programs.result_at


def _by_pieces(
    operation: Operation,
    fmt: Format,
    wanted: tuple[int, ...],
    widening: Widening,
    inf_nan_mode: bool,
    cause: int,
    executor: Executor | None,
    operands: Sequence[Enclosure],
) -> Enclosure:
    """Evaluate piece by piece; see `evaluate`."""
    trust, shape = widening.trust, wanted or (1,)
    result = BOOL if operation.gives_truth else fmt
    values = new_array(shape, result.dtype)
    arrays = [np.broadcast_to(x.values, shape) for x in operands]
    whole = [x.bounds(shape) for x in operands]
    collector = None
    if not widening.is_none or any(x.interval is not None for x in operands):
        collector = BoundsCollector(
            shape,
            result.dtype,
            operands,
            fmt,
            own_width=widening.width,
            cause=cause,
            names_choices=trust.names_choices,
        )
    square = (
        len(operands) == 2 and operands[0] is operands[1] and operation.rule is IntervalRule.CORNERS
    )

    # Saturation hides which members are infinite or NaN: the ends are saturated last.
    saturates_last = fmt is FP16 and not (inf_nan_mode or operation.gives_truth or operation.copies)

    def run(piece: Sequence[Array], *, wraps: bool = inf_nan_mode) -> Array:
        out = np.empty(np.broadcast_shapes(*(x.shape for x in piece)), result.dtype)
        mode = wraps or saturates_last
        compute(operation, piece, fmt, out, inf_nan_mode=mode, any_nan=True, executor=executor)
        return out

    def ends_of_results(operands: Operands, values: Array, *, wraps: bool) -> Bounds:
        mode = partial(run, wraps=wraps)
        if not all(x.exact for x in operands):
            return propagate(operation, mode, operands, fmt, wraps=wraps, square=square)
        exact = mode([x.low for x in operands]) if saturates_last else values
        return Bounds(low=exact, high=exact)

    with float_environment.quiet():
        for index in pieces(shape):
            piece = [array[index] for array in arrays]
            compute(
                operation, piece, fmt, values[index], inf_nan_mode=inf_nan_mode, executor=executor
            )
            if collector is None:
                continue
            given = [x.piece(index) for x in whole]
            taken = [widening.operand(x) for x in given]
            choices = Choices(trust.names_choices)
            for before, after in zip(given, taken, strict=True):
                choices.record(widening.flush_bits, before, after)
            ends = ends_of_results(taken, values[index], wraps=inf_nan_mode)
            for bits, step in widening.steps():
                moved = step(ends, taken)
                choices.record(bits, ends, moved)
                ends = moved
            if widening.may_saturate and isinstance(fmt, IntFormat):
                clamped = run(piece, wraps=False)
                other = union(ends, ends_of_results(taken, clamped, wraps=False), fmt)
                choices.record(choice_bits(ASSUME_INF_NAN_MODE), ends, other)
                ends = other
            if saturates_last:
                ends = saturated(ends)
            collector.put(index, ends, choices.bits)
    found = Enclosure(values=values, interval=None if collector is None else collector.interval())
    return found if wanted else found.reshape(wanted)


def require_default_environment() -> None:
    """Refuse to compute on a floating-point unit that another library has set otherwise."""
    if not float_environment.is_default():
        raise RuntimeError(
            "this thread's floating-point unit does not round to nearest or flushes subnormal "
            "numbers; arithmetic needs its default (torch.set_flush_denormal(False), "
            "fesetround(FE_TONEAREST))"
        )


def _check(operation: Operation, dtypes: Sequence[np.dtype[Any]], fmt: Format) -> None:
    if operation.rule is IntervalRule.FOLD:
        raise ValueError(f"{operation.name} is a reduction; reduce() evaluates it")
    operation.check(fmt)
    if len(dtypes) != operation.operands:
        raise ValueError(
            f"{operation.name} takes {operation.operands} operands, {len(dtypes)} were given"
        )
    operation.check(fmt, *dtypes)
