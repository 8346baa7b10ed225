"""The rules of casts that are chosen where nothing public settles them, and their alternatives.

A rule has another possibility: a step reads other codes, or gives others. Greater numbers give
greater results under either, so that both hold between what the ends of an interval give.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.trust import (
    ASSUME_GRADUAL_CASTS,
    ASSUME_IEEE_OVERFLOW,
    ASSUME_INF_NAN_MODE,
    ASSUME_NAN_PATTERN,
    ASSUME_ODD_UNDERFLOW,
    ASSUME_SIGN_OF_ZERO,
    ASSUMPTIONS,
    Assumption,
    Trust,
)
from simulator.corrections import ElementStep
from simulator.numbers.convert import INF_NAN, SATURATE, Conversion, values_of
from simulator.numbers.formats import (
    BF16,
    E4M3FN,
    E5M2,
    FP16,
    FP32,
    HF8,
    Codes,
    FloatFormat,
    Format,
    IntFormat,
)
from simulator.numbers.literals import number_of
from simulator.numbers.rounding import RoundMode

_PIECE_ELEMS: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRule:
    """A rule and its other possibility.

    Attributes:
        assumption: the choice, by name.
        otherwise: the other possibility, as a condition.
        concerns: a step follows the rule.
        own_statement: the rule in words, where the assumption's statement is wider.
        reads: under the other possibility the codes that stand for those of the source.
        gives: under the other possibility, by the codes of the source, what its results become.
    """

    assumption: Assumption
    otherwise: str
    concerns: Callable[[ElementStep], bool]
    own_statement: str = ""
    reads: Callable[[ElementStep, Codes], Codes] = lambda step, codes: codes
    gives: Callable[[ElementStep, Codes, Codes], Codes] = lambda step, codes, results: results

    @property
    def rule(self) -> str:
        """The rule in words."""
        return self.own_statement or self.assumption.statement

    def changed(self, step: ElementStep, codes: Codes) -> Codes:
        """A step's codes under the other possibility."""
        return self.gives(step, codes, step.reference(self.reads(step, codes)))


def without_subnormals(fmt: Format, codes: Codes) -> Codes:
    """Zero of its sign for each subnormal number."""
    assert isinstance(fmt, FloatFormat)
    return _below(codes, fmt, 1 << fmt.man_bits)


def _below(codes: Codes, fmt: FloatFormat, least: int) -> Codes:
    """Zero of its sign for each number whose magnitude has a smaller code."""
    sign = fmt.code_dtype.type(fmt.sign_code)
    return np.where(_magnitude(codes, fmt) < least, codes & sign, codes)


def _magnitude(codes: Codes, fmt: FloatFormat) -> Codes:
    magnitude: Codes = codes & fmt.code_dtype.type(fmt.sign_code - 1)
    return magnitude


def _is_cast_to_float(step: ElementStep) -> bool:
    if not isinstance(step, Conversion) or step.is_integral:
        return False
    return isinstance(step.dst, FloatFormat)


def _can_overflow(step: ElementStep) -> bool:
    src, dst = step.src, step.dst
    if not _is_cast_to_float(step) or not isinstance(dst, FloatFormat):
        return False
    if isinstance(src, IntFormat):
        return src.bits - src.signed > dst.max_code >> dst.man_bits
    return src.exp_bits > dst.exp_bits or src.man_bits > dst.man_bits


def _overflow_is_judged(step: ElementStep) -> bool:
    """Infinity is among the results, and overflow may give it."""
    assert isinstance(step, Conversion)
    keeps = isinstance(step.dst, FloatFormat) and step.dst.inf_code is not None
    return keeps and step.policy == INF_NAN


def _largest_for_infinity(step: ElementStep, codes: Codes, results: Codes) -> Codes:
    """The largest number for each infinity, or NaN for want of one, from a finite number."""
    dst = step.dst
    assert isinstance(dst, FloatFormat)
    if dst.inf_code is None:
        assert isinstance(step, Conversion)
        clamped = _saturated(step, codes)
        return np.where(_is_special(codes, step.src), results, clamped)
    overflows = (_magnitude(results, dst) == dst.inf_code) & ~_is_special(codes, step.src)
    return np.where(overflows, results - results.dtype.type(1), results)


