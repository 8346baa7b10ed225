"""quant_mx of the 950 against exact fractions and upstream's golden; its intervals; its errors."""

from __future__ import annotations

import csv
import importlib
import math
import os
import sys
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any, Final
from unittest.mock import MagicMock

import ml_dtypes
import numpy as np
import pytest
from support.numbers import mx_blocks
from support.numbers.codes import SEED
from support.numbers.oracle import decode
from support.numbers.small_floats import Value

import pypto_cast as pypto
from pypto_cast.dtypes.data_types import DTYPE_OF
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic.interval import Enclosure, Interval
from simulator.arithmetic.microscaling import ScaleRounding, quantised_blocks
from simulator.corrections import NO_CORRECTIONS, Corrections, corrections_of, merged
from simulator.numbers.convert import values_of
from simulator.numbers.formats import E2M1, E4M3FN, FORMATS, FP32, FloatFormat

CHIP: Final = "Ascend950PR"
CHECKOUT: Final = "PYPTO_CAST_UPSTREAM"
TABLE: Final = "framework/tests/st/operation/test_case/QuantMX_st_test_cases.csv"
GOLDEN: Final = "framework/tests/st/operation/python"
CASES: Final = 238
BLOCK: Final = mx_blocks.BLOCK
PAIRS: Final = [
    *(("E4M3FN", source) for source in ("FP32", "FP16", "BF16")),
    *(("E2M1", source) for source in ("FP16", "BF16")),
]
MODES: Final = (pypto.ROUND_DOWN, pypto.ROUND_UP)


def blocks_of(source: str, count: int) -> np.ndarray[Any, Any]:
    """Codes in blocks: exponents over the whole range, ties, zeros, subnormal and special ones."""
    fmt = FORMATS[source]
    assert isinstance(fmt, FloatFormat)
    rng = np.random.default_rng(SEED)
    exponents = rng.integers(0, (1 << fmt.exp_bits) - 1, (count, 1))
    spread = exponents - rng.integers(0, 14, (count, BLOCK))
    fractions = rng.integers(0, 1 << fmt.man_bits, (count, BLOCK))
    kept = rng.integers(0, 5, (count, BLOCK))
    fractions &= -(1 << np.maximum(fmt.man_bits - kept, 0))  # few bits: ties and exact numbers
    some = rng.random((count, 1)) < 0.5
    fractions = np.where(some, fractions, rng.integers(0, 1 << fmt.man_bits, (count, BLOCK)))
    codes = np.maximum(spread, 0) << fmt.man_bits | fractions
    codes |= rng.integers(0, 2, codes.shape) << (fmt.bits - 1)
    assert fmt.inf_code is not None
    assert fmt.nan_code is not None
    for row, special in enumerate(
        (0, fmt.sign_code, 1, fmt.inf_code, fmt.inf_code | fmt.sign_code, fmt.nan_code)
    ):
        codes[row, ::3] = special
        codes[row + 6] = special
        codes[row + 12, 5] = special
    return codes.astype(fmt.code_dtype)


def value_of(code: int, source: str) -> Value:
    found = decode(code, source)
    return Value(found.kind, found.negative, Fraction(found.magnitude))


