"""pypto's powers and its circular, hyperbolic and error functions, step by step as upstream's.

Each is one tile operation upstream, on FP32 inside. A polynomial is that of the device, not a
better one: the results are the device's where its steps are certain, and where products, sums,
quotients, roots, exp and log are open, so are they.
Sources: upstream pypto, framework/src/interface/tileop/vector/{unary,binary,atan,atanh,hypot,tan,
tanh}.h for A2/A3 (__DAV_V220) and framework/src/interface/operation/vector/{unary,math,binary}.cpp.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.operations.composites import composed_sine, filled, in_fp32
from pypto_cast.operations.elementwise_functions import (
    abs,
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
from pypto_cast.operations.lowering import check_alike, check_operand, of_release
from pypto_cast.operations.operation_rows import (
    BF16_IN_FP32,
    BYTES,
    FLOATS,
    OperationRow,
    everywhere,
)
from pypto_cast.operations.scalar_operands import integer, number
from pypto_cast.operations.truth_and_bits import (
    eq,
    ge,
    gt,
    le,
    logical_and,
    logical_not,
    lt,
    ne,
    signbit,
)
from pypto_cast.options.releases import RELEASES
from pypto_cast.recording import recording
from pypto_cast.tensors.operators import Precision
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.tensors.undecided import value_of
from simulator.arithmetic import special_steps
from simulator.numbers.rounding import RoundMode

_function = partial(
    OperationRow,
    dtypes=everywhere(*FLOATS),
    lacked_by=("0.2.0",),
    example="pypto.{name}(pypto.div(x, 9.0))",
)


_INSTRUCTIONS: Final[Mapping[str, Callable[..., Tensor]]] = {
    **{each.__name__: each for each in (add, sub, mul, div, maximum, minimum, abs, exp, sqrt)},
    **{each.__name__: each for each in (eq, ne, lt, le, gt, ge, where)},
    **{each.__name__: each for each in (logical_and, logical_not)},
    **{name: partial(elementwise, name) for name in ("log", "floor", "signbit")},
}


def _run(name: str, *operands: Tensor | float) -> Tensor:
    running = recording.current()
    with contextlib.nullcontext() if running is None else running.numbers.inside():
        return _INSTRUCTIONS[name](*operands)


_MODES: Final = {each.round_mode: each for each in CastMode}


def _integral(x: Tensor, mode: RoundMode) -> Tensor:
    whole = cast(x, DataType.DT_INT32, _MODES[mode], SaturationMode.ON)
    return cast(whole, DataType.DT_FP32, CastMode.CAST_RINT)


ON_TENSORS: Final = special_steps.Steps(run=_run, filled=filled, integral=_integral)
"""The steps on tensors, with their intervals."""


def _stepwise(steps: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    """The steps of a function of several operands, carried out together."""
    with together():
        return steps(ON_TENSORS, *operands)


def _carried_out(
    name: str, input: object, steps: Callable[[special_steps.Steps[Tensor], Tensor], Tensor]
) -> Tensor:
    return in_fp32(check_operand(name, input), lambda x: steps(ON_TENSORS, x))


@_function(
    parts=("mul", "add", "minimum", "exp", "div", "abs", "lt", "where"),
    opcodes={"T": "TANH"},
    is_method=True,
)
def tanh(a: Tensor) -> Tensor:
    """The hyperbolic tangent: a polynomial below 0.55, else (e**2x - 1) / (e**2x + 1).

    NaN of NaN; 1 and -1 of infinities.
    """

    return _carried_out("tanh", a, special_steps.tanh)


@_function(
    parts=("abs", "mul", "add", "exp", "sub", "lt", "where", "ge"),
    opcodes={"T": "SINH"},
    is_method=True,
)
def sinh(input: Tensor) -> Tensor:
    """The hyperbolic sine: a polynomial below 0.48, else by e**(x / 2) and e**(-3x / 2).

    +0 of both zeros; NaN of NaN; infinities of infinities.
    """

    return _carried_out("sinh", input, special_steps.sinh)


@_function(
    parts=("abs", "mul", "exp", "add"),
    opcodes={"T": "COSH"},
    is_method=True,
)
def cosh(input: Tensor) -> Tensor:
    """The hyperbolic cosine, by e**(x / 2) and e**(-3x / 2); infinity of infinities."""
    return _carried_out("cosh", input, special_steps.cosh)


@_function(
    parts=("minimum", "maximum", "mul", "add", "div"),
    opcodes={"T": "ERF"},
)
def erf(self: Tensor) -> Tensor:
    """The error function: a quotient of polynomials of x between -3.92 and 3.92."""

    return _carried_out("erf", self, special_steps.erf)


@_function(
    parts=("minimum", "maximum", "abs", "add", "div", "mul", "exp"),
    opcodes={"T": "ERFC"},
    is_method=True,
)
def erfc(input: Tensor) -> Tensor:
    """1 minus the error function: e**(-x * x) times a quotient of polynomials of abs(x).

    x is clipped to -10 and 10, so that the result of all greater ones is that of 10.
    """

    return _carried_out("erfc", input, special_steps.erfc)


_circle = partial(
    OperationRow,
    dtypes=everywhere(*(each for each in FLOATS if each is not DataType.DT_BF16)),
    takes={"0.2.0": (DataType.DT_BF16,)},  # which casts it first; vector/unary.cpp:469 at head
    parts=("mul", "sub", "add"),
    composed_by=("0.2.0",),
    is_method=True,
)


def _circular(
    name: str,
    input: object,
    steps: Callable[[special_steps.Steps[Tensor], Tensor], Tensor],
    shift: float,
) -> Tensor:
    x = check_operand(name, input)
    if of_release(name, x.dtype, getattr, "composes_sine"):
        return in_fp32(x, partial(composed_sine, shift=shift))
    return _carried_out(name, x, steps)


@_circle(opcodes={"T": "SIN"})
def sin(input: Tensor) -> Tensor:
    """The sine of an angle in radians, in FP32; NaN of infinities.

    Multiples of pi are taken off by its parts, then a polynomial. Release 0.2.0 composes it of
    products and sums, where it takes quarters of a turn off.
    """
    return _circular("sin", input, special_steps.sin, 0.0)


@_circle(opcodes={"T": "COS"})
def cos(input: Tensor) -> Tensor:
    """The cosine of an angle in radians, in FP32; NaN of infinities. See `sin`."""
    return _circular("cos", input, special_steps.cos, 1.0)


@_function(
    parts=("mul", "sub", "add", "div"),
    opcodes={"T": "TAN"},
)
def tan(x: Tensor) -> Tensor:
    """The tangent of an angle in radians; NaN of infinities.

    Multiples of pi are taken off by its parts, then a quotient whose lower side is the distance
    from half of pi on either side.

    Args:
        x: FP32, FP16 or BF16.
    """

    return _carried_out("tan", x, special_steps.tan)


@_function(
    parts=("abs", "mul", "add", "sqrt", "le", "where", "ge"),
    opcodes={"T": "ASIN"},
)
def asin(self: Tensor) -> Tensor:
    """The arc sine in radians; NaN beyond 1 on either side, +0 of both zeros."""
    return _carried_out("asin", self, special_steps.asin)


@_function(
    parts=("abs", "mul", "add", "sqrt", "le", "where", "ge"),
    opcodes={"T": "ACOS"},
)
def acos(self: Tensor) -> Tensor:
    """The arc cosine in radians, half of pi less the arc sine; NaN beyond 1 on either side."""

    return _carried_out("acos", self, special_steps.acos)


@_function(
    parts=("abs", "gt", "div", "where", "mul", "add", "ge"),
    opcodes={"T": "ATAN"},
)
def atan(self: Tensor) -> Tensor:
    """The arc tangent in radians; +0 of both zeros, half of pi of infinity."""
    return _carried_out("atan", self, special_steps.atan)


@_function(
    parts=("div", "ne", "where", "mul", "abs", "gt", "add", "ge", "signbit", "logical_not", "lt"),
    opcodes={"TT": "ATAN2"},
    example="pypto.atan2(y, x)",
)
def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of the point (x, y) in radians, between -pi and pi.

    Where x is 0 it is half of pi with the sign of y, and +0 where y is 0 too. NaN where either is.

    Args:
        y: FP32, FP16 or BF16.
        x: of the same dtype; shapes broadcast.
    """
    tensors = [check_operand("atan2", each) for each in (y, x)]
    check_alike("atan2", tensors[0].dtype, tensors[1])
    top, bottom = (cast(each, DataType.DT_FP32) for each in tensors)
    found = _stepwise(special_steps.atan2, top, bottom)
    return cast(found, tensors[0].dtype, CastMode.CAST_NONE)


