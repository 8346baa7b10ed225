"""The memory of a tensor that a kernel may write: a copy from the first write to a part on.

The array that the user handed in is only read until the kernel is done. Then the boxes that were
written are copied into it, and nothing else of it is touched.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.indexed.running_sums import RunningSums
from simulator.arithmetic.interval import Enclosure, Interval, exactly
from tiling.box_map import Boxed, BoxWrites, Parts
from tiling.grid import Shape


def slices(offset: Sequence[int], extent: Sequence[int]) -> tuple[slice, ...]:
    """The index of a box in numpy's terms."""
    return tuple(slice(o, o + e) for o, e in zip(offset, extent, strict=True))


class UnsetArray(np.ndarray[Any, Any]):
    """An array for an output, whose elements a kernel may not read before it writes them."""


_Patch = TypeVar("_Patch", bound=Boxed)


class Journal:
    """Functions that undo the writes of a kernel, recorded while something in it may still fail."""

    __slots__ = ("_open", "_undo")

    def __init__(self) -> None:
        self._open = 0
        self._undo: list[Callable[[], object]] = []

    @property
    def is_open(self) -> bool:
        """True while writes may be undone."""
        return self._open > 0

    def record(self, undo: Callable[[], object]) -> None:
        """Have a function called if the body that runs now raises, after all that come later."""
        if self.is_open:
            self._undo.append(undo)

    @contextlib.contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Undo the writes of the body of a `with` statement if it raises."""
        self._open += 1
        before = len(self._undo)
        try:
            yield
        except BaseException:
            while len(self._undo) > before:
                self._undo.pop()()
            raise
        finally:
            self._open -= 1
            if not self.is_open:
                self._undo.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Uninitialized:
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

    def part(self, offset: Shape, extent: Shape) -> Uninitialized | None:
        """The part of them that lies in a box; None if none does."""
        return self.masked(self.mask[slices(offset, extent)])

    def masked(self, mask: npt.NDArray[np.bool_]) -> Uninitialized | None:
        """The same with another mask; None if it holds no such element."""
        if not mask.any():
            return None
        return Uninitialized(label=self.label, mask=mask, first=self.first)

    def refuse(self, by: str) -> None:
        """Raises ValueError: `by` would take elements that nobody wrote."""
        raise ValueError(
            f"{self.label} is read at {list(self.first)}, which the kernel has not written, and "
            f"that reaches {by}"
        )


@dataclass(slots=True, kw_only=True)
class _Memory:
    """The elements that a buffer and its windows share.

    A whole result that waits with other operations is computed when its values are first read.

    Attributes:
        shape: of the buffer that has no window's shape.
        home: the user's array; None for a tensor without values.
        held: what the kernel sees: `home` until the first write.
        waiting: a result in its place that is not computed yet.
        is_own: nobody else has them: they may be written.
        interval: what a device may give instead.
        mask: which elements of a declared tensor were written.
        writes: the boxes that were written, and the casts that they came from.
        writer: the identity of the buffer or window that wrote last; that itself would be a cycle.
        sums: the terms that elements have taken up, where they are added in place.
        journal: of the kernel that writes.
    """

    shape: Shape
    home: npt.NDArray[Any] | None
    held: npt.NDArray[Any] | None
    waiting: Enclosure | None = None
    is_own: bool = False
    interval: Interval | None = None
    mask: npt.NDArray[np.bool_] | None = None
    writes: BoxWrites[Any] = field(default_factory=BoxWrites)
    writer: object = None
    sums: RunningSums | None = None
    journal: Journal

    @property
    def values(self) -> npt.NDArray[Any] | None:
        """The elements as the kernel sees them."""
        if self.waiting is not None:
            self.held, self.interval = self.waiting.values, self.waiting.interval
            self.waiting = None
        return self.held

    @values.setter
    def values(self, values: npt.NDArray[Any] | None) -> None:
        self.held, self.waiting = values, None


class Buffer(Generic[_Patch]):
    """Elements of a parameter of a kernel, or of a tensor that it declared.

    Args:
        name: for messages.
        shape: of the tensor.
        home: the user's array; None for a tensor without values.
        interval: what a device may give instead of its values.
        owner: what the user handed in, whose memory `home` is.
        is_given: it comes from outside; a tensor that the kernel declares must be written before it
            is read.
        journal: of the kernel that writes it.
    """

    __slots__ = ("_identity", "_memory", "is_given", "name", "names", "owner", "shape")

    def __init__(
        self,
        name: str,
        shape: Shape,
        *,
        home: npt.NDArray[Any] | None = None,
        interval: Interval | None = None,
        owner: object = None,
        is_given: bool = False,
        journal: Journal | None = None,
    ) -> None:
        self.name = name
        self.names: tuple[str, ...] = (name,)  # an array may be handed in for several parameters
        self.is_given = is_given
        self.owner = owner
        self.shape = shape
        self._identity = object()
        self._memory = _Memory(
            shape=shape,
            home=home,
            held=home,
            interval=interval,
            journal=journal or Journal(),
            mask=np.zeros(shape, np.bool_) if isinstance(owner, UnsetArray) else None,
        )

    def window(self, shape: Shape) -> Buffer[_Patch]:
        """The same elements under another shape: a write to either changes both.

        The casts that wrote an element are known of the first shape alone.
        """
        memory = self._memory
        if memory.values is not None and not memory.values.flags.c_contiguous:
            self._make_own(memory.values)
        seen: Buffer[_Patch] = Buffer(self.name, shape, owner=self.owner, is_given=self.is_given)
        seen._memory = memory
        return seen

    @property
    def home(self) -> npt.NDArray[Any] | None:
        """The user's array."""
        return self._memory.home

    @property
    def patches(self) -> list[_Patch]:
        """The casts that the elements came from."""
        return [] if self._is_window else self._memory.writes.patches()

    def origins(self) -> Callable[[], tuple[_Patch, ...]]:
        """Gives the same later, without the elements."""
        return tuple if self._is_window else self._memory.writes.origins()

    def patches_near(self, offset: Shape, extent: Shape) -> list[_Patch]:
        """Those that the elements of a box may have come from."""
        return [] if self._is_window else self._memory.writes.patches_near(offset, extent)

    @property
    def has_values(self) -> bool:
        """True if there are values, all of them written or not."""
        return self._memory.waiting is not None or self._memory.held is not None

    @property
    def is_changed(self) -> bool:
        """True if it is a parameter and was written."""
        return self._memory.home is not None and bool(self._memory.writes)

    @property
    def writes(self) -> tuple[tuple[Shape, Shape, int], ...]:
        """Offset and extent of each box that was written, and how often; all, by a window."""
        return self._memory.writes.counts()

    @property
    def is_blank(self) -> bool:
        """True if it is declared and was never written."""
        memory = self._memory
        return not (self.has_values or self.is_given or memory.writes)

    @property
    def wrote_last(self) -> bool:
        """True if nothing was written under another shape since the last write under this one."""
        return self._memory.writer in (None, self._identity)

    @property
    def sums(self) -> RunningSums | None:
        """The terms that elements have taken up, where they are added in place."""
        sums, journal = self._memory.sums, self._memory.journal
        if sums is not None and journal.is_open:
            journal.record(functools.partial(setattr, self._memory, "sums", sums.copy()))
        return None if sums is None else sums.reshape(self.shape)

    @sums.setter
    def sums(self, sums: RunningSums | None) -> None:
        memory = self._memory
        memory.journal.record(functools.partial(setattr, memory, "sums", memory.sums))
        memory.sums = None if sums is None else sums.reshape(memory.shape)

    @property
    def _is_window(self) -> bool:
        return self.shape != self._memory.shape

    def is_of(self, array: npt.NDArray[Any]) -> bool:
        """True if this is the buffer of that array, or of one at the same place."""
        home = self._memory.home
        if home is None or home.dtype != array.dtype or home.shape != array.shape:
            return False
        return home.strides == array.strides and home.ctypes.data == array.ctypes.data

    def untouched(self) -> Enclosure | None:
        """All elements, where they are an array that the user gave and nobody wrote to; or None.

        Those of an array that are open, or were never set, are not given so.
        """
        memory = self._memory
        is_given = memory.held is not None and memory.held is memory.home and not memory.is_own
        is_plain = memory.waiting is None and memory.interval is None and memory.mask is None
        if is_given and is_plain and not memory.writes and self.shape == memory.shape:
            assert memory.held is not None
            return Enclosure(values=memory.held)
        return None

    def read(self, offset: Shape, extent: Shape) -> Enclosure | None:
        """The elements of a box as they are now; None without values, or if it `is_blank`."""
        memory = self._memory
        if memory.waiting is not None and extent == self.shape == memory.shape:
            return memory.waiting
        if memory.values is None:
            return None
        if extent == self.shape == memory.shape and not memory.is_own and memory.interval is None:
            return Enclosure(values=memory.values)
        box = slices(offset, extent)
        seen = Enclosure(values=memory.values, interval=memory.interval)
        part = (seen.reshape(self.shape) if self._is_window else seen)[box]
        if part.interval is not None and part.interval.certain().all():
            part = Enclosure(values=part.values)
        # The user's array and results stay as they are while the kernel runs; a copy does not.
        return part.map(np.copy) if memory.is_own else part

    def uninitialized(self, offset: Shape, extent: Shape) -> Uninitialized | None:
        """The part of a box that nobody wrote yet; None if all of it was written or given."""
        if self._memory.mask is None:
            return None
        mask = ~self._memory.mask.reshape(self.shape)[slices(offset, extent)]
        if not mask.any():
            return None
        first = zip(offset, np.argwhere(mask)[0], strict=True)
        label = f"{self.name}, for which no array was given," if self.is_given else self.name
        return Uninitialized(label=label, mask=mask, first=tuple(int(o + i) for o, i in first))

    def write(
        self,
        held: Enclosure | None,
        offset: Shape,
        extent: Shape,
        patches: Sequence[_Patch],
        uninitialized: Uninitialized | None = None,
    ) -> None:
        """Set the elements of a box; None if the kernel runs without values.

        Raises:
            ValueError: the user's array is read-only, or some of the values were never written.
        """
        place, memory = slices(offset, extent), self._memory
        if uninitialized is not None and self.is_given:
            uninitialized.refuse(self.name)
        if memory.journal.is_open:
            self._record_before(place)
        was_written_without_values = not self.has_values and bool(memory.writes)
        written = None if uninitialized is None else ~uninitialized.mask
        if held is None or was_written_without_values:
            memory.values = None
        elif extent == self.shape == memory.shape and held.is_pending:
            self._check_writeable()
            memory.waiting, memory.interval, memory.is_own = held, None, False
            memory.mask = written
        elif extent == self.shape and held.values.flags.c_contiguous and held.values.dtype.isnative:
            self._check_writeable()
            whole = held.reshape(memory.shape) if self._is_window else held
            memory.values, memory.interval, memory.is_own = whole.values, whole.interval, False
            memory.mask = None if written is None else written.reshape(memory.shape)
        else:
            values = self._own(held.values.dtype)
            values.reshape(self.shape)[place] = held.values
            self._keep_interval(held, place, values)
            if memory.mask is None and written is not None:
                memory.mask = np.ones(memory.shape, np.bool_)
            if memory.mask is not None:
                memory.mask.reshape(self.shape)[place] = True if written is None else written
        if held is not None and (sums := self.sums) is not None:
            sums.start_again(place, held)
        memory.writer = self._identity
        box, kept = (offset, extent), () if self._is_window else patches
        is_whole = self._is_window or extent == self.shape
        if is_whole:
            box = (0,) * len(memory.shape), memory.shape
        if memory.journal.is_open:
            for undo in memory.writes.put(box, kept, is_whole=is_whole):
                memory.journal.record(undo)
        else:
            memory.writes.put_for_good(box, kept, is_whole=is_whole)

    def divide(self, offset: Shape, extent: Shape, parts: Parts[_Patch]) -> None:
        """Have smaller boxes in the place of one that was just written; see `BoxWrites.divide`."""
        self._memory.writes.divide((offset, extent), parts)

    def put_interval(self, held: Enclosure, offset: Shape) -> None:
        """Set the interval of a box, but not its values.

        Args:
            held: of the box.
            offset: where it starts.
        """
        memory = self._memory
        assert memory.values is not None
        box = slices(offset, held.shape)
        if memory.journal.is_open:
            self._record_before(box)
        values = self._own(memory.values.dtype)
        self._keep_interval(held, box, values)
        memory.sums = None

    def waiting(self) -> Enclosure | None:
        """The exact result that is not computed yet, if it holds one."""
        waiting = self._memory.waiting
        return waiting if waiting is not None and waiting.waits else None

    def take_waiting(self) -> Enclosure:
        """The result that waits, which it holds no longer; its values are to be put instead."""
        held, self._memory.waiting = self._memory.waiting, None
        assert held is not None
        return held

    def put_values(self, values: npt.NDArray[Any]) -> None:
        """Set the values of the result that was taken."""
        self._memory.values = values

    def write_back(self) -> None:
        """Copy the written boxes into the user's array."""
        memory = self._memory
        assert memory.home is not None
        assert memory.values is not None
        if memory.values is memory.home:
            return
        for offset, extent in memory.writes:
            box = slices(offset, extent)
            memory.home[box] = memory.values[box]

    def keep_apart(self, others: Iterable[Buffer[_Patch]]) -> None:
        """Have values that stay as they are when the arrays of others are written."""
        memory = self._memory
        homes = [other.home for other in others if other is not self and other.home is not None]
        values = memory.values
        if values is not None and any(np.may_share_memory(values, home) for home in homes):
            memory.values = values.copy()

    def _record_before(self, box: tuple[slice, ...]) -> None:
        """Have the journal restore a box, and everything that is replaced as a whole."""
        memory = self._memory
        before = {each.name: getattr(memory, each.name) for each in fields(memory)}
        before["sums"] = None if memory.sums is None else memory.sums.copy()
        written: list[npt.NDArray[Any] | None] = [memory.mask]
        if memory.is_own:
            written.append(memory.values)
        if memory.is_own and (held := memory.interval) is not None:
            written += [held.low, held.high, held.may_be_nan, held.cause]
        views = [array.reshape(self.shape)[box] for array in written if array is not None]
        parts = [view.copy() for view in views]

        def undo() -> None:
            for name, value in before.items():
                setattr(memory, name, value)
            for view, part in zip(views, parts, strict=True):
                view[...] = part

        memory.journal.record(undo)

    def _keep_interval(
        self, held: Enclosure, box: tuple[slice, ...], values: npt.NDArray[Any]
    ) -> None:
        memory = self._memory
        if held.interval is None and (memory.interval is None or held.shape == self.shape):
            memory.interval = None
            return
        if memory.interval is None:
            memory.interval = Interval(
                low=values.copy(),
                high=values.copy(),
                may_be_nan=np.zeros(memory.shape, np.bool_),
                cause=np.zeros(memory.shape, np.uint16),
            )
        whole, part = memory.interval, held.interval or exactly(held.values)
        nan = False if part.may_be_nan is None else part.may_be_nan
        for array, piece in (
            (whole.low, part.low),
            (whole.high, part.high),
            (whole.may_be_nan, nan),
            (whole.cause, part.cause),
        ):
            assert array is not None
            array.reshape(self.shape)[box] = piece

    def _own(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Have values that may be written, each after the other in memory."""
        self._check_writeable()
        memory = self._memory
        if memory.values is None:
            memory.values, memory.is_own = np.zeros(memory.shape, dtype), True
            memory.mask = np.zeros(memory.shape, np.bool_)
        elif not memory.is_own:
            self._make_own(memory.values)
        assert memory.values is not None
        return memory.values

    def _make_own(self, values: npt.NDArray[Any]) -> None:
        memory = self._memory
        memory.values, memory.is_own = (
            values.astype(values.dtype.newbyteorder("="), order="C"),
            True,
        )
        held = memory.interval
        if held is not None:
            nan = held.may_be_nan
            memory.interval = Interval(
                low=held.low.copy(),
                high=held.high.copy(),
                may_be_nan=np.zeros(memory.shape, np.bool_) if nan is None else nan.copy(),
                cause=held.cause.copy(),
            )

    def _check_writeable(self) -> None:
        if self.home is not None and not self.home.flags.writeable:
            raise ValueError(f"{self.name} is a read-only array; the kernel writes to it")
