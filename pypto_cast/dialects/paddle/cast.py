"""paddle.cast on numpy arrays: Paddle's dtypes, a policy per kind of pair, a call of the core."""

from __future__ import annotations

import enum
import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes.data_types import ROWS, DtypeRow
from pypto_cast.dtypes.names import Names, spelled, text_of
from pypto_cast.options.context import current
from simulator.numbers import elementwise, result_memory
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    WRAP,
    Conversion,
    Policy,
    canonical_bools,
    values_of,
)
from simulator.numbers.formats import BF16, BOOL, FP16, FP32, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode


class Category(enum.Enum):
    """Paddle's "broad type"; promotion goes from an earlier one to a later one."""

    BOOL = 0
    INT = 1
    FLOAT = 2
    COMPLEX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Dtype:
    """A dtype of Paddle.

    Attributes:
        name: Paddle's name for it.
        category: its broad type.
        part: format of a number, or of the real and the imaginary part of a complex one.
        numpy: dtype of the arrays that hold it.
    """

    name: str
    category: Category
    part: Format
    numpy: np.dtype[Any]


def _dtype(row: DtypeRow) -> Dtype:
    name, numpy, part = row.paddle, row.dtype, row.format
    assert name is not None
    assert numpy is not None
    category = Category.INT
    if part is None:
        category, part = Category.COMPLEX, _FORMAT_OF[np.empty(0, numpy).real.dtype]
    elif part is BOOL:
        category = Category.BOOL
    elif isinstance(part, FloatFormat):
        category = Category.FLOAT
    return Dtype(name=name, category=category, part=part, numpy=numpy)


_FORMAT_OF: Final = {row.dtype: row.format for row in ROWS if row.format is not None}
_ROWS: Final[Mapping[str, Dtype]] = {
    row.paddle: _dtype(row) for row in ROWS if row.paddle is not None
}

DTYPES: Final[tuple[str, ...]] = tuple(_ROWS)
"""The dtypes that promotion knows, in the order of the document's tables."""

SCALAR_DTYPES: Final[Mapping[str, str]] = MappingProxyType(
    {"bool": "bool", "int": "int64", "float": "float32", "complex": "complex64"}
)
"""The default dtype of each kind of Python scalar."""

_BY_NUMPY: Final[Mapping[np.dtype[Any], str]] = {row.numpy: row.name for row in _ROWS.values()} | {
    np.dtype(np.uint16): "bfloat16"
}
"""numpy has no bfloat16 of its own; Paddle takes and gives its codes as uint16."""

_NAMES: Final = Names(
    {name: name for name in _ROWS} | {"uint16": "bfloat16", "float": "float64", "int": "int64"},
    lambda row: row.paddle,
)
"""A bare "float" or "int" is numpy's here, as in Paddle."""


def row_of(name: str) -> Dtype:
    """The row of a dtype that `dtype_name` has named."""
    return _ROWS[name]


def dtype_name(given: object) -> str:
    """Paddle's name of a dtype.

    Args:
        given: any name as "float32", "f32" or "paddle.float32", or a dtype of Paddle, pypto, torch
            or numpy, or what numpy takes for one. The text "i8" is int8, as Paddle's document
            spells it, and uint16 is bfloat16, as in Paddle.

    Raises:
        TypeError: no name of a dtype.
        ValueError: a dtype that Paddle's promotion does not have.
    """
    text = None if isinstance(given, int) else text_of(given)
    if text is not None and (found := _NAMES.get(text)) is not None:
        return found
    asked: Any = given
    if text is not None:
        asked = None if (row := spelled(text)) is None else row.dtype
    try:
        if asked is None:  # float64 to numpy
            raise TypeError
        dtype = np.dtype(asked)
    except TypeError:
        near = _NAMES.near(text)
        raise TypeError(f"data type {given!r} not understood{near}; {_known()}") from None
    if (name := _BY_NUMPY.get(dtype.newbyteorder("="))) is not None:
        return name
    raise ValueError(f"Not supported numpy dtype {dtype}; {_known()}")


def _known() -> str:
    return f"known are {', '.join(DTYPES)}"


