"""Finds pairs of instructions that touch the same bytes without a known order between them.

Pipes run side by side, each in order. An instruction knows another one to be done only through a
flag or a barrier: a flag carries what its setter knew to whoever waits for it, and the scalar pipe,
which issues to the others, what it waited for to whatever it issues later. Two instructions that
touch the same bytes, one of them writing, without such knowledge race: on the device either
may come first, whatever happened here. (Vector clocks, one component a pipe.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from simulator.machine.isa import Pipe
from simulator.machine.memory import Effect, Region, SimulatorFault

_PIPES: Final = (Pipe.MTE2, Pipe.V, Pipe.MTE3, Pipe.S)
_KEPT: Final = 64
"""Accesses of a pipe that are kept before the settled ones are dropped."""
Clock = Mapping[Pipe, int]
"""For each pipe, up to which of its instructions everything is known to be done; never changed."""


class _Access(NamedTuple):
    number: int
    place: int
    pipe: Pipe
    reads: tuple[Region, ...]
    writes: tuple[Region, ...]


class Hazards:
    """Accesses in flight on one core, and the instructions that each pipe knows to be done.

    Args:
        name: names an instruction of the core by its index.
        scalar_accesses: the scalar pipe reads and writes UB too, not only issues.
    """

    def __init__(self, name: Callable[[int], str], *, scalar_accesses: bool = False) -> None:
        self._name = name
        self._accessing = _PIPES if scalar_accesses else _PIPES[:-1]
        nothing: Clock = dict.fromkeys(_PIPES, 0)
        self._issued = dict(nothing)
        self._known = dict.fromkeys(_PIPES, nothing)
        self._begun = dict.fromkeys(_PIPES, nothing)
        self._in_flight: dict[Pipe, deque[_Access]] = {pipe: deque() for pipe in _PIPES}

    @property
    def issue_clock(self) -> Clock:
        """The knowledge of the scalar pipe, and with it of all that it issues from here on."""
        return self._known[Pipe.S]

    def begin(self, pipe: Pipe, issue_clock: Clock) -> None:
        """Start an instruction, which knows as much as the scalar pipe did when it issued it."""
        if pipe in self._begun and self._begun[pipe] is not issue_clock:
            self._begun[pipe] = issue_clock
            self.learn(pipe, issue_clock)

    def access(self, index: int, pipe: Pipe, effect: Effect) -> None:
        """Note the bytes that an instruction touches as it starts.

        Its late writes come after all that its own pipe did before.

        Raises:
            SimulatorFault: it races with one that is not known to be done.
        """
        self._issued[pipe] += 1
        early = whole = _Access(self._issued[pipe], index, pipe, effect.reads, effect.writes)
        if effect.late_writes:
            whole = early._replace(writes=(*effect.writes, *effect.late_writes))
        known = self._known[pipe]
        for other_pipe in _PIPES:
            if other_pipe is pipe is Pipe.S:  # one access after another
                continue
            done = known[other_pipe]
            mine = early if other_pipe is pipe else whole
            for other in reversed(self._in_flight[other_pipe]):
                if other.number <= done:
                    break
                self._check_pair(mine, other)
        self._in_flight[pipe].append(whole)
        if len(self._in_flight[pipe]) > _KEPT:
            self._forget()

    def step(self, pipe: Pipe) -> int:
        """Count an instruction that touches no memory; its number on the pipe."""
        if pipe not in self._issued:
            return 0
        self._issued[pipe] += 1
        return self._issued[pipe]

    def knows(self, pipe: Pipe, other: Pipe, number: int) -> bool:
        """True if a pipe knows that an instruction of one that accesses memory is done."""
        return self._known[pipe][other] >= number

    def snapshot(self, pipe: Pipe) -> Clock:
        """Returns the clock of a flag set by `pipe`: all it knows, and all it did itself."""
        clock = dict(self._known[pipe])
        if pipe in self._issued:
            clock[pipe] = self._issued[pipe]
        return clock

    def learn(self, pipe: Pipe, clock: Clock) -> None:
        """Give a waiting pipe the knowledge of a flag."""
        known = self._known[pipe]
        self._known[pipe] = {
            other: number if number > known[other] else known[other]
            for other, number in clock.items()
        }

    def barrier(self, pipe: Pipe) -> None:
        """All earlier instructions of a pipe (or of all of them) are done."""
        if pipe is Pipe.ALL:
            for each in self._known:
                self.learn(each, self._issued)
        elif pipe in self._issued:
            self._known[pipe] = {**self._known[pipe], pipe: self._issued[pipe]}

    def _forget(self) -> None:
        """Drop accesses that every pipe knows to be done."""
        for pipe, accesses in self._in_flight.items():
            settled = min(self._known[each][pipe] for each in self._accessing)
            while accesses and accesses[0].number <= settled:
                accesses.popleft()

    def _check_pair(self, mine: _Access, other: _Access) -> None:
        for verb, my_regions, doing, other_regions in (
            ("reads", mine.reads, "writes", other.writes),
            ("writes", mine.writes, "reads", other.reads),
            ("writes", mine.writes, "writes", other.writes),
        ):
            for my_region in my_regions:
                for other_region in other_regions:
                    if my_region.touches(other_region):
                        raise SimulatorFault(
                            f"{verb} {my_region} while {self._name(other.place)} {doing} "
                            f"{other_region}: no flag or barrier puts "
                            f"{other.pipe.name} before {mine.pipe.name}",
                            my_region.shared(other_region),
                        )
