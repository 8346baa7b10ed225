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
from pypto_cast.dtypes.names import dtype_named

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


@pytest.mark.parametrize("src", ["FP32", "FP16", "BF16", "INT8", "FP8E5M2"])
def test_the_default_mode_to_hif8_is_that_of_its_casts(src: str) -> None:
    dtype = pypto.DataType[f"DT_{src}"]
    with pypto.options(chip="Ascend950PR"):
        found = pypto.routes(dtype, pypto.DT_HF8, pypto.CAST_NONE)
        steps = [(step.dtype, step.mode) for step in found.best.steps]
        checked = pypto.check_chain(dtype, steps, pypto.CAST_NONE)
    assert (found.mode, checked.route.verdict.is_exact) == (pypto.CAST_ROUND, True)
    assert found.best.verdict.is_exact


@pytest.mark.parametrize(
    ("dtype", "mode"),
    [(pypto.DT_HF8, "ROUND"), (pypto.DT_FP8E4M3, "RINT"), (pypto.DT_INT8, "RINT")],
    ids=str,
)
def test_a_question_without_a_mode_is_asked_in_one_of_the_destination(
    command: Command, dtype: pypto.DataType, mode: str
) -> None:
    """To integers it is CAST_RINT, where CAST_NONE is CAST_TRUNC."""
    named = pypto.CastMode[f"CAST_{mode}"]
    with pypto.options(chip="Ascend950PR"):
        found = pypto.routes(pypto.DT_FP16, dtype)
        steps = [(step.dtype, step.mode) for step in found.best.steps]
        checked = pypto.check_chain(pypto.DT_FP16, steps)
    assert (found.mode, checked.route.mode) == (named, named)
    assert checked.is_exact
    words = ("route", "--from", "fp16", "--to", dtype.name, "--chip", "Ascend950PR")
    assert command(*words).out.splitlines()[0] == f"DT_FP16 -> {dtype.name} CAST_{mode}"
    through = ",".join(f"{step.name}:{mode}" for step, mode in steps)
    assert f"beside one CAST_{mode}" in command(*words, "--through", through).out


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


TO_E4M3 = (pypto.DT_FP32, pypto.DT_FP8E4M3, pypto.CAST_ROUND)
FLOORED = [(pypto.DT_BF16, pypto.CAST_FLOOR), (pypto.DT_FP4_E2M1X2, pypto.CAST_FLOOR)]


def on_950(**readings: str) -> Any:
    """The options of the chip with readings, "_" for "-"."""
    named = {name.replace("_", "-"): value for name, value in readings.items()}
    return pypto.options(chip="Ascend950PR", readings=named)


