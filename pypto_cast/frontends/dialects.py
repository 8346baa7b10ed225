"""What each framework makes of a pair of number formats: a rule a pair, with its source.

A rule is a few conversions of the numerical core in a row, and the words for it. Nothing here
imports a framework; the tests hold every rule against the installed one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np

from ascend_kernels.matrix import MATRIX, CastStep, Resolution, UnsupportedCastError, resolve
from ascend_kernels.program import conversions
from pypto_cast.dtypes import CastMode
from pypto_cast.frontends import c_casts
from pypto_cast.frontends.onnx import cast as onnx_cast
from pypto_cast.frontends.onnx.types import FORMATS as ONNX_FORMATS
from pypto_cast.frontends.openvino.convert import convert as openvino_convert
from pypto_cast.frontends.openvino.element_types import HELD_FORMATS as OPENVINO_FORMATS
from simulator import formats as f
from simulator.convert import (
    INF_NAN,
    SATURATE_KEEP_NAN,
    WRAP,
    Conversion,
    Policy,
    codes_of,
    values_of,
)
from simulator.formats import Codes, FloatFormat, Format, IntFormat, Specials
from simulator.rounding import Bools, RoundMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A conversion as one dialect makes it.

    Attributes:
        text: the rule in a line; or why there is none.
        source: what the rule is taken from.
        convert: source codes to destination codes; None where the dialect has no such conversion.
        leaves_open: which source codes have no settled result; None where all have one.
        leaves_nan_bits_open: a NaN result is settled as such, but not which bits it has.
    """

    text: str
    source: str
    convert: Callable[[Codes], Codes] | None = field(default=None, repr=False, compare=False)
    leaves_open: Callable[[Codes], Bools] | None = field(default=None, repr=False, compare=False)
    leaves_nan_bits_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A framework, or a setting of one.

    Attributes:
        name: for tables and arguments.
        rule: the rule of a pair under a round mode, which only pypto has.
    """

    name: str
    rule: Callable[[Format, Format, CastMode], Rule]

    def __str__(self) -> str:
        return self.name


def _chain(*steps: Conversion) -> Callable[[Codes], Codes]:
    def convert(codes: Codes) -> Codes:
        for step in steps:
            codes = step.define(codes)
        return codes

    return convert


def _same(codes: Codes) -> Codes:
    return codes.copy()


# --- pypto on A2/A3 -------------------------------------------------------------------------------


def _pypto(saturate: bool) -> Callable[[Format, Format, CastMode], Rule]:
    def rule(src: Format, dst: Format, mode: CastMode) -> Rule:
        if src is dst and ((src, dst) not in MATRIX or mode is CastMode.CAST_NONE):
            return Rule(text="nothing changes", source="pypto.cast document", convert=_same)
        try:
            found = resolve(src, dst, mode.round_mode, saturate=saturate)
        except UnsupportedCastError as refusal:
            return Rule(text=str(refusal), source="pypto.cast document, constraint 2")
        return Rule(
            text=_pypto_text(found, mode, saturate),
            source=found.rule.source,
            convert=_chain(*conversions(found)),
        )

    return rule


def _pypto_text(found: Resolution, mode: CastMode, saturate: bool) -> str:
    rule = found.rule
    words = ["exact"] if rule.is_exact else []
    if found.mode is not None:
        integral = " to an integral value" if rule.src is rule.dst else ""
        lacking = f" (the pair has no {mode.name})" if mode.round_mode not in rule.modes else ""
        default = mode is CastMode.CAST_NONE
        words.append(f"rounded{integral} by CAST_{found.mode}{'' if default else lacking}")
    if not saturate and rule.off:
        words.append(_low_bits_text(found))
    elif rule.clamps:
        words.append("out of range clamped")
    elif rule.src is rule.dst:
        words.append("every zero +0")
    elif isinstance(rule.dst, FloatFormat) and not rule.is_exact:
        words.append("out of range infinity where the mode rounds there")
    if isinstance(rule.src, FloatFormat):
        words.append("NaN 0" if isinstance(rule.dst, IntFormat) else "NaN the one NaN")
    if not saturate and not rule.off:
        words.append("OFF does not act on this pair")
    return ", ".join(words)


def _low_bits_text(found: Resolution) -> str:
    first = found.steps[0]
    if isinstance(first, CastStep) and first.dst is not found.rule.dst:
        return f"clamped to {first.dst}, then the low bits"
    has_inf = isinstance(found.rule.src, FloatFormat)
    return "the low bits, infinity clamped" if has_inf else "the low bits"


# --- Frameworks that leave integers to C's casts --------------------------------------------------

_COMMON: Final = (
    *(f.FP64, f.FP32, f.FP16, f.BF16, f.E4M3FN, f.E4M3FNUZ, f.E5M2, f.E5M2FNUZ, f.BOOL),
    *(f.INT8, f.INT16, f.INT32, f.INT64, f.UINT8, f.UINT16, f.UINT32, f.UINT64),
)
_TORCH_FORMATS: Final = frozenset(_COMMON)
_NUMPY_FORMATS: Final = frozenset({*_COMMON, f.INT4, f.UINT4})

_TORCH: Final = "measured with torch 2.13.0 on x86-64"
_NUMPY: Final = "measured with numpy 2.4.6 and ml_dtypes 0.6.0 on x86-64"
_OPENVINO: Final = "Convert-1; measured with openvino 2026.4.1 on x86-64"
_C: Final = "C17 6.3.1.4"


def _no_rule(name: str, fmt: Format) -> Rule:
    return Rule(text=f"{name} has no {fmt}, or no rule for it is known here", source="")


def _integer_rule(
    src: Format, dst: IntFormat, source: str, through: Mapping[tuple[Format, Format], IntFormat]
) -> Rule:
    """To an integer or a truth value, the same in numpy, torch and OpenVINO."""
    if dst is f.BOOL:
        step = Conversion(src=src, dst=dst, mode=RoundMode.TRUNC, policy=WRAP)
        return Rule(text="true unless +-0; NaN is true", source=source, convert=_chain(step))
    if isinstance(src, IntFormat):
        step = Conversion(src=src, dst=dst, mode=RoundMode.TRUNC, policy=WRAP)
        fits = dst.min <= src.min and src.max <= dst.max
        text = "exact" if fits else f"the low {dst.bits} bits"
        return Rule(text=text, source=source, convert=_chain(step))
    word = through.get((src, dst), c_casts.word_of(dst))
    return Rule(
        text=c_casts.describe(src, dst, word),
        source=f"{_C} leaves what is out of range open; {source}",
        convert=lambda codes: c_casts.truncate(codes, src, dst, word),
        leaves_open=lambda codes: c_casts.leaves_open(codes, src, dst),
    )


def _float_rule(
    src: Format, dst: FloatFormat, source: str, *, direct: bool, policy: Policy = INF_NAN
) -> Rule:
    """To a float, to nearest even, at once or by way of float32."""
    stops = (dst,) if direct or f.FP32 in (src, dst) else (f.FP32, dst)
    near, steps = src, []
    for stop in stops:
        last = policy if stop is dst else INF_NAN
        steps.append(Conversion(src=near, dst=stop, mode=RoundMode.RINT, policy=last))
        near = stop
    twice = len(stops) > 1 and _rounds_twice(src, dst)
    return Rule(
        text=("to float32 first, which may round twice; " if twice else "")
        + f"nearest, ties to even; out of range {_beyond(dst, policy)}",
        source=source,
        convert=_chain(*steps),
        leaves_nan_bits_open=dst.specials is not Specials.FNUZ,
    )


def _rounds_twice(src: Format, dst: FloatFormat) -> bool:
    """Whether FP32 on the way shows; integers that it rounds are too large for all but BF16."""
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
"""Where torch truncates to 64 bits although 32 would do."""


def _torch(src: Format, dst: Format, mode: CastMode) -> Rule:
    for fmt in (src, dst):
        if fmt not in _TORCH_FORMATS:
            return _no_rule("torch", fmt)
    if src is dst:
        return Rule(text="nothing changes", source=_TORCH, convert=_same)
    if isinstance(dst, IntFormat):
        return _integer_rule(src, dst, _TORCH, _BY_INT64)
    policy = SATURATE_KEEP_NAN if dst is f.E4M3FN else INF_NAN
    return _float_rule(src, dst, _TORCH, direct=dst is f.FP64, policy=policy)


def _numpy(src: Format, dst: Format, mode: CastMode) -> Rule:
    for fmt in (src, dst):
        if fmt not in _NUMPY_FORMATS:
            return _no_rule("numpy with ml_dtypes", fmt)
    if src is dst:
        return Rule(text="nothing changes", source=_NUMPY, convert=_same)
    if {src, dst} == {f.INT4, f.UINT4}:
        return Rule(text="ml_dtypes has no cast between its 4-bit integers", source=_NUMPY)
    if isinstance(dst, IntFormat):
        rule = _integer_rule(src, dst, _NUMPY, {})
        narrow = dst in (f.INT4, f.UINT4)
        return _zero_above_int32(rule) if narrow and src is f.FP64 else rule
    return _float_rule(src, dst, _NUMPY, direct=dst in (f.FP64, f.FP16))


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


def _openvino(src: Format, dst: Format, mode: CastMode) -> Rule:
    for fmt in (src, dst):
        if fmt not in OPENVINO_FORMATS.values():
            return _no_rule("OpenVINO", fmt)
    if isinstance(dst, IntFormat) and src is not dst:
        return _integer_rule(src, dst, _OPENVINO, {})

    def convert(codes: Codes) -> Codes:
        return codes_of(openvino_convert(values_of(codes, src), src, dst), dst)

    return Rule(text=_openvino_text(src, dst), source=_OPENVINO, convert=convert)


def _openvino_text(src: Format, dst: Format) -> str:
    if src is dst:
        return "nothing changes"
    if dst is f.BF16 and src is not f.BOOL:
        return (
            "by way of float32; half a unit is added only to an odd last place, then cut, the bits "
            "of a NaN too"
        )
    if dst is f.FP16 and src is f.INT32:
        return "nearest, ties to even; out of range +-65504"
    beyond = "NaN" if dst is f.E4M3FN else "infinity"
    return f"nearest, ties to even, through every type between; out of range {beyond}"


def _onnx(src: Format, dst: Format, mode: CastMode) -> Rule:
    for fmt in (src, dst):
        if fmt not in ONNX_FORMATS.values():
            return _no_rule("ONNX", fmt)

    def convert(codes: Codes) -> Codes:
        return codes_of(onnx_cast(values_of(codes, src), dst.dtype), dst)

    return Rule(text=_onnx_text(src, dst), source="ONNX Cast-25, saturate=1", convert=convert)


def _onnx_text(src: Format, dst: Format) -> str:
    if src is dst:
        return "nothing changes"
    if dst is f.BOOL:
        return "false for +-0, else true"
    if isinstance(dst, IntFormat):
        if isinstance(src, IntFormat):
            return "the low bits"
        if dst.bits < 8:
            return "truncated, then the low bits"
        return "truncated; the text leaves out of range and NaN open: here clamped, and 0"
    if dst.bits > 8:
        return "nearest, ties to even; out of range infinity"
    if dst.is_scale:
        return "up to a power of two (round_mode=up); out of range the largest or smallest"
    if dst.bits < 8:
        return "nearest, ties to even; out of range and infinity the largest number, NaN +0"
    return "nearest, ties to even; out of range and infinity the largest number (saturate=1)"


DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {
        dialect.name: dialect
        for dialect in (
            Dialect(name="pypto", rule=_pypto(saturate=True)),
            Dialect(name="pypto-off", rule=_pypto(saturate=False)),
            Dialect(name="torch", rule=_torch),
            Dialect(name="onnx", rule=_onnx),
            Dialect(name="openvino", rule=_openvino),
            Dialect(name="numpy", rule=_numpy),
        )
    }
)
"""By name; "pypto" is SaturationMode.ON, "pypto-off" is OFF."""
