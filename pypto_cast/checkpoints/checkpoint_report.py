"""The report of a checkpoint's cast, its page with histograms, and the plan of a dry run."""

from __future__ import annotations

import dataclasses
import functools
import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from pypto_cast.cast.cast_plan import OFF
from pypto_cast.cast.cast_report import CastReport
from pypto_cast.checkpoints.blocks import TensorGroup, by_kind, by_layer, worst_first
from pypto_cast.checkpoints.casting import CheckpointCast, Job, Outcome
from pypto_cast.checkpoints.output_plan import OutputPlan
from pypto_cast.checkpoints.reading import Histogram
from pypto_cast.checkpoints.stored import DTYPES
from pypto_cast.dtypes.data_types import CastMode, SaturationMode
from pypto_cast.report.figure import Figure, Mark, Row
from pypto_cast.report.page import page_html
from pypto_cast.report.report import (
    Column,
    Fact,
    Report,
    Table,
    Words,
    columns,
    headed,
    plain,
    said,
)
from pypto_cast.report.text_format import plural, printable, written
from simulator.numbers.formats import FloatFormat
from simulator.numbers.literals import number_of

T = TypeVar("T")
_MOST_ROWS: Final = 100
"""Of a table in text."""
_MOST_NAMED: Final = 3
_HISTOGRAMS_BYTES, _TENSORS_BYTES, _GROUPS_BYTES = 420_000, 250_000, 90_000
"""Of these parts of a page, so that it stays below 1 MB; later ones are left out."""
_CELL_BYTES, _MARK_BYTES = 27, 100
"""Of a cell of a table, and of a mark or a label of a figure, without their texts."""
_REPORT_COLUMNS: Final = (
    Column(heading="over-\nflow", is_fault=True),
    Column(heading="NaN", is_fault=True),
    Column(heading="zero", is_fault=True),
    Column(heading="sub-\nnormal", is_fault=True),
    Column(heading="max\nulp", spec=".4g"),
    Column(heading="SNR\ndB", is_minor=True),
)


def _report_cells(report: CastReport) -> tuple[object, ...]:
    snr = report.snr_db
    return (
        *(report.overflows, report.nans_out, report.zeros, report.subnormals, report.ulp_max),
        Words(value=snr or 0.0, text="exact" if snr is None else f"{snr:.1f}"),
    )


def output_plan_report(plan: OutputPlan, html: Path | None) -> Report:
    """The plan of an output: a row per file, then the files it replaces, and refusals."""
    made: list[tuple[str, int | None]] = [
        *((name, len(file.header) + file.tensor_bytes) for name, file in plan.files.items()),
        *((name, len(content)) for name, content in plan.documents.items()),
    ] or [(plan.path.name, None)]
    entries = [
        *((name, "written", size, "") for name, size in made),
        *((e.name, e.kind.value, e.size_bytes, e.text) for e in plan.entries),
    ]
    return Report(
        kind="checkpoint-plan",
        title=f"{printable(str(plan.path))}: a dry run, nothing is written",
        facts=plain(output=plan.path, kind=plan.kind.value),
        tables=(
            Table(
                key="entries",
                columns=(
                    Column(key="name", heading="entry", is_name=True),
                    *columns(bytes="bytes", what=None, text=None),
                    *headed("what"),
                ),
                rows=[
                    (name, size, fate, text, f"{fate} {text}".strip())
                    for name, fate, size, text in entries
                ],
            ),
        ),
        totals=plain(replaced=plan.replaced, refused=plan.refused),
        notes=tuple(
            printable(line)
            for line in (
                *(f"replaced: {name}" for name in plan.replaced),
                *([f"written: {html}"] if html is not None else []),
                *(f"refused: {reason}" for reason in plan.refused),
            )
        ),
    )


