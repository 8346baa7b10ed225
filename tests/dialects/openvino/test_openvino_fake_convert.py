"""FakeConvert without openvino: documented edges, exact rounding, shapes, memory, errors."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from bisect import bisect_left
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.numbers.float_environments import FLUSHING, foreign

from pypto_cast.dialects import openvino

BF16 = ml_dtypes.bfloat16
NUMERICS = ("reference", "plugin", "rne")
TYPES = {"f16": np.float16, "bf16": BF16, "f32": np.float32}
LARGEST = {"f8e4m3": 448.0, "f8e5m2": 57344.0}
LEAST = {"f8e4m3": Fraction(1, 2**9), "f8e5m2": Fraction(1, 2**16)}
MAN_BITS = {"f8e4m3": 3, "f8e5m2": 2}
NAN, INF = float("nan"), float("inf")


def codes_of(values: np.ndarray) -> np.ndarray:
    return values.view(f"u{values.dtype.itemsize}")


def one(value: float, destination: str, numerics: str = "reference") -> float:
    data = np.array([value], np.float32)
    result = openvino.fake_convert(
        data, np.ones(1, np.float32), None, destination, numerics=numerics
    )
    return float(result[0])


def test_processors_round_to_float16_otherwise() -> None:
    """Just below 2**-16 the core's class doubles what carries into a new exponent."""
    data, scale = np.array([853, 1706], np.uint16).view(np.float16), np.float16([0.3])
    for numerics, wanted in (("plugin", [1706, 2730]), ("plugin-avx512fp16", [853, 1706])):
        found = openvino.fake_convert(data, scale, None, "f8e5m2", numerics=numerics)
        assert found.view(np.uint16).tolist() == wanted


# --- Edges: scale 1, no shift ---------------------------------------------------------------------

T9, T10, T17 = 2.0**-9, 2.0**-10, 2.0**-17


@pytest.mark.parametrize(
    ("destination", "value", "reference", "plugin", "rne"),
    [
        ("f8e4m3", NAN, 448, -448, NAN),
        ("f8e4m3", -NAN, -448, -448, NAN),
        ("f8e4m3", -0.0, 0.0, -0.0, -0.0),
        ("f8e4m3", 1.5 * T10, 0.0, T9, T9),
        ("f8e4m3", -1.5 * T10, 0.0, -T9, -T9),
        ("f8e4m3", 3 * T10, T9, 2 * T9, 2 * T9),
        ("f8e4m3", T10, 0.0, 0.0, 0.0),
        ("f8e4m3", (1 - 2.0**-10) * T9, 0.0, T9, T9),
        ("f8e4m3", 448, 448, 448, 448),
        ("f8e4m3", 464, 448, 448, 448),
        ("f8e4m3", 465, 448, 448, 448),
        ("f8e4m3", -1e30, -448, -448, -448),
        ("f8e4m3", INF, 448, 448, 448),
        ("f8e4m3", -INF, -448, -448, -448),
        ("f8e4m3", 1.0625 + 2.0**-20, 1.0, 1.0, 1.125),
        ("f8e5m2", NAN, NAN, -57344, NAN),
        ("f8e5m2", -0.0, 0.0, -0.0, -0.0),
        ("f8e5m2", 61440, 57344, 57344, 57344),
        ("f8e5m2", INF, 57344, 57344, 57344),
        ("f8e5m2", -INF, -57344, -57344, -57344),
        ("f8e5m2", T17, 0.0, 0.0, 0.0),
        ("f8e5m2", 1.5 * T17, 2 * T17, 2 * T17, 2 * T17),
        ("f8e5m2", 1.125 + 2.0**-20, 1.0, 1.0, 1.25),
        ("f8e5m2", (1 - 2.0**-13) * T17, 2 * T17, 2 * T17, 0.0),
    ],
)
def test_edges(destination: str, value: float, reference: float, plugin: float, rne: float) -> None:
    for numerics, wanted in zip(NUMERICS, (reference, plugin, rne), strict=True):
        result = one(value, destination, numerics)
        same_sign = np.signbit(result) == np.signbit(wanted)
        assert (np.isnan(wanted) and np.isnan(result)) or (result == wanted and same_sign), numerics


