"""Blocks of 32 numbers that share a power of two: their scales, the codes under them, and back.

The scale of a block follows from its greatest magnitude, the codes from its numbers divided by the
scale, rounded once to the nearest, ties to even, and clamped. Both are monotone, so the ends of
intervals go through them. Source: OCP Microscaling Formats (MX) 1.0, 6.3; of rounding up and of
infinities and NaN, upstream pypto 883e7dfb0, framework/tests/st/operation/python/
vector_operator_golden.py, which its test compares with the device by equality.
"""

from __future__ import annotations

import enum
import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.casts import cast
from simulator.arithmetic.evaluation import require_default_environment
from simulator.arithmetic.interval import Enclosure, enclosed, exactly, limits
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import Bools, greater, lesser
from simulator.arithmetic.trust import DEFAULT, Causes, Trust, cause_along
from simulator.corrections import NO_CORRECTIONS, Corrections
from simulator.numbers import float_environment
from simulator.numbers.convert import INF_NAN, SATURATE_KEEP_NAN, Conversion, values_of
from simulator.numbers.formats import E8M0, FP32, FP64, FloatFormat, Format
from simulator.numbers.rounding import RoundMode

BLOCK_ELEMS: Final = 32
"""Elements that share a scale."""
_BIAS: Final = -E8M0.emin
_LARGEST_SCALE: Final = 2 * _BIAS
_NAN_SCALE: Final = _LARGEST_SCALE + 1

_Codes = npt.NDArray[np.uint8]


class ScaleRounding(enum.Enum):
    """The power of two that a block of a greatest magnitude m gets.

    L is the largest number of the destination, and P the largest power of two up to L.
    """

    DOWN = "the largest one of at most m / P"
    UP = "the least one of at least m / L"


@float_environment.quiet()
def quantised_blocks(
    x: Enclosure,
    dst: FloatFormat,
    rounding: ScaleRounding,
    *,
    trust: Trust = DEFAULT,
    corrections: Corrections = NO_CORRECTIONS,
) -> tuple[Enclosure, Enclosure]:
    """Quantise the lines along the last axis, each with one scale.

    A block of zeros has the least scale, 2**-127; one with NaN has the scale NaN, and NaN for every
    element, which is +0 in a format without NaN unless a correction says otherwise. An infinity
    counts as 2**128 in rounding down and gives the largest scale, 2**127, in rounding up; it
    becomes the largest number of its sign. -0 stays -0.

    Args:
        x: FP32, [..., elements].
        dst: the format of the codes.
        rounding: of the scale.
        trust: whose causes name choices or operations.
        corrections: of the casts from FP32 to `dst`.

    Returns:
        Values of `dst`, [..., elements], and of E8M0, [...].

    Raises:
        RuntimeError: this thread does not round to nearest or flushes subnormal numbers.
    """
    require_default_environment()
    scale = _scale_codes(np.abs(x.values).max(axis=-1), dst, rounding)
    under = functools.partial(_under, dst=dst, corrections=corrections)
    values = under(x.values, scale)
    if x.interval is None:
        return Enclosure(values=values), Enclosure(values=values_of(scale, E8M0))
    low, high, may_be_nan = x.low, x.high, x.interval.may_be_nan
    least, most = _magnitudes(low, high)
    scale_ends = [_scale_codes(end.max(axis=-1), dst, rounding) for end in (least, most)]
    nan_scale = np.zeros(scale.shape, np.bool_)
    if may_be_nan is not None:
        nan_scale = may_be_nan.any(axis=-1) & (scale_ends[0] != _NAN_SCALE)
    causes = _causes_of_blocks(x, trust)
    of_low, of_high = (values_of(end, E8M0) for end in scale_ends)
    scales = enclosed(values_of(scale, E8M0), of_low, of_high, nan_scale, causes)
    ends = [under(end, code) for end in (low, high) for code in scale_ends]
    lower, upper = ends[0], ends[0]
    for end in ends[1:]:
        lower, upper = lesser(lower, end, dst), greater(upper, end, dst)
    of_nan: Bools = np.broadcast_to(nan_scale[..., None], x.shape)
    flags = of_nan
    if dst.nan_code is None:
        of_one = under(np.zeros((1, 1), np.float32), np.full(1, _NAN_SCALE, np.uint8))
        number = np.broadcast_to(of_one[0, 0], x.shape)
        lower = np.where(of_nan, lesser(lower, number, dst), lower)
        upper = np.where(of_nan, greater(upper, number, dst), upper)
        flags = np.zeros(x.shape, np.bool_)
    spread: Causes = np.broadcast_to(causes[..., None], x.shape)
    return enclosed(values, lower, upper, flags, spread), scales


