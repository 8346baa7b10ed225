"""Ranks the tile shapes of a kernel's calls of `set_vec_tile_shapes` by planned cycles.

The candidates of a call are looked at in two passes: first the smallest of those tile shapes that
cut the tensors into as many tiles, which gives a best soon, then all others. Each pass goes from
the least bound of cycles up; without bounds, as of views in a loop, from about as many tiles as the
kernel makes as it stands, which fit and are soon planned. It ends at a bound that is not below the
best, once as many are planned as are to be shown, or the bound is twice the best. Of those that
remain, the ones whose bound is not below the best are excluded, the others left. Not planned either
is a tile shape that is nowhere smaller than one that does not fit and cuts the tensors into as many
tiles.

Other processes plan the next ones ahead; each is still looked at in its turn, so the candidates,
their order and their counts do not depend on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import replace
from typing import Any, Final, Protocol

import numpy as np

from ascend_kernels.schedule.planner.cycle_bound import CycleBound
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.simulated_cycles import LATENCIES, TASKS
from ascend_kernels.schedule.time_limit import OutOfTimeError
from pypto_cast.call_sites import Place, silenced
from pypto_cast.kernel.fit import fit_report
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.tile_choice import (
    TileCall,
    call_of,
    replaced_tiles,
    tile_recording,
)
from pypto_cast.kernel.tuned_kernel import KernelCandidate, TunedKernel, tiles_text
from pypto_cast.options.context import current
from pypto_cast.report.text_format import plural
from pypto_cast.tuning.candidate_plans import AXES, MARKS, CandidatePlans, Tiles, candidate_of
from pypto_cast.tuning.records import PLANNED, Record, planned_record
from pypto_cast.tuning.sweep.jobs import spawned_pool
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
Progress = Callable[[int, int], None]
"""Is told how many candidates are done, of how many."""
_UNFIT: Final = "not planned"
_NO_CYCLES: Final = "no cycles"
"""The outcomes of a candidate that has no figures."""


class _NoCyclesError(Exception):
    """The first candidate that fits has no cycles by the model that ranks."""


class Kept(Protocol):
    """Records by their keys that outlive a search, as `open_results` gives."""

    def __contains__(self, key: str) -> bool: ...

    def __getitem__(self, key: str) -> Record: ...

    def add(self, record: Record) -> None: ...


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
    kept: Kept | None = None,
) -> TunedKernel:
    """Tune a call of a kernel; see `Kernel.tune`.

    Args:
        kernel: stays as it is.
        arguments, named: of the call.
        top: candidates to show.
        seconds: once one fits, no further candidate is planned from then on, and the one that is
            being planned is given up.
        processes: that plan, beside this one if more than 1, of a search of some seconds. They
            are spawned, which imports the script anew: it has to guard its main part.
        progress: is told of each candidate.
        most: candidates of a call.
        kept: holds planned candidates of earlier searches, which are not planned again, and gets
            those of this one as they come.
    """
    if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
        raise ValueError(f"processes is their number, 1 or more; got {processes!r}")
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise ValueError(f"top is the number of candidates to show, 1 or more; got {top!r}")
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not seconds >= 0:
        raise ValueError(f"seconds is a limit of time of 0 or more; got {seconds!r}")
    told = progress or _untold
    search = _Search(kernel, arguments, named, top, most, seconds, told, processes, kept)
    with silenced(), contextlib.closing(search):
        return search.tuned()


def _untold(done: int, total: int) -> None:
    """The progress that nobody watches."""


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
        kept: Kept | None = None,
    ) -> None:
        self._kernel, self._arguments, self._named = kernel, arguments, named
        self._top, self._most, self._progress = top, most, progress
        recording = tile_recording(kernel, arguments, named)
        self._name = kernel.signature.kernel
        under = {each: recording.tensors_under(each.place) for each in recording.calls}
        self._calls = tuple(each for each, tensors in under.items() if tensors is not None)
        if not self._calls:
            raise PlanError(
                f"{self._name} calls no set_vec_tile_shapes before an operation; there is no tile "
                "shape to choose"
            )
        self._under = {
            each.place: tensors for each, tensors in under.items() if tensors is not None
        }
        calls = [call_of(each) for each in recording.events]
        marks = [
            _with_tile(event, self._mark(call)) if call in self._calls else event
            for event, call in zip(recording.events, calls, strict=True)
        ]
        self._plans = CandidatePlans(
            kernel=self._name,
            release=current().release,
            chip=current().chip,
            graphs=kernel._graphs_of(recording.recorded, marks),
            tensors=recording.tensors,
            calls=self._calls,
        )
        self._processes, self._began = processes, time.monotonic()
        self._pool: Executor | None = None
        self._ahead: dict[Shape, Future[KernelCandidate | None]] = {}
        self._until = self._call_until = time.time() + seconds
        self._kept = kept
        self._taken, self._added = set[str](), set[str]()
        self._digest = "" if kept is None else self._plans.digest
        self._begin_with(TASKS)

    def _begin_with(self, model: str) -> None:
        """Begin the search that ranks by a model: nothing is looked at yet."""
        self._drop()
        self._planned = self._excluded = self._not_fitting = self._alike = self._unknown = 0
        self._model, self._is_out_of_time = model, False
        extents = {name: shape for name, (_, shape) in self._plans.tensors.items()}
        cores = self._plans.chip.vector_cores
        self._bound = CycleBound(self._plans.graphs, cores, model, extents)

    def _mark(self, call: TileCall) -> Shape:
        first = MARKS + AXES * self._calls.index(call)
        return tuple(range(first, first + len(self._under[call.place].extents)))

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
        """The candidates by the model "tasks"; where the first has no cycles, by "latencies"."""
        try:
            return self._ranked()
        except _NoCyclesError:
            self._begin_with(LATENCIES)
            return self._ranked()

    def _ranked(self) -> TunedKernel:
        """Vary the tile shape of each place, then take the best of each together, and of others.

        Each has an equal share of the time that is left.

        Raises:
            _NoCyclesError: the first candidate that fits has no cycles by the model.
        """
        own = {each.place: each.tile_shape for each in self._calls}
        shapes = {
            place: [*dict.fromkeys((tile, *self._shapes(place, tile)))]
            for place, tile in own.items()
        }
        count, done = 1 + sum(len(each) - 1 for each in shapes.values()), 1
        present = self._candidate({}, None)
        as_it_stands = [present] if present is not None else []
        found = [*as_it_stands]
        best, other = {**own}, {**own}
        for number, (place, all_of_it) in enumerate(shapes.items()):
            others = all_of_it[1:]
            self._call_until = time.time() + (self._until - time.time()) / (len(shapes) - number)
            varied = self._best_of(place, others, present, done, count)
            done += len(others)
            self._progress(done, count)
            found += varied
            if varied:
                best[place] = min((*as_it_stands, *varied), key=self._order).tiles[place[1]]
                other[place] = min(varied, key=self._order).tiles[place[1]]
        # Calls may have to change together; then none is better alone.
        for tiles in (best, other) if best != other else (best,):
            if sum(tile != own[place] for place, tile in tiles.items()) > 1:
                count += 1
                try:
                    together = self._candidate(tiles, None, until=self._until)
                    found += [together] if together is not None else []
                except OutOfTimeError:
                    self._is_out_of_time = True
                self._progress(count, count)
        if not found:
            raise PlanError(self._least_bad())
        unique = {tuple(each.tiles.items()): each for each in reversed(found)}
        ranked = sorted(unique.values(), key=self._order)[: self._top]
        ranked, notes = self._confirmed(ranked)
        if self._model == LATENCIES:
            notes.append(f"an opcode has no cycles by the model {TASKS}")
        looked_at = self._planned + self._excluded + self._not_fitting
        if count > looked_at:
            cure = f"after {_MOST_FAILURES} of a call that did not fit"
            if self._is_out_of_time:
                cure = "give more seconds"
            left = plural(count - looked_at, "candidate")
            notes.append(f"{left} left, whose bound is below the best; {cure}")
        if self._alike:
            notes.append(
                f"{self._alike:,} are taken not to fit: a smaller tile that cuts the tensors into "
                "as many does not"
            )
        if self._unknown:
            notes.append(f"{self._unknown:,} fit and have no cycles by this model")
        if earlier := len(self._taken - self._added):
            notes.append(f"{earlier:,} were planned by an earlier search")
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
            candidates=tuple(_reasoned(ranked, self._plans.by_line({}))),
            present=present,
            looked_at=looked_at,
            combinations=combinations,
            planned=self._planned,
            excluded=self._excluded,
            not_fitting=self._not_fitting,
            left=count - looked_at,
            notes=tuple(notes),
        )

    def _order(self, each: KernelCandidate) -> tuple[object, ...]:
        """By cycles; of equal ones the kernel as it stands is first, then the longer last axis."""
        axes = [-length for tile in each.tiles.values() for length in reversed(tile)]
        is_other = each.tiles != self._plans.by_line({})
        return each.cycles, is_other, each.tasks, axes

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

    def _shapes(self, place: Place, own: Shape) -> list[Shape]:
        under, chip = self._under[place], current().chip
        most_elems = chip.ub_bytes // chip.block_bytes * under.unit
        found = tiles_within(under.extents, under.unit, most_elems, self._most)
        return [each + own[len(each) :] for each in found]

    def _best_of(
        self,
        place: Place,
        shapes: Sequence[Shape],
        present: KernelCandidate | None,
        done: int,
        total: int,
    ) -> list[KernelCandidate]:
        """The candidates of a place, of which the best are planned, by their bound."""
        bounds = self._bounds(place, shapes)
        found: list[KernelCandidate] = []
        failed: dict[Shape, list[Shape]] = {}
        failures = 0
        own = shapes if present is None else (*shapes, present.tiles[place[1]])
        cuts = {each: tuple(map(_tiles, self._under[place].extents, each)) for each in own}

        def apart(shape: Shape) -> float:
            if bounds[shape] or present is None:
                return 0
            return abs(math.log(math.prod(cuts[shape]) / math.prod(cuts[own[-1]])))

        ascending = sorted(
            shapes, key=lambda each: (bounds[each], apart(each), math.prod(each), -each[-1])
        )
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
                is_over = bool(self._planned) and time.time() > self._call_until
                self._is_out_of_time |= is_over
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
                    self._call_until if self._planned else None,
                )
                until = self._call_until if self._planned else None
                try:
                    made = self._candidate({place: shape}, place[1], bounds[shape], until)
                except OutOfTimeError:
                    self._is_out_of_time = True
                    self._excluded += sum(bounds[each] >= least for each in order[number:])
                    break
                if made is not None:
                    found.append(made)
                else:
                    failed.setdefault(cuts[shape], []).append(shape)
                    failures += not found
            self._drop()
        return found

    def _plan_ahead(self, place: Place, bounds: Mapping[Shape, int], until: float | None) -> None:
        """Have processes plan the next candidates of a place, of these bounds."""
        if self._processes == 1 or time.monotonic() < self._began + _ALONE_SECONDS:
            return
        if self._pool is None:
            self._pool = spawned_pool(self._processes)
        for shape, bound in bounds.items():
            if shape not in self._ahead and not self._is_known({place: shape}):
                self._ahead[shape] = self._pool.submit(
                    self._plans.candidate, {place: shape}, place[1], bound, self._model, until
                )

    def _drop(self) -> None:
        for each in self._ahead.values():
            each.cancel()
        self._ahead.clear()

    def _candidate(
        self,
        tiles: Tiles,
        varied: int | None,
        bound: int | None = None,
        until: float | None = None,
    ) -> KernelCandidate | None:
        """The candidate as planned; None where it does not fit, or is not planned.

        Raises:
            _NoCyclesError: it is the first that fits, and has no cycles by the model "tasks".
            OutOfTimeError: it is not planned by the moment that `until` names.
        """
        if bound is None:
            bound = int(self._bound.of_all(self._plans.tile_of(tiles)))
        try:
            found = self._planned_once(tiles, varied, bound, until)
        except PlanError:
            self._not_fitting += 1
            return None
        except BrokenExecutor:
            raise RuntimeError(
                f"{self._name}: a process that plans has ended; a script that asks for processes "
                "guards its main part by if __name__ == '__main__'"
            ) from None
        if found is None and not self._planned and self._model == TASKS:
            raise _NoCyclesError
        self._planned += 1
        self._unknown += found is None
        return found

    def _key(self, tiles: Tiles) -> str:
        """The digest by which a planned candidate is found again."""
        by_call = [tiles.get(each.place, each.tile_shape) for each in self._calls]
        text = json.dumps([self._digest, self._model, by_call])
        return hashlib.sha256(text.encode()).hexdigest()

    def _is_known(self, tiles: Tiles) -> bool:
        return self._kept is not None and self._key(tiles) in self._kept

    def _planned_once(
        self, tiles: Tiles, varied: int | None, bound: int, until: float | None
    ) -> KernelCandidate | None:
        """The candidate as kept, as planned ahead, or as planned now, which is kept.

        Raises:
            PlanError: it does not fit, or is not planned.
            OutOfTimeError: not by the moment that `until` names.
        """
        if self._kept is not None and self._is_known(tiles):
            self._taken.add(self._key(tiles))
            record = self._kept[self._key(tiles)]
            if record["outcome"] == _UNFIT:
                raise PlanError(_UNFIT)
            shown = {"varied": varied, "tiles": self._plans.by_line(tiles)}
            figures = [KernelCandidate(**{**each, **shown}) for each in record["planned"]]
            return figures[0] if figures else None
        ahead = self._ahead.pop(next(iter(tiles.values())), None) if len(tiles) == 1 else None
        try:
            if ahead is None:
                found = self._plans.candidate(tiles, varied, bound, self._model, until)
            else:
                found = ahead.result()
        except PlanError:
            self._keep(tiles, _UNFIT, None)
            raise
        self._keep(tiles, _NO_CYCLES if found is None else PLANNED, found)
        return found

    def _keep(self, tiles: Tiles, outcome: str, found: KernelCandidate | None) -> None:
        if self._kept is not None:
            self._added.add(self._key(tiles))
            self._kept.add(planned_record(self._key(tiles), outcome, found))

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
                found = candidate_of(
                    schedule, each.tiles, each.varied, each.least_cycles, self._model
                )
            except ValueError as error:
                notes.append(f"{tiles_text(each.tiles)} is left out: {error}")
                continue
            if found is None:
                continue
            if found != each:
                notes.append(f"with {tiles_text(each.tiles)} the kernel runs other operations")
            kept.append(found)
        if not kept:
            raise PlanError(f"{self._name}: {notes[0]}")
        return sorted(kept, key=self._order), notes


def _with_tile(event: Any, tile: Shape) -> Any:
    return replace(event, settings=replace(event.settings, vec_tile_shapes=tile))


def _tiles(extent: int, length: int) -> int:
    return -(-extent // length)


def _reasoned(
    ranked: Sequence[KernelCandidate], own: Mapping[int, Shape]
) -> Iterator[KernelCandidate]:
    """The candidates with their ranks, and the reason for each place.

    Args:
        ranked: the best first.
        own: the tile shapes that the kernel sets.
    """
    best = ranked[0]
    for rank, each in enumerate(ranked, start=1):
        other = best if rank > 1 else ranked[1] if len(ranked) > 1 else None
        tie = "the one longer on the last axis that differs"
        if other is not None and own in (each.tiles, other.tiles):
            tie = "the one that the kernel sets"
        elif other is not None and other.tasks != each.tasks:
            tie = "that of fewer tasks"
        reason = _reason(each, other, "1" if rank > 1 else "2", f"{tie} is first")
        yield replace(each, rank=rank, reason=reason)


def _reason(each: KernelCandidate, other: KernelCandidate | None, rank: str, tie: str) -> str:
    words = f"{plural(each.tasks, 'task')} on {plural(each.busy_cores, 'core')}"
    if other is None:
        return f"{words}; no other candidate was planned"
    apart = each.cycles - other.cycles
    than = f"{plural(abs(apart), 'cycle')} {'more' if apart > 0 else 'less'} than"
    against = than if apart else "as"
    causes = [
        (mine / max(theirs, 1), f"{plural(mine, *nouns)} instead of {theirs:,}")
        for nouns, mine, theirs in (
            (("task",), each.tasks, other.tasks),
            (("byte moved", "bytes moved"), each.moved_bytes, other.moved_bytes),
            (
                (f"cycle of {each.pipe}", f"cycles of {each.pipe}"),
                each.pipe_cycles,
                other.pipe_cycles,
            ),
        )
        if mine != theirs
    ]
    if each.busy_cores != other.busy_cores:
        text = f"{plural(each.busy_cores, 'busy core')} instead of {other.busy_cores}"
        causes.append((other.busy_cores / max(each.busy_cores, 1), text))
    causes.sort(reverse=apart > 0)  # the one that differs most in this sense decides
    because = ", ".join(text for ratio, text in causes if (ratio > 1) == (apart > 0))
    because = because or "other leaves"
    if not apart:
        because = tie
    return f"{words}; {against} place {rank}: {because}"
