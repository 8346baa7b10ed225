"""The throughputs of a run as a picture, with machine, engine, shape, peers and day."""

from __future__ import annotations

import datetime
import os
import platform
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.measuring import Row

PEERS: Final[Mapping[str, str]] = {
    "to_astype": "astype of numpy and ml_dtypes",
    "to_honest": "the same values in plain numpy",
    "to_torch": "torch",
    "to_onnxruntime": "onnxruntime",
    "to_memcpy": "copy into memory in use",
    "to_copy": "copy into a new array",
}
"""Fields of a row that hold our speed over a peer's, and the peers' names in the legend."""
_CPUINFO: Final = Path("/proc/cpuinfo")


def conditions(*, engine: str, shape: Sequence[int], tile: Sequence[int], threads: int) -> str:
    """The machine, the engine, the shapes and the day, in two lines."""
    machine = f"{_cpu()}, {os.cpu_count()} logical cores, {platform.system()}"
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return (
        f"{machine}; {versions}; {day}\nengine {engine}, {threads} thread{'s' * (threads > 1)}, "
        f"shape {list(shape)}, tile shape {list(tile)}"
    )


def _cpu() -> str:
    lines = _CPUINFO.read_text(encoding="utf-8").splitlines() if _CPUINFO.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def plot(table: Sequence[Row], path: str, said: str) -> None:
    """Draw throughput as bars, one per pair and mode, and that of each peer as a mark.

    Args:
        table: rows of the table of pairs.
        path: of the picture; its ending says the format.
        said: the conditions, written under the title.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 0.24 * len(table) + 2.4), layout="constrained")
    names = [f"{row['pair']} {row['mode']}" for row in table]
    axes.barh(names, [row["gbytes_per_s"] for row in table], color="#9ecae1", label="pypto-cast")
    for marker, (field, peer) in zip("o^sDx+", PEERS.items(), strict=True):
        found = [(x["gbytes_per_s"] / x[field], at) for at, x in enumerate(table) if x[field]]
        if found:
            axes.plot(*zip(*found, strict=True), marker, markersize=4, label=peer)
    axes.invert_yaxis()
    axes.set_xlabel("GB/s read and written")
    title = "\n".join(line for part in said.split("\n") for line in textwrap.wrap(part, 110))
    figure.suptitle("Casts beside their peers, best of all rounds", fontsize=11)
    axes.set_title(title, fontsize=7, loc="left")
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    figure.savefig(path)
    pyplot.close(figure)
