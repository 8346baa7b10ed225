"""The best tile shapes as bars, split by what the pipes work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pypto_cast.report.figure import Figure, Mark, Row, round_ticks
from pypto_cast.report.markup import Table
from pypto_cast.tuning.report.section import Section
from pypto_cast.tuning.tune import TunedCast
from tiling import ranking as tuner
from tiling.estimate import Limit
from tiling.grid import Shape
from tiling.ranking import Candidate
from tiling.ub import aligned_elems

_SHOWN: Final = 10
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


def best_bars(cast: TunedCast) -> Section:
    """The ten best of those that are not alike, or as many as there are."""
    shown = alike_in_groups(cast)
    first, last = shown[0][0].estimate, shown[-1][0].estimate
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
            "Tile shapes are alike, and share a bar, if they differ on one axis by one element, on "
            "the last axis by one 32 B block.",
        ),
        figures=(_figure(shown),),
        tables=(_figures(shown), _reasons(shown)),
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
        elif len(groups) < _SHOWN:
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


def _figure(shown: Sequence[_Group]) -> Figure:
    best = [group[0].estimate for group in shown]
    extent = 1.02 * max(max(e.high_cycles, sum(e.pipe_cycles.values())) for e in best)
    return Figure(
        rows=tuple(Row(label=_label(group), marks=_marks(group[0])) for group in shown),
        extent=extent,
        axis="cycles of the busiest core",
        ticks=round_ticks(extent),
        keys=tuple((kind, name) for _, name, kind in _PIPES),
    )


def _marks(candidate: Candidate) -> tuple[Mark, ...]:
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


def _figures(shown: Sequence[_Group]) -> Table:
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
        rows=tuple((_label(group), *_cells(group[0])) for group in shown),
    )


def _cells(c: Candidate) -> tuple[str, ...]:
    return (
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


def _reasons(shown: Sequence[_Group]) -> Table:
    return Table(
        caption="Why, what speaks against it, and which are alike",
        headings=("tile shape", "reason", "warnings", "alike"),
        rows=tuple(
            (_label(g), g[0].reason, "; ".join(g[0].warnings) or "none", _alike(g)) for g in shown
        ),
        is_prose=True,
    )


def _alike(group: _Group) -> str:
    others = [f"[{_extents(c.tile_shape)}]" for c in group[1:]]
    more = [f"{len(others) - _NAMED} more"] if len(others) > _NAMED else []
    return "; ".join([*others[:_NAMED], *more]) or "none"
