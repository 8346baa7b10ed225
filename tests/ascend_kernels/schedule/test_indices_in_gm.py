"""Operations that read or write GM at places which data name: executed, damaged and refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pypto_cast as pypto
from ascend_kernels.schedule.parts import TAKERS
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.testing.schedule_checks import assert_schedule_ok
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


@pypto.frontend.jit
def put_rows(
    x: pypto.Tensor([ROWS, COLUMNS], pypto.DT_FP32),
    index: pypto.Tensor([8], pypto.DT_INT32),
    rows: pypto.Tensor([8, COLUMNS], pypto.DT_FP32),
) -> None:
    pypto.set_vec_tile_shapes(8, 32)
    pypto.index_put_(x, (index,), rows * 2.0)


@pypto.frontend.jit
def updated_rows(
    x: pypto.Tensor([ROWS, COLUMNS], pypto.DT_FP32),
    index: pypto.Tensor([1, 8], pypto.DT_INT32),
    rows: pypto.Tensor([8, COLUMNS], pypto.DT_FP32),
) -> None:
    pypto.set_vec_tile_shapes(8, COLUMNS)
    x[:] = pypto.scatter_update(x, -2, index, rows * 2.0)


def put() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, _ = drawn(ROWS)
    index = np.random.default_rng(5).permutation(ROWS)[:8].astype(np.int32)
    return x, index, np.arange(8 * COLUMNS, dtype=np.float32).reshape(8, COLUMNS)


@pytest.mark.parametrize("kernel", [put_rows, updated_rows])
def test_rows_are_written_where_indices_say_and_the_others_stay(kernel: Any) -> None:
    x, index, rows = put()
    expected = x.copy()
    expected[index] = rows * 2
    where = index if kernel is put_rows else index[None]
    with pypto.options(fidelity="instructions", strict=True):
        kernel(x, where, rows)
    assert_array_equal(x, expected)
    assert_schedule_ok(kernel.schedule(x, where, rows), kernel, [x, where, rows])


def test_negative_indices_of_an_update_write_nothing_and_those_of_put_are_a_fault() -> None:
    x, index, rows = put()
    index[2] = -1
    expected = x.copy()
    expected[np.delete(index, 2)] = np.delete(rows, 2, 0) * 2
    with pypto.options(fidelity="instructions"):
        updated_rows(x, index[None], rows)
        assert_array_equal(x, expected)
        with pytest.raises((SimulatorFault, IndexError)):
            put_rows(x, index, rows)


def test_a_box_beside_the_argument_and_rows_of_another_length_are_faults() -> None:
    x, index, rows = put()
    plan = put_rows.schedule(x, index, rows)
    (body,) = plan.bodies
    task = body.tasks[0]
    taken = len(task.accesses) - 1
    for changed, text in (
        ({"offset": (1, 0)}, "elements 1 to 41 of axis 0 are outside the 40"),
        ({"shape": (ROWS, 16)}, r"writes \(8, 32\) elements to \(40, 16\)"),
    ):
        accesses = (*task.accesses[:taken], replace(task.accesses[taken], **changed))
        tasks = (replace(task, accesses=accesses), *body.tasks[1:])
        damaged = replace(plan, bodies=(replace(body, tasks=tasks),))
        with pytest.raises(SimulatorFault, match=text):
            damaged.times_written(x.copy(), index, rows)


def refused(statements: Callable[..., None], tile: tuple[int, ...], *arrays: np.ndarray) -> str:
    @pypto.frontend.jit
    def kernel(
        x: pypto.Tensor([ROWS, COLUMNS], pypto.DT_FP32),
        index: pypto.Tensor([8], pypto.DT_INT32),
        rows: pypto.Tensor([8, COLUMNS], pypto.DT_FP32),
        y: pypto.Tensor([ROWS, COLUMNS], pypto.DT_FP32),
    ) -> None:
        pypto.set_vec_tile_shapes(*tile)
        statements(x, index, rows, y)

    with pytest.raises(PlanError) as found:
        kernel.schedule(*arrays)
    return str(found.value)


def test_writes_that_nothing_orders_or_that_leave_rows_unwritten_are_refused() -> None:
    def cut(x: Any, index: Any, rows: Any, y: Any) -> None:
        pypto.index_put_(x, (index,), rows)

    def added(x: Any, index: Any, rows: Any, y: Any) -> None:
        pypto.index_put_(x, (index,), rows, True)

    def of_another(x: Any, index: Any, rows: Any, y: Any) -> None:
        y[:] = pypto.scatter_update(x, -2, pypto.reshape(index, [1, 8]), rows)

    def beside_a_reader(x: Any, index: Any, rows: Any, y: Any) -> None:
        y[:] = x * 2.0
        pypto.index_put_(x, (index,), rows)

    def read_again(x: Any, index: Any, rows: Any, y: Any) -> None:
        pypto.index_put_(x, (index,), rows)
        y[:] = x * 2.0

    def with_itself(x: Any, index: Any, rows: Any, y: Any) -> None:
        pypto.index_put_(index, (index,), index + 5)

    x, index, rows = put()
    arrays = x, index, rows, x.copy()
    assert "needs several tasks that write to GM" in refused(cut, (4, 96), *arrays)
    assert "INDEX_PUT that adds up is not planned" in refused(added, (8, 96), *arrays)
    assert "its result is not assigned to x" in refused(of_another, (8, 96), *arrays)
    assert "in another task" in refused(beside_a_reader, (8, 96), *arrays)
    assert "x is read after it was written to" in refused(read_again, (8, 96), *arrays)
    assert "its rows or indices are the tensor that it writes" in refused(
        with_itself, (8,), *arrays
    )


def test_rows_of_fewer_columns_than_a_tile_are_refused() -> None:
    """By upstream's compiler (vector/indexing.cpp:941)."""

    @pypto.frontend.jit
    def wide(
        x: pypto.Tensor([ROWS, COLUMNS], pypto.DT_FP32),
        index: pypto.Tensor([1, 8], pypto.DT_INT32),
        rows: pypto.Tensor([8, COLUMNS], pypto.DT_FP32),
    ) -> None:
        pypto.set_vec_tile_shapes(8, 2 * COLUMNS)
        x[:] = pypto.scatter_update(x, -2, index, rows)

    @pypto.frontend.jit
    def of_itself(
        x: pypto.Tensor([8, COLUMNS], pypto.DT_FP32), index: pypto.Tensor([1, 8], pypto.DT_INT32)
    ) -> None:
        pypto.set_vec_tile_shapes(8, COLUMNS)
        x[:] = pypto.scatter_update(x, -2, index, x)

    x, index, rows = put()
    with pytest.raises(PlanError, match="takes a tile of 96 columns alone, not of 192"):
        wide.schedule(x, index[None], rows)
    with pytest.raises(PlanError, match="its rows or indices are the tensor that it writes"):
        of_itself.schedule(x[:8], index[None])
