"""The values of tile operations that are no single row of the table of operations.

They have instructions of the table inside, one after another; which ones is public. Source:
upstream pypto at tag r0.2.0, framework/src/interface/tileop/vector: unary.h, sign.h, copysign.h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator import arithmetic
from simulator.arithmetic import EXACT, OPERATIONS, Enclosure
from simulator.arithmetic.special_steps import OF_ONE, OF_TWO, Steps, hypot_of_squares
from simulator.numbers.convert import INF_NAN, SATURATE, Conversion
from simulator.numbers.formats import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    FloatFormat,
    Format,
    IntFormat,
)
from simulator.numbers.rounding import RoundMode

Values = npt.NDArray[Any]
_Chain = tuple[tuple[str, float | None], ...]
"""Rows of the table of operations, each on the last result and, if there is one, a number."""


def _sign(least: float, *factors: float) -> _Chain:
    return (("minimum", least), ("maximum", -least), *(("mul", factor) for factor in factors))


_LOG_2: Final = float(
    arithmetic.evaluate(
        OPERATIONS["log"], [Enclosure(values=np.full(1, 2, np.float32))], FP32, trust=EXACT
    ).values[0]
)
CHAINS: Final[Mapping[str, Mapping[Format, _Chain]]] = MappingProxyType(
    {
        "integral": {FP32: (("round", None),), FP16: (("round", None),)},
        "exp2": {FP32: (("mul", _LOG_2), ("exp", None))},
        "expm1": {FP32: (("exp", None), ("add", -1.0))},
        "sign": {
            FP32: _sign(2.0**-126, 2.0**62, 2.0**62, 4.0),
            FP16: _sign(2.0**-24, 2.0**12, 2.0**12),
            INT32: _sign(1),
            INT16: _sign(1),
        },
    }
)
"""By name and by the format that the instructions run in; other floats are converted to FP32."""
_BITS: Final[Mapping[Format, IntFormat]] = MappingProxyType(
    {FP32: UINT32, FP16: UINT16, BF16: UINT16}
)


def evaluated(function: str, operands: Sequence[Values], fmt: Format) -> Values:
    """The values of an operation: a row of the table, a chain of rows, or a sign.

    Args:
        function: a name in `OPERATIONS`, `CHAINS` or `special_steps`, or "copysign", "isfinite",
            "expand_exp_dif" or "axpy". Special functions of floats run in FP32.
        operands: arrays of the format's numpy dtype; a condition is BOOL. "integral" may have a
            power of ten besides.
        fmt: the format of the operands.

    Raises:
        ValueError: operands or a format that it does not take.
    """
    if function == "copysign":
        return _with_sign(operands, fmt)
    if function == "isfinite":
        return _is_finite(operands, fmt)
    if function == "expand_exp_dif":
        return evaluated("exp", (evaluated("sub", operands, fmt),), fmt)
    if function == "axpy":
        y, x, alpha = operands
        return evaluated("add", (evaluated("mul", (x, alpha), fmt), y), fmt)
    if isinstance(fmt, FloatFormat) and function in (*OF_ONE, *OF_TWO):
        return _special(function, operands, fmt)
    if function == "remainder":
        return _remainder(operands)
    if function == "floor_div" and fmt in (INT8, UINT8):
        return _quotient_of_bytes(operands, fmt)
    if function == "integral" and len(operands) > 1:
        return _multiple(operands, fmt)
    if function not in CHAINS:
        given = [Enclosure(values=each) for each in operands]
        return arithmetic.evaluate(OPERATIONS[function], given, fmt, trust=EXACT).values
    chains = CHAINS[function]
    (values,) = operands
    runs_in = fmt if fmt in chains else FP32
    values = _converted(values, fmt, runs_in)
    for name, number in chains[runs_in]:
        more = () if number is None else (np.array(number, np.float64).astype(runs_in.dtype),)
        values = evaluated(name, (values, *more), runs_in)
    is_wide = function in ("exp2", "expm1") and isinstance(fmt, IntFormat)
    return values if is_wide else _converted(values, runs_in, fmt)


def _multiple(operands: Sequence[Values], fmt: Format) -> Values:
    """The nearest multiple of 1 / power, in FP32; of other formats of 1 alone."""
    values, power = operands
    if power == 1:
        return evaluated("integral", (values,), fmt)
    if fmt is not FP32:
        raise ValueError(f"{fmt} is rounded to integers; the number is {power}, not 1")
    return _run("div", _run("round", _run("mul", values, power)), power)


def _run(name: str, *operands: Values | float) -> Values:
    given = [each if isinstance(each, np.ndarray) else np.float32(each) for each in operands]
    truths = name in ("logical_and", "logical_not")
    arrays = [np.asarray(each) for each in given]
    return evaluated(name, arrays, BOOL if truths else FP32)


def _filled(like: Values, value: float) -> Values:
    return np.full(like.shape, value, np.float32)


def _whole(values: Values, mode: RoundMode) -> Values:
    step = Conversion(src=FP32, dst=INT32, mode=mode, policy=SATURATE)
    return arithmetic.cast((step,), Enclosure(values=values)).values


def _integral(values: Values, mode: RoundMode) -> Values:
    return _converted(_whole(values, mode), INT32, FP32)


ON_ARRAYS: Final[Steps[Values]] = Steps(run=_run, filled=_filled, integral=_integral)


def _remainder(operands: Sequence[Values]) -> Values:
    """The remainder of INT32, divided in FP32 and with the divisor's sign; tiles go by FP32."""
    wide = [_converted(each, INT32, FP32) for each in operands]
    count = _whole(_run("div", *wide), RoundMode.FLOOR)
    x, y = (
        _whole(found, RoundMode.RINT) if each.ndim else each
        for found, each in zip(wide, operands, strict=True)
    )
    product = evaluated("mul", (count, y), INT32)
    rest = _converted(evaluated("sub", (x, product), INT32), INT32, FP32)
    other = _converted(y, INT32, FP32)
    is_other = _run("lt", _run("mul", rest, other), 0.0)
    found = _run("where", is_other, _run("add", rest, other), rest)
    return _whole(found, RoundMode.TRUNC)


