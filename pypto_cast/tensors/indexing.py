"""Reads index keys as boxes: a start and an extent on each axis, as of `x[2:4, ...]`."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto_cast.tensors.symbolic import RuntimeScalar
from tiling.grid import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The box of a shape that an index key selects.

    Attributes:
        offset: where it starts.
        extent: how far it reaches, not clipped to the shape.
        is_open: by axis, no end was written, so an assigned tensor tells the extent.
        dropped: axes indexed with an int, which the result does not have.
        follows_length: by axis, one of its ends is counted from the tensor's end and the other is
            not, so that the extent depends on the tensor's.
    """

    offset: Shape
    extent: Shape
    is_open: tuple[bool, ...]
    dropped: tuple[int, ...]
    follows_length: tuple[bool, ...]


def is_whole(key: object) -> bool:
    """Tell whether a key is `[:]`, `[...]` or `[:, :]`, the whole tensor."""
    if isinstance(key, tuple):
        ellipses = sum(entry is Ellipsis for entry in key)
        return ellipses < 2 and all(is_whole(entry) for entry in key)
    if isinstance(key, slice):
        return key.start is None and key.stop is None and key.step is None
    return key is Ellipsis


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
        if not 0 <= start < max(size, 1):
            raise IndexError(
                f"index {entries[axis]} of axis {axis}: shape {list(shape)} ends there"
            )
        if stop <= start and size:
            raise ValueError(f"index {entries[axis]} of axis {axis} is empty")
    return Box(
        offset=tuple(start for start, _ in ends),
        extent=tuple(stop - start for start, stop in ends),
        is_open=tuple(isinstance(entry, slice) and entry.stop is None for entry in entries),
        dropped=tuple(axis for axis, entry in enumerate(entries) if not isinstance(entry, slice)),
        follows_length=tuple(map(_follows_length, entries)),
    )


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
        raise ValueError(f"{name} must be {count} ints from 0, one for each dimension; got {found}")
    return found


def view_box(
    shape: Sequence[int],
    offsets: Sequence[int],
    valid_shape: Sequence[int] | None,
    whole: Shape,
    held: Sequence[int],
) -> tuple[Shape, Shape, Shape]:
    """The extent, the offset and the valid shape of a view, as `pypto.view` takes them.

    Args:
        shape: of the view.
        offsets: where it starts.
        valid_shape: what of it holds data; None for all that the tensor has there.
        whole: shape of the tensor.
        held: its valid shape.

    Raises:
        TypeError: no lists of ints, or a shape that depends on a loop or a dynamic dimension.
        ValueError: another number of dimensions, an offset outside, or a valid shape beyond what
            holds data.
    """
    extent, offset = ints("shape", shape, len(whole)), ints("offsets", offsets, len(whole))
    if any(isinstance(entry, RuntimeScalar) for entry in shape):
        raise TypeError(
            f"view: shape {list(shape)} depends on a loop or a dynamic dimension, which "
            "upstream refuses; give the whole view's shape, and the part with valid_shape="
        )
    if any(o >= s for o, s in zip(offset, whole, strict=True)):
        raise ValueError(f"view: offsets {list(offset)} lie outside shape {list(whole)}")
    most = clipped(held, offset, extent)
    valid = most if valid_shape is None else ints("valid_shape", valid_shape, len(whole))
    if any(v > m for v, m in zip(valid, most, strict=True)):
        raise ValueError(
            f"view: valid_shape {list(valid)} of a view of {list(extent)} at {list(offset)} "
            f"reaches beyond the {list(held)} that hold data"
        )
    return extent, offset, valid


def check_placement(offset: Shape, extent: Shape, whole: Shape, label: str) -> None:
    """Refuse a box that does not lie in a tensor.

    Raises:
        ValueError: naming the tensor by its label.
    """
    if any(o + e > s for o, e, s in zip(offset, extent, whole, strict=True)):
        raise ValueError(
            f"{list(extent)} at {list(offset)} do not fit {label}, shape {list(whole)}"
        )


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


def slices(offset: Sequence[int], extent: Sequence[int]) -> tuple[slice, ...]:
    """The index of a box in numpy's terms."""
    return tuple(slice(o, o + e) for o, e in zip(offset, extent, strict=True))


def _is_int(entry: object) -> bool:
    return hasattr(entry, "__index__") and not isinstance(entry, (bool, np.bool_))


def _filled(key: tuple[object, ...], count: int) -> Iterator[object]:
    """One entry for each axis: `...` and what is left out become whole slices."""
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


def _ends(entry: object, size: int) -> tuple[int, int]:
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
    start = 0 if entry.start is None else int(entry.start)
    return (start < 0) != (entry.stop is None or int(entry.stop) < 0)


def _position(entry: Any, size: int) -> int:
    if not _is_int(entry):
        raise TypeError(
            f"a tensor is indexed with ints, slices and ..., not with {entry!r} "
            f"({type(entry).__name__})"
        )
    position = operator.index(entry)
    return position + size if position < 0 else position
