"""The systems that `compare` lays side by side: names, and a rule for every pair of formats.

Nothing here imports a framework; the tests hold every rule against the installed one. torch and
numpy leave what is out of an integer's range to C's casts (`pypto_cast.dialects.c_casts`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.matrix import MATRIX, CastStep, Resolution, UnsupportedCastError, resolve
from ascend_kernels.program import conversions
from ascend_kernels.routing.verdict_table import advised
from pypto_cast.dialects import c_casts, small_float_casts
from pypto_cast.dialects.onnx import cast as onnx_cast
from pypto_cast.dialects.onnx.cast import FLOAT8_TYPES, OPSET, SATURATING_INF_OPSET
from pypto_cast.dialects.onnx.cast import conversions as onnx_conversions
from pypto_cast.dialects.onnx.types import FORMATS as ONNX_FORMATS
from pypto_cast.dialects.openvino.convert import FLOATS as OPENVINO_FLOATS
from pypto_cast.dialects.openvino.convert import convert as openvino_convert
from pypto_cast.dialects.openvino.element_types import HELD_FORMATS, name_of_dtype
from pypto_cast.dialects.openvino.fake_convert import (
    DATA_FORMATS,
    DESTINATION_FORMATS,
    fake_convert,
)
from pypto_cast.dialects.paddle import DTYPES
from pypto_cast.dialects.paddle import cast as paddle_cast
from pypto_cast.dialects.paddle.cast import Category, row_of
from pypto_cast.dtypes.data_types import ROWS, CastMode
from simulator.numbers import float_environment
from simulator.numbers import formats as f
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE_KEEP_NAN,
    WRAP,
    Conversion,
    Policy,
    codes_of,
    values_of,
)
from simulator.numbers.formats import Codes, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import Bools, RoundMode
from tiling.chips import A2_A3, ASCEND_950


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A conversion as one dialect makes it.

    Attributes:
        text: the rule in a line; or why there is none.
        source: what the rule is taken from.
        convert: source codes to destination codes; None where the dialect has no such conversion.
        leaves_open: which source codes have no settled result; None where all have one.
        leaves_nan_bits_open: a NaN result is settled as such, but not which bits it has.
        steps: conversions that give the same, where the rule is a set of their parameters.
    """

    text: str
    source: str
    convert: Callable[[Codes], Codes] | None = field(default=None, repr=False, compare=False)
    leaves_open: Callable[[Codes], Bools] | None = field(default=None, repr=False, compare=False)
    leaves_nan_bits_open: bool = False
    steps: tuple[Conversion, ...] = field(default=(), repr=False, compare=False)


DialectRule = Callable[[Format, Format, CastMode], Rule]
"""(source, destination, round mode, which only pypto has) to the rule."""


def chain(*steps: Conversion) -> Callable[[Codes], Codes]:
    """Conversions one after another, each by the definition."""

    def convert(codes: Codes) -> Codes:
        for step in steps:
            codes = step.reference(codes)
        return codes

    return convert


def same(codes: Codes) -> Codes:
    """Copies the codes: the cast of a format to itself."""
    return codes.copy()


def _among(
    formats: Collection[Format], name: str, source: str = ""
) -> Callable[[DialectRule], DialectRule]:
    """Makes a framework's rules known for its formats alone, and equal ones change nothing.

    Args:
        formats: its own.
        name: for the text of the others.
        source: of the rule of equal formats; empty: the framework has one of its own.
    """

    def with_formats(rule: DialectRule) -> DialectRule:
        def known(src: Format, dst: Format, mode: CastMode) -> Rule:
            for fmt in (src, dst):
                if fmt not in formats:
                    text = f"{name} has no {fmt}, or no rule for it is known here"
                    return Rule(text=text, source="")
            if src is dst and source:
                return Rule(text="nothing changes", source=source, convert=same)
            return rule(src, dst, mode)

        return known

    return with_formats


