"""Bodies of a kernel that run one after another: what orders them, and what passes between them."""

from __future__ import annotations

import collections
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.programs.upstream_dumps import arrays_of, kernel_of, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule import schedule as schedule_module
from ascend_kernels.schedule.parts import Barrier, Branch, ControlStep, Loop, Renewal, Run
from ascend_kernels.schedule.schedule import NotExecutedError, Schedule
from pypto_cast.testing.schedule_checks import (
    ScheduleError,
    assert_schedule_ok,
    synthetic_arrays,
)
from simulator.machine.memory import SimulatorFault
from simulator.machine.tasks import TileTask


def schedule_of(name: str, folder: Path) -> Schedule:
    return pypto.read_schedule(unpacked(name, folder))


def steps_of(steps: tuple[ControlStep, ...], kind: type) -> list[ControlStep]:
    """The steps of a kind, at any depth."""
    found: list[ControlStep] = []
    for step in steps:
        found += [step] if isinstance(step, kind) else []
        if isinstance(step, Loop):
            found += steps_of(step.steps, kind)
        if isinstance(step, Branch):
            found += steps_of((*step.steps, *step.otherwise), kind)
    return found


def without(steps: tuple[ControlStep, ...], kind: type) -> tuple[ControlStep, ...]:
    return tuple(
        replace(step, steps=without(step.steps, kind)) if isinstance(step, Loop) else step
        for step in steps
        if not isinstance(step, kind)
    )


def test_unroll_factors_are_bodies_of_their_own(tmp_path: Path) -> None:
    schedule = schedule_of("loop_unrolled", tmp_path)

    assert sorted(len(body.tasks) for body in schedule.bodies) == [1, 2, 4]
    assert len(steps_of(schedule.steps, Loop)) == 4


def test_paths_are_conditions_over_bodies(tmp_path: Path) -> None:
    schedule = schedule_of("loop_paths", tmp_path)

    assert len(schedule.bodies) == 4
    assert len(steps_of(schedule.steps, Branch)) == 3
    conditions = [step.condition for step in steps_of(schedule.steps, Branch)]
    assert conditions[0] == ("eq", ("symbol", "index"), 0)
    assert conditions[2] == ("eq", ("symbol", "index"), 2)


@pytest.mark.parametrize("rows", [0, 31])
def test_elements_that_no_iteration_writes_are_judged_by_the_kernel(
    rows: int, tmp_path: Path
) -> None:
    schedule, kernel = schedule_of("loop_paths", tmp_path), kernel_of("loop_paths")
    x, y = np.ones((2, rows, 64), np.float16)

    assert_schedule_ok(schedule, kernel, [x, y])
    less = replace(schedule, bodies=tuple(replace(x, tasks=()) for x in schedule.bodies))
    if rows:
        with pytest.raises(SimulatorFault, match=r"704 elements of y never written"):
            schedule.run(x, y)
        with pytest.raises(ScheduleError, match=r"never written, the first at \[0, 0\]"):
            assert_schedule_ok(less, kernel, [x, y])


def test_a_leaf_where_nothing_runs_is_named(tmp_path: Path) -> None:
    schedule = schedule_of("reshape_rows", tmp_path)

    hub = [leaf for leaf in schedule.leaves if leaf.core == "HUB"]
    assert [[each.opcode for each in leaf.operations] for leaf in hub] == [["RESHAPE"]]
    assert not schedule.not_executed


@pytest.mark.parametrize("rows", [20, 40, 140])
def test_a_running_sum_passes_through_a_slot(rows: int, tmp_path: Path) -> None:
    schedule = schedule_of("loop_sum", tmp_path)
    x = np.random.default_rng(rows).standard_normal((rows, 64)).astype(np.float32)
    y, expected = np.zeros((20, 64), np.float32), np.zeros((20, 64), np.float32)

    schedule.run(x, y)

    kernel_of("loop_sum")(x, expected)
    np.testing.assert_array_equal(y, expected)
    held = [t for t in schedule.temporaries if t.name.startswith("total.")]
    (slot,) = {slot for each in held for slot in each.writes_slots}
    assert {each.reads_slot for each in held} == {None, slot}


