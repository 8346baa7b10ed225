"""Signals held back while outputs are written, so that all of an output is written or none."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

_ENDINGS: Final = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Deliver a signal that arrives in the body of a `with` statement at its end.

    Those are SIGINT, SIGTERM and SIGHUP; of several the first. Python handles signals in the main
    thread: in others, and where no handler of Python's is installed, nothing is changed.
    """
    arrived: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
    if threading.current_thread() is threading.main_thread():
        for number in _ENDINGS:
            handler = signal.getsignal(number)
            if callable(handler):
                handlers[number] = handler
                signal.signal(number, lambda *arguments: arrived.append(arguments))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in arrived[:1]:
            handlers[number](number, frame)
