"""Iterations carried out together give the bits, intervals and records of each by itself."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.kernel import loop_replay, loops
from pypto_cast.recording.recording import Recording
from pypto_cast.recording.steps import origin_of

D = pypto.STATIC
Rows = pypto.Tensor([D, D], pypto.DT_FP32)
Halves = pypto.Tensor([D, D], pypto.DT_BF16)
_COUNT, _LENGTH = 12, 24
_BEFORE: list[int] = []


@pypto.jit
def softmax(x: Rows, y: Rows, out: Rows) -> None:
    pypto.set_vec_tile_shapes(1, 16)
    for i in pypto.loop(12):
        row = pypto.view(x, [1, 24], [i, 0])
        powers = pypto.exp(pypto.sub(row, pypto.amax(row, -1, True)))
        pypto.assemble(pypto.div(powers, pypto.sum(powers, -1, True)), [i, 0], out)


@pypto.jit
def blocks_by_slices(x: Rows, y: Rows, out: Rows) -> None:
    pypto.set_vec_tile_shapes(4, 16)
    for block in pypto.loop(6, name="blocks", idx_name="b"):
        start = block * 2
        part = x[start : start + 2, 0:8] * 0.5 - y[start : start + 2, 8:16]
        out[start : start + 2, 3:11] = pypto.maximum(part, x[block * 2 : 2 * block + 2, 1:9])


@pypto.jit
def beside_a_row(x: Rows, y: Rows, out: Rows) -> None:
    pypto.set_vec_tile_shapes(2, 16)
    weight = pypto.view(y, [1, 24], [0, 0])
    for i in pypto.loop(1, 12):
        out[i : i + 1, :] = pypto.mul(pypto.sqrt(pypto.abs(x[i : i + 1, 0:24])), weight)


@pypto.jit
def in_a_declared_tensor(x: Rows, y: Rows, out: Rows) -> None:
    pypto.set_vec_tile_shapes(3, 16)
    kept = pypto.tensor([12, 24], pypto.DT_FP32)
    for i in pypto.loop(12):
        pypto.assemble(pypto.log(pypto.view(y, [1, 24], [i, 0])), [i, 0], kept)
    out[:] = pypto.add(kept, x)


@pypto.jit
def rounded(x: Rows, y: Rows, out: Rows) -> None:
    pypto.set_vec_tile_shapes(2, 16)
    for i in pypto.loop(0, 12, 2):
        narrow = pypto.cast(pypto.view(x, [2, 24], [i, 0]), pypto.DT_BF16)
        total = pypto.add(pypto.exp(narrow), narrow)
        pypto.assemble(pypto.cast(total, pypto.DT_FP32), [i, 0], out)


@pypto.jit
def inside_a_loop(x: Rows, y: Rows, out: Rows) -> None:
    pypto.set_vec_tile_shapes(2, 16)
    for k in pypto.loop(2, name="half"):
        for i in pypto.loop(6):
            out[6 * k + i : 6 * k + i + 1, :] = pypto.exp(x[6 * k + i : 6 * k + i + 1, :])


@pypto.jit
def composed(x: Rows, y: Rows, out: Rows) -> None:
    pypto.set_vec_tile_shapes(2, 16)
    for i in pypto.loop(12):
        row = pypto.softmax(pypto.view(x, [1, 24], [i, 0]), dim=1)
        part = pypto.view(y, [1, 24], [i, 0])
        found = pypto.mul(pypto.rms_norm(part, epsilon=1e-5), pypto.sigmoid(row))
        pypto.assemble(found, [i, 0], out)


@pypto.jit
def composed_of_halves(x: Rows, y: Rows, out: Rows) -> None:
    pypto.set_vec_tile_shapes(2, 16)
    for i in pypto.loop(0, 12, 2):
        row = pypto.softmax(pypto.cast(pypto.view(y, [2, 24], [i, 0]), pypto.DT_FP16), -1)
        pypto.assemble(pypto.cast(row, pypto.DT_FP32), [i, 0], out)


AnyRows = pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32)


@pypto.jit
def of_any_length(x: AnyRows, y: AnyRows, out: AnyRows) -> None:
    pypto.set_vec_tile_shapes(1, 16)
    for i in pypto.loop(x.shape[0]):
        row = pypto.view(x, [1, 24], [i, 0])
        pypto.assemble(pypto.mul(row, pypto.neg(row)), [i, 0], out)


STRAIGHT = [
    of_any_length,
    softmax,
    blocks_by_slices,
    beside_a_row,
    in_a_declared_tensor,
    rounded,
    inside_a_loop,
    composed,
    composed_of_halves,
]


@dataclass
class _Seen:
    """Runs of iterations that were carried out together, and the recordings of kernels."""

    runs: list[int]
    recordings: list[Recording]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> _Seen:
    found = _Seen(runs=[], recordings=[])
    together, commit = loop_replay.Replay.together, Recording.commit

    def counted(self: Any, rounds: Sequence[Any], first: int) -> Any:
        found.runs.append(len(rounds))
        return together(self, rounds, first)

    def kept(self: Recording) -> Any:
        found.recordings.append(self)
        return commit(self)

    monkeypatch.setattr(loop_replay.Replay, "together", counted)
    monkeypatch.setattr(Recording, "commit", kept)
    return found


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(loops, "_replay", lambda *_: None)


def _given(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    codes = random.integers(0, 1 << 32, (_COUNT, _LENGTH), np.uint32).view(np.float32)
    numbers = random.standard_normal((_COUNT, _LENGTH)).astype(np.float32)
    x = np.where(random.random(codes.shape) < 0.3, codes, numbers).astype(np.float32)
    return x, numbers, np.zeros_like(x)


def _codes(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint32)


@pytest.mark.parametrize("engine", ["auto", "numpy"])
@pytest.mark.parametrize("kernel", STRAIGHT, ids=lambda kernel: kernel.__name__)
def test_a_call_writes_and_records_the_same(
    kernel: Any, engine: Any, seen: _Seen, one_by_one: Callable[[], None]
) -> None:
    x, y, together = _given()
    by_itself = together.copy()
    with pypto.options(engine=engine):
        kernel(x, y, together)
        assert seen.runs
        one_by_one()
        count = len(seen.runs)
        kernel(x, y, by_itself)
    assert len(seen.runs) == count
    np.testing.assert_array_equal(_codes(together), _codes(by_itself))
    first, second = seen.recordings
    assert list(map(str, first.steps)) == list(map(str, second.steps))
    assert list(first.steps) == list(second.steps)
    assert origin_of(together) == origin_of(by_itself)
    assert [x.writes for x in first.buffers] == [x.writes for x in second.buffers]
    assert first.causes.all() == second.causes.all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("trust", ["default", "documented"])
@pytest.mark.parametrize("kernel", STRAIGHT, ids=lambda kernel: kernel.__name__)
def test_certainty_is_the_same(
    kernel: Any, trust: Any, seen: _Seen, one_by_one: Callable[[], None]
) -> None:
    with pypto.options(trust=trust):
        together = kernel.certainty(*_given(1))
        assert seen.runs
        one_by_one()
        by_itself = kernel.certainty(*_given(1))
    for one, other in zip(together.outputs, by_itself.outputs, strict=True):
        for name in ("values", "low", "high"):
            np.testing.assert_array_equal(
                _codes(getattr(one, name)), _codes(getattr(other, name)), err_msg=name
            )
        assert one.writes == other.writes
        assert one.counts == other.counts
        is_open = _codes(one.low) != _codes(one.high)
        np.testing.assert_array_equal(one.cause[is_open], other.cause[is_open])
    assert str(together) == str(by_itself)


def test_many_iterations_are_shared_out(seen: _Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_replay, "_MOST_ELEMS", 4 * _LENGTH)
    x, y, out = _given()
    softmax(x, y, out)
    assert seen.runs == [4, 4]  # of 12, less the first two, one that is left over, and the last
    expected = out.copy()
    monkeypatch.setattr(loop_replay, "_MOST_ELEMS", 1 << 20)
    softmax(x, y, out)
    assert seen.runs == [4, 4, 9]
    np.testing.assert_array_equal(_codes(out), _codes(expected))


@pypto.jit
def steered(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(12):
        row = x[i : i + 1, :]
        if i == 5:
            row = pypto.exp(row)
        out[i : i + 1, :] = pypto.add(row, row)


@pypto.jit
def chosen(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(12):
        out[i : i + 1, :] = pypto.mul(x[i : i + 1, :], 2.0 if i > 3 else 1.0)


@pypto.jit
def printing(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(12):
        print("row", int(i))
        out[i : i + 1, :] = pypto.exp(x[i : i + 1, :])


@pypto.jit
def down_columns(x: Rows, y: Rows, out: Rows) -> None:
    pypto.set_vec_tile_shapes(2, 16)
    for i in pypto.loop(0, 12, 2):
        out[i : i + 2, :] = pypto.softmax(x[i : i + 2, :], 0)


@pypto.jit
def appending(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(12):
        _BEFORE.append(int(i))
        out[i : i + 1, :] = pypto.exp(x[i : i + 1, :])


@pypto.jit
def carrying(x: Rows, y: Rows, out: Rows) -> None:
    total = x[0:1, :]
    for i in pypto.loop(12):
        total = pypto.add(total, x[i : i + 1, :])
        out[i : i + 1, :] = total


@pypto.jit
def by_number(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(12):
        out[i : i + 1, :] = pypto.mul(x[i : i + 1, :], i)


@pypto.jit
def squared(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(6):
        at = i * i - 4 * i + 6
        out[i : i + 1, :] = pypto.exp(x[at : at + 1, :])


@pypto.jit
def overlapping(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(10):
        out[i : i + 2, :] = pypto.exp(x[i : i + 2, :])


@pypto.jit
def reading_its_output(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(11):
        out[i + 1 : i + 2, :] = pypto.add(out[i : i + 1, :], x[i : i + 1, :])


@pypto.jit
def writing_twice(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(11):
        out[i : i + 1, :] = pypto.exp(x[i : i + 1, :])
        out[i + 1 : i + 2, :] = pypto.abs(x[i : i + 1, :])


@pypto.jit
def along_columns(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(12):
        out[:, i : i + 1] = pypto.exp(x[:, i : i + 1])


@pypto.jit
def enumerated(x: Rows, y: Rows, out: Rows) -> None:
    for k, i in enumerate(pypto.loop(12)):
        out[i : i + 1, :] = pypto.exp(x[k : k + 1, :])


@pypto.jit
def with_functions(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(12):
        out[i : i + 1, :] = _twice(x[i : i + 1, :])


def _twice(x: pypto.Tensor) -> pypto.Tensor:
    return pypto.add(x, x)


@pypto.jit
def with_a_tile_shape(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(12):
        pypto.set_vec_tile_shapes(1, 8)
        out[i : i + 1, :] = pypto.exp(x[i : i + 1, :])


@pypto.jit
def with_tall_operands(x: Rows, y: Rows, out: Rows) -> None:
    same = pypto.view(y, [2, 24], [0, 0])
    for i in pypto.loop(6):
        out[2 * i : 2 * i + 2, :] = pypto.add(x[2 * i : 2 * i + 2, :], same)


@pypto.jit
def with_breakpoints(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(12):
        breakpoint()
        out[i : i + 1, :] = pypto.exp(x[i : i + 1, :])


@pypto.jit
def unrolled(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(12, unroll_list=[2, 1]):
        out[i : i + 1, :] = pypto.exp(x[i : i + 1, :])


@pypto.jit
def few(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(loops.LEAST_ROUNDS - 1):
        out[i : i + 1, :] = pypto.exp(x[i : i + 1, :])


@pypto.jit
def warning(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(12):  # no tile shape is set: each sum warns
        out[i : i + 1, 0:1] = pypto.sum(x[i : i + 1, :], -1, True)


@functools.wraps(pypto.exp)
def wrapped(x: pypto.Tensor) -> pypto.Tensor:
    return pypto.exp(x)


@pypto.jit
def of_a_wrapper(x: Rows, y: Rows, out: Rows) -> None:
    for i in pypto.loop(12):
        out[i : i + 1, :] = wrapped(x[i : i + 1, :])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "kernel",
    [
        of_a_wrapper,
        steered,
        chosen,
        printing,
        appending,
        carrying,
        by_number,
        squared,
        overlapping,
        reading_its_output,
        writing_twice,
        along_columns,
        down_columns,
        enumerated,
        with_functions,
        with_a_tile_shape,
        with_tall_operands,
        unrolled,
        few,
        warning,
    ],
    ids=lambda kernel: kernel.__name__,
)
def test_other_bodies_run_one_by_one(kernel: Any, seen: _Seen) -> None:
    kernel(*_given())
    assert not seen.runs


def test_python_sees_every_iteration_that_prints(
    seen: _Seen, capsys: pytest.CaptureFixture[str]
) -> None:
    printing(*_given())
    assert capsys.readouterr().out.splitlines() == [f"row {i}" for i in range(12)]


def test_a_debugger_stops_in_every_iteration(seen: _Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[int] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stops.append(1))
    with_breakpoints(*_given())
    assert len(stops) == 12
    assert not seen.runs


def test_a_trace_function_sees_every_iteration(seen: _Seen) -> None:
    lines: list[int] = []
    code = softmax.__wrapped__.__code__

    def trace(frame: Any, event: str, _: object) -> Any:
        if frame.f_code is not code:
            return None
        if event == "line":
            lines.append(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        softmax(*_given())
    finally:
        sys.settrace(before)
    assert not seen.runs
    assert lines.count(code.co_firstlineno + 4) == 12


def test_a_trace_function_that_comes_in_the_loop_is_seen(
    seen: _Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = iter([False, True])
    monkeypatch.setattr(loop_replay, "is_watched", lambda _: next(watched))
    softmax(*_given())
    assert not seen.runs


def test_a_monitoring_tool_is_seen(seen: _Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = {0: "debugger"}
    monitoring = SimpleNamespace(get_tool=tools.get)
    monkeypatch.setattr(sys, "monitoring", monitoring, raising=False)
    softmax(*_given())
    assert not seen.runs
    tools.clear()
    softmax(*_given())
    assert seen.runs


def test_names_are_those_of_the_last_iteration(seen: _Seen) -> None:
    left: dict[str, Any] = {}

    @pypto.jit
    def naming(x: Rows, out: Rows) -> None:
        for i in pypto.loop(12):
            row = pypto.exp(x[i : i + 1, :])
            out[i : i + 1, :] = row
        left.update(index=int(i), shape=list(row.shape))
        out[11:12, :] = pypto.add(row, row)

    x, _, out = _given()
    naming(x, out)
    assert seen.runs == [9]
    assert left == {"index": 11, "shape": [1, _LENGTH]}


def test_a_kernel_that_fails_after_the_loop_writes_nothing(seen: _Seen) -> None:
    @pypto.jit
    def failing(x: Rows, out: Rows) -> None:
        for i in pypto.loop(12):
            out[i : i + 1, :] = pypto.exp(x[i : i + 1, :])
        raise KeyError("after")

    x, _, out = _given()
    with pytest.raises(KeyError):
        failing(x, out)
    assert seen.runs
    assert not out.any()


def test_the_work_of_python_does_not_grow_with_the_iterations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pypto_cast.operations import elementwise_functions

    calls: list[int] = []
    elementwise = elementwise_functions.elementwise

    def counted(*given: Any, **named: Any) -> Any:
        calls.append(1)
        return elementwise(*given, **named)

    monkeypatch.setattr(elementwise_functions, "elementwise", counted)

    @pypto.jit
    def rows(x: Rows, out: Rows) -> None:
        pypto.set_vec_tile_shapes(1, 8)
        for i in pypto.loop(x.shape[0]):
            out[i : i + 1, :] = pypto.exp(x[i : i + 1, :])

    counts = []
    for count in (8, 64, 512):
        calls.clear()
        x = np.ones((count, 8), np.float32)
        rows(x, np.zeros_like(x))
        counts.append(len(calls))
    assert counts == [4, 4, 4]
