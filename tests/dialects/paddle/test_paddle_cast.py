"""The Paddle dialect's cast against numpy's and ml_dtypes' direct casts, and integer arithmetic.

NaN is compared as a class, because its pattern is a choice.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.numbers.codes import SEED

from pypto_cast.dialects import paddle

NUMPY = {
    name: np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name) for name in paddle.DTYPES
}
INTS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
REALS = ("bool", *INTS, *FLOATS)
COMPLEX = {"complex64": "float32", "complex128": "float64"}
HALVES = ("float16", "bfloat16")
RANDOM_ELEMS = 200_000


def pairs(sources: tuple[str, ...], targets: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(src, dst) for src in sources for dst in targets if src != dst]


def source(name: str) -> np.ndarray:
    """All values of at most 16 bits; else random ones of every magnitude, and landmarks."""
    dtype = NUMPY[name]
    if name == "bool":
        return np.array([False, True])
    if dtype.itemsize <= 2:
        return np.arange(1 << (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype)
    rng = np.random.default_rng([SEED, *name.encode()])
    bits = 8 * dtype.itemsize
    anywhere = rng.integers(0, 1 << bits, RANDOM_ELEMS, dtype=f"u{dtype.itemsize}").view(dtype)
    if name in INTS:
        shifts = rng.integers(0, bits, RANDOM_ELEMS).astype(dtype)
        edges = [0, 1, -1, 127, 128, -129, 2**16 + 1, 2**24 + 1, 2**30 + 2**22 + 1]
        edges += [np.iinfo(dtype).min, np.iinfo(dtype).max]
        return np.concatenate([anywhere, anywhere >> shifts, np.array(edges, dtype)])
    exponents = rng.integers(-40, 70, RANDOM_ELEMS)
    near = np.ldexp(rng.standard_normal(RANDOM_ELEMS), exponents).astype(dtype)
    edges = [0.0, np.inf, np.nan, 65504, 65519.996, 65520, 65519.9999999999, 2.0**-24, 2.0**-25]
    edges += [1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-40]
    edges += [2.0**-126, 2.0**-149, 2.0**-150, 3.4028235677973366e38, 2.0**63, 2.0**31 - 0.5]
    with np.errstate(over="ignore"):
        landmarks = np.array(edges, np.float64).astype(dtype)
    return np.concatenate([anywhere, near, landmarks, -landmarks])


def assert_same(actual: np.ndarray, wanted: np.ndarray) -> None:
    """The same dtype and codes, NaNs apart."""
    assert actual.dtype == wanted.dtype
    assert actual.shape == wanted.shape
    codes = f"u{wanted.dtype.itemsize}"
    with np.errstate(invalid="ignore"):
        nan = wanted != wanted
        np.testing.assert_array_equal(actual != actual, nan)
    np.testing.assert_array_equal(actual.view(codes)[~nan], wanted.view(codes)[~nan])


@pytest.mark.parametrize(("src", "dst"), pairs(REALS, FLOATS), ids=str)
def test_to_float(src: str, dst: str) -> None:
    """float16 and bfloat16 are made by way of float32."""
    x = source(src)
    with np.errstate(all="ignore"):
        middle = x.astype(np.float32) if dst in HALVES else x
        wanted = middle.astype(NUMPY[dst])
    assert_same(paddle.cast(x, dst), wanted)


def test_wide_sources_round_twice_on_their_way_to_the_halves() -> None:
    x = np.array([1 + 2.0**-11 + 2.0**-40, 65519.9999999999])
    assert paddle.cast(x, "float16").tolist() == [1.0, np.inf]
    once = np.array([1.0009765625, 65504], np.float16)
    np.testing.assert_array_equal(x.astype(np.float16), once)
    y = paddle.cast(np.array([2**30 + 2**22 + 1]), "bfloat16")
    assert float(y[0]) == 2.0**30


def clamped(value: float, least: int, greatest: int) -> int:
    if value != value:
        return 0
    if value in (np.inf, -np.inf):
        return greatest if value > 0 else least
    return min(max(int(value), least), greatest)


@pytest.mark.parametrize(("src", "dst"), pairs(FLOATS, INTS), ids=str)
@pytest.mark.sampled(4)
def test_float_to_integer(src: str, dst: str) -> None:
    """Python's int() truncates; what lies beyond is clamped, NaN is 0."""
    x = source(src)
    with np.errstate(invalid="ignore"):
        values = x.astype(np.float64).tolist()
    limits = np.iinfo(NUMPY[dst])
    least, greatest = int(limits.min), int(limits.max)
    wanted = np.array([clamped(value, least, greatest) for value in values])
    np.testing.assert_array_equal(paddle.cast(x, dst), wanted.astype(dst), strict=True)


@pytest.mark.parametrize(("src", "dst"), pairs(("bool", *INTS), INTS), ids=str)
def test_integer_to_integer_keeps_low_bits(src: str, dst: str) -> None:
    x = source(src)
    bits = 8 * NUMPY[dst].itemsize
    codes = [number & ((1 << bits) - 1) for number in x.astype(np.int64).tolist()]
    wanted = np.array(codes, f"u{bits // 8}").view(dst)
    np.testing.assert_array_equal(paddle.cast(x, dst), wanted, strict=True)


@pytest.mark.parametrize("src", [*INTS, *FLOATS])
def test_to_bool(src: str) -> None:
    x = source(src)
    with np.errstate(invalid="ignore"):
        wanted = x != 0
    np.testing.assert_array_equal(paddle.cast(x, "bool"), wanted, strict=True)


