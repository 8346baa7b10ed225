"""The one table of pairs and modes that the Cast instruction of a family has, and its control bits.

It is the machine's guard, and independent of the one that says which casts pypto offers.

Source of A2/A3: CANN asc-devkit, Cast (documents for A2/A3) and its c220 implementation. Of 950:
the same page's table of 950, without complex numbers and DOUBLE, and the two pairs of E8M0 of the
Reg vector API; values out of range by Cast of that, tables 4 and 34. From FP32 to E4M3FN and E5M2
both pages list RINT alone, and pto-isa a5 hands the instruction every mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from simulator.machine.isa import SourceRounding
from simulator.numbers import formats as f
from simulator.numbers.convert import INF_NAN, SATURATE, SATURATE_KEEP_NAN, WRAP, Policy
from simulator.numbers.formats import Format, IntFormat
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, ASCEND_950

Pair = tuple[Format, Format]
Control = tuple[int | None, Policy, Policy]
"""`ctrl`, `when_clear` and `when_set` of a row."""

CTRL_FLOAT: Final = 48
"""CTRL bit: 1 keeps infinities and NaN in narrow float results, 0 saturates them."""
CTRL_NAN: Final = 50
"""CTRL bit: where CTRL_FLOAT saturates, 1 keeps NaN in FP8 results, 0 makes it 0."""
CTRL_INT: Final = 53
"""CTRL bit: integer arithmetic, no cast, keeps low bits at 0 and clamps at 1."""
CTRL_CAST: Final = 59
"""CTRL bit: 0 clamps integer results, 1 keeps their low bits."""
CTRL_GLOBAL: Final = 60
"""CTRL bit: 1 has CTRL_FLOAT and CTRL_CAST decide, 0 the SatMode of each instruction."""
CTRL_BITS: Final[Mapping[str, frozenset[int]]] = MappingProxyType(
    {
        A2_A3: frozenset({CTRL_FLOAT, CTRL_CAST}),
        ASCEND_950: frozenset({CTRL_FLOAT, CTRL_NAN, CTRL_INT, CTRL_CAST, CTRL_GLOBAL}),
    }
)
"""The control bits that are simulated of a family (CANN asc-devkit, SetCtrlSpr, tables 3 and 5)."""
CTRL_AT_START: Final = frozenset({CTRL_FLOAT, CTRL_GLOBAL})
"""Those that are 1 when a program starts: a choice for CTRL_FLOAT, else as table 3 has them."""


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
        keeps_nan: CTRL_NAN keeps NaN where the bit is 0.
        has_hybrid: it has CAST_HYBRID too.
        copies_exponent: the result is the power of two at or below the magnitude: nothing is
            rounded and the sign is not read. That is a choice: the page has no round mode, and
            takes numbers out of range by their magnitude.
    """

    src: Format
    dst: Format
    modes: tuple[RoundMode, ...]
    has_none: bool
    is_scaled: bool
    ctrl: int | None
    when_clear: Policy
    when_set: Policy
    keeps_nan: bool = False
    has_hybrid: bool = False
    copies_exponent: bool = False

    @property
    def all_modes(self) -> tuple[RoundMode | SourceRounding | None, ...]:
        """Its round modes; None is CAST_NONE."""
        none, hybrid = (None,) * self.has_none, (SourceRounding.HYBRID,) * self.has_hybrid
        return (*self.modes, *none, *hybrid)

    def policy(self, ctrl: frozenset[int], saturate: bool | None = None) -> Policy:
        """The rule of special values and overflow.

        Args:
            ctrl: the control bits that are 1.
            saturate: the SatMode of the instruction.
        """
        if self.ctrl is None:
            return self.when_clear
        if self.ctrl in ctrl if CTRL_GLOBAL in ctrl else not saturate:
            return self.when_set
        return SATURATE_KEEP_NAN if self.keeps_nan and CTRL_NAN in ctrl else self.when_clear


_M5: Final = (
    RoundMode.RINT,
    RoundMode.ROUND,
    RoundMode.FLOOR,
    RoundMode.CEIL,
    RoundMode.TRUNC,
)


def _control(src: Format, dst: Format) -> Control:
    """The bit of A2/A3, which goes by the destination (CANN asc-devkit, SetCtrlSpr)."""
    if isinstance(dst, IntFormat):
        return CTRL_CAST, SATURATE, WRAP
    if dst in (f.FP16, f.BF16):
        return CTRL_FLOAT, SATURATE, INF_NAN
    return None, INF_NAN, INF_NAN


_FP4: Final = (f.E2M1, f.E1M2)
_SATURATED_950: Final = (f.FP16, f.BF16, f.E5M2, f.E4M3FN, f.HF8)
"""The destinations that CTRL[48] saturates, from a float that may be out of their range."""
_KEEP_NAN: Final = (f.E5M2, f.E4M3FN, f.E8M0)
"""The destinations of which CTRL[50] keeps NaN (CANN asc-devkit, SetCtrlSpr, table 3)."""


