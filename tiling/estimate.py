"""Estimates the cycles of a tiled cast in closed form, under every cost set.

A part of a tile goes through three pipes, MTE2, V and MTE3, and its copies through the core's share
of GM. With two slots in UB the pipes work side by side, so the cores are done when the busiest has
done all of its work, before it the first part has come to it, and after it the last one has left:

    MTE2   all copies in, then V and MTE3 of the last part
    V      MTE2 of the first part, all vector work, MTE3 of the last
    MTE3   MTE2 and V of the first part, then all copies out
    GM     all bytes, and the pauses in which no copy has started up yet
    S      all instructions issued, then the last part

The longest of the five counts. Bytes off the lines of GM count for more in each of them. None grows
with a bandwidth, so a faster memory never costs time, and each holds all bytes of the busiest core,
so none is below the bandwidth bound.

The event simulation of `simulator.traces.trace` has the same figures and rules but no formula.
Both agree within 2 % where the parts of a core are alike or a shorter one comes last. Large and
small parts count by kind, not in the order in which they alternate, and all rows that are no whole
lines apart count as off the lines of GM; about one random plan in sixty is further off, by a fifth
at most.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tiling.chips import Copied
from tiling.cost import CostParameters
from tiling.grid import Ints
from tiling.loads import CoreLoads, Floats, Job, Load, core_loads


class Limit(enum.Enum):
    """The resource that the cores of a cast wait for."""

    MTE2 = "MTE2"
    V = "V"
    MTE3 = "MTE3"
    GM = "GM"
    S = "S"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class CastEstimate(Copied):
    """The estimated cost of a cast under a cost set, with its cycles under the others.

    Attributes:
        cost_set: name of the set that `cycles` follows.
        clock_hz: the clock of that set.
        cycles: from the start of the cores until the last is done; the launch comes on top.
        cycles_by_set: the same under every set, by name; `cost_set` is one of them.
        pipe_cycles: work of each pipe on the core with most of it; GM: of its share of the
            bandwidth. In copies, vector and scalar instructions, not in flags and barriers.
        bound_cycles: what no tile shape beats under the set: all bytes at full bandwidth.
        copied_bytes: GM traffic of the whole cast, in and out.
        lost_share: part of the busiest core's GM traffic that is lost off the lines of GM.
        limit: which of them decides.
    """

    cost_set: str
    clock_hz: float
    cycles: float
    cycles_by_set: Mapping[str, float]
    pipe_cycles: Mapping[Limit, float]
    bound_cycles: float
    copied_bytes: int
    lost_share: float
    limit: Limit

    @property
    def low_cycles(self) -> float:
        """The least that any set gives."""
        return min(self.cycles_by_set.values())

    @property
    def high_cycles(self) -> float:
        """The most that any set gives."""
        return max(self.cycles_by_set.values())

    @property
    def microseconds(self) -> float:
        return self.cycles / self.clock_hz * 1e6

    @property
    def gb_per_second(self) -> float:
        """GM traffic, in and out together, in 10^9 bytes a second."""
        return self.copied_bytes * self.clock_hz / self.cycles / 1e9

    @property
    def bound_share(self) -> float:
        """Part of the bandwidth bound that is reached, 0 to 1."""
        return self.bound_cycles / self.cycles

    def __str__(self) -> str:
        return (
            f"{self.cycles:.0f} cycles, {self.microseconds:.2f} us, {self.gb_per_second:.0f} GB/s, "
            f"{self.bound_share:.0%} of the bandwidth bound, limited by {self.limit} "
            f"(cost set {self.cost_set}; {self.low_cycles:.0f} to {self.high_cycles:.0f} cycles "
            "over all sets)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSums:
    """Cycles of many tile shapes under one set; one entry per tile shape.

    Attributes:
        work: of core 0, by pipe.
        lost_share: part of its GM traffic that is lost off the lines of GM.
        until_done: until the cores would be done if nothing but this one held them up.
    """

    work: Mapping[Limit, Floats]
    lost_share: Floats
    until_done: Mapping[Limit, Floats]

    @property
    def cycles(self) -> Floats:
        """Until the last core is done."""
        cycles: Floats = np.max(np.stack(list(self.until_done.values())), axis=0)
        return cycles


def bound_cycles(job: Job, parameters: CostParameters) -> float:
    """Cycles that all bytes take with every core copying at full speed and no start-up."""
    cores = job.chip.vector_cores
    shared = (job.in_bytes + job.out_bytes) * parameters.clock_hz / parameters.gm_bytes_per_second
    return max(
        shared,
        job.in_bytes / parameters.read_bytes_per_cycle / cores,
        job.out_bytes / parameters.write_bytes_per_cycle / cores,
    )


def cycle_sums(job: Job, loads: CoreLoads, parameters: CostParameters) -> CycleSums:
    """Convert counted work to cycles under a set.

    Args:
        job: the cast.
        loads: its work, as counted by `core_loads`.
        parameters: the figures.
    """
    core = _Core(job, loads.slowed(parameters.gm_line_loss), parameters)
    real, timed = (each.in_bytes + each.out_bytes for each in (loads.total, core.loads.total))
    return CycleSums(
        work=MappingProxyType(core.work(core.loads.total) | {Limit.S: core.scalar_cycles()}),
        lost_share=1 - real / timed,
        until_done=MappingProxyType(core.until_done()),
    )


def estimates(
    job: Job, tiles: Ints, parameters: CostParameters, others: Iterable[CostParameters]
) -> tuple[CastEstimate, ...]:
    """Estimate the cost of each tile shape.

    Args:
        job: the cast.
        tiles: shape (n, axes): tile shapes, each within the tensor.
        parameters: the set to follow.
        others: the sets that the range is over; `parameters` need not be among them.
    """
    loads = core_loads(job, tiles)
    sums = cycle_sums(job, loads, parameters)
    cycles = sums.cycles
    by_set = {other.name: cycle_sums(job, loads, other).cycles for other in others}
    by_set[parameters.name] = cycles
    limits = list(sums.until_done)
    limit = np.argmax(np.stack([sums.until_done[limit] for limit in limits]), axis=0)
    return tuple(
        CastEstimate(
            cost_set=parameters.name,
            clock_hz=parameters.clock_hz,
            cycles=float(cycles[row]),
            cycles_by_set=MappingProxyType({name: float(c[row]) for name, c in by_set.items()}),
            pipe_cycles=MappingProxyType({pipe: float(w[row]) for pipe, w in sums.work.items()}),
            bound_cycles=bound_cycles(job, parameters),
            copied_bytes=job.in_bytes + job.out_bytes,
            lost_share=float(sums.lost_share[row]),
            limit=limits[limit[row]],
        )
        for row in range(len(tiles))
    )


_Cycles = dict[Limit, Floats]


class _Core:
    """Cycles of the core with most work, under a set.

    Args:
        job: the cast.
        loads: its work, with the bytes that are lost off the lines of GM.
        parameters: the figures.
    """

    def __init__(self, job: Job, loads: CoreLoads, parameters: CostParameters) -> None:
        self.job = job
        self.loads = loads
        self.parameters = parameters
        per_core = parameters.clock_hz / parameters.gm_bytes_per_second
        self._share = loads.busy_cores.astype(np.float64) * per_core

    def until_done(self) -> _Cycles:
        """Cycles until the core would be done if only one pipe counted."""
        loads = self.loads
        last = self._held(loads.last)
        pauses = -self._pauses(loads.last)  # the last part has none after it
        for load, number in loads.kinds:
            pauses = pauses + self._pauses(load) * number
        until_done = self._paths(loads.total, loads.last, pauses)
        # A small last part hides behind the one before it, which then is the last to cross the
        # pipes.
        pauses = pauses - self._pauses(loads.previous)
        shorter = self._paths(loads.total.plus(loads.last, -1), loads.previous, pauses)
        for limit, cycles in shorter.items():
            crossed = np.where(loads.total.parts > 1, cycles + last[Limit.MTE3], 0)
            until_done[limit] = np.maximum(until_done[limit], crossed)
        until_done[Limit.GM] = np.maximum(until_done[Limit.GM], self._busy_gm_cycles())
        until_done[Limit.S] = self.scalar_cycles() + last[Limit.MTE3]
        # The slots are waited for once more.
        flag = self.parameters.flag_cycles
        return {limit: cycles + flag for limit, cycles in until_done.items()}

    def work(self, load: Load) -> _Cycles:
        """Cycles of the pipes and of the core's share of GM, without flags and barriers."""
        figures, share = self.parameters, self._share
        return {
            Limit.MTE2: load.in_copies * figures.read_startup_cycles
            + load.in_bytes * np.maximum(1 / figures.read_bytes_per_cycle, share),
            Limit.V: self._vector_cycles(load),
            Limit.MTE3: load.out_copies * figures.write_startup_cycles
            + load.out_bytes * np.maximum(1 / figures.write_bytes_per_cycle, share),
            Limit.GM: (load.in_bytes + load.out_bytes) * share,
        }

    def scalar_cycles(self) -> Floats:
        """The scalar pipe sets registers and issues everything; a part has 8 flags of its own."""
        load, work = self.loads.total, self.job.work
        scalars = work.set_up_scalars + load.parts * work.part_scalars
        issued = load.in_copies + load.out_copies + load.vector_instructions + 8 * load.parts
        return scalars * self.parameters.scalar_cycles + issued * self.parameters.issue_cycles

    def _vector_cycles(self, load: Load) -> Floats:
        figures = self.parameters
        starts = load.starts if figures.is_startup_per_stream else load.vector_instructions
        return (
            starts * figures.vector_startup_cycles
            + load.cast_repeats * figures.cast_cycles_per_repeat
            + load.bitwise_repeats * figures.bitwise_cycles_per_repeat
        )

    def _held(self, load: Load, reused: Floats | float = 1.0) -> _Cycles:
        """Work of the pipes with the flags and barriers that hold them.

        MTE2 waits for a free slot and tells V; V waits for both neighbours and tells both; MTE3
        waits and tells. `reused` parts take a slot that was used before: only they wait for it to
        be free.
        """
        work, flag = self.work(load), self.parameters.flag_cycles
        work[Limit.MTE2] = work[Limit.MTE2] + (load.parts + reused) * flag
        work[Limit.V] = self._held_vector(load, reused)
        work[Limit.MTE3] = work[Limit.MTE3] + 2 * load.parts * flag
        return work

    def _held_vector(self, load: Load, reused: Floats | float = 1.0) -> Floats:
        work, figures = self.job.work, self.parameters
        barriers = sum(step.follows_barrier for step in work.steps) * load.parts
        barriers = barriers + (load.parts - 1) * work.part_barriers
        flags = 3 * load.parts + reused
        held = flags * figures.flag_cycles + barriers * figures.barrier_cycles
        return self._vector_cycles(load) + held

    def _paths(self, load: Load, last: Load, pauses: Floats) -> _Cycles:
        """Until the parts counted in `load` are done, the `last` of them after all the others.

        `pauses` are those of all but the last.
        """
        total = self._held(load, np.maximum(load.parts - 2, 0))
        first = self._held(self.loads.first, 0.0)
        end = self._held(last, (load.parts > 2).astype(np.float64))
        turns = self._turns_cycles(load, pauses, total, end)
        return {
            Limit.MTE2: total[Limit.MTE2] + end[Limit.V] + end[Limit.MTE3],
            Limit.V: first[Limit.MTE2] + total[Limit.V] + end[Limit.MTE3],
            Limit.MTE3: first[Limit.MTE2] + first[Limit.V] + total[Limit.MTE3],
            Limit.GM: np.where(load.parts > 1, first[Limit.MTE2] + turns, 0),
        }

    def _busy_gm_cycles(self) -> Floats:
        """Until the last byte has gone if GM, once at work, pauses at the ends alone.

        It pauses after the first copy, until another has started up, and before the last, which
        starts up when its part is converted and the copy before it has gone.
        """
        loads = self.loads
        read, write = self.parameters.read_startup_cycles, self.parameters.write_startup_cycles
        is_alone = loads.total.parts == 1
        first_v = self._held(loads.first, 0.0)[Limit.V]
        last_v = self._held(loads.last)[Limit.V]
        second = np.where(is_alone, 0, np.minimum(read, first_v + write))
        other = np.where(is_alone, 0, loads.previous.out_bytes * self._share)
        last_pause = write + np.maximum(last_v - other, 0)
        return read + second + self.work(loads.total)[Limit.GM] + last_pause

    def _pauses(self, load: Load) -> Floats:
        """Cycles after the copies in of one part in which GM waits for one to start up, or writes.

        Shape (2, n): if the first write of a part goes before the read that follows, and if it
        comes after that read.
        """
        read, write = self.parameters.read_startup_cycles, self._one_write_cycles(load)
        lead = self._held_vector(load) + self.parameters.write_startup_cycles
        turn = np.maximum(read, write)
        writes_first = np.maximum(read, lead + write) + (load.in_copies - 1) * turn
        pauses: Floats = np.stack([writes_first, load.in_copies * turn])
        return pauses

    def _one_write_cycles(self, load: Load) -> Floats:
        return load.out_bytes / load.out_copies * self._share

    def _turns_cycles(self, load: Load, pauses: Floats, total: _Cycles, end: _Cycles) -> Floats:
        """Until the last byte has gone if reading and writing take turns at GM, copy by copy.

        Counted from the end of the first part's copy in. The copy whose first byte is due first
        goes first. A part's first write is due as soon as the part is converted and the write has
        started up (the lead). If that is before the next read has started up, GM is given to the
        write and the read comes after it, and this in every part. Otherwise the write comes after
        the read, in the start-up of the one that follows. The mean lead decides between the two.
        """
        read, write = (
            self.parameters.read_startup_cycles,
            self._one_write_cycles(self.loads.previous),
        )
        later = np.maximum(load.parts - 1, 1)
        later_in = (load.in_bytes - self.loads.first.in_bytes) * self._share
        lead = (total[Limit.V] - end[Limit.V]) / later + self.parameters.write_startup_cycles
        # The first read starts up before any write; the last of these writes, after the last read.
        writes_first, reads_first = pauses
        reads_first = reads_first + read - np.maximum(read, write)
        between: Floats = np.where(
            lead < read,
            writes_first + end[Limit.V],
            reads_first + np.maximum(end[Limit.V], write),
        )
        return later_in + between + end[Limit.MTE3]
