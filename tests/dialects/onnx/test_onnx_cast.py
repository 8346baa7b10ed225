"""ONNX Cast as a function: the document's tables cell by cell, every argument, every refusal."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_cast
from pypto_cast.dialects import onnx
from pypto_cast.dialects.onnx import TensorType
from pypto_cast.dialects.onnx.types import FORMATS

FLOAT8 = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"]
MAX = {
    "FLOAT8E4M3FN": 448.0,
    "FLOAT8E4M3FNUZ": 240.0,
    "FLOAT8E5M2": 57344.0,
    "FLOAT8E5M2FNUZ": 57344.0,
}
FNUZ = ("FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ")
FLOAT_SOURCES = ["FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE"]
SIGNED_NAN = {"FLOAT8E4M3FN": (0x7F, 0xFF), "FLOAT8E5M2": (0x7F, 0xFF)}


def dtype_of(name: str) -> np.dtype[Any]:
    return FORMATS[TensorType[name]].dtype


def codes_of(values: np.ndarray) -> list[int]:
    return values.view(f"u{values.dtype.itemsize}").tolist()


def cast_one(value: float, src: str, to: str, **options: Any) -> int:
    x = np.array([value], dtype_of(src))
    return codes_of(onnx.cast(x, to, **options))[0]


def code(value: float, to: str) -> int:
    return codes_of(np.array([value], dtype_of(to)))[0]


def overflowed(sign: int, to: str, *, saturate: bool) -> int:
    """The code of an infinity, and of a finite number out of range."""
    if saturate:
        return code(sign * MAX[to], to)
    if to == "FLOAT8E5M2":
        return code(sign * np.inf, to)
    return SIGNED_NAN.get(to, (0x80, 0x80))[sign < 0]


# --- The two tables of the document ------------------------------------------------------------


@pytest.mark.parametrize("saturate", [True, False], ids=["saturate", "no-saturate"])
@pytest.mark.parametrize("to", FLOAT8)
@pytest.mark.parametrize("src", FLOAT_SOURCES)
class TestFloat8Tables:
    def test_zeros(self, src: str, to: str, saturate: bool) -> None:
        assert cast_one(0.0, src, to, saturate=saturate) == 0x00
        minus_zero = 0x00 if to in FNUZ else 0x80
        assert cast_one(-0.0, src, to, saturate=saturate) == minus_zero

    def test_nan_keeps_its_sign_where_there_are_two(
        self, src: str, to: str, saturate: bool
    ) -> None:
        positive, negative = SIGNED_NAN.get(to, (0x80, 0x80))
        nan = np.array([np.nan, np.copysign(np.nan, -1.0)]).astype(dtype_of(src))
        assert codes_of(onnx.cast(nan, to, saturate=saturate)) == [positive, negative]

    def test_infinity(self, src: str, to: str, saturate: bool) -> None:
        for sign in (1, -1):
            wanted = overflowed(sign, to, saturate=saturate)
            assert cast_one(sign * np.inf, src, to, saturate=saturate) == wanted

    def test_out_of_range(self, src: str, to: str, saturate: bool) -> None:
        """Rounded first: what rounds to the largest number is in range."""
        for sign in (1, -1):
            wanted = overflowed(sign, to, saturate=saturate)
            beyond = MAX[to] * 1.125
            assert cast_one(sign * beyond, src, to, saturate=saturate) == wanted
            in_range = MAX[to] * (1 + 2.0**-6)
            assert cast_one(sign * in_range, src, to, saturate=saturate) == code(sign * MAX[to], to)

    def test_else_nearest_even(self, src: str, to: str, saturate: bool) -> None:
        ulp = 0.125 if "E4M3" in to else 0.25
        for value, wanted in [
            (1 + ulp / 2, 1.0),
            (1 + ulp * 1.5, 1 + 2 * ulp),
            (1 + ulp * 0.625, 1 + ulp),
            (-1 - ulp / 2, -1.0),
        ]:
            assert cast_one(value, src, to, saturate=saturate) == code(wanted, to)


@pytest.mark.parametrize("to", FNUZ)
@pytest.mark.parametrize("src", FLOAT_SOURCES)
@pytest.mark.parametrize(
    ("opset", "saturates"), [(19, False), (21, False), (23, False), (24, True), (28, True)]
)
def test_infinity_to_fnuz_is_as_the_opset_says(
    src: str, to: str, opset: int, saturates: bool
) -> None:
    wanted = code(MAX[to], to) if saturates else 0x80
    assert cast_one(np.inf, src, to, opset=opset) == wanted
    assert cast_one(np.inf, src, to, opset=opset, saturate=False) == 0x80
    # Only infinity: what is finite saturates under every text.
    assert cast_one(60000.0, src, to, opset=opset) == code(MAX[to], to)


@pytest.mark.parametrize(
    ("value", "to", "saturated", "unsaturated"),
    [
        (464.0, "FLOAT8E4M3FN", 0x7E, 0x7E),
        (np.nextafter(464.0, 500), "FLOAT8E4M3FN", 0x7E, 0x7F),
        (480.0, "FLOAT8E4M3FN", 0x7E, 0x7F),
        (np.nextafter(248.0, 0), "FLOAT8E4M3FNUZ", 0x7F, 0x7F),
        (248.0, "FLOAT8E4M3FNUZ", 0x7F, 0x80),
        (np.nextafter(61440.0, 0), "FLOAT8E5M2", 0x7B, 0x7B),
        (61440.0, "FLOAT8E5M2", 0x7B, 0x7C),
        (61440.0, "FLOAT8E5M2FNUZ", 0x7F, 0x80),
        (2.0**-10, "FLOAT8E4M3FN", 0x00, 0x00),
        (1.001 * 2.0**-10, "FLOAT8E4M3FN", 0x01, 0x01),
        (1.5 * 2.0**-9, "FLOAT8E4M3FN", 0x02, 0x02),
        (-1e-7, "FLOAT8E4M3FN", 0x80, 0x80),
        (-1e-7, "FLOAT8E5M2FNUZ", 0x00, 0x00),
    ],
)
def test_where_float8_rounds_to_the_end_of_its_range(
    value: float, to: str, saturated: int, unsaturated: int
) -> None:
    assert cast_one(value, "DOUBLE", to) == saturated
    assert cast_one(value, "DOUBLE", to, saturate=False) == unsaturated


# --- Rules for the other types -----------------------------------------------------------------


def test_examples_of_the_document() -> None:
    assert onnx.cast(np.array([200], np.int16), "INT8").tolist() == [-56]
    assert onnx.cast(np.array([36, 0]), "BOOL").tolist() == [True, False]
    single = onnx.cast(np.array([3.1415926459]), "FLOAT")
    assert single.tolist() == [float(np.float32(3.1415926459))]


@pytest.mark.parametrize("src", FLOAT_SOURCES)
def test_float_to_bool_is_false_for_zeros_alone(src: str) -> None:
    values = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-30, -2.0]).astype(dtype_of(src))
    wanted = [False, False, True, True, True, src != "FLOAT16", True]
    assert onnx.cast(values, "BOOL").tolist() == wanted


def test_minus_zero_of_float8_is_false_and_subnormal_numbers_are_true() -> None:
    for name in ("FLOAT8E4M3FN", "FLOAT8E5M2"):
        values = np.array([0x00, 0x80, 0x01], np.uint8).view(dtype_of(name))
        assert onnx.cast(values, "BOOL").tolist() == [False, False, True]
    assert onnx.cast(np.array([1], np.uint32).view(np.float32), "BOOL").tolist() == [True]


@pytest.mark.parametrize("to", [t for t in FORMATS if t is not TensorType.FLOAT8E8M0])
def test_bool_is_zero_and_one(to: TensorType) -> None:
    got = onnx.cast(np.array([False, True]), to)
    assert got.dtype == FORMATS[to].dtype
    # A signed 2-bit integer ends at 1, so everything holds both.
    assert got.astype(np.float32).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("src", ["FLOAT", "FLOAT16", "DOUBLE"])
def test_out_of_range_is_infinity_between_floats(src: str) -> None:
    big = np.array([65504.0, -65504.0]).astype(dtype_of(src))
    assert onnx.cast(big * 4 if src != "FLOAT16" else big, "FLOAT16").tolist() == (
        [np.inf, -np.inf] if src != "FLOAT16" else [65504.0, -65504.0]
    )
    assert onnx.cast(np.array([1e39, -1e39]), "FLOAT").tolist() == [np.inf, -np.inf]
    assert onnx.cast(np.array([3.4e38, -3.4e38]), "BFLOAT16").astype(float).tolist() == [
        float(np.float64(ml_dtypes.bfloat16(3.4e38))),
        -float(np.float64(ml_dtypes.bfloat16(3.4e38))),
    ]


def test_integers_out_of_range_of_float16_are_infinite() -> None:
    numbers = np.array([65519, 65520, -65520, 65504], np.int64)
    assert onnx.cast(numbers, "FLOAT16").tolist() == [65504.0, np.inf, -np.inf, 65504.0]
    assert onnx.cast(np.array([2**64 - 1], np.uint64), "FLOAT16").tolist() == [np.inf]


INTEGERS = ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"]


@pytest.mark.parametrize("src", ["FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE"])
@pytest.mark.parametrize("to", INTEGERS)
def test_our_choice_is_to_clamp_floats_out_of_range(src: str, to: str) -> None:
    info = np.iinfo(dtype_of(to))
    values = np.array([np.nan, -np.nan, np.inf, -np.inf, 1.75, -1.75, -0.5]).astype(dtype_of(src))
    negative = 0 if info.min == 0 else -1
    wanted = [0, 0, info.max, info.min, 1, negative, 0]
    assert onnx.cast(values, to).tolist() == wanted
    if src in ("FLOAT", "DOUBLE"):
        beyond = np.array([float(info.max) * 2, -1e30]).astype(dtype_of(src))
        assert onnx.cast(beyond, to).tolist() == [info.max, info.min]


@pytest.mark.parametrize("src", INTEGERS)
@pytest.mark.parametrize("to", [*INTEGERS, "INT4", "UINT4", "INT2", "UINT2"])
def test_integers_keep_low_bits(src: str, to: str) -> None:
    info = np.iinfo(dtype_of(src))
    numbers = [info.min, info.max, info.max // 3, 0, 1, 100]
    got = onnx.cast(np.array(numbers, dtype_of(src)), to)
    bits = FORMATS[TensorType[to]].bits
    assert [int(n) % 2**bits for n in got.tolist()] == [n % 2**bits for n in numbers]
    assert got.dtype == dtype_of(to)


@pytest.mark.parametrize(
    ("to", "wanted"),
    [("INT4", [7, -8, 1, 0, -1]), ("UINT4", [7, 8, 1, 0, 15]), ("INT2", [-1, 0, 1, 0, -1])],
)
def test_float_to_4_and_2_bits_truncates_and_keeps_low_bits(to: str, wanted: list[int]) -> None:
    got = onnx.cast(np.array([-9.0, 8.0, 1.9, -0.9, 15.5], np.float32), to)
    assert got.astype(int).tolist() == wanted
    far = np.array([np.nan, np.inf, -np.inf, 2.0**40 + 2**20, 2.0**33 + 1024], np.float64)
    info = FORMATS[TensorType[to]]
    assert onnx.cast(far, to).astype(int).tolist() == [0, info.max, info.min, 0, 0]


@pytest.mark.parametrize(
    ("to", "largest"), [("FLOAT4E2M1", 6), ("FLOAT6E2M3", 7.5), ("FLOAT6E3M2", 28)]
)
@pytest.mark.parametrize("saturate", [True, False], ids=["saturate", "no-saturate"])
def test_formats_without_infinity_and_nan(to: str, largest: float, saturate: bool) -> None:
    values = np.array([np.inf, -np.inf, 1e6, -1e6, np.nan, -0.0, 0.25, 1.0], np.float32)
    got = onnx.cast(values, to, saturate=saturate).astype(np.float32)
    quarter = 0.0 if to == "FLOAT4E2M1" else 0.25
    wanted = np.array([largest, -largest, largest, -largest, 0.0, -0.0, quarter, 1.0], np.float32)
    # As codes, so that -0 counts.
    np.testing.assert_array_equal(got.view(np.uint32), wanted.view(np.uint32))


# --- No double rounding ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "to", "wanted"),
    [
        (1 + 2.0**-4 + 2.0**-30, "FLOAT8E4M3FN", 1.125),
        (1 + 2.0**-11 + 2.0**-40, "FLOAT16", 1.0009765625),
        (65519.9999999999, "FLOAT16", 65504.0),
        (1 + 2.0**-8 + 2.0**-40, "BFLOAT16", 1 + 2.0**-7),
        (-1 - 2.0**-8 - 2.0**-40, "BFLOAT16", -1 - 2.0**-7),
        (2.0**-134 * (1 + 2.0**-40), "BFLOAT16", 2.0**-133),
        (2.0**-134, "BFLOAT16", 0.0),
        (1.25 + 2.0**-40, "FLOAT4E2M1", 1.5),
    ],
)
def test_double_is_rounded_once(value: float, to: str, wanted: float) -> None:
    assert onnx.cast([value] * 40, to).astype(np.float64).tolist() == [wanted] * 40


@pytest.mark.parametrize("src", [np.int32, np.uint32, np.int64, np.uint64])
def test_integers_are_rounded_once(src: type) -> None:
    x = np.array([2**30 + 2**22 + 1, 2**30 + 2**22], src)
    assert onnx.cast(x, "BFLOAT16").astype(float).tolist() == [2.0**30 + 2**23, 2.0**30]


@pytest.mark.parametrize("sign", [1, -1])
def test_64_bit_integers_are_rounded_once(sign: int) -> None:
    x = np.array([sign * (2**62 + 2**54 + 1), sign * (2**62 + 2**54)], np.int64)
    wanted = [sign * (2.0**62 + 2.0**55), sign * 2.0**62]
    assert onnx.cast(x, "BFLOAT16").astype(float).tolist() == wanted
    if sign > 0:
        assert onnx.cast(x.astype(np.uint64) * 2, "BFLOAT16").astype(float).tolist() == [
            2 * n for n in wanted
        ]


# --- Arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("to", FORMATS, ids=lambda t: t.name)
def test_to_is_a_number_a_name_or_a_dtype(to: TensorType) -> None:
    x = np.array([1.0], np.float32)
    wanted = onnx.cast(x, to)
    for spelling in (int(to), np.int64(to), to.name, FORMATS[to].dtype, FORMATS[to].dtype.type):
        got = onnx.cast(x, spelling)
        assert got.dtype == wanted.dtype == FORMATS[to].dtype
        assert codes_of(got) == codes_of(wanted)


def test_numbers_and_names_are_those_of_onnx() -> None:
    proto = pytest.importorskip("onnx", reason="onnx is not installed").TensorProto
    refused = {"UNDEFINED", "COMPLEX64", "COMPLEX128"}
    theirs = {name: value for name, value in proto.DataType.items() if name not in refused}
    ours = {t.name: int(t) for t in TensorType}
    assert {name: theirs.get(name, value) for name, value in ours.items()} == ours
    assert set(theirs) <= set(ours)


def test_str_is_a_dtype_too() -> None:
    for to in (str, np.str_, object, "STRING", 8):
        assert onnx.cast([1], to).tolist() == ["1"]


@pytest.mark.parametrize(
    ("to", "error", "text"),
    [
        (14, TypeError, "complex is not supported: to=14 \\(COMPLEX64\\)"),
        ("COMPLEX128", TypeError, "complex is not supported"),
        (np.complex64, TypeError, "complex is not supported"),
        (0, ValueError, "UNDEFINED"),
        (99, ValueError, "has no 99; it has FLOAT=1, UINT8=2"),
        ("float8", ValueError, "has no 'float8' .*; it has FLOAT=1"),
        (True, TypeError, "BOOL is 9"),
        (None, TypeError, "not None"),
        (1.5, TypeError, "not 1.5"),
        (np.longdouble, TypeError, "no tensor type for"),
        (ml_dtypes.float8_e3m4, TypeError, "no tensor type for float8_e3m4"),
        (np.dtype("M8[s]"), TypeError, "no tensor type for"),
    ],
)
def test_refused_destinations(to: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        onnx.cast(np.zeros(2, np.float32), to)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.zeros(2, np.complex64), "complex is not supported: complex64"),
        (np.zeros(2, np.longdouble), "no tensor type for"),
        (np.zeros(2, "M8[s]"), "no tensor type for"),
        (np.zeros(2, ml_dtypes.float8_e3m4), "no tensor type for float8_e3m4"),
        (np.array([1, 2], object), "element \\[0\\] is 1 \\(int\\)"),
        (np.ma.masked_array([1, 2], [0, 1]), "masked array"),
    ],
)
def test_refused_sources(x: np.ndarray, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        onnx.cast(x, "FLOAT")


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"saturate": 2}, ValueError, "saturate must be True or False"),
        ({"round_mode": "even"}, ValueError, "one of \\['up', 'down', 'nearest'\\], not 'even'"),
        ({"opset": 5}, ValueError, "at least 6"),
        ({"opset": "25"}, TypeError, "opset must be an integer"),
        ({"opset": True}, TypeError, "opset must be an integer"),
    ],
)
def test_refused_options(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        onnx.cast([1.0], "FLOAT16", **options)


# --- Arrays ------------------------------------------------------------------------------------


def test_any_shape_strides_and_byte_order() -> None:
    x = np.arange(-60, 60, dtype=np.float32).reshape(2, 3, 20) / 8
    wanted = onnx.cast(x, "FLOAT8E4M3FN")
    assert wanted.shape == x.shape
    for other in (np.asfortranarray(x), x.astype(">f4"), x.transpose(2, 0, 1), x[:, ::-1, ::3]):
        got = onnx.cast(other, "FLOAT8E4M3FN")
        assert codes_of(got) == codes_of(np.stack([onnx.cast(o, 17) for o in other]))
        assert got.flags.c_contiguous
    assert onnx.cast(np.float32(1.5), "INT8").shape == ()
    assert onnx.cast(np.empty((0, 3), np.int8), "FLOAT").shape == (0, 3)
    assert onnx.cast([[1, 2], [3, 4]], "FLOAT16").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert onnx.cast(2.5, "INT32").tolist() == 2


@pytest.mark.parametrize("source", FORMATS, ids=lambda t: t.name)
def test_the_same_type_is_copied_bit_by_bit(source: TensorType) -> None:
    fmt = FORMATS[source]
    codes = np.arange(1 << min(fmt.bits, 16), dtype=fmt.code_dtype)
    x = codes.view(fmt.dtype)
    got = onnx.cast(x, source, saturate=False)
    np.testing.assert_array_equal(got.view(fmt.code_dtype), codes)
    assert not np.shares_memory(got, x)
    swapped = x.astype(x.dtype.newbyteorder(">")) if fmt.dtype.isbuiltin == 1 else x
    assert codes_of(onnx.cast(swapped, source, saturate=False)) == codes.tolist()
    largest = {0x7C: 0x7B, 0xFC: 0xFB} if source is TensorType.FLOAT8E5M2 else {}
    assert codes_of(onnx.cast(x, source)) == [largest.get(code, code) for code in codes.tolist()]
    assert onnx.cast(swapped, source).dtype.isnative


def test_the_source_is_not_modified() -> None:
    x = np.array([1.5, np.nan, np.inf, -1e30], np.float32)
    before = x.copy()
    x.flags.writeable = False
    for to in FORMATS:
        onnx.cast(x, to)
    np.testing.assert_array_equal(x.view(np.uint32), before.view(np.uint32))


def test_threads_give_the_same_codes() -> None:
    x = np.random.default_rng(5).standard_normal(300_001).astype(np.float32) * 300
    alone = onnx.cast(x, "FLOAT8E4M3FN")
    with pypto_cast.options(threads=3):
        np.testing.assert_array_equal(onnx.cast(x, 17).view(np.uint8), alone.view(np.uint8))


def test_cast_like_takes_the_type_alone() -> None:
    x = np.array([1.5, 500.0, -2.0], np.float32)
    for target in (np.empty(0, ml_dtypes.float8_e4m3fn), np.zeros((2, 2), ml_dtypes.float8_e4m3fn)):
        got = onnx.cast_like(x, target, saturate=False)
        assert codes_of(got) == codes_of(onnx.cast(x, 17, saturate=False))
    assert onnx.cast_like(x, ["text"]).tolist() == ["1.5", "500.0", "-2.0"]
    assert onnx.cast_like([3.0], np.zeros(0, ml_dtypes.float8_e8m0fnu), round_mode="down").astype(
        float
    ).tolist() == [2.0]
    fnuz = np.zeros(0, ml_dtypes.float8_e5m2fnuz)
    assert codes_of(onnx.cast_like([np.inf], fnuz, opset=19)) == [0x80]
    with pytest.raises(TypeError, match="complex"):
        onnx.cast_like(x, 1j)


def test_cast_grad() -> None:
    dy = np.array([1.5, -2.25, np.nan, 1e6], np.float32)
    x = np.zeros(4, np.float16)
    plain = onnx.cast_grad(dy, x)
    assert codes_of(plain) == codes_of(onnx.cast(dy, "FLOAT16"))
    assert onnx.cast_grad(dy[:2], x, 0.1).tolist() == [
        float(np.float16(np.float64(v) * 0.1)) for v in dy[:2]
    ]
    assert np.isnan(
        onnx.cast_grad([500.0], np.zeros(1, ml_dtypes.float8_e4m3fn)).astype(float)
    ).all()
    for bad_dy, bad_x, name in [
        (np.zeros(1, int), x, "dy holds INT64"),
        (dy, np.zeros(1, bool), "x holds BOOL"),
        (["a"], x, "dy holds STRING"),
    ]:
        with pytest.raises(TypeError, match=f"{name}; only float types have gradients"):
            onnx.cast_grad(bad_dy, bad_x)


@pytest.mark.slow
def test_importing_the_dialect_does_not_import_onnx() -> None:
    program = (
        "import sys; from pypto_cast.dialects import onnx; onnx.cast([1.5], 'FLOAT16');"
        "assert 'onnx' not in sys.modules and 'onnxruntime' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_unknown_attribute_is_one() -> None:
    with pytest.raises(AttributeError, match="no attribute 'run'"):
        getattr(onnx, "ru" + "n")
