"""Numbers as a user writes them, exactly, and codes as a reader wants to see them."""

from __future__ import annotations

import decimal
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np

from simulator.numbers.convert import unpack
from simulator.numbers.formats import FloatFormat, Format, IntFormat

CODE_PREFIX: Final = "code:"
_MAX_EXPONENT: Final = 5000
"""Far beyond every format; a larger exponent would only take memory."""
_HEX_FLOAT: Final = re.compile(
    r"(?P<sign>[+-]?)0x(?P<whole>[0-9a-f]*)\.?(?P<part>[0-9a-f]*)(p(?P<exponent>[+-]?\d+))?", re.I
)
_EXACT: Final = decimal.Context(prec=2000, Emin=-9999, Emax=9999)
_SHORT: Final = decimal.Context(prec=9, Emin=-9999, Emax=9999)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """An exact number, with the sign that zero has too, or what is none: "inf" or "nan"."""

    negative: bool
    magnitude: Fraction
    special: str = ""

    @property
    def fraction(self) -> Fraction:
        """The value; of what is no number, 0."""
        return -self.magnitude if self.negative else self.magnitude

    def __str__(self) -> str:
        sign = "-" if self.negative and self.special != "nan" else ""
        return sign + (self.special or decimal_text(self.magnitude))


def number_named(text: str) -> Number:
    """Read a decimal literal, a hexadecimal one (0x1.8p3), inf or nan, without rounding.

    Raises:
        ValueError: it is none of them, or its exponent is absurd.
    """
    match = _HEX_FLOAT.fullmatch(text.strip())
    if match and (match["whole"] or match["part"]):
        exponent = int(match["exponent"] or 0)
        digits = int(match["whole"] + match["part"], 16)
        power = exponent - 4 * len(match["part"])
        _check_exponent(text, power)
        magnitude = Fraction(digits << max(power, 0), 1 << max(-power, 0))
        return Number(negative=match["sign"] == "-", magnitude=magnitude)
    try:
        value = Decimal(text.strip())
    except decimal.InvalidOperation:
        raise ValueError(
            f"{text!r} is no number: write 0.1, -1e-3, 0x1.8p3, inf, nan, or {CODE_PREFIX}0x3f80 "
            "for the bits of one"
        ) from None
    negative = value.is_signed()
    if not value.is_finite():
        special = "nan" if value.is_nan() else "inf"
        return Number(negative=negative, magnitude=Fraction(0), special=special)
    if value:
        _check_exponent(text, value.adjusted())
    return Number(negative=negative, magnitude=abs(Fraction(value)) if value else Fraction(0))


def nearest_code(number: Number, fmt: Format) -> int:
    """The code nearest to a number, ties to even; beyond the largest float that is infinity.

    Raises:
        ValueError: an integer format that cannot hold it, or a format without such a value:
            infinity, NaN, what lies beyond the largest number of a float without infinity; zero
            and negative numbers in E8M0.
    """
    code = _nearest_int(number, fmt) if isinstance(fmt, IntFormat) else _nearest_float(number, fmt)
    if code is None:
        raise ValueError(f"{short_text(str(number))} is not in {fmt}, which holds {_range(fmt)}")
    return code


def _nearest_int(number: Number, fmt: IntFormat) -> int | None:
    value = round(number.fraction)
    if number.special or not fmt.min <= value <= fmt.max:
        return None
    return value & ((1 << fmt.bits) - 1)


def _nearest_float(number: Number, fmt: FloatFormat) -> int | None:
    if number.special == "nan":
        return fmt.nan_code
    leading = np.array([_leading(number.magnitude, fmt.emin)])
    quanta = fmt.quanta(leading)
    kept = round(number.magnitude / Fraction(2) ** int(quanta[0]))
    # E8M0 has no zero: its codes begin with its smallest number.
    rank = int(fmt.rank_bases(leading, quanta)[0]) + kept - fmt.is_scale
    if number.special or rank > fmt.max_rank:
        if fmt.inf_code is None:
            return None
        rank = fmt.max_rank + 1
    if fmt.is_scale and (number.negative or rank < 0):
        return None
    signed = number.negative and (rank > 0 or fmt.has_negative_zero)
    return fmt.code_of_rank(rank) | (fmt.sign_code if signed else 0)


def _range(fmt: Format) -> str:
    if isinstance(fmt, IntFormat):
        return f"{fmt.min} to {fmt.max}"
    largest = str(number_of(fmt.max_code, fmt))
    least = str(number_of(0, fmt)) if fmt.is_scale else f"-{largest}"
    return f"{short_text(least)} to {short_text(largest)}"


def code_named(text: str, fmt: Format) -> int:
    """Read the bits of a number: `code:0x3dcccccd` (any base that Python knows).

    Raises:
        ValueError: no integer, or one that has more bits than the format.
    """
    try:
        code = int(text.removeprefix(CODE_PREFIX), 0)
    except ValueError:
        code = -1
    if not 0 <= code < 1 << fmt.bits:
        raise ValueError(f"{text!r} is no code of {fmt}, which has {fmt.bits} bits")
    return code


def number_of(code: int, fmt: Format) -> Number:
    """The exact number that a code stands for."""
    value = unpack(np.array([code], fmt.code_dtype), fmt)
    special = "nan" if value.nan[0] else "inf" if value.inf[0] else ""
    magnitude = Fraction(int(value.significand[0])) * Fraction(2) ** int(value.exponent[0])
    return Number(
        negative=bool(value.negative[0]),
        magnitude=Fraction(0) if special else magnitude,
        special=special,
    )


def bits_text(code: int, fmt: Format) -> str:
    """A code in binary: sign|exponent|fraction of a float, sign|rest of a signed integer.

    E8M0 is all exponent. HF8 is sign|dot|exponent|fraction, or sign|dot|rest where the dot is zero.
    """
    text = f"{code:0{fmt.bits}b}"
    if isinstance(fmt, FloatFormat):
        if fmt.is_scale:
            return text
        if fmt.dots:
            return "|".join(filter(None, _tapered_fields(text, fmt)))
        end = 1 + fmt.exp_bits
        return "|".join((text[0], text[1:end], text[end:]))
    return f"{text[0]}|{text[1:]}" if fmt.signed else text


def _tapered_fields(text: str, fmt: FloatFormat) -> tuple[str, ...]:
    for size, dot in enumerate(fmt.dots):
        end = 1 + len(dot)
        if text.startswith(dot, 1):
            return text[0], dot, text[end : end + size], text[end + size :]
    end = 1 + len(fmt.dots[0])
    return text[0], text[1:end], text[end:]


def decimal_text(value: Fraction) -> str:
    """A value whose denominator is a power of two, written out in full."""
    exact = _EXACT.divide(Decimal(value.numerator), Decimal(value.denominator))
    if exact == exact.to_integral_value():
        return f"{exact:f}".partition(".")[0]
    return str(exact.normalize(_EXACT))


def short_text(text: str, room: int = 24) -> str:
    """A number cut to nine digits if it takes more room, with a mark that it was."""
    if len(text) <= room or not text[-1].isdigit():
        return text
    return f"~{_SHORT.create_decimal(text).normalize(_SHORT)}"


def _leading(magnitude: Fraction, of_zero: int) -> int:
    """The exponent of the leading bit of a magnitude."""
    if not magnitude:
        return of_zero
    guess = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return guess - (magnitude < Fraction(2) ** guess)


def _check_exponent(text: str, exponent: int) -> None:
    if abs(exponent) > _MAX_EXPONENT:
        raise ValueError(f"the exponent of {text!r} is beyond {_MAX_EXPONENT}")
