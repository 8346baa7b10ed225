"""The calls of a kernel: each checks its types as AscendC does, and records one instruction."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex, overload

import numpy as np

from simulator.ascendc.ascendc_types import (
    DataCopyExtParams,
    DataCopyPadExtParams,
    DataType,
    GlobalTensor,
    LocalTensor,
    PipeID,
    SaturationMode,
    UnaryRepeatParams,
    check_count,
    int16,
)
from simulator.ascendc.recorder import KernelError, recorder
from simulator.ascendc.round_modes import RoundMode
from simulator.machine.isa import (
    And,
    Cast,
    CastRepeat,
    DataCopy,
    DataCopyPad,
    Duplicate,
    GmAddress,
    HardEvent,
    PipeBarrier,
    SetCtrl,
    SetDeqScale,
    SetFlag,
    UbAddress,
    WaitFlag,
)
from simulator.numbers.formats import IntFormat

Tensor = GlobalTensor | LocalTensor


def get_block_idx() -> int:
    """Returns the number of the core that runs, from 0 on."""
    return recorder().core


def get_block_num() -> int:
    """Cores of the launch."""
    return recorder().core_num


def data_copy(dst: Tensor, src: Tensor, count: int) -> None:
    """Copy `count` contiguous elements between GM and UB.

    As on the device, what goes beyond whole blocks of 32 B is not copied: `data_copy_pad` copies
    tails.

    Raises:
        KernelError: not GM and UB, different dtypes, or `count` beyond a tensor.
    """
    dtype = _copied_dtype(dst, src, "data_copy")
    elems = check_count(count, dst, src)
    if elems * dtype.bitwidth % 8:
        raise KernelError(f"count {elems} of {dtype} is no whole number of bytes")
    recorder().record(
        DataCopy(
            dst=_address(dst),
            src=_address(src),
            size_bytes=elems * dtype.bitwidth // 8,
            elem_bytes=_elem_bytes(dtype),
        )
    )


@overload
def data_copy_pad(
    dst: LocalTensor,
    src: GlobalTensor,
    data_copy_params: DataCopyExtParams,
    pad_params: DataCopyPadExtParams,
) -> None: ...


@overload
def data_copy_pad(
    dst: GlobalTensor, src: LocalTensor, data_copy_params: DataCopyExtParams
) -> None: ...


def data_copy_pad(
    dst: Tensor,
    src: Tensor,
    data_copy_params: DataCopyExtParams,
    pad_params: DataCopyPadExtParams | None = None,
) -> None:
    """Copy blocks of any number of bytes between GM and UB; in UB each starts a line of 32 B.

    Raises:
        KernelError: not GM and UB, different dtypes, `pad_params` missing to UB or given to GM, or
            a padding value that is no number of the dtype.
    """
    dtype = _copied_dtype(dst, src, "data_copy_pad")
    to_ub = isinstance(dst, LocalTensor)
    if to_ub != isinstance(pad_params, DataCopyPadExtParams):
        raise KernelError(
            "data_copy_pad to UB takes a DataCopyPadExtParams"
            if to_ub
            else "data_copy_pad to GM takes no padding"
        )
    if data_copy_params.rsv:
        raise KernelError(f"rsv is reserved and must be 0, is {data_copy_params.rsv}")
    pad = pad_params or DataCopyPadExtParams(dtype)
    if pad.dtype != dtype:
        raise KernelError(f"padding of {pad.dtype} for a copy of {dtype}")
    if dtype.bitwidth < 8 and (pad.is_pad or pad.left_padding or pad.right_padding):
        raise KernelError(f"{dtype} takes no padding: two elements share a byte")
    recorder().record(
        DataCopyPad(
            dst=_address(dst),
            src=_address(src),
            block_count=data_copy_params.block_count,
            block_len_bytes=data_copy_params.block_len,
            src_stride=data_copy_params.src_stride,
            dst_stride=data_copy_params.dst_stride,
            elem_bytes=_elem_bytes(dtype),
            is_pad=pad.is_pad,
            left_padding=pad.left_padding,
            right_padding=pad.right_padding,
            padding_value=_code(pad.padding_value, dtype) if pad.is_pad else 0,
        )
    )


@overload
def cast(dst: LocalTensor, src: LocalTensor, round_mode: RoundMode, count: int) -> None: ...


@overload
def cast(
    dst: LocalTensor,
    src: LocalTensor,
    round_mode: RoundMode,
    mask: int | Sequence[int],
    repeat_times: int,
    repeat_params: UnaryRepeatParams,
    is_set_mask: bool = True,
) -> None: ...


def cast(
    dst: LocalTensor, src: LocalTensor, round_mode: RoundMode, *args: Any, **kwargs: Any
) -> None:
    """Convert elements of `src` to the format of `dst`: `count` of them, or by masked repeats.

    The formats are those of the tensors. NaN and overflow follow the two saturation flags, int32 to
    half the deq scale; lanes that the mask leaves out keep their bytes. `dst` and `src` may be the
    same bytes; by `count`, a narrower `dst` may start where `src` does.

    Args:
        dst: where to.
        src: where from.
        round_mode: one that Cast has for this pair.
        args: `count` elements; or `mask`, `repeat_times` (0 to 255), `repeat_params`, where the
            mask is a number of lanes or two words of 64 bits, for each repeat of 256 B of the wider
            type. `is_set_mask=False`, a mask set before, is not simulated.
        kwargs: the same, by name.

    Raises:
        KernelError: not tensors of UB, not a RoundMode, or `count` beyond a tensor.
        TypeError: arguments of neither form.
    """
    _check_local("cast", dst, src)
    if not isinstance(round_mode, RoundMode):
        raise KernelError(f"cast takes a RoundMode, not {round_mode!r}")
    by_count = len(args) + len(kwargs) < 2 and "mask" not in kwargs
    form = _cast_count if by_count else _cast_repeat
    form(dst, src, round_mode, *args, **kwargs)


def _cast_count(dst: LocalTensor, src: LocalTensor, round_mode: RoundMode, count: int) -> None:
    recorder().record(
        Cast(
            dst=dst.ub_address(),
            src=src.ub_address(),
            dst_format=dst.dtype.format,
            src_format=src.dtype.format,
            mode=round_mode.value,
            count=check_count(count, dst, src),
        )
    )


def _cast_repeat(
    dst: LocalTensor,
    src: LocalTensor,
    round_mode: RoundMode,
    mask: int | Sequence[int],
    repeat_times: int,
    repeat_params: UnaryRepeatParams,
    is_set_mask: bool = True,
) -> None:
    if not is_set_mask:
        raise KernelError("is_set_mask=False: the mask register is not simulated")
    if isinstance(mask, Sequence) and len(mask) != 2:
        raise KernelError(f"a mask is a number of lanes or two words of 64 bits, not {mask!r}")
    recorder().record(
        CastRepeat(
            dst=dst.ub_address(),
            src=src.ub_address(),
            dst_format=dst.dtype.format,
            src_format=src.dtype.format,
            mode=round_mode.value,
            mask=(mask[0], mask[1]) if isinstance(mask, Sequence) else mask,
            repeat_times=repeat_times,
            **dataclasses.asdict(repeat_params),
        )
    )


def duplicate(dst: LocalTensor, scalar: int, count: int) -> None:
    """Fill `count` elements with one value; int16 only here.

    Raises:
        KernelError: not an int16 tensor of UB, `count` beyond it, or a scalar that is no integer.
    """
    _check_int16("duplicate", dst)
    elems = check_count(count, dst)
    if not isinstance(scalar, SupportsIndex):
        raise KernelError(f"duplicate fills int16 with an integer, not {scalar!r}")
    value = operator.index(scalar)
    recorder().record(Duplicate(dst=dst.ub_address(), value=value, count=elems))


def bitwise_and(dst: LocalTensor, src0: LocalTensor, src1: LocalTensor, count: int) -> None:
    """Bitwise and of `count` elements; int16 only here.

    Raises:
        KernelError: not int16 tensors of UB, or `count` beyond one.
    """
    _check_int16("bitwise_and", dst, src0, src1)
    recorder().record(
        And(
            dst=dst.ub_address(),
            src0=src0.ub_address(),
            src1=src1.ub_address(),
            count=check_count(count, dst, src0, src1),
        )
    )


def set_flag(event: HardEvent, event_id: int) -> None:
    """Raise a flag once everything before it on the event's first pipe is done."""
    recorder().record(SetFlag(event=_event(event), event_id=event_id))


