"""A range of values as the codes of a format that lie in it."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np

from ascend_kernels.routing.chain_check import Question
from ascend_kernels.routing.chain_ranking import RouteError
from ascend_kernels.routing.code_order import codes_at, last_rank
from simulator.numbers.formats import Format
from simulator.numbers.literals import Number, number_of

Bound = float | Fraction
_NINE_DIGITS: Final = decimal.Context(prec=9)
_SHORT_BELOW: Final = 10**12


def question_between(src: Format, dst: Format, values: tuple[Bound, Bound]) -> Question:
    """The question about the values of a source from one bound to another, both included.

    Args:
        src: source format.
        dst: destination format.
        values: the bounds, of which the first is not above the second. Zero includes -0.

    Raises:
        RouteError: not two numbers, upside down, or no value of the source lies between.
    """
    if not isinstance(values, tuple) or len(values) != 2 or not all(map(_is_number, values)):
        raise RouteError(f"values are two numbers, the least and the largest, not {values!r}")
    least, largest = values
    if least > largest:
        raise RouteError(
            f"values run from the least to the largest, and {_text(least)} is above "
            f"{_text(largest)}; ({_text(largest)}, {_text(least)}) would do"
        )
    low = _first_rank(src, lambda value: value >= least)
    high = _first_rank(src, lambda value: value > largest) - 1
    if low > high:
        near = [str(_number(rank, src)) for rank in (high, low) if 0 <= rank <= last_rank(src)]
        raise RouteError(
            f"{src} has no value between {_text(least)} and {_text(largest)}; the nearest: "
            f"{', '.join(near)}"
        )
    return Question(src=src, dst=dst, low=low, high=high, has_nan=False)


def _text(bound: Bound) -> str:
    """A bound as a person would write it: at most nine digits of a long one."""
    if isinstance(bound, float) and not math.isfinite(bound):
        return str(bound)
    exact = Fraction(bound)
    if exact.denominator == 1 and abs(exact) < _SHORT_BELOW:
        return str(exact)
    shortened = _NINE_DIGITS.divide(*map(Decimal, exact.as_integer_ratio()))
    return str(shortened.normalize(_NINE_DIGITS))


def _is_number(value: object) -> bool:
    is_number = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
    return is_number and value == value


def _first_rank(fmt: Format, reaches: Callable[[Bound], bool]) -> int:
    """The rank of the least value that reaches a bound; one past the last if none does."""
    low, high = 0, last_rank(fmt) + 1
    while low < high:
        middle = (low + high) // 2
        number = _number(middle, fmt)
        infinity = -math.inf if number.negative else math.inf
        if reaches(infinity if number.special else number.fraction):
            high = middle
        else:
            low = middle + 1
    return low


def _number(rank: int, fmt: Format) -> Number:
    return number_of(int(codes_at(np.array([rank], np.uint64), fmt)[0]), fmt)
