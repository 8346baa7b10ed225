"""Carries out the jobs of a sweep: in processes of this machine, or on workers of Dask."""

from __future__ import annotations

import functools
import multiprocessing
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from pypto_cast.dask_pool import dask_pool, require_dask
from pypto_cast.tuning.records import Record
from pypto_cast.tuning.sweep.jobs import SweepJob, evaluate


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A job and its record, or why there is none."""

    job: SweepJob
    record: Record | None = None
    failure: str = ""


Runner = Callable[[Sequence[SweepJob]], Generator[Finished, None, None]]
"""Carries jobs out and yields them as they are done, in any order. Closing it drops the rest."""


def local(processes: int) -> Runner:
    """As many processes of this machine; with 1, and while this one ends, all is done in it."""

    def run(jobs: Sequence[SweepJob]) -> Generator[Finished, None, None]:
        # Python starts no workers once the main thread has ended.
        if processes == 1 or len(jobs) < 2 or not threading.main_thread().is_alive():
            yield from (_finished(job, functools.partial(evaluate, job)) for job in jobs)
            return
        # Not fork: whoever shows the progress runs a thread, and its locks would be copied.
        spawn = multiprocessing.get_context("spawn")
        most = min(processes, len(jobs))
        pool = ProcessPoolExecutor(most, mp_context=spawn, initializer=_ignore_interrupts)
        try:
            yield from _carried_out(pool, jobs)
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

    def run(jobs: Sequence[SweepJob]) -> Generator[Finished, None, None]:
        with dask_pool(scheduler) as pool:
            yield from _carried_out(pool, jobs)

    return run


def _carried_out(pool: Executor, jobs: Sequence[SweepJob]) -> Iterator[Finished]:
    futures = {pool.submit(evaluate, job): job for job in jobs}
    for future in as_completed(futures):
        yield _finished(futures[future], future.result)


def _finished(job: SweepJob, result: Callable[[], Record]) -> Finished:
    try:
        return Finished(job=job, record=result())
    except CancelledError:
        raise
    except Exception as error:
        return Finished(job=job, failure=f"{type(error).__name__}: {error}")


def _ignore_interrupts() -> None:
    """The terminal sends Ctrl-C to workers too; the one that waits for them ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
