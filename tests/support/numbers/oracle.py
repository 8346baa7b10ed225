"""The result of every cast in exact arithmetic, from the text of the rules alone.

Nothing of the project is imported: the formats, the table of pairs and modes, the rounding rules
and the special values are written out here a second time, by another hand. A source code becomes a
`Fraction`; everything after that is a comparison of exact numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

# --- Formats ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Float:
    """Sign, exponent and fraction bits, IEEE-like; `nan` is the one NaN a cast produces."""

    exp_bits: int
    man_bits: int
    nan: int

    @property
    def bits(self) -> int:
        return 1 + self.exp_bits + self.man_bits

    @property
    def bias(self) -> int:
        return (1 << (self.exp_bits - 1)) - 1

    @property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def inf(self) -> int:
        return ((1 << self.exp_bits) - 1) << self.man_bits

    @property
    def largest(self) -> int:
        """The code of the largest finite number."""
        return self.inf - 1

    def quantum(self, field: int) -> int:
        """The exponent of the last place of the numbers with this exponent field."""
        return max(field, 1) - self.bias - self.man_bits


@dataclass(frozen=True)
class Integer:
    """Two's complement when signed."""

    bits: int
    signed: bool

    @property
    def smallest(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def largest(self) -> int:
        return (1 << (self.bits - self.signed)) - 1

    def low_bits(self, number: int) -> int:
        return number & ((1 << self.bits) - 1)

    def clamp(self, number: int) -> int:
        return min(max(number, self.smallest), self.largest)


FORMATS: dict[str, Float | Integer] = {
    "FP32": Float(8, 23, nan=0x7FFFFFFF),
    "FP16": Float(5, 10, nan=0x7FFF),
    "BF16": Float(8, 7, nan=0x7FFF),
    "INT4": Integer(4, signed=True),
    "INT8": Integer(8, signed=True),
    "UINT8": Integer(8, signed=False),
    "INT16": Integer(16, signed=True),
    "INT32": Integer(32, signed=True),
    "INT64": Integer(64, signed=True),
    "UINT16": Integer(16, signed=False),
    "UINT32": Integer(32, signed=False),
    "UINT64": Integer(64, signed=False),
    "BOOL": Integer(1, signed=False),
}
INT32 = Integer(32, signed=True)

# --- Pairs and modes --------------------------------------------------------------------------

M5 = ("RINT", "ROUND", "FLOOR", "CEIL", "TRUNC")
MODES = (*M5, "ODD")


class Row(NamedTuple):
    """A pair the vector core converts; no modes means that rounding plays no part in it."""

    src: str
    dst: str
    modes: tuple[str, ...]
    default: str
    exact: bool = False


ROWS = (
    Row("FP32", "FP16", (*M5, "ODD"), "RINT"),
    Row("FP32", "BF16", M5, "RINT"),
    Row("FP32", "INT16", M5, "TRUNC"),
    Row("FP32", "INT32", M5, "TRUNC"),
    Row("FP32", "INT64", M5, "TRUNC"),
    Row("FP16", "FP32", (), "RINT", exact=True),
    Row("FP16", "INT32", M5, "TRUNC"),
    Row("FP16", "INT16", M5, "TRUNC"),
    Row("FP16", "INT8", M5, "TRUNC"),
    Row("FP16", "UINT8", M5, "TRUNC"),
    Row("BF16", "FP32", (), "RINT", exact=True),
    Row("BF16", "INT32", M5, "TRUNC"),
    Row("INT32", "FP32", M5, "RINT"),
    Row("INT32", "INT16", (), "RINT"),
    Row("INT32", "INT64", (), "RINT", exact=True),
    Row("INT32", "FP16", ("RINT",), "RINT"),
    Row("INT16", "FP32", (), "RINT", exact=True),
    Row("INT16", "FP16", M5, "RINT"),
    Row("INT64", "FP32", M5, "RINT"),
    Row("INT64", "INT32", (), "RINT"),
    Row("UINT8", "FP16", (), "RINT", exact=True),
    Row("INT8", "FP16", (), "RINT", exact=True),
    Row("FP32", "FP32", M5, "RINT"),
    Row("FP16", "INT4", M5, "TRUNC"),
    Row("INT4", "FP16", (), "RINT", exact=True),
)
ROW_OF = {(row.src, row.dst): row for row in ROWS}


def row_id(row: Row) -> str:
    """The pair as tests are named by it."""
    return f"{row.src}-{row.dst}".lower()


# SaturationMode.OFF keeps the low bits of the integer clamped to INT32, or of the integer itself.
OFF_THROUGH_INT32 = {("FP32", "INT16"), ("FP16", "INT16"), ("FP16", "INT8")}
OFF_DIRECT = {("FP16", "UINT8"), ("INT64", "INT32"), ("INT32", "INT16")}
OFF_PAIRS = OFF_THROUGH_INT32 | OFF_DIRECT

# --- Values -----------------------------------------------------------------------------------


class Value(NamedTuple):
    """The value of a code; `magnitude` counts only when `kind` is "finite"."""

    kind: str
    negative: bool
    magnitude: Fraction


def times_power_of_2(numerator: int, denominator: int, exponent: int) -> tuple[int, int]:
    """A quotient of integers times 2**exponent, as another one."""
    if exponent >= 0:
        return numerator << exponent, denominator
    return numerator, denominator << -exponent


@lru_cache(maxsize=1 << 17)
def decode(code: int, fmt: str) -> Value:
    form = FORMATS[fmt]
    if isinstance(form, Integer):
        number = code if code <= form.largest else code - (1 << form.bits)
        return Value("finite", number < 0, Fraction(abs(number)))
    negative = code >= form.sign_bit
    field, fraction = divmod(code % form.sign_bit, 1 << form.man_bits)
    if field == (1 << form.exp_bits) - 1:
        return Value("nan" if fraction else "inf", negative, Fraction(0))
    significand = fraction + (1 << form.man_bits if field else 0)
    numerator, denominator = times_power_of_2(significand, 1, form.quantum(field))
    return Value("finite", negative, Fraction(numerator, denominator))


class Split(NamedTuple):
    """A magnitude cut at the last place: what is kept, the first dropped bit, any bit after it."""

    kept: int
    guard: bool
    rest: bool


def split(magnitude: Fraction, fmt: str) -> Split:
    """Cuts a dyadic `magnitude`: `kept` is an integer, or the code of the float at or just below.

    That code is infinity's, for whatever reaches the power of two after the largest float.
    """
    form = FORMATS[fmt]
    numerator, denominator = magnitude.as_integer_ratio()
    below = 0
    if isinstance(form, Float):
        if magnitude == 0:
            return Split(0, False, False)
        # The denominator is a power of two: this is the whole part of the logarithm.
        power_of_2 = numerator.bit_length() - denominator.bit_length()
        field = max(power_of_2 + form.bias, 0)
        if field << form.man_bits >= form.inf:
            return Split(form.inf, False, False)
        # The implicit one of the significand adds 1 to the exponent field, so start one lower.
        below = max(field - 1, 0) << form.man_bits
        numerator, denominator = times_power_of_2(numerator, denominator, -form.quantum(field))
    whole, dropped = divmod(numerator, denominator)
    guard, rest = 2 * dropped >= denominator, dropped != 0 and 2 * dropped != denominator
    return Split(below + whole, guard, rest)


def rounded(parts: Split, negative: bool, mode: str) -> int:
    """`parts.kept`, or the next one up: the table of rounding modes on sign and magnitude."""
    kept, guard, rest = parts
    odd = kept % 2 == 1
    inexact = guard or rest
    match mode:
        case "RINT":
            return kept + (guard and (rest or odd))
        case "ROUND":
            return kept + guard
        case "FLOOR":
            return kept + (negative and inexact)
        case "CEIL":
            return kept + (not negative and inexact)
        case "TRUNC":
            return kept
        case "ODD":
            return kept + (inexact and not odd)
    raise ValueError(f"{mode} is no rounding mode")


# --- Casts ------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 17)
def _cut(code: int, src: str, dst: str) -> tuple[Value, Split]:
    value = decode(code, src)
    return value, split(value.magnitude, dst)


def _to_integral(code: int, mode: str) -> int:
    """FP32 -> FP32: the nearest integral value in the mode's direction, every zero +0."""
    value, parts = _cut(code, "FP32", "INT64")
    if value.kind == "nan":
        return 0x7FFFFFFF
    if value.kind == "inf":
        return code
    number = rounded(parts, value.negative, mode)
    result = split(Fraction(number), "FP32")
    if result.guard or result.rest:
        raise ArithmeticError(f"{number} is no FP32 number")
    return result.kept | (0x80000000 if value.negative and number else 0)


def _to_float(code: int, src: str, dst: str, mode: str, inf_nan_mode: bool) -> int:
    form = FORMATS[dst]
    assert isinstance(form, Float)
    saturate = not inf_nan_mode and dst != "FP32"
    value, parts = _cut(code, src, dst)
    if value.kind == "nan":
        return 0 if saturate else form.nan
    sign = form.sign_bit if value.negative else 0
    if value.kind == "inf":
        return sign | (form.largest if saturate else form.inf)
    result = rounded(parts, value.negative, mode)
    if result >= form.inf:
        to_inf = {
            "RINT": True,
            "ROUND": True,
            "FLOOR": value.negative,
            "CEIL": not value.negative,
            "TRUNC": False,
            "ODD": False,
        }[mode]
        result = form.inf if to_inf and not saturate else form.largest
    return sign | result


def _to_integer(code: int, src: str, dst: str, mode: str, satmode: str) -> int:
    form = FORMATS[dst]
    assert isinstance(form, Integer)
    value, parts = _cut(code, src, dst)
    if value.kind == "nan":
        return 0
    if value.kind == "finite":
        magnitude = rounded(parts, value.negative, mode)
        number = -magnitude if value.negative else magnitude
    elif (src, dst) in OFF_THROUGH_INT32 and satmode == "OFF":
        number = INT32.smallest if value.negative else INT32.largest
    else:
        number = form.smallest if value.negative else form.largest
    if satmode == "OFF" and (src, dst) in OFF_PAIRS:
        through = (src, dst) in OFF_THROUGH_INT32
        return form.low_bits(INT32.clamp(number) if through else number)
    return form.low_bits(form.clamp(number))


def expected(
    code: int, src: str, dst: str, mode: str, *, satmode: str = "ON", inf_nan_mode: bool = True
) -> int:
    """The destination code of one source code; `mode` is one the pair has (any, if it has none).

    INT4 codes are nibbles, 0 to 15. `satmode="OFF"` clamps where the pair has no such mode.
    """
    row = ROW_OF[src, dst]
    if mode not in (row.modes or MODES):
        raise ValueError(f"{src} -> {dst} has the modes {row.modes}, not {mode}")
    if src == dst:
        return _to_integral(code, mode)
    if isinstance(FORMATS[dst], Float):
        return _to_float(code, src, dst, mode, inf_nan_mode)
    return _to_integer(code, src, dst, mode, satmode)


def rounded_once(code: int, src: str, dst: str, mode: str) -> int:
    """The code after one saturating rounding between any two formats, pairs of the core or not."""
    if src == dst:
        return _to_integral(code, mode)
    if dst == "BOOL":
        value = decode(code, src)
        return int(value.kind != "finite" or value.magnitude != 0)
    if isinstance(FORMATS[dst], Float):
        return _to_float(code, src, dst, mode, True)
    return _to_integer(code, src, dst, mode, "ON")


def with_scalar(code: int, op: str, fmt: str, scalar: float) -> int:
    """The code after Maxs, Mins, Muls, ShiftLeft or ShiftRight."""
    form = FORMATS[fmt]
    if op in ("ShiftLeft", "ShiftRight"):
        assert isinstance(form, Integer)
        assert not form.signed
        return form.low_bits(code << int(scalar)) if op == "ShiftLeft" else code >> int(scalar)
    value = decode(code, fmt)
    if isinstance(form, Float) and value.kind == "nan":
        return form.nan
    signed = -value.magnitude if value.negative else value.magnitude
    if op == "Muls":
        assert isinstance(form, Float)
        sign = form.sign_bit if value.negative else 0
        product = split(value.magnitude * Fraction(scalar), fmt)
        size = form.inf if value.kind == "inf" else rounded(product, value.negative, "RINT")
        return sign | min(size, form.inf)
    of_scalar = encode(scalar, fmt)
    if value.kind == "inf":
        return code if value.negative == (op == "Mins") else of_scalar
    if signed == scalar:
        # -0 lies below +0, and the scalar is +0.
        return of_scalar if op == "Maxs" else code
    return code if (signed > scalar) == (op == "Maxs") else of_scalar


def encode(number: float, fmt: str) -> int:
    """The code of a number that the format has."""
    form = FORMATS[fmt]
    if isinstance(form, Integer):
        return form.low_bits(int(number))
    parts = split(abs(Fraction(number)), fmt)
    assert not parts.guard
    assert not parts.rest
    return parts.kept | (form.sign_bit if number < 0 else 0)


def code_dtype(fmt: str) -> np.dtype[np.unsignedinteger]:
    """The unsigned numpy dtype that holds one code."""
    return np.dtype(f"uint{max(FORMATS[fmt].bits, 8)}")


def expected_codes(
    codes: np.ndarray,
    src: str,
    dst: str,
    mode: str,
    *,
    satmode: str = "ON",
    inf_nan_mode: bool = True,
) -> np.ndarray:
    """`expected` of every element, in the shape of `codes`."""
    flat = [
        expected(code, src, dst, mode, satmode=satmode, inf_nan_mode=inf_nan_mode)
        for code in codes.ravel().tolist()
    ]
    return np.array(flat, dtype=code_dtype(dst)).reshape(codes.shape)


@lru_cache(maxsize=8)
def expected_table(
    src: str, dst: str, mode: str, *, satmode: str = "ON", inf_nan_mode: bool = True
) -> np.ndarray:
    """The destination codes of all source codes in order, for sources of at most 16 bits."""
    codes = np.arange(1 << FORMATS[src].bits)
    return expected_codes(codes, src, dst, mode, satmode=satmode, inf_nan_mode=inf_nan_mode)
