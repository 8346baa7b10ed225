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

from ascend_kernels.routing.code_order import is_nan
from simulator.machine.isa import ScalarOp
from simulator.machine.scalar_work import ElementStep, ScalarWork
from simulator.numbers.convert import INF_NAN, Conversion, Overflow
from simulator.numbers.formats import Codes, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRule:
    """A rule and its other possibility.

    Attributes:
        rule: as it is here.
        otherwise: the other possibility, as a condition.
        concerns: tells whether a step follows the rule.
        changed: a step's codes under the other possibility.
    """

    rule: str
    otherwise: str
    concerns: Callable[[ElementStep], bool]
    changed: Callable[[ElementStep, Codes], Codes]


def _underflow_is_odd(conversion: ElementStep) -> bool:
    if not isinstance(conversion, Conversion) or conversion.mode is not RoundMode.ODD:
        return False
    return isinstance(conversion.dst, FloatFormat) and not conversion.is_integral


def _flushed(conversion: ElementStep, codes: Codes) -> Codes:
    """Zero of the source's sign where the source is below the smallest subnormal number."""
    assert isinstance(conversion, Conversion)
    src, dst = conversion.src, conversion.dst
    assert isinstance(src, FloatFormat)
    assert isinstance(dst, FloatFormat)
    back = dataclasses.replace(conversion, src=dst, dst=src, mode=RoundMode.RINT)
    smallest = back.define(np.ones(1, dst.code_dtype))[0]
    below = codes & src.code_dtype.type(src.sign_code - 1) < smallest
    results = conversion.define(codes)
    sign = dst.code_dtype.type(dst.sign_code)
    return np.where(below, results & sign, results)


def _can_overflow(conversion: ElementStep) -> bool:
    dst = conversion.dst
    if not isinstance(conversion, Conversion):
        return False
    if not isinstance(dst, FloatFormat) or conversion.is_integral:
        return False
    src = conversion.src
    if isinstance(src, IntFormat):
        return src.bits - src.signed > dst.max_code >> dst.man_bits
    return src.exp_bits > dst.exp_bits or src.man_bits > dst.man_bits


def _saturated(conversion: ElementStep, codes: Codes) -> Codes:
    assert isinstance(conversion, Conversion)
    policy = dataclasses.replace(INF_NAN, overflow=Overflow.SATURATE)
    return dataclasses.replace(conversion, policy=policy).define(codes)


def _multiplies(step: ElementStep) -> bool:
    return isinstance(step, ScalarWork) and step.op is ScalarOp.MULS


def _without_subnormals(step: ElementStep, codes: Codes) -> Codes:
    """Zero of its sign for each subnormal number, before and after."""
    return _normal(step.dst, step.define(_normal(step.src, codes)))


def _normal(fmt: Format, codes: Codes) -> Codes:
    assert isinstance(fmt, FloatFormat)
    sign = fmt.code_dtype.type(fmt.sign_code)
    is_subnormal = codes & fmt.code_dtype.type(fmt.sign_code - 1) < 1 << fmt.man_bits
    return np.where(is_subnormal, codes & sign, codes)


def _takes_extremes_of_floats(step: ElementStep) -> bool:
    is_extreme = isinstance(step, ScalarWork) and step.op in (ScalarOp.MAXS, ScalarOp.MINS)
    return is_extreme and isinstance(step.src, FloatFormat)


def _scalar_for_nan(step: ElementStep, codes: Codes) -> Codes:
    assert isinstance(step, ScalarWork)
    scalar = np.asarray(step.scalar, step.src.dtype).view(codes.dtype)
    return np.where(is_nan(codes, step.src), scalar, step.define(codes))


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
    ChosenRule(
        rule="Muls takes and gives subnormal numbers",
        otherwise="were they zero",
        concerns=_multiplies,
        changed=_without_subnormals,
    ),
    ChosenRule(
        rule="Maxs and Mins of NaN give NaN",
        otherwise="were it the other number",
        concerns=_takes_extremes_of_floats,
        changed=_scalar_for_nan,
    ),
)
