"""Rows of `benchmarks.frontends`: our ONNX Cast beside onnx's ReferenceEvaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measuring import sample
from pypto_cast.dialects import onnx as dialect
from pypto_cast.dialects.onnx.types import FORMATS, TensorType

SMALL_ELEMS = 16


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


def rows(elems: int) -> Iterator[tuple[str, Callable[[], object], Callable[[], object]]]:
    """Every numeric pair that the evaluator converts: name, ours, the evaluator's."""
    for src in FORMATS:
        values = sample(FORMATS[src], elems)
        for dst in FORMATS:
            if src is not dst and converts(reference := evaluator(src, dst), values):
                yield (
                    f"{src.name}-{dst.name}".lower(),
                    lambda x=values, to=dst: dialect.cast(x, to),
                    lambda x=values, run=reference.run: run(None, {"x": x}),
                )


def converts(reference: Any, values: npt.NDArray[Any]) -> bool:
    """Tells whether the evaluator has this pair: between some types below 8 bits it has none."""
    try:
        with np.errstate(all="ignore"):
            reference.run(None, {"x": values[:SMALL_ELEMS]})
    except TypeError:
        return False
    return True
