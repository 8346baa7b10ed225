"""TilePlan: what UB and upstream's rules refuse or advise against."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.programs.tile_plans import (
    FP16_INT4,
    FP32_FP16,
    INT64_FP32,
    MAX_ELEMS,
    SAFE_BYTES,
    UB_BYTES,
    WIDTHS,
    charged_bytes,
    planned,
    refused,
)

from tiling.chips import DEFAULT_CHIP
from tiling.grid import Shape
from tiling.plan import ShapeError, TileShapeError, choose_tile_shape
from tiling.ub import ElementBits

# --- The UB limit ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bits", "tile", "tile_bytes"),
    [
        pytest.param(FP32_FP16, (32768,), 196608, id="fp32-fp16-32768"),
        pytest.param(FP32_FP16, (3072, 3), 196608, id="fp32-fp16-3072x3"),
        pytest.param(FP32_FP16, (1228, 17), 1228 * 160, id="fp32-fp16-1228x17"),
        pytest.param(INT64_FP32, (16384,), 196608, id="int64-fp32-16384"),
    ],
)
def test_a_tile_up_to_the_limit_fits(bits: ElementBits, tile: Shape, tile_bytes: int) -> None:
    assert planned(tile, tile, bits).tile_bytes == tile_bytes


@pytest.mark.parametrize(
    ("bits", "tile", "asked", "nearest", "nearest_bytes"),
    [
        pytest.param(FP32_FP16, (32776,), 196672, (32768,), 196608, id="fp32-fp16-32776"),
        pytest.param(FP32_FP16, (3073, 3), 196672, (3072, 3), 196608, id="fp32-fp16-3073x3"),
        pytest.param(FP32_FP16, (1229, 17), 196640, (1228, 17), 196480, id="fp32-fp16-1229x17"),
        pytest.param(INT64_FP32, (16392,), 196704, (16384,), 196608, id="int64-fp32-16392"),
        pytest.param(FP32_FP16, (4, 65536), 1572864, (1, 32768), 196608, id="fp32-fp16-4x65536"),
        pytest.param(FP16_INT4, (100000,), 250016, (78592,), 196480, id="fp16-int4-100000"),
    ],
)
def test_a_tile_beyond_the_limit_names_the_nearest_that_fits(
    bits: ElementBits, tile: Shape, asked: int, nearest: Shape, nearest_bytes: int
) -> None:
    assert asked == charged_bytes(tile, bits)
    text = refused(tile, tile, bits)
    assert f"tile shape {list(tile)} needs {asked} B of UB" in text
    assert f"Ascend910B3 has {UB_BYTES} B" in text
    assert text.endswith(f"nearest tile that fits is {list(nearest)} with {nearest_bytes} B")


@pytest.mark.slow
@given(
    st.sampled_from(WIDTHS),
    st.lists(st.integers(1, 12).map(lambda n: 2 * n), min_size=1, max_size=4),
    st.integers(1, 40000),
)
@settings(deadline=None, max_examples=200)
def test_the_nearest_tile_of_the_error_can_be_used(
    bits: ElementBits, tile: list[int], more: int
) -> None:
    too_large = (*tile[:-1], tile[-1] + 2 * more)
    while charged_bytes(too_large, bits) <= UB_BYTES:
        too_large = (too_large[0] * 4, *too_large[1:])
    text = refused(too_large, too_large, bits)
    found = re.search(r"nearest tile that fits is \[([\d, ]+)\] with (\d+) B", text)
    assert found is not None
    nearest = tuple(int(entry) for entry in found[1].split(","))
    assert planned(too_large, nearest, bits).tile_bytes == int(found[2]) <= UB_BYTES
    assert all(near <= asked for near, asked in zip(nearest, too_large, strict=True))


def test_the_tile_is_clipped_to_the_tensor_before_it_is_measured() -> None:
    small = planned((64, 64), (65536, 65536))
    assert small.tile_shape == (64, 64)
    assert small.tile_bytes == 64 * (256 + 128)
    assert small.diagnostics == ()


def test_the_safe_budget_is_a_diagnostic_beyond_its_last_byte() -> None:
    assert planned((31360,), (31360,)).tile_bytes == SAFE_BYTES
    assert planned((31360,), (31360,)).diagnostics == ()
    (text,) = planned((31376,), (31376,)).diagnostics
    assert text.startswith("tile shape [31376] takes 188256 B of UB; Ascend910B3 has 196608 B")
    assert text.endswith("only 188160 B are documented as safe for user code")


# --- Diagnostics -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "tile"),
    [((16 * 17999,), (16,)), ((17999, 16), (1, 16)), ((16 * 18000,), (32,))],
    ids=["1d", "2d", "larger-tile"],
)
def test_fewer_than_18000_tiles_pass(shape: Shape, tile: Shape) -> None:
    assert planned(shape, tile).diagnostics == ()


@pytest.mark.parametrize(
    ("shape", "tile", "count"),
    [
        ((16 * 18000,), (16,), 18000),
        ((16 * 17999 + 1,), (16,), 18000),
        ((180, 100, 16), (1, 1, 16), 18000),
        ((16 * 20000,), (16,), 20000),
    ],
    ids=["1d", "tail", "3d", "more"],
)
def test_18000_tiles_are_advised_against(shape: Shape, tile: Shape, count: int) -> None:
    (text,) = planned(shape, tile).diagnostics
    assert f"makes {count} tiles of {list(shape)}" in text
    assert text.endswith("advises fewer than 18000")


UNALIGNED = [
    pytest.param(FP32_FP16, (8,), "32 B in the input and 16 B in the output", 16, id="output"),
    pytest.param(ElementBits(src=8, dst=16), (16,), "16 B in the input and 32 B", 32, id="input"),
    pytest.param(FP32_FP16, (4, 17), "68 B in the input and 34 B in the output", 16, id="both"),
    pytest.param(FP16_INT4, (32,), "64 B in the input and 16 B in the output", 64, id="int4"),
]


@pytest.mark.parametrize(("bits", "tile", "found", "unit"), UNALIGNED)
def test_rows_that_are_no_whole_blocks_are_advised_against(
    bits: ElementBits, tile: Shape, found: str, unit: int
) -> None:
    shape = tuple(4 * t for t in tile)
    (text,) = planned(shape, tile, bits).diagnostics
    assert text.startswith(f"tile shape {list(tile)}: its last axis is {found}")
    assert f"multiples of 32 B, that is for a multiple of {unit} elements" in text


@pytest.mark.parametrize(("bits", "tile", "found", "unit"), UNALIGNED)
def test_rows_that_are_no_whole_blocks_are_refused_if_strict(
    bits: ElementBits, tile: Shape, found: str, unit: int
) -> None:
    shape = tuple(4 * t for t in tile)
    with pytest.raises(TileShapeError, match=re.escape(found)):
        planned(shape, tile, bits, strict=True)
    aligned = (*tile[:-1], unit)
    assert planned((*shape[:-1], unit), aligned, bits, strict=True).diagnostics == ()


@pytest.mark.parametrize("shape", [(37,), (5, 33)], ids=str)
def test_tails_may_be_any_length(shape: Shape) -> None:
    tile = (*shape[:-1], 16)
    assert planned(shape, tile, strict=True).tails[-1] == shape[-1] % 16
    assert planned(shape, tile, strict=True).diagnostics == ()


def test_an_unset_tile_is_chosen_and_said() -> None:
    tile = choose_tile_shape((100, 100), FP32_FP16, DEFAULT_CHIP)
    chosen = planned((100, 100), None)
    (text,) = chosen.diagnostics
    assert text.startswith(f"no tile shape is set; the planner chose {list(tile)} for [100, 100]")
    assert f"set_vec_tile_shapes{tile}" in text
    assert chosen.tile_shape == tuple(min(t, 100) for t in tile)
    assert planned((100, 100), tile).diagnostics == ()


# --- What is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "tile", "has", "needs"),
    [
        ((4, 4), (16,), "1 entry", "2 entries"),
        ((4, 4, 4, 4), (1, 1, 16), "3 entries", "4 entries"),
        ((4,), (), "0 entries", "1 entry"),
    ],
    ids=["one", "three", "none"],
)
def test_the_tile_has_an_entry_for_each_dimension(
    shape: Shape, tile: Shape, has: str, needs: str
) -> None:
    assert refused(shape, tile) == (
        f"tile shape {list(tile)} has {has}; the output {list(shape)} needs at least {needs}, "
        "one for each dimension"
    )
    right_rank = (1,) * (len(shape) - 1) + (16,)
    assert planned(shape, right_rank).diagnostics == ()


@pytest.mark.parametrize(
    ("shape", "tile", "counts"),
    [((64,), (16, 1), (16,)), ((4, 64), (2, 32, 7), (2, 32)), ((64,), (32, 5, 3, 1), (32,))],
    ids=["1d", "2d", "1d-four"],
)
def test_of_more_entries_the_leading_ones_count(shape: Shape, tile: Shape, counts: Shape) -> None:
    made = planned(shape, tile, strict=True)
    assert made == planned(shape, counts, strict=True)
    assert made.tile_shape == counts
    assert "every entry must be a positive int" in refused(shape, (*tile, 0))


@pytest.mark.parametrize("entry", [0, -1, -16, True, 16.0], ids=repr)
@pytest.mark.parametrize("axis", [0, 1])
def test_every_entry_is_a_positive_int(entry: int, axis: int) -> None:
    tile = [16, 16]
    tile[axis] = entry
    assert refused((32, 32), tuple(tile)) == (
        f"tile shape {tile}: every entry must be a positive int"
    )
    tile[axis] = 16
    assert planned((32, 32), tuple(tile)).diagnostics == ()


@pytest.mark.parametrize(("entry", "equal"), [(True, 1), (16.0, 16)], ids=["true-1", "16.0-16"])
def test_an_entry_is_no_int_because_an_equal_one_came_before(entry: int, equal: int) -> None:
    assert planned((48,), (equal,)).tile_shape == (equal,)
    assert "every entry must be a positive int" in refused((48,), (entry,))


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        pytest.param((), "1 to 4 dimensions; shape [] has 0", id="0d"),
        pytest.param((1, 1, 1, 1, 16), "1 to 4 dimensions; shape [1, 1, 1, 1, 16] has 5", id="5d"),
        pytest.param((0,), "no empty tensor; shape [0] has 0 elements", id="empty"),
        pytest.param((3, 0, 4), "no empty tensor; shape [3, 0, 4] has 0 elements", id="empty-axis"),
        pytest.param(
            (MAX_ELEMS + 1,),
            "at most 2147483647 elements; shape [2147483648] has 2147483648",
            id="too-many-1d",
        ),
        pytest.param(
            (65536, 65536),
            "at most 2147483647 elements; shape [65536, 65536] has 4294967296",
            id="too-many-2d",
        ),
    ],
)
def test_shapes_that_no_cast_takes(shape: Shape, text: str) -> None:
    with pytest.raises(ShapeError) as error:
        planned(shape, (16,) * len(shape))
    assert text in str(error.value)


@pytest.mark.parametrize(
    "shape",
    [(1,), (1, 1, 1, 1), (MAX_ELEMS,), (1, MAX_ELEMS), (32767, 65536)],
    ids=str,
)
def test_shapes_at_the_limits_pass(shape: Shape) -> None:
    assert planned(shape, (1,) * (len(shape) - 1) + (16384,)).shape == shape


@pytest.mark.parametrize("bits", [FP16_INT4, ElementBits(src=4, dst=16)], ids=["fp16-int4", "back"])
def test_the_last_axis_of_4_bit_elements_is_even(bits: ElementBits) -> None:
    with pytest.raises(ShapeError, match=r"last axis must be even; shape \[2, 7\] ends in 7"):
        planned((2, 7), (2, 64), bits)
    text = refused((2, 8), (2, 7), bits)
    assert text.startswith("tile shape [2, 7]: two elements of 4 bits share a byte")
    assert text.endswith("it is 7")
    assert planned((7, 8), (7, 64), bits).diagnostics == ()
    assert planned((2, 8), (2, 9), bits).tile_shape == (2, 8)
    assert planned((2, 7), (2, 64), FP32_FP16).diagnostics == ()
