"""Whole schedules planned here, beside those that upstream's compiler dumped, and executed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.programs.upstream_dumps import NAMES, arrays_of, kernel_of, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule.parts import Body, Leaf, Task, TileOperand
from ascend_kernels.schedule.planner.tile_graph import PlanError
from ascend_kernels.schedule.reader.upstream_dump import CHIP
from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.kernel.jit import Kernel

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

AT_RUN = "bounds known only when the kernel runs are not planned"
FROM_DATA = "a number read from data is not planned"
RECORDED = {
    "loop_data": f"element at loop_data.py:14 in loop_data: {FROM_DATA}",
    "loop_full": f"loop rows at loop_full.py:14 in loop_full: {AT_RUN}",
    "loop_held": f"loop blocks at loop_held.py:12 in loop_held: {AT_RUN}",
    "loop_nested": f"loop rows at loop_nested.py:13 in loop_nested: {AT_RUN}",
    "loop_partial": "assemble at loop_partial.py:15 in loop_partial, write i=0: only parts of",
    "loop_paths": f"loop rows at loop_paths.py:12 in loop_paths: {AT_RUN}",
    "loop_rows": f"loop rows at loop_rows.py:13 in loop_rows: {AT_RUN}",
    "loop_softmax": f"loop rows at loop_softmax.py:13 in loop_softmax: {AT_RUN}",
    "loop_sum": f"loop rows at loop_sum.py:13 in loop_sum: {AT_RUN}",
    "loop_unrolled": f"loop rows at loop_unrolled.py:13 in loop_unrolled: {AT_RUN}",
    "offset_data": f"element at offset_data.py:14 in offset_data, rows index=0: {FROM_DATA}",
    "open_temporary": f"loop write at open_temporary.py:13 in open_temporary: {AT_RUN}",
    "computed_offset": "element at computed_offset.py:17 in computed_offset, second j=0: a number",
    "loop_barrier": "loop second at loop_barrier.py:15 in loop_barrier: submit_before_loop is not",
    "read_back": f"loop write at read_back.py:13 in read_back: {AT_RUN}",
}
"""Kernels of the dumps that are refused for their control flow, and the reason that is given."""
NOT_TILED = {"bits", "gathered", "keepdim_false", "padded", "running_sums"}
"""Those with an operation that is not planned; test_tiled_kernels has the reasons."""
PLANNED = tuple(name for name in NAMES if name not in RECORDED and name not in NOT_TILED)
PLACES_OF_THE_WHEEL = "site-packages"


def planned(name: str, *given: Any) -> Schedule:
    """The schedule of a kernel of the dumps, as the wheel compiles it for the chip of its model."""
    with pypto.options(release="0.2.0", satmode="upstream", chip=CHIP):
        return kernel_of(name).schedule(*given)


def computing(schedule: Schedule) -> dict[int, Leaf]:
    """The leaves in which something runs, without names, as their first task runs them.

    The last pass writes the extents of tiles as numbers of the task; and to scratch it gives those
    of the result beside it, which say nothing of scratch.
    """
    tasks: dict[int, Task] = {}
    for task in (task for body in schedule.bodies for task in body.tasks):
        if task.leaf is not None:
            tasks.setdefault(task.leaf, task)

    def known(operand: TileOperand, task: Task) -> TileOperand:
        extents = (
            task.accesses[each[1]].shape[each[2]] if isinstance(each, tuple) else each
            for each in operand.valid_shape
        )
        return replace(operand, valid_shape=tuple(extents))

    found = {}
    for place, leaf in enumerate(schedule.leaves):
        if leaf.core == "HUB":
            continue
        operations = []
        for each in leaf.operations:
            results = [known(x, tasks[place]) for x in each.outputs[:1]]
            scratch = [replace(x, valid_shape=x.shape) for x in each.outputs[1:]]
            inputs = tuple(known(x, tasks[place]) for x in each.inputs)
            operations.append(replace(each, inputs=inputs, outputs=(*results, *scratch)))
        buffers = tuple(replace(each, name="") for each in leaf.buffers)
        found[place] = replace(leaf, name="", operations=tuple(operations), buffers=buffers)
    return found


def at_lines_of(leaf: Leaf, other: Leaf) -> Leaf:
    """A leaf with no line where the other has none, or one in the wheel's own sources."""
    if len(leaf.operations) != len(other.operations):
        return leaf
    operations = (
        replace(each, file=beside.file, line=beside.line)
        if not beside.line or PLACES_OF_THE_WHEEL in beside.file
        else each
        for each, beside in zip(leaf.operations, other.operations, strict=True)
    )
    return replace(leaf, operations=tuple(operations))