def checkpoint_report(
    work: CheckpointCast,
    plan: OutputPlan | None,
    outcomes: Sequence[Outcome],
    html: Path | None = None,
) -> Report:
    """A cast checkpoint: the largest tensor's plan, a row per tensor, kinds, totals.

    Args:
        work: the input and the choices.
        plan: of the output; None without one.
        outcomes: of all tensors.
        html: the page that was written.
    """
    largest = work.largest
    tiled = None if largest is None else largest.planned()
    cast = [outcome for outcome in outcomes if outcome.job.is_cast]
    unchanged = [outcome.job for outcome in outcomes if not outcome.job.is_cast]
    reported = [outcome for outcome in cast if outcome.report is not None]
    total = sum((one.report for one in outcomes if one.report), CastReport())
    kinds = by_kind(reported)
    shown = reported if len(reported) <= _MOST_ROWS else worst_first(reported)[:_MOST_ROWS]
    bytes_in = sum(outcome.job.stored.size_bytes for outcome in outcomes)
    bytes_out = sum(one.tensor.size_bytes for outcome in outcomes for one in outcome.job.results)
    output = None if plan is None else plan.path
    return Report(
        kind="checkpoint",
        title=_title(work),
        facts=(
            *plain(input=work.checkpoint.path, output=output),
            *plain(dst=list(map(format, work.choice.targets)), mode=work.mode.name),
            *plain(satmode=work.satmode.name, metadata=dict(work.checkpoint.metadata)),
            # What text does not show is not planned for it.
            *plain(tensors=lambda: list(map(_tensor_document, outcomes))),
            *plain(kinds=lambda: list(map(_group_document, by_kind(outcomes)))),
            *plain(layers=lambda: list(map(_group_document, by_layer(outcomes)))),
            *(() if tiled is None or largest is None else (said("largest", _name(largest)),)),
            *(() if tiled is None else (tiled.fact(key=""),)),
        ),
        tables=(
            dataclasses.replace(_tensors_table(shown), note=_more(reported, "the {} worst; ")),
            _kinds_table(kinds[:_MOST_ROWS] if len(kinds) < len(reported) else ()),
            _layers_table(by_layer(outcomes)[:_MOST_ROWS]),
            Table(
                columns=(Column(heading="unchanged", is_name=True), *headed("shape", "why")),
                rows=[(_name(job), job.stored.shape, job.reason) for job in unchanged[:_MOST_ROWS]],
                note=_more(unchanged),
            ),
        ),
        totals=(
            Fact(
                key="total",
                label="total",
                value=Words(
                    value={
                        "cast": len(cast),
                        "unchanged": len(unchanged),
                        "bytes_in": bytes_in,
                        "bytes_out": bytes_out,
                        "report": _report_document(total) if reported else None,
                    },
                    text=f"{plural(len(cast), 'tensor')} cast, {len(unchanged):,} unchanged, "
                    f"{bytes_in:,} B -> {bytes_out:,} B",
                ),
            ),
            *(total.facts(key="") if reported else ()),
            said("", "" if total.snr_db is None else f"signal to noise {total.snr_db:.1f} dB"),
            *plain(uncoded=_uncoded(outcomes), beside=_beside(plan)),
            *(
                said(
                    "no codes", f"{plural(len(names), 'tensor')}, {printable(why)}: {_some(names)}"
                )
                for why, names in _uncoded(outcomes).items()
            ),
            *_open_codes(cast),
            *(
                said("beside", f"{len(names):,} {kind}: {_some(names)}")
                for kind, names in _beside(plan).items()
            ),
        ),
        notes=written([output, html]),
    )


def _more(rows: Sequence[object], before: str = "") -> str:
    """The count of rows that a table has no room for."""
    left = len(rows) - _MOST_ROWS
    more = f"{plural(left, 'more tensor')} in --json"
    return before.format(_MOST_ROWS) + more if left > 0 else ""


