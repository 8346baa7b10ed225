"""The instructions of a tile program, and the one table of pairs and modes that Cast has on A2/A3.

Field names, units and limits are AscendC's. Source of the table: CANN asc-devkit, Cast
(documents for A2/A3) and its c220 implementation; of the copies: DataCopyPad for GM and UB.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from simulator import formats as f
from simulator.convert import INF_NAN, SATURATE, WRAP, Policy
from simulator.formats import BF16, FP16, Format, IntFormat
from simulator.rounding import RoundMode

CTRL_FLOAT: Final = 48
"""CTRL bit: 1 keeps infinities and NaN in FP16 and BF16 results, 0 saturates them."""
CTRL_CAST: Final = 59
"""CTRL bit: 0 clamps integer results, 1 keeps their low bits."""


class Pipe(enum.Enum):
    """The queues of a vector core that run side by side."""

    S = "scalar"
    MTE2 = "GM to UB"
    V = "vector"
    MTE3 = "UB to GM"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GmAddress:
    """A byte of a tensor in global memory."""

    tensor: str
    offset_bytes: int

    def __str__(self) -> str:
        return f"gm.{self.tensor}+{self.offset_bytes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UbAddress:
    """A byte of a core's vector memory."""

    offset_bytes: int

    def __str__(self) -> str:
        return f"ub+{self.offset_bytes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCopyPad:
    """Copy equally spaced blocks of bytes between GM and UB; every block starts a 32 B line of UB.

    Attributes:
        dst: where to.
        src: where from; one of the two is in GM.
        block_count: blocks, 0 to 4095.
        block_len_bytes: bytes of one block, 0 to 2097151.
        src_stride: gap between the end of a block and the next: bytes in GM, 32 B lines in UB.
        dst_stride: likewise.
        elem_bytes: bytes of an element; UB lines are filled up with the block's first element.
    """

    dst: GmAddress | UbAddress
    src: GmAddress | UbAddress
    block_count: int
    block_len_bytes: int
    src_stride: int
    dst_stride: int
    elem_bytes: int

    @property
    def pipe(self) -> Pipe:
        return Pipe.MTE2 if isinstance(self.src, GmAddress) else Pipe.MTE3

    def __str__(self) -> str:
        return (
            f"DataCopyPad {self.dst} <- {self.src}  blocks={self.block_count} x "
            f"{self.block_len_bytes} B, srcStride={self.src_stride}, dstStride={self.dst_stride}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Convert `count` elements that lie in UB. Mode None is AscendC's CAST_NONE."""

    dst: UbAddress
    src: UbAddress
    dst_format: Format
    src_format: Format
    mode: RoundMode | None
    count: int

    @property
    def pipe(self) -> Pipe:
        return Pipe.V

    def __str__(self) -> str:
        mode = "NONE" if self.mode is None else self.mode.name
        return (
            f"Cast {self.dst}:{self.dst_format} <- {self.src}:{self.src_format}  "
            f"CAST_{mode}, count={self.count}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """Fill `count` INT16 elements of UB with one value."""

    dst: UbAddress
    value: int
    count: int

    @property
    def pipe(self) -> Pipe:
        return Pipe.V

    def __str__(self) -> str:
        return f"Duplicate {self.dst}:INT16 <- {self.value:#x}  count={self.count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class And:
    """Bitwise and of `count` INT16 elements of UB."""

    dst: UbAddress
    src0: UbAddress
    src1: UbAddress
    count: int

    @property
    def pipe(self) -> Pipe:
        return Pipe.V

    def __str__(self) -> str:
        return f"And {self.dst}:INT16 <- {self.src0}, {self.src1}  count={self.count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCtrl:
    """Set a bit of the control register: CTRL_FLOAT or CTRL_CAST."""

    bit: int
    value: bool

    @property
    def pipe(self) -> Pipe:
        return Pipe.S

    def __str__(self) -> str:
        return f"SetCtrl [{self.bit}] <- {int(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDeqScale:
    """Set the FP16 scale by which Cast multiplies when it converts INT32 to FP16."""

    scale: float

    @property
    def pipe(self) -> Pipe:
        return Pipe.S

    def __str__(self) -> str:
        return f"SetDeqScale {self.scale:g}"


Instruction = DataCopyPad | Cast | Duplicate | And | SetCtrl | SetDeqScale