def _quotient_of_bytes(operands: Sequence[Values], fmt: Format) -> Values:
    """The floor of a quotient in FP32, which goes back by way of FP16 and clamps."""
    quotient = OF_TWO["floor_div"](ON_ARRAYS, *(_converted(each, fmt, FP32) for each in operands))
    steps = (
        Conversion(src=FP32, dst=FP16, mode=RoundMode.FLOOR, policy=INF_NAN),
        Conversion(src=FP16, dst=fmt, mode=RoundMode.FLOOR, policy=SATURATE),
    )
    return arithmetic.cast(steps, Enclosure(values=quotient)).values


def _special(function: str, operands: Sequence[Values], fmt: FloatFormat) -> Values:
    wide = [np.asarray(_converted(np.asarray(each), fmt, FP32)) for each in operands]
    if function == "hypot" and fmt is not FP32:
        found = hypot_of_squares(ON_ARRAYS, *wide)
    elif function in OF_ONE:
        found = OF_ONE[function](ON_ARRAYS, *wide)
    else:
        found = OF_TWO[function](ON_ARRAYS, *wide)
    return found if found.dtype == np.bool_ else _converted(found, FP32, fmt)


def _converted(values: Values, src: Format, dst: Format) -> Values:
    """Widen exactly, or round to the nearest."""
    if src is dst:
        return values
    step = Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=INF_NAN)
    return arithmetic.cast((step,), Enclosure(values=values)).values


def _with_sign(operands: Sequence[Values], fmt: Format) -> Values:
    """The bits of the first operand with the sign of the second."""
    if fmt not in _BITS:
        raise ValueError(f"copysign does not run in {fmt}")
    whole = _BITS[fmt]
    sign = 1 << (whole.bits - 1)
    magnitude, signs = (
        evaluated("bitwise_and", (each.view(whole.dtype), np.array(mask, whole.dtype)), whole)
        for each, mask in zip(operands, (sign - 1, sign), strict=True)
    )
    return evaluated("bitwise_or", (magnitude, signs), whole).view(fmt.dtype)


def _is_finite(operands: Sequence[Values], fmt: Format) -> Values:
    """True where a bit of the exponent is 0, of a float of 16 bits."""
    if not isinstance(fmt, FloatFormat) or fmt.bits != UINT16.bits:
        raise ValueError(f"isfinite runs in floats of 16 bits, not in {fmt}")
    (values,) = operands
    exponent = fmt.dtype.type(np.inf).view(UINT16.dtype)
    return np.asarray((values.view(UINT16.dtype) & exponent) != exponent)
