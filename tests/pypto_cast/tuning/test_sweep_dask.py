"""Sweeps on a real Dask cluster: a scheduler and two worker processes."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.environment.command import Command, command
from support.environment.dask_cluster import distributed, worker_processes
from support.programs.upstream_dumps import DUMPS
from test_sweep import CONFIG, slow_jobs, sweep

from pypto_cast import dask_pool
from pypto_cast.dask_pool import code_version
from pypto_cast.tuning.sweep.jobs import SweepJob, dask, local

__all__ = ["command"]  # a fixture


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with worker_processes(2) as made:
        yield made


@pytest.fixture
def jobs(tmp_path: Path) -> tuple[SweepJob, ...]:
    return sweep(tmp_path).jobs


def test_the_same_as_here(cluster: Any, jobs: tuple[SweepJob, ...]) -> None:
    found = {one.job.key: one.record for one in dask(cluster.scheduler_address)(jobs)}
    assert found == {one.job.key: one.record for one in local(1)(jobs)}


def code_checks() -> int:
    """Counts how often this process asked for its code: once for each job, and once before."""
    return code_version.cache_info().hits + code_version.cache_info().misses


def test_both_workers_work_in_processes_of_their_own(cluster: Any, tmp_path: Path) -> None:
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        pids = set(client.run(os.getpid).values())
        before = client.run(code_checks)
        assert len(list(dask(cluster.scheduler_address)(slow_jobs(tmp_path, 6)))) == 6
        after = client.run(code_checks)
    assert len(pids) == 2
    assert os.getpid() not in pids
    jobs_of = {worker: count - before[worker] - 1 for worker, count in after.items()}
    assert sum(jobs_of.values()) == 6
    assert min(jobs_of.values()) > 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL to send to a worker")
def test_the_last_worker_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with worker_processes(1) as made:
        running = dask(made.scheduler_address)(slow_jobs(tmp_path, 8))
        next(running)
        monkeypatch.setattr(dask_pool, "WORKER_SECONDS", 1)
        made.scale(0)
        with pytest.raises(TimeoutError, match="lost its last worker and got no other within 1 s"):
            list(running)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL to send to a worker")
def test_a_worker_that_dies(tmp_path: Path) -> None:
    jobs = slow_jobs(tmp_path, 8)
    with worker_processes(2) as made:
        with distributed.Client(made.scheduler_address, set_as_default=False) as client:
            first, _ = client.run(os.getpid).values()
        running = dask(made.scheduler_address)(jobs)
        found = [next(running)]
        os.kill(first, signal.SIGKILL)
        found += running
    assert {one.job for one in found} == set(jobs)
    assert all(one.record is not None for one in found)


def test_who_stops_listening_drops_the_rest(cluster: Any, tmp_path: Path) -> None:
    running = dask(cluster.scheduler_address)(slow_jobs(tmp_path, 40))
    next(running)
    running.close()
    for _ in range(500):
        if not cluster.scheduler.tasks:
            return
        time.sleep(0.02)
    pytest.fail(f"{len(cluster.scheduler.tasks)} of 40 jobs are still with the scheduler")


def test_a_scheduler_that_goes_away(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    jobs = slow_jobs(tmp_path, 40)
    with distributed.LocalCluster(n_workers=1, dashboard_address=":0") as made:
        running = dask(made.scheduler_address)(jobs)
        assert next(running).record is not None
        made.close()
        capfd.readouterr()
        with pytest.raises(ConnectionError, match=r"the connection to tcp://.* was lost"):
            list(running)
    assert "Traceback" not in capfd.readouterr().err


def other_code() -> None:
    dask_pool.code_version = lambda: "0.0.0+0"


def no_package() -> None:
    sys.modules["pypto_cast.dask_pool"] = None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (other_code, r"runs 0\.0\.0\+0"),
        (no_package, "says ModuleNotFoundError.*"),
    ],
    ids=["other-code", "no-package"],
)
def test_workers_with_other_code(jobs: tuple[SweepJob, ...], change: Any, says: str) -> None:
    with distributed.LocalCluster(n_workers=1, processes=True, dashboard_address=":0") as made:
        with distributed.Client(made.scheduler_address, set_as_default=False) as client:
            client.run(change)
        with pytest.raises(RuntimeError, match=f"worker tcp://.* {says}; it needs pypto-cast "):
            list(dask(made.scheduler_address)(jobs))


def test_a_failure_names_its_job(cluster: Any, jobs: tuple[SweepJob, ...]) -> None:
    broken = dataclasses.replace(jobs[1], code="0.0.0+0")
    found = {one.job: one for one in dask(cluster.scheduler_address)([jobs[0], broken])}
    assert found[jobs[0]].record is not None
    assert found[broken].failure.startswith("RuntimeError: this worker runs pypto-cast ")


def test_the_command(cluster: Any, command: Command, tmp_path: Path) -> None:
    config = tmp_path / "sweep.toml"
    config.write_text(CONFIG, encoding="utf-8")
    ran = command("sweep", config, "--scheduler", cluster.scheduler_address, "--json")
    assert ran.code == 0
    there = config.with_suffix(".jsonl")
    assert len(there.read_text(encoding="utf-8").splitlines()) == 4
    there.unlink()
    assert command("sweep", config, "--jobs", 1, "--json").json == ran.json


def test_kernels_on_a_cluster(cluster: Any, command: Command, tmp_path: Path) -> None:
    shutil.copy(DUMPS / "softmax.py", tmp_path)
    config = tmp_path / "kernels.toml"
    config.write_text('releases = "all"\n[[kernels]]\nkernel = "softmax.py::softmax"\n')
    ran = command("sweep", config, "--scheduler", cluster.scheduler_address, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert [each["release"] for each in ran.json["jobs"]] == ["0.2.0", "head"]
    config.with_suffix(".jsonl").unlink()
    assert command("sweep", config, "--jobs", 1, "--json").json == ran.json


def test_nothing_left_needs_no_cluster(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "sweep.toml"
    config.write_text(CONFIG, encoding="utf-8")
    done = command("sweep", config, "--jobs", 1, "--json")
    assert command("sweep", config, "--scheduler", "tcp://127.0.0.1:1", "--json").json == done.json


@pytest.mark.parametrize("address", ["here", "http://127.0.0.1:1", "tls://127.0.0.1:1", "tcp://"])
def test_no_address(command: Command, tmp_path: Path, address: str) -> None:
    config = tmp_path / "sweep.toml"
    config.write_text(CONFIG, encoding="utf-8")
    error = command("sweep", config, "--scheduler", address).error
    assert error.startswith(f"no Dask scheduler at '{address}', which should be as in tcp://host")


def test_nobody_answers(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypto_cast.dask_pool.CONNECT_SECONDS", 0.5)
    config = tmp_path / "sweep.toml"
    config.write_text(CONFIG, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        assert address in command("sweep", config, "--scheduler", address).error


def test_a_cluster_without_workers(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypto_cast.dask_pool.WORKER_SECONDS", 0.5)
    config = tmp_path / "sweep.toml"
    config.write_text(CONFIG, encoding="utf-8")
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty:
        address = empty.scheduler_address
        error = command("sweep", config, "--scheduler", address).error
    assert f"{address} has had no worker for 0.5 s; start one with `dask worker" in error
