"""The report of a checkpoint's cast as HTML: magnitudes on the grid of the target format."""

from __future__ import annotations

import html
from collections.abc import Sequence
from string import Template
from typing import Final

import pypto_cast
from pypto_cast.checkpoints.blocks import Histogram, Outcome
from pypto_cast.checkpoints.casting import CheckpointCast
from pypto_cast.checkpoints.layer_kinds import LayerKind, by_kind, worst_first
from pypto_cast.checkpoints.stored import DTYPES
from pypto_cast.inspection.cast_report import CastReport
from pypto_cast.pages.markup import Table, base_style, html_table, resource
from pypto_cast.wording import plural, printable
from simulator.numbers.formats import FloatFormat

_MOST_TENSORS: Final = 200
"""Histograms on a page; the tables have all tensors."""
_MOST_ROWS: Final = 5000
_BIAS: Final = 127
_BAR, _HEIGHT, _FOOT = 12, 120, 34
_COLUMNS: Final = (
    "elements",
    "overflow",
    "NaN",
    "zero",
    "subnormal",
    "inexact",
    "max ulp",
    "SNR dB",
)


def checkpoint_page(work: CheckpointCast, outcomes: Sequence[Outcome]) -> str:
    """The whole page, worst tensors first; a browser that opens it asks nothing of a network.

    Args:
        work: what was done.
        outcomes: with reports and histograms.
    """
    ranked = worst_first(outcomes)
    kinds = by_kind(outcomes)
    total = sum((one.report for one in ranked if one.report), CastReport())
    title = f"Cast of {work.checkpoint.path.name}"
    snr = "all exact" if total.snr_db is None else f"signal to noise {total.snr_db:.1f} dB"
    summary = (
        f"{plural(len(ranked), 'tensor')}, {total.elems:,} elements: "
        f"{plural(total.overflows, 'overflow')}, {total.zeros:,} became zero, "
        f"{total.subnormals:,} subnormal, {snr}."
    )
    figures = [_figure(one) for one in ranked[:_MOST_TENSORS]]
    return Template(resource(__package__, "checkpoint_page.html")).substitute(
        title=html.escape(printable(title)),
        summary=html.escape(summary),
        style=base_style() + resource(__package__, "checkpoint_page.css"),
        kinds=html_table(_kinds_table(kinds)),
        figures="\n".join(figures),
        tensors=html_table(_tensors_table(ranked)),
        version=html.escape(pypto_cast.__version__),
    )


def _kinds_table(kinds: Sequence[LayerKind]) -> Table:
    return Table(
        caption="Kinds of layers",
        headings=("kind", "tensors", *_COLUMNS),
        rows=tuple(
            (printable(kind.name), f"{kind.tensors:,}", *_cells(kind.report))
            for kind in kinds[:_MOST_ROWS]
        ),
    )


def _tensors_table(ranked: Sequence[Outcome]) -> Table:
    return Table(
        caption="Tensors, the worst first",
        headings=("tensor", "shape", "cast", *_COLUMNS, "codes left open"),
        rows=tuple(
            (
                printable(one.job.stored.name),
                str(list(one.job.stored.shape)),
                _cast_in_words(one),
                *_cells(one.report or CastReport()),
                "" if one.uncertain is None else f"{one.uncertain:,}",
            )
            for one in ranked[:_MOST_ROWS]
        ),
    )


def _cast_in_words(one: Outcome) -> str:
    return f"{one.job.stored.dtype_in_words} -> {one.job.result.dtype_in_words}"


def _cells(report: CastReport) -> tuple[str, ...]:
    counts = (
        report.elems,
        report.overflows,
        report.nans_out,
        report.zeros,
        report.subnormals,
        report.inexact,
    )
    snr = "exact" if report.snr_db is None else f"{report.snr_db:.1f}"
    return (*(f"{count:,}" for count in counts), f"{report.ulp_max:.4g}", snr)


def _figure(one: Outcome) -> str:
    """A bar for each binade, as high as the root of its count, so that single elements show."""
    report = one.report or CastReport()
    words = html.escape(f"{printable(one.job.stored.name)}: {_cast_in_words(one)}")
    worst = ""
    if report.worst is not None:
        found = report.worst
        worst = f" Worst: {list(found.index)}, {found.source:.9g} -> {found.result:.9g}."
    snr = "exact" if report.snr_db is None else f"{report.snr_db:.1f} dB"
    told = (
        f"{plural(report.overflows, 'overflow')}, {report.zeros:,} to zero, "
        f"{report.subnormals:,} subnormal, signal to noise {snr}.{worst}"
    )
    picture = "" if one.histogram is None else _bars(one, one.histogram, words)
    caption = f"<figcaption>{html.escape(told)}</figcaption>"
    return f"<figure><h3>{words}</h3>\n{picture}\n{caption}</figure>"


def _bars(one: Outcome, counts: Histogram, words: str) -> str:
    held = [field for field in range(1, 255) if counts[field]]
    if not held:
        small, others = int(counts[0]), int(counts[255])
        return f"<p>{small:,} zeros or subnormal numbers, {others:,} not finite.</p>"
    first, last = held[0] - 1, held[-1] + 1
    most = max(int(counts[field]) for field in held)
    bars = []
    for field in range(first, last + 1):
        count = int(counts[field]) if field in (*held, 0) else 0
        tall = round(_HEIGHT * (count / most) ** 0.5) if count else 0
        left = (field - first) * _BAR
        label = "0 or subnormal" if field == 0 else f"2^{field - _BIAS}"
        bars.append(
            f'<rect class="{_class_of(one, field)}" x="{left}" y="{_HEIGHT - tall}" '
            f'width="{_BAR - 2}" height="{max(tall, 1)}">'
            f"<title>{label}: {count:,}</title></rect>"
        )
        if (field - _BIAS) % 4 == 0:
            bars.append(f'<text x="{left}" y="{_HEIGHT + 16}">{field - _BIAS}</text>')
    width = (last - first + 1) * _BAR + 10
    return (
        f'<svg role="img" aria-label="{words}" viewBox="0 0 {width} {_HEIGHT + _FOOT}" '
        f'width="{width}" height="{_HEIGHT + _FOOT}">{"".join(bars)}'
        f'<text x="0" y="{_HEIGHT + 31}">exponent of 2</text></svg>'
    )


def _class_of(one: Outcome, field: int) -> str:
    """Tells a binade's place in the target: flushed, subnormal, normal or beyond."""
    dtype = DTYPES.get(one.job.result.dtype)
    fmt = None if dtype is None else dtype.format
    if not isinstance(fmt, FloatFormat):
        return "normal"
    exponent = field - _BIAS
    if exponent > 1 - fmt.emin:
        return "beyond"
    if exponent < fmt.min_quantum:
        return "flushed"
    return "subnormal" if exponent < fmt.emin else "normal"
