"""The one table of the default rounding and overflow of a cast in each kernel language.

A language is a row of `DSL_CASTS`: the round mode that a cast has where none is named, the result
out of range, and the arguments that name either. The checks and the page read it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from simulator.numbers.rounding import RoundMode
from tiling.chips import Source, documented, inferred


class Beyond(enum.Enum):
    """The result of a float out of an integer's range."""

    CLAMPED = "the limit"
    LOW_BITS = "the low bits"
    OPEN = "undefined"


@dataclass(frozen=True, slots=True, kw_only=True)
class DslCast:
    """The cast of one kernel language.

    Attributes:
        name: of the language.
        call: the cast as it is written.
        to_integer: rounding from a float to an integer where no mode is named (CAST_NONE).
        to_float: the same to a narrower float.
        beyond: a float out of an integer's range where nothing is named.
        beyond_float: a float out of a narrower float's range where nothing is named.
        mode_argument: the argument that names the round mode to an integer; empty: none does.
        saturation_argument: the argument that names the result out of range; empty: none does.
        origin: the source of the row, and its standing.
    """

    name: str
    call: str
    to_integer: RoundMode
    to_float: RoundMode
    beyond: Beyond
    beyond_float: str
    mode_argument: str
    saturation_argument: str
    origin: Source


_CTRL_48: Final = "infinity; the limit where CTRL[48] is 0"

