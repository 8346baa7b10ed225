"""Routes of the 950's casts: held against code-by-code conversion by other libraries."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.environment.command import Command, command
from support.numbers.codes import as_values

import pypto_cast as pypto
from pypto_cast.dtypes.data_types import numpy_dtype

__all__ = ["command"]  # a fixture


def converted(route: Any, values: np.ndarray) -> np.ndarray:
    """The codes of a route's casts."""
    with pypto.options(chip="Ascend950PR", vec_tile_shapes=[8, 1024]):
        return route.cast(pypto.from_numpy(values)).numpy().view(np.uint8)


@pytest.mark.parametrize("dtype", [pypto.DT_FP8E4M3, pypto.DT_FP8E5M2], ids=str)
@pytest.mark.parametrize("src", ["FP16", "BF16"])
def test_16_bits_reach_fp8_in_one_rounding(src: str, dtype: pypto.DataType) -> None:
    with pypto.options(chip="Ascend950PR"):
        best = pypto.routes(pypto.DataType[f"DT_{src}"], dtype).best
    assert (str(best.verdict), [str(step.dtype) for step in best.steps]) == (
        "exact on all 65,536 codes, shown",
        [str(pypto.DT_FP32), str(dtype)],
    )
    values = as_values(np.arange(1 << 16, dtype=np.uint16), src).reshape(16, -1)
    found = converted(best, values)
    with np.errstate(all="ignore"):
        outside = values.astype(numpy_dtype(dtype))
    is_nan = np.isnan(outside.astype(np.float32))
    np.testing.assert_array_equal(found[~is_nan], outside.view(np.uint8)[~is_nan])
    assert np.isnan(found.view(numpy_dtype(dtype)).astype(np.float32)[is_nan]).all()


def test_the_count_of_two_roundings_to_fp4_is_that_of_their_codes() -> None:
    """BF16 between rounds once more, which only shows around the ties of E2M1."""
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], np.float32).view(np.uint32)
    near = np.arange(-(1 << 16), 1 << 16, dtype=np.int64)
    codes = (ties[:, None].astype(np.int64) + near).astype(np.uint32)
    floats = codes.view(np.float32)
    once = floats.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    half_away = ((codes + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)
    twice = half_away.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    steps = [(pypto.DT_BF16, pypto.CAST_ROUND), (pypto.DT_FP4_E2M1X2, pypto.CAST_RINT)]
    with pypto.options(chip="Ascend950PR"):
        found = pypto.check_chain(pypto.DT_FP32, steps, data=floats)
    differing = int((once != twice).sum())
    assert found.data is not None
    assert (found.data.differing, found.route.verdict.differing) == (differing, 2 * differing)


def test_hif8_and_fp8_lead_to_each_other() -> None:
    with pypto.options(chip="Ascend950PR"):
        there = pypto.routes(pypto.DT_HF8, pypto.DT_FP8E4M3).best
        back = pypto.routes(pypto.DT_FP8E4M3, pypto.DT_HF8, pypto.CAST_ROUND).best
    assert str(there.verdict) == str(back.verdict) == "exact on all 256 codes, shown"


def test_a_result_out_of_range_is_nan_in_both_ways_of_e4m3() -> None:
    with pypto.options(chip="Ascend950PR"):
        found = pypto.routes(pypto.DT_FP32, pypto.DT_FP8E4M3)
        assert found.best.verdict.is_exact
        assert [str(step.dtype) for step in found.best.steps] == [str(pypto.DT_FP8E4M3)]
        clamped = pypto.check_chain(
            pypto.DT_FP32,
            [
                (pypto.DT_INT32, pypto.CAST_RINT),
                (pypto.DT_FP32, pypto.CAST_RINT),
                (pypto.DT_FP8E4M3, pypto.CAST_RINT),
            ],
        )
    assert not clamped.is_exact


def test_the_command_takes_a_chip(command: Command) -> None:
    words = ("route", "--from", "bf16", "--to", "hf8", "--mode", "round", "--chip", "Ascend950PR")
    ran = command(*words)
    assert (ran.code, ran.err) == (0, "")
    assert "BF16 -> FP32 -> HF8 CAST_ROUND" in ran.out
    assert "exact on all 65,536 codes, shown" in ran.out
    through = command(
        *words[:5], "--through", "FP32,HF8:ROUND", "--mode", "round", "--chip", "Ascend950DT"
    )
    assert "all codes: exact" in through.out or "exact on all 65,536 codes" in through.out
    refused = command(*words[:5])
    assert refused.code == 2
    assert "A2/A3 casts nothing from or to HF8" in refused.err