def test_a_tensor_that_the_dump_does_not_place_is_not_executed(tmp_path: Path) -> None:
    schedule = schedule_of("loop_sum", tmp_path)
    bodies = tuple(
        replace(
            body,
            temporaries=tuple(
                replace(each, unknown="nobody knows") if each.reads_slot is not None else each
                for each in body.temporaries
            ),
        )
        for body in schedule.bodies
    )
    x, y = arrays_of(schedule)
    before = y.copy()

    changed = replace(schedule, bodies=bodies)
    assert set(changed.not_executed) == {"nobody knows"}
    with pytest.raises(NotExecutedError, match="0 of 3 leaves, and with them 5 of 6 tasks: nobody"):
        changed.run(x, y)
    np.testing.assert_array_equal(y, before)


def test_a_tensor_declared_in_a_loop_is_new_in_each_iteration(tmp_path: Path) -> None:
    schedule = schedule_of("loop_held", tmp_path)
    (renewal,) = steps_of(schedule.steps, Renewal)
    assert isinstance(renewal, Renewal)
    assert len(renewal.slots) == 1
    assert renewal.is_certain

    # In one memory the second iteration would write what the first may still use.
    with pytest.raises(SimulatorFault, match=r"writes byte 0 of gm\.held.*task 0 wrote; no data"):
        replace(schedule, steps=without(schedule.steps, Renewal)).run(*arrays_of(schedule))


def test_renewals_that_fit_no_slots_are_not_executed(tmp_path: Path) -> None:
    dump = unpacked("loop_held", tmp_path)
    flow = next(dump.glob("kernel_aicpu/controlFlow_*.cpp"))
    line = "RUNTIME_SlotMarkNeedAlloc(0);"
    flow.write_text(flow.read_text().replace(line, f"{line}\n{line}"))
    schedule = pypto.read_schedule(dump)

    with pytest.raises(NotExecutedError, match=r"not say whether slot \d+ is new in a loop"):
        schedule.run(*arrays_of(schedule))


def test_two_iterations_that_write_the_same_are_a_fault(tmp_path: Path) -> None:
    schedule = schedule_of("loop_over", tmp_path)
    with pytest.raises(
        SimulatorFault, match=r"writes byte 0 of gm\.y, which task 0 wrote; no data"
    ):
        schedule.run(*arrays_of(schedule))


def test_a_dynamic_axis_is_one_place_to_upstream(tmp_path: Path) -> None:
    schedule = schedule_of("read_back", tmp_path)
    # Upstream's own list of this run's tasks has successors of the last task that writes alone.
    listed = next(tmp_path.glob("**/dyn_topo.txt")).read_text().splitlines()[1:6]
    assert [len(line.split(",")) - 10 for line in listed] == [0, 0, 0, 0, 5]

    wanted = r"reads byte 0 of gm\.y, which task 0 wrote; no data orders task 0 before task 5"
    with pytest.raises(SimulatorFault, match=wanted):
        schedule.run(*arrays_of(schedule))


@pytest.mark.parametrize(
    "name", ["loop_full", "loop_held", "loop_partial", "loop_sum", "read_back"]
)
def test_bodies_follow_each_other_as_upstream_lists_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = schedule_of(name, tmp_path)
    given: list[TileTask] = []
    monkeypatch.setattr(schedule_module, "run_tasks", lambda tasks, *_, **__: given.extend(tasks))
    with pytest.raises(SimulatorFault, match="never written"):
        schedule.run(*arrays_of(schedule))

    listed = next(tmp_path.glob("**/dyn_topo.txt")).read_text().splitlines()[1:]
    rows = [line.split(",") for line in listed]
    bodies = [int(row[1]) >> 20 for row in rows]
    wanted = collections.Counter(
        (int(row[1]) >> 20, int(after) >> 20) for row in rows for after in filter(None, row[9:])
    )
    found = collections.Counter(
        (bodies[before], bodies[number])
        for number, task in enumerate(given)
        for before in task.after
    )
    assert found == wanted


