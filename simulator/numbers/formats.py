"""The number formats: one row per format, everything else derived.

A format is described by what its layout fixes (field widths, bias, which codes are special).
Limits, masks and the last place of a value follow from that. Sources: IEEE 754-2019 3.4 for FP64,
FP32 and FP16; the pypto.cast document for BF16; the OCP 8-bit and MX specifications for E4M3FN,
E5M2, E2M3, E3M2, E2M1 and E8M0; the ONNX float8 document for the FNUZ variants.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import ml_dtypes
import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.unsignedinteger[Any]]
"""Raw bits of elements, one unsigned integer each; sub-byte formats use the low bits of a byte."""


def assert_never(value: NoReturn) -> NoReturn:
    """End a `match` over an enum, of which `mypy --strict` refuses one that leaves a member out.

    It is the `assert_never` of `typing`, which Python 3.10 lacks.

    Raises:
        AssertionError: it is reached.
    """
    raise AssertionError(f"no case handles {value!r}")


class Specials(enum.Enum):
    """The codes of a float format that are not finite numbers."""

    IEEE = "exponent all ones: infinity if the fraction is zero, else NaN"
    FN = "all ones except the sign: NaN; no infinity"
    FNUZ = "the code of -0: NaN; no infinity, no negative zero"
    NONE = "every code is a finite number"
    SCALE = "no sign, no zero, no fraction: a power of two; all ones: NaN; no infinity"


class _Singleton:
    """Is itself when copied or unpickled, as a member of an enum is: code asks `src is FP32`."""

    __slots__ = ()
    name: str

    def __reduce__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FloatFormat(_Singleton):
    """A binary floating-point format of sign, exponent and stored fraction, or of exponent alone.

    Attributes:
        name: the name used in tables and messages.
        exp_bits: width of the exponent field.
        man_bits: stored fraction bits, without the implicit one.
        bias: exponent bias.
        specials: which codes are infinities and NaNs.
        dtype: the numpy dtype that holds values of the format.
    """

    name: str
    exp_bits: int
    man_bits: int
    bias: int
    specials: Specials
    dtype: np.dtype[Any]

    @property
    def bits(self) -> int:
        """Width of one code."""
        return (not self.is_scale) + self.exp_bits + self.man_bits

    @property
    def code_dtype(self) -> np.dtype[Any]:
        """Unsigned numpy dtype of one code."""
        return _code_dtype(self.dtype.itemsize)

    @property
    def is_scale(self) -> bool:
        """Has neither sign nor zero: the scale of a block of numbers."""
        return self.specials is Specials.SCALE

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal number, and of every subnormal one."""
        return int(not self.is_scale) - self.bias

    @property
    def min_quantum(self) -> int:
        """Exponent of the last place of the subnormal numbers."""
        return self.emin - self.man_bits

    def quantum(self, exponent: int) -> int:
        """Exponent of the last place of a value whose leading bit has weight 2**exponent."""
        return max(exponent, self.emin) - self.man_bits

    @property
    def sign_code(self) -> int:
        """The sign bit alone; the bit above the code where there is no sign."""
        return 1 << (self.exp_bits + self.man_bits)

    @property
    def nan_is_negative_zero(self) -> bool:
        """The one NaN has the code that is -0 in other formats."""
        return self.nan_code == self.sign_code

    @property
    def has_negative_zero(self) -> bool:
        match self.specials:
            case Specials.IEEE | Specials.FN | Specials.NONE:
                return True
            case Specials.FNUZ | Specials.SCALE:
                return False
            case _:
                assert_never(self.specials)

    @property
    def inf_code(self) -> int | None:
        """Code of +infinity, None where the format has none."""
        match self.specials:
            case Specials.IEEE:
                return ((1 << self.exp_bits) - 1) << self.man_bits
            case Specials.FN | Specials.FNUZ | Specials.NONE | Specials.SCALE:
                return None
            case _:
                assert_never(self.specials)

    @property
    def nan_code(self) -> int | None:
        """The one NaN this project writes (a choice: the vendor documents the class only)."""
        match self.specials:
            case Specials.IEEE | Specials.FN | Specials.SCALE:
                return self.sign_code - 1
            case Specials.FNUZ:
                return self.sign_code
            case Specials.NONE:
                return None
            case _:
                assert_never(self.specials)

    @property
    def max_code(self) -> int:
        """Code of the largest finite number."""
        last = self.sign_code - 1
        if self.inf_code is not None:
            return self.inf_code - 1
        return last - 1 if self.nan_code == last else last

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntFormat(_Singleton):
    """A two's complement (signed) or plain binary (unsigned) integer format.

    Attributes:
        name: the name used in tables and messages.
        bits: width of one code.
        signed: two's complement if true.
        dtype: the numpy dtype that holds values of the format.
    """

    name: str
    bits: int
    signed: bool
    dtype: np.dtype[Any]

    @property
    def code_dtype(self) -> np.dtype[Any]:
        """Unsigned numpy dtype of one code."""
        return _code_dtype(self.dtype.itemsize)

    @property
    def max(self) -> int:
        """Largest value."""
        return (1 << (self.bits - self.signed)) - 1

    @property
    def min(self) -> int:
        """Smallest value."""
        return -self.max - 1 if self.signed else 0

    def quantum(self, exponent: int) -> int:
        """Exponent of the last place: an integer counts in ones, whatever its size."""
        return 0

    def __str__(self) -> str:
        return self.name


