"""A device check of a 950: its pairs and control bits, its kernels on a CPU, its facts file."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.devices.checked_devices import SmallPlan, check_of, stand_in
from support.devices.checks_on_twin import run_on_twin
from support.devices.mock_devices_950 import CHIP_950, cases_950
from support.devices.planted_devices import DESCRIPTION
from support.devices.planted_instructions import StandIn, clamped
from support.environment.command import Command, command
from support.programs.twin_programs import needs_twin

import pypto_cast as pypto
from ascend_kernels import build, npu, twin
from ascend_kernels.checks.check_program import CHECK_KERNELS
from ascend_kernels.matrix import rules_of
from ascend_kernels.npu import Npu, RunMode
from pypto_cast.cast import npu as cast_npu
from pypto_cast.cast.cast_run import run
from pypto_cast.device import on_npu
from pypto_cast.device.behaviour import casts_of
from pypto_cast.device.cases import ROUTES, SATMODE, cast_cases
from pypto_cast.device.check import check_casts, facts_in, reasons_in
from pypto_cast.device.check_steps import CheckPlan
from pypto_cast.device.core_state_check import (
    CTRL_ENTRY,
    INT_SUMS,
    check_control,
    check_integer_sums,
)
from pypto_cast.device.cycles_check import CYCLE_FACTS
from pypto_cast.device.device_model import result_facts
from pypto_cast.device.facts import Agreement, DeviceFact, DeviceFacts, read_facts
from pypto_cast.device.on_npu import CheckedDevice
from pypto_cast.device.unasked import UNTIMED, unasked_of
from simulator.machine.cast_table import CTRL_BITS
from simulator.numbers import formats as f
from tiling.chips import A2_A3, ASCEND_950
from tiling.chips import DEFAULT_CHIP as A2_CHIP

__all__ = ["command"]

STATE_950 = 1 << 48 | 1 << 60
TWIN_950 = functools.partial(run_on_twin, family=ASCEND_950)


def test_every_pair_and_state_of_a_bit_has_a_cast() -> None:
    names = casts_of(ASCEND_950)
    assert {
        "FP32 -> E5M2 CAST_RINT",
        "FP32 -> E5M2 CAST_RINT CTRL[48] = 0",
        "FP32 -> E5M2 CAST_RINT CTRL[48] = 0 CTRL[50] = 1",
        "INT16 -> UINT8 OFF",
        "HF8 -> FP32",
    } <= set(names)
    assert len({(cast.src, cast.dst) for cast in names.values()}) == 46
    assert not any("CTRL[50]" in name for name in casts_of(A2_A3))


@pytest.mark.slow
def test_each_cast_by_its_own_satmode_has_the_bits_the_other_way() -> None:
    found = [case for case in cases_950() if case.about == SATMODE]
    by_pair = [x.cast for x in found if (x.cast.src, x.cast.dst) == (f.FP32, f.E5M2)]
    states = [(x.resolution.saturate, x.controls.inf_nan_mode) for x in by_pair]
    assert states == [(True, True)]
    for case in found:
        assert not case.cast.controls.global_saturation
        (by_bits,) = case.parts
        assert by_bits.controls.global_saturation
        assert by_bits.conversions == case.cast.conversions


def test_the_steps_tell_every_fact_of_the_family() -> None:
    steps = CheckPlan().steps(CHIP_950.name)
    told = {name for step in steps for name in step.facts}
    unasked = reasons_in(ASCEND_950)
    assert not told & set(unasked)
    assert told | set(unasked) == {n for names in facts_in(ASCEND_950).values() for n in names}
    assert {step.part for step in steps} == {"cast", "arithmetic"}
    assert set(facts_in(ASCEND_950)["cycles"]) == set(CYCLE_FACTS) < set(unasked)
    assert not reasons_in(A2_A3)


def test_every_mode_of_a_cast_is_asked_or_named_with_its_reason() -> None:
    asked = {(cast.src, cast.dst, cast.resolution.mode) for cast in casts_of(ASCEND_950).values()}
    named = {(*x.pair, mode) for x in unasked_of(ASCEND_950).values() if x.pair for mode in x.modes}
    every = {
        (*pair, rule.default if mode is None else mode)
        for readings in ((), (("bf16-fp4-modes", "five"),), (("fp32-fp8-modes", "rint"),))
        for pair, rule in rules_of(ASCEND_950, readings).items()
        for mode in rule.modes or (None,)
    }
    assert asked | named == every
    assert not asked & named
    assert {str(mode) for *_, mode in named} == {"ROUND", "FLOOR", "CEIL", "TRUNC"}
    assert {(str(src), str(dst)) for src, dst, _ in named} == {
        *(("FP32", "E4M3FN"), ("FP32", "E5M2"), ("BF16", "E2M1"), ("BF16", "E1M2")),
    }


@pypto.frontend.jit
def by_rint(
    x: pypto.Tensor[[1, 32], pypto.DT_FP32], y: pypto.Tensor[[1, 32], pypto.DT_FP8E4M3]
) -> None:
    pypto.set_vec_tile_shapes(1, 32)
    y[:] = pypto.cast(x, pypto.DT_FP8E4M3, pypto.CAST_RINT)


@pypto.frontend.jit
def by_floor(
    x: pypto.Tensor[[1, 32], pypto.DT_FP32], y: pypto.Tensor[[1, 32], pypto.DT_FP8E4M3]
) -> None:
    pypto.set_vec_tile_shapes(1, 32)
    y[:] = pypto.cast(x, pypto.DT_FP8E4M3, pypto.CAST_FLOOR)


def test_a_mode_that_no_case_asks_for_is_never_measured(tmp_path: Path) -> None:
    device = dataclasses.replace(DESCRIPTION, chip=CHIP_950.name)
    whole = (*result_facts(ASCEND_950), ROUTES)
    facts = tuple(
        DeviceFact(name=name, assumed="", measured="", verdict=Agreement.AGREES, tested=9)
        for name in whole
    )
    path = tmp_path / "device.json"
    path.write_bytes(DeviceFacts(device=device, facts=facts).to_json())
    x = pypto.from_numpy(np.float32([[0.3, 1.0]]))
    said = {}
    with pypto.options(vec_tile_shapes=[1, 32], chip=CHIP_950.name, facts=path) as context:
        for mode in (pypto.CAST_RINT, pypto.CAST_FLOOR):
            ran = run(x, pypto.DT_FP8E4M3, mode, pypto.SaturationMode.ON)
            assert ran.plan is not None
            casts = (ran.plan.resolution,)
            said[mode] = [context.facts.standing(casts, is_computed=x) for x in (False, True)]
        assert str(context.facts).startswith("measured in part")
        arrays = np.ones((1, 32), np.float32), np.zeros((1, 32), ml_dtypes.float8_e4m3fn)
        assert "measured on" in str(by_rint.certainty(*arrays))
        assert "measured in part" in str(by_floor.certainty(*arrays))
    assert all(text.startswith("measured on") for text in said[pypto.CAST_RINT])
    assert all(text.startswith("measured in part") for text in said[pypto.CAST_FLOOR])


def test_a_file_of_a_950_names_what_was_not_asked(tmp_path: Path) -> None:
    def start() -> CheckedDevice:
        named = dataclasses.replace(DESCRIPTION, chip=CHIP_950.name)
        return dataclasses.replace(stand_in(), chip=CHIP_950, description=named)

    path = tmp_path / "device.json"
    plan = SmallPlan(names=("codes of FP32 -> E5M2 CAST_RINT",))
    check_of(path, start, plan=plan).measure()
    found = read_facts(path)
    assert found.run is not None
    assert found.run.is_whole
    reasons = reasons_in(ASCEND_950)
    words = {fact.name: fact.measured for fact in found.facts if fact.name in reasons}
    assert words == reasons
    verdicts = {fact.verdict for fact in found.facts if fact.name in reasons}
    assert verdicts == {Agreement.NOT_MEASURED}
    path.unlink()
    cycles = check_of(path, start, plan=CheckPlan(parts=("cycles",))).measure()
    assert read_facts(path) == cycles
    assert {fact.name: fact.measured for fact in cycles.facts} == dict.fromkeys(
        CYCLE_FACTS, UNTIMED[ASCEND_950]
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", ["cast", "cycles"])
def test_a_dry_run_is_of_the_family_that_is_asked_for(part: str, command: Command) -> None:
    for chip in (A2_CHIP, CHIP_950):
        for words, plan in (
            ((), CheckPlan(parts=(part,))),
            (("--exhaustive",), CheckPlan(parts=(part,), exhaustive=True)),
        ):
            if part == "cycles" and words:
                continue
            steps = plan.steps(chip.name)
            asked = ("device-check", "--dry-run", "--chip", chip.name, "--only", part, *words)
            planned = command(*asked, "--json").json
            results = sum(step.results for step in steps)
            assert planned["chip"] == chip.name
            assert (planned["steps"], planned["results"]) == (len(steps), results)
            shown = " ".join(command(*asked).out.split())
            assert plan.duration(chip.name) in shown
            every = dataclasses.replace(plan, exhaustive=True).duration(chip.name)
            assert (f"with --exhaustive {every}" in shown) is (part == "cast" and not words)
            names = facts_in(chip.isa)[part]
            reasons = {name: x for name, x in reasons_in(chip.isa).items() if name in names}
            said = {row["why"]: row["facts"].split("; ") for row in planned["unasked"]}
            assert {name: why for why, same in said.items() for name in same} == reasons
            assert all(why in shown for why in said)


@pytest.mark.slow
def test_the_duration_of_all_codes_is_said_for_each_family_before(command: Command) -> None:
    ran = command("device-check", "--exhaustive")
    assert ran.code == 2
    plan = CheckPlan(exhaustive=True)
    for chip in (A2_CHIP, CHIP_950):
        assert f"{chip.isa}: {plan.duration(chip.name)}" in ran.err


def test_a_chip_is_for_a_dry_run_alone(command: Command, tmp_path: Path) -> None:
    assert "--chip would change nothing" in command("device-check", "--chip", CHIP_950.name).error
    asked = ("device-check", "--dry-run", "--resume", "-o", tmp_path / "x.json", "--chip", CHIP_950)
    assert "--chip would change nothing" in command(*map(str, asked)).error
    assert "unknown chip" in command("device-check", "--dry-run", "--chip", "Ascend310").error


@pytest.mark.slow
def test_casts_of_the_twin_are_as_assumed() -> None:
    needs_twin()
    pairs = {(f.BF16, f.E2M1), (f.E4M3FN, f.FP32), (f.FP16, f.HF8)}
    cases = [
        case
        for case in cases_950()
        if (case.cast.src, case.cast.dst) in pairs and case.about in (None, SATMODE)
    ]
    facts = check_casts(twin.execute, cases, ASCEND_950)
    assert not any(fact.touched for fact in facts)
    assert sum(fact.tested for fact in facts if fact.name == SATMODE) > 1000


@pytest.mark.slow
def test_sums_of_integers_of_the_twin_are_as_assumed() -> None:
    needs_twin()
    fact = check_integer_sums(TWIN_950, CHIP_950)
    assert (fact.verdict, fact.tested) == (Agreement.AGREES, 4 << 14)


def test_ctrl_of_the_twin_is_read_left_otherwise_and_put_back() -> None:
    """The twin's kernels find CTRL[48] = 0 and CTRL[59] = 1, as no device is assumed to."""
    needs_twin()
    entry, left = check_control(TWIN_950, CHIP_950)
    assert entry.by_pair == {"cores": CHIP_950.vector_cores}
    assert left.verdict is Agreement.AGREES
    assert check_control(TWIN_950, CHIP_950)[0].measured == entry.measured


