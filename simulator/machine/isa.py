"""The instructions of a tile program, field for field as AscendC has them.

Sources: CANN asc-devkit, documents of DataCopy, DataCopyPad, Cast, Duplicate, And, Maxs, Mins,
Muls, ShiftLeft, ShiftRight, SetFlag, WaitFlag, PipeBarrier, SetDeqScale, SetSaturationFlag and
SetCtrlSpr for A2/A3.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar, Final

from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode

EVENT_IDS: Final = 8
"""Flags of one pair of pipes (CANN asc-devkit, QUE_MAX_EVENT)."""


class Pipe(enum.Enum):
    """The queues of a vector core that run side by side; S issues to the others."""

    S = "scalar"
    MTE2 = "GM to UB"
    V = "vector"
    MTE3 = "UB to GM"
    ALL = "every pipe"

    # Members are the same only if identical; enum's own hash is a Python call, met at every step.
    __hash__ = object.__hash__


class HardEvent(enum.Enum):
    """A pair of pipes: the first sets a flag when it gets there, the second waits for it."""

    MTE2_V = (Pipe.MTE2, Pipe.V)
    V_MTE2 = (Pipe.V, Pipe.MTE2)
    V_MTE3 = (Pipe.V, Pipe.MTE3)
    MTE3_V = (Pipe.MTE3, Pipe.V)
    MTE2_MTE3 = (Pipe.MTE2, Pipe.MTE3)
    MTE3_MTE2 = (Pipe.MTE3, Pipe.MTE2)
    V_S = (Pipe.V, Pipe.S)
    MTE2_S = (Pipe.MTE2, Pipe.S)
    MTE3_S = (Pipe.MTE3, Pipe.S)
    S_V = (Pipe.S, Pipe.V)
    S_MTE2 = (Pipe.S, Pipe.MTE2)
    S_MTE3 = (Pipe.S, Pipe.MTE3)

    __hash__ = object.__hash__

    def __init__(self, setter: Pipe, waiter: Pipe) -> None:
        self.setter = setter
        self.waiter = waiter


@dataclass(frozen=True, slots=True, kw_only=True)
class GmAddress:
    """A byte of a tensor in global memory."""

    tensor: str
    offset_bytes: int

    @property
    def space(self) -> str:
        return f"gm.{self.tensor}"

    def __str__(self) -> str:
        return f"gm.{self.tensor}+{self.offset_bytes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UbAddress:
    """A byte of a core's vector memory."""

    space: ClassVar[str] = "ub"
    offset_bytes: int

    def __str__(self) -> str:
        return f"ub+{self.offset_bytes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """Copies between GM and UB, on the pipe of their direction."""

    dst: GmAddress | UbAddress
    src: GmAddress | UbAddress

    @property
    def pipe(self) -> Pipe:
        return Pipe.MTE2 if isinstance(self.src, GmAddress) else Pipe.MTE3


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCopy(_Copy):
    """Copy contiguous bytes between GM and UB; the rest beyond whole 32 B lines is not copied.

    Attributes:
        dst: where to.
        src: where from; one of the two is in GM.
        size_bytes: bytes asked for; the hardware rounds them down to a multiple of 32.
        elem_bytes: bytes of an element, to which a GM address is aligned.
    """

    size_bytes: int
    elem_bytes: int

    def __str__(self) -> str:
        return f"DataCopy {self.dst} <- {self.src}  {self.size_bytes} B"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCopyPad(_Copy):
    """Copy equally spaced blocks of bytes between GM and UB; every block starts a 32 B line of UB.

    Attributes:
        dst: where to.
        src: where from; one of the two is in GM.
        block_count: blocks, 0 to 4095.
        block_len_bytes: bytes of one block, 0 to 2097151.
        src_stride: gap between the end of a block and the next: bytes in GM, 32 B lines in UB.
        dst_stride: likewise.
        elem_bytes: bytes of an element.
        is_pad: fill the padding of a copy to UB with `padding_value`.
        left_padding: elements before each block, at most 32 B of them.
        right_padding: elements after each block, at most 32 B of them.
        padding_value: code of one element.

    Without padding, the rest of the last line is filled with the block's first element. Padding
    without `is_pad` is whatever was there.
    """

    block_count: int
    block_len_bytes: int
    src_stride: int
    dst_stride: int
    elem_bytes: int
    is_pad: bool = False
    left_padding: int = 0
    right_padding: int = 0
    padding_value: int = 0

    def __str__(self) -> str:
        return (
            f"DataCopyPad {self.dst} <- {self.src}  blocks={self.block_count} x "
            f"{self.block_len_bytes} B, srcStride={self.src_stride}, dstStride={self.dst_stride}"
        )


class SourceRounding(enum.Enum):
    """Round modes in which the source's own last bits decide, beside those of the definition."""

    HYBRID = "CAST_HYBRID of 950, to HF8"


