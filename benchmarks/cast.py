"""Speed of `pypto.cast` beside its peers: `python -m benchmarks.cast`.

One process, one thread unless asked otherwise, all candidates of a row in turn, best of n rounds.
Absolute figures are this machine's; the ratios of one run are what carries over.
"""

from __future__ import annotations

import argparse
import functools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX, CastRule
from benchmarks import peers
from benchmarks.measuring import Row, best_seconds, compared, ints, print_tables, sample
from pypto_cast.dialects import onnx
from pypto_cast.dialects.onnx.types import FORMATS
from pypto_cast.dtypes.data_types import TensorType
from pypto_cast.options.context import ENGINES, Engine
from simulator.numbers.convert import codes_of, values_of
from simulator.numbers.formats import (
    E4M3FN,
    E5M2,
    FP16,
    FP32,
    HF8,
    INT8,
    INT32,
    Codes,
    FloatFormat,
    Format,
)
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, DEFAULT_CHIP

SHAPE = (4096, 2048)
TILE = (64, 512)


def dtype_of(fmt: Format) -> pypto.DataType:
    """pypto's dtype of a format."""
    return next(dtype for dtype in pypto.DataType if dtype.format is fmt)


def rules(pairs: list[str]) -> Iterator[tuple[CastRule, RoundMode | None, pypto.CastMode]]:
    """The pairs asked for (all of them if none is named), in every mode."""
    for rule in MATRIX[A2_A3].values():
        if not pairs or f"{rule.src}-{rule.dst}".lower() in pairs:
            for mode in rule.modes or (None,):
                yield rule, mode, pypto.CastMode[f"CAST_{mode or 'NONE'}"]


