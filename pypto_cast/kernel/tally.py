"""Counts what ran: kernels by name, and casts in them and outside."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Final


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts what runs, in every thread.

    Attributes:
        runs: calls of each kernel that ended without an error, by its name.
        casts: casts of those calls, by the kernel's name; under "" those outside of kernels.
    """

    runs: Counter[str] = field(default_factory=Counter)
    casts: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """As in "2 kernels ran (rows 3 times with 12 casts, whole once with 1 cast), 1 cast
        outside".
        """
        each = [
            f"{name} {_times(count)} with {_casts(self.casts[name])}"
            for name, count in sorted(self.runs.items())
        ]
        kernels = f"{len(each)} {'kernel' if len(each) == 1 else 'kernels'}"
        listed = f"{kernels} ran ({', '.join(each)})" if each else "no kernel ran"
        outside = self.casts[""]
        return f"{listed}, {_casts(outside)} outside" if outside else listed

    def add(self, kernel: str, casts: int) -> None:
        """Count a kernel that ran, or with an empty name casts outside."""
        if kernel:
            self.runs[kernel] += 1
        self.casts[kernel] += casts


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _casts(count: int) -> str:
    return "1 cast" if count == 1 else f"{count} casts"


_OPEN: Final[list[Tally]] = []
_LOCK: Final = Lock()


@contextlib.contextmanager
def counting() -> Iterator[Tally]:
    """Count what runs in the body of a `with` statement, in every thread."""
    tally = Tally()
    with _LOCK:
        _OPEN.append(tally)
    try:
        yield tally
    finally:
        with _LOCK:
            _OPEN[:] = [other for other in _OPEN if other is not tally]


def count(kernel: str, casts: int) -> None:
    """Have what ran counted, where somebody counts."""
    with _LOCK:
        for tally in _OPEN:
            tally.add(kernel, casts)
