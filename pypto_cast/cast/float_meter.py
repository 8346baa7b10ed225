"""Measures what a cast between float formats did to a piece of numbers, in scratch memory.

FP32 holds every value of FP16 and BF16, and the difference between a value and the nearest ones of
a narrower format, so the errors are exact in it; their sums over a piece are off by some 1e-6 of
themselves. A piece with NaN, infinity or overflow is left to the measure that takes everything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers import elementwise, float_environment
from simulator.numbers.convert import INF_NAN, Conversion
from simulator.numbers.formats import BF16, FP16, FP32, FloatFormat, Format
from simulator.numbers.rounding import RoundMode

METER_ELEMS: Final = 1 << 15
"""Elements measured together, so that the scratch memory stays in a cache."""
_FORMATS: Final = (FP32, FP16, BF16)
_MAGNITUDE: Final = np.uint32(0x7FFFFFFF)
_EXPONENT: Final = np.uint32(0x7F800000)
_LEAST_SUM, _MOST_SUM = 1e-30, 1e37
"""Sums of squares outside have lost numbers that FP32 cannot hold."""

_Codes = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Counts and sums of a piece of finite numbers; the names are those of `CastReport`."""

    elems: int
    subnormals: int
    zeros: int
    inexact: int
    ulp_max: float
    ulp_sum: float
    relative_elems: int
    relative_max: float
    relative_sum: float
    signal_sum: float
    noise_sum: float
    position: int


class FloatMeter:
    """Measures pieces of one cast; not for several threads at a time.

    Args:
        src: FP32, FP16 or BF16.
        dst: another one of them.
    """

    def __init__(self, src: FloatFormat, dst: FloatFormat) -> None:
        self._src, self._dst = src, dst
        self._widen = {fmt: _widening(fmt) for fmt in (src, dst) if fmt is not FP32}
        self._scratch = np.empty((5, METER_ELEMS), np.float32)
        self._flags = np.empty(METER_ELEMS, np.bool_)
        self._most = _float_code(2.0 ** (1 - dst.emin) * (2 - 2.0**-dst.man_bits))
        self._least_normal = {fmt: _float_code(2.0**fmt.emin) for fmt in (src, dst)}

    @staticmethod
    def of(src: Format, dst: Format) -> FloatMeter | None:
        """The meter of a pair; None for one that is not measured here."""
        if src is dst or not isinstance(src, FloatFormat) or not isinstance(dst, FloatFormat):
            return None
        return FloatMeter(src, dst) if {src, dst} <= set(_FORMATS) else None

    def __call__(self, source: _Codes, result: _Codes) -> Measured | None:
        """Measure a piece.

        It returns None unless all is finite, within the destination's range, and has errors that
        FP32 holds.

        Args:
            source: codes of `src`, 1-D and contiguous, at most `METER_ELEMS`.
            result: as many codes of `dst`.
        """
        count = source.size
        before, after, error, work, magnitude = self._scratch[:, :count]
        flags = self._flags[:count]
        before = self._wide(source, self._src, before)
        bits = magnitude.view(np.uint32)
        np.bitwise_and(before.view(np.uint32), _MAGNITUDE, out=bits)
        if int(bits.max(initial=0)) > self._most:
            return None
        after = self._wide(result, self._dst, after)
        np.subtract(after, before, out=error)
        np.not_equal(error, 0, out=flags)
        inexact = int(np.count_nonzero(flags))
        noise = _squares(error)
        np.abs(error, out=error)
        quantum = work.view(np.uint32)
        np.bitwise_and(after.view(np.uint32), _MAGNITUDE, out=quantum)
        small = self._least_normal[self._dst]
        np.less(quantum, small, out=flags)
        subnormals = zeros = source_zeros = 0
        if flags.any():
            subnormals, zeros, source_zeros = self._small(bits, quantum)
        np.bitwise_and(quantum, _EXPONENT, out=quantum)
        np.maximum(quantum, small, out=quantum)
        np.divide(error, work, out=work)
        position = int(work.argmax())
        scale = 2.0**self._dst.man_bits
        ulp_max, ulp_sum = float(work[position]) * scale, float(work.sum()) * scale
        signal = _squares(before)
        np.maximum(bits, np.uint32(1), out=bits)  # zeros have no error
        with float_environment.quiet():
            np.divide(error, magnitude, out=work)
            relative_sum = float(work.sum())
        if not math.isfinite(relative_sum):  # a subnormal number that was rounded up
            return None
        return Measured(
            elems=count,
            subnormals=subnormals,
            zeros=zeros,
            inexact=inexact,
            ulp_max=ulp_max,
            ulp_sum=ulp_sum,
            relative_elems=count - source_zeros,
            relative_max=float(work.max()),
            relative_sum=relative_sum,
            signal_sum=signal,
            noise_sum=noise,
            position=position,
        )

    def _small(self, bits: _Codes, after: _Codes) -> tuple[int, int, int]:
        """Results that became subnormal, those that became zero, and zeros that were there."""
        is_zero, was_zero = after == 0, bits == 0
        subnormal = (after < self._least_normal[self._dst]) & ~is_zero
        subnormal &= (bits >= self._least_normal[self._src]) | was_zero
        there = int(np.count_nonzero(was_zero))
        return int(np.count_nonzero(subnormal)), int(np.count_nonzero(is_zero & ~was_zero)), there

    def _wide(self, codes: _Codes, fmt: FloatFormat, out: _Codes) -> _Codes:
        if fmt is FP32:
            return codes.view(np.float32)
        self._widen[fmt](codes, out.view(np.uint32))
        return out


def _widening(fmt: FloatFormat) -> elementwise.Kernel:
    step = Conversion(src=fmt, dst=FP32, mode=RoundMode.RINT, policy=INF_NAN)
    return elementwise.kernel((step,))


def _float_code(value: float) -> np.uint32:
    return np.uint32(np.array(value, np.float32).view(np.uint32))


def _squares(values: _Codes) -> float:
    """The sum of squares, in float64 where FP32 could lose some of it."""
    found = float(np.einsum("i,i->", values, values))
    if _LEAST_SUM < found < _MOST_SUM:
        return found
    wide = values.astype(np.float64)
    return float(np.einsum("i,i->", wide, wide))
