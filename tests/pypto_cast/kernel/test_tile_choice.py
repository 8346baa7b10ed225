"""Tile shapes in place of those that a kernel sets."""

from __future__ import annotations

import pytest

import pypto_cast as pypto
from pypto_cast.kernel.tile_choice import TileCall, TiledTensors, replaced_tiles, tile_recording


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


def calls_of_two_tilings() -> tuple[TileCall, ...]:
    return tile_recording(two_tilings, GIVEN, {}).calls


def test_the_calls_of_a_kernel_are_listed_in_their_order() -> None:
    calls = calls_of_two_tilings()
    assert [each.tile_shape for each in calls] == [(16, 64), (32, 128)]
    assert str(calls[1]).endswith(f":{calls[0].line + 2}: set_vec_tile_shapes(32, 128)")
    assert all(each.file == __file__ for each in calls)


def test_one_call_is_replaced_and_the_others_set_their_own() -> None:
    first, second = calls_of_two_tilings()
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
        assert [each.tile_shape for each in calls_of_two_tilings()] == [(64, 16), (64, 16)]


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


@pypto.frontend.jit
def narrowed(
    x: pypto.Tensor([64, 128], pypto.DT_FP32),
    y: pypto.Tensor([64, 128], pypto.DT_FP32),
) -> None:
    pypto.set_vec_tile_shapes(64, 64)
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.cast(pypto.cast(x, pypto.DT_FP16), pypto.DT_FP32)


def test_tensors_under_a_call_are_those_of_its_operations() -> None:
    """Blocks are of the narrowest, which is not in the signature; no operation is under the first
    call."""
    recording = tile_recording(narrowed, GIVEN, {})
    first, second = recording.calls
    assert recording.tensors_under(first.place) is None
    assert recording.tensors_under(None) is None
    assert recording.tensors_under(second.place) == TiledTensors(extents=(64, 128), unit=16)


@pypto.frontend.jit
def with_further_entries(
    x: pypto.Tensor([64, 8192], pypto.DT_FP32),
    y: pypto.Tensor([64, 8192], pypto.DT_FP32),
) -> None:
    pypto.set_vec_tile_shapes(16, 8192, 4)
    y[:] = pypto.exp(x) + x


def test_entries_behind_the_dimensions_of_the_tensors_stay_as_they_are() -> None:
    given = [pypto.tensor([64, 8192], pypto.DT_FP32)] * 2
    recording = tile_recording(with_further_entries, given, {})
    (call,) = recording.calls
    assert recording.tensors_under(call.place) == TiledTensors(extents=(64, 8192), unit=8)

    (change,) = pypto.fit_report(with_further_entries, *given).nearest
    ((_, tile),) = change.tiles
    assert tile[2:] == (4,)
    assert tile[0] * tile[1] > 8192

    found = with_further_entries.tune(*given, top=2, seconds=1)
    assert {each[2:] for each in found.best.values()} == {(4,)}
    assert found.combinations > 1000
    assert found.excluded > found.planned


def test_a_call_is_a_value() -> None:
    assert TileCall(file="a.py", line=3, tile_shape=(1, 2)).place == ("a.py", 3)
