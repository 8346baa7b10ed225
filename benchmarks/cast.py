"""Speed of `pypto.cast` beside its peers: `python -m benchmarks.cast`.

One process, one thread unless asked otherwise, all candidates of a row in turn, best of n rounds.
Absolute figures are this machine's; the ratios of one run are what carries over.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX, CastRule
from benchmarks import onnx_cast, peers, result_sizes, special_values
from benchmarks.measuring import best_seconds, ints, print_tables, ratios, sample
from benchmarks.picture import conditions, plot
from pypto_cast.options.context import ENGINES, Engine
from simulator.numbers import engines
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, DEFAULT_CHIP

SHAPE = (4096, 2048)
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
    to_memcpy: float | None
    to_copy: float | None


def measure(rule: CastRule, mode: RoundMode | None, shape: tuple[int, ...], rounds: int) -> Row:
    """Time one pair and mode against its peers."""
    elems = math.prod(shape)
    values = sample(rule.src, elems).reshape(shape)
    tensor = pypto.from_numpy(values)
    dtype = next(d for d in pypto.DataType if d.format is rule.dst)
    cast_mode = pypto.CastMode[f"CAST_{mode or 'NONE'}"]
    rounding = mode or RoundMode.RINT
    moved = elems * (rule.src.dtype.itemsize + rule.dst.dtype.itemsize)  # INT4 lies in bytes
    # Written once: memory that never was is a single page of zeros, read from the cache.
    memory = np.ones(moved // 2, np.uint8)
    copy = np.empty_like(memory)
    candidates: dict[str, Callable[[], object] | None] = {
        "us": lambda: pypto.cast(tensor, dtype, mode=cast_mode),
        "astype": peers.astype(values, rule.dst) if rule.src is not rule.dst else None,
        "honest": peers.numpy_equivalent(values, rule.src, rule.dst, rounding),
        "torch": peers.torch_to(values, rule.src, rule.dst),
        "onnxruntime": peers.onnxruntime_cast(values, rule.dst),
        "memcpy": lambda: np.copyto(copy, memory),
        "copy": memory.copy,  # into a new array, as a cast's result is one
    }
    best = best_seconds(candidates, rounds)
    return Row(
        pair=str(rule),
        mode=str(mode or "-"),
        melems_per_s=round(elems / best["us"] / 1e6, 1),
        gbytes_per_s=round(moved / best["us"] / 1e9, 2),
        **ratios(best, Row),
    )


def fitting(tile: tuple[int, ...], rule: CastRule) -> tuple[int, ...]:
    """The tile, its first axis halved until input and output of this pair need no warning of UB."""
    while math.prod(tile) * (rule.src.bits + rule.dst.bits) // 8 > DEFAULT_CHIP.ub_safe_bytes:
        tile = (tile[0] // 2, *tile[1:])
    return tile


def rows(
    pairs: list[str], shape: tuple[int, ...], tile: tuple[int, ...], rounds: int
) -> Iterator[Row]:
    """Measure the pairs asked for (all of them if none is named), every mode."""
    for rule in MATRIX[A2_A3].values():
        if not pairs or f"{rule.src}-{rule.dst}".lower() in pairs:
            pypto.set_vec_tile_shapes(*fitting(tile, rule))
            for mode in rule.modes or (None,):
                yield measure(rule, mode, shape, rounds)


def sections(given: argparse.Namespace) -> dict[str, Iterator[Any]]:
    """The tables that the command can make, by title, one row after another."""
    elems = math.prod(given.shape)
    return {
        "pairs": rows(given.pair, given.shape, given.tile, given.rounds),
        "onnx": onnx_cast.rows(elems, given.rounds),
        "special values": special_values.rows(given.pair, elems, given.rounds),
        "small casts": result_sizes.small_casts(given.rounds),
        "large results": result_sizes.large_results(given.rounds),
        "cold casts": result_sizes.cold_casts(given.rounds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cast", description=__doc__)
    titles = ("pairs", "onnx", "special values", "small casts", "large results", "cold casts")
    parser.add_argument("--table", choices=titles, action="append", help="repeatable; else all")
    parser.add_argument("--pair", action="append", default=[], help="such as fp32-fp16; repeatable")
    parser.add_argument("--shape", type=ints, default=SHAPE)
    parser.add_argument("--tile", type=ints, default=TILE)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0])
    parser.add_argument("--rounds", type=int, default=7, help="best of so many")
    parser.add_argument("--json", action="store_true", help="JSON instead of tables of Markdown")
    parser.add_argument("--plot", metavar="FILE", help="draw pairs and peers (needs matplotlib)")
    given = parser.parse_args()
    if given.plot and "pairs" not in (given.table or titles):
        parser.error("--plot draws the table of pairs; add --table pairs")
    engine: Engine = given.engine
    options = pypto.options(vec_tile_shapes=given.tile, threads=given.threads, engine=engine)
    with warnings.catch_warnings(), options:
        warnings.simplefilter("ignore", pypto.TileShapeWarning)
        warnings.simplefilter("error", pypto.EngineWarning)
        asked = {t: rows for t, rows in sections(given).items() if t in (given.table or titles)}
        tables = print_tables(asked, as_json=given.json)
    if given.plot:
        used = f"{given.engine} ({engines.in_use()})"
        said = conditions(engine=used, shape=given.shape, tile=given.tile, threads=given.threads)
        plot(tables["pairs"], given.plot, said)


if __name__ == "__main__":
    main()
