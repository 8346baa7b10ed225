"""The table of pypto's operations: the dtypes and the scratch of each.

The bits of a row are those of the row of the same name in `simulator.arithmetic.OPERATIONS`; the
formats that run wider, and the dtypes that a release takes or refuses besides, stand in
`pypto_cast.options.releases`. Source: upstream pypto, framework/src/interface/operation/vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from pypto_cast.dtypes.data_types import DataType
from simulator.arithmetic import OPERATIONS, Operation
from simulator.numbers.formats import FP16, FP32, Format, IntFormat
from tiling.grid import Shape

FLOATS: Final = (DataType.DT_FP32, DataType.DT_FP16, DataType.DT_BF16)
NUMBERS: Final = (*FLOATS, DataType.DT_INT32, DataType.DT_INT16)
INTEGERS: Final = (
    *(DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32),
    *(DataType.DT_UINT8, DataType.DT_UINT16, DataType.DT_UINT32),
)
COPIED: Final = (*FLOATS, *INTEGERS)

Scratch = Callable[[Shape, Format], int]
"""Bytes by the extents of a tile and the format that the instruction runs in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """One operation of pypto's that is one instruction sequence on whole tensors.

    Attributes:
        name: upstream's.
        dtypes: what upstream's newest revision takes.
        scratch: UB bytes that it needs beside inputs and output.
        same_rank: operands must have as many dimensions as each other.
    """

    name: str
    dtypes: tuple[DataType, ...]
    scratch: Scratch = lambda tile, fmt: 0
    same_rank: bool = False

    @property
    def arithmetic(self) -> Operation:
        """Values, intervals, sources."""
        return OPERATIONS[self.name]

    def result_dtype(self, dtype: DataType) -> DataType:
        """The dtype of its result."""
        return DataType.DT_BOOL if self.arithmetic.gives_truth else dtype


def aligned(count: int, unit: int) -> int:
    """The next multiple of a unit."""
    return -(-count // unit) * unit


def _comparing(tile: Shape, fmt: Format) -> int:
    return aligned(4096 * 8 // fmt.bits // 8, 32) + 3 * 4096 + 64


def _selecting(tile: Shape, fmt: Format) -> int:
    return 4096 + 128 + 32 + 2048 * _selected_bytes(fmt)


def _negating(tile: Shape, fmt: Format) -> int:
    if isinstance(fmt, IntFormat) and fmt.bits > 1:
        return 2048 * fmt.bits // 8
    return aligned(4096 + 4096 * _selected_bytes(fmt) + 256 + 8, 32)


def _selected_bytes(fmt: Format) -> int:
    return (FP32 if fmt is FP32 else FP16).bits // 8


def _one_tile(tile: Shape, fmt: Format) -> int:
    return math.prod(tile[:-1]) * aligned(tile[-1] * fmt.bits // 8, 32)


def _row_reduced(tile: Shape, fmt: Format) -> int:
    row_bytes = tile[-1] * fmt.bits // 8
    rows = tile[-2] if len(tile) > 1 else 1
    if row_bytes <= 256:
        return 32
    return rows * 256 * max(1, row_bytes // 256 // 2)


def reduction_scratch(name: str, tile: Shape, fmt: Format, axis: int) -> int:
    """UB bytes of a reduction along an axis of a tile."""
    if axis == len(tile) - 1:
        return _row_reduced(tile, fmt)
    if name != "sum":
        return 0
    return -(-tile[axis] // 2) * aligned(tile[-1], 8) * fmt.bits // 8


_number = partial(OperationRow, dtypes=NUMBERS)
_float = partial(OperationRow, dtypes=FLOATS)
_comparison = partial(OperationRow, dtypes=(DataType.DT_FP32, DataType.DT_FP16), scratch=_comparing)
_bits = partial(OperationRow, dtypes=INTEGERS)
_shift = partial(OperationRow, dtypes=(DataType.DT_INT16, DataType.DT_UINT16), scratch=_one_tile)
_rounding = partial(OperationRow, dtypes=(DataType.DT_FP32, DataType.DT_INT32, DataType.DT_INT16))

ROWS: Final = MappingProxyType(
    {
        row.name: row
        for row in (
            *(_number(name=name) for name in ("add", "sub", "mul", "neg")),
            *(_number(name=name) for name in ("maximum", "minimum", "relu", "clip")),
            *(_number(name=name) for name in ("amax", "amin")),
            *(_float(name=name) for name in ("abs", "div", "reciprocal", "sqrt", "exp")),
            _number(name="where", scratch=_selecting, same_rank=True),
            *(_comparison(name=name) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
            OperationRow(
                name="logical_and",
                dtypes=(*FLOATS, *INTEGERS[:4], DataType.DT_BOOL),
                scratch=lambda tile, fmt: 32 + 4 * 256 + 128 + 64,
            ),
            OperationRow(
                name="logical_not",
                dtypes=(*COPIED, DataType.DT_BOOL),
                scratch=_negating,
            ),
            *(_bits(name=name) for name in ("bitwise_and", "bitwise_or", "bitwise_not")),
            _bits(name="bitwise_xor", scratch=_one_tile),
            *(_shift(name=f"bitwise_{side}_shift") for side in ("left", "right")),
            *(_rounding(name=name) for name in ("round", "floor", "ceil", "trunc")),
            OperationRow(name="log", dtypes=(DataType.DT_FP32,)),
            OperationRow(
                name="sum",
                dtypes=tuple(d for d in NUMBERS if d is not DataType.DT_FP16),
            ),
        )
    }
)
