"""Upstream's own programs, read from dumps and executed: the bits of the tensor level."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.programs.upstream_dumps import NAMES, arrays_of, kernel_of, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule.parts import Barrier, Leaf
from ascend_kernels.schedule.reader.dump_leaves import entries_of
from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.testing import assert_schedule_ok, unknown_lines
from pypto_cast.testing.schedule_checks import ScheduleError
from simulator.machine.memory import SimulatorFault


def schedule_of(name: str, folder: Path) -> Schedule:
    return pypto.read_schedule(unpacked(name, folder))


def tensor_level(name: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The arrays that the kernel writes at the release that compiled the dump."""
    results = [array.copy() for array in arrays]
    with pypto.options(release="0.2.0", satmode="upstream"):
        kernel_of(name)(*results)
    return results


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_dump_gives_the_bits_of_the_tensor_level(name: str, tmp_path: Path) -> None:
    read = schedule_of(name, tmp_path)
    schedule = Schedule.from_json(read.to_json())
    assert (schedule, hash(schedule)) == (read, hash(read))
    arrays = arrays_of(schedule)
    expected = tensor_level(name, arrays)
    executed = [array.copy() for array in arrays]

    counts = schedule.times_written(*executed)

    for parameter, got, wanted in zip(schedule.parameters, executed, expected, strict=True):
        np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))
        if parameter.is_written:
            np.testing.assert_array_equal(counts[parameter.name], 1)
    assert counts.keys() == {each.name for each in schedule.parameters if each.is_written}
    assert unknown_lines(schedule, kernel_of(name), arrays) == ()


def test_a_softmax_is_read_as_upstream_wrote_it(tmp_path: Path) -> None:
    schedule = schedule_of("softmax", tmp_path)

    (leaf,), (body,) = schedule.leaves, schedule.bodies
    assert [(each.name, str(each.format), each.shape) for each in schedule.parameters] == [
        ("x", "FP32", (128, 512)),
        ("y", "FP32", (128, 512)),
    ]
    assert [(each.is_read, each.is_written) for each in schedule.parameters] == [
        (True, False),
        (False, True),
    ]
    assert [task.accesses[0].offset for task in body.tasks] == [(0, 0), (32, 0), (64, 0), (96, 0)]
    opcodes = [each.opcode for each in leaf.operations if each.flag is None]
    assert " ".join(opcodes) == (
        "COPY_IN COPY_IN PAIRMAX ROWMAX_SINGLE EXPAND SUB EXP SUB EXP PAIRSUM ROWSUM_SINGLE EXPAND "
        "DIV DIV COPY_OUT COPY_OUT"
    )
    assert [each.place for each in leaf.operations if each.opcode == "EXP"] == ["softmax.py:13"] * 2
    assert (schedule.peak_ub_bytes, schedule.needed_ub_bytes) == (181_248, 131_072)
    assert "softmax: upstream's dump of release 0.2.0" in str(schedule)


def test_a_leaf_of_the_cube_has_no_ub_and_its_pipes_have_names(tmp_path: Path) -> None:
    dump = unpacked("ragged_add", tmp_path)
    first, *_ = sorted(dump.glob("Pass_36_*/*_LEAF_*.json"))
    document = json.loads(first.read_text())
    (function,) = document["functions"]
    for tensor in function["tensors"]:
        if tensor["mem_type"]["asis"] == 0:
            tensor["mem_type"]["asis"] = 1
    cube_pipes = {1: 2, 4: 3, 5: 10}
    for each in function["operations"]:
        queue = each["sync_queue"]
        if each["opcode"].startswith("SYNC_"):
            queue.update({key: cube_pipes[queue[key]] for key in ("pipe_id", "trig_pipe")})
    vector = pypto.read_schedule(dump)
    first.write_text(json.dumps(document))

    schedule = pypto.read_schedule(dump)

    (cube,) = (each for each in schedule.leaves if each.core == "AIC")
    (before,) = (each for each in vector.leaves if each.name == cube.name)
    assert before.peak_ub_bytes >= before.needed_ub_bytes > 0
    assert cube.buffers == before.buffers
    assert (cube.peak_ub_bytes, cube.needed_ub_bytes, cube.ub_buffers) == (0, 0, ())
    assert {(x.setter, x.waiter) for x in cube.flags} == {("MTE1", "M"), ("M", "FIX")}
    assert " SYNC_SRC MTE1->M 0" in str(schedule)
    only = replace(schedule, leaves=(cube,), bodies=(), steps=())
    assert (only.peak_ub_bytes, only.needed_ub_bytes) == (0, 0)
    assert "0 B needed" in str(only)
    assert "UB over time" in only._repr_html_()


