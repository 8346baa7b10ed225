"""`pypto-cast checkpoint`: every tensor of a safetensors file, cast or copied and named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import typer
from rich.console import RenderableType
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from pypto_cast.cast_plan import CastPlan
from pypto_cast.checkpoints.casting import (
    CheckpointCast,
    Job,
    Outcome,
    carry_out,
    plan_checkpoint,
)
from pypto_cast.checkpoints.stored import read_header
from pypto_cast.cli import text as render
from pypto_cast.cli.app import ChipName, Force, Json, Mode, Output, Satmode, To
from pypto_cast.cli.fitted import Cell, Column, FittedTable
from pypto_cast.dtypes import CastMode, SaturationMode
from pypto_cast.files import check_free, output_file
from pypto_cast.inspection.cast_report import CastReport
from pypto_cast.names import dtype_named, mode_named, satmode_named
from pypto_cast.options import options
from pypto_cast.wording import plural, printable, tile_named
from tiling.chips import DEFAULT_CHIP

_WIDE: Final = 90
_COUNTS: Final = ("over-\nflow", "NaN", "zero", "sub-\nnormal", "max\nulp")


def run_checkpoint(
    source: Annotated[Path, typer.Argument(metavar="IN.safetensors", help="The checkpoint.")],
    to: To,
    mode: Mode = "CAST_NONE",
    satmode: Satmode = "ON",
    tile: Annotated[
        list[str] | None,
        typer.Option(metavar="N,N", help="Tile shape of tensors with as many dimensions; repeat."),
    ] = None,
    chip: ChipName = DEFAULT_CHIP.name,
    output: Output = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Cast every tensor of a safetensors file that can be; copy and name the others."""
    dst = dtype_named(to)
    round_mode = mode_named(mode)
    sat = satmode_named(satmode)
    tiles = [tile_named(entry) for entry in tile or ()]
    if output is not None:
        check_free(output, force=force, inputs=[source])
    with options(chip=chip):
        work = plan_checkpoint(read_header(source), dst, round_mode, sat, tiles)
        with output_file(output, force=force, inputs=[source]) as out:
            outcomes = list(_with_progress(work, out))
    if json:
        render.json(_as_json(work, output, outcomes))
    else:
        _show(work, output, outcomes)


def _with_progress(work: CheckpointCast, out: BinaryIO | None) -> Iterator[Outcome]:
    columns = (TextColumn("casting"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with render.progress(*columns) as shown:
        task = shown.add_task("", total=sum(job.stored.size_bytes for job in work.jobs))
        for outcome in carry_out(work, out):
            shown.advance(task, outcome.job.stored.size_bytes)
            yield outcome


def _show(work: CheckpointCast, output: Path | None, outcomes: Sequence[Outcome]) -> None:
    """Show a cast checkpoint: the largest tensor's plan, a row per tensor, the totals."""
    is_default = work.mode is CastMode.CAST_NONE
    mode = "default modes" if is_default else f"{work.mode.name} where a pair has it"
    title = f"{printable(str(work.checkpoint.path))} -> {work.dst.format}, {mode}"
    if work.satmode is SaturationMode.OFF:
        title += f", {render.OFF}"
    parts: list[RenderableType] = [render.heading(title)]
    largest = work.largest
    if largest is not None and largest.plan is not None:
        table = render.pairs()
        table.add_row("largest", render.short_name(largest.stored.name))
        render.add_plan(table, largest.plan)
        parts.append(table)
    done = [(o.job, o.job.plan, o.report) for o in outcomes]
    cast_rows = [_row(job, plan, report) for job, plan, report in done if plan and report]
    unchanged = [job for job, plan, _ in done if plan is None]
    if cast_rows:
        parts.append(_tensors(cast_rows, str(work.dst.format)))
    if unchanged:
        parts.append(_unchanged(unchanged))
    bytes_in = sum(job.stored.size_bytes for job, _, _ in done)
    bytes_out = sum(job.result.size_bytes for job, _, _ in done)
    table = render.pairs()
    table.add_row(
        "total",
        f"{plural(len(cast_rows), 'tensor')} cast, {len(unchanged):,} unchanged, "
        f"{bytes_in:,} B -> {bytes_out:,} B",
    )
    if cast_rows:
        render.add_report(table, sum((report for _, _, report in done if report), CastReport()))
    render.show(*parts, table, *render.written([output]))


def _tensors(rows: Sequence[Sequence[Cell]], dst: str) -> FittedTable:
    # The title names the destination; where there is room, the rows repeat it.
    wide = render.width() >= _WIDE
    return FittedTable(
        columns=(
            Column(header="tensor", is_name=True),
            Column(header="shape"),
            Column(header="cast" if wide else "from"),
            Column(header="tiles", is_minor=True),
            *(Column(header=name, is_number=True) for name in _COUNTS),
        ),
        rows=[
            [name, shape, f"{source} -> {dst}" if wide else source, *rest]
            for name, shape, source, *rest in rows
        ],
    )


def _row(job: Job, plan: CastPlan, report: CastReport) -> list[Cell]:
    shape = str(list(job.stored.shape))
    if job.is_folded:
        shape += f" folded to {list(job.shape)}"
    tiles = plan.tiles
    whole = tiles.tile_shape == tiles.shape
    counts = (report.overflows, report.nans_out, report.zeros, report.subnormals)
    return [
        _name(job),
        shape,
        job.stored.dtype_in_words,
        "1 tile" if whole else f"{len(tiles.grid):,} x {list(tiles.tile_shape)}",
        *(Text(f"{count:,}", style="yellow" if count else "dim") for count in counts),
        f"{report.ulp_max:.4g}",
    ]


def _unchanged(jobs: Sequence[Job]) -> FittedTable:
    return FittedTable(
        columns=(
            Column(header="unchanged", is_name=True),
            Column(header="shape"),
            Column(header="why"),
        ),
        rows=[(_name(job), str(list(job.stored.shape)), job.reason) for job in jobs],
    )


def _name(job: Job) -> str:
    return printable(job.stored.name)


def _as_json(
    work: CheckpointCast, output: Path | None, outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    reports = [outcome.report for outcome in outcomes if outcome.report is not None]
    return {
        "input": str(work.checkpoint.path),
        "output": None if output is None else str(output),
        "to": work.dst.name,
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
                "plan": render.plan_document(outcome.job.plan),
                "report": None
                if outcome.report is None
                else render.report_document(outcome.report),
            }
            for outcome in outcomes
        ],
        "total": {
            "cast": len(reports),
            "unchanged": len(outcomes) - len(reports),
            "bytes_in": sum(outcome.job.stored.size_bytes for outcome in outcomes),
            "bytes_out": sum(outcome.job.result.size_bytes for outcome in outcomes),
            "report": render.report_document(sum(reports, CastReport())),
        },
    }