@_function(
    parts=("abs", "div", "mul", "add", "sqrt", "log", "maximum", "minimum", "lt", "where", "ge"),
    opcodes={"T": "ASINH"},
    is_method=True,
)
def asinh(input: Tensor) -> Tensor:
    """The inverse of the hyperbolic sine; abs(x) itself below 0.000244, +0 of both zeros."""

    return _carried_out("asinh", input, special_steps.asinh)


@_function(
    parts=("add", "mul", "sqrt", "log", "maximum", "minimum", "div"),
    opcodes={"T": "ACOSH"},
    example="pypto.acosh(pypto.add(pypto.abs(y), 1.0))",
    is_method=True,
)
def acosh(input: Tensor) -> Tensor:
    """The inverse of the hyperbolic cosine; NaN below 1."""

    return _carried_out("acosh", input, special_steps.acosh)


@_function(
    parts=("abs", "mul", "add", "div", "minimum", "log", "eq", "where", "lt"),
    opcodes={"T": "ATANH"},
)
def atanh(input: Tensor) -> Tensor:
    """The inverse of the hyperbolic tangent; infinity of 1 and -1, NaN beyond."""

    return _carried_out("atanh", input, special_steps.atanh)


@OperationRow(
    parts=("abs", "maximum", "add", "minimum", "div", "mul", "sqrt"),
    dtypes=everywhere(*FLOATS),
    opcodes={"TT": "HYPOT"},
    is_method=True,
)
def hypot(self: Tensor, other: Tensor) -> Tensor:
    """The root of the sum of two squares.

    FP32: the greater magnitude plus 1e-9, times the root of 1 plus the square of their quotient, so
    that two zeros give 1e-9. FP16 and BF16 are squared in FP32.
    """
    tensors = [check_operand("hypot", each) for each in (self, other)]
    check_alike("hypot", tensors[0].dtype, tensors[1])
    if tensors[0].dtype is not DataType.DT_FP32:
        x, y = (cast(each, DataType.DT_FP32) for each in tensors)
        root = _stepwise(special_steps.hypot_of_squares, x, y)
        return cast(root, tensors[0].dtype, CastMode.CAST_NONE)
    return _stepwise(special_steps.hypot, *tensors)