def test_a_route_in_a_mode_that_one_reading_has() -> None:
    """Ties between neighbours of E4M3 go to the even one by RINT, away from zero by ROUND."""
    with on_950():
        best = pypto.routes(*TO_E4M3).best
    assert best.verdict.is_exact
    assert best.verdict.rests_on == (
        "FP32 -> E4M3FN CAST_ROUND is there by the reading fp32-fp8-modes=five, and not by "
        "fp32-fp8-modes=rint",
    )
    with on_950(fp32_fp8_modes="rint"):
        best = pypto.routes(*TO_E4M3).best
    numbers = np.arange(0x7E, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    above = np.arange(1, 0x7F, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    to_even = ((numbers + above) / 2).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    ties = int((to_even == numbers).sum()) + 1  # and 464, which ROUND takes beyond 448
    assert (str(best.chain), best.verdict.differing) == ("FP32 -> E4M3FN CAST_RINT", 2 * ties)


def test_a_chain_in_a_mode_that_one_reading_has() -> None:
    with on_950(bf16_fp4_modes="five"):
        found = pypto.check_chain(pypto.DT_FP32, FLOORED, pypto.CAST_FLOOR)
        assert found.is_exact
        assert "bf16-fp4-modes=five, and not by bf16-fp4-modes=none" in str(found.report)
    with (
        on_950(),
        pytest.raises(pypto.CastModeError, match="BF16 -> E2M1 has no mode CAST_FLOOR"),
    ):
        pypto.check_chain(pypto.DT_FP32, FLOORED, pypto.CAST_FLOOR)


@pytest.mark.slow
def test_a_pair_that_one_reading_has() -> None:
    """The instruction clamps; without it overflow is that of a float."""
    ends = pypto.DT_INT32, pypto.DT_FP16
    with on_950(int32_fp16="none"):
        best = pypto.routes(*ends).best
    assert best.verdict.is_exact
    assert str(best.chain) == "INT32 -> FP32 CAST_RINT -> FP16 CAST_RINT"
    with on_950():
        assert [step.dtype for step in pypto.routes(*ends).best.steps] == [pypto.DT_FP16]


@pytest.mark.parametrize(("value", "code"), [("zero", 0), ("max", 7)])
def test_nan_of_a_route_is_that_of_the_reading(value: str, code: int) -> None:
    steps = [(pypto.DT_FP32, pypto.CAST_NONE), (pypto.DT_BF16, pypto.CAST_RINT)]
    values = np.array([[np.nan, 1.0] * 32], np.float16)
    with on_950(nan_e2m1=value), pypto.options(vec_tile_shapes=[1, 64]):
        found = pypto.check_chain(
            pypto.DT_FP16,
            [*steps, (pypto.DT_FP4_E2M1X2, pypto.CAST_RINT)],
            data=values,
        )
        codes = found.route.cast(pypto.from_numpy(values)).numpy().view(np.uint8)
    assert codes[0, :2].tolist() == [code, 2]
    assert found.data is not None
    assert found.data.differing == 0


@pytest.mark.parametrize(
    ("src", "dst", "mode", "route"),
    [
        ("BF16", "FP8E4M3", "NONE", "BF16 -> FP32 -> E4M3FN CAST_RINT"),
        ("BF16", "HF8", "NONE", "BF16 -> FP32 -> HF8 CAST_ROUND"),
        ("BF16", "HF8", "RINT", ""),
        ("FP8E5M2", "BF16", "FLOOR", "E5M2 -> FP32 -> BF16 CAST_FLOOR"),
        ("INT8", "FP32", "NONE", "INT8 -> FP16 -> FP32"),
        ("FP16", "FP4_E2M1X2", "NONE", ""),
    ],
)
def test_a_refused_pair_names_a_route_that_rounds_once(
    src: str, dst: str, mode: str, route: str
) -> None:
    ends = pypto.DataType[f"DT_{src}"], pypto.DataType[f"DT_{dst}"]
    asked = pypto.CastMode[f"CAST_{mode}"]
    with on_950(), pytest.raises(pypto.UnsupportedCastError) as error:
        pypto.cast(pypto.tensor([64], ends[0], data=[1.0] * 64), ends[1], asked)
    assert str(error.value).endswith(f". {route} rounds once: its first cast is exact") == bool(
        route
    )
    if not route:
        assert "rounds once" not in str(error.value)
        return
    names = [word.partition(" ") for word in route.split(" -> ")[1:]]
    steps = [(dtype_named(name), pypto.CastMode[mode or "CAST_NONE"]) for name, _, mode in names]
    with on_950():
        assert pypto.check_chain(ends[0], steps, steps[-1][1]).is_exact


def test_the_command_takes_readings(command: Command) -> None:
    words = ("route", "--from", "fp32", "--to", "fp8e4m3", "--mode", "round")
    on = ("--chip", "Ascend950PR", "--reading", "fp32-fp8-modes=rint")
    assert "FP32 -> E4M3FN CAST_RINT" in command(*words, *on).out
    refused = command(*words, *on, "--through", "E4M3FN:ROUND")
    assert "FP32 -> E4M3FN has no mode CAST_ROUND" in refused.error
    assert "none" in command(*words, "--reading", "fp32-fp8-modes=rint").error
