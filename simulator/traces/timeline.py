"""A trace added up: how long the cores take, and how much of it each pipe works."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from simulator.machine.isa import Pipe
from simulator.traces.trace import PIPES, TraceEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTimeline:
    """The work of one core, added up.

    Attributes:
        core: which core.
        makespan_cycles: when its last instruction ended.
        busy_cycles: by pipe, in copies, vector and scalar instructions; not in flags and barriers.
            A copy that waits for its turn in GM keeps its pipe busy.
        copied_bytes: by pipe, between GM and UB.
    """

    core: int
    makespan_cycles: float
    busy_cycles: Mapping[Pipe, float]
    copied_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The work of several cores, added up; all of them start together."""

    cores: tuple[CoreTimeline, ...]

    @property
    def makespan_cycles(self) -> float:
        """Until the last core is done; the launch of the kernel comes on top."""
        return max((core.makespan_cycles for core in self.cores), default=0.0)

    @property
    def copied_bytes(self) -> int:
        return sum(core.copied_bytes for core in self.cores)

    def busy_share(self, pipe: Pipe) -> float:
        """Part of the makespan that a pipe works, 0 to 1, in the mean of the cores."""
        total = self.makespan_cycles * len(self.cores)
        return sum(core.busy_cycles[pipe] for core in self.cores) / total if total else 0.0

    @property
    def limiting_pipe(self) -> Pipe:
        """The pipe that works most."""
        return max(PIPES, key=self.busy_share)


def timeline(events: Iterable[TraceEvent]) -> Timeline:
    """Add up the events of any number of cores, in any order."""
    ends: dict[int, float] = {}
    busy: dict[int, dict[Pipe, float]] = {}
    copied: dict[int, int] = {}
    for event in events:
        core = event.core
        if core not in ends:
            ends[core] = 0.0
            busy[core] = dict.fromkeys(PIPES, 0.0)
            copied[core] = 0
        ends[core] = max(ends[core], event.end_cycle)
        if event.is_work:
            busy[core][event.pipe] += event.cycles
            copied[core] += event.copied_bytes
    return Timeline(
        cores=tuple(
            CoreTimeline(
                core=core,
                makespan_cycles=ends[core],
                busy_cycles=MappingProxyType(busy[core]),
                copied_bytes=copied[core],
            )
            for core in sorted(ends)
        )
    )
