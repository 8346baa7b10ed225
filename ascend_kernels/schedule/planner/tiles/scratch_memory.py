"""The scratch memory of tile operations, by opcode.

Paths are those of upstream pypto at tag r0.2.0, framework/src, unless a revision is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ascend_kernels.schedule.planner.tiles.tile_graph import (
    BLOCK_BYTES,
    REPEAT_BYTES,
    TileTensor,
)
from simulator.numbers.formats import BF16, FP16, FP32, INT8, INT32, UINT8, Format
from tiling.grid import Shape
from tiling.ub import round_up

Scratch = Callable[[Shape, Format], tuple[TileTensor, ...]]
_BLOCK_ELEMS: Final = 8
"""Of FP32."""
_COMPARED_BYTES: Final = 4096
_CHOSEN_ELEMS: Final = 1024
_NEGATED_ELEMS: Final = 2048


def element_bytes(fmt: Format) -> int:
    """The bytes of an element in UB."""
    return fmt.dtype.itemsize


def _as_selected(fmt: Format) -> int:
    return element_bytes(FP32 if fmt in (FP32, BF16) else FP16)


def _compared(blocks: int) -> Scratch:
    def scratch(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
        item = element_bytes(FP32 if fmt is BF16 else fmt)
        bits_bytes = round_up(_COMPARED_BYTES // item // 8, BLOCK_BYTES)
        size_bytes = bits_bytes + 3 * _COMPARED_BYTES + blocks * BLOCK_BYTES
        return (TileTensor(format=UINT8, shape=(size_bytes,)),)

    return scratch


def _chosen(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    size_bytes = 2 * _CHOSEN_ELEMS * (element_bytes(FP16) + _as_selected(fmt)) + 128 + BLOCK_BYTES
    return (TileTensor(format=UINT8, shape=(size_bytes,)),)


def _negated(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    used_bytes = _NEGATED_ELEMS * (2 + 2 * _as_selected(fmt)) + _NEGATED_ELEMS // 8 + 8
    return (TileTensor(format=INT8, shape=(round_up(used_bytes, BLOCK_BYTES),)),)


def _widened(tile: Shape) -> TileTensor:
    return TileTensor(format=FP32, shape=(tile[-2], round_up(tile[-1], _BLOCK_ELEMS)))


def _rounded(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    return (TileTensor(format=FP32, shape=(_BLOCK_ELEMS,)) if fmt is FP32 else _widened(tile),)


def _raised(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    return (*_rounded(tile, fmt), _widened(tile))


def _alike(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    return (TileTensor(format=fmt, shape=tile),)


def _turned(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    rows, columns = round_up(tile[-2], 16), round_up(tile[-1], BLOCK_BYTES // element_bytes(fmt))
    return (TileTensor(format=fmt, shape=(*tile[:-2], rows, columns)),)


def _both(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    elems = 64
    size_bytes = BLOCK_BYTES + 4 * elems * 4 + elems * 2 + 2 * BLOCK_BYTES
    return (TileTensor(format=UINT8, shape=(size_bytes,)),)


def _aligned_bytes(tile: Shape, blocks: int, elems: int = _BLOCK_ELEMS) -> int:
    """So many FP32 copies of a tile whose rows are whole numbers of some elements."""
    return 4 * math.prod(tile[:-1]) * round_up(tile[-1], elems) * blocks


def _workspace(blocks: int) -> Scratch:
    def scratch(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
        return (TileTensor(format=UINT8, shape=(_aligned_bytes(tile, blocks),)),)

    return scratch


def _repeated(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    size_bytes = _aligned_bytes((1, *tile)[-2:], 4, REPEAT_BYTES // 4)
    return (TileTensor(format=UINT8, shape=(size_bytes,)),)


def _tanh(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    size_bytes = _aligned_bytes(tile[-2:], 2 if fmt is FP32 else 4) + BLOCK_BYTES
    size_bytes += round_up(tile[-1], BLOCK_BYTES) * tile[-2]
    return (TileTensor(format=INT8, shape=(size_bytes,)),)


def _powered(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    last = round_up(tile[-1], BLOCK_BYTES // element_bytes(fmt))
    return (TileTensor(format=fmt, shape=(*tile[:-1], last)),)


def _angle(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    last = round_up(tile[-1], BLOCK_BYTES // element_bytes(fmt)) * 4 * element_bytes(FP32)
    return (TileTensor(format=UINT8, shape=(*tile[:-1], last)),)


def _divided(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    size_bytes = _aligned_bytes(tile, 6, BLOCK_BYTES // element_bytes(fmt))
    return (TileTensor(format=UINT8, shape=(size_bytes,)),)


def _weighed(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    marks = round_up(-(-tile[-1] // 8), BLOCK_BYTES) if len(tile) == 2 else 0
    return (TileTensor(format=UINT8, shape=(marks + BLOCK_BYTES,)),)


def _quantized(tile: Shape, fmt: Format) -> tuple[TileTensor, ...]:
    elems = math.prod(round_up(each, _BLOCK_ELEMS) for each in (1, *tile)[-2:])
    return (TileTensor(format=INT32, shape=(elems,)),)


SCRATCH: Final[Mapping[str, Scratch]] = MappingProxyType(
    {
        "PRELU": _weighed,  # interface/operation/vector/binary.cpp:194
        "CMP": _compared(2),  # interface/operation/vector/compare.cpp:58
        "CMPS": _compared(1),  # interface/operation/vector/compare.cpp:255
        "WHERE_TT": _chosen,  # interface/operation/vector/where.cpp:41
        "WHERE_TS": _chosen,
        "WHERE_ST": lambda tile, fmt: _chosen(tile, FP32),  # the number decides, a float
        "WHERE_SS": _chosen,
        "LOGICALNOT": _negated,  # interface/operation/vector/math.cpp:42
        "LOGICALAND": _both,  # interface/operation/vector/math.cpp:497
        "ROUND": _rounded,  # interface/operation/vector/math.cpp:1176
        # interface/operation/vector/math.cpp:98, :1247
        "SIGN": lambda tile, fmt: (TileTensor(format=FP16, shape=(_BLOCK_ELEMS * 2,)),),
        "EXPM1": _rounded,
        "EXP2": _raised,  # interface/operation/vector/math.cpp:1089
        # interface/operation/vector/binary.cpp, bitwise_shift.cpp
        **dict.fromkeys(("COPYSIGN", "BITWISEXOR", "BITWISEXORS"), _alike),
        "POW": _powered,
        **dict.fromkeys(("BITWISELEFTSHIFT", "BITWISERIGHTSHIFT"), _alike),
        **dict.fromkeys(("SBITWISELEFTSHIFT", "SBITWISERIGHTSHIFT"), _alike),
        # of revision 883e7dfb0: interface/operation/vector/unary.cpp, math.cpp, binary.cpp
        **dict.fromkeys(("ATAN", "ERF", "COSH", "ACOSH", "SIN", "COS"), _workspace(3)),
        **dict.fromkeys(("SINH", "ERFC", "ASINH"), _workspace(4)),
        "ATANH": _workspace(5),
        **dict.fromkeys(("ASIN", "ACOS"), _repeated),
        "TANH": _tanh,
        "TAN": lambda tile, fmt: (
            TileTensor(format=FP32, shape=(_aligned_bytes(tile[-2:], 9) // 4,)),
        ),
        "ISNAN": lambda tile, fmt: (
            TileTensor(format=UINT8, shape=(_aligned_bytes((1, *tile)[-2:], 3, 16) + BLOCK_BYTES,)),
        ),
        "ISFINITE": lambda tile, fmt: (
            TileTensor(format=UINT8, shape=(element_bytes(FP16) * math.prod(tile),)),
        ),
        "ATAN2": _angle,
        **dict.fromkeys(("FLOORDIV", "FLOORDIVS"), _divided),
        # interface/operation/vector/hypot.cpp, math.cpp (TiledSignbitOperation)
        "HYPOT": lambda tile, fmt: (
            TileTensor(format=UINT8, shape=(2 * round_up(4 * tile[-1], BLOCK_BYTES),)),
        ),
        "SIGNBIT": lambda tile, fmt: (
            TileTensor(format=FP16, shape=(tile[-2] * round_up(tile[-1], 16),)),
        ),
        # interface/operation/vector/quantization.cpp:889, of the same revision
        **dict.fromkeys(("QUANTIZE_SYM", "QUANTIZE_ASYM"), _quantized),
        # interface/operation/vector/tensor_transformation.cpp:242
        "TRANSPOSE_VNCHWCONV": _turned,
    }
)
"""The scratch of an operation by its tile and the format of its last operand."""

BY_TILE_SHAPE: Final = frozenset(
    {
        *("ATAN", "ERF", "COSH", "ACOSH", "SINH", "ERFC", "ASINH", "ATANH", "ASIN", "ACOS"),
        *("TANH", "ISNAN", "ISFINITE", "SIN", "COS", "QUANTIZE_SYM", "QUANTIZE_ASYM"),
    }
)
"""The opcodes whose scratch follows from the tile shape that is set, not from the tile."""
