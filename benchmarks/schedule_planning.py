"""Planning a schedule, by rows and columns of tiles: `python -m benchmarks.schedule_planning`.

A kernel of 20 operations, whose leaf has 22 tile operations beside syncs, the same with longer
chains, and one of 20 operations that joins tiles of a row, so that it has several leaves; the
processor's time, the best of all rounds, recording included; no schedule is kept between calls.
Target: 10 ms for 20 operations whose leaves have at most 64 tile operations.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Final

import pypto_cast as pypto
from ascend_kernels.schedule.planner import kernel_plan
from benchmarks.measuring import Row, best_seconds, print_tables
from pypto_cast.kernel.jit import Kernel

ROWS: Final = (1, 2, 16, 64, 256, 1024)
STEPS: Final = (6, 7, 14, 20)
"""Of the chain: its leaf has 22, 25, 46 and 64 tile operations."""
COLUMNS: Final = (1, 2, 3)
Matrix = pypto.Tensor[[...], pypto.DT_FP32]


@pypto.frontend.jit
def twenty(x: Matrix, y: Matrix, z: Matrix, steps: int = STEPS[0]) -> None:
    pypto.set_vec_tile_shapes(16, 128)
    found = x + y
    for _ in range(steps):
        found = pypto.exp(found) * 2.0 - x
    z[:] = found


@pypto.frontend.jit
def joined(x: Matrix, y: Matrix, z: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 128)
    found = x - pypto.amax(y, dim=-1, keepdim=True)
    for _ in range(8):
        found = pypto.exp(found) * 2.0
    z[:] = found / pypto.sum(found, dim=-1, keepdim=True)


def planned(kernel: Kernel, rows: int, columns: int, **named: int) -> pypto.Schedule:
    """Plan it anew for so many rows and columns of tiles."""
    kernel_plan.forget_plans()
    shape = [16 * rows, 128 * columns]
    return kernel.schedule(*[pypto.tensor(shape, pypto.DT_FP32)] * 3, **named)


def measured(rounds: int) -> Iterator[Row]:
    """The rows of the table, by kernel, and by rows and columns of tiles."""
    runs = {
        **{f"3 x {k} + 2": partial(planned, twenty, 1, 1, steps=k) for k in STEPS[1:]},
        **{f"20, {rows} x 1 tiles": partial(planned, twenty, rows, 1) for rows in ROWS},
        **{f"20, 1 x {each} joined": partial(planned, joined, 1, each) for each in COLUMNS},
    }
    best = best_seconds(runs, rounds, clock=time.process_time)
    for name, run in runs.items():
        schedule = run()
        counts = [sum(not x.flag for x in leaf.operations) for leaf in schedule.leaves]
        yield {
            "operations": name,
            "tasks": schedule.bodies[0].task_count,
            "of_leaves": " + ".join(map(str, counts)),
            "ms": round(best[name] * 1e3, 1),
        }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schedule_planning")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print_tables({"planning": measured(given.rounds)}, as_json=given.json)
    if not given.json and hasattr(os, "getloadavg"):
        print(f"\nLoad of {os.cpu_count()} processors: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
