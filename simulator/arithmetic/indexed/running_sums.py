"""Float sums whose terms come one by one, in an order that nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from simulator.arithmetic.any_order import reach
from simulator.arithmetic.cause_codes import meeting
from simulator.arithmetic.ends import Ends, union
from simulator.arithmetic.indexed.cells import Cells, as_interval
from simulator.arithmetic.interval import Quantity
from simulator.arithmetic.operation import Array
from simulator.arithmetic.spread import ends_of
from simulator.arithmetic.total_order import is_nan
from simulator.arithmetic.trust import Trust
from simulator.numbers import float_environment
from simulator.numbers.formats import FloatFormat

_COMMUTES: Final = 2
"""So many terms have one sum in either order; terms that are 0 do not count."""


class RunningSums:
    """The ends, magnitudes and number of the terms that each element of an array has taken up.

    Args:
        start: the elements before the first addition.
        fmt: the format in which the device adds.
    """

    def __init__(self, start: Quantity, fmt: FloatFormat) -> None:
        self.fmt = fmt
        self.low, self.high, self.magnitude = (np.zeros(start.shape) for _ in range(3))
        self.terms = np.zeros(start.shape, np.int64)
        self.add(..., start)

    @float_environment.quiet()
    def add(self, where: Any, term: Quantity, *, is_sure: bool = True) -> None:
        """Take up terms at an index of numpy's that names no element twice.

        Args:
            where: the index.
            term: one for each of the elements.
            is_sure: they are added; else they may be.
        """
        ends = ends_of(term, term.shape)
        undefined = is_nan(ends.low, self.fmt) | (False if ends.nan is None else ends.nan)
        low, high = (
            np.where(undefined, np.inf, end.astype(np.float64)) for end in (ends.low, ends.high)
        )
        self.terms[where] += (low != 0) | (high != 0)
        self.magnitude[where] += np.maximum(np.abs(low), np.abs(high))
        self.low[where] += low if is_sure else np.minimum(low, 0)
        self.high[where] += high if is_sure else np.maximum(high, 0)

    def start_again(self, where: Any, x: Quantity) -> None:
        """Replace what elements have taken up, as they are overwritten."""
        for array in (self.low, self.high, self.magnitude, self.terms):
            array[where] = 0
        self.add(where, x)

    @float_environment.quiet()
    def widened(self, x: Quantity, where: Any, trust: Trust, cause: int) -> Quantity:
        """Let sums that were added in some order have the bits of any order.

        Args:
            x: the sums of the elements at an index of numpy's.
            where: the index.
            trust: what is taken for granted.
            cause: the caller's index of the operation.
        """
        many = self.terms[where] > _COMMUTES
        if not many.any():
            return x
        bound = reach(
            self.low[where][many],
            self.high[where][many],
            self.magnitude[where][many],
            self.terms[where][many],
            self.fmt,
            trust,
        )
        hull: Ends = union(ends_of(x, x.shape).piece(many), bound, self.fmt)
        cells = Cells(x, self.fmt)
        held = 0 if x.interval is None else np.broadcast_to(x.interval.cause, x.shape)[many]
        cells.put_interval(many, as_interval(hull, meeting(trust, cause, held)))
        return cells.quantity()

    def copy(self) -> RunningSums:
        """The same, to go back to."""
        return self._moved(np.copy)

    def reshape(self, shape: tuple[int, ...]) -> RunningSums:
        """The same under another shape; what is added to either, both have."""
        return self._moved(lambda array: array.reshape(shape))

    def _moved(self, move: Callable[[Array], Array]) -> RunningSums:
        other = RunningSums.__new__(RunningSums)
        other.fmt = self.fmt
        other.low, other.high = move(self.low), move(self.high)
        other.magnitude, other.terms = move(self.magnitude), move(self.terms)
        return other
