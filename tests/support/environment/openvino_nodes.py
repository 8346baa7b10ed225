"""Single nodes of the installed openvino: evaluated by its core, or compiled for its CPU plugin."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

ov: Any = pytest.importorskip("openvino", reason="openvino is not installed (extra oracles)")
opset13: Any = pytest.importorskip("openvino.opset13", reason="openvino is not installed")
opset14: Any = pytest.importorskip("openvino.opset14", reason="openvino is not installed")

if not ov.__version__.startswith("2026.4."):
    pytest.skip(
        f"the rules are those of OpenVINO 2026.4, not {ov.__version__}", allow_module_level=True
    )

NUMPY: dict[str, np.dtype] = {
    "boolean": np.dtype(np.bool_),
    "u4": np.dtype(ml_dtypes.uint4),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "i4": np.dtype(ml_dtypes.int4),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
NAMES = {dtype: name for name, dtype in NUMPY.items()}
PACKED = ("u4", "i4")


def codes_of(values: np.ndarray) -> np.ndarray:
    """The codes of numbers of 8 bits and more; of 4-bit ones the low half of each byte."""
    codes = values.view(f"u{values.dtype.itemsize}")
    return codes & 15 if NAMES[values.dtype] in PACKED else codes


def parameter(name: str, shape: Sequence[int] | None) -> Any:
    """A Parameter of a type; no shape is a dynamic rank."""
    rank = ov.PartialShape.dynamic() if shape is None else ov.PartialShape(list(shape))
    return opset13.parameter(rank, getattr(ov.Type, name))


def tensor(values: np.ndarray) -> Any:
    """A tensor with the same codes."""
    name = NAMES[values.dtype]
    made = ov.Tensor(getattr(ov.Type, name), ov.Shape(list(values.shape)))
    codes = codes_of(np.ascontiguousarray(values).reshape(-1))
    if name in PACKED:
        codes = np.resize(codes, 2 * -(-codes.size // 2))
        codes = codes[0::2] | codes[1::2] << 4
        return ov.Tensor(codes, ov.Shape(list(values.shape)), getattr(ov.Type, name))
    made.data.reshape(-1).view(np.uint8)[:] = codes.view(np.uint8)
    return made


def array(made: Any, name: str, shape: Sequence[int]) -> np.ndarray:
    """The numbers of a tensor, in memory of their own."""
    stored = np.array(made.data).reshape(-1).view(np.uint8)
    if name in PACKED:
        stored = np.stack([stored & 15, stored >> 4], axis=-1).reshape(-1)[: int(np.prod(shape))]
        return stored.view(NUMPY[name]).reshape(shape)
    return stored.view(NUMPY[name]).reshape(shape)


def evaluate(node: Any, inputs: Sequence[np.ndarray], name: str) -> np.ndarray:
    """Evaluates a node, with one output of the shape of its first input, by the core."""
    shape = inputs[0].shape
    out = ov.Tensor(getattr(ov.Type, name), ov.Shape(list(shape)))
    assert node.evaluate([out], [tensor(values) for values in inputs])
    return array(out, name, shape)


def fake_convert_node(inputs: Sequence[np.ndarray], destination_type: str) -> tuple[Any, list[Any]]:
    parameters = [parameter(NAMES[values.dtype], values.shape) for values in inputs]
    node = opset13.fake_convert(*parameters, destination_type=destination_type)
    return node, parameters


def fake_convert(inputs: Sequence[np.ndarray], destination_type: str) -> np.ndarray:
    """FakeConvert of data, scale and perhaps shift by the core."""
    node, _ = fake_convert_node(inputs, destination_type)
    return evaluate(node, inputs, NAMES[inputs[0].dtype])


def plugin_numerics() -> str:
    """The numerics of the plugin on this processor, as oneDNN is told to use it."""
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    has_fp16 = "avx512_fp16" in Path("/proc/cpuinfo").read_text("ascii")
    return "plugin-avx512fp16" if has_fp16 and not limit else "plugin"


def fake_convert_by_plugin(inputs: Sequence[np.ndarray], destination_type: str) -> np.ndarray:
    """The same by the CPU plugin, told to compute in f32."""
    node, parameters = fake_convert_node(inputs, destination_type)
    model = ov.Model([node], parameters, "fake_convert")
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for place, values in enumerate(inputs):
        request.set_input_tensor(place, tensor(values))
    request.infer()
    return array(request.get_output_tensor(0), NAMES[inputs[0].dtype], inputs[0].shape)


@lru_cache(maxsize=512)
def _convert_node(src: str, dst: str, shape: tuple[int, ...]) -> Any:
    return opset13.convert(parameter(src, shape), dst)


def convert(values: np.ndarray, dst: str) -> np.ndarray:
    """Convert by the core."""
    node = _convert_node(NAMES[values.dtype], dst, values.shape)
    return evaluate(node, [values], dst)
