"""Tile shapes in place of those that a kernel sets."""

from __future__ import annotations

import pytest

import pypto_cast as pypto
from pypto_cast.kernel.tile_choice import TileCall, replaced_tiles, tile_calls


@pypto.frontend.jit
def two_tilings(
    x: pypto.Tensor([64, 128], pypto.DT_FP32),
    y: pypto.Tensor([64, 128], pypto.DT_FP32),
) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    z = x * 2.0
    pypto.set_vec_tile_shapes(32, 128)
    y[:] = pypto.exp(z)


GIVEN = tuple(pypto.tensor([64, 128], pypto.DT_FP32) for _ in range(2))


def tiles() -> list[tuple[int, ...]]:
    (graph,) = two_tilings.tensor_graphs(*GIVEN)
    return [each.tile_shape for each in graph.nodes if each.opcode in ("MULS", "EXP")]


def test_the_calls_of_a_kernel_are_listed_in_their_order() -> None:
    calls = tile_calls(two_tilings, *GIVEN)
    assert [each.tile_shape for each in calls] == [(16, 64), (32, 128)]
    assert str(calls[1]).endswith(f":{calls[0].line + 2}: set_vec_tile_shapes(32, 128)")
    assert all(each.file == __file__ for each in calls)


def test_one_call_is_replaced_and_the_others_set_their_own() -> None:
    first, second = tile_calls(two_tilings, *GIVEN)
    with replaced_tiles({first.place: (8, 32)}):
        assert tiles() == [(8, 32), (32, 128)]
        with replaced_tiles({second.place: [4, 16]}):
            assert tiles() == [(8, 32), (4, 16)]
    assert tiles() == [(16, 64), (32, 128)]


def test_one_tile_shape_replaces_all_of_its_rank() -> None:
    with replaced_tiles((64, 16)):
        assert tiles() == [(64, 16), (64, 16)]
    with replaced_tiles((64, 16, 1)):
        assert tiles() == [(16, 64), (32, 128)]
    with replaced_tiles((64, 16)):
        assert [each.tile_shape for each in tile_calls(two_tilings, *GIVEN)] == [
            (16, 64),
            (32, 128),
        ]


def test_the_schedule_is_that_of_the_kernel_with_these_lines() -> None:
    @pypto.frontend.jit
    def rewritten(
        x: pypto.Tensor([64, 128], pypto.DT_FP32),
        y: pypto.Tensor([64, 128], pypto.DT_FP32),
    ) -> None:
        pypto.set_vec_tile_shapes(64, 32)
        z = x * 2.0
        pypto.set_vec_tile_shapes(64, 32)
        y[:] = pypto.exp(z)

    with replaced_tiles((64, 32)):
        found = two_tilings.schedule(*GIVEN)
    asked = rewritten.schedule(*GIVEN)
    assert [len(each.operations) for each in found.leaves] == [
        len(each.operations) for each in asked.leaves
    ]
    assert found.bodies[0].tasks == asked.bodies[0].tasks
    assert found.peak_ub_bytes == asked.peak_ub_bytes


@pytest.mark.parametrize("tile", [(), (0, 4), (1, 2, 3, 4, 5), (True, 4), (2.0, 4)])
def test_what_is_no_tile_shape_is_refused(tile: tuple[int, ...]) -> None:
    with pytest.raises(pypto.TileShapeError, match="1 to 4 positive ints"):
        replaced_tiles(tile).__enter__()
    with pytest.raises(pypto.TileShapeError, match="1 to 4 positive ints"):
        replaced_tiles({("a", 1): tile}).__enter__()


def test_a_call_is_a_value() -> None:
    assert TileCall(file="a.py", line=3, tile_shape=(1, 2)).place == ("a.py", 3)
