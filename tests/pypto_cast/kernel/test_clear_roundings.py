"""Certainties that end in BF16: elements that values alone tell are as all steps find them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.numbers.codes import SEED

import pypto_cast as pypto
from simulator.arithmetic.native import clear_roundings
from simulator.arithmetic.native.executor_library import Executor, find

_D = pypto.STATIC
_Bf16 = pypto.Tensor([_D, _D], pypto.DT_BF16)
_Fp32 = pypto.Tensor([_D, _D], pypto.DT_FP32)
_SHAPE = (256, 1024)
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _native() -> None:
    if not isinstance(found := find(), Executor):
        pytest.skip(str(found))
    pypto.set_vec_tile_shapes(16, 512)


@pypto.jit
def swiglu(gate: _Bf16, up: _Bf16, out: _Bf16) -> None:
    """Powers, sums of one sign, quotients and products."""
    wide = pypto.cast(gate, pypto.DT_FP32)
    gated = pypto.mul(pypto.mul(wide, pypto.sigmoid(wide)), pypto.cast(up, pypto.DT_FP32))
    out[:] = pypto.cast(gated, pypto.DT_BF16)


@pypto.jit
def roots(x: _Fp32, y: _Fp32, out: _Bf16) -> None:
    """Roots, and choices among operands, one of which is a number a row."""
    square = pypto.maximum(pypto.mul(x, x), pypto.abs(y[:, :1]))
    out[:] = pypto.cast(pypto.div(x, pypto.sqrt(square)), pypto.DT_BF16)


@pypto.jit
def inverses(x: _Fp32, y: _Fp32, out: _Bf16) -> None:
    """Powers of what was widened before, inverses, signs."""
    falling = pypto.exp(pypto.neg(pypto.relu(pypto.mul(x, y))))
    found = pypto.mul(pypto.rsqrt(pypto.add(falling, 0.5)), pypto.reciprocal(y))
    out[:] = pypto.cast(found, pypto.DT_BF16)


KERNELS = {"swiglu": swiglu, "roots": roots, "inverses": inverses}


def tame() -> tuple[Array, Array]:
    """Common numbers."""
    rng = np.random.default_rng(SEED)
    x, y = (rng.standard_normal(_SHAPE).astype(np.float32) for _ in range(2))
    return x * 3, y + np.copysign(np.float32(0.01), y)


def with_zeros() -> tuple[Array, Array]:
    """Zeros of both signs among them."""
    x, y = tame()
    x.reshape(-1)[::7], x.reshape(-1)[3::7] = 0.0, -0.0
    y.reshape(-1)[::11], y.reshape(-1)[5::11] = -0.0, 0.0
    return x, y


def far() -> tuple[Array, Array]:
    """Numbers of all magnitudes, whose powers and products overflow and vanish."""
    rng = np.random.default_rng(SEED)
    codes = rng.integers(0x00800000, 0x7F700000, (2, *_SHAPE)).astype(np.uint32)
    x, y = codes.view(np.float32)
    return x * rng.choice([-1, 1], _SHAPE).astype(np.float32), y


def near_limits() -> tuple[Array, Array]:
    """Powers of two around the ends of the range in which errors are known."""
    rng = np.random.default_rng(SEED)
    x, y = (rng.integers(-64, 65, _SHAPE).astype(np.float32) for _ in range(2))
    return np.exp2(x) * np.float32(1.17), np.exp2(y) * np.float32(-1.29)


def special() -> tuple[Array, Array]:
    """Infinity, NaN and subnormal numbers once each."""
    x, y = tame()
    x[3, 5], y[9, 100], x[40, 2] = np.inf, np.nan, 1e-40
    return x, y


DATA = {each.__name__: each for each in (tame, with_zeros, far, near_limits, special)}


def certainty(kernel: Any, given: tuple[Array, Array], engine: str = "native") -> Any:
    dtype = ml_dtypes.bfloat16 if kernel is swiglu else np.float32
    inputs = [x.astype(dtype) for x in given]
    with pypto.options(engine=engine):
        return kernel.certainty(*inputs, np.zeros(_SHAPE, ml_dtypes.bfloat16))["out"]


def settled(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Have all sizes analysed; whether each interval that was asked for was told by values."""
    monkeypatch.setattr(clear_roundings, "_LEAST_ELEMS", 1)
    found: list[bool] = []
    settle: Callable[..., bool] = clear_roundings.settle

    def noted(parts: Any) -> bool:
        found.append(settle(parts))
        return found[-1]

    monkeypatch.setattr(clear_roundings, "settle", noted)
    return found


