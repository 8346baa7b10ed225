"""Calls at fidelity "instructions" that plan their schedule; bad input, and what fits in UB."""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from ascend_kernels.schedule.parts import Barrier, Loop
from ascend_kernels.schedule.planner import kernel_plan
from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.kernel.jit import Kernel
from pypto_cast.recording.plan_tape import LoopOpened, PlanTape
from pypto_cast.recording.steps import origin_of

pytestmark = pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")
Matrix = pypto.Tensor[[64, 768], pypto.DT_FP32]
Integers = pypto.Tensor[[64, 768], pypto.DT_INT32]
Floats96 = pypto.Tensor[[96, 512], pypto.DT_FP32]
Half = pypto.Tensor[[64, 384], pypto.DT_FP32]
Cube = pypto.Tensor[[8, 8, 16], pypto.DT_FP32]
Row = pypto.Tensor[[64], pypto.DT_FP32]
LongRow = pypto.Tensor[[128], pypto.DT_FP32]
Any2D = pypto.Tensor[[...], pypto.DT_FP32]


@pypto.frontend.jit
def scaled(x: Matrix, y: Matrix, factor: float = 1.0) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    shifted = pypto.exp(x - pypto.amax(x, -1, True)) * factor
    y[:] = shifted / pypto.sum(shifted, -1, True)


@pypto.frontend.jit
def turned(x: Matrix, y: pypto.Tensor[[64, 2], pypto.DT_FP32]) -> None:
    pypto.set_vec_tile_shapes(64, 768)
    y[:] = pypto.topk(x, 2, -1, True)[0]


