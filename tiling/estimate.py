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
class Estimate:
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
    slowed = loads.slowed(parameters.gm_line_loss)
    work, until_done = _core_cycles(job, slowed, parameters)
    real, timed = (each.total.in_bytes + each.total.out_bytes for each in (loads, slowed))
    return CycleSums(
        work=MappingProxyType(work),
        lost_share=1 - real / timed,
        until_done=MappingProxyType(until_done),
    )


_Cycles = dict[Limit, Floats]


def _core_cycles(job: Job, loads: CoreLoads, parameters: CostParameters) -> tuple[_Cycles, _Cycles]:
    """The work of a core by pipe, and the cycles until it would be done if only that counted."""
    per_core = parameters.clock_hz / parameters.gm_bytes_per_second
    share = loads.busy_cores.astype(np.float64) * per_core
    work = _work(loads.total, share, parameters)
    work[Limit.S] = _scalar_cycles(job, loads.total, parameters)
    parts = loads.total.parts
    last = _held(job, loads.last, share, parameters)
    of_last, of_previous = (
        _pauses(job, load, share, parameters) for load in (loads.last, loads.previous)
    )
    pauses = of_last.plus(of_last, -2)  # the last part has none after it
    for load, number in loads.kinds:
        pauses = pauses.plus(_pauses(job, load, share, parameters), number)
    until_done = _paths(job, loads, loads.total, loads.last, pauses, share, parameters)
    # A small last part hides behind the one before it, which then is the last to cross the pipes.
    but_last = loads.total.plus(loads.last, -1)
    pauses = pauses.plus(of_previous, -1)
    shorter = _paths(job, loads, but_last, loads.previous, pauses, share, parameters)
    for limit, cycles in shorter.items():
        crossed = np.where(parts > 1, cycles + last[Limit.MTE3], 0)
        until_done[limit] = np.maximum(until_done[limit], crossed)
    until_done[Limit.GM] = np.maximum(
        until_done[Limit.GM], _busy_gm_cycles(job, loads, share, parameters)
    )
    until_done[Limit.S] = work[Limit.S] + last[Limit.MTE3]
    for limit in until_done:  # the slots are waited for once more
        until_done[limit] = until_done[limit] + parameters.flag_cycles
    return work, until_done