def _scale_codes(most: Array, dst: FloatFormat, rounding: ScaleRounding) -> _Codes:
    """The codes of E8M0 that greatest magnitudes in FP32 give."""
    is_nan, is_inf = np.isnan(most), np.isinf(most)
    finite = np.where(is_nan | is_inf, np.float32(0), most).astype(np.float64)
    half, above = np.frexp(finite)
    exponent = above.astype(np.int64) - 1
    limit, limit_above = np.frexp(float(limits(dst)[1]))
    largest = int(limit_above) - 1
    match rounding:
        case ScaleRounding.DOWN:
            power, of_inf = exponent - largest, FP32.bias + 1 - largest
        case ScaleRounding.UP:
            power, of_inf = exponent - largest + (half > limit), _LARGEST_SCALE - _BIAS
    power = np.where(is_inf, of_inf, np.where(finite == 0, -_BIAS, power))
    codes = np.clip(power + _BIAS, 0, _LARGEST_SCALE)
    found: _Codes = np.where(is_nan, _NAN_SCALE, codes).astype(np.uint8)
    return found


def _under(values: Array, scale: _Codes, dst: FloatFormat, corrections: Corrections) -> Array:
    """Values divided by the scale of their line, in the destination.

    FP32 holds the quotients but those below its normal numbers, which are far below half of the
    least number of a destination.
    """
    inverse = np.ldexp(np.float32(1), _BIAS - scale.astype(np.int32)).astype(np.float32)
    inverse = np.where(scale == _NAN_SCALE, np.float32(np.nan), inverse)[..., None]
    quotients = Enclosure(values=values * inverse)
    return cast((to_nearest(dst),), quotients, corrections=corrections).values


def to_nearest(dst: FloatFormat) -> Conversion:
    """FP32 to a small format, clamped."""
    return Conversion(src=FP32, dst=dst, mode=RoundMode.RINT, policy=SATURATE_KEEP_NAN)


def _magnitudes(low: Array, high: Array) -> tuple[Array, Array]:
    """The least and the greatest magnitude of each interval; NaN where the ends are."""
    ends = np.abs(low), np.abs(high)
    holds_zero = (low <= 0) & (high >= 0)
    return np.where(holds_zero, np.float32(0), np.minimum(*ends)), np.maximum(*ends)


def _causes_of_blocks(x: Enclosure, trust: Trust) -> Causes:
    """The cause of an open element of each line, or the choices of all."""
    interval = x.interval or exactly(x.values)
    is_open = ~interval.certain()
    at = np.expand_dims(is_open.argmax(axis=-1), -1)
    causes: Any = np.broadcast_to(interval.cause, x.shape)
    return cause_along(trust, causes, at, is_open, -1)[..., 0]


@float_environment.quiet()
def scaled_numbers(numbers: Enclosure, scales: Enclosure) -> Enclosure:
    """Numbers times their scales, exactly.

    A scale that is NaN makes NaN of its block; an infinity stays, and 0 is 0 under every number.

    Args:
        numbers: of a small format, in FP64, [..., lines, elements].
        scales: E8M0, [lines, blocks]: one for each 32 elements.

    Returns:
        FP64, in the shape of the numbers.
    """
    count = numbers.shape[-1]

    def spread(array: Array) -> Array:
        return np.broadcast_to(array.repeat(BLOCK_ELEMS, axis=-1)[..., :count], numbers.shape)

    along = in_fp64(scales, E8M0).map(spread)
    values = numbers.values * along.values
    if numbers.interval is None and scales.interval is None:
        return Enclosure(values=values)
    own, of_scales = (x.interval or exactly(x.values) for x in (numbers, along))
    corners = [
        number * scale
        for number in (own.low, own.high)
        for scale in (of_scales.low, of_scales.high)
    ]
    low, high = corners[0], corners[0]
    for corner in corners[1:]:
        low, high = lesser(low, corner, FP64), greater(high, corner, FP64)
    flags = [x.may_be_nan for x in (own, of_scales) if x.may_be_nan is not None]
    may_be_nan = np.logical_or.reduce(flags) if flags else None
    causes = np.where(numbers.certain(), of_scales.cause, own.cause)
    return enclosed(values, low, high, may_be_nan, causes)


def in_fp64(x: Enclosure, fmt: Format) -> Enclosure:
    """The same numbers of a smaller format in FP64, which has them all."""
    return cast((Conversion(src=fmt, dst=FP64, mode=RoundMode.RINT, policy=INF_NAN),), x)
