"""The values of the operations: numpy's, but where A2/A3 differs.

The functions of this file see float32, float64, integers and booleans. FP16 is reached from there
with one rounding: an operation of one operand is a table of all codes, made in float64; one of
several operands is computed in float32, whose 24 bits make the second rounding harmless.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from simulator.arithmetic import total_order
from simulator.arithmetic.operation import Array, Function, Operation
from simulator.arithmetic.total_order import Bools
from simulator.numbers import elementwise, float_environment
from simulator.numbers.convert import INF_NAN, SATURATE, Conversion, codes_of
from simulator.numbers.formats import BF16, BOOL, FP16, FP32, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode

if TYPE_CHECKING:  # the native executor is loaded when it is first used
    from simulator.arithmetic.native.executor_library import Executor
    from simulator.arithmetic.native.node_program import Node

_WIDEN: Final = {
    fmt: (Conversion(src=fmt, dst=FP32, mode=RoundMode.RINT, policy=INF_NAN),)
    for fmt in (FP16, BF16)
}
_NARROW: Final = {
    inf_nan_mode: (Conversion(src=FP32, dst=FP16, mode=RoundMode.RINT, policy=policy),)
    for inf_nan_mode, policy in ((True, INF_NAN), (False, SATURATE))
}


def relu(a: Array, *, out: Array) -> None:
    """The greater of a number and +0."""
    np.maximum(a, out.dtype.type(0), out=out)
    if out.dtype.kind == "f":
        np.add(out, out.dtype.type(0), out=out)


def clip(a: Array, least: Array, most: Array, *, out: Array) -> None:
    """min(max(a, least), most): `most` where the bounds are crossed, NaN where any is NaN."""
    total_order.minimum(total_order.maximum(a, least), most, out=out)


def reciprocal(a: Array, *, out: Array) -> None:
    """One divided by a number."""
    np.divide(out.dtype.type(1), a, out=out)


def rsqrt(a: Array, *, out: Array) -> None:
    """The reciprocal of the root, in float64, rounded once: for all operands the exact code."""
    root = np.sqrt(a, dtype=np.float64)
    np.copyto(out, np.divide(1.0, root, out=root), casting="unsafe")


def unequal(a: Array, b: Array, *, out: Array) -> None:
    """Less or greater: false where either is NaN, unlike IEEE 754."""
    np.less(a, b, out=out)
    np.logical_or(out, np.greater(a, b), out=out)


def signbit(a: Array, *, out: Array) -> None:
    """Below +0 in total order; NaN has no sign."""
    if a.dtype.kind in "iu":  # BF16 is of kind V
        np.less(a, 0, out=out)
        return
    np.signbit(a, out=out)
    np.logical_and(out, a == a, out=out)


def gcd(a: Array, b: Array, *, out: Array) -> None:
    """Euclid's algorithm as C++ runs it in the dtype: the least integer is its own magnitude."""
    a, b = np.broadcast_arrays(a, b)
    a, b = (np.where(x < 0, np.subtract(x.dtype.type(0), x), x) for x in (a, b))
    while (live := b != 0).any():
        rest = np.fmod(a, b, out=np.zeros_like(a), where=live)
        a, b = np.where(live, b, a), np.where(live, rest, b)
    np.copyto(out, a)


def power(a: Array, b: Array, *, out: Array) -> None:
    """Integer powers in INT32, which wrap; 0 of negative exponents but of 1 and -1."""
    base, exponent = (x.astype(np.int64) for x in np.broadcast_arrays(a, b))
    is_negative = exponent < 0
    total, left = np.ones_like(base), np.where(is_negative, exponent & 1, exponent)
    power = base.copy()
    while left.any():
        total = np.where(left & 1, total * power, total).astype(np.int32).astype(np.int64)
        power = (power * power).astype(np.int32).astype(np.int64)
        left >>= 1
    total[is_negative & (np.abs(base) != 1)] = 0
    np.copyto(out, total, casting="unsafe")


def floor_div(a: Array, b: Array, *, out: Array) -> None:
    """Integer quotients rounded down, -1 by 0 as INT32 is divided, where 0 by 0 is 0."""
    a, b = np.broadcast_arrays(a, b)
    quotient = np.full_like(a, -1)
    np.floor_divide(a, b, out=quotient, where=b != 0)
    np.copyto(out, quotient)


def select(condition: Array, a: Array, b: Array, *, out: Array) -> None:
    """`a` where the condition is true, else `b`, bit for bit."""
    np.copyto(out, b)
    np.copyto(out, a, where=condition)


def integral(ufunc: np.ufunc) -> Function:
    """Make a function that rounds to integral values, with +0 for every zero; integers stay."""

    def run(a: Array, *, out: Array) -> None:
        if out.dtype.kind != "f":
            np.copyto(out, a)
            return
        ufunc(a, out=out)
        np.add(out, out.dtype.type(0), out=out)

    return run


