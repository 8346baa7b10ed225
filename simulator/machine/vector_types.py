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
        cpp: its name in C++.
        pyasc: its name in Python: pyasc's, or AscendC's where pyasc has none; None where
            `simulator.ascendc` does not have it.
    """

    format: Format
    cpp: str
    pyasc: str | None


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
        (f.UINT16, "uint16_t", None),
        (f.UINT32, "uint32_t", None),
    )
}
"""In the order of their numbers in a trace of the twin (`FormatOf` in csrc/twin/instructions.h)."""
