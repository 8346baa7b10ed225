"""TilePlan: exact cover, cores, UB, and what it refuses or advises against."""

from __future__ import annotations

import math
import operator
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tiling.chips import CHIPS, DEFAULT_CHIP, Chip
from tiling.grid import Grid, Shape, as_shapes, as_tiles
from tiling.plan import ShapeError, TilePlan, TileShapeError, choose_tile_shape, plan
from tiling.ub import ElementBits, UbLayout, aligned_elems, nearest_fits, padded_row_bytes

UB_BYTES = 196608
SAFE_BYTES = 188160
MAX_ELEMS = 2147483647

FP32_FP16 = ElementBits(src=32, dst=16)
INT64_FP32 = ElementBits(src=64, dst=32)
FP16_INT4 = ElementBits(src=16, dst=4)
FP16_INT8_OFF = ElementBits(src=16, dst=8, tmp=32)
WIDTHS = [
    FP32_FP16,
    INT64_FP32,
    FP16_INT4,
    FP16_INT8_OFF,
    ElementBits(src=4, dst=16),
    ElementBits(src=8, dst=16),
    ElementBits(src=16, dst=16, tmp=32),
    ElementBits(src=32, dst=32),
    ElementBits(src=32, dst=64),
]


def planned(
    shape: Shape,
    tile: Shape | None,
    bits: ElementBits = FP32_FP16,
    *,
    chip: Chip = DEFAULT_CHIP,
    strict: bool = False,
) -> TilePlan:
    return plan(shape, tile, bits, chip, strict=strict)


def refused(shape: Shape, tile: Shape | None, bits: ElementBits = FP32_FP16) -> str:
    """The text of the TileShapeError that planning gives."""
    with pytest.raises(TileShapeError) as error:
        planned(shape, tile, bits)
    return str(error.value)


def line_bytes(elems: int, bits: int) -> int:
    """Bytes of a row in UB, from the rule: padded to 32 B."""
    whole_bytes = math.ceil(elems * bits / 8)
    return math.ceil(whole_bytes / 32) * 32


def charged_bytes(tile: Shape, bits: ElementBits) -> int:
    """Bytes of UB that the rule charges for a tile."""
    rows = math.prod(tile[:-1])
    return rows * (line_bytes(tile[-1], bits.src) + line_bytes(tile[-1], bits.dst))


def grids(*, longest: int = 9) -> st.SearchStrategy[tuple[Shape, Shape]]:
    """A shape of 1 to 4 axes and a tile for it, possibly larger than the tensor."""
    axis = st.tuples(st.integers(1, longest), st.integers(1, longest + 3))
    return st.lists(axis, min_size=1, max_size=4).map(
        lambda axes: (tuple(s for s, _ in axes), tuple(t for _, t in axes))
    )


@st.composite
def fitting_tiles(draw: st.DrawFn) -> tuple[Shape, ElementBits]:
    """A tile that the UB rule admits, of 1 to 4 axes, anywhere up to the limit."""
    bits = draw(st.sampled_from(WIDTHS))
    cols = 2 * draw(st.integers(1, 8192))
    row_bytes = line_bytes(cols, bits.src) + line_bytes(cols, bits.dst)
    rows = draw(st.integers(1, UB_BYTES // row_bytes))
    axes = draw(
        st.sampled_from([(rows, cols), (1, rows, cols), (rows, 1, cols), (1, rows, 1, cols)])
    )
    return axes, bits


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
@given(large_shapes(), st.sampled_from(WIDTHS))
@settings(deadline=None, max_examples=200)
def test_many_chosen_tiles_fit_twice_into_the_safe_budget(shape: Shape, bits: ElementBits) -> None:
    fits_twice_into_the_safe_budget(shape, bits)


@given(large_shapes(), st.sampled_from(WIDTHS))
@settings(deadline=None, max_examples=40)
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