def wait_flag(event: HardEvent, event_id: int) -> None:
    """Hold the event's second pipe until the flag is raised, and lower it."""
    recorder().record(WaitFlag(event=_event(event), event_id=event_id))


def pipe_barrier(pipe: PipeID) -> None:
    """Hold a pipe until everything before it on that pipe is done."""
    if not isinstance(pipe, PipeID):
        raise KernelError(f"pipe_barrier takes a PipeID, not {pipe!r}")
    recorder().record(PipeBarrier(of=pipe.value))


def set_deq_scale(scale: float) -> None:
    """Set the FP16 scale of int32 -> half, which that cast needs; only 1 is simulated."""
    recorder().record(SetDeqScale(scale=scale))


def set_saturation_flag(mode: SaturationMode, is_saturated: bool) -> None:
    """Switch saturation of results on or off, until the next call (AscendC SetSaturationFlag).

    Args:
        mode: FLOAT, off unless set: FP16 and BF16 results, infinity and NaN against the largest
            number and 0. CAST, on unless set: integers, clamped against low bits kept.
        is_saturated: True sets the control bit to 0.
    """
    if not isinstance(mode, SaturationMode):
        raise KernelError(f"set_saturation_flag takes a SaturationMode, not {mode!r}")
    recorder().record(SetCtrl(bit=mode.value, value=not is_saturated))


