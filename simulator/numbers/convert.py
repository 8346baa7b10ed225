"""THE DEFINITION of a conversion: unpack, round once, pack; then overflow and NaN by a policy row.

Every other path in this project (tables, bit arithmetic, C++) is checked against this file. It is
exact for every pair of formats: a value is carried as (sign, 64-bit significand, exponent), so no
float ever stands between two integers and nothing is rounded twice.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.formats import (
    BOOL,
    FP32,
    Codes,
    FloatFormat,
    Format,
    IntFormat,
    assert_never,
    taper_of,
)
from simulator.numbers.rounding import Bools, RoundMode, round_significand, rounds_away


class Overflow(enum.Enum):
    """The results of finite values that the destination cannot hold."""

    IEEE = "infinity or the largest finite number, as the round mode points (IEEE 754 7.4)"
    SATURATE = "the largest or smallest finite number"
    WRAP = "the low bits of the exact rounded integer (integers only)"

    __hash__ = object.__hash__  # the one of Enum is Python code

    @property
    def keeps_low_bits(self) -> bool:
        """Integers out of range keep their low bits; otherwise they become the nearest limit."""
        match self:
            case Overflow.IEEE | Overflow.SATURATE:
                return False
            case Overflow.WRAP:
                return True
            case _:
                assert_never(self)

    @property
    def saturates(self) -> bool:
        """Floats out of range become the largest number of their sign, in every mode."""
        match self:
            case Overflow.IEEE:
                return False
            case Overflow.SATURATE:
                return True
            case Overflow.WRAP:
                return False  # no rule of floats
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A row of special-value behaviour.

    Where the destination lacks what a row asks for, the next best stands in: infinity becomes NaN,
    or the largest number where there is no NaN either; NaN becomes +0. Integers have neither, so
    under every policy an infinity clamps and a NaN gives 0.

    Attributes:
        name: for tables and messages.
        overflow: rule for finite values out of range.
        keeps_inf: an infinite source stays infinite (else: largest number of its sign).
        keeps_nan: NaN stays NaN (else: +0).
        keeps_nan_sign: a NaN result has the sign of its source (else: it is positive), where the
            destination has NaNs of both signs.
    """

    name: str
    overflow: Overflow
    keeps_inf: bool
    keeps_nan: bool
    keeps_nan_sign: bool = False

    def __str__(self) -> str:
        return self.name


INF_NAN: Final = Policy(name="INF_NAN", overflow=Overflow.IEEE, keeps_inf=True, keeps_nan=True)
"""A2/A3 default, CTRL[48]=1."""
SATURATE: Final = Policy(
    name="SATURATE", overflow=Overflow.SATURATE, keeps_inf=False, keeps_nan=False
)
"""CTRL[48]=0 for FP16 and BF16 results; CTRL[59]=0 for integer results."""
WRAP: Final = Policy(name="WRAP", overflow=Overflow.WRAP, keeps_inf=False, keeps_nan=False)
"""CTRL[59]=1: integer results keep the low bits; infinities still clamp."""
SATURATE_KEEP_NAN: Final = Policy(
    name="SATURATE_KEEP_NAN", overflow=Overflow.SATURATE, keeps_inf=False, keeps_nan=True
)
"""Saturating 8-bit float casts of other frameworks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """Exact values: (-1)**negative * significand * 2**exponent, or infinity, or NaN."""

    negative: Bools
    significand: npt.NDArray[np.uint64]
    exponent: npt.NDArray[np.int64]
    inf: Bools
    nan: Bools


_POWERS_OF_TWO: Final = np.uint64(1) << np.arange(64, dtype=np.uint64)


def bit_length(significand: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Bits needed for each magnitude; 0 for 0."""
    return np.searchsorted(_POWERS_OF_TWO, significand, side="right").astype(np.int64)


def unpack(codes: Codes, fmt: Format) -> Unpacked:
    """Take codes apart into exact values."""
    if isinstance(fmt, IntFormat):
        return _unpack_int(codes, fmt)
    return _unpack_float(codes, fmt)


def _unpack_int(codes: Codes, fmt: IntFormat) -> Unpacked:
    mask = np.uint64((1 << fmt.bits) - 1)
    wide = codes.astype(np.uint64) & mask
    nowhere = np.zeros(wide.shape, np.bool_)
    negative = (wide >> np.uint64(fmt.bits - 1)) != 0 if fmt.signed else nowhere
    magnitude = np.where(negative, np.negative(wide) & mask, wide)
    exponent = np.zeros(wide.shape, np.int64)
    return Unpacked(
        negative=negative, significand=magnitude, exponent=exponent, inf=nowhere, nan=nowhere
    )


