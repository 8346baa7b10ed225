"""The facts that results of casts tell: each element of a cast belongs to one of them.

Standings and sources of what is assumed: simulator/numbers/convert.py and the README.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.program import TileProgram
from simulator.numbers.convert import values_of
from simulator.numbers.formats import INT4, Codes, FloatFormat, IntFormat
from simulator.numbers.rounding import RoundMode

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The elements of a cast with what decides the fact they belong to.

    Attributes:
        program: the cast.
        values: what is cast, as numbers: float64, or int64 where the source is an integer.
        expected: the codes that this package gives for them.
    """

    program: TileProgram
    values: npt.NDArray[Any]
    expected: Codes

    @property
    def src(self) -> FloatFormat | IntFormat:
        return self.program.resolution.rule.src

    @property
    def dst(self) -> FloatFormat | IntFormat:
        return self.program.resolution.rule.dst

    @property
    def is_odd(self) -> bool:
        return self.program.resolution.mode is RoundMode.ODD

    @property
    def is_directed(self) -> bool:
        return self.program.resolution.mode in (RoundMode.FLOOR, RoundMode.CEIL, RoundMode.TRUNC)

    @property
    def truncates(self) -> bool:
        return any(cast.truncates for cast in self.program.resolution.casts)

    def everywhere(self, holds: bool) -> Mask:
        """A mask of all elements, or of none."""
        return np.full(self.values.shape, holds)

    def finite(self) -> Mask:
        """A mask of the values that are neither NaN nor infinite."""
        found: Mask = np.isfinite(self.values)
        return found

    def is_subnormal(self, fmt: FloatFormat | IntFormat) -> Mask:
        """A mask of the values between zero and the smallest normal number of a format."""
        if isinstance(fmt, IntFormat):
            return self.everywhere(False)
        found: Mask = (self.values != 0) & (np.abs(self.values) < np.ldexp(1.0, fmt.emin))
        return found

    def is_zero_result(self) -> Mask:
        """A mask of the results that are a zero of either sign, in a float format."""
        if isinstance(self.dst, IntFormat):
            return self.everywhere(False)
        magnitudes = self.expected & self.expected.dtype.type(self.dst.sign_code - 1)
        found: Mask = magnitudes == 0
        return found

    def is_beyond(self) -> Mask:
        """A mask of the finite values beyond the destination's numbers."""
        if isinstance(self.dst, IntFormat):
            too_far = (self.values > self.dst.max) | (self.values < self.dst.min)
        else:
            limit = values_of(np.array([self.dst.max_code], self.dst.code_dtype), self.dst)
            too_far = np.abs(self.values.astype(np.float64)) > float(limit[0])
        return too_far & self.finite()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """One thing that a device does with some elements.

    Attributes:
        name: what tables and files call it.
        assumed: what this package assumes.
        holds: which elements show it, if none before it in the table claims them.
    """

    name: str
    assumed: str
    holds: Callable[[Elements], Mask]


def _to_int(elements: Elements) -> bool:
    return isinstance(elements.dst, IntFormat)


# In order: an element belongs to the first that holds.
CONDUCTS: Final = (
    Conduct(
        name="NaN to integers",
        assumed="0",
        holds=lambda e: np.isnan(e.values) & _to_int(e),
    ),
    Conduct(
        name="NaN pattern",
        assumed="FP16 0x7FFF, BF16 0x7FFF, FP32 0x7FFFFFFF, whatever the sign and the payload",
        holds=lambda e: np.isnan(e.values),
    ),
    Conduct(
        name="infinities",
        assumed="kept in floats, or the largest number with CTRL[48] = 0; integers clamp",
        holds=lambda e: np.isinf(e.values),
    ),
    Conduct(
        name="integers out of range, low bits",
        assumed="SaturationMode.OFF keeps the low bits of the rounded number",
        holds=lambda e: e.is_beyond() & _to_int(e) & e.truncates,
    ),
    Conduct(
        name="integers out of range, clamped",
        assumed="the nearest end of the range",
        holds=lambda e: e.is_beyond() & _to_int(e),
    ),
    Conduct(
        name="overflow with CTRL[48] = 0",
        assumed="the largest number of the sign",
        holds=lambda e: e.is_beyond() & (not e.program.inf_nan_mode),
    ),
    Conduct(
        name="overflow of CAST_ODD",
        assumed="as IEEE 754 rounds toward zero, then the last bit is odd",
        holds=lambda e: e.is_beyond() & e.is_odd,
    ),
    Conduct(
        name="overflow under directed rounding",
        assumed="IEEE 754: away from zero infinity, toward zero the largest number",
        holds=lambda e: e.is_beyond() & e.is_directed,
    ),
    Conduct(
        name="overflow to nearest",
        assumed="infinity from half a last place above the largest number on",
        holds=lambda e: e.is_beyond(),
    ),
    Conduct(
        name="subnormal inputs",
        assumed="their value: none is flushed to zero",
        holds=lambda e: e.is_subnormal(e.src),
    ),
    Conduct(
        name="underflow of CAST_ODD",
        assumed="the last bit is odd: below the smallest subnormal number 0x0001",
        holds=lambda e: e.is_subnormal(e.dst) & e.is_odd,
    ),
    Conduct(
        name="sign of zero",
        assumed="that of the input, of zeros and of what rounds to zero",
        holds=lambda e: e.is_zero_result(),
    ),
    Conduct(
        name="subnormal results",
        assumed="gradual: none is flushed to zero",
        holds=lambda e: e.is_subnormal(e.dst),
    ),
    Conduct(
        name="INT4",
        assumed="two in a byte, the first in the low nibble",
        holds=lambda e: e.everywhere(INT4 in (e.src, e.dst)),
    ),
    Conduct(
        name="INT32 to FP16 by the deq scale",
        assumed="one rounding to nearest even of the integer",
        holds=lambda e: e.everywhere(any(c.is_scaled for c in e.program.resolution.casts)),
    ),
    Conduct(
        name="INT64 to FP32",
        assumed="one rounding, by the mode",
        holds=lambda e: e.everywhere(e.src.bits == 64 and e.dst.bits == 32 and not _to_int(e)),
    ),
    Conduct(
        name="rounding",
        assumed="one rounding, by the mode",
        holds=lambda e: e.everywhere(True),
    ),
)


def conducts_of(program: TileProgram, codes: Codes, expected: Codes) -> npt.NDArray[np.intp]:
    """The place in CONDUCTS of each element of a cast."""
    rule = program.resolution.rule
    held = values_of(codes, rule.src)
    is_int = isinstance(rule.src, IntFormat)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = held.astype(np.int64 if is_int else np.float64)
        elements = Elements(program=program, values=values, expected=expected)
        return np.select(
            [conduct.holds(elements) for conduct in CONDUCTS], list(range(len(CONDUCTS)))
        ).astype(np.intp)
