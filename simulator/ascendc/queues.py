"""TPipe, TQue and TBuf: buffers of UB, and the flags by which queues hand them on.

enque sets a flag for the next pipe and deque waits for it; free_tensor sets one for the pipe
before, and the alloc_tensor that takes the buffer again waits for it. Each buffer has an event id
of its own, so no flag is set twice before it is waited for.

Source: CANN asc-devkit, guide to TPipe and TQue, and InitBuffer.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from simulator.ascendc.ascendc_types import DataType, Lease, LocalTensor, TPosition, check_data_type
from simulator.ascendc.recorder import (
    KernelError,
    Recorder,
    line_in_kernel,
    name_in_kernel,
    recorder,
)
from simulator.machine.isa import EVENT_IDS, HardEvent, SetFlag, WaitFlag
from simulator.machine.memory import UbRange

MAX_BUFFERS: Final = 64
"""Buffers of one TPipe (CANN asc-devkit, InitBuffer)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Events:
    """The flags of a queue: to the pipe that uses a buffer next, and back."""

    forth: HardEvent
    back: HardEvent


_EVENTS: Final = {
    TPosition.VECIN: _Events(forth=HardEvent.MTE2_V, back=HardEvent.V_MTE2),
    TPosition.VECOUT: _Events(forth=HardEvent.V_MTE3, back=HardEvent.MTE3_V),
}


class _Buffer:
    """One buffer of a queue, free unless a tensor of it is in use or queued."""

    __slots__ = ("event_id", "lease", "line", "range", "was_freed")

    def __init__(self, ub_range: UbRange, event_id: int) -> None:
        self.range = ub_range
        self.event_id = event_id
        self.lease: Lease | None = None
        self.line = ""
        self.was_freed = False

    def tensor(self, dtype: DataType, pos: TPosition) -> LocalTensor:
        """All of it, as a tensor with a lease of its own."""
        self.line = line_in_kernel()
        self.lease = Lease(self.range.name)
        size = self.range.size_bytes * 8 // dtype.bitwidth
        return LocalTensor(dtype, pos, self.range.offset_bytes, size, lease=self.lease)


