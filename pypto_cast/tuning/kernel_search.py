"""Ranks the tile shapes of a kernel's calls of `set_vec_tile_shapes` by planned cycles.

Candidates are planned in the order of a bound of their cycles; when the next bound is not below the
best, all that remain are excluded. Other processes plan the next ones ahead; each is still looked
at in its turn, so the candidates, their order and their counts do not depend on it.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from ascend_kernels.schedule.body_runs import body_runs
from ascend_kernels.schedule.line_work import line_work
from ascend_kernels.schedule.planner.cycle_bound import LATENCIES, CycleBound
from ascend_kernels.schedule.planner.kernel_plan import planned_schedule
from ascend_kernels.schedule.planner.tiles.tile_graph import KernelGraphs, PlanError
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.simulated_cycles import simulated_cycles
from ascend_kernels.schedule.task_times import MODEL, schedule_cycles, task_times
from pypto_cast.call_sites import Place, silenced
from pypto_cast.kernel.fit import fit_report
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.tile_choice import (
    MarkedTile,
    TileCall,
    largest_extents,
    marked_tile,
    marked_tiles,
    replaced_tiles,
)
from pypto_cast.kernel.tuned_kernel import KernelCandidate, TunedKernel, by_line
from pypto_cast.options.context import current
from pypto_cast.report.text_format import plural
from simulator.numbers.formats import Format
from tiling.chips import Chip, chip_named
from tiling.grid import Shape
from tiling.search import tiles_within

MOST_CANDIDATES: Final = 1 << 16
"""Of a call; a tensor of two axes has fewer tile shapes that fit UB."""
SECONDS: Final = 60.0
"""Of a search."""
_MOST_FAILURES: Final = 200
"""Candidates that do not fit until a search without one that fits is given up."""
_ALONE_SECONDS: Final = 2.0
"""Of a search that starts no process: about as long as one takes to start."""
_MARKS: Final = 1 << 20
"""Above every extent, so that a length in a graph names its call and axis."""
_AXES: Final = 4
_T = TypeVar("_T")
Tiles = Mapping[Place, Shape]
Progress = Callable[[int, int], None]
"""Is told how many candidates are done, of how many."""


def tune_kernel(
    kernel: Kernel,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    *,
    top: int = 10,
    seconds: float = SECONDS,
    processes: int = 1,
    progress: Progress | None = None,
    most: int = MOST_CANDIDATES,
) -> TunedKernel:
    """Tune a call of a kernel; see `Kernel.tune`.

    Args:
        kernel: stays as it is.
        arguments, named: of the call.
        top: candidates to show.
        seconds: from then on no further candidate is planned once one fits.
        processes: that plan, beside this one if more than 1, of a search of some seconds. They
            are spawned, which imports the script anew: it has to guard its main part.
        progress: is told of each candidate.
        most: candidates of a call.
    """
    if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
        raise ValueError(f"processes is their number, 1 or more; got {processes!r}")
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise ValueError(f"top is the number of candidates to show, 1 or more; got {top!r}")
    search = _Search(kernel, arguments, named, top, most, seconds, progress or _untold, processes)
    with silenced(), contextlib.closing(search):
        return search.tuned()


def _untold(done: int, total: int) -> None:
    """The progress that nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plans:
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
            if extent < _MARKS:
                return extent
            call, axis = divmod(extent - _MARKS, _AXES)
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

    def candidate(
        self, tiles: Tiles, varied: int | None, bound: int, model: str
    ) -> KernelCandidate | None:
        """A candidate as planned; None where it has no cycles by the model.

        Raises:
            PlanError: it does not fit, or is not planned.
        """
        schedule = planned_schedule(
            self.replaced(tiles),
            self.tensors,
            kernel=self.kernel,
            release=self.release,
            chip=self.chip,
        )
        by_line = {each.line: tiles.get(each.place, each.tile_shape) for each in self.calls}
        return _made(schedule, dict(sorted(by_line.items())), varied, bound, model)


