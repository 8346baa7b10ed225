"""Imports and the command's start beside those of their peers: `python -m benchmarks.imports`.

Each program runs in interpreters of its own, in turn with the others; the time is the processor's,
the best of all rounds, and the ratio is to `import numpy, ml_dtypes`, which every use here needs.
Targets: 1.8 for `import pypto_cast`, 2.5 for `pypto-cast --version`.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from benchmarks.measuring import Row, best_seconds, print_tables

ROOT: Final = Path(__file__).parents[1]
PEER: Final = "import numpy, ml_dtypes"
PROGRAMS: Final = {
    "python": ["-c", ""],
    PEER: ["-c", PEER],
    "import torch": ["-c", "import torch"],
    "import onnx": ["-c", "import onnx"],
    "import pypto_cast": ["-c", "import pypto_cast"],
    "pypto-cast --version": ["-m", "pypto_cast", "--version"],
    "pypto_cast.cast": ["-c", "import pypto_cast; pypto_cast.cast"],
    "pypto-cast --help": ["-m", "pypto_cast", "--help"],
}
"""Arguments of the interpreter, by the name of the row."""


def started(arguments: Iterable[str]) -> Callable[[], object]:
    """A call that runs an interpreter to its end."""
    command = [sys.executable, "-W", "ignore", *arguments]
    return lambda: subprocess.run(command, cwd=ROOT, capture_output=True, check=True)


def children_seconds() -> float:
    """Processor time of the processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(rounds: int, names: Iterable[str] = PROGRAMS) -> Iterator[Row]:
    """The rows, interleaved in one run; a peer that is not installed has none."""
    runs = {name: started(PROGRAMS[name]) for name in names}
    for name, run in list(runs.items()):
        try:
            run()
        except subprocess.CalledProcessError:
            del runs[name]
    best = best_seconds(runs, rounds, clock=children_seconds)
    for name, seconds in best.items():
        yield {
            "program": f"`{name}`",
            "ms": round(seconds * 1e3, 1),
            "ratio": round(seconds / best[PEER], 2),
        }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imports", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    print_tables({"imports": measured(given.rounds)}, as_json=given.json)


if __name__ == "__main__":
    main()