@dataclass(frozen=True, slots=True, kw_only=True)
class _CastForm:
    """The operands of both forms of Cast. Mode None is AscendC's CAST_NONE.

    `saturate` is its SatMode, which counts where CTRL[60] is 0 alone; None: none is given.
    """

    pipe: ClassVar[Pipe] = Pipe.V
    dst: UbAddress
    src: UbAddress
    dst_format: Format
    src_format: Format
    mode: RoundMode | SourceRounding | None
    saturate: bool | None = None

    def __str__(self) -> str:
        mode = "NONE" if self.mode is None else self.mode.name
        if self.saturate is not None:
            mode += ", SAT" if self.saturate else ", NO_SAT"
        operands = f"{self.dst}:{self.dst_format} <- {self.src}:{self.src_format}"
        return f"Cast {operands}  CAST_{mode}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast(_CastForm):
    """Convert `count` elements that lie in UB. Mode None is AscendC's CAST_NONE."""

    count: int

    def __str__(self) -> str:
        return f"{_CastForm.__str__(self)}, count={self.count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRepeat(_CastForm):
    """Convert by repeats of 256 B of the wider type, lanes chosen by a mask.

    Attributes:
        dst: destination of the first repeat.
        src: source of the first repeat.
        dst_format: destination format.
        src_format: source format.
        mode: round mode; None is AscendC's CAST_NONE.
        saturate: SatMode.
        mask: lanes of every repeat: how many from the first on, or two words of 64 bits, the first
            lane in the lowest bit of the first word.
        repeat_times: repeats, 0 to 255.
        dst_blk_stride: blocks from one block of a repeat to the next; not 0.
        src_blk_stride: likewise; 0 reads the first block again.
        dst_rep_stride: blocks from one repeat to the next, 0 to 255.
        src_rep_stride: likewise.
    """

    mask: int | tuple[int, int]
    repeat_times: int
    dst_blk_stride: int = 1
    src_blk_stride: int = 1
    dst_rep_stride: int = 8
    src_rep_stride: int = 8

    def __str__(self) -> str:
        return (
            f"{_CastForm.__str__(self)}, mask={self.mask}, repeat={self.repeat_times}, blkStride="
            f"{self.dst_blk_stride},{self.src_blk_stride}, repStride="
            f"{self.dst_rep_stride},{self.src_rep_stride}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """Fill `count` INT16 elements of UB with one value."""

    pipe: ClassVar[Pipe] = Pipe.V
    dst: UbAddress
    value: int
    count: int

    def __str__(self) -> str:
        return f"Duplicate {self.dst}:INT16 <- {self.value:#x}  count={self.count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class And:
    """Bitwise and of `count` INT16 elements of UB."""

    pipe: ClassVar[Pipe] = Pipe.V
    dst: UbAddress
    src0: UbAddress
    src1: UbAddress
    count: int

    def __str__(self) -> str:
        return f"And {self.dst}:INT16 <- {self.src0}, {self.src1}  count={self.count}"


class ScalarOp(enum.Enum):
    """The instructions that take one number beside a tensor, by their names in AscendC."""

    MAXS = "Maxs"
    MINS = "Mins"
    MULS = "Muls"
    SHIFT_LEFT = "ShiftLeft"
    SHIFT_RIGHT = "ShiftRight"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorScalar:
    """Combine each of `count` elements of UB with one number, such as by Maxs."""

    pipe: ClassVar[Pipe] = Pipe.V
    op: ScalarOp
    dst: UbAddress
    src: UbAddress
    format: Format
    scalar: float
    count: int

    def __str__(self) -> str:
        return (
            f"{self.op.value} {self.dst}:{self.format} <- {self.src}, {self.scalar}  "
            f"count={self.count}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AndRepeat:
    """Bitwise and of INT16 elements by repeats of 256 B, lanes chosen by a mask.

    Attributes:
        dst: destination of the first repeat.
        src0: first source of the first repeat.
        src1: second source, likewise.
        mask: as for `CastRepeat`, of 128 lanes.
        repeat_times: repeats, 0 to 255.
        dst_blk_stride: blocks from one block of a repeat to the next; not 0.
        src0_blk_stride: likewise; 0 reads the first block again.
        src1_blk_stride: likewise.
        dst_rep_stride: blocks from one repeat to the next, 0 to 255.
        src0_rep_stride: likewise.
        src1_rep_stride: likewise.
    """

    pipe: ClassVar[Pipe] = Pipe.V
    dst: UbAddress
    src0: UbAddress
    src1: UbAddress
    mask: int | tuple[int, int]
    repeat_times: int
    dst_blk_stride: int = 1
    src0_blk_stride: int = 1
    src1_blk_stride: int = 1
    dst_rep_stride: int = 8
    src0_rep_stride: int = 8
    src1_rep_stride: int = 8

    def __str__(self) -> str:
        return (
            f"And {self.dst}:INT16 <- {self.src0}, {self.src1}  mask={self.mask}, "
            f"repeat={self.repeat_times}, blkStride={self.dst_blk_stride},{self.src0_blk_stride},"
            f"{self.src1_blk_stride}, repStride={self.dst_rep_stride},{self.src0_rep_stride},"
            f"{self.src1_rep_stride}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCtrl:
    """Set a bit of the control register, one of `CTRL_BITS`."""

    pipe: ClassVar[Pipe] = Pipe.S
    bit: int
    value: bool

    def __str__(self) -> str:
        return f"SetCtrl [{self.bit}] <- {int(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreCtrl:
    """Restore the values that the control bits had when the program started."""

    pipe: ClassVar[Pipe] = Pipe.S

    def __str__(self) -> str:
        return "RestoreCtrl"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDeqScale:
    """Set the FP16 scale by which Cast multiplies when it converts INT32 to FP16."""

    pipe: ClassVar[Pipe] = Pipe.S
    scale: float

    def __str__(self) -> str:
        return f"SetDeqScale {self.scale:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _FlagForm:
    event: HardEvent
    event_id: int

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.event.name} {self.event_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFlag(_FlagForm):
    """Raise a flag once everything before it on the event's first pipe is done."""

    @property
    def pipe(self) -> Pipe:
        return self.event.setter


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFlag(_FlagForm):
    """Hold the event's second pipe until the flag is raised, and lower it."""

    @property
    def pipe(self) -> Pipe:
        return self.event.waiter


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeBarrier:
    """Hold a pipe until everything before it on that pipe is done."""

    of: Pipe

    @property
    def pipe(self) -> Pipe:
        return self.of

    def __str__(self) -> str:
        return f"PipeBarrier {self.of.name}"


Instruction = (
    DataCopy
    | DataCopyPad
    | Cast
    | CastRepeat
    | Duplicate
    | And
    | AndRepeat
    | VectorScalar
    | SetCtrl
    | RestoreCtrl
    | SetDeqScale
    | SetFlag
    | WaitFlag
    | PipeBarrier
)
