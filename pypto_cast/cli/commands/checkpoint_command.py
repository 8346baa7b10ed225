"""`pypto-cast checkpoint`: every tensor of a model, cast, quantised or copied, and named."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

from pypto_cast.checkpoints.blocks import Limits, execute_jobs
from pypto_cast.checkpoints.casting import CheckpointCast, Outcome
from pypto_cast.checkpoints.checkpoint_report import (
    checkpoint_page,
    checkpoint_report,
    output_plan_report,
)
from pypto_cast.checkpoints.cluster import cast_on_cluster
from pypto_cast.checkpoints.output_plan import new_checkpoint, plan_output
from pypto_cast.checkpoints.settings import SETTINGS, planned_by, settings_of, size_named
from pypto_cast.checkpoints.sinks import Sink
from pypto_cast.cli.app import ChipName, Force, Json, Output, Scheduler, refuse_unread
from pypto_cast.options.context import options
from pypto_cast.report import terminal
from pypto_cast.report.page import check_pages
from pypto_cast.tensors.array_files import check_apart, check_free, output_file

_Patterns = list[str] | None
_REFUSED: Final = 1


def run_checkpoint(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A file of safetensors, .npz, .npy, torch.save or GGUF, or a directory of "
            "safetensors with its index.",
        ),
    ],
    to: Annotated[
        _Patterns,
        typer.Option(
            metavar="[PATTERN=]DTYPE", help="DT_BF16, or lm_head=DT_FP16 for some tensors; repeat."
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Settings; options go over them.")
    ] = None,
    include: Annotated[
        _Patterns, typer.Option(metavar="PATTERN", help="Change only tensors with this; repeat.")
    ] = None,
    exclude: Annotated[
        _Patterns, typer.Option(metavar="PATTERN", help="Leave tensors with this; repeat.")
    ] = None,
    keep_fp32: Annotated[
        _Patterns, typer.Option(metavar="PATTERN", help="The same, as in 'norm|router'; repeat.")
    ] = None,
    quantize: Annotated[
        str | None,
        typer.Option(metavar="CODES", help="Make codes with scales: int8, fp8, mxfp8, mxfp4."),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A scale for each channel, tensor or block of 128x128."),
    ] = None,
    axis: Annotated[
        int | None, typer.Option(metavar="N", help="Axis of the channels; 0: one scale a row.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="RULE", help="absmax, percentile:99.9 or mse.")
    ] = None,
    symmetric: Annotated[
        bool | None,
        typer.Option("--symmetric/--asymmetric", help="Without zero points, or with them."),
    ] = None,
    dims: Annotated[
        list[int] | None,
        typer.Option(metavar="N", help="Quantise tensors of N dimensions; 2 if not given; repeat."),
    ] = None,
    mode: Annotated[
        str | None, typer.Option(metavar="MODE", help="Round mode, such as CAST_RINT.")
    ] = None,
    satmode: Annotated[
        str | None, typer.Option(metavar="ON|OFF", help="ON clamps integers out of range.")
    ] = None,
    tile: Annotated[
        _Patterns,
        typer.Option(metavar="N,N", help="Tile shape of tensors with as many dimensions; repeat."),
    ] = None,
    chip: ChipName = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Of all blocks together; 256MiB.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Threads; all cores if not given.")
    ] = None,
    shard_size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Write a directory with files of at most this."),
    ] = None,
    report: Annotated[
        bool | None, typer.Option("--report/--no-report", help="Measure what the casts do.")
    ] = None,
    scheduler: Scheduler = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show what would be written, copied, replaced and refused; exit code 1 if "
            "anything would be refused.",
        ),
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as a page there.")
    ] = None,
    output: Output = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Cast or quantise the tensors of a model; copy the others."""
    given = {name: value for name, value in locals().items() if name in SETTINGS}
    settings = settings_of(config, given)
    inputs = [source] if config is None else [source, config]
    limits = Limits(
        memory_bytes=size_named(settings.memory, "--memory"),
        jobs=settings.jobs or os.cpu_count() or 1,
        with_report=settings.report,
        with_histogram=html is not None,
    )
    if html is not None:
        if not settings.report:
            raise ValueError("--html is the report; leave --no-report away")
        check_pages()
        check_apart([html, output])
        check_free(html, force=force, inputs=inputs)
    if output is None:
        refuse_unread(
            context, ("dry_run", "shard_size"), "without an output; name it with --output"
        )
    shard_bytes = size_named(settings.shard_size, "--shard-size") if settings.shard_size else None
    with options(chip=chip):
        work = planned_by(source, settings)
        plan = None
        if output is not None:
            plan = plan_output(work, output, force=force, shard_bytes=shard_bytes)
        if dry_run and plan is not None:
            terminal.show(output_plan_report(plan, html), as_json=json)
            if plan.refused:
                raise typer.Exit(_REFUSED)
            return
        with output_file(html, force=force, inputs=inputs) as page:
            if scheduler is not None:
                outcomes = cast_on_cluster(
                    plan, settings, scheduler, limits, shard_bytes=shard_bytes
                )
            else:
                with contextlib.ExitStack() as stack:
                    sink = None if plan is None else stack.enter_context(new_checkpoint(plan))
                    outcomes = list(_with_progress(work, sink, limits))
            told = checkpoint_report(work, plan, outcomes, html)
            if page is not None:
                page.write(checkpoint_page(work, outcomes, told).encode())
        terminal.show(told, as_json=json)


def _with_progress(work: CheckpointCast, sink: Sink | None, limits: Limits) -> Iterator[Outcome]:
    columns = (TextColumn("casting"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with terminal.progress(*columns) as shown:
        task = shown.add_task("casting", total=sum(job.stored.size_bytes for job in work.jobs))
        for outcome in execute_jobs(work, sink, limits):
            shown.advance(task, outcome.job.stored.size_bytes)
            yield outcome
