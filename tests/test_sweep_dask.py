"""Sweeps on a real Dask cluster: a scheduler and two worker processes."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Command, command
from test_sweep import CONFIG, sweep

from pypto_cast.sweep.jobs import SweepJob
from pypto_cast.sweep.runners import dask, local

__all__ = ["command"]  # a fixture

distributed: Any = pytest.importorskip(
    "distributed", reason='sweeps on Dask need the extra: pip install "pypto-cast[dask]"'
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as made:
        yield made


@pytest.fixture
def jobs(tmp_path: Path) -> tuple[SweepJob, ...]:
    return sweep(tmp_path).jobs


def test_the_same_as_here(cluster: Any, jobs: tuple[SweepJob, ...]) -> None:
    found = {one.job.key: one.record for one in dask(cluster.scheduler_address)(jobs)}
    assert found == {one.job.key: one.record for one in local(1)(jobs)}


def test_both_workers_are_processes_of_their_own(cluster: Any) -> None:
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        pids = set(client.run(os.getpid).values())
    assert len(pids) == 2
    assert os.getpid() not in pids


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


def test_nobody_answers(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypto_cast.sweep.runners.CONNECT_SECONDS", 0.5)
    config = tmp_path / "sweep.toml"
    config.write_text(CONFIG, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        assert address in command("sweep", config, "--scheduler", address).error


def test_a_cluster_without_workers(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypto_cast.sweep.runners.WORKER_SECONDS", 0.5)
    config = tmp_path / "sweep.toml"
    config.write_text(CONFIG, encoding="utf-8")
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty:
        address = empty.scheduler_address
        error = command("sweep", config, "--scheduler", address).error
    assert f"{address} has had no worker for 0.5 s; start one with `dask worker" in error
