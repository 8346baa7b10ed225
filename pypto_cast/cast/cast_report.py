"""CastReport: counts and errors of a cast, measured in small pieces."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.report.report import Fact, Words, said
from pypto_cast.report.text_format import plural, printable
from simulator.numbers import elementwise, float_environment
from simulator.numbers.convert import INF_NAN, Conversion, in_numpy
from simulator.numbers.formats import BF16, FP16, FP32, FloatFormat, Format, IntFormat
from simulator.numbers.literals import number_of
from simulator.numbers.rounding import Bools, RoundMode

PIECE_ELEMS: Final = 1 << 16
"""Elements looked at together, so that they stay in a cache and a report needs a few MB."""
METER_ELEMS: Final = 1 << 15
"""Elements measured together, so that the scratch memory stays in a cache."""
# fmt: off
_REPORTED: Final = (
    "elems", "overflows", "nans_in", "nans_out", "subnormals", "zeros", "inexact",
    "ulp_max", "ulp_mean", "relative_max", "relative_mean",
)
# fmt: on
_FORMATS: Final = (FP32, FP16, BF16)
_MAGNITUDE: Final = np.uint32(0x7FFFFFFF)
_EXPONENT: Final = np.uint32(0x7F800000)
_LEAST_SUM, _MOST_SUM = 1e-30, 1e37
"""Sums of squares outside have lost numbers that FP32 cannot hold."""

_Values = npt.NDArray[Any]
_Wide = npt.NDArray[np.float64]
_Codes = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The element with the largest error: the first one in row-major order.

    Attributes:
        tensor: name of its tensor.
        index: position along each axis.
        source: value before the cast.
        result: value after it.
    """

    tensor: str
    index: tuple[int, ...]
    source: float
    result: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CastReport:
    """Counts and errors of one cast, or of several added up with `+`.

    Counts are exact. Errors are taken where source and result are both finite, and are exact for
    every format but INT64, whose values beyond 2**53 are rounded to float64 before they are
    compared. Relative errors and sums between float formats are off by some 1e-6 of themselves.

    Attributes:
        elems: elements looked at.
        overflows: finite source values whose whole part an integer destination cannot hold, or
            that exceed the largest number of a float destination by a last place or more, or became
            infinite.
        nans_in: NaNs in the source.
        nans_out: NaNs in the result.
        subnormals: results that are subnormal (zero is not) of values that were not.
        zeros: results that are zero although the source is a number other than zero.
        inexact: finite source values whose result is another value (-0 and 0 are the same).
        compared: elements of which source and result are finite.
        ulp_max: largest error, in last places of the destination at the result.
        ulp_sum: sum of these errors.
        relative_elems: compared elements whose source is not zero.
        relative_max: largest error as a fraction of the source value.
        relative_sum: sum of these errors.
        signal_sum: sum of the squares of compared source values; infinite beyond float64.
        noise_sum: sum of the squares of their errors.
        worst: where `ulp_max` is; None if nothing is inexact.
    """

    elems: int = 0
    overflows: int = 0
    nans_in: int = 0
    nans_out: int = 0
    subnormals: int = 0
    zeros: int = 0
    inexact: int = 0
    compared: int = 0
    ulp_max: float = 0.0
    ulp_sum: float = 0.0
    relative_elems: int = 0
    relative_max: float = 0.0
    relative_sum: float = 0.0
    signal_sum: float = 0.0
    noise_sum: float = 0.0
    worst: Worst | None = None

    @property
    def snr_db(self) -> float | None:
        """Signal to noise in decibels; None if nothing has an error, or nothing is compared."""
        if not self.noise_sum or not self.signal_sum:
            return None
        return 10 * math.log10(self.signal_sum / self.noise_sum)

    @property
    def ulp_mean(self) -> float:
        """Mean error of the compared elements; 0 if there are none."""
        return self.ulp_sum / self.compared if self.compared else 0.0

    @property
    def relative_mean(self) -> float:
        """Mean relative error of the compared elements other than zero; 0 if there are none."""
        return self.relative_sum / self.relative_elems if self.relative_elems else 0.0

    @property
    def document(self) -> dict[str, Any]:
        """The report for JSON."""
        worst = None if self.worst is None else dataclasses.asdict(self.worst)
        return {**{name: getattr(self, name) for name in _REPORTED}, "worst": worst}

    def facts(self, key: str = "report") -> tuple[Fact, ...]:
        """The report for people: rounded, out of range, NaN; then errors if there are any.

        Args:
            key: its name in JSON; empty: none.
        """
        numbers = (
            f"{plural(self.elems, 'element')}, {self.inexact:,} inexact, "
            f"{plural(self.overflows, 'overflow')}\n"
            f"{self.nans_in:,} NaN in, {self.nans_out:,} out; "
            f"{self.subnormals:,} became subnormal, {self.zeros:,} became zero"
        )
        held = self.document if key else None
        found = [Fact(key=key, label="numbers", value=Words(value=held, text=numbers))]
        if self.worst is not None:
            worst = self.worst
            where = f"{printable(worst.tensor)} {list(worst.index)}".strip()
            error = (
                f"largest {self.ulp_max:.4g} ulp ({self.relative_max:.2g} relative), "
                f"mean {self.ulp_mean:.4g} ulp ({self.relative_mean:.2g})\n"
                f"largest at {where}: {worst.source:.9g} -> {worst.result:.9g}"
            )
            found.append(said("error", error))
        return tuple(found)

    def __add__(self, other: CastReport) -> CastReport:
        sums = {
            name: getattr(self, name) + getattr(other, name)
            for name in self.__slots__
            if name not in ("ulp_max", "relative_max", "worst")
        }
        return CastReport(
            **sums,
            ulp_max=max(self.ulp_max, other.ulp_max),
            relative_max=max(self.relative_max, other.relative_max),
            worst=other.worst if other.ulp_max > self.ulp_max else self.worst,
        )


