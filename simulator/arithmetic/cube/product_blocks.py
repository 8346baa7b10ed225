"""The blocks of a product of matrices, each of which is written once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simulator.arithmetic.interval import Enclosure, Index, Interval
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import Bools
from simulator.arithmetic.trust import Causes
from simulator.numbers import result_memory


class ProductBlocks:
    """A product while its blocks are written.

    It has ends of its own only once a block is open, and a cause for each element only where blocks
    differ in theirs.

    Args:
        shape: of the product.
        dtype: of its values.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.values: Array = _room(shape, dtype)
        self._low: Array | None = None
        self._high: Array | None = None
        self._nan: Bools | None = None
        self._cause: Causes | None = None
        self._are_written = self._is_open = False

    def put(self, index: Index, x: Enclosure) -> None:
        """Write a block."""
        self.values[index] = x.values
        ends = x.interval
        if ends is None:
            self.settle(index)
            return
        low, high = self.ends_at(index)
        low[...], high[...] = ends.low, ends.high
        if ends.may_be_nan is not None:
            if self._nan is None:
                self._nan = np.zeros(self.values.shape, np.bool_)
            self._nan[index] = ends.may_be_nan
        self.open(index, ends.cause)

    def ends_at(self, index: Index) -> tuple[Array, Array]:
        """The memory of the ends of a block, to write them to; `open` or `settle` comes next."""
        if self._low is None or self._high is None:
            self._low, self._high = (_room(self.values.shape, self.values.dtype) for _ in range(2))
            if self._are_written:
                self._low[...] = self._high[...] = self.values
        return self._low[index], self._high[index]

    def causes_at(self, index: Index) -> Causes:
        """The memory of the causes of a block, to write them to."""
        if self._cause is None or not any(self._cause.strides):
            held = self._cause
            self._cause = _room(self.values.shape, np.dtype(np.uint16))
            if self._are_written:
                self._cause[...] = 0 if held is None else held
        found: Causes = self._cause[index]
        return found

    def open(self, index: Index, cause: Causes | None) -> None:
        """Take note of a block whose ends are written, with its causes, unless they are, too."""
        if cause is not None:
            is_one = not any(cause.strides) and cause.size > 0
            if not is_one or not self._holds(int(cause.flat[0])):
                self.causes_at(index)[...] = cause
        self._are_written = self._is_open = True

    def settle(self, index: Index) -> None:
        """Take note of a block whose elements are certain, and whose values are written."""
        if self._low is not None and self._high is not None:
            self._low[index] = self._high[index] = self.values[index]
        if self._cause is not None and not self._holds(0):
            self.causes_at(index)[...] = 0
        self._are_written = True

    def enclosure(self) -> Enclosure:
        """The product, once all blocks are written."""
        if not self._is_open:
            return Enclosure(values=self.values)
        low, high, cause = self._low, self._high, self._cause
        if low is None or high is None or cause is None:
            raise AssertionError
        held = Interval(low=low, high=high, may_be_nan=self._nan, cause=cause)
        return Enclosure(values=self.values, interval=held)

    def _holds(self, cause: int) -> bool:
        """True if one cause stands for all blocks up to now, the first of which makes it so."""
        if self._cause is None and (not self._are_written or cause == 0):
            self._cause = np.broadcast_to(np.uint16(cause), self.values.shape)
        if self._cause is None or any(self._cause.strides):
            return False
        return int(self._cause.flat[0]) == cause


def _room(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return result_memory.empty(math.prod(shape), dtype).reshape(shape)