def pypto(saturate: bool, family: str = A2_A3) -> DialectRule:
    """The rules of a chip family under SaturationMode.ON or OFF."""

    def rule(src: Format, dst: Format, mode: CastMode) -> Rule:
        if src is dst and ((src, dst) not in MATRIX[family] or mode is CastMode.CAST_NONE):
            return Rule(text="nothing changes", source="pypto.cast document", convert=same)
        try:
            found = resolve(family, src, dst, mode.round_mode, saturate=saturate)
        except UnsupportedCastError as refusal:
            advice = advised(refusal, family, src, dst, mode.round_mode)
            return Rule(text=str(advice), source="pypto.cast document, constraint 2")
        return Rule(
            text=_pypto_text(found, mode, saturate),
            source=found.rule.source,
            convert=chain(*conversions(found)),
            steps=conversions(found),
        )

    return rule


def is_of_950_alone(src: Format, dst: Format) -> bool:
    """The 950 has the pair, and A2/A3 lacks it or has another rule of overflow."""
    here, there = (MATRIX[family].get((src, dst)) for family in (ASCEND_950, A2_A3))
    if here is None or there is None:
        return here is not None
    return not here.is_exact and here.overflow != there.overflow


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
        beyond = "infinity" if rule.dst.inf_code is not None else "NaN"
        leaves = f"out of range {beyond} where the mode rounds there"
        saturates = rule.overflow.overflow.saturates
        words.append("out of range the largest number" if saturates else leaves)
    if isinstance(rule.src, FloatFormat):
        has_nan = isinstance(rule.dst, FloatFormat) and rule.overflow.keeps_nan
        words.append("NaN the one NaN" if has_nan else "NaN 0")
    if not saturate and not rule.off:
        words.append("OFF does not act on this pair")
    return ", ".join(words)


def _low_bits_text(found: Resolution) -> str:
    first = found.steps[0]
    if isinstance(first, CastStep) and first.dst is not found.rule.dst:
        return f"clamped to {first.dst}, then the low bits"
    has_inf = isinstance(found.rule.src, FloatFormat)
    return "the low bits, infinity clamped" if has_inf else "the low bits"


_TORCH_FORMATS: Final[frozenset[Format]] = frozenset(
    row.format for row in ROWS if row.format is not None and row.torch is not None
)
_NUMPY_FORMATS: Final[frozenset[Format]] = _TORCH_FORMATS | {f.INT4, f.UINT4, f.E2M1}
"""The formats whose conversions are measured."""

_TORCH: Final = "measured with torch 2.13.0 on x86-64"
_NUMPY: Final = "measured with numpy 2.4.6 and ml_dtypes 0.6.0 on x86-64"
_C: Final = "C17 6.3.1.4"


def integer_rule(
    src: Format, dst: IntFormat, source: str, through: Mapping[tuple[Format, Format], IntFormat]
) -> Rule:
    """To an integer or a truth value, the same in numpy, torch and OpenVINO."""
    if dst is f.BOOL:
        step = Conversion(src=src, dst=dst, mode=RoundMode.TRUNC, policy=WRAP)
        return Rule(
            text="true unless +-0; NaN is true", source=source, convert=chain(step), steps=(step,)
        )
    if isinstance(src, IntFormat):
        step = Conversion(src=src, dst=dst, mode=RoundMode.TRUNC, policy=WRAP)
        fits = dst.min <= src.min and src.max <= dst.max
        text = "exact" if fits else f"the low {dst.bits} bits"
        return Rule(text=text, source=source, convert=chain(step), steps=(step,))
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
        steps=tuple(steps),
        leaves_nan_bits_open=not dst.nan_is_negative_zero,
    )


def _rounds_twice(src: Format, dst: FloatFormat) -> bool:
    """True if FP32 on the way shows; integers that it rounds are too large but for BF16."""
    if isinstance(src, IntFormat):
        return dst is f.BF16 and src.bits - src.signed > f.FP32.man_bits + 1
    return src.bits > f.FP32.bits


def _beyond(dst: FloatFormat, policy: Policy) -> str:
    if policy is SATURATE_KEEP_NAN:
        return "and infinity the largest number"
    return "NaN" if dst.inf_code is None else "infinity"


def _scale_rule(src: Format, source: str, *, takes_magnitudes: bool) -> Rule:
    """To E8M0 in torch and ml_dtypes."""
    others = "the sign dropped, 0 the least" if takes_magnitudes else "0 and negative numbers NaN"
    return Rule(
        text=f"by way of float32; nearest power of two, from a half the greater, {others}; out of "
        "range NaN",
        source=source,
        convert=functools.partial(
            small_float_casts.to_scale, src=src, takes_magnitudes=takes_magnitudes
        ),
    )