@OperationRow(
    parts=("abs", "mul", "signbit", "where"),
    dtypes=everywhere(*FLOATS, DataType.DT_INT16, DataType.DT_INT32),
    run_in_fp32=BF16_IN_FP32,
    cast_to_fp32=dict.fromkeys(RELEASES, (DataType.DT_INT16, DataType.DT_INT32)),
    opcodes={"TT": "COPYSIGN"},
    remark="the sign of NaN is open",
    example="pypto.copysign(x, y)",
)
def copysign(input: Tensor, other: Tensor) -> Tensor:
    """The magnitude of one and the sign of the other, also of -0; of integers in FP32.

    Either sign of a NaN: upstream takes the bit, which no page states.

    Args:
        input, other: of one dtype; shapes broadcast.

    Returns:
        A tensor of the dtype of floats; FP32 of integers.
    """
    tensors = [check_operand("copysign", each) for each in (input, other)]
    check_alike("copysign", tensors[0].dtype, tensors[1])
    if tensors[0].dtype not in FLOATS:
        tensors = [cast(each, DataType.DT_FP32) for each in tensors]
    magnitude = abs(tensors[0])
    return where(signbit(tensors[1]), mul(magnitude, -1.0), magnitude)


_POWER_EPS = 1e-9
"""Exponents nearer than this are one."""


def _by_squares(x: Tensor, exponent: int) -> Tensor:
    """A whole power as release 0.2.0 multiplies it, by the bits of the exponent."""
    found = cast(filled(x, 1.0), x.dtype)
    current = mul(x, found)
    while exponent:
        if exponent % 2:
            found = mul(found, current)
        current = mul(current, current)
        exponent //= 2
    return found


def _power_of_number(x: Tensor, exponent: float) -> Tensor:
    """A power of FP32 elements; some exponents are roots, products and quotients."""

    def near(power: float) -> bool:
        return math.fabs(exponent - power) < _POWER_EPS

    whole = of_release("pow", x.dtype, getattr, "powers_by_products")
    if near(0.5):
        return sqrt(x)
    if near(2.0):
        return mul(x, x)
    if near(3.0):
        return mul(mul(x, x), x)
    if whole:
        most = math.fabs(exponent)
        if most % 1 < _POWER_EPS:  # not of NaN and infinity
            found = _by_squares(x, math.floor(most))
        else:
            found = exp(mul(elementwise("log", x), most))
        return div(filled(x, 1.0), found) if exponent < 0 else found
    for power, root in ((-0.5, sqrt), (-2.0, lambda each: mul(each, each)), (-1.0, None)):
        if near(power):
            return div(filled(x, 1.0), x if root is None else root(x))
    return special_steps.power(ON_TENSORS, x, filled(x, exponent))


