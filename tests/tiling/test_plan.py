"""TilePlan: exact cover, cores, UB, axes that merge, and the tile that is chosen."""

from __future__ import annotations

import math
import operator
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.programs.tile_plans import (
    FP16_INT4,
    FP16_INT8_OFF,
    FP32_FP16,
    INT64_FP32,
    MAX_ELEMS,
    SAFE_BYTES,
    UB_BYTES,
    WIDTHS,
    charged_bytes,
    fitting_tiles,
    grids,
    line_bytes,
    planned,
)

from tiling.chips import CHIPS, DEFAULT_CHIP
from tiling.grid import Grid, Shape, as_shapes, as_tiles
from tiling.plan import choose_tile_shape
from tiling.ub import ElementBits, UbLayout, aligned_elems, nearest_fits, padded_row_bytes

# --- Tiles -------------------------------------------------------------------------------------


@given(grids())
@settings(deadline=None, max_examples=150)
@example(((7,), (2,)))
@example(((3, 5, 2, 7), (2, 2, 2, 2)))
def test_every_element_lies_in_exactly_one_tile(drawn: tuple[Shape, Shape]) -> None:
    shape, tile = drawn
    grid = planned(shape, tile).grid
    seen = np.zeros(shape, np.int64)
    for index in range(len(grid)):
        box = grid.tile(index)
        assert box.elems == math.prod(box.shape)
        seen[tuple(slice(o, o + n) for o, n in zip(box.offset, box.shape, strict=True))] += 1
    np.testing.assert_array_equal(seen, np.ones(shape, np.int64))


@given(grids())
@settings(deadline=None, max_examples=100)
def test_tiles_go_row_major_and_tails_are_what_is_left(drawn: tuple[Shape, Shape]) -> None:
    shape, tile = drawn
    made = planned(shape, tile)
    starts = [range(0, s, t) for s, t in zip(shape, tile, strict=True)]
    order = np.stack(np.meshgrid(*starts, indexing="ij"), axis=-1).reshape(-1, len(shape))
    grid = made.grid
    assert grid.counts == tuple(len(axis) for axis in starts)
    assert len(grid) == len(order)
    for index, start in enumerate(order.tolist()):
        box = grid.tile(index)
        assert (box.index, box.offset) == (index, tuple(start))
        assert box.shape == tuple(min(t, s - o) for s, t, o in zip(shape, tile, start, strict=True))
    last = grid.tile(len(grid) - 1).shape
    for tail, extent, clipped in zip(made.tails, last, made.tile_shape, strict=True):
        assert extent == (tail or clipped)


@pytest.mark.parametrize("index", [-1, 6, 1000])
def test_there_is_no_tile_beyond_the_grid(index: int) -> None:
    grid = Grid(shape=(4, 5), tile_shape=(2, 2))
    with pytest.raises(IndexError, match=f"^tile {index} of 6$"):
        grid.tile(index)
    assert grid.tile(5).offset == (2, 4)


@given(grids(longest=12), st.sampled_from(["Ascend910B1", "Ascend910B3"]))
@settings(deadline=None, max_examples=100)
@example(((40,), (1,)), "Ascend910B3")
@example(((41,), (1,)), "Ascend910B3")
@example(((39,), (1,)), "Ascend910B3")
def test_cores_share_the_tiles_evenly(drawn: tuple[Shape, Shape], chip: str) -> None:
    shape, tile = drawn
    made = planned(shape, tile, chip=CHIPS[chip])
    count = len(made.grid)
    ranges = [made.core_tiles(core) for core in range(made.chip.vector_cores)]
    assert [index for tiles in ranges for index in tiles] == list(range(count))
    sizes = [len(tiles) for tiles in ranges]
    assert max(sizes) - min(sizes) <= 1
    assert made.busy_cores == sum(size > 0 for size in sizes)
    assert all(size > 0 for size in sizes[: made.busy_cores])
    for core in (0, made.busy_cores - 1):
        assert [box.index for box in made.tiles(core)] == list(ranges[core])


def test_a_plan_of_two_billion_tiles_is_lazy() -> None:
    tracemalloc.start()
    made = planned((MAX_ELEMS,), (1,))
    last = made.grid.tile(MAX_ELEMS - 1)
    first_of_last_core = next(made.tiles(39))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1_000_000
    assert len(made.grid) == MAX_ELEMS
    assert (last.index, last.offset, last.shape) == (MAX_ELEMS - 1, (MAX_ELEMS - 1,), (1,))
    assert made.core_tiles(39).stop == MAX_ELEMS
    assert first_of_last_core.offset == (made.core_tiles(39).start,)
    assert any("2147483647 tiles" in text for text in made.diagnostics)


