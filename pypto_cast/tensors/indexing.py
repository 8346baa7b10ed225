"""Index keys as boxes: `x[2:4, ...]` starts somewhere and reaches some way, axis by axis."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiling.grid import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """What an index key means on a shape.

    Attributes:
        offset: where it starts.
        extent: how far it reaches, not clipped to the shape.
        is_open: by axis, no end was written, so an assigned tensor tells the extent.
        dropped: axes indexed with an int, which the result does not have.
    """

    offset: Shape
    extent: Shape
    is_open: tuple[bool, ...]
    dropped: tuple[int, ...]


def is_whole(key: object) -> bool:
    """Whether a key is `[:]`, `[...]` or `[:, :]`, the whole tensor."""
    if isinstance(key, tuple):
        ellipses = sum(entry is Ellipsis for entry in key)
        return ellipses < 2 and all(is_whole(entry) for entry in key)
    return key is Ellipsis or (isinstance(key, slice) and key == slice(None))


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


def clipped(shape: Sequence[int], offset: Sequence[int], extent: Sequence[int]) -> Shape:
    """How much of a box lies in a shape, axis by axis."""
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


def _position(entry: Any, size: int) -> int:
    if not _is_int(entry):
        raise TypeError(
            f"a tensor is indexed with ints, slices and ..., not with {entry!r} "
            f"({type(entry).__name__})"
        )
    position = operator.index(entry)
    return position + size if position < 0 else position