def tasks_of(schedule: Schedule, body: Body) -> list[Any]:
    """Each task of a body by its leaf, all that its copies move, and the tasks that wait for it."""
    leaves: dict[int | None, int] = {x: k for k, x in enumerate(computing(schedule))}
    parameters = {each.name for each in schedule.parameters}
    found = []
    for task in body.tasks:
        moved = []
        for each in task.accesses if task.leaf in leaves else ():
            name = each.tensor if each.tensor in parameters else bool(each.tensor)
            moved.append((name, each.offset, each.shape if each.tensor else ()))
        found.append((leaves.get(task.leaf), moved, len(task.successors)))
    return sorted(found, key=repr)


@pytest.mark.parametrize("name", PLANNED)
def test_a_planned_schedule_is_that_of_the_dump_and_gives_its_bits(
    name: str, tmp_path: Path
) -> None:
    dump = pypto.read_schedule(unpacked(name, tmp_path))
    arrays = arrays_of(dump)
    schedule = planned(name, *arrays)
    (body,), (other,) = schedule.bodies, dump.bodies
    leaves, wanted = computing(schedule).values(), computing(dump).values()
    assert schedule.parameters == dump.parameters
    assert len(leaves) == len(wanted)
    assert [at_lines_of(*pair) for pair in zip(leaves, wanted, strict=True)] == [*wanted]
    assert tasks_of(schedule, body) == tasks_of(dump, other)
    assert schedule.peak_ub_bytes == dump.peak_ub_bytes
    assert schedule.needed_ub_bytes == dump.needed_ub_bytes

    results, expected = ([each.copy() for each in arrays] for _ in range(2))
    schedule.run(*results)
    dump.run(*expected)

    for got, want in zip(results, expected, strict=True):
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_a_fault_of_a_dump_is_a_fault_of_the_plan(tmp_path: Path) -> None:
    """Iterations that write one element, which no data orders."""
    dump = pypto.read_schedule(unpacked("loop_over", tmp_path))
    arrays = arrays_of(dump)
    for schedule in (dump, planned("loop_over", *arrays)):
        with pytest.raises(pypto.SimulatorFault, match="which task 0 wrote; no data orders"):
            schedule.run(*arrays)


@pytest.mark.parametrize("name", RECORDED)
def test_control_flow_that_is_not_planned_is_refused(name: str) -> None:
    tensors = kernel_of(name).signature.tensors.values()
    shapes = [[x if isinstance(x, int) and x > 0 else 160 for x in each.shape] for each in tensors]
    given = [pypto.tensor(x, each.dtype) for x, each in zip(shapes, tensors, strict=True)]
    for arguments in (given, [np.zeros(x.shape, x.dtype.format.dtype) for x in given]):
        with pytest.raises(PlanError, match=re.escape(RECORDED[name])):
            planned(name, *arguments)


# --- Kernels that no dump has --------------------------------------------------------------------

