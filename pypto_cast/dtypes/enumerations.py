"""Upstream's enums that no cast reads: arguments of its operations, named as there.

Source: upstream pypto, `python/src/bindings/enum.cpp`, `framework/include/tilefwk/tilefwk_op.h` and
`data_type.h`, `python/pypto/config.py`.
"""

from __future__ import annotations

import enum

PrecisionType = enum.Enum("PrecisionType", ("INTRINSIC", "HIGH_PRECISION"), start=0)
ReLuType = enum.Enum("ReLuType", ("NO_RELU", "RELU"), start=0)
CachePolicy = enum.Enum("CachePolicy", ("NONE_CACHEABLE",), start=1)
ReduceMode = enum.Enum("ReduceMode", ("ATOMIC_ADD",), start=0)
OpType = enum.Enum("OpType", ("EQ", "NE", "LT", "LE", "GT", "GE"), start=0)
OutType = enum.Enum("OutType", ("BOOL", "BIT"), start=0)
TopKAlgo = enum.Enum("TopKAlgo", ("MERGE_SORT", "RADIX_SELECT"), start=0)
TransMode = enum.Enum("TransMode", ("CAST_NONE", "CAST_RINT", "CAST_ROUND"), start=0)
ScatterMode = enum.Enum("ScatterMode", ("NONE", "ADD", "MULTIPLY"), start=0)
AtomicRMWMode = enum.Enum("AtomicRMWMode", ("ADD", "MAX", "MIN"), start=0)
AtomicType = enum.Enum("AtomicType", ("SET", "ADD"), start=0)
DequantScaleRoundingMode = enum.Enum(
    "DequantScaleRoundingMode", ("ROUND_UP", "ROUND_DOWN"), start=0
)


class CompStage(enum.Enum):
    """The stage that upstream's compiler stops at."""

    ALL_COMPLETE = 0
    TENSOR_GRAPH = 1
    TILE_GRAPH = 2
    EXECUTE_GRAPH = 3
    CODEGEN_INSTRUCTION = 4
    CODEGEN_BINARY = 5
