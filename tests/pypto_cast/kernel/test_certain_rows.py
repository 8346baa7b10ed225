"""The choices of certain elements, found row by row by the native executor: those of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.numbers.codes import SEED

import pypto_cast as pypto
from pypto_cast.dtypes.data_types import numpy_dtype
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.recording.recording import Recording
from simulator.arithmetic.native import (
    deferred_intervals,
    executor_library,
    guarded_steps,
    node_program,
)

ROWS, COLUMNS = 96, 160
_D = pypto.STATIC
_Fp32 = pypto.Tensor([_D, _D], pypto.DT_FP32)
_Bf16 = pypto.Tensor([_D, _D], pypto.DT_BF16)
_Bool = pypto.Tensor([_D, _D], pypto.DT_BOOL)
_Int32 = pypto.Tensor([_D, _D], pypto.DT_INT32)

pytestmark = [
    pytest.mark.filterwarnings("ignore::pypto_cast.UpstreamRefusalWarning"),
    pytest.mark.skipif(
        executor_library.in_use().name == "numpy", reason="the native executor is not built"
    ),
]


@pypto.jit
def normed(x: _Fp32, out: _Fp32) -> None:
    """Few elements are certain."""
    out[:] = pypto.rms_norm(x)


@pypto.jit
def gated(x: _Fp32, out: _Bf16) -> None:
    """Nearly all are, and some of them rest on choices."""
    out[:] = pypto.cast(pypto.mul(x, pypto.sigmoid(x)), pypto.DT_BF16)


@pypto.jit
def compared(x: _Fp32, out: _Bool) -> None:
    """Truths, of one byte each."""
    out[:] = pypto.gt(pypto.exp(x), pypto.mul(x, 1.5))


@pypto.jit
def counted(x: _Fp32, out: _Int32) -> None:
    """Integers of what is rounded."""
    out[:] = pypto.cast(pypto.mul(pypto.exp(x), 8.0), pypto.DT_INT32, pypto.CastMode.CAST_RINT)


@pypto.jit
def both(x: _Fp32, first: _Fp32, second: _Bf16) -> None:
    """Two outputs that share steps, of which other rows are certain."""
    shared = pypto.mul(pypto.exp(x), 0.7)
    first[:] = pypto.mul(shared, shared)
    second[:] = pypto.cast(shared, pypto.DT_BF16)


@pypto.jit
def exact_rows(x: _Fp32, out: _Fp32) -> None:
    """Exact in rows of few bits."""
    out[:] = pypto.add(pypto.mul(x, 3.0), 1.0)


def _numbers() -> np.ndarray[Any, np.dtype[np.float32]]:
    x = np.random.default_rng(SEED).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    x[7] = np.round(x[7])
    x[40:43] = np.round(x[40:43] * 4) / 4
    return x


DTYPES = {
    **{normed: (pypto.DT_FP32,), gated: (pypto.DT_BF16,), compared: (pypto.DT_BOOL,)},
    **{counted: (pypto.DT_INT32,), both: (pypto.DT_FP32, pypto.DT_BF16)},
    exact_rows: (pypto.DT_FP32,),
}


def _found(kernel: Any, x: Any, engine: Any, threads: int = 1) -> Certainty:
    outputs = [np.zeros(x.shape, numpy_dtype(dtype)) for dtype in DTYPES[kernel]]
    pypto.set_vec_tile_shapes(16, COLUMNS)
    with pypto.options(engine=engine, threads=threads):
        found: Certainty = kernel.certainty(x, *outputs)
    return found


def _same(found: Certainty, expected: Certainty) -> None:
    assert found.counts == expected.counts
    for one, other in zip(found.outputs, expected.outputs, strict=True):
        is_open = ~other.certain
        for name in ("values", "low", "high", "certain", "by_documents"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
        np.testing.assert_array_equal(one.cause[is_open], other.cause[is_open])
        np.testing.assert_array_equal(
            np.where(is_open, 0, one.choices), np.where(is_open, 0, other.choices)
        )


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that were needed of each program for choices."""
    found: list[int] = []
    compute_rows = node_program.compute_rows

    def noted(result: Any, checks: Any, needed: Any) -> Any:
        found.append(ROWS if needed is None else int(needed.sum()))
        return compute_rows(result, checks, needed)

    monkeypatch.setattr(deferred_intervals, "compute_rows", noted)
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kernel", DTYPES, ids=lambda kernel: str(kernel.signature.kernel))
def test_choices_are_those_of_numpy(kernel: Any, threads: int, programs: list[int]) -> None:
    x = _numbers()
    expected = _found(kernel, x, "numpy")
    assert not programs
    _same(_found(kernel, x, "native", threads), expected)
    assert len(programs) == len(DTYPES[kernel])


