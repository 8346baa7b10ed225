"""Casts the files of a directory on the workers of a Dask cluster, which see the same file system.

What is done is kept where the output is made until all of it is there: each file of tensors appears
whole, and then its report. The same command goes on from there; other settings, another input or
other code begin anew.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any, Final

import numpy as np

from pypto_cast.cast.cast_report import CastReport, Worst
from pypto_cast.checkpoints.blocks import Limits, execute_jobs
from pypto_cast.checkpoints.casting import CheckpointCast, Job, Outcome
from pypto_cast.checkpoints.directories import new_directory
from pypto_cast.checkpoints.output_plan import OutputPlan, complete_directory, planned_files
from pypto_cast.checkpoints.settings import Settings, planned_by
from pypto_cast.checkpoints.sinks import safetensors_sink
from pypto_cast.checkpoints.stored import Kind
from pypto_cast.dask_pool import check_code, code_version, dask_pool, require_dask
from pypto_cast.options.context import current, options
from pypto_cast.tensors.array_files import new_file
from pypto_cast.unfinished import BusyOutputError

_POLL_SECONDS: Final = 0.1


def cast_on_cluster(
    plan: OutputPlan | None,
    settings: Settings,
    scheduler: str,
    limits: Limits,
    *,
    shard_bytes: int | None,
) -> list[Outcome]:
    """Cast a checkpoint file by file on a cluster.

    Args:
        plan: the output, a directory.
        settings: by which the workers plan the work again.
        scheduler: the address of the cluster, which must be trusted.
        limits: of each worker.
        shard_bytes: most bytes of tensors in a file; None: files as those of the input.

    Raises:
        ModuleNotFoundError, ConnectionError, TimeoutError, RuntimeError: as `runners.dask`; a
            RuntimeError also for files that failed or an interrupt, and says how many are done.
        ValueError: no output, one that is no directory, or what `OutputPlan.check` refuses.
    """
    if plan is None or plan.kind is not Kind.DIRECTORY:
        raise ValueError(
            "--scheduler writes a directory file by file: give --output, and --shard-size unless "
            "the input is a directory"
        )
    require_dask()
    plan.check()
    work = plan.work
    key = _key(work, settings, shard_bytes, limits)
    with new_directory(plan.path, plan.check_place, key=key) as folder:
        reports = folder.with_name("reports")
        reports.mkdir(exist_ok=True)
        write = functools.partial(
            write_shard,
            source=work.checkpoint.path.absolute(),
            settings=settings,
            folder=folder,
            shard_bytes=shard_bytes,
            limits=limits,
            chip=current().chip.name,
            code=code_version(),
        )
        left = [shard for shard in plan.files if not _report_of(folder, shard).is_file()]
        if left:
            _complete(write, left, len(plan.files), scheduler, reports)
        found = {
            name: outcome
            for shard in plan.files
            for name, outcome in _outcomes(_report_of(folder, shard), work).items()
        }
        # Before the directory is moved: what it is exchanged for is nothing to go on with.
        shutil.rmtree(reports)
        for path in folder.iterdir():
            if path.name not in plan.files:
                _remove(path)
        complete_directory(plan, folder)
    return [found[job.stored.name] for job in work.jobs]


def write_shard(
    shard: str,
    *,
    source: Path,
    settings: Settings,
    folder: Path,
    shard_bytes: int | None,
    limits: Limits,
    chip: str,
    code: str,
) -> None:
    """Write one file of the output, in any process that has the same code, unless it is there.

    A file that another worker writes at this moment is waited for.

    Args:
        shard: name of the file.
        source: the input.
        settings: of the cast.
        folder: where the file goes; its report is beside once the file is whole.
        shard_bytes: as for `planned_files`.
        limits: memory, threads and reports.
        chip: whose casts they are.
        code: `code_version()` of whoever asks for it.

    Raises:
        RuntimeError: the code here is not that of whoever asks.
    """
    check_code(code, "command")
    while not _report_of(folder, shard).is_file():
        # A worker that an interrupted run left at this file goes on until the file is whole.
        try:
            _write_shard(shard, source, settings, folder, shard_bytes, limits, chip)
        except BusyOutputError:
            time.sleep(_POLL_SECONDS)


def _write_shard(
    shard: str,
    source: Path,
    settings: Settings,
    folder: Path,
    shard_bytes: int | None,
    limits: Limits,
    chip: str,
) -> None:
    with options(chip=chip):
        work = planned_by(source, settings)
        content = planned_files(work, shard_bytes)[shard]
        names = {item.job.stored.name for item in content.items}
        jobs = tuple(one for one in work.jobs if one.stored.name in names)
        part = dataclasses.replace(work, jobs=jobs)
        with new_file(folder / shard, force=True) as file:
            outcomes = list(execute_jobs(part, safetensors_sink(file, content), limits))
        with new_file(_report_of(folder, shard), force=True) as file:
            file.write(json.dumps([_document(one) for one in outcomes]).encode())


def _report_of(folder: Path, shard: str) -> Path:
    return folder.with_name("reports") / f"{shard}.json"


def _complete(
    write: Callable[[str], None], left: Sequence[str], total: int, scheduler: str, reports: Path
) -> None:
    failed: list[str] = []
    try:
        with dask_pool(scheduler) as pool:
            futures = {pool.submit(write, shard): shard for shard in left}
            for future in as_completed(futures):
                error = future.exception()
                if error is not None:
                    failed.append(f"{futures[future]}: {type(error).__name__}: {error}")
    except KeyboardInterrupt:
        done = len(list(reports.glob("*.json")))
        raise RuntimeError(
            f"interrupted; {done} of {total} files are kept, and the same command does the rest"
        ) from None
    if failed:
        raise RuntimeError(
            f"{len(failed)} of {total} files failed, and the same command does them again; "
            f"{failed[0]}"
        )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _key(work: CheckpointCast, settings: Settings, shard_bytes: int | None, limits: Limits) -> str:
    """A digest of all that the files of a run depend on: it differs where they could."""
    source = work.checkpoint.path
    files = [source / name for name in work.checkpoint.shards] or [source]
    said = {
        "code": code_version(),
        "settings": dataclasses.asdict(settings),
        "chip": current().chip.name,
        "shard_bytes": shard_bytes,
        "report": [limits.with_report, limits.with_histogram],
        "files": [[str(f.absolute()), f.stat().st_size, f.stat().st_mtime_ns] for f in files],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def _document(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.job.stored.name,
        **{
            name: None if report is None else dataclasses.asdict(report)
            for name, report in (
                ("report", outcome.report),
                ("against_bf16", outcome.against_bf16),
            )
        },
        "uncertain": outcome.uncertain,
        "histogram": None if outcome.histogram is None else outcome.histogram.tolist(),
    }


def _outcomes(report_file: Path, work: CheckpointCast) -> dict[str, Outcome]:
    jobs: dict[str, Job] = {job.stored.name: job for job in work.jobs}
    found = {}
    for one in json.loads(report_file.read_text()):
        histogram = one["histogram"]
        found[one["name"]] = Outcome(
            job=jobs[one["name"]],
            report=_cast_report(one["report"]),
            against_bf16=_cast_report(one["against_bf16"]),
            uncertain=one["uncertain"],
            histogram=None if histogram is None else np.array(histogram),
        )
    return found


def _cast_report(document: dict[str, Any] | None) -> CastReport | None:
    if document is None:
        return None
    worst = document["worst"]
    if worst is not None:
        worst = Worst(**{**worst, "index": tuple(worst["index"])})
    return CastReport(**{**document, "worst": worst})