def test_bfloat16_adds_half_a_unit_to_odd_last_places_only() -> None:
    """1 / 3 is 0x3EAAAAAB in f32: cut after the even 0x3EAA, where nearest would be 0x3EAB."""
    third = np.array([0.333], BF16)
    result = openvino.fake_convert(third, np.array([3], BF16))
    assert codes_of(result).tolist() == [0x3EAA]
    result = openvino.fake_convert(third, np.array([3], BF16), numerics="rne")
    assert codes_of(result).tolist() == [0x3EAB]


def test_float16_doubles_subnormal_numbers_that_carry() -> None:
    """1280 units of 2**-24 times f16's 0.1 are 127.97: 256 of them, where nearest would be 128.

    128 is half of the least f8e5m2 number and would become 0.
    """
    data, scale = np.array([0x0500], np.uint16).view(np.float16), np.array([0.1], np.float16)
    result = openvino.fake_convert(data, scale, None, "f8e5m2")
    np.testing.assert_array_equal(result, np.array([2.0**-16], np.float16) / scale)
    result = openvino.fake_convert(data, scale, None, "f8e5m2", numerics="rne")
    np.testing.assert_array_equal(result, [0])


def test_scale_of_zero_divides_by_zero() -> None:
    data = np.array([1, -1, INF, NAN], np.float32)
    for numerics in NUMERICS:
        result = openvino.fake_convert(data, np.zeros(1, np.float32), numerics=numerics)
        assert np.isnan(result[:2]).all(), numerics


def test_seed_order_of_operations() -> None:
    data = np.array([10, 3.3], np.float32)
    scale, shift = np.array([0.5], np.float32), np.array([1], np.float32)
    # 10 * 0.5 - 1 = 4 -> 4, (4 + 1) / 0.5; 3.3 * 0.5 - 1 = 0.65 -> 0.625, (0.625 + 1) / 0.5
    for numerics in NUMERICS:
        result = openvino.fake_convert(data, scale, shift, numerics=numerics)
        np.testing.assert_array_equal(result, np.array([10, 3.25], np.float32))


# --- All codes, as openvino 2026.4.1 gave them --------------------------------------------------

DIGESTS: dict[tuple[str, str, float | None], str] = {
    ("f16", "f8e4m3", None): "3a8012f9cddb2b69",
    ("f16", "f8e4m3", 0.3): "7c231b5b9a111002",
    ("f16", "f8e5m2", None): "5f76f824f2a97a02",
    ("f16", "f8e5m2", 0.3): "841b10ada2bf246c",
    ("bf16", "f8e4m3", None): "44b997228f947b03",
    ("bf16", "f8e4m3", 0.3): "95f9f0789ed341ab",
    ("bf16", "f8e5m2", None): "c6d1c7e8eadd9b53",
    ("bf16", "f8e5m2", 0.3): "cd9eae5bd92b3fd1",
}
"""Of the results for all 65,536 codes with a scale of 0.1; checked against openvino itself too."""


def all_codes(name: str, shift: float | None) -> list[np.ndarray]:
    """Every number of a type, a scale of 0.1 and perhaps a shift."""
    dtype = np.dtype(TYPES[name])
    moves = [np.array([number], dtype) for number in (0.1, shift) if number is not None]
    return [np.arange(1 << 16, dtype=np.uint16).view(dtype), *moves]


def digest(values: np.ndarray) -> str:
    return hashlib.sha256(codes_of(values).astype("<u2").tobytes()).hexdigest()[:16]


@pytest.mark.parametrize(("name", "destination", "shift"), DIGESTS)
def test_reference_gives_openvinos_codes(name: str, destination: str, shift: float | None) -> None:
    result = openvino.fake_convert(*all_codes(name, shift), destination_type=destination)
    assert digest(result) == DIGESTS[name, destination, shift]


# --- "rne" against exact fractions ------------------------------------------------------------