_BY_INT64: Final[Mapping[tuple[Format, Format], IntFormat]] = {(f.FP64, f.UINT8): f.INT64}
"""Pairs that torch truncates to 64 bits although 32 would do."""


@_among(_TORCH_FORMATS | {f.E2M1}, "torch", _TORCH)
def torch(src: Format, dst: Format, mode: CastMode) -> Rule:
    """`Tensor.to`."""
    if f.E2M1 in (src, dst):
        return Rule(text="torch casts nothing from or to its float4_e2m1fn_x2", source=_TORCH)
    if dst is f.E8M0:
        return _scale_rule(src, _TORCH, takes_magnitudes=True)
    if isinstance(dst, IntFormat):
        return integer_rule(src, dst, _TORCH, _BY_INT64)
    policy = SATURATE_KEEP_NAN if dst is f.E4M3FN else INF_NAN
    return float_rule(src, dst, _TORCH, direct=dst is f.FP64, policy=policy)


@_among(_NUMPY_FORMATS, "numpy with ml_dtypes", _NUMPY)
def numpy(src: Format, dst: Format, mode: CastMode) -> Rule:
    """`ndarray.astype`, joined by ml_dtypes."""
    if {src, dst} == {f.INT4, f.UINT4}:
        return Rule(text="ml_dtypes has no cast between its 4-bit integers", source=_NUMPY)
    if f.E8M0 in (src, dst) and {src, dst} & _SMALL:
        return Rule(text="ml_dtypes casts no E8M0 from or to its other small types", source=_NUMPY)
    if dst is f.E8M0:
        return _scale_rule(src, _NUMPY, takes_magnitudes=False)
    if isinstance(dst, IntFormat):
        rule = integer_rule(src, dst, _NUMPY, {})
        narrow = dst in (f.INT4, f.UINT4)
        return _zero_above_int32(rule) if narrow and src is f.FP64 else rule
    if dst is f.E2M1:
        rule = float_rule(src, dst, _NUMPY, direct=False, policy=SATURATE_KEEP_NAN)
        return rule if isinstance(src, IntFormat) else _zero_for_nan(rule, src)
    return float_rule(src, dst, _NUMPY, direct=dst in (f.FP64, f.FP16))


def _zero_for_nan(rule: Rule, src: FloatFormat) -> Rule:
    convert = chain(*rule.steps)
    return dataclasses.replace(
        rule,
        text=f"{rule.text}, NaN a zero of the other sign",
        convert=lambda codes: small_float_casts.with_zero_for_nan(codes, src, convert(codes)),
        steps=(),
    )


_SMALL: Final[frozenset[Format]] = frozenset(
    fmt for fmt in _NUMPY_FORMATS if isinstance(fmt, FloatFormat) and fmt.bits <= 8
) - {f.E8M0} | {f.INT4, f.UINT4}


def _zero_above_int32(rule: Rule) -> Rule:
    """ml_dtypes compares a number with int32's range before it truncates: 2^31 - 0.5 is outside.

    Of the other floats, none lies between the largest int32 and 2^31.
    """
    truncate = rule.convert
    assert truncate is not None

    def convert(codes: Codes) -> Codes:
        above = values_of(codes, f.FP64) > f.INT32.max
        return np.where(above, np.uint8(0), truncate(codes))

    return dataclasses.replace(rule, text=f"{rule.text}; 0 from above 2^31 - 1", convert=convert)


ONNX_FLOAT8: Final = frozenset(ONNX_FORMATS[to] for to in FLOAT8_TYPES)
_OPENVINO_FORMATS: Final = tuple(
    fmt for fmt in HELD_FORMATS.values() if isinstance(fmt, IntFormat) or fmt in OPENVINO_FLOATS
)
_OPENVINO: Final = "Convert-1; measured with openvino 2026.4.1 on x86-64"


@_among(_OPENVINO_FORMATS, "OpenVINO", _OPENVINO)
def openvino(src: Format, dst: Format, mode: CastMode) -> Rule:
    """The evaluation of Convert by OpenVINO's core."""
    if isinstance(dst, IntFormat):
        return integer_rule(src, dst, _OPENVINO, {})

    def convert(codes: Codes) -> Codes:
        return codes_of(openvino_convert(values_of(codes, src), src, dst), dst)

    return Rule(text=_openvino_text(src, dst), source=_OPENVINO, convert=convert)


