"""Tensors in GM of which a body has two shapes: reshapes, and arguments that it has flattened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ascend_kernels.schedule.parts import Leaf
from ascend_kernels.schedule.reader.dump_leaves import LeafText
from ascend_kernels.schedule.reader.dump_slots import Slots
from ascend_kernels.schedule.reader.upstream_dump import _declared, _Root
from simulator.numbers.formats import FP32

OWN = [2, 16, 3, 1, "RUNTIME_GetInputShapeDim", 1, "ARG_x", 0, 0]
ROWS = [2, 5, *OWN, 0, 4]


def root_of(shapes: dict[str, list[int]], rows: list[Any], reshapes: list[list[int]]) -> _Root:
    """A body of reshapes, the first tensor taken; the extents that are open are `rows`."""
    raw = [
        {"rawmagic": place, "rawshape": shape, "datatype": 7, "symbol": name.rstrip("_")}
        for place, (name, shape) in enumerate(shapes.items())
    ]
    tensors = [
        {
            "magic": each["rawmagic"],
            "rawtensor": each["rawmagic"],
            "shape": each["rawshape"],
            "dynvalidshape": [rows[place] if x < 0 else [0, x] for x in each["rawshape"]],
        }
        for place, each in enumerate(raw)
    ]
    calls = [
        {"opcode": "CALL", "ioperands": [a], "ooperands": [b], "attr": ["1", 0]}
        for a, b in reshapes
    ]
    function = {"func_magicname": "body", "rawtensors": raw, "tensors": tensors}
    ends = {"incasts": [(0, [])], "outcasts": [], "operations": calls}
    return _Root({**function, **ends}, ["x"], Slots(), {7: FP32})


def leaves() -> dict[str, LeafText]:
    leaf = Leaf(name="leaf", core="HUB", operations=(), buffers=())
    return {"1": LeafText(leaf=leaf, reshaped=[0, 1])}


def test_an_argument_that_is_flattened_lies_in_its_memory() -> None:
    shapes = {"x": [-1, 4, 8], "x_": [-1, 8]}
    root = root_of(shapes, [OWN, ROWS], [])
    flat_alone = root_of({"x": [-1, 8]}, [ROWS], [])
    declared = _declared({Path("flat"): flat_alone, Path("whole"): root})

    body = root.body({}, {}, declared)

    assert declared == {"x": (-1, 4, 8)}
    (flat,) = body.temporaries
    assert (flat.alias, flat.shape) == ("x", (("mul", ("extent", "x", 0), 4), 8))
    assert [each.shape for each in root.parameters()] == [(("extent", "x", 0), 4, 8)] * 2


@pytest.mark.parametrize("reshapes", [[[0, 1], [0, 2]], [[0, 1], [1, 2]]])
def test_all_tensors_that_reshapes_join_lie_in_one_memory(reshapes: list[list[int]]) -> None:
    root = root_of({"a": [-1, 4], "b": [-1, 8], "c": [-1, 16]}, [ROWS] * 3, reshapes)

    body = root.body(leaves(), {"1": 0}, {})

    memories = {each.alias or each.name for each in body.temporaries}
    assert len(memories) == 1
    accesses = [each for task in body.tasks for each in task.accesses]
    assert {each.shape[0] for each in accesses} == {("mul", ("extent", "x", 0), 4)}
