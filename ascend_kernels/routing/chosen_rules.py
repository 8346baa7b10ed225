"""The rules that this project chose where nothing public settles them, and what else may be so.

A chain is exact under the rules as they are. Judged under the other possibility, it may be not:
then its verdict rests on the choice. A rule that the last cast follows too bears on the single
rounding alike, so only the casts before it are looked at.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from simulator.numbers.convert import INF_NAN, Conversion, Overflow
from simulator.numbers.formats import Codes, FloatFormat, IntFormat
from simulator.numbers.rounding import RoundMode


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRule:
    """A rule and its other possibility.

    Attributes:
        rule: as it is here.
        otherwise: the other possibility, as a condition.
        concerns: tells whether a conversion follows the rule.
        changed: a conversion's codes under the other possibility.
    """

    rule: str
    otherwise: str
    concerns: Callable[[Conversion], bool]
    changed: Callable[[Conversion, Codes], Codes]


def _to_float(conversion: Conversion) -> bool:
    return isinstance(conversion.dst, FloatFormat) and not conversion.is_integral


def _underflow_is_odd(conversion: Conversion) -> bool:
    return _to_float(conversion) and conversion.mode is RoundMode.ODD


def _flushed(conversion: Conversion, codes: Codes) -> Codes:
    """Zero of the source's sign where the source is below the smallest subnormal number."""
    src, dst = conversion.src, conversion.dst
    assert isinstance(src, FloatFormat)
    assert isinstance(dst, FloatFormat)
    back = dataclasses.replace(conversion, src=dst, dst=src, mode=RoundMode.RINT)
    smallest = back.define(np.ones(1, dst.code_dtype))[0]
    below = codes & src.code_dtype.type(src.sign_code - 1) < smallest
    results = conversion.define(codes)
    sign = dst.code_dtype.type(dst.sign_code)
    return np.where(below, results & sign, results)


def _can_overflow(conversion: Conversion) -> bool:
    dst = conversion.dst
    if not isinstance(dst, FloatFormat) or conversion.is_integral:
        return False
    src = conversion.src
    if isinstance(src, IntFormat):
        return src.bits - src.signed > dst.max_code >> dst.man_bits
    return src.exp_bits > dst.exp_bits or src.man_bits > dst.man_bits


def _saturated(conversion: Conversion, codes: Codes) -> Codes:
    policy = dataclasses.replace(INF_NAN, overflow=Overflow.SATURATE)
    return dataclasses.replace(conversion, policy=policy).define(codes)


CHOSEN_RULES: Final = (
    ChosenRule(
        rule="CAST_ODD below the smallest subnormal number gives that number",
        otherwise="were it flushed to zero",
        concerns=_underflow_is_odd,
        changed=_flushed,
    ),
    ChosenRule(
        rule="overflow to a float follows IEEE 754",
        otherwise="were it the largest finite number",
        concerns=_can_overflow,
        changed=_saturated,
    ),
)
