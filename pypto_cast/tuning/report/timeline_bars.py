"""The start of the best tile shape's timeline: what each pipe of one core does when."""

from __future__ import annotations

import itertools
from typing import Final

from pypto_cast.pages.markup import Table
from pypto_cast.tuning.report.section import (
    COPY_IN,
    COPY_OUT,
    VECTOR,
    Figure,
    Json,
    Section,
    legend_below,
)
from pypto_cast.tuning.tune import TunedCast
from simulator.machine.isa import Pipe, WaitFlag
from simulator.traces.trace import TraceEvent, trace

_CORE: Final = 0
"""No core has more tiles, or copies more (`tiling.loads`)."""
_SHOWN: Final = 240
"""Instructions, flags among them, from which on the picture is cut."""
_ROWS: Final = (
    (Pipe.MTE2, "MTE2<br>copy in", COPY_IN),
    (Pipe.V, "V<br>vector", VECTOR),
    (Pipe.MTE3, "MTE3<br>copy out", COPY_OUT),
)
_WAIT: Final = "#e3e3e3"


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
            "for a flag of another one. On a wide screen drag to zoom, double-click to see all.",
            *(
                [f"Cut after {_SHOWN} instructions; the core goes on in the same way."]
                if is_cut
                else []
            ),
        ),
        figure=_figure(events, end, to_us),
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
    traces: list[Json] = []
    for pipe, name, color in _ROWS:
        mine = [e for e in events if e.pipe is pipe]
        works = [e for e in mine if e.is_work]
        waits = [e for e in mine if not e.is_work]
        label = name.replace("<br>", ", ")
        traces.append(_bars(works, name, label, color, to_us))
        traces.append(_bars(waits, name, "waits for a flag", _WAIT, to_us))
    for repeated in traces[3::2]:
        repeated["showlegend"] = False
    return Figure(
        data=tuple(traces),
        layout={
            "barmode": "overlay",
            "bargap": 0.25,
            "xaxis": {
                "title": {"text": "us from the start of the core"},
                "range": [0, end * to_us],
            },
            "yaxis": {"type": "category", "autorange": "reversed", "fixedrange": True},
            "legend": legend_below(-0.24),
            "hovermode": "closest",
        },
        height=380,
    )


def _bars(events: list[TraceEvent], row: str, name: str, color: str, to_us: float) -> Json:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "legendgroup": name,
        "y": [row] * len(events),
        "base": [round(e.start_cycle * to_us, 5) for e in events],
        "x": [round(e.cycles * to_us, 5) for e in events],
        "text": [_words(e) for e in events],
        "textposition": "none",
        "marker": {
            "color": color,
            "line": {"color": "white", "width": 0.5},
        },
        "hovertemplate": "%{text}<br>from %{base:.3f} us, for %{x:.3f} us<extra></extra>",
    }


def _words(event: TraceEvent) -> str:
    name = type(event.instruction).__name__
    copied = f", {event.copied_bytes:,} B" if event.copied_bytes else ""
    return f"<b>{name}</b>{copied}" + (f"<br>{event.where}" if event.where else "")


def _table(events: list[TraceEvent], end: float, to_us: float) -> Table:
    rows = []
    for pipe, name, *_ in _ROWS:
        works = [e for e in events if e.pipe is pipe and e.is_work]
        cycles = sum(min(e.end_cycle, end) - e.start_cycle for e in works)
        copied = sum(e.copied_bytes for e in works)
        rows.append(
            (
                name.replace("<br>", ", "),
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
