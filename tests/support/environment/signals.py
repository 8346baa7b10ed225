"""Signals that arrive, also where whoever runs the tests has them ignored (nohup, CI runners)."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """SIGINT and SIGHUP act as they do by default, in this process and in those it starts."""
    defaults = {"SIGINT": signal.default_int_handler, "SIGHUP": signal.SIG_DFL}
    present = {getattr(signal, n): act for n, act in defaults.items() if hasattr(signal, n)}
    before = {number: signal.signal(number, act) for number, act in present.items()}
    try:
        yield
    finally:
        for number, act in before.items():
            signal.signal(number, act)
