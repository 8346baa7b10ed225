"""The numbers that a device may give for each element, beside the value computed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.cause_codes import Causes, meeting, own_cause
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import (
    Bools,
    any_nan,
    is_nan,
    keys,
    same_code,
    signed_codes,
)
from simulator.arithmetic.trust import ASSUME_NAN_PATTERN, Trust
from simulator.numbers.convert import values_of
from simulator.numbers.formats import FloatFormat, Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The least and the greatest number that a device may give, an element.

    Ends that are both NaN say that the result is NaN. All arrays have the shape of the values;
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

    def certain(self) -> Bools:
        """Finds the elements of which one code is possible."""
        certain = same_code(self.low, self.high)
        if self.may_be_nan is not None:
            certain = certain & ~self.may_be_nan
        return certain

    def piece(self, shape: tuple[int, ...], index: Any, among: Bools | None = None) -> Interval:
        """A piece of the interval broadcast to a shape, or some elements of the piece."""

        def part(array: Array) -> Array:
            whole: Array = np.broadcast_to(array, shape)[index]
            return whole if among is None else whole[among]

        nan = self.may_be_nan
        return Interval(
            low=part(self.low),
            high=part(self.high),
            may_be_nan=None if nan is None else part(nan),
            cause=part(self.cause),
        )

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
        """Tells whether values are among those that a device may give; every NaN counts as one."""
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
        """Finds the elements of which one code is possible."""
        if self.interval is None:
            return np.ones(self.values.shape, np.bool_)
        return self.interval.certain()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return self.values.shape

    def map(self, move: Callable[[Array], Array]) -> Quantity:
        """Move elements: the same to values, ends, flags and causes, which have one shape."""
        if self.interval is None:
            return Quantity(values=move(self.values))
        nan = self.interval.may_be_nan
        interval = Interval(
            low=move(self.interval.low),
            high=move(self.interval.high),
            may_be_nan=None if nan is None else move(nan),
            cause=move(self.interval.cause),
        )
        return Quantity(values=move(self.values), interval=interval)

    def __getitem__(self, index: Any) -> Quantity:
        return self.map(lambda array: np.asarray(array[index]))

    def reshape(self, shape: tuple[int, ...]) -> Quantity:
        """The same elements in another shape."""
        return self.map(lambda array: array.reshape(shape))


def join_arrays(move: Callable[[Sequence[Array]], Array], parts: Sequence[Quantity]) -> Quantity:
    """Move the elements of several quantities into one, as concatenation does.

    Args:
        move: makes one array of several, of any dtype.
        parts: the quantities; an exact one has its values as ends.
    """
    values = move([x.values for x in parts])
    if all(x.interval is None for x in parts):
        return Quantity(values=values)
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
    return Quantity(values=values, interval=interval)


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


def with_open_nans(x: Quantity, fmt: Format, trust: Trust, cause: int) -> Quantity:
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
    return Quantity(values=x.values, interval=held)
