"""Remembers which tiles wrote the arrays of the user, while the arrays live."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from threading import Lock
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.recording.buffers import Buffer
from pypto_cast.recording.steps import Patch, Patches

_Key = tuple[int, tuple[int, ...], tuple[int, ...]]

_KEPT: Final = 256
"""Arrays remembered at most, the last ones."""
_REMEMBERED: Final[dict[_Key, tuple[weakref.ref[Any], Patches]]] = {}
_LOCK: Final = Lock()


def remember(buffers: Iterable[Buffer[Patch]]) -> None:
    """Keep where the elements of these outputs came from."""
    for buffer in buffers:
        if buffer.home is not None:
            remember_array(buffer.home, buffer.owner, buffer.patches)


def remember_array(array: npt.NDArray[Any], owner: Any, patches: Iterable[Patch]) -> None:
    """Keep where the elements of an array came from, as long as what owns its memory lives."""
    key = _key(array)
    with _LOCK:
        _REMEMBERED.pop(key, None)
        _REMEMBERED[key] = (weakref.ref(_root(owner)), tuple(patches))
        while len(_REMEMBERED) > _KEPT:
            del _REMEMBERED[next(iter(_REMEMBERED))]


def origin_of(array: npt.NDArray[Any]) -> Patches:
    """The casts that wrote an array, by its memory and shape; none if no kernel did."""
    with _LOCK:
        owner, patches = _REMEMBERED.get(_key(array), (None, ()))
    return patches if owner is not None and owner() is not None else ()


def _root(owner: Any) -> Any:
    """The array that keeps the memory: of a slice, what it was taken from."""
    if isinstance(owner, np.ndarray):
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return owner
    base = getattr(owner, "_base", None)  # torch's
    return owner if base is None else base


def _key(array: npt.NDArray[Any]) -> _Key:
    return array.ctypes.data, array.shape, array.strides