Matrix = pypto.Tensor[[pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32]


@pypto.frontend.jit
def looping(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for index in pypto.loop(0, 3, 1, name="rows", idx_name="index"):
        part = pypto.view(x, [32, 64], [index * 32, 0])
        pypto.assemble(pypto.exp(part) + part, [index * 32, 0], y)


def given(*shapes: list[int]) -> list[np.ndarray]:
    drawn = np.random.default_rng(1)
    return [drawn.standard_normal(shape, np.float32) for shape in shapes]


def test_a_loop_of_constant_length_has_a_body_an_iteration() -> None:
    arrays = given([96, 64], [96, 64])
    schedule = looping.schedule(*arrays)
    assert (len(schedule.leaves), [len(body.tasks) for body in schedule.bodies]) == (1, [2, 2, 2])
    assert schedule == looping.schedule(*(pypto.tensor(x.shape, pypto.DT_FP32) for x in arrays))
    assert schedule == Schedule.from_json(schedule.to_json())

    expected, executed = ([each.copy() for each in arrays] for _ in range(2))
    looping(*expected)
    with pypto.options(fidelity="instructions", schedule=schedule):
        looping(*executed)

    np.testing.assert_array_equal(executed[1].view(np.uint8), expected[1].view(np.uint8))
    np.testing.assert_array_equal(arrays[0], executed[0])


def test_a_schedule_says_whose_casts_it_has() -> None:
    shapes = [pypto.tensor([96, 64], pypto.DT_FP32)] * 2
    with pypto.options(release="0.2.0", chip="Ascend910B2"):
        first, *_ = str(looping.schedule(*shapes)).splitlines()
    assert first.startswith("looping: planner of release 0.2.0 for Ascend910B2; UB 8192 B as")
    with pypto.options(release="head", chip="Ascend910B2"):
        first, *_ = str(looping.schedule(*shapes)).splitlines()
    assert first.startswith(
        "looping: planner of release head, by the passes of 0.2.0 and AutoCast's lists of head, "
        "for Ascend910B2; UB 8192 B as"
    )


@pypto.frontend.jit
def nowhere(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for _ in pypto.loop(0):
        y[:] = pypto.exp(x)


@pypto.frontend.jit
def summed(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(64, 64)
    y[:] = pypto.cumsum(x, 0)


@pypto.frontend.jit
def halves(
    x: pypto.Tensor[[16, 64], pypto.DT_FP16], y: pypto.Tensor[[16, 64], pypto.DT_FP16]
) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.sigmoid(x) + x


def test_casts_of_upstream_wrap_inside_an_operation_too() -> None:
    shapes = [pypto.tensor([16, 64], pypto.DT_FP16)] * 2
    with pypto.options(release="0.2.0", satmode="upstream"):
        (leaf,) = halves.schedule(*shapes).leaves
    casts = [each.saturate for each in leaf.operations if each.opcode == "CAST"]
    assert casts
    assert not any(casts)


@pypto.frontend.jit
def by_columns(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(8, 64)
    y[:] = x - pypto.sum(x, dim=0, keepdim=True)


@pytest.mark.parametrize(("rows", "repeats"), [(16, 2), (17, 2), (18, 3)])
def test_a_tile_of_one_row_takes_the_row_as_it_is(rows: int, repeats: int) -> None:
    schedule = by_columns.schedule(*given([rows, 64], [rows, 64]))
    leaves = [schedule.leaves[task.leaf or 0] for task in schedule.bodies[0].tasks]
    found = [each.opcode for leaf in leaves for each in leaf.operations]
    assert found.count("EXPAND") == repeats


@pypto.frontend.jit
def dead(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    pypto.exp(x)


@pypto.frontend.jit
def chained(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(64, 768)
    y[:] = pypto.sqrt(pypto.abs(x + 1.0))


def test_the_schedule_decides_what_fits_in_ub() -> None:
    arrays = given([128, 768], [128, 768])
    schedule = chained.schedule(*arrays)
    assert (schedule.peak_ub_bytes, schedule.needed_ub_bytes) == (196_608, 196_608)
    schedule.run(*arrays)
    np.testing.assert_array_equal(arrays[1], np.sqrt(np.abs(arrays[0] + np.float32(1))))


@pypto.frontend.jit
def large(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(64, 776)
    y[:] = pypto.exp(x)


@pytest.mark.parametrize(
    ("kernel", "shape", "message"),
    [
        (nowhere, [32, 64], "nowhere: no operation of it writes an output"),
        (dead, [32, 64], "dead: no operation of it writes an output"),
        (large, [64, 776], r"EXP \(test_planner.py:\d+\) holds 198656 B of COPY_IN"),
        (nowhere, [0, 64], r"nowhere: x has the shape \[0, 64\]; a schedule takes a positive"),
        (
            summed,
            [64, 64],
            r"cumsum at test_planner.py:\d+ in summed: no tile opcodes are known",
        ),
    ],
)
def test_what_has_no_schedule_is_refused(kernel: Kernel, shape: list[int], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        kernel.schedule(*[pypto.tensor(shape, pypto.DT_FP32)] * 2)


def test_options_that_no_schedule_follows_are_refused() -> None:
    arrays = given([96, 64], [96, 64])
    with (
        pypto.options(auto_cast="every op"),
        pytest.raises(ValueError, match="a schedule does not follow auto_cast='every op'"),
    ):
        looping.schedule(*arrays)


def test_a_kernel_without_source_is_refused() -> None:
    """The names of its values are a part of the plan."""
    names: dict[str, Any] = {"pypto": pypto, "Matrix": Matrix}
    exec("def sourceless(x: Matrix, y: Matrix) -> None:\n    y[:] = pypto.exp(x)\n", names)
    kernel = pypto.frontend.jit(names["sourceless"])
    with pytest.raises(PlanError, match="sourceless: its source cannot be read"):
        kernel.schedule(*[pypto.tensor([32, 64], pypto.DT_FP32)] * 2)
