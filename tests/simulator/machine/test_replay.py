"""Upstream's own cast cases, replayed with data that includes the specials.

The shapes, tiles, modes and saturation modes are those of upstream pypto's unit tests for Kirin
(`common_cast.py`), of its system test table for Cast and of its on-board tests; the data is ours,
because upstream's ranges leave out everything at which a cast can go wrong.
"""

from __future__ import annotations

import ast
import csv
from typing import NamedTuple

import numpy as np
import pytest
from support.environment.sources import CASE_TABLES
from support.numbers.codes import cast_codes, random_codes
from support.numbers.oracle import OFF_PAIRS, ROW_OF, expected_codes


class Case(NamedTuple):
    name: str
    src: str
    dst: str
    shape: tuple[int, ...]
    tile: tuple[int, ...]
    mode: str = "NONE"
    satmode: str = "ON"


KIRIN = [
    Case("kirin-001", "FP16", "FP32", (112,), (50,), "NONE", "OFF"),
    Case("kirin-002", "INT32", "FP32", (100,), (100,), "RINT", "ON"),
    Case("kirin-003", "INT16", "FP32", (4, 128), (2, 32), "ROUND", "ON"),
    Case("kirin-004", "FP32", "FP16", (4, 130), (1, 130), "ODD", "OFF"),
    Case("kirin-005", "INT8", "FP16", (2, 4, 160), (1, 2, 32), "CEIL", "OFF"),
    Case("kirin-006", "UINT8", "FP16", (2, 4, 140), (1, 2, 140), "TRUNC", "OFF"),
    Case("kirin-007", "INT16", "FP16", (2, 5, 152), (1, 5, 32), "FLOOR", "OFF"),
    Case("kirin-008", "FP32", "INT16", (2, 3, 170), (1, 3, 170), "NONE", "OFF"),
    Case("kirin-009", "FP32", "INT32", (5, 2, 4, 176), (2, 1, 2, 16), "NONE", "OFF"),
    Case("kirin-010", "FP16", "INT8", (5, 2, 4, 130), (1, 1, 1, 130), "NONE", "OFF"),
    Case("kirin-011", "FP16", "UINT8", (2, 3, 5, 134), (1, 1, 5, 32), "NONE", "OFF"),
    Case("kirin-012", "FP16", "INT16", (4, 2, 6, 135), (2, 2, 3, 32), "NONE", "OFF"),
    Case("kirin-013", "FP16", "INT32", (6, 2, 4, 130), (1, 1, 4, 130), "NONE", "OFF"),
    Case("kirin-014", "FP16", "FP32", (3, 2, 3, 139), (1, 2, 1, 139), "NONE", "OFF"),
    Case("kirin-015", "FP16", "FP32", (6, 3, 5, 141), (3, 3, 5, 32), "NONE", "OFF"),
    Case("kirin-016", "FP32", "INT16", (2, 3, 160), (1, 3, 32), "ROUND", "OFF"),
    Case("kirin-017", "FP32", "INT16", (3, 4, 128), (2, 2, 64), "FLOOR", "OFF"),
    Case("kirin-018", "FP32", "INT16", (2, 5, 144), (1, 5, 144), "CEIL", "OFF"),
    Case("kirin-019", "FP32", "FP16", (2, 4, 160), (1, 2, 160), "ROUND", "OFF"),
    Case("kirin-020", "FP32", "FP16", (3, 5, 136), (2, 5, 136), "CEIL", "OFF"),
    Case("kirin-021", "FP32", "FP16", (4, 6, 148), (2, 3, 148), "ODD", "OFF"),
]
SYSTEM = [
    Case("system-0", "FP32", "FP16", (512, 128), (64, 128)),
    Case("system-1", "FP32", "FP16", (1024, 256), (64, 128)),
    Case("system-2", "FP32", "INT16", (512, 256), (64, 64)),
    Case("system-3", "FP16", "FP32", (512, 128), (64, 64)),
    Case("system-4", "FP16", "INT32", (32, 32), (32, 32)),
    Case("system-5", "FP16", "INT8", (64, 64), (32, 32)),
    Case("system-6", "INT32", "FP16", (107, 145), (16, 16)),
    Case("system-7", "INT32", "FP32", (1, 1), (16, 16)),
    Case("system-8", "INT16", "FP32", (32, 32), (16, 16)),
    Case("system-9", "INT8", "FP16", (128, 128), (64, 64)),
    Case("system-10", "INT32", "FP32", (16, 384), (215, 48)),
    Case("system-11", "BF16", "FP32", (16, 1, 64), (310, 6, 16)),
    Case("system-12", "FP16", "FP32", (32, 127, 128, 64), (1, 28, 8, 112)),
]
ON_BOARD = [
    Case("fp32toint32rint_1_4608", "FP32", "INT32", (1, 4608), (1, 32), "RINT"),
    Case("int32tofp16none_1_4608", "INT32", "FP16", (1, 4608), (1, 16), "NONE"),
    Case("fp16toint8trunc_1_4608", "FP16", "INT8", (1, 4608), (1, 32), "TRUNC"),
    Case("fp16tofp32_unalign", "FP16", "FP32", (4, 130), (4, 256), "NONE"),
    Case("dyn_cast_unalign", "FP32", "INT32", (32, 64), (1, 16), "ROUND"),
]


