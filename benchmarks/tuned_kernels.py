"""Tuned kernels beside random legal tilings: `python -m benchmarks.tuned_kernels`.

Tile shapes are drawn for all calls of set_vec_tile_shapes together, each combination once, until
as many as asked fit in UB, or are all of them where there are no more; each is planned of a
recording of its own. The cycles are those of the model that ranks; nothing is measured on a device.
A kernel is tuned in one process and in several, with equal results; seconds and the processor's
seconds are those of the tuning, its processes included.
Of a kernel with one call none may be below those of the best; of one with several the share that
the best is not slower than, and its worst loss, are printed. `--write` puts the table beside this
file.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pypto_cast as pypto
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.views.task_times import schedule_cycles
from benchmarks.measuring import Row, date_and_revision, markdown, print_tables
from benchmarks.schedule_planning import twenty
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.tile_choice import replaced_tiles, tile_recording
from pypto_cast.tuning.kernel_search import MOST_CANDIDATES
from tiling.chips import DEFAULT_CHIP
from tiling.grid import Shape
from tiling.search import tiles_within

Matrix = pypto.Tensor[[...], pypto.DT_FP32]
Half = pypto.Tensor[[...], pypto.DT_FP16]
Bytes = pypto.Tensor[[...], pypto.DT_INT8]


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
def to_half(x: Matrix, y: Half) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.cast(x, pypto.DT_FP16, mode=pypto.CastMode.CAST_RINT)


@pypto.frontend.jit
def rms_norm(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    square = pypto.sum(x * x, dim=-1, keepdim=True) * (1.0 / 1024)
    y[:] = x / pypto.sqrt(square + 1e-5)


@pypto.frontend.jit
def swiglu(x: Matrix, gate: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = x * (gate / (pypto.exp(gate * -1.0) + 1.0))


@pypto.frontend.jit
def int8_rows(x: Matrix, y: Bytes, scales: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    scale = pypto.amax(pypto.abs(x), dim=-1, keepdim=True) * (1.0 / 127)
    scales[:] = scale
    whole = pypto.cast(x / scale, pypto.DT_INT32, mode=pypto.CastMode.CAST_RINT)
    y[:] = pypto.cast(pypto.cast(whole, pypto.DT_FP16), pypto.DT_INT8)


@pypto.frontend.jit
def cube(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(2, 8, 64)
    y[:] = x - pypto.amax(x, dim=-1, keepdim=True)


@pypto.frontend.jit
def three_calls(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    largest = pypto.amax(x, dim=-1, keepdim=True)
    pypto.set_vec_tile_shapes(32, 32)
    powers = pypto.exp(x - largest)
    pypto.set_vec_tile_shapes(8, 128)
    y[:] = powers / pypto.sum(powers, dim=-1, keepdim=True)


@pypto.frontend.jit
def two_calls(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    powers = pypto.exp(x)
    pypto.set_vec_tile_shapes(32, 32)
    y[:] = powers / pypto.sum(powers, dim=-1, keepdim=True)


@pypto.frontend.jit
def norm_swiglu_int8(x: Matrix, gate: Matrix, y: Bytes, scales: Matrix) -> None:
    pypto.set_vec_tile_shapes(8, 1024)
    centred = x - pypto.sum(x, dim=-1, keepdim=True) * (1.0 / 1024)
    variance = pypto.sum(centred * centred, dim=-1, keepdim=True) * (1.0 / 1024)
    normal = centred / pypto.sqrt(variance + 1e-5)
    gated = normal * (gate / (pypto.exp(gate * -1.0) + 1.0))
    scale = pypto.amax(pypto.abs(gated), dim=-1, keepdim=True) * (1.0 / 127)
    scales[:] = scale
    whole = pypto.cast(gated / scale, pypto.DT_INT32, mode=pypto.CastMode.CAST_RINT)
    y[:] = pypto.cast(pypto.cast(whole, pypto.DT_FP16), pypto.DT_INT8)


SMALL: Final = "small"
KERNELS: Final[Mapping[str, tuple[Kernel, Sequence[Sequence[int]]]]] = {
    SMALL: (chain, [[16, 64]] * 2),
    "chain": (chain, [[128, 256]] * 2),
    "softmax": (softmax, [[128, 512]] * 2),
    "columns": (columns, [[128, 256], [1, 256]]),
    "to_half": (to_half, [[128, 512]] * 2),
    "rms_norm": (rms_norm, [[64, 1024]] * 2),
    "swiglu": (swiglu, [[128, 256]] * 3),
    "int8_rows": (int8_rows, [[128, 512]] * 2 + [[128, 1]]),
    "cube": (cube, [[8, 32, 256]] * 2),
    "twenty": (twenty, [[256, 512]] * 3),
    "two_calls": (two_calls, [[64, 128]] * 2),
    "three_calls": (three_calls, [[64, 128]] * 2),
    "norm_swiglu_int8": (norm_swiglu_int8, [[365, 1024]] * 3 + [[365, 1]]),
}


def drawn_tilings(legal: Sequence[Shape], calls: int, seed: int) -> Iterator[Sequence[Shape]]:
    """All combinations of the calls' tile shapes, each once, in an order that is drawn."""
    draws, met = random.Random(seed), set[tuple[Shape, ...]]()
    if len(legal) ** calls <= MOST_CANDIDATES:
        together = list(itertools.product(legal, repeat=calls))
        yield from draws.sample(together, len(together))
        return
    while len(met) < MOST_CANDIDATES:
        tiles = tuple(draws.choice(legal) for _ in range(calls))
        if tiles not in met:
            met.add(tiles)
            yield tiles


