"""Runs ended at any moment: the old output or the new one, whole; the next run succeeds."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from support.environment.models import load_sharded
from support.environment.signals import heard
from support.numbers.codes import SEED

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has none of these signals")
SIGNALS = ("SIGTERM", "SIGHUP", "SIGINT", "SIGKILL")
# Imports once and forks for each run, which takes long enough to be met in the middle. A signal in
# the middle of an import may leave Python's lock of imports held, and Dask's threads import too.
SERVER = """
import contextlib, json, os, sys, time
with contextlib.suppress(ImportError):
    from distributed.versions import get_versions
    get_versions()
from pypto_cast.cli.main import main
from pypto_cast.checkpoints.reading import Reader
read = Reader.read
def slowly(*arguments):
    time.sleep(0.002)
    return read(*arguments)
Reader.read = slowly
main(["checkpoint", "--nothing"])
for line in sys.stdin:
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(main(json.loads(line)))
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Server:
    """Starts runs."""

    def __init__(self) -> None:
        with heard():
            self._process = subprocess.Popen(
                [sys.executable, "-c", SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )

    def _line(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def start(self, *words: object) -> int:
        """Returns the process of a run."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        self._process.stdin.flush()
        return self._line()

    def end(self) -> int:
        """Waits for the run; returns its exit code, or minus the signal."""
        return self._line()

    def run(self, *words: object) -> int:
        """Starts a run and waits for it."""
        self.start(*words)
        return self.end()

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(SEED)
    return {f"w{n}": rng.standard_normal((64, 64)).astype(np.float32) for n in range(30)}


def check_kills(
    server: Server, folder: Path, form: str, count: int, more: tuple[str, ...] = ()
) -> None:
    source = folder / "in.safetensors"
    save_file(tensors(), source)
    output = folder / ("out.safetensors" if form == "single" else "out")
    words = ["checkpoint", source, "--no-report", "--force", "-o", output, *more]
    if form != "single":
        words += ["--shard-size", "100kB"]
    load = load_file if form == "single" else load_sharded
    targets = {"float16": "fp16", "bfloat16": "bf16"}
    assert server.run(*words, "--to", "fp16") == 0
    started = time.monotonic()
    assert server.run(*words, "--to", "bf16") == 0
    whole = time.monotonic() - started
    rng = np.random.default_rng(SEED)
    ended_early = 0
    for number in range(count):
        before = {str(array.dtype) for array in load(output).values()}
        (old,) = before
        other = next(name for name in targets if name != old)
        there = {path.name for path in folder.iterdir()}
        process = server.start(*words, "--to", targets[other])
        time.sleep(rng.uniform(0, 0.8 * whole))
        name = SIGNALS[number % len(SIGNALS)]
        with contextlib.suppress(ProcessLookupError):  # it was done before
            os.kill(process, getattr(signal, name))
        server.end()
        held = load(output)
        assert len(held) == 30
        (now,) = {str(array.dtype) for array in held.values()}
        assert now in (old, other)
        ended_early += now == old
        part = f".{output.name}.pypto-cast-part"
        assert {path.name for path in folder.iterdir()} <= {source.name, output.name, part}
        if name != "SIGKILL" and form != "cluster":  # there, files that are done are kept
            # A run that ends before it begins to write clears nothing of the one that was killed.
            assert {path.name for path in folder.iterdir()} <= there, name
    assert ended_early
    assert server.run(*words, "--to", "bf16") == 0
    assert {path.name for path in folder.iterdir()} == {source.name, output.name}
    assert {str(array.dtype) for array in load(output).values()} == {"bfloat16"}


@pytest.mark.sampled(42)
@pytest.mark.parametrize("form", ["single", "sharded"])
def test_a_few_moments(server: Server, tmp_path: Path, form: str) -> None:
    check_kills(server, tmp_path, form, 8)


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", ["single", "sharded"])
def test_a_hundred_moments(server: Server, tmp_path: Path, form: str) -> None:
    check_kills(server, tmp_path, form, 100)


@pytest.mark.exhaustive
def test_moments_of_runs_on_a_cluster(server: Server, tmp_path: Path) -> None:
    distributed = pytest.importorskip(
        "distributed", reason="distributed is not installed (extra dask)"
    )
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        more = ("--scheduler", cluster.scheduler_address)
        check_kills(server, tmp_path, "cluster", 24, more)