LARGEST = SYSTEM[-1]


def wanted_codes(codes: np.ndarray, case: Case) -> np.ndarray:
    """The oracle is asked once for each code."""
    row = ROW_OF[case.src, case.dst]
    mode = case.mode if case.mode in row.modes else row.default
    distinct, places = np.unique(codes, return_inverse=True)
    wanted = expected_codes(distinct, case.src, case.dst, mode, satmode=case.satmode)
    return wanted[places].reshape(codes.shape)


@pytest.mark.sampled(8)
@pytest.mark.filterwarnings("error::pypto_cast.CastModeWarning")
@pytest.mark.filterwarnings("ignore::pypto_cast.SaturationModeWarning")
@pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.exhaustive] if case is LARGEST else [])
        for case in KIRIN + SYSTEM + ON_BOARD
    ],
    ids=lambda case: case.name,
)
def test_replay(case: Case) -> None:
    codes = random_codes(case.shape, case.src, salt=case.name)
    actual = cast_codes(codes, case.src, case.dst, case.mode, case.satmode, tile=case.tile)
    np.testing.assert_array_equal(actual, wanted_codes(codes, case))


@pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")
def test_replay_of_ones() -> None:
    """The on-board case with a constant golden: 20 valid rows of the 32, all of them ones."""
    ones = np.full((20, 64), 0x3F800000, np.uint32)
    result = cast_codes(ones, "FP32", "INT32", "ROUND", tile=(1, 16))
    np.testing.assert_array_equal(result, np.ones((20, 64), np.uint32))


# --- Is the transcription above still that of the tables? -------------------------------------


def table(name: str) -> list[dict[str, str]]:
    path = CASE_TABLES / name
    if not path.exists():
        pytest.skip(f"the case tables are not beside this checkout: no {name}")
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def facts(case: Case) -> tuple[object, ...]:
    return case[1:]


def tuple_of(text: str) -> tuple[int, ...]:
    return tuple(ast.literal_eval(text))


def test_kirin_cases_are_those_of_the_table() -> None:
    rows = [
        (
            row["src"],
            row["dst"],
            tuple_of(row["shape"]),
            tuple_of(row["tile_shape"]),
            row["mode"].removeprefix("CAST_"),
            row["satmode"],
        )
        for row in table("kirin_cast_cases.csv")
    ]
    assert rows == [facts(case) for case in KIRIN]


def test_system_cases_are_those_of_the_table() -> None:
    rows = [
        (
            row["input_dtype"].upper(),
            row["output_dtype"].upper(),
            tuple_of(row["input_shape"]),
            tuple_of(row["tile_shape"]),
            {"0": "NONE"}[row["mode"]],
            "ON",
        )
        for row in table("pypto_cast_st_cases.csv")[:13]
    ]
    assert rows == [facts(case) for case in SYSTEM]


def test_on_board_cases_are_those_of_the_table() -> None:
    rows = [
        (
            row["src"],
            row["dst"],
            tuple_of(row["shape"]),
            tuple_of(row["tile_shape"]),
            row["mode"].removeprefix("CAST_"),
            "ON",
        )
        for row in table("onboard_cast_cases_seed_era.csv")
    ]
    assert rows == [facts(case) for case in ON_BOARD]


def test_saturation_off_is_replayed_with_and_without_effect() -> None:
    effective = {(case.src, case.dst) in OFF_PAIRS for case in KIRIN if case.satmode == "OFF"}
    assert effective == {True, False}
