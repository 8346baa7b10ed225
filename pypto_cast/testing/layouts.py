"""Dumps of another layout than asked for: transposed, padded, reshaped; named before counting."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tiling.grid import Shape
from tiling.plan import MAX_DIMS

_Array = npt.NDArray[Any]
_CLEARLY: Final = 0.5
"""The share of elements that must be right in another layout, and more than twice as many as in
their own, for the layout to be named."""
_MOST_ELEMS: Final = 1 << 22
"""Of larger dumps no copies are made to look at other layouts."""


def _transposed(array: _Array, shape: Shape) -> Iterator[tuple[str, _Array]]:
    if array.ndim > MAX_DIMS:
        return
    for order in itertools.islice(itertools.permutations(range(array.ndim)), 1, None):
        moved = [axis for place, axis in enumerate(order) if place != axis]
        if len(moved) == 2:
            words = f"axes {min(moved)} and {max(moved)}"
        else:
            words = f"its axes in the order {', '.join(map(str, order))}"
        yield f"transposed ({words})", array.transpose(order)


def _padded(array: _Array, shape: Shape) -> Iterator[tuple[str, _Array]]:
    if array.ndim == len(shape):
        first = array[tuple(slice(n) for n in shape)]
        yield f"padded: its first {list(shape)} elements", first


def _reshaped(array: _Array, shape: Shape) -> Iterator[tuple[str, _Array]]:
    if array.size == int(np.prod(shape)):
        yield "reshaped", array.reshape(shape)
        yield "reshaped and transposed", array.reshape(shape[::-1]).T


_LAYOUTS: Final = (_transposed, _padded, _reshaped)


def layout_of(array: _Array, shape: Shape, share: Callable[[_Array], float]) -> str:
    """The layout in which an array is right, in words; empty if it is so in none or in its own.

    Args:
        array: the dump.
        shape: asked for.
        share: of an array of that shape, the share of elements that are right, from 0 to 1.
    """
    if array.size > _MOST_ELEMS:
        return ""
    own = share(array) if array.shape == shape else 0.0
    found = [
        (share(np.ascontiguousarray(moved)), words)
        for layout in _LAYOUTS
        for words, moved in layout(array, shape)
        if moved.shape == shape
    ]
    best, words = max(found, key=lambda each: each[0], default=(0.0, ""))
    if best < _CLEARLY or best <= 2 * own:
        return ""
    return f"{words}, {100 * best:.4g} % of the elements are right"
