"""Best fit, and the buffers whose return would make room."""

from __future__ import annotations

from tiling.free_space import FreeSpace


def test_the_smallest_piece_that_holds_it_is_taken_and_of_equal_ones_the_lowest() -> None:
    space = FreeSpace(100)
    assert [space.take(number, 10) for number in range(9)] == list(range(0, 90, 10))
    for number in (1, 3, 4, 6):
        space.give_back(number)
    assert space.take(10, 10) == 10
    assert space.take(11, 10) == 60
    assert space.take(12, 15) == 30
    assert space.take(13, 20) is None
    assert space.fits(10)
    assert not space.fits(11)


def test_buffers_in_the_way_are_named_as_the_shortest_runs() -> None:
    space = FreeSpace(100)
    for number, size_bytes in enumerate((30, 20, 10, 30)):
        space.take(number, size_bytes)
    assert list(space.neighbours(30)) == [(0,), (1, 2), (3,)]
    assert list(space.neighbours(50)) == [(0, 1), (2, 3)]
    assert list(space.neighbours(101)) == []


def test_compacting_puts_the_largest_first() -> None:
    space = FreeSpace(100)
    for number, size_bytes in ((5, 20), (1, 30), (3, 20), (2, 10)):
        space.take(number, size_bytes)
    space.give_back(2)
    space.compact()
    assert space.held == {1: (0, 30), 3: (30, 50), 5: (50, 70)}