def _title(work: CheckpointCast) -> str:
    targets = [
        str(t.dtype.format) if t.pattern is None else f"{t.pattern.pattern}: {t.dtype.format}"
        for t in work.choice.targets
    ]
    if work.quantizing is not None:
        targets.insert(0, work.quantizing.described)
    is_default = work.mode is CastMode.CAST_NONE
    mode = "default modes" if is_default else f"{work.mode.name} where a pair has it"
    title = f"{work.checkpoint.path} -> {', '.join(targets)}, {mode}"
    return printable(title + (f", {OFF}" if work.satmode is SaturationMode.OFF else ""))


def _name(job: Job) -> str:
    return printable(job.stored.name)


def _tensors_table(shown: Sequence[Outcome], caption: str = "") -> Table:
    """A row per tensor; with a caption, for pages, columns that text lacks room for."""
    more = headed("elements", "inexact", "codes left open") if caption else ()
    return Table(
        caption=caption,
        columns=(
            Column(heading="tensor", is_name=True),
            *headed("shape", "cast"),
            Column(heading="tiles", is_minor=True),
            *_REPORT_COLUMNS,
            *more,
        ),
        rows=[
            (
                *(_name(one.job), _shape(one.job), _cast(one.job), _tiles(one.job)),
                *_report_cells(report),
                *((report.elems, report.inexact, one.uncertain) if more else ()),
            )
            for one in shown
            for report in [one.report or CastReport()]
        ],
    )


def _kinds_table(kinds: Sequence[TensorGroup], caption: str = "") -> Table:
    more = headed("elements", "inexact") if caption else ()
    return Table(
        caption=caption,
        columns=(
            *(Column(heading="kind of layer", is_name=True), *headed("tensors")),
            *(*_REPORT_COLUMNS, *more),
        ),
        rows=[
            (
                *(kind.name, kind.tensors, *_report_cells(kind.report)),
                *((kind.report.elems, kind.report.inexact) if more else ()),
            )
            for kind in kinds
        ],
    )


def _layers_table(layers: Sequence[TensorGroup], caption: str = "") -> Table:
    """The error of each layer against its tensors in BF16."""
    return Table(
        caption=caption,
        columns=(
            *(Column(heading="layer, against BF16", is_name=True), *headed("tensors")),
            Column(heading="mean error", spec=".2g"),
            Column(heading="max\nulp", spec=".4g"),
            Column(heading="SNR\ndB"),
        ),
        rows=[
            (
                *(layer.name, layer.tensors, layer.against_bf16.relative_mean),
                *_report_cells(layer.against_bf16)[-2:],
            )
            for layer in layers
        ],
    )


def _shape(job: Job) -> str:
    folded = f" folded to {list(job.shape)}" if job.is_folded else ""
    return f"{list(job.stored.shape)}{folded}"


def _cast(job: Job) -> str:
    return f"{job.stored.dtype_in_words} -> {job.dtype_in_words}"


def _tiles(job: Job) -> str:
    plan = job.planned()
    if plan is None:
        return ""
    tiles = plan.tiles
    whole = tiles.tile_shape == tiles.shape
    return "1 tile" if whole else f"{len(tiles.grid):,} x {list(tiles.tile_shape)}"


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(printable(name) for name in names[:_MOST_NAMED])
    return shown + (f" and {more:,} more" if more > 0 else "")


