"""Evaluating an operation of the table on whole arrays: values, intervals, causes.

Arrays are worked through in pieces that stay in the cache, for an operation is a dozen passes once
intervals take part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from simulator.arithmetic.collect_bounds import BoundsCollector, new_array
from simulator.arithmetic.computed import compute
from simulator.arithmetic.interval import Bounds, Choices, Enclosure, Operands, pieces, union
from simulator.arithmetic.operation import Array, Operation, Rule
from simulator.arithmetic.propagation import propagate
from simulator.arithmetic.trust import ASSUME_INF_NAN_MODE, DEFAULT, Trust, choice_bits
from simulator.arithmetic.widen import Widening, saturated
from simulator.numbers import float_environment
from simulator.numbers.formats import BOOL, FP16, Format, IntFormat


def evaluate(
    operation: Operation,
    operands: Sequence[Enclosure],
    fmt: Format,
    *,
    trust: Trust = DEFAULT,
    inf_nan_mode: bool = True,
    cause: int = 0,
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

    Returns:
        Values of `fmt`'s dtype (BOOL's for a truth) and of the broadcast shape, C-contiguous, with
        an interval where some element is open.

    Raises:
        ValueError: operands that the row or the format does not have.
        RuntimeError: this thread does not round to nearest or flushes subnormal numbers.
    """
    require_default_environment()
    _check(operation, operands, fmt)
    wanted = np.broadcast_shapes(*(x.values.shape for x in operands))
    shape = wanted or (1,)  # numpy makes numbers of arrays without dimensions
    result = BOOL if operation.gives_truth else fmt
    values = new_array(shape, result.dtype)
    arrays = [np.broadcast_to(x.values, shape) for x in operands]
    whole = [x.bounds(shape) for x in operands]
    widening = Widening.of(operation, fmt, trust, inf_nan_mode=inf_nan_mode)
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
    square = len(operands) == 2 and operands[0] is operands[1] and operation.rule is Rule.CORNERS

    # Saturation hides which members are infinite or NaN: the ends are saturated last.
    saturates_last = fmt is FP16 and not (inf_nan_mode or operation.gives_truth or operation.copies)

    def run(piece: Sequence[Array], *, wraps: bool = inf_nan_mode) -> Array:
        out = np.empty(np.broadcast_shapes(*(x.shape for x in piece)), result.dtype)
        compute(operation, piece, fmt, out, inf_nan_mode=wraps or saturates_last, any_nan=True)
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
            compute(operation, piece, fmt, values[index], inf_nan_mode=inf_nan_mode)
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


def _check(operation: Operation, operands: Sequence[Enclosure], fmt: Format) -> None:
    if operation.rule is Rule.FOLD:
        raise ValueError(f"{operation.name} is a reduction; reduce() evaluates it")
    operation.check(fmt)
    if len(operands) != operation.operands:
        raise ValueError(
            f"{operation.name} takes {operation.operands} operands, {len(operands)} were given"
        )
    operation.check(fmt, *(x.values.dtype for x in operands))