def quantised(
    codes: np.ndarray[Any, Any], source: str, quant: str, mode: object, axis: int = -1
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Codes and scales that pypto.quant_mx gives, as bytes, one an element."""
    x = pypto.tensor(None, DTYPE_OF[FORMATS[source]], data=values_of(codes, FORMATS[source]))
    found, scales = pypto.quant_mx(x, DTYPE_OF[FORMATS[quant]], mode, axis, False)
    assert scales.dtype is pypto.DT_FP8E8M0
    return found.numpy().view(np.uint8), scales.numpy().view(np.uint8)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.name).lower())
@pytest.mark.parametrize(("quant", "source"), PAIRS)
def test_scales_and_codes_are_those_of_exact_fractions(
    quant: str, source: str, mode: pypto.DequantScaleRoundingMode
) -> None:
    codes = blocks_of(source, 256)
    values = [[value_of(int(code), source) for code in block] for block in codes]
    up = mode is pypto.ROUND_UP
    scales = [mx_blocks.scale_code(block, quant, up) for block in values]
    wanted = [mx_blocks.codes(b, s, quant) for b, s in zip(values, scales, strict=True)]
    with pypto.options(chip=CHIP):
        found, found_scales = quantised(codes.reshape(-1, 2 * BLOCK), source, quant, mode)
        # The same along the axis before, where the blocks stand in columns.
        columns = codes.reshape(64, 2 * 2 * BLOCK).T
        below, below_scales = quantised(columns, source, quant, mode, -2)
    np.testing.assert_array_equal(found.reshape(-1, BLOCK), wanted)
    np.testing.assert_array_equal(found_scales.reshape(-1), scales)
    np.testing.assert_array_equal(below.T.reshape(-1, BLOCK), wanted)
    np.testing.assert_array_equal(np.moveaxis(below_scales, 1, 0).reshape(-1), scales)


def test_tails_of_valid_rows_are_padded_by_zeros() -> None:
    x = pypto.tensor([2, 64], pypto.DT_FP32, data=np.full((2, 64), 3.0, np.float32))
    with pypto.options(chip=CHIP):
        part = pypto.view(x, [2, 64], [0, 0], valid_shape=[2, 40])
        codes, scales = pypto.quant_mx(part)
        whole, whole_scales = pypto.quant_mx(x)
        short, short_scales = pypto.quant_mx(pypto.view(x, [2, 64], [0, 0], valid_shape=[2, 20]))
    assert codes.valid_shape == [2, 40]
    assert scales.valid_shape == [2, 1, 2]
    np.testing.assert_array_equal(codes.numpy(), whole.numpy()[:, :40])
    np.testing.assert_array_equal(scales.numpy(), whole_scales.numpy())
    assert short.valid_shape == [2, 20]
    np.testing.assert_array_equal(short_scales.numpy().view(np.uint8)[:, 0, 1], 0)


# --- Upstream's golden ----------------------------------------------------------------------------


def golden() -> Any:
    """The module of upstream's goldens, read where it lies; skips where no checkout is named."""
    folder = os.environ.get(CHECKOUT)
    if not folder:
        pytest.skip(f"{CHECKOUT} names no checkout of upstream's, which has the case tables")
    pytest.importorskip("torch")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.syspath_prepend(Path(folder) / GOLDEN)
        # It is imported for tables of cases, which the test reads by itself.
        patch.setitem(sys.modules, "pandas", MagicMock())
        warnings.simplefilter("ignore")
        return importlib.import_module("vector_operator_golden")


def _cases() -> list[dict[str, str]]:
    with (Path(os.environ[CHECKOUT]) / TABLE).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("most", [1 << 16, pytest.param(1 << 28, marks=pytest.mark.exhaustive)])
def test_every_case_of_upstream_s_golden_is_equal(most: int) -> None:
    module = golden()
    cases = _cases()
    assert len(cases) == CASES
    different = []
    for number, case in enumerate(cases):
        np.random.seed(SEED % (1 << 31) + number)
        shape = [int(entry) for entry in case["input_shape"].strip("[]").split(",")]
        if math.prod(shape) > most:
            continue
        low, high = case["input_datarange"].strip("[]").split(",")
        names = ("mode", "performance_mode", "use_exp_range", "exp_range", "axis")
        flags = ("enable_subnormal", "enable_inf", "enable_nan")
        params = module.params_quantmx_func({name: case[name] for name in (*names, *flags)})
        tensor = {
            "shape": shape,
            "dtype": case["input_dtype"],
            "data_range": {"min": float(low), "max": float(high)},
        }
        output = case["output_dtype"].strip("[]").split(",")[0]
        config = {"params": params, "output_tensors": [{"dtype": output}]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = module._generate_quantmx_input(tensor, config)
            mode, axis, quant, figures, functions = module._quantmx_parse_golden_config(config)
            is_fp4, is_nv = quant == "fp4_e2m1x2", mode == "ROUND_UP"
            along = module._quantmx_normalize_axis(axis, len(shape)) == len(shape) - 1
            compute = module._quantmx_axis_last_golden if along else module._quantmx_axis_dn_golden
            codes, scales = compute(
                given.astype(np.float32),
                case["input_dtype"],
                is_fp4,
                is_nv,
                not is_fp4 and not is_nv,
                figures,
                functions,
            )
        found, found_scales = _as_upstream(given, case, mode, axis, params["performance_mode"])
        if is_fp4:
            found = _packed(found)
        if not (np.array_equal(found, codes) and np.array_equal(found_scales, scales)):
            different.append(case["case_name"])
    assert different == []


def _as_upstream(
    given: np.ndarray[Any, Any], case: dict[str, str], mode: str, axis: int, performance: bool
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    is_fp4 = "fp4" in case["output_dtype"]
    quant = pypto.DT_FP4_E2M1X2 if is_fp4 else pypto.DT_FP8E4M3
    with pypto.options(chip=CHIP, readings={"nan-e2m1": "max", "fp4-nibbles": "low"}):
        codes, scales = pypto.quant_mx(
            pypto.from_numpy(given),
            quant,
            pypto.DequantScaleRoundingMode[mode],
            axis,
            performance,
        )
    return codes.numpy().view(np.uint8), scales.numpy().view(np.uint8)


def _packed(codes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Two codes a byte, the first in the low half."""
    return (codes[..., ::2] & 15 | codes[..., 1::2] << 4).astype(np.uint8)


@pytest.mark.parametrize(("reading", "code"), [("zero", 0), ("max", 7)])
def test_nan_to_fp4_is_a_reading(reading: str, code: int) -> None:
    """The whole block has the scale NaN and that code; others are as they were."""
    x = np.linspace(-3, 3, 128, dtype=np.float32).reshape(1, 128)
    x[0, 40] = np.nan
    given = x.astype(ml_dtypes.bfloat16)
    with pypto.options(chip=CHIP, readings={"nan-e2m1": reading}):
        codes, scales = pypto.quant_mx(pypto.from_numpy(given), pypto.DT_FP4_E2M1X2)
        in_fp8, _ = pypto.quant_mx(pypto.from_numpy(given), pypto.DT_FP8E4M3)
    found = codes.numpy().view(np.uint8)[0]
    assert found[32:64].tolist() == [code] * 32
    assert found[64:].any()
    assert scales.numpy().view(np.uint8).ravel().tolist() == [126, 255, 125, 126]
    assert (in_fp8.numpy().view(np.uint8)[0, 32:64] == 0x7F).all()


# --- Intervals ------------------------------------------------------------------------------------


NAN_IS_LARGEST = corrections_of(merged((), {"nan-e2m1": "max"}), NO_CORRECTIONS)


@pytest.mark.parametrize("rounding", ScaleRounding)
@pytest.mark.parametrize(
    ("dst", "corrections"),
    [(E4M3FN, NO_CORRECTIONS), (E2M1, NO_CORRECTIONS), (E2M1, NAN_IS_LARGEST)],
    ids=["e4m3fn", "e2m1", "e2m1-nan-is-largest"],
)
def test_every_member_of_an_interval_gives_a_member(
    dst: FloatFormat, corrections: Corrections, rounding: ScaleRounding
) -> None:
    rng = np.random.default_rng(SEED)
    centre = np.ldexp(rng.standard_normal((64, BLOCK)), rng.integers(-8, 9, (64, 1)))
    radius = np.abs(centre) * rng.choice([0, 0.001, 0.6, 1.5], centre.shape)
    low, high = ((centre + sign * radius).astype(np.float32) for sign in (-1, 1))
    may_be_nan = np.zeros(centre.shape, np.bool_)
    may_be_nan[::9, 3] = True
    interval = Interval(
        low=low, high=high, may_be_nan=may_be_nan, cause=np.ones(centre.shape, np.uint16)
    )
    given = Enclosure(values=centre.astype(np.float32), interval=interval)
    codes, scales = quantised_blocks(given, dst, rounding, corrections=corrections)
    assert codes.interval is not None
    assert scales.interval is not None
    for turn in range(24):
        share = rng.random(centre.shape) if turn > 1 else np.full(centre.shape, float(turn))
        member = (low + share * (high - low)).astype(np.float32).clip(low, high)
        if turn % 3 == 2:
            member = np.where(may_be_nan, np.float32(np.nan), member)
        one, of_one = quantised_blocks(
            Enclosure(values=member), dst, rounding, corrections=corrections
        )
        assert one.interval is None
        assert codes.interval.contains(one.values, dst).all()
        assert scales.interval.contains(of_one.values, FORMATS["E8M0"]).all()
    assert codes.interval.contains(codes.values, dst).all()


def test_exact_elements_stay_certain() -> None:
    values = np.ones((2, BLOCK), np.float32)
    open_row = np.array([[1], [2]], np.float32)
    interval = Interval(
        low=values, high=values * open_row, may_be_nan=None, cause=np.ones(values.shape, np.uint16)
    )
    codes, scales = quantised_blocks(
        Enclosure(values=values, interval=interval), E4M3FN, ScaleRounding.DOWN
    )
    np.testing.assert_array_equal(codes.certain()[0], True)
    np.testing.assert_array_equal(scales.certain(), [True, False])
    assert FP32.dtype == values.dtype


# --- Errors ---------------------------------------------------------------------------------------


def x_of(*shape: int, dtype: pypto.DataType = pypto.DT_BF16) -> Tensor:
    return pypto.tensor(None, dtype, data=np.ones(shape, dtype.number_format.dtype))


@pytest.mark.parametrize(
    ("shape", "arguments", "error", "text"),
    [
        ([2, 100], {}, pypto.ShapeError, r"axis -1 of \[2, 100\] must be a multiple of 128; pad "),
        ([2, 96], {"performance_mode": False}, pypto.ShapeError, "multiple of 64; pad it to 128"),
        ([96, 4], {"axis": -2}, pypto.ShapeError, r"axis -2 of \[96, 4\] must be a multiple of 64"),
        (
            [64, 4],
            {"axis": 0, "quant_dtype": pypto.DT_FP4_E2M1X2},
            pypto.ShapeError,
            r"axis -1 of \[64, 4\] must be a multiple of 64",
        ),
        ([2, 2, 128], {"axis": 0}, ValueError, "the last axis or the one before, not 0 of 3"),
        ([2, 128], {"axis": 2}, ValueError, "dimension 2 of 2"),
        ([2, 128], {"quant_dtype": pypto.DT_FP8E5M2}, TypeError, "gives DT_FP8E4M3, DT_FP4_E2M1X2"),
        ([2, 128], {"mode": 1}, TypeError, "mode is pypto.ROUND_DOWN or pypto.ROUND_UP, not 1"),
        ([2, 128], {"performance_mode": 1}, TypeError, "performance_mode is True or False, not 1"),
    ],
)
def test_what_upstream_refuses_is_refused(
    shape: list[int], arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pypto.options(chip=CHIP), pytest.raises(error, match=text):
        pypto.quant_mx(x_of(*shape), **arguments)


def test_fp32_to_fp4_is_refused() -> None:
    with pypto.options(chip=CHIP), pytest.raises(TypeError, match="takes DT_FP16, DT_BF16, not"):
        pypto.quant_mx(x_of(2, 64, dtype=pypto.DT_FP32), pypto.DT_FP4_E2M1X2)


def test_rows_that_end_inside_a_block_are_refused_along_the_axis_before() -> None:
    with pypto.options(chip=CHIP):
        part = pypto.view(x_of(64, 4), [64, 4], [0, 0], valid_shape=[40, 4])
        with pytest.raises(ValueError, match=r"of 40 rows that hold data.* take whole 64"):
            pypto.quant_mx(part, axis=-2)


@pytest.mark.parametrize(
    ("tile", "arguments", "text"),
    [
        ([2, 64], {}, r"last entry of tile shape \[2, 64\] must be 128"),
        ([2], {}, "needs exactly 2"),
        ([2, 128, 1], {}, "needs exactly 2"),
        ([32, 128], {"axis": -2}, r"entry -2 of tile shape \[32, 128\] must be a multiple of 64"),
        (
            [64, 32],
            {"axis": -2, "quant_dtype": pypto.DT_FP4_E2M1X2},
            r"entry -1 of tile shape \[64, 32\] must be a multiple of 64",
        ),
    ],
)
def test_tiles_that_divide_blocks_or_rows_are_refused(
    tile: list[int], arguments: dict[str, Any], text: str
) -> None:
    with pypto.options(chip=CHIP, vec_tile_shapes=tile):
        with pytest.raises(pypto.TileShapeError, match=text):
            pypto.quant_mx(x_of(64, 128), **arguments)
        pypto.quant_mx(x_of(2, 2 * 64), performance_mode=False) if len(tile) == 2 else None


def test_a2_and_a3_refuse_it_by_its_name() -> None:
    with pytest.raises(TypeError, match=r"quant_mx has no dtypes on Ascend910B3.* it has on 950"):
        pypto.quant_mx(x_of(2, 128))


def test_it_is_a_method() -> None:
    with pypto.options(chip=CHIP):
        codes, scales = x_of(2, 128).quant_mx()
    assert codes.shape == [2, 128]
    assert scales.shape == [2, 2, 2]
