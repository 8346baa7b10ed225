"""Sorts as tile operations: pairs of element and index, planned, executed and refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pypto_cast as pypto
from ascend_kernels.schedule.parts import Flag, TileOperation
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.kernel.jit import Kernel
from pypto_cast.testing.possible import assert_possible
from simulator.machine.memory import SimulatorFault
from tiling.grid import Shape

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
ROWS, LENGTH, COUNT = 12, 64, 5
Rows = pypto.Tensor[[ROWS, LENGTH], pypto.DT_FP32]
Indices = pypto.Tensor[[ROWS, LENGTH], pypto.DT_INT32]


def drawn() -> np.ndarray:
    """With equal elements, in turn and apart, of both signs."""
    rng = np.random.default_rng(32)
    x = rng.standard_normal((ROWS, LENGTH)).astype(np.float32)
    x[:, 40:44] = x[:, 3:4]
    x[1] = 2.0
    return x


def special() -> np.ndarray:
    """Of a row each: zeros of both signs, infinities, subnormals, NaN."""
    x = drawn()
    x[0, ::3], x[0, 1::3] = 0.0, -0.0
    x[2, 5:9], x[2, 50:53] = np.inf, -np.inf
    x[3] *= np.float32(1e-39)
    x[4, 7] = np.nan
    return x


@pypto.frontend.jit
def paired(x: Rows, pairs: pypto.Tensor[[ROWS, 2 * LENGTH], pypto.DT_FP32]) -> None:
    pypto.set_vec_tile_shapes(8, 64)
    pairs[:] = pypto.sort32(x, 7)


@pypto.frontend.jit
def greatest(
    x: Rows,
    values: pypto.Tensor[[ROWS, COUNT], pypto.DT_FP32],
    places: pypto.Tensor[[ROWS, COUNT], pypto.DT_INT32],
    largest: bool = True,
) -> None:
    pypto.set_vec_tile_shapes(8, 64)
    values[:], places[:] = pypto.topk(x, COUNT, -1, largest)


@pypto.frontend.jit
def placed(x: Rows, places: Indices, descending: bool = False) -> None:
    pypto.set_vec_tile_shapes(8, 64)
    places[:] = pypto.argsort(x, -1, descending)


CASES: dict[str, tuple[Kernel, list[tuple[Shape, type]], dict[str, bool]]] = {
    "sort32": (paired, [((ROWS, 2 * LENGTH), np.float32)], {}),
    **{
        f"topk {largest}": (
            greatest,
            [((ROWS, COUNT), np.float32), ((ROWS, COUNT), np.int32)],
            {"largest": largest},
        )
        for largest in (True, False)
    },
    **{
        f"argsort {descending}": (
            placed,
            [((ROWS, LENGTH), np.int32)],
            {"descending": descending},
        )
        for descending in (True, False)
    },
}


def in_order(x: np.ndarray, *, descending: bool) -> np.ndarray:
    return np.argsort(-x if descending else x, axis=-1, kind="stable").astype(np.int32)


def expected(name: str, x: np.ndarray) -> list[np.ndarray]:
    """By numpy's stable sort."""
    if name == "sort32":
        groups = x.reshape(ROWS, 2, 32)
        order = in_order(groups, descending=True)
        numbers = order + np.array([[0], [32]], np.int32) + 7
        values = np.take_along_axis(groups, order, -1)
        pairs = np.stack((values, numbers.view(np.float32)), -1)
        return [pairs.reshape(ROWS, 2 * LENGTH)]
    operation, way = name.split()
    order = in_order(x, descending=way == "True")
    if operation == "argsort":
        return [order]
    return [np.take_along_axis(x, order, -1)[:, :COUNT], order[:, :COUNT]]


def ran(name: str, x: np.ndarray) -> list[np.ndarray]:
    """The results of a kernel as its plan."""
    kernel, results, named = CASES[name]
    arrays = [x.copy(), *(np.zeros(shape, dtype) for shape, dtype in results)]
    with pypto.options(release="0.2.0", satmode="upstream", fidelity="instructions", strict=True):
        kernel(*arrays, **named)
    assert_array_equal(arrays[0].view(np.uint32), x.view(np.uint32))
    return arrays[1:]


@pytest.mark.parametrize("name", CASES)
def test_rows_are_sorted_as_planned(name: str) -> None:
    x = drawn()
    for found, wanted in zip(ran(name, x), expected(name, x), strict=True):
        assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))


@pytest.mark.parametrize("name", CASES)
def test_special_values_come_out_as_the_tensor_level_allows(name: str) -> None:
    kernel, results, named = CASES[name]
    x = special()
    arrays = [x.copy(), *(np.zeros(shape, dtype) for shape, dtype in results)]
    with pypto.options(release="0.2.0", satmode="upstream"):
        bounds = kernel.certainty(*arrays, **named)
    names = list(kernel.signature.tensors)[1:]
    assert_possible(dict(zip(names, ran(name, x), strict=True)), bounds)


def plan_of(kernel: Kernel, *results: tuple[Shape, type]) -> tuple[Schedule, list[np.ndarray]]:
    arrays = [drawn(), *(np.zeros(shape, dtype) for shape, dtype in results)]
    with pypto.options(release="0.2.0", satmode="upstream"):
        return kernel.schedule(*arrays), arrays