def beside_copies(
    run: Callable[[], object], src: Format, dst: Format, elems: int, **others: peers.Peer | None
) -> dict[str, peers.Peer | None]:
    """A cast, its peers, and copies of as many bytes."""
    # Written once: memory that never was is a single page of zeros, read from the cache.
    memory = np.ones(elems * (src.dtype.itemsize + dst.dtype.itemsize) // 2, np.uint8)
    copy = np.ones_like(memory)
    return {
        "us": run,
        **others,
        "memcpy": lambda: np.copyto(copy, memory),
        "copy": memory.copy,  # into a new array, as a cast's result is one
    }


# --- Pairs ---------------------------------------------------------------------------------------


def fitting(tile: tuple[int, ...], rule: CastRule) -> tuple[int, ...]:
    """The tile, its first axis halved until input and output of this pair need no warning of UB."""
    while math.prod(tile) * (rule.src.bits + rule.dst.bits) // 8 > DEFAULT_CHIP.ub_safe_bytes:
        tile = (tile[0] // 2, *tile[1:])
    return tile


def rows(
    pairs: list[str], shape: tuple[int, ...], tile: tuple[int, ...], rounds: int
) -> Iterator[Row]:
    """Measure each pair and mode against its peers."""
    elems = math.prod(shape)
    for rule, mode, cast_mode in rules(pairs):
        pypto.set_vec_tile_shapes(*fitting(tile, rule))
        values = sample(rule.src, elems).reshape(shape)
        tensor, rounding = pypto.from_numpy(values), mode or RoundMode.RINT
        cast = functools.partial(pypto.cast, tensor, dtype_of(rule.dst), mode=cast_mode)
        seconds, ratios = compared(
            beside_copies(
                cast,
                rule.src,
                rule.dst,
                elems,
                astype=peers.astype(values, rule.dst) if rule.src is not rule.dst else None,
                honest=peers.numpy_equivalent(values, rule.src, rule.dst, rounding),
                torch=peers.torch_to(values, rule.src, rule.dst),
                onnxruntime=peers.onnxruntime_cast(values, rule.dst),
            ),
            rounds,
        )
        moved = elems * (rule.src.dtype.itemsize + rule.dst.dtype.itemsize)  # INT4 lies in bytes
        yield {
            "pair": str(rule),
            "mode": str(mode or "-"),
            "melems_per_s": round(elems / seconds / 1e6, 1),
            "gbytes_per_s": round(moved / seconds / 1e9, 2),
            **ratios,
        }


# --- The small floats of the 950, beside ml_dtypes, torch and en_dtypes ---------------------------

SMALL_FLOATS = (
    *((FP32, dst) for dst in (E4M3FN, E5M2, HF8)),
    (FP16, HF8),
    *((src, FP32) for src in (E4M3FN, E5M2, HF8)),
)


def small_float_rows(elems: int, rounds: int) -> Iterator[Row]:
    """Measure casts from and to FP8 and HF8; HF8 beside FP8 of ml_dtypes and torch, for want of
    theirs.
    """
    for src, dst in SMALL_FLOATS:
        values = sample(src, elems)
        alike = sample(E4M3FN, elems) if src is HF8 else values
        target = E4M3FN if dst is HF8 else dst
        with pypto.options(chip="Ascend950PR", vec_tile_shapes=(4096,)):
            tensor = pypto.tensor(None, dtype_of(src), data=values)
            seconds, ratios = compared(
                {
                    "us": functools.partial(pypto.cast, tensor, dtype_of(dst)),
                    "ml_dtypes": peers.astype(alike, target),
                    "torch": peers.torch_to(alike, E4M3FN if src is HF8 else src, target),
                    "en_dtypes": peers.en_dtypes_cast(values, src, dst),
                },
                rounds,
            )
        rate = round(elems / seconds / 1e6, 1)
        yield {"pair": f"{src} -> {dst}", "melems_per_s": rate, **ratios}


# --- ONNX Cast, beside torch and onnxruntime ------------------------------------------------------

FLOAT8 = ("FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ")
ONNX_PAIRS = [
    ("FLOAT16", "FLOAT"),
    *(("FLOAT", dst) for dst in ("FLOAT16", "BFLOAT16", *FLOAT8, "INT8", "INT16", "INT32")),
]


def onnx_rows(elems: int, rounds: int) -> Iterator[Row]:
    """Measure pairs that models cast between, float8 saturated."""
    for source, destination in ONNX_PAIRS:
        to = TensorType[destination]
        src, dst = FORMATS[TensorType[source]], FORMATS[to]
        values = sample(src, elems)
        candidates = {
            "us": functools.partial(onnx.cast, values, to),
            "torch": peers.torch_to(values, src, dst),
            "onnxruntime": peers.onnxruntime_cast(values, dst),
        }
        seconds, ratios = compared(candidates, rounds)
        rate = round(elems / seconds / 1e6, 1)
        yield {"pair": f"{source} -> {destination}", "melems_per_s": rate, **ratios}


# --- Special values ------------------------------------------------------------------------------


def special_inputs(src: FloatFormat, elems: int) -> dict[str, Codes]:
    """Codes of a format by what they are, of values in an order that no branch can foresee."""
    random = np.random.default_rng(11)
    ordinary = codes_of(sample(src, elems), src)
    dtype = ordinary.dtype
    largest = dtype.type(src.max_code)
    return {
        "us": ordinary,
        "nan": np.full(elems, src.nan_code, dtype),
        "infinite": np.full(elems, src.inf_code, dtype),
        "half_overflow": np.where(random.random(elems) < 0.5, ordinary, largest),
        "subnormal": random.integers(1, 1 << src.man_bits, elems, dtype),
    }


def special_rows(pairs: list[str], elems: int, rounds: int) -> Iterator[Row]:
    """Measure the time of such inputs over that of an ordinary one, 1 if it is the same."""
    pypto.set_vec_tile_shapes(4096)
    for rule, mode, cast_mode in rules(pairs):
        if isinstance(rule.src, FloatFormat):
            dtype = dtype_of(rule.dst)
            casts = {
                name: functools.partial(
                    pypto.cast, pypto.from_numpy(values_of(codes, rule.src)), dtype, cast_mode
                )
                for name, codes in special_inputs(rule.src, elems).items()
            }
            _, times = compared(casts, rounds)
            named = {name.removeprefix("to_"): time for name, time in times.items()}
            yield {"pair": str(rule), "mode": str(mode or "NONE"), **named}


# --- Casts of two elements, results so large that fresh memory decides, empty caches --------------

LARGE = (FP16, INT32)
COLD = ((FP32, FP16), (FP32, INT32), (FP16, INT8), (INT8, FP16))
COLD_ELEMS = 8 << 20
EMPTYING_BYTES = 128 << 20
"""Bytes that are read to empty the caches: more than the last one holds."""
MEGABYTES = (32, 64)
MOST_FRESH_ROUNDS = 4
"""Results of fresh memory are all kept meanwhile."""


def small_casts(rounds: int) -> Iterator[Row]:
    """Two elements of FP32 to FP16, on each engine of arrays."""
    tensor = pypto.from_numpy(np.float32([1.5, -2.5]))
    for engine in ENGINES:
        if engine in ("native", "numpy"):
            with pypto.options(vec_tile_shapes=[16], engine=engine):
                best = best_seconds({"us": lambda: pypto.cast(tensor, pypto.DT_FP16)}, rounds)
            yield {"engine": engine, "microseconds": round(best["us"] * 1e6, 1)}


def cold_casts(rounds: int) -> Iterator[Row]:
    """Casts with other memory read before each, as most casts of a checkpoint are."""
    emptying = np.ones(EMPTYING_BYTES // 8)
    for src, dst in COLD:
        elems = COLD_ELEMS
        megabytes = elems * dst.bits // 8 >> 20
        runs = {"in no cache": (rounds, {"before": emptying.max})}
        yield from _sized(src, dst, elems, megabytes, runs)


def large_results(rounds: int) -> Iterator[Row]:
    """Results in memory that is new to the process, and in memory that a result before had."""
    for dst in LARGE:
        for megabytes in MEGABYTES:
            runs: dict[str, Any] = {
                "used again": (rounds, {}),
                "fresh": (min(rounds, MOST_FRESH_ROUNDS), {"kept": []}),
            }
            yield from _sized(FP32, dst, (megabytes << 20) * 8 // dst.bits, megabytes, runs)


def _sized(
    src: Format, dst: Format, elems: int, megabytes: int, runs: Mapping[str, Any]
) -> Iterator[Row]:
    """A row for each kind of memory that a cast meets."""
    pypto.set_vec_tile_shapes(4096)
    values = sample(src, elems)
    candidates = beside_copies(
        functools.partial(pypto.cast, pypto.from_numpy(values), dtype_of(dst)),
        src,
        dst,
        elems,
        torch=peers.torch_to(values, src, dst),
        onnxruntime=peers.onnxruntime_cast(values, dst),
    )
    for memory, (rounds, how) in runs.items():
        seconds, ratios = compared(candidates, rounds, **how)
        yield {
            "result": f"{megabytes} MB",
            "memory": memory,
            "pair": f"{src} -> {dst}",
            "milliseconds": round(seconds * 1e3, 2),
            **ratios,
        }


# --- The command ---------------------------------------------------------------------------------

TABLES: Final[Mapping[str, Callable[[argparse.Namespace], Iterator[Row]]]] = {
    "pairs": lambda given: rows(given.pair, given.shape, given.tile, given.rounds),
    "small floats": lambda given: small_float_rows(math.prod(given.shape), given.rounds),
    "onnx": lambda given: onnx_rows(math.prod(given.shape), given.rounds),
    "special values": lambda given: special_rows(given.pair, math.prod(given.shape), given.rounds),
    "small casts": lambda given: small_casts(given.rounds),
    "large results": lambda given: large_results(given.rounds),
    "cold casts": lambda given: cold_casts(given.rounds),
}
"""The tables that the command can make, by title, one row after another."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cast", description=__doc__)
    parser.add_argument("--table", choices=TABLES, action="append", help="repeatable; else all")
    parser.add_argument("--pair", action="append", default=[], help="such as fp32-fp16; repeatable")
    parser.add_argument("--shape", type=ints, default=SHAPE)
    parser.add_argument("--tile", type=ints, default=TILE)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0])
    parser.add_argument("--rounds", type=int, default=7, help="best of so many")
    parser.add_argument("--json", action="store_true", help="JSON instead of tables of Markdown")
    given = parser.parse_args()
    asked = {title: TABLES[title](given) for title in TABLES if title in (given.table or TABLES)}
    engine: Engine = given.engine
    options = pypto.options(vec_tile_shapes=given.tile, threads=given.threads, engine=engine)
    with warnings.catch_warnings(), options:
        warnings.simplefilter("ignore", pypto.TileShapeWarning)
        warnings.simplefilter("error", pypto.EngineWarning)
        print_tables(asked, as_json=given.json)


if __name__ == "__main__":
    main()
