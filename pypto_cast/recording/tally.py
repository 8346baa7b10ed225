"""Counts kernels by name, casts and operations in them and outside, and their results."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts kernels, casts and operations that run, in every thread.

    Attributes:
        runs: calls of each kernel that ended without an error, by its name.
        casts: casts of those calls, by the kernel's name; under "" those outside of kernels.
        operations: the operations around them likewise.
        certain: results of those calls of which a device can give one code, by the kernel's name.
        by_choices: those of them that are certain given named choices.
        undecided: the other results.
    """

    runs: Counter[str] = field(default_factory=Counter)
    casts: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    certain: Counter[str] = field(default_factory=Counter)
    by_choices: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """As in "2 kernels ran (rows 3 times with 12 casts, whole once with 1 cast and 2
        operations), 1 cast outside; 90 results certain (8 given named choices), 2 undecided".
        """
        each = [
            f"{name} {_times(count)} with {self._steps(name)}"
            for name, count in sorted(self.runs.items())
        ]
        kernels = f"{len(each)} {'kernel' if len(each) == 1 else 'kernels'}"
        listed = f"{kernels} ran ({', '.join(each)})" if each else "no kernel ran"
        if self.casts[""] or self.operations[""]:
            listed = f"{listed}, {self._steps('')} outside"
        certain, undecided = self.certain.total(), self.undecided.total()
        if not certain + undecided:
            return listed
        by_choices = self.by_choices.total()
        given = f" ({by_choices:,} given named choices)" if by_choices else ""
        return f"{listed}; {certain:,} results certain{given}, {undecided:,} undecided"

    def counts(self) -> dict[str, dict[str, int]]:
        """The counters by name, as plain dicts."""
        return {name: dict(getattr(self, name)) for name in self.__slots__}

    def add(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Add the `counts` of another."""
        for name, counted in counts.items():
            getattr(self, name).update(counted)

    def _steps(self, kernel: str) -> str:
        operations = self.operations[kernel]
        casts = _counted(self.casts[kernel], "cast")
        return f"{casts} and {_counted(operations, 'operation')}" if operations else casts


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


Plan = Callable[[], object]
"""Plans the schedule of a call of a kernel."""
OnRun = Callable[[str, Plan], None]
"""Is told the name and the plan of each call of a kernel that ended without an error."""

OPEN: Final[list[Tally]] = []
_ON_RUN: Final[list[OnRun]] = []
_LOCK: Final = Lock()


@contextlib.contextmanager
def counting(on_run: OnRun | None = None) -> Iterator[Tally]:
    """Count the steps of the body of a `with` statement, in every thread.

    Args:
        on_run: is called after each call of a kernel.
    """
    tally = Tally()
    with _LOCK:
        OPEN.append(tally)
        if on_run is not None:
            _ON_RUN.append(on_run)
    try:
        yield tally
    finally:
        with _LOCK:
            OPEN[:] = [other for other in OPEN if other is not tally]
            _ON_RUN[:] = [other for other in _ON_RUN if other is not on_run]


def is_counting() -> bool:
    """True if a tally is open."""
    return bool(OPEN)


def count(kernel: str, plan: Plan | None = None, **counts: int) -> None:
    """Count the steps and results, if a tally is open.

    Args:
        kernel: its name; empty for what is outside of kernels.
        plan: of the call of the kernel.
        counts: by the names of the counters.
    """
    if not OPEN:
        return
    runs = {"runs": 1} if kernel else {}
    with _LOCK:
        for tally in OPEN:
            tally.add({name: {kernel: n} for name, n in {**runs, **counts}.items() if n})
    if plan is not None:
        for told in tuple(_ON_RUN):
            told(kernel, plan)
