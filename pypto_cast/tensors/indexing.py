"""Reads index keys as boxes: a start and an extent on each axis, as of `x[2:4, ...]`."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto_cast.error import FeError, error_of
from pypto_cast.tensors.symbolic import RuntimeScalar, are_known, scalar_of
from pypto_cast.tensors.undecided import (
    KernelNumber,
    UndecidedScalar,
    steer,
    taken,
    undecided,
    value_of,
)
from tiling.grid import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The place in a tensor where a box starts; a device may have others.

    Attributes:
        offset: the place that the simulation goes by.
        low: by axis, the least that a device may have.
        high: the greatest.
        open: the number that leaves the place open; None if it is decided.
    """

    offset: Shape
    low: Shape
    high: Shape
    open: UndecidedScalar | None = None

    @property
    def cause(self) -> int | None:
        """The cause that leaves the place open."""
        return None if self.open is None else self.open.cause

    @staticmethod
    def at(offset: Shape) -> Start:
        """A place that is decided."""
        return Start(offset=offset, low=offset, high=offset)

    @staticmethod
    def of(entries: Sequence[Any]) -> Start:
        """The place that ints and undecided numbers name; those below 0 steer the kernel."""
        if undecided(entries) is None:
            return Start.at(tuple(map(operator.index, entries)))
        bounds = []
        for entry in entries:
            known = entry.bounds if isinstance(entry, UndecidedScalar) else None
            if known is None or known[0] < 0:
                known = (operator.index(taken(entry)),) * 2
            bounds.append(known)
        low, high = (tuple(int(ends[side]) for ends in bounds) for side in (0, 1))
        return Start(
            offset=tuple(operator.index(value_of(entry)) for entry in entries),
            low=low,
            high=high,
            open=None if low == high else undecided(list(entries)),
        )

    def region(self, extent: Shape) -> tuple[Shape, Shape]:
        """Offset and extent of the hull of the boxes of an extent."""
        if self.cause is None:
            return self.offset, extent
        return self.low, tuple(
            h - o + e for o, h, e in zip(self.low, self.high, extent, strict=True)
        )

    def within(self) -> Shape:
        """The offset as seen from the region."""
        return tuple(o - low for o, low in zip(self.offset, self.low, strict=True))

    def moved(self, by: Start) -> Start:
        """The place from which another is seen at this one."""
        if self.cause is None and by.cause is None:
            return Start.at(tuple(a + b for a, b in zip(self.offset, by.offset, strict=True)))
        offset, low, high = (
            tuple(a + b for a, b in zip(one, other, strict=True))
            for one, other in ((self.offset, by.offset), (self.low, by.low), (self.high, by.high))
        )
        first = by.open if self.open is None else self.open
        return Start(offset=offset, low=low, high=high, open=first)

    def unless_cut(
        self, held: Sequence[int], extent: Shape, valid: Shape, *, is_asked: bool = False
    ) -> Start:
        """The same, if the boxes at all places hold data in one valid shape.

        Else the offset alone, which steers the kernel.

        Args:
            held: valid shape of the tensor.
            extent, valid: of the box.
            is_asked: the valid shape was asked for.
        """
        if self.open is None:
            return self
        most, least = (clipped(held, place, extent) for place in (self.low, self.high))
        if all(v <= e for v, e in zip(valid, least, strict=True)) and (is_asked or most == valid):
            return self
        return self.decided()

    def decided(self) -> Start:
        """The place that the simulation goes by alone, which steers the kernel."""
        if self.open is not None:
            steer(self.open)
        return Start.at(self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The box of a shape that an index key selects.

    Attributes:
        start: where it starts.
        first: the numbers of the kernel that it starts at.
        extent: how far it reaches, not clipped to the shape; numbers of the kernel.
        is_open: by axis, no end was written, so an assigned tensor tells the extent.
        dropped: axes indexed with an int, which the result does not have.
        follows_length: by axis, one of its ends is counted from the tensor's end and the other is
            not, so that the extent depends on the tensor's.
    """

    start: Start
    first: tuple[Any, ...]
    extent: tuple[Any, ...]
    is_open: tuple[bool, ...]
    dropped: tuple[int, ...]
    follows_length: tuple[bool, ...]


def is_whole(key: object) -> bool:
    """True if a key is `[:]`, `[...]` or `[:, :]`, the whole tensor."""
    if isinstance(key, tuple):
        ellipses = sum(entry is Ellipsis for entry in key)
        return ellipses < 2 and all(is_whole(entry) for entry in key)
    if isinstance(key, slice):
        return key.start is None and key.stop is None and key.step is None
    return key is Ellipsis


def has_ellipsis(key: object) -> bool:
    """True if a key has `...`: upstream copies such a whole assignment, and moves others."""
    return any(each is Ellipsis for each in (key if isinstance(key, tuple) else (key,)))


def box_of(key: object, shape: Shape) -> Box:
    """Read an index key.

    Args:
        key: an int, a slice of step 1, `...`, or a tuple of them; what it leaves out is whole.
        shape: of the tensor.

    Raises:
        TypeError: another kind of index.
        IndexError: more indices than dimensions, or a start beyond the shape.
        ValueError: a step other than 1, or an empty slice.
    """
    entries = list(_filled(key if isinstance(key, tuple) else (key,), len(shape)))
    ends = [_ends(entry, size) for entry, size in zip(entries, shape, strict=True)]
    for axis, ((start, stop), size) in enumerate(zip(ends, shape, strict=True)):
        if not are_known((start, stop)):
            continue
        if not 0 <= start < max(size, 1):  # an undecided number steers, where some member is not
            raise IndexError(
                f"index {entries[axis]} of axis {axis}: shape {list(shape)} ends there"
            )
        if size and stop <= start:
            raise ValueError(f"index {entries[axis]} of axis {axis} is empty")
    return Box(
        start=Start.of(_recorded([start for start, _ in ends])),
        first=tuple(start for start, _ in ends),
        extent=tuple(stop - start for start, stop in ends),
        is_open=tuple(isinstance(entry, slice) and entry.stop is None for entry in entries),
        dropped=tuple(axis for axis, entry in enumerate(entries) if not isinstance(entry, slice)),
        follows_length=tuple(map(_follows_length, entries)),
    )


def outside(key: object, shape: Sequence[int], *, is_assigned: bool) -> str:
    """The place that upstream takes where it is not that of the key; "" where it is.

    A slice without a start is assembled at its end less the length: `x[:32] = part` of 64 rows at
    -32, in memory before the tensor. A number of the kernel below 0 is not counted from the end:
    `x[i - 1]` of a loop's first iteration lies there too.

    Args:
        key: as `box_of` takes it.
        shape: as a kernel sees it.
        is_assigned: the key is assigned to; else it is read.

    Source: python/pypto/tensor.py, _get_assemble_offset (r0.2.0 :506, 883e7dfb0 :529) and
    _negative_index_to_positive (:538, :564).
    """
    entries = _filled(key if isinstance(key, tuple) else (key,), len(shape))
    for axis, (entry, size) in enumerate(zip(entries, shape, strict=True)):
        start, stop = (entry.start, entry.stop) if isinstance(entry, slice) else (entry, None)
        if _is_below_zero(start):
            return (
                f"[{value_of(start)}{':' * isinstance(entry, slice)}] of axis {axis} starts at a "
                "number of the kernel, which upstream does not count from the end: it lies before "
                "the tensor begins; add the length to it"
            )
        if is_assigned and start is None and stop is not None:
            end = stop if _is_below_zero(stop) else _position(stop, size)
            if not are_known((end, size)):
                if scalar_of(end) != scalar_of(size):
                    from ascend_kernels.schedule.scalars import text

                    return (
                        f"[:{text(scalar_of(end))}] of axis {axis} is assigned to: upstream puts "
                        f"it at that less {text(scalar_of(size))}, the length, which may lie "
                        "before the tensor; give it a start, as in [0:n]"
                    )
            elif end < size:  # no value fits one that ends behind the tensor
                return (
                    f"[:{end}] of axis {axis} is assigned to: upstream puts it at {end} - {size} "
                    f"= {end - size}, before the tensor begins; write [0:{end}]"
                )
    return ""


def ints(name: str, entries: object, count: int) -> Shape:
    """A list of ints, one for each dimension.

    Raises:
        TypeError: no list or tuple of ints.
        ValueError: another number of them, or one is negative.
    """
    if not isinstance(entries, (list, tuple)) or not all(map(_is_int, entries)):
        raise TypeError(f"{name} must be a list of ints, one for each dimension, not {entries!r}")
    found = tuple(map(operator.index, entries))
    if len(found) != count or any(entry < 0 for entry in found):
        text = f"{name} must be {count} ints from 0, one for each dimension; got {found}"
        raise error_of(FeError, ValueError, text)
    return found


def start_of(name: str, entries: object, count: int) -> Start:
    """The place that a list of ints names, one for each dimension; some may be undecided.

    Raises:
        TypeError, ValueError: as for `ints`.
    """
    if isinstance(entries, (list, tuple)):
        recorded = _recorded(entries)
        ints(name, [value_of(entry) for entry in recorded], count)
        return Start.of(recorded)
    return Start.at(ints(name, entries, count))


def view_box(
    shape: Sequence[int],
    offsets: Sequence[int],
    valid_shape: Sequence[int] | None,
    whole: Shape,
    held: Sequence[int],
) -> tuple[Shape, Start, Shape]:
    """The extent, the place and the valid shape of a view, as `pypto.view` takes them.

    Args:
        shape: of the view.
        offsets: where it starts.
        valid_shape: what of it holds data; None for all that the tensor has there. One that is
            wider than the view, but not than the tensor, counts as the view's.
        whole: shape of the tensor.
        held: its valid shape.

    Raises:
        TypeError: no lists of ints, or a shape that depends on a loop or a dynamic dimension.
        ValueError: another number of dimensions, an offset outside, or a valid shape beyond what
            holds data.
    """
    extent = ints("shape", shape, len(whole))
    start = start_of("offsets", offsets, len(whole))
    offset = start.offset
    if any(isinstance(entry, RuntimeScalar) for entry in shape):
        raise TypeError(
            f"view: shape {list(shape)} depends on a loop or a dynamic dimension, which "
            "upstream refuses; give the whole view's shape, and the part with valid_shape="
        )
    if any(o >= s for o, s in zip(offset, whole, strict=True)):
        text = f"view: offsets {list(offset)} lie outside shape {list(whole)}"
        raise error_of(FeError, ValueError, text)
    most = clipped(held, offset, extent)
    asked = most if valid_shape is None else _recorded(valid_shape, most)
    valid = ints("valid_shape", asked, len(whole))
    if all(v <= s for v, s in zip(valid, whole, strict=True)):
        # Upstream compares it with the tensor (operation_impl.cpp:59); tiles end with the view.
        valid = tuple(min(v, e) for v, e in zip(valid, extent, strict=True))
    if any(v > m for v, m in zip(valid, most, strict=True)):
        raise error_of(
            FeError,
            ValueError,
            f"view: valid_shape {list(valid)} of a view of {list(extent)} at {list(offset)} "
            f"reaches beyond the {list(held)} that hold data",
        )
    return extent, start.unless_cut(held, extent, valid, is_asked=valid_shape is not None), valid


def placed(start: Start, extent: Shape, whole: Shape, label: str) -> Start:
    """The place of a box in a tensor; the offset alone, where some candidate lies outside.

    Raises:
        ValueError: the box does not lie in the tensor, which the label names.
    """

    def fits(offset: Shape) -> bool:
        return all(o + e <= s for o, e, s in zip(offset, extent, whole, strict=True))

    if not fits(start.high):
        start = start.decided()
    if not fits(start.offset):
        raise ValueError(
            f"{list(extent)} at {list(start.offset)} do not fit {label}, shape {list(whole)}"
        )
    return start


def filled_shape(
    box: Box, shape: Sequence[int], valid: Sequence[int], label: str
) -> tuple[Shape, Shape]:
    """The shape and the valid shape of a value, with the axes that an index drops.

    Raises:
        ValueError: it does not fill the box.
    """
    count = len(box.extent)
    if len(shape) != count - len(box.dropped):
        raise ValueError(
            f"the index takes {count - len(box.dropped)} dimensions of {label}; "
            f"what is written has shape {list(shape)}"
        )
    lengths, parts = iter(shape), iter(valid)
    whole = tuple(1 if axis in box.dropped else next(lengths) for axis in range(count))
    held = tuple(1 if axis in box.dropped else next(parts) for axis in range(count))
    for wanted, is_open, *given in zip(box.extent, box.is_open, whole, held, strict=True):
        if not is_open and wanted not in given:
            raise ValueError(
                f"the index takes {list(box.extent)} of {label}; what is written has "
                f"shape {list(shape)}"
            )
    return whole, held


def clipped(shape: Sequence[int], offset: Sequence[int], extent: Sequence[int]) -> Shape:
    """The extents of a box that lie in a shape, axis by axis."""
    return tuple(min(max(s - o, 0), e) for s, o, e in zip(shape, offset, extent, strict=True))


def _recorded(entries: Any, otherwise: Sequence[int] = ()) -> Any:
    """The entries, with others, or 0, for those known only when a kernel runs.

    Where it is recorded for a schedule, the iteration that is recorded may be one that never runs.
    """
    if are_known(entries):
        return entries
    instead = itertools.chain(otherwise, itertools.repeat(0))
    return [
        each if are_known(each) else other for each, other in zip(entries, instead, strict=False)
    ]


def _is_below_zero(entry: Any) -> bool:
    """True of a number of a kernel that is known and below 0."""
    return isinstance(entry, KernelNumber) and are_known(entry) and bool(value_of(entry) < 0)


def _is_int(entry: object) -> bool:
    return hasattr(entry, "__index__") and not isinstance(entry, (bool, np.bool_))


def _filled(key: tuple[object, ...], count: int) -> Iterator[object]:
    """One entry for each axis: `...` and missing entries become whole slices."""
    ellipses = sum(entry is Ellipsis for entry in key)
    missing = count - (len(key) - ellipses)
    if ellipses > 1 or missing < 0:
        raise IndexError(f"index {list(key)} does not fit {count} dimensions")
    for entry in key:
        if entry is Ellipsis:
            yield from [slice(None)] * missing
        else:
            yield entry
    if not ellipses:
        yield from [slice(None)] * missing


def _ends(entry: object, size: int) -> tuple[Any, Any]:
    if not isinstance(entry, slice):
        start = _position(entry, size)
        return start, start + 1
    if entry.step is not None and entry.step != 1:
        raise ValueError(f"slices of a tensor have step 1, not {entry.step}")
    start = 0 if entry.start is None else _position(entry.start, size)
    stop = size if entry.stop is None else _position(entry.stop, size)
    return start, stop


def _follows_length(entry: object) -> bool:
    if not isinstance(entry, slice):
        return False
    start = 0 if entry.start is None else _recorded([value_of(entry.start)])[0]
    return (start < 0) != (entry.stop is None or _recorded([value_of(entry.stop)])[0] < 0)


def _position(entry: Any, size: int) -> Any:
    if not _is_int(entry):
        raise TypeError(
            f"a tensor is indexed with ints, slices and ..., not with {entry!r} "
            f"({type(entry).__name__})"
        )
    if isinstance(entry, UndecidedScalar):
        is_of_one_sign = entry.bounds is not None and (entry.bounds[0] < 0) == (entry.bounds[1] < 0)
        position = entry if is_of_one_sign else operator.index(entry)
    else:
        position = entry if isinstance(scalar_of(entry), tuple) else operator.index(entry)
    is_from_the_end = are_known(position) and value_of(position) < 0
    return position + size if is_from_the_end else position
