"""Dask clusters on this machine, whose workers are processes of one thread."""

from __future__ import annotations

from typing import Any

import pytest

distributed: Any = pytest.importorskip(
    "distributed", reason="distributed is not installed (extra dask)"
)


def worker_processes(count: int) -> Any:
    """A cluster, which ends with the `with` statement."""
    return distributed.LocalCluster(
        n_workers=count, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
