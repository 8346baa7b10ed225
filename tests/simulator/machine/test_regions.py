"""Regions: which bytes belong to one, and whether two have a byte in common."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simulator.machine.memory import Region


def region(start: int, width: int, count: int = 1, pitch: int = 0, space: str = "ub") -> Region:
    return Region(space=space, start=start, width=width, count=count, pitch=pitch)


def bytes_of(one: Region) -> set[int]:
    return {
        one.start + row * one.pitch + column
        for row in range(one.count)
        for column in range(one.width)
    }


@st.composite
def regions(draw: st.DrawFn) -> Region:
    """Rows that do not overlap each other, as copies make them; their gap may be nothing."""
    width = draw(st.integers(1, 40))
    pitch = width + draw(st.integers(0, 40))
    return region(draw(st.integers(0, 200)), width, draw(st.integers(1, 12)), pitch)


@st.composite
def alike(draw: st.DrawFn) -> tuple[Region, Region]:
    """Two regions of one pitch."""
    pitch = draw(st.integers(1, 40))
    first, second = (
        region(
            draw(st.integers(0, 200)),
            draw(st.integers(1, pitch)),
            draw(st.integers(1, 12)),
            pitch,
        )
        for _ in range(2)
    )
    return first, second


@pytest.mark.slow
@given(st.tuples(regions(), regions()) | alike())
@settings(max_examples=2000)
@example((region(0, 8, 4, 16), region(8, 8, 4, 16)))
@example((region(0, 8, 4, 16), region(7, 8, 4, 16)))
@example((region(0, 9, 4, 16), region(8, 8, 4, 16)))
@example((region(0, 8, 4, 16), region(56, 8, 4, 16)))
@example((region(0, 8, 4, 16), region(55, 1)))
@example((region(0, 8, 4, 16), region(56, 1)))
@example((region(0, 32, 1, 32), region(31, 8, 3, 32)))
@example((region(0, 4, 10, 12), region(4, 8, 5, 24)))
def test_two_regions_touch_where_they_share_a_byte(pair: tuple[Region, Region]) -> None:
    first, second = pair
    share = bool(bytes_of(first) & bytes_of(second))
    assert first.touches(second) is share
    assert second.touches(first) is share
    assert first.touches(first)


@given(regions(), regions())
def test_regions_of_other_memories_never_touch(first: Region, second: Region) -> None:
    moved = region(second.start, second.width, second.count, second.pitch, space="gm.x")
    assert not first.touches(moved)
    assert not moved.touches(first)


@given(regions())
def test_a_view_is_the_bytes_of_the_region(one: Region) -> None:
    memory = np.arange(2000, dtype=np.uint16)
    rows = one.view(memory)
    assert rows.shape == (one.count, one.width)
    assert set(rows.reshape(-1).tolist()) == bytes_of(one)
    assert one.stop == max(bytes_of(one)) + 1
    assert str(one) == f"ub+{one.start}..{one.stop}"
    rows[:] = 5000
    assert set(np.flatnonzero(memory == 5000).tolist()) == bytes_of(one)


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_])
def test_a_view_of_memory_that_is_read_only_stays_so(dtype: type) -> None:
    memory = np.zeros(100, dtype)
    memory.flags.writeable = False
    for one in (region(0, 8), region(0, 8, 3, 16)):
        assert not one.view(memory).flags.writeable


@given(regions(), st.data())
def test_the_first_byte_of_a_mask_is_named_by_its_place(one: Region, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, one.count - 1))
    column = data.draw(st.integers(0, one.width - 1))
    mask = np.zeros((one.count, one.width), np.bool_)
    mask[row:, column] = True
    assert one.first(mask) == ("ub", one.start + row * one.pitch + column)
    memory = np.arange(one.stop)
    assert one.view(memory)[row, column] == one.first(mask)[1]