DSL_CASTS: Final[Mapping[str, DslCast]] = MappingProxyType(
    {
        row.name: row
        for row in (
            DslCast(
                name="pypto_cast",
                call="pypto.cast(x, dtype, mode, satmode)",
                to_integer=RoundMode.TRUNC,
                to_float=RoundMode.RINT,
                beyond=Beyond.CLAMPED,
                beyond_float=_CTRL_48,
                mode_argument="mode",
                saturation_argument="satmode",
                origin=documented("pypto.cast document, constraint 3; satmode is ON here"),
            ),
            DslCast(
                name="pypto",
                call="pypto.cast(x, dtype, mode, satmode)",
                to_integer=RoundMode.TRUNC,
                to_float=RoundMode.RINT,
                beyond=Beyond.LOW_BITS,
                beyond_float=_CTRL_48,
                mode_argument="mode",
                saturation_argument="satmode",
                origin=documented(
                    "upstream pypto 883e7dfb0, docs/zh/api/operation/pypto-cast.md and "
                    "datatype/CastMode.md; OFF acts on six pairs of A2/A3 (pto-isa, TCvt.hpp)"
                ),
            ),
            DslCast(
                name="AscendC",
                call="Cast(dst, src, roundMode, count)",
                to_integer=RoundMode.RINT,
                to_float=RoundMode.RINT,
                beyond=Beyond.CLAMPED,
                beyond_float=_CTRL_48,
                mode_argument="roundMode",
                saturation_argument="",
                origin=documented(
                    "CANN asc-devkit, Cast: CAST_NONE is CAST_RINT where bits are lost, and a mode "
                    "must be given; SetSaturationFlag: CTRL[59] is 0, saturation"
                ),
            ),
            DslCast(
                name="AscendC Reg",
                call="Reg::Cast<T, U, CastTrait>(dst, src, mask)",
                to_integer=RoundMode.RINT,
                to_float=RoundMode.RINT,
                beyond=Beyond.CLAMPED,
                beyond_float=_CTRL_48,
                mode_argument="CastTrait::roundMode",
                saturation_argument="CastTrait::satMode",
                origin=inferred(
                    "CANN asc-devkit, CastTrait: both are UNKNOWN where nothing is named, which no "
                    "text explains; the row has those of Cast"
                ),
            ),
            DslCast(
                name="pyasc",
                call="asc.cast(dst, src, round_mode, count)",
                to_integer=RoundMode.RINT,
                to_float=RoundMode.RINT,
                beyond=Beyond.CLAMPED,
                beyond_float=_CTRL_48,
                mode_argument="round_mode",
                saturation_argument="",
                origin=documented("pyasc, asc.language.basic.cast: a call of AscendC's Cast"),
            ),
            DslCast(
                name="pto-isa",
                call="TCVT(dst, src, mode)",
                to_integer=RoundMode.TRUNC,
                to_float=RoundMode.RINT,
                beyond=Beyond.CLAMPED,
                beyond_float=_CTRL_48,
                mode_argument="mode",
                saturation_argument="SaturationMode",
                origin=documented(
                    "hw-native-sys/pto-isa 3186c38, include/pto/npu/a2a3/TCvt.hpp: the mode of "
                    "CAST_NONE is the default of each pair's switch"
                ),
            ),
            DslCast(
                name="triton",
                call="x.to(dtype), tl.cast(x, dtype)",
                to_integer=RoundMode.TRUNC,
                to_float=RoundMode.RINT,
                beyond=Beyond.OPEN,
                beyond_float="infinity",
                mode_argument="",
                saturation_argument="",
                origin=documented(
                    "triton 3.x, python/triton/language/semantic.py, cast: fp_downcast_rounding is "
                    "RTNE and of floats alone; an integer is made by fptosi, which truncates and "
                    "whose result out of range is poison (LLVM LangRef)"
                ),
            ),
            DslCast(
                name="triton-ascend",
                call="x.to(dtype, overflow_mode=...)",
                to_integer=RoundMode.TRUNC,
                to_float=RoundMode.RINT,
                beyond=Beyond.LOW_BITS,
                beyond_float="infinity",
                mode_argument="",
                saturation_argument="overflow_mode",
                origin=documented(
                    "triton-ascend, docs/zh/triton_api/Creation_Ops/cast.md: rtne, and trunc where "
                    "overflow_mode is not given; later versions have no overflow_mode "
                    "(triton-ascend#716)"
                ),
            ),
            DslCast(
                name="tilelang",
                call="T.cast(x, dtype), T.copy(src, dst)",
                to_integer=RoundMode.TRUNC,
                to_float=RoundMode.RINT,
                beyond=Beyond.OPEN,
                beyond_float="infinity; of FP8 the limit",
                mode_argument="",
                saturation_argument="",
                origin=inferred(
                    "tilelang: a conversion of C++ (C++17 [conv.fpint]); tile-ai/tilelang#2049 "
                    "asks for rounding and saturation, #2944 has FP8; up to 0.1.11 integers were "
                    "cut to BF16 (#2483)"
                ),
            ),
            DslCast(
                name="tilelang-ascend",
                call="T.tile.cast(dst, src, mode, count)",
                to_integer=RoundMode.RINT,
                to_float=RoundMode.RINT,
                beyond=Beyond.CLAMPED,
                beyond_float=_CTRL_48,
                mode_argument="mode",
                saturation_argument="",
                origin=inferred(
                    "tile-ai/tilelang-ascend, tilelang/language/ascend_tile.py, cast: the modes of "
                    "AscendC's Cast, which it calls"
                ),
            ),
            DslCast(
                name="tilelang-mlir-ascend",
                call='T.npuir_cast(src, dst, round_mode="rint")',
                to_integer=RoundMode.RINT,
                to_float=RoundMode.RINT,
                beyond=Beyond.CLAMPED,
                beyond_float=_CTRL_48,
                mode_argument="round_mode",
                saturation_argument="",
                origin=inferred(
                    "tile-ai/tilelang-mlir-ascend, tilelang/language/customize_npuir.py, "
                    "npuir_cast; out of range: as the instruction where nothing sets CTRL[59]"
                ),
            ),
        )
    }
)
"""By name."""


def others_round(row: DslCast) -> tuple[DslCast, ...]:
    """The languages that round from a float to an integer otherwise where no mode is named."""
    return tuple(other for other in DSL_CASTS.values() if other.to_integer is not row.to_integer)
