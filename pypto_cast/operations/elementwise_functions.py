"""pypto's elementwise operations with upstream's signatures.

Every function gives a new tensor; none modifies its operands. Shapes broadcast axis by axis, from
the last; dtypes are never promoted. BF16, and FP16 in add, sub, mul and neg, run in FP32, and the
next such operation takes that value unrounded; outputs, views, casts and loops see it rounded.
Fidelity, special values and sources of each are in its row of `simulator.arithmetic.OPERATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.operations.lowering import (
    check_operand,
    check_tensor,
    dtypes_of,
    elementwise,
    is_cast_inside,
    of_release,
)
from pypto_cast.operations.operation_rows import (
    BF16_IN_FP32,
    FLOATS,
    NUMBERS,
    SUMS_IN_FP32,
    OperationRow,
    on_a2_a3,
)
from pypto_cast.operations.scalar_operands import Constant, converted, is_element, number
from pypto_cast.options.context import current
from pypto_cast.tensors.operators import ElementLike, Number
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.unsupported import tolerate
from simulator.numbers.formats import FP16, FP32, FloatFormat, Format

_sum = partial(OperationRow, dtypes=on_a2_a3(*NUMBERS), run_in_fp32=SUMS_IN_FP32)
_number = partial(OperationRow, dtypes=on_a2_a3(*NUMBERS), run_in_fp32=BF16_IN_FP32)
_float = partial(OperationRow, dtypes=on_a2_a3(*FLOATS), run_in_fp32=BF16_IN_FP32)

Reading = Callable[[str, object, DataType], Constant]
"""(operation, number, dtype of the tensor) -> the number as the instruction gets it."""


def with_number(name: str, input: object, other: object, reading: Reading) -> Tensor:
    """Carry out an operation whose second operand may be a number."""
    x = check_operand(name, input)
    operand = other if isinstance(other, Tensor) else reading(name, other, x.dtype)
    if is_cast_inside(name, x.dtype) and getattr(operand, "dtype", x.dtype) is x.dtype:
        wide = (
            cast(each, DataType.DT_FP32) if isinstance(each, Tensor) else each
            for each in (x, operand)
        )
        return elementwise(name, *wide)
    return elementwise(name, x, operand)


def either(name: str, input: object, other: object, reading: Reading) -> Tensor:
    """Carry out an operation either of whose operands may be a number, but not both."""
    given = next((x for x in (input, other) if isinstance(x, Tensor)), None)
    x = check_operand(name, input if given is None else given)
    operands = (
        each if isinstance(each, Tensor) else reading(name, each, x.dtype)
        for each in (input, other)
    )
    return elementwise(name, *operands)


@_sum(opcodes={"TT": "ADD", "TS": "ADDS"}, is_method=True)
def add(input: Tensor, other: Tensor | Number) -> Tensor:
    """Add a tensor or a number."""
    return with_number("add", input, other, number)


@_sum(opcodes={"TT": "SUB", "TS": "SUBS"}, is_method=True)
def sub(input: Tensor, other: Tensor | Number) -> Tensor:
    """Subtract a tensor or a number; the first operand is a tensor."""
    return with_number("sub", input, other, number)


@_sum(opcodes={"TT": "MUL", "TS": "MULS"}, is_method=True)
def mul(input: Tensor, other: Tensor | Number) -> Tensor:
    """Multiply by a tensor or a number."""
    return with_number("mul", input, other, number)


@_number(
    opcodes={"TT": "DIV", "TS": "DIVS"},
    refuses={"0.2.0": (DataType.DT_INT16, DataType.DT_INT32)},  # docs/api/operation/pypto-div.md
    is_method=True,
)
def div(input: Tensor, other: Tensor | Number, precision_type: object = None) -> Tensor:
    """Divide by a tensor or a number; the quotient of integers is FP32.

    `precision_type` changes no bit on A2/A3.

    Returns:
        A tensor of the operands' dtype and broadcast shape; FP32 of integers.
    """
    x = check_operand("div", input)
    divisor = other if isinstance(other, Tensor) else number("div", other, x.dtype)
    if isinstance(x.dtype.format, FloatFormat):
        return elementwise("div", x, divisor)
    if isinstance(divisor, Tensor):
        if check_operand("div", divisor).dtype is not x.dtype:
            raise TypeError(f"div takes tensors of one dtype, not {x.dtype} and {divisor.dtype}")
        divisor = cast(divisor, DataType.DT_FP32)
    return elementwise("div", cast(x, DataType.DT_FP32), divisor)


@_number(opcodes={"TT": "MAXIMUM", "TS": "MAXS"}, is_method=True)
def maximum(input: Tensor | Number | ElementLike, other: Tensor | Number | ElementLike) -> Tensor:
    """The greater of two, +0 of both zeros; a float beside integers loses its fraction."""
    return either("maximum", input, other, converted)


@_number(opcodes={"TT": "MINIMUM", "TS": "MINS"})
def minimum(input: Tensor | Number | ElementLike, other: Tensor | Number | ElementLike) -> Tensor:
    """The lesser of two, -0 of both zeros; a float beside integers loses its fraction."""
    return either("minimum", input, other, converted)


@_number(
    is_composed=True,
    example="pypto.clip(x, -1.0, 1.0)",
    least_dims={"0.2.0": 2},  # vector/math.cpp:894
)
def clip(
    input: Tensor,
    min: Tensor | Number | ElementLike | None = None,
    max: Tensor | Number | ElementLike | None = None,
) -> Tensor:
    """minimum(maximum(input, min), max); without bounds the input itself.

    Args:
        input: an operand of the dtypes below.
        min: the lower bound, a tensor or a number; none if not given.
        max: the upper bound, of the kind of the lower one; none if not given.

    Raises:
        TypeError: one bound a tensor and the other a number, or an Element of another dtype.
    """
    x = check_operand("clip", input)
    bounds = [bound for bound in (min, max) if bound is not None]
    if len({isinstance(bound, Tensor) for bound in bounds}) > 1:
        raise TypeError("clip takes two tensors or two numbers as bounds, not one of each")
    for bound in bounds:
        if is_element(bound) and bound.dtype is not x.dtype:
            raise TypeError(f"clip: a bound of {bound.dtype} for a tensor of {x.dtype}")
    result = x if min is None else maximum(x, min)
    return result if max is None else minimum(result, max)


@_float(opcodes={"T": "ABS"})
def abs(a: Tensor) -> Tensor:
    """The magnitude."""
    return elementwise("abs", a)


@_sum(opcodes={"T": "MULS"}, implied_scalar=-1.0)
def neg(a: Tensor) -> Tensor:
    """The product with -1: 0 becomes -0."""
    return elementwise("neg", a)


@_number(opcodes={"T": "RELU"}, is_method=True)
def relu(a: Tensor) -> Tensor:
    """The greater of a number and +0."""
    return elementwise("relu", a)


@_float(opcodes={"T": "EXP"}, is_method=True)
def exp(input: Tensor, precision_type: object = None) -> Tensor:
    """e to the power of each element; `precision_type` changes no bit on A2/A3."""
    return elementwise("exp", input)


@_float(opcodes={"T": "SQRT"}, example="pypto.sqrt(pypto.abs(y))", is_method=True)
def sqrt(input: Tensor, precision_type: object = None) -> Tensor:
    """The square root; `precision_type` changes no bit on A2/A3."""
    return elementwise("sqrt", input)


@_float(opcodes={"T": "RECIPROCAL"}, example="pypto.reciprocal(y)", is_method=True)
def reciprocal(a: Tensor, precision_type: object = None) -> Tensor:
    """1 divided by each element; `precision_type` changes no bit on A2/A3."""
    return elementwise("reciprocal", a)


def selected_bytes(fmt: Format) -> int:
    """The bytes of an element as vsel reads it."""
    return (FP32 if fmt is FP32 else FP16).bits // 8


@_number(
    scratch=lambda tile, fmt: 4096 + 128 + 32 + 2048 * selected_bytes(fmt),
    opcodes={"TTT": "WHERE_TT", "TTS": "WHERE_TS", "TST": "WHERE_ST", "TSS": "WHERE_SS"},
    same_rank=True,
    example="pypto.where(pypto.lt(x, y), x, y)",
)
def where(
    condition: Tensor,
    input: Tensor | Number | ElementLike,
    other: Tensor | Number | ElementLike,
) -> Tensor:
    """`input` where a BOOL tensor is true, else `other`, bit for bit.

    Of two numbers the result has the dtype of the first; a Python number alone is FP32. Beside
    another branch it takes that one's dtype: an int any, a float one of floats. The newest revision
    takes a float beside FP32 only.

    Args:
        condition: BOOL; shapes broadcast.
        input: an operand of the dtypes below.
        other: the other operand; shapes broadcast.

    Raises:
        TypeError: a condition that is not BOOL, or two dtypes.
        OverflowError: a number that the dtype does not hold.
        UpstreamRefusalError: a float beside another dtype, under `options(strict=True)`.

    Warns:
        UpstreamRefusalWarning: a float beside another dtype.
    """
    check_tensor("where", condition, [DataType.DT_BOOL])
    branches = (input, other)
    known = [d for d in map(_branch_dtype, branches) if d is not None] or [DataType.DT_FP32]
    mixes = known[0] is not DataType.DT_FP32 and any(isinstance(x, float) for x in branches)
    if mixes and known[0] not in FLOATS:
        known.append(DataType.DT_FP32)
    if len(set(known)) > 1:
        raise TypeError(
            f"where takes branches of one dtype, not {known[0]} and {known[1]}; cast one"
        )
    if mixes and not of_release("where", known[0], lambda release: release.selects_floats):
        tolerate(
            f"where: {current().followed_release} takes no Python float beside {known[0]}; "
            f"pypto.Element(pypto.{known[0].name}, value) does",
            strict=current().strict,
        )
    if known[0] not in dtypes_of("where"):
        raise TypeError(f"where takes no branches of {known[0]}")
    constants = (x if isinstance(x, Tensor) else converted("where", x, known[0]) for x in branches)
    return elementwise("where", condition, *constants, dtype=known[0])


def _branch_dtype(branch: object) -> DataType | None:
    return branch.dtype if isinstance(branch, Tensor) or is_element(branch) else None
