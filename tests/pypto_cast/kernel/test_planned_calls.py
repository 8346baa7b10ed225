"""Calls at fidelity "instructions" that plan their schedule; bad input, and what fits in UB."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping

import ml_dtypes
import numpy as np
import pytest
from support.programs.planned_calls import arrays

import pypto_cast as pypto
from ascend_kernels.schedule.planner import kernel_plan
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.kernel.jit import Kernel
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
    pypto.set_vec_tile_shapes(64, 96)
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


def test_a_call_plans_its_schedule_and_executes_it(executed: list[Schedule]) -> None:
    x, y = arrays((64, 768), (64, 768))
    expected = y.copy()
    scaled(x, expected, 2.0)
    assert not executed

    kernel_plan.forget_plans()
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
    assert kernel_plan.plans_made() == 1

    with pypto.options(fidelity="instructions", chip="Ascend910B1"):
        scaled(x, y, 3.0)
    assert kernel_plan.plans_made() == 2
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
    wanted = r"turned runs cast by cast, not as a schedule: TOPK at test_planned_calls.py:\d+: rows"

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
            pytest.raises(pypto.PlanError, match=r"TOPK at test_planned_calls.py:\d+: rows of 768"),
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
def only_reshaped(x: Matrix, z: Floats96) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    z[:] = pypto.reshape(x, [96, 512])


@pypto.frontend.jit
def before_its_start(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    y[:32] = pypto.exp(x[:32, :])
    y[32:] = pypto.exp(x[32:, :])


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
def first_rows(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    y[0:40, :] = pypto.exp(x[0:40, :])


def test_a_kernel_keeps_what_it_does_not_write_and_its_schedule_alone_is_refused(
    executed: list[Schedule], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = arrays((64, 768), (64, 768))
    expected = y.copy()
    first_rows(x, expected)
    before = y.copy()
    schedule = first_rows.schedule(x, y)

    with monkeypatch.context() as patched:
        patched.setattr("ascend_kernels.schedule.schedule.run_tasks", None)  # nothing is executed
        text = r"first_rows writes 30720 of the 49152 elements of y, .* at \[40, 0\].*fidelity"
        with pytest.raises(pypto.SimulatorFault, match=text):
            schedule.run(x, y)
    np.testing.assert_array_equal(y, before)

    with pypto.options(fidelity="instructions"):
        first_rows(x, y)
    assert executed[1:] == [schedule]
    np.testing.assert_array_equal(y.view(np.uint8), expected.view(np.uint8))


@pypto.frontend.jit
def partly(x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    y[:] = pypto.exp(pypto.view(x, [64, 768], [0, 0], valid_shape=[40, 768]))


@pypto.frontend.jit
def joined(x: Row, y: Row, z: LongRow) -> None:
    pypto.set_vec_tile_shapes(64)
    z[:] = pypto.concat([x, y])


@pypto.frontend.jit
def around(x: Matrix, y: Matrix) -> None:
    scaled(x, y)


UNPLANNED: Mapping[Kernel, str] = {
    around: r"scaled at .*:\d+ in around: a kernel inside another is not planned",
    before_its_start: r"assignment at .*:\d+ in before_its_start: \[:32\] of axis 0 is assigned to",
    moved_twice: r"assignment at .*:\d+ in moved_twice: the value is y already",
    overlapping: r"assemble at .*:\d+ in overlapping: writes what another part of y holds",
    whole_after_part: r"assignment at .*:\d+ in whole_after_part: y has parts written before",
    turned_and_read: r"TRANSPOSE_MOVEOUT at .*:\d+: a result that lies in two tensors",
    powers: r"exp2 at .*:\d+ in powers: 0.2.0, .* refuses DT_FP32 of 1 dimensions",
    joined: r"concat at .*:\d+ in joined: 0.2.0, .* refuses DT_FP32 of 1 dimensions",
    quotient: r"div at .*:\d+ in quotient: 0.2.0, .* refuses DT_INT32 of 2 dimensions",
    partly: r"assignment at .*:\d+ in partly: of what y is given only \[40, 768\] hold data",
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


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_output_that_no_task_writes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As without the copy of an argument that is given back in another shape."""
    given = [pypto.tensor(shape, pypto.DT_FP32) for shape in ([64, 768], [96, 512])]
    kernel_plan.forget_plans()
    assert only_reshaped.schedule(*given).bodies[0].task_count == 12
    kernel_plan.forget_plans()
    monkeypatch.setattr(
        "ascend_kernels.schedule.planner.tiled_kernel.copy_given_back", lambda graph: graph
    )
    with pytest.raises(PlanError, match=r"RESHAPE at .*:\d+: gives z, which no task writes"):
        only_reshaped.schedule(*given)


