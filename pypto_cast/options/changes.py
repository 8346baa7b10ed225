"""Changes of options, which give the same object again where nothing is another.

Options are immutable, and values that follow from them are found by their identity: a kernel that
sets its tile shape in every call has the same options in each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any, Final, TypeVar

from ascend_kernels.npu import RunMode

_MOST_CHANGES: Final = 1 << 8
_KEPT_CHANGES: Final = {"vec_tile_shapes": tuple, "run_mode": RunMode}
"""The types of the values whose changes are kept, by name."""
_CHANGES: Final[dict[tuple[int, str, Hashable], tuple[object, Any]]] = {}
"""By the options before, the name and the new value: the options before and those after."""
_Options = TypeVar("_Options")


def changed(before: _Options, **changes: Any) -> _Options:
    """The same options with some values changed; the same object where none of them is another.

    The last changes of the tile shape alone, and of the run mode, give the same object when they
    are made again.
    """
    real = {name: value for name, value in changes.items() if getattr(before, name) is not value}
    if not real:
        return before
    options: Any = before
    after: _Options
    ((name, value), *others) = real.items()
    old = getattr(before, name)
    if others or type(value) is not _KEPT_CHANGES.get(name) or type(old) is not type(value):
        after = dataclasses.replace(options, **real)  # a tile that a search marks is not shared
        return after
    if old == value:
        return before
    key = id(before), name, value
    known = _CHANGES.get(key)
    if known is None:
        known = before, dataclasses.replace(options, **real)
        if len(_CHANGES) >= _MOST_CHANGES:
            _CHANGES.clear()
        _CHANGES[key] = known
    after = known[1]
    return after
