"""Equal operations share a plan: it is made once, and whatever decides it asks for another."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from ascend_kernels.npu import NpuError, RunMode
from pypto_cast.operations import elementwise_plan
from pypto_cast.options import context
from pypto_cast.recording import recording
from pypto_cast.unsupported import DynamicOperandWarning
from tiling.plan import TileShapeError

Kernel = Callable[..., Any]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operations that were planned, with none kept from before."""
    made: list[str] = []
    plan = elementwise_plan._planned

    def counted(row: Any, *given: Any) -> Any:
        made.append(row.name)
        return plan(row, *given)

    monkeypatch.setattr(elementwise_plan, "_PLANS", {})
    monkeypatch.setattr(elementwise_plan, "_KNOWN", {})
    monkeypatch.setattr(elementwise_plan, "_SETTLED", {})
    monkeypatch.setattr(elementwise_plan, "_planned", counted)
    return made


def _ones(*shape: int, dtype: pypto.DataType = pypto.DT_FP32) -> pypto.Tensor:
    count = int(np.prod(shape))
    return pypto.tensor(list(shape), dtype, data=np.ones(count).reshape(shape).tolist())


def test_equal_operations_are_planned_once(planned: list[str]) -> None:
    for _ in range(20):
        pypto.add(_ones(2, 8), _ones(2, 8))
        pypto.mul(_ones(2, 8), 3.0)
    assert planned == ["add", "mul"]


def test_equal_operations_of_a_line_share_the_origin_of_their_elements() -> None:
    x = _ones(2, 8)
    pypto.set_vec_tile_shapes(1, 8)
    sums = [pypto.add(x, x) for _ in range(20)]
    elsewhere = pypto.add(x, x)
    records = {id(tensor._patches[0].record) for tensor in sums}
    assert len(records) == 1
    assert elsewhere._patches[0].record.line == sums[0]._patches[0].record.line + 1


@pytest.mark.parametrize(
    "other",
    [
        {"chip": "Ascend910B1"},
        {"release": "0.2.0"},
        {"auto_cast": "every op"},
        {"vec_tile_shapes": (1, 8)},
    ],
    ids=lambda other: next(iter(other)),
)
def test_options_that_decide_a_plan_ask_for_another(
    planned: list[str], other: dict[str, Any]
) -> None:
    pypto.add(_ones(2, 8), _ones(2, 8))
    with pypto.options(**other):
        pypto.add(_ones(2, 8), _ones(2, 8))
    assert planned == ["add", "add"]


def test_operands_that_decide_a_plan_ask_for_another(planned: list[str]) -> None:
    x, y = _ones(2, 8), _ones(2, 8)
    pypto.add(x, y)
    pypto.add(x, x)  # one operand in UB
    pypto.add(x, 1.0)
    pypto.add(x, _ones(1, 8))
    pypto.add(_ones(2, 8, dtype=pypto.DT_FP16), _ones(2, 8, dtype=pypto.DT_FP16))
    assert len(planned) == 4  # x + x and x + 1.0 have one tensor each, and one plan


@pytest.mark.slow
def test_a_refused_operation_is_refused_each_time(planned: list[str]) -> None:
    for _ in range(2):
        with (
            pytest.raises(TileShapeError, match="of UB"),
            pypto.options(vec_tile_shapes=(64, 4096)),
        ):
            pypto.add(_ones(64, 4096), _ones(64, 4096))
    assert len(planned) == 2
    x = _ones(2, 8)
    pypto.add(x, x)
    with context.running_on(RunMode.NPU), pytest.raises(NpuError):
        elementwise_plan.elementwise("add", x, x)


def test_every_read_of_a_moved_tensor_warns(planned: list[str]) -> None:
    @pypto.jit
    def kernel(
        a: pypto.Tensor([2, 8], pypto.DT_FP32),
        out: pypto.Tensor([2, 8], pypto.DT_FP32),
    ) -> None:
        pypto.set_vec_tile_shapes(2, 8)
        kept = pypto.add(a, 1.0)
        moved = pypto.add(a, 1.0)
        pypto.mul(kept, 2.0)
        out[:] = moved
        pypto.mul(moved, 2.0)

    for _ in range(2):
        with pytest.warns(UserWarning, match="moved it"):
            kernel(np.ones((2, 8), np.float32), np.zeros((2, 8), np.float32))
    assert planned == ["add", "mul"]


def test_a_kept_plan_records_what_another_release_does(planned: list[str]) -> None:
    x = _ones(2, 8, dtype=pypto.DT_FP16)  # head runs it in FP32, 0.2.0 does not
    found = []
    for _ in range(2):
        with recording.running(recording.Recording(kernel="k")) as running:
            elementwise_plan.elementwise("add", x, x)
        found.append(
            {cause.operation: dtype for cause, dtype in running.release_dependence.items()}
        )
    assert planned == ["add"]
    assert found == [{"add": pypto.DT_FP16}] * 2


def test_a_dynamic_operand_warns_each_time(planned: list[str]) -> None:
    @pypto.jit
    def kernel(
        a: pypto.Tensor([pypto.DYNAMIC, 8], pypto.DT_FP32),
        out: pypto.Tensor([pypto.DYNAMIC, 8], pypto.DT_FP32),
    ) -> None:
        pypto.set_vec_tile_shapes(2, 8)
        out[:] = pypto.add(a, 1.0)

    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kernel(np.ones((2, 8), np.float32), np.zeros((2, 8), np.float32))
        assert DynamicOperandWarning in {each.category for each in caught}
    assert planned == ["add", "add"]


def test_plans_do_not_accumulate(planned: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise_plan, "_MOST_PLANS", 4)
    for columns in range(1, 12):
        x = _ones(1, columns)
        pypto.add(x, x)
        assert len(elementwise_plan._PLANS) <= 4
