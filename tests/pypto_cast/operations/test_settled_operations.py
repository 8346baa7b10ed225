"""An operation that was carried out on such operands before asks for nothing that is known."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.operations import elementwise_plan
from pypto_cast.recording.causes import WhatIf, applying
from pypto_cast.recording.recording import Recording, running
from pypto_cast.recording.steps import watching
from pypto_cast.unsupported import UpstreamRefusalWarning
from simulator.arithmetic.native import executor_library
from simulator.numbers import float_environment

D = pypto.STATIC
Rows = pypto.Tensor([D, D], pypto.DT_FP32)
needs_native = pytest.mark.skipif(
    not isinstance(executor_library.find(), executor_library.Executor),
    reason="counts are those of the native executor",
)


@pytest.fixture(autouse=True)
def _none_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise_plan, "_SETTLED", {})


def _tensor(seed: int = 0, dtype: str = "<f4") -> pypto.Tensor:
    random = np.random.default_rng(seed)
    values = random.integers(0, 1 << 32, (2, 64), np.uint32).view(np.float32)
    return pypto.from_numpy(np.where(np.isnan(values), 1, values).astype(dtype))


def _codes(x: pypto.Tensor) -> list[list[int]]:
    held = x.enclosure()
    assert held is not None
    return [each.view(np.uint32).tolist() for each in (held.values, held.low, held.high)]


def _calls(run: Callable[[], object]) -> int:
    """The calls of Python's functions in a third run."""
    run()
    run()
    found = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal found
        found += event == "call"

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


@needs_native
def test_few_functions_are_called() -> None:
    x, y = _tensor(), _tensor(1)
    assert _calls(lambda: pypto.add(x, y)) <= 19  # 72 where everything is asked again
    assert _calls(lambda: pypto.maximum(x, y)) <= 19
    assert _calls(lambda: pypto.exp(x)) <= 21  # 77
    one, other = (pypto.from_numpy(np.full((2, 64), k, np.float32)) for k in (5, 3))
    assert _calls(lambda: pypto.div(one, other)) <= 23


@pytest.mark.parametrize("engine", ["auto", "numpy"])
@pytest.mark.parametrize("trust", ["default", "documented"])
def test_the_bits_ends_and_places_are_those_of_the_first_time(engine: Any, trust: Any) -> None:
    x, y = _tensor(), _tensor(1)
    with pypto.options(engine=engine, trust=trust, vec_tile_shapes=(1, 16)):
        for run in (
            lambda: pypto.add(x, y),
            lambda: pypto.mul(x, x),
            lambda: pypto.mul(pypto.exp(x), 0.3),
            lambda: pypto.div(pypto.exp(x), pypto.exp(y)),
        ):
            first, *others = [run() for _ in range(3)]
            for other in others:
                assert _codes(other) == _codes(first)
                assert other.patches() == first.patches()
                assert (other.shape, other.dtype) == (first.shape, first.dtype)
    assert elementwise_plan._SETTLED


def test_integers_are_divided_as_the_first_time() -> None:
    for dtype in (np.int32, np.float32):
        x, y = (pypto.from_numpy(np.full((2, 16), k, dtype)) for k in (7, 2))
        for _ in range(3):
            quotient = pypto.div(x, y)
            assert quotient.dtype is pypto.DT_FP32
            assert (quotient.numpy() == 3.5).all()
            assert (pypto.maximum(x, y).numpy() == 7).all()


def test_a_square_is_not_taken_for_a_product() -> None:
    x, y = pypto.sin(_tensor()), pypto.sin(_tensor())
    pypto.mul(x, y)
    held = pypto.mul(x, x).enclosure()
    assert held is not None
    assert (held.low >= 0).all()


def test_a_square_is_not_taken_for_a_product_of_more_memory() -> None:
    x, y = (pypto.from_numpy(np.ones((128, 136), np.float32)) for _ in range(2))
    with pypto.options(vec_tile_shapes=(128, 136)):
        pypto.mul(x, x)
        pypto.mul(x, x)
        with pytest.raises(pypto.TileShapeError, match="take 208896 B of UB"):
            pypto.mul(x, y)


def test_what_fits_by_a_schedule_alone_is_checked_elsewhere() -> None:
    x, y = (pypto.from_numpy(np.ones((128, 136), np.float32)) for _ in range(2))
    with pypto.options(vec_tile_shapes=(128, 136)):
        with running(Recording(kernel="k", plan=lambda: None)):
            for _ in range(2):
                pypto.mul(x, y)
        with pytest.raises(pypto.TileShapeError, match="take 208896 B of UB"):
            pypto.mul(x, y)


def test_each_kernel_is_told_of_other_releases() -> None:
    with pypto.options(release="0.2.0", vec_tile_shapes=(1, 16)):
        x = pypto.cast(_tensor(), pypto.DT_FP16)
        for _ in range(3):
            with running(Recording(kernel="k")) as recording:
                pypto.add(x, x)
            assert list(recording.release_dependence.values()) == [pypto.DT_FP16]


