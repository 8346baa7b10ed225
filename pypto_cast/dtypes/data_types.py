"""pypto's dtypes and its enums, named and valued as upstream.

Source: upstream pypto, `data_type.h` and `tilefwk_op.h` (order, bytes), its binding
`enum.cpp`; the pypto.cast document.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np

from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode

_Enum = TypeVar("_Enum", bound=enum.Enum)


class DataType(enum.Enum):
    """Element types of a tensor, named and numbered as upstream.

    A2/A3 cast between the ones of `pypto-cast matrix`; the others can be declared.
    """

    DT_INT4 = 0
    DT_INT8 = 1
    DT_INT16 = 2
    DT_INT32 = 3
    DT_INT64 = 4
    DT_FP8 = 5
    DT_FP16 = 6
    DT_FP32 = 7
    DT_BF16 = 8
    DT_HF4 = 9
    DT_HF8 = 10
    DT_UINT8 = 11
    DT_UINT16 = 12
    DT_UINT32 = 13
    DT_UINT64 = 14
    DT_BOOL = 15
    DT_DOUBLE = 16
    DT_FP8E4M3 = 17
    DT_FP8E5M2 = 18
    DT_FP8E8M0 = 19
    DT_FP4_E2M1X2 = 20
    DT_FP4_E1M2X2 = 21
    DT_FP4_E2M1 = 22
    DT_FP4_E1M2 = 23
    DT_BOTTOM = 24

    __hash__ = object.__hash__  # the one of Enum is Python code

    def __repr__(self) -> str:
        return f"DataType.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __int__(self) -> int:
        return int(self.value)

    @property
    def format(self) -> Format | None:
        """The number format that the simulator knows for it, None where it knows none."""
        return _ROWS[self].format

    @property
    def number_format(self) -> Format:
        """The same of a dtype that has one, as every dtype of values does."""
        found = self.format
        assert found is not None
        return found


class CastMode(enum.Enum):
    """Round modes of `cast`; CAST_NONE takes the default of the pair of dtypes."""

    CAST_NONE = 0
    CAST_RINT = 1
    CAST_ROUND = 2
    CAST_FLOOR = 3
    CAST_CEIL = 4
    CAST_TRUNC = 5
    CAST_ODD = 6

    __hash__ = object.__hash__  # the one of Enum is Python code

    def __repr__(self) -> str:
        return f"CastMode.{self.name}"

    def __int__(self) -> int:
        return int(self.value)

    @property
    def round_mode(self) -> RoundMode | None:
        """The simulator's rule; None for CAST_NONE."""
        if self is CastMode.CAST_NONE:
            return None
        return RoundMode[self.name.removeprefix("CAST_")]


class SaturationMode(enum.Enum):
    """The treatment of values that an integer destination cannot hold.

    ON clamps them. OFF keeps low bits, on the six pairs where upstream does so.
    """

    ON = 0
    OFF = 1

    __hash__ = object.__hash__  # the one of Enum is Python code

    def __repr__(self) -> str:
        return f"SaturationMode.{self.name}"

    def __int__(self) -> int:
        return int(self.value)


class TileOpFormat(enum.Enum):
    """Memory layout of a tensor; a cast takes ND."""

    TILEOP_ND = 0
    TILEOP_NZ = 1

    def __repr__(self) -> str:
        return f"TileOpFormat.{self.name}"


@dataclass(frozen=True, slots=True)
class _Row:
    size_bytes: int
    format: Format | None = None


