"""The backend: onnx's own node tests, the string models it dropped, and what it refuses."""

from __future__ import annotations

import importlib
import re
import unittest
import warnings
from typing import Any

import numpy as np
import pytest
from test_onnx_strings import CASES, cases

pytest.importorskip("onnx", reason="onnx is not installed")

from onnx import ModelProto, TensorProto, checker, helper, numpy_helper
from onnx.backend.base import Backend as OnnxBackend
from onnx.backend.test import runner
from onnx.backend.test.case import node

from pypto_cast.dialects import onnx as dialect
from pypto_cast.dialects.onnx import backend

SHIPPED = 172

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # numpy's, about overflow in the making of test data
    for _name in ("cast", "castlike"):  # to make the cases of every operation takes seconds
        importlib.import_module(f"{node.__name__}.{_name}")
    with pytest.MonkeyPatch.context() as _patch:
        _patch.setattr(
            runner, "load_model_tests", lambda kind: node._NodeTestCases * (kind == "node")
        )
        _RUNNER = runner.Runner(backend, __name__)
    _RUNNER.include(r"^test_cast(like)?_")
    _SUITES: dict[str, type[unittest.TestCase]] = _RUNNER.test_cases
NAMES = [
    (suite, name)
    for suite, case in _SUITES.items()
    for name in dir(case)
    if name.startswith(("test_cast_", "test_castlike_")) and name.endswith("_cpu")
]


def test_all_shipped_cases_are_run() -> None:
    import onnx

    version = tuple(int(part) for part in onnx.__version__.split(".")[:2])
    assert len(NAMES) == SHIPPED or version != (1, 23)
    assert len(NAMES) > 100


@pytest.mark.parametrize(("suite", "name"), NAMES, ids=[name for _, name in NAMES])
def test_shipped_node_tests_pass(suite: str, name: str) -> None:
    if np.__version__.startswith("1.") and re.search("_to_FLOAT[48]E(?!5M2_)", name):
        pytest.skip("onnx's runner compares no float4, and of float8 only E5M2, under numpy 1")
    result = unittest.TestResult()
    _SUITES[suite](name).run(result)
    assert result.testsRun == 1
    assert not result.skipped
    assert not result.errors + result.failures, result.errors + result.failures


def model_of(
    op: str, src: int, dst: int, *, opset: int = 25, like: bool = False, **attributes: Any
) -> ModelProto:
    names = ["x", "like"] if like else ["x"]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attributes)],
        "cast",
        [
            helper.make_tensor_value_info(name, kind, ["n"])
            for name, kind in zip(names, (src, dst), strict=False)
        ],
        [helper.make_tensor_value_info("y", dst, ["n"])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


@pytest.mark.skipif(
    not CASES.exists(), reason=f"the case tables are not beside this checkout: no {CASES.name}"
)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_string_models_of_onnx_1_18(case: dict[str, Any]) -> None:
    reads = case["name"].endswith("STRING_to_FLOAT")
    like = "castlike" in case["name"]
    kinds = (TensorProto.STRING, TensorProto.FLOAT)
    src, dst = kinds if reads else kinds[::-1]
    holders = {TensorProto.STRING: object, TensorProto.FLOAT: np.float32}
    inputs = [np.array(case["input"], holders[src]).reshape(case["shape"])]
    attributes: dict[str, Any] = {} if like else {"to": dst}
    if like:
        inputs.append(np.empty(0, holders[dst]))
    op = "CastLike" if like else "Cast"
    model = model_of(op, src, dst, opset=case["opset"], like=like, **attributes)
    (got,) = backend.prepare(model).run(inputs)
    wanted = np.array([float(x) for x in case["output"]], np.float32) if reads else case["output"]
    np.testing.assert_array_equal(got, np.array(wanted, holders[dst]).reshape(case["shape"]))


def test_it_is_a_backend() -> None:
    assert issubclass(backend.Backend, OnnxBackend)
    assert dialect.backend is backend
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")


def test_opset_and_attributes_of_the_model_are_followed() -> None:
    x = [np.array([np.inf, 1e6], np.float32)]
    fnuz = TensorProto.FLOAT8E4M3FNUZ
    for opset, codes in ((19, [0x80, 0x7F]), (24, [0x7F, 0x7F])):
        model = model_of("Cast", TensorProto.FLOAT, fnuz, opset=opset, to=fnuz)
        (got,) = backend.run_model(model, x)
        assert got.view(np.uint8).tolist() == codes
    model = model_of("Cast", TensorProto.FLOAT, fnuz, to=fnuz, saturate=0)
    assert backend.run_model(model, x)[0].view(np.uint8).tolist() == [0x80, 0x80]
    e8m0 = TensorProto.FLOAT8E8M0
    model = model_of("Cast", TensorProto.FLOAT, e8m0, to=e8m0, round_mode="down")
    (got,) = backend.run_model(model, [np.array([1.9], np.float32)])
    assert got.view(np.uint8).tolist() == [127]


def test_nodes_in_a_row_and_initializers() -> None:
    like = numpy_helper.from_array(np.zeros(1, np.float16), "like")
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["x"], ["whole"], to=TensorProto.INT32),
            helper.make_node("CastLike", ["whole", "like"], ["y"]),
        ],
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT16, [2]),
            helper.make_tensor_value_info("whole", TensorProto.INT32, [2]),
        ],
        [like],
    )
    ready = backend.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))
    for inputs in ([np.array([1.75, -2.5], np.float32)], {"x": np.array([1.75, -2.5], np.float32)}):
        y, whole = ready.run(inputs)
        assert (y.dtype, y.tolist()) == (np.float16, [1.0, -2.0])
        assert (whole.dtype, whole.tolist()) == (np.int32, [1, -2])


