"""Intervals through tensors, outputs and casts, by assumption and by line."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.devices.certainties import interval_of

import pypto_cast as pypto

F32 = pypto.Tensor[[...], pypto.DT_FP32]
I8 = pypto.Tensor[[...], pypto.DT_INT8]
DATA = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)


@pytest.fixture(autouse=True)
def tile() -> Iterator[None]:
    with pypto.options(vec_tile_shapes=(4, 64)):
        yield


@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum"])
def test_what_is_assumed_exact_has_no_interval(name: str) -> None:
    x = pypto.from_numpy(DATA)
    assert interval_of(getattr(pypto, name)(x, x)) is None
    assert interval_of(x.sum(-1)) is None


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_documented_widens_the_rounding(name: str) -> None:
    x, y = pypto.from_numpy(DATA), pypto.from_numpy(DATA * 3)
    with pypto.options(trust="documented"):
        interval = interval_of(getattr(pypto, name)(x, y))
    assert interval is not None
    a, b = DATA.astype(np.float64), (DATA * 3).astype(np.float64)
    result = {"add": a + b, "sub": a - b, "mul": a * b}[name]  # each exact in float64
    assert interval.certain().tolist() == (result.astype(np.float32) == result).tolist()
    assert not interval.certain().all()
    assert interval_of(pypto.maximum(x, y)) is None


@pytest.mark.parametrize("columns", [16, 64])
def test_documented_takes_every_order_of_a_sum(columns: int) -> None:
    x = pypto.from_numpy(DATA)
    with pypto.options(trust="documented", vec_tile_shapes=(4, columns)):
        total = x.sum(-1)
    interval = interval_of(total)
    assert interval is not None
    rng = np.random.default_rng(1)
    for _ in range(50):
        other = np.zeros(4, np.float32)
        for k in rng.permutation(64):
            other += DATA[:, k]
        assert ((interval.low <= other) & (other <= interval.high)).all()


def test_ieee_trusts_quotients_and_roots() -> None:
    x = pypto.from_numpy(np.abs(DATA))
    for trust, is_open in (("default", True), ("ieee", False)):
        with pypto.options(trust=trust):
            assert (interval_of(x / 3) is not None) is is_open
            assert (interval_of(pypto.sqrt(x)) is not None) is is_open
            assert interval_of(pypto.exp(x)) is not None


def test_a_quotient_is_open_by_one_code() -> None:
    x = pypto.from_numpy(DATA)
    interval = interval_of(x / 3)
    assert interval is not None
    exact = DATA / np.float32(3)
    assert (interval.low == np.nextafter(exact, np.float32(-np.inf))).all()
    assert (interval.high == np.nextafter(exact, np.float32(np.inf))).all()


def test_a_cast_collapses_it() -> None:
    x = pypto.from_numpy(DATA)
    narrow = pypto.cast(x / 3, pypto.DT_BF16)
    interval = interval_of(narrow)
    assert interval is None or interval.certain().mean() > 0.9


@pytest.mark.parametrize("dtype", [pypto.DT_INT32, pypto.DT_INT8, pypto.DT_BF16], ids=str)
def test_other_bits_of_an_open_element_may_be_any(dtype: pypto.DataType) -> None:
    data = np.array([[1.0] * 32 + [3.0] * 32], np.float32)
    x = pypto.from_numpy(data)
    halves = pypto.where(x == 1.0, x, x / 7)
    bits = pypto.view(halves, dtype=dtype).enclosure()
    assert bits is not None
    assert bits.interval is not None
    share = bits.values.shape[-1] // 2
    certain = bits.certain()[0]
    assert certain[:share].all()
    assert not certain[share:].any()
    assert bits.interval.contains(bits.values, dtype.format).all()
    other = np.nextafter(halves.numpy(), np.float32(9)).view(bits.values.dtype)
    assert bits.interval.contains(other, dtype.format)[0, share:].all()


def test_bf16_keeps_it_behind_the_rounding() -> None:
    x = pypto.cast(pypto.from_numpy(DATA), pypto.DT_BF16)
    quotient = x / 3
    hidden = quotient.hidden()
    assert hidden is not None
    assert hidden.interval is not None
    assert not hidden.certain().any()


@pypto.jit
def quantised(x: F32, out: I8, scales: F32) -> None:
    pypto.set_vec_tile_shapes(4, 64)
    for row in pypto.loop(2):
        part = pypto.view(x, [2, 64], [2 * row, 0])
        most = pypto.maximum(pypto.amax(pypto.abs(part), -1, True), 1e-12)
        scale = pypto.div(pypto.full([2, 1], 127.0, pypto.DT_FP32), most)
        whole = pypto.cast(part * scale, pypto.DT_INT32, pypto.CAST_RINT)
        half = pypto.cast(whole, pypto.DT_FP16, pypto.CAST_RINT)
        pypto.assemble(pypto.cast(half, pypto.DT_INT8, pypto.CAST_TRUNC), [2 * row, 0], out)
        pypto.assemble(scale, [2 * row, 0], scales)


def test_certainty_of_a_kernel() -> None:
    out, scales = np.zeros((4, 64), np.int8), np.zeros((4, 1), np.float32)
    found = quantised.certainty(DATA, out, scales)
    assert list(found) == ["out", "scales"]
    assert not out.any()
    assert not scales.any()
    assert not found["scales"].certain.any()
    (cause,) = found.causes
    assert cause.operation == "div"
    assert cause.file == __file__
    source, first = inspect.getsourcelines(quantised._function)
    assert "pypto.div(" in source[cause.line - first]
    quantised(DATA, out, scales)
    assert (found["out"].values == out).all()
    assert (found["scales"].values == scales).all()


def test_an_undecided_quantised_result_lies_between_two_codes() -> None:
    """127 / 127 * 0.5 is a tie, which a quotient one code away decides otherwise."""
    data = np.zeros((4, 64), np.float32)
    data[:, 0], data[:, 1] = 127.0, 0.5
    out, scales = np.zeros((4, 64), np.int8), np.zeros((4, 1), np.float32)
    found = quantised.certainty(data, out, scales)["out"]
    assert found.certain.sum() == 4 * 63
    assert (found.low[:, 1] == 0).all()
    assert (found.high[:, 1] == 1).all()


def test_an_operation_in_a_loop_is_one_cause() -> None:
    @pypto.jit
    def kernel(x: F32, out: F32) -> None:
        pypto.set_vec_tile_shapes(1, 64)
        for row in pypto.loop(4):
            out[row : row + 1] = x[row : row + 1] / 3

    found = kernel.certainty(DATA, np.zeros_like(DATA))
    assert list(found.causes.values()) == [DATA.size]


def test_certainty_is_undone_by_an_exact_write() -> None:
    @pypto.jit
    def kernel(x: F32, out: F32) -> None:
        pypto.set_vec_tile_shapes(4, 64)
        out[:] = x / 3
        out[0:2] = x[0:2] + 1.0

    found = kernel.certainty(DATA, np.zeros_like(DATA))["out"]
    assert found.certain[:2].all()
    assert not found.certain[2:].any()
    assert (found.low[:2] == DATA[:2] + 1).all()


def test_a_failed_inner_kernel_restores_the_interval() -> None:
    @pypto.jit
    def inner(x: F32, out: F32) -> None:
        out[:] = x + 1.0
        raise KeyError

    @pypto.jit
    def kernel(x: F32, out: F32) -> None:
        pypto.set_vec_tile_shapes(4, 64)
        out[:] = x / 3
        with pytest.raises(KeyError):
            inner(x, out)

    found = kernel.certainty(DATA, np.zeros_like(DATA))["out"]
    assert not found.certain.any()
    assert (found.values == DATA / np.float32(3)).all()


def test_certainty_inside_a_kernel_is_refused() -> None:
    @pypto.jit
    def kernel(x: F32, out: F32) -> None:
        quantised.certainty(x, out, out)

    with pytest.raises(RuntimeError, match="outside kernels only"):
        kernel(DATA, np.zeros_like(DATA))


def test_a_tensor_from_outside_keeps_its_cause() -> None:
    outside = pypto.from_numpy(DATA) / 3

    @pypto.jit
    def kernel(x: F32, out: F32) -> None:
        pypto.set_vec_tile_shapes(4, 64)
        out[:] = outside + x

    (cause,) = kernel.certainty(DATA, np.zeros_like(DATA)).causes
    assert (cause.operation, cause.file) == ("div", __file__)


def test_composites_stand_at_the_line_that_asks() -> None:
    @pypto.jit
    def kernel(x: F32, out: F32) -> None:
        pypto.set_vec_tile_shapes(4, 64)
        out[:] = pypto.softmax(x, -1)

    causes = kernel.certainty(DATA, np.zeros_like(DATA)).causes
    assert {cause.file for cause in causes} == {__file__}
    assert {cause.operation for cause in causes} <= {"exp", "div"}


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(-12, 12))
def test_perturbed_quotients_lie_inside(seed: int, exponent: int) -> None:
    """A softmax whose quotients and exponentials are off by codes is one that can be."""
    rng = np.random.default_rng(seed)
    data = (rng.standard_normal((4, 64)) * 2.0**exponent).astype(np.float32)

    @pypto.jit
    def kernel(x: F32, out: F32) -> None:
        pypto.set_vec_tile_shapes(4, 64)
        shifted = pypto.exp(x - pypto.amax(x, -1, True))
        out[:] = shifted / pypto.sum(shifted, -1, True)

    found = kernel.certainty(data, np.zeros_like(data))["out"]
    shifted = nudged(rng, np.exp((data - data.max(-1, keepdims=True)).astype(np.float64)), 2)
    total = shifted.copy()
    while total.shape[-1] > 1:
        total = total[:, 0::2] + total[:, 1::2]
    result = nudged(rng, shifted.astype(np.float64) / total, 1)
    assert ((found.low <= result) & (result <= found.high)).all()


def nudged(rng: np.random.Generator, exact: Any, most: int) -> Any:
    codes = exact.astype(np.float32).view(np.int32)
    shift = rng.integers(-most, most, codes.shape, np.int32, endpoint=True)
    return np.where((codes > most) & (exact != 1), codes + shift, codes).astype(np.int32).view("f4")