def test_a_plan_prints_its_decisions() -> None:
    text = str(planned((100, 100), (64, 32)))
    assert "[100, 100] in 8 tiles of [64, 32]" in text
    assert "grid [2, 4], tails [36, 4]" in text
    assert "8 of 40 cores of Ascend910B3" in text
    assert "UB 12288 of 196608 B a tile, double-buffered" in text
    assert str(planned((32768,), (32768,))).endswith(
        "UB 196608 of 196608 B a tile, single-buffered, a tile passing in 3 parts of [11008]"
    )


# --- UB ----------------------------------------------------------------------------------------


def assert_sound(ub: UbLayout) -> None:
    """Buffers in address order, aligned, apart from one another, inside UB."""
    end = 0
    for buffer in ub.buffers:
        assert buffer.offset_bytes % 32 == 0
        assert buffer.offset_bytes >= end
        assert buffer.size_bytes > 0
        end = buffer.offset_bytes + buffer.size_bytes
    assert end <= UB_BYTES
    assert ub.used_bytes == sum(buffer.size_bytes for buffer in ub.buffers) <= end


def among_others(tile: Shape, bits: ElementBits) -> UbLayout:
    """The layout of a tile of a tensor that is twice as long along each axis: no axes merge."""
    return planned(tuple(2 * extent for extent in tile), tile, bits).ub


def two_slots_bytes(tile: Shape, bits: ElementBits) -> int:
    """Bytes of two slots of a tile and of one scratch, each row padded to its own blocks."""
    tmp_bytes = math.prod(tile[:-1]) * line_bytes(tile[-1], bits.src) * bits.tmp // bits.src
    return 2 * charged_bytes(tile, bits) + tmp_bytes


def one_pitch_bytes(tile: Shape, bits: ElementBits) -> int:
    """The same where rows are as many elements apart on both sides, in whole blocks."""
    unit = 256 // min(bits.src, bits.dst)
    elems = math.prod(tile[:-1]) * math.ceil(tile[-1] / unit) * unit
    return elems * (2 * (bits.src + bits.dst) + bits.tmp) // 8


