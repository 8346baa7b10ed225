"""Evaluating an operation of the table on whole arrays: values, intervals, causes.

Arrays are worked through in pieces that stay in the cache, for an operation is a dozen passes once
intervals take part in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.arithmetic.computed import compute
from simulator.arithmetic.ends import Ends
from simulator.arithmetic.interval import Quantity
from simulator.arithmetic.operation import Array, Operation, Rule
from simulator.arithmetic.propagation import propagate
from simulator.arithmetic.result_arrays import new_array, pieces
from simulator.arithmetic.spread import Spread, ends_of
from simulator.arithmetic.total_order import greater, lesser
from simulator.arithmetic.trust import DEFAULT, Trust
from simulator.arithmetic.widening import Widening
from simulator.numbers import float_environment
from simulator.numbers.formats import BOOL, FP16, Format


def evaluate(
    operation: Operation,
    operands: Sequence[Quantity],
    fmt: Format,
    *,
    trust: Trust = DEFAULT,
    inf_nan_mode: bool = True,
    cause: int = 0,
) -> Quantity:
    """Evaluate an elementwise operation.

    The same `Quantity` twice as operand counts as one unknown: x * x is never negative.

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
    shape = np.broadcast_shapes(*(x.values.shape for x in operands))
    result = BOOL if operation.gives_truth else fmt
    values = new_array(shape, result.dtype)
    arrays = [np.broadcast_to(x.values, shape) for x in operands]
    whole = [ends_of(x, shape) for x in operands]
    widening = Widening.of(operation, fmt, trust)
    spread = None
    if not widening.is_none or any(x.interval is not None for x in operands):
        width = max(2 * widening.ulps, widening.flushes)
        spread = Spread(shape, result.dtype, operands, fmt, own_width=width, cause=cause)
    square = len(operands) == 2 and operands[0] is operands[1] and operation.rule is Rule.CORNERS

    # Saturation hides which members are infinite or NaN: the ends are saturated last.
    saturates_last = fmt is FP16 and not (inf_nan_mode or operation.gives_truth or operation.copies)

    def run(piece: Sequence[Array]) -> Array:
        out = np.empty(np.broadcast_shapes(*(x.shape for x in piece)), result.dtype)
        mode = inf_nan_mode or saturates_last
        compute(operation, piece, fmt, out, inf_nan_mode=mode, any_nan=True)
        return out

    with float_environment.quiet():
        for index in pieces(shape):
            piece = [array[index] for array in arrays]
            compute(operation, piece, fmt, values[index], inf_nan_mode=inf_nan_mode)
            if spread is None:
                continue
            operand_ends = [widening.operand(x.piece(index)) for x in whole]
            if all(x.exact for x in operand_ends):
                exact = run(piece) if saturates_last else values[index]
                ends = Ends(low=exact, high=exact)
            else:
                ends = propagate(
                    operation,
                    run,
                    operand_ends,
                    fmt,
                    wraps=inf_nan_mode,
                    square=square,
                )
            ends = widening.result(ends, operand_ends)
            if saturates_last:
                ends = _saturated(ends)
            spread.put(index, ends)
    return Quantity(values=values, interval=None if spread is None else spread.interval())


def _saturated(ends: Ends) -> Ends:
    """In saturation mode FP16 has neither infinity nor NaN."""
    most = np.finfo(np.float16).max
    zero = np.zeros_like(ends.low)
    low, high = (
        np.where(np.isnan(end), zero, np.clip(end, -most, most)) for end in (ends.low, ends.high)
    )
    if ends.nan is not None:
        low = np.where(ends.nan, lesser(low, zero, FP16), low)
        high = np.where(ends.nan, greater(high, zero, FP16), high)
    return Ends(low=low, high=high)


def require_default_environment() -> None:
    """Refuse to compute on a floating-point unit that another library has set otherwise."""
    if not float_environment.is_default():
        raise RuntimeError(
            "this thread's floating-point unit does not round to nearest or flushes subnormal "
            "numbers; arithmetic needs its default (torch.set_flush_denormal(False), "
            "fesetround(FE_TONEAREST))"
        )


def _check(operation: Operation, operands: Sequence[Quantity], fmt: Format) -> None:
    if operation.rule is Rule.FOLD:
        raise ValueError(f"{operation.name} is a reduction; reduce() evaluates it")
    if fmt not in operation.formats:
        names = ", ".join(str(each) for each in operation.formats)
        raise ValueError(f"{operation.name} does not run in {fmt}; it runs in {names}")
    if len(operands) != operation.operands:
        raise ValueError(
            f"{operation.name} takes {operation.operands} operands, {len(operands)} were given"
        )
    for position, x in enumerate(operands):
        wanted = BOOL.dtype if operation.copies and position == 0 else fmt.dtype
        if x.values.dtype != wanted:
            raise ValueError(
                f"operand {position} of {operation.name} has dtype {x.values.dtype}; in {fmt} it "
                f"has {wanted}"
            )