@pytest.mark.parametrize(("count", "pairs"), [(5, 8), (12, 16)])
def test_a_multiple_of_8_pairs_is_merged(count: int, pairs: int) -> None:
    """Source: pypto r0.2.0, framework/src/interface/operation/vector/sort.cpp:614."""

    @pypto.frontend.jit
    def first(x: Rows, places: pypto.Tensor([ROWS, count], pypto.DT_INT32)) -> None:
        pypto.set_vec_tile_shapes(8, 64)
        places[:] = pypto.topk(x, count, -1)[1]

    schedule, _ = plan_of(first, ((ROWS, count), np.int32))
    operations = [each for leaf in schedule.leaves for each in leaf.operations]
    merged = {x.outputs[0].shape[-1] for x in operations if x.opcode == "MRGSORT"}
    assert merged == {2 * pairs}


@pytest.mark.parametrize("rows", [95, 96])
def test_rows_are_cut_where_upstream_counts_all_of_ub(rows: int) -> None:
    """96 rows of 64 are 196,608 B as upstream counts (r0.2.0, vector/sort.cpp:507)."""

    @pypto.frontend.jit
    def rising(x: pypto.Tensor([rows, 64], pypto.DT_FP32), y: Indices) -> None:
        pypto.set_vec_tile_shapes(rows, 64)
        y[:] = pypto.argsort(x, -1)[0:ROWS, :]

    x, y = np.zeros((rows, 64), np.float32), np.zeros((ROWS, 64), np.int32)
    with pypto.options(release="0.2.0", satmode="upstream"):
        if rows == 95:
            assert rising.schedule(x, y).leaves
            return
        with pytest.raises(PlanError, match=r"SORT at .*: rows of 64 elements that upstream cuts"):
            rising.schedule(x, y)


def test_the_scalar_unit_waits_for_what_a_sort_reads() -> None:
    schedule, arrays = plan_of(paired, *CASES["sort32"][1])
    (leaf, *_) = schedule.leaves
    flags = [each.flag for each in leaf.operations if each.opcode == "SYNC_SRC" and each.flag]
    assert [(each.setter, each.waiter) for each in flags] == [("MTE2", "S"), ("V", "MTE3")]
    barrier = TileOperation(opcode="BAR.V", flag=Flag(setter="V", waiter="V", event_id=-1))
    unordered = tuple(
        replace(
            each, operations=tuple(barrier if x.flag == flags[0] else x for x in each.operations)
        )
        for each in schedule.leaves
    )
    with pytest.raises(SimulatorFault, match=r"BITSORT .* reads ub\+0.* whose byte 0 was never"):
        replace(schedule, leaves=unordered).run(*arrays)


def test_a_sort_of_an_unfinished_group_is_a_fault() -> None:
    schedule, arrays = plan_of(paired, *CASES["sort32"][1])
    leaf = schedule.leaves[0]
    sort = next(each for each in leaf.operations if each.opcode == "BITSORT")
    (operand,) = sort.inputs
    short = replace(operand, valid_shape=(operand.shape[0], 40))
    operations = tuple(
        replace(each, inputs=(short,)) if each is sort else each for each in leaf.operations
    )
    with pytest.raises(SimulatorFault, match="does not sort rows of 40 FP32"):
        replace(schedule, leaves=(replace(leaf, operations=operations), *schedule.leaves[1:])).run(
            *arrays
        )


@pypto.frontend.jit
def cut(x: Rows, places: Indices) -> None:
    pypto.set_vec_tile_shapes(8, 16)
    places[:, 0:8] = pypto.topk(x, 8, -1)[1]


@pypto.frontend.jit
def unfinished(x: Rows, places: Indices) -> None:
    pypto.set_vec_tile_shapes(8, 64)
    places[:, 0:40] = pypto.argsort(x[:, 0:40], -1)


@pypto.frontend.jit
def across(x: Rows, places: Indices) -> None:
    pypto.set_vec_tile_shapes(32, 64)
    places[:] = pypto.argsort(x, 0)


@pypto.frontend.jit
def short(x: Rows, places: Indices) -> None:
    pypto.set_vec_tile_shapes(8, 64)
    places[:] = pypto.argsort(pypto.cast(x, pypto.DT_FP16), -1)


@pypto.frontend.jit
def spoiled(x: Rows, places: Indices) -> None:
    pypto.set_vec_tile_shapes(8, 64)
    doubled = x * 2.0
    order = pypto.cast(pypto.argsort(doubled, -1), pypto.DT_FP32)
    places[:] = pypto.cast(order + doubled, pypto.DT_INT32)


@pypto.frontend.jit
def partly(x: Rows, places: Indices) -> None:
    pypto.set_vec_tile_shapes(8, 64)
    held = pypto.view(x, [ROWS, LENGTH], [0, 0], valid_shape=[ROWS, 32])
    places[:, 0:8] = pypto.topk(held, 8, -1)[1]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (cut, "TOPK at .*: rows of 64 elements that upstream cuts into tiles, which are merged"),
        (unfinished, "SORT at .*: rows of 40 elements that are no whole groups of 32"),
        (across, "argsort at .*: along another axis than the last, not planned"),
        (short, "argsort at .*: of DT_FP16, which is cast, not planned"),
        (partly, "topk at .*: a tensor that holds data in a part of it is not planned"),
        (spoiled, "BITSORT .* changes the sign of its elements where they lie, and another"),
    ],
)
def test_a_sort_that_is_not_planned_is_refused(kernel: Kernel, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan_of(kernel, ((ROWS, LENGTH), np.int32))
