"""Results of a kernel judged part by part, in memory that is given beforehand."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.call_sites import muted
from pypto_cast.kernel.certainty import Certainty, OutputCertainty
from pypto_cast.kernel.jit import Kernel
from pypto_cast.recording.steps import CastRecord, OperationRecord
from pypto_cast.testing.bits import native, patches_of
from pypto_cast.testing.hypotheses import Explanation, explanations
from pypto_cast.testing.judgement import JudgedOutput, Judgement, OutsideCount, by_tile, judge
from pypto_cast.testing.possible import Impossible, ImpossibleError, check_like, described
from pypto_cast.testing.precision import Standard, tell_observer
from pypto_cast.testing.row_parts import RowPart, RowParts
from simulator.numbers import float_environment
from tiling.grid import Grid, first_tile

_Array = npt.NDArray[Any]
_Arrays = Mapping[str, _Array]
_PROBED_ELEMS: Final = 1 << 14
"""Of the part that is judged to measure its memory."""
_HELD_BACK: Final = 0.5
"""The share of the memory that parts are planned to take."""
_ROWS_SHOWN: Final = 5
_HYPOTHESES: Final = 8
"""Bounds of hypotheses that may be held at once: theirs is a part so many times smaller."""
_OF_ARRAYS: Final = 10
"""Times an argument: its ends, its causes and comparisons, as written and supposed."""
_OF_RESULTS_BYTES: Final = 32
"""Of an element of a result inside the kernel, which a hypothesis may compute by itself."""
_OF_CALLS_BYTES: Final = 1 << 19
"""Of the calls of a kernel and their hypotheses, for any number of elements."""


def needed_bytes(kernel: Kernel, arguments: Sequence[_Array], others: Mapping[str, Any]) -> int:
    """The memory that judging a call at once may need, with hypotheses, beside its arguments."""
    with muted():
        steps = kernel.program(*arguments, **others).steps
    elems = (
        math.prod(x.program.plan.shape) if isinstance(x, CastRecord) else x.result_elems
        for x in steps
    )
    of_arrays = _OF_ARRAYS * sum(x.nbytes for x in arguments)
    return of_arrays + _OF_RESULTS_BYTES * sum(elems) + _OF_CALLS_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class PartedJudgement:
    """A judgement, and how it came about.

    Attributes:
        judgement: of the whole outputs.
        parts: that were judged.
        first: the part that hypotheses were tried on, which holds the first impossible elements;
            None: there are none.
    """

    judgement: Judgement
    parts: int
    first: RowPart | None

    @property
    def note(self) -> str:
        """The parts in words."""
        text = f"judged in {self.parts:,} parts of rows"
        if self.first is None or not self.judgement.explanations:
            return text
        begin, end = self.first.rows
        return f"{text}; hypotheses are tried on rows {begin:,} to {end - 1:,}, by their own tiles"


@dataclass(slots=True)
class _Tally:
    """The verdict on an output so far."""

    impossible: int = 0
    golden_impossible: int = 0
    tiles: int = 0
    first: str = ""
    outside: list[OutsideCount] = field(default_factory=list)


class PartJudge:
    """Judges a call of a kernel in parts that fit into some memory.

    Args:
        parts: of the call.
        allowed_bytes: for intervals and all that is computed, besides inputs and results.

    Raises:
        NotCutError: as `RowParts.part`.
        ValueError: the least part takes more.
    """

    def __init__(self, parts: RowParts, allowed_bytes: int) -> None:
        self._parts = parts
        self._least = parts.least()
        elems = sum(array.size for array in parts.part(0, self._least).arguments)
        times = max(1, _PROBED_ELEMS // max(1, elems))
        probed = min(len(parts.groups), self._least * times)
        part = parts.part(0, probed)
        was_tracing = tracemalloc.is_tracing()
        if not was_tracing:
            tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        try:
            self.bounds = part.bounds()
            for output in self.bounds.outputs:
                output.contains(output.values)
            needed = tracemalloc.get_traced_memory()[1] - before
        finally:
            if not was_tracing:
                tracemalloc.stop()
        self._group_bytes = needed / probed
        if self._group_bytes * self._least > allowed_bytes:
            raise ValueError(
                f"the kernel needs about {self._group_bytes * self._least:,.0f} B for the least "
                f"of {len(parts.groups) // self._least:,} parts; --memory allows "
                f"{allowed_bytes:,} B"
            )
        at_once = int(allowed_bytes * _HELD_BACK / self._group_bytes)
        self._runs = tuple(self._ranges(0, len(parts.groups), at_once))
        for run in self._runs:
            parts.part(*run)

    def _ranges(self, first: int, last: int, at_once: int) -> Iterator[tuple[int, int]]:
        """Runs of groups; none has fewer than the least that a call is cut to."""
        at_once = max(self._least, at_once)
        while first < last:
            end = last if last - first < at_once + self._least else first + at_once
            yield first, end
            first = end

    @float_environment.quiet()
    def judged(
        self,
        results: _Arrays,
        goldens: _Arrays | None,
        precise: Any = None,
        *,
        standard: Standard = "bits",
        pairs: bool = False,
        told: Callable[[str], None] | None = None,
    ) -> PartedJudgement:
        """Judge results, as `judge` does with bounds; elements are numbered as in the whole.

        Args:
            results, goldens: arrays by the names of the outputs.
            precise, standard: as for `judge`.
            pairs, told: as for `explanations`.

        Raises:
            TypeError, ValueError: as for `judge`.
        """
        self._check(results, goldens)
        tallies = {output.name: _Tally() for output in self.bounds.outputs}
        failing: dict[bool, tuple[int, int]] = {}
        for first, last in self._runs:
            part = self._parts.part(first, last)
            with muted():
                bounds = part.bounds()
            for is_golden, arrays in ((False, results), (True, goldens)):
                if arrays is not None and self._add(tallies, part, bounds, arrays, is_golden):
                    failing.setdefault(is_golden, (first, last))
            tell_observer(sum(output.values.size for output in bounds.outputs))
            del bounds  # before those of the next part are computed
        beside = {} if goldens is None else self._beside(results, goldens, precise, standard)
        outputs = tuple(
            dataclasses.replace(
                beside.get(name, JudgedOutput(name=name, elems=results[name].size)),
                impossible=tally.impossible,
                first=tally.first,
                golden_impossible=None if goldens is None else tally.golden_impossible,
                outside=tuple(sorted(tally.outside, key=lambda each: -each.count)),
            )
            for name, tally in tallies.items()
        )
        found: dict[bool, tuple[Explanation, ...]] = {}
        first_part = None
        for is_golden, arrays in ((False, results), (True, goldens)):
            if is_golden in failing and arrays is not None:
                part = self._small_part(failing[is_golden], arrays)
                cut = {name: array[slice(*part.rows)] for name, array in arrays.items()}
                found[is_golden] = explanations(part.bounds, cut, pairs=pairs, told=told)
                first_part = first_part or part
        judgement = Judgement(
            outputs=outputs,
            explanations=found.get(False, ()),
            golden_explanations=found.get(True, ()),
        )
        return PartedJudgement(judgement=judgement, parts=len(self._runs), first=first_part)

    def _beside(
        self, results: _Arrays, goldens: _Arrays, precise: Any, standard: Standard
    ) -> dict[str, JudgedOutput]:
        """The outputs beside their goldens, without bounds."""
        names = {alias: o.name for o in self.bounds.outputs for alias in (o.name, *o.aliases)}
        judged = judge(dict(results), dict(goldens), precise, standard=standard)
        return {names[each.name]: each for each in judged.outputs}

    def _check(self, results: _Arrays, goldens: _Arrays | None) -> None:
        shapes = {name: (self._parts.count, *self.bounds[name].shape[1:]) for name in self.bounds}
        try:
            for name, array in (*results.items(), *(goldens or {}).items()):
                check_like(array, self.bounds[name], shapes[self.bounds[name].name])
        except ImpossibleError as error:
            raise ValueError(str(error)) from error

    def _add(
        self,
        tallies: Mapping[str, _Tally],
        part: RowPart,
        bounds: Certainty,
        arrays: _Arrays,
        is_golden: bool,
    ) -> int:
        """Count the elements of a part that cannot be."""
        begin, end = part.rows
        total = 0
        for name, whole in arrays.items():
            output = bounds[name]
            tally, array = tallies[output.name], native(whole[begin:end])
            outside = ~output.contains(array)
            count = int(np.count_nonzero(outside))
            total += count
            if is_golden:
                tally.golden_impossible += count
                continue
            tally.impossible += count
            if count:
                places = _Places(output, begin, self._parts.count)
                tally.outside += [
                    places.whole(each, tally.tiles) for each in by_tile(output, outside)
                ]
                if not tally.first:
                    tally.first = places.text(outside, array)
            tally.tiles += sum(
                len(patch.record.tiles().grid) for patch in patches_of(output.values, output.values)
            )
        return total

    def _small_part(self, groups: tuple[int, int], arrays: _Arrays) -> RowPart:
        """The groups around the first impossible element that are few enough for hypotheses."""
        first, last = groups
        for begin, end in self._ranges(first, last, (last - first) // _HYPOTHESES):
            part = self._parts.part(begin, end)
            with muted():
                bounds = part.bounds()
            for name, array in arrays.items():
                if not bounds[name].contains(native(array[slice(*part.rows)])).all():
                    return part
        return self._parts.part(first, last)


class _Places:
    """Tiles, cores and indices of a part's output as they are in the whole.

    An operation over all rows of a part is one over all rows of the kernel. In a loop each round
    has its own tiles, which stay as they are.
    """

    def __init__(self, output: OutputCertainty, begin: int, count: int) -> None:
        self._output, self._begin, self._count = output, begin, count

    def whole(self, found: OutsideCount, tiles_before: int) -> OutsideCount:
        """A count with the tile's number, and the core's, in the whole."""
        if found.tile is None:
            return found
        tile, core = found.tile + tiles_before, found.core
        records = [p.record.tiles() for p in patches_of(self._output.values, self._output.values)]
        if len(records) == 1 and (record := self._widened(records[0])) is not None:
            tiles, cores = len(record.grid), record.core_count
            core = next(c for c in range(cores) if tile < first_tile(c + 1, tiles, cores))
        return dataclasses.replace(found, tile=tile, core=core)

    def text(self, outside: npt.NDArray[np.bool_], array: _Array) -> str:
        """The first elements, with their place in the whole."""
        rows = outside.any(axis=tuple(range(1, outside.ndim)))
        until = int(np.flatnonzero(rows)[:_ROWS_SHOWN][-1]) + 1
        where = np.argwhere(outside[:until])
        found = [self._moved(each) for each in described(where, array, self._output)]
        count = np.count_nonzero(outside)
        head = f"{self._output.name}, from row {self._begin:,} on: {count:,} elements cannot be"
        return "\n".join((f"{head}; the first {len(found)}:", *(f"  {each}" for each in found)))

    def _moved(self, each: Impossible) -> Impossible:
        row, *others = each.index
        index = (row + self._begin, *others)
        wide = None if each.record is None else self._widened(each.record.tiles())
        if wide is None:
            return dataclasses.replace(each, index=index)
        tile, core = wide.tile_at(index)
        return dataclasses.replace(each, index=index, tile=tile, core=core)

    def _widened(self, record: OperationRecord) -> OperationRecord | None:
        """The operation over all rows of the kernel; None in a loop."""
        grid = record.grid
        if record.loops or grid.shape[0] != self._output.shape[0]:
            return None
        wide = Grid(shape=(self._count, *grid.shape[1:]), tile_shape=grid.tile_shape)
        return dataclasses.replace(record, grid=wide)