def test_rows_without_a_certain_element_are_left_out(programs: list[int]) -> None:
    x = _numbers()
    found = _found(normed, x, "native")
    rows, told = found[0].certain.any(axis=-1), found[0].certain_rows
    assert told is not None
    assert told[rows].all()  # those of a block of rows are told together
    assert programs == [np.count_nonzero(told)]
    assert 0 < programs[0] < ROWS


def test_nothing_runs_again_where_no_element_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[bool] = []
    outputs = Recording.outputs

    def noted(recording: Recording, besides: Any = ()) -> Any:
        runs.append(recording.by_documents)
        return outputs(recording, besides)

    monkeypatch.setattr(Recording, "outputs", noted)
    x = np.random.default_rng(SEED).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    found = _found(normed, x + np.float32(0.001), "native")
    certain = int(found[0].certain.sum())
    assert runs == ([False, True] if certain else [False])


@pytest.mark.parametrize("strange", [np.nan, np.inf, 2.0**-140, 3e38])
def test_elements_without_a_rule_are_numpys(strange: float) -> None:
    """Some in rows that are certain, some in others."""
    for row in (7, 60):
        x = _numbers()
        x[row, 5] = strange
        for kernel in (exact_rows, gated):
            _same(_found(kernel, x, "native"), _found(kernel, x, "numpy"))


def test_many_stretches_of_rows_are_one(programs: list[int]) -> None:
    x = _numbers()
    x[::2] = np.round(x[::2] * 2) / 2
    x = np.concatenate([x, x])
    assert np.diff(np.arange(len(x)) % 2).any()
    _same(_found(exact_rows, x, "native"), _found(exact_rows, x, "numpy"))
    runs = node_program._runs(np.arange(200) % 2 == 0)
    assert runs == [(0, 199)]
    assert node_program._runs(np.array([False, True, True, False, True])) == [(1, 3), (4, 5)]


@pypto.jit
def moved(x: _Fp32, out: _Fp32) -> None:
    """Nothing is computed."""
    out[:] = x


def test_values_are_not_in_the_arrays_of_the_caller() -> None:
    x, out = _numbers(), np.zeros((ROWS, COLUMNS), np.float32)
    for kernel in (moved, gated, normed):
        out = np.zeros((ROWS, COLUMNS), numpy_dtype(DTYPES.get(kernel, (pypto.DT_FP32,))[0]))
        found = kernel.certainty(x, out)
        for array in (x, out):
            assert not np.shares_memory(found[0].values, array)
        assert not out.view(np.uint8).any()


def test_choices_are_looked_for_in_blocks_with_an_open_element(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    skipped: list[int] = []
    find_guarded = guarded_steps.find_guarded

    def noted(*given: Any) -> Any:
        found = find_guarded(*given)
        skipped.extend(count for _last, _guard, count in found.values())
        return found

    monkeypatch.setattr(guarded_steps, "find_guarded", noted)
    x = np.random.default_rng(SEED).standard_normal((ROWS, 4096)).astype(np.float32)
    found, expected = _found(gated, x, "native"), _found(gated, x, "numpy")
    assert max(skipped) > 8  # the steps of all choices
    rests = found[0].certain & (found[0].choices != 0)
    blocks = rests.reshape(-1, 2048).any(axis=-1)
    assert blocks.any()
    assert not blocks.all()
    _same(found, expected)
