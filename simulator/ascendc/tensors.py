"""Tensors in GM and in UB, as a kernel holds them."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import SupportsIndex

from simulator.ascendc.ascendc_types import DataType, TPosition, check_data_type
from simulator.ascendc.recorder import KernelError, recorder
from simulator.machine.isa import GmAddress, UbAddress
from simulator.machine.memory import UbRange


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
