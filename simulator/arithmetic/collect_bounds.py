"""Collecting the bounds of a result, piece by piece."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from simulator.arithmetic.interval import Bounds, Enclosure, Index, Interval, all_same_code
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import Bools, same_code
from simulator.arithmetic.trust import Causes
from simulator.numbers import result_memory
from simulator.numbers.formats import BOOL, Format

_FEW: Final = 8
"""Causes are found for the open elements alone where at most one of so many is open."""


class BoundsCollector:
    """The interval of a result under construction.

    What is alike everywhere takes no memory: a cause that is the only one, and NaN where there is
    none.

    Args:
        shape: of the result.
        dtype: of its values.
        operands: the operands, for the causes they hand on.
        fmt: their format.
        own_width: how many codes the operation itself adds, 0 if it adds nothing.
        cause: the caller's index of the operation.
        names_choices: causes hold choices, those of all operands.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        operands: Sequence[Enclosure],
        fmt: Format,
        *,
        own_width: int,
        cause: int,
        names_choices: bool = False,
    ) -> None:
        self.shape = shape
        self.low: Array = new_array(shape, dtype)
        self.high: Array = new_array(shape, dtype)
        self.may_be_nan: Bools | None = None
        self.any_open = False
        self._fmt = fmt
        self._own_width = own_width
        self._names_choices = names_choices
        self._own_cause = np.uint16(cause)
        self._sources = [x.interval for x in operands if x.interval is not None]
        self._is_condition = [
            x.values.dtype == BOOL.dtype for x in operands if x.interval is not None
        ]
        self._cause: Causes | None = None
        if self._only_cause() is None:
            self._cause = new_array(shape, np.dtype(np.uint16))

    def _only_cause(self) -> Causes | None:
        """The causes, where they can be taken as they are."""
        if self._names_choices:
            return None
        if len(self._sources) == 1 and not self._own_width:
            return np.broadcast_to(self._sources[0].cause, self.shape)
        if not self._sources:
            return np.broadcast_to(self._own_cause, self.shape)
        firsts = {int(x.cause.flat[0]) for x in self._sources if x.cause.size}
        if not self._own_width and len(firsts) == 1 and all(map(_is_uniform, self._sources)):
            return np.broadcast_to(self._sources[0].cause, self.shape)
        return None

    def put(self, index: Index, ends: Bounds, choices: Any = 0) -> None:
        """Take in the ends of one piece.

        Args:
            index: of the piece.
            ends: of its elements.
            choices: that the operation itself adds, as bits.
        """
        low, high = self.low[index], self.high[index]
        np.copyto(low, ends.low)
        np.copyto(high, ends.high)
        nan = ends.nan if ends.nan is not None and ends.nan.any() else None
        if nan is not None:
            if self.may_be_nan is None:
                self.may_be_nan = np.zeros(self.shape, np.bool_)
            np.copyto(self.may_be_nan[index], nan)
        if self._cause is None:
            self.any_open = self.any_open or nan is not None or not all_same_code(low, high)
            return
        is_open = ~same_code(low, high)
        if nan is not None:
            is_open |= nan
        count = int(np.count_nonzero(is_open))
        self.any_open = self.any_open or count > 0
        cause = self._cause[index]
        if self._names_choices:
            np.copyto(cause, choices)
            for source in self._sources:
                cause |= np.broadcast_to(source.cause, self.shape)[index]
            cause *= is_open
            return
        if count * _FEW > cause.size:
            np.copyto(cause, self._widest(index))
        else:
            cause.fill(0)
            if count:
                cause[is_open] = self._widest(index, is_open)

    def _widest(self, index: Index, among: Bools | None = None) -> Causes:
        """Of several causes the wider interval's; at a tie the earlier, which is the lower index.

        The operation's own cause is the last one.
        """
        found = [
            (piece.widths(BOOL if is_condition else self._fmt), piece.cause)
            for source, is_condition in zip(self._sources, self._is_condition, strict=True)
            for piece in (source.piece(self.shape, index, among),)
        ]
        widths, causes = found[0]
        for width, cause in found[1:]:
            if any(causes.strides) or any(cause.strides):
                wins = (width > widths) | (width == widths) & (cause < causes)
                causes = np.where(wins, cause, causes)
            else:
                one, other = (int(each.flat[0]) for each in (causes, cause))
                causes = _chosen(width >= widths if other < one else width > widths, other, one)
            np.maximum(width, widths, out=widths)
        if self._own_width:
            own, narrow = int(self._own_cause), widths < self._own_width
            if any(causes.strides):
                causes = np.where(narrow, self._own_cause, causes)
            else:
                causes = _chosen(narrow, own, int(causes.flat[0]))
        return causes

    def interval(self) -> Interval | None:
        """The interval, or None where every element turned out certain."""
        if not self.any_open:
            return None
        cause = self._only_cause() if self._cause is None else self._cause
        assert cause is not None
        return Interval(low=self.low, high=self.high, may_be_nan=self.may_be_nan, cause=cause)


def _chosen(where: Bools, cause: int, other: int) -> Causes:
    """One of two causes for each element."""
    chosen: Causes = where.astype(np.uint16)
    chosen *= np.uint16(cause ^ other)
    chosen ^= np.uint16(other)
    return chosen


def _is_uniform(interval: Interval) -> bool:
    return not any(interval.cause.strides) or interval.cause.size <= 1


def new_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A C-contiguous array of any content; a large one may have the memory of one that is gone."""
    return result_memory.empty(math.prod(shape), dtype).reshape(shape)
