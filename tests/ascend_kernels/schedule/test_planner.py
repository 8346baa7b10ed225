"""Whole schedules planned here, beside those that upstream's compiler dumped, and executed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.programs.upstream_dumps import (
    NAMES,
    NOT_WHOLE,
    arrays_of,
    kernel_of,
    unpacked,
)

import pypto_cast as pypto
from ascend_kernels.schedule.parts import Body, Leaf, Loop
from ascend_kernels.schedule.planner import kernel_plan
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.reader.upstream_dump import CHIP
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.views.schedule_differences import (
    computing,
    differences,
    in_order_of_steps,
    leaf_in,
    tasks_of,
)
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.reports.schedule_report import schedule_report

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

RECORDED = {
    "computed_offset": "element at computed_offset.py:17 in computed_offset, second j: a number "
    "that tasks compute is not planned",
    "loop_reshaped": "MUL at loop_reshaped.py:16: row of [128] as [1, 128], "
    "reshaped in place outside of the loop, is not planned",
}
"""Kernels of the dumps that are refused for their control flow, and the reason that is given."""
LOOPS = (
    *(x for x in (*NAMES, *NOT_WHOLE) if x.startswith("loop_") and x not in RECORDED),
    *("offset_data", "open_temporary", "read_back"),
)
"""Kernels of the dumps with control flow."""
NOT_TILED = {"keepdim_false"}
"""Those with an operation that is not planned; test_tiled_kernels has the reasons."""
UNORDERED = {
    "loop_over": "COPY_OUT at loop_over.py:15 writes elements of y that COPY_OUT at "
    "loop_over.py:15 writes",
    "read_back": "COPY_IN at read_back.py:18 reads elements of y that COPY_OUT at "
    "read_back.py:15 writes",
}
"""Kernels of the dumps whose iterations nothing orders."""
PLANNED = tuple(name for name in NAMES if name not in {*LOOPS, *NOT_TILED, *RECORDED})
_PLACES_OF_THE_WHEEL = "site-packages"


def at_lines_of(leaf: Leaf, other: Leaf) -> Leaf:
    """A leaf with no line where the other has none, or one in the wheel's own sources."""
    if len(leaf.operations) != len(other.operations):
        return leaf
    operations = (
        replace(each, file=beside.file, line=beside.line)
        if not beside.line or _PLACES_OF_THE_WHEEL in beside.file
        else each
        for each, beside in zip(leaf.operations, other.operations, strict=True)
    )
    return replace(leaf, operations=tuple(operations))


def planned(name: str, *given: Any) -> Schedule:
    """The schedule of a kernel of the dumps, as the wheel compiles it for the chip of its model."""
    with pypto.options(release="0.2.0", satmode="upstream", chip=CHIP):
        return kernel_of(name).schedule(*given)


@pytest.mark.parametrize("name", PLANNED)
@pytest.mark.sampled(12)
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