def emulated_numbers(destination: str) -> list[Fraction]:
    """All magnitudes of an 8-bit type, and the one that would come next."""
    man_bits, least = MAN_BITS[destination], LEAST[destination]
    numbers = [least * fraction for fraction in range(1 << man_bits)]
    while numbers[-1] < LARGEST[destination]:
        power = least * 2 ** (len(numbers) // (1 << man_bits) - 1) * (1 << man_bits)
        numbers += [power + power * fraction / (1 << man_bits) for fraction in range(1 << man_bits)]
    while numbers[-1] > LARGEST[destination]:
        numbers.pop()
    return [*numbers, 2 * numbers[-1] - numbers[-2]]


def nearest(magnitude: Fraction, numbers: list[Fraction], largest: float) -> float:
    """The nearest number, of two the one with the even place, at most the largest."""
    above = bisect_left(numbers, magnitude)
    if above == len(numbers):
        return largest
    if numbers[above] == magnitude:
        return min(float(magnitude), largest)
    down, up = magnitude - numbers[above - 1], numbers[above] - magnitude
    chosen = above if up < down or (up == down and above % 2 == 0) else above - 1
    return min(float(numbers[chosen]), largest)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("destination", LARGEST)
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_rne_rounds_every_number_once(name: str, destination: str) -> None:
    data = np.arange(1 << 16, dtype=np.uint16).view(TYPES[name])
    result = openvino.fake_convert(
        data, np.ones(1, data.dtype), None, destination, numerics="rne"
    ).astype(np.float64)
    numbers, largest = emulated_numbers(destination), LARGEST[destination]
    with np.errstate(invalid="ignore"):
        values = data.astype(np.float64).tolist()
    for value, rounded in zip(values, result.tolist(), strict=True):
        if value != value:
            assert rounded != rounded
            continue
        finite = min(abs(value), 1e6)
        wanted = nearest(Fraction(finite), numbers, largest)
        assert abs(rounded) == wanted, value
        assert np.signbit(rounded) == np.signbit(value), value


@given(st.floats(width=32, allow_nan=False), st.sampled_from(sorted(LARGEST)))
def test_rne_rounds_any_f32_once(value: float, destination: str) -> None:
    wanted = nearest(
        Fraction(min(abs(value), 1e6)), emulated_numbers(destination), LARGEST[destination]
    )
    assert abs(one(value, destination, "rne")) == wanted


@given(
    st.floats(-(2.0**10), 2.0**10, width=32),
    st.sampled_from(sorted(LARGEST)),
    st.sampled_from(NUMERICS),
)
def test_emulated_numbers_come_back_the_same(value: float, destination: str, numerics: str) -> None:
    once = one(value, destination, numerics)
    assert one(once, destination, numerics) == once


# --- Arrays -----------------------------------------------------------------------------------


def usual(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.asarray(np.random.default_rng(3).standard_normal(shape) * 4).astype(dtype)


@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("name", TYPES)
def test_any_layout_gives_the_same_and_nothing_is_modified(name: str, numerics: str) -> None:
    data, scale = usual((3, 8, 5), TYPES[name]), usual((8, 1), TYPES[name])
    shift = usual((8, 1), TYPES[name])[::-1]
    before = [codes_of(values).copy() for values in (data, scale, np.ascontiguousarray(shift))]
    wanted = openvino.fake_convert(data, scale, np.ascontiguousarray(shift), numerics=numerics)
    layouts = [np.asfortranarray(data), np.repeat(data, 2, axis=1)[:, ::2]]
    if name != "bf16":
        layouts.append(data.astype(data.dtype.newbyteorder()))
    for layout in layouts:
        layout.flags.writeable = False
        result = openvino.fake_convert(layout, scale, shift, numerics=numerics)
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(codes_of(result), codes_of(wanted))
    for values, codes in zip((data, scale, np.ascontiguousarray(shift)), before, strict=True):
        np.testing.assert_array_equal(codes_of(values), codes)


@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (4, 0, 2), (70_000,), (3, 50_000)], ids=str)
def test_pieces_meet(shape: tuple[int, ...], numerics: str) -> None:
    data, scale = usual(shape, np.float32), usual(shape[-1:], np.float32)
    whole = openvino.fake_convert(data, scale, numerics=numerics)
    assert whole.shape == data.shape
    each = [
        openvino.fake_convert(np.array([x]), np.array([s]), numerics=numerics)[0]
        for x, s in zip(
            data.ravel()[::4999], np.broadcast_to(scale, shape).ravel()[::4999], strict=True
        )
    ]
    np.testing.assert_array_equal(whole.ravel()[::4999], each)