def _infinity_beyond(step: ElementStep, codes: Codes, results: Codes) -> Codes:
    """Infinity for each finite number beyond the largest binade."""
    src, dst = step.src, step.dst
    assert isinstance(dst, FloatFormat)
    if not isinstance(src, FloatFormat) or src.exp_bits <= dst.exp_bits:
        return results
    assert dst.inf_code is not None
    largest = number_of(dst.max_code, dst).magnitude
    beyond = int(largest).bit_length() + src.bias << src.man_bits
    overflows = (_magnitude(codes, src) >= beyond) & ~_is_special(codes, src)
    sign = results & dst.code_dtype.type(dst.sign_code)
    return np.where(overflows, sign | dst.code_dtype.type(dst.inf_code), results)


def _is_special(codes: Codes, fmt: Format) -> np.ndarray:
    """Finds infinities and NaNs."""
    if not isinstance(fmt, FloatFormat):
        return np.zeros(codes.shape, np.bool_)
    magnitude = _magnitude(codes, fmt)
    if fmt.dots:
        return np.asarray((magnitude == fmt.inf_code) | (codes == fmt.sign_code))
    return np.asarray(magnitude > fmt.max_code)


_SMALL_FLOATS: Final = (E5M2, E4M3FN, HF8)
"""Destinations of 8 bits that CTRL[48] saturates."""


def _has_float_modes(step: ElementStep) -> bool:
    return _is_cast_to_float(step) and step.dst in (FP16, BF16) and _overflow_is_judged(step)


def _has_small_float_modes(step: ElementStep) -> bool:
    if not isinstance(step, Conversion) or step.dst not in _SMALL_FLOATS:
        return False
    return isinstance(step.src, FloatFormat) and step.policy == INF_NAN


def _saturated(step: ElementStep, codes: Codes) -> Codes:
    assert isinstance(step, Conversion)
    return dataclasses.replace(step, policy=SATURATE).reference(codes)


def _in_saturation_mode(step: ElementStep, codes: Codes, results: Codes) -> Codes:
    """The largest number for infinity, +0 for NaN."""
    dst = step.dst
    assert isinstance(dst, FloatFormat)
    assert dst.inf_code is not None
    magnitude = _magnitude(results, dst)
    finite = np.where(magnitude == dst.inf_code, results - results.dtype.type(1), results)
    return np.where(magnitude > dst.inf_code, results.dtype.type(0), finite)


def _may_be_nan(step: ElementStep) -> bool:
    if not (isinstance(step.src, FloatFormat) and isinstance(step.dst, FloatFormat)):
        return False
    return step.dst.inf_code is not None and not step.dst.nan_is_negative_zero


def _other_nan(step: ElementStep, codes: Codes, results: Codes) -> Codes:
    """The NaN of one bit of the fraction, for each NaN."""
    dst = step.dst
    assert isinstance(dst, FloatFormat)
    assert dst.inf_code is not None
    other = dst.code_dtype.type(dst.inf_code | 1 << dst.man_bits - 1)
    return np.where(_magnitude(results, dst) > dst.inf_code, other, results)


def _reads_floats(step: ElementStep) -> bool:
    """The smallest numbers of a tapered format are written out in its rule."""
    return isinstance(step, Conversion) and isinstance(step.src, FloatFormat) and not step.src.dots


def _flushed(step: ElementStep, codes: Codes) -> Codes:
    """Zero of its sign for each number that is subnormal here or there."""
    src, dst = step.src, step.dst
    assert isinstance(src, FloatFormat)
    return _below(codes, src, _least_normal(src, dst))


def _least_normal(src: FloatFormat, dst: Format) -> int:
    """The code in the source of the least number that is normal there and in the destination."""
    is_float = isinstance(dst, FloatFormat) and not dst.dots
    emin = max(src.emin, dst.emin) if is_float and isinstance(dst, FloatFormat) else src.emin
    return emin + src.bias << src.man_bits


def _keeps_zeros(step: ElementStep) -> bool:
    return isinstance(step, Conversion) and (step.src, step.dst) == (FP16, FP32)


def _positive_zero(step: ElementStep, codes: Codes, results: Codes) -> Codes:
    dst = step.dst
    assert isinstance(dst, FloatFormat)
    return np.where(results == dst.code_dtype.type(dst.sign_code), np.uint32(0), results)


def _underflow_is_odd(step: ElementStep) -> bool:
    return (
        _is_cast_to_float(step)
        and isinstance(step, Conversion)
        and isinstance(step.src, FloatFormat)
        and step.mode is RoundMode.ODD
    )


