"""The jobs of a sweep, carried out in processes of this machine or on Dask; their results on disk.

A job is one tile search with all that its result depends on. Results are JSON lines, one per job,
appended as they come.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pypto_cast.dask_pool import check_code, dask_pool, require_dask
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.tensors.array_files import OutputFile
from pypto_cast.tuning.records import Record, record_fault, record_of, request_fields
from pypto_cast.tuning.tune import tune
from tiling.cost import COST_SETS, DEFAULT_COST_SET, STARTUP_RULE, CostParameters, figure_names
from tiling.grid import Shape
from tiling.input_files import regular
from tiling.ranking import Objective

ParameterValues = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepJob:
    """One call of `tune`. It can be pickled, and two jobs are equal if their results are.

    Attributes:
        shape: the tensor's.
        src: the dtype to cast from.
        dst: the dtype to cast to.
        mode: as for `cast`; one that the pair lacks becomes its default, and a note says so.
        satmode: as for `cast`.
        chip: the vendor's name.
        objective: as for `tune`.
        top: candidates in the result.
        max_tiles: as for `tune`.
        cost_set: name of the set that ranks.
        figures: all of its figures, so that a result is not taken for that of another set.
        code: `code_version()` of whoever made the job.
    """

    shape: Shape
    src: DataType
    dst: DataType
    mode: CastMode
    satmode: SaturationMode
    chip: str
    objective: Objective
    top: int
    max_tiles: int
    cost_set: str
    figures: ParameterValues
    code: str

    @property
    def key(self) -> str:
        """SHA-256 of the job as canonical JSON, by which its result is found again."""
        said = {**request_fields(self), "figures": dict(self.figures), "code": self.code}
        return key_of(said)

    def __str__(self) -> str:
        return (
            f"{list(self.shape)} {self.src} -> {self.dst}, {self.mode.name}, "
            f"satmode {self.satmode.name}, {self.chip}"
        )

    def record(self) -> Record:
        """Carry the job out."""
        found = tune(
            self.shape,
            self.src,
            self.dst,
            chip=self.chip,
            mode=self.mode,
            satmode=self.satmode,
            objective=self.objective,
            top=self.top,
            max_tiles=self.max_tiles,
            cost_set=_parameters(self),
        )
        return record_of(self.key, found)


class Job(Protocol):
    """A tile search with all that its result depends on; it can be pickled."""

    @property
    def key(self) -> str:
        """The digest by which its result is found again."""

    @property
    def code(self) -> str:
        """`code_version()` of whoever made the job."""

    def record(self) -> Record:
        """Carry the job out."""


def key_of(said: Record) -> str:
    """SHA-256 of a record as canonical JSON."""
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def evaluate(job: Job) -> Record:
    """Carry a job out, in any process that has the same code.

    Raises:
        RuntimeError: the code here is not that of whoever made the job.
    """
    check_code(job.code, "sweep")
    return job.record()


def parameter_values(parameters: CostParameters) -> ParameterValues:
    """All figures of a set, in its order."""
    return tuple((name, getattr(parameters, name)) for name in (*figure_names(), STARTUP_RULE))


def _parameters(job: SweepJob) -> CostParameters:
    """The set, made anew from its figures."""
    if job.cost_set in COST_SETS:
        return COST_SETS[job.cost_set]
    return DEFAULT_COST_SET.replaced(job.cost_set, **dict(job.figures))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A job and its record, or why there is none."""

    job: Job
    record: Record | None = None
    failure: str = ""


Runner = Callable[[Sequence[Job]], Generator[Finished, None, None]]
"""Carries jobs out and yields them as they are done, in any order. Closing it drops the rest."""


def local(processes: int) -> Runner:
    """As many processes of this machine; with 1, and while this one ends, all is done in it."""

    def run(jobs: Sequence[Job]) -> Generator[Finished, None, None]:
        # Python starts no workers once the main thread has ended.
        if processes == 1 or len(jobs) < 2 or not threading.main_thread().is_alive():
            yield from (_finished(job, functools.partial(evaluate, job)) for job in jobs)
            return
        pool = spawned_pool(min(processes, len(jobs)))
        try:
            yield from _executed(pool, jobs)
        finally:
            pool.shutdown(cancel_futures=True)

    return run


