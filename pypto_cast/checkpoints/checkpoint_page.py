"""The report of a checkpoint's cast as HTML: magnitudes on the grid of the target format."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from pypto_cast.cast.cast_report import CastReport
from pypto_cast.checkpoints.blocks import LayerKind, by_kind, worst_first
from pypto_cast.checkpoints.casting import CheckpointCast, Outcome
from pypto_cast.checkpoints.reading import Histogram
from pypto_cast.checkpoints.stored import DTYPES
from pypto_cast.report.figure import Figure, Mark, Row, figure_html
from pypto_cast.report.markup import Table, html_table, page_html
from pypto_cast.report.text_format import plural, printable
from simulator.numbers.formats import FloatFormat

T = TypeVar("T")
_HISTOGRAMS_BYTES, _TENSORS_BYTES, _KINDS_BYTES = 450_000, 250_000, 150_000
"""Of these parts of a page, so that it stays below 1 MB; what comes later is left out."""
_CELL_BYTES: Final = 12
"""Of a table, without its text."""
_BIAS: Final = 127
_HEIGHT_PX: Final = 120
_MOST_TICKS: Final = 8
_PLACES: Final = (
    ("normal", "normal"),
    ("subnormal", "subnormal with fewer bits"),
    ("flushed", "smaller than its smallest number"),
    ("beyond", "beyond its largest"),
)
"""Classes of binades, and what the target holds of them."""
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
    figures = "\n".join(_fitting(map(_figure, ranked), _HISTOGRAMS_BYTES, _bytes_of))
    keys = "".join(f'<li><span class="key {kind}"></span>{text}</li>' for kind, text in _PLACES)
    return page_html(
        printable(title),
        f"<p>{html.escape(summary)}</p>",
        f"""{html_table(_kinds_table(kinds))}
<h2>Magnitudes</h2>
<p>Histograms of the source by power of two, square-root scale. The colour says how the target holds
the numbers:</p>
<ul class="keys inline">{keys}</ul>
{figures}
{html_table(_tensors_table(ranked))}""",
    )


def _kinds_table(kinds: Sequence[LayerKind]) -> Table:
    rows = ((printable(kind.name), f"{kind.tensors:,}", *_cells(kind.report)) for kind in kinds)
    shown = _fitting(rows, _KINDS_BYTES, _bytes_of_row)
    return Table(
        caption="Kinds of layers" + _left_out(len(shown), len(kinds)),
        headings=("kind", "tensors", *_COLUMNS),
        rows=tuple(shown),
    )


def _tensors_table(ranked: Sequence[Outcome]) -> Table:
    rows = (
        (
            printable(one.job.stored.name),
            str(list(one.job.stored.shape)),
            _cast_in_words(one),
            *_cells(one.report or CastReport()),
            "" if one.uncertain is None else f"{one.uncertain:,}",
        )
        for one in ranked
    )
    shown = _fitting(rows, _TENSORS_BYTES, _bytes_of_row)
    return Table(
        caption="Tensors, the worst first" + _left_out(len(shown), len(ranked)),
        headings=("tensor", "shape", "cast", *_COLUMNS, "codes left open"),
        rows=tuple(shown),
    )


def _fitting(parts: Iterable[T], most_bytes: int, bytes_of: Callable[[T], int]) -> list[T]:
    """The first parts, as many as fit."""
    taken = []
    for part in parts:
        most_bytes -= bytes_of(part)
        if most_bytes < 0:
            break
        taken.append(part)
    return taken


def _bytes_of(text: str) -> int:
    return len(text.encode())


def _bytes_of_row(row: Sequence[str]) -> int:
    return sum(_bytes_of(html.escape(cell)) + _CELL_BYTES for cell in row)


def _left_out(shown: int, count: int) -> str:
    return f"; {shown:,} of {count:,}" if shown < count else ""


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
    words = f"{printable(one.job.stored.name)}: {_cast_in_words(one)}"
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
    return f"<figure><h3>{html.escape(words)}</h3>\n{picture}\n{caption}</figure>"


def _bars(one: Outcome, counts: Histogram, words: str) -> str:
    held = [field for field in range(1, 255) if counts[field]]
    if not held:
        small, others = int(counts[0]), int(counts[255])
        return f"<p>{small:,} zeros or subnormal numbers, {others:,} not finite.</p>"
    first, last = held[0] - 1, held[-1] + 1
    most = max(int(counts[field]) for field in held)
    marks = [
        Mark(
            left=field - first,
            width=1,
            kind=_class_of(one, field),
            height=min(max((count / most) ** 0.5, 0.02), 1),
            tip=f"{'0 or subnormal' if field == 0 else f'2^{field - _BIAS}'}: {count:,}",
        )
        for field in range(first, last + 1)
        if (count := int(counts[field]) if field < 255 else 0)
    ]
    step = 4 * -(-(last - first) // (4 * _MOST_TICKS))
    figure = Figure(
        rows=(Row(marks=tuple(marks)),),
        extent=last - first + 1,
        axis="exponent of 2",
        ticks=tuple(
            (field - first + 0.5, str(field - _BIAS))
            for field in range(first, last + 1)
            if (field - _BIAS) % step == 0
        ),
        height_px=_HEIGHT_PX,
    )
    return figure_html(figure, words)


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