def report(
    source_values: _Values,
    result_values: _Values,
    src_format: Format,
    dst_format: Format,
    *,
    name: str = "",
    piece_elems: int = PIECE_ELEMS,
) -> CastReport:
    """Compare a tensor before and after a cast.

    A last place is 2**quantum of the destination at the result, 1 for integers. FP32 to FP32
    rounds to integral values, so there it is never below 1. NaN and infinity, and finite values
    that became infinite, are counted but have no error.

    Args:
        source_values: any shape and memory order; only read.
        result_values: the same shape.
        src_format: format of the source values.
        dst_format: format of the results.
        name: the tensor's, kept with the worst element.
        piece_elems: elements looked at together.

    Raises:
        ValueError: the shapes differ.
    """
    if source_values.shape != result_values.shape:
        raise ValueError(
            f"a report compares equal shapes, not {list(source_values.shape)} and "
            f"{list(result_values.shape)}"
        )
    reporter = Reporter(src_format, dst_format)
    total = CastReport()
    pieces = zip(
        _pieces(source_values, piece_elems), _pieces(result_values, piece_elems), strict=True
    )
    for number, (source, result) in enumerate(pieces):
        start = number * piece_elems
        total += reporter.report(source, result, source_values.shape, start=start, name=name)
    return total


class Reporter:
    """Reports on blocks of a tensor in scratch memory of its own; not for several threads at once.

    Args:
        src_format: format of the source values.
        dst_format: format of the results.
    """

    def __init__(self, src_format: Format, dst_format: Format) -> None:
        self._formats = src_format, dst_format
        self._meter = FloatMeter.of(src_format, dst_format)

    def report(
        self,
        source: _Values,
        result: _Values,
        shape: tuple[int, ...],
        *,
        start: int = 0,
        name: str = "",
    ) -> CastReport:
        """Compare a block before and after a cast; see `report`.

        Args:
            source: values, 1-D and contiguous.
            result: as many.
            shape: of the whole tensor, in which the worst element has its index.
            start: where the block begins in it, in row-major order.
            name: the tensor's.
        """
        total = CastReport()
        source, result = map(in_numpy, (source, result), self._formats)
        for begin in range(0, source.size, METER_ELEMS):
            before = source[begin : begin + METER_ELEMS]
            after = result[begin : begin + METER_ELEMS]
            piece, position = self._measured(before, after)
            if piece.ulp_max > total.ulp_max:
                index = np.unravel_index(start + begin + position, shape)
                worst = Worst(
                    tensor=name,
                    index=tuple(int(i) for i in index),
                    source=before[position].item(),
                    result=after[position].item(),
                )
                piece = dataclasses.replace(piece, worst=worst)
            total = total + piece
        return total

    def _measured(self, source: _Values, result: _Values) -> tuple[CastReport, int]:
        src, dst = self._formats
        if self._meter is not None and source.dtype.isnative and result.dtype.isnative:
            found = self._meter(source.view(src.code_dtype), result.view(dst.code_dtype))
            if found is not None:
                return found
        return _measure(source, result, src, dst)