def test_a_packed_column_is_one_row(tmp_path: Path) -> None:
    dump = unpacked("packed", tmp_path)
    schedule = pypto.read_schedule(dump)
    (tile,) = {x.outputs[0] for x in schedule.leaves[0].operations if x.opcode == "CAST"}
    assert (tile.shape, tile.is_packed) == ((32, 1), True)
    assert Schedule.from_json(schedule.to_json()) == schedule
    assert_schedule_ok(schedule, kernel_of("packed"))

    padded = replace(schedule, leaves=(with_rows(schedule.leaves[0]), *schedule.leaves[1:]))
    with pytest.raises(SimulatorFault, match=r"COPY_IN .* rows of ub\+0 32x1 BF16 are not aligned"):
        padded.run(*arrays_of(schedule))
    whole = schedule.to_json()
    with pytest.raises(ValueError, match=r"a packed tile of the shape \(1, 32\)"):
        Schedule.from_json(whole.replace('"shape": [32, 1]', '"shape": [1, 32]'))


def with_rows(leaf: Leaf) -> Leaf:
    """A leaf whose tiles have rows of one element, not one row."""
    return replace(
        leaf,
        operations=tuple(
            replace(
                each,
                inputs=tuple(replace(x, is_packed=False) for x in each.inputs),
                outputs=tuple(replace(x, is_packed=False) for x in each.outputs),
            )
            for each in leaf.operations
        ),
    )


def test_a_leaf_that_waits_for_the_cube_is_read_and_not_executed(tmp_path: Path) -> None:
    dump = unpacked("ragged_add", tmp_path)
    first, *_ = sorted(dump.glob("Pass_36_*/*_LEAF_*.json"))
    document = json.loads(first.read_text())
    (function,) = document["functions"]
    set_at, wait_at = (
        next(x for x in function["operations"] if x["opcode"] == f"SYNC_{end}")
        for end in ("SRC", "DST")
    )
    for each, opcode in ((set_at, "CV_SYNC_SRC"), (wait_at, "CV_SYNC_DST")):
        each["opcode"] = opcode
        each["sync_queue"].update(pipe_id=5, trig_pipe=5)
    first.write_text(json.dumps(document))

    schedule = pypto.read_schedule(dump)

    (reason,) = schedule.not_executed
    assert reason == f"{function['func_magicname']} waits for the cube, or the cube for it"
    assert " CV_SYNC_SRC MTE3->MTE3 " in str(schedule)
    assert Schedule.from_json(schedule.to_json()) == schedule
    with pytest.raises(pypto.NotExecutedError, match="waits for the cube"):
        schedule.run(*arrays_of(schedule))


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def written_twice(
    x: pypto.Tensor([128, 512], pypto.DT_FP32),
    y: pypto.Tensor([128, 512], pypto.DT_FP32),
) -> None:
    kernel = kernel_of("softmax")
    kernel(x, y)
    kernel(x, y)


