"""Checkpoints on a real Dask cluster: resumed, with a worker that is killed, and locked."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.environment.command import Command, command
from support.environment.dask_cluster import distributed, worker_processes
from support.environment.models import load_sharded
from support.numbers.codes import SEED

from pypto_cast.checkpoints import cluster as cluster_module
from pypto_cast.checkpoints.blocks import Limits
from pypto_cast.checkpoints.output_plan import planned_files
from pypto_cast.checkpoints.settings import Settings, planned_by
from pypto_cast.dask_pool import code_version
from pypto_cast.tensors.array_files import new_file
from pypto_cast.unfinished import BusyOutputError
from tiling.chips import DEFAULT_CHIP

__all__ = ["command"]  # a fixture

pytestmark = pytest.mark.exhaustive  # clusters take seconds to start


@pytest.fixture
def cluster() -> Iterator[Any]:
    with worker_processes(2) as made:
        yield made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rng = np.random.default_rng(SEED)
    tensors = {f"w{n}": rng.standard_normal((300, 700)).astype(np.float32) for n in range(12)}
    save_file(tensors, tmp_path / "in.safetensors")
    return tmp_path / "in.safetensors"


def words(source: Path, *more: object) -> list[object]:
    return ["checkpoint", source, "--to", "bf16", "--shard-size", "1MB", "--json", *more]


def kept(folder: Path) -> list[Path]:
    return list(folder.glob(".*.pypto-cast-part/output"))


def same(one: Path, other: Path) -> bool:
    files = sorted(path.name for path in one.iterdir())
    return files == sorted(path.name for path in other.iterdir()) and all(
        (one / name).read_bytes() == (other / name).read_bytes() for name in files
    )


def test_the_same_as_here(command: Command, cluster: Any, source: Path, tmp_path: Path) -> None:
    here = command(*words(source, "-o", tmp_path / "here")).json
    more = ("--scheduler", cluster.scheduler_address, "-o", tmp_path / "there")
    there = command(*words(source, *more))
    assert there.code == 0, there.err
    assert same(tmp_path / "here", tmp_path / "there")
    assert there.json["tensors"] == here["tensors"]
    assert not kept(tmp_path)
    assert command(*words(source, *more, "--force")).code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"in.safetensors", "here", "there"}


def test_workers_cast_for_the_chip_of_the_command(
    command: Command, cluster: Any, source: Path, tmp_path: Path
) -> None:
    """A2/A3, the family of the chip that is there without the option, has no such casts."""
    of_950 = ("checkpoint", source, "--shard-size", "1MB", "--chip", "Ascend950PR", "--json")
    there = ("--scheduler", cluster.scheduler_address, "-o")
    for more in (("--to", "hf8"), ("--quantize", "mxfp4")):
        here = command(*of_950, *more, "-o", tmp_path / f"{more[1]} here").json
        ran = command(*of_950, *more, *there, tmp_path / f"{more[1]} there")
        assert ran.code == 0, ran.err
        assert same(tmp_path / f"{more[1]} here", tmp_path / f"{more[1]} there")
        assert ran.json["tensors"] == here["tensors"]


def test_an_interrupted_run_goes_on(
    command: Command, cluster: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []
    more = ("--scheduler", cluster.scheduler_address, "-o", tmp_path / "out")
    as_completed = cluster_module.as_completed

    def interrupted(futures: Any) -> Iterator[Any]:
        for future in as_completed(futures):
            yield future
            done.append(future)
            if len(done) == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(cluster_module, "as_completed", interrupted)
    assert (
        "files are kept, and the same command does the rest" in command(*words(source, *more)).error
    )
    (folder,) = kept(tmp_path)
    first = {path: path.stat().st_mtime_ns for path in folder.glob("*.safetensors")}
    assert len(first) >= 3
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    ran = command(*words(source, *more))
    assert ran.code == 0, ran.err
    times = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out").glob("*.safetensors")}
    assert sum(times[path.name] == when for path, when in first.items()) >= 3
    assert len(load_sharded(tmp_path / "out")) == 12
    assert not kept(tmp_path)


@pytest.mark.parametrize("is_done_there", [False, True])
def test_a_file_that_another_worker_still_writes_is_waited_for(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_done_there: bool
) -> None:
    """As after an interrupt, whose running tasks go on on their workers."""
    settings = Settings(to=("bf16",))
    shard = next(iter(planned_files(planned_by(source, settings), 1 << 20)))
    folder = tmp_path / "made" / "output"
    folder.mkdir(parents=True)
    folder.with_name("reports").mkdir()
    report = folder.with_name("reports") / f"{shard}.json"

    def write() -> None:
        cluster_module.write_shard(
            shard,
            source=source,
            settings=settings,
            folder=folder,
            shard_bytes=1 << 20,
            limits=Limits(),
            chip=DEFAULT_CHIP.name,
            code=code_version(),
        )

    waits = threading.Event()
    write_once = cluster_module._write_shard

    def noticed(*arguments: Any) -> None:
        try:
            write_once(*arguments)
        except BusyOutputError:
            waits.set()
            raise

    monkeypatch.setattr(cluster_module, "_write_shard", noticed)
    thread = threading.Thread(target=write)
    with new_file(folder / shard, force=True) as file:
        thread.start()
        assert waits.wait(60)
        file.write(b"theirs")
        if is_done_there:
            report.write_text("[]")
    thread.join(60)
    assert not thread.is_alive()
    assert ((folder / shard).read_bytes() == b"theirs") is is_done_there
    assert (report.read_text() == "[]") is is_done_there


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL to send to a worker")
def test_a_worker_that_is_killed(
    command: Command, cluster: Any, source: Path, tmp_path: Path
) -> None:
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        first, _ = client.run(os.getpid).values()

    def kill() -> None:
        while not any(list(folder.glob("*.safetensors")) for folder in kept(tmp_path)):
            time.sleep(0.01)
        os.kill(first, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    ran = command(*words(source, "--scheduler", cluster.scheduler_address, "-o", tmp_path / "out"))
    killer.join()
    assert ran.code == 0, ran.err
    assert len(load_sharded(tmp_path / "out")) == 12
    assert not kept(tmp_path)


def test_what_a_cluster_needs(command: Command, source: Path, tmp_path: Path) -> None:
    ran = command("checkpoint", source, "--to", "bf16", "--scheduler", "tcp://127.0.0.1:1")
    assert "writes a directory file by file: give --output" in ran.error
    ran = command(*words(source, "--scheduler", "tcp://127.0.0.1:1", "-o", tmp_path / "out"))
    assert "no Dask scheduler at" in ran.error
