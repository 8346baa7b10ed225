"""Properties of every cast, whatever its bits: tiles, mirror images, round trips, order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.numbers.codes import cast_codes, is_nan, order, source_codes, specials, whole_blocks
from support.numbers.oracle import (
    FORMATS,
    OFF_PAIRS,
    ROW_OF,
    ROWS,
    Integer,
    Row,
    code_dtype,
    decode,
    row_id,
)

pytestmark = [
    pytest.mark.filterwarnings("error::pypto_cast.CastModeWarning"),
    pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning"),
]


def any_code(fmt: str) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << FORMATS[fmt].bits) - 1) | st.sampled_from(list(specials(fmt)))


# --- Tiles ------------------------------------------------------------------------------------


class TiledCast(NamedTuple):
    row: Row
    mode: str
    satmode: str
    inf_nan_mode: bool
    tile: tuple[int, ...]
    codes: np.ndarray


@st.composite
def tiled_casts(draw: st.DrawFn) -> TiledCast:
    """Shapes of 1 to 4 dimensions; tiles that divide them, do not, or stick out of them."""
    row = draw(st.sampled_from(ROWS))
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=7))
    tile = tuple(draw(st.integers(1, side + 2)) for side in shape)
    if "INT4" in (row.src, row.dst):
        shape = (*shape[:-1], shape[-1] * 2)
        tile = (*tile[:-1], tile[-1] * 2)
    return TiledCast(
        row=row,
        mode=draw(st.sampled_from(("NONE", *row.modes))),
        satmode=draw(
            st.sampled_from(("ON", "OFF") if (row.src, row.dst) in OFF_PAIRS else ("ON",))
        ),
        inf_nan_mode=draw(st.booleans()),
        tile=tile,
        codes=draw(hnp.arrays(code_dtype(row.src), shape, elements=any_code(row.src))),
    )


@pytest.mark.slow
@given(tiled_casts())
def test_no_result_depends_on_the_tile(case: TiledCast) -> None:
    row, mode, satmode, inf_nan_mode, tile, codes = case
    tiled = cast_codes(codes, row.src, row.dst, mode, satmode, tile=tile, inf_nan_mode=inf_nan_mode)
    untiled = cast_codes(
        codes, row.src, row.dst, mode, satmode, tile=codes.shape, inf_nan_mode=inf_nan_mode
    )
    np.testing.assert_array_equal(tiled, untiled)


# --- Mirror images ----------------------------------------------------------------------------

DIRECTED = [row for row in ROWS if "FLOOR" in row.modes and row.dst != "UINT8"]


def negated(codes: np.ndarray, fmt: str) -> np.ndarray:
    form = FORMATS[fmt]
    if isinstance(form, Integer):
        return np.negative(codes)
    return codes ^ code_dtype(fmt).type(form.sign_bit)


def has_a_mirror_image(code: int, src: str, dst: str) -> bool:
    """True if neither the code nor its result lies beyond what the negative can hold."""
    value = decode(code, src)
    for form in (FORMATS[src], FORMATS[dst]):
        beyond = value.kind != "finite" or value.magnitude > form.largest
        if isinstance(form, Integer) and beyond:
            return False
    return value.kind != "nan"


@pytest.mark.parametrize("row", DIRECTED, ids=row_id)
@given(data=st.data())
@pytest.mark.sampled(36)
def test_floor_is_the_mirror_image_of_ceil(row: Row, data: st.DataObject) -> None:
    suited = any_code(row.src).filter(lambda code: has_a_mirror_image(code, row.src, row.dst))
    codes = whole_blocks(np.array(data.draw(st.lists(suited, min_size=1)), code_dtype(row.src)))
    floor = cast_codes(codes, row.src, row.dst, "FLOOR")
    ceil = cast_codes(negated(codes, row.src), row.src, row.dst, "CEIL")
    np.testing.assert_array_equal(order(floor, row.dst), -order(ceil, row.dst))
    if row.src == "FP32" and row.dst in ("FP16", "BF16"):
        np.testing.assert_array_equal(floor, negated(ceil, row.dst))


# --- Round trips ------------------------------------------------------------------------------

ROUND_TRIPS = [
    pytest.param(narrow, wide, mode, id=f"{narrow}-{wide}-{narrow}-{mode}".lower())
    for narrow, wide in (
        ("FP16", "FP32"),
        ("BF16", "FP32"),
        ("INT16", "FP32"),
        ("INT8", "FP16"),
        ("UINT8", "FP16"),
        ("INT4", "FP16"),
        ("INT32", "INT64"),
    )
    for mode in ROW_OF[wide, narrow].modes or ("NONE",)
]


@pytest.mark.parametrize(("narrow", "wide", "mode"), ROUND_TRIPS)
def test_a_representable_value_survives_the_way_there_and_back(
    narrow: str, wide: str, mode: str
) -> None:
    codes = whole_blocks(source_codes(narrow, wide))
    back = cast_codes(cast_codes(codes, narrow, wide), wide, narrow, mode)
    nan = is_nan(codes, narrow)
    np.testing.assert_array_equal(back[~nan], codes[~nan])
    assert is_nan(back[nan], narrow).all()


# --- Order ------------------------------------------------------------------------------------

ORDERED = [
    pytest.param(row, mode, id=f"{row_id(row)}-{mode}".lower())
    for row in ROWS
    for mode in (row.modes or ("NONE",))
]


def sorted_by_value(codes: np.ndarray, fmt: str) -> np.ndarray:
    numbers = codes[~is_nan(codes, fmt)]
    return numbers[np.argsort(order(numbers, fmt), kind="stable")]


@pytest.mark.parametrize(("row", "mode"), ORDERED)
@pytest.mark.sampled(3)
def test_casts_keep_the_order_of_all_chosen_codes(row: Row, mode: str) -> None:
    codes = whole_blocks(source_codes(row.src, row.dst))
    ordered = sorted_by_value(codes, row.src)
    result = order(cast_codes(ordered, row.src, row.dst, mode), row.dst)
    assert (result[:-1] <= result[1:]).all()


@pytest.mark.parametrize(("row", "mode"), ORDERED)
@settings(max_examples=20)
@given(data=st.data())
@pytest.mark.sampled(6)
def test_casts_keep_the_order_of_a_run_of_codes(row: Row, mode: str, data: st.DataObject) -> None:
    start = data.draw(any_code(row.src))
    codes = np.array(
        [(start + step) % (1 << FORMATS[row.src].bits) for step in range(128)],
        code_dtype(row.src),
    )
    ordered = sorted_by_value(codes, row.src)
    result = order(cast_codes(np.resize(ordered, 128), row.src, row.dst, mode), row.dst)
    assert (result[:-1] <= result[1:])[: ordered.size - 1].all()
