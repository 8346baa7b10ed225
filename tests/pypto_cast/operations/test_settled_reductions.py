"""A reduction that was carried out on such an operand before asks for nothing that is known."""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.operations import reduction_functions
from pypto_cast.recording.causes import WhatIf, applying
from pypto_cast.recording.recording import Recording, running
from simulator.arithmetic.native import executor_library
from simulator.numbers import float_environment
from tiling.plan import TileShapeWarning

NAMES = ("sum", "amax", "amin", "prod")


@pytest.fixture(autouse=True)
def _none_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction_functions, "_SETTLED", {})


def _tensor(seed: int = 0, shape: tuple[int, ...] = (3, 40)) -> pypto.Tensor:
    random = np.random.default_rng(seed)
    codes = random.integers(0, 1 << 32, shape, np.uint32).view(np.float32)
    numbers = random.standard_normal(shape).astype(np.float32)
    return pypto.from_numpy(np.where(random.random(shape) < 0.1, codes, numbers))


def _codes(x: pypto.Tensor) -> list[Any]:
    held = x.enclosure()
    assert held is not None
    return [each.view(np.uint32).tolist() for each in (held.values, held.low, held.high)]


@pytest.mark.skipif(
    not isinstance(executor_library.find(), executor_library.Executor),
    reason="counts are those of the native executor",
)
def test_few_functions_are_called() -> None:
    x, counts = _tensor(), [0]

    def count(_frame: object, event: str, _argument: object) -> None:
        counts[-1] += event == "call"

    with pypto.options(vec_tile_shapes=(4, 64)):
        for _ in range(4):
            counts.append(0)
            sys.setprofile(count)
            try:
                pypto.sum(x, -1, True)
            finally:
                sys.setprofile(None)
    assert counts[-1] <= 23  # 124 where everything is asked again


@pytest.mark.parametrize("engine", ["auto", "numpy"])
@pytest.mark.parametrize("trust", ["default", "documented"])
@pytest.mark.parametrize("tile", [(2, 16), (4, 64)], ids=str)
def test_the_bits_ends_and_places_are_those_of_the_first_time(
    engine: Any, trust: Any, tile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pypto.options(engine=engine, trust=trust, vec_tile_shapes=tile):
        for name in NAMES:
            for dim in (-1, 0):
                for seed in (0, 1):
                    x = pypto.exp(_tensor(seed)) if name == "prod" else _tensor(seed)
                    results = [getattr(pypto, name)(x, dim, True) for _ in range(2)]
                    with monkeypatch.context() as patched:
                        patched.setattr(reduction_functions, "plain_form", lambda *_: None)
                        expected = getattr(pypto, name)(x, dim, True)
                    for found in results:
                        assert _codes(found) == _codes(expected)
                        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
                        assert [(p.offset, p.extent, p.record.grid) for p in found.patches()] == [
                            (p.offset, p.extent, p.record.grid) for p in expected.patches()
                        ]
    assert len(reduction_functions._SETTLED) == 2 * len(NAMES)


def test_a_missing_tile_shape_is_warned_of_each_time() -> None:
    x = _tensor()
    for _ in range(3):
        with pytest.warns(TileShapeWarning, match="whole dimension of the sum"):
            pypto.sum(x, -1, True)
    assert not reduction_functions._SETTLED


def test_each_kernel_is_told_of_other_releases() -> None:
    with pypto.options(vec_tile_shapes=(4, 20)):
        for _ in range(3):
            with running(Recording(kernel="k")) as recording:
                pypto.amax(_tensor(), -1, True)
            assert list(recording.release_dependence.values()) == [pypto.DT_FP32]


def test_what_fits_by_a_schedule_alone_is_checked_elsewhere() -> None:
    x = pypto.from_numpy(np.ones((256, 256), np.float32))
    with pypto.options(vec_tile_shapes=(256, 256)):
        with running(Recording(kernel="k", plan=lambda: None)):
            for _ in range(2):
                pypto.amax(x, -1, True)
        with pytest.raises(pypto.TileShapeError, match="B of UB"):
            pypto.amax(x, -1, True)


def test_arguments_are_checked_each_time() -> None:
    x, odd = _tensor(), cast(Any, 1)
    with pypto.options(vec_tile_shapes=(4, 64)):
        for _ in range(2):
            assert pypto.amax(x, -1, True).shape == [3, 1]
            assert pypto.amax(x, -1).shape == [3]
            with pytest.raises(TypeError, match="keepdim"):
                pypto.amax(x, -1, odd)
            with pytest.raises(TypeError, match="one dimension"):
                pypto.amax(x, True, True)
            with pytest.raises(ValueError, match="dimension 2 of 2"):
                pypto.amax(x, 2, True)


def test_a_unit_set_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pypto.options(vec_tile_shapes=(4, 64)):
        x = _tensor()
        for _ in range(2):
            pypto.sum(x, -1, True)
        monkeypatch.setattr(float_environment, "is_default", lambda: False)
        with pytest.raises(RuntimeError, match="floating-point unit"):
            pypto.sum(x, -1, True)


def test_what_ifs_and_running_kernels_are_told_each_time() -> None:
    x = _tensor()

    def run() -> pypto.Tensor:
        return pypto.sum(x, -1, True)

    with pypto.options(vec_tile_shapes=(4, 64)):
        run()
        run()
        with applying(WhatIf(operation="sum", rounded_to=pypto.DT_BF16)):
            rounded = run().numpy().view(np.uint32)
        assert not (rounded & 0xFFFF).any()
        with running(Recording(kernel="k")) as recording:
            run()
        assert [str(step).split()[0] for step in recording.steps] == ["sum"]
        with running(Recording(kernel="k", calls=[])) as recording:
            run()
        assert recording.calls is not None
        assert len(recording.calls) == 1
        with running(Recording(kernel="k", executes=False)):
            assert run().enclosure() is None
