"""The report as HTML: one file with figures, tables and style in it."""

from __future__ import annotations

import html

from pypto_cast.report.figure import figure_html
from pypto_cast.report.markup import html_table, page_html, resource
from pypto_cast.tuning.report.best_bars import best_bars
from pypto_cast.tuning.report.figures_table import figures_table
from pypto_cast.tuning.report.heat_map import heat_map
from pypto_cast.tuning.report.section import Section
from pypto_cast.tuning.report.tile_grid import tile_grid
from pypto_cast.tuning.report.timeline_bars import timeline_bars
from pypto_cast.tuning.report.ub_strip import ub_strip
from pypto_cast.tuning.tune import TunedCast


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
