"""pypto's elementwise operations with upstream's signatures; sources: `arithmetic.OPERATIONS`.

Every function gives a new tensor. Shapes broadcast from the last axis on; no dtype is promoted.
BF16, and FP16 in add, sub, mul and neg, run in FP32, and the next such operation takes that value
unrounded; outputs, views, casts and loops see it rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.error import PyptoError, error_of
from pypto_cast.operations.creation import full
from pypto_cast.operations.elementwise_plan import (
    Reading,
    at_once,
    either,
    elementwise,
    together,
    with_number,
)
from pypto_cast.operations.lowering import (
    check_alike,
    check_operand,
    check_tensor,
    dtypes_of,
    is_cast_inside,
    is_widened,
    of_release,
    operand_values,
    result_tensor,
)
from pypto_cast.operations.movement import expand_clone, reshape
from pypto_cast.operations.operation_rows import (
    ADDED,
    BF16_IN_FP32,
    BF16_ON_950,
    COMPARED,
    FLOATS,
    INTEGERS,
    NUMBERS,
    ROWS,
    SUMS_IN_FP32,
    ByRelease,
    OperationRow,
    everywhere,
)
from pypto_cast.operations.scalar_operands import Constant, converted, integer, is_element, number
from pypto_cast.options.context import current
from pypto_cast.options.releases import RELEASE_NAMES
from pypto_cast.recording import recording
from pypto_cast.tensors.operators import ElementLike, Number, Precision
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.tensors.undecided import value_of
from pypto_cast.unsupported import tolerate
from simulator.arithmetic import special_steps
from simulator.numbers import float_environment
from simulator.numbers.formats import FP16, FP32, FloatFormat, Format
from tiling.plan import ShapeError

_sum = partial(OperationRow, dtypes=everywhere(*NUMBERS), run_in_fp32=SUMS_IN_FP32)
_number = partial(OperationRow, dtypes=everywhere(*NUMBERS), run_in_fp32=BF16_IN_FP32)
_float = partial(OperationRow, dtypes=everywhere(*FLOATS), run_in_fp32=BF16_IN_FP32)
_extreme = partial(_number, dtypes=COMPARED, rounds_on=BF16_ON_950)
Operand = Tensor | Constant
_Compute = Callable[[Operand, Operand], Tensor]


@_sum(dtypes=ADDED, opcodes={"TT": "ADD", "TS": "ADDS"}, is_method=True)
def add(input: Tensor, other: Tensor | Number) -> Tensor:
    """Add a tensor or a number."""
    return with_number("add", input, other, number)


@_sum(dtypes=ADDED, opcodes={"TT": "SUB", "TS": "SUBS"}, is_method=True)
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
def div(input: Tensor, other: Tensor | Number, precision_type: Precision = None) -> Tensor:
    """Divide by a tensor or a number; the quotient of integers is FP32.

    `precision_type` changes no bit on A2/A3.

    Returns:
        A tensor of the operands' dtype and broadcast shape; FP32 of integers.
    """
    result = at_once("div", input, other)
    if result is not None:
        return result
    x = check_operand("div", input)
    divisor = other if isinstance(other, Tensor) else number("div", other, x.dtype)
    if isinstance(x.dtype.format, FloatFormat):
        return elementwise("div", x, divisor)
    if isinstance(divisor, Tensor):
        if check_operand("div", divisor).dtype is not x.dtype:
            raise TypeError(f"div takes tensors of one dtype, not {x.dtype} and {divisor.dtype}")
        divisor = cast(divisor, DataType.DT_FP32)
    return elementwise("div", cast(x, DataType.DT_FP32), divisor)


@_extreme(opcodes={"TT": "MAXIMUM", "TS": "MAXS"}, is_method=True)
def maximum(input: Tensor | Number | ElementLike, other: Tensor | Number | ElementLike) -> Tensor:
    """The greater of two, +0 of both zeros; a float beside integers loses its fraction."""
    return either("maximum", input, other, converted)


@_extreme(opcodes={"TT": "MINIMUM", "TS": "MINS"})
def minimum(input: Tensor | Number | ElementLike, other: Tensor | Number | ElementLike) -> Tensor:
    """The lesser of two, -0 of both zeros; a float beside integers loses its fraction."""
    return either("minimum", input, other, converted)


@_number(
    composed_by=RELEASE_NAMES,
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


@_float(dtypes=everywhere(*FLOATS, ascend_950=INTEGERS[:3]), opcodes={"T": "ABS"})
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
def exp(input: Tensor, precision_type: Precision = None) -> Tensor:
    """e to the power of each element; `precision_type` changes no bit on A2/A3."""
    return elementwise("exp", input)


@_float(
    parts=("sub", "exp"),
    is_chain=True,
    opcodes={"TT": "EXPANDEXPDIF"},
    example="pypto.expand_exp_dif(x, pypto.amax(x, -1, True))",
)
def expand_exp_dif(input: Tensor, other: Tensor) -> Tensor:
    """e to the power of the difference, which is rounded first: of FP16 to FP16."""
    name = "expand_exp_dif"
    return elementwise(name, check_operand(name, input), check_operand(name, other))


@_float(opcodes={"T": "SQRT"}, example="pypto.sqrt(pypto.abs(y))", is_method=True)
def sqrt(input: Tensor, precision_type: Precision = None) -> Tensor:
    """The square root; `precision_type` changes no bit on A2/A3."""
    return elementwise("sqrt", input)


@_float(opcodes={"T": "RECIPROCAL"}, example="pypto.reciprocal(y)", is_method=True)
def reciprocal(a: Tensor, precision_type: Precision = None) -> Tensor:
    """1 divided by each element; `precision_type` changes no bit on A2/A3."""
    return elementwise("reciprocal", a)


def _steps(name: str, compute: Callable[..., Tensor], *operands: Tensor | Constant) -> Tensor:
    """Carry out the steps of one tile operation, in FP32 where AutoCast runs it so."""
    dtype = next(x.dtype for x in operands if isinstance(x, Tensor))
    if not is_widened(name, dtype):
        return compute(*operands)
    if not recording.executes():  # AutoCast's casts are the graph's
        return cast(compute(*map(_wide, operands)), dtype)
    found = compute(*(_in_fp32(x) if isinstance(x, Tensor) else x for x in operands))
    held = found.enclosure()
    shape, valid = tuple(map(int, found.shape)), tuple(found.valid_shape)
    if held is None or 0 in valid:
        return Tensor._from_result(shape, dtype, valid=valid)
    cause = recording.causes().index_here(name)
    return result_tensor(held, ROWS[name], dtype, shape, valid, None, cause, found.uninitialized())


def _in_fp32(x: Tensor) -> Tensor:
    """A tensor as an instruction reads it in FP32, with the hidden value where there is one."""
    shape, valid = tuple(map(int, x.shape)), tuple(x.valid_shape)
    return Tensor._from_result(
        shape,
        DataType.DT_FP32,
        data=operand_values(x, FP32),
        valid=valid,
        uninitialized=x.uninitialized(),
    )


def _two(name: str, input: object, other: object, reading: Reading) -> list[Tensor | Constant]:
    """Two operands of one dtype, one of which may be a number."""
    given = next((x for x in (input, other) if isinstance(x, Tensor)), None)
    first = check_operand(name, input if given is None else given).dtype
    operands = [
        check_operand(name, x) if isinstance(x, Tensor) else reading(name, x, first)
        for x in (input, other)
    ]
    for x in operands:
        if isinstance(x, Tensor):
            check_alike(name, first, x)
        elif x is operands[1] and first not in FLOATS and x.value == 0:
            raise ValueError(f"{name}: the divisor of integers is 0; upstream takes none")
    return operands


def _wide(x: Tensor | Constant) -> Tensor | Constant:
    return cast(x, DataType.DT_FP32) if isinstance(x, Tensor) else x


def _whole(x: Tensor, mode: CastMode) -> Tensor:
    return cast(x, DataType.DT_INT32, mode, SaturationMode.ON)


_FP16, _INT16 = DataType.DT_FP16, DataType.DT_INT16
_REMAINDERS_IN_FP32: Final[ByRelease] = {
    "0.2.0": (*BF16_IN_FP32["0.2.0"], _FP16),
    "head": BF16_IN_FP32["head"],
}
"""AutoCast's lists for REM: opcode.h:632-649 in 0.2.0, 897-995 in head."""
_MODULI_IN_FP32: Final[ByRelease] = {
    **_REMAINDERS_IN_FP32,
    "head": (*BF16_IN_FP32["head"], _FP16),
}
"""The same for MOD."""
_remainder = partial(OperationRow, dtypes=everywhere(*FLOATS))


