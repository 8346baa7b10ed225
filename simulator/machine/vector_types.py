"""The element types of the vector core, one row each: the number format and AscendC's names of it.

The file is short because the AscendC kernels, their twin and the Python that is spelled as pyasc
all read it, and none of them may load another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from simulator.numbers import formats as f
from simulator.numbers.formats import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorType:
    """The type of the elements of a buffer in UB.

    Attributes:
        format: its number format.
        cpp: its name in C++; None where the AscendC kernels here have no cast of it.
        pyasc: its name in Python: pyasc's, or AscendC's where pyasc has none.
    """

    format: Format
    cpp: str | None
    pyasc: str


VECTOR_TYPES: Final[Mapping[Format, VectorType]] = {
    format: VectorType(format=format, cpp=cpp, pyasc=pyasc)
    for format, cpp, pyasc in (
        (f.FP32, "float", "float32"),
        (f.FP16, "half", "float16"),
        (f.BF16, "bfloat16_t", "bfloat16"),
        (f.INT4, "AscendC::int4b_t", "int4b_t"),
        (f.INT8, "int8_t", "int8"),
        (f.UINT8, "uint8_t", "uint8"),
        (f.INT16, "int16_t", "int16"),
        (f.INT32, "int32_t", "int32"),
        (f.INT64, "int64_t", "int64"),
        (f.UINT16, "uint16_t", "uint16"),
        (f.UINT32, "uint32_t", "uint32"),
        (f.HF8, "hifloat8_t", "hifloat8_t"),
        (f.E4M3FN, "fp8_e4m3fn_t", "fp8_e4m3fn_t"),
        (f.E5M2, "fp8_e5m2_t", "fp8_e5m2_t"),
        (f.E8M0, None, "fp8_e8m0_t"),
        (f.E2M1, "fp4x2_e2m1_t", "fp4x2_e2m1_t"),
        (f.E1M2, "fp4x2_e1m2_t", "fp4x2_e1m2_t"),
    )
}
"""In the order of their numbers in a trace of the twin (`FormatOf` in csrc/twin/instructions.h)."""
