"""Planning a schedule, by rows of tiles: `python -m benchmarks.schedule_planning`.

A kernel of 20 operations, whose leaf has 22 tile operations beside syncs; the processor's time, the
best of all rounds, recording included and nothing kept of the calls before. Target: 10 ms for one
row.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Final

import pypto_cast as pypto
from ascend_kernels.schedule.planner import kernel_plan
from benchmarks.measuring import Row, best_seconds, print_tables

ROWS: Final = (1, 2, 16, 64, 256, 1024)
Matrix = pypto.Tensor[[...], pypto.DT_FP32]


@pypto.frontend.jit
def twenty(x: Matrix, y: Matrix, z: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 128)
    found = x + y
    for _ in range(6):
        found = pypto.exp(found) * 2.0 - x
    z[:] = found


def planned(rows: int) -> pypto.Schedule:
    """Plan it anew for so many rows of tiles."""
    kernel_plan._planned.cache_clear()
    return twenty.schedule(*[pypto.tensor([16 * rows, 128], pypto.DT_FP32)] * 3)


def measured(rounds: int) -> Iterator[Row]:
    """The rows of the table, by rows of tiles."""
    runs = {str(rows): partial(planned, rows) for rows in ROWS}
    best = best_seconds(runs, rounds, clock=time.process_time)
    for rows, seconds in best.items():
        schedule = planned(int(rows))
        yield {
            "rows": int(rows),
            "tasks": len(schedule.bodies[0].tasks),
            "operations": sum(not each.flag for each in schedule.leaves[0].operations),
            "ms": round(seconds * 1e3, 1),
        }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schedule_planning")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print_tables({"planning": measured(given.rounds)}, as_json=given.json)


if __name__ == "__main__":
    main()
