"""Arrays under construction: values, ends, NaN flags and causes, written element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.arithmetic.interval import Enclosure, Interval, enclosed, exactly, unknown
from simulator.arithmetic.operation import Array
from simulator.arithmetic.trust import Causes
from simulator.numbers.formats import Format


class Cells:
    """The elements of a enclosure, to be overwritten.

    They have ends of their own only once something open is written.

    Args:
        x: what they hold at first; copied.
        fmt: its format.
    """

    def __init__(self, x: Enclosure, fmt: Format) -> None:
        self.values: Array = x.values.copy()
        self.fmt = fmt
        self._low = self._high = self.values
        self._nan = np.zeros((), np.bool_)
        self._cause: Causes = np.zeros((), np.uint16)
        self._has_ends = False
        if x.interval is not None:
            self._open(x.interval)

    def at(self, where: Any) -> Enclosure:
        """The elements at an index of numpy's."""
        interval = self._ends().piece(self.values.shape, where) if self._has_ends else None
        return Enclosure(values=np.asarray(self.values[where]), interval=interval)

    def put(self, where: Any, x: Enclosure) -> None:
        """Overwrite the elements at an index of numpy's."""
        if x.interval is not None and not self._has_ends:
            self._open(exactly(self.values))
        self.values[where] = x.values
        if self._has_ends:
            self.put_interval(where, x.interval or exactly(x.values))

    def put_interval(self, where: Any, interval: Interval) -> None:
        """Overwrite the interval at an index of numpy's, but not the values."""
        self._open(exactly(self.values))
        self._low[where], self._high[where] = interval.low, interval.high
        self._nan[where] = False if interval.may_be_nan is None else interval.may_be_nan
        self._cause[where] = interval.cause

    def forget(self, where: Any, cause: int) -> None:
        """Let the elements at an index of numpy's be anything."""
        self.put_interval(where, unknown(self.values[where], self.fmt, cause))

    def enclosure(self) -> Enclosure:
        """The elements as they are now."""
        if not self._has_ends:
            return Enclosure(values=self.values)
        return enclosed(self.values, self._low, self._high, self._nan, self._cause)

    def _ends(self) -> Interval:
        return Interval(low=self._low, high=self._high, may_be_nan=self._nan, cause=self._cause)

    def _open(self, interval: Interval) -> None:
        if self._has_ends:
            return
        shape, nan = self.values.shape, interval.may_be_nan
        self._low, self._high = np.array(interval.low), np.array(interval.high)
        self._nan = np.zeros(shape, np.bool_) if nan is None else np.array(nan)
        self._cause = np.array(np.broadcast_to(interval.cause, shape))
        self._has_ends = True