class TQue:
    """A queue of buffers between two pipes: VECIN from MTE2 to V, VECOUT from V to MTE3.

    Args:
        pos: VECIN or VECOUT.
        depth: tensors that may be queued at once.

    Raises:
        KernelError: another position, or outside a kernel.
    """

    def __init__(self, pos: TPosition = TPosition.VECIN, depth: int = 1) -> None:
        recorder()
        if pos not in _EVENTS:
            raise KernelError(f"a TQue is at VECIN or VECOUT, not {pos}; scratch is a TBuf")
        if depth < 1:
            raise KernelError(f"the depth of a TQue is at least 1, not {depth}")
        self.pos = pos
        self.depth = depth
        self._name = f"a {pos.name} queue"
        self._buffers: list[_Buffer] = []
        self._next = 0
        self._queued: deque[tuple[_Buffer, DataType]] = deque()

    @property
    def is_initialised(self) -> bool:
        """True once a pipe gave it buffers."""
        return bool(self._buffers)

    def give(self, name: str, buffers: list[_Buffer]) -> None:
        """Take buffers; TPipe's part of init_buffer."""
        self._name = name
        self._buffers = buffers

    def alloc_tensor(self, dtype: DataType) -> LocalTensor:
        """Take a free buffer, which holds garbage, whatever it held.

        Waits for the flag of the free_tensor before, if there was one.

        Raises:
            KernelError: no buffer is free, no buffers yet, or unknown dtype.
        """
        check_data_type(dtype)
        self._check_initialised()
        count = len(self._buffers)
        order = [self._buffers[(self._next + i) % count] for i in range(count)]
        buffer = next((each for each in order if each.lease is None), None)
        if buffer is None:
            raise KernelError(
                f"{self._name} has no free buffer: all {count} are in use; free_tensor one first, "
                "or init_buffer with more"
            )
        self._next = (self._buffers.index(buffer) + 1) % count
        self._wait_for_free(buffer)
        recorder().allocate(buffer.range)
        return buffer.tensor(dtype, self.pos)

    def enque(self, tensor: LocalTensor) -> None:
        """Hand a tensor on: the flag for the next pipe is set; the tensor itself is void.

        Raises:
            KernelError: not a tensor of this queue, handed on already, or the queue is full.
        """
        buffer = self._own(tensor, "enque")
        if any(buffer is queued for queued, _ in self._queued):
            raise KernelError(f"{tensor} is in the queue already")
        if len(self._queued) == self.depth:
            raise KernelError(
                f"{self._name} is full: its depth is {self.depth}; deque a tensor first"
            )
        recorder().record(SetFlag(event=_EVENTS[self.pos].forth, event_id=buffer.event_id))
        self._queued.append((buffer, tensor.dtype))
        assert buffer.lease is not None
        buffer.lease.ended = f"enque; take the tensor that {self._name}.deque gives"

    def deque(self, dtype: DataType) -> LocalTensor:
        """Take the tensor that was queued first, with its content.

        Waits for the flag that enque set.

        Raises:
            KernelError: the queue is empty, or the tensor was queued with another dtype.
        """
        check_data_type(dtype)
        if not self._queued:
            raise KernelError(f"{self._name} is empty: enque a tensor before deque")
        buffer, queued_dtype = self._queued[0]
        if queued_dtype != dtype:
            raise KernelError(
                f"{self._name}: deque({dtype}) of a tensor that was queued as {queued_dtype}"
            )
        self._queued.popleft()
        recorder().record(WaitFlag(event=_EVENTS[self.pos].forth, event_id=buffer.event_id))
        return buffer.tensor(dtype, self.pos)

    def free_tensor(self, tensor: LocalTensor) -> None:
        """Give a buffer back: the flag for the pipe before is set.

        Raises:
            KernelError: not a tensor of this queue, or freed or handed on already.
        """
        buffer = self._own(tensor, "free_tensor")
        recorder().record(SetFlag(event=_EVENTS[self.pos].back, event_id=buffer.event_id))
        assert buffer.lease is not None
        buffer.lease.ended = "free_tensor"
        buffer.lease = None
        buffer.was_freed = True

    def finish(self) -> None:
        """Wait for the flags that are still set when the kernel ends.

        Raises:
            KernelError: a tensor was not taken out of the queue, or not freed.
        """
        if self._queued:
            line = self._queued[0][0].line
            raise KernelError(
                f"the kernel ends with a tensor in {self._name}, allocated in {line}: deque it"
            )
        for buffer in self._buffers:
            if buffer.lease is not None:
                raise KernelError(
                    f"the kernel ends before free_tensor of {buffer.range.name}, taken in "
                    f"{buffer.line}"
                )
            self._wait_for_free(buffer)

    def _wait_for_free(self, buffer: _Buffer) -> None:
        if buffer.was_freed:
            recorder().record(WaitFlag(event=_EVENTS[self.pos].back, event_id=buffer.event_id))
            buffer.was_freed = False

    def _own(self, tensor: LocalTensor, doing: str) -> _Buffer:
        if not isinstance(tensor, LocalTensor):
            raise KernelError(f"{doing} takes a LocalTensor, not {type(tensor).__name__}")
        tensor.ub_address()
        for buffer in self._buffers:
            if buffer.lease is tensor.lease:
                return buffer
        raise KernelError(f"{doing}: the {tensor} is none of {self._name}")

    def _check_initialised(self) -> None:
        if not self._buffers:
            raise KernelError(f"{self._name} has no buffers yet: TPipe.init_buffer first")


