"""Speed of the dialects beside their own frameworks: `python -m benchmarks.frontends`.

One process, both candidates of a row in turn, best of n rounds; absolute figures are this machine's
and the ratios of one run are what carries over. A row is a name, what we run and what the framework
runs; every dialect contributes a function that yields rows, named in `DIALECTS`.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import measuring
from benchmarks.measuring import best_seconds, sample
from pypto_cast.dialects import onnx as onnx_dialect
from pypto_cast.dialects import openvino as openvino_dialect
from pypto_cast.dialects.onnx.types import FORMATS
from pypto_cast.dialects.openvino.element_types import HELD_FORMATS
from pypto_cast.dtypes.data_types import TensorType

ELEMS = 1 << 22
CHANNELS = 64
DESTINATION_TYPES = ("f8e4m3", "f8e5m2")
_FEW_ELEMS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Two ways to the same values."""

    name: str
    ours: Callable[[], object]
    peer: Callable[[], object]


def onnx(elems: int) -> Iterator[Row]:
    """Cast of every numeric pair that onnx's ReferenceEvaluator converts, beside that."""
    for src in FORMATS:
        values = sample(FORMATS[src], elems)
        for dst in FORMATS:
            if src is not dst and converts(reference := evaluator(src, dst), values):
                yield Row(
                    name=f"onnx {src.name}-{dst.name}".lower(),
                    ours=functools.partial(onnx_dialect.cast, values, dst),
                    peer=functools.partial(reference.run, None, {"x": values}),
                )


def evaluator(src: TensorType, dst: TensorType) -> Any:
    """A ReferenceEvaluator of one Cast node."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=int(dst))],
        "cast",
        [helper.make_tensor_value_info("x", int(src), [None])],
        [helper.make_tensor_value_info("y", int(dst), [None])],
    )
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)]))


def converts(reference: Any, values: npt.NDArray[Any]) -> bool:
    """True if the evaluator has this pair: between some types below 8 bits it has none."""
    try:
        with np.errstate(all="ignore"):
            reference.run(None, {"x": values[:_FEW_ELEMS]})
    except TypeError:
        return False
    return True


def openvino(elems: int) -> Iterator[Row]:
    """FakeConvert of every type, destination and common shape of scale, beside OpenVINO's core."""
    shape = (1, CHANNELS, elems // CHANNELS)
    moves = {"tensor": (1,), "channel": (1, CHANNELS, 1), "element": shape}
    for name in ("f16", "bf16", "f32"):
        fmt = HELD_FORMATS[name]
        data = sample(fmt, shape[1] * shape[2]).reshape(shape)
        for destination, (per, move) in itertools.product(DESTINATION_TYPES, moves.items()):
            inputs = [data, *(np.full(move, number).astype(fmt.dtype) for number in (1.7, 0.3))]
            for count, shift in ((2, ""), (3, " shift")):
                given = inputs[:count]
                yield Row(
                    name=f"openvino FakeConvert {name} {destination} per {per}{shift}",
                    ours=functools.partial(
                        openvino_dialect.fake_convert, *given, destination_type=destination
                    ),
                    peer=evaluate(given, name, destination),
                )


def evaluate(inputs: list[npt.NDArray[Any]], name: str, destination: str) -> Callable[[], object]:
    """The core's FakeConvert of these inputs, set up beforehand."""
    import openvino
    from openvino import opset13

    element = getattr(openvino.Type, name)
    tensors = [openvino.Tensor(element, openvino.Shape(list(x.shape))) for x in inputs]
    for tensor, x in zip(tensors, inputs, strict=True):
        tensor.data.view(np.uint8)[...] = x.view(np.uint8)
    parameters = [opset13.parameter(list(x.shape), element) for x in inputs]
    node = opset13.fake_convert(*parameters, destination_type=destination)
    out = openvino.Tensor(element, openvino.Shape(list(inputs[0].shape)))
    return lambda: node.evaluate([out], tensors) and out.data


DIALECTS: dict[str, Callable[[int], Iterator[Row]]] = {"onnx": onnx, "openvino": openvino}


def measure(row: Row, rounds: int) -> measuring.Row:
    """Time both candidates of a row; a ratio above 1 says that we are faster."""
    best = best_seconds({"ours": row.ours, "peer": row.peer}, rounds)
    return {
        "name": row.name,
        "ours_ms": round(best["ours"] * 1e3, 3),
        "peer_ms": round(best["peer"] * 1e3, 3),
        "ratio": round(best["peer"] / best["ours"], 2),
    }


def markdown(table: list[measuring.Row]) -> str:
    """The timings as a table, and the geometric mean of the ratios."""
    ratios = [row["ratio"] for row in table]
    mean = math.exp(math.fsum(math.log(max(ratio, 0.01)) for ratio in ratios) / max(len(table), 1))
    slower = sum(ratio < 1 for ratio in ratios)
    last = f"{len(table)} rows, {slower} of them slower than the peer, mean ratio {mean:.2f}"
    return f"{measuring.markdown(table)}\n\n{last}" if table else last


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frontends", description=__doc__)
    parser.add_argument("--dialect", choices=DIALECTS, action="append")
    parser.add_argument("--row", action="append", default=[], help="a part of its name; repeatable")
    parser.add_argument("--elems", type=int, default=ELEMS)
    parser.add_argument("--rounds", type=int, default=5, help="best of so many")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    given = parser.parse_args()
    table = []
    for dialect in given.dialect or DIALECTS:
        for row in DIALECTS[dialect](given.elems):
            if not given.row or any(part in row.name for part in given.row):
                table.append(measure(row, given.rounds))
                print(f"{row.name}: {table[-1]['ratio']}", file=sys.stderr)
    print(json.dumps(table, indent=1) if given.json else markdown(table))


if __name__ == "__main__":
    main()
