"""The blocks that a product is computed in, and the result that they make up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from simulator.arithmetic.interval import Enclosure, Index, Interval
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import Bools, same_code

BLOCK_ELEMS: Final = 1 << 21
"""The most elements of an operand that are held in another format at a time."""


def spans(lines: int, terms: int) -> Iterator[slice]:
    """Cut the lines of an operand into blocks."""
    step = max(1, BLOCK_ELEMS // max(1, terms))
    for start in range(0, lines, step):
        yield slice(start, min(lines, start + step))


class ProductResult:
    """Values and interval of a product; one that is certain everywhere has no interval.

    Args:
        shape: of the product.
        dtype: of its values.
        cause: the caller's index of the operation.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[np.generic], cause: int) -> None:
        self._values: Array = np.empty(shape, dtype)
        self._own_cause = np.uint16(cause)
        self._ends: tuple[Array, Array] | None = None
        self._may_be_nan: Bools | None = None
        self._cause: Array | None = None
        self._done: list[Index] = []

    def put(
        self,
        index: Index,
        values: Array,
        low: Array,
        high: Array,
        may_be_nan: Bools | None = None,
        cause: Array | None = None,
    ) -> None:
        """Take in a block; without `cause` its open elements have the operation's own."""
        self._values[index] = values
        is_open = may_be_nan is not None and bool(may_be_nan.any())
        if is_open or not bool(same_code(low, high).all()):
            if self._ends is None:
                self._ends = np.empty_like(self._values), np.empty_like(self._values)
                self._cause = np.full(self._values.shape, self._own_cause)
                for before in self._done:
                    self._write_ends(before, self._values[before], self._values[before])
            self._write_ends(index, low, high)
            assert self._cause is not None
            if cause is not None:
                self._cause[index] = cause
            if may_be_nan is not None and may_be_nan.any():
                if self._may_be_nan is None:
                    self._may_be_nan = np.zeros(self._values.shape, np.bool_)
                self._may_be_nan[index] = may_be_nan
        elif self._ends is not None:
            self._write_ends(index, low, high)
        self._done.append(index)

    def _write_ends(self, index: Index, low: Array, high: Array) -> None:
        assert self._ends is not None
        self._ends[0][index], self._ends[1][index] = low, high

    def enclosure(self) -> Enclosure:
        """The whole, once every block is in."""
        if self._ends is None:
            return Enclosure(values=self._values)
        assert self._cause is not None
        low, high = self._ends
        interval = Interval(low=low, high=high, may_be_nan=self._may_be_nan, cause=self._cause)
        return Enclosure(values=self._values, interval=interval)
