"""The AscendC program of a cast as a schedule, beside a kernel of the same cast that is planned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX, resolve
from ascend_kernels.program import lower
from ascend_kernels.schedule.cast_schedule import cast_schedule
from ascend_kernels.schedule.planner.leaves.addresses import with_lives
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.vector_work import element_bits
from simulator.machine.execute import execute
from simulator.machine.memory import SimulatorFault
from simulator.numbers.formats import FP16, FP32, INT4
from tiling.chips import DEFAULT_CHIP
from tiling.plan import plan

CASES = [
    (row, saturate)
    for row in MATRIX[DEFAULT_CHIP.isa].values()
    if INT4 not in (row.src, row.dst)
    for saturate in (True, False)
    if saturate or row.off
]
PARTED = (4, 4096), (4, 4096)
SHAPES = ((3, 10, 17), (2, 8, 16)), ((100,), (48,)), ((40, 8), (40, 8))
"""Shapes and tiles: rows that are no whole blocks, a tail, merged axes."""


def program_of(row: Any, saturate: bool, shape: Any, tile: Any) -> Any:
    resolution = resolve(DEFAULT_CHIP.isa, row.src, row.dst, saturate=saturate)
    tiles = plan(shape, tile, element_bits(resolution), DEFAULT_CHIP)
    return lower(tiles, resolution)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("row", "saturate"), CASES, ids=lambda each: str(each).replace(" -> ", "-").lower()
)
def test_a_program_and_its_schedule_give_the_same_bits(row: Any, saturate: bool) -> None:
    index = CASES.index((row, saturate))
    shape, tile = SHAPES[index % len(SHAPES)] if index else PARTED
    drawn = np.random.default_rng(1).bytes(int(np.prod(shape)) * row.src.dtype.itemsize)
    x = np.frombuffer(drawn, row.src.dtype).reshape(shape)
    program = program_of(row, saturate, shape, tile)
    schedule, y = cast_schedule(program), np.zeros(shape, row.dst.dtype)
    schedule.run(x, y)
    codes = execute(program, x, fidelity="instructions")
    np.testing.assert_array_equal(y.reshape(-1).view(np.uint8), codes.reshape(-1).view(np.uint8))
    assert len(schedule.bodies[0].tasks) == len(program.cores)
    assert schedule.peak_ub_bytes <= program.plan.ub.used_bytes
    assert schedule == Schedule.from_json(schedule.to_json())


Source = pypto.Tensor[[200, 256], pypto.DT_FP32]
Target = pypto.Tensor[[200, 256], pypto.DT_FP16]


@pypto.frontend.jit
def halved(x: Source, y: Target) -> None:
    pypto.set_vec_tile_shapes(4, 256)
    y[:] = pypto.cast(x, pypto.DT_FP16)


def test_a_cast_has_two_schedules_of_the_same_bits() -> None:
    x = np.random.default_rng(2).standard_normal((200, 256), np.float32)
    y, z = np.zeros((2, 200, 256), np.float16)
    (program,), planned = halved.program(x, y).schedules, halved.schedule(x, y)
    assert (program.origin, planned.origin) == ("ascendc", "planner")
    first, second, *_ = str(program).splitlines()
    assert first == "cast: ascendc for Ascend910B3"
    assert second.startswith("  UB 12288 B as allocated")
    assert [len(each.bodies[0].tasks) for each in (program, planned)] == [40, 50]

    program.run(x, y)
    planned.run(x, z)

    np.testing.assert_array_equal(y.view(np.uint16), z.view(np.uint16))


def test_the_guards_hold_for_it() -> None:
    """Without a wait for its slot to be read, a copy in overwrites a tile."""
    row = MATRIX[DEFAULT_CHIP.isa][FP32, FP16]
    schedule = cast_schedule(program_of(row, True, (512, 256), (4, 256)))
    leaf = max(schedule.leaves, key=lambda each: len(each.operations))
    left = [
        each
        for each in leaf.operations
        if not (each.flag and (each.flag.setter, each.flag.waiter) == ("V", "MTE2"))
    ]
    damaged = replace(leaf, operations=tuple(left), buffers=with_lives(leaf.buffers, tuple(left)))
    leaves = tuple(damaged if each is leaf else each for each in schedule.leaves)
    x, y = np.ones((512, 256), np.float32), np.zeros((512, 256), np.float16)
    with pytest.raises(SimulatorFault):
        replace(schedule, leaves=leaves).run(x, y)


def test_what_has_no_schedule_is_refused() -> None:
    row = MATRIX[DEFAULT_CHIP.isa][FP16, INT4]
    with pytest.raises(ValueError, match="elements that share a byte are in no schedule"):
        cast_schedule(program_of(row, True, (64,), (64,)))
    with pypto.options(inf_nan_mode=False):
        x, y = (pypto.tensor([200, 256], each) for each in (pypto.DT_FP32, pypto.DT_FP16))
        program = halved.program(x, y)
    with pytest.raises(ValueError, match="a schedule does not follow inf_nan_mode=False"):
        _ = program.schedules
