"""`pypto-cast sweep`: the tile shapes of many casts, on all cores or a Dask cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from pypto_cast.cli.app import Json, Scheduler
from pypto_cast.cli.kernel_sweep import read_kernels
from pypto_cast.kernel.tuned_kernel import standing_of
from pypto_cast.report import terminal
from pypto_cast.report.report import Column, Report, Table, headed, plain
from pypto_cast.report.text_format import plural, printable, written
from pypto_cast.tensors.array_files import check_apart, check_free, final_path, new_file
from pypto_cast.tuning.records import Record, csv_text
from pypto_cast.tuning.sweep.config import Sweep, read_config
from pypto_cast.tuning.sweep.jobs import (
    Finished,
    Job,
    ResultsFile,
    Runner,
    dask,
    local,
    open_results,
)
from pypto_cast.unfinished import unfinished
from tiling.cost import NOT_MEASURED
from tiling.input_files import toml_document

_COLUMNS: Final = (
    *headed("shape", "cast"),
    Column(heading="mode", is_minor=True),
    Column(heading="chip", is_minor=True),
    Column(heading="tile shape"),
    Column(heading="cycles", spec=",.0f"),
    Column(heading="range", is_minor=True),
    Column(heading="us", spec=",.2f"),
    Column(heading="stable", is_minor=True),
)

_KERNEL_COLUMNS: Final = (
    *headed("kernel", "shapes"),
    Column(heading="release", is_minor=True),
    Column(heading="chip", is_minor=True),
    Column(heading="tile shapes"),
    Column(heading="cycles", spec=",.0f"),
    Column(heading="model", is_minor=True),
    Column(heading="looked at", is_minor=True),
)


def run_sweep(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG.toml", help="Shapes, pairs, modes, chips; or kernels.")
    ],
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes; all cores if not given.")
    ] = None,
    scheduler: Scheduler = None,
    as_csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Write a row per candidate there, too."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the CSV if it exists.")] = False,
    as_json: Json = False,
) -> None:
    """Find the tile shapes of many casts or kernels.

    An interrupted run is resumed. Every shape with every pair, mode, satmode and chip is one
    search, as by `tune`, and so is every kernel with every release and chip. Results are estimated,
    never measured. They are appended to the output that the config names, as they come.
    """
    if jobs is not None and scheduler is not None:
        raise ValueError("--jobs and --scheduler exclude each other; choose one")
    read = toml_document(config)
    sweep = read_kernels(config, read) if "kernels" in read else read_config(config)
    runner = local(jobs or os.cpu_count() or 1) if scheduler is None else dask(scheduler)
    check_free(sweep.output, force=True, inputs=sweep.inputs)
    if as_csv is not None:
        check_apart([as_csv, sweep.output])
        check_free(as_csv, force=force, inputs=sweep.inputs)
    with unfinished(final_path(sweep.output)), open_results(sweep.output) as results:
        left = [job for job in sweep.jobs if job.key not in results]
        if left:
            _complete(sweep, left, results, runner)
        records = [results[job.key] for job in sweep.jobs]
    if as_csv is not None:
        with new_file(as_csv, force=force, inputs=sweep.inputs) as file:
            file.write(csv_text(records).encode())
    terminal.show(_report(sweep, records), as_json=as_json)


def _complete(sweep: Sweep, left: Sequence[Job], results: ResultsFile, runner: Runner) -> None:
    """Carry out the jobs that have no result yet.

    Raises:
        RuntimeError: jobs failed, or the user interrupted; the text says how many are left.
    """
    failed: list[Finished] = []
    total = plural(len(sweep.jobs), "job")
    columns = (TextColumn("sweep"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with terminal.progress(*columns) as shown, contextlib.closing(runner(left)) as finished:
            kept = len(sweep.jobs) - len(left)
            task = shown.add_task("sweeping", total=len(sweep.jobs), completed=kept, kept=kept)
            for one in finished:
                if one.record is None:
                    failed.append(one)
                else:
                    results.add(one.record)
                shown.advance(task)
    except KeyboardInterrupt:
        done = sum(job.key in results for job in sweep.jobs)
        raise RuntimeError(
            f"interrupted; {done} of {total} are in "
            f"{sweep.output}, and the same command does the rest"
        ) from None
    if failed:
        raise RuntimeError(
            f"{len(failed)} of {total} failed, the others are in {sweep.output}; "
            f"{failed[0].job}: {failed[0].failure}"
        )


def _report(sweep: Sweep, records: Sequence[Record]) -> Report:
    """A row per job with its best tile shape; the range of the cycles is over all cost sets."""
    notes = dict.fromkeys(note for record in records for note in record["notes"])
    if "kernel" in records[0]:
        columns, rows = _KERNEL_COLUMNS, list(map(_kernel_row, records))
        rests_on = "; ".join(dict.fromkeys(standing_of(each["model"]) for each in records))
    else:
        first = records[0]
        columns, rows = _COLUMNS, _cast_rows(records)
        rests_on = f"cost set {first['cost_set']}, objective {first['objective']}; {NOT_MEASURED}"
    return Report(
        kind="sweep",
        title="",
        facts=plain(output=sweep.output, jobs=list(records)),
        tables=(Table(columns=columns, rows=rows),),
        notes=(*map(printable, (*notes, rests_on)), *written([sweep.output])),
    )


def _kernel_row(record: Record) -> tuple[object, ...]:
    best = record["candidates"][0]
    return (
        *(printable(record["kernel"]), printable(" ".join(record["shapes"]))),
        *(record["release"], record["chip"], " ".join(best["tiles"]), best["cycles"]),
        record["model"],
        f"{record['looked_at']:,} of {record['looked_at'] + record['left']:,}",
    )


def _cast_rows(records: Sequence[Record]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for record in records:
        best = record["candidates"][0]
        off = " OFF" if record["satmode"] == "OFF" else ""
        rows.append(
            (
                *(record["shape"], f"{record['src']} -> {record['dst']}", record["mode"] + off),
                *(record["chip"], best["tile_shape"], best["cycles"]),
                f"{best['low_cycles']:,.0f} to {best['high_cycles']:,.0f}",
                *(best["microseconds"], record["is_stable"]),
            )
        )
    return rows