def _openvino_text(src: Format, dst: Format) -> str:
    if dst is f.BF16 and src is not f.BOOL:
        return (
            "by way of float32; half a unit is added only to an odd last place, then cut, the bits "
            "of a NaN too"
        )
    if dst is f.FP16 and src is f.INT32:
        return "nearest, ties to even; out of range +-65504"
    beyond = "NaN" if dst is f.E4M3FN else "infinity"
    return f"nearest, ties to even, through every type between; out of range {beyond}"


_NEAREST: Final = "nearest, ties to even"
_BY_FLOAT16: Final = f"by way of float16, {_NEAREST}"

_FAKE_TEXTS: Final[Mapping[tuple[str, Format], str]] = {
    ("reference", f.E4M3FN): "by way of float16; -0 and below 2^-9 +0, below 2^-6 rounded to "
    "four bits and cut; out of range, infinity and NaN +-448",
    ("reference", f.E5M2): f"{_BY_FLOAT16}, -0 +0; out of range and infinity +-57344; of a "
    "NaN the upper payload bits, without any infinity",
    ("plugin", f.E4M3FN): f"{_BY_FLOAT16}; out of range and infinity +-448, NaN -448",
    ("plugin", f.E5M2): f"{_BY_FLOAT16}; out of range and infinity +-57344, NaN -57344",
    ("rne", f.E4M3FN): f"{_NEAREST}; out of range and infinity +-448, NaN stays NaN",
    ("rne", f.E5M2): f"{_NEAREST}; out of range and infinity +-57344, NaN stays NaN",
}
_FAKE_SOURCES: Final[Mapping[str, str]] = {
    "reference": "FakeConvert-13, scale 1, no shift; core of openvino 2026.4.1, measured",
    "plugin": "FakeConvert-13, scale 1, no shift; CPU plugin of openvino 2026.4.1 without "
    "AVX512-FP16, measured",
    "rne": "FakeConvert-13, scale 1, no shift; FP8 Formats for Deep Learning",
}


def fake(numerics: str) -> DialectRule:
    """FakeConvert with a scale of 1 and no shift; its result as the 8-bit number that it is."""

    def rule(src: Format, dst: Format, mode: CastMode) -> Rule:
        if not takes_fake_convert(src, dst):
            return Rule(text=f"FakeConvert does not take {src} to {dst}", source="FakeConvert-13")
        back = Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=INF_NAN)

        def convert(codes: Codes) -> Codes:
            kept = fake_convert(
                values_of(codes, src),
                np.ones(1, src.dtype),
                destination_type=name_of_dtype(dst.dtype),
                numerics=numerics,
            )
            return back.reference(codes_of(kept, src))

        return Rule(
            text=_FAKE_TEXTS[numerics, dst],
            source=_FAKE_SOURCES[numerics],
            convert=convert,
            leaves_nan_bits_open=True,
        )

    return rule


def takes_fake_convert(src: Format, dst: Format) -> bool:
    """True if FakeConvert rounds data of one format to the other."""
    return src in DATA_FORMATS.values() and dst in DESTINATION_FORMATS.values()


def plugin_takes_fake_convert(src: Format, dst: Format) -> bool:
    """The same of the CPU plugin, which rounds bf16 data where its graph optimisations put it."""
    return takes_fake_convert(src, dst) and src is not f.BF16


def onnx(*, saturate: bool = True, opset: int = OPSET) -> DialectRule:
    """Cast with an attribute `saturate`, as the text of an opset has it."""

    @_among(ONNX_FORMATS.values(), "ONNX")
    def rule(src: Format, dst: Format, mode: CastMode) -> Rule:
        def convert(codes: Codes) -> Codes:
            values = values_of(codes, src)
            return codes_of(onnx_cast(values, dst.dtype, saturate=saturate, opset=opset), dst)

        return Rule(
            text=_onnx_text(src, dst, saturate, opset),
            source=f"ONNX Cast-{opset}, saturate={int(saturate)}",
            convert=convert,
            steps=onnx_conversions(src, dst, saturate=saturate, opset=opset),
        )

    return rule