def dask(scheduler: str) -> Runner:
    """The workers of a Dask cluster, which need this package in the same version.

    Scheduler and workers must be trusted: what Dask exchanges with them is pickled, and unpickling
    runs code, here too. Nothing is encrypted or authenticated unless Dask is configured for TLS.

    Dask gives the jobs of a worker that was lost to another one.
    What is returned raises when it is run:

        ConnectionError: nobody answers at the address, or the connection was lost later.
        TimeoutError: the cluster has no worker, or has lost its last one and got no other.
        RuntimeError: a worker has other code, or none.

    Args:
        scheduler: its address, such as tcp://host:8786.

    Raises:
        ModuleNotFoundError: `distributed` is not installed.
    """
    require_dask()

    def run(jobs: Sequence[Job]) -> Generator[Finished, None, None]:
        with dask_pool(scheduler) as pool:
            yield from _executed(pool, jobs)

    return run


def _executed(pool: Executor, jobs: Sequence[Job]) -> Iterator[Finished]:
    futures = {pool.submit(evaluate, job): job for job in jobs}
    for future in as_completed(futures):
        yield _finished(futures[future], future.result)


def _finished(job: Job, result: Callable[[], Record]) -> Finished:
    try:
        return Finished(job=job, record=result())
    except CancelledError:
        raise
    except Exception as error:
        return Finished(job=job, failure=f"{type(error).__name__}: {error}")


def spawned_pool(processes: int) -> Executor:
    """A pool of processes that end with this one, however it ends."""
    # Not fork: whoever shows the progress runs a thread, and its locks would be copied.
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes, mp_context=spawn, initializer=_begin_worker)


def _begin_worker() -> None:
    """The terminal sends Ctrl-C to workers too; the one that waits for them ends them.

    Of one that was killed a worker would never hear: the queue's other end is its own too.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


_START: Final = b'{"key": "'
"""The beginning of every line; a line without it is not of a results file."""


class ResultsFile:
    """Results that are there, and those that come; `open_results` makes one."""

    def __init__(self, file: OutputFile, records: dict[str, Record]) -> None:
        self._file = file
        self._records = records

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def __getitem__(self, key: str) -> Record:
        return self._records[key]

    def add(self, record: Record) -> None:
        """Append a record; it outlives this process from here on.

        Raises:
            OSError: there is no room for it. What was written of it counts as cut short.
        """
        line = json.dumps(record).encode() + b"\n"
        # One write of a whole line, unbuffered: a process that dies leaves whole lines.
        if self._file.write(line) != len(line):
            raise OSError(f"{self._file.name}: no room left for the results")
        self._records[record["key"]] = record


@contextlib.contextmanager
def open_results(path: Path) -> Iterator[ResultsFile]:
    """Open the results of a sweep, which come into existence if they are not there.

    A last line that was cut short, by a crash or a full disk, is removed. Whole lines stay,
    whosever results they are.

    Raises:
        OSError: the file cannot be read or written.
        ValueError: a line is no result; nothing was changed.
    """
    held = regular(path).read_bytes() if path.exists() else b""
    *whole, torn = held.split(b"\n")
    records = [_record(path, number, line) for number, line in enumerate(whole, start=1)]
    if torn and torn[: len(_START)] != _START[: len(torn)]:
        raise _no_result(path, len(whole) + 1)
    with OutputFile(path, "ab", path) as file:
        if torn:
            file.truncate(len(held) - len(torn))
        yield ResultsFile(file, {record["key"]: record for record in records})


def _record(path: Path, number: int, line: bytes) -> Record:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        raise _no_result(path, number) from None
    if fault := record_fault(read):
        raise _no_result(path, number, fault)
    found: Record = read
    return found


def _no_result(path: Path, number: int, fault: str = "") -> ValueError:
    because = f" ({fault})" if fault else ""
    return ValueError(
        f"{path}, line {number}: no result of a sweep or of tune{because}; delete the line, or "
        "name another output"
    )
