"""The one table of dtypes, by pypto's names and those of every other system, and pypto's enums.

Source: upstream pypto, `data_type.h` and `tilefwk_op.h` (order, bytes), its binding
`enum.cpp`; the pypto.cast document; TensorProto.DataType of onnx.proto (ONNX 1.23).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode

__all__ = [
    "CAST_CEIL",
    "CAST_FLOOR",
    "CAST_NONE",
    "CAST_ODD",
    "CAST_RINT",
    "CAST_ROUND",
    "CAST_TRUNC",
    "DT_BF16",
    "DT_BOOL",
    "DT_BOTTOM",
    "DT_DOUBLE",
    "DT_FP4_E1M2",
    "DT_FP4_E1M2X2",
    "DT_FP4_E2M1",
    "DT_FP4_E2M1X2",
    "DT_FP8",
    "DT_FP8E4M3",
    "DT_FP8E5M2",
    "DT_FP8E8M0",
    "DT_FP16",
    "DT_FP32",
    "DT_HF4",
    "DT_HF8",
    "DT_INT4",
    "DT_INT8",
    "DT_INT16",
    "DT_INT32",
    "DT_INT64",
    "DT_UINT8",
    "DT_UINT16",
    "DT_UINT32",
    "DT_UINT64",
    "ROUND_DOWN",
    "ROUND_UP",
    "AtomicRMWMode",
    "AtomicType",
    "CachePolicy",
    "CastMode",
    "CompStage",
    "DataType",
    "DequantScaleRoundingMode",
    "OpType",
    "OutType",
    "PrecisionType",
    "ReLuType",
    "ReduceMode",
    "SaturationMode",
    "ScatterMode",
    "TileOpFormat",
    "TopKAlgo",
    "TransMode",
    "bytes_of",
]

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

    __hash__ = object.__hash__  # that of Enum is slow, and these are keys of what is kept

    def __repr__(self) -> str:
        return f"DataType.{self.name}"

    def __str__(self) -> str:
        return f"DataType.{self.name}"

    def __format__(self, form: str) -> str:
        return format(self.name, form)  # short in messages and tables

    def __int__(self) -> int:
        return int(self.value)

    @property
    def format(self) -> Format | None:
        """The number format that the simulator knows for it, None where it knows none."""
        return ROW_OF[self].format

    @property
    def number_format(self) -> Format:
        """The same of a dtype that has one, as every dtype of values does."""
        found = ROW_OF[self].format
        assert found is not None
        return found


# fmt: off
(
    DT_INT4, DT_INT8, DT_INT16, DT_INT32, DT_INT64, DT_FP8, DT_FP16, DT_FP32, DT_BF16, DT_HF4,
    DT_HF8, DT_UINT8, DT_UINT16, DT_UINT32, DT_UINT64, DT_BOOL, DT_DOUBLE, DT_FP8E4M3, DT_FP8E5M2,
    DT_FP8E8M0, DT_FP4_E2M1X2, DT_FP4_E1M2X2, DT_FP4_E2M1, DT_FP4_E1M2, DT_BOTTOM,
) = DataType
# fmt: on


class TensorType(enum.IntEnum):
    """ONNX's TensorProto.DataType, without UNDEFINED and the complex types, which no cast takes."""

    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26
    FLOAT6E2M3 = 27
    FLOAT6E3M2 = 28


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


CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD = CastMode


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DtypeRow:
    """A dtype: its number format, and its name in each system; None in one that lacks it.

    AscendC's names are in `simulator.machine.vector_types`, which stand by format too.

    Attributes:
        format: None where no array here holds its elements.
        pypto: upstream's name and number.
        onnx: TensorProto's name and number.
        openvino: its element type.
        paddle: its dtype.
        safetensors: its dtype, which a GGUF file calls the same.
        dtype: numpy's or ml_dtypes' dtype.
        bits: width of one element.
        aliases: other spellings; with an owner where the bare word means another dtype elsewhere.
    """

    format: Format | None
    pypto: DataType | None
    onnx: TensorType | None
    openvino: str | None
    paddle: str | None
    safetensors: str | None
    dtype: np.dtype[Any] | None
    bits: int
    aliases: tuple[str, ...]

    @property
    def torch(self) -> str | None:
        """torch's name: numpy's, for elements of whole bytes and truth values."""
        dtype = self.dtype
        is_whole = dtype is not None and self.bits in (1, 8 * dtype.itemsize)
        is_whole = is_whole and dtype is not None and dtype.names is None
        return dtype.name if dtype is not None and is_whole else None

    @property
    def names(self) -> tuple[str, ...]:
        """All names but those that are made of the format.

        Without a format pypto's has its prefix: FP4_E2M1 is the format of DT_FP4_E2M1X2 elsewhere.
        """
        pypto = "" if self.pypto is None else self.pypto.name
        onnx = "" if self.onnx is None else self.onnx.name
        short = pypto.removeprefix("DT_") if self.format is not None else ""
        named = (pypto, short, onnx, self.openvino, self.paddle)
        return tuple(name for name in (*named, self.safetensors, *self.aliases) if name)


