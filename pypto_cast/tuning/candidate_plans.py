"""Plans of the tile shapes that a search looks at, made of one recording of the kernel.

The recording's tile shapes are marked: each length names its call and axis, and is replaced by that
of a candidate.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from ascend_kernels.schedule.body_runs import body_runs
from ascend_kernels.schedule.line_work import line_work
from ascend_kernels.schedule.planner.kernel_plan import planned_schedule
from ascend_kernels.schedule.planner.tiles.tile_graph import KernelGraphs
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.simulated_cycles import LATENCIES, simulated_cycles
from ascend_kernels.schedule.time_limit import planned_until
from ascend_kernels.schedule.views.task_times import schedule_cycles, task_times
from pypto_cast.call_sites import Place
from pypto_cast.dask_pool import code_version
from pypto_cast.kernel.tile_choice import TileCall
from pypto_cast.kernel.tuned_kernel import KernelCandidate
from simulator.numbers.formats import Format
from tiling.chips import Chip, chip_named
from tiling.grid import Shape

MARKS: Final = 1 << 20
"""Above every extent, so that a length in a graph names its call and axis."""
AXES: Final = 4
_T = TypeVar("_T")
Tiles = Mapping[Place, Shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePlans:
    """All that the plan of a candidate takes; it travels to other processes.

    Attributes:
        kernel, release, chip: that are planned for.
        graphs: whose tile shapes are marked.
        tensors: of the signature.
        calls: by the number that marks name.
    """

    kernel: str
    release: str
    chip: Chip
    graphs: KernelGraphs
    tensors: Mapping[str, tuple[Format, Shape]]
    calls: tuple[TileCall, ...]

    def tile_of(
        self, tiles: Mapping[Place, Sequence[_T]]
    ) -> Callable[[Shape], tuple[_T | int, ...]]:
        """Gives the tile shape in place of a marked one."""
        by_call = [tiles.get(each.place, each.tile_shape) for each in self.calls]

        def length(extent: int) -> _T | int:
            if extent < MARKS:
                return extent
            call, axis = divmod(extent - MARKS, AXES)
            return by_call[call][axis]

        return lambda marked: tuple(map(length, marked))

    def replaced(self, tiles: Tiles) -> KernelGraphs:
        """The graphs under other tile shapes, by place; a call that is not named keeps its own."""
        tile_of = self.tile_of(tiles)
        return replace(
            self.graphs,
            graphs=tuple(
                replace(
                    graph,
                    nodes=tuple(
                        replace(node, tile_shape=tile_of(node.tile_shape)) for node in graph.nodes
                    ),
                )
                for graph in self.graphs.graphs
            ),
        )

    @property
    def digest(self) -> str:
        """SHA-256 of all that a plan depends on but the tile shapes, with the planner's code."""
        graphs = repr((self.kernel, self.release, self.chip, self.graphs, self.tensors))
        return hashlib.sha256(f"{code_version()} {graphs}".encode()).hexdigest()

    def by_line(self, tiles: Tiles) -> dict[int, Shape]:
        """The tile shape that each line sets."""
        return dict(
            sorted((each.line, tiles.get(each.place, each.tile_shape)) for each in self.calls)
        )

    def candidate(
        self,
        tiles: Tiles,
        varied: int | None,
        bound: int,
        model: str,
        until: float | None = None,
    ) -> KernelCandidate | None:
        """A candidate as planned; None where it has no cycles by the model.

        Args:
            tiles, varied, bound, model: see `KernelCandidate`.
            until: gives it up then; see `planned_until`.

        Raises:
            PlanError: it does not fit, or is not planned.
            OutOfTimeError: it is given up.
        """
        with planned_until(until):
            schedule = planned_schedule(
                self.replaced(tiles),
                self.tensors,
                kernel=self.kernel,
                release=self.release,
                chip=self.chip,
            )
        return candidate_of(schedule, self.by_line(tiles), varied, bound, model)


def candidate_of(
    schedule: Schedule, tiles: Mapping[int, Shape], varied: int | None, bound: int, model: str
) -> KernelCandidate | None:
    """The figures of a schedule; None where it has no cycles by the model."""
    tasks, busy, latencies = 0, 0, 0
    cores = chip_named(schedule.chip).vector_cores
    for place, runs in body_runs(schedule.steps, schedule.extents).items():
        body = schedule.bodies[place]
        count = body.task_count
        tasks += count
        if model == LATENCIES:
            times = task_times(schedule, body)
            ends = [each.end_cycle for each in times]
            latencies += (1 if runs is None else runs) * max(ends, default=0)
            count = len({each.core for each in times if each.end_cycle > each.start_cycle})
        busy = max(busy, min(count, cores))
    cycles = latencies if model == LATENCIES else schedule_cycles(schedule).cycles
    if cycles is None:
        return None
    leaves = Counter(each.leaf for body in schedule.bodies for each in body.tasks)
    pipes: Counter[str] = Counter()
    for number, leaf in enumerate(schedule.leaves):
        for each in leaf.operations:
            if each.flag is None:
                known = each.latency if model == LATENCIES else simulated_cycles(each)
                pipes[each.pipe] += leaves[number] * (known or 0)
    ((pipe, pipe_cycles),) = pipes.most_common(1) or [("", 0)]
    work = line_work(schedule.leaves, schedule.bodies)
    return KernelCandidate(
        rank=0,
        varied=varied,
        tiles=tiles,
        cycles=cycles,
        least_cycles=bound,
        tasks=tasks,
        leaves=len(schedule.leaves),
        busy_cores=busy,
        moved_bytes=sum(each.copied_bytes * each.tasks for each in work),
        pipe=pipe,
        pipe_cycles=pipe_cycles,
        peak_ub_bytes=schedule.peak_ub_bytes,
        needed_ub_bytes=schedule.needed_ub_bytes,
    )
