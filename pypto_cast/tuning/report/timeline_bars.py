"""The start of the best tile shape's timeline: what each pipe of one core does when."""

from __future__ import annotations

import itertools
from typing import Final

from pypto_cast.report.figure import Figure, Mark, Row, round_ticks
from pypto_cast.report.markup import Table
from pypto_cast.tuning.report.section import Section
from pypto_cast.tuning.tune import TunedCast
from simulator.machine.isa import Pipe, WaitFlag
from simulator.traces.trace import TraceEvent, trace

_CORE: Final = 0
"""No core has more tiles, or copies more (`tiling.loads`)."""
_SHOWN: Final = 240
"""Instructions, flags among them, from which on the picture is cut."""
_ROWS: Final = (
    (Pipe.MTE2, "MTE2, copy in", "copy-in"),
    (Pipe.V, "V, vector", "vector"),
    (Pipe.MTE3, "MTE3, copy out", "copy-out"),
)


def timeline_bars(cast: TunedCast) -> Section:
    """The first instructions of core 0 under the best tile shape, by the event simulation."""
    stream = trace(cast.program, _CORE, cast.parameters)
    taken = list(itertools.islice(stream, _SHOWN))
    is_cut = next(stream, None) is not None
    end = _end_cycle(taken, is_cut)
    events = [e for e in taken if e.start_cycle < end and _is_drawn(e)]
    to_us = 1e6 / cast.parameters.clock_hz
    tiles = len(cast.plan.core_tiles(_CORE))
    part = f"the first {end * to_us:,.2f} us" if is_cut else f"all {end * to_us:,.2f} us"
    return Section(
        key="timeline",
        title="Timeline",
        summary=(
            f"Timeline of core {_CORE}, which has {tiles} of the tiles, under tile shape "
            f"{list(cast.best)}: {part}, a row per pipe, a bar per instruction."
        ),
        notes=(
            "By the event simulation, with the same cost set as the estimate. Grey: the pipe waits "
            "for a flag of another one.",
            *(
                [f"Cut after {_SHOWN} instructions; the core goes on in the same way."]
                if is_cut
                else []
            ),
        ),
        figures=(_figure(events, end, to_us),),
        tables=(_table(events, end, to_us),),
    )


def _end_cycle(events: list[TraceEvent], is_cut: bool) -> float:
    """Up to where the picture is whole: pipes that ran ahead would show more than those behind."""
    last = {event.pipe: event.end_cycle for event in events}
    whole = max(last.values())
    shared = min(last.get(pipe, 0.0) for pipe, *_ in _ROWS)
    return shared if is_cut and shared > 0 else whole


def _is_drawn(event: TraceEvent) -> bool:
    return event.is_work or (isinstance(event.instruction, WaitFlag) and event.cycles > 0)


def _figure(events: list[TraceEvent], end: float, to_us: float) -> Figure:
    return Figure(
        rows=tuple(
            Row(
                label=name,
                marks=tuple(_mark(e, kind, end, to_us) for e in events if e.pipe is pipe),
            )
            for pipe, name, kind in _ROWS
        ),
        extent=end * to_us,
        axis="us from the start of the core",
        ticks=round_ticks(end * to_us),
        keys=(*((kind, name) for _, name, kind in _ROWS), ("wait", "waits for a flag")),
        height_px=44,
    )


def _mark(event: TraceEvent, kind: str, end: float, to_us: float) -> Mark:
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


def _table(events: list[TraceEvent], end: float, to_us: float) -> Table:
    rows = []
    for pipe, name, *_ in _ROWS:
        works = [e for e in events if e.pipe is pipe and e.is_work]
        cycles = sum(min(e.end_cycle, end) - e.start_cycle for e in works)
        copied = sum(e.copied_bytes for e in works)
        rows.append(
            (
                name,
                f"{len(works)}",
                f"{cycles * to_us:,.2f}",
                f"{cycles / end:.0%}",
                f"{copied:,}",
            )
        )
    return Table(
        caption=f"Work of the pipes in the {end * to_us:,.2f} us drawn",
        headings=("pipe", "instructions", "us at work", "of the time", "bytes copied"),
        rows=tuple(rows),
    )