def _row(
    format: Format | None,
    pypto: DataType | None,
    onnx: TensorType | None = None,
    openvino: str | None = None,
    paddle: str | None = None,
    safetensors: str | None = None,
    *aliases: str,
    numpy: str = "",
    bits: int = 0,
) -> DtypeRow:
    dtype = np.dtype(numpy) if numpy else None
    if format is not None:
        dtype, bits = format.dtype, format.bits
    elif dtype is not None:
        bits = 8 * dtype.itemsize
    return DtypeRow(
        format=format,
        pypto=pypto,
        onnx=onnx,
        openvino=openvino,
        paddle=paddle,
        safetensors=safetensors,
        dtype=dtype,
        bits=bits,
        aliases=aliases,
    )


# fmt: off
_T: Final = TensorType
ROWS: Final = (
    # format, pypto, ONNX, OpenVINO, Paddle, safetensors, other spellings
    _row(f.BF16, DT_BF16, _T.BFLOAT16, "bf16", "bfloat16", "BF16"),
    _row(f.FP16, DT_FP16, _T.FLOAT16, "f16", "float16", "F16", "half"),
    _row(f.FP32, DT_FP32, _T.FLOAT, "f32", "float32", "F32", "single", "torch.float",
         "tensor(float)"),
    _row(f.FP64, DT_DOUBLE, _T.DOUBLE, "f64", "float64", "F64"),
    _row(f.E4M3FN, DT_FP8E4M3, _T.FLOAT8E4M3FN, "f8e4m3", None, "F8_E4M3"),
    _row(f.E5M2, DT_FP8E5M2, _T.FLOAT8E5M2, "f8e5m2", None, "F8_E5M2"),
    _row(f.E4M3FNUZ, None, _T.FLOAT8E4M3FNUZ, None, None, "F8_E4M3FNUZ"),
    _row(f.E5M2FNUZ, None, _T.FLOAT8E5M2FNUZ, None, None, "F8_E5M2FNUZ"),
    _row(f.E8M0, DT_FP8E8M0, _T.FLOAT8E8M0, "f8e8m0", None, "F8_E8M0", "float8_e8m0"),
    _row(f.HF8, DT_HF8, None, None, None, None, "hifloat8"),
    _row(f.E2M3, None, _T.FLOAT6E2M3),
    _row(f.E3M2, None, _T.FLOAT6E3M2),
    _row(f.E2M1, DT_FP4_E2M1X2, _T.FLOAT4E2M1, "f4e2m1", None, None, "float4_e2m1"),
    _row(f.E1M2, DT_FP4_E1M2X2, None, None, None, None, "float4_e1m2"),
    _row(f.BOOL, DT_BOOL, _T.BOOL, "boolean", "bool", "BOOL", "bool_"),
    _row(f.UINT8, DT_UINT8, _T.UINT8, "u8", "uint8", "U8"),
    _row(f.INT8, DT_INT8, _T.INT8, "i8", "int8", "I8"),
    _row(f.INT16, DT_INT16, _T.INT16, "i16", "int16", "I16", "short"),
    _row(f.INT32, DT_INT32, _T.INT32, "i32", "int32", "I32", "torch.int"),
    _row(f.INT64, DT_INT64, _T.INT64, "i64", "int64", "I64", "long"),
    _row(f.UINT16, DT_UINT16, _T.UINT16, "u16", None, "U16"),
    _row(f.UINT32, DT_UINT32, _T.UINT32, "u32", None, "U32"),
    _row(f.UINT64, DT_UINT64, _T.UINT64, "u64", None, "U64"),
    _row(f.INT4, DT_INT4, _T.INT4, "i4"),
    _row(f.UINT4, None, _T.UINT4, "u4"),
    _row(f.INT2, None, _T.INT2),
    _row(f.UINT2, None, _T.UINT2, "u2"),
    _row(None, None, None, None, "complex64", "C64", "cfloat", numpy="complex64"),
    _row(None, None, None, None, "complex128", None, "c128", "cdouble", numpy="complex128"),
    _row(None, None, _T.STRING, "string", None, None, "str", "str_"),
    _row(None, DT_FP8, bits=8),
    _row(None, DT_HF4, bits=4),
    _row(None, DT_FP4_E2M1, bits=4),
    _row(None, DT_FP4_E1M2, bits=4),
    _row(None, DT_BOTTOM),
    _row(None, None, None, "nf4", bits=4),
    _row(None, None, None, "u1", bits=1),
    _row(None, None, None, "u3", bits=3),
    _row(None, None, None, "u6", bits=6),
    _row(None, None, None, "dynamic"),
)
"""Every dtype once; the table of Paddle's document has the same order."""
# fmt: on

