"""The one table of pairs and modes that the Cast instruction of a family has, and its control bits.

It is the machine's guard, and independent of the one that says which casts pypto offers.

Source of A2/A3: CANN asc-devkit, Cast (documents for A2/A3) and its c220 implementation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from simulator.numbers import formats as f
from simulator.numbers.convert import INF_NAN, SATURATE, WRAP, Policy
from simulator.numbers.formats import Format, IntFormat
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

Pair = tuple[Format, Format]

CTRL_FLOAT: Final = 48
"""CTRL bit: 1 keeps infinities and NaN in FP16 and BF16 results, 0 saturates them."""
CTRL_CAST: Final = 59
"""CTRL bit: 0 clamps integer results, 1 keeps their low bits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CastRow:
    """A pair that the Cast instruction of a family converts.

    Attributes:
        src: source format.
        dst: destination format.
        modes: round modes that the instruction has.
        has_none: CAST_NONE exists too: to nearest even where bits are lost.
        is_scaled: numbers are multiplied by a register that must be set before (pto-isa, TCVT).
        ctrl: the control bit that special values and overflow depend on; None: on none.
        when_clear: their rule where the bit is 0, or there is none.
        when_set: their rule where the bit is 1.
    """

    src: Format
    dst: Format
    modes: tuple[RoundMode, ...]
    has_none: bool
    is_scaled: bool
    ctrl: int | None
    when_clear: Policy
    when_set: Policy

    def policy(self, ctrl: Mapping[int, bool]) -> Policy:
        """The rule of special values and overflow under the control bits."""
        return self.when_set if self.ctrl is not None and ctrl[self.ctrl] else self.when_clear


_M5: Final = (
    RoundMode.RINT,
    RoundMode.ROUND,
    RoundMode.FLOOR,
    RoundMode.CEIL,
    RoundMode.TRUNC,
)


def _row(
    src: Format,
    dst: Format,
    modes: tuple[RoundMode, ...],
    has_none: bool,
    *,
    is_scaled: bool = False,
) -> CastRow:
    """A row of A2/A3, whose control bits go by the destination (CANN asc-devkit, SetCtrlSpr)."""
    ctrl: int | None = None
    when_clear, when_set = INF_NAN, INF_NAN
    if isinstance(dst, IntFormat):
        ctrl, when_clear, when_set = CTRL_CAST, SATURATE, WRAP
    elif dst in (f.FP16, f.BF16):
        ctrl, when_clear, when_set = CTRL_FLOAT, SATURATE, INF_NAN
    return CastRow(
        src=src,
        dst=dst,
        modes=modes,
        has_none=has_none,
        is_scaled=is_scaled,
        ctrl=ctrl,
        when_clear=when_clear,
        when_set=when_set,
    )


def _by_pair(*rows: CastRow) -> Mapping[Pair, CastRow]:
    return MappingProxyType({(row.src, row.dst): row for row in rows})


CAST_TABLE: Final[Mapping[str, Mapping[Pair, CastRow]]] = MappingProxyType(
    {
        A2_A3: _by_pair(
            _row(f.FP32, f.FP16, (*_M5, RoundMode.ODD), True),
            _row(f.FP32, f.BF16, _M5, False),
            _row(f.FP32, f.FP32, _M5, False),
            _row(f.FP32, f.INT16, _M5, False),
            _row(f.FP32, f.INT32, _M5, False),
            _row(f.FP32, f.INT64, _M5, False),
            _row(f.FP16, f.FP32, (), True),
            _row(f.FP16, f.INT32, _M5, False),
            _row(f.FP16, f.INT16, _M5, False),
            _row(f.FP16, f.INT8, _M5, True),
            _row(f.FP16, f.UINT8, _M5, True),
            _row(f.FP16, f.INT4, _M5, True),
            _row(f.BF16, f.FP32, (), True),
            _row(f.BF16, f.INT32, _M5, False),
            _row(f.INT32, f.FP32, _M5, True),
            _row(f.INT32, f.INT16, (), True),
            _row(f.INT32, f.INT64, (), True),
            _row(f.INT32, f.FP16, (), True, is_scaled=True),
            _row(f.INT16, f.FP32, (), True),
            _row(f.INT16, f.FP16, _M5, True),
            _row(f.INT64, f.FP32, _M5, False),
            _row(f.INT64, f.INT32, (), True),
            _row(f.UINT8, f.FP16, (), True),
            _row(f.INT8, f.FP16, (), True),
            _row(f.INT4, f.FP16, (), True),
        ),
    }
)
"""By the instructions of a chip (`Chip.isa`), then by source and destination."""