def _run(name: str, *operands: Operand | float) -> Operand:
    given = (Constant(each) if isinstance(each, float) else each for each in operands)
    return elementwise(name, *given)


def _not_needed(*_: object) -> Operand:
    raise AssertionError("no step of a remainder fills a tensor or casts")


_ON_OPERANDS: Final[special_steps.Steps[Operand]] = special_steps.Steps(
    run=_run, filled=_not_needed, integral=_not_needed
)


def _by(steps: Callable[[special_steps.Steps[Operand], Operand, Operand], Operand]) -> _Compute:
    """Steps on tensors and numbers."""

    def compute(x: Operand, y: Operand) -> Tensor:
        with together():
            found = steps(_ON_OPERANDS, x, y)
        assert isinstance(found, Tensor)
        return found

    return compute


_truncated = _by(special_steps.truncated_remainder)
_floored = _by(special_steps.floored_remainder)
_quotient = _by(special_steps.floored_quotient)


@_remainder(
    parts=("div", "trunc", "mul", "sub"),
    run_in_fp32=_MODULI_IN_FP32,
    cast_to_fp32={"head": (_FP16,)},  # of two tensors: vector/binary.cpp:453
    opcodes={"TT": "MOD", "TS": "MODS"},
    is_method=True,
)
def fmod(input: Tensor, other: Tensor | Number, precision_type: Precision = None) -> Tensor:
    """input - trunc(input / other) * other, the quotient and the product rounded.

    Where the quotient may be an integer, its last place decides: the remainder may be 0 or the
    divisor. NaN of a divisor 0 and of infinite elements. `precision_type` changes no bit on A2/A3.

    Raises:
        ValueError: a number that is NaN or infinite.
    """
    if isinstance(other, float) and not math.isfinite(other):
        raise ValueError(f"fmod: the divisor must be finite, not {other}")
    x, y = _two("fmod", input, other, number)
    dtype = x.dtype if isinstance(x, Tensor) else DataType.DT_FP32
    if isinstance(y, Tensor) and is_cast_inside("fmod", dtype):
        return cast(_truncated(_wide(x), _wide(y)), dtype, CastMode.CAST_NONE)
    return _steps("fmod", _truncated, x, y)


