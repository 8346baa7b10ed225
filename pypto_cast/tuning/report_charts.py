"""The charts of a tuning report: the landscape of time, the best tile shapes, the timeline."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final

from pypto_cast.report.figure import (
    PIPE_ROWS,
    Figure,
    Mark,
    Row,
    cells,
    round_ticks,
    timeline_figure,
)
from pypto_cast.report.report import Column, Report, Table, headed
from pypto_cast.report.text_format import plural
from pypto_cast.tuning.tune import CANDIDATE_COLUMNS, TunedCast, candidate_cells
from simulator.machine.isa import Pipe, WaitFlag
from simulator.traces.trace import TraceEvent, trace
from tiling import ranking as tuner
from tiling.estimate import Limit
from tiling.grid import Shape
from tiling.ranking import Candidate, Cell, CellKind, Landscape, landscape
from tiling.ub import aligned_elems

_TICKS: Final = (1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 10000, 100000)
_APART: Final = 0.15
"""Part of the colour bar between two labels."""
_REFUSED: Final = {
    CellKind.ILLEGAL: ("illegal", "–"),
    CellKind.TOO_MANY_TILES: ("too-many", "+"),
}
"""The class in the style and the sign of a candidate without a time."""
_NUMBERED: Final = 32
"""Columns up to which a cell has its time as a multiple of the fastest written into it."""


def heat_map(cast: TunedCast) -> Report:
    """The tile shapes around the best one, with the estimated time of each."""
    best = cast.candidates[0]
    is_bounded = best.tile_count < cast.max_tiles  # else every legal one makes too many
    found = landscape(
        cast.job,
        cast.best,
        cast.parameters,
        max_tiles=cast.max_tiles if is_bounded else None,
    )
    return Report(
        kind="landscape",
        title="Landscape",
        lead=_heat_summary(cast, found),
        notes=_heat_notes(cast, found),
        figures=_heat_figures(cast, found),
        tables=(_heat_table(found),),
    )


def _heat_summary(cast: TunedCast, found: Landscape) -> str:
    total = len(found.rows) * len(found.cols)
    best = cast.candidates[0]
    times = [c.estimate.microseconds for row in found.cells for c in row if c.estimate]
    return (
        f"Heat map of the estimated time of tile shapes around {list(best.tile_shape)}: "
        f"{found.legal_count} of {total} are legal and take {min(times):,.2f} to "
        f"{max(times):,.2f} us; {found.counts[CellKind.TOO_MANY_TILES]} fit UB and make too many "
        f"tiles; {found.counts[CellKind.ILLEGAL]} are not legal."
    )


def _heat_notes(cast: TunedCast, found: Landscape) -> tuple[str, ...]:
    notes = [
        "Colour, and number where there is room: time as a multiple of the fastest tile shape "
        "shown, on a logarithmic scale. –: not legal; point at it for the reason. +: it fits, and "
        f"is left out because it makes {cast.max_tiles:,} tiles or more (--max-tiles). Star: the "
        "best.",
        f"The last axis goes in steps of {found.unit} elements: rows must be whole 32 B blocks in "
        "the input and in the output, so every other last axis is not legal.",
    ]
    if found.leading:
        notes.append(f"The axes further out are those of the best: {_by_axis(found.leading)}.")
    if not found.is_complete:
        notes.append("Of long axes some extents are shown, about evenly spaced by their ratio.")
    return tuple(notes)


def _by_axis(extents: tuple[int, ...]) -> str:
    return " x ".join(map(str, extents))


def _heat_figures(cast: TunedCast, found: Landscape) -> tuple[Figure, Figure]:
    """The slice, and the scale of its colours."""
    known = [c.estimate.cycles for row in found.cells for c in row if c.estimate]
    least, most = min(known), max(known)
    # Of equal times all are the fastest.
    scale = math.log(most / least) or 1.0

    def mark(col: int, cell: Cell) -> Mark:
        if cell.estimate is None:
            kind, sign = _REFUSED[cell.kind]
            return Mark(left=col, width=1, kind=kind, tip=_hover(cell), text=sign)
        is_best = cell.tile_shape == cast.best
        ratio = cell.estimate.cycles / least
        number = f"{ratio:.2g}" if len(found.cols) <= _NUMBERED else ""
        return Mark(
            left=col,
            width=1,
            kind="heat best" if is_best else "heat",
            tip=_hover(cell),
            text="★" if is_best else number,
            shade=math.log(ratio) / scale,
        )

    grid = cells(
        [[mark(col, cell) for col, cell in enumerate(row)] for row in found.cells],
        row_names=list(map(str, found.rows)),
        col_names=list(map(str, found.cols)),
        axis="across: last tile axis, elements; down: last tile axis but one",
    )
    key = Figure(
        rows=(Row(marks=(Mark(left=0, width=scale, kind="scale"),)),),
        extent=scale,
        axis="time / fastest",
        ticks=tuple((math.log(tick), f"{tick:g}x") for tick in _ticks(most / least)),
        height_px=14,
    )
    return grid, key


def _ticks(most: float) -> list[float]:
    """Round multiples up to `most`, far enough apart to be read on a logarithmic scale."""
    ticks: list[float] = []
    for tick in _TICKS:
        if tick <= most and (not ticks or math.log(tick / ticks[-1]) >= _APART * math.log(most)):
            ticks.append(tick)
    return ticks


def _hover(cell: Cell) -> str:
    head = str(list(cell.tile_shape))
    estimate = cell.estimate
    if estimate is None:
        return f"{head}\n{cell.kind}: {cell.refusal}"
    return (
        f"{head}\n{estimate.microseconds:,.2f} us, {estimate.cycles:,.0f} cycles"
        f"\n{estimate.low_cycles:,.0f} to {estimate.high_cycles:,.0f} over all sets"
        f"\n{estimate.gb_per_second:,.0f} GB/s, limited by {estimate.limit}"
        f"\n{plural(cell.tile_count, 'tile')}"
    )


def _heat_table(found: Landscape) -> Table:
    signs = "; ".join(f"{sign}: {kind}" for kind, (_, sign) in _REFUSED.items())
    return Table(
        caption=f"Estimated time in us; {signs}. Rows: last tile axis but one; columns: last tile "
        "axis.",
        columns=headed("last but one", *map(str, found.cols)),
        rows=[
            (str(extent), *map(_time, row))
            for extent, row in zip(found.rows, found.cells, strict=True)
        ],
    )


def _time(cell: Cell) -> str:
    return f"{cell.estimate.microseconds:,.2f}" if cell.estimate else _REFUSED[cell.kind][1]


_GROUPS: Final = 10
_LOOKED_AT: Final = 400
"""Candidates among which the ten are looked for."""
_NAMED: Final = 8
"""Of the tile shapes that are alike."""
_PIPES: Final = (
    (Limit.MTE2, "MTE2, copy in", "copy-in"),
    (Limit.V, "V, vector", "vector"),
    (Limit.MTE3, "MTE3, copy out", "copy-out"),
    (Limit.S, "S, scalar", "scalar"),
)
_Group = Sequence[Candidate]
"""Tile shapes that are alike, the best first."""


def best_bars(cast: TunedCast) -> Report:
    """The ten best of those that are not alike, or as many as there are."""
    shown = alike_in_groups(cast)
    first, last = shown[0][0].estimate, shown[-1][0].estimate
    return Report(
        kind="best",
        title=f"Best {len(shown)}",
        lead=(
            f"Bars of the best tile shapes, {len(shown)} of {cast.legal_count:,} legal ones, "
            f"from {first.cycles:,.0f} to {last.cycles:,.0f} estimated cycles, split by pipe."
        ),
        notes=(
            "Bars: what each pipe works on the busiest core. Pipes work side by side, so the whole "
            "(diamond) may be less than the sum. Thin line: the range over all cost sets.",
            "Tile shapes are alike, and share a bar, if they differ on one axis by one element, on "
            "the last axis by one 32 B block.",
        ),
        figures=(_bars(shown),),
        tables=(_bars_table(shown), _reasons_table(shown)),
    )


def alike_in_groups(cast: TunedCast) -> list[list[Candidate]]:
    """The best tile shapes, each with those that differ from it, or from one of them, by a step."""
    ranked = tuner.tune(
        cast.job,
        parameters=cast.parameters,
        objective=cast.objective,
        top=_LOOKED_AT,
        max_tiles=cast.max_tiles,
    )
    block = aligned_elems(cast.bits, cast.chip)
    groups: list[list[Candidate]] = []
    for candidate in ranked.candidates:
        mine = (g for g in groups if any(_is_alike(candidate, other, block) for other in g))
        group = next(mine, None)
        if group is not None:
            group.append(candidate)
        elif len(groups) < _GROUPS:
            groups.append([candidate])
        else:
            break
    return groups


def _is_alike(one: Candidate, other: Candidate, block: int) -> bool:
    a, b = one.tile_shape, other.tile_shape
    apart = [(axis, abs(x - y)) for axis, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
    return len(apart) == 1 and apart[0][1] <= (block if apart[0][0] == len(a) - 1 else 1)


def _label(group: _Group) -> str:
    more = f", and {len(group) - 1} alike" if len(group) > 1 else ""
    return f"{group[0].rank}: {_extents(group[0].tile_shape)}{more}"


def _extents(tile_shape: Shape) -> str:
    return ", ".join(map(str, tile_shape))


def _bars(shown: Sequence[_Group]) -> Figure:
    best = [group[0].estimate for group in shown]
    extent = 1.02 * max(max(e.high_cycles, sum(e.pipe_cycles.values())) for e in best)
    return Figure(
        rows=tuple(Row(label=_label(group), marks=_bar_marks(group[0])) for group in shown),
        extent=extent,
        axis="cycles of the busiest core",
        ticks=round_ticks(extent),
        keys=tuple((kind, name) for _, name, kind in _PIPES),
    )


def _bar_marks(candidate: Candidate) -> tuple[Mark, ...]:
    cost = candidate.estimate
    marks, at = [], 0.0
    for pipe, name, kind in _PIPES:
        cycles = cost.pipe_cycles[pipe]
        if cycles:
            marks.append(
                Mark(left=at, width=cycles, kind=kind, tip=f"{name}: {cycles:,.0f} cycles")
            )
        at += cycles
    whole = (
        f"whole: {cost.cycles:,.0f} cycles, limited by {cost.limit}\n"
        f"{cost.low_cycles:,.0f} to {cost.high_cycles:,.0f} over all cost sets"
    )
    low, high = cost.low_cycles, cost.high_cycles
    marks.append(Mark(left=low, width=high - low, kind="range"))
    marks.append(Mark(left=cost.cycles, width=0, kind="whole", tip=whole))
    return tuple(marks)


def _bars_table(shown: Sequence[_Group]) -> Table:
    pipes = [Column(heading=str(pipe), spec=",.0f") for pipe, *_ in _PIPES]
    return Table(
        caption="Cycles in all, their range over all cost sets, and by pipe on the busiest core",
        columns=(*headed("tile shape"), *CANDIDATE_COLUMNS[2:], *pipes, *headed("cores")),
        rows=[
            (
                _label(group),
                *candidate_cells(best)[2:],
                *(best.estimate.pipe_cycles[pipe] for pipe, *_ in _PIPES),
                f"{best.busy_cores} of {best.vector_cores}",
            )
            for group in shown
            for best in group[:1]
        ],
    )


def _reasons_table(shown: Sequence[_Group]) -> Table:
    return Table(
        caption="Why, what speaks against it, and which are alike",
        columns=headed("tile shape", "reason", "warnings", "alike"),
        rows=[
            (_label(g), g[0].reason, "; ".join(g[0].warnings) or "none", _alike(g)) for g in shown
        ],
        is_prose=True,
    )


def _alike(group: _Group) -> str:
    others = [f"[{_extents(c.tile_shape)}]" for c in group[1:]]
    more = [f"{len(others) - _NAMED} more"] if len(others) > _NAMED else []
    return "; ".join([*others[:_NAMED], *more]) or "none"


_CORE: Final = 0
"""No core has more tiles, or copies more (`tiling.loads`)."""
_INSTRUCTIONS: Final = 240
"""Instructions, flags among them, from which on the picture is cut."""
_ROWS: Final = tuple((Pipe[name], words, kind) for name, (kind, words) in PIPE_ROWS.items())


def timeline_bars(cast: TunedCast) -> Report:
    """The first instructions of core 0 under the best tile shape, by the event simulation."""
    stream = trace(cast.program, _CORE, cast.parameters)
    taken = list(itertools.islice(stream, _INSTRUCTIONS))
    is_cut = next(stream, None) is not None
    end = _end_cycle(taken, is_cut)
    events = [e for e in taken if e.start_cycle < end and _is_drawn(e)]
    to_us = 1e6 / cast.parameters.clock_hz
    tiles = len(cast.plan.core_tiles(_CORE))
    part = f"the first {end * to_us:,.2f} us" if is_cut else f"all {end * to_us:,.2f} us"
    return Report(
        kind="timeline",
        title="Timeline",
        lead=(
            f"Timeline of core {_CORE}, which has {tiles} of the tiles, under tile shape "
            f"{list(cast.best)}: {part}, a row per pipe, a bar per instruction."
        ),
        notes=(
            "By the event simulation, with the same cost set as the estimate. Grey: the pipe waits "
            "for a flag of another one.",
            *(
                [f"Cut after {_INSTRUCTIONS} instructions; the core goes on in the same way."]
                if is_cut
                else []
            ),
        ),
        figures=(_timeline(events, end, to_us),),
        tables=(_timeline_table(events, end, to_us),),
    )


def _end_cycle(events: list[TraceEvent], is_cut: bool) -> float:
    """Up to where the picture is whole: pipes that ran ahead would show more than those behind."""
    last = {event.pipe: event.end_cycle for event in events}
    whole = max(last.values())
    shared = min(last.get(pipe, 0.0) for pipe, *_ in _ROWS)
    return shared if is_cut and shared > 0 else whole


def _is_drawn(event: TraceEvent) -> bool:
    return event.is_work or (isinstance(event.instruction, WaitFlag) and event.cycles > 0)


def _timeline(events: list[TraceEvent], end: float, to_us: float) -> Figure:
    return timeline_figure(
        tuple(
            Row(
                label=name,
                marks=tuple(_timeline_mark(e, kind, end, to_us) for e in events if e.pipe is pipe),
            )
            for pipe, name, kind in _ROWS
        ),
        end * to_us,
        "us from the start of the core",
        height_px=44,
    )


def _timeline_mark(event: TraceEvent, kind: str, end: float, to_us: float) -> Mark:
    start, cycles = event.start_cycle, min(event.end_cycle, end) - event.start_cycle
    return Mark(
        left=start * to_us,
        width=cycles * to_us,
        kind=kind if event.is_work else "wait",
        tip=f"{_words(event)}\nfrom {start * to_us:.3f} us, for {event.cycles * to_us:.3f} us",
    )


def _words(event: TraceEvent) -> str:
    name = type(event.instruction).__name__
    copied = f", {event.copied_bytes:,} B" if event.copied_bytes else ""
    return f"{name}{copied}" + (f"\n{event.where}" if event.where else "")


def _timeline_table(events: list[TraceEvent], end: float, to_us: float) -> Table:
    rows = []
    for pipe, name, *_ in _ROWS:
        works = [e for e in events if e.pipe is pipe and e.is_work]
        cycles = sum(min(e.end_cycle, end) - e.start_cycle for e in works)
        copied = sum(e.copied_bytes for e in works)
        rows.append((name, len(works), cycles * to_us, cycles / end, copied))
    return Table(
        caption=f"Work of the pipes in the {end * to_us:,.2f} us drawn",
        columns=(
            *headed("pipe", "instructions"),
            Column(heading="us at work", spec=",.2f"),
            Column(heading="of the time", spec=".0%"),
            *headed("bytes copied"),
        ),
        rows=rows,
    )
