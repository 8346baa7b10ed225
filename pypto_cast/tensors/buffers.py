"""The memory of a tensor that a kernel may write: a copy from the first write on.

The array that the user handed in is only read until the kernel is done. Then the boxes that were
written are copied into it, and nothing else of it is touched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from pypto_cast.tensors.indexing import slices
from simulator.arithmetic.indexed.running_sums import RunningSums
from simulator.arithmetic.interval import Interval, Quantity, exactly
from tiling.grid import Shape

_Patch = TypeVar("_Patch")
_State = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritten:
    """Elements of a tensor that come from parts of a declared one which nobody wrote.

    Their values are zeros that stand for anything, so they may not reach an output.

    Attributes:
        label: what messages call the declared tensor.
        mask: True for such elements, in the valid shape.
        first: index of the first of them in the declared tensor.
    """

    label: str
    mask: npt.NDArray[np.bool_]
    first: Shape

    def part(self, offset: Shape, extent: Shape) -> Unwritten | None:
        """The part of them that lies in a box; None if none does."""
        return self.masked(self.mask[slices(offset, extent)])

    def masked(self, mask: npt.NDArray[np.bool_]) -> Unwritten | None:
        """The same with another mask; None if it holds no such element."""
        if not mask.any():
            return None
        return Unwritten(label=self.label, mask=mask, first=self.first)

    def refuse(self, by: str) -> None:
        """Raises ValueError: `by` would take elements that nobody wrote."""
        raise ValueError(
            f"{self.label} is read at {list(self.first)}, which the kernel has not written, and "
            f"that reaches {by}"
        )


class Buffer(Generic[_Patch]):
    """Elements of a parameter of a kernel, or of a tensor that it declared.

    Args:
        name: for messages.
        shape: of the tensor.
        home: the user's array; None for a tensor without values.
        owner: what the user handed in, whose memory `home` is.
        is_given: it comes from outside; a tensor that the kernel declares must be written before it
            is read.
    """

    __slots__ = (
        "_boxes",
        "_home",
        "_interval",
        "_mask",
        "_values",
        "is_given",
        "name",
        "owner",
        "patches",
        "shape",
        "sums",
    )

    def __init__(
        self,
        name: str,
        shape: Shape,
        *,
        home: npt.NDArray[Any] | None = None,
        owner: object = None,
        is_given: bool = False,
    ) -> None:
        self.name = name
        self.is_given = is_given
        self.owner = owner
        self.shape = shape
        self.patches: list[_Patch] = []
        self._home = home
        self._values = home
        self._interval: Interval | None = None
        self._mask: npt.NDArray[np.bool_] | None = None
        self._boxes: list[tuple[slice, ...]] = []
        self.sums: RunningSums | None = None
        """The terms that elements have taken up, where they are added in place."""

    @property
    def home(self) -> npt.NDArray[Any] | None:
        """The user's array."""
        return self._home

    @property
    def has_values(self) -> bool:
        """Tells whether there are values, all of them written or not."""
        return self._values is not None

    @property
    def is_changed(self) -> bool:
        """Tells whether a parameter was written."""
        return self._home is not None and bool(self._boxes)

    def is_of(self, array: npt.NDArray[Any]) -> bool:
        """Tell whether this is the buffer of that array, or of one at the same place."""
        home = self._home
        if home is None or home.dtype != array.dtype or home.shape != array.shape:
            return False
        return home.strides == array.strides and home.ctypes.data == array.ctypes.data

    def read(self, offset: Shape, extent: Shape) -> Quantity | None:
        """The elements of a box as they are now; None if the kernel runs without values.

        Raises:
            ValueError: nothing of a declared tensor was ever written.
        """
        if self._values is None:
            if not self.is_given and not self._boxes:
                raise ValueError(f"{self.name} is read before the kernel writes to it")
            return None
        box = slices(offset, extent)
        part = Quantity(values=self._values[box])
        if self._interval is not None:
            held = self._interval.piece(self.shape, box)
            if not held.certain().all():
                part = Quantity(values=part.values, interval=held)
        # The user's array stays as it is while the kernel runs; the copy of it does not.
        return part if self._values is self._home else part.map(np.copy)

    def unwritten(self, offset: Shape, extent: Shape) -> Unwritten | None:
        """The part of a box that nobody wrote yet; None if all of it was written or given."""
        if self._mask is None:
            return None
        mask = ~self._mask[slices(offset, extent)]
        if not mask.any():
            return None
        first = zip(offset, np.argwhere(mask)[0], strict=True)
        return Unwritten(label=self.name, mask=mask, first=tuple(int(o + i) for o, i in first))

    def write(
        self,
        held: Quantity | None,
        offset: Shape,
        extent: Shape,
        patches: Sequence[_Patch],
        unwritten: Unwritten | None = None,
    ) -> None:
        """Set the elements of a box; None if the kernel runs without values.

        Raises:
            ValueError: the user's array is read-only, or some of the values were never written.
        """
        box = slices(offset, extent)
        if unwritten is not None and self.is_given:
            unwritten.refuse(self.name)
        was_written_without_values = self._values is None and bool(self._boxes)
        if held is not None and not was_written_without_values:
            self._own(held.values.dtype)
            assert self._values is not None
            self._values[box] = held.values
            self._keep_interval(held, box, self._values)
            if self.sums is not None:
                self.sums.start_again(box, held)
            if self._mask is not None:
                self._mask[box] = True if unwritten is None else ~unwritten.mask
        else:
            self._values = None
        if extent == self.shape:
            self._boxes.clear()
            self.patches.clear()
        self._boxes.append(box)
        self.patches.extend(patches)

    def forget(self, unknown: Interval) -> None:
        """Let every element be what one may be, as a device may have written it or not.

        Args:
            unknown: of the buffer's shape.
        """
        whole = Quantity(values=unknown.low, interval=unknown).map(np.array).interval
        if whole is not None and whole.may_be_nan is None:
            nan = np.zeros(self.shape, np.bool_)
            whole = Interval(low=whole.low, high=whole.high, may_be_nan=nan, cause=whole.cause)
        self._interval = whole
        self.sums = None

    def write_back(self) -> None:
        """Copy what was written into the user's array."""
        assert self._home is not None
        assert self._values is not None
        for box in self._boxes:
            self._home[box] = self._values[box]

    def state(self) -> _State:
        """The state that `restore` takes to bring this moment back."""
        own = self._values is not self._home and self._values is not None
        values = self._values.copy() if own and self._values is not None else self._values
        mask = None if self._mask is None else self._mask.copy()
        interval = self._interval
        if interval is not None:
            interval = Quantity(values=interval.low, interval=interval).map(np.copy).interval
        sums = None if self.sums is None else self.sums.copy()
        return values, interval, mask, list(self._boxes), list(self.patches), sums

    def restore(self, state: _State) -> None:
        """Go back to an earlier moment."""
        self._values, self._interval, self._mask, self._boxes, self.patches, self.sums = state

    def _keep_interval(
        self, held: Quantity, box: tuple[slice, ...], values: npt.NDArray[Any]
    ) -> None:
        if held.interval is None and (self._interval is None or held.shape == self.shape):
            self._interval = None
            return
        if self._interval is None:
            self._interval = Interval(
                low=values.copy(),
                high=values.copy(),
                may_be_nan=np.zeros(self.shape, np.bool_),
                cause=np.zeros(self.shape, np.uint16),
            )
        whole, part = self._interval, held.interval or exactly(held.values)
        assert whole.may_be_nan is not None
        whole.low[box], whole.high[box], whole.cause[box] = part.low, part.high, part.cause
        whole.may_be_nan[box] = False if part.may_be_nan is None else part.may_be_nan

    def _own(self, dtype: np.dtype[Any]) -> None:
        """Have values that may be written."""
        if self._home is not None and not self._home.flags.writeable:
            raise ValueError(f"{self.name} is a read-only array; the kernel writes to it")
        if self._values is None:
            self._values = np.zeros(self.shape, dtype)
            self._mask = np.zeros(self.shape, np.bool_)
        elif self._values is self._home:
            self._values = self._home.astype(self._home.dtype.newbyteorder("="), order="C")


def check_memory(changed: Buffer[_Patch], buffers: Sequence[Buffer[_Patch]]) -> None:
    """Refuse an output whose elements share memory.

    Raises:
        ValueError: with another parameter, or among themselves.
    """
    home = changed.home
    assert home is not None
    if _overlaps_itself(home):
        raise ValueError(
            f"{changed.name} is written, but elements of it share memory (shape "
            f"{list(home.shape)}, strides {list(home.strides)} B); hand in a copy"
        )
    for other in buffers:
        if other is not changed and other.home is not None and _shares(home, other.home):
            raise ValueError(
                f"{changed.name} is written, but shares memory with {other.name}; hand in a copy "
                "of one of them"
            )


def _shares(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    return np.may_share_memory(a, b) and np.shares_memory(a, b)


def _overlaps_itself(array: npt.NDArray[Any]) -> bool:
    """Tell whether an axis steps less far than what the axes below it span."""
    if math.prod(array.shape) == 0:
        return False
    span = array.itemsize
    axes = sorted((abs(st), size) for st, size in zip(array.strides, array.shape, strict=True))
    for stride, size in axes:
        if size == 1:
            continue
        if stride < span:
            return True
        span += stride * (size - 1)
    return False
