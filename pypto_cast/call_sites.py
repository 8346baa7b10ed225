"""The code that asks for an operation: its place, and warnings that name it."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Final

_ROOMS: Final = tuple(
    f"{Path(__file__).resolve().parents[1] / room}{os.sep}"
    for room in ("pypto_cast", "ascend_kernels", "simulator", "tiling")
)
_HOUSE: Final = (*_ROOMS, contextlib.__file__)
Place = tuple[str, int]
"""A file and a line."""
_PLACE: Final[ContextVar[Place | None]] = ContextVar("pypto_cast_place", default=None)


def caller() -> Place:
    """The place of the innermost code outside this package that asks for this; see `asked_at`."""
    place = _PLACE.get()
    if place is None:
        frame = sys._getframe(1)
        while (before := frame.f_back) is not None and _is_of_house(frame.f_code.co_filename):
            frame = before
        place = frame.f_code.co_filename, frame.f_lineno
    return place


def is_called_from_outside() -> bool:
    """True if code outside the rooms of the project calls the function that asks."""
    return not sys._getframe(2).f_code.co_filename.startswith(_ROOMS)


@contextlib.contextmanager
def asked_at(place: Place) -> Iterator[None]:
    """Have a place count as the caller in the body of a `with` statement."""
    token = _PLACE.set(place)
    try:
        yield
    finally:
        _PLACE.reset(token)


_SILENCED: Final[ContextVar[bool]] = ContextVar("pypto_cast_silenced", default=False)
is_silenced: Final[Callable[[], bool]] = _SILENCED.get
"""True while the code runs for a second time, and warns of nothing."""


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Warn of nothing in the body of a `with` statement, which runs for a second time."""
    token = _SILENCED.set(True)
    try:
        yield
    finally:
        _SILENCED.reset(token)


class _Nowhere(io.TextIOBase):
    """Text that is printed to it is dropped."""

    def write(self, text: str) -> int:
        return len(text)


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Warn of nothing, and print nothing, in the body of a `with` statement.

    Nobody reads what a kernel prints in the runs that a judge makes of it.
    """
    with silenced(), contextlib.redirect_stdout(_Nowhere()):
        yield


_HELD: Final[ContextVar[list[Callable[[], None]] | None]] = ContextVar(
    "pypto_cast_held", default=None
)


@contextlib.contextmanager
def warnings_held() -> Iterator[Callable[[], None]]:
    """Hold back warnings in the body of a `with` statement.

    Yields what gives them; those that are not given are dropped.
    """
    held: list[Callable[[], None]] = []

    def give() -> None:
        for each in held:
            each()

    token = _HELD.set(held)
    try:
        yield give
    finally:
        _HELD.reset(token)


WARNED: Final[ContextVar[set[tuple[Place, str]] | None]] = ContextVar(
    "pypto_cast_warned", default=None
)
"""The places and texts that the running kernel has warned of once; None outside kernels."""


_GIVEN: Final = itertools.count()


def warnings_given() -> int:
    """A number that is one more than the last, and two more if there was a warning since."""
    return next(_GIVEN)


def warn_caller(text: str, category: type[Warning], *, once: bool = False) -> None:
    """Warn at the `caller`.

    Args:
        text: of the warning.
        category: its class.
        once: warn of it at the same place once in a run of a kernel; an operation that is made of
            others, or looks at an operand twice, would warn for each.
    """
    if _SILENCED.get():
        return
    next(_GIVEN)
    place = caller()
    warned = WARNED.get()
    if once and warned is not None:
        if (place, text) in warned:
            return
        warned.add((place, text))
    warn = functools.partial(warn_at, place, _frame_outside(), text, category)
    held = _HELD.get()
    if held is None:
        warn()
    else:
        held.append(warn)


def warn_at(place: Place, frame: FrameType, text: str, category: type[Warning]) -> None:
    """Warn at a place once for the module that a frame runs in, as `warnings.warn` does.

    Globals that were made for `exec` may have no name, and a warning of no module is none.
    """
    names = frame.f_globals
    warnings.warn_explicit(
        text,
        category,
        *place,
        module=names.get("__name__") or "<string>",
        registry=names.setdefault("__warningregistry__", {}),
    )


def _frame_outside() -> FrameType:
    frame = sys._getframe(2)
    while frame.f_back is not None and _is_of_house(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


@functools.lru_cache(maxsize=1 << 12)
def _is_of_house(file: str) -> bool:
    return file.startswith(_HOUSE)
