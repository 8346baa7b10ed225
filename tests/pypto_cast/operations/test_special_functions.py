"""Powers, remainders, special functions: the device's steps, their ends, their special values.

The references are written with numpy alone, from upstream's tile operations; steps that are open
are moved by as many codes as their bounds allow, and the results must lie inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pypto_cast as pypto
from simulator.arithmetic import special_steps, total_order
from simulator.numbers.formats import FP32

Array = np.ndarray[Any, Any]
F = np.float32
INF, NAN = math.inf, math.nan


@pytest.fixture(autouse=True)
def tile() -> Iterator[None]:
    with pypto.options(vec_tile_shapes=(8, 64)), np.errstate(all="ignore"):
        yield


class Steps:
    """FP32 steps; the open ones are moved by up to so many codes, at random."""

    def __init__(self, codes: int, seed: int = 1) -> None:
        self._codes, self._random = codes, np.random.default_rng(seed)

    def moved(self, x: Array, bound: int) -> Array:
        most = min(bound, self._codes)
        by = self._random.integers(-most, most + 1, x.shape, np.int32)
        is_kept = ~np.isfinite(x) | (x == 0) | (np.abs(x) < 1e-37) | (np.abs(x) > 1e38)
        return np.where(is_kept, x, (x.view(np.int32) + by).view(F))

    def div(self, a: Array, b: Array) -> Array:
        return self.moved(np.divide(a, b, dtype=F), 1)

    def sqrt(self, a: Array) -> Array:
        return self.moved(np.sqrt(a, dtype=F), 1)

    def exp(self, a: Array) -> Array:
        return self.moved(np.exp(a.astype(np.float64)).astype(F), 2)

    def log(self, a: Array) -> Array:
        return self.moved(np.log(a.astype(np.float64)).astype(F), 2)


def horner(x: Array, terms: list[float]) -> Array:
    found = x * F(terms[0]) + F(terms[1])
    for term in terms[2:]:
        found = x * found + F(term)
    return found


def tanh(x: Array, do: Steps) -> Array:
    square = x * x
    small = horner(square, [0.0157396831, -0.0523039624, 0.133152977, -0.333327681])
    power = do.exp(np.minimum(x, F(20)) * F(2))
    large = do.div(power - F(1), power + F(1))
    return np.where(np.abs(x) < F(0.55), small * square * x + x, large)


def cosh(x: Array, do: Steps) -> Array:
    power = do.exp(np.abs(x) * F(0.5))
    return (power + do.exp(np.abs(x) * F(-1.5))) * F(0.5) * power


def asin(x: Array, do: Steps) -> Array:
    size = np.abs(x)
    cosine = do.sqrt(size * size * F(-1) + F(1))
    is_small = size <= F(0.70710678)
    t = np.where(is_small, size, cosine)
    terms = [0.01396484, 0.01735276, 0.02237216, 0.03038194, 0.04464286, 0.075, 0.16666667, 1.0]
    found = horner(t * t, terms) * t
    found = np.where(is_small, found, found * F(-1) + F(1.57079633))
    return np.where(x >= 0, found, found * F(-1))


def erf(x: Array, do: Steps) -> Array:
    x = np.maximum(np.minimum(x, F(3.92)), F(-3.92))
    s = x * x
    top = [0.053443748819, 7.5517016694, 101.62808918, 1393.8061484, 5063.7915060, 29639.384698]
    bottom = s + F(31.212858877)
    for term in (398.56963806, 3023.1248150, 13243.365831, 26267.224157):
        bottom = s * bottom + F(term)
    return do.div(x * horner(s, top), bottom)


def atanh(x: Array, do: Steps) -> Array:
    size = np.abs(x)
    ratio = do.div(size, size * F(-1) + F(1))
    above = ratio * F(2) + F(1)
    found = do.div(do.log(above) * ratio, np.minimum(above - F(1), F(1e34)))
    found = np.where(above == 1, size, found)
    return np.where(x < 0, found * F(-1), found)


def log10(x: Array, do: Steps) -> Array:
    return do.div(do.log(x), np.broadcast_to(F(math.log(10)), x.shape))


REFERENCES = {each.__name__: each for each in (tanh, cosh, asin, erf, atanh, log10)}


@pytest.mark.parametrize("name", REFERENCES)
def test_steps_within_their_bounds_give_results_within_the_ends(name: str) -> None:
    reference: Callable[[Array, Steps], Array] = REFERENCES[name]
    drawn = np.random.default_rng(37).normal(0, 1.5, (8, 64)).astype(F)
    x = np.clip(drawn, -0.99, 0.99) if name in ("asin", "atanh") else drawn
    x = np.abs(x) if name == "log10" else x
    found = getattr(pypto, name)(pypto.from_numpy(x))
    held = found.enclosure()
    is_same = (held.values == reference(x, Steps(0))) | np.isnan(held.values)
    assert is_same.all()
    low, high = (total_order.keys(end, FP32) for end in (held.low, held.high))
    for seed in range(20):
        moved = total_order.keys(reference(x, Steps(2, seed)), FP32)
        assert ((low <= moved) & (moved <= high)).all()


SPECIAL = {
    "tanh": ([0.0, INF, -INF, NAN], [0.0, 1.0, -1.0, NAN]),
    "sinh": ([0.0, -0.0, INF, -INF, NAN], [0.0, 0.0, INF, -INF, NAN]),
    "cosh": ([0.0, INF, -INF, NAN], [1.0, INF, INF, NAN]),
    "tan": ([0.0, INF, NAN], [0.0, NAN, NAN]),
    "asin": ([-0.0, 1.5, -INF, NAN], [0.0, NAN, NAN, NAN]),
    "acos": ([1.5, NAN], [NAN, NAN]),
    "atan": ([0.0, -0.0, NAN], [0.0, 0.0, NAN]),
    "acosh": ([0.5, -INF, INF, NAN], [NAN, NAN, INF, NAN]),
    "asinh": ([0.0, -0.0, INF, -INF, NAN], [0.0, 0.0, INF, -INF, NAN]),
    "atanh": ([0.0, 1.0, -1.0, 2.0, NAN], [0.0, INF, -INF, NAN, NAN]),
    "erf": ([0.0, -0.0, NAN], [0.0, -0.0, NAN]),
    "log2": ([0.0, 1.0, -1.0, INF], [-INF, 0.0, NAN, INF]),
    "isnan": ([0.0, INF, NAN], [False, False, True]),
    "isfinite": ([0.0, INF, -INF, NAN, 3.0], [True, False, False, False, True]),
    "signbit": ([0.0, -0.0, -INF, INF, NAN], [False, True, True, False, False]),
    "cbrt": ([0.0, -0.0, INF, -INF], [0.0, -0.0, INF, -INF]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str) -> None:
    given, expected = SPECIAL[name]
    found = getattr(pypto, name)(pypto.from_numpy(np.array([given], F))).numpy()[0]
    wanted = np.array(expected, found.dtype)
    assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert_array_equal(np.nan_to_num(found).tobytes(), np.nan_to_num(wanted).tobytes())


def test_a_finite_number_beyond_fp16_is_open_between_page_and_source() -> None:
    x = pypto.from_numpy(np.array([[65504.0, 65520.0, 1e38, INF]], F))
    held = pypto.isfinite(x).enclosure()
    assert held.values.tolist() == [[True, True, True, False]]
    assert held.certain().tolist() == [[True, False, False, True]]


def test_powers_of_numbers_and_their_signs() -> None:
    x = np.array([[-2.0, -INF, 0.0, 1.0, NAN, 9.0]], F)
    t = pypto.from_numpy(x)
    assert pypto.pow(t, 0).numpy().tolist() == [[1.0] * 6]
    assert_array_equal(pypto.pow(t, 2).numpy(), x * x)
    assert_array_equal(pypto.pow(t, 3).numpy(), x * x * x)
    odd = pypto.pow(t, 5).numpy()[0]
    assert odd[0] < 0
    assert odd[1] == -INF
    assert odd[2] == 0
    assert odd[3] == 1
    part = pypto.pow(t, 1.7).numpy()[0]
    assert np.isnan(part[0])
    assert part[1] == INF
    assert part[3] == 1
    with pypto.options(release="0.2.0"):
        assert_array_equal(pypto.pow(t, 5).numpy()[0, [0, 2, 3, 5]], [-32.0, 0.0, 1.0, 59049.0])


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_a_float_exponent_of_integers_gives_fp32_but_for_0(dtype: type) -> None:
    x = pypto.from_numpy(np.array([[0, -3, 9]], dtype))
    ones, roots = pypto.pow(x, 0.0), pypto.pow(x, 0.5)
    assert ones.numpy().tolist() == [[1, 1, 1]]
    assert ones.numpy().dtype == dtype
    assert_array_equal(roots.numpy(), F([[0, NAN, 3]]))
    assert roots.dtype is pypto.DT_FP32


@pytest.mark.parametrize("release", ["head", "0.2.0"])
def test_exponents_may_be_nan_and_infinite_but_not_beyond_64_bits(release: str) -> None:
    x = pypto.from_numpy(np.array([[0.5, 2.0]], F))
    with pypto.options(release=release):
        assert pypto.pow(x, INF).numpy().tolist() == [[0.0, INF]]
        assert np.isnan(pypto.pow(x, NAN).numpy()).all()
        with pytest.raises(OverflowError, match=r"^pow: "):
            pypto.pow(x, 10**400)


def test_a_slope_beyond_64_bits_names_its_operation() -> None:
    with pytest.raises(OverflowError, match=r"^lrelu: "):
        pypto.lrelu(pypto.from_numpy(X), 10**400)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_integers_as_the_scalar_unit_computes_them(dtype: type) -> None:
    random = np.random.default_rng(5)
    a, b = (random.integers(-100, 100, (8, 64)).astype(dtype) for _ in range(2))
    a[0, 0], b[0, 0] = np.iinfo(dtype).min, 0
    found = pypto.gcd(pypto.from_numpy(a), pypto.from_numpy(b)).numpy()
    wanted = [math.gcd(int(x), int(y)) for x, y in zip(a.flat, b.flat, strict=True)]
    assert found[0, 0] == np.iinfo(dtype).min
    assert found.reshape(-1).tolist()[1:] == wanted[1:]
    exponents = np.abs(b) % 40
    found = pypto.pow(pypto.from_numpy(a), pypto.from_numpy(exponents.astype(dtype))).numpy()
    powers = [int(x) ** int(y) for x, y in zip(a.flat, exponents.flat, strict=True)]
    bits = np.iinfo(dtype).bits
    wrapped = [(x + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for x in powers]
    assert found.reshape(-1).tolist() == wrapped
    negative = pypto.pow(pypto.from_numpy(np.array([[1, -1, -1, 2]], dtype)), -3)
    assert negative.numpy().tolist() == [[1, -1, -1, 0]]


def test_integer_quotients() -> None:
    random = np.random.default_rng(6)
    a, b = (random.integers(-(2**31), 2**31, (8, 64)).astype(np.int32) for _ in range(2))
    found = pypto.floor_div(pypto.from_numpy(a), pypto.from_numpy(b))
    assert found.numpy().tolist() == (a.astype(np.int64) // b).tolist()
    assert found.enclosure().interval is None
    a, b = a % 2**20, b % 100 + 1
    up = pypto.ceil_div(pypto.from_numpy(a), pypto.from_numpy(b))
    assert up.numpy().tolist() == (-(-a // b)).tolist()
    assert_array_equal(up.enclosure().certain(), a % b != 0)
    left = pypto.remainder(pypto.from_numpy(a), pypto.from_numpy(b))
    assert left.numpy().tolist() == (a % b).tolist()


def test_remainders_of_floats_are_open_where_the_quotient_may_be_whole() -> None:
    x = pypto.from_numpy(np.array([[7.0, -7.0, 6.0, 0.5]], F))
    assert pypto.fmod(x, 2.0).numpy().tolist() == [[1.0, -1.0, 0.0, 0.5]]
    assert pypto.remainder(x, 2.0).numpy().tolist() == [[1.0, 1.0, 0.0, 0.5]]
    assert pypto.floor_div(x, 2.0).numpy().tolist() == [[3.0, -4.0, 3.0, 0.0]]
    assert pypto.remainder(7.0, x).numpy()[0, 3] == 0.0
    assert pypto.fmod(x, 2.0).enclosure().certain().tolist() == [[True, True, False, True]]


@pytest.mark.parametrize(("release", "expected"), [("0.2.0", 1.0), ("head", 0.0)])
def test_remainders_of_fp16_keep_fp32_between_where_autocast_runs_them(
    release: Any, expected: float
) -> None:
    x = pypto.from_numpy(np.full((1, 16), -(2.0**-14), np.float16))
    one = pypto.from_numpy(np.ones((1, 16), np.float16))
    with pypto.options(release=release, vec_tile_shapes=(1, 16)):
        inner = pypto.remainder(x, one)  # 1 - 2**-14 in FP32, 1 in FP16
        assert (pypto.remainder(inner, one).numpy() == expected).all()
        assert (inner.numpy() == 1.0).all()


@pytest.mark.parametrize("name", ["fmod", "remainder", "pow"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_remainders_and_powers_of_16_bits_are_planned_in_fp32(name: str, dtype: Any) -> None:
    @pypto.jit
    def kernel(a: pypto.Tensor, b: pypto.Tensor, out: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(8, 64)
        out[:] = getattr(pypto, name)(a, b)

    given = [np.ones((8, 64), dtype) for _ in range(3)]
    with pypto.options(release="0.2.0"):
        leaves = kernel.schedule(*given).leaves
    opcode = {"fmod": "MOD", "remainder": "REM", "pow": "POW"}[name]
    operations = [each for leaf in leaves for each in leaf.operations]
    (found,) = (each for each in operations if each.opcode == opcode)
    assert {each.format for each in (*found.inputs, found.outputs[0])} == {FP32}
    wide = [each.inputs[0].format for each in operations if each.opcode == "CAST"]
    assert [each is FP32 for each in wide] == [
        False,
        True,
    ]  # the operands' casts are tasks of one leaf


def test_slopes() -> None:
    x = np.array([[3.0, -4.0, 0.0, -0.0, NAN]], F)
    t = pypto.from_numpy(x)
    assert_array_equal(pypto.lrelu(t, 0.5).numpy(), np.array([[3.0, -2.0, 0.0, -0.0, NAN]], F))
    weight = pypto.from_numpy(np.full(5, -0.5, F))
    found = pypto.prelu(t, weight).numpy()
    assert found[0, :2].tolist() == [3.0, 2.0]
    assert np.signbit(found[0, 2])
    alone = pypto.prelu(pypto.from_numpy(x[0]), pypto.from_numpy(np.full(1, -0.5, F))).numpy()
    assert not np.signbit(alone[2])


@pytest.mark.parametrize("release", ["head", "0.2.0"])
def test_a_slope_beside_fp16_is_fp16(release: str) -> None:
    x = np.float16([[-3.0, -333.0, 7.0]])
    with pypto.options(release=release):
        found = pypto.lrelu(pypto.from_numpy(x), 0.1).numpy()
        wide = pypto.lrelu(pypto.from_numpy(x.astype(ml_dtypes.bfloat16)), 0.1).numpy()
    slope = np.float16(0.1)
    assert_array_equal(found, np.where(x < 0, (x.astype(F) * F(slope)).astype(np.float16), x))
    exact = x.astype(ml_dtypes.bfloat16).astype(F) * np.where(x < 0, F(0.1), F(1))
    assert_array_equal(wide.astype(F), exact.astype(ml_dtypes.bfloat16).astype(F))


def test_release_0_2_0_rounds_a_quotient_up_and_corrects_nothing() -> None:
    x = np.array([[16777217, 7, -7, 16777219]], np.int32)
    y = np.array([[1, 2, 2, 1]], np.int32)
    found = {}
    for release in ("head", "0.2.0"):
        with pypto.options(release=release):
            result = pypto.ceil_div(*map(pypto.from_numpy, (x, y)))
            found[release] = result.numpy().tolist()
    assert found == {
        "head": [[16777217, 4, -3, 16777220]],
        "0.2.0": [[16777216, 4, -3, 16777220]],
    }


def test_triangles_multiply_and_bytes_and_axes_move() -> None:
    x = np.array([[1.0, -2.0], [-3.0, INF], [NAN, 5.0]], F)
    t = pypto.from_numpy(x)
    assert_array_equal(pypto.triu(t).numpy(), np.array([[1, -2], [-0.0, INF], [NAN, 0]], F))
    assert_array_equal(pypto.tril(t, -1).numpy()[1], np.array([-3.0, NAN], F))
    small = np.arange(-3, 3, dtype=np.int8).reshape(2, 3)
    assert_array_equal(pypto.tril(pypto.from_numpy(small)).numpy(), np.tril(small))
    assert_array_equal(pypto.permute(t, [1, 0]).numpy(), x.T)
    four = np.arange(16, dtype=np.int32).reshape(2, 8)
    masks = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}
    for mode, (start, step) in masks.items():
        taken = pypto.gathermask(pypto.from_numpy(four), mode)
        assert_array_equal(taken.numpy(), four[:, start::step])
    packed = pypto.pack(t)
    assert packed.numpy().tobytes() == x.tobytes()
    assert pypto.unpack(packed, pypto.DT_FP32).numpy().tobytes() == x.tobytes()
    opened = pypto.pack(pypto.exp(t)).enclosure()
    assert opened.certain().sum() == 4 * pypto.exp(t).enclosure().certain().sum()


X = np.ones((2, 4), F)
REFUSED: list[tuple[str, tuple[Any, ...], type[Exception], str]] = [
    ("tanh", (np.ones((2, 4), np.int32),), TypeError, "not DT_INT32; cast it first"),
    ("atan2", (X, X.astype(np.float16)), TypeError, "one dtype"),
    ("pow", (X, "2"), TypeError, "an int or a float as exponent"),
    ("pow", (np.ones((2, 4), np.int8), 0.5), TypeError, "takes an int or a tensor"),
    ("pow", (np.ones((2, 4), np.int8), 300), OverflowError, "holds -128 to 127"),
    ("gcd", (np.ones((2, 4), np.int8), 300), OverflowError, "holds -128 to 127"),
    ("ceil_div", (np.ones((2, 4), np.int32), 0), ValueError, "the divisor of integers is 0"),
    ("fmod", (X, INF), ValueError, "must be finite"),
    ("lrelu", (X, -0.5), ValueError, "finite and 0 or more"),
    ("prelu", (X, np.ones(3, F)), pypto.ShapeError, "needs a weight of shape"),
    ("triu", (X, 0.5), TypeError, "takes an int as diagonal"),
    ("triu", (X[0],), pypto.ShapeError, "two axes or more"),
    ("permute", (X, [0, 0]), ValueError, "is no order of dimensions 0 to 1"),
    ("gathermask", (X, 8), ValueError, "1 to 7 are there"),
    ("gathermask", (X[:, :3], 1), pypto.ShapeError, "no multiple of 2"),
    ("unpack", (np.ones(5, np.uint8), pypto.DT_FP32), pypto.ShapeError, "whole elements of 4 B"),
]


@pytest.mark.parametrize(
    ("name", "given", "error", "text"), REFUSED, ids=[f"{r[0]}-{k}" for k, r in enumerate(REFUSED)]
)
def test_bad_input_is_one_error(
    name: str, given: tuple[Any, ...], error: type[Exception], text: str
) -> None:
    operands = [pypto.from_numpy(x) if isinstance(x, np.ndarray) else x for x in given]
    with pytest.raises(error, match=text):
        getattr(pypto, name)(*operands)


def test_what_is_newer_than_a_release_is_refused_there() -> None:
    with (
        pypto.options(release="0.2.0"),
        pytest.raises(TypeError, match=r"release 0\.2\.0 .* has no tanh"),
    ):
        pypto.tanh(pypto.from_numpy(X))


@pytest.mark.parametrize("release", ["head", "0.2.0"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int16, np.int32])
def test_a_magnitude_takes_the_sign_of_another(dtype: Any, release: str) -> None:
    x = (
        np.array([[1.5, -2, INF, -INF, 0, -0.0, 7, -9]])
        if dtype not in (np.int16, np.int32)
        else (np.array([[1, -2, 0, 5, 7, -8, 32767, -32768]]))
    )
    y = x[:, ::-1].copy()
    with pypto.options(release=release):
        found = pypto.copysign(*(pypto.from_numpy(each.astype(dtype)) for each in (x, y)))
    result = found.numpy()
    wanted = np.copysign(x.astype(F), y.astype(F)).astype(result.dtype)
    assert result.dtype == (F if dtype in (np.int16, np.int32) else dtype)
    code = f"u{result.itemsize}"
    assert_array_equal(result.view(code), wanted.view(code))
    enclosure = found.enclosure()
    assert enclosure is not None
    assert enclosure.certain().all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_the_sign_of_nan_is_open_between_page_and_source(dtype: Any) -> None:
    x = pypto.from_numpy(np.array([[NAN, -NAN, -1.0, 2.0]]).astype(dtype))
    is_certain = [False, False, True, True]
    signs = pypto.signbit(x).enclosure()
    assert signs.values.tolist() == [[False, False, True, False]]
    assert signs.certain().tolist() == [is_certain]
    found = pypto.copysign(pypto.from_numpy(np.full((1, 4), 1.5, dtype)), x).enclosure()
    assert found.certain().tolist() == [is_certain]
    assert found.low.astype(F).tolist() == [[-1.5, -1.5, -1.5, 1.5]]
    assert found.high.astype(F).tolist() == [[1.5, 1.5, -1.5, 1.5]]


@pytest.mark.parametrize("name", ["lrelu", "prelu", "remainder", "fmod", "floor_div"])
def test_bf16_is_executed_as_planned(name: str) -> None:
    @pypto.jit
    def kernel(x: pypto.Tensor, y: pypto.Tensor, out: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(8, 64)
        out[:] = getattr(pypto, name)(x, 0.25 if name == "lrelu" else y)

    x = np.random.default_rng(6).normal(0, 3, (8, 64)).astype(ml_dtypes.bfloat16)
    y = x[0].copy() if name == "prelu" else x[:, ::-1].copy()
    plain, planned = np.zeros_like(x), np.zeros_like(x)
    kernel(x, y, plain)
    with pypto.options(fidelity="instructions", strict=True):
        kernel(x, y, planned)
    assert planned.tobytes() == plain.tobytes()


@pytest.mark.parametrize("name", sorted({*special_steps.OF_ONE, *special_steps.OF_TWO} - {"lrelu"}))
@pytest.mark.sampled(3)
def test_what_is_open_names_the_line_of_the_kernel(name: str) -> None:
    @pypto.jit
    def kernel(
        x: pypto.Tensor[[8, 64], pypto.DT_FP32],
        y: pypto.Tensor[[8, 64], pypto.DT_FP32],
        out: pypto.Tensor[[8, 64], pypto.DT_FP32],
    ) -> None:
        operands = (x, y) if name in special_steps.OF_TWO else (x,)
        found = getattr(pypto, name)(*operands)
        out[:] = pypto.where(found, 1.0, 0.0) if found.dtype is pypto.DT_BOOL else found

    x = np.random.default_rng(1).uniform(0.05, 0.95, (8, 64)).astype(F)
    lines = str(kernel.certainty(x, x.T.copy().reshape(8, 64), np.zeros_like(x))).splitlines()
    line = kernel.__wrapped__.__code__.co_firstlineno + 7
    left = [each for each in lines if "left open by" in each]
    assert all(each.endswith(f" at {Path(__file__).name}:{line}") for each in left), left
