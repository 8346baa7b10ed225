"""Casts the files of a directory on the workers of a Dask cluster, which see the same file system.

What is done is kept where the output is made until all of it is there: each file of tensors appears
whole, and then its report. The same command goes on from there; other settings, another input or
other code begin anew.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from pypto_cast.options.context import options
from pypto_cast.tensors.array_files import new_file


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardJob:
    """One file of the output, with all that a worker needs to write it; it can be pickled.

    Attributes:
        source: the input.
        settings: of the cast.
        shard: name of the file.
        folder: where it goes.
        report: the file of what was found, which is there once the other one is whole.
        shard_bytes: as for `planned_files`.
        limits: memory, threads and reports.
        code: `code_version()` of whoever made the job.
    """

    source: Path
    settings: Settings
    shard: str
    folder: Path
    report: Path
    shard_bytes: int | None
    limits: Limits
    code: str


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
        jobs = [
            ShardJob(
                source=work.checkpoint.path.absolute(),
                settings=settings,
                shard=shard,
                folder=folder,
                report=reports / f"{shard}.json",
                shard_bytes=shard_bytes,
                limits=limits,
                code=code_version(),
            )
            for shard in plan.files
        ]
        left = [job for job in jobs if not job.report.is_file()]
        if left:
            _complete(left, len(jobs), scheduler, reports)
        found = {
            name: outcome
            for job in jobs
            for name, outcome in _outcomes(json.loads(job.report.read_text()), work).items()
        }
        # Before the directory is moved: what it is exchanged for is nothing to go on with.
        shutil.rmtree(reports)
        for path in folder.iterdir():
            if path.name not in plan.files:
                _remove(path)
        complete_directory(plan, folder)
    return [found[job.stored.name] for job in work.jobs]


def write_shard(job: ShardJob) -> str:
    """Write one file of the output, in any process that has the same code; returns its name.

    Raises:
        RuntimeError: the code here is not that of whoever made the job.
    """
    check_code(job.code, "command")
    with options():
        work = planned_by(job.source, job.settings)
        content = planned_files(work, job.shard_bytes)[job.shard]
        names = {item.job.stored.name for item in content.items}
        jobs = tuple(one for one in work.jobs if one.stored.name in names)
        part = dataclasses.replace(work, jobs=jobs)
        with new_file(job.folder / job.shard, force=True) as file:
            outcomes = list(execute_jobs(part, safetensors_sink(file, content), job.limits))
        with new_file(job.report, force=True) as file:
            file.write(json.dumps([_document(one) for one in outcomes]).encode())
    return job.shard


def _complete(left: Sequence[ShardJob], total: int, scheduler: str, reports: Path) -> None:
    failed: list[str] = []
    try:
        with dask_pool(scheduler) as pool:
            futures = {pool.submit(write_shard, job): job for job in left}
            for future in as_completed(futures):
                error = future.exception()
                if error is not None:
                    failed.append(f"{futures[future].shard}: {type(error).__name__}: {error}")
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
    """Tells runs apart whose files could differ."""
    source = work.checkpoint.path
    files = [source / name for name in work.checkpoint.shards] or [source]
    said = {
        "code": code_version(),
        "settings": dataclasses.asdict(settings),
        "shard_bytes": shard_bytes,
        "report": [limits.with_report, limits.with_histogram],
        "files": [[str(f.absolute()), f.stat().st_size, f.stat().st_mtime_ns] for f in files],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def _document(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.job.stored.name,
        "report": None if outcome.report is None else dataclasses.asdict(outcome.report),
        "uncertain": outcome.uncertain,
        "histogram": None if outcome.histogram is None else outcome.histogram.tolist(),
    }


def _outcomes(documents: Sequence[dict[str, Any]], work: CheckpointCast) -> dict[str, Outcome]:
    jobs: dict[str, Job] = {job.stored.name: job for job in work.jobs}
    found = {}
    for one in documents:
        report, histogram = one["report"], one["histogram"]
        if report is not None and report["worst"] is not None:
            worst = report["worst"]
            report["worst"] = Worst(**{**worst, "index": tuple(worst["index"])})
        found[one["name"]] = Outcome(
            job=jobs[one["name"]],
            report=None if report is None else CastReport(**report),
            uncertain=one["uncertain"],
            histogram=None if histogram is None else np.array(histogram),
        )
    return found
