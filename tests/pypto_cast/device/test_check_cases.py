"""The codes of a device check: all of them where it is asked for, both signs where it adds."""

from __future__ import annotations

import types
from dataclasses import replace

import numpy as np
import pytest
from support.devices.planted_devices import Plant, planted, quiet_nan
from support.devices.planted_instructions import StandIn, three_off

from ascend_kernels.checks.check_program import WIDENED, CheckProgram
from ascend_kernels.program import TileProgram
from pypto_cast.device import arithmetic_check, cases
from pypto_cast.device.arithmetic_check import SUM, UNARY, arithmetic_cases, check_arithmetic
from pypto_cast.device.behaviour import casts_of
from pypto_cast.device.check import check_casts
from simulator.numbers.formats import FP16, FP32, INT8, INT32, INT64, Codes, Format
from tiling.chips import DEFAULT_CHIP

CASTS = casts_of(DEFAULT_CHIP.isa)
TO_FP16 = CASTS["FP32 -> FP16 CAST_RINT"]


def test_all_codes_of_32_bits_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their ends: the codes themselves take 16 GiB."""

    def ends(first: int, stop: int, dtype: type) -> tuple[int, int]:
        assert dtype is np.uint32
        assert stop - first <= 1 << 24  # what a launch takes
        return first, stop

    monkeypatch.setattr(cases, "np", types.SimpleNamespace(arange=ends, uint32=np.uint32))
    firsts, stops = zip(*cases.all_codes_of_32_bits(), strict=True)
    assert (firsts[0], stops[-1]) == (0, 1 << 32)
    assert firsts[1:] == stops[:-1]


@pytest.mark.parametrize(
    ("src", "exhaustive", "are_all"),
    [(FP32, True, True), (INT32, True, True), (FP32, False, False), (INT32, False, False)]
    + [(src, exhaustive, False) for src in (INT64, FP16, INT8) for exhaustive in (False, True)],
    ids=str,
)
def test_a_cast_takes_them_where_all_are_asked_for(
    src: Format, exhaustive: bool, are_all: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = np.zeros(2, np.uint32)
    monkeypatch.setattr(cases, "all_codes_of_32_bits", lambda: iter([whole]))
    cast = next(each for each in CASTS.values() if each.src is src)
    sample, *others = cases.code_cases(cast, DEFAULT_CHIP, exhaustive=exhaustive, random_codes=10)
    assert not sample.is_once
    assert [(x.is_once, x.codes is whole) for x in others] == [(True, True)] * are_all
    if src.bits <= 16:
        np.testing.assert_array_equal(np.sort(sample.codes), np.arange(1 << src.bits))


@pytest.mark.parametrize("exhaustive", [False, True])
def test_an_instruction_takes_them_where_all_are_asked_for(
    exhaustive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = np.arange(3, dtype=np.uint32)
    monkeypatch.setattr(arithmetic_check, "all_codes_of_32_bits", lambda: iter([whole]))
    made = list(arithmetic_cases(exhaustive=exhaustive, random_codes=10))
    few = [(x.instruction, x.fmt) for x in made if x.operands[0].size == whole.size]
    assert few == [(name, FP32) for name in UNARY if exhaustive]
    once = [(x.instruction, x.fmt) for x in made if x.is_once]
    assert once == few
    assert {x.instruction for x in made if x.fmt is FP32} >= set(UNARY)
    assert {x.instruction for x in made if x.is_whole and x.fmt is FP16} == {
        *UNARY,
        *(name for name, wide in WIDENED.items() if wide in UNARY),
    }


@pytest.mark.parametrize("plant", [None, quiet_nan], ids=["as assumed", "quiet NaN"])
def test_a_case_of_all_codes_runs_once_where_it_is_as_assumed(plant: Plant | None) -> None:
    runs = []

    def counting(program: TileProgram, values: np.ndarray) -> Codes:
        runs.append(values.size)
        return planted(plant)(program, values)

    case = next(cases.code_cases(TO_FP16, DEFAULT_CHIP, exhaustive=False, random_codes=10))
    found = {x.name: x for x in check_casts(counting, [replace(case, is_once=True)])}
    assert len(runs) == (1 if plant is None else 5)
    assert found["NaN pattern"].verdict.value == ("agrees" if plant is None else "differs")
    assert found["NaN pattern"].stability == "stable"


@pytest.mark.parametrize("is_off", [False, True], ids=["as assumed", "3 ulp off"])
def test_operands_of_all_codes_run_once_where_they_are_as_assumed(is_off: bool) -> None:
    launches = []
    device = StandIn(planted={"vexp": three_off} if is_off else {})

    def counting(program: CheckProgram) -> np.ndarray:
        launches.append(program.kernel)
        return device(program)

    case = next(x for x in arithmetic_cases(random_codes=10) if x.instruction == "vexp")
    check_arithmetic(counting, [replace(case, is_once=True)], DEFAULT_CHIP)
    assert len(launches) == (5 if is_off else 1)


def test_sums_have_terms_of_both_signs_and_of_many_sizes() -> None:
    sums = [case for case in arithmetic_cases(random_codes=10) if case.instruction == SUM]
    assert [case.fmt for case in sums] == [FP32, FP16]
    for case in sums:
        terms = case.operands[0].reshape(-1, 2048 // case.fmt.bits).astype(np.float64)
        assert ((terms < 0).any(axis=1) & (terms > 0).any(axis=1)).all()
        assert np.median(np.abs(terms)) < 1
        assert np.abs(terms).max() > 128
