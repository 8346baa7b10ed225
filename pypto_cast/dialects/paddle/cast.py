"""paddle.cast on numpy arrays: a row of policy per kind of pair, and a call of the core."""

from __future__ import annotations

import functools
import itertools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dialects.paddle.dtypes import Category, Dtype, dtype_name, row_of
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
from simulator.numbers.formats import BF16, BOOL, FP16, FP32, Format, IntFormat
from simulator.numbers.rounding import RoundMode

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