def runs_of_leaves(schedule: Schedule, body: Body) -> list[tuple[str, Any, Leaf | None]]:
    """Each task of a body: its leaf as it runs it, what it moves, and how many wait for it."""
    parameters = {each.name for each in schedule.parameters}
    found = []
    for task in body.tasks:
        listed = None if task.leaf is None else schedule.leaves[task.leaf]
        leaf = None if listed is None or listed.core == "HUB" else leaf_in(task, listed)
        moved = [
            (name if name in parameters else bool(name), each.offset, each.shape if name else ())
            for each in (() if leaf is None else task.accesses)
            for name in [each.tensor]
        ]
        lines = () if leaf is None else tuple(replace(x, file="", line=0) for x in leaf.operations)
        found.append((repr((lines, moved)), (moved, len(task.successors)), leaf))
    return sorted(found, key=lambda each: each[0])


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.sampled(6)
def test_loops_are_those_of_the_dump_and_give_its_bits(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in UNORDERED:
        monkeypatch.setattr(kernel_plan, "check_ordered", lambda *_: None)
    dump = pypto.read_schedule(unpacked(name, tmp_path))
    arrays = arrays_of(dump)
    schedule = planned(name, *arrays)
    assert differences(schedule, dump) == ()
    for one, other in zip(schedule.parameters, dump.parameters, strict=True):
        is_read_as_number = one.name in schedule.numbers_read  # the dump has no shape of it
        assert replace(one, shape=other.shape if is_read_as_number else one.shape) == other
    listed, beside = in_order_of_steps(schedule), in_order_of_steps(dump)
    for pair in zip(listed.bodies, beside.bodies, strict=True):
        tasks, wanted = runs_of_leaves(listed, pair[0]), runs_of_leaves(beside, pair[1])
        for (_, moved, leaf), (_, expected, other) in zip(tasks, wanted, strict=True):
            assert moved == expected
            assert (leaf is None) is (other is None)
            if leaf is not None and other is not None:
                assert at_lines_of(leaf, other) == other
    assert len(schedule.leaves) == len([each for each in dump.leaves if each.core != "HUB"])
    assert schedule.peak_ub_bytes == dump.peak_ub_bytes
    assert schedule.needed_ub_bytes == dump.needed_ub_bytes
    assert schedule == planned(name, *map(pypto.from_numpy, arrays))

    if name in NAMES:
        results, expected_arrays = ([each.copy() for each in arrays] for _ in range(2))
        schedule.run(*results)
        dump.run(*expected_arrays)
        for got, want in zip(results, expected_arrays, strict=True):
            np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_what_differs_in_control_flow_is_named(tmp_path: Path) -> None:
    dump = pypto.read_schedule(unpacked("loop_full", tmp_path))
    schedule = planned("loop_full", *arrays_of(dump))
    first, loop, last = schedule.steps
    assert isinstance(loop, Loop)
    longer = replace(loop, end=("add", loop.end, 1))
    assert differences(replace(schedule, steps=(first, longer, last)), dump) == ("steps",)
    assert "tasks" in differences(replace(schedule, steps=(last, loop, first)), dump)


@pytest.mark.parametrize("name", UNORDERED)
def test_a_fault_of_a_dump_is_refused_by_the_planner(name: str, tmp_path: Path) -> None:
    """Iterations that write one element, or a loop that reads rows of another's."""
    dump = pypto.read_schedule(unpacked(name, tmp_path))
    arrays = arrays_of(dump)
    with pytest.raises(pypto.SimulatorFault, match="which task 0 wrote; no data orders"):
        dump.run(*arrays)
    with pytest.raises(PlanError, match=re.escape(f"{name}: {UNORDERED[name]} in another task")):
        planned(name, *arrays)


@pytest.mark.parametrize("name", RECORDED)
def test_a_control_flow_that_is_not_planned_is_refused(name: str) -> None:
    tensors = kernel_of(name).signature.tensors.values()
    shapes = [[x if isinstance(x, int) and x > 0 else 160 for x in each.shape] for each in tensors]
    given = [pypto.tensor(x, each.dtype) for x, each in zip(shapes, tensors, strict=True)]
    for arguments in (given, [np.zeros(x.shape, x.dtype.format.dtype) for x in given]):
        with pytest.raises(PlanError, match=re.escape(RECORDED[name])):
            planned(name, *arguments)


# --- Kernels that no dump has --------------------------------------------------------------------

Matrix = pypto.Tensor[[pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32]
Count = pypto.Tensor[[1], pypto.DT_INT32]


@pypto.frontend.jit
def looping(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for index in pypto.loop(0, 3, 1, name="rows", idx_name="index"):
        part = pypto.view(x, [32, 64], [index * 32, 0])
        pypto.assemble(pypto.exp(part) + part, [index * 32, 0], y)


def given(*shapes: list[int]) -> list[np.ndarray]:
    drawn = np.random.default_rng(1)
    return [drawn.standard_normal(shape, np.float32) for shape in shapes]


def test_a_loop_has_a_body_for_all_iterations() -> None:
    arrays = given([96, 64], [96, 64])
    schedule = looping.schedule(*arrays)
    assert (len(schedule.leaves), [len(body.tasks) for body in schedule.bodies]) == (1, [2])
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
        text = " ".join(str(looping.schedule(*shapes)).split())
    assert text.startswith("looping: planner of release 0.2.0 for Ascend910B2 UB 8192 B as")
    with pypto.options(release="head", chip="Ascend910B2"):
        text = " ".join(str(looping.schedule(*shapes)).split())
    assert text.startswith(
        "looping: planner of release head, by the passes of 0.2.0 and AutoCast's lists of head, "
        "for Ascend910B2 UB 8192 B as"
    )


Rows = pypto.Tensor[[8, 512], pypto.DT_FP32]


@pypto.frontend.jit
def normalized(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 32)
    e = pypto.exp(x - pypto.amax(x, -1, True))
    y[:] = e / pypto.sum(e, -1, True)


@pytest.mark.slow
def test_a_rule_that_is_applied_in_part_is_named() -> None:
    """The wheel gives the results of this sum other addresses."""
    schedule = normalized.schedule(*given([8, 512], [8, 512]))
    place = next(n for n, x in enumerate(schedule.leaves) if "ROWSUM_SINGLE" in opcodes(x))
    (said,) = [each for each in schedule.simplified if each.startswith(f"leaf {place}: ")]
    assert re.search(r"results of ROWSUM_SINGLE \(test_planner.py:\d+\) are allocated", said)
    assert f"simplified: {said}" in " ".join(str(schedule).split())
    facts = {each.key: each.value for each in schedule_report(schedule).facts}
    assert said in str(facts["simplified"])
    assert Schedule.from_json(schedule.to_json()) == schedule
    document = json.loads(schedule.to_json())
    del document["schedule"]["simplified"]  # as it was written before
    assert Schedule.from_json(json.dumps(document)) == replace(schedule, simplified=())


def opcodes(leaf: Leaf) -> set[str]:
    return {each.opcode for each in leaf.operations}


def test_what_follows_from_known_numbers_is_not_simplified() -> None:
    """A sum with scratch, whose task hands over nothing."""
    schedule = planned("softmax", *given([128, 512], [128, 512]))
    assert any("ROWSUM_SINGLE" in opcodes(x) for x in schedule.leaves)
    assert not schedule.simplified


@pypto.frontend.jit
def nowhere(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for _ in pypto.loop(0):
        y[:] = pypto.exp(x)


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


Narrow = pypto.Tensor[[...], pypto.DT_BF16]


@pypto.frontend.jit
def crowded(x: Narrow, y: Narrow, z: Narrow) -> None:
    pypto.set_vec_tile_shapes(2, 16, 192)
    larger = pypto.where(y > x, y, x)
    z[:] = (1.25 - larger / pypto.amin(x, 2, True)) * 1.5


def test_scratch_that_upstream_puts_no_barrier_behind_is_refused() -> None:
    tensors = [pypto.tensor([4, 48, 384], pypto.DT_BF16)] * 3
    message = r"CMP \(test_planner.py:\d+\): .* no barrier between it and CAST"
    with pypto.options(release="0.2.0"), pytest.raises(PlanError, match=message):
        crowded.schedule(*tensors)


@pypto.frontend.jit
def of_a_cast(x: Narrow, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    wide = pypto.cast(x, pypto.DT_FP32)
    y[:] = wide - pypto.sum(wide, dim=-1, keepdim=True)


def test_a_sign_copied_in_bf16_is_one_operation_in_fp32() -> None:
    """AutoCast's list has COPYSIGN; the wheel's dump is the same."""

    @pypto.frontend.jit
    def copied(
        x: pypto.Tensor[[...], pypto.DT_BF16],
        y: pypto.Tensor[[...], pypto.DT_BF16],
        z: pypto.Tensor[[...], pypto.DT_BF16],
    ) -> None:
        pypto.set_vec_tile_shapes(16, 128)
        z[:] = pypto.copysign(x, y)

    with pypto.options(release="0.2.0"):
        (leaf,) = copied.schedule(*[pypto.tensor([64, 256], pypto.DT_BF16)] * 3).leaves
    found = [each.opcode for each in leaf.operations if each.flag is None]
    assert sorted(found) == ["CAST"] * 3 + ["COPYSIGN"] + ["COPY_IN"] * 2 + ["COPY_OUT"]


def test_a_cast_before_a_sum_is_no_part_of_it() -> None:
    tensors = pypto.tensor([16, 64], pypto.DT_BF16), pypto.tensor([16, 64], pypto.DT_FP32)
    (leaf,) = of_a_cast.schedule(*tensors).leaves
    found = [each.opcode for each in leaf.operations if each.flag is None]
    assert found == ["COPY_IN", "CAST", "ROWSUM_SINGLE", "EXPAND", "SUB", "COPY_OUT"]


@pypto.frontend.jit(pass_options={"vec_nbuffer_setting": {-1: 4}})
def merged(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.exp(x)


@pypto.frontend.jit
def retiled(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for index in pypto.loop(4, name="rows", idx_name="index", unroll_list=[1, 2]):
        part = pypto.exp(pypto.view(x, [16, 64], [index * 16, 0]))
        pypto.set_vec_tile_shapes(8, 64)
        pypto.assemble(part * 2.0, [index * 16, 0], y)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (merged, r"vec_nbuffer_setting={-1: 4} at test_planner.py:\d+ in merged is not followed"),
        (retiled, r"tile shape \[8, 64\] at test_planner.py:\d+ in retiled.*: in the next copy of"),
        (chained, None),
    ],
)
def test_a_schedule_says_what_it_does_not_follow(kernel: Kernel, text: str | None) -> None:
    found = kernel.schedule(*given([64, 64], [64, 64])).simplified
    assert len(found) == (text is not None)
    assert all(re.match(text or "", each) for each in found)


@pypto.frontend.jit
def large(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(64, 776)
    y[:] = pypto.exp(x)


@pytest.mark.parametrize(
    ("kernel", "shape", "message"),
    [
        (dead, [32, 64], "dead: no operation of it writes an output"),
        (large, [64, 776], r"EXP \(test_planner.py:\d+\) holds 198656 B of COPY_IN"),
        (nowhere, [0, 64], r"nowhere: x has the shape \[0, 64\]; a schedule takes a positive"),
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


@pypto.frontend.jit
def tiled_twice(
    x: pypto.Tensor[[1000], pypto.DT_FP32], y: pypto.Tensor[[1000], pypto.DT_FP32]
) -> None:
    pypto.set_vec_tile_shapes(256)
    s = pypto.exp(x)
    pypto.set_vec_tile_shapes(512)
    y[:] = s + 1.0


def test_the_parts_of_a_tile_do_not_pad_it() -> None:
    """The last tile has 488 elements, of parts of 256 and 232, as upstream's has."""
    schedule = tiled_twice.schedule(*given([1000], [1000]))
    shapes = {
        each.outputs[0].shape
        for leaf in schedule.leaves
        for each in leaf.operations
        if each.opcode == "EXP"
    }
    assert shapes == {(256,), (488,)}


# --- Control flow that no dump has ---------------------------------------------------------------


@pypto.frontend.jit
def sliced(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for index in pypto.loop(x.shape[0] // 32, name="rows", idx_name="index"):
        part = x[index * 32 : (index + 1) * 32, 0:64]
        if pypto.cond(index > 1):
            y[index * 32 : (index + 1) * 32, 0:64] = part * 2.0
        else:
            y[index * 32 : (index + 1) * 32, 0:64] = pypto.exp(part)


def test_a_schedule_serves_any_number_of_rows() -> None:
    schedule = sliced.schedule(*given([32, 64], [32, 64]))
    assert schedule == sliced.schedule(*given([320, 64], [320, 64]))
    arrays = given([128, 64], [128, 64])
    expected = [each.copy() for each in arrays]
    sliced(*expected)
    schedule.run(*arrays)
    np.testing.assert_array_equal(arrays[1].view(np.uint8), expected[1].view(np.uint8))


@pypto.frontend.jit
def carried(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    total = pypto.full([16, 64], 0.0, pypto.DT_FP32)
    for index in pypto.loop(2, name="rows", idx_name="index"):
        total = total + pypto.view(x, [16, 64], [index * 16, 0])
        pypto.assemble(total, [index * 16, 0], y)


@pypto.frontend.jit
def left_early(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for index in pypto.loop(2, name="rows", idx_name="index"):
        pypto.assemble(pypto.view(x, [16, 64], [index * 16, 0]) * 2.0, [index * 16, 0], y)
        break


@pypto.frontend.jit
def outside(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    if x.shape[0] > 16:
        y[:] = pypto.exp(x)


@pypto.frontend.jit
def as_int(x: Matrix, y: Matrix) -> None:
    for index in pypto.loop(2, name="rows", idx_name="index"):
        pypto.set_vec_tile_shapes(8 + index, 64)
        pypto.assemble(pypto.view(x, [16, 64], [index * 16, 0]) * 2.0, [index * 16, 0], y)


@pypto.frontend.jit
def as_operand(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for index in pypto.loop(2, name="rows", idx_name="index"):
        pypto.assemble(pypto.view(x, [16, 64], [index * 16, 0]) * index, [index * 16, 0], y)


@pypto.frontend.jit
def unrolled(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for index in pypto.loop(2, name="rows", idx_name="index", unroll_list=[1, 2]):
        if pypto.is_loop_begin(index):
            pypto.assemble(pypto.view(x, [16, 64], [index * 16, 0]) * 2.0, [index * 16, 0], y)


@pypto.frontend.jit
def accumulated(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    total = pypto.tensor([32, 64], pypto.DT_FP32, "total")
    for index in pypto.loop(2, name="rows", idx_name="index"):
        part = pypto.view(x, [32, 64], [0, 0])
        if pypto.is_loop_begin(index):
            total[:] = part * 2.0
        else:
            total[:] = total + part
        if pypto.is_loop_end(index):
            y[:] = total


@pypto.frontend.jit
def as_extent(x: Matrix, count: Count, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = x[0 : count[0], 0:64] * 2.0


def test_an_extent_that_is_read_from_data_is_refused() -> None:
    (x, y), count = given([32, 64], [32, 64]), np.array([32], np.int32)
    message = (
        r"^part at test_planner.py:\d+ in as_extent: its extent sub\(count\[0\], 0\) is known only "
        "when the kernel runs; pypto.view takes it as valid_shape$"
    )
    with pytest.raises(PlanError, match=message):
        as_extent.schedule(x, count, y)
    as_extent(x, count, y)
    np.testing.assert_array_equal(y, x * 2)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            carried,
            r"^add at .*carried, rows index: a tensor that a name takes from one iter",
        ),
        (
            left_early,
            r"loop rows at test_planner.py:\d+ in left_early, rows index: a loop that is left by",
        ),
        (outside, r"condition gt\(extent\(x, 0\), 16\) at .* outside loops is not planned"),
        (as_int, r"add\(8, index\) at test_planner.py:.*: it is known only when the kernel runs"),
        (as_operand, "^mul at .*: a number known only when the kernel runs is not planned"),
        (unrolled, "condition .* in an unrolled loop is not planned"),
        (
            accumulated,
            r"ADD at test_planner.py:\d+: its result is the output y and a tensor that another run",
        ),
    ],
)
def test_control_flow_that_is_not_planned_is_refused(kernel: Kernel, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        kernel.schedule(*given([32, 64], [32, 64]))
