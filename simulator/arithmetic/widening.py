"""Moving results outward by as much as is not known of an operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.arithmetic.ends import Ends, either
from simulator.arithmetic.operation import Array, Operation
from simulator.arithmetic.total_order import (
    Bools,
    is_ordinary,
    outward,
    outward_ordinary,
    same_code,
    signed_codes,
)
from simulator.arithmetic.trust import Trust
from simulator.numbers.formats import FloatFormat, Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Widening:
    """The part of a result's interval that an operation itself adds.

    Attributes:
        operation: the row.
        fmt: the format that the instruction runs in.
        ulps: codes on either side.
        flushes: subnormal operands and results may become zero.
    """

    operation: Operation
    fmt: Format
    ulps: int
    flushes: bool

    @staticmethod
    def of(operation: Operation, fmt: Format, trust: Trust) -> Widening:
        """Takes from a row what is not known under a choice of what to trust."""
        return Widening(
            operation=operation,
            fmt=fmt,
            ulps=operation.ulps(fmt, trust),
            flushes=operation.may_flush(fmt, trust),
        )

    @property
    def is_none(self) -> bool:
        """Exact operands give an exact result."""
        return self.ulps == 0 and not self.flushes

    def operand(self, ends: Ends) -> Ends:
        """Let subnormal operands be zero, where the device may flush them."""
        return self._flushed(ends) if self.flushes else ends

    def result(self, ends: Ends, operands: Sequence[Ends]) -> Ends:
        """Move the ends of a piece of results outward."""
        if self.is_none or not isinstance(self.fmt, FloatFormat):
            return ends
        if self.ulps:
            low, high = self._outward(ends, operands)
            ends = Ends(low=low, high=high, nan=ends.nan)
        return self._flushed(ends) if self.flushes else ends

    def _flushed(self, ends: Ends) -> Ends:
        if not isinstance(self.fmt, FloatFormat):
            return ends
        low, high = (
            self._zero_if(end, self.fmt, negative=negative)
            for end, negative in ((ends.low, False), (ends.high, True))
        )
        if low is ends.low and high is ends.high:
            return ends
        return Ends(low=low, high=high, nan=ends.nan)

    @staticmethod
    def _zero_if(end: Array, fmt: FloatFormat, *, negative: bool) -> Array:
        """Replace subnormal ends of one sign by the zero of that sign."""
        codes = end.view(fmt.code_dtype)
        sign = fmt.sign_code if negative else 0
        subnormal = (codes - codes.dtype.type(sign + 1)) < (1 << fmt.man_bits) - 1
        if not subnormal.any():
            return end
        return np.where(subnormal, codes.dtype.type(sign), codes).view(fmt.dtype)

    def _outward(self, ends: Ends, operands: Sequence[Ends]) -> tuple[Array, Array]:
        assert isinstance(self.fmt, FloatFormat)
        low, high = ends.low, ends.high
        ordinary = is_ordinary(low, self.fmt, self.ulps) and (
            low is high or is_ordinary(high, self.fmt, self.ulps)
        )
        if ordinary and self.operation.keeps_specials:
            return outward_ordinary(low, high, self.ulps, self.fmt)
        kept = self._settled(operands)
        if ordinary and kept[0] is None and kept[1] is None:
            return outward_ordinary(low, high, self.ulps, self.fmt)
        return outward(low, high, self.ulps, self.fmt, kept)

    def _settled(self, operands: Sequence[Ends]) -> tuple[Bools | None, Bools | None]:
        """Finds lower and upper ends that are certain in spite of the bound.

        The vendor's tables give the results of zero, infinity and NaN; a point is meant, for the
        neighbours of a zero are as uncertain as any number.
        """
        assert isinstance(self.fmt, FloatFormat)
        kept = None
        for x in operands:
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


def _is_special(values: Array, fmt: FloatFormat) -> Bools:
    """Tells whether values are zero, infinite or NaN."""
    codes = signed_codes(values, fmt) & np.array(fmt.sign_code - 1).astype(f"i{fmt.bits // 8}")
    codes -= 1
    special: Bools = codes.view(fmt.code_dtype) >= fmt.code_dtype.type(fmt.max_code)
    return special
