"""One conversion in every dialect, and how many codes two of them differ in."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.dialects import Comparison, c_casts, compare, compare_formats
from pypto_cast.dialects.systems import DIALECTS
from simulator.numbers import formats
from simulator.numbers.formats import FORMATS, FloatFormat
from simulator.numbers.literals import nearest_code, number_named

FLOATS = [fmt for fmt in FORMATS.values() if isinstance(fmt, FloatFormat) and fmt.bits <= 16]


def results(found: Comparison) -> dict[str, str | None]:
    return {row.dialect: None if row.value is None else str(row.value) for row in found.rows}


def test_the_question_of_every_port() -> None:
    assert results(compare(130.0, "float16", "int8")) == {
        "pypto": "127",
        "pypto-off": "-126",
        "torch": "-126",
        "onnx": "127",
        "openvino": "-126",
        "paddle": None,  # undefined in its C++
        "numpy": "-126",
    }


def test_a_pair_that_pypto_lacks_has_the_route() -> None:
    with pytest.raises(pypto.UnsupportedCastError) as refused:
        pypto.cast(pypto.tensor([1], pypto.DT_FP32, data=[300.5]), pypto.DT_INT8)
    rules = {row.dialect: row.rule.text for row in compare(300.5, "float32", "int8").rows}
    assert rules["pypto"] == rules["pypto-off"] == str(refused.value)
    assert "FP32 -> FP16 CAST_TRUNC -> INT8 CAST_TRUNC" in rules["pypto"]


@pytest.mark.parametrize(
    ("value", "src", "dst", "wanted"),
    [
        pytest.param(
            "nan",
            "float32",
            "int32",
            {"pypto": "0", "torch": "-2147483648", "onnx": "0", "numpy": "-2147483648"},
            id="nan-int32",
        ),
        pytest.param(
            500.0,
            "float32",
            "float8_e4m3fn",
            {"pypto": None, "torch": "448", "onnx": "448", "openvino": "nan", "numpy": "nan"},
            id="overflow-e4m3fn",
        ),
        pytest.param(
            2**30 + 2**22 + 1,
            "int64",
            "bfloat16",
            {"torch": str(2**30), "onnx": str(2**30 + 2**23), "numpy": str(2**30)},
            id="double-rounding",
        ),
        pytest.param(
            70000,
            "int32",
            "float16",
            {"pypto": "inf", "torch": "inf", "onnx": "inf", "openvino": "65504", "numpy": "inf"},
            id="overflow-fp16",
        ),
        pytest.param(
            "1.005",
            "float32",
            "bfloat16",
            {"pypto": "1.0078125", "openvino": "1", "numpy": "1.0078125"},
            id="openvino-bfloat16",
        ),
        pytest.param(
            300,
            "int32",
            "uint8",
            {"pypto": None, "torch": "44", "onnx": "44", "openvino": "44", "numpy": "44"},
            id="low-bits",
        ),
    ],
)
def test_values(value: object, src: str, dst: str, wanted: dict[str, str | None]) -> None:
    found = results(compare(value, src, dst))
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize("dst", [formats.UINT32, formats.UINT64], ids=str)
def test_what_a_c_cast_leaves_open_begins_beyond_the_greatest(dst: formats.IntFormat) -> None:
    beyond = 2.0**dst.bits
    settled = [0.0, -0.0, -0.5, 1.5, np.nextafter(beyond, 0.0), dst.max // 2**11 * 2.0**11]
    settled += [beyond - 1] if dst.bits < 53 else []
    is_open = [-1.0, -1e30, beyond, 1e30, np.inf, -np.inf, np.nan]
    codes = np.array(settled + is_open).view(np.uint64)
    found = c_casts.leaves_open(codes, formats.FP64, dst)
    assert found.tolist() == [False] * len(settled) + [True] * len(is_open)


def test_rules_are_cited() -> None:
    found = compare_formats("float16", "int8")
    assert found.value is None
    frameworks = ["pypto", "pypto-off", "torch", "onnx", "openvino", "paddle", "numpy"]
    assert [row.dialect for row in found.rows] == frameworks
    assert all(row.rule.text and row.rule.source for row in found.rows)
    assert "C17 6.3.1.4" in found["torch"].rule.source
    assert "torch 2.13" in found["torch"].rule.source


def test_what_is_not_settled_is_not_told() -> None:
    row = compare(-3e9, "float32", "uint32")["torch"]
    assert (row.code, row.value, row.is_open) == (None, None, True)
    row = compare(3e9, "float32", "uint32")["torch"]
    assert (row.code, str(row.value), row.is_open) == (3_000_000_000, "3000000000", False)


@pytest.mark.parametrize(
    "names",
    [
        ("float16", "int8"),
        ("DT_FP16", "DT_INT8"),
        ("fp16", "INT8"),
        (np.float16, np.int8),
        (np.dtype(np.float16), np.dtype(np.int8)),
        (pypto.DT_FP16, pypto.DT_INT8),
    ],
    ids=str,
)
def test_dtypes_by_any_name(names: tuple[object, object]) -> None:
    assert compare(130, *names) == compare(130, "float16", "int8")


def test_ml_dtypes() -> None:
    assert compare_formats(ml_dtypes.bfloat16, ml_dtypes.int4).src.name == "BF16"


def test_a_value_is_taken_exactly() -> None:
    """The shortest text of this tie lies below it, and so would round down instead of to even."""
    tie = 9.5 * 2.0**-24
    assert Fraction(repr(tie)) < Fraction(tie)
    assert compare(tie, "float16", "float32").code == 10
    assert compare(np.float32(0.1), "float64", "float32").value.fraction == Fraction(
        float(np.float32(0.1))
    )
    assert compare("0.1", "float64", "float32").value.fraction == Fraction(0.1)
    assert compare("code:0x5810", "float16", "int8").rows == compare(130, "float16", "int8").rows


def test_a_mode_is_pyptos() -> None:
    found = compare(2.5, "float16", "int8", mode=pypto.CAST_CEIL)
    assert results(found) | {"pypto": "3", "torch": "2"} == results(found)
    found = compare(2.5, "float16", "int8", mode=pypto.CAST_ODD)
    assert "rounded by CAST_TRUNC (the pair has no CAST_ODD)" in found["pypto"].rule.text
    assert "has no" not in compare_formats("float16", "int8")["pypto"].rule.text


def test_fp32_to_itself() -> None:
    found = compare(0.5, "float32", "float32")["pypto"]
    assert (str(found.value), found.rule.text) == ("0.5", "nothing changes")
    found = compare(0.5, "float32", "float32", mode=pypto.CAST_CEIL)["pypto"]
    assert str(found.value) == "1"
    assert found.rule.text.startswith("rounded to an integral value by CAST_CEIL, every zero +0")


@pytest.mark.parametrize(
    ("src", "dst", "text"),
    [
        ("float16", "uint8", "the low bits, infinity clamped"),
        ("float32", "int16", "clamped to INT32, then the low bits"),
        ("int32", "int16", "the low bits"),
    ],
)
def test_words_of_off(src: str, dst: str, text: str) -> None:
    assert text in compare_formats(src, dst)["pypto-off"].rule.text.split(", NaN")[0]


def test_nan_bits_are_told_where_they_are_settled() -> None:
    """torch gives 0x7fc0 or 0xffff for the same NaN, by its code path."""
    found = compare("nan", "float32", "bfloat16")
    assert {row.dialect: row.code for row in found.rows if row.dialect != "openvino"} == {
        **{"pypto": 0x7FFF, "pypto-off": 0x7FFF, "onnx": 0x7FFF},
        **{"torch": None, "paddle": None, "numpy": None},
    }
    assert {str(found[name].value) for name in ("torch", "paddle", "numpy")} == {"nan"}
    fnuz = compare("nan", "float32", "float8_e4m3fnuz")
    assert (fnuz["torch"].code, fnuz["numpy"].code) == (0x80, 0x80)


def test_openvino_rounds_the_payload_of_a_nan() -> None:
    """0x7fffffff becomes -0 in bf16, where the NaN of arithmetic, 0x7fc00000, stays one."""
    for literal, code in (("nan", 0x8000), ("code:0x7fc00000", 0x7FC0)):
        row = compare(literal, "float32", "bfloat16")["openvino"]
        assert row.code == code
        assert "NaN" in row.rule.text


@pytest.mark.parametrize(
    ("value", "src", "code"),
    [
        (1.0, "float8_e8m0fnu", 0x7F),
        (2.0**-127, "float8_e8m0fnu", 0x00),
        (2.0**127, "float8_e8m0fnu", 0xFE),
        (0.3, "float8_e8m0fnu", 0x7D),
        ("nan", "float8_e8m0fnu", 0xFF),
        ("-0.0", "float8_e4m3fnuz", 0x00),
        (-1e-9, "float8_e5m2fnuz", 0x00),
        (-1.0, "float8_e4m3fnuz", 0xC0),
        ("nan", "float8_e5m2fnuz", 0x80),
        ("-0.0", "float8_e4m3fn", 0x80),
        (449.0, "float8_e4m3fn", 0x7E),
        ("-inf", "float8_e5m2", 0xFC),
        (61440.0, "float8_e5m2", 0x7C),
        (6.1, "float4_e2m1fn", 0x07),
    ],
)
def test_the_nearest_code(value: object, src: str, code: int) -> None:
    assert compare(value, src, "float32").code == code


@pytest.mark.parametrize("fmt", [fmt for fmt in FLOATS if fmt.is_in_numpy], ids=str)
def test_every_code_is_nearest_to_its_value(fmt: FloatFormat) -> None:
    """Read back by numpy and ml_dtypes, which share no code with the reading of numbers."""
    for code in range(0, 1 << fmt.bits, 1 if fmt.bits <= 8 else 37):
        value = np.array([code], fmt.code_dtype).view(fmt.dtype)
        with np.errstate(invalid="ignore"):
            number = float(value.astype(np.float64)[0])
        if not np.isnan(number):
            assert nearest_code(number_named(repr(number)), fmt) == code


# --- Settings, FakeConvert and Paddle -------------------------------------------------------------


def test_every_dialect_has_a_row_somewhere() -> None:
    pairs = [("float16", "float8_e4m3fn"), ("float16", "float8_e5m2fnuz"), ("float32", "DT_HF8")]
    assert {row.dialect for pair in pairs for row in compare_formats(*pair).rows} == set(DIALECTS)


@pytest.mark.parametrize(
    ("value", "src", "dst", "wanted"),
    [
        (500, "float32", "float8_e4m3fn", {"onnx": "448", "onnx-off": "nan"}),
        (70000, "float32", "float8_e5m2", {"onnx": "57344", "onnx-off": "inf"}),
        (0, "float32", "float8_e8m0fnu", {"onnx-off": "nan"}),
        (1, "float32", "float8_e8m0fnu", {"onnx": "1", "onnx-off": "1"}),
        (
            "inf",
            "float32",
            "float8_e4m3fnuz",
            {"onnx": "240", "onnx-19": "nan", "onnx-off": "nan"},
        ),
        (500, "float32", "float8_e4m3fnuz", {"onnx": "240", "onnx-19": "240", "onnx-off": "nan"}),
        (
            "nan",
            "float32",
            "float8_e4m3fn",
            {"fake-reference": "448", "fake-plugin": "-448", "fake-rne": "nan", "openvino": "nan"},
        ),
        (
            1.5 * 2**-9,
            "float32",
            "float8_e4m3fn",
            {"fake-reference": str(2.0**-9), "fake-plugin": str(2.0**-8), "fake-rne": "0.00390625"},
        ),
        (
            "inf",
            "bfloat16",
            "float8_e5m2",
            {"fake-reference": "57344", "fake-rne": "57344", "openvino": "inf", "onnx-off": "inf"},
        ),
        (130, "float16", "uint8", {"paddle": "130"}),
        (
            2**30 + 2**22 + 1,
            "int64",
            "bfloat16",
            {"paddle": str(2**30), "onnx": str(2**30 + 2**23)},
        ),
        (300, "int32", "uint8", {"paddle": "44"}),
        ("nan", "float32", "bool", {"paddle": "1"}),
    ],
)
def test_values_of_the_others(
    value: object, src: str, dst: str, wanted: dict[str, str | None]
) -> None:
    found = results(compare(value, src, dst))
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("src", "dst", "missing"),
    [
        (
            "float16",
            "int8",
            {"pypto-950", "onnx-off", "onnx-19", "fake-reference", "fake-plugin", "fake-rne"},
        ),
        ("float16", "float8_e4m3fn", {"pypto-950", "onnx-19"}),
        ("bfloat16", "float8_e4m3fn", {"pypto-950", "onnx-19", "fake-plugin"}),
        (
            "float64",
            "float8_e5m2",
            {"pypto-950", "onnx-19", "fake-reference", "fake-plugin", "fake-rne"},
        ),
        (
            "int8",
            "float8_e5m2fnuz",
            {"pypto-950", "onnx-19", "fake-reference", "fake-plugin", "fake-rne"},
        ),
        ("float32", "float8_e4m3fn", {"onnx-19"}),
        ("float32", "DT_HF8", {"onnx-off", "fake-reference", "fake-plugin", "fake-rne"}),
        (
            "int8",
            "float16",
            {"pypto-950", "onnx-off", "onnx-19", "fake-reference", "fake-plugin", "fake-rne"},
        ),
    ],
)
def test_rows_where_they_act(src: str, dst: str, missing: set[str]) -> None:
    assert set(DIALECTS) - {row.dialect for row in compare_formats(src, dst).rows} == missing


@pytest.mark.parametrize(
    ("value", "dst", "is_open"),
    [
        (127.9, "int8", False),
        (128, "int8", True),
        (-128.9, "int8", False),
        (-129, "int8", True),
        (-0.9, "uint8", False),
        (-1, "uint8", True),
        ("nan", "int64", True),
        ("-inf", "int32", True),
        (2.0**63, "int64", True),
        (-(2.0**63), "int64", False),
        (2.0**-80, "float16", True),
        (2.0**-91, "float16", False),
        (2.0**-76, "float16", False),
    ],
)
def test_what_paddle_leaves_to_cpp(value: object, dst: str, is_open: bool) -> None:
    row = compare(value, "float32", dst)["paddle"]
    assert (row.is_open, row.value is None) == (is_open, is_open)


class Typed:
    """The attributes that any library's tensor has."""

    dtype = np.dtype(np.float16)
    shape = (2, 3)


