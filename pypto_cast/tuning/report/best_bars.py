"""The best tile shapes as bars, split by what the pipes work."""

from __future__ import annotations

from typing import Final

from pypto_cast.pages.markup import Table
from pypto_cast.tuning.report.section import (
    COPY_IN,
    COPY_OUT,
    INK,
    SCALAR,
    VECTOR,
    Figure,
    Json,
    Section,
    hatched,
    legend_below,
)
from pypto_cast.tuning.tune import TunedCast
from tiling.estimate import Limit
from tiling.ranking import Candidate

_SHOWN: Final = 10
_PIPES: Final = (
    (Limit.MTE2, "MTE2, copy in", COPY_IN, ""),
    (Limit.V, "V, vector", VECTOR, "/"),
    (Limit.MTE3, "MTE3, copy out", COPY_OUT, "."),
    (Limit.S, "S, scalar", SCALAR, "x"),
)


def best_bars(cast: TunedCast) -> Section:
    """The ten best, or as many as there are."""
    shown = cast.candidates[:_SHOWN]
    first, last = shown[0].estimate, shown[-1].estimate
    return Section(
        key="best",
        title=f"Best {len(shown)}",
        summary=(
            f"Bars of the best tile shapes, {len(shown)} of {cast.legal_count:,} legal ones, "
            f"from {first.cycles:,.0f} to {last.cycles:,.0f} estimated cycles, split by pipe."
        ),
        notes=(
            "Bars: what each pipe works on the busiest core. Pipes work side by side, so the whole "
            "(diamond) may be less than the sum. Thin line: the range over all cost sets.",
        ),
        figure=_figure(shown),
        tables=(_figures(shown), _reasons(shown)),
    )


def _label(candidate: Candidate) -> str:
    return f"{candidate.rank}: {', '.join(map(str, candidate.tile_shape))}"


def _figure(shown: tuple[Candidate, ...]) -> Figure:
    labels = list(map(_label, shown))
    bars: list[Json] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": labels,
            "x": [c.estimate.pipe_cycles[pipe] for c in shown],
            "marker": {"color": color, "pattern": hatched(pattern)},
            "hovertemplate": "%{y}<br>%{x:,.0f} cycles<extra>" + name + "</extra>",
        }
        for pipe, name, color, pattern in _PIPES
    ]
    estimates = [c.estimate for c in shown]
    bars_height = 36 * len(shown)
    whole: Json = {
        "type": "scatter",
        "mode": "markers",
        "name": "whole, with its range",
        "y": labels,
        "x": [e.cycles for e in estimates],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [e.high_cycles - e.cycles for e in estimates],
            "arrayminus": [e.cycles - e.low_cycles for e in estimates],
            "color": INK,
            "thickness": 1.5,
            "width": 5,
        },
        "marker": {
            "symbol": "diamond",
            "size": 10,
            "color": "white",
            "line": {"color": INK, "width": 1.5},
        },
        "text": [str(e.limit) for e in estimates],
        "hovertemplate": "%{y}<br>%{x:,.0f} cycles, limited by %{text}<extra>whole</extra>",
    }
    return Figure(
        data=(*bars, whole),
        layout={
            "barmode": "stack",
            "bargap": 0.35,
            "xaxis": {"title": {"text": "cycles of the busiest core"}, "rangemode": "tozero"},
            "yaxis": {"type": "category", "autorange": "reversed", "automargin": True},
            "legend": legend_below(-62 / (60 + bars_height)),
        },
        height=200 + bars_height,
    )


def _figures(shown: tuple[Candidate, ...]) -> Table:
    # fmt: off
    headings = (
        "tile shape", "cycles", "range", "us", "GB/s", "of the bound", "limit",
        *(str(pipe) for pipe, *_ in _PIPES),
        "tiles", "cores", "UB, B", "outside",
    )
    # fmt: on
    return Table(
        caption="Cycles in all, their range over all cost sets, and by pipe on the busiest core",
        headings=headings,
        rows=tuple(
            (
                _label(c),
                f"{c.estimate.cycles:,.0f}",
                f"{c.estimate.low_cycles:,.0f} to {c.estimate.high_cycles:,.0f}",
                f"{c.estimate.microseconds:,.2f}",
                f"{c.estimate.gb_per_second:,.0f}",
                f"{c.estimate.bound_share:.0%}",
                str(c.estimate.limit),
                *(f"{c.estimate.pipe_cycles[pipe]:,.0f}" for pipe, *_ in _PIPES),
                f"{c.tile_count:,}",
                f"{c.busy_cores} of {c.vector_cores}",
                f"{c.ub_bytes:,}",
                f"{c.tail_waste:.1%}",
            )
            for c in shown
        ),
    )


def _reasons(shown: tuple[Candidate, ...]) -> Table:
    return Table(
        caption="Why, and what speaks against it",
        headings=("tile shape", "reason", "warnings"),
        rows=tuple((_label(c), c.reason, "; ".join(c.warnings) or "none") for c in shown),
        is_prose=True,
    )