def _quotients(
    before: npt.NDArray[np.float32], after: npt.NDArray[np.float32], least_normal: float
) -> npt.NDArray[np.float64]:
    """The errors by the power of two of the result, or by the least normal one."""
    source, result = before.astype(np.float64), after.astype(np.float64)
    powers = np.frexp(np.maximum(np.abs(result), least_normal))[1]
    return np.abs(result - source) / np.ldexp(0.5, powers)


class FloatMeter:
    """Measures the errors of a cast between float formats on pieces of finite numbers.

    FP32 holds every value of FP16 and BF16, and the difference between a value and the nearest ones
    of a narrower format, so the errors are exact in it, but for a number far below a subnormal one
    that it becomes: the greatest of these is computed anew in FP64. Sums over a piece are off by
    some 1e-6 of themselves. It has scratch memory, so it is not for several threads at a time.

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

    def __call__(self, source: _Codes, result: _Codes) -> tuple[CastReport, int] | None:
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
        ulp_max, ulp_sum = float(work[position]), float(work.sum()) * scale
        if flags.any():
            tied = np.flatnonzero(work == work[position])
            ulps = _quotients(before[tied], after[tied], 2.0**self._dst.emin)
            position, ulp_max = int(tied[ulps.argmax()]), float(ulps.max())
        ulp_max *= scale
        signal = _squares(before)
        np.maximum(bits, np.uint32(1), out=bits)  # zeros have no error
        with float_environment.quiet():
            np.divide(error, magnitude, out=work)
            relative_sum = float(work.sum())
        if not math.isfinite(relative_sum):  # a subnormal number that was rounded up
            return None
        return CastReport(
            elems=count,
            subnormals=subnormals,
            zeros=zeros,
            inexact=inexact,
            compared=count,
            ulp_max=ulp_max,
            ulp_sum=ulp_sum,
            relative_elems=count - source_zeros,
            relative_max=float(work.max()),
            relative_sum=relative_sum,
            signal_sum=signal,
            noise_sum=noise,
        ), position

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


def _widening(fmt: FloatFormat) -> elementwise.Loop:
    step = Conversion(src=fmt, dst=FP32, mode=RoundMode.RINT, policy=INF_NAN)
    return elementwise.loop((step,))


def _float_code(value: float) -> np.uint32:
    return np.uint32(np.array(value, np.float32).view(np.uint32))


def _pieces(values: _Values, elems: int) -> Iterator[_Values]:
    """Stretches of a tensor in row-major order; only one is copied at a time, if any."""
    flat = values.reshape(-1) if values.flags.c_contiguous else values.flat
    for start in range(0, values.size, elems):
        yield flat[start : start + elems]


@float_environment.quiet()
def _measure(source: _Values, result: _Values, src: Format, dst: Format) -> tuple[CastReport, int]:
    """Report on one piece; with it, the position of the largest error."""
    before, after = source.astype(np.float64), result.astype(np.float64)
    finite = np.isfinite(before)
    compared = finite & np.isfinite(after)
    error = np.abs(np.subtract(after, before, out=np.zeros_like(after), where=compared))
    ulp = np.ldexp(error, -_quanta(after, src, dst))
    nonzero = compared & (before != 0)
    relative = np.divide(error, np.abs(before), out=np.zeros_like(error), where=nonzero)
    return CastReport(
        elems=before.size,
        overflows=_count(finite & _overflows(before, ulp, after, dst)),
        nans_in=_count(np.isnan(before)),
        nans_out=_count(np.isnan(after)),
        subnormals=_count(_subnormal(after, dst) & ~_subnormal(before, src)),
        zeros=_count((after == 0) & (before != 0) & ~np.isnan(before)),
        inexact=_count(finite & _differs(source, result, before, after)),
        compared=_count(compared),
        ulp_max=float(ulp.max(initial=0.0)),
        ulp_sum=float(ulp.sum()),
        relative_elems=_count(nonzero),
        relative_max=float(relative.max(initial=0.0)),
        relative_sum=float(relative.sum()),
        signal_sum=_squares(before[compared]),
        noise_sum=_squares(error),
    ), int(ulp.argmax())


def _squares(values: _Codes) -> float:
    """The sum of squares, in float64 where FP32 could lose some of it."""
    found = float(np.einsum("i,i->", values, values))
    if _LEAST_SUM < found < _MOST_SUM:
        return found
    wide = values.astype(np.float64)
    return float(np.einsum("i,i->", wide, wide))


def _count(flags: Bools) -> int:
    return int(np.count_nonzero(flags))


def _overflows(before: _Wide, ulp: _Wide, after: _Wide, fmt: Format) -> Bools:
    """Marks finite values that are too large for the format, not merely rounded at its limit."""
    if isinstance(fmt, IntFormat):
        whole = np.trunc(before)
        # float64 has no 2**63 - 1, but the first value beyond it.
        out_of_range: Bools = (whole < float(fmt.min)) | (whole >= float(fmt.max + 1))
        return out_of_range
    largest = float(number_of(fmt.max_code, fmt).magnitude)
    too_large: Bools = (np.abs(before) > largest) & (~np.isfinite(after) | (ulp >= 1))
    return too_large


def _subnormal(values: _Wide, fmt: Format) -> Bools:
    if isinstance(fmt, IntFormat):
        return np.zeros(values.shape, np.bool_)
    subnormal: Bools = (values != 0) & (np.abs(values) < 2.0**fmt.emin)
    return subnormal


def _quanta(values: _Wide, src: Format, dst: Format) -> npt.NDArray[np.int32]:
    """The exponent of the last place at each result; of values that are not finite, any."""
    if isinstance(dst, IntFormat):
        return np.zeros(values.shape, np.int32)
    _, exponent = np.frexp(values)
    leading = np.where(values == 0, np.int32(dst.emin), exponent - 1)
    quanta = dst.quanta(leading).astype(np.int32)
    return np.maximum(quanta, 0) if src is dst else quanta


def _differs(source: _Values, result: _Values, before: _Wide, after: _Wide) -> Bools:
    """Marks where two values differ, exactly; float64 is exact for all but INT64."""
    differs: Bools = before != after
    for values, wide in ((source, before), (result, after)):
        if values.dtype.kind == "i" and values.dtype.itemsize == 8:
            # An INT64 that float64 had to round equals no value of a narrower float.
            inside = wide < 2.0**63
            differs = differs | ~inside | (np.where(inside, wide, 0).astype(np.int64) != values)
    if source.dtype.kind == result.dtype.kind == "i":
        differs = source.astype(np.int64) != result.astype(np.int64)
    return differs