Count = pypto.Tensor[[1], pypto.DT_INT32]


@pypto.frontend.jit
def repeated_by_data(x: Matrix, n: Count, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    y[:] = pypto.expand_clone(x[0:1, :], [n[0], 768])


def test_a_number_of_the_data_that_is_a_shape_refuses_the_plan_alone(
    executed: list[Schedule],
) -> None:
    (x,), n = arrays((64, 768)), np.full(1, 64, np.int32)
    expected, found = np.zeros((2, 64, 768), np.float32)
    repeated_by_data(x, n, expected)
    wanted = (
        r"; 0 stands for n\[0\] at test_planned_calls.py:\d+ in repeated_by_data, which is read"
    )
    with (
        pypto.options(fidelity="instructions"),
        pytest.warns(pypto.UnplannedKernelWarning, match=wanted),
    ):
        repeated_by_data(x, n, found)
    np.testing.assert_array_equal(found, expected)
    assert not executed


Wide = pypto.Tensor[[4, 4, 16, 384], pypto.DT_BF16]


@pypto.frontend.jit
def spilled_with_a_mask(x: Wide, z: pypto.Tensor[[4, 4, 1, 384], pypto.DT_BF16], y: Wide) -> None:
    pypto.set_vec_tile_shapes(2, 2, 16, 192)
    sizes = pypto.abs(x)
    moved = x + pypto.amin(sizes, 2, True)
    apart = moved - z
    larger = pypto.where(apart > moved, apart, moved)
    sizes * pypto.amax(apart, 1, True)
    y[:] = larger * 1.5


def test_a_task_has_memory_for_all_that_it_spills(executed: list[Schedule]) -> None:
    """Tensors of FP32 and a mask are spilled behind each other."""
    x, z, y = (
        array.astype(ml_dtypes.bfloat16)
        for array in arrays((4, 4, 16, 384), (4, 4, 1, 384), (4, 4, 16, 384))
    )
    expected = y.copy()
    with pypto.options(release="0.2.0", chip="Ascend910B1"):
        spilled_with_a_mask(x, z, expected)
        with pypto.options(fidelity="instructions"):
            spilled_with_a_mask(x, z, y)
    np.testing.assert_array_equal(y.view(np.uint16), expected.view(np.uint16))
    (schedule,) = executed
    spilled = {
        operand.format
        for task in schedule.bodies[0].tasks
        for operation in schedule.leaves[task.leaf or 0].operations
        for operand in (*operation.inputs, *operation.outputs)
        if operand.access is not None and not task.accesses[operand.access].tensor
    }
    assert {each.bits for each in spilled} == {1, 32}


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


@pypto.frontend.jit
def declared_by_data(n: Integers, x: Matrix, y: Matrix) -> None:
    pypto.set_vec_tile_shapes(16, 256)
    between = pypto.tensor([n[0, 0] + 64, 768], pypto.DT_FP32)
    between[:] = x + 1.0
    y[:] = between * 2.0


BAD: Mapping[str, tuple[Callable[[], Kernel], list[int], str]] = {
    "a tile of 0": (
        tiled(0, 64),
        [64, 768],
        r"1 to 5 positive ints; got \[0, 64\]",
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
    "a length of the data": (
        lambda: declared_by_data,
        [64, 768],
        r"tensor at test_planned_calls.py:\d+ in declared_by_data: its length "
        r"add\(n\[0, 0\], 64\) is read from data",
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


def test_an_argument_with_strides_warns_once(executed: list[Schedule]) -> None:
    x, y = np.ones((768, 64), np.float32).T, np.zeros((64, 768), np.float32)
    with (
        pypto.options(fidelity="instructions"),
        pytest.warns(pypto.UpstreamRefusalWarning, match="x is not contiguous") as given,
    ):
        scaled(x, y)
    assert len([each for each in given if "contiguous" in str(each.message)]) == 1
    assert len(executed) == 1
