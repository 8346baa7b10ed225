"""Operations that read GM at places which data name: planned, executed, damaged and refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pypto_cast as pypto
from ascend_kernels.schedule.parts import TAKERS
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.schedule import Schedule
from simulator.machine.memory import SimulatorFault

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
ROWS, COLUMNS, COUNT = 40, 96, 24


def drawn(most: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(29)
    x = rng.standard_normal((ROWS, COLUMNS)).astype(np.float32)
    return x, rng.integers(0, most, COUNT).astype(np.int32)


@pypto.frontend.jit
def selected_rows(
    x: pypto.Tensor([ROWS, COLUMNS], pypto.DT_FP32),
    index: pypto.Tensor([COUNT], pypto.DT_INT32),
    y: pypto.Tensor([COUNT, COLUMNS], pypto.DT_FP32),
) -> None:
    pypto.set_vec_tile_shapes(8, 32)
    y[:] = pypto.index_select(x * 2.0, 0, index) - 1.0


@pypto.frontend.jit
def selected_columns(
    x: pypto.Tensor([ROWS, COLUMNS], pypto.DT_FP32),
    index: pypto.Tensor([COUNT], pypto.DT_INT32),
    y: pypto.Tensor([ROWS, COUNT], pypto.DT_FP32),
) -> None:
    pypto.set_vec_tile_shapes(16, 16)
    y[:] = pypto.index_select(x, 1, index)


@pypto.frontend.jit
def paged(
    x: pypto.Tensor([ROWS, COLUMNS], pypto.DT_FP32),
    tokens: pypto.Tensor([1, COUNT], pypto.DT_INT32),
    table: pypto.Tensor([1, 6], pypto.DT_INT32),
    y: pypto.Tensor([COUNT, COLUMNS], pypto.DT_FP32),
) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.experimental.gather_in_ub(x, tokens, table, 4, -2)


def test_slices_along_each_axis_and_rows_of_pages() -> None:
    x, index = drawn(ROWS)
    rows, columns = np.zeros((COUNT, COLUMNS), np.float32), np.zeros((ROWS, COUNT), np.float32)
    table = np.array([[7, 0, 9, 3, 3, 1]], np.int32)
    with pypto.options(fidelity="instructions", strict=True):
        selected_rows(x, index, rows)
        selected_columns(x, index, columns)
        assert_array_equal(rows, np.float32(2) * x[index] - np.float32(1))
        assert_array_equal(columns, x[:, index])
        tokens = (index % COUNT)[None]
        paged(x, tokens, table, rows)
    assert_array_equal(rows, x[table[0, tokens[0] // 4] * 4 + tokens[0] % 4])


def with_taken(schedule: Schedule, **changed: Any) -> Schedule:
    """A schedule whose accesses by an operation that reads GM are others in the first such task."""
    (body,) = schedule.bodies
    place, taken = next(
        (place, operation.inputs[0].access)
        for place, task in enumerate(body.tasks)
        if task.leaf is not None
        for operation in schedule.leaves[task.leaf].operations
        if operation.opcode in TAKERS
    )
    task = body.tasks[place]
    accesses = [*task.accesses]
    accesses[taken or 0] = replace(accesses[taken or 0], **changed)
    tasks = (*body.tasks[:place], replace(task, accesses=tuple(accesses)), *body.tasks[place + 1 :])
    return replace(schedule, bodies=(replace(body, tasks=tasks),))


def test_elements_beside_the_box_that_a_task_names_are_not_read() -> None:
    x, index = drawn(ROWS)
    index[::8], y = ROWS - 1, np.zeros((COUNT, COLUMNS), np.float32)
    plan = selected_rows.schedule(x, index, y)
    plan.times_written(x, index, y)
    with pytest.raises(SimulatorFault, match=r"has indices \d+ to 39 along an axis of 39 elements"):
        with_taken(plan, shape=(ROWS - 1, 32)).times_written(x, index, y)
    with pytest.raises(SimulatorFault, match="elements 1 to 41 of axis 0 are outside the 40"):
        with_taken(plan, offset=(1, 0)).times_written(x, index, y)


def test_a_missing_wait_for_rows_that_the_task_before_wrote_is_a_fault() -> None:
    x, index = drawn(ROWS)
    y = np.zeros((COUNT, COLUMNS), np.float32)
    plan = selected_rows.schedule(x, index, y)
    (body,) = plan.bodies
    tasks = tuple(replace(each, successors=()) for each in body.tasks)
    apart = replace(plan, bodies=(replace(body, tasks=tasks),))
    with pytest.raises(SimulatorFault, match="GATHER"):
        apart.times_written(x, index, y)


@pytest.mark.parametrize("bad", [-1, ROWS])
def test_an_index_outside_is_a_fault_and_nothing_is_written(bad: int) -> None:
    x, index = drawn(ROWS)
    index[3], y = bad, np.full((COUNT, COLUMNS), 7, np.float32)
    with (
        pypto.options(fidelity="instructions"),
        pytest.raises(SimulatorFault, match=rf"GATHER .* has indices .*{bad}"),
    ):
        selected_rows(x, index, y)
    assert_array_equal(y, np.full_like(y, 7))


def test_numbers_that_tasks_write_are_not_read_by_the_scalar_unit() -> None:
    @pypto.frontend.jit
    def of_cast(
        x: pypto.Tensor([ROWS, COLUMNS], pypto.DT_FP32),
        index: pypto.Tensor([COUNT], pypto.DT_FP32),
        y: pypto.Tensor([COUNT, COLUMNS], pypto.DT_FP32),
    ) -> None:
        pypto.set_vec_tile_shapes(8, 32)
        y[:] = pypto.index_select(x, 0, pypto.cast(index, pypto.DT_INT32))

    @pypto.frontend.jit
    def along_rows(
        x: pypto.Tensor([ROWS, COLUMNS], pypto.DT_FP32),
        index: pypto.Tensor([COUNT], pypto.DT_INT32),
        y: pypto.Tensor([ROWS, COUNT], pypto.DT_FP32),
    ) -> None:
        pypto.set_vec_tile_shapes(8, 32)
        y[:] = pypto.index_select(pypto.exp(x), 1, index)

    x, index = drawn(COLUMNS)
    y, columns = np.zeros((COUNT, COLUMNS), np.float32), np.zeros((ROWS, COUNT), np.float32)
    for kernel, given in ((of_cast, (index % ROWS, y)), (along_rows, (index, columns))):
        dtype = np.float32 if kernel is of_cast else np.int32
        with pytest.raises(PlanError, match=r"GATHER at .* the scalar unit reads numbers in GM"):
            kernel.schedule(x, given[0].astype(dtype), given[1])
