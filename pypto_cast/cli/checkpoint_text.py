"""The output of the checkpoint command, for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from pypto_cast.cast.cast_report import CastReport
from pypto_cast.checkpoints.blocks import LayerKind, by_kind, worst_first
from pypto_cast.checkpoints.casting import CheckpointCast, Job, Outcome
from pypto_cast.checkpoints.output_plan import OutputPlan
from pypto_cast.cli import text as render
from pypto_cast.cli.text import Cell, Column, FittedTable
from pypto_cast.dtypes.data_types import CastMode, SaturationMode
from pypto_cast.report.text_format import plural, printable

_WIDE: Final = 90
_MOST_ROWS: Final = 100
_MOST_NAMED: Final = 3
_COUNTS: Final = ("over-\nflow", "NaN", "zero", "sub-\nnormal", "max\nulp")
_REPORT_COLUMNS: Final = (
    *(Column(header=name, is_number=True) for name in _COUNTS),
    Column(header="SNR\ndB", is_number=True, is_minor=True),
)


def targets_text(work: CheckpointCast) -> str:
    """The dtypes asked for."""
    words = [
        str(t.dtype.format) if t.pattern is None else f"{t.pattern.pattern}: {t.dtype.format}"
        for t in work.choice.targets
    ]
    if work.quantizing is not None:
        kind = "symmetric" if work.quantizing.symmetric else "asymmetric"
        words.insert(0, f"INT8 with {kind} scales along axis {work.quantizing.axis}")
    return printable(", ".join(words))


def show_plan(plan: OutputPlan, html: Path | None) -> None:
    """Show the plan of an output: a row per file, then the files it replaces, and refusals."""
    document = plan_document(plan)
    table = FittedTable(
        columns=(
            Column(header="entry", is_name=True),
            Column(header="bytes", is_number=True),
            Column(header="what"),
        ),
        rows=[
            [
                printable(row["name"]),
                "" if row["bytes"] is None else f"{row['bytes']:,}",
                printable(" ".join(filter(None, (row["what"], row["text"])))),
            ]
            for row in document["entries"]
        ],
    )
    title = f"{printable(str(plan.path))}: a dry run, nothing is written"
    lines = [
        *(f"replaced: {name}" for name in plan.replaced),
        *([f"written: {html}"] if html is not None else []),
        *(f"refused: {reason}" for reason in plan.refused),
    ]
    texts = [Text(printable(line)) for line in lines]
    render.show(render.heading(title), *([table] if document["entries"] else []), *texts)


def plan_document(plan: OutputPlan) -> dict[str, Any]:
    """The same for JSON."""
    written: list[tuple[str, int | None]] = [
        *((name, len(file.header) + file.tensor_bytes) for name, file in plan.files.items()),
        *((name, len(content)) for name, content in plan.documents.items()),
    ] or [(plan.path.name, None)]
    return {
        "output": str(plan.path),
        "kind": plan.kind.value,
        "entries": [
            {"name": name, "what": fate, "bytes": size, "text": text}
            for name, fate, size, text in (
                *((name, "written", size, "") for name, size in written),
                *((e.name, e.kind.value, e.size_bytes, e.text) for e in plan.entries),
            )
        ],
        "replaced": list(plan.replaced),
        "refused": list(plan.refused),
    }


def show_checkpoint(
    work: CheckpointCast,
    plan: OutputPlan | None,
    html: Path | None,
    outcomes: Sequence[Outcome],
) -> None:
    """Show a cast checkpoint: the largest tensor's plan, a row per tensor, kinds, totals."""
    is_default = work.mode is CastMode.CAST_NONE
    mode = "default modes" if is_default else f"{work.mode.name} where a pair has it"
    title = f"{printable(str(work.checkpoint.path))} -> {targets_text(work)}, {mode}"
    if work.satmode is SaturationMode.OFF:
        title += f", {render.OFF}"
    parts: list[RenderableType] = [render.heading(title)]
    largest = work.largest
    if largest is not None and (tiled := largest.planned()) is not None:
        table = render.pairs()
        table.add_row("largest", render.short_name(largest.stored.name))
        render.add_plan(table, tiled)
        parts.append(table)
    cast = [outcome for outcome in outcomes if outcome.job.is_cast]
    unchanged = [outcome.job for outcome in outcomes if not outcome.job.is_cast]
    reported = [outcome for outcome in cast if outcome.report is not None]
    if reported:
        parts += _tensors(reported)
        kinds = by_kind(reported)
        if len(kinds) < len(reported):
            parts.append(_kinds(kinds))
    if unchanged:
        parts += _unchanged(unchanged)
    bytes_in = sum(outcome.job.stored.size_bytes for outcome in outcomes)
    bytes_out = _bytes_out(outcomes)
    table = render.pairs()
    table.add_row(
        "total",
        f"{plural(len(cast), 'tensor')} cast, {len(unchanged):,} unchanged, "
        f"{bytes_in:,} B -> {bytes_out:,} B",
    )
    if reported:
        total = sum((o.report for o in reported if o.report), CastReport())
        render.add_report(table, total)
        if total.snr_db is not None:
            table.add_row("", f"signal to noise {total.snr_db:.1f} dB")
    for reason, names in _uncoded(outcomes).items():
        table.add_row(
            "no codes", f"{plural(len(names), 'tensor')}, {printable(reason)}: {_some(names)}"
        )
    scaled = [outcome for outcome in cast if outcome.uncertain is not None]
    if scaled:
        open_codes = sum(outcome.uncertain or 0 for outcome in scaled)
        elems = sum(outcome.job.stored.elems for outcome in scaled)
        table.add_row(
            "codes",
            f"{elems:,} in INT8, of which {open_codes:,} may differ on a device: its division is "
            "known to 1 ulp",
        )
    for kind, names in _beside(plan).items():
        table.add_row("beside", f"{len(names):,} {kind}: {_some(names)}")
    output = None if plan is None else plan.path
    render.show(*parts, table, *render.written([output, html]))


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


