"""Operations that upstream composes of others, step by step as it does.

Their casts are written ones: a hidden FP32 value ends before them.
Sources: upstream pypto, python/pypto/operator.py, op/math.py,
framework/src/interface/operation/vector/{math,unary}.cpp and framework/src/interface/tileop.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.operations.creation import full
from pypto_cast.operations.elementwise_functions import (
    add,
    div,
    exp,
    maximum,
    minimum,
    mul,
    sqrt,
    sub,
    where,
)
from pypto_cast.operations.elementwise_plan import elementwise, together
from pypto_cast.operations.lowering import (
    as_one,
    axis_of,
    check_operand,
    is_cast_inside,
    of_release,
)
from pypto_cast.operations.movement import expand_clone, moved, reshape
from pypto_cast.operations.operation_rows import (
    BF16_IN_FP32,
    BF16_ON_950,
    BYTES,
    FLOATS,
    NUMBERS,
    OperationRow,
    everywhere,
)
from pypto_cast.operations.reduction_functions import amax, sum
from pypto_cast.operations.scalar_operands import Constant, flag, real_number, whole_number
from pypto_cast.operations.truth_and_bits import eq
from pypto_cast.options.releases import RELEASE_NAMES
from pypto_cast.recording import recording
from pypto_cast.tensors.operators import Precision
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure
from simulator.arithmetic.operation import Array
from simulator.numbers import float_environment
from simulator.numbers.formats import FP32, INT32, FloatFormat
from tiling.plan import ShapeError

_integral_row = partial(
    OperationRow,
    dtypes=everywhere(*NUMBERS),
    # vector/unary.cpp; tileop/vector/unary.h TRound
    cast_to_fp32={"0.2.0": (DataType.DT_INT16, DataType.DT_INT32)},
    is_method=True,
)
_float = partial(OperationRow, dtypes=everywhere(*FLOATS), is_method=True)

_SIGN_STEPS = ((2.0**-126, (2.0**62, 2.0**62, 4.0)), (2.0**-24, (2.0**12, 2.0**12)))
"""The least magnitude of FP32 and of FP16, and the factors that make it 1 (tileop sign.h)."""


def in_fp32(x: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
    """Compute on the FP32 cast of a tensor and cast back, each where the dtype is another.

    Both have upstream's default, OFF beside integers, which no bit depends on: INT32 is clamped,
    and other integers are exact.
    """
    satmode = None if isinstance(x.dtype.format, FloatFormat) else SaturationMode.OFF
    wide = cast(x, DataType.DT_FP32, satmode=satmode)
    with together():
        result = compute(wide)
    return cast(result, x.dtype, CastMode.CAST_NONE, satmode)


def _ones(like: Tensor) -> Tensor:
    return filled(like, 1.0)


def filled(like: Tensor, value: float) -> Tensor:
    """An FP32 tensor of the shape of another, full of one number."""
    return full(like.shape, value, DataType.DT_FP32, valid_shape=like.valid_shape)


def _powers_of_ten(decimals: int) -> tuple[float, float]:
    """A power in FP32, which is infinite beyond 38, and its reciprocal there."""
    with float_environment.quiet():
        power = FP32.dtype.type(10.0 ** min(decimals, 39))
        return float(power), float(1 / power)


def _integral(name: str, input: Tensor) -> Tensor:
    x = check_operand(name, input)
    if x.dtype in (DataType.DT_FP16, DataType.DT_BF16) or is_cast_inside(name, x.dtype):
        return in_fp32(x, lambda wide: elementwise(name, wide))
    return elementwise(name, x)


@_integral_row(opcodes={"T": "FLOOR"}, composed_by=RELEASE_NAMES)
def floor(input: Tensor) -> Tensor:
    """The greatest integral value not above each element; +0 for every zero."""
    return _integral("floor", input)


@_integral_row(opcodes={"T": "CEIL"}, composed_by=RELEASE_NAMES)
def ceil(input: Tensor) -> Tensor:
    """The least integral value not below each element; +0 for every zero."""
    return _integral("ceil", input)


@_integral_row(opcodes={"T": "TRUNC"}, composed_by=RELEASE_NAMES)
def trunc(input: Tensor) -> Tensor:
    """Each element without its fraction; +0 for every zero."""
    return _integral("trunc", input)


@_integral_row(  # vector/math.cpp
    opcodes={"T": "ROUND", "TS": "ROUND"},
    implied_scalar=1.0,
    scalar_of=lambda decimals: _powers_of_ten(int(decimals))[0],
    least_dims={"0.2.0": 2},
)
def round(input: Tensor, decimals: int = 0) -> Tensor:
    """The nearest multiple of 10**-decimals, ties to even.

    FP32 is multiplied by the power of ten, rounded and divided by it; FP16, BF16 and integers are
    multiplied by its reciprocal instead. Integers of no decimals below 0 are copied, in release
    0.2.0 by way of FP32.

    Args:
        decimals: the number of decimals; a negative one rounds to tens, hundreds.

    Raises:
        TypeError: decimals that are no int.
        OverflowError: decimals beyond INT32.
    """
    x = check_operand("round", input)
    if not isinstance(decimals, int):
        raise TypeError(f"round: decimals must be an int, not {decimals!r}")
    if not INT32.min <= decimals <= INT32.max:
        raise OverflowError(f"round: decimals is an INT32, not {decimals}")
    from pypto_cast.operations.untold_numbers import of_numbers  # loaded when first used

    return of_numbers("round", x.dtype, [decimals], partial(_rounded, x))


def _rounded(x: Tensor, decimals: int) -> Tensor:
    is_integer = not isinstance(x.dtype.format, FloatFormat)
    is_copied = is_integer and decimals > 0 and not is_cast_inside("round", x.dtype)
    if decimals == 0 or is_copied:
        return _integral("round", x)
    power, inverse = _powers_of_ten(decimals)
    scaled = elementwise("round", mul(cast(x, DataType.DT_FP32), power))
    if x.dtype is DataType.DT_FP32:
        return elementwise("div", scaled, Constant(power))
    return cast(mul(scaled, inverse), x.dtype, CastMode.CAST_RINT, SaturationMode.ON)


@_float(
    dtypes=everywhere(*NUMBERS, *BYTES),
    refuses={"0.2.0": BYTES},  # vector/math.cpp:1079
    least_dims={"0.2.0": 2},
    parts=("log", "mul", "exp"),
    opcodes={"T": "EXP2"},
)
def exp2(input: Tensor) -> Tensor:
    """2 to the power of each element: exp(x * log(2)), in FP32; the result of integers is FP32.

    The logarithm is the device's, so that it is open to its bound.

    Returns:
        A tensor of the input's dtype and shape; FP32 of integers.
    """
    x = check_operand("exp2", input)

    def compute(wide: Tensor) -> Tensor:
        # Of the operand's shape, as the scratch of upstream's (vector/math.cpp, TiledExp2) is.
        return exp(mul(wide, elementwise("log", filled(wide, 2.0))))

    if isinstance(x.dtype.format, FloatFormat):
        return in_fp32(x, compute)
    if x.dtype in (DataType.DT_INT8, DataType.DT_UINT8):  # python/pypto/op/math.py:807
        x = cast(x, DataType.DT_FP16)
    return compute(cast(x, DataType.DT_FP32))


@_integral_row(
    cast_to_fp32={},
    run_in_fp32=BF16_IN_FP32,
    parts=("minimum", "maximum", "mul"),
    opcodes={"T": "SIGN"},
    is_method=True,
)
def sign(a: Tensor) -> Tensor:
    """1, 0 or -1: the element between the least magnitudes of its format, made 1 by products.

    NaN is what the lesser of it and a number is.
    """
    x = check_operand("sign", a)
    if not isinstance(x.dtype.format, FloatFormat):
        return maximum(minimum(x, 1), -1)
    least, factors = _SIGN_STEPS[x.dtype is DataType.DT_FP16]
    wide = cast(x, DataType.DT_FP32) if x.dtype is DataType.DT_BF16 else x
    found = maximum(minimum(wide, least), -least)
    for factor in factors:
        found = mul(found, factor)
    return cast(found, x.dtype)


@_float(
    dtypes=everywhere(*NUMBERS),
    least_dims={"0.2.0": 2},  # vector/math.cpp:1232
    parts=("exp", "add"),
    opcodes={"T": "EXPM1"},
    is_method=True,
)
def expm1(input: Tensor) -> Tensor:
    """exp(x) - 1, in FP32; the result of integers is FP32.

    Returns:
        A tensor of the input's dtype and shape; FP32 of integers.
    """
    x = check_operand("expm1", input)

    def compute(wide: Tensor) -> Tensor:
        return add(exp(wide), -1.0)

    if isinstance(x.dtype.format, FloatFormat):
        return in_fp32(x, compute)
    return compute(cast(x, DataType.DT_FP32))


@_float(
    parts=("add", "div", "log", "mul", "eq", "where"),
    composed_by=RELEASE_NAMES,
    example="pypto.log1p(pypto.abs(y))",
    is_method=True,
)
def log1p(input: Tensor) -> Tensor:
    """The logarithm of x + 1, in FP32: x where that is 1, else log(x + 1) * x / (x + 1 - 1)."""

    def compute(x: Tensor) -> Tensor:
        above = add(x, 1.0)
        ratio = div(x, add(above, -1.0))
        found = mul(elementwise("log", above), ratio)
        is_one, is_infinite = eq(above, 1.0), eq(above, math.inf)
        return where(is_infinite, math.inf, where(is_one, x, found))

    return in_fp32(check_operand("log1p", input), compute)


@_float(opcodes={"T": "LN"}, composed_by=RELEASE_NAMES, example="pypto.log(pypto.abs(y))")
def log(input: Tensor, precision_type: Precision = None) -> Tensor:
    """The natural logarithm; `precision_type` changes no bit on A2/A3."""
    return in_fp32(check_operand("log", input), lambda x: elementwise("log", x))


_other_log = partial(
    _float,
    parts=("log", "div"),
    composed_by=RELEASE_NAMES,
    example="pypto.{name}(pypto.abs(y))",
)


def _log_of_base(name: str, input: object, base: float) -> Tensor:
    divisor = float(np.float32(math.log(base)))

    def compute(x: Tensor) -> Tensor:
        return div(elementwise("log", x), divisor)

    return in_fp32(check_operand(name, input), compute)


@_other_log(is_method=True)
def log2(input: Tensor, precision_type: Precision = None) -> Tensor:
    """The logarithm to base 2: the natural one divided by the FP32 number next to that of 2.

    `precision_type` changes no bit on A2/A3.
    """
    return _log_of_base("log2", input, 2.0)


@_other_log(is_method=True)
def log10(input: Tensor, precision_type: Precision = None) -> Tensor:
    """The logarithm to base 10: the natural one divided by the FP32 number next to that of 10.

    `precision_type` changes no bit on A2/A3.
    """
    return _log_of_base("log10", input, 10.0)


@_float(parts=("sqrt", "div"), composed_by=RELEASE_NAMES, example="pypto.rsqrt(pypto.abs(y))")
def rsqrt(input: Tensor, precision_type: Precision = None) -> Tensor:
    """1 divided by the square root, both in FP32; `precision_type` changes no bit on A2/A3."""

    def compute(x: Tensor) -> Tensor:
        root = sqrt(x)
        return div(_ones(root), root)

    return in_fp32(check_operand("rsqrt", input), compute)


@_float(parts=("mul", "exp", "add", "div"), composed_by=RELEASE_NAMES)
def sigmoid(input: Tensor) -> Tensor:
    """1 / (exp(-x) + 1), in FP32."""

    def compute(x: Tensor) -> Tensor:
        below = add(exp(mul(x, -1.0)), 1.0)
        return div(_ones(below), below)

    return in_fp32(check_operand("sigmoid", input), compute)


@_float(
    parts=("amax", "sub", "exp", "sum", "div"),
    composed_by=RELEASE_NAMES,
    example="pypto.softmax(x, -1)",
)
def softmax(input: Tensor, dim: int) -> Tensor:
    """exp(x - max) / sum(exp(x - max)) along a dimension, in FP32.

    Raises:
        TypeError, ValueError: no dimension of the tensor.
    """

    def compute(x: Tensor) -> Tensor:
        powers = exp(sub(x, amax(x, dim, True)))
        return div(powers, sum(powers, dim, True))

    x = check_operand("softmax", input)
    axis_of("softmax", dim, x.dim)
    return in_fp32(x, compute)


@_float(parts=("mul", "sum", "add", "sqrt", "div"), composed_by=RELEASE_NAMES, is_method=False)
def rms_norm(input: Tensor, gamma: Tensor | None = None, epsilon: float = 1e-6) -> Tensor:
    """x / sqrt(mean(x * x) + epsilon) * gamma along the last dimension, in FP32.

    The squares are multiplied by 1/n before they are added, as upstream does.

    Args:
        gamma: factors of the last dimension; none if not given.
        epsilon: added to the mean of the squares.

    Raises:
        ShapeError: a gamma that has not one element for each of the last dimension.
    """
    x = check_operand("rms_norm", input)
    columns, added = int(x.shape[-1]), real_number("rms_norm", "epsilon", epsilon)
    if gamma is not None and math.prod(check_operand("rms_norm", gamma).shape) != columns:
        raise ShapeError(
            f"rms_norm: gamma has shape {gamma.shape}; the last dimension of {x.shape} needs "
            f"{columns} elements"
        )

    def compute(wide: Tensor) -> Tensor:
        squares = sum(mul(mul(wide, wide), 1.0 / columns), -1, True)
        root = sqrt(add(squares, added))
        result = div(mul(wide, _ones(root)), root)
        if gamma is None:
            return result
        row = reshape(gamma, [1] * (wide.dim - 1) + [columns])
        return mul(result, cast(row, DataType.DT_FP32))

    return in_fp32(x, compute)


def _reciprocal(number: float) -> float:
    """1 / number as C++ computes it of two floats."""
    with np.errstate(divide="ignore"):
        return float(np.float32(1) / np.float32(number))


@_float(
    least_dims={"0.2.0": 2},  # vector/math.cpp
    parts=("div", "sum", "sub", "mul"),
    composed_by=RELEASE_NAMES,
    example="pypto.var(x, -1)",
)
def var(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    correction: float = 1,
    keepdim: bool = False,
) -> Tensor:
    """sum((x - mean)**2 / (n - correction)) over dimensions, in FP32; n - correction is 0 or more.

    The elements are divided by n before they are added, and so are the squares; release 0.2.0
    multiplies by the reciprocals.

    Args:
        input: FP32, FP16 or BF16.
        dim: one dimension or several; all of them if not given.
        correction: taken off the number of elements.
        keepdim: the dimensions stay, with one element; one stays of a result without any.

    Returns:
        A tensor of the input's dtype without the dimensions.

    Raises:
        TypeError: another dtype, or dimensions that are no ints.
        ValueError: a dimension that is not there, or twice, or a correction that is not finite.
    """
    x = check_operand("var", input)
    if not isinstance(dim, int | list | tuple | None):
        raise TypeError(f"var: dim must be an int, several or None, not {dim!r}")
    taken_off = real_number("var", "correction", correction)
    if not math.isfinite(taken_off):
        raise ValueError(f"var: correction must be finite, not {taken_off}")
    stays = flag("var", "keepdim", keepdim)
    given = [dim] if isinstance(dim, int) else list(dim or range(x.dim))
    axes = sorted(axis_of("var", each, x.dim) for each in given)
    if len(set(axes)) < len(axes):
        raise ValueError(f"var: dimensions {given} name one twice")
    count = math.prod(int(x.shape[axis]) for axis in axes)

    multiplies = of_release("var", x.dtype, getattr, "var_multiplies")

    def mean(terms: Tensor, number: float) -> Tensor:
        terms = mul(terms, _reciprocal(number)) if multiplies else div(terms, float(number))
        for axis in axes:
            terms = sum(terms, axis, True)
        return terms

    def compute(wide: Tensor) -> Tensor:
        centre = mean(wide, count)
        shape = list(map(operator.index, centre.shape))
        for axis in axes:
            shape[axis] = int(wide.shape[axis])
            centre = expand_clone(centre, shape)
        apart = sub(wide, centre)
        result = mean(mul(apart, apart), max(0.0, count - taken_off))
        if stays:
            return result
        kept = [k for k in range(x.dim) if k not in axes]
        shape = [int(result.shape[k]) for k in kept]
        return reshape(
            result, shape or [1], valid_shape=[result.valid_shape[k] for k in kept] or [1]
        )

    return in_fp32(x, compute)


_UNSIGNED: Final = (DataType.DT_UINT16, DataType.DT_UINT32)
_triangle_row = partial(
    OperationRow,
    dtypes=everywhere(*NUMBERS, DataType.DT_INT8, ascend_950=_UNSIGNED),
    run_in_fp32=BF16_IN_FP32,
    rounds_on=BF16_ON_950,
    parts=("mul",),
    opcodes={"T": "TRIUL"},
    composed_by=RELEASE_NAMES,
)


@_triangle_row(is_method=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two axes: the product with 1 there, with 0 below.

    So -0 stands below for negative elements, NaN for infinities and NaN.

    Args:
        diagonal: the first one that stays: 0 the main one, above it positive.

    Raises:
        TypeError: a diagonal that is no int.
        ShapeError: fewer than two axes.
    """
    return _triangle("triu", input, diagonal, np.triu)