def assert_same(found: Any, expected: Any) -> None:
    for name in ("values", "low", "high"):
        one, other = (np.asarray(getattr(x, name)).view(np.uint16) for x in (found, expected))
        np.testing.assert_array_equal(one, other, name)
    np.testing.assert_array_equal(found.certain, expected.certain)
    is_open = ~expected.certain
    np.testing.assert_array_equal(found.cause[is_open], expected.cause[is_open])
    assert [c.operation for c in found.causes] == [c.operation for c in expected.causes]
    one, other = (0 if x.choices is None else x.choices * x.certain for x in (found, expected))
    np.testing.assert_array_equal(one, other)
    assert str(found) == str(expected)
    assert (found.nearest is None) == (expected.nearest is None)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("data", DATA.values(), ids=list(DATA))
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))
def test_elements_that_values_tell(
    kernel: Any, data: Callable[[], tuple[Array, Array]], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = certainty(kernel, data())
    assert_same(expected, certainty(kernel, data(), "numpy"))
    told = settled(monkeypatch)
    assert_same(certainty(kernel, data()), expected)
    if data is tame:
        assert any(told)
    if data is tame and kernel is swiglu:
        assert expected.undecided
        assert (expected.choices * expected.certain).any()


def test_few_elements_are_computed_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are computed once for both runs, by choices and by public texts."""
    settled(monkeypatch)
    sizes: list[int] = []
    suspects = clear_roundings._suspects

    def noted(*given: Any) -> Array:
        sizes.append(suspects(*given).size)
        return suspects(*given)

    monkeypatch.setattr(clear_roundings, "_suspects", noted)
    certainty(swiglu, tame())
    assert len(sizes) == 1
    assert 0 < sizes[0] < np.prod(_SHAPE) // 500


def test_a_bound_that_is_too_small_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were ends taken to lie at their values, open elements would be missed."""
    expected = certainty(swiglu, tame())
    settled(monkeypatch)
    monkeypatch.setattr(clear_roundings, "_CODES", (0, 512))
    analysis = clear_roundings._analysis

    def blind(parts: Any) -> Any:
        found = analysis(parts)
        return None if found is None else (found[0], 0)

    monkeypatch.setattr(clear_roundings, "_analysis", blind)
    assert certainty(swiglu, tame()).undecided < expected.undecided


def test_ends_stay_as_near_as_the_analysis_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The distance of the ends from values, in FP32 before the rounding, is within the bound."""
    settled(monkeypatch)
    seen: list[tuple[int, int]] = []
    analysis = clear_roundings._analysis

    def compared(parts: Any) -> Any:
        found = analysis(parts)
        if found is not None:
            wide = [x.operands[0] for x in (parts.values, parts.low, parts.high)]
            codes = [np.abs(x.computed()).view(np.int32).astype(np.int64) for x in wide]
            is_zero = (codes[0] | codes[1] | codes[2]) == 0
            apart = max(int((abs(x - codes[0]) * ~is_zero).max()) for x in codes[1:])
            seen.append((apart, found[1]))
        return found

    monkeypatch.setattr(clear_roundings, "_analysis", compared)
    for kernel in KERNELS.values():
        certainty(kernel, tame())
    assert len(seen) >= 3
    assert all(apart <= most for apart, most in seen), seen
    assert any(3 * apart > most for apart, most in seen), seen
