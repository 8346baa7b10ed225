"""A tuning result as one HTML file that loads nothing: charts, the plan's tiles and UB, sources."""

from __future__ import annotations

import bisect
import html
from typing import Final

from pypto_cast.report.figure import Arrangement, Figure, Mark, Row, arrangement, cells, figure_html
from pypto_cast.report.markup import OKABE_ITO, Table, html_table, page_html, resource
from pypto_cast.report.text_format import plural
from pypto_cast.tuning.report_charts import Section, best_bars, heat_map, timeline_bars
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


def tile_grid(cast: TunedCast) -> Section:
    """Draw the tiles in the colours of the cores that have them."""
    made = cast.plan
    count = len(made.grid)
    laid = arrangement(made.grid.counts, "tiles")
    rows, cols = min(laid.rows, _MOST_ROWS), min(laid.cols, _MOST_COLS)
    is_cut = (rows, cols) != (laid.rows, laid.cols)
    drawn = f"the first {rows} x {cols} of {laid.rows} x {laid.cols}" if is_cut else "all"
    tails = [f"{tail} along axis {axis}" for axis, tail in enumerate(made.tails) if tail]
    return Section(
        key="grid",
        title="Tiles",
        summary=(
            f"{list(made.shape)} in {plural(count, 'tile')} of {list(made.tile_shape)}, grid "
            f"{' x '.join(map(str, made.grid.counts))}, on {made.busy_cores} of "
            f"{made.chip.vector_cores} cores; {drawn} tiles are drawn, coloured by core."
        ),
        notes=(
            f"Down: {laid.row_name}; across: {laid.col_name}. A core has consecutive tiles of the "
            f"row-major order; colours repeat every {len(OKABE_ITO)} cores.",
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
            kind=f"core-{core % len(OKABE_ITO)}",
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
    rows = []
    for core in range(made.chip.vector_cores):
        tiles = made.core_tiles(core)
        if tiles:
            span = f"{tiles.start:,} to {tiles.stop - 1:,}"
            first = str(list(made.grid.tile(tiles.start).offset))
            rows.append((f"core {core}", f"{len(tiles):,}", span, first))
    return Table(
        caption="The tiles of each core",
        headings=("core", "tiles", "numbers", "the first starts at"),
        rows=tuple(rows),
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


def ub_strip(cast: TunedCast) -> Section:
    """The UB of one vector core as a strip."""
    made = cast.plan
    chip = made.chip
    used = made.ub.used_bytes
    parts = _parts(made)
    return Section(
        key="ub",
        title="UB",
        summary=(
            f"UB of one vector core of {chip}, {chip.ub_bytes:,} B: {used:,} B hold buffers of "
            f"{list(made.ub.pass_shape)} elements, {made.buffering}; "
            f"{chip.ub_bytes - chip.ub_safe_bytes:,} B are not for user code."
        ),
        notes=("To scale. Two slots take turns: one is copied while the other is converted.",),
        figures=(_strip(parts, chip.ub_bytes),),
        tables=(
            Table(
                caption="UB in address order",
                headings=("what", "from, B", "bytes"),
                rows=tuple((name, f"{at:,}", f"{size:,}") for name, at, size, *_ in parts),
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


def figures_table(cast: TunedCast) -> Section:
    """The cost set, the chip, and the choice under other cost sets."""
    return Section(
        key="parameters",
        title="Parameters",
        summary=(
            f"Cost set {cast.parameters.name} and chip {cast.chip}, a source per figure; "
            f"{cast.parameters.standing}."
        ),
        notes=(f"{cast.stability[:1].upper()}{cast.stability[1:]}.",),
        tables=(_cost_set_table(cast.parameters), _chip_table(cast.chip), _views_table(cast)),
    )


def _cost_set_table(parameters: CostParameters) -> Table:
    return Table(
        caption=f"Cost set {parameters.name}",
        headings=("figure", "value", "standing", "source"),
        rows=tuple(
            (
                name,
                _value(getattr(parameters, name)),
                parameters.sources[name].standing.value,
                parameters.sources[name].text,
            )
            for name in (*figure_names(), STARTUP_RULE)
        ),
        is_prose=True,
    )


def _chip_table(chip: Chip) -> Table:
    return Table(
        caption=f"Chip {chip}",
        headings=("figure", "value", "standing", "source"),
        rows=tuple(
            (name, _value(getattr(chip, name)), source.standing.value, source.text)
            for name, source in chip.sources.items()
        ),
        is_prose=True,
    )


def _views_table(result: TuningResult) -> Table:
    return Table(
        caption=f"What each cost set makes of {list(result.best)}",
        headings=("cost set", "its best", "cycles of its best", "cycles of the choice", "slower"),
        rows=tuple(
            (
                view.cost_set,
                str(list(view.best)),
                f"{view.best_cycles:,.0f}",
                f"{view.chosen_cycles:,.0f}",
                f"{view.excess:.1%}",
            )
            for view in result.views.values()
        ),
    )


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.15g}" if isinstance(value, (int, float)) else str(value)


def sections(cast: TunedCast) -> tuple[Section, ...]:
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
    parts = sections(cast)
    tabs = "\n".join(map(_tab, parts))
    panels = "\n".join(map(_panel, parts))
    standing = html.escape(cast.parameters.standing)
    return page_html(
        f"Tile shapes of {cast.title}",
        f'<p class="estimate"><strong>Estimated, never run:</strong> {standing}.</p>\n'
        f"{_facts(cast)}",
        f"""<div id="tabs" role="tablist" aria-label="Parts of the report">
{tabs}
</div>
{panels}""",
        script=resource(__package__, "tabs.js"),
    )


def _facts(cast: TunedCast) -> str:
    best = cast.candidates[0]
    cost = best.estimate
    call = f"pypto.set_vec_tile_shapes({', '.join(map(str, cast.best))})"
    facts = [
        ("Best of " + f"{cast.legal_count:,} legal", f"<code>{html.escape(call)}</code>"),
        (
            "Time",
            html.escape(
                f"{cost.microseconds:,.2f} us, {cost.cycles:,.0f} cycles; {cost.low_cycles:,.0f} "
                f"to {cost.high_cycles:,.0f} cycles over all cost sets"
            ),
        ),
        (
            "Bandwidth",
            html.escape(f"{cost.gb_per_second:,.0f} GB/s, {cost.bound_share:.0%} of the bound"),
        ),
        ("Why", html.escape(best.reason)),
        ("Chip", html.escape(f"{cast.chip}, {best.busy_cores} of {best.vector_cores} cores")),
        ("Cost set", html.escape(f"{cast.parameters.name}, objective {cast.objective}")),
        ("Stability", html.escape(cast.stability)),
        *(("Warning", html.escape(text)) for text in best.warnings),
        *(("Note", html.escape(text)) for text in cast.notes),
    ]
    rows = "\n".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts)
    return f"<dl>\n{rows}\n</dl>"


def _tab(section: Section) -> str:
    key = section.key
    return (
        f'<button type="button" role="tab" id="tab-{key}" aria-controls="panel-{key}" '
        f'data-key="{key}">{html.escape(section.title)}</button>'
    )


def _panel(section: Section) -> str:
    key = section.key
    tables = "\n".join(map(html_table, section.tables))
    notes = "\n".join(f"<p>{html.escape(note)}</p>" for note in section.notes)
    summary = html.escape(section.summary)
    body = f"<p>{summary}</p>\n{notes}\n{tables}"
    if section.figures:
        figures = "\n".join(figure_html(figure, section.summary) for figure in section.figures)
        body = (
            f"<p>{summary}</p>\n<figure>{figures}\n<figcaption>{notes}</figcaption></figure>\n"
            f"<details><summary>The same as text</summary>\n{tables}\n</details>"
        )
    return (
        f'<section role="tabpanel" id="panel-{key}" aria-labelledby="tab-{key}" tabindex="0">\n'
        f"<h2>{html.escape(section.title)}</h2>\n{body}\n</section>"
    )