_ROWS: Final[Mapping[DataType, _Row]] = MappingProxyType(
    {
        DataType.DT_INT4: _Row(1, f.INT4),
        DataType.DT_INT8: _Row(1, f.INT8),
        DataType.DT_INT16: _Row(2, f.INT16),
        DataType.DT_INT32: _Row(4, f.INT32),
        DataType.DT_INT64: _Row(8, f.INT64),
        DataType.DT_FP8: _Row(1),
        DataType.DT_FP16: _Row(2, f.FP16),
        DataType.DT_FP32: _Row(4, f.FP32),
        DataType.DT_BF16: _Row(2, f.BF16),
        DataType.DT_HF4: _Row(1),
        DataType.DT_HF8: _Row(1),
        DataType.DT_UINT8: _Row(1, f.UINT8),
        DataType.DT_UINT16: _Row(2, f.UINT16),
        DataType.DT_UINT32: _Row(4, f.UINT32),
        DataType.DT_UINT64: _Row(8, f.UINT64),
        DataType.DT_BOOL: _Row(1, f.BOOL),
        DataType.DT_DOUBLE: _Row(8, f.FP64),
        DataType.DT_FP8E4M3: _Row(1, f.E4M3FN),
        DataType.DT_FP8E5M2: _Row(1, f.E5M2),
        DataType.DT_FP8E8M0: _Row(1),
        DataType.DT_FP4_E2M1X2: _Row(1),
        DataType.DT_FP4_E1M2X2: _Row(1),
        DataType.DT_FP4_E2M1: _Row(1, f.E2M1),
        DataType.DT_FP4_E1M2: _Row(1),
        DataType.DT_BOTTOM: _Row(0),
    }
)

_BY_NUMPY: Final[Mapping[np.dtype[Any], DataType]] = MappingProxyType(
    {
        row.format.dtype: dtype
        for dtype, row in _ROWS.items()
        if row.format is not None and dtype is not DataType.DT_DOUBLE
    }
)


def bytes_of(dtype: DataType) -> int:
    """Bytes of one element, as upstream counts them: a type below 8 bits counts as 1.

    Raises:
        TypeError: `dtype` is no DataType.
        ValueError: DT_BOTTOM, which ends upstream's list and is no type.
    """
    check_dtype(dtype)
    if dtype is DataType.DT_BOTTOM:
        raise ValueError("DT_BOTTOM marks the end of the list of dtypes; it has no size")
    return _ROWS[dtype].size_bytes


def check_choice(name: str, value: object, kind: type[_Enum]) -> _Enum:
    """Return a member of an enum of pypto's.

    Raises:
        TypeError: it is none; the text names the members.
    """
    if isinstance(value, kind):
        return value
    choices = ", ".join(member.name for member in kind)
    raise TypeError(f"{name} must be a pypto.{kind.__name__} ({choices}), not {value!r}")


def check_dtype(dtype: object) -> DataType:
    """Return `dtype` if it is a DataType.

    Raises:
        TypeError: it is not; the text names what was given.
    """
    if isinstance(dtype, DataType):
        return dtype
    raise TypeError(
        f"dtype must be a pypto.DataType such as pypto.DT_FP16, not {dtype!r} "
        f"({type(dtype).__name__})"
    )


def numpy_dtype(dtype: DataType) -> np.dtype[Any]:
    """The numpy dtype that holds values of `dtype`; BF16 and narrow types are ml_dtypes'.

    Raises:
        TypeError: numpy has none for it, or the type holds no data here (DT_DOUBLE).
    """
    fmt = dtype.format
    if fmt is None or dtype is DataType.DT_DOUBLE:
        holders = ", ".join(str(known) for known in _BY_NUMPY.values())
        raise TypeError(f"{dtype} can be declared but holds no data here; these do: {holders}")
    return fmt.dtype


def dtype_of_numpy(dtype: np.dtype[Any]) -> DataType:
    """The DataType of a numpy dtype, in any byte order.

    Raises:
        TypeError: no cast takes it; the text names the numpy dtypes that do.
    """
    native = dtype.newbyteorder("=")
    found = _BY_NUMPY.get(native)
    if found is None:
        holders = ", ".join(str(known) for known in _BY_NUMPY)
        hint = " (float64: use .astype(numpy.float32))" if native == np.float64 else ""
        raise TypeError(f"numpy dtype {dtype} has no pypto dtype{hint}; these have: {holders}")
    return found


# Enums that no cast reads: arguments of upstream's operations.
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
