"""The ends of the intervals of a piece of an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import Bools, greater, is_nan, lesser
from simulator.numbers.formats import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The interval of a piece: lower ends, upper ends, and where NaN is possible besides."""

    low: Array
    high: Array
    nan: Bools | None = None

    @property
    def exact(self) -> bool:
        """Every element is one value."""
        return self.low is self.high and self.nan is None

    def piece(self, index: Any) -> Ends:
        """A piece of these ends."""
        low = self.low[index]
        high = low if self.low is self.high else self.high[index]
        return Ends(low=low, high=high, nan=None if self.nan is None else self.nan[index])


def either(a: Bools | None, b: Bools | None) -> Bools | None:
    """Joins two conditions; None holds nowhere."""
    if a is None or b is None:
        return b if a is None else a
    return np.asarray(np.logical_or(a, b))


def union(a: Ends, b: Ends, fmt: Format) -> Ends:
    """The ends of what either may be; where one of them is NaN, NaN is possible besides."""
    a_nan, b_nan = is_nan(a.low, fmt), is_nan(b.low, fmt)
    a_low, a_high = np.where(a_nan, b.low, a.low), np.where(a_nan, b.high, a.high)
    b_low, b_high = np.where(b_nan, a.low, b.low), np.where(b_nan, a.high, b.high)
    only_one = a_nan ^ b_nan
    return Ends(
        low=lesser(a_low, b_low, fmt),
        high=greater(a_high, b_high, fmt),
        nan=either(either(a.nan, b.nan), only_one if only_one.any() else None),
    )