@pytest.mark.parametrize(
    "tensor",
    [np.zeros(3, np.float16), np.float16(0), Typed(), pypto.Tensor([2], pypto.DT_FP16)],
    ids=lambda value: type(value).__name__,
)
def test_tensors_for_their_dtypes(tensor: object) -> None:
    found = compare_formats(tensor, np.zeros(2, np.int8))
    assert (found.src.name, found.dst.name) == ("FP16", "INT8")


def test_torch_tensors_for_their_dtypes() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
    pair = (torch.ones(2, dtype=torch.bfloat16), torch.ones(2).to(torch.float8_e4m3fn))
    found = compare(torch.tensor(1.5), *pair)
    assert (found.literal, found.src.name, found.dst.name) == ("1.5", "BF16", "E4M3FN")


def test_a_tensor_of_rank_0_is_a_number() -> None:
    assert compare(np.array(130.0), np.zeros((), np.float16), "int8").literal == "130"
    with pytest.raises(TypeError, match="a value is a number or its text"):
        compare(np.array([130.0]), "float16", "int8")


# --- Over all codes -------------------------------------------------------------------------------


def test_differences_by_counting() -> None:
    """Against numpy's own cast, which is what its row tells."""
    found = compare_formats("float16", "int8").differences("onnx", "numpy")
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        wrapped = values.astype(np.int32).astype(np.int8)
        clamped = np.nan_to_num(np.clip(np.trunc(values), -128, 127), nan=0).astype(np.int8)
    wanted = np.flatnonzero(wrapped != clamped)
    assert found.count == wanted.size == 18154
    assert found.first == (wanted[0], clamped[wanted[0]].view("u1"), wrapped[wanted[0]].view("u1"))
    assert (found.open_count, found.total) == (0, 65536)