def _control_950(src: Format, dst: Format) -> Control:
    """The bit of 950: integers to floats and to FP4 saturate under every control bit.

    E8M0 has its largest number for infinity always, and NaN but where CTRL_FLOAT saturates.
    """
    if dst is f.E8M0:
        return CTRL_FLOAT, SATURATE, SATURATE_KEEP_NAN
    if isinstance(dst, IntFormat):
        is_free = (src, dst) == (f.INT16, f.UINT32)
        return (None, SATURATE, SATURATE) if is_free else (CTRL_CAST, SATURATE, WRAP)
    if isinstance(src, IntFormat) or dst in _FP4:
        return None, SATURATE, SATURATE
    if dst in _SATURATED_950 and src not in _FP4:
        return CTRL_FLOAT, SATURATE, INF_NAN
    return None, INF_NAN, INF_NAN


def _row_of(
    control: Callable[[Format, Format], Control],
    src: Format,
    dst: Format,
    modes: tuple[RoundMode, ...],
    has_none: bool,
    *,
    is_scaled: bool = False,
) -> CastRow:
    ctrl, when_clear, when_set = control(src, dst)
    return CastRow(
        src=src,
        dst=dst,
        modes=modes,
        has_none=has_none,
        is_scaled=is_scaled,
        ctrl=ctrl,
        when_clear=when_clear,
        when_set=when_set,
        keeps_nan=ctrl == CTRL_FLOAT and dst in _KEEP_NAN,
        has_hybrid=dst is f.HF8,
        copies_exponent=dst is f.E8M0,
    )


_row = functools.partial(_row_of, _control)
_row_950 = functools.partial(_row_of, _control_950)


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
        ASCEND_950: _by_pair(
            _row_950(f.FP32, f.FP32, _M5, False),
            _row_950(f.FP32, f.FP16, (*_M5, RoundMode.ODD), True),
            _row_950(f.FP32, f.BF16, _M5, False),
            _row_950(f.FP32, f.INT64, _M5, False),
            _row_950(f.FP32, f.INT32, _M5, False),
            _row_950(f.FP32, f.INT16, _M5, False),
            _row_950(f.FP32, f.HF8, (RoundMode.ROUND,), False),
            _row_950(f.FP32, f.E4M3FN, _M5, False),
            _row_950(f.FP32, f.E5M2, _M5, False),
            _row_950(f.FP16, f.FP32, (), True),
            _row_950(f.FP16, f.BF16, _M5, False),
            _row_950(f.FP16, f.INT32, _M5, False),
            _row_950(f.FP16, f.INT16, _M5, False),
            _row_950(f.FP16, f.INT8, _M5, False),
            _row_950(f.FP16, f.INT4, _M5, False),
            _row_950(f.FP16, f.UINT8, _M5, False),
            _row_950(f.FP16, f.HF8, (RoundMode.ROUND,), False),
            _row_950(f.BF16, f.FP32, (), True),
            _row_950(f.BF16, f.FP16, _M5, False),
            _row_950(f.BF16, f.INT32, _M5, False),
            _row_950(f.BF16, f.E2M1, _M5, False),
            _row_950(f.BF16, f.E1M2, _M5, False),
            _row_950(f.INT64, f.FP32, _M5, False),
            _row_950(f.INT64, f.INT32, (), True),
            _row_950(f.INT32, f.FP32, _M5, False),
            _row_950(f.INT32, f.FP16, (), True, is_scaled=True),
            _row_950(f.INT32, f.INT64, (), True),
            _row_950(f.INT32, f.INT16, (), True),
            _row_950(f.INT32, f.UINT16, (), True),
            _row_950(f.INT32, f.UINT8, (), True),
            _row_950(f.INT16, f.FP32, (), True),
            _row_950(f.INT16, f.FP16, _M5, False),
            _row_950(f.INT16, f.INT32, (), True),
            _row_950(f.INT16, f.INT4, (), True),
            _row_950(f.INT16, f.UINT32, (), True),
            _row_950(f.INT16, f.UINT8, (), True),
            _row_950(f.INT8, f.FP16, (), True),
            _row_950(f.INT8, f.INT32, (), True),
            _row_950(f.INT8, f.INT16, (), True),
            _row_950(f.INT4, f.FP16, (), True),
            _row_950(f.INT4, f.BF16, (), True),
            _row_950(f.INT4, f.INT16, (), True),
            _row_950(f.UINT32, f.INT16, (), True),
            _row_950(f.UINT32, f.UINT16, (), True),
            _row_950(f.UINT32, f.UINT8, (), True),
            _row_950(f.UINT16, f.UINT32, (), True),
            _row_950(f.UINT16, f.UINT8, (), True),
            _row_950(f.UINT8, f.FP16, (), True),
            _row_950(f.UINT8, f.UINT32, (), True),
            _row_950(f.UINT8, f.UINT16, (), True),
            _row_950(f.HF8, f.FP32, (), True),
            _row_950(f.HF8, f.FP16, (), True),
            _row_950(f.E4M3FN, f.FP32, (), True),
            _row_950(f.E5M2, f.FP32, (), True),
            _row_950(f.E2M1, f.BF16, (), True),
            _row_950(f.E1M2, f.BF16, (), True),
            _row_950(f.BF16, f.E8M0, (), True),
            _row_950(f.E8M0, f.BF16, (), True),
        ),
    }
)
"""By the instructions of a chip (`Chip.isa`), then by source and destination."""