def test_all_steps_of_a_chain_are_carried_out_again() -> None:
    x = pypto.from_numpy(np.full((2, 16), 3.0, np.float32))
    y = pypto.from_numpy(np.full((1, 16), 2.0, np.float32))
    for _ in range(3):
        assert np.isclose(pypto.expand_exp_dif(x, y).numpy(), np.e).all()


def test_a_unit_set_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    x = _tensor()
    pypto.add(x, x)
    monkeypatch.setattr(float_environment, "is_default", lambda: False)
    with pytest.raises(RuntimeError, match="floating-point unit"):
        pypto.add(x, x)


def test_what_ifs_and_watchers_are_told_each_time() -> None:
    x, seen = _tensor(), []
    pypto.exp(x)
    pypto.exp(x)
    what_if = WhatIf(operation="exp")
    with applying(what_if):
        held = pypto.exp(x).enclosure()
    assert held is not None
    assert what_if.matched == 1
    assert held.interval is None
    with watching(lambda call: seen.append(call.name)):
        pypto.exp(x)
    assert seen == ["exp"]
    with applying(WhatIf(operation="exp", rounded_to=pypto.DT_BF16)):
        rounded = pypto.exp(x).numpy().view(np.uint32)
    assert not (rounded & 0xFFFF).any()


def test_a_running_kernel_gets_every_step_and_error() -> None:
    x = _tensor()
    pypto.add(x, x)
    with running(Recording(kernel="k")) as recording:
        pypto.add(x, x)
        with pytest.raises(TypeError, match="add takes tensors of one dtype"):
            pypto.add(x, pypto.cast(x, pypto.DT_FP16))
    assert [step.name for step in recording.steps if hasattr(step, "name")] == ["add"]
    assert recording.steps[0].line == _line_of_add()


def test_calls_are_kept_and_nothing_is_computed_where_a_kernel_is_only_recorded() -> None:
    x = _tensor()
    elementwise_plan.elementwise("add", x, x)
    with running(Recording(kernel="k", calls=[])) as recording:
        elementwise_plan.elementwise("add", x, x)
    assert recording.calls is not None
    assert len(recording.calls) == 1
    with running(Recording(kernel="k", executes=False)):
        assert pypto.add(x, x).enclosure() is None


def test_elements_without_data_have_none_in_the_result() -> None:
    x = _tensor()
    pypto.add(x, x)
    part = pypto.view(x, [2, 64], [0, 0], valid_shape=[2, 10])
    for _ in range(2):
        assert pypto.add(part, part).valid_shape == [2, 10]
        assert pypto.add(x, part).valid_shape == [2, 10]


def test_elements_that_nobody_wrote_are_tracked() -> None:
    seen: list[bool] = []

    @pypto.jit
    def kernel(x: Rows, out: Rows) -> None:
        pypto.set_vec_tile_shapes(2, 64)
        pypto.add(x, x)
        held = pypto.tensor([2, 64], pypto.DT_FP32)
        held[0:1, :] = x[0:1, :]
        part = pypto.exp(held)
        for _ in range(2):
            seen.append(pypto.add(part, part).uninitialized() is not None)
        out[:] = x

    kernel(np.ones((2, 64), np.float32), np.zeros((2, 64), np.float32))
    assert seen == [True, True]


def test_a_tensor_that_was_moved_away_is_told_of() -> None:
    x = _tensor()
    with running(Recording(kernel="k")):
        pypto.add(x, x)
        x.move_away()
        with pytest.warns(UpstreamRefusalWarning, match="moved it"):
            pypto.add(x, x)


def test_few_settled_operations_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise_plan, "_MOST_PLANS", 4)
    for length in range(1, 20):
        x = pypto.from_numpy(np.ones((1, length), np.float32))
        assert pypto.add(x, x).numpy().tolist() == [[2.0] * length]
        assert len(elementwise_plan._SETTLED) == (length - 1) % 4 + 1


def _line_of_add() -> int:
    code = test_a_running_kernel_gets_every_step_and_error.__code__
    return code.co_firstlineno + 4


def test_what_a_kernel_wrote_is_read_as_it_is_now() -> None:
    @pypto.jit
    def kernel(x: Rows, out: Rows) -> None:
        out[:] = pypto.add(x, 1.0)
        for _ in range(3):
            out[0:1, :] = pypto.add(out[0:1, :], x[0:1, :])
            pypto.assemble(pypto.add(out, x), [0, 0], out)

    x, out = np.ones((2, 64), np.float32), np.zeros((2, 64), np.float32)
    kernel(x, out)
    assert out.tolist() == [[8.0] * 64, [5.0] * 64]


def test_numbers_of_the_other_byte_order_and_zeros_keep_their_bits() -> None:
    x, swapped = _tensor(), _tensor(dtype=">f4")
    expected = _codes(pypto.add(x, x))
    for _ in range(2):
        assert _codes(pypto.add(swapped, swapped)) == expected
    ones = pypto.from_numpy(np.full((1, 4), -0.0, np.float32))
    for number, sign in ((0.0, False), (-0.0, True), (0.0, False)):
        assert np.signbit(pypto.add(ones, number).numpy()).all() == sign
