"""The rules by which intervals pass through operations.

Rounding is monotone, so an operation that is monotone in each operand takes its extremes at ends.
Nearly all pieces of an array are finite and take the short way; a piece with an infinite or NaN
result takes the careful one, which looks at every combination of ends.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from simulator.arithmetic.interval import Bounds, Operands, either, union
from simulator.arithmetic.operation import Array, IntervalRule, Operation
from simulator.arithmetic.total_order import (
    Bools,
    both,
    contains_zero,
    greater,
    is_nan,
    lesser,
    nan_value,
    same_code,
    wrap_apart,
)
from simulator.numbers.convert import codes_of
from simulator.numbers.fast.chunks import exceeds
from simulator.numbers.formats import FP32, INT64, FloatFormat, Format, IntFormat

Compute = Callable[[Sequence[Array]], Array]

_FEW: Final = 16
"""So many members of an interval are tried one by one."""


def propagate(
    operation: Operation,
    compute: Compute,
    operands: Operands,
    fmt: Format,
    *,
    wraps: bool,
    square: bool,
) -> Bounds:
    """Find the ends of an operation's results, its bound left out.

    Args:
        operation: the row.
        compute: its values, in the float mode that holds.
        operands: ends whose shapes broadcast.
        fmt: the format that the instruction runs in.
        wraps: integers wrap; else they clamp.
        square: both operands are one.
    """
    if isinstance(fmt, IntFormat) and operation.saturates and wraps:
        return _wrapping(operation, compute, operands, fmt)
    rule = IntervalRule.EVEN if square else operation.rule
    return _RULES[rule](operation, compute, operands, fmt)


def _monotone(operation: Operation, compute: Compute, operands: Operands, fmt: Format) -> Bounds:
    operands, outside = _in_domain(operation, operands)
    paired = list(zip(operands, operation.directions, strict=True))
    low = compute([x.low if rises > 0 else x.high for x, rises in paired])
    high = compute([x.high if rises > 0 else x.low for x, rises in paired])
    flagged = _flags(operands)
    if operation.gives_truth:
        return Bounds(low=low if flagged is None else low & ~flagged, high=high)
    ends = Bounds(low=low, high=high, nan=either(flagged, outside))
    return _with_fallback(operation, compute, operands, fmt, ends)


def _corners(operation: Operation, compute: Compute, operands: Operands, fmt: Format) -> Bounds:
    results = [compute(corner) for corner in _combinations(operands)]
    low, high = _hull(results, fmt)
    ends = Bounds(low=low, high=high, nan=_flags(operands))
    return _with_fallback(operation, compute, operands, fmt, ends)


def _quotient(operation: Operation, compute: Compute, operands: Operands, fmt: Format) -> Bounds:
    divisor = operands[-1]
    ends = _corners(operation, compute, operands, fmt)
    if divisor.exact:
        return ends
    is_open = contains_zero(divisor.low, divisor.high, fmt)
    return _anything(ends, is_open & ~is_nan(operands[0].low, fmt), fmt) if is_open.any() else ends


def _pole(operation: Operation, compute: Compute, operands: Operands, fmt: Format) -> Bounds:
    (operand,) = operands
    is_open = contains_zero(operand.low, operand.high, fmt)
    ends = _monotone(operation, compute, operands, fmt)
    return _anything(ends, is_open, fmt) if is_open.any() else ends


def _even(operation: Operation, compute: Compute, operands: Operands, fmt: Format) -> Bounds:
    operand = operands[0]
    count = len(operands)
    at_low, at_high = compute([operand.low] * count), compute([operand.high] * count)
    zero = compute([np.zeros((1,) * operand.low.ndim, fmt.dtype)] * count)
    if isinstance(fmt, IntFormat):
        has_zero = (operand.low < 0) & (operand.high >= 0)
        wraps = (operand.low == fmt.min) & (operand.high != fmt.min) & (fmt.min < 0)
    else:
        has_zero = np.signbit(operand.low) & ~np.signbit(operand.high)
    low, high = both(at_low, at_high, fmt)
    low = np.where(has_zero, zero, low)
    if isinstance(fmt, IntFormat):
        low, high = np.where(wraps, fmt.min, low), np.where(wraps, fmt.max, high)
        low, high = low.astype(fmt.dtype), high.astype(fmt.dtype)
    return Bounds(low=low, high=high, nan=operand.nan)


def _equal(operation: Operation, compute: Compute, operands: Operands, fmt: Format) -> Bounds:
    a, b = operands
    meets = (a.low <= b.high) & (b.low <= a.high)
    one_number = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
    flagged = _flags(operands)
    if operation.rule is IntervalRule.UNEQUAL:
        number = ~is_nan(a.low, fmt) & ~is_nan(b.low, fmt)
        meets, one_number = number & ~one_number, number & ~meets
    return Bounds(low=one_number if flagged is None else one_number & ~flagged, high=meets)


def _truth(operation: Operation, compute: Compute, operands: Operands, fmt: Format) -> Bounds:
    truths = []
    for x in operands:
        surely = (x.low > 0) | (x.high < 0) | is_nan(x.low, fmt)
        perhaps = (x.low != 0) | (x.high != 0)
        truths.append((surely, perhaps if x.nan is None else perhaps | x.nan))
    falls = operation.directions[0] < 0
    low, high = (np.asarray(operation.function(*side)) for side in zip(*truths, strict=True))
    return Bounds(low=high, high=low) if falls else Bounds(low=low, high=high)


def _select(operation: Operation, compute: Compute, operands: Operands, fmt: Format) -> Bounds:
    condition, a, b = operands
    low = compute([condition.low, a.low, b.low])
    high = compute([condition.low, a.high, b.high])
    nan = None
    if a.nan is not None or b.nan is not None:
        of_a, of_b = (False if x.nan is None else x.nan for x in (a, b))
        nan = condition.high & of_a | ~condition.low & of_b
    ends = Bounds(low=low, high=high, nan=nan)
    undecided = np.broadcast_to(condition.high & ~condition.low, low.shape)
    if condition.exact or not undecided.any():
        return ends
    first, second = (x.broadcast(low.shape).piece(undecided) for x in (a, b))
    return ends.patched(undecided, union(first, second, fmt))


def _members(operation: Operation, compute: Compute, operands: Operands, fmt: Format) -> Bounds:
    low = compute([x.low for x in operands])
    high = low.copy()
    lows = [np.broadcast_to(x.low, low.shape) for x in operands]
    counts = [
        np.minimum(x.high.astype(np.int64) - x.low.astype(np.int64), _FEW) + 1 for x in operands
    ]
    counts = [np.broadcast_to(count, low.shape) for count in counts]
    total = functools.reduce(np.multiply, counts)
    many = total > _FEW
    if isinstance(fmt, IntFormat):
        low[many], high[many] = fmt.min, fmt.max
    few = ~many & (total > 1)
    if few.any():
        first = [x[few] for x in lows]
        sizes = [x[few] for x in counts]
        least, most = low[few], high[few]
        for offsets in itertools.product(range(_FEW), repeat=len(operands)):
            among = np.logical_and.reduce(
                [offset < size for offset, size in zip(offsets, sizes, strict=True)]
            )
            if among.any():
                member = compute(
                    [
                        x + x.dtype.type(offset) * among
                        for x, offset in zip(first, offsets, strict=True)
                    ]
                )
                least, most = lesser(least, member, fmt), greater(most, member, fmt)
        low[few], high[few] = least, most
    return Bounds(low=low, high=high)


def _wrapping(operation: Operation, compute: Compute, operands: Operands, fmt: IntFormat) -> Bounds:
    """Integers that wrap stay in order as long as both ends wrap equally often."""

    def exactly(values: Sequence[Array]) -> Array:
        return np.asarray(operation.function(*(x.astype(np.int64) for x in values)))

    rule = (
        IntervalRule.MONOTONE if operation.rule is IntervalRule.MONOTONE else IntervalRule.CORNERS
    )
    exact = _RULES[rule](operation, exactly, operands, INT64)
    window = wrap_apart(exact.low, exact.high, fmt)
    if not window.any():
        return Bounds(low=exact.low.astype(fmt.dtype), high=exact.high.astype(fmt.dtype))
    crossed = _members(operation, compute, operands, fmt)
    return Bounds(
        low=np.where(window, crossed.low, exact.low.astype(fmt.dtype)),
        high=np.where(window, crossed.high, exact.high.astype(fmt.dtype)),
    )


def _with_fallback(
    operation: Operation, compute: Compute, operands: Operands, fmt: Format, ends: Bounds
) -> Bounds:
    """Find the ends of the elements anew that are infinite or NaN, by all that they may come from.

    Args:
        operation, compute, operands, fmt: as for `propagate`.
        ends: of all elements, with the flags that the operands hand on; not used any more.
    """
    if _are_finite(ends.low, ends.high, fmt):
        return ends
    outliers = ~(np.isfinite(ends.low) & np.isfinite(ends.high))
    parts = [x.broadcast(outliers.shape).piece(outliers) for x in operands]
    nan = None if ends.nan is None else np.broadcast_to(ends.nan, outliers.shape)[outliers]
    return ends.patched(outliers, _careful(operation, compute, parts, fmt, nan))


def _careful(
    operation: Operation,
    compute: Compute,
    operands: Operands,
    fmt: Format,
    nan: Bools | None,
) -> Bounds:
    """Take the extremes over all combinations of ends that are numbers.

    Where a product or quotient of some ends is NaN, other members give zeros.
    """
    assert isinstance(fmt, FloatFormat)
    results = np.broadcast_arrays(*(compute(corner) for corner in _combinations(operands)))
    undefined = [is_nan(result, fmt) for result in results]
    none_defined = np.logical_and.reduce(undefined)
    one_value = np.ones(results[0].shape, np.bool_)
    certain = np.zeros(results[0].shape, np.bool_)
    for x in operands:
        certain |= is_nan(x.low, fmt)
        one_value &= same_code(x.low, x.high)
    makes_zeros = operation.rule in (IntervalRule.CORNERS, IntervalRule.QUOTIENT)
    certain |= none_defined & one_value if makes_zeros else none_defined
    possible = np.logical_or.reduce(undefined) & ~certain
    if makes_zeros:
        possible |= _indeterminate(operation, operands) & ~certain & ~one_value
    infinite = np.array([-np.inf, np.inf]).astype(fmt.dtype)
    zeros = np.array([-0.0, 0.0]).astype(fmt.dtype)
    fill = zeros if makes_zeros else infinite[::-1]
    paired = list(zip(undefined, results, strict=True))
    low, _ = _hull([np.where(no, fill[0], result) for no, result in paired], fmt)
    _, high = _hull([np.where(no, fill[1], result) for no, result in paired], fmt)
    unknown = nan_value(fmt)
    low, high = np.where(certain, unknown, low), np.where(certain, unknown, high)
    return Bounds(low=low, high=high, nan=either(nan, possible if possible.any() else None))


def _indeterminate(operation: Operation, operands: Operands) -> Bools:
    """Finds members that can be 0 * inf or 0 / 0; inf / inf shows at the ends."""
    if len(operands) == 1:
        return np.zeros((), np.bool_)
    zero = [(x.low <= 0) & (x.high >= 0) for x in operands]
    if operation.rule is IntervalRule.QUOTIENT:
        return np.asarray(zero[0] & zero[1])
    infinite = [np.isinf(x.low) | np.isinf(x.high) for x in operands]
    return np.asarray(zero[0] & infinite[1] | zero[1] & infinite[0])


def _anything(ends: Bounds, where: Bools, fmt: Format) -> Bounds:
    """Let elements be any number or NaN."""
    infinity = np.array(np.inf).astype(fmt.dtype)
    return Bounds(
        low=np.where(where, -infinity, ends.low),
        high=np.where(where, infinity, ends.high),
        nan=either(ends.nan, where),
    )


def _in_domain(operation: Operation, operands: Operands) -> tuple[Operands, Bools | None]:
    """Cut intervals off where an operation has no results but NaN, and say where that was."""
    if operation.least_operand is None:
        return operands, None
    (operand,) = operands
    least = operand.low.dtype.type(operation.least_operand)
    outside = (operand.low < least) & (operand.high >= least)
    if not outside.any():
        return operands, None
    low = np.where(outside, least, operand.low)
    return [Bounds(low=low, high=operand.high, nan=operand.nan)], outside


def _combinations(operands: Operands) -> list[tuple[Array, ...]]:
    sides = [(x.low,) if x.low is x.high else (x.low, x.high) for x in operands]
    return list(itertools.product(*sides))


def _hull(results: Sequence[Array], fmt: Format) -> tuple[Array, Array]:
    if len(results) == 1:
        return results[0], results[0]
    low, high = both(results[0], results[1], fmt)
    if fmt is FP32 and len(results) > 2:
        least, most = low.copy(), high.copy()
        for result in results[2:]:
            np.minimum(least, result, out=least)
            np.maximum(most, result, out=most)
        if not ((least == 0).any() or (most == 0).any()):  # numpy takes either of two zeros
            return least, most
    for result in results[2:]:
        low, high = lesser(low, result, fmt), greater(high, result, fmt)
    return low, high


def _flags(operands: Operands) -> Bools | None:
    flagged = None
    for x in operands:
        flagged = either(flagged, x.nan)
    return flagged


def _are_finite(low: Array, high: Array, fmt: Format) -> bool:
    """True if all ends, and all numbers between them, are finite."""
    if not isinstance(fmt, FloatFormat) or not low.size:
        return True
    if fmt is FP32:
        return bool(np.max(high) < np.inf and np.min(low) > -np.inf)
    beyond = exceeds(fmt, fmt.max_code)
    return not any(np.any(beyond(codes_of(end, fmt).reshape(-1))) for end in (low, high))


_RULES: Final[dict[IntervalRule, Callable[..., Bounds]]] = {
    IntervalRule.MONOTONE: _monotone,
    IntervalRule.CORNERS: _corners,
    IntervalRule.QUOTIENT: _quotient,
    IntervalRule.POLE: _pole,
    IntervalRule.EVEN: _even,
    IntervalRule.EQUAL: _equal,
    IntervalRule.UNEQUAL: _equal,
    IntervalRule.TRUTH: _truth,
    IntervalRule.SELECT: _select,
    IntervalRule.MEMBERS: _members,
}
