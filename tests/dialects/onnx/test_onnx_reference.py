"""The casts for onnx's ReferenceEvaluator: among other operators, in bodies and in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from pypto_cast.dialects import onnx as dialect
from pypto_cast.dialects.onnx.reference import Cast, CastLike, Evaluator

FLOAT8 = TensorProto.FLOAT8E4M3FN
FNUZ = TensorProto.FLOAT8E4M3FNUZ
TWICE_ROUNDED = 1.0625 + 2.0**-30
"""Above a tie of E4M3FN, and on it in float32, through which the evaluator's own Cast goes."""


def value(name: str, kind: int) -> Any:
    return helper.make_tensor_value_info(name, kind, None)


def model(nodes: list[Any], src: int, dst: int, *, opset: int = 25, **more: Any) -> ModelProto:
    graph = helper.make_graph(nodes, "casts", [value("x", src)], [value("y", dst)])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("house", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, **more)


def codes(evaluator: ReferenceEvaluator, x: np.ndarray) -> list[int]:
    (y,) = evaluator.run(None, {"x": x})
    return y.view(np.uint8).tolist()


CAST = helper.make_node("Cast", ["sum"], ["y"], to=FLOAT8)
BOTH = (TWICE_ROUNDED, -1e9)
X = np.array(BOTH) / 2
EXACT = dialect.cast(np.array(BOTH), FLOAT8).view(np.uint8).tolist()


def test_the_casts_of_a_model_are_exact() -> None:
    whole = model([helper.make_node("Add", ["x", "x"], ["sum"]), CAST], TensorProto.DOUBLE, FLOAT8)
    assert EXACT == [0x39, 0xFE]
    assert codes(ReferenceEvaluator(whole, new_ops=[Cast]), X) == EXACT
    assert codes(Evaluator(whole), X) == EXACT
    assert codes(ReferenceEvaluator(whole), X) != EXACT


def test_cast_like_and_attributes_that_are_not_set() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["like"], to=FNUZ, saturate=0),
        helper.make_node("CastLike", ["x", "like"], ["y"]),
    ]
    whole = model(nodes, TensorProto.FLOAT, FNUZ)
    assert codes(Evaluator(whole), np.float32([1e9, np.inf])) == [0x7F, 0x7F]
    unsaturated = helper.make_node("CastLike", ["x", "like"], ["y"], saturate=0)
    whole = model([nodes[0], unsaturated], TensorProto.FLOAT, FNUZ)
    assert codes(Evaluator(whole), np.float32([1e9, np.inf])) == [0x80, 0x80]


def test_the_opset_of_the_model_and_round_mode() -> None:
    for opset, code in ((19, 0x80), (24, 0x7F)):
        whole = model([helper.make_node("Cast", ["x"], ["y"], to=FNUZ)], 1, FNUZ, opset=opset)
        assert codes(Evaluator(whole), np.float32([np.inf])) == [code]
    scale = TensorProto.FLOAT8E8M0
    node = helper.make_node("Cast", ["x"], ["y"], to=scale, round_mode="down")
    assert codes(Evaluator(model([node], 1, scale)), np.float32([1.9])) == [127]


def test_text_and_rank_0() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["text"], to=TensorProto.STRING),
        helper.make_node("Cast", ["text"], ["y"], to=TensorProto.FLOAT),
    ]
    evaluator = Evaluator(model(nodes, TensorProto.FLOAT, TensorProto.FLOAT))
    for x in (np.float32([0.1, -np.inf]), np.array(0.1, np.float32)):
        (y,) = evaluator.run(None, {"x": x})
        np.testing.assert_array_equal(y, x, strict=True)


def test_bodies_and_functions_of_a_model() -> None:
    body = helper.make_graph([CAST], "body", [], [value("y", FLOAT8)])
    add = helper.make_node("Add", ["x", "x"], ["sum"])
    true = helper.make_node("Constant", [], ["true"], value=helper.make_tensor("t", 9, [], [1]))
    branch = helper.make_node("If", ["true"], ["y"], then_branch=body, else_branch=body)
    whole = model([add, true, branch], TensorProto.DOUBLE, FLOAT8)
    assert codes(ReferenceEvaluator(whole, new_ops=[Cast]), X) == EXACT
    assert codes(Evaluator(whole), X) == EXACT

    imports = [helper.make_opsetid("", 25)]
    function = helper.make_function("house", "Doubled", ["x"], ["y"], [add, CAST], imports)
    call = helper.make_node("Doubled", ["x"], ["y"], domain="house")
    whole = model([call], TensorProto.DOUBLE, FLOAT8, functions=[function])
    assert codes(Evaluator(whole), X) == EXACT


def test_an_operator_of_the_callers_comes_first() -> None:
    seen: list[int] = []
    members = {"_run": lambda self, x, **_: seen.append(x.size) or (x,)}
    own = type("Cast", (Cast,), members)
    whole = model([helper.make_node("Cast", ["x"], ["y"], to=1)], 1, 1)
    Evaluator(whole, new_ops=[own]).run(None, {"x": np.zeros(3, np.float32)})
    assert seen == [3]


def test_what_is_refused() -> None:
    whole = model([helper.make_node("Cast", ["x"], ["y"], to=1)], TensorProto.STRING, 1)
    with pytest.raises(ValueError, match="'ten'"):
        Evaluator(whole).run(None, {"x": np.array(["ten"], object)})
    whole = model([helper.make_node("Cast", ["x"], ["y"], to=14)], 1, 14)
    with pytest.raises(TypeError) as raised:
        Evaluator(whole).run(None, {"x": np.zeros(1, np.float32)})
    assert "complex is not supported" in str(raised.value.__cause__)
    assert dialect.reference.CastLike is CastLike
