"""Arithmetic, CTRL and cycles of stand-in devices: what is planted is found, and nothing else."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from pathlib import Path

import numpy as np
import pytest
from support.devices.checks_on_twin import run_on_twin
from support.devices.planted_devices import DESCRIPTION
from support.devices.planted_instructions import (
    Compute,
    StandIn,
    flushed,
    halves,
    three_off,
    truncated,
)
from support.programs.twin_programs import needs_twin

from ascend_kernels.checks.check_program import BINARY, SUM, UNARY
from ascend_kernels.matrix import MATRIX
from pypto_cast.device import cycles_check
from pypto_cast.device.arithmetic_check import (
    ArithmeticCase,
    CheckOnDevice,
    arithmetic_cases,
    check_arithmetic,
    run_arithmetic,
)
from pypto_cast.device.core_state_check import check_control, check_copy_tails
from pypto_cast.device.cycles_check import check_cycles
from pypto_cast.device.device_model import OPERATION_FACTS, model_from
from pypto_cast.device.facts import Agreement, DeviceFact, DeviceFacts, facts_of
from simulator.arithmetic import DEFAULT, OPERATIONS
from simulator.numbers.formats import FP16, FP32
from tiling.chips import A2_A3, DEFAULT_CHIP
from tiling.cost import COST_SETS, DEFAULT_COST_SET, STARTUP_RULE, CostParameters


@functools.cache
def some_cases() -> tuple[ArithmeticCase, ...]:
    return tuple(arithmetic_cases(random_codes=500))


def arithmetic(device: CheckOnDevice) -> dict[str, DeviceFact]:
    facts = check_arithmetic(device, iter(some_cases()), DEFAULT_CHIP)
    return {fact.name: fact for fact in facts}


def differing(facts: dict[str, DeviceFact]) -> set[str]:
    return {name for name, fact in facts.items() if fact.verdict is Agreement.DIFFERS}


# --- Arithmetic ----------------------------------------------------------------------------------


def test_a_device_as_assumed_differs_in_nothing() -> None:
    found = arithmetic(StandIn())
    assert {fact.verdict for fact in found.values()} == {Agreement.AGREES}
    names = [name for name in found if name.startswith("v")]
    assert names == ["vadd", "vsub", "vmul", "vdiv", "vsqrt", "vexp", "vln", "vrsqrt"]
    assert all(found[name].ulps == {"FP32": 0, "FP16": 0} for name in names)
    assert all(found[name].exhausted == [] for name in BINARY)
    assert all(found[name].exhausted == ["FP16"] for name in UNARY)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("instruction", "function", "fact", "says"),
    [
        ("vadd", truncated, "vadd", "1 ulp in FP32, 0 ulp in FP16; vadd in FP32 of 0x"),
        ("vmul", flushed, "subnormals in arithmetic", "vmul in FP32 of 0x"),
        ("vexp", three_off, "vexp", "3 ulp in FP32, 3 ulp in FP16; vexp in FP32 of 0x"),
        ("vcadd", halves, "order of vcadd", "the lower half to the upper half, then again"),
        ("vcadd", lambda x: np.sum(x, axis=1), "order of vcadd", "assumed "),
        ("vsqrt", lambda x: np.sqrt(np.abs(x)), "special values of arithmetic", "vsqrt in FP32 of"),
    ],
)
def test_a_planted_deviation_is_found_and_named(
    instruction: str, function: Compute, fact: str, says: str
) -> None:
    def in_fp32(*operands: np.ndarray) -> np.ndarray:  # what truncates sums of FP32 alone
        is_other = function is truncated and operands[0].dtype != np.float32
        return operands[0] + operands[1] if is_other else function(*operands)

    found = arithmetic(StandIn(planted={instruction: in_fp32}))
    assert differing(found) == {fact}
    assert says in found[fact].measured
    assert all(name.startswith(instruction) for name in found[fact].by_pair)
    assert 0 < found[fact].touched <= found[fact].tested


def test_an_error_within_the_bound_is_measured_and_agrees() -> None:
    def one_off(a: np.ndarray) -> np.ndarray:
        return np.nextafter(np.sqrt(a), a.dtype.type(np.inf))

    fact = arithmetic(StandIn(planted={"vrsqrt": lambda a: 1 / one_off(a)}))["vrsqrt"]
    assert fact.verdict is Agreement.AGREES
    assert 0 < fact.ulps["FP32"] < 6711


@pytest.mark.sampled(4)
@pytest.mark.parametrize("wrong", [np.nan, -1.0, 0.5])
def test_results_that_no_bound_of_an_error_has_are_named(wrong: float) -> None:
    """NaN, another sign, another binade: an interval of so many ulp would not hold them."""

    def plant(a: np.ndarray) -> np.ndarray:
        is_touched = (a > 1) & (a < 2)
        return np.where(is_touched, np.sqrt(a) * a.dtype.type(wrong), np.sqrt(a))

    found = arithmetic(StandIn(planted={"vsqrt": plant}))
    assert differing(found) == {"vsqrt"}
    read = facts_of(Path("device.json"), device_facts(found).to_json())
    followed = model_from(read)
    assert followed.unfollowed == ("vsqrt: vsqrt FP16", "vsqrt: vsqrt FP32")
    bounded = {name for name, _ in followed.trusting(DEFAULT).measured}
    assert bounded == {"add", "sub", "mul", "div", "exp", "log", "rsqrt"}


def test_every_assumed_bound_is_one_that_can_be_followed() -> None:
    for fact, operation in OPERATION_FACTS.items():
        for fmt in (FP32, FP16):
            ulps = {fmt.name: OPERATIONS[operation].ulps(fmt, DEFAULT)}
            agreeing = dataclasses.replace(arithmetic_fact(fact), ulps=ulps)
            assert model_from(device_facts({fact: agreeing})).unfollowed == ()


def device_facts(facts: dict[str, DeviceFact]) -> DeviceFacts:
    return DeviceFacts(device=DESCRIPTION, facts=tuple(facts.values()))


def arithmetic_fact(name: str) -> DeviceFact:
    return DeviceFact(name=name, assumed="", measured="", verdict=Agreement.AGREES, tested=9)


@pytest.mark.exhaustive
def test_the_kernels_compute_what_is_assumed() -> None:
    needs_twin()
    found = arithmetic(run_on_twin)
    assert differing(found) == set()
    assert all(found[name].ulps == {"FP32": 0, "FP16": 0} for name in ("vadd", "vsub", "vmul"))


def test_the_kernels_and_the_stand_in_agree() -> None:
    needs_twin()
    for case in some_cases():
        if case.instruction in (*BINARY, "vsqrt", SUM):
            got, wanted = (run_arithmetic(x, case, DEFAULT_CHIP) for x in (run_on_twin, StandIn()))
            both_nan = np.isnan(got) & np.isnan(wanted)
            codes = f"u{got.itemsize}"
            assert (both_nan | (got.view(codes) == wanted.view(codes))).all(), case.instruction


def test_the_exhaustive_check_takes_every_operand() -> None:
    cases = arithmetic_cases(exhaustive=True, random_codes=10)
    (fmt, name), pieces = next(itertools.groupby(cases, lambda x: (x.fmt, x.instruction)))
    sample, first = next(pieces), next(pieces)
    assert (fmt, name, sample.is_whole, first.is_whole) == (FP32, "vsqrt", False, True)
    assert first.operands[0].view(np.uint32)[[0, -1]].tolist() == [0, (1 << 24) - 1]
    whole = next(x for x in some_cases() if x.instruction == "vexp" and x.fmt is FP16)
    assert np.unique(whole.operands[0].view(np.uint16)).size == 1 << 16


# --- CTRL ----------------------------------------------------------------------------------------


def test_the_control_register() -> None:
    device = StandIn()
    entry, after = check_control(device, DEFAULT_CHIP)
    assert (entry.verdict, after.verdict) == (Agreement.AGREES, Agreement.AGREES)
    assert (entry.measured, after.measured) == ("0x0001000000000000", "0x0800000000000000")
    assert device.ctrl == 1 << 48  # it is as it was
    entry, _ = check_control(StandIn(ctrl=0), DEFAULT_CHIP)
    assert (entry.verdict, entry.touched) == (Agreement.DIFFERS, DEFAULT_CHIP.vector_cores)
    _, after = check_control(StandIn(forgets=True), DEFAULT_CHIP)
    assert after.verdict is Agreement.DIFFERS


def test_the_kernels_read_the_control_register() -> None:
    needs_twin()
    for _ in range(2):  # the second finds what the first put back
        entry, after = check_control(run_on_twin, DEFAULT_CHIP)
        assert (entry.measured, after.measured) == ("0x0900000000000008", "0x0101000000000008")


# --- What a copy leaves in UB --------------------------------------------------------------------


def test_tails_of_copies() -> None:
    cores = DEFAULT_CHIP.vector_cores
    fact = check_copy_tails(StandIn(), DEFAULT_CHIP)
    assert (fact.verdict, fact.tested) == (Agreement.AGREES, 31 * cores)
    fact = check_copy_tails(StandIn(fills=False), DEFAULT_CHIP)
    assert (fact.verdict, fact.touched) == (Agreement.DIFFERS, 31 * cores)
    assert fact.measured == "of 1 B: byte 1 is 34, not 1"


def test_the_kernels_copy_tails() -> None:
    needs_twin()
    assert check_copy_tails(run_on_twin, DEFAULT_CHIP).verdict is Agreement.AGREES


# --- Cycles --------------------------------------------------------------------------------------


def cycles(device: CheckOnDevice) -> dict[str, DeviceFact]:
    now = getattr(device, "now", time.perf_counter)
    return {fact.name: fact for fact in check_cycles(device, DEFAULT_CHIP, now=now)}


def measured_set(facts: dict[str, DeviceFact]) -> CostParameters:
    found = model_from(DeviceFacts(device=DESCRIPTION, facts=tuple(facts.values()))).cost_set
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["pto-isa-910b3", "pto-isa-hill-read", "pto-isa-flat-write"])
def test_the_figures_of_a_device_are_measured(name: str) -> None:
    costs = COST_SETS[name]
    facts = cycles(StandIn(costs=costs))
    assert differing(facts) == set()
    found = measured_set(facts)
    for figure in (
        "vector_startup_cycles",
        "cast_cycles_per_repeat",
        "read_startup_cycles",
        "read_bytes_per_cycle",
        "write_startup_cycles",
        "write_bytes_per_cycle",
        "barrier_cycles",
        "flag_cycles",
        "gm_bytes_per_second",
    ):
        wanted, got = getattr(costs, figure), getattr(found, figure)
        assert abs(got - wanted) <= 0.02 * wanted + 0.4, figure  # a tick in 200 actions
    assert found.is_startup_per_stream
    assert found.standing == ("10 of 15 figures measured: device-check on Ascend910B3, 2026-01-02")


@pytest.mark.parametrize(
    ("figures", "differs"),
    [
        ({"read_bytes_per_cycle": 50.0}, "read_bytes_per_cycle"),
        ({"write_startup_cycles": 500.0}, "write_startup_cycles"),
        ({"cast_cycles_per_repeat": 3.0}, "cast_cycles_per_repeat"),
        ({"barrier_cycles": 40.0}, "barrier_cycles"),
        ({"gm_bytes_per_second": 1.2e12}, "gm_bytes_per_second"),
    ],
)
def test_a_slower_pipe_is_found_and_named(figures: dict[str, float], differs: str) -> None:
    facts = cycles(StandIn(costs=DEFAULT_COST_SET.replaced("planted", **figures)))
    (fact,) = (fact for fact in facts.values() if fact.verdict is Agreement.DIFFERS)
    assert fact.by_pair == {differs: 1}
    assert differs in fact.measured


def test_a_pair_that_is_slower_than_the_others_is_named() -> None:
    slow = {"clock_int64_fp32": 2.0, "clock_int64_fp32_apart": 2.0}
    facts = cycles(StandIn(slower=slow))
    assert differing(facts) == {"cycles of Cast by pair"}
    fact = facts["cycles of Cast by pair"]
    assert fact.by_pair == {"INT64 -> FP32": 1}
    assert "INT64 -> FP32: 1.8 a repeat, most pairs 0.9" in fact.measured


def test_passes_of_which_no_two_parts_run_at_once_are_named() -> None:
    facts = cycles(StandIn(slower={"clock_pass": 1.4}))
    assert differing(facts) == {"cycles of a loop's pass"}
    assert facts["cycles of a loop's pass"].measured.startswith("1024 elements: ")


def test_a_start_up_of_each_instruction_is_told() -> None:
    # In a stream each Cast of this device waits for as long as after a barrier.
    each = dataclasses.replace(DEFAULT_COST_SET, vector_startup_cycles=0.0)

    class NoStreams(StandIn):
        def _ticks(self, program: object) -> int:
            extra = 27 if "clock_" in program.kernel and "_" in program.kernel[6:] else 0
            return super()._ticks(program) + round(extra * program.tiling["times"] / 37)

    figures = cycles(NoStreams(costs=each))["cycles of Cast"].figures
    assert STARTUP_RULE not in figures or figures[STARTUP_RULE] == 0


@pytest.mark.slow
def test_the_clock_kernels_run(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_twin()
    monkeypatch.setattr(cycles_check, "TIMES", 1)
    monkeypatch.setattr(cycles_check, "CLOCK_TIMES", 1)
    monkeypatch.setattr(cycles_check, "SWEEP_BYTES", 1 << 22)
    facts = cycles(run_on_twin)
    cores = DEFAULT_CHIP.vector_cores
    assert [fact.tested for fact in facts.values()] == [
        *(1 + cores, 1350, 480, 6, 6, len(MATRIX[A2_A3]), 3, 2, 3)
    ]
