"""Paddle's cast, as the dialect of its name has it."""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from pypto_cast.dialects.paddle import DTYPES
from pypto_cast.dialects.paddle import cast as paddle_cast
from pypto_cast.dialects.paddle.dtypes import Category, row_of
from pypto_cast.dialects.rules.libraries import float_rule, integer_rule
from pypto_cast.dialects.rules.rule import Rule, no_rule, same
from pypto_cast.dtypes.data_types import CastMode
from simulator.numbers import float_environment
from simulator.numbers import formats as f
from simulator.numbers.convert import values_of
from simulator.numbers.formats import Codes, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import Bools

_PADDLE: Final = "measured with paddlepaddle 3.3.1 (CPU) on x86-64"
_FORMATS: Final = frozenset(
    row_of(name).part for name in DTYPES if row_of(name).category is not Category.COMPLEX
)
_BADLY_SHIFTED: Final = (2.0**-90, 2.0**-77)
"""Magnitudes whose way to float16 shifts by more bits than a word has."""


def paddle(src: Format, dst: Format, mode: CastMode) -> Rule:
    """`paddle.cast`."""
    for fmt in (src, dst):
        if fmt not in _FORMATS:
            return no_rule("Paddle", fmt)
    if src is dst:
        return Rule(text="nothing changes", source=_PADDLE, convert=same)
    return dataclasses.replace(
        _rule(src, dst),
        convert=lambda codes: paddle_cast(values_of(codes, src), dst.dtype).view(dst.code_dtype),
    )


def _rule(src: Format, dst: Format) -> Rule:
    if isinstance(dst, FloatFormat):
        rule = float_rule(src, dst, _PADDLE, direct=dst not in (f.FP16, f.BF16))
        if dst is not f.FP16 or src is f.FP16 or isinstance(src, IntFormat):
            return rule
        return dataclasses.replace(
            rule,
            text=f"{rule.text}; undefined in C++ from 2^-90 to 2^-77",
            leaves_open=lambda codes: _is_badly_shifted(codes, src),
        )
    if dst is f.BOOL or isinstance(src, IntFormat):
        return integer_rule(src, dst, _PADDLE, {})
    return Rule(
        text="truncated; out of range, infinity and NaN undefined in C++",
        source=f"C++17 [conv.fpint]; {_PADDLE}",
        leaves_open=lambda codes: _is_beyond(codes, src, dst),
    )


def _is_badly_shifted(codes: Codes, src: Format) -> Bools:
    least, greatest = _BADLY_SHIFTED
    with float_environment.quiet():
        magnitudes = np.abs(values_of(codes, src).astype(np.float64))
        found: Bools = (magnitudes >= least) & (magnitudes <= greatest)
    return found


def _is_beyond(codes: Codes, src: Format, dst: IntFormat) -> Bools:
    with float_environment.quiet():
        whole = np.trunc(values_of(codes, src).astype(np.float64))
        inside: Bools = (whole >= float(dst.min)) & (whole < float(dst.max + 1))
    return ~inside
