"""Kernels as a whole: what they refuse, all or nothing, to look at."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import pickle
from typing import Any

import numpy as np
import pytest
from support.numbers.cast_arrays import converted, specials

import pypto_cast as pypto
from ascend_kernels import npu
from pypto_cast.testing import assert_bits_equal

ANY = pypto.Tensor[[], pypto.DT_FP32]

pytestmark = pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")


@pytest.fixture(autouse=True)
def _clean(pypto_sim: object) -> None:
    """Default options and no tile shape."""


# --- What the package does not do ----------------------------------------------------------------

ARITHMETIC: list[Any] = [
    lambda x: 2 % x,
    lambda x: 2**x,
    lambda x: x > 0,
    lambda x: x == x,
    lambda x: np.float32(2) * x,
    lambda x: np.multiply(x, 2),
    lambda x: np.asarray(x),
    lambda x: x.numpy(),
    lambda x: memoryview(x),
    lambda x: bool(x),
    lambda x: list(x),
    lambda x: float(x),
]


@pytest.mark.parametrize("arithmetic", ARITHMETIC, ids=range(len(ARITHMETIC)))
def test_arithmetic_is_refused(arithmetic: Any) -> None:
    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        out[:] = arithmetic(x)

    with pytest.raises(TypeError):
        kernel(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.numpy(),
        lambda x: x.elements(),
        lambda x: np.from_dlpack(x),
        pickle.dumps,
        copy.copy,
        lambda x: copy.deepcopy([x]),
    ],
)
def test_a_kernel_sees_no_values(read: Any) -> None:
    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        read(x)
        out[:] = x

    with pytest.raises(TypeError, match="a kernel does not see values"):
        kernel(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))


def test_the_text_of_a_tensor_shows_the_values_of_what_runs() -> None:
    texts = []

    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        made = pypto.full([1, 1], 7.0, pypto.DT_FP32)
        for each in (x, x[0:1], made):
            texts.extend((str(each), repr(each), f"{each}", each._repr_html_()))
        out[:] = x

    given = np.full((4, 4), 7, np.float32), np.ones((4, 4), np.float32)
    kernel(*given)
    assert len(texts) == 12
    assert all("7.0" in text for text in texts)
    shown = "[7.0, 7.0, 7.0, 7.0, 7.0, 7.0, ...]"
    assert texts[0] == f"Tensor(shape=[4, 4], dtype=DT_FP32, name='x', data={shown})"
    texts.clear()
    kernel.program(*given)
    assert len(texts) == 12
    assert not any("7.0" in text for text in texts)
    held = pypto.tensor([1, 1], data=[[7.0]])
    assert all("7.0" in text for text in (str(held), held._repr_html_(), str(copy.copy(held))))
    assert pickle.loads(pickle.dumps(held)).elements() == 7


def test_arithmetic_is_refused_in_words() -> None:
    with pytest.raises(TypeError, match="no operator mod of tensors here; pypto_cast has"):
        2 % pypto.tensor([4])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("konv3d_grad", "covers cast .* are in upstream pypto"),
        ("get_last_function", "a part of upstream's compiler"),
        ("shmem_put", "several devices"),
        ("exqp", "did you mean 'exp'"),
        ("cox", "did you mean 'cos'"),
        ("tahn", "did you mean 'tanh'"),
    ],
)
def test_a_missing_name_says_why(name: str, text: str) -> None:
    for owner in (pypto, pypto.tensor([4])):
        with pytest.raises(AttributeError, match=f"no '{name}'.*{text}"):
            getattr(owner, name)
        assert not hasattr(owner, name)


@pytest.mark.parametrize(
    ("module", "name", "text"),
    [
        ("experimental", "gather", "no 'gather'; pypto_cast covers"),  # not an import of it
        ("experimental", "online_sofmax", "did you mean 'online_softmax'"),
        ("pypto_impl", "TileL0Inf", "did you mean 'TileL0Info'"),
    ],
)
def test_a_module_proposes_the_names_that_it_offers(module: str, name: str, text: str) -> None:
    with pytest.raises(AttributeError, match=text):
        getattr(importlib.import_module(f"pypto_cast.{module}"), name)


def test_an_npu_that_is_not_there_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    @pypto.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def kernel(x: ANY, out: ANY) -> None:
        out[:] = x

    found = npu.Npu(run_mode=pypto.RunMode.SIM, reason="tested")
    monkeypatch.setattr(npu, "find", lambda: found)
    out = np.zeros(4, np.float32)
    kernel(np.ones(4, np.float32), out)
    assert out.all()
    with pytest.raises(ValueError, match="7 is not a valid RunMode"):
        pypto.jit(runtime_options={"run_mode": 7})(kernel)


# --- Nothing half done ---------------------------------------------------------------------------


def test_a_kernel_that_raises_leaves_its_outputs_alone() -> None:
    @pypto.jit
    def kernel(x: ANY, first: pypto.Tensor[[], pypto.DT_FP16], second: ANY, at: int) -> None:
        pypto.set_vec_tile_shapes(16)
        first[:] = pypto.cast(x, pypto.DT_FP16)
        for index in pypto.loop(8):
            second[index : index + 1] = x[index : index + 1]
            if index == at:
                raise ZeroDivisionError

    x, first, second = np.ones(8, np.float32), np.zeros(8, np.float16), np.zeros(8, np.float32)
    with pytest.raises(ZeroDivisionError):
        kernel(x, first, second, 3)
    assert not first.any()
    assert not second.any()
    kernel(x, first, second, 99)
    assert first.all()
    assert second.all()
    assert (x == 1).all()


def test_a_return_value_is_an_error_and_nothing_is_written() -> None:
    @pypto.jit
    def kernel(x: ANY, out: ANY) -> Any:
        out[:] = x
        return out

    out = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match=r"kernel returned .* writes its outputs in place"):
        kernel(np.ones(4, np.float32), out)
    assert not out.any()


def test_reading_an_output_gives_what_was_written() -> None:
    @pypto.jit
    def kernel(x: ANY, out: ANY, other: ANY) -> None:
        out[0:4] = x[4:8]
        other[:] = out

    x, out, other = np.arange(8, dtype=np.float32), np.full(8, 9, np.float32), np.zeros(8, "f4")
    kernel(x, out, other)
    assert other.tolist() == [4, 5, 6, 7, 9, 9, 9, 9]


def test_a_view_keeps_what_it_saw() -> None:
    @pypto.jit
    def kernel(x: ANY, swapped: ANY) -> None:
        low, high = swapped[0:4], swapped[4:8]
        swapped[0:4] = high
        swapped[4:8] = low

    both = np.arange(8, dtype=np.float32)
    kernel(np.zeros(8, np.float32), both)
    assert both.tolist() == [4, 5, 6, 7, 0, 1, 2, 3]


def test_tile_shapes_end_with_the_kernel_and_with_each_iteration() -> None:
    seen: list[list[int]] = []

    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        for index in pypto.loop(2):
            seen.append(pypto.get_vec_tile_shapes())
            pypto.set_vec_tile_shapes(index + 1)
        seen.append(pypto.get_vec_tile_shapes())
        pypto.set_vec_tile_shapes(64)
        out[:] = x

    pypto.set_vec_tile_shapes(7)
    kernel(np.zeros(8, np.float32), np.zeros(8, np.float32))
    assert seen == [[7], [7], [7]]
    assert pypto.get_vec_tile_shapes() == [7]


def test_warnings_point_at_the_line_of_the_kernel() -> None:
    @pypto.jit
    def kernel(x: ANY, out: pypto.Tensor[[], pypto.DT_INT32]) -> None:
        pypto.set_vec_tile_shapes(16)
        out[:] = pypto.cast(x, pypto.DT_INT32, mode=pypto.CAST_ODD)

    line = kernel.__wrapped__.__code__.co_firstlineno + 3
    with pytest.warns(pypto.CastModeWarning) as caught:
        kernel(np.zeros(16, np.float32), np.zeros(16, np.int32))
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, line)]
    with pypto.options(strict=True), pytest.raises(pypto.CastModeError):
        kernel(np.zeros(16, np.float32), np.zeros(16, np.int32))


# --- To look at ----------------------------------------------------------------------------------


@pypto.jit
def in_parts(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    for row in pypto.loop(0, x.shape[0], 32, name="ROWS", idx_name="row"):
        left = min(x.shape[0] - row, 32)
        part = pypto.view(x, [32, 64], [row, 0], valid_shape=[left, 64])
        pypto.assemble(pypto.cast(part, pypto.DT_FP16), [row, 0], out)


def test_a_kernel_shows_its_programs_and_computes_nothing() -> None:
    x, out = np.ones((70, 64), np.float32), np.zeros((70, 64), np.float16)
    program = in_parts.program(x, out)
    assert not out.any()
    assert [plan.shape for plan in in_parts.plan(x, out)] == [(32, 64), (32, 64), (6, 64)]
    assert [cast.loops for cast in program.casts] == [
        ("ROWS row=0",),
        ("ROWS row=32",),
        ("ROWS row=64",),
    ]
    assert len(program) == 3
    assert program[0] == program[1] != program[2]
    text = str(program)
    assert text.startswith("kernel in_parts: 3 casts, 2 different programs\n  2 x cast FP32 ->")
    assert "MTE2  DataCopyPad ub+0 <- gm.x+0  blocks=1 x 1536 B" in text
    declared = pypto.tensor([70, 64]), pypto.tensor([70, 64], pypto.DT_FP16)
    assert in_parts.program(*declared) == program


def test_an_estimate_names_its_cost_set_and_adds_up() -> None:
    x, out = np.ones((70, 64), np.float32), np.zeros((70, 64), np.float16)
    estimate = in_parts.estimate(x, out)
    assert estimate.cycles == sum(cycles for _, cycles in estimate.casts) > 0
    assert estimate.parameters.name in str(estimate)
    assert in_parts.estimate(x, out, cost="documented").cycles < estimate.cycles
    with pytest.raises(ValueError, match="unknown cost set 'guess'"):
        in_parts.estimate(x, out, cost="guess")


def test_an_estimate_counts_what_it_leaves_out() -> None:
    @pypto.jit
    def works(x: pypto.Tensor[[4, 64], pypto.DT_FP32], out: pypto.Tensor[[4, 64], pypto.DT_FP32]):
        pypto.set_vec_tile_shapes(4, 64)
        out[:] = pypto.exp(x) + x

    @pypto.jit
    def casts(x: pypto.Tensor[[4, 64], pypto.DT_FP32], out: pypto.Tensor[[4, 64], pypto.DT_FP16]):
        pypto.set_vec_tile_shapes(4, 64)
        out[:] = pypto.cast(x + x, pypto.DT_FP16)

    @pypto.jit
    def moves(x: pypto.Tensor[[4, 64], pypto.DT_FP32], out: pypto.Tensor[[4, 64], pypto.DT_FP32]):
        out[:] = x

    x, y = np.zeros((4, 64), np.float32), np.zeros((4, 64), np.float32)
    none, some = works.estimate(x, y), casts.estimate(x, y.astype(np.float16))
    assert (len(none.casts), none.uncounted, none.operations) == (0, 2, 2)
    assert np.isnan(none.cycles)
    assert np.isnan(none.seconds)
    assert str(none).startswith(
        "kernel works: no estimate, casts only: 0 of 2 operations, model loop, cost set"
    )
    assert "model tasks" in str(none)
    assert "estimate(..., model='tasks')" in str(none)
    assert "model=&#x27;tasks&#x27;" in none._repr_html_()
    assert some.cycles > 0
    assert (some.uncounted, some.operations) == (1, 2)
    assert " us, casts only: 1 of 2 operations, model loop, cost set" in str(some)
    assert np.isnan(moves.estimate(x, y).cycles)
    assert "casts only: 0 of 1 operation," in str(dataclasses.replace(none, uncounted=1))


@pytest.mark.parametrize("fidelity", ["fast", "instructions"])
def test_options_reach_the_casts_of_a_kernel(fidelity: Any) -> None:
    x, out = specials(pypto.DT_FP32, (70, 64)), np.zeros((70, 64), np.float16)
    with pypto.options(fidelity=fidelity, chip="Ascend910B1", inf_nan_mode=False):
        in_parts(x, out)
        assert in_parts.plan(x, out)[0].chip.name == "Ascend910B1"
        assert_bits_equal(out, converted(x, pypto.DT_FP16))
    assert not np.isinf(out).any()
