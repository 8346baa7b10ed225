"""Operands of products of float matrices in float64, and the bound of such products.

An operand is prepared by line: a line is a row of the left matrix or a column of the right one, the
terms of one sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.computed import as_fp32
from simulator.arithmetic.interval import Enclosure
from simulator.arithmetic.operation import Array
from simulator.arithmetic.reduction_order import NO_BITS, Exponents, last_bit
from simulator.arithmetic.total_order import Bools, same_code
from simulator.arithmetic.trust import (
    ASSUME_CUBE_HF32,
    ASSUME_CUBE_RNE,
    ASSUME_GRADUAL_UNDERFLOW,
    MATMUL,
    Causes,
    Trust,
    cause_along,
)
from simulator.numbers import result_memory
from simulator.numbers.formats import BF16, FP16, FP32, FP64, FloatFormat

if TYPE_CHECKING:  # the native executor is loaded when it is first used
    from simulator.arithmetic.native.executor_library import Executor

Doubles = npt.NDArray[np.float64]

_HF32_MAN_BITS: Final = 11
LEAST_NORMAL: Final = 2.0**FP32.emin
PRECISION: Final = FP32.man_bits + 1
CLEARLY: Final = 1 + 2.0**-30
"""No rounding of float64 turns an order of numbers that are so far apart, in relation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatBound:
    """The limits of a sum of products in any order.

    Attributes:
        growth: (1 + u)**d - 1, for d operations that a term goes through at most.
        slack: relative, of the float64 arithmetic that computes the bound.
        underflow: absolute: each product and each partial sum may be flushed to zero.
        is_known: a device is supposed to give our values for exact operands.
    """

    growth: float
    slack: float
    underflow: float
    is_known: bool = False

    @staticmethod
    def of(terms: int, fmt: FloatFormat, trust: Trust, *, has_bias: bool) -> FloatBound:
        """The bound for sums of products of two `fmt` numbers, and a bias.

        The product of two numbers of at most 12 bits has 24 and is exact in FP32.
        """
        if MATMUL in trust.correctly_rounded:
            return FloatBound(
                growth=2.0**-PRECISION, slack=0, underflow=LEAST_NORMAL, is_known=True
            )
        unit = 2.0**-PRECISION if ASSUME_CUBE_RNE in trust.assumed else 2.0 ** (1 - PRECISION)
        rounds_products = fmt is FP32 and ASSUME_CUBE_HF32 not in trust.assumed
        depth = terms - 1 + has_bias + rounds_products
        growth = float(np.expm1(depth * np.log1p(unit)) * (1 + 2.0**-40))
        return FloatBound(
            growth=growth,
            slack=(terms + 8) * 2.0**-51,
            underflow=2 * (terms + 1) * LEAST_NORMAL * (1 + growth),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixOperand:
    """A block of whole lines; infinities and NaN are 0 in `middle`, `radius` and `values`.

    Attributes:
        values: the values computed here.
        middle: of each interval; the same object as `values` where all are exact.
        radius: at least the distance of both ends from it; None where all are exact.
        own_reach: the greatest magnitude; None where that is the values'.
        exact: by line, one code is possible for each element.
        outliers: by line, an element may be infinite or NaN.
        may_be_nan: by line, an element may be NaN; those that are NaN for sure do not count.
        is_nan: by line, an element is NaN for sure.
        cause: by line, of the widest interval; None where all are exact.
        raw: values with infinities and NaN, for lines that are outliers.
        weights: what each element adds to the error of a sum, for one of the other matrix; None:
            not asked for, or not by itself.
        sides: by row, see `_with_weights`; None without weights.
    """

    values: Doubles
    middle: Doubles
    radius: Doubles | None
    own_reach: Doubles | None
    exact: Bools
    outliers: Bools
    may_be_nan: Bools
    is_nan: Bools
    cause: Causes | None
    raw: Doubles
    weights: Doubles | None = None
    sides: npt.NDArray[np.uint8] | None = None

    @property
    def reach(self) -> Doubles:
        """The greatest magnitude."""
        return np.abs(self.values) if self.own_reach is None else self.own_reach


class Scratch:
    """Memory of the sums of one block after the other, for first touch costs as much as a sum."""

    def __init__(self) -> None:
        self._held: dict[str, Doubles] = {}

    def room(self, name: str, shape: tuple[int, ...]) -> Doubles:
        """An array of any content, in the memory of the last one of that name."""
        elems = math.prod(shape)
        held = self._held.get(name)
        if held is None or held.size < elems:
            held = self._held[name] = np.empty(elems)
        return held[:elems].reshape(shape)

    def product(self, name: str, a: Doubles, b: Doubles) -> Doubles:
        """The product of matrices."""
        return np.matmul(a, b, out=self.room(name, (a.shape[0], b.shape[1])))


def operand_of(
    x: Enclosure,
    fmt: FloatFormat,
    axis: int,
    trust: Trust,
    executor: Executor | None = None,
    scratch: Scratch | None = None,
    bound: FloatBound | None = None,
) -> MatrixOperand:
    """Prepare a block.

    Args:
        x: two dimensions, values of `fmt`.
        fmt: FP16, BF16, FP32 or FP64.
        axis: that the terms of a sum lie along.
        trust: ASSUME_CUBE_HF32 rounds FP32; without ASSUME_GRADUAL_UNDERFLOW subnormal elements may
            be zero.
        executor: prepares rows of FP32 with intervals, where it can.
        scratch: the memory of the result.
        bound: rows get weights, where no line is an outlier.
    """
    rounds = fmt is FP32 and ASSUME_CUBE_HF32 in trust.assumed
    if scratch is not None and executor is not None and fmt is FP32 and not rounds:
        found = _natively(executor, x, fmt, trust, scratch, bound)
        if found is not None:
            return found
    room = None if scratch is None else scratch.room("values", x.shape)
    values = _in_float64(x.values, fmt, rounds, room)
    if x.interval is None:
        low = high = values
    else:
        low, high = (_in_float64(end, fmt, rounds) for end in (x.low, x.high))
    if ASSUME_GRADUAL_UNDERFLOW not in trust.assumed:
        low, high = _with_flushed(low, high, 2.0**fmt.emin)
    none = np.zeros(values.shape[1 - axis], np.bool_)
    reach = None if low is high else np.maximum(np.abs(low), np.abs(high))
    raw, strange = values, None
    outliers: Bools = none
    is_nan: Bools = none
    flags: Bools = none
    is_narrow = reach is None and fmt in (BF16, FP16)
    whole = values if reach is None else reach
    if not (_are_codes_finite(x.values, fmt) if is_narrow else _are_finite(whole)):
        reach = np.abs(values) if reach is None else reach
        strange = ~np.isfinite(reach)
        outliers = np.asarray(strange.any(axis=axis))
        is_nan = np.asarray(np.isnan(low).any(axis=axis))
        was_exact = low is high
        high, reach = (np.where(strange, 0.0, part) for part in (high, reach))
        # A finite number may have an infinite end: it stays among the values computed here.
        values = high if was_exact else np.where(np.isfinite(raw), raw, 0.0)
        low = high if was_exact else np.where(strange, 0.0, low)
    exact = MatrixOperand(
        values=values,
        middle=values,
        radius=None,
        own_reach=reach,
        exact=~none,
        outliers=outliers,
        may_be_nan=none,
        is_nan=is_nan,
        cause=None,
        raw=raw,
    )
    if low is high:
        return exact
    middle = (low + high) / 2
    # The factor covers the rounding of the difference.
    radius = np.maximum(high - middle, middle - low) * (1 + 2.0**-51)
    settled, cause = radius == 0, None
    if x.interval is not None:
        settled &= same_code(x.low, x.high)
        widest = radius if strange is None else np.where(strange, np.inf, radius)
        if x.interval.may_be_nan is not None:
            flags = np.asarray(x.interval.may_be_nan.any(axis=axis))
            settled &= ~x.interval.may_be_nan
            widest = np.where(x.interval.may_be_nan, np.inf, widest)
        at = np.where(settled, -1.0, widest).argmax(axis=axis)
        of_lines = np.moveaxis(np.broadcast_to(x.interval.cause, radius.shape), axis, 0)
        is_open = np.moveaxis(~settled, axis, 0)
        cause = cause_along(trust, of_lines, at[None], is_open, 0)[0]
    found = replace(
        exact,
        middle=middle,
        radius=radius,
        exact=np.asarray(settled.all(axis=axis)),
        may_be_nan=flags,
        cause=cause,
    )
    is_plain = strange is None and not flags.any()
    return found if bound is None or not is_plain else _with_weights(found, radius, bound)


def _with_weights(x: MatrixOperand, radius: Doubles, bound: FloatBound) -> MatrixOperand:
    """Rows with weights, and with their sides.

    The error of a sum has two parts: its own, of all magnitudes, and that of the intervals. A side
    is 1 if in all terms of a row the second part is clearly the greater one, 2 if it is clearly the
    lesser, else 0.
    """
    own = x.reach * (bound.growth + bound.slack)
    sides = np.zeros(radius.shape[0], np.uint8)
    sides[(radius * CLEARLY <= own).all(axis=1)] = 2
    sides[(radius >= own * CLEARLY).all(axis=1)] = 1
    return replace(x, weights=own + radius * (1 + bound.slack), sides=sides)


def _natively(
    executor: Executor,
    x: Enclosure,
    fmt: FloatFormat,
    trust: Trust,
    scratch: Scratch,
    bound: FloatBound | None,
) -> MatrixOperand | None:
    """Rows with intervals; None without one, or where an element may be infinite or NaN."""
    from simulator.arithmetic.native import product_bounds

    ends = x.interval
    if ends is None or ends.may_be_nan is not None or not x.values.size:
        return None
    is_one = not any(ends.cause.strides)
    names = ("values", "middle", "radius", "reach", *(() if bound is None else ("weights",)))
    found = product_bounds.prepared(
        executor,
        x.values,
        ends.low,
        ends.high,
        None if is_one else ends.cause,
        {name: scratch.room(name, x.shape) for name in names},
        least=0.0 if ASSUME_GRADUAL_UNDERFLOW in trust.assumed else 2.0**fmt.emin,
        growth=0.0 if bound is None else bound.growth + bound.slack,
        factor=0.0 if bound is None else 1 + bound.slack,
        joins_causes=trust.names_choices,
    )
    if found is None:
        return None
    exact = found["exact"]
    none = np.zeros(exact.shape, np.bool_)
    if not is_one:
        cause = found["cause"]
    elif trust.names_choices:
        cause = ends.cause[:, 0] * ~exact
    else:
        cause = ends.cause[:, 0]
    return MatrixOperand(
        values=found["values"],
        middle=found["middle"],
        radius=found["radius"],
        own_reach=found["reach"],
        exact=exact,
        outliers=none,
        may_be_nan=none,
        is_nan=none,
        cause=cause,
        raw=found["values"],
        weights=found.get("weights"),
        sides=found.get("sides"),
    )


def last_bits(numbers: Doubles, axis: int) -> Exponents:
    """By line, the exponent of the least bit set in any finite number; `NO_BITS` for zeros."""
    found: Exponents = last_bit(numbers).min(axis, initial=NO_BITS)
    return found


def _with_flushed(low: Doubles, high: Doubles, least: float) -> tuple[Doubles, Doubles]:
    positive = (low > 0) & (low < least)
    negative = (high < 0) & (high > -least)
    if not (positive.any() or negative.any()):
        return low, high
    return np.where(positive, 0.0, low), np.where(negative, -0.0, high)


def _in_float64(
    values: Array, fmt: FloatFormat, rounds: bool, out: Doubles | None = None
) -> Doubles:
    """Numbers of a format in float64, perhaps in given memory."""
    if values.ndim == 2 and values.T.flags.c_contiguous and not values.flags.c_contiguous:
        return _in_float64(values.T, fmt, rounds).T
    values = np.ascontiguousarray(values)
    if fmt is FP64:
        return values
    if fmt is BF16:
        return _wide_bf16(values)
    single = as_fp32(values, fmt)
    single = _hf32(single) if rounds else single
    if out is None:
        return single.astype(np.float64)
    np.copyto(out, single)
    return out


_PIECE_ELEMS: Final = 1 << 16


def _wide_bf16(values: Array) -> Doubles:
    """The numbers of BF16, which are the upper halves of FP32's, piece by piece in the cache."""
    codes = values.reshape(-1).view(np.uint16)
    found = result_memory.empty(codes.size, FP64.dtype)
    room = np.empty(min(codes.size, _PIECE_ELEMS), np.uint32)
    for start in range(0, codes.size, _PIECE_ELEMS):
        piece = codes[start : start + _PIECE_ELEMS]
        wide = room[: piece.size]
        wide[...] = piece
        wide <<= np.uint32(16)
        found[start : start + _PIECE_ELEMS] = wide.view(np.float32)
    return found.reshape(values.shape)


def _are_codes_finite(values: Array, fmt: FloatFormat) -> bool:
    """True if no number of a format of 16 bits is infinite or NaN.

    As integers without a sign the negative numbers are the greatest, with one the positive ones.
    """
    assert fmt.inf_code is not None
    most = values.view(np.uint16).max(initial=0), values.view(np.int16).max(initial=0)
    return int(most[0]) < fmt.sign_code + fmt.inf_code and int(most[1]) < fmt.inf_code


def _are_finite(values: Doubles) -> bool:
    return bool(np.isfinite(values.max(initial=0.0)) and np.isfinite(values.min(initial=0.0)))


def _hf32(values: Array) -> Array:
    """Round FP32 to 11 mantissa bits, to nearest, ties to even; infinity and NaN stay."""
    dropped = FP32.man_bits - _HF32_MAN_BITS
    codes = values.view(np.uint32)
    half, unit = np.uint32((1 << dropped - 1) - 1), np.uint32(1)
    rounded = codes + half + (codes >> np.uint32(dropped) & unit)
    rounded &= ~np.uint32((1 << dropped) - 1)
    kept: Array = np.where(np.isfinite(values), rounded, codes).view(np.float32)
    return kept
