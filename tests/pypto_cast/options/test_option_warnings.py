"""Warnings of options, and the plans that options make."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from test_options import some_tensor

import pypto_cast as pypto
from pypto_cast.cast.cast_plan import plan_cast
from pypto_cast.tensors.symbolic import SymbolicScalar
from tiling.chips import CHIPS

# --- Warnings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tile", "arguments", "category"),
    [
        ((), {}, pypto.TileShapeWarning),
        ((8,), {}, pypto.TileShapeWarning),
        ((16,), {"mode": pypto.CAST_ODD, "dtype": pypto.DT_INT32}, pypto.CastModeWarning),
        ((16,), {"satmode": pypto.SaturationMode.OFF}, pypto.SaturationModeWarning),
    ],
    ids=["unset-tile", "unaligned", "mode", "satmode"],
)
def test_warnings_point_at_the_caller(
    tile: tuple[int, ...], arguments: dict[str, Any], category: type[Warning]
) -> None:
    arguments = {"dtype": pypto.DT_FP16, **arguments}
    with warnings.catch_warnings(record=True) as caught, pypto.options(vec_tile_shapes=tile):
        warnings.simplefilter("always")
        pypto.cast(some_tensor(), **arguments)
    (warning,) = caught
    assert warning.category is category
    assert warning.filename == __file__
    with open(__file__, encoding="utf-8") as source:
        line = source.read().splitlines()[warning.lineno - 1]
    assert line.strip() == "pypto.cast(some_tensor(), **arguments)"


def test_an_unset_tile_is_chosen_and_said() -> None:
    with pytest.warns(pypto.TileShapeWarning) as caught:
        y = pypto.cast(some_tensor(), pypto.DT_FP16)
    (warning,) = caught
    assert "no tile shape is set; the planner chose [16] for [64]" in str(warning.message)
    assert "On the NPU the same program would fail" in str(warning.message)
    assert y.has_data
    assert pypto.get_vec_tile_shapes() == []


def test_every_diagnostic_is_issued() -> None:
    with warnings.catch_warnings(record=True) as caught, pypto.options(vec_tile_shapes=[1]):
        warnings.simplefilter("always")
        pypto.cast(
            some_tensor(18000),
            pypto.DT_INT32,
            mode=pypto.CAST_ODD,
            satmode=pypto.SaturationMode.OFF,
        )
    assert [warning.category for warning in caught] == [
        pypto.CastModeWarning,
        pypto.SaturationModeWarning,
        pypto.TileShapeWarning,
        pypto.TileShapeWarning,
    ]
    texts = [str(warning.message) for warning in caught]
    assert "its last axis is 4 B" in texts[2]
    assert "makes 18000 tiles" in texts[3]


def test_nothing_is_computed_before_a_warning() -> None:
    """4 GB of result would be seen."""
    large = np.broadcast_to(np.zeros(1, np.int8), (65536, 32767))
    x = pypto.from_numpy(large)
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(pypto.TileShapeWarning, match="no tile shape is set"):
            pypto.cast(x, pypto.DT_FP16)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 10_000_000


def test_an_error_comes_without_a_warning() -> None:
    x = pypto.from_numpy(np.ones((2, 64), np.float32))
    with warnings.catch_warnings(), pypto.options(vec_tile_shapes=[1]):
        warnings.simplefilter("error")
        with pytest.raises(pypto.TileShapeError, match="has 1 entry"):
            pypto.cast(x, pypto.DT_INT32, mode=pypto.CAST_ODD)


def test_of_more_entries_the_leading_ones_count() -> None:
    """As in upstream's TiledCastOperation, which walks the entries from the first."""
    x = some_tensor()
    with warnings.catch_warnings(), pypto.options(vec_tile_shapes=[16, 3, 1]):
        warnings.simplefilter("error")
        y = pypto.cast(x, pypto.DT_FP16)
        assert pypto.get_vec_tile_shapes() == [16, 3, 1]
    with pypto.options(vec_tile_shapes=[16]):
        wanted = pypto.cast(x, pypto.DT_FP16)
    assert y.numpy().tobytes() == wanted.numpy().tobytes()
    assert [patch.record.program.plan.tile_shape for patch in y.patches()] == [(16,)]


# --- Plans -------------------------------------------------------------------------------------

ODD_TO_FP16: dict[str, Any] = {
    "shape": (64,),
    "src": pypto.DT_FP32,
    "dst": pypto.DT_FP16,
    "mode": pypto.CAST_ODD,
    "satmode": pypto.SaturationMode.ON,
}


def test_equal_casts_share_a_plan() -> None:
    pypto.set_vec_tile_shapes(16)
    assert plan_cast(**ODD_TO_FP16) is plan_cast(**ODD_TO_FP16)


def test_plans_are_not_kept_without_end() -> None:
    pypto.set_vec_tile_shapes(16)
    first = plan_cast(**ODD_TO_FP16)
    for extent in range(1, 1000):
        plan_cast(**{**ODD_TO_FP16, "shape": (extent,)})
    assert plan_cast(**ODD_TO_FP16) is not first


@pytest.mark.parametrize(
    "other",
    [
        {"shape": (32,)},
        {"src": pypto.DT_BF16, "dst": pypto.DT_FP32},
        {"dst": pypto.DT_BF16},
        {"mode": pypto.CAST_RINT},
        {"satmode": pypto.SaturationMode.OFF},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_cast_has_another_plan(other: dict[str, Any]) -> None:
    pypto.set_vec_tile_shapes(16)
    asked = {**ODD_TO_FP16, **other}
    assert plan_cast(**ODD_TO_FP16) != plan_cast(**asked)
    assert (plan_cast(**asked).dst, plan_cast(**asked).mode) == (asked["dst"], asked["mode"])
    assert plan_cast(**asked).satmode is asked["satmode"]


def test_a_plan_follows_every_option_that_decides_it() -> None:
    pypto.set_vec_tile_shapes(8)
    before = plan_cast(**ODD_TO_FP16)
    with pypto.options(chip="Ascend910B1"):
        assert plan_cast(**ODD_TO_FP16).tiles.chip is CHIPS["Ascend910B1"]
    with pypto.options(vec_tile_shapes=[32]):
        assert plan_cast(**ODD_TO_FP16).tiles.tile_shape == (32,)
    with pypto.options(inf_nan_mode=False):
        assert not plan_cast(**ODD_TO_FP16).program.inf_nan_mode
    with pypto.options(strict=True), pytest.raises(pypto.TileShapeError, match="multiples of 32 B"):
        plan_cast(**ODD_TO_FP16)
    assert plan_cast(**ODD_TO_FP16) is before


def test_a_dynamic_dimension_stays_with_the_kernel_that_has_it() -> None:
    pypto.set_vec_tile_shapes(16)
    asked = {**ODD_TO_FP16, "shape": (SymbolicScalar(1984),)}
    assert plan_cast(**asked) is plan_cast(**{**asked, "shape": (1984,)})
    assert [type(extent) for extent in plan_cast(**asked).tiles.shape] == [int]


def test_an_aligned_cast_says_nothing() -> None:
    with warnings.catch_warnings(), pypto.options(vec_tile_shapes=[16]):
        warnings.simplefilter("error")
        assert pypto.cast(some_tensor(), pypto.DT_FP16).has_data
