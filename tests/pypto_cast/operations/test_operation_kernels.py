"""Kernels as they are written: each against a reference in float64 or in numpy's float32."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.testing import assert_possible

BF16 = np.dtype(ml_dtypes.bfloat16)
FP32 = np.dtype(np.float32)
ROWS, COLUMNS = 8, 64

A_FP32 = pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_FP32]
A_BF16 = pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16]
A_INT8 = pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_INT8]
SCALES = pypto.Tensor[[pypto.DYNAMIC, 1], pypto.DT_FP32]
GAMMA = pypto.Tensor[[COLUMNS], pypto.DT_BF16]


def numbers(seed: int, dtype: np.dtype = FP32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((ROWS, COLUMNS)).astype(FP32).astype(dtype)


def tree(x: np.ndarray) -> np.ndarray:
    """The order of a row of 64 elements: neighbours, then neighbouring sums."""
    while x.shape[-1] > 1:
        x = x[..., 0::2] + x[..., 1::2]
    return x


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(FP32)


def near(found: np.ndarray, exact: np.ndarray, ulps: int) -> bool:
    """True where results lie within some codes of exact ones rounded to their format."""
    kind = {2: np.int16, 4: np.int32}[found.dtype.itemsize]

    def order(x: np.ndarray) -> np.ndarray:
        codes = np.ascontiguousarray(x).view(kind).astype(np.int64)
        return np.where(codes < 0, np.iinfo(kind).min - codes, codes)

    return bool(
        (np.abs(order(found) - order(exact.astype(FP32).astype(found.dtype))) <= ulps).all()
    )


def test_int8_per_token_and_back() -> None:
    @pypto.jit
    def quantised(x: A_FP32, out: A_INT8, scales: SCALES) -> None:
        pypto.set_vec_tile_shapes(4, COLUMNS)
        for step in pypto.loop(x.shape[0] // 4):
            rows = pypto.view(x, [4, COLUMNS], [step * 4, 0])
            most = pypto.amax(pypto.abs(rows), -1, True)
            scale = pypto.div(pypto.full([4, 1], 127.0, pypto.DT_FP32), most)
            whole = pypto.cast(rows * scale, pypto.DT_INT32, pypto.CAST_RINT)
            half = pypto.cast(whole, pypto.DT_FP16, pypto.CAST_RINT)
            pypto.assemble(pypto.cast(half, pypto.DT_INT8, pypto.CAST_TRUNC), [step * 4, 0], out)
            pypto.assemble(1.0 / scale, [step * 4, 0], scales)

    x = numbers(1)
    out, scales = np.zeros((ROWS, COLUMNS), np.int8), np.zeros((ROWS, 1), FP32)
    quantised(x, out, scales)
    scale = np.float32(127) / np.abs(x).max(-1, keepdims=True)
    assert (out == np.rint(x * scale)).all()
    assert (scales == np.float32(1) / scale).all()

    @pypto.jit
    def restored(x: A_INT8, scales: SCALES, out: A_BF16) -> None:
        pypto.set_vec_tile_shapes(4, COLUMNS)
        numbers = pypto.cast(pypto.cast(x, pypto.DT_FP16), pypto.DT_FP32)
        out[:] = pypto.cast(numbers * scales, pypto.DT_BF16)

    back = np.zeros((ROWS, COLUMNS), BF16)
    restored(out, scales, back)
    assert (back.view(np.uint16) == (wide(out) * scales).astype(BF16).view(np.uint16)).all()


@pytest.mark.parametrize("axis", [-1, -2])
@pytest.mark.parametrize("has_zero_points", [False, True])
def test_quantize_and_dequantize(axis: int, has_zero_points: bool) -> None:
    x = numbers(2)
    shape = (ROWS,) if axis == -1 else (COLUMNS,)
    rng = np.random.default_rng(3)
    scale = rng.uniform(20, 90, shape).astype(FP32)
    zero = rng.integers(100, 150, shape).astype(FP32) if has_zero_points else None
    otype = pypto.DT_UINT8 if has_zero_points else pypto.DT_INT8
    along = (slice(None), None) if axis == -1 else (None, slice(None))
    scaled = x * scale[along]
    if zero is not None:
        scaled = scaled + zero[along]
    least, most = (0, 255) if has_zero_points else (-128, 127)
    with pypto.options(vec_tile_shapes=(8, 64)):
        points = None if zero is None else pypto.from_numpy(zero)
        factors = pypto.from_numpy(scale)
        found = pypto.quantize(pypto.from_numpy(x), factors, otype, axis, points)
    assert found.dtype is otype
    assert (found.numpy() == np.clip(np.rint(scaled), least, most)).all()

    codes = rng.integers(-128, 128, (ROWS, COLUMNS)).astype(np.int8)
    with pypto.options(vec_tile_shapes=(8, 64)):
        back = pypto.dequantize(pypto.from_numpy(codes), factors, pypto.DT_FP32, axis, points)
    shifted = wide(codes) if zero is None else wide(codes) - zero[along]
    assert (back.numpy() == shifted * scale[along]).all()


def test_quantize_refuses() -> None:
    x = pypto.from_numpy(numbers(2))
    row = pypto.from_numpy(np.ones(ROWS, FP32))
    with pypto.options(vec_tile_shapes=(8, 64)):
        with pytest.raises(TypeError, match="gives DT_INT8 without zero_points, not DT_UINT8"):
            pypto.quantize(x, row, pypto.DT_UINT8, -1)
        with pytest.raises(pypto.ShapeError, match=r"have shape \[64\], not \[8\]"):
            pypto.quantize(x, row, pypto.DT_INT8, -2)
        with pytest.raises(ValueError, match="last axis or the one before, not -3 of 2"):
            pypto.quantize(x, row, pypto.DT_INT8, -3)
        with pytest.raises(TypeError, match="dequantize gives DT_FP32"):
            pypto.dequantize(pypto.cast(x, pypto.DT_INT16), row, pypto.DT_BF16, -1)


def rms_reference(x: np.ndarray, gamma: np.ndarray, epsilon: float) -> np.ndarray:
    squares = tree(x * x * np.float32(1 / COLUMNS))
    return x / np.sqrt(squares + np.float32(epsilon)) * gamma


def test_rms_norm_and_quantisation() -> None:
    @pypto.jit
    def kernel(x: A_BF16, gamma: GAMMA, out: A_INT8) -> None:
        pypto.set_vec_tile_shapes(4, COLUMNS)
        normed = pypto.cast(pypto.rms_norm(x, gamma, 1e-5), pypto.DT_FP32)
        most = pypto.amax(pypto.abs(normed), -1, True)
        whole = pypto.cast(normed * (127.0 / most), pypto.DT_INT32, pypto.CAST_RINT)
        out[:] = pypto.cast(pypto.cast(whole, pypto.DT_FP16), pypto.DT_INT8)

    x, gamma = numbers(4, BF16), numbers(5, BF16)[0]
    out = np.zeros((ROWS, COLUMNS), np.int8)
    kernel(x, gamma, out)
    normed = wide(rms_reference(wide(x), wide(gamma), 1e-5).astype(BF16))
    scale = np.float32(1) / np.abs(normed).max(-1, keepdims=True) * np.float32(127)
    assert (out == np.rint(normed * scale)).all()


def test_softmax() -> None:
    x = numbers(6)
    shifted = x - x.max(-1, keepdims=True)
    powers = np.exp(shifted.astype(np.float64)).astype(FP32)
    with pypto.options(vec_tile_shapes=(4, COLUMNS)):
        found = pypto.softmax(pypto.from_numpy(x), -1).numpy()
        assert (found == powers / tree(powers)).all()
        half = pypto.softmax(pypto.from_numpy(x.astype(BF16)), 1)
    assert half.dtype is pypto.DT_BF16
    exact = np.exp(x.astype(BF16).astype(np.float64))
    assert near(half.numpy(), exact / exact.sum(-1, keepdims=True), 1)


def test_sigmoid() -> None:
    x = numbers(7) * 8
    found = pypto.sigmoid(pypto.from_numpy(x)).numpy()
    below = np.exp(-x.astype(np.float64)).astype(FP32) + np.float32(1)
    assert (found == np.float32(1) / below).all()


def test_swiglu() -> None:
    @pypto.jit
    def kernel(gate: A_BF16, up: A_BF16, out: A_BF16) -> None:
        pypto.set_vec_tile_shapes(4, COLUMNS)
        x = pypto.cast(gate, pypto.DT_FP32)
        below = pypto.exp(x * -1.0) + 1.0
        swish = x * (pypto.full(below.shape, 1.0, pypto.DT_FP32) / below)
        out[:] = pypto.cast(swish * pypto.cast(up, pypto.DT_FP32), pypto.DT_BF16)

    gate, up = numbers(8, BF16), numbers(9, BF16)
    out = np.zeros((ROWS, COLUMNS), BF16)
    kernel(gate, up, out)
    exact = gate.astype(np.float64) / (1 + np.exp(-gate.astype(np.float64))) * up.astype(np.float64)
    assert near(out, exact, 1)


def test_rope() -> None:
    """Products and sums of BF16 keep FP32 until concat takes them."""
    half = COLUMNS // 2
    angles = pypto.Tensor[[pypto.DYNAMIC, half], pypto.DT_BF16]

    @pypto.jit
    def kernel(x: A_BF16, cos: angles, sin: angles, out: A_BF16) -> None:
        pypto.set_vec_tile_shapes(4, COLUMNS)
        left, right = x[:, 0:half], x[:, half:COLUMNS]
        turned = [left * cos - right * sin, right * cos + left * sin]
        out[:] = pypto.concat(turned, -1)

    x = numbers(10, BF16)
    turns = np.random.default_rng(11).uniform(0, 6, (ROWS, half))
    cos, sin = np.cos(turns).astype(FP32).astype(BF16), np.sin(turns).astype(FP32).astype(BF16)
    out = np.zeros((ROWS, COLUMNS), BF16)
    kernel(x, cos, sin, out)
    a, b, c, s = wide(x[:, :half]), wide(x[:, half:]), wide(cos), wide(sin)
    wanted = np.concatenate([a * c - b * s, b * c + a * s], -1).astype(BF16)
    assert (out.view(np.uint16) == wanted.view(np.uint16)).all()
    with pypto.options(auto_cast="every op"):
        kernel(x, cos, sin, out)
    assert (out.view(np.uint16) != wanted.view(np.uint16)).any()


def test_layer_norm_in_bf16() -> None:
    """No cast is written: AutoCast keeps FP32 from the sum to the output."""

    @pypto.jit
    def kernel(x: A_BF16, gamma: GAMMA, beta: GAMMA, out: A_BF16) -> None:
        pypto.set_vec_tile_shapes(4, COLUMNS)
        mean = pypto.sum(x, -1, True) / COLUMNS
        centred = x - mean
        variance = pypto.sum(centred * centred, -1, True) / COLUMNS
        out[:] = centred / pypto.sqrt(variance + 1e-5) * gamma + beta

    x, gamma, beta = numbers(12, BF16), numbers(13, BF16)[0], numbers(14, BF16)[0]
    out = np.zeros((ROWS, COLUMNS), BF16)
    kernel(x, gamma, beta, out)
    centred = wide(x) - tree(wide(x)) / np.float32(COLUMNS)
    variance = tree(centred * centred) / np.float32(COLUMNS)
    wanted = centred / np.sqrt(variance + np.float32(1e-5)) * wide(gamma) + wide(beta)
    assert (out.view(np.uint16) == wanted.astype(BF16).view(np.uint16)).all()


def test_adamw_in_bf16() -> None:
    @pypto.jit
    def step(weight: A_BF16, gradient: A_BF16, first: A_FP32, second: A_FP32) -> None:
        pypto.set_vec_tile_shapes(4, COLUMNS)
        for start in pypto.loop(0, weight.shape[0], 4):
            old = pypto.cast(pypto.view(weight, [4, COLUMNS], [start, 0]), pypto.DT_FP32)
            slope = pypto.cast(pypto.view(gradient, [4, COLUMNS], [start, 0]), pypto.DT_FP32)
            m = first[start : start + 4] * 0.9 + slope * 0.1
            v = second[start : start + 4] * 0.999 + slope * slope * 0.001
            change = m / 0.1 / (pypto.sqrt(v / 0.001) + 1e-8) * 0.01
            new = old * (1 - 0.01 * 0.1) - change
            weight[start : start + 4] = pypto.cast(new, pypto.DT_BF16)
            first[start : start + 4] = m
            second[start : start + 4] = v

    weight, gradient = numbers(15, BF16), numbers(16, BF16)
    first, second = np.zeros((ROWS, COLUMNS), FP32), np.zeros((ROWS, COLUMNS), FP32)
    w, m, v = wide(weight), first.copy(), second.copy()
    bounds = step.certainty(weight, gradient, first, second)
    step(weight, gradient, first, second)
    f, slope = np.float32, wide(gradient)
    m = m * f(0.9) + slope * f(0.1)
    v = v * f(0.999) + slope * slope * f(0.001)
    change = m / f(0.1) / (np.sqrt(v / f(0.001)) + f(1e-8)) * f(0.01)
    w = w * f(1 - 0.01 * 0.1) - change
    assert (weight.view(np.uint16) == w.astype(BF16).view(np.uint16)).all()
    assert (first == m).all()
    assert (second == v).all()
    assert bounds["first"].certain.all()
    assert bounds["weight"].certain.mean() > 0.95


@pypto.jit
def powers_of_two(x: pypto.Tensor(), out: pypto.Tensor()) -> None:
    pypto.set_vec_tile_shapes(32)
    out[:] = pypto.exp2(x)


@pytest.mark.parametrize("dtype", [FP32, np.float16, BF16, np.int32, np.int16])
def test_powers_of_two_lie_within_the_bounds_of_exp_and_log(dtype: np.dtype) -> None:
    """Upstream's exp2 is exp(x * log(2)) in FP32; of integers the result stays FP32."""
    exponents = np.arange(-12, 13)
    kind = FP32 if np.issubdtype(dtype, np.integer) else np.dtype(dtype)
    bounds = powers_of_two.certainty(exponents.astype(dtype), np.zeros(25, kind))
    assert_possible((2.0**exponents).astype(kind), bounds)
    certain = bounds["out"].certain
    assert certain[12]  # 2 ** 0
    assert certain.all() == (kind.itemsize == 2)
    assert {cause.operation for cause in bounds.causes} <= {"exp", "log"}


