"""ONNX's Cast and OpenVINO's Convert, as the frontends of their names have them."""

from __future__ import annotations

from typing import Final

from pypto_cast.dtypes import CastMode
from pypto_cast.frontends.onnx import cast as onnx_cast
from pypto_cast.frontends.onnx.types import FORMATS as ONNX_FORMATS
from pypto_cast.frontends.openvino.convert import convert as openvino_convert
from pypto_cast.frontends.openvino.element_types import HELD_FORMATS as OPENVINO_FORMATS
from pypto_cast.frontends.rules.libraries import integer_rule
from pypto_cast.frontends.rules.rule import Rule, no_rule
from simulator import formats as f
from simulator.convert import codes_of, values_of
from simulator.formats import Codes, Format, IntFormat

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


def onnx(src: Format, dst: Format, mode: CastMode) -> Rule:
    """Cast with saturate=1."""
    for fmt in (src, dst):
        if fmt not in ONNX_FORMATS.values():
            return no_rule("ONNX", fmt)

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