class TBuf:
    """A buffer without a queue, such as scratch of the vector pipe; nothing waits for it.

    Args:
        pos: what it is for.
    """

    def __init__(self, pos: TPosition = TPosition.VECCALC) -> None:
        recorder()
        self.pos = pos
        self._range: UbRange | None = None

    @property
    def is_initialised(self) -> bool:
        """True once a pipe gave it UB."""
        return self._range is not None

    def give(self, ub_range: UbRange) -> None:
        """Take a part of UB; TPipe's part of init_buffer."""
        self._range = ub_range

    def get(self, dtype: DataType, len: int | None = None) -> LocalTensor:
        """The buffer, or its first `len` elements, with its content.

        Raises:
            KernelError: no UB yet, unknown dtype, or more elements than fit.
        """
        check_data_type(dtype)
        if self._range is None:
            raise KernelError("the TBuf has no buffer yet: TPipe.init_buffer first")
        fit = self._range.size_bytes * 8 // dtype.bitwidth
        elems = fit if len is None else len
        if not 0 < elems <= fit:
            raise KernelError(f"{self._range.name} holds 1 to {fit} elements of {dtype}, not {len}")
        lease = Lease(self._range.name)
        return LocalTensor(dtype, self.pos, self._range.offset_bytes, elems, lease=lease)


class TPipe:
    """Gives UB to queues and buffers, one after the other, from address 0 on.

    Raises:
        KernelError: the kernel has a TPipe already, or outside a kernel.
    """

    def __init__(self) -> None:
        self._recorder: Recorder = recorder()
        if self._recorder.finish is not None:
            raise KernelError("a kernel has one TPipe")
        self._recorder.finish = self._finish
        self._used_bytes = 0
        self._count = 0
        self._queues: list[TQue] = []
        self._event_ids = dict.fromkeys(_EVENTS, 0)

    def init_buffer(self, que: TQue | TBuf, num: int = 0, len: int | None = None) -> None:
        """Give UB to a queue, as `init_buffer(que, num, len)`, or to a TBuf, as `(buf, len)`.

        Args:
            que: the queue or buffer.
            num: buffers of the queue; two for double buffering. Of a TBuf, its bytes.
            len: bytes of each buffer, rounded up to 32.

        Raises:
            KernelError: it has buffers already, UB is full, or more buffers than flags.
        """
        if not isinstance(que, (TQue, TBuf)):
            raise KernelError(f"init_buffer takes a TQue or a TBuf, not {type(que).__name__}")
        name = name_in_kernel(que) or f"{que.pos.name.lower()}{self._count}"
        if que.is_initialised:
            raise KernelError(f"{name} has its buffers already: init_buffer once")
        if isinstance(que, TBuf):
            if len is not None and num:
                raise KernelError("a TBuf is one buffer: init_buffer(buf, len)")
            que.give(self._take(name, num if len is None else len))
            return
        if num < 1 or len is None:
            raise KernelError(f"init_buffer({name}, num, len) takes at least one buffer")
        self._queues.append(que)
        que.give(name, [self._buffer(f"{name}{i}", len, que.pos) for i in range(num)])

    def _buffer(self, name: str, len: int, pos: TPosition) -> _Buffer:
        event_id = self._event_ids[pos]
        if event_id == EVENT_IDS:
            raise KernelError(
                f"{name} has no flag left: {_EVENTS[pos].back.name} has {EVENT_IDS}, one for each "
                f"buffer of the {pos.name} queues"
            )
        self._event_ids[pos] += 1
        return _Buffer(self._take(name, len), event_id)

    def _take(self, name: str, len: int) -> UbRange:
        chip = self._recorder.chip
        if len < 1:
            raise KernelError(f"{name} must have at least one byte, not {len}")
        size_bytes = -(-len // chip.block_bytes) * chip.block_bytes
        ub_range = UbRange(name=name, offset_bytes=self._used_bytes, size_bytes=size_bytes)
        if ub_range.stop > chip.ub_bytes:
            raise KernelError(
                f"{name} of {size_bytes} B does not fit UB: {self._used_bytes} of "
                f"{chip.ub_bytes} B are taken"
            )
        if self._count == MAX_BUFFERS:
            raise KernelError(f"a TPipe has at most {MAX_BUFFERS} buffers")
        self._recorder.claim_for_pipe(ub_range)
        self._used_bytes = ub_range.stop
        self._count = self._count + 1
        return ub_range

    def _finish(self) -> None:
        for que in self._queues:
            que.finish()
