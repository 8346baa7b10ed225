"""Values worth casting: the special ones of a dtype, and those at which rounding decides."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
from pypto_cast.missing_names import nearest
from pypto_cast.operations.operation_rows import ROWS
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
_FEW_BITS: Final = 8
"""Floats of fewer bits have as few codes as there are special values."""


_ENDS: Final[Mapping[str, tuple[float, ...]]] = {
    **dict.fromkeys(("acos", "asin", "atanh", "acosh", "log1p"), (1.0,)),
    **dict.fromkeys(("log", "log2", "log10"), (1.0, 10.0)),
    **dict.fromkeys(("sin", "cos"), (math.pi / 2, math.pi, 2 * math.pi, 2.0**17)),
    **dict.fromkeys(("sinh", "cosh"), (0.48, 11.09, 89.41599)),
    **dict.fromkeys(("gcd", "fmod", "remainder", "floor_div", "ceil_div"), (1.0, 3.0)),
    "tan": (math.pi / 4, math.pi / 2, math.pi, 3 * math.pi / 2),
    "tanh": (0.55, 9.01, 20.0),
    "atan": (0.5, 1.0),
    "atan2": (0.5, 1.0),
    "asinh": (0.5, 1.0),
    "exp": (11.0898, 17.33, 88.722839, 87.33655, 103.972084),
    "expm1": (0.693147, 88.722839, 103.972084),
    "sigmoid": (88.722839, 103.972084),
    "exp2": (15.0, 16.0, 24.0, 25.0, 126.0, 127.0, 128.0, 149.0, 150.0),
    "erf": (3.92,),
    "erfc": (3.92, 9.194, 10.055),
    "pow": (0.5, 1.0, 2.0, 3.0),
    "cbrt": (1.0, 8.0, 27.0),
    "rsqrt": (1.0, 4.0),
    "hypot": (3.0, 4.0, 1.3e19, 1.84e19),
}
"""By operation, the magnitudes at which it has a pole, its domain or its range ends, or its steps
change; 0 and infinity are always there."""


def _ends(function: str | None) -> tuple[float, ...]:
    if function is not None and function not in ROWS:
        near = nearest(function, ROWS)
        hint = f"; did you mean {near!r}?" if near else ""
        raise ValueError(f"special_values: there is no operation {function!r}{hint}")
    return _ENDS.get(function or "", ())


def special_values(dtype: DataType, function: str | None = None) -> npt.NDArray[Any]:
    """The values of a dtype that break casts: zeros, ones, ties, limits, subnormal numbers,
    infinities and NaN, of both signs.

    Args:
        dtype: one that numpy or ml_dtypes holds.
        function: the name of an operation; the poles, the ends of the domain and of the range of
            results, and the places where its steps change come besides, each with its neighbours.

    Returns:
        A new 1-D array of a few dozen values, each once; all of HF8, E8M0 and FP4.

    Raises:
        TypeError: no DataType, or one that holds no data here.
        ValueError: no operation of that name.
    """
    ends = _ends(function)
    holder = numpy_dtype(check_dtype(dtype))
    fmt = dtype.format
    if isinstance(fmt, IntFormat):
        near = {(1 << bit) + step for bit in range(fmt.bits) for step in (-1, 0, 1)} | {fmt.max}
        near |= {int(end) + step for end in ends for step in (-1, 0, 1)}
        values = sorted(v for n in near for v in {n, -n} if fmt.min <= v <= fmt.max)
        return np.array(values, np.uint64 if fmt.min == 0 else np.int64).astype(holder)
    assert isinstance(fmt, FloatFormat)
    if fmt.dots or fmt.is_scale or fmt.bits < _FEW_BITS:
        return values_of(np.arange(1 << fmt.bits, dtype=fmt.code_dtype), fmt)
    landmarks = codes_of(np.array(_LANDMARKS), FP64)
    edge = 1 << fmt.man_bits
    found = {0, 1, 2, edge - 1, edge, edge + 1, fmt.max_code - 1, fmt.max_code}
    found |= set(convert(landmarks, FP64, fmt, RoundMode.RINT, INF_NAN).tolist())
    found |= {code for code in (fmt.inf_code, fmt.nan_code) if code is not None}
    rounded = convert(codes_of(np.array(ends), FP64), FP64, fmt, RoundMode.RINT, INF_NAN)
    for code in rounded.tolist():
        magnitude = code & ~fmt.sign_code
        found |= {max(magnitude - 1, 0), magnitude, min(magnitude + 1, fmt.max_code)}
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
        UnsupportedCastError: the chip of this context does not convert this pair.
    """
    rule = resolve_cast(src, dst, CastMode.CAST_NONE, SaturationMode.ON).rule
    return values_of(boundary_codes(rule.src), rule.src)
