"""Speed of `pypto.cast` beside its peers: `python -m benchmarks.cast`.

One process, one thread unless asked otherwise, all candidates of a row in turn, best of n rounds.
Absolute figures are this machine's; the ratios of one run are what carries over.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX, CastRule
from benchmarks import peers
from pypto_cast.options import ENGINES, Engine
from simulator.numbers.convert import INF_NAN, codes_of, convert, values_of
from simulator.numbers.formats import FP64, FloatFormat, Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import DEFAULT_CHIP

SHAPE = (8192, 2048)
TILE = (64, 512)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One pair and mode. Ratios are our speed over the peer's: above 1 we are faster."""

    pair: str
    mode: str
    melems_per_s: float
    gbytes_per_s: float
    to_astype: float | None
    to_honest: float | None
    to_torch: float | None
    to_onnxruntime: float | None
    to_memcpy: float
    to_copy: float


def sample(fmt: Format, elems: int) -> npt.NDArray[Any]:
    """Values as a checkpoint or its activations have them, over several binades."""
    random = np.random.default_rng(7)
    if isinstance(fmt, FloatFormat):
        scale = np.exp2(random.integers(-6, 7, elems).astype(np.float32))
        values = (random.standard_normal(elems, dtype=np.float32) * scale).astype(np.float64)
        return values_of(convert(codes_of(values, FP64), FP64, fmt, RoundMode.RINT, INF_NAN), fmt)
    if fmt.bits < 8:
        return random.integers(fmt.min, fmt.max + 1, elems, np.int8).astype(fmt.dtype)
    return random.integers(fmt.min, fmt.max, elems, fmt.dtype, endpoint=True)


def best_seconds(candidates: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Run all candidates in turn, `rounds` times, and keep the best time of each."""
    best = dict.fromkeys(candidates, math.inf)
    for _ in range(rounds + 1):
        for name, run in candidates.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def measure(rule: CastRule, mode: RoundMode | None, shape: tuple[int, ...], rounds: int) -> Row:
    """Time one pair and mode against its peers."""
    elems = math.prod(shape)
    values = sample(rule.src, elems).reshape(shape)
    tensor = pypto.from_numpy(values)
    dtype = next(d for d in pypto.DataType if d.format is rule.dst)
    cast_mode = pypto.CastMode[f"CAST_{mode or 'NONE'}"]
    rounding = mode or RoundMode.RINT
    moved = elems * (rule.src.bits + rule.dst.bits) // 8
    # Written once: memory that never was is a single page of zeros, read from the cache.
    memory = np.ones(moved // 2, np.uint8)
    copy = np.empty_like(memory)
    candidates: dict[str, Callable[[], object] | None] = {
        "us": lambda: pypto.cast(tensor, dtype, mode=cast_mode),
        "astype": peers.astype(values, rule.dst) if rule.src is not rule.dst else None,
        "honest": peers.honest(values, rule.src, rule.dst, rounding),
        "torch": peers.torch_to(values, rule.src, rule.dst),
        "onnxruntime": peers.onnxruntime_cast(values, rule.dst),
        "memcpy": lambda: np.copyto(copy, memory),
        "copy": memory.copy,  # into a new array, as a cast's result is one
    }
    with np.errstate(all="ignore"):
        best = best_seconds({n: c for n, c in candidates.items() if c is not None}, rounds)
    ours = best["us"]
    ratio = {name: round(seconds / ours, 2) for name, seconds in best.items()}
    return Row(
        pair=str(rule),
        mode=str(mode or "-"),
        melems_per_s=round(elems / ours / 1e6, 1),
        gbytes_per_s=round(moved / ours / 1e9, 2),
        to_astype=ratio.get("astype"),
        to_honest=ratio.get("honest"),
        to_torch=ratio.get("torch"),
        to_onnxruntime=ratio.get("onnxruntime"),
        to_memcpy=ratio["memcpy"],
        to_copy=ratio["copy"],
    )


def fitting(tile: tuple[int, ...], rule: CastRule) -> tuple[int, ...]:
    """The tile, with its first axis halved until UB holds input and output of this pair."""
    while math.prod(tile) * (rule.src.bits + rule.dst.bits) // 8 > DEFAULT_CHIP.ub_bytes:
        tile = (tile[0] // 2, *tile[1:])
    return tile


def rows(
    pairs: list[str],
    shape: tuple[int, ...],
    tile: tuple[int, ...],
    threads: int,
    rounds: int,
    engine: Engine = "numpy",
) -> Iterator[Row]:
    """Measure the pairs asked for (all of them if none is named), every mode."""
    options = pypto.options(vec_tile_shapes=tile, threads=threads, engine=engine)
    with warnings.catch_warnings(), options:
        warnings.simplefilter("ignore", pypto.TileShapeWarning)
        warnings.simplefilter("error", pypto.EngineWarning)
        for rule in MATRIX.values():
            if pairs and f"{rule.src}-{rule.dst}".lower() not in pairs:
                continue
            pypto.set_vec_tile_shapes(*fitting(tile, rule))
            for mode in rule.modes or (None,):
                yield measure(rule, mode, shape, rounds)


def markdown(table: list[Row]) -> str:
    """The rows as a table for a README."""
    heads = ["pair", "mode", "Melem/s", "GB/s", "astype", "honest numpy", "torch", "ORT"]
    heads += ["memcpy", "copy"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in table:
        cells = ["-" if cell is None else str(cell) for cell in asdict(row).values()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def plot(table: list[Row], path: str) -> None:
    """Draw throughput as bars, one per pair and mode."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 0.22 * len(table) + 1))
    names = [f"{row.pair} {row.mode}" for row in table]
    axes.barh(names, [row.gbytes_per_s for row in table])
    axes.invert_yaxis()
    axes.set_xlabel("GB/s read and written")
    figure.tight_layout()
    figure.savefig(path)


def _ints(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cast", description=__doc__)
    parser.add_argument("--pair", action="append", default=[], help="such as fp32-fp16; repeatable")
    parser.add_argument("--shape", type=_ints, default=SHAPE)
    parser.add_argument("--tile", type=_ints, default=TILE)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--engine", choices=ENGINES, default="numpy")
    parser.add_argument("--rounds", type=int, default=7, help="best of so many")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--plot", metavar="FILE", help="draw the throughputs (needs matplotlib)")
    given = parser.parse_args()
    table = []
    for row in rows(given.pair, given.shape, given.tile, given.threads, given.rounds, given.engine):
        table.append(row)
        print(f"{row.pair} {row.mode}: {row.melems_per_s} Melem/s", file=sys.stderr)
    print(json.dumps([asdict(row) for row in table], indent=1) if given.json else markdown(table))
    if given.plot:
        plot(table, given.plot)


if __name__ == "__main__":
    main()
