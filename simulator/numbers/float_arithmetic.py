"""Arithmetic rounded once to nearest even, whatever the floating-point unit is set to.

Where that is not its default, integers do the work. Their result keeps its 37 leading bits at
least, and what lies below makes the last one odd: more than two bits beyond what the format has, so
`pack` rounds it as it would round the exact one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers import float_environment
from simulator.numbers.convert import INF_NAN, Unpacked, bit_length, pack, unpack, values_of
from simulator.numbers.formats import FloatFormat
from simulator.numbers.rounding import Bools, RoundMode

Words = npt.NDArray[np.uint64]
Operation = Callable[[Any, Any], Any]
"""One of numpy's."""

_TOP_BITS: Final = 62
_HALF_BITS: Final = np.uint64(31)
_HALF: Final = np.uint64((1 << 31) - 1)
_FAR_BELOW: Final = -(1 << 20)
"""An exponent that makes a zero the smaller operand of every sum."""


def _add(left: Unpacked, right: Unpacked) -> Unpacked:
    """Sums; an exact zero of numbers of opposite signs is +0."""
    (a, a_exponent), (b, b_exponent) = _normalised(left, 60), _normalised(right, 60)
    swapped = (b_exponent > a_exponent) | (b_exponent == a_exponent) & (b > a)
    large, small = np.where(swapped, b, a), np.where(swapped, a, b)
    exponent = np.maximum(a_exponent, b_exponent)
    distance = np.clip(exponent - np.minimum(a_exponent, b_exponent), 0, 63).astype(np.uint64)
    kept = small >> distance
    kept |= (kept << distance) != small
    opposite = left.negative != right.negative
    significand = np.where(opposite, large - kept, large + kept)
    negative = np.where(swapped, right.negative, left.negative) & ((significand != 0) | ~opposite)
    return Unpacked(
        negative=np.where(left.inf, left.negative, np.where(right.inf, right.negative, negative)),
        significand=significand,
        exponent=exponent,
        inf=left.inf | right.inf,
        nan=left.nan | right.nan | left.inf & right.inf & opposite,
    )


def _subtract(left: Unpacked, right: Unpacked) -> Unpacked:
    """Differences; an exact zero of numbers of one sign is +0."""
    opposite = Unpacked(
        negative=~right.negative,
        significand=right.significand,
        exponent=right.exponent,
        inf=right.inf,
        nan=right.nan,
    )
    return _add(left, opposite)


def _multiply(left: Unpacked, right: Unpacked) -> Unpacked:
    """Products; infinity times zero is NaN."""
    (a, a_exponent), (b, b_exponent) = (_normalised(side, _TOP_BITS) for side in (left, right))
    a_high, a_low, b_high, b_low = a >> _HALF_BITS, a & _HALF, b >> _HALF_BITS, b & _HALF
    middle = a_high * b_low + a_low * b_high
    low = a_low * b_low + ((middle & _HALF) << _HALF_BITS)
    high = a_high * b_high + (middle >> _HALF_BITS) + (low >> np.uint64(_TOP_BITS))
    rest = low & np.uint64((1 << _TOP_BITS) - 1)
    inf = left.inf | right.inf
    return Unpacked(
        negative=left.negative ^ right.negative,
        significand=high | (rest != 0),
        exponent=a_exponent + b_exponent + _TOP_BITS,
        inf=inf,
        nan=left.nan | right.nan | inf & (_is_zero(left) | _is_zero(right)),
    )


def _divide(left: Unpacked, right: Unpacked) -> Unpacked:
    """Quotients by divisors of at most 24 significant bits, those of FP32.

    A number other than zero by zero is infinity; zero by zero and infinity by infinity are NaN.
    """
    a, exponent = _normalised(left, _TOP_BITS)
    divisor = np.maximum(right.significand, np.uint64(1))
    quotient = a // divisor
    quotient |= a % divisor != 0
    vanishes = right.inf | (left.significand == 0)
    return Unpacked(
        negative=left.negative ^ right.negative,
        significand=np.where(vanishes, np.uint64(0), quotient),
        exponent=exponent - right.exponent,
        inf=left.inf | _is_zero(right),
        nan=left.nan | right.nan | left.inf & right.inf | _is_zero(left) & _is_zero(right),
    )


def _is_zero(value: Unpacked) -> Bools:
    zero: Bools = (value.significand == 0) & ~value.inf & ~value.nan
    return zero


def _normalised(value: Unpacked, bits: int) -> tuple[Words, npt.NDArray[np.int64]]:
    """Significands shifted up to that many bits, and their exponents; a zero stays far below."""
    shift = bits - bit_length(value.significand)
    significand = value.significand << shift.astype(np.uint64)
    nothing = value.significand == 0
    return np.where(nothing, np.uint64(0), significand), np.where(
        nothing, _FAR_BELOW, value.exponent - shift
    )


_BY_INTEGERS: Final[Mapping[Operation, Callable[[Unpacked, Unpacked], Unpacked]]] = (
    MappingProxyType(
        {np.add: _add, np.subtract: _subtract, np.multiply: _multiply, np.divide: _divide}
    )
)


def correctly_rounded(
    operation: Operation, left: npt.NDArray[Any], right: npt.NDArray[Any], fmt: FloatFormat
) -> npt.NDArray[Any]:
    """Apply an operation to FP32 or FP64 numbers.

    Infinity, -0, subnormal numbers and overflow follow IEEE 754; which NaN comes out is open.

    Args:
        operation: `np.add`, `np.subtract`, `np.multiply`, or, in FP32, `np.divide`.
        left: values of the format's dtype, any shape.
        right: the same, of a shape that broadcasts with it.
        fmt: the format of both and of the result.

    Returns:
        A new array of the common shape.
    """
    if float_environment.is_default():
        with float_environment.quiet():
            return np.asarray(operation(left, right))
    codes = np.broadcast_arrays(*(values.view(fmt.code_dtype) for values in (left, right)))
    exact = _BY_INTEGERS[operation](*(unpack(side, fmt) for side in codes))
    return values_of(pack(exact, fmt, RoundMode.RINT, INF_NAN), fmt)
