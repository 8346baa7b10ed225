"""Tables that a notebook shows of tensors and plans."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.report.markup import Table
from simulator.numbers import float_environment
from tiling.plan import TilePlan

_SIDE: Final = 6
"""Rows and columns that are shown; of more, those at both ends."""


@float_environment.quiet()
def values_table(caption: str, values: npt.NDArray[Any]) -> Table:
    """The values along the last two axes, at the start of the axes further out.

    Args:
        caption: what stands over them.
        values: of any shape.
    """
    leading = (0,) * (values.ndim - 2)
    plane = np.atleast_2d(values[leading])
    rows, cols = (_ends(extent) for extent in plane.shape)
    if leading:
        caption = f"{caption}, at [{', '.join(map(str, leading))}]"
    return Table(
        caption=caption,
        headings=("", *("…" if col is None else str(col) for col in cols)),
        rows=tuple(
            (
                "…" if row is None else str(row),
                *("…" if None in (row, col) else str(plane[row, col]) for col in cols),
            )
            for row in rows
        ),
    )


def _ends(extent: int) -> list[int | None]:
    if extent <= _SIDE:
        return list(range(extent))
    half = _SIDE // 2
    return [*range(half), None, *range(extent - half, extent)]


def plan_table(made: TilePlan) -> Table:
    """The tiles of a tensor, their cores and the UB that each takes."""
    tails = [f"{tail} along axis {axis}" for axis, tail in enumerate(made.tails) if tail]
    facts = (
        ("tiles", f"{len(made.grid):,} of {list(made.tile_shape)}"),
        ("grid", " x ".join(map(str, made.grid.counts))),
        ("tails", ", ".join(tails) or "none"),
        ("cores", f"{made.busy_cores} of {made.chip.vector_cores} of {made.chip}"),
        ("UB a tile", f"{made.tile_bytes:,} of {made.chip.ub_bytes:,} B, {made.buffering}"),
        *(("warning", text) for text in made.diagnostics),
    )
    return Table(caption=f"Tiles of {list(made.shape)}", headings=("fact", "value"), rows=facts)
