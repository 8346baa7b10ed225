"""Kernels with loops at fidelity "instructions".

A body is recorded once a path; tasks then do what each iteration does.
"""

from __future__ import annotations

import contextlib
import linecache
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from support.programs.planned_calls import arrays

import pypto_cast as pypto
from ascend_kernels.schedule.parts import Barrier, Loop
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.views.schedule_differences import differences
from pypto_cast.kernel.jit import Kernel
from pypto_cast.recording.plan_tape import LoopOpened, PlanTape

pytestmark = pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")
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


@pytest.mark.parametrize("after", [False, True])
def test_a_view_has_the_rows_that_a_pass_around_it_gave(after: bool) -> None:
    """The rest of the last 32 rows is not written, so that a view of all of them is a fault."""
    part = "    pypto.assemble(pypto.view(t, [32, 64], [0, 0]) + 1.0, [i * 32, 0], y)"
    inner = ["    for _ in pypto.loop(2):", "        t[:] = t * 2.0"]
    kernel = of_lines(
        "rows = x.shape[0]",
        "t = pypto.tensor([32, 64], pypto.DT_FP32)",
        "for i in pypto.loop(pypto.ceildiv(rows, 32)):",
        "    held = [(rows - i * 32).min(32), 64]",
        "    t[:] = pypto.exp(pypto.view(x, [32, 64], [i * 32, 0], valid_shape=held))",
        *(inner if after else ["    for _ in pypto.loop(1):", f"    {part}"]),
        *([part] if after else []),
    )
    schedule = kernel.schedule(*np.zeros((2, 40, 64), np.float32), NO_NUMBERS)
    shapes = [x.shape for x in schedule.bodies[-1].tasks[0].accesses]
    assert shapes[0] == shapes[1]
    assert not isinstance(shapes[0][0], int)


@pytest.mark.parametrize(("place", "leaves"), [("i * 32", 1), ("0", 2)])
def test_bodies_share_leaves_whose_numbers_are_known_alike(place: str, leaves: int) -> None:
    """As dumps of the wheel have it: a place that a loop decides is no known one."""
    kernel = of_lines(
        EACH,
        "    part = pypto.view(x, [32, 64], [i * 32, 0], valid_shape=[32, 64])",
        "    pypto.assemble(pypto.exp(part), [i * 64, 0], y)",
        EACH,
        f"    part = pypto.view(x, [32, 64], [{place}, 0], valid_shape=[32, 64])",
        "    pypto.assemble(pypto.exp(part), [i * 64 + 32, 0], y)",
    )
    schedule = kernel.schedule(*np.zeros((2, 64, 64), np.float32), NO_NUMBERS)
    assert len(schedule.leaves) == leaves


def test_a_view_of_extents_that_the_same_body_calculates_is_simplified() -> None:
    kernel = of_lines(
        EACH,
        "    part = pypto.exp(pypto.view(x, [32, 64], [i * 32, 0]))",
        "    part = pypto.view(part, [16, 64], [16, 0])",
        "    pypto.assemble(part + 1.0, [i * 16, 0], y)",
    )
    schedule = kernel.schedule(*np.zeros((2, 64, 64), np.float32), NO_NUMBERS)
    (text,) = schedule.simplified
    assert "kept as a tile operation" in text


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
        (counted, 64, r"loop loop: what its body does at test_planned_loops.py:\d+ in counted"),
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


@pytest.mark.parametrize(
    ("end", "misplaced"),
    [
        ("y.shape[0]", ""),
        ("x.shape[0]", r"\[:extent\(x, 0\)\] of axis 0 .* puts it at that less extent\(y, 0\)"),
        ("(i + 3) * 32", r"\[:mul\(add\(idx, 3\), 32\)\] of axis 0 .* less extent\(y, 0\)"),
    ],
)
def test_a_slice_without_a_start_is_planned_where_it_ends_with_its_tensor(
    end: str, misplaced: str, executed: list[Schedule]
) -> None:
    """Upstream puts it at its end less the length (python/pypto/tensor.py:506 of r0.2.0)."""
    whole = "    y[:{}] = pypto.exp(pypto.view(x, [96, 64], [0, 0]))"
    kernel = of_lines("for i in pypto.loop(x.shape[0] // 96):", whole.format(end))
    (x,), (y, expected) = arrays((96, 64)), np.full((2, 96, 64), 7, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pypto.UpstreamRefusalWarning)
        kernel(x, expected, NO_NUMBERS)
        with (
            pypto.options(fidelity="instructions"),
            pytest.warns(pypto.UnplannedKernelWarning, match=f"assignment at .*: {misplaced}")
            if misplaced
            else contextlib.nullcontext(),
        ):
            kernel(x, y, NO_NUMBERS)
    np.testing.assert_array_equal(y, expected)
    assert bool(executed) is not bool(misplaced)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ("{}.reshape([32, 64]) * 2.0", "{} * 2.0"),
        ("pypto.exp({}).reshape([32, 64]) * 2.0", "pypto.exp({}) * 2.0"),
        ("(pypto.exp({}) * 2.0).reshape([-1, 64])", "pypto.exp({}) * 2.0"),
        ("{0}.reshape([32, 64]) + {0}.reshape([-1, 64])", "{0} + {0}"),
    ],
)
def test_a_reshape_to_the_shape_that_is_there_plans_nothing(value: str, plain: str) -> None:
    """Upstream returns the operand (interface/operation/operation_impl.cpp:1294 of r0.2.0)."""
    schedules = []
    for each in (value, plain):
        result = each.format("pypto.view(x, [32, 64], [i * 32, 0])")
        kernel = of_lines(EACH, f"    pypto.assemble({result}, [i * 32, 0], y)")
        given = (pypto.tensor([96, 64], pypto.DT_FP32) for _ in range(2))
        schedules.append(kernel.schedule(*given, NO_NUMBERS))
    assert differences(*schedules) == ()


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        (32, "x[i * 32 : i * 32 + 32, :]"),
        (32, "pypto.view(x, [32, 64], [i * 32, 0])"),
        (16, "x[i * 16 : i * 16 + 16, :]"),
        (32, "pypto.exp(x[i * 32 : i * 32 + 32, :])"),
        (16, "pypto.view(pypto.exp(x[i * 32 : i * 32 + 32, :]), [16, 64], [16, 0])"),
    ],
)
def test_the_rows_of_an_argument_are_copied_in_tiles(
    rows: int, value: str, executed: list[Schedule]
) -> None:
    """As what is computed is, by the tile shape, [16, 64]."""
    part = f"    y[i * {rows} : i * {rows} + {rows}, :] = {value}"
    kernel = of_lines(f"for i in pypto.loop(x.shape[0] // {rows} // 2):", part)
    (x,), (y, expected) = arrays((96, 64)), np.full((2, 96, 64), 7, np.float32)
    kernel(x, expected, NO_NUMBERS)
    with pypto.options(fidelity="instructions", strict=True):
        kernel(x, y, NO_NUMBERS)
    np.testing.assert_array_equal(y, expected)
    (schedule,) = executed
    operands = {x for leaf in schedule.leaves for each in leaf.operations for x in each.outputs}
    assert {x.shape for x in operands if x.buffer is not None} == {(16, 64)}
    assert not any("copies of arguments" in x for x in schedule.simplified)