def _unpack_float(codes: Codes, fmt: FloatFormat) -> Unpacked:
    wide = codes.astype(np.uint64)
    magnitude = wide & np.uint64(fmt.sign_code - 1)
    negative = (wide & np.uint64(fmt.sign_code)) != 0
    if fmt.dots:
        taper = taper_of(fmt)
        ranks = taper.ranks[magnitude]
        significand, exponent = taper.significands[ranks], taper.quanta[ranks]
    else:
        field = (magnitude >> np.uint64(fmt.man_bits)).astype(np.int64)
        fraction = magnitude & np.uint64((1 << fmt.man_bits) - 1)
        implicit = ((field != 0) | fmt.is_scale).astype(np.uint64) << np.uint64(fmt.man_bits)
        significand = fraction | implicit
        exponent = np.maximum(field, int(not fmt.is_scale)) - fmt.bias - fmt.man_bits
    nowhere = np.zeros(wide.shape, np.bool_)
    inf = nowhere if fmt.inf_code is None else magnitude == np.uint64(fmt.inf_code)
    if fmt.nan_is_negative_zero:
        nan = wide == np.uint64(fmt.sign_code)
    else:
        nan = magnitude > np.uint64(fmt.max_code if fmt.inf_code is None else fmt.inf_code)
    return Unpacked(
        negative=negative,
        significand=significand,
        exponent=exponent,
        inf=inf,
        nan=nan,
    )


def convert(codes: Codes, src: Format, dst: Format, mode: RoundMode, policy: Policy) -> Codes:
    """Convert codes of one format to codes of another, rounding once.

    NaN, infinity and values out of range follow `policy`. -0 keeps its sign between formats that
    have one and becomes 0 elsewhere. Subnormal numbers are gradual on both sides. BOOL as a
    destination is "not zero": every NaN and infinity is true, and nothing is rounded. E8M0 as a
    destination has neither sign nor zero: what lies below its smallest number (zeros and negative
    numbers do) becomes that number where the policy saturates, else NaN, like what lies above its
    largest one; so says the table of ONNX Cast-24, which leaves -0 and negative numbers open.

    Args:
        codes: source codes of dtype `src.code_dtype`, any shape.
        src: source format.
        dst: destination format.
        mode: how inexact results are rounded.
        policy: what becomes of NaN, infinity and overflow.

    Returns:
        Destination codes of dtype `dst.code_dtype`, same shape.

    Raises:
        ValueError: `policy` wraps and `dst` is a float format.
    """
    return pack(unpack(codes, src), dst, mode, policy)


def pack(value: Unpacked, dst: Format, mode: RoundMode, policy: Policy) -> Codes:
    """Round exact values once, to codes of a format; the second half of `convert`.

    Raises:
        ValueError: `policy` wraps and `dst` is a float format.
    """
    if dst is BOOL:
        truth: Codes = (value.nan | value.inf | (value.significand != 0)).astype(dst.code_dtype)
        return truth
    if isinstance(dst, IntFormat):
        return _pack_int(value, dst, mode, policy)
    if policy.overflow.keeps_low_bits:
        raise ValueError(f"{policy} keeps low bits of an integer; {dst} is a float format")
    return (_pack_scale if dst.is_scale else _pack_float)(value, dst, mode, policy)


def round_to_integral(codes: Codes, fmt: FloatFormat, mode: RoundMode) -> Codes:
    """Round floats to integral values of the same format.

    NaN becomes the one NaN of the format, infinities stay, and every zero result is +0: the A2/A3
    vector core is documented to differ from IEEE 754 there.
    """
    value = unpack(codes, fmt)
    shift = np.maximum(-value.exponent, 0)
    kept = round_significand(value.significand, shift, value.negative, mode)
    integral = Unpacked(
        negative=value.negative & ((kept != 0) | value.inf),
        significand=kept,
        exponent=value.exponent + shift,
        inf=value.inf,
        nan=value.nan,
    )
    return _pack_float(integral, fmt, mode, INF_NAN)


def _pack_float(value: Unpacked, dst: FloatFormat, mode: RoundMode, policy: Policy) -> Codes:
    leading = value.exponent + bit_length(value.significand) - 1
    # A zero has no leading bit: it counts as subnormal.
    leading = np.where(value.significand == 0, dst.emin, leading)
    quantum = dst.quanta(leading)
    kept = round_significand(value.significand, quantum - value.exponent, value.negative, mode)
    magnitude = dst.rank_bases(leading, quantum) + kept
    everywhere = np.ones(magnitude.shape, np.bool_)
    overflow = magnitude > np.uint64(dst.max_rank)
    to_inf = value.inf & policy.keeps_inf
    if not policy.overflow.saturates:
        to_inf = to_inf | overflow & ~value.inf & rounds_away(
            mode, guard=everywhere, sticky=everywhere, odd=everywhere, negative=value.negative
        )
    magnitude = np.where(overflow | value.inf, np.uint64(dst.max_rank), magnitude)
    to_nan = value.nan
    if dst.inf_code is not None:
        magnitude = np.where(to_inf, np.uint64(dst.max_rank + 1), magnitude)
    elif dst.nan_code is not None:
        to_nan = to_nan | to_inf
    signed = value.negative & (dst.has_negative_zero | (magnitude != 0))
    if dst.dots:
        magnitude = taper_of(dst).codes[magnitude]
    packed = magnitude | np.where(signed, np.uint64(dst.sign_code), np.uint64(0))
    packed = np.where(to_nan, np.uint64(_nan_code(dst, policy)), packed)
    if policy.keeps_nan_sign and dst.has_negative_zero and dst.nan_code is not None:
        negative_nan = to_nan & value.negative & policy.keeps_nan
        packed = packed | np.where(negative_nan, np.uint64(dst.sign_code), np.uint64(0))
    return packed.astype(dst.code_dtype)