def test_run_node() -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT8)
    (got,) = backend.run_node(node, [np.array([300], np.int16)])
    assert got.tolist() == [44]
    fnuz = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E5M2FNUZ)
    (got,) = backend.run_node(fnuz, [np.array([np.inf], np.float32)], opset_version=19)
    assert got.view(np.uint8).tolist() == [0x80]


def test_refusals() -> None:
    x = np.zeros(2, np.float32)
    cast = model_of("Cast", TensorProto.FLOAT, TensorProto.INT8, to=TensorProto.INT8)
    negate = model_of("Neg", TensorProto.FLOAT, TensorProto.FLOAT)
    assert backend.is_compatible(cast)
    assert not backend.is_compatible(cast, "CUDA")
    assert not backend.is_compatible(negate)
    with pytest.raises(NotImplementedError, match="runs Cast and CastLike; the model has Neg"):
        backend.prepare(negate)
    with pytest.raises(NotImplementedError, match="runs Cast and CastLike, not Neg"):
        backend.run_node(negate.graph.node[0], [x])
    with pytest.raises(ValueError, match="device must be 'CPU', not 'CUDA'"):
        backend.prepare(cast, "CUDA")
    with pytest.raises(ValueError, match="Cast takes 1 inputs, not 2"):
        backend.run_node(cast.graph.node[0], [x, x])
    with pytest.raises(ValueError, match=r"1 inputs \['x'\], not 0"):
        backend.prepare(cast).run([])
    with pytest.raises(ValueError, match=r"inputs are \['x'\], not \['z'\]"):
        backend.prepare(cast).run({"z": x})
    with pytest.raises(TypeError, match=r"no options, not \['fast'\]"):
        backend.prepare(cast).run([x], fast=True)
    double = TensorProto.DOUBLE
    for given, said in ((np.float64, "DOUBLE (float64)"), (np.float16, "FLOAT16 (float16)")):
        says = re.escape(f"input 'x' is {said}, but FLOAT in the graph")
        with pytest.raises(TypeError, match=says):
            backend.prepare(cast).run([x.astype(given)])
    assert backend.prepare(cast).run([x.astype(">f4")])[0].dtype == np.int8
    with pytest.raises(TypeError, match=r"is FLOAT .* but DOUBLE in the graph"):
        backend.run_model(model_of("CastLike", double, double, like=True), {"x": x, "like": x})
    with pytest.raises(checker.ValidationError):
        backend.prepare(model_of("Cast", TensorProto.FLOAT, TensorProto.INT8))