def _uncoded(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """The tensors that have no codes though these were asked for, by the reason."""
    found: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.job.uncoded:
            found.setdefault(outcome.job.uncoded, []).append(outcome.job.stored.name)
    return found


def _beside(plan: OutputPlan | None) -> dict[str, list[str]]:
    """The entries beside the files of tensors, by their fate."""
    if plan is None:
        return {}
    found = {"written": [*plan.documents]} if plan.documents else {}
    for entry in plan.entries:
        found.setdefault(entry.kind.value, []).append(entry.name)
    return found


def _open_codes(cast: Sequence[Outcome]) -> tuple[Fact, ...]:
    scaled = [outcome for outcome in cast if outcome.uncertain is not None]
    if not scaled:
        return ()
    left = sum(outcome.uncertain or 0 for outcome in scaled)
    elems = sum(outcome.job.stored.elems for outcome in scaled)
    codes = sorted({str(outcome.job.dst.format) for outcome in scaled if outcome.job.dst})
    text = f"{elems:,} in {', '.join(codes)}, "
    if all(outcome.job.quantizing and outcome.job.quantizing.codes.is_mx for outcome in scaled):
        text += "none of which a division makes: the scales are powers of two"
    else:
        text += f"of which {left:,} may differ on a device: its division is known to 1 ulp"
    return (said("codes", text),)


def _tensor_document(outcome: Outcome) -> dict[str, Any]:
    plan = outcome.job.planned()
    return {
        "name": outcome.job.stored.name,
        "shape": list(outcome.job.stored.shape),
        "src": outcome.job.stored.dtype_in_words,
        "dst": outcome.job.dtype_in_words,
        "unchanged": outcome.job.reason or None,
        "plan": None if plan is None else plan.document,
        "uncertain": outcome.uncertain,
        "report": _report_document(outcome.report),
    }


def _group_document(group: TensorGroup) -> dict[str, Any]:
    against = _report_document(group.against_bf16) if group.against_bf16.elems else None
    return {
        **{"name": group.name, "tensors": group.tensors, "uncertain": group.uncertain},
        **{"report": _report_document(group.report), "against_bf16": against},
    }


def _report_document(report: CastReport | None) -> dict[str, Any] | None:
    return None if report is None else {**report.document, "snr_db": report.snr_db}


# --- The page ------------------------------------------------------------------------------------

_BIAS: Final = 127
_NOT_FINITE: Final = 255
_HEIGHT_PX: Final = 120
_MOST_TICKS: Final = 8
_PLACES: Final = (
    ("normal", "normal"),
    ("subnormal", "subnormal with fewer bits"),
    ("flushed", "smaller than its smallest number"),
    ("beyond", "beyond its largest, infinite or NaN"),
)
"""Classes of binades, by the way the target represents them."""


def checkpoint_page(
    work: CheckpointCast, outcomes: Sequence[Outcome], told: Report | None = None
) -> str:
    """The whole page, worst tensors first; a browser that opens it asks nothing of a network.

    Args:
        work: the input and the choices.
        outcomes: with reports and histograms.
        told: the report, if it is made already.
    """
    ranked = worst_first(outcomes)
    told = told or checkpoint_report(work, None, outcomes)
    figures = _fitting(map(_figure, ranked), _HISTOGRAMS_BYTES, _bytes_of)
    return page_html(
        dataclasses.replace(
            told,
            title=printable(f"Cast of {work.checkpoint.path.name}"),
            facts=(*told.facts, *told.totals),
            tables=tuple(
                _fitted(table, _GROUPS_BYTES)
                for table in (
                    _kinds_table(by_kind(outcomes), "Kinds of layers"),
                    _layers_table(by_layer(outcomes), "Layers against BF16"),
                )
                if table.rows
            ),
            parts=(
                Report(
                    kind="magnitudes",
                    title="Magnitudes",
                    lead="Histograms of the source by power of two, square-root scale. The colour "
                    "says how the target holds the numbers.",
                    keys=_PLACES,
                    figures=tuple(figures),
                ),
                Report(
                    kind="tensors",
                    title="Tensors",
                    tables=(
                        _fitted(_tensors_table(ranked, "Tensors, the worst first"), _TENSORS_BYTES),
                    ),
                ),
            ),
        )
    )


def _fitted(table: Table, most_bytes: int) -> Table:
    """The first rows, as many as fit, and in the caption how many these are."""
    texts = zip(table.rows, table.texts(), strict=True)
    kept = _fitting(texts, most_bytes, lambda row: _bytes_of_texts(row[1]))
    count = len(table.rows)
    left_out = f"; {len(kept):,} of {count:,}" if len(kept) < count else ""
    return dataclasses.replace(
        table, caption=table.caption + left_out, rows=[row for row, _ in kept]
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


def _bytes_of_texts(texts: Iterable[str]) -> int:
    return sum(len(html.escape(text).encode()) + _CELL_BYTES for text in texts)


def _bytes_of(figure: Figure) -> int:
    marks = [mark for row in figure.rows for mark in row.marks]
    texts = [figure.title, figure.summary, figure.caption, *(mark.tip for mark in marks)]
    return _bytes_of_texts(texts) + _MARK_BYTES * (len(marks) + len(figure.ticks))


def _figure(one: Outcome) -> Figure:
    """A bar for each binade, as high as the root of its count, so that single elements show."""
    report = one.report or CastReport()
    words = f"{_name(one.job)}: {_cast(one.job)}"
    worst = ""
    if report.worst is not None:
        found = report.worst
        worst = f" Worst: {list(found.index)}, {found.source:.9g} -> {found.result:.9g}."
    snr = "exact" if report.snr_db is None else f"{report.snr_db:.1f} dB"
    counts = np.zeros(_NOT_FINITE + 1, np.int64) if one.histogram is None else one.histogram
    held = [field for field in range(1, _NOT_FINITE) if counts[field]]
    first, last = (held[0] - 1, held[-1]) if held else (0, -1)
    # Before the binades 0 and subnormal numbers, after them infinity and NaN.
    places = {0: 0, **{field: field - first for field in held}, _NOT_FINITE: last - first + 2}
    bars = _bars(one, counts, places)
    extent = 1 + max((mark.left for mark in bars), default=0)
    step = 4 * -(-int(extent) // (4 * _MOST_TICKS))
    return Figure(
        title=words,
        summary=words,
        caption=f"{plural(report.overflows, 'overflow')}, {report.zeros:,} to zero, "
        f"{report.subnormals:,} subnormal, signal to noise {snr}.{worst}",
        rows=(Row(marks=bars),),
        extent=extent,
        axis="exponent of 2",
        ticks=tuple(
            (field - first + 0.5, str(field - _BIAS))
            for field in range(first, last + 1)
            if (field - _BIAS) % step == 0
        ),
        height_px=_HEIGHT_PX,
    )


def _bars(one: Outcome, counts: Histogram, places: Mapping[int, int]) -> tuple[Mark, ...]:
    tips = {0: "0 or subnormal", _NOT_FINITE: "infinity or NaN"}
    most = max(int(counts[field]) for field in places)
    return tuple(
        Mark(
            left=place,
            width=1,
            kind="beyond special" if field == _NOT_FINITE else _class_of(one, field),
            height=min(max((count / most) ** 0.5, 0.02), 1),
            tip=f"{tips.get(field) or f'2^{field - _BIAS}'}: {count:,}",
            text={0: "0", _NOT_FINITE: "∞"}.get(field, ""),
        )
        for field, place in places.items()
        if (count := int(counts[field]))
    )


def _class_of(one: Outcome, field: int) -> str:
    """The place of a binade in the target: flushed, subnormal, normal or beyond.

    Scales bring every binade into the range of their codes, so that all of these are normal.
    """
    dtype = DTYPES.get(one.job.result.dtype)
    fmt = None if dtype is None else dtype.format
    if one.job.quantizing is not None or not isinstance(fmt, FloatFormat):
        return "normal"
    exponent = field - _BIAS
    if exponent > _greatest_exponent(fmt):
        return "beyond"
    if exponent < fmt.min_quantum:
        return "flushed"
    return "subnormal" if exponent < fmt.emin else "normal"


@functools.cache
def _greatest_exponent(fmt: FloatFormat) -> int:
    _, exponent = math.frexp(number_of(fmt.max_code, fmt).magnitude)
    return exponent - 1