# --- Complex ------------------------------------------------------------------------------------


def complex_source(name: str) -> np.ndarray:
    parts = source(COMPLEX[name])
    x = np.empty(parts.size, name)
    x.real, x.imag = parts, parts[::-1]
    return x


@pytest.mark.parametrize(("src", "dst"), pairs(tuple(COMPLEX), (*INTS, *FLOATS)), ids=str)
def test_complex_to_real_is_the_real_part(src: str, dst: str) -> None:
    x = complex_source(src)
    assert_same(paddle.cast(x, dst), paddle.cast(x.real.copy(), dst))


@pytest.mark.parametrize("src", list(COMPLEX))
def test_complex_to_bool_is_either_part(src: str) -> None:
    x = np.array([0, 1, 1j, 1 + 1j, complex(-0.0, -0.0), complex(0, np.nan), np.nan], src)
    wanted = [False, True, True, True, False, True, True]
    assert paddle.cast(x, "bool").tolist() == wanted


@pytest.mark.parametrize(("src", "dst"), pairs(REALS, tuple(COMPLEX)), ids=str)
def test_real_to_complex(src: str, dst: str) -> None:
    x = source(src)
    y = paddle.cast(x, dst)
    assert y.dtype == dst
    part = COMPLEX[dst]
    assert_same(y.real.copy(), x if src == part else paddle.cast(x, part))
    assert not y.imag.copy().view(f"u{y.imag.itemsize}").any()


@pytest.mark.parametrize(("src", "dst"), pairs(tuple(COMPLEX), tuple(COMPLEX)), ids=str)
def test_complex_to_complex(src: str, dst: str) -> None:
    x = complex_source(src)
    y = paddle.cast(x, dst)
    with np.errstate(all="ignore"):
        assert_same(y.real.copy(), x.real.astype(COMPLEX[dst]))
        assert_same(y.imag.copy(), x.imag.astype(COMPLEX[dst]))


@pytest.mark.parametrize(("src", "dst"), COMPLEX.items(), ids=str)
def test_the_real_part_is_a_new_array(src: str, dst: str) -> None:
    """Native, contiguous and writable even if the input is not, which no write reaches."""
    x = np.array([1 + 2j, 3 + 4j], src).astype(f">c{np.dtype(src).itemsize}")
    x.flags.writeable = False
    for given_array in (x, x[0], x[::-1]):
        before = given_array.tobytes()
        y = paddle.cast(given_array, dst)
        assert (type(y), y.dtype, y.flags.carray) == (np.ndarray, np.dtype(dst), True)
        assert not np.shares_memory(x, y)
        y.fill(-1)
        assert given_array.tobytes() == before


@pytest.mark.parametrize("src", paddle.DTYPES)
def test_rank_0_gives_an_array(src: str) -> None:
    for dst in paddle.DTYPES:
        y = paddle.cast(np.ones((), NUMPY[src]), dst)
        assert (type(y), y.shape, y.dtype) == (np.ndarray, (), NUMPY[dst])
        assert y == 1


# --- Arrays and arguments -----------------------------------------------------------------------


@pytest.mark.parametrize("name", paddle.DTYPES)
def test_the_same_dtype_is_copied(name: str) -> None:
    x = complex_source(name) if name in COMPLEX else source(name)
    y = paddle.cast(x, name)
    assert not np.shares_memory(x, y)
    assert y.tobytes() == x.tobytes()


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
    st.sampled_from([1, -1, 2]),
    st.sampled_from("<>"),
)
def test_shapes_strides_and_byte_orders(shape: list[int], step: int, order: str) -> None:
    count = int(np.prod(shape, dtype=int))
    x = (np.arange(count).reshape(shape) - 3.5).astype(f"{order}f4").T[..., ::step]
    for given_array in (x, x.astype(f"{order}c8")):
        before = given_array.copy()
        y = paddle.cast(given_array, "int16")
        np.testing.assert_array_equal(y, np.trunc(x).astype(np.int16), strict=True)
        np.testing.assert_array_equal(given_array, before, strict=True)


def test_scalars_and_lists() -> None:
    assert paddle.cast(2.5, "int32").shape == ()
    assert paddle.cast([[2.5, -2.5]], "int8").tolist() == [[2, -2]]


@pytest.mark.parametrize("order", "<>")
def test_uint16_is_bfloat16(order: str) -> None:
    codes = np.array([[0x3F80, 0xC020]], f"{order}u2")
    assert paddle.cast(codes, "float32").tolist() == [[1.0, -2.5]]
    assert paddle.cast(codes, "bfloat16").view(np.uint16).tolist() == codes.tolist()
    assert paddle.cast(np.float32([1.0]), "uint16").dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("x", "dtype", "kind", "text"),
    [
        (np.ones(2, np.uint32), "float32", ValueError, "Not supported numpy dtype uint32"),
        (np.ones(2, np.float32), "uint64", ValueError, "Not supported numpy dtype uint64"),
        (np.ones(2, np.float32), "f17", TypeError, "data type 'f17' not understood"),
        (np.ones(2, np.float32), None, TypeError, "data type None not understood; known are"),
        (["a"], "float32", ValueError, "Not supported numpy dtype <U1"),
        (np.ma.array([1.0]), "float16", TypeError, "x is a masked array"),
    ],
)
def test_refused_arguments(x: object, dtype: object, kind: type, text: str) -> None:
    with pytest.raises(kind, match=f"^{text}"):
        paddle.cast(x, dtype)