def checkpoint_document(
    work: CheckpointCast, plan: OutputPlan | None, outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """The same for JSON."""
    reports = [outcome.report for outcome in outcomes if outcome.report is not None]
    return {
        "input": str(work.checkpoint.path),
        "output": None if plan is None else str(plan.path),
        "to": list(map(str, work.choice.targets)),
        "mode": work.mode.name,
        "satmode": work.satmode.name,
        "metadata": dict(work.checkpoint.metadata),
        "tensors": [
            {
                "name": outcome.job.stored.name,
                "shape": list(outcome.job.stored.shape),
                "from": outcome.job.stored.dtype_in_words,
                "to": outcome.job.result.dtype_in_words,
                "unchanged": outcome.job.reason or None,
                "plan": render.plan_document(outcome.job.planned()),
                "uncertain": outcome.uncertain,
                "report": _report(outcome.report),
            }
            for outcome in outcomes
        ],
        "kinds": [
            {
                "name": kind.name,
                "tensors": kind.tensors,
                "uncertain": kind.uncertain,
                "report": _report(kind.report),
            }
            for kind in by_kind(outcomes)
        ],
        "total": {
            "cast": sum(outcome.job.is_cast for outcome in outcomes),
            "unchanged": sum(not outcome.job.is_cast for outcome in outcomes),
            "bytes_in": sum(outcome.job.stored.size_bytes for outcome in outcomes),
            "bytes_out": _bytes_out(outcomes),
            "report": _report(sum(reports, CastReport()) if reports else None),
        },
        "uncoded": _uncoded(outcomes),
        "beside": _beside(plan),
    }


def _report(report: CastReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    return {**render.report_document(report), "snr_db": report.snr_db}


def _bytes_out(outcomes: Sequence[Outcome]) -> int:
    return sum(one.tensor.size_bytes for outcome in outcomes for one in outcome.job.results)


def _tensors(reported: Sequence[Outcome]) -> list[RenderableType]:
    # The title names a single destination; where there is room, the rows repeat it.
    results = {outcome.job.result.dtype_in_words for outcome in reported}
    wide = render.width() >= _WIDE or len(results) > 1
    shown = list(reported)
    left = len(shown) - _MOST_ROWS
    if left > 0:
        shown = worst_first(shown)[:_MOST_ROWS]
    table = FittedTable(
        columns=(
            Column(header="tensor", is_name=True),
            Column(header="shape"),
            Column(header="cast" if wide else "from"),
            Column(header="tiles", is_minor=True),
            *_REPORT_COLUMNS,
        ),
        rows=[_row(one.job, one.report, wide=wide) for one in shown if one.report],
    )
    more = f"the {_MOST_ROWS} worst; {plural(left, 'more tensor')} in --json"
    return [table, *([Text(more)] if left > 0 else [])]


def _row(job: Job, report: CastReport, *, wide: bool) -> list[Cell]:
    shape = str(list(job.stored.shape))
    if job.is_folded:
        shape += f" folded to {list(job.shape)}"
    source = job.stored.dtype_in_words
    return [
        printable(job.stored.name),
        shape,
        f"{source} -> {job.result.dtype_in_words}" if wide else source,
        _tiles(job),
        *_report_cells(report),
    ]


def _tiles(job: Job) -> str:
    plan = job.planned()
    if plan is None:
        return ""
    tiles = plan.tiles
    whole = tiles.tile_shape == tiles.shape
    return "1 tile" if whole else f"{len(tiles.grid):,} x {list(tiles.tile_shape)}"


def _report_cells(report: CastReport) -> list[Cell]:
    counts = (report.overflows, report.nans_out, report.zeros, report.subnormals)
    numbers = [Text(f"{count:,}", style="yellow" if count else "dim") for count in counts]
    snr = "exact" if report.snr_db is None else f"{report.snr_db:.1f}"
    return [*numbers, f"{report.ulp_max:.4g}", snr]


def _kinds(kinds: Sequence[LayerKind]) -> FittedTable:
    return FittedTable(
        columns=(
            Column(header="kind of layer", is_name=True),
            Column(header="tensors", is_number=True),
            *_REPORT_COLUMNS,
        ),
        rows=[
            [
                printable(kind.name),
                f"{kind.tensors:,}",
                *_report_cells(kind.report),
            ]
            for kind in kinds[:_MOST_ROWS]
        ],
    )


def _unchanged(jobs: Sequence[Job]) -> list[RenderableType]:
    table = FittedTable(
        columns=(
            Column(header="unchanged", is_name=True),
            Column(header="shape"),
            Column(header="why"),
        ),
        rows=[
            (printable(job.stored.name), str(list(job.stored.shape)), printable(job.reason))
            for job in jobs[:_MOST_ROWS]
        ],
    )
    left = len(jobs) - _MOST_ROWS
    return [table, *([Text(f"{plural(left, 'more tensor')} in --json")] if left > 0 else [])]
