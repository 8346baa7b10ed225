"""The literal examples of the rules and of the API documents, through the public API."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from support.environment.sources import CASE_TABLES
from support.numbers.codes import NUMPY, cast_codes

import pypto_cast as pypto

pytestmark = [
    pytest.mark.filterwarnings("error::pypto_cast.CastModeWarning"),
    pytest.mark.filterwarnings("error::pypto_cast.SaturationModeWarning"),
    pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning"),
]

DOC_EXAMPLES = CASE_TABLES / "api_doc_cast_examples.csv"
INF, NAN = float("inf"), float("nan")
MODES = ("RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD")


def cast_values(
    values: list[float] | list[int],
    src: str,
    dst: str,
    mode: str = "NONE",
    satmode: str = "ON",
    *,
    inf_nan_mode: bool = True,
) -> np.ndarray:
    array = np.array(values, NUMPY[src])
    if not any(value != value for value in values):
        assert array.tolist() == values, f"not all of {values} are {src} numbers"
    with pypto.options(vec_tile_shapes=[64], inf_nan_mode=inf_nan_mode):
        y = pypto.cast(
            pypto.from_numpy(array),
            getattr(pypto, f"DT_{dst}"),
            mode=pypto.CastMode[f"CAST_{mode}"],
            satmode=pypto.SaturationMode[satmode],
        )
    assert y.numpy().dtype == NUMPY[dst]
    return y.numpy()


def cast_one_code(
    code: int, src: str, dst: str, mode: str = "NONE", *, inf_nan_mode: bool = True
) -> int:
    codes = np.full(64, code, f"uint{NUMPY[src].itemsize * 8}")
    result = cast_codes(codes, src, dst, mode, tile=(64,), inf_nan_mode=inf_nan_mode)
    assert len(set(result.tolist())) == 1
    return int(result[0])


# --- Rounding ---------------------------------------------------------------------------------

HALF_TIE = 0.5 + 2**-12
HALF_UP = 0.5 + 2**-11


@pytest.mark.parametrize(
    ("src", "dst", "value", "modes", "result"),
    [
        ("FP32", "FP16", HALF_TIE, "RINT FLOOR TRUNC", 0.5),
        ("FP32", "FP16", HALF_TIE, "CEIL ROUND ODD", HALF_UP),
        ("INT32", "FP32", 2**25 + 3, "RINT CEIL ROUND", 2**25 + 4),
        ("INT32", "FP32", 2**25 + 3, "FLOOR TRUNC", 2**25),
        ("INT64", "FP32", 2**35 + 2**12 + 2**11, "RINT CEIL ROUND", 2**35 + 2**13),
        ("INT64", "FP32", 2**35 + 2**12 + 2**11, "FLOOR TRUNC", 2**35 + 2**12),
        ("FP32", "BF16", 0.5 + 2**-9 + 2**-11, "RINT CEIL ROUND", 0.5 + 2**-8),
        ("FP32", "BF16", 0.5 + 2**-9 + 2**-11, "FLOOR TRUNC", 0.5),
    ],
    ids=lambda value: str(value).replace(" ", "-").lower(),
)
def test_rounding(src: str, dst: str, value: float, modes: str, result: float) -> None:
    for mode in modes.split():
        assert cast_values([value], src, dst, mode).astype(np.float64).tolist() == [result], mode


# --- Float to integer, integer to integer -----------------------------------------------------


def test_130_becomes_the_largest_int8() -> None:
    assert cast_values([130.0], "FP16", "INT8").tolist() == [127]


@pytest.mark.parametrize(
    ("src", "dst", "low", "high"),
    [
        ("FP32", "INT16", -(2**15), 2**15 - 1),
        ("FP32", "INT32", -(2**31), 2**31 - 1),
        ("FP32", "INT64", -(2**63), 2**63 - 1),
        ("FP16", "INT32", -(2**31), 2**31 - 1),
        ("FP16", "INT16", -(2**15), 2**15 - 1),
        ("FP16", "INT8", -128, 127),
        ("FP16", "UINT8", 0, 255),
        ("FP16", "INT4", -8, 7),
        ("BF16", "INT32", -(2**31), 2**31 - 1),
    ],
)
@pytest.mark.parametrize("mode", MODES[:5])
def test_specials_to_integer(src: str, dst: str, low: int, high: int, mode: str) -> None:
    actual = cast_values([INF, -INF, NAN, -0.0], src, dst, mode)
    assert actual.astype(np.int64).tolist() == [high, low, 0, 0]


def test_negative_to_uint8_is_zero() -> None:
    assert cast_values([-1.0, -0.75, -65504.0], "FP16", "UINT8").tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("src", "dst", "values", "results"),
    [
        ("FP32", "INT16", [INF, -INF, NAN, 40000.0], [-1, 0, 0, -25536]),
        ("FP16", "INT16", [INF, -INF, NAN, 65504.0], [-1, 0, 0, -32]),
        ("FP16", "INT8", [INF, -INF, NAN, 300.0], [-1, 0, 0, 44]),
        ("FP16", "UINT8", [INF, -INF, NAN, -1.0, 257.0], [255, 0, 0, 255, 1]),
        ("INT64", "INT32", [2**31, 2**32 + 5, -(2**63), 2**63 - 1], [-(2**31), 5, 0, -1]),
        ("INT32", "INT16", [32768, 65541, -(2**31), 2**31 - 1], [-32768, 5, 0, -1]),
    ],
)
def test_saturation_off(src: str, dst: str, values: list[float], results: list[int]) -> None:
    assert cast_values(values, src, dst, satmode="OFF").tolist() == results


def test_saturation_off_warns_and_clamps_elsewhere() -> None:
    with pytest.warns(pypto.SaturationModeWarning):
        actual = cast_values([INF, -INF, 2.0**40, NAN], "BF16", "INT32", satmode="OFF")
    assert actual.tolist() == [2**31 - 1, -(2**31), 2**31 - 1, 0]


# --- Results in FP16 and BF16 -----------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_overflow_to_fp16(mode: str) -> None:
    up, down = {
        "RINT": (INF, -INF),
        "ROUND": (INF, -INF),
        "FLOOR": (65504.0, -INF),
        "CEIL": (INF, -65504.0),
        "TRUNC": (65504.0, -65504.0),
        "ODD": (65504.0, -65504.0),
    }[mode]
    values = [65520.0, -65520.0, 1048576.0, -1048576.0]
    assert cast_values(values, "FP32", "FP16", mode).tolist() == [up, down, up, down]


def test_where_rint_overflows() -> None:
    assert cast_one_code(0x477FEFFF, "FP32", "FP16", "RINT") == 0x7BFF
    assert cast_one_code(0x477FF000, "FP32", "FP16", "RINT") == 0x7C00
    assert cast_one_code(0x7F7F7FFF, "FP32", "BF16", "RINT") == 0x7F7F
    assert cast_one_code(0x7F7F8000, "FP32", "BF16", "RINT") == 0x7F80


@pytest.mark.parametrize(
    ("dst", "mode", "largest"),
    [("FP16", mode, 0x7BFF) for mode in MODES] + [("BF16", mode, 0x7F7F) for mode in MODES[:5]],
)
def test_saturation_mode(dst: str, mode: str, largest: int) -> None:
    for code in (0x7F800000, 0x7F7FFFFF):
        assert cast_one_code(code, "FP32", dst, mode, inf_nan_mode=False) == largest
        negative = cast_one_code(code | 0x80000000, "FP32", dst, mode, inf_nan_mode=False)
        assert negative == largest | 0x8000
    for nan in (0x7F800001, 0xFFC00000):
        assert cast_one_code(nan, "FP32", dst, mode, inf_nan_mode=False) == 0x0000


@pytest.mark.parametrize(
    ("src", "nans", "dst", "result"),
    [
        ("FP32", (0x7F800001, 0x7FC00000, 0xFF800001, 0xFFFFFFFF), "FP16", 0x7FFF),
        ("FP32", (0x7F800001, 0x7FC00000, 0xFF800001, 0xFFFFFFFF), "BF16", 0x7FFF),
        ("FP16", (0x7C01, 0x7E00, 0xFC01, 0xFFFF), "FP32", 0x7FFFFFFF),
        ("BF16", (0x7F81, 0x7FC0, 0xFF81, 0xFFFF), "FP32", 0x7FFFFFFF),
    ],
)
def test_nan_has_one_pattern(src: str, nans: tuple[int, ...], dst: str, result: int) -> None:
    assert [cast_one_code(nan, src, dst) for nan in nans] == [result] * len(nans)


def test_nan_has_one_pattern_in_a_rounded_fp32() -> None:
    assert cast_one_code(0xFF800001, "FP32", "FP32", "RINT") == 0x7FFFFFFF


def test_zero_keeps_its_sign_between_float_formats() -> None:
    assert cast_one_code(0x80000000, "FP32", "FP16") == 0x8000
    assert cast_one_code(0x80000000, "FP32", "BF16") == 0x8000
    assert cast_one_code(0x8000, "FP16", "FP32") == 0x80000000
    assert cast_one_code(0x8000, "BF16", "FP32") == 0x80000000


@pytest.mark.parametrize("mode", MODES[:5])
def test_fp32_to_fp32_gives_the_positive_zero(mode: str) -> None:
    assert cast_one_code(0x80000000, "FP32", "FP32", mode) == 0


def test_odd_below_the_smallest_subnormal() -> None:
    assert cast_one_code(0x00000001, "FP32", "FP16", "ODD") == 0x0001
    assert cast_one_code(0x80000001, "FP32", "FP16", "ODD") == 0x8001


def test_int32_to_fp16_overflows_from_65520() -> None:
    values = [65519, 65520, -65519, -65520, 2049, 2051]
    wanted = [65504.0, INF, -65504.0, -INF, 2048.0, 2052.0]
    assert cast_values(values, "INT32", "FP16").tolist() == wanted
    saturated = cast_values(values, "INT32", "FP16", inf_nan_mode=False).tolist()
    assert saturated == [65504.0, 65504.0, -65504.0, -65504.0, 2048.0, 2052.0]


# --- The API documents ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("src", "dst", "satmode", "values", "results"),
    [
        ("FP16", "INT8", "ON", [130.0], [127]),
        ("FP16", "INT8", "ON", [300.0, -300.0, 50.0], [127, -128, 50]),
        ("FP16", "INT8", "OFF", [300.0, -300.0, 50.0], [44, -44, 50]),
        ("FP32", "FP16", "ON", [2.0, 3.0], [2.0, 3.0]),
    ],
)
def test_examples_of_the_documents(
    src: str, dst: str, satmode: str, values: list[float], results: list[float]
) -> None:
    assert cast_values(values, src, dst, satmode=satmode).tolist() == results


@pytest.mark.skipif(
    not DOC_EXAMPLES.exists(),
    reason=f"the case tables are not beside this checkout: no {DOC_EXAMPLES.name}",
)
def test_examples_of_the_document_table() -> None:
    with DOC_EXAMPLES.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert rows
    for row in rows:
        satmode = row["satmode"] if row["satmode"] in ("ON", "OFF") else "ON"
        assert row["mode"] == "default"
        actual = cast_values(json.loads(row["input"]), row["src"], row["dst"], satmode=satmode)
        assert actual.tolist() == json.loads(row["output"]), row
