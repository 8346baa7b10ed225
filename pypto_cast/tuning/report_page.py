"""A tuning result as one HTML file that loads nothing: charts, the plan's tiles and UB, sources."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Sequence
from typing import Final

from pypto_cast.report.figure import CORE_COLORS, Arrangement, Figure, Mark, Row, arrangement, cells
from pypto_cast.report.page import page_html
from pypto_cast.report.report import Column, Report, Table, headed
from pypto_cast.report.text_format import plural
from pypto_cast.tuning.report_charts import best_bars, heat_map, timeline_bars
from pypto_cast.tuning.tune import TunedCast
from tiling.chips import Chip
from tiling.cost import STARTUP_RULE, CostParameters, figure_names
from tiling.plan import TilePlan
from tiling.ranking import TuningResult

_MOST_ROWS: Final = 64
_MOST_COLS: Final = 96
"""Tiles drawn along each side; of more, the first ones."""
_NUMBERED: Final = 12
"""Columns up to which each tile has its core's number written into it."""


def tile_grid(cast: TunedCast) -> Report:
    """Draw the tiles in the colours of the cores that have them."""
    made = cast.plan
    count = len(made.grid)
    laid = arrangement(made.grid.counts, "tiles")
    rows, cols = min(laid.rows, _MOST_ROWS), min(laid.cols, _MOST_COLS)
    is_cut = (rows, cols) != (laid.rows, laid.cols)
    drawn = f"the first {rows} x {cols} of {laid.rows} x {laid.cols}" if is_cut else "all"
    tails = [f"{tail} along axis {axis}" for axis, tail in enumerate(made.tails) if tail]
    return Report(
        kind="grid",
        title="Tiles",
        lead=(
            f"{list(made.shape)} in {plural(count, 'tile')} of {list(made.tile_shape)}, grid "
            f"{' x '.join(map(str, made.grid.counts))}, on {made.busy_cores} of "
            f"{made.chip.vector_cores} cores; {drawn} tiles are drawn, coloured by core."
        ),
        notes=(
            f"Down: {laid.row_name}; across: {laid.col_name}. A core has consecutive tiles of the "
            f"row-major order; colours repeat every {CORE_COLORS} cores.",
            f"The last tiles are shorter: {', '.join(tails)}."
            if tails
            else "All tiles have the same shape.",
            *(["Only the first tiles are drawn; the table has all cores."] if is_cut else []),
        ),
        figures=(_grid(made, laid, rows, cols),),
        tables=(_cores_table(made),),
    )


def _grid(made: TilePlan, laid: Arrangement, rows: int, cols: int) -> Figure:
    starts = [made.core_tiles(core).start for core in range(made.chip.vector_cores)]

    def mark(row: int, col: int) -> Mark | None:
        index = row * laid.cols + col
        if index >= len(made.grid):
            return None
        core = bisect.bisect_right(starts, index) - 1
        tile = made.grid.tile(index)
        return Mark(
            left=col,
            width=1,
            kind=f"core-{core % CORE_COLORS}",
            tip=f"core {core}, tile {index:,}\nat {list(tile.offset)}\n{list(tile.shape)} elements",
            text=str(core) if cols <= _NUMBERED else "",
        )

    return cells(
        [[mark(row, col) for col in range(cols)] for row in range(rows)],
        row_names=[str(row) for row in range(rows)],
        col_names=[str(col) for col in range(cols)],
        axis=f"across: {laid.col_name}; down: {laid.row_name}",
    )


def _cores_table(made: TilePlan) -> Table:
    of_cores = ((core, made.core_tiles(core)) for core in range(made.chip.vector_cores))
    return Table(
        caption="The tiles of each core",
        columns=headed("core", "tiles", "numbers", "the first starts at"),
        rows=[
            (
                *(f"core {core}", len(tiles), f"{tiles.start:,} to {tiles.stop - 1:,}"),
                list(made.grid.tile(tiles.start).offset),
            )
            for core, tiles in of_cores
            if tiles
        ],
    )


_ROLES: Final = {
    "in": ("input", "copy-in"),
    "out": ("output", "copy-out"),
    "tmp": ("scratch", "scalar"),
}
_KIB: Final = 1024
_TICK_KIB: Final = 32
_Part = tuple[str, int, int, str]
"""Name, offset and size in bytes, class in the style."""


