"""Parts of a kernel's call give what the whole gives, or the call is not taken in parts."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from support.numbers.codes import SEED

import pypto_cast as pypto
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.views.row_groups import NotCutError
from pypto_cast.testing import judge
from pypto_cast.testing.part_judgement import PartedJudgement, PartJudge, needed_bytes
from pypto_cast.testing.row_parts import RowParts

ROWS, COLS, WIDE = 76, 64, 2048
ALLOWED_BYTES = 2_000_000
N = pypto.frontend.dynamic("N")
Open = pypto.Tensor[[N, COLS], pypto.DT_FP32]
Fixed = pypto.Tensor[[ROWS, COLS], pypto.DT_FP32]
Wide = pypto.Tensor[[N, WIDE], pypto.DT_FP32]
Bytes = pypto.Tensor[[ROWS, COLS], pypto.DT_INT8]
Row = pypto.Tensor[[1, COLS], pypto.DT_FP32]
Column = pypto.Tensor[[ROWS, 1], pypto.DT_FP32]
Turned = pypto.Tensor[[COLS, ROWS], pypto.DT_FP32]


@pypto.frontend.jit
def in_a_loop(x: Open, y: Open) -> None:
    pypto.set_vec_tile_shapes(4, COLS)
    for i in pypto.loop(x.shape[0] // 4):
        t = x[i * 4 : i * 4 + 4, :]
        e = pypto.exp(t - pypto.amax(t, -1, True))
        y[i * 4 : i * 4 + 4, :] = e / pypto.sum(e, -1, True)


@pypto.frontend.jit
def wide(x: Wide, y: Wide) -> None:
    pypto.set_vec_tile_shapes(4, WIDE)
    for i in pypto.loop(x.shape[0] // 4):
        y[i * 4 : i * 4 + 4, :] = pypto.exp(x[i * 4 : i * 4 + 4, :]) * 2.0


@pypto.frontend.jit
def wide_softmax(x: Wide, y: Wide) -> None:
    pypto.set_vec_tile_shapes(4, WIDE)
    e = pypto.exp(x - pypto.amax(x, -1, True))
    y[:] = e / pypto.sum(e, -1, True)


@pypto.frontend.jit
def wide_product(x: Wide, y: Wide) -> None:
    pypto.set_vec_tile_shapes(4, WIDE)
    y[:] = x * 2.0


@pypto.frontend.jit
def at_once(x: Fixed, y: Fixed) -> None:
    pypto.set_vec_tile_shapes(8, 32)
    e = pypto.exp(x)
    y[:] = e / pypto.sum(e, -1, True)


@pypto.frontend.jit
def cast_twice(x: Fixed, w: Row, y: Bytes, z: Fixed) -> None:
    pypto.set_vec_tile_shapes(8, 32)
    h = pypto.cast(x * w, pypto.DT_FP16, mode=pypto.CAST_RINT)
    y[0:] = pypto.cast(h, pypto.DT_INT8, mode=pypto.CAST_FLOOR)
    z[0:] = pypto.exp(x)


@pypto.frontend.jit
def column(x: Fixed, y: Column) -> None:
    pypto.set_vec_tile_shapes(8, 32)
    y[:] = pypto.sum(pypto.exp(x), -1, True)


@pypto.frontend.jit
def down_the_rows(x: Fixed, y: Fixed) -> None:
    pypto.set_vec_tile_shapes(8, 32)
    y[:] = x - pypto.sum(x, 0, True)


@pypto.frontend.jit
def turned(x: Turned, y: Fixed) -> None:
    pypto.set_vec_tile_shapes(8, 8)
    y[:] = pypto.transpose(x, 0, 1)


@pypto.frontend.jit
def so_many_rounds(x: Fixed, y: Fixed) -> None:
    pypto.set_vec_tile_shapes(4, COLS)
    for i in pypto.loop(ROWS // 4):
        y[i * 4 : i * 4 + 4, :] = x[i * 4 : i * 4 + 4, :] * 2.0


@pypto.frontend.jit
def by_its_index(x: Open, y: Open) -> None:
    pypto.set_vec_tile_shapes(4, COLS)
    for i in pypto.loop(x.shape[0] // 4):
        y[i * 4 : i * 4 + 4, :] = x[i * 4 : i * 4 + 4, :] * i


@pypto.frontend.jit
def by_its_rows(x: Fixed, y: Fixed) -> None:
    pypto.set_vec_tile_shapes(4, COLS)
    y[:] = x * float(x.shape[0])


@pypto.frontend.jit
def first_round_apart(x: Open, y: Open) -> None:
    pypto.set_vec_tile_shapes(4, COLS)
    for i in pypto.loop(x.shape[0] // 4):
        t = x[i * 4 : i * 4 + 4, :]
        if pypto.cond(i == 0):
            y[i * 4 : i * 4 + 4, :] = t * 2.0
        else:
            y[i * 4 : i * 4 + 4, :] = t * 3.0


@pypto.frontend.jit
def moved_by_its_rows(x: Fixed, y: Fixed) -> None:
    pypto.set_vec_tile_shapes(4, COLS)
    h = x * 2.0
    first, second = (4, 0) if x.shape[0] == ROWS else (0, 4)
    last = int(x.shape[0]) // 8 * 8
    for i in range(0, last, 8):
        y[i + first : i + first + 4, :] = h[i : i + 4, :]
        y[i + second : i + second + 4, :] = h[i + 4 : i + 8, :]
    if last < x.shape[0]:
        y[last:, :] = h[last:, :]


@pypto.frontend.jit
def added_by_its_rows(x: Fixed, w: Row, y: Fixed) -> None:
    pypto.set_vec_tile_shapes(4, COLS)
    e = pypto.exp(x)
    h = e * 2.0
    y[:] = (h - e if x.shape[0] == ROWS else e - h) * w


CUT = {"in_a_loop": in_a_loop, "at_once": at_once, "cast_twice": cast_twice, "column": column}
WIDES = {"wide": wide, "wide_softmax": wide_softmax, "wide_product": wide_product}
REFUSED = {
    "rows that depend on each other": (down_the_rows, "all its rows depend on each other"),
    "other rows than the output's": (turned, "has other tasks"),
    "rounds of a fixed number": (so_many_rounds, "has other tasks"),
    "the index of a round": (by_its_index, "is not planned"),
    "the number of rows": (by_its_rows, "has other tasks"),
    "elements moved by the number of rows": (moved_by_its_rows, "has other tasks"),
    "operands exchanged by it": (added_by_its_rows, "has other tasks"),
    "a round of its own": (first_round_apart, "has other tasks"),
}


def drawn(kernels: dict[str, Any], count: int) -> list[Any]:
    """Parameters of a test: so many by the seed in the ordinary run, the others exhaustive."""
    return [
        pytest.param(
            kernel,
            id=name,
            marks=[pytest.mark.exhaustive] * ((place - SEED) % len(kernels) >= count),
        )
        for place, (name, kernel) in enumerate(kernels.items())
    ]


def arguments_of(kernel: Any, rows: int = ROWS) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(SEED)
    found = []
    for name, of in kernel.signature.tensors.items():
        shape = [rows if not isinstance(n, int) else n for n in of.shape]
        dtype = np.int8 if of.dtype is pypto.DT_INT8 else np.float32
        is_input = name in "xw"
        found.append((rng.standard_normal(shape) * 40 * is_input).astype(dtype))
    return found


@pytest.mark.parametrize("kernel", drawn(CUT, 2))
def test_a_part_gives_what_the_whole_gives(kernel: Any) -> None:
    arguments = arguments_of(kernel)
    whole = kernel.certainty(*arguments)
    parts = RowParts(kernel, arguments, {})
    assert len(parts.groups) > 3
    covered = 0
    for first in range(0, len(parts.groups), 3):
        part = parts.part(first, min(first + 3, len(parts.groups)))
        begin, end = part.rows
        assert begin == covered
        covered = end
        found = part.bounds()
        for name in whole:
            for field in ("values", "low", "high"):
                cut, of = (getattr(each[name], field) for each in (found, whole))
                assert cut.tobytes() == of[begin:end].tobytes(), (name, field)
    assert covered == ROWS


@pytest.mark.parametrize(("kernel", "reason"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_not_called_in_parts(kernel: Any, reason: str) -> None:
    arguments = arguments_of(kernel)
    with pytest.raises((NotCutError, PlanError), match=reason):
        PartJudge(RowParts(kernel, arguments, {}), 1 << 17)


def judged(kernel: Any, results: dict[str, Any], allowed_bytes: int) -> PartedJudgement:
    parts = RowParts(kernel, arguments_of(kernel), {})
    return PartJudge(parts, allowed_bytes).judged(results, None)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", drawn(CUT, 1))
def test_elements_outside_have_the_places_of_the_whole(kernel: Any) -> None:
    whole = kernel.certainty(*arguments_of(kernel))
    results = {name: whole[name].values.copy() for name in whole}
    first = results[next(iter(results))]
    rows = [9, 50, 51, ROWS - 1]
    first[rows, 0] = -first[rows, 0] - 100
    found = judged(kernel, results, 1 << 17)
    assert found.parts > 1
    at_once = judge(results, bounds=whole)
    for one, other in zip(found.judgement.outputs, at_once.outputs, strict=True):
        assert (one.impossible, one.elems) == (other.impossible, other.elems)
        have, want = (
            {(each.tile, each.core, each.count) for each in judged_output.outside}
            for judged_output in (one, other)
        )
        assert have == want
    assert "[9, 0]: cannot be" in found.judgement.outputs[0].first
    assert not found.judgement.passes


def test_a_hypothesis_is_named_by_a_part() -> None:
    arguments = arguments_of(cast_twice)
    whole = cast_twice.certainty(*arguments)
    results = {name: whole[name].values.copy() for name in whole}
    x, w, *_ = arguments
    halves = (x * w).astype(np.float16).astype(np.float64)
    results["y"] = np.clip(np.trunc(halves), -128, 127).astype(np.int8)
    found = judged(cast_twice, results, 1 << 17)
    best, *_ = found.judgement.explanations
    assert best.hypotheses[0].startswith("CAST_TRUNC at test_row_parts.py:")
    assert best.explained == best.of
    assert "hypotheses are tried on rows" in found.note


@pytest.mark.slow
def test_a_golden_that_cannot_be_is_counted() -> None:
    whole = in_a_loop.certainty(*arguments_of(in_a_loop))
    right = {"y": whole["y"].values}
    wrong = {"y": right["y"].copy()}
    wrong["y"][40, 3] = 2
    parts = RowParts(in_a_loop, arguments_of(in_a_loop), {})
    found = PartJudge(parts, 1 << 17).judged(right, wrong).judgement
    (output,) = found.outputs
    assert (output.impossible, output.golden_impossible) == (0, 1)
    assert output.comparison is not None
    assert output.comparison.differing == 1


@pytest.mark.slow
def test_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \[75, 64\], bounds have \[76, 64\]"):
        judged(in_a_loop, {"y": np.zeros((ROWS - 1, COLS), np.float32)}, 1 << 17)


def test_less_memory_than_the_least_part() -> None:
    with pytest.raises(ValueError, match="B for the least of 19 parts; --memory allows 1,000 B"):
        PartJudge(RowParts(in_a_loop, arguments_of(in_a_loop), {}), 1000)


@pytest.mark.slow
def test_memory_is_that_of_a_part() -> None:
    peaks = []
    for rows in (64, 128):
        arguments = arguments_of(wide, rows)
        wide(*arguments)
        results = {"y": arguments[1]}
        judging = PartJudge(RowParts(wide, arguments, {}), ALLOWED_BYTES)
        values_and_ends = 3 * arguments[1].nbytes
        tracemalloc.start()
        try:
            judging.judged(results, None)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert max(peaks) <= ALLOWED_BYTES
    assert max(peaks) < values_and_ends / 2
    assert peaks[1] < peaks[0] * 1.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "kernel"),
    [
        *(pytest.param(16, *each.values, marks=each.marks, id=each.id) for each in drawn(WIDES, 1)),
        *(pytest.param(128, *each, marks=pytest.mark.exhaustive) for each in zip(WIDES.values())),
    ],
)
def test_the_memory_that_is_said_is_enough_and_not_three_times_as_much(
    rows: int, kernel: Any
) -> None:
    arguments = arguments_of(kernel, rows)
    result = kernel.certainty(*arguments)["y"].values.copy()
    result[5, :40] = -result[5, :40] - 1
    tracemalloc.start()
    try:
        bounds = kernel.certainty(*arguments)
        found = judge({"y": result}, bounds=bounds, run=lambda: kernel.certainty(*arguments))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not found.passes
    assert peak <= needed_bytes(kernel, arguments, {}) < 3 * peak