def test_absent_shift_is_a_shift_of_zero_in_the_reference() -> None:
    data, scale = usual((1000,), np.float32), np.array([1.7], np.float32)
    np.testing.assert_array_equal(
        codes_of(openvino.fake_convert(data, scale)),
        codes_of(openvino.fake_convert(data, scale, np.zeros(1, np.float32))),
    )


@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("name", ["bf16", "f32"])
def test_flushing_subnormal_numbers_changes_nothing(name: str, numerics: str) -> None:
    words = np.arange(1, 128, dtype=np.uint16)
    data = words.view(BF16) if name == "bf16" else (words.astype(np.uint32) << 16).view(np.float32)
    scale = np.array([2.0**127], data.dtype)
    runs = [(data, scale), (data, scale, np.array([0.5], data.dtype)), (data, data, data)]
    wanted = [openvino.fake_convert(*run, numerics=numerics) for run in runs]
    assert all(codes_of(result).any() for result in wanted)
    with foreign(FLUSHING):
        flushed = [openvino.fake_convert(*run, numerics=numerics) for run in runs]
    for actual, expected in zip(flushed, wanted, strict=True):
        np.testing.assert_array_equal(codes_of(actual), codes_of(expected))


# --- Refusals -----------------------------------------------------------------------------------

F32, F16 = np.dtype("f4"), np.dtype("f2")
ONE = np.ones(1, np.float32)


def zeros(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [np.zeros(shape, np.float32) for shape in shapes]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [np.zeros(2), np.ones(1)],
            "The element type of the input tensor must be a bf16, f16, f32 but got: f64",
        ),
        (
            [np.zeros(2, np.int32), np.ones(1, np.int32)],
            "The element type of the input tensor must be a bf16, f16, f32 but got: i32",
        ),
        ([np.zeros(2, F32), np.ones(1, F16)], "Mixed input types are not supported."),
        ([np.zeros(2, F16), 2.0], "Mixed input types are not supported. data is f16, scale is f64"),
        ([*zeros((2,), (1,)), np.ones(1, F16)], "Mixed input types are not supported."),
        ([*zeros((2,), (1,)), None, "f16"], "Bad format for f8 conversion type: f16"),
        (
            zeros((2,), (1,), (2,)),
            "FakeConvert scale shape is not compatible with shift shape.",
        ),
        (zeros((2,), (1,), ()), "FakeConvert scale shape is not compatible with shift shape."),
        (zeros((2,), (3,)), "Argument shapes are inconsistent."),
        (zeros((3,), (0,)), "Argument shapes are inconsistent."),
        (zeros((1,), (3,)), "FakeConvert support only unidirectional broadcasting, inputs cannot"),
        (zeros((2,), (1, 1)), "FakeConvert support only unidirectional broadcasting, inputs"),
        (zeros((), (1,)), "FakeConvert support only unidirectional broadcasting, inputs cannot"),
    ],
)
def test_refused_with_openvinos_sentence(arguments: list[Any], message: str) -> None:
    with pytest.raises(openvino.FakeConvertError) as caught:
        openvino.fake_convert(*arguments)
    assert str(caught.value).startswith(message)
    assert isinstance(caught.value, RuntimeError)


def test_unknown_names() -> None:
    with pytest.raises(RuntimeError, match='"f8e5m3" is not a member of enum element::Type_t'):
        openvino.fake_convert(ONE, ONE, None, "f8e5m3")
    with pytest.raises(TypeError, match="named by a str"):
        openvino.fake_convert(ONE, ONE, None, 8)
    known = "reference, plugin, plugin-avx512fp16, rne"
    with pytest.raises(ValueError, match=f"numerics is one of {known}, not 'exact'"):
        openvino.fake_convert(ONE, ONE, numerics="exact")
    assert one(3.3, "F8E4M3") == 3.25


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({1.0}, "data must be a torch CPU tensor or a numpy array, not set; a number, a nested"),
        (np.ma.masked_array([1.0]), "data is a masked array"),
        (np.zeros(1, complex), "numpy dtype complex128 is no element type of OpenVINO"),
    ],
)
def test_no_arrays_of_numbers(data: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        openvino.fake_convert(data, ONE)


@pytest.mark.slow
def test_openvino_is_not_imported() -> None:
    script = (
        "import sys; from pypto_cast.dialects import openvino as o; import numpy as np; "
        "o.fake_convert(np.ones(1, 'f4'), np.ones(1, 'f4')); print('openvino' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