def test_two_tasks_that_write_the_same_are_a_fault(tmp_path: Path) -> None:
    schedule = schedule_of("softmax", tmp_path)
    (body,) = schedule.bodies
    twice = replace(body, tasks=(*body.tasks, body.tasks[0]))
    with pytest.raises(
        SimulatorFault, match=r"task 4 .*writes byte \d+ of gm\.y, which task 0 wrote"
    ):
        replace(schedule, bodies=(twice,)).run(*arrays_of(schedule))


def test_an_iteration_that_writes_what_another_reads_is_a_fault(tmp_path: Path) -> None:
    schedule = schedule_of("loop_partial", tmp_path)
    (outer,) = schedule.steps
    assert isinstance(outer, Loop)
    renewal, write, read = outer.steps
    again = replace(outer, steps=(renewal, write, read, write))
    with pytest.raises(SimulatorFault, match=r"which task 0 wrote; no data orders task 0 before"):
        replace(schedule, steps=(again,)).run(*arrays_of(schedule))


def test_a_barrier_orders_what_no_data_does(tmp_path: Path) -> None:
    schedule = schedule_of("loop_barrier", tmp_path)
    x, y = arrays_of(schedule)
    expected = y.copy()

    counts = schedule.times_written(x, y)

    kernel_of("loop_barrier")(x, expected)
    np.testing.assert_array_equal(y, expected)
    assert (counts["y"][:40] == 2).all()
    assert (counts["y"][40:] == 1).all()
    with pytest.raises(SimulatorFault, match="no data orders task 0 before task 4"):
        replace(schedule, steps=without(schedule.steps, Barrier)).run(x, y)


def test_numbers_that_tasks_compute_are_not_known(tmp_path: Path) -> None:
    schedule = schedule_of("computed_offset", tmp_path)
    table, x, y = arrays_of(schedule)
    before = y.copy()

    wanted = r"0 of 3 leaves, and with them 1 of 3 tasks: .*GetTensorDataInt32Dim2\("
    with pytest.raises(NotExecutedError, match=wanted):
        schedule.run(table, x, y)
    np.testing.assert_array_equal(y, before)


@pytest.mark.parametrize("name", ["loop_data", "offset_data"])
def test_numbers_of_arguments_are_read_as_they_are(name: str, tmp_path: Path) -> None:
    schedule = schedule_of(name, tmp_path)
    numbers, x, y = arrays_of(schedule)
    assert schedule.numbers_read == {schedule.parameters[0].name}

    for values in (np.zeros_like(numbers), np.arange(numbers.size).astype(np.int32)):
        given, expected = values.reshape(numbers.shape), y.copy()
        schedule.run(given, x, y)
        kernel_of(name)(given, x, expected)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_synthetic_numbers_lie_inside(tmp_path: Path) -> None:
    schedule, kernel = schedule_of("offset_data", tmp_path), kernel_of("offset_data")
    table, *_ = synthetic_arrays(schedule, kernel)

    assert_schedule_ok(schedule, kernel)

    np.testing.assert_array_equal(table, np.ones((4, 1), np.int32))


def test_a_number_outside_its_argument_is_a_fault(tmp_path: Path) -> None:
    schedule = schedule_of("loop_data", tmp_path)
    _, x, y = arrays_of(schedule)
    with pytest.raises(SimulatorFault, match=r"reads n\[1\], which has \[1\] elements"):
        schedule.run(np.zeros(1, np.int32), x, y)


def test_a_loop_by_a_written_argument_is_passed_over(tmp_path: Path) -> None:
    schedule = schedule_of("loop_data", tmp_path)
    n, *others = schedule.parameters
    changed = replace(schedule, parameters=(replace(n, is_written=True), *others))
    arrays = arrays_of(schedule)
    before = arrays[2].copy()

    with pytest.raises(NotExecutedError, match=r"tasks: loop index: n\[1\] is not known"):
        changed.run(*arrays)
    np.testing.assert_array_equal(arrays[2], before)


def test_steps_are_read_back_equal(tmp_path: Path) -> None:
    for name in ("loop_barrier", "loop_held"):
        schedule = schedule_of(name, tmp_path)
        assert Schedule.from_json(schedule.to_json()) == schedule
        assert steps_of(schedule.steps, Run)


