"""Calls of kernels that execute a schedule: its bits, and what is refused before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.programs.upstream_dumps import arrays_of, kernel_of, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule.parts import Barrier, TileOperation, lives
from ascend_kernels.schedule.schedule import NotExecutedError, Schedule
from pypto_cast.kernel.jit import Kernel
from pypto_cast.testing import assert_schedule_ok
from simulator.machine.memory import SimulatorFault

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def softmax(tmp_path: Path) -> Schedule:
    return pypto.read_schedule(unpacked("softmax", tmp_path))


def scheduled(kernel: Kernel, schedule: Schedule, *arrays: Any, **changed: Any) -> None:
    with pypto.options(fidelity="instructions", schedule=schedule, **changed):
        kernel(*arrays)


@pytest.mark.parametrize(
    "name", ["softmax", "int8_per_token", "loop_rows", "layernorm_bf16", "reshape_rows"]
)
def test_a_call_gives_the_bits_of_the_schedule_and_of_its_release(
    name: str, tmp_path: Path
) -> None:
    schedule, kernel = pypto.read_schedule(unpacked(name, tmp_path)), kernel_of(name)
    called, run, tensor_level = (arrays_of(schedule) for _ in range(3))

    scheduled(kernel, schedule, *called)

    schedule.run(*run)
    with pypto.options(release="0.2.0", satmode="upstream"):
        kernel(*tensor_level)
    for got, ran, wanted in zip(called, run, tensor_level, strict=True):
        np.testing.assert_array_equal(got.view(np.uint8), ran.view(np.uint8))
        np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))


def test_arrays_of_other_layouts_are_taken(softmax: Schedule) -> None:
    x, y = arrays_of(softmax)
    expected = y.copy()
    softmax.run(x, expected)
    wide = np.zeros((128, 1024), np.float32)

    scheduled(kernel_of("softmax"), softmax, np.asfortranarray(x).astype(">f4"), wide[:, ::2])

    np.testing.assert_array_equal(wide[:, ::2], expected)
    assert not wide[:, 1::2].any()


def with_operations(schedule: Schedule, *operations: TileOperation) -> Schedule:
    (leaf,) = schedule.leaves
    spans = lives(operations)
    buffers = tuple(
        replace(each, first=spans[place][0], last=spans[place][1])
        for place, each in enumerate(leaf.buffers)
    )
    return replace(schedule, leaves=(replace(leaf, operations=operations, buffers=buffers),))


def renamed(schedule: Schedule) -> Schedule:
    first, *others = schedule.parameters
    return replace(schedule, parameters=(replace(first, name="z"), *others))


REFUSALS: Mapping[str, tuple[Callable[[Schedule], Schedule], Mapping[str, Any], str]] = {
    "another kernel": (
        lambda given: replace(given, kernel="other"),
        {},
        r"softmax\(x, y\) is called, and the schedule is of other\(x, y\): compile softmax, or",
    ),
    "another parameter": (renamed, {}, r"the schedule is of softmax\(z, y\)"),
    "another shape": (
        lambda given: replace(
            given, parameters=tuple(replace(x, shape=(64, 512)) for x in given.parameters)
        ),
        {},
        r"softmax: x is FP32 \[64, 512\], C-contiguous; given was float32 \[128, 512\]",
    ),
    "another float mode": (lambda given: given, {"inf_nan_mode": False}, "inf_nan_mode=False"),
    "other roundings": (lambda given: given, {"auto_cast": "every op"}, "auto_cast='every op'"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_does_not_fit_is_refused_before_anything_runs(case: str, softmax: Schedule) -> None:
    change, changed, wanted = REFUSALS[case]
    x, y = arrays_of(softmax)
    before = y.copy()

    with pytest.raises(ValueError, match=wanted):
        scheduled(kernel_of("softmax"), change(softmax), x, y, **changed)

    np.testing.assert_array_equal(y, before)


def test_a_schedule_needs_its_fidelity(softmax: Schedule) -> None:
    wanted = r"option schedule \(softmax\) needs fidelity='instructions', not 'fast'"
    with pytest.raises(ValueError, match=wanted), pypto.options(schedule=softmax):
        pytest.fail("the body must not run")
    at_instructions = pypto.options(fidelity="instructions", schedule=softmax)
    with at_instructions, pytest.raises(ValueError, match=wanted), pypto.options(fidelity="fast"):
        pytest.fail("the body must not run")
    named: Any = "softmax"
    wanted = r"option schedule must be a pypto\.Schedule, not 'softmax'"
    with pytest.raises(TypeError, match=wanted), pypto.options(schedule=named):
        pytest.fail("the body must not run")


def test_a_kernel_inside_another_is_refused(softmax: Schedule) -> None:
    inner = kernel_of("softmax")

    @pypto.jit
    def outer(x: pypto.Tensor(), y: pypto.Tensor()) -> None:
        with pypto.options(fidelity="instructions", schedule=softmax):
            inner(x, y)

    x, y = arrays_of(softmax)
    before = y.copy()
    with pytest.raises(ValueError, match=r"softmax\(x, y\) is called inside another kernel"):
        outer(x, y)
    np.testing.assert_array_equal(y, before)


def test_arguments_that_no_schedule_tells_of_are_refused(softmax: Schedule) -> None:
    ran = []

    def body(x: pypto.Tensor(), y: pypto.Tensor(), scale: float = 1.0) -> None:
        ran.append(scale)
        y[:] = x

    body.__name__ = "softmax"
    kernel = pypto.jit(body)
    x, y = arrays_of(softmax)
    expected = y.copy()
    softmax.run(x, expected)

    with pytest.raises(ValueError, match="does not say for which scale it was compiled"):
        scheduled(kernel, softmax, x, y, 2.0)
    assert not ran
    scheduled(kernel, softmax, x, y, 1.0)

    np.testing.assert_array_equal(y, expected)


def test_a_parameter_that_no_result_needs_is_in_no_dump(softmax: Schedule) -> None:
    compiled = kernel_of("softmax")

    def body(x: pypto.Tensor(), unused: pypto.Tensor(), y: pypto.Tensor()) -> None:
        pypto.set_vec_tile_shapes(32, 256)
        exp = pypto.exp(x - pypto.amax(x, -1, True))
        y[:] = exp / pypto.sum(exp, -1, True)

    body.__name__ = "softmax"
    kernel = pypto.jit(body)
    (x, expected), (_, y) = arrays_of(softmax), arrays_of(softmax)
    scheduled(compiled, softmax, x, expected)

    scheduled(kernel, softmax, x, np.zeros((1, 4), np.int32), y)

    np.testing.assert_array_equal(y, expected)
    assert_schedule_ok(softmax, kernel)
    assert_schedule_ok(softmax, kernel, [x, np.zeros((1, 4), np.int32), y])
    with pytest.raises(ValueError, match=r"softmax takes 3 arrays \(x, unused, y\), not 2"):
        assert_schedule_ok(softmax, kernel, [x, y])


def test_a_schedule_without_an_output_of_the_kernel_is_refused(softmax: Schedule) -> None:
    def body(x: pypto.Tensor(), y: pypto.Tensor(), other: pypto.Tensor()) -> None:
        y[:] = x
        other[:] = x

    body.__name__ = "softmax"
    x, y = arrays_of(softmax)
    before = y.copy()
    with pytest.raises(ValueError, match=r"softmax\(x, y, other\) is called, and the schedule is"):
        scheduled(pypto.jit(body), softmax, x, y, y.copy())
    np.testing.assert_array_equal(y, before)


def test_what_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    schedule = pypto.read_schedule(unpacked("two_outputs", tmp_path))
    *given, last = arrays_of(schedule)
    before = [each.copy() for each in given]
    last.flags.writeable = False

    with pytest.raises(ValueError, match="two_outputs: product is written, and read-only"):
        schedule.run(*given, last)
    odd: tuple[Any, ...] = given[0].tolist(), np.ma.masked_array(given[0])
    for each, name in zip(odd, ("list", "MaskedArray"), strict=True):
        with pytest.raises(TypeError, match=f"a is an array of numpy, .*, not a {name}"):
            schedule.run(each, *given[1:], last)

    for array, earlier in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, earlier)


@pypto.jit
def in_part(
    x: pypto.Tensor([16, 64], pypto.DT_FP32), y: pypto.Tensor([32, 64], pypto.DT_FP32)
) -> None:
    pypto.set_vec_tile_shapes(8, 32)
    y[8:24, :] = x + 1.0


def partly_planned(folder: Path) -> tuple[Schedule, Kernel, list[np.ndarray]]:
    drawn = np.random.default_rng(1)
    given = [drawn.standard_normal(shape, np.float32) for shape in ((16, 64), (32, 64))]
    return in_part.schedule(*given), in_part, given


def partly_compiled(folder: Path) -> tuple[Schedule, Kernel, list[np.ndarray]]:
    """Of a loop that writes the first 20 of 31 rows."""
    drawn = np.random.default_rng(2)
    given = [drawn.standard_normal((31, 64)).astype(np.float16) for _ in range(2)]
    return pypto.read_schedule(unpacked("loop_paths", folder)), kernel_of("loop_paths"), given


Partly = Callable[[Path], tuple[Schedule, Kernel, list[np.ndarray]]]


@pytest.mark.parametrize("partly", [partly_planned, partly_compiled])
def test_elements_that_the_kernel_does_not_write_are_kept(partly: Partly, tmp_path: Path) -> None:
    schedule, kernel, (x, y) = partly(tmp_path)
    before, expected = y.copy(), y.copy()
    kernel(x, expected)
    assert (expected == before).any(axis=-1).any()
    assert not np.array_equal(expected, before)

    scheduled(kernel, schedule, x, y)

    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("partly", [partly_planned, partly_compiled])
def test_elements_are_written_as_often_as_by_the_kernel(partly: Partly, tmp_path: Path) -> None:
    schedule, kernel, (x, y) = partly(tmp_path)
    before = y.copy()
    nothing = replace(schedule, bodies=tuple(replace(x, tasks=()) for x in schedule.bodies))
    twice = replace(schedule, steps=(*schedule.steps, Barrier(), *schedule.steps))

    with pytest.raises(SimulatorFault, match=r"kernel ends with .* elements of y never written"):
        scheduled(kernel, nothing, x, y)
    with pytest.raises(SimulatorFault, match=r"not written as often as .*: 2 times, not 1"):
        scheduled(kernel, twice, x, y)

    np.testing.assert_array_equal(y, before)


def test_one_array_for_two_parameters_is_refused(softmax: Schedule) -> None:
    x, _ = arrays_of(softmax)
    before = x.copy()
    with pytest.raises(ValueError, match="softmax: x and y are one array; a schedule takes copies"):
        scheduled(kernel_of("softmax"), softmax, x, x)
    with pytest.raises(ValueError, match="softmax: x and y share memory, and one of them is writt"):
        softmax.run(x, x)
    np.testing.assert_array_equal(x, before)


def test_a_leaf_that_is_not_executed_leaves_outputs_as_they_are(softmax: Schedule) -> None:
    (leaf,) = softmax.leaves
    unknown = (
        replace(each, opcode="ATOMIC_RMW", pipe="") if each.opcode == "EXP" else each
        for each in leaf.operations
    )
    wanted = "1 of 1 leaves, and with them 4 of 4 tasks: .*ATOMIC_RMW"
    x, y = arrays_of(softmax)
    before = y.copy()

    with pytest.raises(NotExecutedError, match=wanted):
        scheduled(kernel_of("softmax"), with_operations(softmax, *unknown), x, y)
    np.testing.assert_array_equal(y, before)


def test_a_fault_leaves_outputs_as_they_are(softmax: Schedule) -> None:
    (leaf,) = softmax.leaves
    unsynced = (each for each in leaf.operations if each.flag is None)
    x, y = arrays_of(softmax)
    before = y.copy()

    with pytest.raises(SimulatorFault, match=r"operation \d+ "):
        scheduled(kernel_of("softmax"), with_operations(softmax, *unsynced), x, y)
    np.testing.assert_array_equal(y, before)


def test_intervals_are_not_asked_of_a_schedule(softmax: Schedule) -> None:
    kernel = kernel_of("softmax")
    x, y = arrays_of(softmax)
    with pypto.options(fidelity="instructions", schedule=softmax):
        with pytest.raises(ValueError, match="certainty is of the tensor level, and a"):
            kernel.certainty(x, y)
        assert len(kernel.program(x, y).steps) > 4


@pypto.frontend.jit
def to_fp8(
    x: pypto.Tensor([16, 64], pypto.DT_FP32), y: pypto.Tensor([16, 64], pypto.DT_FP8E4M3)
) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.cast(x, pypto.DT_FP8E4M3)


def test_the_tensor_level_is_that_of_the_chip_of_the_schedule() -> None:
    x = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    called, run = (np.zeros_like(x, ml_dtypes.float8_e4m3fn) for _ in range(2))
    with pypto.options(chip="Ascend950PR"):
        schedule = to_fp8.schedule(x, called)

    assert_schedule_ok(schedule, to_fp8, [x, called])
    scheduled(to_fp8, schedule, x, called)
    schedule.run(x, run)

    np.testing.assert_array_equal(called.view(np.uint8), run.view(np.uint8))