def _nan_code(dst: FloatFormat, policy: Policy) -> int:
    return dst.nan_code if policy.keeps_nan and dst.nan_code is not None else 0


def _pack_scale(value: Unpacked, dst: FloatFormat, mode: RoundMode, policy: Policy) -> Codes:
    """Keep the leading bit alone, which rounding may carry to the next power of two."""
    length = bit_length(value.significand)
    leading = value.exponent + length - 1
    kept = round_significand(value.significand, length - 1, value.negative, mode)
    above_power = (value.significand & (value.significand - np.uint64(1))) != 0
    largest = dst.max_code - dst.bias
    below = value.negative | (~value.inf & ((value.significand == 0) | (leading < dst.emin)))
    above = ~below & (value.inf | (leading + above_power > largest))
    code = leading + dst.bias + (kept == 2)
    code = np.where(below, 0, np.where(above, dst.max_code, code))
    to_nan = value.nan
    if not policy.overflow.saturates:
        to_nan = to_nan | below | above
    if policy.keeps_inf:
        to_nan = to_nan | value.inf
    return np.where(to_nan, _nan_code(dst, policy), code).astype(dst.code_dtype)


def _pack_int(value: Unpacked, dst: IntFormat, mode: RoundMode, policy: Policy) -> Codes:
    shift = -value.exponent
    magnitude = round_significand(value.significand, shift, value.negative, mode)
    # Nothing of a significand shifted up by 64 or more is left in the low 64 bits.
    magnitude = np.where(shift <= -64, np.uint64(0), magnitude)
    limit = np.where(value.negative, np.uint64(-dst.min), np.uint64(dst.max))
    if not policy.overflow.keeps_low_bits:
        beyond_word = bit_length(value.significand) - shift > 64
        magnitude = np.where(beyond_word | (magnitude > limit), limit, magnitude)
    magnitude = np.where(value.inf, limit, magnitude)
    magnitude = np.where(value.nan, np.uint64(0), magnitude)
    negated = np.where(value.negative, np.negative(magnitude), magnitude)
    return (negated & np.uint64((1 << dst.bits) - 1)).astype(dst.code_dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """One conversion, named completely. From a float format to itself it rounds to integral values.

    Attributes:
        src: source format.
        dst: destination format.
        mode: how inexact results are rounded.
        policy: what becomes of NaN, infinity and overflow.
    """

    src: Format
    dst: Format
    mode: RoundMode
    policy: Policy

    @property
    def is_integral(self) -> bool:
        """Rounds to integral values of the same format (the Cast instruction from FP32 to FP32)."""
        return self.src is self.dst and isinstance(self.src, FloatFormat)

    def reference(self, codes: Codes) -> Codes:
        """Convert codes by the definition, which every fast path is compared with."""
        if isinstance(self.src, FloatFormat) and self.is_integral:
            return round_to_integral(codes, self.src, self.mode)
        return convert(codes, self.src, self.dst, self.mode, self.policy)


def codes_of(values: npt.NDArray[Any], fmt: Format) -> Codes:
    """View values as codes: no copy, apart from sub-byte formats, whose unused bits are cleared."""
    codes: Codes = np.ascontiguousarray(values).view(fmt.code_dtype)
    if 1 < fmt.bits < 8:
        codes = codes & fmt.code_dtype.type((1 << fmt.bits) - 1)
    return codes


def canonical_bools(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Bools of bytes 0 and 1. Any byte but 0 is True, and a view of a mask holds such ones.

    Args:
        values: of any dtype, shape and strides; not modified.

    Returns:
        `values` itself, or, where another byte is among its bools, a new array of its shape.
    """
    if values.dtype != np.bool_ or values.view(np.uint8).max(initial=0) <= 1:
        return values
    return np.not_equal(values.view(np.uint8), 0, out=np.empty(values.shape, np.bool_))


def values_of(codes: Codes, fmt: Format) -> npt.NDArray[Any]:
    """View codes as values of the format's numpy dtype."""
    return codes.view(fmt.dtype)


def in_numpy(values: npt.NDArray[Any], fmt: Format) -> npt.NDArray[Any]:
    """Values to compute with: themselves, or FP32 numbers where numpy lacks the format.

    FP32 holds every number, infinity and NaN of such a format.
    """
    if fmt.is_in_numpy:
        return values
    return values_of(convert(codes_of(values, fmt), fmt, FP32, RoundMode.RINT, INF_NAN), FP32)