def saturate_acts(src: Format, dst: Format) -> bool:
    """True if ONNX's attribute `saturate` changes a conversion."""
    return src is not dst and dst in ONNX_FLOAT8


def opset_acts(src: Format, dst: Format) -> bool:
    """True if ONNX's texts up to opset 23 and from 24 on differ: infinity to a FNUZ type."""
    has_inf = isinstance(src, FloatFormat) and src.inf_code is not None
    return has_inf and isinstance(dst, FloatFormat) and dst.nan_is_negative_zero


def _onnx_text(src: Format, dst: Format, saturate: bool, opset: int) -> str:
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
        beyond = "the largest or smallest" if saturate else "NaN"
        return f"up to a power of two (round_mode=up); out of range {beyond}"
    if dst.bits < 8:
        return "nearest, ties to even; out of range and infinity the largest number, NaN +0"
    if not saturate:
        beyond = "NaN" if dst.inf_code is None else "infinity"
        return f"nearest, ties to even; out of range and infinity {beyond} (saturate=0)"
    if opset < SATURATING_INF_OPSET and opset_acts(src, dst):
        return "nearest, ties to even; out of range the largest number, infinity NaN (saturate=1)"
    return "nearest, ties to even; out of range and infinity the largest number (saturate=1)"


_PADDLE: Final = "measured with paddlepaddle 3.3.1 (CPU) on x86-64"
_PADDLE_FORMATS: Final = frozenset(
    row_of(name).part for name in DTYPES if row_of(name).category is not Category.COMPLEX
)
_BADLY_SHIFTED: Final = (2.0**-90, 2.0**-77)
"""Magnitudes whose way to float16 shifts by more bits than a word has."""


@_among(_PADDLE_FORMATS, "Paddle", _PADDLE)
def paddle(src: Format, dst: Format, mode: CastMode) -> Rule:
    """`paddle.cast`."""
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
    magnitudes = np.abs(_numbers(codes, src))
    found: Bools = (magnitudes >= least) & (magnitudes <= greatest)
    return found


def _is_beyond(codes: Codes, src: Format, dst: IntFormat) -> Bools:
    whole = np.trunc(_numbers(codes, src))
    inside: Bools = (whole >= float(dst.min)) & (whole < float(dst.max + 1))
    return ~inside


@float_environment.quiet()
def _numbers(codes: Codes, src: Format) -> npt.NDArray[np.float64]:
    return values_of(codes, src).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A framework, or a setting of one.

    Attributes:
        name: for tables and arguments.
        rule: the rule of a pair under a round mode, which only pypto has.
        applies: whether it has a row of its own for a pair of source and destination: a setting of
            a framework only where it acts, an operation only where it takes the pair.
    """

    name: str
    rule: DialectRule
    applies: Callable[[Format, Format], bool] = lambda src, dst: True

    def __str__(self) -> str:
        return self.name


DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {
        dialect.name: dialect
        for dialect in (
            Dialect(name="pypto", rule=pypto(saturate=True)),
            Dialect(name="pypto-off", rule=pypto(saturate=False)),
            Dialect(
                name="pypto-950",
                rule=pypto(saturate=True, family=ASCEND_950),
                applies=is_of_950_alone,
            ),
            Dialect(name="torch", rule=torch),
            Dialect(name="onnx", rule=onnx()),
            Dialect(name="onnx-off", rule=onnx(saturate=False), applies=saturate_acts),
            Dialect(name="onnx-19", rule=onnx(opset=19), applies=opset_acts),
            Dialect(name="openvino", rule=openvino),
            Dialect(name="fake-reference", rule=fake("reference"), applies=takes_fake_convert),
            Dialect(name="fake-plugin", rule=fake("plugin"), applies=plugin_takes_fake_convert),
            Dialect(name="fake-rne", rule=fake("rne"), applies=takes_fake_convert),
            Dialect(name="paddle", rule=paddle),
            Dialect(name="numpy", rule=numpy),
        )
    }
)
"""By name: "pypto" is A2/A3 with SaturationMode.ON, "pypto-off" with OFF, "pypto-950" the Ascend
950 with ON; "onnx" is Cast-25 with saturate=1,
"onnx-off" with saturate=0, "onnx-19" Cast-19; "fake-" the numerics of OpenVINO's FakeConvert."""
