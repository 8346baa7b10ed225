"""The facts that results of casts tell: each element of a cast belongs to one of them.

Standings and sources of what is assumed: simulator/numbers/convert.py and the README.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.matrix import MATRIX, CastControls, Resolution, resolve
from ascend_kernels.program import conversions
from simulator.numbers import float_environment
from simulator.numbers.convert import Conversion, values_of
from simulator.numbers.formats import BF16, FP16, Codes, Format, IntFormat
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCast:
    """A cast under one round mode, saturation mode and overflow mode.

    Attributes:
        resolution: pair, round mode, saturation mode.
        inf_nan_mode: CTRL[48].
    """

    resolution: Resolution
    inf_nan_mode: bool

    @property
    def src(self) -> Format:
        return self.resolution.rule.src

    @property
    def dst(self) -> Format:
        return self.resolution.rule.dst

    @property
    def truncates(self) -> bool:
        """SaturationMode.OFF, where it acts."""
        return any(cast.truncates for cast in self.resolution.casts)

    @property
    def conversions(self) -> tuple[Conversion, ...]:
        """The steps as conversions between number formats."""
        return conversions(self.resolution, CastControls(inf_nan_mode=self.inf_nan_mode))

    def __str__(self) -> str:
        mode = f" CAST_{self.resolution.mode}" if self.resolution.mode else ""
        off = " OFF" if self.truncates else ""
        saturating = "" if self.inf_nan_mode else " CTRL[48] = 0"
        return f"{self.resolution.rule}{mode}{off}{saturating}"


def _every_cast() -> Iterator[CheckedCast]:
    for rule in MATRIX[A2_A3].values():
        for mode in rule.modes or (None,):
            for saturate in (True, False) if rule.off else (True,):
                resolution = resolve(A2_A3, rule.src, rule.dst, mode, saturate=saturate)
                for inf_nan_mode in (True, False) if rule.dst in (FP16, BF16) else (True,):
                    yield CheckedCast(resolution=resolution, inf_nan_mode=inf_nan_mode)


CASTS: Final[Mapping[str, CheckedCast]] = {str(x): x for x in _every_cast()}
"""Every pair, mode, saturation and overflow mode, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CastElements:
    """The elements of a cast, with the masks that assign each to a fact.

    Attributes:
        cast: the cast.
        nan: sources that are NaN.
        infinite: sources that are an infinity.
        beyond: finite sources whose results are beyond the destination's numbers. What rounds to
            the largest number is not; that is decided with an exponent without limit.
        subnormal: sources between zero and the source's smallest normal number.
        underflow: sources between zero and the destination's smallest subnormal number.
        zero_result: results that are a zero of either sign, in a float format.
        subnormal_result: results that are subnormal numbers.
    """

    cast: CheckedCast
    nan: Mask
    infinite: Mask
    beyond: Mask
    subnormal: Mask
    underflow: Mask
    zero_result: Mask
    subnormal_result: Mask

    @staticmethod
    def of(cast: CheckedCast, values: npt.NDArray[Any], expected: Codes) -> CastElements:
        """The masks of a cast's elements.

        Args:
            cast: the cast.
            values: what is cast, as numbers: float64, or int64 where the source is an integer.
            expected: the codes that this package gives for them.
        """
        src, dst = cast.src, cast.dst
        size = np.abs(values.astype(np.float64))
        none = np.zeros(values.shape, np.bool_)
        underflow, zero_result, subnormal_result = none, none, none
        if isinstance(dst, IntFormat):
            beyond = (values > dst.max) | (values < dst.min)
        else:
            magnitudes = expected & expected.dtype.type(dst.sign_code - 1)
            exponent = (dst.max_code >> dst.man_bits) - dst.bias
            beyond = (size >= np.ldexp(1.0, exponent + 1)) | (magnitudes == dst.inf_code)
            underflow = (size > 0) & (size < np.ldexp(1.0, dst.min_quantum))
            zero_result = magnitudes == 0
            subnormal_result = (magnitudes > 0) & (magnitudes < 1 << dst.man_bits)
        least = 0.0 if isinstance(src, IntFormat) else np.ldexp(1.0, src.emin)
        return CastElements(
            cast=cast,
            nan=np.isnan(size),
            infinite=np.isinf(size),
            beyond=beyond & np.isfinite(size),
            subnormal=(size > 0) & (size < least),
            underflow=underflow,
            zero_result=zero_result,
            subnormal_result=subnormal_result,
        )

    @property
    def is_to_int(self) -> bool:
        return isinstance(self.cast.dst, IntFormat)

    @property
    def is_odd(self) -> bool:
        return self.cast.resolution.mode is RoundMode.ODD

    @property
    def is_directed(self) -> bool:
        return self.cast.resolution.mode in (RoundMode.FLOOR, RoundMode.CEIL, RoundMode.TRUNC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """One thing that a device does with some elements.

    Attributes:
        name: what tables and files call it.
        assumed: what this package assumes.
        holds: which elements show it, if none before it in the table claims them; True for all.
        is_rounding: it depends on every bit of a source, so that no one code stands for it.
    """

    name: str
    assumed: str
    holds: Callable[[CastElements], Mask | bool]
    is_rounding: bool = False


# In order: an element belongs to the first that holds.
BEHAVIOURS: Final = (
    Behaviour(
        name="NaN to integers",
        assumed="0",
        holds=lambda e: e.nan & e.is_to_int,
    ),
    Behaviour(
        name="NaN pattern",
        assumed="FP16 0x7FFF, BF16 0x7FFF, FP32 0x7FFFFFFF, whatever the sign and the payload",
        holds=lambda e: e.nan,
    ),
    Behaviour(
        name="infinities",
        assumed="kept in floats, or the largest number with CTRL[48] = 0; integers clamp",
        holds=lambda e: e.infinite,
    ),
    Behaviour(
        name="integers out of range, low bits",
        assumed="SaturationMode.OFF keeps the low bits of the rounded number",
        holds=lambda e: e.beyond & e.is_to_int & e.cast.truncates,
    ),
    Behaviour(
        name="integers out of range, clamped",
        assumed="the nearest end of the range",
        holds=lambda e: e.beyond & e.is_to_int,
    ),
    Behaviour(
        name="overflow with CTRL[48] = 0",
        assumed="the largest number of the sign",
        holds=lambda e: e.beyond & (not e.cast.inf_nan_mode),
    ),
    Behaviour(
        name="overflow of CAST_ODD",
        assumed="as IEEE 754 rounds toward zero, then the last bit is odd",
        holds=lambda e: e.beyond & e.is_odd,
    ),
    Behaviour(
        name="overflow under directed rounding",
        assumed="IEEE 754: away from zero infinity, toward zero the largest number",
        holds=lambda e: e.beyond & e.is_directed,
    ),
    Behaviour(
        name="overflow to nearest",
        assumed="infinity from half a last place above the largest number on",
        holds=lambda e: e.beyond,
    ),
    Behaviour(
        name="subnormal inputs",
        assumed="their value: none is flushed to zero",
        holds=lambda e: e.subnormal,
    ),
    Behaviour(
        name="underflow of CAST_ODD",
        assumed="below the smallest subnormal number 0x0001, the last bit being odd",
        holds=lambda e: e.underflow & e.is_odd,
    ),
    Behaviour(
        name="sign of zero",
        assumed="that of the input, of zeros and of what rounds to zero",
        holds=lambda e: e.zero_result,
    ),
    Behaviour(
        name="subnormal results",
        assumed="gradual: none is flushed to zero",
        holds=lambda e: e.subnormal_result,
    ),
    Behaviour(
        name="INT32 to FP16 by the deq scale",
        assumed="one rounding to nearest even of the integer",
        holds=lambda e: any(c.is_scaled for c in e.cast.resolution.casts),
        is_rounding=True,
    ),
    Behaviour(
        name="INT64 to FP32",
        assumed="one rounding, by the mode",
        holds=lambda e: e.cast.src.bits == 64 and e.cast.dst.bits == 32 and not e.is_to_int,
        is_rounding=True,
    ),
    Behaviour(
        name="rounding",
        assumed="one rounding, by the mode",
        holds=lambda e: True,
        is_rounding=True,
    ),
)


def behaviours_of(cast: CheckedCast, codes: Codes, expected: Codes) -> npt.NDArray[np.intp]:
    """The place in BEHAVIOURS of each element of a cast."""
    held = values_of(codes, cast.src)
    is_int = isinstance(cast.src, IntFormat)
    with float_environment.quiet():  # signalling NaNs
        values = held.astype(np.int64 if is_int else np.float64)
        elements = CastElements.of(cast, values, expected)
        return np.select(
            [behaviour.holds(elements) for behaviour in BEHAVIOURS], list(range(len(BEHAVIOURS)))
        ).astype(np.intp)


def is_negative(codes: Codes, fmt: Format) -> Mask:
    """The sign of each code: of NaN and zero too; no number of an unsigned format has one."""
    if isinstance(fmt, IntFormat) and not fmt.signed:
        return np.zeros(codes.shape, np.bool_)
    found: Mask = (codes >> codes.dtype.type(fmt.bits - 1) & codes.dtype.type(1)) != 0
    return found
