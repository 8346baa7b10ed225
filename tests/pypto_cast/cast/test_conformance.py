"""Every pair in every mode, code by code, through the public API, against the oracle."""

from __future__ import annotations

import re
import warnings
from functools import cache, lru_cache

import numpy as np
import pytest
from support.numbers.codes import NUMPY, as_values, cast_codes, source_codes, whole_blocks
from support.numbers.oracle import (
    FORMATS,
    MODES,
    OFF_PAIRS,
    ROW_OF,
    ROWS,
    Row,
    expected_codes,
    row_id,
)

import pypto_cast as pypto

pytestmark = [
    pytest.mark.filterwarnings("error::pypto_cast.CastModeWarning"),
    pytest.mark.filterwarnings("error::pypto_cast.SaturationModeWarning"),
    pytest.mark.filterwarnings("error::pypto_cast.TileShapeWarning"),
]

CAST_FORMATS = tuple(dict.fromkeys(fmt for row in ROWS for fmt in (row.src, row.dst)))
HALF_FORMATS = ("FP16", "BF16")
OVERFLOW = {True: "inf_nan", False: "saturate"}
MODELESS = [row for row in ROWS if not row.modes]
CHOOSY = [row for row in ROWS if row.modes]
UNSUPPORTED = [
    (src, dst) for src in FORMATS for dst in FORMATS if src != dst and (src, dst) not in ROW_OF
]


def pair_id(pair: tuple[str, str]) -> str:
    return "-".join(pair).lower()


@cache
def default_codes(row: Row) -> tuple[np.ndarray, np.ndarray]:
    """Some source codes, and what the default mode makes of them."""
    codes = whole_blocks(source_codes(row.src, row.dst)[::16])
    return codes, expected_codes(codes, row.src, row.dst, row.default)


@lru_cache(maxsize=2)
def wanted_codes(row: Row, mode: str, satmode: str, *, inf_nan_mode: bool) -> np.ndarray:
    """The source codes as a mode converts them."""
    codes = whole_blocks(source_codes(row.src, row.dst))
    return expected_codes(codes, row.src, row.dst, mode, satmode=satmode, inf_nan_mode=inf_nan_mode)


def all_casts() -> list[object]:
    """One parameter set per row, mode, satmode and overflow mode; NONE where a row has no modes."""
    return [
        pytest.param(
            row,
            mode,
            satmode,
            inf_nan_mode,
            id=f"{row_id(row)}-{mode}-{satmode}-{OVERFLOW[inf_nan_mode]}".lower(),
        )
        for row in ROWS
        for mode in row.modes or ("NONE",)
        for satmode in (("ON", "OFF") if (row.src, row.dst) in OFF_PAIRS else ("ON",))
        for inf_nan_mode in (True, False)
    ]


@pytest.mark.parametrize(("row", "mode", "satmode", "inf_nan_mode"), all_casts())
@pytest.mark.sampled(144)
def test_cast(row: Row, mode: str, satmode: str, inf_nan_mode: bool) -> None:
    """Only FP16 and BF16 results may depend on the overflow mode."""
    codes = whole_blocks(source_codes(row.src, row.dst))
    wanted = wanted_codes(
        row,
        row.default if mode == "NONE" else mode,
        satmode,
        inf_nan_mode=inf_nan_mode or row.dst not in HALF_FORMATS,
    )
    actual = cast_codes(codes, row.src, row.dst, mode, satmode, inf_nan_mode=inf_nan_mode)
    np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("row", [row for row in CHOOSY if row.src != row.dst], ids=row_id)
def test_cast_none_is_the_default_of_the_pair(row: Row) -> None:
    codes, wanted = default_codes(row)
    np.testing.assert_array_equal(cast_codes(codes, row.src, row.dst, "NONE"), wanted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", [row for row in ROWS if row.exact], ids=row_id)
def test_an_exact_pair_ignores_every_mode_silently(row: Row, mode: str) -> None:
    codes = whole_blocks(source_codes(row.src, row.dst))
    wanted = cast_codes(codes, row.src, row.dst, "NONE")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pypto.CastModeWarning)
        actual = cast_codes(codes, row.src, row.dst, mode, strict=True)
    np.testing.assert_array_equal(actual, wanted)


