"""ONNX's Cast and OpenVINO's Convert and FakeConvert, as the dialects of their names have them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from pypto_cast.dialects.onnx import cast as onnx_cast
from pypto_cast.dialects.onnx.cast import FLOAT8_TYPES, OPSET, SATURATING_INF_OPSET
from pypto_cast.dialects.onnx.types import FORMATS as ONNX_FORMATS
from pypto_cast.dialects.openvino.convert import convert as openvino_convert
from pypto_cast.dialects.openvino.element_types import HELD_FORMATS as OPENVINO_FORMATS
from pypto_cast.dialects.openvino.fake_convert import DATA_FORMATS, fake_convert
from pypto_cast.dialects.rules.libraries import integer_rule
from pypto_cast.dialects.rules.rule import DialectRule, Rule, no_rule
from pypto_cast.dtypes.data_types import CastMode
from simulator.numbers import formats as f
from simulator.numbers.convert import INF_NAN, Conversion, codes_of, values_of
from simulator.numbers.formats import Codes, FloatFormat, Format, IntFormat, Specials
from simulator.numbers.rounding import RoundMode

ONNX_FLOAT8: Final = frozenset(ONNX_FORMATS[to] for to in FLOAT8_TYPES)
_OPENVINO: Final = "Convert-1; measured with openvino 2026.4.1 on x86-64"


def openvino(src: Format, dst: Format, mode: CastMode) -> Rule:
    """The evaluation of Convert by OpenVINO's core."""
    for fmt in (src, dst):
        if fmt not in OPENVINO_FORMATS.values():
            return no_rule("OpenVINO", fmt)
    if isinstance(dst, IntFormat) and src is not dst:
        return integer_rule(src, dst, _OPENVINO, {})

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


_NEAREST: Final = "nearest, ties to even"
_BY_FLOAT16: Final = f"by way of float16, {_NEAREST}"

_FAKE_TEXTS: Final[Mapping[tuple[str, Format], str]] = MappingProxyType(
    {
        ("reference", f.E4M3FN): "by way of float16; -0 and below 2^-9 +0, below 2^-6 rounded to "
        "four bits and cut; out of range, infinity and NaN +-448",
        ("reference", f.E5M2): f"{_BY_FLOAT16}, -0 +0; out of range and infinity +-57344; of a "
        "NaN the upper payload bits, without any infinity",
        ("plugin", f.E4M3FN): f"{_BY_FLOAT16}; out of range and infinity +-448, NaN -448",
        ("plugin", f.E5M2): f"{_BY_FLOAT16}; out of range and infinity +-57344, NaN -57344",
        ("rne", f.E4M3FN): f"{_NEAREST}; out of range and infinity +-448, NaN stays NaN",
        ("rne", f.E5M2): f"{_NEAREST}; out of range and infinity +-57344, NaN stays NaN",
    }
)
_FAKE_SOURCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "reference": "FakeConvert-13, scale 1, no shift; core of openvino 2026.4.1, measured",
        "plugin": "FakeConvert-13, scale 1, no shift; CPU plugin of openvino 2026.4.1, measured",
        "rne": "FakeConvert-13, scale 1, no shift; FP8 Formats for Deep Learning",
    }
)
_DESTINATIONS: Final[Mapping[Format, str]] = MappingProxyType(
    {f.E4M3FN: "f8e4m3", f.E5M2: "f8e5m2"}
)


def fake(numerics: str) -> DialectRule:
    """FakeConvert with a scale of 1 and no shift; its result as the 8-bit number that it is."""

    def rule(src: Format, dst: Format, mode: CastMode) -> Rule:
        if not faked(src, dst):
            return Rule(text=f"FakeConvert does not take {src} to {dst}", source="FakeConvert-13")
        back = Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=INF_NAN)

        def convert(codes: Codes) -> Codes:
            kept = fake_convert(
                values_of(codes, src),
                np.ones(1, src.dtype),
                destination_type=_DESTINATIONS[dst],
                numerics=numerics,
            )
            return back.define(codes_of(kept, src))

        return Rule(
            text=_FAKE_TEXTS[numerics, dst],
            source=_FAKE_SOURCES[numerics],
            convert=convert,
            leaves_nan_bits_open=True,
        )

    return rule


def faked(src: Format, dst: Format) -> bool:
    """Tells whether FakeConvert rounds data of one format to the other."""
    return src in DATA_FORMATS.values() and dst in _DESTINATIONS


def faked_by_plugin(src: Format, dst: Format) -> bool:
    """The same of the CPU plugin, which rounds bf16 data where its graph optimisations put it."""
    return faked(src, dst) and src is not f.BF16


def onnx(*, saturate: bool = True, opset: int = OPSET) -> DialectRule:
    """Cast with an attribute `saturate`, as the text of an opset has it."""

    def rule(src: Format, dst: Format, mode: CastMode) -> Rule:
        for fmt in (src, dst):
            if fmt not in ONNX_FORMATS.values():
                return no_rule("ONNX", fmt)

        def convert(codes: Codes) -> Codes:
            values = values_of(codes, src)
            return codes_of(onnx_cast(values, dst.dtype, saturate=saturate, opset=opset), dst)

        return Rule(
            text=_onnx_text(src, dst, saturate, opset),
            source=f"ONNX Cast-{opset}, saturate={int(saturate)}",
            convert=convert,
        )

    return rule


def saturate_acts(src: Format, dst: Format) -> bool:
    """Tells whether ONNX's attribute `saturate` plays a part in a conversion."""
    return src is not dst and dst in ONNX_FLOAT8


def opset_acts(src: Format, dst: Format) -> bool:
    """Tells whether ONNX's texts up to opset 23 and from 24 on differ: infinity to a FNUZ type."""
    has_inf = isinstance(src, FloatFormat) and src.inf_code is not None
    return has_inf and isinstance(dst, FloatFormat) and dst.specials is Specials.FNUZ


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