@pytest.mark.parametrize("bit", sorted(CTRL_BITS[ASCEND_950]))
def test_each_bit_at_entry_is_found(bit: int) -> None:
    facts = check_control(StandIn(ctrl=STATE_950 ^ 1 << bit), CHIP_950)
    assert [x.name for x in facts if x.verdict is Agreement.DIFFERS] == [CTRL_ENTRY]


def test_sums_that_clamp_though_the_bit_is_0_are_found() -> None:
    fact = check_integer_sums(StandIn(planted={"int_sum_kept": clamped}), CHIP_950)
    assert (fact.name, set(fact.by_pair)) == (
        INT_SUMS,
        {"INT16 CTRL[53] = 0", "INT32 CTRL[53] = 0"},
    )
    assert "-32768 + -32768 gives -32768, assumed 0" in fact.example


def test_a_facts_file_has_casts_of_its_family_alone(tmp_path: Path) -> None:
    case = next(cast_cases(CHIP_950, random_codes=10))
    facts = check_casts(
        lambda program, _: case.codes[: program.plan.shape[0]] ^ 1, [case], ASCEND_950
    )
    device = dataclasses.replace(DESCRIPTION, chip=CHIP_950.name)
    found = DeviceFacts(device=device, facts=facts)
    path = tmp_path / "device.json"
    path.write_bytes(found.to_json())
    assert read_facts(path) == found
    only = "FP32 -> E5M2 CAST_RINT"
    wrong = dataclasses.replace(facts[0], results={only: {"positive": 0}})
    for chip, is_refused in ((CHIP_950.name, False), (DESCRIPTION.chip, True)):
        of_chip = dataclasses.replace(DESCRIPTION, chip=chip)
        path.write_bytes(DeviceFacts(device=of_chip, facts=(wrong,)).to_json())
        if is_refused:
            with pytest.raises(ValueError, match="there is no cast 'FP32 -> E5M2"):
                read_facts(path)
        else:
            assert read_facts(path).facts == (wrong,)


