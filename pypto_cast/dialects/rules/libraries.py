"""torch and numpy, which leave what is out of an integer's range to C's casts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from pypto_cast.dialects.rules import c_casts
from pypto_cast.dialects.rules.rule import Rule, chain, no_rule, same
from pypto_cast.dtypes.data_types import CastMode
from simulator.numbers import formats as f
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE_KEEP_NAN,
    WRAP,
    Conversion,
    Policy,
    values_of,
)
from simulator.numbers.formats import Codes, FloatFormat, Format, IntFormat, Specials
from simulator.numbers.rounding import RoundMode

# fmt: off
_COMMON: Final = (
    f.FP64, f.FP32, f.FP16, f.BF16, f.E4M3FN, f.E4M3FNUZ, f.E5M2, f.E5M2FNUZ, f.BOOL,
    f.INT8, f.INT16, f.INT32, f.INT64, f.UINT8, f.UINT16, f.UINT32, f.UINT64,
)
# fmt: on
_TORCH_FORMATS: Final = frozenset(_COMMON)
_NUMPY_FORMATS: Final = frozenset({*_COMMON, f.INT4, f.UINT4})

_TORCH: Final = "measured with torch 2.13.0 on x86-64"
_NUMPY: Final = "measured with numpy 2.4.6 and ml_dtypes 0.6.0 on x86-64"
_C: Final = "C17 6.3.1.4"


def integer_rule(
    src: Format, dst: IntFormat, source: str, through: Mapping[tuple[Format, Format], IntFormat]
) -> Rule:
    """To an integer or a truth value, the same in numpy, torch and OpenVINO."""
    if dst is f.BOOL:
        step = Conversion(src=src, dst=dst, mode=RoundMode.TRUNC, policy=WRAP)
        return Rule(text="true unless +-0; NaN is true", source=source, convert=chain(step))
    if isinstance(src, IntFormat):
        step = Conversion(src=src, dst=dst, mode=RoundMode.TRUNC, policy=WRAP)
        fits = dst.min <= src.min and src.max <= dst.max
        text = "exact" if fits else f"the low {dst.bits} bits"
        return Rule(text=text, source=source, convert=chain(step))
    word = through.get((src, dst), c_casts.word_of(dst))
    return Rule(
        text=c_casts.describe(src, dst, word),
        source=f"{_C} leaves what is out of range open; {source}",
        convert=lambda codes: c_casts.truncate(codes, src, dst, word),
        leaves_open=lambda codes: c_casts.leaves_open(codes, src, dst),
    )


def float_rule(
    src: Format, dst: FloatFormat, source: str, *, direct: bool, policy: Policy = INF_NAN
) -> Rule:
    """To a float, to nearest even, at once or by way of float32."""
    stops = (dst,) if direct or f.FP32 in (src, dst) else (f.FP32, dst)
    near = src
    steps = []
    for stop in stops:
        last = policy if stop is dst else INF_NAN
        steps.append(Conversion(src=near, dst=stop, mode=RoundMode.RINT, policy=last))
        near = stop
    twice = len(stops) > 1 and _rounds_twice(src, dst)
    return Rule(
        text=("to float32 first, which may round twice; " if twice else "")
        + f"nearest, ties to even; out of range {_beyond(dst, policy)}",
        source=source,
        convert=chain(*steps),
        leaves_nan_bits_open=dst.specials is not Specials.FNUZ,
    )


def _rounds_twice(src: Format, dst: FloatFormat) -> bool:
    """Tells whether FP32 on the way shows; integers that it rounds are too large but for BF16."""
    if isinstance(src, IntFormat):
        return dst is f.BF16 and src.bits - src.signed > f.FP32.man_bits + 1
    return src.bits > f.FP32.bits


def _beyond(dst: FloatFormat, policy: Policy) -> str:
    if policy is SATURATE_KEEP_NAN:
        return "and infinity the largest number"
    return "NaN" if dst.inf_code is None else "infinity"


_BY_INT64: Final[Mapping[tuple[Format, Format], IntFormat]] = MappingProxyType(
    {(f.FP64, f.UINT8): f.INT64}
)
"""Pairs that torch truncates to 64 bits although 32 would do."""


def torch(src: Format, dst: Format, mode: CastMode) -> Rule:
    """`Tensor.to`."""
    for fmt in (src, dst):
        if fmt not in _TORCH_FORMATS:
            return no_rule("torch", fmt)
    if src is dst:
        return Rule(text="nothing changes", source=_TORCH, convert=same)
    if isinstance(dst, IntFormat):
        return integer_rule(src, dst, _TORCH, _BY_INT64)
    policy = SATURATE_KEEP_NAN if dst is f.E4M3FN else INF_NAN
    return float_rule(src, dst, _TORCH, direct=dst is f.FP64, policy=policy)


def numpy(src: Format, dst: Format, mode: CastMode) -> Rule:
    """`ndarray.astype`, joined by ml_dtypes."""
    for fmt in (src, dst):
        if fmt not in _NUMPY_FORMATS:
            return no_rule("numpy with ml_dtypes", fmt)
    if src is dst:
        return Rule(text="nothing changes", source=_NUMPY, convert=same)
    if {src, dst} == {f.INT4, f.UINT4}:
        return Rule(text="ml_dtypes has no cast between its 4-bit integers", source=_NUMPY)
    if isinstance(dst, IntFormat):
        rule = integer_rule(src, dst, _NUMPY, {})
        narrow = dst in (f.INT4, f.UINT4)
        return _zero_above_int32(rule) if narrow and src is f.FP64 else rule
    return float_rule(src, dst, _NUMPY, direct=dst in (f.FP64, f.FP16))


def _zero_above_int32(rule: Rule) -> Rule:
    """ml_dtypes looks whether int32 holds a number before it truncates: 2^31 - 0.5 is outside.

    Of the other floats, none lies between the largest int32 and 2^31.
    """
    truncate = rule.convert
    assert truncate is not None

    def convert(codes: Codes) -> Codes:
        above = values_of(codes, f.FP64) > f.INT32.max
        return np.where(above, np.uint8(0), truncate(codes))

    return dataclasses.replace(rule, text=f"{rule.text}; 0 from above 2^31 - 1", convert=convert)