@given(fitting_tiles())
@settings(deadline=None, max_examples=200)
@example(((65536,), FP16_INT8_OFF))
@example(((1, 65536), FP16_INT8_OFF))
@example(((15680,), FP32_FP16))
@example(((15696,), FP32_FP16))
@example(((1470, 2), FP32_FP16))
def test_buffers_are_sound_and_doubled_where_two_slots_are_safe(
    drawn: tuple[Shape, ElementBits],
) -> None:
    tile, bits = drawn
    ub = among_others(tile, bits)
    assert_sound(ub)
    part = ub.pass_shape
    assert ub.tile_shape == tile
    assert all(1 <= p <= t for p, t in zip(part, tile, strict=True))
    roles = [(role, slot) for slot in (0, 1) for role in ("in", "out")]
    roles += [("tmp", 0)] if bits.tmp else []
    assert sorted((buffer.role, buffer.slot) for buffer in ub.buffers) == sorted(roles)
    rows = math.prod(part[:-1])
    pitch_bytes = {
        role: line_bytes(part[-1], width) for role, width in (("in", bits.src), ("out", bits.dst))
    }
    if ub.has_one_pitch and rows > 1:
        unit = 256 // min(bits.src, bits.dst)
        pitch = math.ceil(part[-1] / unit) * unit
        pitch_bytes = {"in": pitch * bits.src // 8, "out": pitch * bits.dst // 8}
    for slot in (0, 1):
        for role, row_bytes in pitch_bytes.items():
            assert ub.buffer(role, slot).size_bytes >= rows * row_bytes
    if bits.tmp:
        assert ub.buffer("tmp").size_bytes >= rows * pitch_bytes["in"] * bits.tmp // bits.src
    assert ub.used_bytes <= SAFE_BYTES
    fits = min(two_slots_bytes(tile, bits), one_pitch_bytes(tile, bits)) <= SAFE_BYTES
    assert ub.is_double_buffered == (part == tile) == fits
    assert ub.has_one_pitch or one_pitch_bytes(tile, bits) > SAFE_BYTES


@given(fitting_tiles())
@settings(deadline=None, max_examples=200)
@example(((15696,), FP32_FP16))
@example(((3, 6000), FP32_FP16))
@example(((65536,), FP16_INT8_OFF))
@example(((1470, 2), FP16_INT4))
def test_parts_are_as_few_and_as_equal_as_can_be(drawn: tuple[Shape, ElementBits]) -> None:
    tile, bits = drawn
    part = among_others(tile, bits).pass_shape
    if part == tile:
        return
    last = max(axis for axis in range(len(tile)) if part[axis] != tile[axis])
    assert all(part[axis] == 1 for axis in range(last))
    is_row = last == len(tile) - 1
    unit = 256 // min(bits.src, bits.dst) if is_row else 1
    assert part[last] % unit == 0
    number = math.ceil(tile[last] / part[last])
    fewer = list(part)
    fewer[last] = math.ceil(tile[last] / (number - 1) / unit) * unit
    larger = tuple(fewer)
    assert min(two_slots_bytes(larger, bits), one_pitch_bytes(larger, bits)) > SAFE_BYTES
    # Along a row, cuts at whole lines of GM come before equal parts.
    assert part[last] - math.ceil(tile[last] / number) < (16 * unit if is_row else 1)


def test_the_border_of_double_buffering() -> None:
    fits, beyond = planned((15680,), (15680,)).ub, planned((15696,), (15696,)).ub
    assert (fits.is_double_buffered, fits.pass_shape) == (True, (15680,))
    assert (beyond.is_double_buffered, beyond.pass_shape) == (False, (7936,))
    assert fits.used_bytes == SAFE_BYTES


def test_scratch_makes_passes_of_a_tile_that_fits_without_it() -> None:
    ub = planned((65536,), (65536,), FP16_INT8_OFF).ub
    assert not ub.is_double_buffered
    assert ub.pass_shape == (16384,)
    assert_sound(ub)
    alone = planned((16384,), (16384,), FP16_INT8_OFF).ub
    assert (alone.is_double_buffered, alone.buffers) == (True, ub.buffers)


# --- Axes that merge ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "tile", "merged", "merged_tile"),
    [
        pytest.param((4096, 7), (512, 7), (1, 28672), (1, 3584), id="one-row"),
        pytest.param(
            (8, 16, 16, 64), (4, 8, 8, 64), (8, 16, 1, 1024), (4, 8, 1, 512), id="last-two"
        ),
        pytest.param((8, 16, 64), (2, 16, 32), (1, 128, 64), (1, 32, 32), id="first-two"),
        pytest.param((8, 1, 100), (4, 1, 50), (1, 8, 100), (1, 4, 50), id="around-a-1"),
        pytest.param((8, 16, 64), (2, 3, 32), (8, 16, 64), (2, 3, 32), id="none"),
        pytest.param((3, 5, 7), (3, 5, 7), (1, 1, 105), (1, 1, 105), id="all"),
    ],
)
def test_axes_merge_where_a_tile_is_whole_in_the_inner_one(
    shape: Shape, tile: Shape, merged: Shape, merged_tile: Shape
) -> None:
    made = planned(shape, tile)
    assert (made.merged.shape, made.merged.tile_shape) == (merged, merged_tile)
    assert made.tile_shape == tile


@pytest.mark.slow
@given(grids())
@settings(deadline=None, max_examples=200)
def test_merged_tiles_are_the_same_elements_in_the_same_order(drawn: tuple[Shape, Shape]) -> None:
    shape, tile = drawn
    made = planned(shape, tile)
    numbers = np.arange(math.prod(shape))
    assert len(made.merged) == len(made.grid)
    for index in range(len(made.grid)):
        boxes = []
        for grid in (made.grid, made.merged):
            box = grid.tile(index)
            spans = (slice(o, o + e) for o, e in zip(box.offset, box.shape, strict=True))
            boxes.append(numbers.reshape(grid.shape)[tuple(spans)].reshape(-1))
        np.testing.assert_array_equal(*boxes)


# --- Choosing and shrinking --------------------------------------------------------------------


