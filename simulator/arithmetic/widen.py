"""Widening of results by the uncertainty of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from simulator.arithmetic.computed import as_fp32
from simulator.arithmetic.interval import Bounds, Operands, either, union
from simulator.arithmetic.operation import Array, Operation
from simulator.arithmetic.total_order import (
    Bools,
    any_nan,
    greater,
    is_nan,
    is_normal,
    is_ordinary,
    lesser,
    outward,
    outward_ordinary,
    same_code,
    signed_codes,
)
from simulator.arithmetic.trust import (
    ASSUME_CORRECT_ROUNDING,
    ASSUME_INF_NAN_MODE,
    ASSUME_NAN_PATTERN,
    ASSUME_RNE,
    IEEE,
    Trust,
    choice_bits,
)
from simulator.numbers.formats import FP16, FloatFormat, Format, IntFormat


class Widening:
    """The part of a result's interval that an operation itself adds, under a choice of trust.

    Attributes:
        operation: the row.
        fmt: the format that the instruction runs in.
        trust: what is taken for granted.
        ulps: codes on either side.
        flushed_without: the assumptions without which subnormal operands and results may become
            zero; none: they stay.
        may_saturate: the float mode is not known: infinity may become the largest number, NaN +0.
        nan_is_open: the bits of a NaN are not known.
        is_none: exact operands give an exact result.
        rounds_alone: ends move by codes at most, and causes are indices.
    """

    def __init__(
        self, operation: Operation, fmt: Format, trust: Trust, *, inf_nan_mode: bool
    ) -> None:
        self.operation, self.fmt, self.trust = operation, fmt, trust
        self.ulps = operation.ulps(fmt, trust)
        self.flushed_without = operation.may_flush(fmt, trust)
        computes = not (operation.gives_truth or operation.copies)
        doubts_mode = inf_nan_mode and ASSUME_INF_NAN_MODE not in trust.assumed
        self.may_saturate = doubts_mode and computes and has_float_modes(operation, fmt)
        doubts_nan = isinstance(fmt, FloatFormat) and ASSUME_NAN_PATTERN not in trust.assumed
        self.nan_is_open = computes and doubts_nan
        others = self.flushed_without or self.may_saturate or self.nan_is_open
        self.is_none = not (self.ulps or others)
        has_bound = not self.ulps or operation.bound is not None
        self.rounds_alone = not (others or trust.names_choices) and has_bound

    @property
    def width(self) -> int:
        """The number of codes that it usually adds."""
        return max(2 * self.ulps, not self.is_none)

    @property
    def flush_bits(self) -> int:
        """The choices of whoever keeps subnormal numbers."""
        return choice_bits(*self.flushed_without)

    def operand(self, ends: Bounds) -> Bounds:
        """Let subnormal operands be zero, where the device may flush them."""
        if not self.flushed_without or not isinstance(self.fmt, FloatFormat):
            return ends
        if _are_normal(ends, self.fmt):
            return Bounds(low=ends.low, high=ends.high, is_normal=True)
        return self._flushed(ends)

    def steps(self) -> Iterator[tuple[int, Callable[[Bounds, Operands], Bounds]]]:
        """Yields the steps that move bounds outward, each with the choices that would close them.

        Each step takes the ends of the one before, and the operands'.
        """
        if not isinstance(self.fmt, FloatFormat):
            return
        if self.ulps:
            yield self.rounding_bits, self._outward
        if self.flushed_without:
            yield self.flush_bits, self._flushed_result
        if self.may_saturate:
            yield choice_bits(ASSUME_INF_NAN_MODE), _perhaps_saturated
        if self.nan_is_open:
            yield choice_bits(ASSUME_NAN_PATTERN), self._with_open_nan

    @property
    def rounding_bits(self) -> int:
        """The choices of whoever rounds as IEEE 754 does."""
        bound = self.operation.bound
        if bound is not None:
            assumed = bound.name in IEEE.correctly_rounded
            return choice_bits(ASSUME_CORRECT_ROUNDING) if assumed else 0
        return choice_bits(ASSUME_RNE)

    def _flushed(self, ends: Bounds) -> Bounds:
        if not isinstance(self.fmt, FloatFormat):
            return ends
        low, high = (
            self._zero_if(end, self.fmt, negative=negative)
            for end, negative in ((ends.low, False), (ends.high, True))
        )
        if low is ends.low and high is ends.high:
            return ends
        return Bounds(low=low, high=high, nan=ends.nan)

    @staticmethod
    def _zero_if(end: Array, fmt: FloatFormat, *, negative: bool) -> Array:
        """Replace subnormal ends of one sign by the zero of that sign."""
        codes = end.view(fmt.code_dtype)
        sign = fmt.sign_code if negative else 0
        subnormal = (codes - codes.dtype.type(sign + 1)) < (1 << fmt.man_bits) - 1
        if not subnormal.any():
            return end
        return np.where(subnormal, codes.dtype.type(sign), codes).view(fmt.dtype)

    def _flushed_result(self, ends: Bounds, operands: Operands) -> Bounds:
        assert isinstance(self.fmt, FloatFormat)
        if _are_normal(ends, self.fmt):
            return Bounds(low=ends.low, high=ends.high, is_normal=True)
        return self._flushed(ends)

    def _with_open_nan(self, ends: Bounds, operands: Operands) -> Bounds:
        if ends.is_normal or not any_nan(ends.low, self.fmt):
            return ends
        return Bounds(
            low=ends.low, high=ends.high, nan=either(ends.nan, is_nan(ends.low, self.fmt))
        )

    def _outward(self, ends: Bounds, operands: Operands) -> Bounds:
        low, high = self._moved(ends.low, ends.high, operands)
        return Bounds(low=low, high=high, nan=ends.nan)

    def _moved(self, low: Array, high: Array, operands: Operands) -> tuple[Array, Array]:
        assert isinstance(self.fmt, FloatFormat)
        ordinary = is_ordinary(low, self.fmt, self.ulps) and (
            low is high or is_ordinary(high, self.fmt, self.ulps)
        )
        if ordinary and self.operation.keeps_specials:
            return outward_ordinary(low, high, self.ulps, self.fmt)
        kept = self._settled(operands, low)
        if ordinary and kept[0] is None and kept[1] is None:
            return outward_ordinary(low, high, self.ulps, self.fmt)
        return outward(low, high, self.ulps, self.fmt, kept)

    def _settled(self, operands: Operands, low: Array) -> tuple[Bools | None, Bools | None]:
        """Finds lower and upper ends that are certain in spite of the bound.

        The vendor's tables give the results of zero, infinity and NaN; a point is meant, for the
        neighbours of a zero are as uncertain as any number. Where nothing is rounded, no rounding
        is in doubt; that too holds of points alone.
        """
        assert isinstance(self.fmt, FloatFormat)
        kept = self._unrounded(operands, low)
        for x in operands:
            if x.is_normal:
                continue
            special = _is_special(x.low, self.fmt)
            if special.any():
                kept = either(kept, special if x.exact else special & same_code(x.low, x.high))
        if self.operation.settled is None:
            return kept, kept
        (x,) = operands
        below, above = (self.operation.settled(end, self.fmt) for end in (x.low, x.high))
        return (
            either(kept, below if below.any() else None),
            either(kept, above if above.any() else None),
        )

    def _unrounded(self, operands: Operands, low: Array) -> Bools | None:
        """Finds the results of points that are not rounded; None of a bound, or where none is."""
        measured = (self.operation.name, self.fmt) in self.trust.measured
        if self.operation.unrounded is None or measured:
            return None
        assert isinstance(self.fmt, FloatFormat)
        given = [as_fp32(x.low, self.fmt) for x in operands]
        kept = self.operation.unrounded(given, as_fp32(low, self.fmt))
        for x in operands:
            if not x.exact:
                kept &= same_code(x.low, x.high)
                if x.nan is not None:
                    kept &= ~x.nan
        return kept if kept.any() else None


def has_float_modes(operation: Operation, fmt: Format) -> bool:
    """True if results depend on the float mode: FP16 ones, and integers that may clamp."""
    return fmt is FP16 or (isinstance(fmt, IntFormat) and operation.saturates)


def saturated(ends: Bounds) -> Bounds:
    """The ends of FP16 results in saturation mode, which has neither infinity nor NaN."""
    most = np.finfo(np.float16).max
    zero = np.zeros_like(ends.low)
    low, high = (
        np.where(np.isnan(end), zero, np.clip(end, -most, most)) for end in (ends.low, ends.high)
    )
    if ends.nan is not None:
        low = np.where(ends.nan, lesser(low, zero, FP16), low)
        high = np.where(ends.nan, greater(high, zero, FP16), high)
    return Bounds(low=low, high=high)


def _perhaps_saturated(ends: Bounds, operands: Operands) -> Bounds:
    if ends.is_normal:
        return ends
    if ends.nan is None and np.isfinite(ends.low).all() and np.isfinite(ends.high).all():
        return ends
    return union(ends, saturated(ends), FP16)


def _are_normal(ends: Bounds, fmt: FloatFormat) -> bool:
    if ends.nan is not None or not is_normal(ends.low, fmt):
        return False
    return ends.high is ends.low or is_normal(ends.high, fmt)


def _is_special(values: Array, fmt: FloatFormat) -> Bools:
    """True where values are zero, infinite or NaN."""
    codes = signed_codes(values, fmt) & np.array(fmt.sign_code - 1).astype(f"i{fmt.bits // 8}")
    codes -= 1
    special: Bools = codes.view(fmt.code_dtype) >= fmt.code_dtype.type(fmt.max_code)
    return special