_POWER_PARTS = (
    *("abs", "log", "mul", "exp", "floor", "add"),
    *("eq", "lt", "logical_and", "where", "ne", "gt"),
)
_POWERS = (*FLOATS, DataType.DT_INT32, DataType.DT_INT16, *BYTES)


@OperationRow(
    parts=_POWER_PARTS,
    dtypes=everywhere(*_POWERS),
    refuses={"0.2.0": (DataType.DT_INT16, *BYTES)},  # docs/api/operation/pypto-pow.md
    cast_to_fp32=dict.fromkeys(
        RELEASES, (DataType.DT_FP16, DataType.DT_BF16)
    ),  # vector/math.cpp:285 in 0.2.0
    opcodes={"TT": "POW", "TS": "POWS"},
    composed_with_numbers=("0.2.0",),
    example="pypto.pow(x, 2)",
)
def pow(input: Tensor, other: Tensor | int | float, precision_type: Precision = None) -> Tensor:
    """Each element to a power; `precision_type` changes no bit on A2/A3.

    Floats: exp(other * log(abs(input))) in FP32, with the sign of an odd power; NaN of a finite
    negative element and an exponent that is no integer; 1 where the exponent is 0 or the element 1.
    The numbers 0.5, 2, 3, -0.5, -1 and -2 are roots, products and quotients. Integers are
    multiplied in INT32, which wraps; 0 of negative exponents but of 1 and -1. Release 0.2.0
    multiplies for every whole number, and has no special case for negative elements.

    Args:
        other: a tensor of the dtypes below, of integers beside integers; or a number.

    Returns:
        A tensor of the input's dtype beside numbers, but FP32 of INT32 and INT16 to a float other
        than 0; of two dtypes the wider one, FP32 of FP16 and BF16.

    Raises:
        TypeError: an exponent that is no tensor or number, or a float for INT8 or UINT8.
        OverflowError: an int that the dtype does not hold.
    """
    x = check_operand("pow", input)
    if isinstance(other, Tensor):
        return _power_of_tensor(x, check_operand("pow", other))
    if isinstance(other, bool) or not isinstance(other, (int, float)):
        raise TypeError(f"pow takes a tensor, an int or a float as exponent, not {other!r}")
    if x.dtype not in FLOATS:
        if isinstance(other, int):
            return elementwise("pow", x, integer("pow", other, x.dtype))
        if x.dtype not in (DataType.DT_INT32, DataType.DT_INT16):
            raise TypeError(f"pow: {x.dtype} takes an int or a tensor as exponent, not {other!r}")
    exponent = value_of(number("pow", other, DataType.DT_FP32).value)
    if math.fabs(exponent) < _POWER_EPS:
        return cast(filled(x, 1.0), x.dtype)
    if x.dtype not in FLOATS:
        x = cast(x, DataType.DT_FP32)
    return in_fp32(x, lambda wide: _power_of_number(wide, float(exponent)))


def _power_of_tensor(x: Tensor, y: Tensor) -> Tensor:
    dtypes = (x.dtype, y.dtype)
    if not any(dtype in FLOATS for dtype in dtypes):
        check_alike("pow", x.dtype, y)
        return elementwise("pow", x, y)
    floats = [dtype for dtype in dtypes if dtype is not DataType.DT_INT32]
    if any(dtype not in FLOATS for dtype in floats):
        raise TypeError(f"pow takes no {dtypes[0]} beside {dtypes[1]}; cast one")
    result = floats[0] if len({*floats}) == 1 else DataType.DT_FP32
    wide = (cast(each, DataType.DT_FP32) for each in (x, y))
    found = _stepwise(special_steps.power, *wide)
    return cast(found, result, CastMode.CAST_NONE)


@OperationRow(
    parts=(*_POWER_PARTS, "signbit"),
    dtypes=everywhere(*FLOATS),
    composed_by=("0.2.0",),
)
def cbrt(self: Tensor) -> Tensor:
    """The cube root: the magnitude to the power of 1/3, with the sign of the element.

    0 keeps its sign; exp and log leave the last places of roots open, so of 8 too.
    """
    x = check_operand("cbrt", self)
    return recording.replayable(copysign)(pow(abs(x), 1.0 / 3.0), x)