@_triangle_row(is_method=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two axes: the product with 1 there, with 0 above.

    So -0 stands above for negative elements, NaN for infinities and NaN.

    Args:
        diagonal: the last one that stays: 0 the main one, above it positive.

    Raises:
        TypeError: a diagonal that is no int.
        ShapeError: fewer than two axes.
    """
    return _triangle("tril", input, diagonal, np.tril)


def _triangle(name: str, input: object, diagonal: object, cut: Callable[..., Array]) -> Tensor:
    x = check_operand(name, input)
    first = whole_number(name, "diagonal", diagonal)
    if first.bit_length() > 63:
        raise OverflowError(f"{name}: diagonal {first} is beyond INT64, as which upstream takes it")
    shape = tuple(map(int, x.shape))
    if len(shape) < 2:
        raise ShapeError(f"{name} takes tensors of two axes or more; got {list(shape)}")
    if x.dtype in _UNSIGNED:  # no multiplication has them
        return moved(x, shape, tuple(x.valid_shape), lambda array: cut(array, first))
    wide = cast(x, DataType.DT_FP16) if x.dtype is DataType.DT_INT8 else x
    product = triangular(name, wide, first)
    if wide is x:
        return product
    return cast(product, x.dtype, CastMode.CAST_TRUNC, SaturationMode.ON)


@recording.replayable
def triangular(name: str, x: Tensor, diagonal: int) -> Tensor:
    """The product with 1 in a triangle and 0 beside it, one tile operation upstream."""
    from simulator.arithmetic.indexed.by_place import ones_of_triangle  # loaded when first used

    shape, data = tuple(map(int, x.shape)), None
    if recording.executes():
        kept = ones_of_triangle(name, shape[-2:], diagonal, x.dtype.number_format.dtype)
        data = Enclosure(values=np.broadcast_to(kept, shape))
    mask = Tensor._from_result(shape, x.dtype, data=data, valid=shape)
    with as_one():
        return elementwise("mul", x, mask)


_HALF_PI_RECIPROCAL = 0.63661975
_SCALE = 2048.0
_SCALED_HALF_PI = (1.5708008, -0.0000044535846, -8.706138e-10)
_HALF_PI = (
    *(1.5703125, 0.0004837513, 0.000000075495336, 2.5579538e-12),
    *(5.389786e-15, 5.166901e-19, 3.281839e-22),
)
"""Parts of half of pi, the greatest first, as python/pypto/operator.py has them."""
_FIRST_CLOSE = 2
"""The parts from here on are 0.000000 to upstream's compiler, which takes the first for all."""
_SINE = (2.7183114939898219064e-6, -1.98393348360966317347e-4, 0.0083333293858894631756)
_SINE_TERMS = (*_SINE, -0.166666666416265235595, 1.0)
_COSINE = (2.43904487962774090654e-5, -0.00138867637746099294692, 0.0416666233237390631894)
_COSINE_TERMS = (*_COSINE, -0.499999997251031003120, 1.0)
"""Coefficients, of the highest power first."""


def _nearest(x: Tensor) -> Tensor:
    return cast(x, DataType.DT_FP32, CastMode.CAST_ROUND)


def polynomial(x: Tensor, terms: Sequence[float]) -> Tensor:
    """A polynomial by its coefficients, of the highest power first, as products and sums."""
    found = add(mul(x, terms[0]), terms[1])
    for term in terms[2:]:
        found = add(mul(x, found), term)
    return found


def composed_sine(x: Tensor, shift: float) -> Tensor:
    """The sine of x and of so many quarters of a turn: quarters are taken off, then a polynomial.

    The quarters are told in three numbers, of 2048 * 2048, of 2048 and of 1 (python/pypto/
    operator.py at tag r0.2.0).
    """
    scaled = mul(x, 1 / _SCALE)
    turns = mul(scaled, _HALF_PI_RECIPROCAL)
    nearest = _nearest(turns)
    high = mul(_nearest(mul(turns, 1 / _SCALE)), _SCALE)
    middle = sub(nearest, high)
    rest, counts = scaled, (high, middle)
    for place in range(5):
        rest = sub(rest, mul(counts[place % 2], _SCALED_HALF_PI[place // 2]))
    low = _nearest(mul(mul(rest, _SCALE), _HALF_PI_RECIPROCAL))
    high = mul(high, _SCALE)
    middle = mul(middle, _SCALE)
    rest, most = x, len(_HALF_PI)
    for step in range(most + 2):
        for count, place in ((low, step - 2), (middle, step - 1), (high, step)):
            if 0 <= place < most:
                alike = _HALF_PI[_FIRST_CLOSE:] if place >= _FIRST_CLOSE else ()
                part = Constant(_HALF_PI[place], "mul", alike)
                rest = sub(rest, elementwise("mul", count, part))
    quarters = add(low, shift) if shift else low
    half, quarter = mul(quarters, 0.5), mul(quarters, 0.25)
    half = cast(half, DataType.DT_FP32, CastMode.CAST_FLOOR)
    quarter = cast(quarter, DataType.DT_FP32, CastMode.CAST_FLOOR)
    even = mul(half, -2.0)
    sign = add(add(even, mul(quarter, 4.0)), 1.0)
    is_odd = add(quarters, even)
    is_even = add(mul(is_odd, -1.0), 1.0)
    square = mul(rest, rest)
    sine = mul(rest, polynomial(square, _SINE_TERMS))
    cosine = polynomial(square, _COSINE_TERMS)
    sine = mul(sine, is_even)
    return mul(add(sine, mul(cosine, is_odd)), sign)