Format = FloatFormat | IntFormat


@functools.cache
def _code_dtype(size_bytes: int) -> np.dtype[Any]:
    return np.dtype(f"u{size_bytes}")


def _float(
    name: str, exp_bits: int, man_bits: int, bias: int, specials: Specials, dtype: Any
) -> FloatFormat:
    return FloatFormat(
        name=name,
        exp_bits=exp_bits,
        man_bits=man_bits,
        bias=bias,
        specials=specials,
        dtype=np.dtype(dtype),
    )


def _int(name: str, bits: int, signed: bool, dtype: Any) -> IntFormat:
    return IntFormat(name=name, bits=bits, signed=signed, dtype=np.dtype(dtype))


FP64: Final = _float("FP64", 11, 52, 1023, Specials.IEEE, np.float64)
FP32: Final = _float("FP32", 8, 23, 127, Specials.IEEE, np.float32)
FP16: Final = _float("FP16", 5, 10, 15, Specials.IEEE, np.float16)
BF16: Final = _float("BF16", 8, 7, 127, Specials.IEEE, ml_dtypes.bfloat16)
E5M2: Final = _float("E5M2", 5, 2, 15, Specials.IEEE, ml_dtypes.float8_e5m2)
E4M3FN: Final = _float("E4M3FN", 4, 3, 7, Specials.FN, ml_dtypes.float8_e4m3fn)
E5M2FNUZ: Final = _float("E5M2FNUZ", 5, 2, 16, Specials.FNUZ, ml_dtypes.float8_e5m2fnuz)
E4M3FNUZ: Final = _float("E4M3FNUZ", 4, 3, 8, Specials.FNUZ, ml_dtypes.float8_e4m3fnuz)
E2M3: Final = _float("E2M3", 2, 3, 1, Specials.NONE, ml_dtypes.float6_e2m3fn)
E3M2: Final = _float("E3M2", 3, 2, 3, Specials.NONE, ml_dtypes.float6_e3m2fn)
E2M1: Final = _float("E2M1", 2, 1, 1, Specials.NONE, ml_dtypes.float4_e2m1fn)
E8M0: Final = _float("E8M0", 8, 0, 127, Specials.SCALE, ml_dtypes.float8_e8m0fnu)

INT2: Final = _int("INT2", 2, True, ml_dtypes.int2)
INT4: Final = _int("INT4", 4, True, ml_dtypes.int4)
INT8: Final = _int("INT8", 8, True, np.int8)
INT16: Final = _int("INT16", 16, True, np.int16)
INT32: Final = _int("INT32", 32, True, np.int32)
INT64: Final = _int("INT64", 64, True, np.int64)
UINT2: Final = _int("UINT2", 2, False, ml_dtypes.uint2)
UINT4: Final = _int("UINT4", 4, False, ml_dtypes.uint4)
UINT8: Final = _int("UINT8", 8, False, np.uint8)
UINT16: Final = _int("UINT16", 16, False, np.uint16)
UINT32: Final = _int("UINT32", 32, False, np.uint32)
UINT64: Final = _int("UINT64", 64, False, np.uint64)
BOOL: Final = _int("BOOL", 1, False, np.bool_)

# fmt: off
FORMATS: Final[dict[str, Format]] = {
    fmt.name: fmt
    for fmt in (
        FP64, FP32, FP16, BF16, E5M2, E4M3FN, E5M2FNUZ, E4M3FNUZ, E2M3, E3M2, E2M1, E8M0,
        INT2, INT4, INT8, INT16, INT32, INT64,
        UINT2, UINT4, UINT8, UINT16, UINT32, UINT64, BOOL,
    )
}
# fmt: on