@pytest.mark.filterwarnings("ignore::pypto_cast.CastModeWarning")
@pytest.mark.parametrize("satmode", ["ON", "OFF"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", [row for row in MODELESS if not row.exact], ids=row_id)
def test_no_mode_changes_an_integer_narrowing(row: Row, mode: str, satmode: str) -> None:
    codes = whole_blocks(source_codes(row.src, row.dst))
    wanted = cast_codes(codes, row.src, row.dst, "NONE", satmode)
    np.testing.assert_array_equal(cast_codes(codes, row.src, row.dst, mode, satmode), wanted)


LACKING = [
    pytest.param(row, mode, id=f"{row_id(row)}-{mode.lower()}")
    for row in CHOOSY
    for mode in MODES
    if mode not in row.modes
]


@pytest.mark.parametrize(("row", "mode"), LACKING)
def test_a_mode_the_pair_lacks_warns_and_takes_the_default(row: Row, mode: str) -> None:
    codes, wanted = default_codes(row)
    with pytest.warns(pypto.CastModeWarning) as record:
        actual = cast_codes(codes, row.src, row.dst, mode)
    np.testing.assert_array_equal(actual, wanted)
    words = set(re.findall(r"[A-Z][A-Z0-9]+", str(record[0].message).replace("CAST_", "")))
    assert set(row.modes) <= words
    assert words & set(MODES) <= {mode, *row.modes}


@pytest.mark.parametrize(("row", "mode"), LACKING)
def test_a_mode_the_pair_lacks_is_an_error_under_strict(row: Row, mode: str) -> None:
    codes = whole_blocks(source_codes(row.src, row.dst))
    with pytest.raises(pypto.CastModeError) as caught:
        cast_codes(codes, row.src, row.dst, mode, strict=True)
    assert isinstance(caught.value, ValueError)
    assert set(row.modes) <= set(re.findall(r"[A-Z]+", str(caught.value)))


@pytest.mark.parametrize(
    "row", [row for row in ROWS if (row.src, row.dst) not in OFF_PAIRS], ids=row_id
)
def test_saturation_off_warns_and_clamps_where_the_pair_lacks_it(row: Row) -> None:
    codes, wanted = default_codes(row)
    mode = row.default if row.modes else "NONE"
    with pytest.warns(pypto.SaturationModeWarning):
        actual = cast_codes(codes, row.src, row.dst, mode, "OFF")
    np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("fmt", CAST_FORMATS)
def test_equal_dtypes_and_cast_none_give_the_input_back(fmt: str) -> None:
    codes = whole_blocks(source_codes(fmt, fmt))
    for inf_nan_mode in (True, False):
        actual = cast_codes(codes, fmt, fmt, "NONE", inf_nan_mode=inf_nan_mode)
        np.testing.assert_array_equal(actual, codes)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", [fmt for fmt in CAST_FORMATS if fmt != "FP32"])
def test_equal_dtypes_other_than_fp32_ignore_the_mode_silently(fmt: str, mode: str) -> None:
    codes = whole_blocks(source_codes(fmt, fmt))
    np.testing.assert_array_equal(cast_codes(codes, fmt, fmt, mode, strict=True), codes)


@pytest.mark.parametrize("pair", UNSUPPORTED, ids=pair_id)
def test_any_other_pair_is_refused_by_naming_what_the_source_has(pair: tuple[str, str]) -> None:
    src, dst = pair
    x = pypto.from_numpy(as_values(np.zeros(64, np.uint64), src))
    with pypto.options(vec_tile_shapes=[64]), pytest.raises(pypto.UnsupportedCastError) as caught:
        pypto.cast(x, getattr(pypto, f"DT_{dst}"))
    assert isinstance(caught.value, TypeError)
    words = set(re.findall(r"[A-Z][A-Z0-9]+", str(caught.value).replace("DT_", "")))
    assert {row.dst for row in ROWS if row.src == src} <= words


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_the_input_is_left_as_it_was(row: Row) -> None:
    codes = whole_blocks(source_codes(row.src, row.dst)).copy()
    values = as_values(codes, row.src).copy()
    before = values.tobytes()
    with pypto.options(vec_tile_shapes=[8192]):
        y = pypto.cast(pypto.from_numpy(values), getattr(pypto, f"DT_{row.dst}"))
    assert values.tobytes() == before
    assert y.numpy().dtype == NUMPY[row.dst]
    assert not np.shares_memory(y.numpy(), values) or row.src == row.dst
