"""Options that change nothing are the same object, and plans are found by it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.options import context
from pypto_cast.options.context import Options, changed


class _Marked(tuple[int, ...]):
    """A tile shape that says where it was asked for."""


def test_options_that_stay_are_the_same_object() -> None:
    before = Options(vec_tile_shapes=(16, 512))
    assert changed(before) is before
    assert changed(before, vec_tile_shapes=(8 + 8, 512), strict=False) is not None
    assert changed(before, vec_tile_shapes=(8 + 8, 512)) is before


def test_a_tile_shape_that_is_set_again_gives_the_same_object() -> None:
    before = Options()
    found = changed(before, vec_tile_shapes=(8, 64))
    assert found == replace(before, vec_tile_shapes=(8, 64))
    assert changed(before, vec_tile_shapes=(8, 64)) is found
    assert changed(Options(), vec_tile_shapes=(8, 64)) is not found


def test_a_marked_tile_shape_is_kept_as_it_is() -> None:
    before = changed(Options(), vec_tile_shapes=(8, 64))
    marked = _Marked((8, 64))
    assert changed(before, vec_tile_shapes=marked).vec_tile_shapes is marked


def test_the_changes_that_are_kept_have_a_limit() -> None:
    before = Options()
    for length in range(1, 2 * context._MOST_CHANGES):
        assert changed(before, vec_tile_shapes=(length,)).vec_tile_shapes == (length,)
    assert len(context._CHANGES) <= context._MOST_CHANGES


@pytest.mark.parametrize(
    "given",
    [
        {"trust": "ieee"},
        {"engine": "numpy"},
        {"threads": 2},
        {"strict": True},
        {"release": "0.2.0"},
    ],
    ids=str,
)
def test_a_scope_that_is_entered_again_finds_its_plans(given: dict[str, Any]) -> None:
    with pypto.options(**given) as first:
        pass
    with pypto.options(**given) as again:
        assert again is first
        assert {name: getattr(again, name) for name in given} == given
    assert context.current() is not first


def test_other_options_have_other_plans_of_equal_operations() -> None:
    x = pypto.from_numpy(np.full((4, 8), 3e38, np.float32))
    half = pypto.from_numpy(np.full((4, 8), 6e4, np.float16))
    for _ in range(2):
        for mode, expected in ((True, np.inf), (False, 65504)):
            with pypto.options(inf_nan_mode=mode):
                assert (pypto.add(half, half).numpy() == expected).all()
                assert np.isinf(pypto.add(x, x).numpy()).all()
