"""Values worth casting: the special ones of a dtype, and those at which rounding decides."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.cast.cast_plan import resolve_cast
from pypto_cast.dtypes.data_types import (
    CastMode,
    DataType,
    SaturationMode,
    check_dtype,
    numpy_dtype,
)
from simulator.numbers.convert import INF_NAN, codes_of, convert, values_of
from simulator.numbers.formats import FP64, FloatFormat, IntFormat
from simulator.numbers.rounding import RoundMode, boundary_codes

# fmt: off
_LANDMARKS: Final = (
    0.5, 1.0, 1.5, 2.0, 2.5, 3.5, 7.5, 8.0,
    127.0, 127.5, 128.0, 130.0, 255.0, 255.5, 256.0,
    2049.0, 32767.0, 32767.5, 32768.0, 65504.0, 65519.0, 65520.0,
    2.0**24, 2.0**24 + 2, 2.0**31 - 128, 2.0**31, 2.0**63,
)
# fmt: on
"""Ties, and the limits of the integer dtypes and of FP16."""


def special_values(dtype: DataType) -> npt.NDArray[Any]:
    """The values of a dtype that break casts: zeros, ones, ties, limits, subnormal numbers,
    infinities and NaN, of both signs.

    Args:
        dtype: one that numpy or ml_dtypes holds.

    Returns:
        A new 1-D array of a few dozen values, each once.

    Raises:
        TypeError: no DataType, or one that holds no data here.
    """
    holder = numpy_dtype(check_dtype(dtype))
    fmt = dtype.format
    if isinstance(fmt, IntFormat):
        near = {(1 << bit) + step for bit in range(fmt.bits) for step in (-1, 0, 1)} | {fmt.max}
        values = sorted(v for n in near for v in {n, -n} if fmt.min <= v <= fmt.max)
        return np.array(values, np.uint64 if fmt.min == 0 else np.int64).astype(holder)
    assert isinstance(fmt, FloatFormat)
    landmarks = codes_of(np.array(_LANDMARKS), FP64)
    edge = 1 << fmt.man_bits
    found = {0, 1, 2, edge - 1, edge, edge + 1, fmt.max_code - 1, fmt.max_code}
    found |= set(convert(landmarks, FP64, fmt, RoundMode.RINT, INF_NAN).tolist())
    found |= {code for code in (fmt.inf_code, fmt.nan_code) if code is not None}
    codes = [code | sign for code in sorted(found) for sign in (0, fmt.sign_code)]
    return values_of(np.array(list(dict.fromkeys(codes)), fmt.code_dtype), fmt)


def boundary_values(src: DataType, dst: DataType) -> npt.NDArray[Any]:
    """The values of a source dtype at which rounding to a destination decides.

    Args:
        src: what is cast. Of 8- and 16-bit dtypes all values are returned, of wider ones some 10^5:
            what any destination can represent, the midpoints, and their neighbours.
        dst: what it is cast to.

    Returns:
        A new 1-D array, ascending by code.

    Raises:
        UnsupportedCastError: A2/A3 does not convert this pair.
    """
    rule = resolve_cast(src, dst, CastMode.CAST_NONE, SaturationMode.ON).rule
    return values_of(boundary_codes(rule.src), rule.src)