Array = npt.NDArray[Any]

_THROUGH_FP32: Final = (FP16, BF16)
"""Paddle makes these of nothing but a float32, so wider sources are rounded twice."""


def cast(x: npt.ArrayLike, dtype: object) -> Array:
    """Convert an array to another dtype, as paddle.cast does.

    To floats: nearest, ties to even, beyond the largest number infinity; float16 and bfloat16 are
    made by way of float32, so float64, int32 and int64 round twice. -0, infinity and subnormal
    numbers stay; NaN stays NaN, with one pattern. Float to integer: truncated. Integer to integer:
    the low bits. To bool: False for zeros only, so NaN is True. Complex to real: the real part; to
    bool: either part. Real to complex: imaginary part +0.

    Where Paddle's C++ code is undefined this is our choice: floats beyond an integer dtype are
    clamped, infinities too, a negative one becomes 0 in uint8, and NaN becomes 0. A float32 between
    2**-90 and 2**-77 becomes +-0 in float16, as rounding says; the x86 build of paddlepaddle 3.3.1
    shifts by more than 63 bits there and gives up to 0x800.

    Long arrays are shared among the threads of `pypto_cast.options(threads=...)`.

    Args:
        x: array of a dtype in `DTYPES`, any shape, strides and byte order; uint16 holds codes of
            bfloat16, as in Paddle. Python numbers have numpy's dtypes. Not modified.
        dtype: name such as "float16", paddle.dtype, or numpy or ml_dtypes dtype.

    Returns:
        A new array of the same shape; bfloat16 in ml_dtypes' dtype.

    Raises:
        TypeError: no dtype, or a masked array.
        ValueError: a dtype of x or a `dtype` that is not in `DTYPES`.

    Source: paddlepaddle 3.3.1 (CPU), measured; phi/common/float16.h, bfloat16.h and complex.h.
    """
    dst = row_of(dtype_name(dtype))
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("x is a masked array, whose mask would be lost; fill it first")
    array = canonical_bools(np.asarray(x))
    src = row_of(dtype_name(array.dtype))
    if array.dtype.newbyteorder("=") == np.uint16:
        array = array.astype(np.uint16, order="C").view(src.numpy)
    if src is dst:
        return np.array(array, dst.numpy, order="C")
    if dst.category is Category.COMPLEX:
        return _complex(array, src, dst)
    if src.category is not Category.COMPLEX:
        return _convert(array, src.part, dst.part)
    real = _convert(array.real, src.part, dst.part)
    if dst.category is Category.BOOL:
        np.logical_or(real, _convert(array.imag, src.part, dst.part), out=real)
    return real


def _complex(array: Array, src: Dtype, dst: Dtype) -> Array:
    out = np.zeros(array.shape, dst.numpy)
    out.real = _convert(array.real, src.part, dst.part)
    if src.category is Category.COMPLEX:
        out.imag = _convert(array.imag, src.part, dst.part)
    return out


def _convert(array: Array, src: Format, dst: Format) -> Array:
    if src is dst:
        return np.array(array, dst.dtype, order="C")
    out = result_memory.empty(array.size, dst.code_dtype)
    context = current()
    elementwise.run(
        _conversions(src, dst), array, out, engine=context.converter, threads=context.threads
    )
    return values_of(out, dst).reshape(array.shape)


@functools.cache
def _conversions(src: Format, dst: Format) -> tuple[Conversion, ...]:
    path = (src, FP32, dst) if dst in _THROUGH_FP32 and src is not FP32 else (src, dst)
    return tuple(_conversion(*step) for step in itertools.pairwise(path))


def _conversion(src: Format, dst: Format) -> Conversion:
    mode = RoundMode.TRUNC if isinstance(dst, IntFormat) else RoundMode.RINT
    return Conversion(src=src, dst=dst, mode=mode, policy=_policy(src, dst))


def _policy(src: Format, dst: Format) -> Policy:
    if not isinstance(dst, IntFormat):
        return INF_NAN
    return WRAP if isinstance(src, IntFormat) and dst is not BOOL else SATURATE