def _event(event: HardEvent) -> HardEvent:
    if not isinstance(event, HardEvent):
        raise KernelError(f"a flag takes a HardEvent, not {event!r}")
    return event


def _copied_dtype(dst: Tensor, src: Tensor, name: str) -> DataType:
    pair = {type(dst), type(src)}
    if pair != {GlobalTensor, LocalTensor}:
        raise KernelError(
            f"{name} copies between a GlobalTensor and a LocalTensor, not "
            f"{type(src).__name__} to {type(dst).__name__}"
        )
    if dst.dtype != src.dtype:
        raise KernelError(f"{name} of {src.dtype} to {dst.dtype}: it copies, cast converts")
    return dst.dtype


def _check_local(name: str, *tensors: LocalTensor) -> None:
    for tensor in tensors:
        if not isinstance(tensor, LocalTensor):
            raise KernelError(f"{name} works on LocalTensors, not {type(tensor).__name__}")


def _check_int16(name: str, *tensors: LocalTensor) -> None:
    _check_local(name, *tensors)
    for tensor in tensors:
        if tensor.dtype != int16:
            raise KernelError(f"{name} is simulated for int16, not {tensor.dtype}")


def _address(tensor: Tensor) -> GmAddress | UbAddress:
    return tensor.ub_address() if isinstance(tensor, LocalTensor) else tensor.gm_address()


def _elem_bytes(dtype: DataType) -> int:
    return max(dtype.bitwidth // 8, 1)


def _code(value: float, dtype: DataType) -> int:
    fmt = dtype.format
    if isinstance(fmt, IntFormat) and (not fmt.min <= value <= fmt.max or value % 1):
        raise KernelError(f"padding_value {value!r} is no number of {dtype}")
    return int(np.array(value, dtype.format.dtype).view(dtype.format.code_dtype))