def _zero_for_underflow(step: ElementStep, codes: Codes) -> Codes:
    """Zero of its sign for each number below the smallest subnormal one of the destination."""
    assert isinstance(step, Conversion)
    src, dst = step.src, step.dst
    assert isinstance(src, FloatFormat)
    assert isinstance(dst, FloatFormat)
    back = dataclasses.replace(step, src=dst, dst=src, mode=RoundMode.RINT)
    return _below(codes, src, int(back.reference(np.ones(1, dst.code_dtype))[0]))


ODD_UNDERFLOW_RULE: Final = ChosenRule(
    assumption=ASSUME_ODD_UNDERFLOW,
    otherwise="were it flushed to zero",
    concerns=_underflow_is_odd,
    reads=_zero_for_underflow,
)
OVERFLOW_RULE: Final = ChosenRule(
    assumption=ASSUME_IEEE_OVERFLOW,
    otherwise="were it the largest finite number",
    concerns=_can_overflow,
    gives=_largest_for_infinity,
)
CAST_RULES: Final = (
    ChosenRule(
        assumption=ASSUME_GRADUAL_CASTS,
        otherwise="were they zero",
        concerns=_reads_floats,
        reads=_flushed,
    ),
    ODD_UNDERFLOW_RULE,
    OVERFLOW_RULE,
    ChosenRule(
        assumption=ASSUME_IEEE_OVERFLOW,
        otherwise="were it infinity under every round mode",
        concerns=lambda step: _can_overflow(step) and _overflow_is_judged(step),
        gives=_infinity_beyond,
    ),
    ChosenRule(
        assumption=ASSUME_INF_NAN_MODE,
        otherwise="were it saturation mode",
        concerns=_has_float_modes,
        gives=_in_saturation_mode,
    ),
    ChosenRule(
        assumption=ASSUME_INF_NAN_MODE,
        otherwise="were it saturation mode",
        concerns=_has_small_float_modes,
        gives=lambda step, codes, results: _saturated(step, codes),
    ),
    ChosenRule(
        assumption=ASSUME_SIGN_OF_ZERO,
        otherwise="were it +0",
        concerns=_keeps_zeros,
        gives=_positive_zero,
    ),
    ChosenRule(
        assumption=ASSUME_NAN_PATTERN,
        otherwise="were it another",
        concerns=_may_be_nan,
        gives=_other_nan,
    ),
)
"""The rules of casts; each is applied before the next."""


def doubted_rules(conversion: Conversion, trust: Trust) -> tuple[ChosenRule, ...]:
    """The rules that a conversion follows and that are not taken for granted."""
    missing = ASSUMPTIONS - trust.assumed
    if not missing:
        return ()
    return tuple(r for r in CAST_RULES if r.assumption in missing and r.concerns(conversion))


def concerned(conversion: Conversion, codes: Codes) -> npt.NDArray[np.bool_]:
    """Finds the sources that a rule may concern: subnormal numbers here or there, numbers that may
    overflow, infinities and NaNs, and zeros where their sign is a choice.
    """
    found = np.empty(codes.shape, np.bool_)
    flat, out = codes.reshape(-1), found.reshape(-1)
    for start in range(0, flat.size, _PIECE_ELEMS):
        piece = slice(start, start + _PIECE_ELEMS)
        out[piece] = _concerned(conversion, flat[piece])
    return found


def _concerned(conversion: Conversion, codes: Codes) -> npt.NDArray[np.bool_]:
    src, dst = conversion.src, conversion.dst
    if isinstance(src, IntFormat):
        assert isinstance(dst, FloatFormat)  # rules concern floats alone
        values = values_of(codes, src)
        limit = min(int(values_of(np.array([dst.max_code], dst.code_dtype), dst)[0]), src.max)
        return np.asarray((values > limit) | (values < -limit))
    if src.dots:
        return _is_special(codes, src)
    least, most = _least_normal(src, dst), src.max_code + 1
    if isinstance(dst, FloatFormat) and _can_overflow(conversion):
        back = dataclasses.replace(conversion, src=dst, dst=src, mode=RoundMode.RINT)
        most = int(back.reference(np.array([dst.max_code], dst.code_dtype))[0])
    magnitude = _magnitude(codes, src)
    found = np.asarray(magnitude - src.code_dtype.type(least) >= most - least)
    if not _keeps_zeros(conversion):
        found &= magnitude != 0
    return found