def compute(
    operation: Operation,
    operands: Sequence[Array],
    fmt: Format,
    out: Array,
    *,
    inf_nan_mode: bool,
    any_nan: bool = False,
    executor: Executor | None = None,
) -> None:
    """Compute a piece of an operation's values.

    A NaN result is the one NaN of its format, unless elements are only moved. Under saturation mode
    FP16 results that are infinite become the largest number and NaN becomes +0, and integer sums,
    differences and products clamp; FP32 knows no such mode.

    Args:
        operation: the row.
        operands: values of `fmt`'s dtype (a condition: bool), of shapes that broadcast to `out`'s.
        fmt: the format that the instruction runs in.
        out: values of the result, contiguous.
        inf_nan_mode: the default float mode; else saturation mode.
        any_nan: a NaN result may be any that numpy gives.
        executor: that has the operation in this format and mode; None: numpy.
    """
    if executor is not None:
        native_node(executor, operation, operands, fmt, out.shape).computed(out)
    elif operation.copies:
        condition, *branches = operands
        select(condition, *(x.view(fmt.code_dtype) for x in branches), out=out.view(fmt.code_dtype))
    elif fmt is FP16:
        _compute_in_fp16(operation, operands, out, inf_nan_mode)
    elif isinstance(fmt, IntFormat) and operation.saturates and not inf_nan_mode:
        wide = np.empty(out.shape, np.int64)
        operation.function(*(x.astype(np.int64) for x in operands), out=wide)
        np.copyto(out, np.clip(wide, fmt.min, fmt.max), casting="unsafe")
    else:
        operation.function(*operands, out=out)
        if isinstance(fmt, FloatFormat) and not (operation.gives_truth or any_nan):
            unify_nan(out, fmt)


def native_node(
    executor: Executor,
    operation: Operation,
    operands: Sequence[Node | Array],
    fmt: Format,
    shape: tuple[int, ...],
    *,
    threads: int = 1,
) -> Node:
    """An operation that the native executor has; see `node_of`."""
    from simulator.arithmetic.native.operation_nodes import node_of

    table = functools.partial(_fp16_table, operation, True)
    return node_of(executor, operation, operands, fmt, shape, table, threads=threads)


def unify_nan(out: Array, fmt: FloatFormat) -> None:
    """Write the one NaN of the format wherever a contiguous array has any."""
    flat = out.reshape(-1)
    if flat.size and np.isnan(np.maximum.reduce(flat)):
        flat[np.isnan(flat)] = total_order.nan_value(fmt)


def _compute_in_fp16(
    operation: Operation, operands: Sequence[Array], out: Array, inf_nan_mode: bool
) -> None:
    if len(operands) == 1:
        table = _fp16_table(operation, inf_nan_mode)
        np.take(table, operands[0].view(np.uint16), out=out, mode="wrap")
        return
    wide = [as_fp32(operand, FP16) for operand in operands]
    if operation.gives_truth:
        operation.function(*wide, out=out)
        return
    result = np.empty(out.shape, np.float32)
    operation.function(*wide, out=result)
    narrow = elementwise.loop(_NARROW[inf_nan_mode])
    narrow(codes_of(result.reshape(-1), FP32), codes_of(out.reshape(-1), FP16))


def unrounded_sum(operands: Sequence[Array], result: Array) -> Bools:
    """Finds sums that are not rounded: taking either term away leaves the other.

    The difference from the greater term is always exact (Dekker), so that one of the two decides.
    """
    a, b = operands
    return np.asarray((result - a == b) & (result - b == a))


def unrounded_difference(operands: Sequence[Array], result: Array) -> Bools:
    """Finds differences that are not rounded."""
    a, b = operands
    return unrounded_sum((a, -b), result)


def unrounded_product(operands: Sequence[Array], result: Array) -> Bools:
    """Finds products that are not rounded; float64 holds the product of two FP32 numbers."""
    a, b = operands
    return np.asarray(np.multiply(a, b, dtype=np.float64) == result)


def as_fp32(values: Array, fmt: FloatFormat) -> Array:
    """FP32 numbers of FP32, FP16 or BF16 ones."""
    if fmt is FP32:
        return values
    flat = np.ascontiguousarray(values).reshape(-1)
    wide = np.empty(flat.size, np.float32)
    elementwise.loop(_WIDEN[fmt])(codes_of(flat, fmt), codes_of(wide, FP32))
    return wide.reshape(values.shape)


@functools.cache
def _fp16_table(operation: Operation, inf_nan_mode: bool) -> Array:
    codes = np.arange(1 << 16, dtype=np.uint16)
    with float_environment.quiet():
        wide = codes.view(np.float16).astype(np.float64)
        if operation.gives_truth:
            truth = np.empty(wide.shape, BOOL.dtype)
            operation.function(wide, out=truth)
            return truth
        exact = np.empty_like(wide)
        operation.function(wide, out=exact)
        table = exact.astype(np.float16)
    unify_nan(table, FP16)
    if not inf_nan_mode:
        table[np.isnan(table)] = 0
        np.clip(table, np.finfo(np.float16).min, np.finfo(np.float16).max, out=table)
    return table
