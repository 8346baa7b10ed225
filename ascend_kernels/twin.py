"""The kernel itself, compiled for this machine: `execute` runs it, `trace` shows what it does.

csrc/cast_kernel.h is AscendC. Here it is built by a plain C++ compiler against csrc/twin, whose
instructions give A2/A3's results, and its cores are played one after another, or on threads.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.instances import instance_number
from ascend_kernels.program import TileProgram
from ascend_kernels.tiling_data import tiling_data
from ascend_kernels.twin_library import (
    ERROR_BYTES,
    NO_VISIT,
    VISIT,
    Launch,
    Record,
    TwinUnavailableError,
    library,
)
from simulator.machine.isa import (
    AndRepeat,
    Cast,
    CastRepeat,
    DataCopyPad,
    Duplicate,
    GmAddress,
    HardEvent,
    Instruction,
    Pipe,
    PipeBarrier,
    RestoreCtrl,
    ScalarOp,
    SetCtrl,
    SetDeqScale,
    SetFlag,
    UbAddress,
    VectorScalar,
    WaitFlag,
)
from simulator.machine.memory import Bytes, SimulatorFault
from simulator.numbers import elementwise
from simulator.numbers import formats as f
from simulator.numbers.convert import codes_of
from simulator.numbers.formats import Codes, Format
from simulator.numbers.rounding import RoundMode

__all__ = ["TwinUnavailableError", "execute", "trace"]


def execute(program: TileProgram, values: npt.NDArray[Any], *, threads: int = 1) -> Codes:
    """Run a cast program with the compiled kernel.

    Args:
        program: the tile program of a cast.
        values: its input, any shape, strides and byte order; not modified.
        threads: threads that share the cores.

    Returns:
        Destination codes, one element each, 1-D in row-major order.

    Raises:
        TwinUnavailableError: the twin cannot be built here.
        SimulatorFault: the kernel did what hardware does not permit.
    """
    rule = program.resolution.rule
    native = values.astype(values.dtype.newbyteorder("="), order="C", copy=False).reshape(-1)
    x = _packed(native) if rule.src.bits == 4 else codes_of(native, rule.src).view(np.uint8)
    y = np.empty(values.size * rule.dst.bits // 8, np.uint8)
    _run_cores(program, x, y, threads)
    return _unpacked(y) if rule.dst.bits == 4 else y.view(rule.dst.code_dtype)


def trace(program: TileProgram, core: int) -> list[Instruction]:
    """The instructions that the compiled kernel issues on one core, in order.

    Raises:
        TwinUnavailableError: the twin cannot be built here.
        SimulatorFault: the kernel did what hardware does not permit.
    """
    rule = program.resolution.rule
    elems = int(np.prod(program.plan.shape, dtype=np.int64))
    x = np.zeros(elems * rule.src.bits // 8, np.uint8)
    y = np.empty(elems * rule.dst.bits // 8, np.uint8)
    issued: list[Instruction] = []

    def visit(record: Any) -> None:
        issued.append(_instruction(program, record.contents))

    _run(_launch(program, x, y), range(core, core + 1), VISIT(visit))
    return issued


def _packed(values: npt.NDArray[Any]) -> Bytes:
    """Values of 4 bits as GM holds them, two to a byte."""
    memory = np.empty(values.size // 2, np.uint8)
    library().pypto_twin_pack(memory.ctypes.data, values.ctypes.data, memory.size)
    return memory


def _unpacked(memory: Bytes) -> Codes:
    codes = np.empty(memory.size * 2, np.uint8)
    library().pypto_twin_unpack(codes.ctypes.data, memory.ctypes.data, memory.size)
    return codes


def _run_cores(program: TileProgram, x: Bytes, y: Bytes, threads: int) -> None:
    launch, cores = _launch(program, x, y), program.cores
    elementwise.share(lambda span: _run(launch, cores[span]), len(cores), threads, least=1)


def _launch(program: TileProgram, x: Bytes, y: Bytes) -> Launch:
    return Launch(
        instance=instance_number(program.resolution),
        tiling=ctypes.pointer(tiling_data(program)),
        x=x.ctypes.data,
        x_bytes=x.size,
        y=y.ctypes.data,
        y_bytes=y.size,
        blocks=len(program.cores),
    )


def _run(launch: Launch, cores: range, visit: Callable[[Any], None] = NO_VISIT) -> None:
    """Play some cores of a launch, on this thread."""
    error = ctypes.create_string_buffer(ERROR_BYTES)
    run = library().pypto_twin_run
    if run(ctypes.byref(launch), cores.start, cores.stop, visit, error, ERROR_BYTES):
        raise SimulatorFault(f"the kernel, cores {cores}: {error.value.decode()}")


# --- What a trace holds ------------------------------------------------------------------------

# fmt: off
_FORMATS: Final[tuple[Format, ...]] = (
    f.FP32, f.FP16, f.BF16, f.INT4, f.INT8, f.UINT8, f.INT16, f.INT32, f.INT64, f.UINT16,
    f.UINT32,
)
# fmt: on
_MODES: Final = (
    None,
    RoundMode.RINT,
    RoundMode.FLOOR,
    RoundMode.CEIL,
    RoundMode.ROUND,
    RoundMode.TRUNC,
    RoundMode.ODD,
)
_SCALAR_OPS: Final = tuple(ScalarOp)
_EVENTS: Final = (HardEvent.MTE2_V, HardEvent.V_MTE2, HardEvent.V_MTE3, HardEvent.MTE3_V)


def _instruction(program: TileProgram, record: Record) -> Instruction:
    """An instruction as the simulator has it; csrc/twin/instructions.h orders the operands."""
    kind: Callable[..., Instruction] = _KINDS[record.op]
    return kind(program, *record.operands)


def _address(program: TileProgram, space: int, offset: int) -> GmAddress | UbAddress:
    if space == 0:
        return UbAddress(offset_bytes=offset)
    return GmAddress(tensor=(program.input, program.output)[space - 1], offset_bytes=offset)


def _data_copy_pad(program: TileProgram, *operands: int) -> Instruction:
    blocks, length, src_stride, dst_stride, elem_bytes = operands[4:9]
    return DataCopyPad(
        dst=_address(program, *operands[0:2]),
        src=_address(program, *operands[2:4]),
        block_count=blocks,
        block_len_bytes=length,
        src_stride=src_stride,
        dst_stride=dst_stride,
        elem_bytes=elem_bytes,
    )


def _cast(_: TileProgram, *operands: int) -> Instruction:
    dst, src, dst_format, src_format, mode, count = operands[:6]
    return Cast(
        dst=UbAddress(offset_bytes=dst),
        src=UbAddress(offset_bytes=src),
        dst_format=_FORMATS[dst_format],
        src_format=_FORMATS[src_format],
        mode=_MODES[mode],
        count=count,
    )


def _cast_repeat(_: TileProgram, *operands: int) -> Instruction:
    dst, src, dst_format, src_format, mode, mask, repeats, *strides = operands[:11]
    return CastRepeat(
        dst=UbAddress(offset_bytes=dst),
        src=UbAddress(offset_bytes=src),
        dst_format=_FORMATS[dst_format],
        src_format=_FORMATS[src_format],
        mode=_MODES[mode],
        mask=mask,
        repeat_times=repeats,
        dst_blk_stride=strides[0],
        src_blk_stride=strides[1],
        dst_rep_stride=strides[2],
        src_rep_stride=strides[3],
    )


def _duplicate(_: TileProgram, *operands: int) -> Instruction:
    return Duplicate(dst=UbAddress(offset_bytes=operands[0]), value=operands[1], count=operands[2])


def _and_repeat(_: TileProgram, *operands: int) -> Instruction:
    dst, src0, src1 = (UbAddress(offset_bytes=offset) for offset in operands[:3])
    mask, repeats, *strides = operands[3:11]
    return AndRepeat(
        dst=dst,
        src0=src0,
        src1=src1,
        mask=mask,
        repeat_times=repeats,
        dst_blk_stride=strides[0],
        src0_blk_stride=strides[1],
        src1_blk_stride=strides[2],
        dst_rep_stride=strides[3],
        src0_rep_stride=strides[4],
        src1_rep_stride=strides[5],
    )


def _set_ctrl(_: TileProgram, *operands: int) -> Instruction:
    return SetCtrl(bit=operands[0], value=bool(operands[1]))


def _restore_ctrl(_: TileProgram, *operands: int) -> Instruction:
    return RestoreCtrl()


def _set_deq_scale(_: TileProgram, *operands: int) -> Instruction:
    (scale,) = struct.unpack("<f", struct.pack("<I", operands[0]))
    return SetDeqScale(scale=scale)


def _set_flag(_: TileProgram, *operands: int) -> Instruction:
    return SetFlag(event=_EVENTS[operands[0]], event_id=operands[1])


def _wait_flag(_: TileProgram, *operands: int) -> Instruction:
    return WaitFlag(event=_EVENTS[operands[0]], event_id=operands[1])


def _barrier(_: TileProgram, *operands: int) -> Instruction:
    return PipeBarrier(of=Pipe.V)


def _scalar(_: TileProgram, *operands: int) -> Instruction:
    op, dst, src, number, word, count = operands[:6]
    fmt = _FORMATS[number]
    scalar: float = word
    if isinstance(fmt, f.FloatFormat):
        (scalar,) = struct.unpack("<f", struct.pack("<I", word))
    return VectorScalar(
        op=_SCALAR_OPS[op],
        dst=UbAddress(offset_bytes=dst),
        src=UbAddress(offset_bytes=src),
        format=fmt,
        scalar=scalar,
        count=count,
    )


# fmt: off
_KINDS: Final[tuple[Callable[..., Instruction], ...]] = (
    _data_copy_pad, _cast, _cast_repeat, _duplicate, _and_repeat,
    _set_ctrl, _restore_ctrl, _set_deq_scale, _set_flag, _wait_flag, _barrier,
    _scalar,
)
# fmt: on
"""In the order of the enum Op."""