def _floored_in_int32(x: Tensor | Constant, y: Tensor | Constant) -> Tensor:
    quotient = elementwise("div", _wide(x), _wide(y))
    count = _whole(quotient, CastMode.CAST_FLOOR)
    short = [
        _whole(cast(each, DataType.DT_FP32), CastMode.CAST_RINT)
        if isinstance(each, Tensor)
        else each
        for each in (x, y)
    ]
    product = elementwise("mul", count, short[1])
    rest = cast(elementwise("sub", short[0], product), DataType.DT_FP32)
    other = _wide(short[1])
    is_other = elementwise("lt", elementwise("mul", rest, other), Constant(0.0))
    return _whole(
        elementwise("where", is_other, elementwise("add", rest, other), rest), CastMode.CAST_TRUNC
    )


@_remainder(
    parts=("div", "floor", "mul", "sub", "lt", "add", "where"),
    dtypes=everywhere(*NUMBERS),
    run_in_fp32=_REMAINDERS_IN_FP32,
    cast_to_fp32={"0.2.0": (_INT16,), "head": (_FP16, _INT16)},  # vector/binary.cpp:332, :478
    opcodes={"TT": "REM", "TS": "REMS", "ST": "REMRS"},
    is_method=True,
)
def remainder(
    input: Tensor | Number, other: Tensor | Number, precision_type: Precision = None
) -> Tensor:
    """input - floor(input / other) * other, with the sign of the divisor.

    FP16 and INT16 run in FP32, INT32 divides in FP32: beyond 2**24 it is not exact. Where the
    quotient may be an integer its last place decides. `precision_type` changes no bit on A2/A3.

    Raises:
        ValueError: a divisor 0 of integers.
    """
    x, y = _two("remainder", input, other, number)
    dtype = next(each.dtype for each in (x, y) if isinstance(each, Tensor))
    if isinstance(x, Constant) and isinstance(y, Tensor):
        x = _filled(y, x)
    if dtype is DataType.DT_INT32:
        return _floored_in_int32(x, y)
    if is_cast_inside("remainder", dtype):
        satmode = None if dtype is DataType.DT_FP16 else SaturationMode.ON
        return cast(_floored(_wide(x), _wide(y)), dtype, CastMode.CAST_NONE, satmode)
    return _steps("remainder", _floored, x, y)


