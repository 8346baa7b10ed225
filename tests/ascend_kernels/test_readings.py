"""The readings of public texts of the 950: what each changes, and the results that rest on it."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16, float4_e2m1fn, float8_e8m0fnu
from support.numbers import ascend950
from support.numbers.ascend950 import M5, Pair

import pypto_cast as pypto
from ascend_kernels.matrix import READ_OTHERWISE, rules_of
from pypto_cast.options.context import current
from simulator.corrections import READINGS, corrections_of
from simulator.machine.memory import load, packed
from simulator.numbers.convert import SATURATE, Conversion, convert
from simulator.numbers.formats import BF16, E2M1, E8M0, INT4
from simulator.numbers.rounding import RoundMode
from tiling.chips import ASCEND_950

CHIP = "Ascend950PR"
BF16_CODES = np.arange(1 << 16, dtype=np.uint16)
SAMPLE = BF16_CODES[::7][: 1 << 12]


@pytest.fixture(autouse=True)
def _quiet() -> None:
    for category in (pypto.TileShapeWarning, pypto.CastModeWarning):
        warnings.simplefilter("ignore", category)


def in_fp4(codes: Any, mode: pypto.CastMode, readings: Mapping[str, str], **chosen: Any) -> Any:
    x = pypto.tensor(None, pypto.DT_BF16, data=codes.view(bfloat16).reshape(1, -1))
    with pypto.options(chip=CHIP, readings=readings, vec_tile_shapes=(1, 4096), **chosen):
        return pypto.cast(x, pypto.DT_FP4_E2M1X2, mode).numpy().view(np.uint8).ravel()


def wanted_in_fp4(codes: Any, mode: str) -> list[int]:
    pair = Pair("BF16", "E2M1", M5, "RINT")
    return [
        ascend950.expected(code, pair, mode, off=False, inf_nan_mode=True)
        for code in codes.tolist()
    ]


def test_every_reading_has_two_texts_and_a_default() -> None:
    assert list(READINGS) == [
        "fp32-fp8-modes",
        "bf16-fp4-modes",
        "int32-fp16",
        "bf16-inf-e8m0",
        "fp4-nibbles",
        "nan-e2m1",
    ]
    for reading in READINGS.values():
        first, second = reading.values
        assert reading.default == first
        assert reading.other(first) == second
        assert reading.other(second) == first
        assert all("(" in text for text in reading.values.values())


@pytest.mark.parametrize("dst", ["DT_FP8E4M3", "DT_FP8E5M2"])
def test_modes_of_fp8(dst: str) -> None:
    x = pypto.tensor(None, pypto.DT_FP32, data=[[1.01, -1.01, 3.3, 1e-4]])

    def cast(mode: pypto.CastMode) -> list[int]:
        found = pypto.cast(x, pypto.DataType[dst], mode).numpy().view(np.uint8)
        return list(found.ravel().tolist())

    with pypto.options(chip=CHIP):
        up, near = cast(pypto.CAST_CEIL), cast(pypto.CAST_RINT)
    assert up != near
    with pypto.options(chip=CHIP, readings={"fp32-fp8-modes": "rint"}):
        with pytest.warns(pypto.CastModeWarning, match="has no mode CAST_CEIL; it has CAST_RINT"):
            assert cast(pypto.CAST_CEIL) == near
        with (
            pypto.options(strict=True),
            pytest.raises(pypto.CastModeError, match="no mode CAST_CEIL"),
        ):
            cast(pypto.CAST_CEIL)


@pytest.mark.parametrize("mode", M5)
def test_modes_of_fp4(mode: str) -> None:
    asked = pypto.CastMode[f"CAST_{mode}"]
    for fidelity in ("fast", "instructions"):
        found = in_fp4(SAMPLE, asked, {"bf16-fp4-modes": "five"}, fidelity=fidelity)
        np.testing.assert_array_equal(found, wanted_in_fp4(SAMPLE, mode))
        found = in_fp4(SAMPLE, asked, {}, fidelity=fidelity)
        np.testing.assert_array_equal(found, wanted_in_fp4(SAMPLE, "RINT"))


def test_int32_to_fp16_is_refused_where_it_is_not_there() -> None:
    x = pypto.tensor(None, pypto.DT_INT32, data=[[1, 2]])
    with (
        pypto.options(chip=CHIP, readings={"int32-fp16": "none"}),
        pytest.raises(
            pypto.UnsupportedCastError,
            match=r"950 does not cast INT32 -> FP16.*950 without options\(readings=\{'int32-fp16'",
        ),
    ):
        pypto.cast(x, pypto.DT_FP16)


@pytest.mark.parametrize("fidelity", ["fast", "instructions"])
@pytest.mark.parametrize("engine", ["numpy", "auto"])
def test_nan_of_bf16_is_the_largest_number_of_fp4(fidelity: str, engine: str) -> None:
    found = in_fp4(
        BF16_CODES, pypto.CAST_RINT, {"nan-e2m1": "max"}, fidelity=fidelity, engine=engine
    )
    plain = in_fp4(BF16_CODES, pypto.CAST_RINT, {}, fidelity=fidelity, engine=engine)
    is_nan = BF16_CODES & 0x7FFF > 0x7F80
    assert {*found[is_nan].tolist()} == {7}
    assert {*plain[is_nan].tolist()} == {0}
    np.testing.assert_array_equal(found[~is_nan], plain[~is_nan])


def test_infinity_of_bf16_is_nan_in_e8m0() -> None:
    step = Conversion(src=BF16, dst=E8M0, mode=RoundMode.TRUNC, policy=SATURATE)
    corrections = corrections_of((("bf16-inf-e8m0", "nan"),))
    codes = np.array([0x7F80, 0xFF80, 0x7F7F, 0x3F80], np.uint16)
    results = convert(codes, BF16, E8M0, step.mode, step.policy)
    corrections.by_conversion[step](codes, results)
    assert results.tolist() == [0xFF, 0xFF, 0xFE, 0x7F]


@pytest.mark.parametrize("fmt", [E2M1, INT4])
@pytest.mark.parametrize("order", ["low", "high"])
def test_nibbles(fmt: Any, order: str) -> None:
    codes = np.array([1, 2, 7, 15], np.uint8)
    is_high = order == "high" and fmt is E2M1
    memory = packed(codes, fmt, order)
    assert memory.tolist() == ([0x12, 0x7F] if is_high else [0x21, 0xF7])
    np.testing.assert_array_equal(load(memory, fmt, order), codes)


@pytest.mark.parametrize("order", ["low", "high"])
def test_no_cast_depends_on_the_order_of_nibbles(order: str) -> None:
    given = {"fp4-nibbles": order}
    found = in_fp4(SAMPLE, pypto.CAST_RINT, given, fidelity="instructions")
    np.testing.assert_array_equal(found, in_fp4(SAMPLE, pypto.CAST_RINT, {}))


# --- The option -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"nan-e2m": "max"}, ValueError, "no name 'nan-e2m'.*nearest is 'nan-e2m1'"),
        ({"nan-e2m1": "maxi"}, ValueError, "no value 'maxi'.*has zero, max; the nearest is 'max'"),
        ({"nan-e2m1": 1}, TypeError, "names to values, both str"),
        ([("nan-e2m1", "max")], TypeError, "must be a dict"),
    ],
)
def test_what_is_unknown_is_refused(given: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text), pypto.options(chip=CHIP, readings=given):
        pytest.fail("the body must not run")


def test_a_chip_without_readings_refuses_them() -> None:
    given = {"nan-e2m1": "max"}
    text = "is of chips of 950; Ascend910B3, of A2/A3, has none"
    with pytest.raises(ValueError, match=text), pypto.options(readings=given):
        pytest.fail("the body must not run")
    with (
        pypto.options(chip=CHIP, readings=given),
        pytest.raises(ValueError, match=text),
        pypto.options(chip="Ascend910B3"),
    ):
        pytest.fail("the body must not run")


def test_what_is_not_named_keeps_its_value() -> None:
    with pypto.options(chip=CHIP, readings={"nan-e2m1": "max"}):
        with pypto.options(readings={"fp4-nibbles": "high"}):
            assert dict(current().readings) == {"nan-e2m1": "max", "fp4-nibbles": "high"}
        with pypto.options(readings={"nan-e2m1": "zero"}):
            assert current().readings == ()
        assert dict(current().readings) == {"nan-e2m1": "max"}


def test_readings_change_rows_that_are_there() -> None:
    for reading, rows in READ_OTHERWISE[ASCEND_950].items():
        assert reading[1] in READINGS[reading[0]].values
        assert set(rows) <= set(rules_of(ASCEND_950))
        changed = rules_of(ASCEND_950, (reading,))
        assert {pair for pair in rules_of(ASCEND_950) if pair not in changed} == {
            pair for pair, fields in rows.items() if fields is None
        }
    every = [
        [(name, each) for each in reading.values if each != reading.default]
        for name, reading in READINGS.items()
    ]
    assert len(rules_of(ASCEND_950, tuple(sorted(itertools.chain(*every))))) == 45


# --- Certainty ------------------------------------------------------------------------------------


Given = pypto.Tensor[[1, 6], pypto.DT_BF16]
InFp4 = pypto.Tensor[[1, 6], pypto.DT_FP4_E2M1X2]
Whole = pypto.Tensor[[1, 6], pypto.DT_INT32]
Halves = pypto.Tensor[[1, 6], pypto.DT_FP16]
Wide = pypto.Tensor[[1, 6], pypto.DT_FP32]
InFp8 = pypto.Tensor[[1, 6], pypto.DT_FP8E4M3]


@pypto.frontend.jit
def down_to_fp4(x: Given, y: InFp4) -> None:
    pypto.set_vec_tile_shapes(1, 32)
    y[:] = pypto.cast(x, pypto.DT_FP4_E2M1X2, pypto.CAST_FLOOR)


@pypto.frontend.jit
def to_halves(x: Whole, y: Halves) -> None:
    pypto.set_vec_tile_shapes(1, 32)
    y[:] = pypto.cast(x, pypto.DT_FP16)


@pypto.frontend.jit
def up_to_fp8(x: Wide, y: InFp8) -> None:
    pypto.set_vec_tile_shapes(1, 32)
    y[:] = pypto.cast(x, pypto.DT_FP8E4M3, pypto.CAST_CEIL)


@pypto.frontend.jit
def near_to_fp8(x: Wide, y: InFp8) -> None:
    pypto.set_vec_tile_shapes(1, 32)
    y[:] = pypto.cast(x, pypto.DT_FP8E4M3)


@pypto.frontend.jit
def to_mx(
    x: pypto.Tensor[[1, 64], pypto.DT_BF16],
    codes: pypto.Tensor[[1, 64], pypto.DT_FP4_E2M1X2],
    scales: pypto.Tensor[[1, 1, 2], pypto.DT_FP8E8M0],
) -> None:
    pypto.set_vec_tile_shapes(1, 64)
    codes[:], scales[:] = pypto.quant_mx(x, pypto.DT_FP4_E2M1X2, performance_mode=False)


@pypto.frontend.jit
def in_int8(x: Wide, y: pypto.Tensor[[1, 6], pypto.DT_INT8]) -> None:
    pypto.set_vec_tile_shapes(1, 32)
    y[:] = pypto.cast(pypto.cast(pypto.cast(x, pypto.DT_INT32), pypto.DT_FP16), pypto.DT_INT8)


def resting(certainty: Any) -> dict[str, int]:
    return {
        choice.name.removeprefix("READING_"): count
        for choice, count in certainty.choices.items()
        if choice.name.startswith("READING_")
    }


def test_results_that_rest_on_a_reading_are_counted() -> None:
    x = np.array([[1.0, 1.2, np.nan, np.inf, 0.7, -0.7]], bfloat16)
    y = np.zeros((1, 6), float4_e2m1fn)
    with pypto.options(chip=CHIP):
        found = down_to_fp4.certainty(x, y)
        # FLOOR gives another code of 0.7 and -0.7, and of 1.2 the same as RINT: 1.
        assert resting(found) == {"bf16-fp4-modes": 1, "nan-e2m1": 1}
        assert found.counts.undecided == 0
        halves = to_halves.certainty(np.arange(6, dtype=np.int32).reshape(1, 6), y.astype("f2"))
        assert resting(halves) == {"int32-fp16": 6}
        wide = np.array([[1.01, 1.0, 2.0, -1.2, 1e-9, 0.0]], np.float32)
        eights = pypto.tensor(
            None,
            pypto.DT_FP8E4M3,
            data=np.zeros((1, 6), "f4").astype(
                pypto.tensor(None, pypto.DT_FP8E4M3, data=[[0.0]]).numpy().dtype
            ),
        )
        assert resting(up_to_fp8.certainty(wide, eights)) == {"fp32-fp8-modes": 3}
        assert resting(near_to_fp8.certainty(wide, eights)) == {}


def test_codes_of_quant_mx_rest_on_the_reading_of_nan() -> None:
    x = np.ones((1, 64), bfloat16)
    x[0, 40] = np.nan
    codes, scales = np.zeros((1, 64), float4_e2m1fn), np.zeros((1, 1, 2), float8_e8m0fnu)
    with pypto.options(chip=CHIP):
        found = to_mx.certainty(x, codes, scales)
        assert resting(found) == {"nan-e2m1": 32}
        assert found["scales"].certain.all()
        x[0, 40] = 1
        assert resting(to_mx.certainty(x, codes, scales)) == {}
    with pypto.options(chip=CHIP, trust="documented"):
        x[0, 40] = np.nan
        found = to_mx.certainty(x, codes, scales)
    assert found["codes"].certain.tolist() == [[True] * 32 + [False] * 32]


def test_a_cast_on_the_way_rests_on_the_reading_that_refuses_it() -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 6)
    with pypto.options(chip=CHIP):
        assert resting(in_int8.certainty(x, np.zeros((1, 6), "i1"))) == {"int32-fp16": 6}


def test_every_reading_that_a_kernel_meets_is_counted() -> None:
    """No kernel casts to E8M0, and no result of one depends on how two elements lie in a byte."""
    met = {"fp32-fp8-modes", "bf16-fp4-modes", "int32-fp16", "nan-e2m1"}
    assert set(READINGS) - met == {"bf16-inf-e8m0", "fp4-nibbles"}
    assert not [pair for pair in rules_of(ASCEND_950) if pair[1] is E8M0]


def test_by_documents_a_reading_leaves_results_open() -> None:
    x = np.array([[1.0, 1.2, np.nan, 2.0, 4.0, 6.0]], bfloat16)
    with pypto.options(chip=CHIP, trust="documented"):
        found = down_to_fp4.certainty(x, np.zeros((1, 6), float4_e2m1fn))
    assert found[0].certain.tolist() == [[True, True, False, True, True, True]]
    assert found[0].low.view(np.uint8)[0, 2] == 0
    assert found[0].high.view(np.uint8)[0, 2] == 7


def test_a_schedule_refuses_readings() -> None:
    x = np.ones((1, 6), bfloat16)
    y = np.zeros((1, 6), float4_e2m1fn)
    chosen = {"chip": CHIP, "fidelity": "instructions", "readings": {"nan-e2m1": "max"}}
    with (
        pypto.options(**chosen),
        pytest.warns(pypto.UnplannedKernelWarning, match="does not follow readings"),
    ):
        down_to_fp4(x, y)
    assert {*y.view(np.uint8).ravel().tolist()} == {2}
