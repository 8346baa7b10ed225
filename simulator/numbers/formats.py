"""The number formats: one row per format, everything else derived.

A format is described by what its layout fixes (field widths, bias, which codes are special).
Limits, masks and the last place of a value follow from that. Sources: IEEE 754-2019 3.4 for FP64,
FP32 and FP16; the pypto.cast document for BF16; the OCP 8-bit and MX specifications for E4M3FN,
E5M2, E2M3, E3M2, E2M1 and E8M0; the ONNX float8 document for the FNUZ variants; for HF8 (HiFloat8)
arXiv 2409.16626; CANN asc-devkit's table of maxima of BF16 -> FP4 for E1M2.
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
    HIF = "the code of -0: NaN; the largest of each sign: infinity; no negative zero"


class _Singleton:
    """Is itself when copied or unpickled, as a member of an enum is: code asks `src is FP32`."""

    __slots__ = ()
    name: str

    def __reduce__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FloatFormat(_Singleton):
    """A binary floating-point format of sign, exponent and stored fraction, or of exponent alone.

    The *rank* of a code is its place among those of its sign: 0 for zero, and one more for each
    next larger number. It is the code without its sign, unless the format is tapered.

    Attributes:
        name: the name used in tables and messages.
        exp_bits: width of the exponent field; of a tapered format, of the widest.
        man_bits: stored fraction bits, without the implicit one; of a tapered format, the most.
        bias: exponent bias; of a tapered format, such that `emin` is its smallest exponent.
        specials: which codes are infinities and NaNs.
        dtype: the numpy dtype that holds values of the format.
        dots: of a tapered format the prefixes that tell how many bits the exponent has, in binary,
            by that number; what is left of the code is fraction. Empty: every exponent has as many.
    """

    name: str
    exp_bits: int
    man_bits: int
    bias: int
    specials: Specials
    dtype: np.dtype[Any]
    dots: tuple[str, ...] = ()

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
    def is_in_numpy(self) -> bool:
        """numpy or ml_dtypes computes with its values; else an array holds their bytes alone."""
        return self.dtype.names is None

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal number, and of every subnormal one."""
        return int(not self.is_scale) - self.bias

    @property
    def min_quantum(self) -> int:
        """Exponent of the last place of the subnormal numbers."""
        return self.quantum(self.emin)

    def quantum(self, exponent: int) -> int:
        """Exponent of the last place of a value whose leading bit has weight 2**exponent."""
        return int(self.quanta(np.array([exponent]))[0])

    def quanta(self, exponents: npt.NDArray[np.signedinteger[Any]]) -> npt.NDArray[np.int64]:
        """The same of every value of an array."""
        places: npt.NDArray[np.int64] = np.maximum(exponents, self.emin).astype(np.int64)
        if self.dots:
            taper = taper_of(self)
            places -= taper.man_bits[taper.places(places)]
        else:
            places -= self.man_bits
        return places

    def rank_bases(
        self, exponents: npt.NDArray[np.int64], quanta: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.uint64]:
        """Offsets to which significands, in units of the last place, are added to give ranks.

        The exponent field counts quanta above the subnormal one; the implicit bit of the
        significand adds the missing one, and a carry of rounding flows into the exponent by itself.

        Args:
            exponents: of the leading bits.
            quanta: of the last places, which follow from them.
        """
        if self.dots:
            taper = taper_of(self)
            return taper.bases[taper.places(exponents)]
        return (quanta - self.min_quantum).astype(np.uint64) << np.uint64(self.man_bits)

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
            case Specials.FNUZ | Specials.SCALE | Specials.HIF:
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
            case Specials.HIF:
                return self.code_of_rank(self.sign_code - 1)
            case _:
                assert_never(self.specials)

    @property
    def nan_code(self) -> int | None:
        """The one NaN this project writes (a choice: the vendor documents the class only)."""
        match self.specials:
            case Specials.IEEE | Specials.FN | Specials.SCALE:
                return self.sign_code - 1
            case Specials.FNUZ | Specials.HIF:
                return self.sign_code
            case Specials.NONE:
                return None
            case _:
                assert_never(self.specials)

    @property
    def max_code(self) -> int:
        """Code of the largest finite number."""
        return self.code_of_rank(self.max_rank)

    @property
    def max_rank(self) -> int:
        """Rank of the largest finite number; infinity, if there is one, has the next."""
        last = self.sign_code - 1
        if self.inf_code is not None:
            return self.rank_of_code(self.inf_code) - 1
        return last - 1 if self.nan_code == last else last

    def code_of_rank(self, rank: int) -> int:
        """The code of a number that is not negative, by its rank."""
        return int(taper_of(self).codes[rank]) if self.dots else rank

    def rank_of_code(self, code: int) -> int:
        """The rank of a code, whatever its sign."""
        magnitude = code & (self.sign_code - 1)
        return int(taper_of(self).ranks[magnitude]) if self.dots else magnitude

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
    def is_in_numpy(self) -> bool:
        """numpy or ml_dtypes computes with its values, as with those of every integer format."""
        return True

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Taper:
    """The tables of a tapered format, all of which follow from its dots.

    Attributes:
        codes: codes of the numbers that are not negative, by rank.
        ranks: ranks, by code without its sign.
        significands: of the number of a rank: its value in units of its last place.
        quanta: exponent of that place, by rank.
        exponents: the exponents in ascending order, from that of the smallest number to one beyond
            the largest.
        man_bits: stored fraction bits, by exponent in that order.
        bases: the rank of 2**exponent less its significand, by exponent: a significand in units of
            the last place, rounded up to the next power of two or not, adds up to its rank.
    """

    codes: npt.NDArray[np.uint64]
    ranks: npt.NDArray[np.uint64]
    significands: npt.NDArray[np.uint64]
    quanta: npt.NDArray[np.int64]
    exponents: range
    man_bits: npt.NDArray[np.int64]
    bases: npt.NDArray[np.uint64]

    def places(self, exponents: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The places of exponents in `exponents`; of others that of the nearest."""
        least, most = self.exponents[0], self.exponents[-1]
        return np.clip(exponents, least, most) - least


@functools.cache
def taper_of(fmt: FloatFormat) -> Taper:
    """The tables of a tapered format.

    A code is a sign, a dot that tells the width of the exponent, the exponent as sign and magnitude
    without the leading one of the magnitude, and the fraction:

        S 01  s m  F F F        2 bits of exponent: +-2 and +-3

    A code whose dot is all zeros is a power of two below the others: its rest counts them, from 1
    on, and 0 is zero.
    """
    width, least = fmt.bits - 1, fmt.emin
    rest = width - len(fmt.dots[0])
    most = (1 << len(fmt.dots) - 1) - 1
    codes, significands, quanta = [0], [0], [0]
    man_bits, bases = [], []
    exponents = range(least, most + 2)
    for exponent in exponents:
        is_small = exponent < -most
        size = min(abs(exponent), most).bit_length()
        bits = 0 if is_small else width - len(fmt.dots[size]) - size
        man_bits.append(bits)
        bases.append(len(codes) - (1 << bits))
        if exponent > most:
            break
        negative = exponent < 0
        without_one = abs(exponent) - (1 << size >> 1)
        field = int(negative) << max(size - 1, 0) | without_one if size else 0
        prefix = int(fmt.dots[size], 2) << size | field
        for fraction in range(1 << bits):
            codes.append(exponent - least + 1 if is_small else prefix << bits | fraction)
            significands.append(1 << bits | fraction)
            quanta.append(exponent - bits)
    assert exponents[0] + (1 << rest) - 1 == -most, "the smallest powers fill the codes of no dot"
    ranks = np.zeros(1 << width, np.uint64)
    ranks[codes] = np.arange(len(codes), dtype=np.uint64)
    return Taper(
        codes=np.array(codes, np.uint64),
        ranks=ranks,
        significands=np.array(significands, np.uint64),
        quanta=np.array(quanta, np.int64),
        exponents=exponents,
        man_bits=np.array(man_bits, np.int64),
        bases=np.array(bases, np.uint64),
    )


@functools.cache
def _code_dtype(size_bytes: int) -> np.dtype[Any]:
    return np.dtype(f"u{size_bytes}")


def _float(
    name: str,
    exp_bits: int,
    man_bits: int,
    bias: int,
    specials: Specials,
    dtype: Any = None,
    dots: tuple[str, ...] = (),
) -> FloatFormat:
    """A row; where numpy and ml_dtypes have no dtype, one of its own, which holds bytes.

    numpy refuses to add or to convert its elements; a view as uint8 has the codes.
    """
    return FloatFormat(
        name=name,
        exp_bits=exp_bits,
        man_bits=man_bits,
        bias=bias,
        specials=specials,
        dtype=np.dtype([(name, "V1")] if dtype is None else dtype),
        dots=dots,
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
E1M2: Final = _float("E1M2", 1, 2, 1, Specials.NONE)
E8M0: Final = _float("E8M0", 8, 0, 127, Specials.SCALE, ml_dtypes.float8_e8m0fnu)
HF8: Final = _float("HF8", 4, 3, 23, Specials.HIF, None, ("0001", "001", "01", "10", "11"))

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
        FP64, FP32, FP16, BF16, E5M2, E4M3FN, E5M2FNUZ, E4M3FNUZ, E2M3, E3M2, E2M1, E1M2, E8M0,
        HF8, INT2, INT4, INT8, INT16, INT32, INT64,
        UINT2, UINT4, UINT8, UINT16, UINT32, UINT64, BOOL,
    )
}
# fmt: on