@pytest.mark.parametrize("scalar", ["nan", "inf", "-inf", "-0.0"])
def test_numbers_that_json_lacks_are_read_back_equal(scalar: str, tmp_path: Path) -> None:
    schedule = schedule_of("abs_1d", tmp_path)
    leaf, *others = schedule.leaves

    def changed() -> Schedule:
        first, *rest = leaf.operations
        operations = replace(first, scalar=float(scalar)), *rest
        return replace(schedule, leaves=(replace(leaf, operations=operations), *others))

    assert changed() == changed()
    read = Schedule.from_json(changed().to_json())
    assert (read, hash(read)) == (changed(), hash(changed()))
    assert str(read.leaves[0].operations[0].scalar) == scalar


@pytest.mark.parametrize(
    ("name", "opcode", "changed", "says"),
    [
        ("softmax", "ROWSUM_SINGLE", {"axis": 0}, "reduces the last of 2 axes, not axis 0"),
        (
            "softmax",
            "EXPAND",
            {"axis": 0},
            r"repeats axis 0 of \(32, 1\), which gives no \(32, 256\)",
        ),
        ("column_sum", "ROWSUMLINE", {"axis": 99}, r"names \[99\] as axes"),
        ("running_sums", "CUM_SUM", {"axis": -99}, r"names \[-99\] as axes"),
        ("gathered", "GATHER_ELEMENT", {"axis": 99}, r"names \[99\] as axes"),
        ("transposed", "TRANSPOSE_VNCHWCONV", {"axes": (9, 1)}, r"names \[.*9.*\] as axes"),
        ("transposed", "TRANSPOSE_VNCHWCONV", {"axes": (0,)}, r"names \[0\] as axes"),
    ],
)
def test_an_axis_that_no_instruction_goes_along_is_a_fault(
    name: str, opcode: str, changed: dict[str, Any], says: str, tmp_path: Path
) -> None:
    schedule = schedule_of(name, tmp_path)
    leaves = tuple(
        replace(
            leaf,
            operations=tuple(
                replace(each, **changed) if each.opcode == opcode else each
                for each in leaf.operations
            ),
        )
        for leaf in schedule.leaves
    )
    with pytest.raises(SimulatorFault, match=rf"{opcode}.*{name}\.py:\d+.*{says}"):
        replace(schedule, leaves=leaves).run(*arrays_of(schedule))


def test_indices_may_be_fewer_than_the_tile_has_elements_beside_their_axis(tmp_path: Path) -> None:
    schedule = schedule_of("gathered", tmp_path)
    (leaf,) = schedule.leaves
    operations = tuple(
        replace(each, axis=0) if each.opcode == "GATHER_ELEMENT" else each
        for each in leaf.operations
    )
    source, index, result = arrays_of(schedule)

    replace(schedule, leaves=(replace(leaf, operations=operations),)).run(source, index, result)

    tiles = index.reshape(-1, 16, index.shape[1]), source.reshape(-1, 16, source.shape[1])
    for got, rows, tile in zip(result.reshape(tiles[0].shape), *tiles, strict=True):
        np.testing.assert_array_equal(got, tile[rows, np.arange(rows.shape[1])])


def test_a_scatter_that_joins_elements_is_not_executed(tmp_path: Path) -> None:
    dump = unpacked("scattered", tmp_path)
    assert not pypto.read_schedule(dump).not_executed
    mode = '"op_attr_scatter_mode": 0'
    for path in dump.rglob("*.json"):
        path.write_text(path.read_text().replace(mode, mode.replace("0", "2")))
    (why, *_) = pypto.read_schedule(dump).not_executed
    assert why.endswith("has SCATTER_ELEMENT with scatter mode 2, which joins elements")


def test_an_argument_that_another_body_reshaped_is_read(tmp_path: Path) -> None:
    schedule = pypto.read_schedule(unpacked("loop_reshaped", tmp_path))
    found = {each.name: (each.is_read, each.is_written) for each in schedule.parameters}
    assert found == {"x": (True, False), "row": (True, False), "y": (False, True)}