def compared(name: str, tilings: int, seconds: float, seed: int = 35, processes: int = 1) -> Row:
    """The row of a kernel: its best beside tilings that were drawn.

    Args:
        name: of `KERNELS`.
        tilings: to draw that fit, as long as there is time, or all.
        seconds: of all of them.
        seed: of the draws.
        processes: that tune.
    """
    kernel, shapes = KERNELS[name]
    dtypes = [each.dtype for each in kernel.signature.tensors.values()]
    tensors = [
        pypto.tensor(list(shape), dtype or pypto.DT_FP32)
        for shape, dtype in zip(shapes, dtypes, strict=True)
    ]
    _, alone_seconds, alone_processor_seconds = _tuned(kernel, tensors, 1)
    found, took, processor = _tuned(kernel, tensors, processes)
    until = time.monotonic() + seconds
    narrowest = min(each.dtype.number_format.dtype.itemsize for each in tensors)
    unit, most = DEFAULT_CHIP.block_bytes // narrowest, DEFAULT_CHIP.ub_bytes // 4
    legal = tiles_within(tuple(shapes[0]), unit, most, MOST_CANDIDATES)
    places = [*dict.fromkeys(each.place for each in tile_recording(kernel, tensors, {}).calls)]
    drawn, cycles = 0, list[int]()
    for tiles in drawn_tilings(legal, len(places), seed):
        if time.monotonic() > until or len(cycles) == tilings:
            break
        drawn += 1
        with replaced_tiles(dict(zip(places, tiles, strict=True))):
            known = _cycles(kernel, tensors)
        cycles += [known] if known is not None else []
    best = found.candidates[0].cycles
    return {
        "kernel": name,
        "operations": sum(
            each.opcode not in ("VIEW", "ASSEMBLE")
            for graph in kernel.tensor_graphs(*tensors)
            for each in graph.nodes
        ),
        "calls": len(places),
        "combinations": found.combinations,
        "looked_at": found.looked_at,
        "planned": found.planned,
        "excluded": found.excluded,
        "left": found.left,
        "alone_seconds": round(alone_seconds, 1),
        "alone_processor_seconds": round(alone_processor_seconds, 1),
        "seconds": round(took, 1),
        "processor_seconds": round(processor, 1),
        "model": found.model,
        "best": best,
        "legal": len(legal) ** len(places),
        "drawn": drawn,
        "fit": len(cycles),
        "not_below_best_%": round(100 * sum(each >= best for each in cycles) / len(cycles), 1)
        if cycles
        else None,
        "worst_loss_%": max(0.0, round(100 * (best / min(cycles) - 1), 1)) if cycles else None,
    }


def _tuned(
    kernel: Kernel, tensors: Sequence[Any], processes: int
) -> tuple[pypto.TunedKernel, float, float]:
    """The tuned kernel, seconds, and seconds of processors."""
    began, before = time.monotonic(), sum(os.times()[:4])
    found = kernel.tune(*tensors, top=3, processes=processes)
    return found, time.monotonic() - began, sum(os.times()[:4]) - before


def _cycles(kernel: Kernel, tensors: Sequence[Any]) -> int | None:
    try:
        return schedule_cycles(kernel.schedule(*tensors)).cycles
    except PlanError:
        return None


def rows(names: Sequence[str], tilings: int, seconds: float, processes: int) -> Iterator[Row]:
    """The rows of the table, by kernel."""
    for name in names:
        yield compared(name, tilings, seconds, processes=processes)


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuned_kernels")
    parser.add_argument("kernels", nargs="*", default=list(KERNELS), metavar="KERNEL")
    parser.add_argument("--tilings", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=300, help="of the draws of a kernel")
    parser.add_argument("--jobs", type=int, default=2, help="processes that tune")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="benchmarks/tuned_kernels.md")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    load = os.getloadavg()[0]
    found = list(rows(given.kernels, given.tilings, given.seconds, given.jobs))
    if given.write:
        date, revision = date_and_revision()
        text = (
            "# Tuned kernels beside random legal tilings\n\n"
            f"`python -m benchmarks.tuned_kernels --tilings {given.tilings} --seconds "
            f"{given.seconds:g} --jobs {given.jobs}`, {date}, at revision {revision}, on "
            f"{os.cpu_count()} cores, load {load:.1f} at the start. Cycles by the model that "
            "ranks; nothing was measured on a device. Alone is one process. Tile shapes are drawn "
            f"until {given.tilings:,} fit; where as many are drawn as are legal, these are all of "
            'them.\n\nOf a kernel with one call, none that was drawn is below the best where "not '
            'below best %" is 100; of one with several it is the share of those drawn that the '
            f"best is not slower than.\n\n{markdown(found)}\n"
        )
        Path(__file__).with_suffix(".md").write_text(text)
        return
    print_tables({"tuned": iter(found)}, as_json=given.json)


if __name__ == "__main__":
    main()
