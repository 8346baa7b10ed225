"""Moves that are planned: permutations on the way in, bytes, blocks of columns, two numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.programs.upstream_dumps import arrays_of, kernel_of, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.views.schedule_differences import differences
from pypto_cast.kernel.jit import Kernel
from pypto_cast.testing.possible import assert_possible
from simulator.machine.memory import SimulatorFault

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

Given = tuple[Sequence[int], pypto.DataType]
FP16: Given = ([3, 8, 32], pypto.DT_FP16)
Body = Callable[[pypto.Tensor, pypto.Tensor], None]


def kernel(body: Body, x: Given, y: Given) -> tuple[Kernel, Schedule]:
    """A kernel of two tensors, and its plan by the lists of the newest revision."""

    @pypto.frontend.jit
    def moving(x: pypto.Tensor(*x), y: pypto.Tensor(*y)) -> None:
        body(x, y)

    with pypto.options(release="head", satmode="upstream"):
        return moving, moving.schedule(pypto.tensor(*x), pypto.tensor(*y))


def codes(of: Given) -> np.ndarray:
    """Elements of which no two neighbours are equal."""
    shape, dtype = of
    count = np.prod(shape, dtype=int)
    return (np.arange(count) % 251).astype(dtype.number_format.dtype).reshape(shape)


def permuted(x: pypto.Tensor, y: pypto.Tensor) -> None:
    pypto.set_vec_tile_shapes(2, 8, 32)
    y[:] = pypto.permute(pypto.abs(x), [1, 0, 2])


def test_a_permutation_moves_rows_on_the_way_in_once_the_scalar_unit_may_go_on() -> None:
    """It waits in the scalar unit's queue, and what comes behind it waits for MTE2."""
    y: Given = ([8, 3, 32], pypto.DT_FP16)
    _, planned = kernel(permuted, FP16, y)

    for leaf in planned.leaves:
        (place,) = (k for k, x in enumerate(leaf.operations) if x.opcode == "PERMUTE")
        before, after = leaf.operations[place - 1], leaf.operations[place + 1]
        assert before.flag is not None
        assert after.flag is not None
        assert (before.opcode, before.flag.setter, before.flag.waiter) == ("SYNC_DST", "MTE3", "S")
        assert (after.opcode, after.flag.setter, after.flag.waiter) == ("SYNC_SRC", "MTE2", "MTE3")
    given, found = codes(FP16), np.zeros(y[0], np.float16)
    planned.run(given.copy(), found)
    np.testing.assert_array_equal(found, given.transpose(1, 0, 2))


def test_the_axes_of_a_permutation_are_each_there_once() -> None:
    _, planned = kernel(permuted, FP16, ([8, 3, 32], pypto.DT_FP16))
    (leaf, *others) = planned.leaves
    changed = tuple(
        replace(each, axes=(1, 1, 2)) if each.opcode == "PERMUTE" else each
        for each in leaf.operations
    )
    wrong = replace(planned, leaves=(replace(leaf, operations=changed), *others))

    with pytest.raises(SimulatorFault, match=r"names \[1, 1, 2\] as axes of gm"):
        wrong.run(codes(FP16), np.zeros([8, 3, 32], np.float16))


