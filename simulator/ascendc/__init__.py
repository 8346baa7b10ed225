"""AscendC's objects in Python, spelled as pyasc spells them, over the instruction-level machine.

    @asc.jit
    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, n: int) -> None: ...

    kernel[core_num](x, y, n)

The arrays are global memory: their bytes are read and written in place. The kernel runs once for
each core and every call records instructions of `simulator.machine.isa`; then the machine
executes them with all its guards, and a fault names the line that recorded the instruction. What
runs and is hardly meant, such as an output written in part, is a KernelWarning. What pyasc has and
this module lacks is not simulated. Ours, because pyasc has no word for them: `int4b_t`, `bfloat16`,
the small floats of the 950 by AscendC's names, `CAST_HYBRID`, `set_saturation_flag`,
`SaturationMode`, and `options`, `program` on a kernel.

Source: pyasc's `asc.language`; the meaning of each call is CANN asc-devkit's for the chip's family.
"""

from __future__ import annotations

from simulator.ascendc.ascendc_types import (
    DataCopyExtParams,
    DataCopyPadExtParams,
    DataType,
    GlobalAddress,
    GlobalTensor,
    HardEvent,
    LocalTensor,
    PipeID,
    SaturationMode,
    TPosition,
    UnaryRepeatParams,
    bfloat16,
    float16,
    float32,
    fp4x2_e1m2_t,
    fp4x2_e2m1_t,
    fp8_e4m3fn_t,
    fp8_e5m2_t,
    fp8_e8m0_t,
    half,
    hifloat8_t,
    int4b_t,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
)
from simulator.ascendc.calls import (
    bitwise_and,
    cast,
    data_copy,
    data_copy_pad,
    duplicate,
    get_block_idx,
    get_block_num,
    pipe_barrier,
    set_deq_scale,
    set_flag,
    set_saturation_flag,
    wait_flag,
)
from simulator.ascendc.kernel import (
    ConstExpr,
    JitFunction,
    KernelProgram,
    KernelWarning,
    Launch,
    LaunchOptions,
    jit,
)
from simulator.ascendc.queues import TBuf, TPipe, TQue
from simulator.ascendc.recorder import KernelError
from simulator.ascendc.round_modes import RoundMode
from simulator.machine.memory import SimulatorFault

__all__ = [
    "ConstExpr",
    "DataCopyExtParams",
    "DataCopyPadExtParams",
    "DataType",
    "GlobalAddress",
    "GlobalTensor",
    "HardEvent",
    "JitFunction",
    "KernelError",
    "KernelProgram",
    "KernelWarning",
    "Launch",
    "LaunchOptions",
    "LocalTensor",
    "PipeID",
    "RoundMode",
    "SaturationMode",
    "SimulatorFault",
    "TBuf",
    "TPipe",
    "TPosition",
    "TQue",
    "UnaryRepeatParams",
    "bfloat16",
    "bitwise_and",
    "cast",
    "data_copy",
    "data_copy_pad",
    "duplicate",
    "float16",
    "float32",
    "fp4x2_e1m2_t",
    "fp4x2_e2m1_t",
    "fp8_e4m3fn_t",
    "fp8_e5m2_t",
    "fp8_e8m0_t",
    "get_block_idx",
    "get_block_num",
    "half",
    "hifloat8_t",
    "int4b_t",
    "int8",
    "int16",
    "int32",
    "int64",
    "jit",
    "pipe_barrier",
    "set_deq_scale",
    "set_flag",
    "set_saturation_flag",
    "uint8",
    "uint16",
    "uint32",
    "wait_flag",
]
