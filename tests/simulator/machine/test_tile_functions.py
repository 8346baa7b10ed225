"""Tile operations that are chains of instructions, against numpy."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from support.environment.sources import CASE_TABLES

import pypto_cast as pypto
from simulator.machine.tile_functions import CHAINS, evaluated
from simulator.machine.tile_opcodes import (
    NO_ROW,
    TILE_OPCODES,
    TileWork,
    instructions_inside,
)
from simulator.numbers.formats import (
    BF16,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    UINT8,
    FloatFormat,
    Format,
    IntFormat,
)

VALUES = np.array([0.0, -0.0, 1e-30, -1e-30, 0.75, -3.5, 88.0, -1e30, np.inf, -np.inf, np.nan])


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("fmt", [FP32, FP16, INT32, INT16])
def test_a_sign_is_one_of_three_numbers(fmt: Format) -> None:
    numbers = VALUES if isinstance(fmt, FloatFormat) else np.array([-30000, -1, 0, 1, 7])
    x = numbers.astype(fmt.dtype)
    found = evaluated("sign", [x], fmt)
    np.testing.assert_array_equal(found, np.sign(x))
    assert found.dtype == x.dtype


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("fmt", [FP32, FP16, BF16])
def test_a_sign_is_copied_to_any_bits(fmt: Format) -> None:
    x = np.tile(VALUES, 2).astype(fmt.dtype)
    y = np.repeat([1.0, -0.0], len(VALUES)).astype(fmt.dtype)
    found = evaluated("copysign", [x, y], fmt)
    code = f"u{found.itemsize}"
    np.testing.assert_array_equal(found.view(code), np.copysign(x, y).view(code))
    with pytest.raises(ValueError, match="copysign does not run in INT32"):
        evaluated("copysign", [x, y], INT32)


@pytest.mark.parametrize("fmt", [FP16, BF16])
def test_a_float_of_16_bits_is_finite_by_its_exponent(fmt: Format) -> None:
    x = np.arange(2**16, dtype=np.uint16).view(fmt.dtype)
    found = evaluated("isfinite", [x], fmt)
    np.testing.assert_array_equal(found, np.isfinite(x))
    for other in (FP32, INT16):
        with pytest.raises(ValueError, match=f"isfinite runs in floats of 16 bits, not in {other}"):
            evaluated("isfinite", [x], other)


ONE = (
    *("tanh", "sinh", "cosh", "sin", "cos", "tan", "erf", "erfc", "asin", "acos", "atan", "asinh"),
    "acosh",
)
TWO = (
    *("copysign", "atan2", "hypot", "pow", "fmod", "remainder", "floor_div", "expand_exp_dif"),
    "gcd",
)


# AutoCast runs these in FP32, or they take no BF16: the tile operation never sees it.
NO_BF16 = ("expand_exp_dif", "sin", "cos")
RUN_IN = [
    (name, fmt)
    for name in (*ONE, "atanh", "isnan", "signbit", *TWO)
    for fmt in ((INT32,) if name == "gcd" else (FP32, FP16, BF16))
    if not (fmt is BF16 and name in NO_BF16)
]


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "fmt"), RUN_IN, ids=str)
def test_tile_operations_have_the_bits_of_the_tensor_level(name: str, fmt: Format) -> None:
    random = np.random.default_rng(3)
    numbers = np.concatenate([random.normal(0, 2, 90), VALUES[VALUES < 1e30]])
    x, y = (each.astype(fmt.dtype).reshape(1, -1) for each in (numbers, numbers[::-1].copy()))
    arrays = (x,) if name in (*ONE, "atanh", "isnan", "signbit") else (x, y)
    with pypto.options(vec_tile_shapes=(1, 128)):
        tensors = [pypto.from_numpy(each) for each in arrays]
        expected = getattr(pypto, name)(*tensors).numpy()
    found = evaluated(name, arrays, fmt)
    code = f"u{found.itemsize}"
    np.testing.assert_array_equal(found.view(code), expected.view(code))


OF_INTEGERS = [
    *((name, fmt) for name in ("expm1", "exp2") for fmt in (INT16, INT32)),
    *((name, fmt) for name in ("exp2", "floor_div") for fmt in (INT8, UINT8)),
]


@pytest.mark.parametrize(("name", "fmt"), OF_INTEGERS, ids=str)
def test_integers_that_run_in_fp32_have_the_bits_of_the_tensor_level(
    name: str, fmt: IntFormat
) -> None:
    random = np.random.default_rng(4)
    ends = np.iinfo(fmt.dtype)
    x, y = (
        np.append(random.integers(-9 if ends.min else 0, 9, 62), [ends.min, ends.max])
        .astype(fmt.dtype)
        .reshape(1, -1)
        for _ in range(2)
    )
    arrays = (x, y) if name == "floor_div" else (x,)
    with pypto.options(vec_tile_shapes=(1, 64)):
        expected = getattr(pypto, name)(*map(pypto.from_numpy, arrays)).numpy()
    found = evaluated(name, arrays, fmt)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def test_exponentials_of_narrow_floats_round_once() -> None:
    x = np.linspace(-4, 4, 101).astype(np.float16)
    wide = evaluated("expm1", [x.astype(np.float32)], FP32)
    np.testing.assert_array_equal(evaluated("expm1", [x], FP16), wide.astype(np.float16))
    power = np.exp(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(wide, power - np.float32(1))
    np.testing.assert_array_equal(evaluated("exp2", [np.float16([0, 1, -2])], FP16), [1, 2, 0.25])


@pytest.mark.parametrize("fmt", [FP32, FP16, BF16])
def test_a_float_of_any_width_is_rounded_to_an_integer(fmt: Format) -> None:
    x = np.array([0.5, 1.5, -2.5, 3.25, -0.25, 96.5]).astype(fmt.dtype)
    np.testing.assert_array_equal(evaluated("integral", [x], fmt), np.rint(x.astype(np.float32)))


def test_fp32_is_rounded_to_decimals_of_a_power_of_ten() -> None:
    x, power = np.float32([1.255, -0.035, 7.0]), np.array(100, np.float32)
    found = evaluated("integral", [x, power], FP32)
    np.testing.assert_array_equal(found, np.rint(x * power) / power)
    half = x.astype(np.float16)
    one = evaluated("integral", [half, np.array(1, np.float16)], FP16)
    np.testing.assert_array_equal(one, np.rint(half))
    with pytest.raises(ValueError, match="the number is 100"):
        evaluated("integral", [half, np.array(100, np.float16)], FP16)


def test_the_instructions_inside_are_those_that_are_executed() -> None:
    names = {"round": "vconv", "minimum": "vmin", "maximum": "vmax"}
    for row in TILE_OPCODES.values():
        inside = " ".join(row.inside)
        for name, _ in (each for chain in CHAINS.get(row.function, {}).values() for each in chain):
            assert names.get(name, f"v{name}") in inside, row.name
        assert bool(row.inside) != (row.work is TileWork.ALIAS)
    assert instructions_inside("EXPM1") == "vconv, vexp, vadds"
    assert instructions_inside("VIEW") == "none, for nothing moves"
    assert instructions_inside("ATOMIC_RMW") == "not known"


def test_an_opcode_has_a_row_or_a_reason() -> None:
    assert not TILE_OPCODES.keys() & NO_ROW.keys()
    assert all(row.name == name for name, row in TILE_OPCODES.items())


OPCODES = CASE_TABLES / "tile_opcodes.csv"


@pytest.mark.skipif(
    not OPCODES.exists(), reason=f"the case tables are not beside this checkout: no {OPCODES.name}"
)
def test_every_opcode_of_dumps_has_a_row_or_a_reason() -> None:
    """But syncs, and the cube's."""
    others = {"SYNC_SRC", "SYNC_DST", "BAR.V", "BAR.M", "PHASE1", "PHASE2"}
    others |= {"L1_TO_L0A", "L1_TO_L0B", "L1_TO_L0Bt", "A_MULACC_B"}
    with OPCODES.open(encoding="utf-8", newline="") as file:
        dumped = {row["opcode"] for row in csv.DictReader(file)}
    assert len(dumped) == 79
    assert dumped - TILE_OPCODES.keys() - NO_ROW.keys() == others


