"""The greatest and least elements with their places as tile operations, unconfirmed by a wheel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pypto_cast as pypto
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.views.task_trace import schedule_perfetto
from pypto_cast.kernel.jit import Kernel
from pypto_cast.testing.possible import assert_possible
from simulator.machine.memory import SimulatorFault

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
SHAPE = (24, 200)


def extremes(name: str, axis: int, dtype: pypto.DataType = pypto.DT_FP32) -> Kernel:
    kept = [1 if k == axis else each for k, each in enumerate(SHAPE)]

    @pypto.frontend.jit
    def extreme(x: pypto.Tensor(list(SHAPE), dtype), y: pypto.Tensor(kept, pypto.DT_INT32)) -> None:
        pypto.set_vec_tile_shapes(8, 64)
        y[:] = getattr(pypto, name)(x, axis, True)

    return extreme


def drawn(axis: int) -> tuple[np.ndarray, np.ndarray]:
    """With equal elements in one tile and in several."""
    x = np.random.default_rng(17).integers(-9, 9, SHAPE).astype(np.float32)
    return x, np.zeros(np.amax(x, axis, keepdims=True).shape, np.int32)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_first_of_equal_elements_is_named(name: str, axis: int) -> None:
    kernel, (x, y) = extremes(name, axis), drawn(axis)
    expected = getattr(np, name)(x, axis=axis, keepdims=True).astype(np.int32)
    with pypto.options(fidelity="instructions", strict=True):
        kernel(x, y)
    assert_array_equal(y, expected)
    operations = [x for leaf in kernel.schedule(x, y).leaves for x in leaf.operations]
    opcodes = {each.opcode for each in operations}
    scratch = {x.outputs[2].valid_shape for x in operations if x.opcode.startswith("ROWARG")}
    assert scratch == ({(8, 64), (8, 8)} if axis else {(1, 192)})  # reduction.cpp:205
    end = "SINGLE" if axis else "LINE"
    assert {f"ROW{name.upper()}WITHVALUE_{end}", f"PAIR{name.upper()}", "ADDS"} <= opcodes


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_special_values_name_places_that_the_tensor_level_allows(name: str) -> None:
    kernel, (x, y) = extremes(name, 1), drawn(1)
    x[0], x[0, ::2] = 0.0, -0.0
    x[1, 70], x[2, [3, 190]], x[3, [0, 199]] = np.nan, np.inf, -np.inf
    x[4] *= np.float32(1e-40)
    bounds = kernel.certainty(x.copy(), y.copy())
    with pypto.options(fidelity="instructions", strict=True):
        kernel(x, y)
    assert_possible({"y": y}, bounds)


def test_a_place_of_another_format_is_a_fault() -> None:
    kernel, (x, y) = extremes("argmax", 1), drawn(1)
    schedule = kernel.schedule(x, y)
    leaf = schedule.leaves[0]
    operations = []
    for each in leaf.operations:
        if each.opcode.startswith("ROWARGMAX"):
            value, place, scratch = each.outputs
            each = replace(each, outputs=(value, replace(place, format=value.format), scratch))
        operations.append(each)
    changed = replace(leaf, operations=tuple(operations))
    with pytest.raises(SimulatorFault, match=r"ROWARGMAXWITHVALUE.* gives int32, and its output"):
        replace(schedule, leaves=(changed, *schedule.leaves[1:])).run(x, y)


def test_bf16_is_refused() -> None:
    with pytest.raises(PlanError, match=r"argmin at .*: of DT_BF16, whose places"):
        extremes("argmin", 1, pypto.DT_BF16).schedule(
            pypto.tensor(list(SHAPE), pypto.DT_BF16), pypto.tensor([24, 1], pypto.DT_INT32)
        )


def test_a_trace_names_the_operations_without_cycles() -> None:
    plan = extremes("argmax", 1).schedule(*drawn(1))
    unknown = "no cycles for ADDS of INT32, PAIRARGMAX of FP32, ROWARGMAXWITHVALUE_SINGLE of FP32"
    with pytest.raises(ValueError, match=unknown):
        next(schedule_perfetto(plan, ""))
