"""A pool of processes on the workers of a Dask cluster that run the code that is here."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor
from importlib import resources
from pathlib import Path
from typing import Any, Final

import pypto_cast
from pypto_cast.report.text_format import extra_hint

CONNECT_SECONDS: Final = 10
"""Seconds that a scheduler may take to answer."""
WORKER_SECONDS: Final = 60
"""Seconds that a cluster may take to have its first worker, or another one after the last."""
_WATCH_SECONDS: Final = 1.0
_ROOMS: Final = ("tiling", "simulator", "ascend_kernels", "pypto_cast")
"""The packages whose code a result may come from."""


@functools.cache
def code_version() -> str:
    """The package's version, and 16 hex digits of the SHA-256 of the code that a result comes from.

    The version alone does not tell two states of a checkout apart.
    """
    found = hashlib.sha256()
    for name, path in source_files():
        found.update(f"{name}\0".encode() + path.read_bytes())
    return f"{pypto_cast.__version__}+{found.hexdigest()[:16]}"


def check_code(version: str, owner: str) -> None:
    """Refuse a job that was made by other code, whose results could differ.

    Args:
        version: `code_version()` of whoever made the job.
        owner: what messages call that.

    Raises:
        RuntimeError: it is not the one here.
    """
    if version != code_version():
        raise RuntimeError(
            f"this worker runs pypto-cast {code_version()}, the {owner} {version}; install the "
            "same one on all machines"
        )


def source_files() -> Iterator[tuple[str, Path]]:
    """Every Python file of the four rooms, in all their folders: its name, and where it lies."""
    for room in _ROOMS:
        folder = Path(str(resources.files(room)))
        for path in sorted(folder.rglob("*.py")):
            yield f"{room}/{path.relative_to(folder).as_posix()}", path


@contextlib.contextmanager
def dask_pool(scheduler: str) -> Iterator[Executor]:
    """An executor on the workers of a cluster; it trusts and raises as `dask` does."""
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
    """Cancels the work on a cluster that has had no worker for long; Dask would wait.

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
    """Refuse to start without Dask.

    Raises:
        ModuleNotFoundError: `distributed` is not installed.
    """
    if importlib.util.find_spec("distributed") is None:
        raise ModuleNotFoundError(f"--scheduler needs Dask: {extra_hint('dask')}")


async def _check_address(distributed: Any, scheduler: str) -> None:
    """Raise for a wrong address at once; a Client that fails to connect does not end for long."""
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
