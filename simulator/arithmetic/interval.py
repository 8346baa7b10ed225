"""What a device may give for each element, beside the value that is computed here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.operation import Array
from simulator.arithmetic.order import Bools, is_nan, keys, same_code
from simulator.formats import Format

Causes = npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The least and the greatest number that a device may give, an element.

    Ends that are both NaN say that the result is NaN. All arrays have the shape of the values;
    those that are alike everywhere may be views of one element.

    Attributes:
        low: the least number in the total order (-0 before +0), of the values' dtype.
        high: the greatest.
        may_be_nan: where NaN is possible besides; None: nowhere.
        cause: an index of the caller's own, of the operation that left the element open; without
            meaning where an element is certain.
    """

    low: Array
    high: Array
    may_be_nan: Bools | None
    cause: Causes

    def certain(self) -> Bools:
        """Where one code is possible."""
        certain = same_code(self.low, self.high)
        if self.may_be_nan is not None:
            certain = certain & ~self.may_be_nan
        return certain

    def widths(self, fmt: Format) -> npt.NDArray[Any]:
        """How many codes the ends lie apart; the most that there is, where NaN is possible."""
        high, low = keys(self.high, fmt), keys(self.low, fmt)
        widths: npt.NDArray[Any] = np.subtract(high, low).view(f"u{high.itemsize}")
        if self.may_be_nan is not None:
            widths[self.may_be_nan] = np.iinfo(widths.dtype).max
        return widths

    def contains(self, values: Array, fmt: Format) -> Bools:
        """Whether values are among those that a device may give; every NaN counts as one."""
        nan = is_nan(values, fmt)
        order = keys(values, fmt)
        within = ~nan & (keys(self.low, fmt) <= order) & (order <= keys(self.high, fmt))
        allowed = is_nan(self.low, fmt)
        if self.may_be_nan is not None:
            allowed = allowed | self.may_be_nan
        inside: Bools = within & ~is_nan(self.low, fmt) | nan & allowed
        return inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """An array of values, and what a device may give for them.

    Attributes:
        values: what this library computes, of the dtype of their format.
        interval: what a device may give; None: these bits.
    """

    values: Array
    interval: Interval | None = None

    @property
    def low(self) -> Array:
        """The least that a device may give."""
        return self.values if self.interval is None else self.interval.low

    @property
    def high(self) -> Array:
        """The greatest that a device may give; the same object as `low` where all is exact."""
        return self.values if self.interval is None else self.interval.high

    def certain(self) -> Bools:
        """Where one code is possible."""
        if self.interval is None:
            return np.ones(self.values.shape, np.bool_)
        return self.interval.certain()
