"""Casts of two elements, with results so large that fresh memory decides, and with empty caches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import pypto_cast as pypto
from benchmarks import peers
from benchmarks.measuring import best_seconds, ratios, sample
from pypto_cast.options.context import ENGINES
from simulator.numbers.formats import FP16, FP32, INT8, INT32, Format

DTYPES: dict[Format, pypto.DataType] = {
    FP16: pypto.DT_FP16,
    INT32: pypto.DT_INT32,
    INT8: pypto.DT_INT8,
}
LARGE = (FP16, INT32)
COLD = ((FP32, FP16), (FP32, INT32), (FP16, INT8), (INT8, FP16))
COLD_ELEMS = 8 << 20
EMPTYING_BYTES = 128 << 20
"""What is read to empty the caches: more than the last one holds."""
MEGABYTES = (32, 64)
MOST_FRESH_ROUNDS = 4
"""Results of fresh memory are all kept meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallRow:
    """A cast of two elements."""

    engine: str
    microseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRow:
    """A cast, its result's size and the memory it meets. Ratios are our speed over the peer's."""

    result: str
    memory: str
    pair: str
    milliseconds: float
    to_torch: float | None
    to_onnxruntime: float | None
    to_memcpy: float | None
    to_copy: float | None


def small_casts(rounds: int) -> Iterator[SmallRow]:
    """Two elements of FP32 to FP16, on each engine of arrays."""
    tensor = pypto.from_numpy(np.float32([1.5, -2.5]))
    for engine in ENGINES:
        if engine in ("native", "numpy"):
            with pypto.options(vec_tile_shapes=[16], engine=engine):
                cast = {"us": lambda: pypto.cast(tensor, pypto.DT_FP16)}
                best = best_seconds(cast, rounds)
            yield SmallRow(engine=engine, microseconds=round(best["us"] * 1e6, 1))


def cold_casts(rounds: int) -> Iterator[LargeRow]:
    """Casts with other memory read before each, as most casts of a checkpoint are."""
    emptying = np.ones(EMPTYING_BYTES // 8)
    pypto.set_vec_tile_shapes(4096)
    for src, dst in COLD:
        candidates = _candidates(src, dst, COLD_ELEMS)
        best = best_seconds(candidates, rounds, before=emptying.max)
        yield _row(best, src, dst, COLD_ELEMS * dst.bits // 8 >> 20, "in no cache")


def large_results(rounds: int) -> Iterator[LargeRow]:
    """Results in memory that is new to the process, and in memory that a result before had."""
    pypto.set_vec_tile_shapes(4096)
    for dst in LARGE:
        for megabytes in MEGABYTES:
            candidates = _candidates(FP32, dst, (megabytes << 20) * 8 // dst.bits)
            for memory, kept, times in (
                ("used again", None, rounds),
                ("fresh", [], min(rounds, MOST_FRESH_ROUNDS)),
            ):
                best = best_seconds(candidates, times, kept)
                yield _row(best, FP32, dst, megabytes, memory)


def _row(best: dict[str, float], src: Format, dst: Format, megabytes: int, memory: str) -> LargeRow:
    return LargeRow(
        result=f"{megabytes} MB",
        memory=memory,
        pair=f"{src} -> {dst}",
        milliseconds=round(best["us"] * 1e3, 2),
        **ratios(best, LargeRow),
    )


def _candidates(src: Format, dst: Format, elems: int) -> dict[str, peers.Peer | None]:
    """A cast and its peers on the same values."""
    values = sample(src, elems)
    tensor, dtype = pypto.from_numpy(values), DTYPES[dst]
    # Written once: memory that never was is a single page of zeros, read from the cache.
    memory = np.ones(elems * (src.bits + dst.bits) // 16, np.uint8)
    copy = np.ones_like(memory)
    return {
        "us": lambda: pypto.cast(tensor, dtype),
        "torch": peers.torch_to(values, src, dst),
        "onnxruntime": peers.onnxruntime_cast(values, dst),
        "memcpy": lambda: np.copyto(copy, memory),
        "copy": memory.copy,
    }