def _start_process() -> None:
    """The terminal sends Ctrl-C to workers too; the one that waits for them ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Search:
    """The candidates of a call of a kernel, and those of them that are planned."""

    def __init__(
        self,
        kernel: Kernel,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        top: int,
        most: int,
        seconds: float,
        progress: Progress,
        processes: int = 1,
    ) -> None:
        self._kernel, self._arguments, self._named = kernel, arguments, named
        self._top, self._most, self._progress = top, most, progress
        with marked_tiles():
            recorded, tensors = kernel._recorded_for_plan(arguments, named)
        self._name = kernel.signature.kernel
        events = recorded.calls or []
        tiles = [marked_tile(each) for each in events]
        self._calls = tuple(dict.fromkeys(each.call for each in tiles if each is not None))
        if not self._calls:
            raise PlanError(
                f"{self._name} calls no set_vec_tile_shapes before an operation; there is no tile "
                "shape to choose"
            )
        self._extents = {call.place: largest_extents(events, call.place) for call in self._calls}
        marks = [
            event if tile is None else _with_tile(event, self._mark(tile))
            for event, tile in zip(events, tiles, strict=True)
        ]
        self._plans = _Plans(
            kernel=self._name,
            release=current().release,
            chip=current().chip,
            graphs=kernel._graphs_of(recorded, marks),
            tensors=tensors,
            calls=self._calls,
        )
        self._bound = self._bound_by(MODEL)
        self._processes, self._began = processes, time.monotonic()
        self._pool: ProcessPoolExecutor | None = None
        self._ahead: dict[Shape, Future[KernelCandidate | None]] = {}
        self._until = time.monotonic() + seconds
        self._planned = self._excluded = self._not_fitting = self._alike = self._unknown = 0
        self._model = MODEL

    def _bound_by(self, model: str) -> CycleBound:
        extents = {name: shape for name, (_, shape) in self._plans.tensors.items()}
        return CycleBound(self._plans.graphs, self._plans.chip.vector_cores, model, extents)

    def _mark(self, tile: MarkedTile) -> Shape:
        first = _MARKS + _AXES * self._calls.index(tile.call)
        return tuple(range(first, first + len(tile)))

    def _bounds(self, place: Place, shapes: Sequence[Shape]) -> dict[Shape, int]:
        """The bound of each tile shape of a place; equal tiles of two calls may share work."""
        others = {each.tile_shape for each in self._calls if each.place != place}
        apart = [each for each in shapes if each not in others]
        axes = {place: tuple(np.array(apart, np.int64).reshape(len(apart), -1).T)}
        found = np.broadcast_to(self._bound.of_all(self._plans.tile_of(axes)), len(apart)).tolist()
        shared = others.intersection(shapes)
        return {
            **dict(zip(apart, found, strict=True)),
            **{
                each: int(self._bound.of_all(self._plans.tile_of({place: each}))) for each in shared
            },
        }

    def close(self) -> None:
        """End the processes after the plans that run."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def tuned(self) -> TunedKernel:
        """Vary the tile shape of each place, then take the best of each together."""
        own = {each.place: each.tile_shape for each in self._calls}
        shapes = {
            place: [*dict.fromkeys((tile, *self._shapes(place)))] for place, tile in own.items()
        }
        count, done = 1 + sum(len(each) - 1 for each in shapes.values()), 0
        present = self._candidate({}, None)
        found = [present] if present is not None else []
        best: dict[Place, Shape] = {}
        for place, all_of_it in shapes.items():
            others = all_of_it[1:]
            varied = self._best_of(place, others, present, done, count)
            done += len(others)
            self._progress(done, count)
            found += varied
            if varied:
                best[place] = min(varied, key=_order).tiles[place[1]]
        if len(best) > 1 and len(found) > 1:
            together = self._candidate(best, None)
            count += 1
            found += [together] if together is not None else []
        if not found:
            raise PlanError(self._least_bad())
        unique = {tuple(each.tiles.items()): each for each in reversed(found)}
        ranked = sorted(unique.values(), key=_order)[: self._top]
        ranked, notes = self._confirmed(ranked)
        looked_at = self._planned + self._excluded + self._not_fitting
        if count > looked_at:
            notes.append(
                f"{count - looked_at:,} candidates were left, whose bound is below the best; give "
                "more seconds"
            )
        if self._alike:
            notes.append(
                f"{self._alike:,} are taken not to fit: a smaller tile that cuts the tensors into "
                "as many does not"
            )
        if self._unknown:
            notes.append(f"{self._unknown:,} fit and have no cycles by this model")
        combinations = math.prod(map(len, shapes.values()))
        if any(len(each) >= self._most for each in shapes.values()):
            notes.append(f"of a call's tile shapes at most {self._most:,} are candidates")
        return TunedKernel(
            kernel=self._name,
            chip=current().chip.name,
            release=current().release,
            model=self._model,
            files={each.line: each.file for each in self._calls},
            best=ranked[0].tiles,
            candidates=tuple(_reasoned(ranked)),
            present=present,
            looked_at=looked_at,
            combinations=combinations,
            planned=self._planned,
            excluded=self._excluded,
            not_fitting=self._not_fitting,
            left=count - looked_at,
            notes=tuple(notes),
        )

    def _least_bad(self) -> str:
        """The message of a search in which no candidate fits."""
        text = f"{self._name}: none of {plural(self._not_fitting, 'tile shape')} looked at fits"
        try:
            report = fit_report(self._kernel, *self._arguments, **self._named)
        except PlanError as error:
            return f"{text}: {error}"
        change = report.frees_most
        if change is None:
            return f"{text}; {report.needed_ub_bytes:,} B of {report.ub_bytes:,} B are needed"
        verdict = "fits with" if change.fits else "is the least bad and needs"
        return (
            f"{text}; {change.text} {verdict} {change.needed_ub_bytes:,} B of "
            f"{report.ub_bytes:,} B, and {report.culprit} owns most of it"
        )

    def _shapes(self, place: Place) -> list[Shape]:
        shape, itemsize = self._extents[place]
        unit = max(current().chip.block_bytes // itemsize, 1)
        return tiles_within(shape, unit, current().chip.ub_bytes // itemsize, self._most)

    def _best_of(
        self,
        place: Place,
        shapes: Sequence[Shape],
        present: KernelCandidate | None,
        done: int,
        total: int,
    ) -> list[KernelCandidate]:
        """The candidates of a place, of which the best are planned, by their bound."""
        model = self._model
        bounds = self._bounds(place, shapes)
        found: list[KernelCandidate] = []
        failed: dict[Shape, list[Shape]] = {}
        failures = 0
        cuts = {each: tuple(map(_tiles, self._extents[place][0], each)) for each in shapes}
        ascending = sorted(shapes, key=lambda each: (bounds[each], math.prod(each), -each[-1]))
        # The smallest tile of those that cut the tensors into as many: it gives a best soon.
        firsts = {*{cuts[x]: x for x in sorted(shapes, key=math.prod, reverse=True)}.values()}
        passes = (
            [each for each in ascending if each in firsts],
            [each for each in ascending if each not in firsts],
        )

        def is_alike(shape: Shape) -> bool:
            return any(all(map(int.__le__, x, shape)) for x in failed.get(cuts[shape], ()))

        for order in passes:
            for number, shape in enumerate(order):
                fitting = [each.cycles for each in (*found, *([present] if present else []))]
                least = min(fitting, default=math.inf)
                is_shown = len(found) >= self._top or bounds[shape] >= 2 * least
                is_over = bool(fitting) and time.monotonic() > self._until
                if is_over or failures >= _MOST_FAILURES or (bounds[shape] >= least and is_shown):
                    self._excluded += sum(bounds[each] >= least for each in order[number:])
                    break
                done += 1
                self._progress(done, total)
                if is_alike(shape):
                    self._not_fitting += 1
                    self._alike += 1
                    continue
                self._plan_ahead(
                    place,
                    {
                        each: bounds[each]
                        for each in order[number : number + 2 * self._processes]
                        if (bounds[each] < least or not is_shown) and not is_alike(each)
                    },
                )
                made = self._candidate({place: shape}, place[1], bounds[shape])
                if self._model != model:
                    return self._best_of(place, shapes, None, done, total)
                if made is not None:
                    found.append(made)
                else:
                    failed.setdefault(cuts[shape], []).append(shape)
                    failures += not found
            self._drop()
        return found

    def _plan_ahead(self, place: Place, bounds: Mapping[Shape, int]) -> None:
        """Have processes plan the next candidates of a place, of these bounds."""
        if self._processes == 1 or time.monotonic() < self._began + _ALONE_SECONDS:
            return
        if self._pool is None:  # not a fork: whoever shows the progress runs a thread
            self._pool = ProcessPoolExecutor(
                self._processes,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_start_process,
            )
        for shape, bound in bounds.items():
            if shape not in self._ahead:
                self._ahead[shape] = self._pool.submit(
                    self._plans.candidate, {place: shape}, place[1], bound, self._model
                )

    def _drop(self) -> None:
        for each in self._ahead.values():
            each.cancel()
        self._ahead.clear()

    def _candidate(
        self, tiles: Tiles, varied: int | None, bound: int | None = None
    ) -> KernelCandidate | None:
        """The candidate as planned; None where it does not fit, or is not planned.

        The first that is planned without cycles has all ranked by latencies.
        """
        if bound is None:
            bound = int(self._bound.of_all(self._plans.tile_of(tiles)))
        ahead = self._ahead.pop(next(iter(tiles.values())), None) if len(tiles) == 1 else None
        try:
            if ahead is None:
                found = self._plans.candidate(tiles, varied, bound, self._model)
            else:
                found = ahead.result()
        except PlanError:
            self._not_fitting += 1
            return None
        except BrokenExecutor:
            raise RuntimeError(
                f"{self._name}: a process that plans has ended; a script that asks for processes "
                "guards its main part by if __name__ == '__main__'"
            ) from None
        if found is None and not self._planned:
            self._model = LATENCIES
            self._bound = self._bound_by(LATENCIES)
            self._drop()
            self._not_fitting = self._alike = 0
            return self._candidate(tiles, varied)
        self._planned += 1
        self._unknown += found is None
        return found

    def _confirmed(
        self, ranked: Sequence[KernelCandidate]
    ) -> tuple[list[KernelCandidate], list[str]]:
        """The candidates as planned of recordings of their own, where the function agrees."""
        notes, kept = [], []
        places = {each.line: each.place for each in self._calls}
        for each in ranked:
            tiles = {places[line]: tile for line, tile in each.tiles.items()}
            if len(places) < len(self._calls):
                kept.append(each)  # one line sets several tile shapes; as it stands it has each
                continue
            try:
                with replaced_tiles(tiles):
                    schedule = self._kernel.schedule(*self._arguments, **self._named)
                found = _made(schedule, each.tiles, each.varied, each.least_cycles, self._model)
            except ValueError as error:
                notes.append(f"{by_line(each.tiles)} is left out: {error}")
                continue
            if found is None:
                continue
            if found != each:
                notes.append(f"with {by_line(each.tiles)} the kernel runs other operations")
            kept.append(found)
        if not kept:
            raise PlanError(f"{self._name}: {notes[0]}")
        return sorted(kept, key=_order), notes


def _with_tile(event: Any, tile: Shape) -> Any:
    return replace(event, settings=replace(event.settings, vec_tile_shapes=tile))


def _tiles(extent: int, length: int) -> int:
    return -(-extent // length)


def _made(
    schedule: Schedule, tiles: Mapping[int, Shape], varied: int | None, bound: int, model: str
) -> KernelCandidate | None:
    """The figures of a schedule; None where it has no cycles by the model."""
    tasks, busy, latencies = 0, 0, 0
    cores = chip_named(schedule.chip).vector_cores
    for place, runs in body_runs(schedule.steps, schedule.extents).items():
        body = schedule.bodies[place]
        count = sum(each.leaf is not None for each in body.tasks)
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


def _order(each: KernelCandidate) -> tuple[object, ...]:
    """By cycles; of equal ones the longer last axis is first."""
    axes = [-length for tile in each.tiles.values() for length in reversed(tile)]
    return each.cycles, each.tasks, axes


def _reasoned(ranked: Sequence[KernelCandidate]) -> Iterator[KernelCandidate]:
    """The candidates with their ranks, and the reason for each place."""
    best = ranked[0]
    for rank, each in enumerate(ranked, start=1):
        other = best if rank > 1 else ranked[1] if len(ranked) > 1 else None
        yield replace(each, rank=rank, reason=_reason(each, other, "1" if rank > 1 else "2"))


def _reason(each: KernelCandidate, other: KernelCandidate | None, rank: str) -> str:
    words = f"{plural(each.tasks, 'task')} on {plural(each.busy_cores, 'core')}"
    if other is None:
        return f"{words}; no other candidate was planned"
    apart = each.cycles - other.cycles
    against = f"{abs(apart):,} cycles {'more' if apart > 0 else 'less'} than" if apart else "as"
    causes = [
        (mine / max(theirs, 1), f"{mine:,} {name} instead of {theirs:,}")
        for name, mine, theirs in (
            ("tasks", each.tasks, other.tasks),
            ("bytes moved", each.moved_bytes, other.moved_bytes),
            (f"cycles of {each.pipe}", each.pipe_cycles, other.pipe_cycles),
        )
        if mine != theirs
    ]
    if each.busy_cores != other.busy_cores:
        text = f"{each.busy_cores} busy cores instead of {other.busy_cores}"
        causes.append((other.busy_cores / max(each.busy_cores, 1), text))
    causes.sort(reverse=apart > 0)  # what decides is what differs most in this sense
    because = ", ".join(text for _, text in causes)
    because = because or ("other leaves" if apart else "the longer last axis is first")
    return f"{words}; {against} place {rank}: {because}"
