"""Cast and CastLike as functions: a row of policy per kind of pair, a call of the core; routes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dialects.onnx import strings
from pypto_cast.dialects.onnx.types import FORMATS, tensor_type, type_of_dtype
from pypto_cast.dtypes.data_types import DTYPE_OF, CastMode, DataType, TensorType
from pypto_cast.options.context import current
from pypto_cast.routes.cast_routes import RouteError, Routes, routes
from simulator.numbers import elementwise, float_arithmetic, result_memory
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    SATURATE_KEEP_NAN,
    WRAP,
    Conversion,
    Policy,
    canonical_bools,
    values_of,
)
from simulator.numbers.formats import BOOL, FP64, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode

Array = npt.NDArray[Any]

OPSET: Final = 25
_FIRST_OPSET: Final = 6
"""Of the operator with `to` as a number."""
SATURATING_INF_OPSET: Final = 24
"""From here on an infinity saturates in every float8 type, FNUZ too."""

_IEEE: Final = replace(INF_NAN, name="ONNX_FLOAT", keeps_nan_sign=True)
_SATURATED: Final = replace(SATURATE_KEEP_NAN, name="ONNX_SATURATE", keeps_nan_sign=True)
_SATURATED_BUT_INF: Final = replace(_SATURATED, name="ONNX_SATURATE_BUT_INF", keeps_inf=True)

FLOAT8_TYPES: Final = frozenset(
    known for known, fmt in FORMATS.items() if isinstance(fmt, FloatFormat) and fmt.bits == 8
)
"""The destinations that `saturate` is for."""
_SCALE_MODES: Final[Mapping[str, RoundMode]] = {
    "up": RoundMode.CEIL,
    "down": RoundMode.FLOOR,
    "nearest": RoundMode.ROUND,
}
"""round_mode of Cast-24; E8M0 has no negative numbers, so "away from zero" is upward."""


def cast(
    x: npt.ArrayLike,
    to: object,
    *,
    saturate: bool = True,
    round_mode: str = "up",
    opset: int = OPSET,
) -> Array:
    """Convert a tensor to another element type, as ONNX Cast does.

    To float16, bfloat16, float, double: nearest, ties to even; out of range infinity. To the four
    float8 types of numbers: nearest, ties to even; out of range, and infinity, become the largest
    number of that sign if `saturate`, else infinity where there is one (E5M2) and NaN elsewhere.
    NaN stays NaN with its sign; -0 stays -0 except in FNUZ types. To bool: false for +-0, true for
    all else, NaN too. Float to integer: truncated; out of range clamped, NaN 0 (the operator's text
    leaves both open). Integer to integer: the low bits. Float to a 4-bit or 2-bit integer:
    truncated, then the low bits. Text is read and written as `pypto_cast.dialects.onnx` says.
    Every result is rounded once.

    Long arrays are shared among the threads of `pypto_cast.options(threads=...)`.

    Args:
        x: array, scalar or nested list, any shape, strides and byte order; text as str, bytes,
            object or StringDType. Not modified.
        to: a number of TensorProto.DataType or its name, or a numpy or ml_dtypes dtype.
        saturate: for float8 destinations only.
        round_mode: "up", "down" or "nearest" (ties up); for FLOAT8E8M0 only.
        opset: whose text decides what infinity becomes in a saturating FNUZ type: NaN up to 23, the
            largest number from 24 on. Nothing else depends on it, and no type is refused for it.

    Returns:
        A new array of the same shape; numbers in numpy's or ml_dtypes' dtype, text as object.

    Raises:
        TypeError: a complex type or one that ONNX does not have; an argument of the wrong type.
        ValueError: a text that is no number (with its index), `to` or `round_mode` unknown, an
            opset below 6.

    Source: ONNX Cast-19 to Cast-28; TensorProto; the node tests of onnx 1.23.2.
    """
    dst = tensor_type(to)
    _check_options(saturate, round_mode, opset)
    newer = opset >= SATURATING_INF_OPSET
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("x is a masked array, whose mask would be lost; fill it first")
    array = canonical_bools(np.asarray(x))
    src = type_of_dtype(array.dtype)
    if src is TensorType.STRING:
        texts = strings.texts_of(array)
        if dst is TensorType.STRING:
            return texts
        mode, policy = _rule(FP64, dst, bool(saturate), round_mode, newer)
        if isinstance(FORMATS[dst], IntFormat):
            policy = SATURATE
        return strings.to_numbers(texts, FORMATS[dst], mode, policy)
    if dst is TensorType.STRING:
        return strings.from_numbers(array, FORMATS[src])
    if src is dst:
        copied = np.array(array, FORMATS[dst].dtype, order="C")
        if saturate and dst is TensorType.FLOAT8E5M2:
            # The one type that saturates and has infinities, which follow its largest numbers.
            codes = copied.view(FORMATS[dst].code_dtype)
            codes[np.isinf(copied)] -= 1
        return copied
    conversion = _conversion(src, dst, bool(saturate), round_mode, newer)
    out = result_memory.empty(array.size, conversion.dst.code_dtype)
    context = current()
    elementwise.run((conversion,), array, out, engine=context.converter, threads=context.threads)
    return values_of(out, conversion.dst).reshape(array.shape)


def cast_like(
    x: npt.ArrayLike,
    target_type: npt.ArrayLike,
    *,
    saturate: bool = True,
    round_mode: str = "up",
    opset: int = OPSET,
) -> Array:
    """Convert a tensor to the element type of another one, as ONNX CastLike does.

    Args:
        x: as for `cast`.
        target_type: array whose element type is taken; its shape and values play no part.
        saturate: as for `cast`.
        round_mode: as for `cast`.
        opset: as for `cast`.

    Returns:
        What `cast` gives.

    Raises:
        TypeError: as for `cast`.
        ValueError: as for `cast`.

    Source: ONNX CastLike-15 to CastLike-25.
    """
    to = type_of_dtype(np.asarray(target_type).dtype)
    return cast(x, to, saturate=saturate, round_mode=round_mode, opset=opset)


def cast_grad(dy: npt.ArrayLike, x: npt.ArrayLike, lda_coeff: float = 1.0) -> Array:
    """Bring the gradient of a cast's output back to the type of its input, scaled.

    No part of the ONNX operator: toolkits that train scale what goes to the previous layer by such
    a coefficient. A coefficient of 1 leaves a plain cast; any other multiplies in double precision,
    and the product is rounded to the type of `x`. Infinity and -0 follow IEEE 754; of NaN there is
    then one, a positive one.

    Args:
        dy: gradient of the output, of a float type, any shape.
        x: the input of the cast, or any array of its type, which is a float type.
        lda_coeff: the factor.

    Returns:
        A new array of dy's shape and x's type; float8 is not saturated, as a gradient that
        overflows has to be noticed.

    Raises:
        TypeError: a type without gradients: integers, bool, text, complex.
    """
    gradient = np.asarray(dy)
    to = type_of_dtype(np.asarray(x).dtype)
    for name, held in (("dy", type_of_dtype(gradient.dtype)), ("x", to)):
        if not isinstance(FORMATS.get(held), FloatFormat):
            raise TypeError(f"{name} holds {held.name}; only float types have gradients")
    if lda_coeff != 1:
        factor = np.array(lda_coeff, np.float64)
        gradient = float_arithmetic.correctly_rounded(
            np.multiply, cast(gradient, TensorType.DOUBLE), factor, FP64
        )
        gradient[np.isnan(gradient)] = np.nan
    return cast(gradient, to, saturate=False)


def _check_options(saturate: object, round_mode: object, opset: object) -> None:
    if saturate not in (True, False):
        raise ValueError(f"saturate must be True or False (1 or 0), not {saturate!r}")
    if round_mode not in _SCALE_MODES:
        raise ValueError(f"round_mode must be one of {list(_SCALE_MODES)}, not {round_mode!r}")
    if isinstance(opset, bool) or not hasattr(opset, "__index__"):
        raise TypeError(f"opset must be an integer, not {opset!r}")
    if operator.index(opset) < _FIRST_OPSET:
        raise ValueError(
            f"opset must be at least {_FIRST_OPSET}, the first whose Cast takes `to` "
            f"as a number, not {opset!r}"
        )


def conversions(
    src: Format, dst: Format, *, saturate: bool = True, opset: int = OPSET
) -> tuple[Conversion, ...]:
    """The one conversion of a pair of numbers; () of a type to itself."""
    if src is dst:
        return ()
    types = {fmt: number for number, fmt in FORMATS.items()}
    newer = opset >= SATURATING_INF_OPSET
    return (_conversion(types[src], types[dst], saturate, "up", newer),)


@functools.cache
def _conversion(
    src: TensorType, dst: TensorType, saturate: bool, round_mode: str, inf_saturates: bool
) -> Conversion:
    mode, policy = _rule(FORMATS[src], dst, saturate, round_mode, inf_saturates)
    return Conversion(src=FORMATS[src], dst=FORMATS[dst], mode=mode, policy=policy)


def _rule(
    src: Format, to: TensorType, saturate: bool, round_mode: str, inf_saturates: bool
) -> tuple[RoundMode, Policy]:
    """Return the round mode of a pair and its policy out of range."""
    dst = FORMATS[to]
    if isinstance(dst, IntFormat):
        low_bits = isinstance(src, IntFormat) or dst.bits < 8
        return RoundMode.TRUNC, WRAP if low_bits else SATURATE
    mode = _SCALE_MODES[round_mode] if dst.is_scale else RoundMode.RINT
    if to not in FLOAT8_TYPES or not saturate:
        return mode, _IEEE
    if dst.nan_is_negative_zero and not inf_saturates:
        return mode, _SATURATED_BUT_INF
    return mode, _SATURATED


def route(src: object, to: object) -> Routes:
    """The chains of native casts that give the codes of an ONNX Cast, the best first.

    ONNX keeps the low bits from integer to integer and of 4-bit integers, which no chain does: the
    routes are then about the values that the destination holds (`values`). NaN counts as a class:
    ONNX keeps its sign in floats, and A2/A3 write one NaN.

    Args:
        src: the element type of the input, as `cast` takes `to`.
        to: the element type of the result, likewise.

    Returns:
        `pypto.routes` of both types in ONNX's rounding: nearest even to floats, truncated to
        integers.

    Raises:
        TypeError: a type that ONNX does not have.
        ValueError: an unknown name; RouteError: a type that A2/A3 cast nothing from or to, text
            among them, or equal types.

    Source: ONNX Cast-28, as `cast` reads it.
    """
    source, target = tensor_type(src), tensor_type(to)
    ends = [_dtype_of(one) for one in (source, target)]
    dst = FORMATS[target]
    mode, policy = _rule(FORMATS[source], target, True, "up", True)
    values = None
    if isinstance(dst, IntFormat) and dst is not BOOL and policy.overflow.keeps_low_bits:
        values = (dst.min, dst.max)
    return routes(ends[0], ends[1], CastMode[f"CAST_{mode}"], values=values)


def _dtype_of(element: TensorType) -> DataType:
    fmt = FORMATS.get(element)
    if fmt is not None and fmt in DTYPE_OF:
        return DTYPE_OF[fmt]
    raise RouteError(f"pypto has no dtype for {element.name}, so there is no route from or to it")
