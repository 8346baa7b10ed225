"""ONNX Cast from and to text: what is a number, what it is rounded to, how numbers are written."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.environment.sources import CASE_TABLES

from pypto_cast.dialects import onnx
from pypto_cast.dialects.onnx import TensorType
from pypto_cast.dialects.onnx.types import FORMATS
from simulator.numbers.formats import FloatFormat

CASES = CASE_TABLES / "onnx_v1_18_string_cases.json"
FLOATS = [t for t, fmt in FORMATS.items() if isinstance(fmt, FloatFormat)]
INTEGERS = [t for t, fmt in FORMATS.items() if not isinstance(fmt, FloatFormat) and fmt.bits > 1]


def one(text: str, to: object, **options: Any) -> Any:
    (value,) = onnx.cast([text], to, **options).tolist()
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3.14", 3.14),
        ("1000", 1000.0),
        ("1e-5", 1e-5),
        ("1E8", 1e8),
        (".5", 0.5),
        ("5.", 5.0),
        ("+7", 7.0),
        ("-0", -0.0),
        (" 42", 42.0),
        ("42\t\n", 42.0),
        ("1e5", 1e5),
        ("00012", 12.0),
        ("1e400", math.inf),
        ("-1e400", -math.inf),
        ("1e-400", 0.0),
        ("-1e-999999999", -0.0),
        ("1e999999999", math.inf),
        ("1e1000000000000000000", math.inf),
        ("-1e1000000000000000000", -math.inf),
        ("1e-1000000000000000000", 0.0),
        ("-1e-1000000000000000000", -0.0),
        ("0e1000000000000000000", 0.0),
        ("-0.0e1000000000000000000", -0.0),
        ("1e" + "9" * 5000, math.inf),
        ("-1e-" + "9" * 5000, -0.0),
        ("15e-" + "0" * 5000 + "1", 1.5),
        ("." + "0" * 5000 + "15e5002", 15.0),
        ("5e-324", 5e-324),
        ("2.4703282292062327e-324", 0.0),
        ("2.4703282292062328e-324", 5e-324),
        ("1.7976931348623158e308", 1.7976931348623157e308),
        ("1.7976931348623159e308", math.inf),
    ],
    ids=lambda literal: str(literal)[:30],
)
def test_literals(text: str, value: float) -> None:
    got = one(text, "DOUBLE")
    assert (got, math.copysign(1, got)) == (value, math.copysign(1, value))


@pytest.mark.parametrize("blank", ["{}", " {}", "{} ", "\t{}\r\n"])
@pytest.mark.parametrize("to", ["FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE"])
def test_special_literals_in_any_case(to: str, blank: str) -> None:
    for text, value in [
        ("INF", math.inf),
        ("+INF", math.inf),
        ("+inf", math.inf),
        ("-Inf", -math.inf),
        ("-infinity", -math.inf),
        ("Infinity", math.inf),
    ]:
        assert float(one(blank.format(text), to)) == value
    for text in ("NaN", "nan", "NAN", "+nan", "-nan"):
        assert math.isnan(float(one(blank.format(text), to)))


def test_special_literals_follow_saturate() -> None:
    texts = ["INF", "-INF", "1e400", "465"]
    assert onnx.cast(texts, "FLOAT8E4M3FN").astype(float).tolist() == [448, -448, 448, 448]
    assert np.isnan(onnx.cast(texts, 17, saturate=False).astype(float)).all()
    assert onnx.cast(["INF"], "FLOAT8E5M2FNUZ", opset=23).view(np.uint8).tolist() == [0x80]
    assert onnx.cast(["3", "0", "-1"], "FLOAT8E8M0").view(np.uint8).tolist() == [0x81, 0, 0]


@pytest.mark.parametrize(
    "text",
    ["", " ", "Hello World!", "true", "0x10", "1_000", "1d5", "1,5", "1e", "e5", ".", "+", "1 2",
     "--1", "nano", "in", "٣", "1e5.0", "1\u00a0"],
)  # fmt: skip
@pytest.mark.parametrize("to", ["FLOAT", "INT32", "BOOL", "FLOAT8E4M3FN"])
def test_what_is_no_number_is_named_with_its_index(text: str, to: str) -> None:
    texts = np.array([["1", "2"], ["3", text]], object)
    with pytest.raises(ValueError, match=r"element \[1, 1\] is .*, which is no number") as caught:
        onnx.cast(texts, to)
    assert repr(text) in str(caught.value)


def test_index_of_a_scalar() -> None:
    with pytest.raises(ValueError, match=r"element \[\] is 'x', which is no number"):
        onnx.cast("x", "FLOAT")


@pytest.mark.parametrize(
    ("text", "to", "value"),
    [
        ("100.5", "INT32", 100),
        ("1e1000000000000000000", "INT32", 2**31 - 1),
        ("-1e1000000000000000000", "INT64", -(2**63)),
        ("-1e-1000000000000000000", "INT8", 0),
        ("2.718", "INT64", 2),
        ("-2.718", "INT8", -2),
        ("1e5", "INT32", 100000),
        (".9", "UINT8", 0),
        ("9007199254740993", "INT64", 9007199254740993),
        ("9223372036854775807", "INT64", 2**63 - 1),
        ("-9223372036854775808.5", "INT64", -(2**63)),
        ("18446744073709551615", "UINT64", 2**64 - 1),
        ("18446744073709551614.99", "UINT64", 2**64 - 2),
        ("18446744073709551616", "UINT64", 2**64 - 1),
        ("300", "INT8", 127),
        ("-1", "UINT8", 0),
        ("1e999999999", "INT64", 2**63 - 1),
        ("-1e999999999", "INT16", -(2**15)),
        ("1e-999999999", "INT64", 0),
        ("NaN", "INT32", 0),
        ("-INF", "INT32", -(2**31)),
        ("9", "INT4", 7),
    ],
)
def test_text_to_integers_truncates_exactly_and_clamps(text: str, to: str, value: int) -> None:
    assert int(one(text, to)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", False),
        ("-0.0", False),
        ("1", True),
        ("0.5", True),
        ("1e-999999999", True),
        ("NaN", True),
        ("INF", True),
    ],
)
def test_text_to_bool_is_not_zero(text: str, value: bool) -> None:
    assert one(text, "BOOL") is value


def test_floats_are_read_in_one_rounding() -> None:
    """Through double these would be ties, or seem to be."""
    assert one("1.00000005960464477539062500000000000000001", "FLOAT") == 1 + 2.0**-23
    assert one("1.000000059604644775390625", "FLOAT") == 1.0
    assert one("1.0004882812500000000000000000001", "FLOAT16") == 1 + 2.0**-10
    assert one("1.00048828125", "FLOAT16") == 1.0
    assert float(one("1.003906250000000000000000000001", "BFLOAT16")) == 1 + 2.0**-7
    assert float(one("1.0625000000000000000000000000001", "FLOAT8E4M3FN")) == 1.125
    assert one("65519.99999999999999999999", "FLOAT16") == 65504.0
    assert one("65520", "FLOAT16") == math.inf


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=None),
    st.sampled_from(["DOUBLE", "FLOAT"]),
)
def test_any_decimal_is_rounded_to_nearest_even(number: Any, to: str) -> None:
    """By fractions: no neighbour of the result is nearer, and a tie goes to the even code."""
    dtype = FORMATS[TensorType[to]].dtype
    got = onnx.cast([str(number)], to)[0]
    if np.isinf(got):
        largest = Fraction(float(np.finfo(dtype).max))
        half = (largest - Fraction(float(np.nextafter(np.finfo(dtype).max, dtype.type(0))))) / 2
        assert abs(Fraction(number)) >= largest + half
        return
    exact = Fraction(number)
    distance = abs(Fraction(float(got)) - exact)
    for toward in (-np.inf, np.inf):
        other = np.nextafter(got, dtype.type(toward))
        if np.isinf(other):
            continue
        gap = abs(Fraction(float(other)) - exact)
        even = int(np.array([got]).view(f"u{dtype.itemsize}")[0]) % 2 == 0
        assert distance < gap or (distance == gap and even)


@pytest.mark.parametrize(
    ("value", "src", "text"),
    [
        (314.15926, "DOUBLE", "314.15926"),
        (314.15926, "FLOAT", "314.15927"),
        (1.0, "FLOAT", "1.0"),
        (-0.0, "FLOAT", "-0.0"),
        (0.0, "DOUBLE", "0.0"),
        (100.0, "FLOAT", "100.0"),
        (1e-5, "FLOAT", "0.00001"),
        (1e20, "FLOAT", "100000000000000000000.0"),
        (1e20, "DOUBLE", "100000000000000000000.0"),
        (16777216.0, "FLOAT", "16777216.0"),
        (1 / 3, "DOUBLE", "0.3333333333333333"),
        (0.1, "FLOAT16", "0.1"),
        (448.0, "FLOAT8E4M3FN", "448.0"),
        (0.1, "BFLOAT16", "0.100097656"),
        (6.0, "FLOAT4E2M1", "6.0"),
        (math.inf, "FLOAT", "INF"),
        (-math.inf, "FLOAT16", "-INF"),
        (math.nan, "BFLOAT16", "NaN"),
        (-128, "INT8", "-128"),
        (2**64 - 1, "UINT64", "18446744073709551615"),
        (-8, "INT4", "-8"),
        (True, "BOOL", "1"),
        (False, "BOOL", "0"),
    ],
)
def test_how_numbers_are_written(value: Any, src: str, text: str) -> None:
    x = np.array([value], FORMATS[TensorType[src]].dtype)
    got = onnx.cast(x, "STRING")
    assert got.dtype == object
    assert got.tolist() == [text]


@pytest.mark.parametrize("src", FORMATS, ids=lambda t: t.name)
def test_written_numbers_read_back(src: TensorType) -> None:
    fmt = FORMATS[src]
    if fmt.bits <= 8:
        codes = np.arange(1 << fmt.bits, dtype=fmt.code_dtype)
    else:
        rng = np.random.default_rng(3)
        codes = rng.integers(0, 1 << fmt.bits, 500, dtype=fmt.code_dtype)
        codes[:4] = [0, 1, (1 << fmt.bits) - 1, 1 << (fmt.bits - 1)]
    x = codes.view(fmt.dtype)
    texts = onnx.cast(x, "STRING")
    assert not any("e" in text.lower() for text in texts)
    back = onnx.cast(texts, src)
    if isinstance(fmt, FloatFormat):
        with np.errstate(invalid="ignore"):  # signaling NaNs are among them
            wide = x.astype(np.float64)
        nan, inf = np.isnan(wide), np.isinf(wide)
        np.testing.assert_array_equal(np.isnan(back.astype(np.float64)), nan)
        finite = ~nan & ~inf
        np.testing.assert_array_equal(back.view(fmt.code_dtype)[finite], codes[finite])
        saturated = onnx.cast(texts, src, saturate=False)
        np.testing.assert_array_equal(saturated.view(fmt.code_dtype)[~nan], codes[~nan])
    else:
        np.testing.assert_array_equal(back.view(fmt.code_dtype), codes)


def test_text_arrays_of_every_kind() -> None:
    wanted = [1.5, 2.0]
    kinds = [["1.5", "2"], np.array(["1.5", "2"]), np.array([b"1.5", b"2"])]
    kinds += [np.array(["1.5", "2"], object), np.array([b"1.5", "2"], object)]
    if hasattr(np.dtypes, "StringDType"):
        kinds.append(np.array(["1.5", "2"], np.dtypes.StringDType()))
    for texts in kinds:
        assert onnx.cast(texts, "FLOAT").tolist() == wanted
        copied = onnx.cast(texts, "STRING")
        assert (copied.dtype, copied.tolist()) == (np.dtype(object), ["1.5", "2"])
    assert onnx.cast(np.empty((0, 2), object), "FLOAT").shape == (0, 2)
    assert onnx.cast("7", "INT8").shape == ()
    assert onnx.cast(np.int8(7), "STRING").item() == "7"
    assert onnx.cast(np.empty((2, 0), np.float32), "STRING").shape == (2, 0)
    assert onnx.cast(np.array([1.5, 2], ">f8"), "STRING").tolist() == ["1.5", "2.0"]


def cases() -> list[dict[str, Any]]:
    if not CASES.exists():
        return []
    found: list[dict[str, Any]] = json.loads(CASES.read_text())["cases"]
    return found


@pytest.mark.skipif(
    not CASES.exists(), reason=f"the case tables are not beside this checkout: no {CASES.name}"
)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_shipped_with_onnx_1_18(case: dict[str, Any]) -> None:
    run = onnx.cast_like if "castlike" in case["name"] else onnx.cast
    reads = case["name"].endswith("STRING_to_FLOAT")
    floats, texts = (case["output"], case["input"]) if reads else (case["input"], case["output"])
    numbers = np.array([float(x) for x in floats], np.float32)
    strings = np.array(texts, object)
    x, wanted = (strings, numbers) if reads else (numbers, strings)
    to: Any = "FLOAT" if reads else "STRING"
    if "castlike" in case["name"]:
        to = np.empty(0, np.float32 if reads else object)
    got = run(x.reshape(case["shape"]), to, opset=case["opset"])
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted.reshape(case["shape"]))


def test_e8m0_reads_back_at_both_ends() -> None:
    ends = np.array([0, 254], np.uint8).view(ml_dtypes.float8_e8m0fnu)
    texts = onnx.cast(ends, "STRING")
    assert onnx.cast(texts, 24).view(np.uint8).tolist() == [0, 254]
    assert texts[1] == "170141183460469231731687303715884105728.0"