def ub_strip(cast: TunedCast) -> Report:
    """The UB of one vector core as a strip."""
    made = cast.plan
    chip = made.chip
    used = made.ub.used_bytes
    parts = _parts(made)
    return Report(
        kind="ub",
        title="UB",
        lead=(
            f"UB of one vector core of {chip}, {chip.ub_bytes:,} B: {used:,} B hold buffers of "
            f"{list(made.ub.pass_shape)} elements, {made.buffering}; "
            f"{chip.ub_bytes - chip.ub_safe_bytes:,} B are not for user code."
        ),
        notes=("To scale. Two slots take turns: one is copied while the other is converted.",),
        figures=(_strip(parts, chip.ub_bytes),),
        tables=(
            Table(
                caption="UB in address order",
                columns=headed("what", "from, B", "bytes"),
                rows=[part[:3] for part in parts],
            ),
        ),
    )


def _parts(made: TilePlan) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    for buffer in made.ub.buffers:
        role, kind = _ROLES[buffer.role]
        slot = "" if buffer.role == "tmp" else f", slot {buffer.slot}"
        parts.append(
            (
                f"{role}{slot}",
                buffer.offset_bytes,
                buffer.size_bytes,
                kind + " second" * bool(buffer.slot),
            )
        )
    used, safe, whole = made.ub.used_bytes, made.chip.ub_safe_bytes, made.chip.ub_bytes
    parts.append(("free", used, safe - used, "free"))
    parts.append(("not for user code", safe, whole - safe, "illegal"))
    return tuple(part for part in parts if part[2] > 0)


def _strip(parts: tuple[_Part, ...], ub_bytes: int) -> Figure:
    return Figure(
        rows=(
            Row(
                marks=tuple(
                    Mark(left=at, width=size, kind=kind, tip=f"{name}\nfrom {at:,} B, {size:,} B")
                    for name, at, size, kind in parts
                )
            ),
        ),
        extent=ub_bytes,
        axis="address, KiB",
        ticks=tuple((kib * _KIB, str(kib)) for kib in range(0, ub_bytes // _KIB + 1, _TICK_KIB)),
        keys=tuple((kind, f"{name}: {size:,} B") for name, _, size, kind in parts),
        height_px=72,
    )


def figures_table(cast: TunedCast) -> Report:
    """The cost set, the chip, and the choice under other cost sets."""
    figures = (*figure_names(), STARTUP_RULE)
    return Report(
        kind="parameters",
        title="Parameters",
        lead=(
            f"Cost set {cast.parameters.name} and chip {cast.chip}, a source per figure; "
            f"{cast.parameters.standing}."
        ),
        notes=(f"{cast.stability[:1].upper()}{cast.stability[1:]}.",),
        tables=(
            _sourced(f"Cost set {cast.parameters.name}", cast.parameters, figures),
            _sourced(f"Chip {cast.chip}", cast.chip, tuple(cast.chip.sources)),
            _views_table(cast),
        ),
    )


def _sourced(caption: str, record: CostParameters | Chip, names: Sequence[str]) -> Table:
    """The figures of a record, each with its source."""
    sources = [record.sources[name] for name in names]
    return Table(
        caption=caption,
        columns=headed("figure", "value", "standing", "source"),
        rows=[
            (name, getattr(record, name), source.standing.value, source.text)
            for name, source in zip(names, sources, strict=True)
        ],
        is_prose=True,
    )


def _views_table(result: TuningResult) -> Table:
    return Table(
        caption=f"What each cost set makes of {list(result.best)}",
        columns=(
            *headed("cost set", "its best"),
            Column(heading="cycles of its best", spec=",.0f"),
            Column(heading="cycles of the choice", spec=",.0f"),
            Column(heading="slower", spec=".1%"),
        ),
        rows=[
            (view.cost_set, list(view.best), view.best_cycles, view.chosen_cycles, view.excess)
            for view in result.views.values()
        ],
    )


def sections(cast: TunedCast) -> tuple[Report, ...]:
    """The parts of the report, in order."""
    return tuple(
        part(cast)
        for part in (heat_map, best_bars, timeline_bars, tile_grid, ub_strip, figures_table)
    )


def page(cast: TunedCast) -> str:
    """The whole report; opening it in a browser loads nothing from a network.

    Args:
        cast: the tuning result with its cast.
    """
    told = cast.report
    return page_html(
        dataclasses.replace(
            told,
            title=f"Tile shapes of {cast.title}",
            facts=told.totals,
            tables=(),
            parts=sections(cast),
            is_tabbed=True,
        )
    )