def test_two_nans_are_the_same() -> None:
    pair = compare_formats("float16", "float32")
    assert pair.differences("torch", "openvino").count == 0
    none = pair.differences("pypto", "numpy")
    assert (none.count, none.first) == (0, None)


def test_open_results_are_no_differences() -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        settled = int(((values > -1) & (values < np.inf)).sum())
    found = compare_formats("float16", "uint32").differences("onnx", "torch")
    assert (found.count, found.open_count) == (0, 65536 - settled)


def test_every_two_dialects() -> None:
    found = compare_formats("int16", "uint16").all_differences()
    pairs = {(one.first_dialect, one.second_dialect) for one in found}
    assert len(pairs) == len(found) == 6  # neither pypto nor Paddle has UINT16


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((130.0, "float16", None), TypeError, "a dtype is a name"),
        (
            (130.0, "float16", "float17"),
            ValueError,
            "unknown dtype 'float17' .*; known: .*bfloat16",
        ),
        ((130.0, np.complex64, "int8"), ValueError, "unknown dtype 'complex64'"),
        ((130.0, pypto.DT_HF4, "int8"), ValueError, "unknown dtype 'DT_HF4'"),
        ((130.0, 16, "int8"), TypeError, "not 16"),
        ((("float16", "int8"), "float16", "int8"), TypeError, "a value is a number or its text"),
        ((300, "int8", "float16"), ValueError, "300 is not in INT8, which holds -128 to 127"),
        (("nan", "int8", "float16"), ValueError, "nan is not in INT8"),
        (("hello", "float16", "int8"), ValueError, "is no number"),
        (("inf", "float8_e4m3fn", "int8"), ValueError, "inf is not in E4M3FN, .* -448 to 448"),
        ((500, "float8_e4m3fn", "int8"), ValueError, "500 is not in E4M3FN"),
        (("-inf", "float8_e5m2fnuz", "int8"), ValueError, "-inf is not in E5M2FNUZ"),
        (("nan", "float4_e2m1fn", "int8"), ValueError, "nan is not in E2M1, .* -6 to 6"),
        ((0, "float8_e8m0fnu", "int8"), ValueError, "0 is not in E8M0"),
        ((-1, "float8_e8m0fnu", "int8"), ValueError, "-1 is not in E8M0, which holds ~5.87"),
        ((2**200, "float8_e8m0fnu", "int8"), ValueError, "is not in E8M0"),
        ((None, "float16", "int8"), TypeError, "a value is a number or its text, not None"),
        (("code:0x10000", "float16", "int8"), ValueError, "16 bits"),
    ],
)
def test_refusals(arguments: tuple[object, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        compare(*arguments)


def test_a_mode_by_its_name_is_refused() -> None:
    name: Any = "ceil"
    with pytest.raises(TypeError, match=r"mode must be a pypto.CastMode .*, not 'ceil'"):
        compare(2.5, "float16", "int8", mode=name)


def test_refused_counts() -> None:
    with pytest.raises(ValueError, match=r"FP32 has 2\^32 codes"):
        compare_formats("float32", "int8").differences("onnx", "numpy")
    with pytest.raises(ValueError, match=r"FP32 has 2\^32 codes"):
        compare_formats("float32", "int8").all_differences()
    for name in ("tensorflow", "onnx-off", "fake-rne"):
        with pytest.raises(
            KeyError, match=f"no dialect '{name}'; there are pypto, .* for FP16 -> INT8"
        ):
            compare_formats("float16", "int8").differences("onnx", name)
    with pytest.raises(ValueError, match="torch does not convert FP16 to INT4: torch has no INT4"):
        compare_formats("float16", "int4").differences("pypto", "torch")


@pytest.mark.slow
def test_no_framework_is_imported() -> None:
    code = (
        "import sys; from pypto_cast.dialects import compare_formats as f;"
        "f('float16', 'int8').all_differences();"
        "print({'torch', 'onnx', 'openvino', 'paddle', 'typer'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("value", "src", "dst", "wanted"),
    [
        (1e6, "float32", "float8_e4m3fn", {"pypto-950": "nan", "torch": "448", "numpy": "nan"}),
        (1e6, "float32", "float8_e5m2", {"pypto-950": "inf", "torch": "inf", "numpy": "inf"}),
        (1.3, "float32", "DT_HF8", {"pypto-950": "1.25", "torch": None, "onnx": None}),
        ("nan", "bfloat16", "DT_FP4_E2M1X2", {"pypto-950": "0", "onnx": "0"}),
        (70_000, "int32", "float16", {"pypto": "inf", "pypto-950": "65504", "torch": "inf"}),
    ],
)
def test_the_950_beside_the_frameworks(
    value: object, src: str, dst: str, wanted: dict[str, str | None]
) -> None:
    found = results(compare(value, src, dst))
    assert {name: found[name] for name in wanted} == wanted


def test_no_code_of_bf16_to_fp4_differs_from_onnx() -> None:
    assert compare_formats("bfloat16", "DT_FP4_E2M1X2").differences("pypto-950", "onnx").count == 0
