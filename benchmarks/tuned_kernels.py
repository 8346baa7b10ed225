"""Tuned kernels beside random legal tilings: `python -m benchmarks.tuned_kernels`.

Tile shapes are drawn for all calls of set_vec_tile_shapes together, and each is planned of a
recording of its own. The cycles are those of the model that ranks; nothing is measured on a device.
Of a kernel with one call none may be below those of the best; of one with several the share that
the best is not slower than, and its worst loss, are printed. `--write` puts the table beside this
file.
"""

from __future__ import annotations

import argparse
import random
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pypto_cast as pypto
from ascend_kernels.schedule.planner.tile_graph import PlanError
from ascend_kernels.schedule.task_times import schedule_cycles
from benchmarks.measuring import Row, date_and_revision, markdown, print_tables
from benchmarks.schedule_planning import twenty
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.tile_choice import replaced_tiles, tile_calls
from tiling.chips import DEFAULT_CHIP
from tiling.search import tiles_within

Matrix = pypto.Tensor[[...], pypto.DT_FP32]


@pypto.frontend.jit
def softmax(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(32, 256)
    powers = pypto.exp(x - pypto.amax(x, dim=-1, keepdim=True))
    y[:] = powers / pypto.sum(powers, dim=-1, keepdim=True)


@pypto.frontend.jit
def chain(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.exp(x + 1.0) * x


@pypto.frontend.jit
def columns(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.sum(x, dim=0, keepdim=True)


@pypto.frontend.jit
def two_calls(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    powers = pypto.exp(x)
    pypto.set_vec_tile_shapes(32, 32)
    y[:] = powers / pypto.sum(powers, dim=-1, keepdim=True)


SMALL: Final = "small"
KERNELS: Final[Mapping[str, tuple[Kernel, Sequence[Sequence[int]]]]] = {
    SMALL: (chain, [[16, 64]] * 2),
    "chain": (chain, [[128, 256]] * 2),
    "softmax": (softmax, [[128, 512]] * 2),
    "columns": (columns, [[128, 256], [1, 256]]),
    "twenty": (twenty, [[256, 512]] * 3),
    "two_calls": (two_calls, [[64, 128]] * 2),
}


def compared(name: str, tilings: int, seconds: float, seed: int = 35) -> Row:
    """The row of a kernel: its best beside tilings that were drawn.

    Args:
        name: of `KERNELS`.
        tilings: to draw, as long as there is time; those that do not fit count as drawn.
        seconds: of all of them.
        seed: of the draws.
    """
    kernel, shapes = KERNELS[name]
    tensors = [pypto.tensor(list(each), pypto.DT_FP32) for each in shapes]
    began = time.monotonic()
    found = kernel.tune(*tensors, top=3)
    took, until = time.monotonic() - began, time.monotonic() + seconds
    unit, most = DEFAULT_CHIP.block_bytes // 4, DEFAULT_CHIP.ub_bytes // 4
    legal = tiles_within(tuple(shapes[0]), unit, most, 1 << 14)
    places = [*dict.fromkeys(each.place for each in tile_calls(kernel, *tensors))]
    drawn, cycles = 0, list[int]()
    draws = random.Random(seed)
    while drawn < tilings and time.monotonic() < until:
        drawn += 1
        with replaced_tiles({place: draws.choice(legal) for place in places}):
            known = _cycles(kernel, tensors)
        cycles += [known] if known is not None else []
    best = found.candidates[0].cycles
    return {
        "kernel": name,
        "calls": len(places),
        "combinations": found.combinations,
        "planned": found.planned,
        "excluded": found.excluded,
        "left": found.left,
        "seconds": round(took, 1),
        "model": found.model,
        "best": best,
        "drawn": drawn,
        "fit": len(cycles),
        "not_below_best_%": round(100 * sum(each >= best for each in cycles) / len(cycles), 1)
        if cycles
        else None,
        "worst_loss_%": max(0.0, round(100 * (best / min(cycles) - 1), 1)) if cycles else None,
    }


def _cycles(kernel: Kernel, tensors: Sequence[Any]) -> int | None:
    try:
        return schedule_cycles(kernel.schedule(*tensors)).cycles
    except PlanError:
        return None


def rows(names: Sequence[str], tilings: int, seconds: float) -> Iterator[Row]:
    """The rows of the table, by kernel."""
    for name in names:
        yield compared(name, tilings, seconds)


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuned_kernels")
    parser.add_argument("kernels", nargs="*", default=list(KERNELS), metavar="KERNEL")
    parser.add_argument("--tilings", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=600, help="of the draws of a kernel")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="benchmarks/tuned_kernels.md")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = list(rows(given.kernels, given.tilings, given.seconds))
    if given.write:
        date, revision = date_and_revision()
        text = (
            "# Tuned kernels beside random legal tilings\n\n"
            f"`python -m benchmarks.tuned_kernels --tilings {given.tilings} --seconds "
            f"{given.seconds:g}`, {date}, at revision {revision}. Cycles by the model that ranks; "
            f"nothing was measured on a device.\n\n{markdown(found)}\n"
        )
        Path(__file__).with_suffix(".md").write_text(text)
        return
    print_tables({"tuned": iter(found)}, as_json=given.json)


if __name__ == "__main__":
    main()
