"""The ends of the intervals of a piece of an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import Bools, greater, is_nan, lesser, same_code
from simulator.numbers.formats import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The interval of a piece: lower ends, upper ends, and where NaN is possible besides.

    `is_normal` says that all ends are known to be normal numbers.
    """

    low: Array
    high: Array
    nan: Bools | None = None
    is_normal: bool = False

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


def changed(before: Ends, after: Ends) -> Bools:
    """Finds the elements whose interval is another one."""
    found = ~same_code(before.low, after.low)
    if before.low is not before.high or after.low is not after.high:
        found |= ~same_code(before.high, after.high)
    if before.nan is not after.nan:
        none = np.zeros((), np.bool_)
        found |= (none if before.nan is None else before.nan) != (
            none if after.nan is None else after.nan
        )
    return found


class Choices:
    """The choices that the elements of a piece pass through, as bits.

    Args:
        are_named: they are looked for.
    """

    def __init__(self, are_named: bool) -> None:
        self.are_named = are_named
        self.bits: Any = np.uint16(0)

    def note(self, bits: int, before: Ends, after: Ends) -> None:
        """Add the bits of a choice to the elements that are another interval without it."""
        moved = after.low is not before.low or after.high is not before.high
        if self.are_named and bits and (moved or after.nan is not before.nan):
            self.bits = self.bits | changed(before, after) * np.uint16(bits)

    def add(self, where: Bools, bits: Any) -> None:
        """Add bits to some elements of the piece."""
        if self.are_named:
            added = np.zeros(where.shape, np.uint16)
            added[where] = bits
            self.bits = self.bits | added


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
