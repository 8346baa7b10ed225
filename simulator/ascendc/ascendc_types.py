"""The types of a kernel: data types, round modes, positions and parameter structs."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from simulator.ascendc.recorder import KernelError
from simulator.machine.cast_table import CTRL_CAST, CTRL_FLOAT
from simulator.machine.isa import HardEvent, Pipe
from simulator.machine.vector_types import VECTOR_TYPES
from simulator.numbers import rounding
from simulator.numbers.formats import Format

__all__ = ["HardEvent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataType:
    """The type of the elements of a tensor.

    Attributes:
        name: pyasc's name; AscendC's where pyasc has none.
        format: the number format.
    """

    name: str
    format: Format

    @property
    def bitwidth(self) -> int:
        """Bits of an element."""
        return self.format.bits

    def sizeof(self) -> int:
        """Bytes of an element.

        Raises:
            ValueError: two elements share a byte.
        """
        if self.bitwidth % 8:
            raise ValueError(f"two elements of {self} share a byte; count bytes as elements // 2")
        return self.bitwidth // 8

    def __str__(self) -> str:
        return self.name


DATA_TYPES: Final = tuple(
    DataType(name=row.pyasc, format=row.format)
    for row in VECTOR_TYPES.values()
    if row.pyasc is not None
)
float32, float16, bfloat16, int4b_t, int8, uint8, int16, int32, int64 = DATA_TYPES
half: Final = float16


def check_data_type(dtype: object) -> DataType:
    """A data type, once it is one.

    Raises:
        KernelError: it is something else.
    """
    if isinstance(dtype, DataType):
        return dtype
    raise KernelError(f"unknown dtype {dtype!r}; asc has {', '.join(map(str, DATA_TYPES))}")


def data_type_of(dtype: np.dtype[Any]) -> DataType:
    """The data type of a numpy array in GM.

    Raises:
        KernelError: Cast knows no such type.
    """
    for each in DATA_TYPES:
        if each.format.dtype.newbyteorder("<") == dtype:
            return each
    known = ", ".join(str(each.format.dtype) for each in DATA_TYPES)
    raise KernelError(f"unknown dtype {dtype} (byte order {dtype.byteorder!r}); arrays are {known}")


class TPosition(enum.Enum):
    """The purpose of a buffer in UB."""

    VECIN = "copied in"
    VECOUT = "copied out"
    VECCALC = "scratch of the vector pipe"


class PipeID(enum.Enum):
    """The pipes of a vector core."""

    PIPE_S = Pipe.S
    PIPE_V = Pipe.V
    PIPE_MTE2 = Pipe.MTE2
    PIPE_MTE3 = Pipe.MTE3
    PIPE_ALL = Pipe.ALL


class RoundMode(enum.Enum):
    """The round modes of Cast; CAST_NONE rounds to nearest even where bits are lost."""

    CAST_NONE = None
    CAST_RINT = rounding.RoundMode.RINT
    CAST_FLOOR = rounding.RoundMode.FLOOR
    CAST_CEIL = rounding.RoundMode.CEIL
    CAST_ROUND = rounding.RoundMode.ROUND
    CAST_TRUNC = rounding.RoundMode.TRUNC
    CAST_ODD = rounding.RoundMode.ODD


class SaturationMode(enum.Enum):
    """The results that `set_saturation_flag` governs; the value is the number of the control bit.

    FLOAT: at 0, FP16 and BF16 results become the largest number instead of infinity, 0 for NaN.
    CAST: at 0, integer results are clamped instead of keeping their low bits.
    """

    FLOAT = CTRL_FLOAT
    CAST = CTRL_CAST


@dataclass(frozen=True, slots=True)
class UnaryRepeatParams:
    """Strides of an instruction with one source, in blocks of 32 B.

    Attributes:
        dst_blk_stride: from one block of a repeat to the next; not 0.
        src_blk_stride: likewise; 0 reads the first block again.
        dst_rep_stride: from one repeat to the next, 0 to 255.
        src_rep_stride: likewise.
    """

    dst_blk_stride: int = 1
    src_blk_stride: int = 1
    dst_rep_stride: int = 8
    src_rep_stride: int = 8


@dataclass(frozen=True, slots=True)
class DataCopyExtParams:
    """The blocks of a `data_copy_pad`.

    Attributes:
        block_count: blocks, 0 to 4095.
        block_len: bytes of a block, 0 to 2097151.
        src_stride: gap between two blocks: bytes in GM, blocks of 32 B in UB.
        dst_stride: likewise.
        rsv: reserved, 0.
    """

    block_count: int = 1
    block_len: int = 0
    src_stride: int = 0
    dst_stride: int = 0
    rsv: int = 0


@dataclass(frozen=True, slots=True)
class DataCopyPadExtParams:
    """The padding that a `data_copy_pad` puts around each block in UB.

    Attributes:
        dtype: type of the elements.
        is_pad: fill with `padding_value`; otherwise padding is the block's first element, or
            whatever was there if any padding is asked for.
        left_padding: elements before each block, at most 32 B of them.
        right_padding: elements after each block, at most 32 B of them.
        padding_value: one element.
    """

    dtype: DataType
    is_pad: bool = False
    left_padding: int = 0
    right_padding: int = 0
    padding_value: float = 0
