"""Carries out the jobs of a sweep: in processes of this machine, or on workers of Dask."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import importlib.util
import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Final

from pypto_cast.tuning.records import Record
from pypto_cast.tuning.sweep.jobs import SweepJob, code_version, evaluate
from pypto_cast.wording import extra_hint

CONNECT_SECONDS: Final = 10
"""Seconds that a scheduler may take to answer."""
WORKER_SECONDS: Final = 60
"""Seconds that a cluster may take to have its first worker, or another one after the last."""
_WATCH_SECONDS: Final = 1.0


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


@contextlib.contextmanager
def dask_pool(scheduler: str) -> Iterator[Executor]:
    """An executor on the workers of a cluster; see `dask` for what it trusts and raises."""
    # Its types are there only where it is installed.
    distributed: Any = importlib.import_module("distributed")
    asyncio.run(_check_address(distributed, scheduler))
    with (
        _without_log(),
        distributed.Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False) as client,
    ):
        _check_workers(client, scheduler)
        watch = _WorkerWatch(client)
        try:
            with watch:
                yield client.get_executor(pure=False)
        except CancelledError:
            if watch.lost_all:
                raise TimeoutError(
                    f"{scheduler} lost its last worker and got no other within {WORKER_SECONDS} s; "
                    "what is done is kept, and the same command does the rest"
                ) from None
            raise ConnectionError(
                f"the connection to {scheduler} was lost; what is done is kept, and the "
                "same command does the rest"
            ) from None


class _WorkerWatch:
    """Cancels what is under way on a cluster that has had no worker for long; Dask would wait.

    Attributes:
        lost_all: it did so.
    """

    def __init__(self, client: Any) -> None:
        self.lost_all = False
        self._client = client
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        idle_since = time.monotonic()
        while not self._ended.wait(_WATCH_SECONDS):
            try:
                has_workers = bool(self._client.ncores())
            except Exception:  # the connection is lost, which cancels everything by itself
                return
            if has_workers:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > WORKER_SECONDS:
                self.lost_all = True
                self._client.close()
                return


def require_dask() -> None:
    """Refuse to start what needs Dask.

    Raises:
        ModuleNotFoundError: `distributed` is not installed.
    """
    if importlib.util.find_spec("distributed") is None:
        raise ModuleNotFoundError(f"--scheduler needs Dask: {extra_hint('dask')}")


async def _check_address(distributed: Any, scheduler: str) -> None:
    """Say what is wrong with an address; a Client that fails to connect does not end for long."""
    arguments = distributed.Security().get_connection_args("client")
    try:
        comm = await distributed.comm.connect(scheduler, timeout=CONNECT_SECONDS, **arguments)
    except (OSError, ValueError, TypeError, asyncio.TimeoutError) as error:
        raise ConnectionError(
            f"no Dask scheduler at {scheduler!r}, which should be as in tcp://host:8786: {error}"
        ) from None
    await comm.close()


def _check_workers(client: Any, scheduler: str) -> None:
    """Refuse workers that would give other results, or end because they cannot import the job."""
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except asyncio.TimeoutError:
        raise TimeoutError(
            f"{scheduler} has had no worker for {WORKER_SECONDS} s; start one with "
            f"`dask worker {scheduler}`"
        ) from None
    for worker, found in client.run(code_version, on_error="return").items():
        if found != code_version():
            says = f"says {found}" if isinstance(found, Exception) else f"runs {found}"
            raise RuntimeError(
                f"worker {worker} {says}; it needs pypto-cast {code_version()}, as is here"
            )


@contextlib.contextmanager
def _without_log() -> Iterator[None]:
    """Keep a lost connection out of Dask's log: it is told here, in one line."""
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


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