def estimates(
    job: Job, tiles: Ints, parameters: CostParameters, others: Iterable[CostParameters]
) -> tuple[Estimate, ...]:
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
        Estimate(
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


def _work(load: Load, share: Floats, parameters: CostParameters) -> dict[Limit, Floats]:
    """Cycles of the pipes and of the core's share of GM, without flags and barriers."""
    return {
        Limit.MTE2: load.in_copies * parameters.read_startup_cycles
        + load.in_bytes * np.maximum(1 / parameters.read_bytes_per_cycle, share),
        Limit.V: _vector_cycles(load, parameters),
        Limit.MTE3: load.out_copies * parameters.write_startup_cycles
        + load.out_bytes * np.maximum(1 / parameters.write_bytes_per_cycle, share),
        Limit.GM: (load.in_bytes + load.out_bytes) * share,
    }


def _vector_cycles(load: Load, parameters: CostParameters) -> Floats:
    starts = load.starts if parameters.is_startup_per_stream else load.vector_instructions
    return (
        starts * parameters.vector_startup_cycles
        + load.cast_repeats * parameters.cast_cycles_per_repeat
        + load.bitwise_repeats * parameters.bitwise_cycles_per_repeat
    )


def _scalar_cycles(job: Job, load: Load, parameters: CostParameters) -> Floats:
    """The scalar pipe sets registers and issues everything; a part has 8 flags of its own."""
    scalars = job.work.set_up_scalars + load.parts * job.work.part_scalars
    issued = load.in_copies + load.out_copies + load.vector_instructions + 8 * load.parts
    return scalars * parameters.scalar_cycles + issued * parameters.issue_cycles


def _held(
    job: Job, load: Load, share: Floats, parameters: CostParameters, reused: Floats | float = 1.0
) -> dict[Limit, Floats]:
    """Work of the pipes with the flags and barriers that hold them.

    MTE2 waits for a free slot and tells V; V waits for both neighbours and tells both; MTE3 waits
    and tells. `reused` parts take a slot that was used before: only they wait for it to be free.
    """
    work = _work(load, share, parameters)
    flag = parameters.flag_cycles
    return {
        Limit.MTE2: work[Limit.MTE2] + (load.parts + reused) * flag,
        Limit.V: _held_vector(job, load, parameters, reused),
        Limit.MTE3: work[Limit.MTE3] + 2 * load.parts * flag,
        Limit.GM: work[Limit.GM],
    }


def _held_vector(
    job: Job, load: Load, parameters: CostParameters, reused: Floats | float = 1.0
) -> Floats:
    barriers = sum(step.follows_barrier for step in job.work.steps) * load.parts
    barriers = barriers + (load.parts - 1) * job.work.part_barriers
    flags = 3 * load.parts + reused
    held = flags * parameters.flag_cycles + barriers * parameters.barrier_cycles
    return _vector_cycles(load, parameters) + held


def _paths(
    job: Job,
    loads: CoreLoads,
    load: Load,
    last: Load,
    pauses: _Pauses,
    share: Floats,
    parameters: CostParameters,
) -> dict[Limit, Floats]:
    """Until the parts counted in `load` are done, the `last` of them after all the others.

    `pauses` are those of all but the last.
    """
    total = _held(job, load, share, parameters, np.maximum(load.parts - 2, 0))
    first = _held(job, loads.first, share, parameters, 0.0)
    end = _held(job, last, share, parameters, (load.parts > 2).astype(np.float64))
    turns = _turns_cycles(load, loads, pauses, share, total, end, parameters)
    return {
        Limit.MTE2: total[Limit.MTE2] + end[Limit.V] + end[Limit.MTE3],
        Limit.V: first[Limit.MTE2] + total[Limit.V] + end[Limit.MTE3],
        Limit.MTE3: first[Limit.MTE2] + first[Limit.V] + total[Limit.MTE3],
        Limit.GM: np.where(load.parts > 1, first[Limit.MTE2] + turns, 0),
    }


def _busy_gm_cycles(
    job: Job, loads: CoreLoads, share: Floats, parameters: CostParameters
) -> Floats:
    """Until the last byte has gone if GM, once at work, pauses at the ends alone.

    It pauses after the first copy, until another has started up, and before the last, which starts
    up when its part is converted and the copy before it has gone.
    """
    read, write = parameters.read_startup_cycles, parameters.write_startup_cycles
    is_alone = loads.total.parts == 1
    first_v = _held(job, loads.first, share, parameters, 0.0)[Limit.V]
    last_v = _held(job, loads.last, share, parameters)[Limit.V]
    second = np.where(is_alone, 0, np.minimum(read, first_v + write))
    other = np.where(is_alone, 0, loads.previous.out_bytes * share)
    last_pause = write + np.maximum(last_v - other, 0)
    return read + second + _work(loads.total, share, parameters)[Limit.GM] + last_pause


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pauses:
    """Cycles between copies in, in which GM waits for one to start up, or writes.

    Attributes:
        writes_first: if the first write of a part goes before the read that follows.
        reads_first: if it comes after that read.
    """

    writes_first: Floats
    reads_first: Floats

    def plus(self, other: _Pauses, times: Ints | int) -> _Pauses:
        """These and `times` the others."""
        return _Pauses(
            writes_first=self.writes_first + other.writes_first * times,
            reads_first=self.reads_first + other.reads_first * times,
        )


def _pauses(job: Job, load: Load, share: Floats, parameters: CostParameters) -> _Pauses:
    """The pauses that follow the copies in of one part."""
    read, write = parameters.read_startup_cycles, _one_write_cycles(load, share)
    lead = _held_vector(job, load, parameters) + parameters.write_startup_cycles
    turn = np.maximum(read, write)
    return _Pauses(
        writes_first=np.maximum(read, lead + write) + (load.in_copies - 1) * turn,
        reads_first=load.in_copies * turn,
    )


def _one_write_cycles(load: Load, share: Floats) -> Floats:
    return load.out_bytes / load.out_copies * share


def _turns_cycles(
    load: Load,
    loads: CoreLoads,
    pauses: _Pauses,
    share: Floats,
    total: Mapping[Limit, Floats],
    end: Mapping[Limit, Floats],
    parameters: CostParameters,
) -> Floats:
    """Until the last byte has gone if reading and writing take turns at GM, copy by copy.

    Counted from the end of the first part's copy in. Whose first byte is due first goes first. A
    part's first write is due as soon as it is converted and the write has started up (the lead): if
    that is before the next read has started up, GM is given to the write and the read comes after
    it, and this in every part. Otherwise the write comes after the read, in the start-up of the one
    that follows. Which of the two it is, the mean lead tells.
    """
    read, write = parameters.read_startup_cycles, _one_write_cycles(loads.previous, share)
    later = np.maximum(load.parts - 1, 1)
    later_in = (load.in_bytes - loads.first.in_bytes) * share
    lead = (total[Limit.V] - end[Limit.V]) / later + parameters.write_startup_cycles
    # The first read starts up before any write; the last of these writes, after the last read.
    reads_first = pauses.reads_first + read - np.maximum(read, write)
    between = np.where(
        lead < read,
        pauses.writes_first + end[Limit.V],
        reads_first + np.maximum(end[Limit.V], write),
    )
    return later_in + between + end[Limit.MTE3]