def _filled(like: Tensor, value: Constant) -> Tensor:
    return full(like.shape, value_of(value.value), like.dtype, valid_shape=like.valid_shape)


@OperationRow(
    parts=("div", "floor"),
    dtypes=everywhere(*FLOATS, DataType.DT_INT32, DataType.DT_INT8, DataType.DT_UINT8),
    run_in_fp32=BF16_IN_FP32,
    lacked_by=("0.2.0",),
    opcodes={"TT": "FLOORDIV", "TS": "FLOORDIVS"},
)
def floor_div(input: Tensor, other: Tensor | Number) -> Tensor:
    """The greatest integer not above the quotient; +0 of every zero.

    FP16, INT8 and UINT8 are divided in FP32. INT32 is exact: upstream corrects the quotient of FP32
    by the remainder. Where a quotient may be an integer, its last place decides, but in INT32.

    Raises:
        ValueError: a divisor 0 of integers.
    """
    x = check_operand("floor_div", input)
    _, y = _two("floor_div", x, other, number)
    if x.dtype is DataType.DT_INT32:
        return elementwise("floor_div", x, y)
    if x.dtype is DataType.DT_FP16:
        return cast(_quotient(_wide(x), _wide(y)), x.dtype, CastMode.CAST_RINT)
    if x.dtype in (DataType.DT_INT8, DataType.DT_UINT8):
        short = (cast(each, _FP16) if isinstance(each, Tensor) else each for each in (x, y))
        found = cast(_quotient(*map(_wide, short)), DataType.DT_FP16, CastMode.CAST_FLOOR)
        return cast(found, x.dtype, CastMode.CAST_FLOOR, SaturationMode.ON)
    return _steps("floor_div", _quotient, x, y)


@OperationRow(
    parts=("div", "ceil", "mul", "sub", "minimum", "maximum", "add"),
    dtypes=everywhere(DataType.DT_INT32),
    composed_by=RELEASE_NAMES,
    example="pypto.ceil_div(at, 2)",
)
def ceil_div(self: Tensor, other: Tensor | int) -> Tensor:
    """The least integer not below the quotient of INT32, divided in FP32.

    One is added where the remainder has the divisor's sign, not in 0.2.0; nothing is taken off, so
    that the last place of a quotient decides where it may be an integer. Exact up to 2**24 besides.

    Raises:
        ValueError: a divisor 0.
    """
    x, y = _two("ceil_div", self, other, number)
    quotient = elementwise("ceil", elementwise("div", _wide(x), _wide(y)))
    if of_release("ceil_div", DataType.DT_INT32, getattr, "rounds_quotients"):
        return cast(quotient, DataType.DT_INT32)
    count = _whole(quotient, CastMode.CAST_RINT)
    rest = elementwise("sub", x, elementwise("mul", count, y))
    signs = _sign(rest)
    of_y = _sign(y) if isinstance(y, Tensor) else Constant(1 if value_of(y.value) > 0 else -1)
    product = elementwise("mul", signs, of_y)
    return elementwise("add", count, minimum(maximum(product, 0), 1))


def _sign(x: Tensor) -> Tensor:
    return maximum(minimum(x, 1), -1)


@OperationRow(
    dtypes=everywhere(DataType.DT_INT32, DataType.DT_INT16, DataType.DT_INT8, DataType.DT_UINT8),
    opcodes={"TT": "GCD", "TS": "GCDS"},
    example="pypto.gcd(i, j)",
    is_method=True,
)
def gcd(input: Tensor, other: Tensor | int) -> Tensor:
    """The greatest common divisor; 0 of two zeros.

    The magnitude of the least integer is itself, and so is a result of it alone.
    """
    return with_number("gcd", input, other, integer)


