"""The types of a kernel: data types, modes, parameter structs, and tensors in GM and in UB."""

from __future__ import annotations

import enum
import operator
from dataclasses import dataclass, field, replace
from typing import Any, Final, SupportsIndex

import numpy as np

from simulator.ascendc.recorder import KernelError, recorder
from simulator.machine.cast_table import CTRL_CAST, CTRL_FLOAT
from simulator.machine.isa import GmAddress, HardEvent, Pipe, UbAddress
from simulator.machine.memory import UbRange
from simulator.machine.vector_types import VECTOR_TYPES
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
    DataType(name=row.pyasc, format=row.format) for row in VECTOR_TYPES.values()
)
float32, float16, bfloat16, int4b_t, int8, uint8, int16, int32, int64, *_of_950 = DATA_TYPES
uint16, uint32, hifloat8_t, fp8_e4m3fn_t, fp8_e5m2_t, fp8_e8m0_t, fp4x2_e2m1_t, fp4x2_e1m2_t = (
    _of_950
)
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
    raise KernelError(
        f"unknown dtype {dtype} (byte order {dtype.byteorder!r}); arrays are {known}. DOUBLE and "
        "complex numbers, which Cast of the 950 has too, are not simulated"
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalAddress:
    """An element of an array in GM; a kernel's parameter is the array's first.

    Attributes:
        tensor: the parameter's name.
        dtype: type of the elements.
        offset: elements before this one; may lie outside the array, an access may not.
        size: elements of the whole array.
    """

    tensor: str
    dtype: DataType
    offset: int = 0
    size: int

    def __add__(self, elems: SupportsIndex) -> GlobalAddress:
        return replace(self, offset=self.offset + operator.index(elems))


class GlobalTensor:
    """A stretch of GM; `tensor[i:]` is the rest of it from element i on."""

    __slots__ = ("_address", "_size")

    def __init__(self) -> None:
        self._address: GlobalAddress | None = None
        self._size = 0

    def set_global_buffer(
        self, buffer: GlobalAddress, buffer_size: SupportsIndex | None = None
    ) -> None:
        """Say where the tensor is.

        Args:
            buffer: its first element.
            buffer_size: its elements; to the end of the array if not given. As on the device, it
                may exceed the array, but an access may not.

        Raises:
            KernelError: not an address, or outside a kernel.
        """
        recorder()
        if not isinstance(buffer, GlobalAddress):
            raise KernelError(
                f"set_global_buffer takes a GlobalAddress, a kernel's array parameter, not "
                f"{type(buffer).__name__}"
            )
        rest = max(buffer.size - buffer.offset, 0)
        self._address = buffer
        self._size = rest if buffer_size is None else _index(buffer_size, "buffer_size")

    @property
    def address(self) -> GlobalAddress:
        """The first element.

        Raises:
            KernelError: the tensor was not set.
        """
        if self._address is None:
            raise KernelError("the GlobalTensor is nowhere yet: set_global_buffer first")
        return self._address

    @property
    def dtype(self) -> DataType:
        """Type of the elements."""
        return self.address.dtype

    def get_size(self) -> int:
        """Elements."""
        return self._size

    def __getitem__(self, start: slice | SupportsIndex) -> GlobalTensor:
        offset = _start(start, self.get_size(), str(self))
        rest = GlobalTensor()
        rest._address = self.address + offset
        rest._size = self._size - offset
        return rest

    def gm_address(self) -> GmAddress:
        """The first byte.

        Raises:
            KernelError: the first element shares its byte with the one before.
        """
        bits = self.address.offset * self.dtype.bitwidth
        if bits % 8:
            raise KernelError(f"{self} starts in the middle of a byte; use even indices")
        return GmAddress(tensor=self.address.tensor, offset_bytes=bits // 8)

    def __str__(self) -> str:
        return f"gm.{self.address.tensor}[{self.address.offset}:]"


class Lease:
    """The right to use a buffer of UB, which ends when the buffer is handed on or freed."""

    __slots__ = ("ended", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.ended: str | None = None


@dataclass(frozen=True, slots=True)
class LocalTensor:
    """A stretch of UB; `tensor[i:]` is the rest of it from element i on.

    Attributes:
        dtype: type of the elements.
        pos: what it is for.
        addr: first byte in UB, a multiple of 32 where an instruction starts.
        tile_size: elements.
        lease: set by queues, pipes and slices; a tensor made by hand claims its part of UB.

    Raises:
        KernelError: unknown dtype, outside a kernel, not within UB, or in a buffer of TPipe.
    """

    dtype: DataType
    pos: TPosition = TPosition.VECIN
    addr: int = 0
    tile_size: int = 0
    lease: Lease | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        check_data_type(self.dtype)
        if self.lease is not None:
            return
        if self.tile_size <= 0:
            raise KernelError(f"a LocalTensor has at least one element, not {self.tile_size}")
        name = f"{self.pos.name}@{self.addr}"
        size_bytes = -(-self.tile_size * self.dtype.bitwidth // 8)
        line = recorder().chip.block_bytes
        whole = -(-size_bytes // line) * line
        claimed = UbRange(name=name, offset_bytes=self.addr, size_bytes=whole, may_overlap=True)
        recorder().claim_for_tensor(claimed)
        object.__setattr__(self, "lease", Lease(name))

    def get_size(self) -> int:
        """Elements."""
        return self.tile_size

    def __getitem__(self, start: slice | SupportsIndex) -> LocalTensor:
        offset = _start(start, self.get_size(), str(self))
        bits = offset * self.dtype.bitwidth
        if bits % 8:
            raise KernelError(f"element {offset} of {self} is in the middle of a byte")
        return replace(self, addr=self.addr + bits // 8, tile_size=self.tile_size - offset)

    def reinterpret_cast(self, dtype: DataType) -> LocalTensor:
        """The same bytes as elements of another dtype.

        Raises:
            KernelError: unknown dtype.
        """
        size = self.tile_size * self.dtype.bitwidth // check_data_type(dtype).bitwidth
        return replace(self, dtype=dtype, tile_size=size)

    def ub_address(self) -> UbAddress:
        """The first byte.

        Raises:
            KernelError: the tensor's buffer was handed on or freed.
        """
        if self.lease is not None and self.lease.ended is not None:
            raise KernelError(f"{self} is used after {self.lease.ended}")
        return UbAddress(offset_bytes=self.addr)

    def __str__(self) -> str:
        return f"tensor of {self.lease.name if self.lease else 'UB'}"


def check_count(count: SupportsIndex, *tensors: GlobalTensor | LocalTensor) -> int:
    """A count of elements, once every tensor has as many.

    Raises:
        KernelError: it is negative, no integer, or beyond a tensor.
    """
    elems = _index(count, "count")
    for tensor in tensors:
        if elems > tensor.get_size():
            raise KernelError(
                f"count {elems} is beyond the {tensor.get_size()} elements of {tensor}"
            )
    return elems


def _start(start: slice | SupportsIndex, size: int, name: str) -> int:
    if isinstance(start, slice):
        if start.stop is not None or start.step is not None:
            raise KernelError("a tensor is sliced as [i:], without stop and step")
        start = 0 if start.start is None else start.start
    offset = _index(start, "index")
    if offset > size:
        raise KernelError(f"index {offset} is beyond the {size} elements of {name}")
    return offset


def _index(value: SupportsIndex, what: str) -> int:
    try:
        found = operator.index(value)
    except TypeError:
        raise KernelError(f"{what} must be an integer, not {value!r}") from None
    if found < 0:
        raise KernelError(f"{what} must not be negative, is {found}")
    return found