@st.composite
def large_shapes(draw: st.DrawFn) -> Shape:
    """Shapes of 1 to 4 axes with an even last axis, up to the limit of elements."""
    shape: list[int] = []
    room = MAX_ELEMS // 2
    for _ in range(draw(st.integers(1, 4))):
        extent = draw(st.integers(1, room) | st.integers(1, min(room, 300)))
        shape.append(extent)
        room //= extent
    return (*shape[:-1], 2 * shape[-1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(12))
@given(large_shapes(), st.sampled_from(WIDTHS))
@settings(deadline=None, max_examples=5)
def test_many_chosen_tiles_fit_twice_into_the_safe_budget(
    part: int, shape: Shape, bits: ElementBits
) -> None:
    fits_twice_into_the_safe_budget(shape, bits)


@pytest.mark.slow
@given(large_shapes(), st.sampled_from(WIDTHS))
@settings(deadline=None, max_examples=10)
@example((MAX_ELEMS - 1,), FP32_FP16)
@example((2,), FP16_INT4)
@example((1, 1, 1, 2), FP32_FP16)
def test_the_chosen_tile_fits_twice_into_the_safe_budget(shape: Shape, bits: ElementBits) -> None:
    fits_twice_into_the_safe_budget(shape, bits)


def fits_twice_into_the_safe_budget(shape: Shape, bits: ElementBits) -> None:
    tile = choose_tile_shape(shape, bits, DEFAULT_CHIP)
    assert len(tile) == len(shape)
    assert min(tile) >= 1
    assert tile[-1] * min(bits.src, bits.dst) % 256 == 0
    made = planned(shape, tile, bits, strict=True)
    assert made.tile_bytes <= SAFE_BYTES
    assert made.ub.used_bytes <= SAFE_BYTES
    if not bits.tmp:
        assert made.ub.is_double_buffered


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        pytest.param((5,), (16,), id="one-unit"),
        pytest.param((2000,), (128,), id="some-cores-get-one"),
        pytest.param((100, 100), (4, 112), id="whole-rows"),
        pytest.param((40 * 4096,), (2048,), id="two-of-whole-lines-for-every-core"),
        pytest.param((2**20,), (13184,), id="two-for-every-core"),
        pytest.param((3, 2**20), (1, 13184), id="part-of-a-row"),
    ],
)
def test_what_is_chosen(shape: Shape, tile: Shape) -> None:
    assert choose_tile_shape(shape, FP32_FP16, DEFAULT_CHIP) == tile


@pytest.mark.slow
@given(
    st.lists(st.integers(1, 5000), min_size=1, max_size=4),
    st.sampled_from([1, 8, 16, 32, 64]),
    st.integers(0, 200_000),
)
@settings(deadline=None, max_examples=300)
@example([100], 16, 80)
@example([5, 100], 16, 0)
def test_a_shrunk_tile_fits_and_is_the_largest_of_its_kind(
    asked: list[int], unit: int, spare: int
) -> None:
    budget = unit + spare

    def fits(tile: Shape) -> bool:
        return math.prod(tile) <= budget

    (tile,) = as_shapes(nearest_fits(as_tiles([tuple(asked)]), operator.mul, budget, unit))
    assert fits(tile)
    assert all(1 <= t <= a for t, a in zip(tile, asked, strict=True))
    shrunk = [axis for axis in range(len(asked)) if tile[axis] != asked[axis]]
    if fits(tuple(asked)):
        assert tile == tuple(asked)
        return
    assert shrunk
    last = shrunk[-1]
    assert all(tile[axis] == 1 for axis in range(last))
    larger = list(tile)
    larger[last] += unit if last == len(asked) - 1 else 1
    assert not fits(tuple(larger))


@given(st.integers(1, 100_000), st.sampled_from([4, 8, 16, 32, 64]))
@settings(deadline=None)
def test_rows_are_padded_to_whole_blocks(pairs: int, bits: int) -> None:
    assert padded_row_bytes(2 * pairs, bits, DEFAULT_CHIP) == line_bytes(2 * pairs, bits)


@pytest.mark.parametrize(
    ("bits", "elems"),
    [(FP32_FP16, 16), (INT64_FP32, 8), (FP16_INT4, 64), (FP16_INT8_OFF, 32)],
    ids=["fp32-fp16", "int64-fp32", "fp16-int4", "fp16-int8"],
)
def test_the_unit_of_alignment_is_that_of_the_narrower_side(bits: ElementBits, elems: int) -> None:
    assert aligned_elems(bits, DEFAULT_CHIP) == elems