@pypto.frontend.jit
def in_place(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(64, 768)
    y[:] = pypto.sqrt(pypto.abs(x + 1.0))


@pypto.frontend.jit
def cast_in_place(x: Matrix, y: Integers) -> None:
    pypto.set_vec_tile_shapes(64, 768)
    y[:] = pypto.cast(x, pypto.DT_INT32, satmode=pypto.SaturationMode.ON)


@pypto.frontend.jit
def read_twice(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(64, 768)
    y[:] = pypto.exp(x) + x


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    drawn = np.random.default_rng(3)
    return [drawn.standard_normal(shape, np.float32) for shape in shapes]


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[Schedule]:
    """The schedules that are executed."""
    found: list[Schedule] = []
    times_written = Schedule.times_written

    def noted(schedule: Schedule, *given: Any, **asked: Any) -> object:
        found.append(schedule)
        return times_written(schedule, *given, **asked)

    monkeypatch.setattr(Schedule, "times_written", noted)
    return found


def test_a_call_plans_its_schedule_and_executes_it(executed: list[Schedule]) -> None:
    x, y = arrays((64, 768), (64, 768))
    expected = y.copy()
    scaled(x, expected, 2.0)
    assert not executed

    kernel_plan._planned.cache_clear()
    for copy_completion in ("latest", "earliest"):
        with pypto.options(
            fidelity="instructions", chip="Ascend910B1", copy_completion=copy_completion
        ):
            scaled(x, y, 2.0)
            planned = scaled.schedule(x, y, 2.0)
        np.testing.assert_array_equal(y.view(np.uint8), expected.view(np.uint8))
        y[:] = 0
    assert executed == [planned, planned]
    assert (planned.origin, planned.chip) == ("planner", "Ascend910B1")
    assert kernel_plan._planned.cache_info().misses == 1

    with pypto.options(fidelity="instructions", chip="Ascend910B1"):
        scaled(x, y, 3.0)
    assert kernel_plan._planned.cache_info().misses == 2
    assert executed[-1] != planned


@pypto.frontend.jit
def by_blocks(
    x: pypto.Tensor[[pypto.DYNAMIC, 64], pypto.DT_FP32],
    starts: pypto.Tensor[[...], pypto.DT_INT32],
    y: pypto.Tensor[[pypto.DYNAMIC, 64], pypto.DT_FP16],
) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for index in pypto.loop(x.shape[0] // 32, name="rows", idx_name="index"):
        part = pypto.view(x, [32, 64], [starts[index, 0] * 32, 0])
        if pypto.cond(index > 1):
            y[index * 32 : (index + 1) * 32, 0:64] = pypto.cast(part * 2.0, pypto.DT_FP16)
        else:
            y[index * 32 : (index + 1) * 32, 0:64] = pypto.cast(pypto.exp(part), pypto.DT_FP16)


def test_loops_are_executed_as_planned_and_each_element_knows_what_wrote_it(
    executed: list[Schedule],
) -> None:
    starts = np.array([[3], [0], [2], [1]], np.int32)
    (x,), (y, expected) = arrays((128, 64)), np.zeros((2, 128, 64), np.float16)
    by_blocks(x, starts, expected)
    assert not executed
    with pypto.options(fidelity="instructions"):
        by_blocks(x, starts, y)
    assert len(executed) == 1
    np.testing.assert_array_equal(y.view(np.uint8), expected.view(np.uint8))
    places, wanted = (
        [(each.offset, each.extent, each.record.line) for each in origin_of(array)]
        for array in (y, expected)
    )
    assert places == wanted
    assert len(wanted) == 4


def test_what_the_plan_refuses_runs_as_before_and_warns(executed: list[Schedule]) -> None:
    (x,), y = arrays((64, 768)), np.zeros((64, 2), np.float32)
    expected = y.copy()
    turned(x, expected)
    wanted = r"turned runs cast by cast, not as a schedule: topk at test_planned_calls.py:\d+ "

    with pypto.options(fidelity="instructions"):
        with warnings.catch_warnings(record=True) as given:
            for _ in range(2):
                turned(x, y)
        (warning,) = given
        assert re.match(wanted, str(warning.message))
        assert (warning.category, warning.filename) == (pypto.UnplannedKernelWarning, __file__)
        np.testing.assert_array_equal(y, expected)
        y[:] = 0
        with (
            pypto.options(strict=True),
            pytest.raises(pypto.PlanError, match=r"topk at test_planned_calls.py:\d+ in turned"),
        ):
            turned(x, y)
    assert not y.any()
    assert not executed


def test_options_that_no_schedule_follows_leave_the_function(executed: list[Schedule]) -> None:
    x, y = arrays((64, 768), (64, 768))
    with (
        pypto.options(fidelity="instructions", inf_nan_mode=False),
        pytest.warns(pypto.UnplannedKernelWarning, match="does not follow inf_nan_mode=False"),
    ):
        scaled(x, y)
    assert not executed


def test_an_array_may_be_given_twice_unless_it_is_written(executed: list[Schedule]) -> None:
    @pypto.frontend.jit
    def added(a: Matrix, b: Matrix, c: Matrix) -> None:
        pypto.set_vec_tile_shapes(16, 256)
        c[:] = a + b

    x, y = arrays((64, 768), (64, 768))
    doubled = x + x
    with pypto.options(fidelity="instructions"):
        added(x, x, y)
        assert len(executed) == 1
        np.testing.assert_array_equal(y, doubled)
        with pytest.warns(pypto.UnplannedKernelWarning, match="a and c are one array"):
            added(x, y, x)
    np.testing.assert_array_equal(x, doubled / 2 + doubled)
    assert len(executed) == 1


@pytest.mark.parametrize(
    ("kernel", "exact"),
    [
        (in_place, lambda x: np.sqrt(np.abs(x + np.float32(1)))),
        (cast_in_place, lambda x: x.astype(np.int32)),
    ],
)
def test_a_schedule_decides_what_fits_at_every_fidelity(
    kernel: Kernel, exact: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Twice the operand does not fit; the operation in place fills UB to the last byte."""
    (x,) = arrays((64, 768))
    expected = exact(x)
    for fidelity in ("fast", "instructions"):
        y = np.zeros_like(expected)
        with pypto.options(fidelity=fidelity):
            kernel(x, y)
        np.testing.assert_array_equal(y, expected)
    assert kernel.schedule(x, y).peak_ub_bytes == 196_608
    assert kernel.certainty(x, y).outputs
    assert kernel.program(x, y).steps


def test_an_operation_outside_a_kernel_that_is_planned_still_has_ub_for_itself() -> None:
    tensor = pypto.tensor([64, 768], pypto.DT_FP32)
    pypto.set_vec_tile_shapes(64, 768)
    with pytest.raises(pypto.TileShapeError, match=r"take 393216 B of UB; .* \[32, 768\] fits$"):
        pypto.exp(tensor)


def test_zeros_of_both_signs_have_leaves_of_their_own() -> None:
    @pypto.frontend.jit
    def both(x: Matrix, y: Matrix, z: Matrix) -> None:
        pypto.set_vec_tile_shapes(64, 256)
        y[:] = x + 0.0
        z[:] = x + -0.0

    x, y, z = -np.zeros((3, 64, 768), np.float32)
    both.schedule(x, y, z).run(x, y, z)
    assert not np.signbit(y).any()
    assert np.signbit(z).all()


def test_a_zero_of_another_sign_makes_another_schedule() -> None:
    """Equal schedules give equal bits, whatever stands beside a tile; NaN equals itself."""
    x, y = arrays((64, 768), (64, 768))
    factors = (0.0, -0.0, float("nan"), 2.0)
    first, again = ([scaled.schedule(x, y, factor) for factor in factors] for _ in range(2))
    again += [Schedule.from_json(each.to_json()) for each in again]
    assert again == 2 * first
    assert [*map(hash, again)] == 2 * [*map(hash, first)]
    assert len(set(again)) == len(factors)


# --- Kernels of which a part would give no task, or one that the machine refuses ----------------


@pypto.frontend.jit
def reshaped_argument(x: Matrix, y: Matrix, z: Floats96) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    z[:] = pypto.reshape(x, [96, 512])
    y[:] = pypto.exp(x)


@pypto.frontend.jit
def only_reshaped(x: Matrix, z: Floats96) -> None:
    z[:] = pypto.reshape(x, [96, 512])


@pypto.frontend.jit
def moved_twice(x: Matrix, y: Matrix, z: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    value = pypto.exp(x)
    y[:] = value
    z[:] = value


@pypto.frontend.jit
def overlapping(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    y[0:64, :] = pypto.exp(x)
    y[32:64, :] = pypto.abs(x[0:32, :])


@pypto.frontend.jit
def whole_after_part(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    y[0:32, :] = pypto.abs(x[0:32, :])
    y[:] = pypto.exp(x)


@pypto.frontend.jit
def turned_and_read(x: Cube, y: Cube, z: Cube) -> None:
    pypto.set_vec_tile_shapes(2, 2, 16)
    value = pypto.transpose(x * 2.0, 0, 1)
    z[:] = value + 1.0
    y[:] = value


@pypto.frontend.jit
def powers(x: Row, y: Row) -> None:
    pypto.set_vec_tile_shapes(64)
    y[:] = pypto.exp2(x)


@pypto.frontend.jit
def quotient(x: Integers, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    y[:] = x / 2


@pypto.frontend.jit
def across_tiles(x: Matrix, y: Half) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    y[:] = pypto.exp(pypto.abs(x)[0:64, 128:512])


@pypto.frontend.jit
def partly(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    y[:] = pypto.exp(pypto.view(x, [64, 768], [0, 0], valid_shape=[40, 768]))


@pypto.frontend.jit
def sums_of_a_row(x: Row, y: Row) -> None:
    pypto.set_vec_tile_shapes(32)
    y[:] = pypto.cumsum(x, 0)


@pypto.frontend.jit
def joined(x: Row, y: Row, z: LongRow) -> None:
    pypto.set_vec_tile_shapes(64)
    z[:] = pypto.concat([x, y])


UNPLANNED: Mapping[Kernel, str] = {
    reshaped_argument: r"RESHAPE at .*:\d+: gives z, which no task writes",
    only_reshaped: r"RESHAPE at .*:\d+: gives z, which no task writes",
    moved_twice: r"assignment at .*:\d+ in moved_twice: the value is y already",
    overlapping: r"assemble at .*:\d+ in overlapping: writes what another part of y holds",
    whole_after_part: r"assignment at .*:\d+ in whole_after_part: y has parts written before",
    turned_and_read: r"TRANSPOSE_MOVEOUT at .*:\d+: a result that lies in two tensors",
    powers: r"exp2 at .*:\d+ in powers: 0.2.0, .* refuses DT_FP32 of 1 dimensions",
    joined: r"concat at .*:\d+ in joined: 0.2.0, .* refuses DT_FP32 of 1 dimensions",
    quotient: r"div at .*:\d+ in quotient: 0.2.0, .* refuses DT_INT32 of 2 dimensions",
    partly: r"assignment at .*:\d+ in partly: of what y is given only \[40, 768\] hold data",
    sums_of_a_row: r"cumsum at .*:\d+ in sums_of_a_row: planned of FP32 in two dimensions",
    across_tiles: r"VIEW for EXP at .*:\d+: a part that crosses tiles",
}


@pytest.mark.parametrize("kernel", UNPLANNED, ids=lambda kernel: kernel.__name__)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_such_a_kernel_runs_as_before(kernel: Kernel, executed: list[Schedule]) -> None:
    drawn = np.random.default_rng(1)
    given = [
        drawn.integers(-9, 9, each.shape).astype(each.dtype.number_format.dtype)
        for each in kernel.signature.tensors.values()
    ]
    expected, found = ([each.copy() for each in given] for _ in range(2))
    with pypto.options(release="head"):
        kernel(*expected)
        with (
            pypto.options(fidelity="instructions"),
            pytest.warns(pypto.UnplannedKernelWarning, match=UNPLANNED[kernel]),
        ):
            kernel(*found)
    assert not executed
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


# --- Bad input -----------------------------------------------------------------------------------


def tiled(*tile: int) -> Callable[[], Kernel]:
    def make() -> Kernel:
        @pypto.frontend.jit
        def kernel(x: Any2D, y: Any2D) -> None:
            pypto.set_vec_tile_shapes(*tile)
            y[:] = pypto.exp(x)

        return kernel

    return make


@pypto.frontend.jit
def by_data(x: Integers, y: Integers) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    y[:] = pypto.full([x[0, 0], 768], 1, pypto.DT_INT32)


@pypto.frontend.jit
def untiled(x: Matrix, y: Matrix) -> None:
    y[:] = pypto.exp(x)


BAD: Mapping[str, tuple[Callable[[], Kernel], list[int], str]] = {
    "a tile of 0": (
        tiled(0, 64),
        [64, 768],
        r"1 to 4 positive ints; got \[0, 64\]",
    ),
    "a tile of fewer dimensions": (
        tiled(64),
        [64, 768],
        r"exp: tile shape \[64\] has 1 entries; \[64, 768\] needs at least 2",
    ),
    "no tile": (
        lambda: untiled,
        [64, 768],
        r"EXP at test_planned_calls.py:\d+: tile shape \[\] for 2 dimensions",
    ),
    "an empty tensor": (
        tiled(16, 64),
        [0, 768],
        r"kernel: x has the shape \[0, 768\]; a schedule takes a positive length",
    ),
    "a number of the data": (
        lambda: by_data,
        [64, 768],
        r"x\[0, 0\] at test_planned_calls.py:\d+ in by_data: it is known only when the kernel runs",
    ),
    "more than UB, of one operation": (
        lambda: read_twice,
        [64, 768],
        r"EXP \(test_planned_calls.py:(\d+)\) holds 196608 B of EXP \(test_planned_calls.py:\1\), "
        r"196608 B of COPY_IN for EXP \(test_planned_calls.py:\1\) in UB, which has 196608 B; a sm",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case: str) -> None:
    make, shape, wanted = BAD[case]
    kernel = make()
    given = [pypto.tensor(shape, each.dtype) for each in kernel.signature.tensors.values()]
    with pytest.raises(ValueError, match=wanted) as caught:
        kernel.schedule(*given)
    assert "\n" not in str(caught.value)


@pypto.frontend.jit
def small_factors(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    y[:] = x * 1e-7 + x * 2e-7


def test_numbers_of_the_same_six_decimals_are_one_to_the_plan() -> None:
    """Upstream's pass compares their text: 0.000000."""
    given = pypto.tensor([64, 768], pypto.DT_FP32)
    leaf = small_factors.schedule(given, given).leaves[0]
    factors = [each.scalar for each in leaf.operations if each.opcode == "MULS"]
    assert factors in ([1e-7], [2e-7])


Ragged = pypto.Tensor[[1, 2, 14, 73], pypto.DT_BF16]


@pypto.frontend.jit
def summed_ragged(x: Ragged, w: pypto.Tensor[[1, 2, 14, 1], pypto.DT_BF16], y: Ragged) -> None:
    pypto.set_vec_tile_shapes(2, 2, 4, 64)
    larger = pypto.abs(x)
    y[:] = (larger - pypto.sum(larger / w, 2, True)) * 1.5


def test_a_sum_of_a_whole_and_a_ragged_tile_is_copied_whole() -> None:
    """Rows 4 to 8 are summed with rows 12 to 14 into 4 rows; a plan that copied 2 ran as a fault.

    The wheel's dump copies 1x2x4x64 and 1x2x4x9 there.
    """
    given = arrays((1, 2, 14, 73), (1, 2, 14, 1), (1, 2, 14, 73))
    codes = [pypto.cast(pypto.from_numpy(each), pypto.DT_BF16).numpy() for each in given]
    schedule = summed_ragged.schedule(*codes)
    schedule.run(*codes)
    (body,) = schedule.bodies
    joined = [each for each in body.tasks if each.accesses[0].offset == (0, 0, 12, 0)]
    assert [access.shape for task in joined for access in task.accesses[-2:]][-2:] == [
        (1, 2, 4, 64),
        (1, 2, 4, 9),
    ]


# --- Loops: what is recorded once a path, and what tasks then do in each iteration --------------

Rows = pypto.Tensor[[pypto.DYNAMIC, 64], pypto.DT_FP32]


@pypto.frontend.jit
def unnamed_indices(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(x.shape[0] // 32):
        for j in pypto.loop(2):
            part = pypto.view(x, [16, 64], [i * 32 + j * 16, 0])
            pypto.assemble(part * 2.0, [i * 32 + j * 16, 0], y)


@pypto.frontend.jit
def row_before(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(x.shape[0] // 32):
        if i > 0:
            y[i * 32 : i * 32 + 32, :] = x[(i - 1) * 32 : i * 32, :] * 2.0
        else:
            y[i * 32 : i * 32 + 32, :] = x[i * 32 : i * 32 + 32, :] * 3.0


@pypto.frontend.jit
def from_the_second(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(1, x.shape[0] // 32):
        part = pypto.view(x, [32, 64], [i * 32, 0], valid_shape=[pypto.min(32, i * 32), 64])
        pypto.assemble(part * 2.0, [i * 32, 0], y)


@pypto.frontend.jit
def by_quotient(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(x.shape[0] // 32):
        if i > 0:
            part = pypto.view(x, [32, 64], [(1 // i) * 32, 0])
        else:
            part = pypto.view(x, [32, 64], [i * 32, 0])
        pypto.assemble(part * 2.0, [i * 32, 0], y)


@pypto.frontend.jit
def by_truths(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(x.shape[0] // 32):
        part = pypto.view(x, [32, 64], [i * 32, 0])
        if (i > 0) & (i < 2) | (i == 7):
            pypto.assemble(part * 2.0, [i * 32, 0], y)
        else:
            pypto.assemble(part * 3.0, [i * 32, 0], y)


@pypto.frontend.jit
def unrolled(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(x.shape[0] // 32, unroll_list=[4, 2, 1]):
        pypto.assemble(pypto.view(x, [32, 64], [i * 32, 0]) * 2.0, [i * 32, 0], y)


@pypto.frontend.jit
def first_part(x: Rows, y: Rows) -> None:
    """An output keeps what is not written; of 31 rows or fewer nothing is."""
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(x.shape[0] // 64):
        pypto.assemble(pypto.view(x, [32, 64], [i * 64, 0]) * 2.0, [i * 64, 0], y)


@pytest.mark.parametrize(
    "kernel",
    [
        unnamed_indices,
        row_before,
        from_the_second,
        by_quotient,
        by_truths,
        unrolled,
        first_part,
    ],
    ids=lambda kernel: kernel.__name__,
)
def test_every_iteration_is_planned_that_may_run(kernel: Kernel, executed: list[Schedule]) -> None:
    plans = set()
    for rows in (24, 64, 160):
        (x,), (y, expected) = arrays((rows, 64)), np.full((2, rows, 64), 7, np.float32)
        kernel(x, expected)
        with pypto.options(fidelity="instructions", strict=True):
            kernel(x, y)
        np.testing.assert_array_equal(y.view(np.uint8), expected.view(np.uint8))
        plans.add(executed[-1])
    assert len(executed) == 3
    assert len(plans) == 1


@pypto.frontend.jit
def counted(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    factor = 1.0
    for i in pypto.loop(x.shape[0] // 32):
        pypto.assemble(pypto.view(x, [32, 64], [i * 32, 0]) * factor, [i * 32, 0], y)
        factor = factor + 1.0


@pypto.frontend.jit
def counted_on_a_path(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    at = 0
    for i in pypto.loop(x.shape[0] // 32):
        part = pypto.view(x, [32, 64], [i * 32, 0])
        if i > 0:
            pypto.assemble(part * 2.0, [32 + at, 0], y)
            at = at + 32
        else:
            pypto.assemble(part * 3.0, [i * 32, 0], y)


@pypto.frontend.jit
def written_twice(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(x.shape[0] // 32):
        pypto.assemble(pypto.view(x, [32, 64], [i * 32, 0]) * 2.0, [i * 32, 0], y)
        pypto.assemble(pypto.view(x, [16, 64], [i * 32, 0]) * 3.0, [i * 32 + 8, 0], y)


@pypto.frontend.jit
def one_index(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(x.shape[0] // 32, idx_name="k"):
        for j in pypto.loop(2, idx_name="k"):
            part = pypto.view(x, [16, 64], [i * 32 + j * 16, 0])
            pypto.assemble(part * 2.0, [i * 32 + j * 16, 0], y)


@pypto.frontend.jit
def by_powers(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(x.shape[0] // 32):
        part = pypto.view(x, [32, 64], [i**2 * 32 // (i + 1 - i // (i + 1)) * 0, 0])
        pypto.assemble(part * 2.0, [i * 32, 0], y)


@pypto.frontend.jit
def too_long_for_none(x: Rows, y: Rows) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(x.shape[0] // 32):
        pypto.assemble(pypto.full([32, 64], 2.0, pypto.DT_FP32), [i * 32, 0], y)


@pypto.frontend.jit
def flipped(x: Rows, y: Rows) -> None:
    """After both paths the factor is again what it was before."""
    pypto.set_vec_tile_shapes(16, 64)
    factor = 2.0
    for i in pypto.loop(x.shape[0] // 32):
        part = pypto.view(x, [32, 64], [i * 32, 0])
        if i > 0:
            part = part + 1.0
        pypto.assemble(part * factor, [i * 32, 0], y)
        factor = -factor


NO_NUMBERS = np.zeros((1, 1), np.int32)


def of_lines(*lines: str) -> Kernel:
    """A kernel of lines behind its first tile shape."""
    text = """
import pypto_cast as pypto
Rows = pypto.Tensor[[pypto.DYNAMIC, 64], pypto.DT_FP32]
Numbers = pypto.Tensor[[...], pypto.DT_INT32]
@pypto.frontend.jit
def kernel(x: Rows, y: Rows, data: Numbers) -> None:
    pypto.set_vec_tile_shapes(16, 64)
"""
    text += "".join(f"    {line}\n" for line in lines)
    name = f"<lines {hash(lines)}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    found: dict[str, Any] = {}
    exec(compile(text, name, "exec"), found)
    kernel: Kernel = found["kernel"]
    return kernel


def doubled(target: str, at: str, source: str = "x", start: str = "i * 32") -> str:
    part = f"pypto.view({source}, [32, 64], [{start}, 0])"
    return f"    pypto.assemble({part} * 2.0, [{at}, 0], {target})"


EACH = "for i in pypto.loop(x.shape[0] // 32):"
WAITING = "for i in pypto.loop(x.shape[0] // 32, submit_before_loop=True):"
DECLARED = "t = pypto.tensor([x.shape[0], 64], pypto.DT_FP32)"
ROWS, KEPT = doubled("y", "i * 32"), doubled("t", "i * 32")
FROM_KEPT = doubled("y", "i * 32", "t")
ORDERED: Mapping[str, tuple[str, ...]] = {
    "written again, waiting": (EACH, ROWS, WAITING, ROWS),
    "read behind a loop, waiting": (DECLARED, EACH, KEPT, WAITING, FROM_KEPT),
    "read in the same iteration": (
        *(DECLARED, EACH, KEPT, "    for _ in pypto.loop(1):", f"    {FROM_KEPT}"),
    ),
    "written at rows from data": (EACH, doubled("y", "data[i, 0] * 32")),
}
UNORDERED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "written again": ("OUT .* writes elements of y .*OUT .* writes", (EACH, ROWS, EACH, ROWS)),
    "one place": ("OUT .* writes elements of y .*OUT .* writes", (EACH, doubled("y", "0"))),
    "overlapping": ("OUT .* writes elements of y .*OUT .* writes", (EACH, doubled("y", "i * 16"))),
    "read behind a loop": (
        "IN .* reads elements of a tensor that COPY_OUT .* writes",
        (DECLARED, EACH, KEPT, EACH, FROM_KEPT),
    ),
    "read before": (
        "OUT .* writes elements of x that COPY_IN .* reads",
        (EACH, ROWS, EACH, doubled("x", "i * 32", "y", "0")),
    ),
    "one place from data": (
        "OUT .* writes elements of y .*OUT .* writes",
        (EACH, doubled("y", "data[0, 0] * 32")),
    ),
    "two places of one iteration": (
        "OUT .* writes elements of y .*OUT .* writes",
        (EACH, ROWS, doubled("y", "data[i, 0] * 32")),
    ),
}


@pytest.mark.parametrize("case", [*ORDERED, *UNORDERED])
def test_iterations_are_planned_that_are_ordered_or_apart(
    case: str, executed: list[Schedule]
) -> None:
    """Two runs of a body are ordered by a result that one reads of the other, or by a barrier."""
    reason, lines = UNORDERED.get(case, ("", ORDERED.get(case, ())))
    kernel, n = of_lines(*lines), np.array([[2], [0], [1]], np.int32)
    (x,), (y, expected) = arrays((96, 64)), np.full((2, 96, 64), 7, np.float32)
    (again,) = arrays((96, 64))
    kernel(x, expected, n)
    with (
        pypto.options(fidelity="instructions"),
        pytest.warns(pypto.UnplannedKernelWarning, match=f"COPY_{reason} in another task")
        if reason
        else warnings.catch_warnings(),
    ):
        kernel(again, y, n)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(again, x)
    assert len(executed) == (not reason)


def test_a_row_of_a_view_behind_other_copies_has_its_own_extent() -> None:
    """Copies are numbered in the order of issue, those that an extent is calculated of too."""
    kernel = of_lines(
        "t = pypto.tensor([32, 64], pypto.DT_FP32)",
        EACH,
        "    p = pypto.view(x, [32, 64], [i * 32, 0])",
        "    t[:] = p * 1.0",
        "    pypto.set_vec_tile_shapes(8, 32)",
        "    p = p / (pypto.sum(pypto.abs(p * 2.0), -1, True) + 1.0)",
        "    pypto.assemble(t + p, [i * 32, 0], y)",
    )
    (x,), (y, expected) = arrays((72, 64)), np.full((2, 72, 64), 7, np.float32)
    kernel(x, expected, NO_NUMBERS)
    with pypto.options(fidelity="instructions", strict=True):
        kernel(x, y, NO_NUMBERS)
    np.testing.assert_array_equal(y, expected)


def test_each_length_of_an_unrolled_loop_waits() -> None:
    """As dumps of the wheel have it: upstream makes a loop of each."""
    waiting = WAITING.replace("32,", "32, unroll_list=[4, 2, 1],")
    schedule = of_lines(waiting, ROWS).schedule(*np.zeros((2, 96, 64), np.float32), NO_NUMBERS)
    assert [type(each) for each in schedule.steps] == [Barrier, Loop] * 3


def test_a_known_operand_of_min_is_last_as_in_dumps() -> None:
    kernel = of_lines("for i in pypto.loop(pypto.min(2, x.shape[0] // 32)):", ROWS)
    schedule = kernel.schedule(*np.zeros((2, 96, 64), np.float32), NO_NUMBERS)
    (loop,) = schedule.steps
    assert isinstance(loop, Loop)
    assert loop.end == ("min", ("div", ("extent", "x", 0), 32), 2)


def test_passes_through_nested_bodies_grow_with_the_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body runs three times, and those of the loops in it once more in two of the three."""
    counts, run = [], PlanTape.passes

    def counted_passes(tape: PlanTape, opened: LoopOpened) -> Iterator[None]:
        for each in run(tape, opened):
            counts[-1] += 1
            yield each

    monkeypatch.setattr(PlanTape, "passes", counted_passes)
    for depth in range(1, 5):
        lines = ["    " * k + f"for {'ijkl'[k]} in pypto.loop(2):" for k in range(depth)]
        counts.append(0)
        of_lines(*lines, "    " * (depth - 1) + doubled("y", "0")).tensor_graphs(
            *np.zeros((2, 96, 64), np.float32), NO_NUMBERS
        )
    assert counts == [3, 8, 15, 24]


def followed(before: str, body: str, factor: str) -> Kernel:
    """A kernel with a second loop that takes what the first left."""
    return of_lines(
        before,
        'for i in pypto.loop(x.shape[0] // 32, name="first"):',
        "    pypto.assemble(pypto.view(x, [16, 64], [i * 32, 0]) * 2.0, [i * 32, 0], y)",
        f"    {body}",
        "for j in pypto.loop(x.shape[0] // 32):",
        "    part = pypto.view(x, [16, 64], [j * 32 + 16, 0])",
        f"    pypto.assemble(part * {factor}, [j * 32 + 16, 0], y)",
    )


LEFT: Mapping[str, tuple[str, str, str]] = {
    "a count": ("n = 0", "n = n + 1", "float(n)"),
    "the index": ("", "", "1.5 + pypto.view(x, [16, 64], [i * 32, 0])"),
    "what one iteration sets": ("n = 1.0", "n = 2.0", "n"),
    "what one path sets": ("n = 1.0", "n = 2.0 if i > 1 else n", "n"),
    "what each path sets": ("n = 2.0", "n = 2.0 if i > 1 else 3.0", "n"),
    "a sign": ("n = 2.0", "n = -n", "n"),
    "a list": ("n = []", "n.append(i)", "float(len(n))"),
    "a quotient": ("n = 0", "n = n + 1", "(4.0 / n if x.shape[1] == 64 else 1.0)"),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_a_loop_leaves_to_names_is_not_planned(case: str, executed: list[Schedule]) -> None:
    kernel = followed(*LEFT[case])
    for rows in (32, 96):
        (x,), (y, expected) = arrays((rows, 64)), np.full((2, rows, 64), 7, np.float32)
        kernel(x, expected, NO_NUMBERS)
        with (
            pypto.options(fidelity="instructions"),
            pytest.warns(pypto.UnplannedKernelWarning, match="loop first: what follows it"),
        ):
            kernel(x, y, NO_NUMBERS)
        np.testing.assert_array_equal(y, expected)
    assert not executed


def test_loops_that_follow_each_other_are_planned(executed: list[Schedule]) -> None:
    """Names that both bodies assign before they use them, and one of before, are no matter."""
    kernel = followed("n, k = 3.0, 1.0", "part = i", "n + k")
    for rows in (24, 32, 96):
        (x,), (y, expected) = arrays((rows, 64)), np.full((2, rows, 64), 7, np.float32)
        kernel(x, expected, NO_NUMBERS)
        with pypto.options(fidelity="instructions", strict=True):
            kernel(x, y, NO_NUMBERS)
        np.testing.assert_array_equal(y, expected)
    assert len(executed) == 3


@pytest.mark.parametrize(
    ("kernel", "rows", "message"),
    [
        (counted, 64, r"loop loop: what its body does at test_planned_calls.py:\d+ in counted"),
        (flipped, 96, r"loop loop: what its body does at .*: a number or a tensor that"),
        (counted_on_a_path, 96, r"loop loop: what its body does at .*: a number or a tensor that"),
        (written_twice, 64, r"assemble at .*: writes what another part of y holds"),
        (one_index, 64, r"loop loop at .*: a loop around it has the index k too"),
        (by_powers, 64, r"a number by pow at .*: upstream has no such operator"),
        (too_long_for_none, 16, r"too_long_for_none: \[32, 64\] at \[0, 0\] do not fit"),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
@pytest.mark.filterwarnings("ignore::pypto_cast.UpstreamRefusalWarning")
def test_such_a_loop_runs_as_before(
    kernel: Kernel, rows: int, message: str, executed: list[Schedule]
) -> None:
    (x,), (y, expected) = arrays((rows, 64)), np.full((2, rows, 64), 7, np.float32)
    kernel(x, expected)
    with (
        pypto.options(fidelity="instructions"),
        pytest.warns(pypto.UnplannedKernelWarning, match=message),
    ):
        kernel(x, y)
    np.testing.assert_array_equal(y, expected)
    assert not executed


def test_an_argument_with_strides_warns_once(executed: list[Schedule]) -> None:
    x, y = np.ones((768, 64), np.float32).T, np.zeros((64, 768), np.float32)
    with (
        pypto.options(fidelity="instructions"),
        pytest.warns(pypto.UpstreamRefusalWarning, match="x is not contiguous") as given,
    ):
        scaled(x, y)
    assert len([each for each in given if "contiguous" in str(each.message)]) == 1
    assert len(executed) == 1
