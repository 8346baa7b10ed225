"""The one table of pairs and modes that the Cast instruction has on A2/A3, and its control bits.

Source: CANN asc-devkit, Cast (documents for A2/A3) and its c220 implementation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from simulator.numbers import formats as f
from simulator.numbers.convert import INF_NAN, SATURATE, WRAP, Policy
from simulator.numbers.formats import BF16, FP16, Format, IntFormat
from simulator.numbers.rounding import RoundMode

CTRL_FLOAT: Final = 48
"""CTRL bit: 1 keeps infinities and NaN in FP16 and BF16 results, 0 saturates them."""
CTRL_CAST: Final = 59
"""CTRL bit: 0 clamps integer results, 1 keeps their low bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRow:
    """A pair that the Cast instruction converts.

    Attributes:
        src: source format.
        dst: destination format.
        modes: round modes that the instruction has.
        has_none: CAST_NONE exists too: to nearest even where bits are lost.
    """

    src: Format
    dst: Format
    modes: tuple[RoundMode, ...]
    has_none: bool


_M5: Final = (
    RoundMode.RINT,
    RoundMode.ROUND,
    RoundMode.FLOOR,
    RoundMode.CEIL,
    RoundMode.TRUNC,
)

CAST_TABLE: Final[Mapping[tuple[Format, Format], CastRow]] = MappingProxyType(
    {
        (src, dst): CastRow(src=src, dst=dst, modes=modes, has_none=has_none)
        for src, dst, modes, has_none in (
            (f.FP32, f.FP16, (*_M5, RoundMode.ODD), True),
            (f.FP32, f.BF16, _M5, False),
            (f.FP32, f.FP32, _M5, False),
            (f.FP32, f.INT16, _M5, False),
            (f.FP32, f.INT32, _M5, False),
            (f.FP32, f.INT64, _M5, False),
            (f.FP16, f.FP32, (), True),
            (f.FP16, f.INT32, _M5, False),
            (f.FP16, f.INT16, _M5, False),
            (f.FP16, f.INT8, _M5, True),
            (f.FP16, f.UINT8, _M5, True),
            (f.FP16, f.INT4, _M5, True),
            (f.BF16, f.FP32, (), True),
            (f.BF16, f.INT32, _M5, False),
            (f.INT32, f.FP32, _M5, True),
            (f.INT32, f.INT16, (), True),
            (f.INT32, f.INT64, (), True),
            (f.INT32, f.FP16, (), True),
            (f.INT16, f.FP32, (), True),
            (f.INT16, f.FP16, _M5, True),
            (f.INT64, f.FP32, _M5, False),
            (f.INT64, f.INT32, (), True),
            (f.UINT8, f.FP16, (), True),
            (f.INT8, f.FP16, (), True),
            (f.INT4, f.FP16, (), True),
        )
    }
)


def cast_policy(dst: Format, ctrl: Mapping[int, bool]) -> Policy:
    """The special-value behaviour of Cast under the control bits (CANN asc-devkit, SetCtrlSpr)."""
    if isinstance(dst, IntFormat):
        return WRAP if ctrl[CTRL_CAST] else SATURATE
    if dst in (FP16, BF16) and not ctrl[CTRL_FLOAT]:
        return SATURATE
    return INF_NAN