@pytest.mark.parametrize("dtype", [FP32, np.float16, BF16, np.int32, np.int16])
def test_a_sign_is_one_zero_or_minus_one(dtype: np.dtype) -> None:
    x = np.arange(-8, 8).astype(dtype)
    found = pypto.sign(pypto.from_numpy(x)).numpy()
    np.testing.assert_array_equal(found, np.sign(np.arange(-8, 8)).astype(dtype))


@pytest.mark.parametrize("name", ["sin", "cos", "expm1", "log1p"])
def test_a_function_composed_in_fp32_is_right_to_the_last_bit_of_fp16(name: str) -> None:
    ends = (-10, 10) if name in ("sin", "cos") else (0.25, 6)
    x = np.linspace(*ends, 96).astype(np.float16)
    found = getattr(pypto, name)(pypto.from_numpy(x)).numpy()
    expected = getattr(np, name)(x.astype(np.float64)).astype(np.float16)
    np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))


def test_functions_at_the_ends_of_their_range() -> None:
    x = pypto.from_numpy(np.float32([0, -1, np.inf, np.nan]))
    np.testing.assert_array_equal(pypto.log1p(x).numpy(), np.float32([0, -np.inf, np.inf, np.nan]))
    np.testing.assert_array_equal(pypto.expm1(x).numpy()[2:], np.float32([np.inf, np.nan]))
    zeros = pypto.from_numpy(np.float32([0, -0.0]))
    np.testing.assert_array_equal(pypto.sin(zeros).numpy(), [0, 0])
    ones = np.ones(2, np.float32)
    np.testing.assert_array_equal(pypto.cos(zeros).numpy(), np.nextafter(ones, np.float32(2)))
    with pypto.options(release="0.2.0"):
        np.testing.assert_array_equal(pypto.cos(zeros.reshape([1, 2])).numpy(), [ones])