@OperationRow(
    parts=("ge", "mul", "where"),
    dtypes=everywhere(*FLOATS),
    run_in_fp32=BF16_IN_FP32,
    opcodes={"TS": "LReLU"},
    example="pypto.lrelu(x, 0.25)",
)
def lrelu(other: Tensor, negative_slope: float | ElementLike = 0.01) -> Tensor:
    """The element where it is 0 or more, else its product with a slope.

    Args:
        other: an operand of the dtypes below.
        negative_slope: a finite number, 0 or more; beside FP16 it is rounded to that.

    Raises:
        TypeError: a slope that is no number.
        ValueError: a negative one, NaN or infinity.
    """
    x = check_operand("lrelu", other)
    slope = negative_slope.value if is_element(negative_slope) else negative_slope
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise TypeError(f"lrelu takes a number as negative_slope, not {negative_slope!r}")
    if not (math.isfinite(value_of(number("lrelu", slope, x.dtype).value)) and slope >= 0):
        raise ValueError(f"lrelu: negative_slope must be finite and 0 or more, not {slope}")
    with float_environment.quiet():  # pto-isa's TLRELU takes a number of the tile's dtype
        rounded = FP32.dtype.type(slope).astype((FP16 if x.dtype is _FP16 else FP32).dtype)
    return _steps("lrelu", _leaking, x, Constant(float(rounded)))


def _leaking(x: Tensor, slope: Tensor | Constant, comparison: str = "ge") -> Tensor:
    is_kept = elementwise(comparison, x, Constant(0.0))
    return elementwise("where", is_kept, x, elementwise("mul", x, slope))


@OperationRow(
    parts=("gt", "mul", "where"),
    dtypes=everywhere(*FLOATS),
    run_in_fp32=BF16_IN_FP32,
    opcodes={"TT": "PRELU"},
    example="pypto.prelu(x, pypto.full([3], 0.25, pypto.DT_FP32))",
    is_method=True,
)
def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """The element where it is above 0, else its product with the weight of its second axis.

    Of two axes +0 is multiplied too: it is -0 of a negative weight, NaN of an infinite one.

    Args:
        weight: one axis, of as many elements as the second one of the input; of one element where
            the input has one axis.

    Raises:
        ShapeError: another shape of the weight.
    """
    x, slopes = (check_operand("prelu", each) for each in (self, weight))
    check_alike("prelu", x.dtype, slopes)
    length = 1 if x.dim == 1 else int(x.shape[1])
    if list(map(int, slopes.shape)) != [length]:
        raise ShapeError(f"prelu: {x.shape} needs a weight of shape [{length}], not {slopes.shape}")
    if x.dim > 1:
        slopes = reshape(slopes, [1, length] + [1] * (x.dim - 2))
    for k in range(3, x.dim + 1):  # one axis at once, as release 0.2.0 repeats; the first one below
        slopes = expand_clone(slopes, [1, length, *x.shape[2:k], *[1] * (x.dim - k)])
    comparison = "gt" if x.dim == 2 else "ge"
    return _steps("prelu", partial(_leaking, comparison=comparison), x, slopes)


def selected_bytes(fmt: Format) -> int:
    """The bytes of an element as vsel reads it."""
    return (FP32 if fmt is FP32 else FP16).bits // 8


@_number(
    dtypes=ADDED,
    rounds_on=BF16_ON_950,
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
    known = [x.dtype for x in branches if isinstance(x, Tensor) or is_element(x)]
    known = known or [DataType.DT_FP32]
    mixes = known[0] is not DataType.DT_FP32 and any(isinstance(x, float) for x in branches)
    if mixes and known[0] not in FLOATS:
        known.append(DataType.DT_FP32)
    if len(set(known)) > 1:
        text = f"where: data type inconsistent, {known[0]} and {known[1]}; cast one of the branches"
        raise error_of(PyptoError, TypeError, text)
    if mixes and not of_release("where", known[0], getattr, "selects_floats"):
        tolerate(
            f"where: data type inconsistent, {current().followed_release} takes no Python float "
            f"beside {known[0]}; pypto.Element(pypto.{known[0].name}, value) does",
            strict=current().strict,
        )
    constants = [x if isinstance(x, Tensor) else converted("where", x, known[0]) for x in branches]
    if known[0] not in dtypes_of("where"):
        raise TypeError(f"where takes no branches of {known[0]}")
    if any(isinstance(x, Tensor) for x in constants):
        return elementwise("where", condition, *constants, dtype=known[0])
    from pypto_cast.operations.untold_numbers import choice  # loaded when first used

    return choice(condition, constants, known[0])
