"""ONNX casts as chains of native casts of A2/A3."""

from __future__ import annotations

from pypto_cast.dialects.onnx.cast import rounding_of
from pypto_cast.dialects.onnx.types import FORMATS, TensorType, tensor_type
from pypto_cast.dtypes.data_types import CastMode, DataType
from pypto_cast.routes.cast_routes import RouteError, Routes, routes
from simulator.numbers.convert import Overflow
from simulator.numbers.formats import BOOL, IntFormat


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
    mode, policy = rounding_of(source, target)
    dst = FORMATS[target]
    values = None
    if isinstance(dst, IntFormat) and dst is not BOOL and policy.overflow is Overflow.WRAP:
        values = (dst.min, dst.max)
    return routes(ends[0], ends[1], CastMode[f"CAST_{mode}"], values=values)


def _dtype_of(element: TensorType) -> DataType:
    fmt = FORMATS.get(element)
    for dtype in DataType:
        if fmt is not None and dtype.format is fmt:
            return dtype
    raise RouteError(f"pypto has no dtype for {element.name}, so there is no route from or to it")
