"""The total order of a format's numbers: -inf < ... < -0 < +0 < ... < +inf, one step a code.

A float's code is a sign and a magnitude. Flipping the magnitude of the negative ones makes signed
integers of the codes, which stand in the order of the numbers; the same flip leads back.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.operation import Array
from simulator.numbers import float_environment
from simulator.numbers.convert import codes_of, values_of
from simulator.numbers.fast.chunks import exceeds
from simulator.numbers.formats import FP32, FloatFormat, Format, IntFormat

Bools = npt.NDArray[np.bool_]


def signed_codes(values: Array, fmt: FloatFormat) -> npt.NDArray[np.signedinteger[Any]]:
    """View floats as signed integers of their codes."""
    signed: npt.NDArray[np.signedinteger[Any]] = values.view(f"i{fmt.bits // 8}")
    return signed


def keys(values: Array, fmt: Format) -> Array:
    """Signed integers in the total order; NaN lies beyond the infinities."""
    if not isinstance(fmt, FloatFormat):
        return values.astype(np.int8) if fmt.bits < 8 else values
    if fmt.is_scale:
        return values.view(fmt.code_dtype)
    if _is_tabulated(fmt):
        return _key_table(fmt)[codes_of(values, fmt)].reshape(values.shape)
    codes = signed_codes(values, fmt)
    mask = codes >> (fmt.bits - 1)
    mask &= codes.dtype.type(fmt.sign_code - 1)
    mask ^= codes
    return mask


def _is_tabulated(fmt: FloatFormat) -> bool:
    """Codes that are no words, or do not stand in the order of their numbers."""
    return bool(fmt.dots) or fmt.bits < 8


@functools.cache
def _key_table(fmt: FloatFormat) -> npt.NDArray[np.int16]:
    """The key of every code of a small format: its rank with the sign; of its NaN the greatest."""
    ranks = np.array([fmt.rank_of_code(code) for code in range(1 << fmt.bits)], np.int16)
    negative = np.arange(1 << fmt.bits) >= fmt.sign_code
    found = np.where(negative, -ranks - np.int16(fmt.has_negative_zero), ranks)
    if fmt.nan_code is not None:
        found[fmt.nan_code] = fmt.sign_code
    return found


def codes_between(a: Array, b: Array, fmt: Format) -> npt.NDArray[np.uint64]:
    """Steps in the total order from one to the other; those of INT64 wrap and come out right."""
    ends = keys(a, fmt).astype(np.int64), keys(b, fmt).astype(np.int64)
    high, low = np.maximum(*ends), np.minimum(*ends)
    return high.view(np.uint64) - low.view(np.uint64)


def from_keys(order: Array, fmt: Format) -> Array:
    """The values that have these keys."""
    if not isinstance(fmt, FloatFormat):
        return order.astype(fmt.dtype)
    if fmt.is_scale:
        return order.view(fmt.dtype)
    if _is_tabulated(fmt):
        table = _key_table(fmt)
        places = np.searchsorted(np.sort(table), order)
        return values_of(np.argsort(table).astype(fmt.code_dtype)[places], fmt)
    mask = order >> (fmt.bits - 1)
    mask &= order.dtype.type(fmt.sign_code - 1)
    mask ^= order
    return mask.view(fmt.dtype)


def maximum(a: Array, b: Array, *, out: Array | None = None) -> Array:
    """The greater of two in the total order; NaN where either is."""
    return _extreme(np.maximum, np.bitwise_and, a, b, out)


def minimum(a: Array, b: Array, *, out: Array | None = None) -> Array:
    """The lesser of two in the total order; NaN where either is."""
    return _extreme(np.minimum, np.bitwise_or, a, b, out)


def _extreme(ufunc: np.ufunc, of_zeros: np.ufunc, a: Array, b: Array, out: Array | None) -> Array:
    """numpy takes either of -0 and +0 for the extreme; their codes are joined instead."""
    result: Array = np.asarray(ufunc(a, b, out=out))
    if result.dtype.kind != "f" or not (result == 0).any():
        return result
    zeros = np.logical_and(a == 0, b == 0)
    if zeros.any():
        codes = f"u{result.itemsize}"
        of_zeros(a.view(codes), b.view(codes), out=result.view(codes), where=zeros)
    return result


def lesser(a: Array, b: Array, fmt: Format) -> Array:
    """The lesser of two values of a format; of a number and a NaN the number."""
    return _by_keys(np.minimum, minimum, a, b, fmt)


def greater(a: Array, b: Array, fmt: Format) -> Array:
    """The greater of two values of a format; neither is NaN."""
    return _by_keys(np.maximum, maximum, a, b, fmt)


def both(a: Array, b: Array, fmt: Format) -> tuple[Array, Array]:
    """The lesser and the greater of two values of a format."""
    if fmt is not FP32:
        return lesser(a, b, fmt), greater(a, b, fmt)
    low, high = np.asarray(np.minimum(a, b)), np.asarray(np.maximum(a, b))
    if (high == 0).any():  # two zeros, perhaps, of which numpy takes either
        return minimum(a, b), maximum(a, b)
    return low, high


def _by_keys(ufunc: np.ufunc, extreme: Any, a: Array, b: Array, fmt: Format) -> Array:
    if fmt is FP32 or not isinstance(fmt, FloatFormat):
        result: Array = extreme(a, b)
        return result
    return from_keys(ufunc(keys(a, fmt), keys(b, fmt)), fmt)


def same_code(a: Array, b: Array) -> Bools:
    """True where two values have one code."""
    unsigned = f"u{a.itemsize}"
    same: Bools = a.view(unsigned) == b.view(unsigned)
    return same


def nan_value(fmt: FloatFormat) -> Array:
    """The one NaN of a format, without dimensions."""
    return values_of(np.array(fmt.nan_code, fmt.code_dtype), fmt)


def wrap_apart(low: Array, high: Array, fmt: IntFormat) -> Bools:
    """True where exact ends, of INT64, wrap unequally often in a narrower integer format."""
    apart: Bools = (low - fmt.min) >> fmt.bits != (high - fmt.min) >> fmt.bits
    return apart


def is_nan(values: Array, fmt: Format) -> Bools:
    """True where values are NaN; never in an integer format."""
    if not isinstance(fmt, FloatFormat):
        return np.zeros(values.shape, np.bool_)
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if fmt.nan_code is None or not values.size:
        return np.zeros(values.shape, np.bool_)
    if fmt.nan_is_negative_zero:
        return np.asarray(values.view(fmt.code_dtype) == fmt.code_dtype.type(fmt.sign_code))
    if fmt.inf_code is not None:
        beyond = exceeds(fmt, fmt.inf_code)(values.view(fmt.code_dtype))
        return np.asarray(beyond if beyond.shape else np.zeros(values.shape, np.bool_))
    return np.asarray(np.not_equal(values, values), np.bool_)


@float_environment.quiet()
def any_nan(values: Array, fmt: Format) -> bool:
    """True if any value is NaN; never in an integer format."""
    if values.dtype.kind == "f" and values.itemsize > 2:  # numpy compares halves one by one
        return bool(values.size) and bool(np.isnan(np.max(values)))
    return isinstance(fmt, FloatFormat) and bool(is_nan(values, fmt).any())


def contains_zero(low: Array, high: Array, fmt: Format) -> Bools:
    """True where intervals of floats contain a zero and another number."""
    assert isinstance(fmt, FloatFormat)
    least, most = signed_codes(low, fmt), signed_codes(high, fmt)
    contained: Bools = least <= 0
    if contained.any():
        contained &= (most >= 0) | (most == np.iinfo(most.dtype).min)
        contained &= least != most
    return contained


def is_ordinary(values: Array, fmt: FloatFormat, ulps: int) -> bool:
    """True if all are at least so many codes away from zero and from infinity."""
    codes = signed_codes(values, fmt)
    magnitude = codes & codes.dtype.type(fmt.sign_code - 1)
    return not magnitude.size or bool(
        magnitude.min() >= ulps and magnitude.max() <= fmt.max_code + 1 - ulps
    )


def is_normal(values: Array, fmt: FloatFormat) -> bool:
    """True if all are normal numbers: neither zero nor subnormal, infinite or NaN."""
    codes = signed_codes(values, fmt)
    magnitude = codes & codes.dtype.type(fmt.sign_code - 1)
    return not magnitude.size or bool(
        magnitude.min() >= 1 << fmt.man_bits and magnitude.max() <= fmt.max_code
    )


def outward(
    low: Array,
    high: Array,
    ulps: int,
    fmt: FloatFormat,
    kept: tuple[Bools | None, Bools | None] = (None, None),
) -> tuple[Array, Array]:
    """Move the lower ends down and the upper ends up by codes, not through zero, not beyond inf.

    Args:
        low, high: ends of one shape, not modified; NaN stays.
        ulps: how many codes.
        fmt: their format.
        kept: where the lower and where the upper ends stay; None: nowhere.
    """
    upward = _away(high, ulps, fmt)
    downward = upward if low is high else _away(low, ulps, fmt)
    return _moved(low, -downward, fmt, kept[0]), _moved(high, upward, fmt, kept[1])


def outward_ordinary(low: Array, high: Array, ulps: int, fmt: FloatFormat) -> tuple[Array, Array]:
    """`outward` where both ends are ordinary."""
    upward = _away(high, ulps, fmt)
    downward = upward if low is high else _away(low, ulps, fmt)
    lower = np.subtract(signed_codes(low, fmt), downward)
    upper = np.add(signed_codes(high, fmt), upward, out=upward)
    return lower.view(fmt.dtype), upper.view(fmt.dtype)


def _moved(end: Array, growth: Array, fmt: FloatFormat, stays: Bools | None) -> Array:
    codes = signed_codes(end, fmt)
    below_sign = codes.dtype.type(fmt.sign_code - 1)
    magnitude = codes & below_sign
    inf = codes.dtype.type(fmt.max_code + 1)
    moved = magnitude + growth  # too large for a code only where NaN is
    np.maximum(moved, codes.dtype.type(0), out=moved)
    np.minimum(moved, inf, out=moved)
    moved |= codes & ~below_sign
    kept = magnitude > inf if stays is None else np.logical_or(magnitude > inf, stays)
    np.copyto(moved, codes, where=kept)
    return moved.view(fmt.dtype)


def _away(values: Array, ulps: int, fmt: FloatFormat) -> npt.NDArray[np.signedinteger[Any]]:
    """The numbers that move codes up by so many: magnitudes of negative numbers shrink."""
    growth = signed_codes(values, fmt) >> (fmt.bits - 1)
    growth |= growth.dtype.type(1)
    if ulps != 1:
        growth *= growth.dtype.type(ulps)
    return growth