def test_a_950_is_opened_with_libraries_of_its_family(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = tmp_path / "library.so"
    library.write_bytes(b"library")
    found = Npu(run_mode=RunMode.NPU, reason="tested", device_count=1, soc_name="Ascend950PR_9599")
    built: list[str] = []
    monkeypatch.delenv(npu.LIBRARY_VARIABLE, raising=False)
    monkeypatch.setattr(npu, "find", lambda: found)
    monkeypatch.setattr(npu, "find_library", lambda: None)
    monkeypatch.setattr(npu, "load", lambda: library)
    monkeypatch.setattr(on_npu.build, "build", lambda kind: built.append(kind.architecture))
    monkeypatch.setattr(on_npu, "load_checks", lambda: None)
    device = on_npu.npu_device()
    assert (built, device.chip, device.description.chip) == (["dav-3510"], CHIP_950, "Ascend950PR")
    assert build.CHECK_LIBRARIES[ASCEND_950].architecture == "dav-3510"
    assert not any(name.startswith("clock") for name in CHECK_KERNELS[ASCEND_950])


def test_formats_that_torch_lacks_are_held_as_bytes() -> None:
    for fmt in (f.HF8, f.E2M1, f.INT4):
        assert cast_npu._holder(fmt).name == "DT_UINT8"
    assert cast_npu._holder(f.FP16).name == "DT_FP16"
    assert np.dtype(f.HF8.code_dtype).itemsize == 1
