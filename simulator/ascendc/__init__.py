"""AscendC's objects in Python, spelled as pyasc spells them, over the instruction-level machine.

    @asc.jit
    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, n: int) -> None: ...

    kernel[core_num](x, y, n)

The arrays are global memory: their bytes are read and written in place. The kernel runs once for
each core and every call records instructions of `simulator.machine.isa`; then the machine
executes them with all its guards, and a fault names the line that recorded the instruction. What
runs and is hardly meant, such as an output written in part, is a KernelWarning. What pyasc has and
this module lacks is not simulated. Ours, because pyasc has no word for them: `int4b_t`, `bfloat16`,
`set_saturation_flag`, `SaturationMode`, and `options`, `program` on a kernel.

Source: pyasc's `asc.language`; the meaning of each call is CANN asc-devkit's for A2/A3.
"""

from __future__ import annotations

from simulator.ascendc.ascendc_types import DataCopyExtParams as DataCopyExtParams
from simulator.ascendc.ascendc_types import DataCopyPadExtParams as DataCopyPadExtParams
from simulator.ascendc.ascendc_types import DataType as DataType
from simulator.ascendc.ascendc_types import GlobalAddress as GlobalAddress
from simulator.ascendc.ascendc_types import GlobalTensor as GlobalTensor
from simulator.ascendc.ascendc_types import HardEvent as HardEvent
from simulator.ascendc.ascendc_types import LocalTensor as LocalTensor
from simulator.ascendc.ascendc_types import PipeID as PipeID
from simulator.ascendc.ascendc_types import RoundMode as RoundMode
from simulator.ascendc.ascendc_types import SaturationMode as SaturationMode
from simulator.ascendc.ascendc_types import TPosition as TPosition
from simulator.ascendc.ascendc_types import UnaryRepeatParams as UnaryRepeatParams
from simulator.ascendc.ascendc_types import bfloat16 as bfloat16
from simulator.ascendc.ascendc_types import float16 as float16
from simulator.ascendc.ascendc_types import float32 as float32
from simulator.ascendc.ascendc_types import half as half
from simulator.ascendc.ascendc_types import int4b_t as int4b_t
from simulator.ascendc.ascendc_types import int8 as int8
from simulator.ascendc.ascendc_types import int16 as int16
from simulator.ascendc.ascendc_types import int32 as int32
from simulator.ascendc.ascendc_types import int64 as int64
from simulator.ascendc.ascendc_types import uint8 as uint8
from simulator.ascendc.calls import bitwise_and as bitwise_and
from simulator.ascendc.calls import cast as cast
from simulator.ascendc.calls import data_copy as data_copy
from simulator.ascendc.calls import data_copy_pad as data_copy_pad
from simulator.ascendc.calls import duplicate as duplicate
from simulator.ascendc.calls import get_block_idx as get_block_idx
from simulator.ascendc.calls import get_block_num as get_block_num
from simulator.ascendc.calls import pipe_barrier as pipe_barrier
from simulator.ascendc.calls import set_deq_scale as set_deq_scale
from simulator.ascendc.calls import set_flag as set_flag
from simulator.ascendc.calls import set_saturation_flag as set_saturation_flag
from simulator.ascendc.calls import wait_flag as wait_flag
from simulator.ascendc.kernel import ConstExpr as ConstExpr
from simulator.ascendc.kernel import JitFunction as JitFunction
from simulator.ascendc.kernel import KernelProgram as KernelProgram
from simulator.ascendc.kernel import KernelWarning as KernelWarning
from simulator.ascendc.kernel import Launch as Launch
from simulator.ascendc.kernel import LaunchOptions as LaunchOptions
from simulator.ascendc.kernel import jit as jit
from simulator.ascendc.queues import TBuf as TBuf
from simulator.ascendc.queues import TPipe as TPipe
from simulator.ascendc.queues import TQue as TQue
from simulator.ascendc.recorder import KernelError as KernelError
from simulator.machine.memory import SimulatorFault as SimulatorFault
