"""Casts the files of a directory on the workers of a Dask cluster, which see the same file system.

What is done is kept in a directory beside the output until all of it is there: each file of tensors
appears in it whole, with its report. The same command goes on from there; other settings, another
input or other code begin anew.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from pypto_cast.checkpoints.blocks import Limits, Outcome, carry_out
from pypto_cast.checkpoints.casting import CheckpointCast, Job
from pypto_cast.checkpoints.directories import check_directory, followed, locked, move_directory
from pypto_cast.checkpoints.directory_writing import (
    complete_directory,
    planned_shards,
    shard_metadata,
)
from pypto_cast.checkpoints.settings import Settings, planned_by
from pypto_cast.checkpoints.sinks import SafetensorsSink, by_width, items_of
from pypto_cast.checkpoints.stored import Kind
from pypto_cast.files import new_file
from pypto_cast.inspection.cast_report import CastReport, Worst
from pypto_cast.options import options
from pypto_cast.tuning.sweep.jobs import code_version
from pypto_cast.tuning.sweep.runners import dask_pool, require_dask

_KEPT: Final = ".{}.{}.pypto-cast-shards"
_REPORT: Final = ".report.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardJob:
    """One file of the output, with all that a worker needs to write it; it can be pickled.

    Attributes:
        source: the input.
        settings: of the cast.
        shard: name of the file.
        folder: where it goes.
        shard_bytes: as for `planned_shards`.
        limits: memory, threads and reports.
        code: `code_version()` of whoever made the job.
    """

    source: Path
    settings: Settings
    shard: str
    folder: Path
    shard_bytes: int | None
    limits: Limits
    code: str


def cast_on_cluster(
    work: CheckpointCast,
    settings: Settings,
    output: Path | None,
    scheduler: str,
    limits: Limits,
    *,
    force: bool,
    shard_bytes: int | None,
) -> list[Outcome]:
    """Cast a checkpoint file by file on a cluster.

    Args:
        work: the work as it was planned here.
        settings: by which the workers plan it again.
        output: the directory; an existing one is exchanged with `force`.
        scheduler: the address of the cluster, which must be trusted.
        limits: of each worker.
        force: a directory that is there may be replaced.
        shard_bytes: most bytes of tensors in a file; None: files as those of the input.

    Raises:
        ModuleNotFoundError, ConnectionError, TimeoutError, RuntimeError: as `runners.dask`; a
            RuntimeError also for files that failed or an interrupt, and says how many are done.
        ValueError: no output, or one that is no directory.
    """
    is_directory = work.checkpoint.kind is Kind.DIRECTORY or shard_bytes is not None
    if output is None or not is_directory:
        raise ValueError(
            "--scheduler writes a directory file by file: give --output, and --shard-size unless "
            "the input is a directory"
        )
    require_dask()
    inputs = [work.checkpoint.path]
    check_directory(output, force=force, inputs=inputs)
    target = followed(output).absolute()
    shards = planned_shards(work, shard_bytes)
    with _kept(target, _key(work, settings, shard_bytes, limits)) as folder:
        jobs = [
            ShardJob(
                source=work.checkpoint.path.absolute(),
                settings=settings,
                shard=shard,
                folder=folder,
                shard_bytes=shard_bytes,
                limits=limits,
                code=code_version(),
            )
            for shard in shards
        ]
        left = [job for job in jobs if not _report_path(job).is_file()]
        if left:
            _complete(left, len(jobs), scheduler, folder)
        found = {
            name: outcome
            for job in jobs
            for name, outcome in _outcomes(json.loads(_report_path(job).read_text()), work).items()
        }
        for path in folder.iterdir():
            if path.name.removesuffix(_REPORT) not in shards or path.name.endswith(_REPORT):
                _remove(path)
        complete_directory(work, folder, shards)
        check_directory(output, force=force, inputs=inputs)
        move_directory(folder, target)
    return [found[job.stored.name] for job in work.jobs]


def write_shard(job: ShardJob) -> str:
    """Write one file of the output, in any process that has the same code; returns its name.

    Raises:
        RuntimeError: the code here is not that of whoever made the job.
    """
    if job.code != code_version():
        raise RuntimeError(
            f"this worker runs pypto-cast {code_version()}, the command {job.code}; install the "
            "same one on all machines"
        )
    with options():
        work = planned_by(job.source, job.settings)
        jobs = planned_shards(work, job.shard_bytes)[job.shard]
        part = dataclasses.replace(work, jobs=tuple(jobs))
        with new_file(job.folder / job.shard, force=True) as file:
            metadata = shard_metadata(work, job.shard)
            sink = SafetensorsSink(file, by_width(items_of(jobs)), metadata)
            outcomes = list(carry_out(part, sink, job.limits))
        with new_file(_report_path(job), force=True) as file:
            file.write(json.dumps([_document(one) for one in outcomes]).encode())
    return job.shard


def _complete(left: Sequence[ShardJob], total: int, scheduler: str, folder: Path) -> None:
    failed: list[str] = []
    try:
        with dask_pool(scheduler) as pool:
            futures = {pool.submit(write_shard, job): job for job in left}
            for future in as_completed(futures):
                error = future.exception()
                if error is not None:
                    failed.append(f"{futures[future].shard}: {type(error).__name__}: {error}")
    except KeyboardInterrupt:
        done = len(list(folder.glob(f"*{_REPORT}")))
        raise RuntimeError(
            f"interrupted; {done} of {total} files are kept, and the same command does the rest"
        ) from None
    if failed:
        raise RuntimeError(
            f"{len(failed)} of {total} files failed, and the same command does them again; "
            f"{failed[0]}"
        )


@contextlib.contextmanager
def _kept(target: Path, key: str) -> Iterator[Path]:
    """The directory of what is done, held alone; one of other settings is removed."""
    folder = target.parent / _KEPT.format(target.name, key)
    for other in target.parent.glob(_KEPT.format(target.name, "*")):
        if other != folder:
            with contextlib.suppress(OSError), locked(other):
                _remove(other)
    folder.mkdir(exist_ok=True)
    try:
        with locked(folder):
            yield folder
    except BlockingIOError:
        raise RuntimeError(f"another run writes {target} just now") from None
    # After an exchange it has the old output.
    if target.exists():
        _remove(folder)


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


def _report_path(job: ShardJob) -> Path:
    return job.folder / (job.shard + _REPORT)


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