# Upstream r0.2.0, framework/src/interface/operation/opcode.cpp: `excludeBufferReuse`, and the
# opcodes with a second output in UB.
NEVER_IN_PLACE = {
    *("DIVS", "RECIPROCAL", "ROUND", "PAD", "FILLPAD", "TRANSPOSE_VNCHWCONV", "CUM_SUM"),
    *("GATHER_ELEMENT", "BITWISEANDS", "BITWISEORS", "BITWISEXORS", "BITWISELEFTSHIFT"),
    *("BITWISERIGHTSHIFT", "SBITWISELEFTSHIFT", "SBITWISERIGHTSHIFT", "COPY_IN", "COPY_OUT"),
    *(f"PAIR{name}" for name in ("SUM", "MAX", "MIN", "PROD")),
    *(f"ROW{name}_SINGLE" for name in ("SUM", "MAX", "MIN", "PROD")),
    *("POW", "REM", "REMS", "MOD", "MODS", "PRELU", "TRIUL", "ONEHOT", "GATHER_MASK"),
    *(f"ROWARG{name}WITHVALUE_{end}" for name in ("MAX", "MIN") for end in ("SINGLE", "LINE")),
    *("PAIRARGMAX", "PAIRARGMIN"),
    *("BITSORT", "EXTRACT"),  # the result has another size, so that upstream never does
    # at 883e7dfb0
    *("TANH", "SINH", "COSH", "ERF", "ERFC", "ASIN", "ACOS", "ATAN", "ATAN2", "ASINH", "ACOSH"),
    *("ATANH", "FLOORDIV", "FLOORDIVS", "CUM_PROD", "SIN", "COS", "UNPACK"),
    *("QUANTIZE_SYM", "QUANTIZE_ASYM", "DEQUANTIZE"),
}
WITH_SCRATCH = {
    *("LOGICALAND", "LOGICALNOT", "ROUND", "EXP2", "EXPM1", "SIGN", "COPYSIGN", "BITWISEXOR"),
    *("BITWISEXORS", "BITWISELEFTSHIFT", "BITWISERIGHTSHIFT", "SBITWISELEFTSHIFT"),
    *("SBITWISERIGHTSHIFT", "CMP", "CMPS", "WHERE_TT", "WHERE_TS", "WHERE_ST", "WHERE_SS"),
    *("TRANSPOSE_VNCHWCONV", "GATHER_ELEMENT", "ROWSUMLINE", "SCATTER", "INDEX_ADD"),
    *("BITSORT", "MRGSORT"),
    *(f"ROW{name}_SINGLE" for name in ("SUM", "MAX", "MIN", "PROD")),
    *("POW", "HYPOT", "SIGNBIT", "PRELU"),
    # at 883e7dfb0
    *("TANH", "SINH", "COSH", "TAN", "ERF", "ERFC", "ASIN", "ACOS", "ATAN", "ATAN2", "ASINH"),
    *("ACOSH", "ATANH", "FLOORDIV", "FLOORDIVS", "ISNAN", "ISFINITE", "SIN", "COS"),
    *(f"ROWARG{name}WITHVALUE_{end}" for name in ("MAX", "MIN") for end in ("SINGLE", "LINE")),
    *("INDEX_ADD_UB", "QUANTIZE_SYM", "QUANTIZE_ASYM"),
}


def test_rows_are_in_place_and_have_scratch_as_upstreams_opcodes() -> None:
    rows = [row for row in TILE_OPCODES.values() if row.inputs]
    moved = {"TRANSPOSE_MOVEIN", "PERMUTE", "TRANSPOSE_MOVEOUT", "GATHER", "GATHER_IN_UB"}
    assert {row.name for row in rows if not row.in_place} - moved == NEVER_IN_PLACE
    assert {row.name for row in rows if row.has_scratch} == WITH_SCRATCH
