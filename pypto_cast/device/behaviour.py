"""The facts that results of casts tell: each element of a cast belongs to one of them.

Standings and sources of what is assumed: simulator/numbers/convert.py and the README.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.instances import modes_of_api
from ascend_kernels.matrix import (
    DEFAULT_CONTROLS,
    MATRIX,
    CastControls,
    CastRule,
    Resolution,
    resolve,
)
from ascend_kernels.program import conversions
from simulator.numbers import float_environment
from simulator.numbers.convert import INF_NAN, Conversion, in_numpy, values_of
from simulator.numbers.formats import Codes, Format, IntFormat
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, ASCEND_950, CHIPS

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCast:
    """A cast under one round mode, saturation mode and state of the control bits.

    Attributes:
        resolution: pair, round mode, saturation mode.
        controls: the control bits.
    """

    resolution: Resolution
    controls: CastControls = DEFAULT_CONTROLS

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
        return conversions(self.resolution, self.controls)

    @property
    def saturates(self) -> bool:
        """True if the destination is a float format in which infinities and NaN saturate."""
        rule = self.resolution.rule
        policy = rule.policy(self.controls, saturate=self.resolution.saturate)
        return not isinstance(self.dst, IntFormat) and policy != INF_NAN

    def __str__(self) -> str:
        mode = f" CAST_{self.resolution.mode}" if self.resolution.mode else ""
        off = " OFF" if self.truncates else ""
        controls = self.controls
        bits = "" if controls.inf_nan_mode else " CTRL[48] = 0"
        bits += " CTRL[50] = 1" if controls.fp8_nan else ""
        if not controls.global_saturation:
            bits += " CTRL[60] = 0"
        return f"{self.resolution.rule}{mode}{off}{bits}"


def _every_cast(family: str) -> Iterator[CheckedCast]:
    for rule in MATRIX[family].values():
        for mode in modes_of_api(rule, rule.modes) or (None,):
            for saturate in (True, False) if rule.off else (True,):
                resolution = resolve(family, rule.src, rule.dst, mode, saturate=saturate)
                for controls in _states(rule):
                    yield CheckedCast(resolution=resolution, controls=controls)


def _states(rule: CastRule) -> Iterator[CastControls]:
    """The states of CTRL[48] and CTRL[50] that a row tells apart."""
    yield DEFAULT_CONTROLS
    if rule.saturation != rule.overflow:
        yield CastControls(inf_nan_mode=False)
    if rule.saturation_with_nan != rule.saturation:
        yield CastControls(inf_nan_mode=False, fp8_nan=True)


@functools.cache
def casts_of(family: str) -> Mapping[str, CheckedCast]:
    """Every pair, mode, saturation mode and state of CTRL[48] and CTRL[50] of a family, by name.

    Modes that AscendC's Cast lacks are left out: no kernel can ask a device for them.
    """
    return MappingProxyType({str(cast): cast for cast in _every_cast(family)})


def family_of(chip: str) -> str:
    """The family of a chip by its name; of one that is not known A2 and A3."""
    return CHIPS[chip].isa if chip in CHIPS else A2_A3


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
            last = [dst.max_code, dst.code_of_rank(dst.max_rank - 1)]
            ends = values_of(np.array(last, dst.code_dtype), dst)
            most, before = in_numpy(ends, dst).astype(np.float64)
            beyond = (size >= 2 * most - before) | (magnitudes == dst.inf_code)
            if dst.nan_code is not None:
                beyond |= expected == dst.nan_code
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
        families: whose casts show it.
    """

    name: str
    assumed: str
    holds: Callable[[CastElements], Mask | bool]
    is_rounding: bool = False
    families: tuple[str, ...] = (A2_A3, ASCEND_950)


# In order: an element belongs to the first that holds.
BEHAVIOURS: Final = (
    Behaviour(
        name="NaN to integers",
        assumed="0",
        holds=lambda e: e.nan & e.is_to_int,
    ),
    Behaviour(
        name="NaN with CTRL[50] = 1",
        assumed="kept in E5M2 and E4M3FN: 0x7F, though results saturate",
        holds=lambda e: e.nan & e.cast.controls.fp8_nan,
        families=(ASCEND_950,),
    ),
    Behaviour(
        name="NaN where results saturate",
        assumed="0",
        holds=lambda e: e.nan & e.cast.saturates,
    ),
    Behaviour(
        name="NaN pattern",
        assumed="FP16, BF16 0x7FFF, FP32 0x7FFFFFFF, E5M2, E4M3FN 0x7F, HF8 0x80, whatever the "
        "sign and the payload",
        holds=lambda e: e.nan,
    ),
    Behaviour(
        name="infinities",
        assumed="kept in floats (E4M3FN: NaN), or the largest number with CTRL[48] = 0; integers "
        "clamp",
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
        holds=lambda e: e.beyond & (not e.cast.controls.inf_nan_mode),
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


def behaviours_in(family: str) -> Mapping[str, str]:
    """The behaviours that the casts of a family show, and the assumption of each."""
    return {each.name: each.assumed for each in BEHAVIOURS if family in each.families}


def behaviours_of(cast: CheckedCast, codes: Codes, expected: Codes) -> npt.NDArray[np.intp]:
    """The place in BEHAVIOURS of each element of a cast."""
    held = in_numpy(values_of(codes, cast.src), cast.src)
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
