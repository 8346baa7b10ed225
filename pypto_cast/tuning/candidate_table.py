"""The best tile shapes as a table, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from pypto_cast.report.markup import Table
from tiling.ranking import Candidate


def candidate_table(caption: str, candidates: Sequence[Candidate]) -> Table:
    """A row for each candidate: rank, tile shape, then numbers."""
    # fmt: off
    headings = (
        "", "tile shape", "cycles", "range", "us", "GB/s", "bound", "limit", "tiles", "UB B",
        "outside",
    )
    # fmt: on
    return Table(caption=caption, headings=headings, rows=tuple(map(_cells, candidates)))


def _cells(candidate: Candidate) -> tuple[str, ...]:
    cost = candidate.estimate
    return (
        str(candidate.rank),
        str(list(candidate.tile_shape)),
        f"{cost.cycles:,.0f}",
        f"{cost.low_cycles:,.0f} to {cost.high_cycles:,.0f}",
        f"{cost.microseconds:,.2f}",
        f"{cost.gb_per_second:,.0f}",
        f"{cost.bound_share:.0%}",
        str(cost.limit),
        f"{candidate.tile_count:,}",
        f"{candidate.ub_bytes:,}",
        f"{candidate.tail_waste:.1%}",
    )
