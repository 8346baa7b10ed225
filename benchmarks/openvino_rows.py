"""Rows of `benchmarks.frontends`: our FakeConvert beside `node.evaluate` of openvino."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measuring import sample
from pypto_cast.dialects import openvino as dialect
from pypto_cast.dialects.openvino.element_types import HELD_FORMATS

CHANNELS = 64
DESTINATION_TYPES = ("f8e4m3", "f8e5m2")


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


def rows(elems: int) -> Iterator[tuple[str, Callable[[], object], Callable[[], object]]]:
    """Every type, destination and common shape of scale: name, ours, the core's."""
    shape = (1, CHANNELS, elems // CHANNELS)
    moves = {"tensor": (1,), "channel": (1, CHANNELS, 1), "element": shape}
    for name in ("f16", "bf16", "f32"):
        fmt = HELD_FORMATS[name]
        data = sample(fmt, shape[1] * shape[2]).reshape(shape)
        for destination in DESTINATION_TYPES:
            for per, move in moves.items():
                inputs = [data, *(np.full(move, number).astype(fmt.dtype) for number in (1.7, 0.3))]
                for count, shift in ((2, ""), (3, " shift")):
                    given = inputs[:count]
                    yield (
                        f"FakeConvert {name} {destination} per {per}{shift}",
                        lambda x=given, to=destination: dialect.fake_convert(
                            *x, destination_type=to
                        ),
                        evaluate(given, name, destination),
                    )