_BY_PYPTO: Final = {row.pypto: row for row in ROWS}
ROW_OF: Final[Mapping[DataType, DtypeRow]] = {dtype: _BY_PYPTO[dtype] for dtype in DataType}
DTYPE_OF: Final[Mapping[Format, DataType]] = {
    dtype.format: dtype for dtype in DataType if dtype.format is not None
}
"""pypto's dtype of a number format."""
_BY_NUMPY: Final[Mapping[np.dtype[Any], DataType]] = {
    fmt.dtype: dtype for fmt, dtype in DTYPE_OF.items() if dtype is not DT_DOUBLE
}
_EN_DTYPES: Final = ("hifloat8", "float8_e8m0", "float4_e2m1", "float4_e1m2")
_BY_NAME: Final[Mapping[str, DataType]] = {
    alias: row.pypto
    for row in ROWS
    for alias in row.aliases
    if row.pypto is not None and alias in _EN_DTYPES
}
"""By the name of a numpy dtype of en_dtypes'."""


def bytes_of(dtype: DataType) -> int:
    """Bytes of one element, as upstream counts them: a type below 8 bits counts as 1.

    Raises:
        TypeError: `dtype` is no DataType.
        ValueError: DT_BOTTOM, which ends upstream's list and is no type.
    """
    check_dtype(dtype)
    if dtype is DT_BOTTOM:
        raise ValueError("DT_BOTTOM marks the end of the list of dtypes; it has no size")
    return max(1, ROW_OF[dtype].bits // 8)


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
    if fmt is None or dtype is DT_DOUBLE:
        holders = ", ".join(format(known) for known in _BY_NUMPY.values())
        raise TypeError(f"{dtype} can be declared but holds no data here; these do: {holders}")
    return fmt.dtype


def dtype_of_numpy(dtype: np.dtype[Any]) -> DataType:
    """The DataType of a numpy dtype, in any byte order; floats of 8 and 4 bits are en_dtypes' too.

    Raises:
        TypeError: no cast takes it; the text names the numpy dtypes that do.
    """
    native = dtype.newbyteorder("=")
    found = _BY_NUMPY.get(native) or _BY_NAME.get(native.name)
    if found is None:
        plain = (str(known) for known in _BY_NUMPY if known.names is None)
        holders = ", ".join([*plain, *(f"{name} of en_dtypes" for name in _BY_NAME)])
        hint = " (float64: use .astype(numpy.float32))" if native == np.float64 else ""
        raise TypeError(f"numpy dtype {dtype} has no pypto dtype{hint}; these have: {holders}")
    return found


def with_our_dtype(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Elements of en_dtypes' dtypes as those of ours, over the same memory; others as they are."""
    dtype = _BY_NAME.get(array.dtype.name)
    return array if dtype is None else array.view(numpy_dtype(dtype))


class _Numbered(enum.Enum):
    """An enumeration of upstream's; int() gives upstream's number.

    No cast reads those that follow: they are arguments of upstream's operations.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __int__(self) -> int:
        return int(self.value)


class PrecisionType(_Numbered):
    """The way a function is computed: by one instruction, or by several and nearer."""

    INTRINSIC = 0
    HIGH_PRECISION = 1


class ReLuType(_Numbered):
    """The treatment of negative results of a matmul."""

    NO_RELU = 0
    RELU = 1


class ConvReLuType(_Numbered):
    """The treatment of negative results of a convolution."""

    NO_RELU = 0
    RELU = 1


class CachePolicy(_Numbered):
    """A hint for the cache."""

    NONE_CACHEABLE = 1


class ReduceMode(_Numbered):
    """The way results of tasks are joined in global memory."""

    ATOMIC_ADD = 0


class OpType(_Numbered):
    """The comparison of `pypto.cmp`."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5


class OutType(_Numbered):
    """The form of a comparison's results."""

    BOOL = 0
    BIT = 1


class TopKAlgo(_Numbered):
    """The way that the largest elements are found."""

    MERGE_SORT = 0
    RADIX_SELECT = 1


class TransMode(_Numbered):
    """The rounding of FP32 operands of a matmul."""

    CAST_NONE = 0
    CAST_RINT = 1
    CAST_ROUND = 2


class ScatterMode(_Numbered):
    """The way scattered values join those that are there."""

    NONE = 0
    ADD = 1
    MULTIPLY = 2


class AtomicRMWMode(_Numbered):
    """The way an atomic operation joins values."""

    ADD = 0
    MAX = 1
    MIN = 2


class AtomicType(_Numbered):
    """The way shared memory takes a value."""

    SET = 0
    ADD = 1


class LogBaseType(_Numbered):
    """The base of a logarithm."""

    LOG_E = 0
    LOG_2 = 1
    LOG_10 = 2


class DequantScaleRoundingMode(_Numbered):
    """The rounding of a scale to a power of two."""

    ROUND_UP = 0
    ROUND_DOWN = 1


ROUND_UP, ROUND_DOWN = DequantScaleRoundingMode


class CompStage(enum.Enum):
    """The stage that upstream's compiler stops at."""

    ALL_COMPLETE = 0
    TENSOR_GRAPH = 1
    TILE_GRAPH = 2
    EXECUTE_GRAPH = 3
    CODEGEN_INSTRUCTION = 4
    CODEGEN_BINARY = 5