def test_an_order_of_axes_that_is_there_is_the_operand_itself() -> None:
    def same(x: pypto.Tensor, y: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(2, 8, 32)
        y[:] = pypto.permute(pypto.abs(x), [0, 1, 2]) * 2.0

    _, planned = kernel(same, FP16, FP16)

    for leaf in planned.leaves:
        assert not {"PERMUTE", "TRANSPOSE_MOVEIN"} & {each.opcode for each in leaf.operations}


def test_a_permutation_of_the_last_axis_goes_element_by_element_and_is_refused() -> None:
    def turned(x: pypto.Tensor, y: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(2, 8, 32)
        y[:] = pypto.permute(x, [2, 0, 1])

    with pytest.raises(PlanError, match=r"^permute at .*: PERMUTE_ELEMENT is not planned"):
        kernel(turned, FP16, ([32, 3, 8], pypto.DT_FP16))


def test_bytes_are_those_of_as_many_elements_as_a_tile_has() -> None:
    def packed(x: pypto.Tensor, y: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(2, 100)
        y[:] = pypto.pack(x)

    y: Given = ([4 * 500], pypto.DT_UINT8)
    x: Given = ([5, 100], pypto.DT_INT32)
    _, planned = kernel(packed, x, y)

    (body,) = planned.bodies
    written = sorted((task.accesses[1].offset, task.accesses[1].shape) for task in body.tasks[-3:])
    assert written == [((0,), (800,)), ((800,), (800,)), ((1600,), (400,))]
    given, found = codes(x) * 70000, np.zeros(y[0], np.uint8)
    planned.run(given.copy(), found)
    np.testing.assert_array_equal(found, given.reshape(-1).view(np.uint8))


def test_elements_of_bytes_are_those_of_the_first_axis_of_a_tile() -> None:
    def unpacked_by(tile: int) -> Body:
        def unpacked_(x: pypto.Tensor, y: pypto.Tensor) -> None:
            pypto.set_vec_tile_shapes(tile)
            y[:] = pypto.unpack(x, pypto.DT_FP32)

        return unpacked_

    x: Given = ([400], pypto.DT_UINT8)
    y: Given = ([100], pypto.DT_FP32)
    _, planned = kernel(unpacked_by(256), x, y)

    given, found = codes(x), np.zeros(y[0], np.float32)
    planned.run(given.copy(), found)
    np.testing.assert_array_equal(found.view(np.uint8), given)
    with pytest.raises(PlanError, match=r"^UNPACK at .*: tile shape \[130\] is no whole number of"):
        kernel(unpacked_by(130), x, y)


def test_two_numbers_are_in_a_plan_and_not_in_a_dump(tmp_path: Path) -> None:
    dumped = pypto.read_schedule(unpacked("select_numbers", tmp_path))
    of = kernel_of("select_numbers")
    with pypto.options(release="0.2.0", satmode="upstream"):
        planned = of.schedule(*arrays_of(dumped))

    assert differences(planned, dumped) == ()
    (why, *_) = dumped.not_executed
    assert why.endswith("has WHERE_SS with two numbers, which the dump lacks")
    x, y = arrays_of(dumped)
    planned.run(x, y)
    np.testing.assert_array_equal(y, np.where(x > 0, 6, 0.5))
    changed = tuple(
        replace(
            leaf,
            operations=tuple(
                replace(each, other_scalar=1.0) if each.opcode == "WHERE_SS" else each
                for each in leaf.operations
            ),
        )
        for leaf in planned.leaves
    )
    other = replace(planned, leaves=changed)
    assert differences(planned, other) == ("operations", "order")
    assert pypto.Schedule.from_json(other.to_json()) == other


def test_pairs_of_numbers_share_an_operation_and_a_leaf_as_in_the_dump(tmp_path: Path) -> None:
    """The order of the wheel's operations is that of the plan, so that the pair kept is known."""
    dumped = pypto.read_schedule(unpacked("select_pairs", tmp_path))
    of = kernel_of("select_pairs")
    with pypto.options(release="0.2.0", satmode="upstream"):
        planned = of.schedule(*arrays_of(dumped))
        bounds = of.certainty(*arrays_of(dumped))

    assert differences(planned, dumped) == ()
    for schedule in (planned, dumped):
        (leaf,) = schedule.leaves
        assert [each.opcode for each in leaf.operations].count("WHERE_SS") == 1
    arrays = a, b, x, y = arrays_of(dumped)
    planned.run(*arrays)
    (kept,) = (each for each in planned.leaves[0].operations if each.opcode == "WHERE_SS")
    for given, found in ((a, x), (b, y)):
        chosen = np.where(given > 0, np.float32(kept.scalar), np.float32(kept.other_scalar))
        np.testing.assert_array_equal(found, chosen * given + chosen)
    assert_possible({"x": x, "y": y}, bounds)


def test_a_leaf_of_two_roundings_has_the_decimals_of_one(tmp_path: Path) -> None:
    dumped = pypto.read_schedule(unpacked("shared_rounds", tmp_path))
    with pypto.options(release="0.2.0", satmode="upstream"):
        planned = kernel_of("shared_rounds").schedule(*arrays_of(dumped))
    assert differences(planned, dumped) == ()
    for schedule in (planned, dumped):
        (leaf,) = schedule.leaves
        assert [each.scalar for each in leaf.operations if each.opcode == "ROUND"] == [1000.0]


def test_blocks_of_a_column_are_read_once_they_are_written(tmp_path: Path) -> None:
    """Rows beyond those of the column hold nothing."""
    schedule = pypto.read_schedule(unpacked("repeated_column", tmp_path))

    def longer(leaf: str) -> Schedule:
        leaves = []
        for each in schedule.leaves:
            operations = tuple(
                replace(x, inputs=(replace(x.inputs[0], valid_shape=(8, 1)),))
                if x.opcode == "BRCB" and each.name == leaf
                else x
                for x in each.operations
            )
            leaves.append(replace(each, operations=operations))
        return replace(schedule, leaves=tuple(leaves))

    short = min(schedule.leaves, key=lambda each: each.peak_ub_bytes)
    with pytest.raises(SimulatorFault, match=re.escape(short.name) + ".*BRCB.*never written"):
        longer(short.name).run(*arrays_of(schedule))


def test_a_reshape_in_gm_is_refused_where_its_task_reads_parts_of_it() -> None:
    def parts(x: pypto.Tensor, y: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(64)
        y[:] = pypto.view(pypto.pack(x), [5376], [0])

    with pytest.raises(PlanError, match=r"^RESHAPE at .*: a reshape in GM .*or read in parts"):
        kernel(parts, ([7, 8, 24], pypto.DT_FP32), ([5376], pypto.DT_UINT8))


def test_a_reshape_of_tiles_in_gm_is_refused_where_parts_of_it_are_read() -> None:
    def beside(x: pypto.Tensor, y: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(8, 32)
        both = pypto.concat([x, x], 1)
        pypto.set_vec_tile_shapes(32)
        y[:] = pypto.pack(both)

    with pytest.raises(PlanError, match=r"^RESHAPE at .*: a reshape of tiles that are put"):
        kernel(beside, ([7, 100], pypto.DT_INT32), ([5600], pypto.DT_UINT8))


def test_a_result_over_the_blocks_of_a_column_is_refused() -> None:
    @pypto.frontend.jit
    def shared(
        x: pypto.Tensor([4, 16], pypto.DT_FP32),
        m: pypto.Tensor([4, 1], pypto.DT_FP32),
        y: pypto.Tensor([4, 16], pypto.DT_FP32),
        copies: bool,
    ) -> None:
        pypto.set_vec_tile_shapes(8, 16)
        rows = pypto.abs(x)
        y[:] = pypto.expand_exp_dif(rows * 1.0 if copies else rows, m) + rows

    x, m = codes(([4, 16], pypto.DT_FP32)), codes(([4, 1], pypto.DT_FP32))
    shared.schedule(x, m, x.copy(), True).run(x, m, x.copy())
    with pytest.raises(PlanError, match=r"^EXPANDEXPDIF \(.*\): upstream writes its result over"):
        shared.schedule(x, m, x.copy(), False)


def test_a_column_of_wider_rows_is_not_packed() -> None:
    """The wheel's dump of this kernel has EXPAND too, for a column in GM is one element wide."""

    def part(x: pypto.Tensor, y: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(8, 16)
        y[:] = pypto.expand_exp_dif(pypto.abs(x), pypto.view(x, [4, 1], [0, 0]))

    given: Given = ([4, 16], pypto.DT_FP32)
    moving, planned = kernel(part, given, given)

    opcodes = {each.opcode for leaf in planned.leaves for each in leaf.operations}
    assert opcodes >= {"EXPAND", "EXPANDEXPDIF"}
    assert "BRCB" not in opcodes
    given_codes, found = codes(given) / 64, np.zeros(given[0], np.float32)
    expected = found.copy()
    with pypto.options(release="head", satmode="upstream"):
        moving(given_codes, expected)
    planned.run(given_codes, found)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))
