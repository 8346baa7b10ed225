"""Text and numbers: literals read exactly and rounded once, numbers written without exponents."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.numbers import float_environment
from simulator.numbers.convert import Policy, Unpacked, codes_of, pack, values_of
from simulator.numbers.formats import FP16, FP32, FP64, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode

Array = npt.NDArray[Any]

_BLANKS: Final = " \t\n\r\f\v"
_NUMBER: Final = re.compile(
    r"(?P<sign>[+-]?)"
    r"(?:(?P<digits>\d+\.?\d*|\.\d+)(?:e(?P<exponent>[+-]?\d+))?|(?P<inf>inf(?:inity)?)|(?P<nan>nan))",
    re.ASCII | re.IGNORECASE,
)
_WORD_BITS: Final = 64
_SIGNIFICAND_BITS: Final = 62
"""Of a fraction: the core's rounding shifts at most 63 bits out."""
_BEYOND_EVERY_FORMAT: Final = 400
"""Decimal exponent: 10**400 and 10**-400 are out of reach of double on both sides."""
_EXPONENT_DIGITS: Final = 17
"""Decimal takes no more than 18; no text has so many digits that they make up for that exponent."""
_EXACT_DIGITS: Final = 127
"""After the point, of the smallest number of E8M0."""
_FAR: Final = 2000
"""A binary exponent that far out stands for all of them."""


class _Exact(NamedTuple):
    """A number as the core takes it: sign, 64-bit significand, exponent of its last place."""

    negative: bool
    significand: int = 0
    exponent: int = 0
    inf: bool = False
    nan: bool = False


def texts_of(array: Array) -> Array:
    """The elements as Python strings, in a new object array of the same shape.

    Args:
        array: of numpy's str, bytes (UTF-8), StringDType, or objects that are str or bytes.

    Raises:
        TypeError: an object that is neither; the text names its index.
    """
    texts = np.empty(array.shape, object)
    for index in np.ndindex(array.shape):
        element = array[index]
        if isinstance(element, bytes):
            element = element.decode()
        if not isinstance(element, str):
            raise TypeError(
                f"element {list(index)} is {element!r} ({type(element).__name__}); an array of "
                "objects holds text, and numbers have dtypes of their own"
            )
        texts[index] = str(element)
    return texts


def to_numbers(texts: Array, dst: Format, mode: RoundMode, policy: Policy) -> Array:
    """Read literals and round each once.

    Plain and scientific notation, INF and INFINITY and NaN in any case, signs, blanks around.
    Beyond the range of `dst` the policy decides, as for numbers. An integer destination gets the
    truncated number, exactly, however many digits there are.

    Args:
        texts: Python strings, any shape.
        dst: destination format.
        mode: rounding of floats.
        policy: overflow, infinity, NaN.

    Returns:
        A new array of the same shape in the format's dtype.

    Raises:
        ValueError: a text that is no number; with its index.
    """
    whole = isinstance(dst, IntFormat) and dst.bits > 1
    numbers = []
    for index, text in np.ndenumerate(texts):
        number = _read(text, whole)
        if number is None:
            raise ValueError(
                f"element {list(index)} is {text!r}, which is no number; numbers look like 3.14, "
                "1e-5, INF or NaN"
            )
        numbers.append(number)
    value = Unpacked(
        negative=np.array([number.negative for number in numbers], np.bool_),
        significand=np.array([number.significand for number in numbers], np.uint64),
        exponent=np.array([number.exponent for number in numbers], np.int64),
        inf=np.array([number.inf for number in numbers], np.bool_),
        nan=np.array([number.nan for number in numbers], np.bool_),
    )
    return values_of(pack(value, dst, mode, policy), dst).reshape(texts.shape)


def _read(text: str, whole: bool) -> _Exact | None:
    """Take a literal apart; `whole` drops its fraction. None if it is no number."""
    match = _NUMBER.fullmatch(text.strip(_BLANKS))
    if match is None:
        return None
    negative = match["sign"] == "-"
    if match["digits"] is None:
        return _Exact(negative, inf=match["inf"] is not None, nan=match["nan"] is not None)
    number = _decimal(match["digits"], match["exponent"] or "0")
    if number == 0:
        return _Exact(negative)
    if abs(number.adjusted()) > _BEYOND_EVERY_FORMAT:
        large = number.adjusted() > 0
        if whole and not large:
            return _Exact(negative)
        return _Exact(negative, 1, _FAR if large else -_FAR)
    numerator, denominator = number.as_integer_ratio()
    if whole:
        truncated = numerator // denominator
        return _Exact(negative, *((truncated, 0) if truncated >> _WORD_BITS == 0 else (1, _FAR)))
    return _Exact(negative, *_to_odd(numerator, denominator))


def _decimal(digits: str, exponent: str) -> Decimal:
    """A literal's number; of one out of every range, another one out of it on the same side."""
    figures = exponent.lstrip("+-0") or "0"
    if len(figures) > _EXPONENT_DIGITS:
        figures = "9" * _EXPONENT_DIGITS
    return Decimal(f"{digits}e{'-' if exponent.startswith('-') else ''}{figures}")


def _to_odd(numerator: int, denominator: int) -> tuple[int, int]:
    """Significand and exponent of a quotient; a remainder makes the last bit odd.

    That is von Neumann rounding to at least 61 bits, two more than any float format keeps and some,
    after which rounding to a format gives what rounding the quotient itself gives.
    """
    exponent = numerator.bit_length() - denominator.bit_length() - _SIGNIFICAND_BITS + 1
    significand, rest = divmod(numerator << max(-exponent, 0), denominator << max(exponent, 0))
    return significand | (rest != 0), exponent


@float_environment.quiet()
def from_numbers(array: Array, src: Format) -> Array:
    """Write numbers without exponents, so that they read back to the same value in their type.

    Integers exactly, bool as 1 and 0. double, float and float16 with the fewest digits that read
    back, and at least one on each side of the point: 314.15926 in double, 1.0, -0.0, 0.0000001.
    Other floats as the float of the same value, FLOAT8E8M0 with all its digits (it may be read
    upward). Infinities and NaN are INF, -INF and NaN.

    Args:
        array: numbers, any shape.
        src: their format.

    Returns:
        A new object array of the same shape.
    """
    texts = np.empty(array.shape, object)
    values = np.array(array, src.dtype, order="C").reshape(-1)
    if isinstance(src, IntFormat):
        written = [str(int(value)) for value in values]
    else:
        codes, inverse = np.unique(codes_of(values, src), return_inverse=True)
        distinct = [_written(value, src) for value in values_of(codes, src)]
        written = [distinct[which] for which in inverse.reshape(-1)]
    texts.reshape(-1)[:] = written
    return texts


def _written(value: Any, src: FloatFormat) -> str:
    number = np.float64(value)
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "-INF" if number < 0 else "INF"
    if src.is_scale:
        return np.format_float_positional(number, _EXACT_DIGITS, unique=False, trim="0")
    own = src in (FP64, FP32, FP16)
    return np.format_float_positional(value if own else np.float32(number), unique=True, trim="0")
