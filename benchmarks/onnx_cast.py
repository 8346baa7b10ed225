"""ONNX Cast by the dialect, beside torch and onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import peers
from benchmarks.measuring import best_seconds, ratios, sample
from pypto_cast.dialects import onnx as dialect
from pypto_cast.dialects.onnx.types import FORMATS
from pypto_cast.dtypes.data_types import TensorType

FLOAT8 = ("FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ")
PAIRS = [
    ("FLOAT16", "FLOAT"),
    *(("FLOAT", dst) for dst in ("FLOAT16", "BFLOAT16", *FLOAT8, "INT8", "INT16", "INT32")),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxRow:
    """One pair of types, float8 saturated. Ratios are our speed over the peer's."""

    pair: str
    melems_per_s: float
    to_torch: float | None
    to_onnxruntime: float | None


def rows(elems: int, rounds: int) -> Iterator[OnnxRow]:
    """Measure pairs that models cast between."""
    for source, destination in PAIRS:
        to = TensorType[destination]
        src, dst = FORMATS[TensorType[source]], FORMATS[to]
        values = sample(src, elems)
        candidates = {
            "us": lambda values=values, to=to: dialect.cast(values, to),
            "torch": peers.torch_to(values, src, dst),
            "onnxruntime": peers.onnxruntime_cast(values, dst),
        }
        best = best_seconds(candidates, rounds)
        yield OnnxRow(
            pair=f"{source} -> {destination}",
            melems_per_s=round(elems / best["us"] / 1e6, 1),
            **ratios(best, OnnxRow),
        )
