"""The numbers that a device may give for each element, beside the value computed here.

An `Enclosure` is an array with its `Interval`, from operation to operation; `Bounds` are the
interval of a piece of it while an operation works.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import (
    Bools,
    any_nan,
    greater,
    is_nan,
    keys,
    lesser,
    same_code,
    signed_codes,
)
from simulator.arithmetic.trust import ASSUME_NAN_PATTERN, Causes, Trust, meeting, own_cause
from simulator.numbers import result_memory
from simulator.numbers.convert import values_of
from simulator.numbers.formats import FloatFormat, Format

Index = tuple[int | slice | EllipsisType, ...]

_PIECE_ELEMS: Final = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Interval:
    """The least and the greatest number that a device may give, an element.

    Bounds that are both NaN say that the result is NaN. All arrays have the shape of the values;
    those that are alike everywhere may be views of one element.

    Attributes:
        low: the least number in the total order (-0 before +0), of the values' dtype.
        high: the greatest.
        may_be_nan: where NaN is possible besides; None: nowhere. Where both ends are NaN: its bits
            are not known.
        cause: of what left the element open, see `cause_codes`; without meaning where an element is
            certain.
    """

    low: Array
    high: Array
    may_be_nan: Bools | None
    cause: Causes

    def __init__(self, *, low: Array, high: Array, may_be_nan: Bools | None, cause: Causes) -> None:
        _SET_LOW(self, low)
        _SET_HIGH(self, high)
        _SET_MAY_BE_NAN(self, may_be_nan)
        _SET_CAUSE(self, cause)

    def certain(self) -> Bools:
        """Finds the elements of which one code is possible."""
        certain = same_code(self.low, self.high)
        if self.may_be_nan is not None:
            certain = certain & ~self.may_be_nan
        return certain

    def map(self, move: Callable[[Array], Array]) -> Interval:
        """The interval of moved elements: the same for ends, flags and causes."""
        nan = self.may_be_nan
        return Interval(
            low=move(self.low),
            high=move(self.high),
            may_be_nan=None if nan is None else move(nan),
            cause=move(self.cause),
        )

    def piece(self, shape: tuple[int, ...], index: Any, among: Bools | None = None) -> Interval:
        """A piece of the interval broadcast to a shape, or some elements of the piece."""

        def part(array: Array) -> Array:
            whole: Array = np.broadcast_to(array, shape)[index]
            return whole if among is None else whole[among]

        return self.map(part)

    def widths(self, fmt: Format) -> npt.NDArray[Any]:
        """Counts the codes between the ends, to compare intervals of one array.

        Numbers of both signs and a possible NaN count as wider than any others.
        """
        if isinstance(fmt, FloatFormat):
            high, low = signed_codes(self.high, fmt), signed_codes(self.low, fmt)
            distance = high - low
            np.abs(distance, out=distance)
        else:
            high, low = keys(self.high, fmt), keys(self.low, fmt)
            distance = np.subtract(high, low, dtype=high.dtype)
        widths: npt.NDArray[Any] = distance.view(f"u{distance.itemsize}")
        if self.may_be_nan is not None:
            widths[self.may_be_nan] = np.iinfo(widths.dtype).max
        return widths

    def contains(self, values: Array, fmt: Format) -> Bools:
        """True where values are among those that a device may give; every NaN counts as one."""
        nan = is_nan(values, fmt)
        order = keys(values, fmt)
        within = ~nan & (keys(self.low, fmt) <= order) & (order <= keys(self.high, fmt))
        allowed = is_nan(self.low, fmt)
        if self.may_be_nan is not None:
            allowed = allowed | self.may_be_nan
        inside: Bools = within & ~is_nan(self.low, fmt) | nan & allowed
        return inside


# Every operation makes these: a slot set so takes half of the time of what a dataclass makes.
_SET_LOW: Final = vars(Interval)["low"].__set__
_SET_HIGH: Final = vars(Interval)["high"].__set__
_SET_MAY_BE_NAN: Final = vars(Interval)["may_be_nan"].__set__
_SET_CAUSE: Final = vars(Interval)["cause"].__set__


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rests:
    """The choices that elements rest on.

    Attributes:
        bits: by element, 0 of one that rests on none; anything in rows that were not asked for.
        places: of these elements among all, in C order, the others resting on none; None: of all.
    """

    bits: Array
    places: npt.NDArray[np.intp] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Enclosure:
    """An array of values, and the interval that a device may give for them.

    Attributes:
        values: what this library computes, of the dtype of their format.
        interval: what a device may give; None: these bits.
    """

    values: Array
    interval: Interval | None = None

    def __init__(self, *, values: Array, interval: Interval | None = None) -> None:
        _SET_VALUES(self, values)
        _SET_INTERVAL(self, interval)

    @property
    def waits(self) -> bool:
        """True if the values are computed only when they are first read; they have no interval."""
        return False

    @property
    def is_pending(self) -> bool:
        """True until values and interval are computed."""
        return False

    def take_note(self) -> None:
        """Give up the operands of a result that is computed by now."""

    @property
    def openness(self) -> Callable[[], bool]:
        """Gives True if any element is open, without computing values that nobody needs."""
        is_open = self.interval is not None
        return lambda: is_open

    @property
    def certain_rows(self) -> Bools | None:
        """By row, along the last axis, False: none of its elements is certain; None: not known."""
        return None

    def own_values(self) -> Array:
        """The values in memory that was taken for them: a copy, but where they are computed now."""
        return self.values.copy()

    def rests(self, low: Array, high: Array, in_force: int, rows: Bools | None) -> Rests | None:
        """The choices that elements rest on whose interval by public texts this is.

        Args:
            low, high: the ends by choices.
            in_force: the bits of choices that were made.
            rows: see `certain_rows`, of the ends by choices.

        Returns:
            None where intervals have to be compared. Nothing that others read is computed by that.
        """
        return None

    @property
    def low(self) -> Array:
        """The least that a device may give."""
        return self.values if self.interval is None else self.interval.low

    @property
    def high(self) -> Array:
        """The greatest that a device may give; the same object as `low` where all is exact."""
        return self.values if self.interval is None else self.interval.high

    def certain(self) -> Bools:
        """Finds the elements of which one code is possible."""
        if self.interval is None:
            return np.ones(self.values.shape, np.bool_)
        return self.interval.certain()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return self.values.dtype

    def bounds(self, shape: tuple[int, ...] | None = None) -> Bounds:
        """The bounds of all elements, broadcast to a shape."""
        nan = None if self.interval is None else self.interval.may_be_nan
        ends = Bounds(low=self.low, high=self.high, nan=nan)
        return ends.broadcast(self.shape if shape is None else shape)

    def map(self, move: Callable[[Array], Array]) -> Enclosure:
        """Move elements: the same to values, ends, flags and causes, which have one shape."""
        interval = None if self.interval is None else self.interval.map(move)
        return Enclosure(values=move(self.values), interval=interval)

    def __getitem__(self, index: Any) -> Enclosure:
        return self.map(lambda array: np.asarray(array[index]))

    def reshape(self, shape: tuple[int, ...]) -> Enclosure:
        """The same elements in another shape."""
        return self.map(lambda array: array.reshape(shape))


_SET_VALUES: Final = vars(Enclosure)["values"].__set__
_SET_INTERVAL: Final = vars(Enclosure)["interval"].__set__


def join_arrays(move: Callable[[Sequence[Array]], Array], parts: Sequence[Enclosure]) -> Enclosure:
    """Move the elements of several enclosures into one, as concatenation does.

    Args:
        move: makes one array of several, of any dtype.
        parts: the enclosures; an exact one has its values as ends.
    """
    values = move([x.values for x in parts])
    if all(x.interval is None for x in parts):
        return Enclosure(values=values)
    whole = [x.interval or exactly(x.values) for x in parts]
    nan = None
    if any(x.may_be_nan is not None for x in whole):
        nan = move(
            [
                np.zeros(x.low.shape, np.bool_) if x.may_be_nan is None else x.may_be_nan
                for x in whole
            ]
        )
    interval = Interval(
        low=move([x.low for x in whole]),
        high=move([x.high for x in whole]),
        may_be_nan=nan,
        cause=move([x.cause for x in whole]),
    )
    return Enclosure(values=values, interval=interval)


_BLOCK: Final = 64
"""Rows and columns that are exchanged together: both sides stay in the cache."""
_LARGE_PLANE: Final = 1 << 14
"""Elements of two axes that are worth blocks."""


def permuted(array: Array, perm: Sequence[int]) -> Array:
    """The elements in another order of axes, C-contiguous; block by block where rows turn columns.

    Args:
        array: of one axis or more; not modified.
        perm: each axis once, from 0; the first of the result comes first.
    """
    given = array.transpose(perm)
    axis = list(perm).index(array.ndim - 1)
    shape: tuple[int, ...] = given.shape
    rows, columns = shape[axis], shape[-1]
    if axis == array.ndim - 1 or rows * columns < _LARGE_PLANE:
        return np.ascontiguousarray(given)
    out = result_memory.empty(given.size, given.dtype).reshape(given.shape)
    to, of = np.moveaxis(out, axis, -2), np.moveaxis(given, axis, -2)
    for lead in np.ndindex(to.shape[:-2]):
        for row in range(0, rows, _BLOCK):
            for column in range(0, columns, _BLOCK):
                part = (*lead, slice(row, row + _BLOCK), slice(column, column + _BLOCK))
                to[part] = of[part]
    return out


def enclosed(values: Array, low: Array, high: Array, nan: Bools | None, cause: Causes) -> Enclosure:
    """Values with their interval, or without one where every element is certain."""
    if nan is not None and not nan.any():
        nan = None
    interval = Interval(low=low, high=high, may_be_nan=nan, cause=cause)
    return Enclosure(values=values, interval=None if interval.certain().all() else interval)


def exactly(values: Array) -> Interval:
    """The interval of values that are certain."""
    cause = np.broadcast_to(np.uint16(0), values.shape)
    return Interval(low=values, high=values, may_be_nan=None, cause=cause)


def limits(fmt: Format) -> Array:
    """The least and the greatest value of a format, infinities included."""
    if not isinstance(fmt, FloatFormat):
        return np.array([fmt.min, fmt.max], fmt.dtype)
    most = fmt.max_code if fmt.inf_code is None else fmt.inf_code
    return values_of(np.array([most | fmt.sign_code, most], fmt.code_dtype), fmt)


def unknown(values: Array, fmt: Format, cause: int) -> Interval:
    """The interval of values of a format that may be any others, NaN included."""
    low, high = (np.broadcast_to(end, values.shape) for end in limits(fmt))
    nan = np.broadcast_to(np.True_, values.shape) if isinstance(fmt, FloatFormat) else None
    causes = np.broadcast_to(np.uint16(cause), values.shape)
    return Interval(low=low, high=high, may_be_nan=nan, cause=causes)


def with_open_nans(x: Enclosure, fmt: Format, trust: Trust, cause: int) -> Enclosure:
    """Let the bits of every NaN be any; see ASSUME_NAN_PATTERN."""
    if not any_nan(x.low, fmt):
        return x
    ends = x.interval or exactly(x.values)
    nan = is_nan(ends.low, fmt)
    own = np.uint16(own_cause(cause, trust, ASSUME_NAN_PATTERN))
    held = Interval(
        low=ends.low,
        high=ends.high,
        may_be_nan=nan if ends.may_be_nan is None else nan | ends.may_be_nan,
        cause=np.where(nan, meeting(trust, own, ends.cause), ends.cause),
    )
    return Enclosure(values=x.values, interval=held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
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

    def interval(self, cause: Any) -> Interval:
        """These bounds with a cause."""
        causes = np.broadcast_to(np.asarray(cause, np.uint16), self.low.shape)
        return Interval(low=self.low, high=self.high, may_be_nan=self.nan, cause=causes)

    def map(self, move: Callable[[Array], Array]) -> Bounds:
        """The bounds of moved elements: the same for ends and flags."""
        low = move(self.low)
        high = low if self.low is self.high else move(self.high)
        return Bounds(low=low, high=high, nan=None if self.nan is None else move(self.nan))

    def piece(self, index: Any) -> Bounds:
        """A piece of these ends."""
        return self.map(lambda array: np.asarray(array[index]))

    def broadcast(self, shape: tuple[int, ...]) -> Bounds:
        """These ends broadcast to a shape."""
        return self.map(lambda array: np.broadcast_to(array, shape))

    def patched(self, where: Bools, part: Bounds) -> Bounds:
        """These bounds, and for some elements others."""
        low, high, nan = self.low.copy(), self.high.copy(), self.nan
        low[where], high[where] = part.low, part.high
        if nan is not None or part.nan is not None:
            nan = np.array(np.broadcast_to(False if nan is None else nan, low.shape))
            nan[where] = False if part.nan is None else part.nan
        return Bounds(low=low, high=high, nan=nan)


Operands = Sequence[Bounds]


def either(a: Bools | None, b: Bools | None) -> Bools | None:
    """Joins two conditions; None holds nowhere."""
    if a is None or b is None:
        return b if a is None else a
    return np.asarray(np.logical_or(a, b))


def changed(before: Bounds, after: Bounds) -> Bools:
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

    def record(self, bits: int, before: Bounds, after: Bounds) -> None:
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


def union(a: Bounds, b: Bounds, fmt: Format) -> Bounds:
    """The bounds of the union of two; where one of them is NaN, NaN is possible besides."""
    a_nan, b_nan = is_nan(a.low, fmt), is_nan(b.low, fmt)
    a_low, a_high = np.where(a_nan, b.low, a.low), np.where(a_nan, b.high, a.high)
    b_low, b_high = np.where(b_nan, a.low, b.low), np.where(b_nan, a.high, b.high)
    only_one = a_nan ^ b_nan
    return Bounds(
        low=lesser(a_low, b_low, fmt),
        high=greater(a_high, b_high, fmt),
        nan=either(either(a.nan, b.nan), only_one if only_one.any() else None),
    )


def pieces(shape: tuple[int, ...], elems: int = _PIECE_ELEMS) -> Iterator[Index]:
    """Cut a C-contiguous array into contiguous pieces of few elements, as indices."""
    axis = next(
        (k for k in range(len(shape)) if math.prod(shape[k + 1 :]) <= elems), max(len(shape) - 1, 0)
    )
    if not shape:
        yield (...,)
        return
    step = max(1, elems // max(1, math.prod(shape[axis + 1 :])))
    for outer in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            yield (*outer, slice(start, start + step))


def all_same_code(a: Array, b: Array) -> bool:
    """True if all values of two arrays of one shape have one code each."""
    return all(bool(same_code(a[i], b[i]).all()) for i in pieces(a.shape))


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