def test_elements_are_written_as_often_as_at_tensor_level(tmp_path: Path) -> None:
    once = schedule_of("softmax", tmp_path)
    twice = replace(once, steps=(*once.steps, Barrier(), *once.steps))
    np.testing.assert_array_equal(twice.times_written(*arrays_of(twice))["y"], 2)
    assert_schedule_ok(twice)
    assert_schedule_ok(twice, written_twice)
    assert_schedule_ok(once, written_twice)
    with pytest.raises(ScheduleError, match=r"65536 elements of y .* at \[0, 0\]: 2 times, not 1"):
        assert_schedule_ok(twice, kernel_of("softmax"))
    with pytest.raises(TypeError, match=r"a function under pypto\.frontend\.jit, not <function"):
        assert_schedule_ok(once, lambda x, y: None)


def test_an_operation_whose_result_a_call_lists_already_has_no_entry_of_its_own() -> None:
    leaf = {
        "incasts": [[27, []]],
        "outcasts": [[32, []]],
        "operations": [
            {"opcode": "VEC_DUP", "opmagic": 1, "ioperands": [], "ooperands": [30]},
            {"opcode": "RESHAPE", "opmagic": 2, "ioperands": [27], "ooperands": [32]},
        ],
    }
    assert entries_of(leaf) == {30: 2}


def test_entries_are_those_of_operations_before_they_are_sorted() -> None:
    """The sort turned the two results of one operand round."""
    leaf = {
        "incasts": [[1, []]],
        "outcasts": [[9, []]],
        "operations": [
            {"opcode": "ABS", "opmagic": 10, "ioperands": [1], "ooperands": [2]},
            {"opcode": "EXPAND", "opmagic": 12, "ioperands": [2], "ooperands": [4]},
            {"opcode": "EXPAND", "opmagic": 11, "ioperands": [2], "ooperands": [3]},
            {"opcode": "COPY_OUT", "opmagic": 14, "ioperands": [4], "ooperands": [9]},
            {"opcode": "COPY_OUT", "opmagic": 13, "ioperands": [3], "ooperands": [9]},
        ],
    }
    assert entries_of(leaf) == {2: 2, 3: 3, 4: 4}
    twice = {**leaf, "operations": [*leaf["operations"][:1]] * 2}
    with pytest.raises(ValueError, match="two operations have the number 10"):
        entries_of(twice)
    circle = {"opcode": "ABS", "opmagic": 10, "ioperands": [3], "ooperands": [2]}
    with pytest.raises(ValueError, match="wait for each other"):
        entries_of({**leaf, "operations": [circle, *leaf["operations"][1:]]})


def test_scratch_may_have_the_valid_dimensions_of_its_input(tmp_path: Path) -> None:
    folder = unpacked("softmax", tmp_path)
    (path,) = folder.glob("Pass_36*/*_LEAF_*.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    (function,) = document["functions"]
    scratch = {x["ooperands"][1] for x in function["operations"] if len(x["ooperands"]) > 1}
    assert scratch
    for tensor in function["tensors"]:
        if tensor["magic"] in scratch:
            tensor["dynvalidshape"] = [[2, 18, 2, 1, "a", 1, "b"]] * 3
    path.write_text(json.dumps(document), encoding="utf-8")

    assert_schedule_ok(pypto.read_schedule(folder), kernel_of("softmax"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["softmax_ragged", "spill", "rmsnorm_int8_two_tiles"])
def test_early_copies_change_no_bit(name: str, tmp_path: Path) -> None:
    schedule = schedule_of(name, tmp_path)
    late, early = arrays_of(schedule), arrays_of(schedule)

    schedule.run(*late)
    schedule.run(*early, copy_completion="earliest")

    for one, other in zip(late, early, strict=True):
        np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))


def test_arrays_that_do_not_fit_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    schedule = schedule_of("softmax", tmp_path)
    x, y = arrays_of(schedule)

    with pytest.raises(ValueError, match=r"x is FP32 \[128, 512\], C-contiguous; given"):
        schedule.run(x.astype(np.float16), y)
    with pytest.raises(ValueError, match=r"given was float32 \[128, 512\], which is not"):
        schedule.run(np.asfortranarray(x), y)
    with pytest.raises(ValueError, match=r"takes 2 arrays \(x, y\), not 1"):
        schedule.run(x)
