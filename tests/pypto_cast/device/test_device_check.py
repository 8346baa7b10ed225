"""The device check on stand-in devices: every planted deviation is found and named, no other."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.devices.checked_devices import FEW_STEPS, LocalDevice, SmallPlan, stand_in
from support.devices.planted_devices import (
    Plant,
    checked,
    clamping,
    directed_to_infinity,
    far_to_largest,
    finite_infinities,
    flushing_inputs,
    flushing_results,
    halves_away,
    infinite,
    nan_to_largest,
    odd_to_infinity,
    odd_to_zero,
    other_nibbles,
    other_routes,
    quiet_nan,
    short_rows,
    small_ub,
    some_cases,
    truncated,
    twice_rounded,
    unsigned_zero,
    wrapping,
)
from support.environment.command import Command, command
from support.programs.twin_programs import needs_twin

import pypto_cast as pypto
from ascend_kernels import npu, twin
from ascend_kernels.build import BuildError
from ascend_kernels.checks.check_program import CheckProgram
from ascend_kernels.npu import Npu, NpuError, RunMode
from pypto_cast.cli.commands import device_check_command
from pypto_cast.device import on_npu
from pypto_cast.device.behaviour import behaviours_in
from pypto_cast.device.cases import NIBBLES, PADDING, ROUTES, SHAPE_FACTS, UB_LIMIT
from pypto_cast.device.check import assumed_facts, check_casts, facts_in
from pypto_cast.device.check_steps import CheckStep
from pypto_cast.device.facts import PARTS, Agreement, DeviceDescription, DeviceFact, read_facts
from pypto_cast.tensors.array_files import new_file
from simulator.numbers import formats as f
from simulator.numbers.convert import values_of
from tiling.chips import A2_A3, ASCEND_950

__all__ = ["command"]

PLANTS: dict[Plant, set[str]] = {
    quiet_nan: {"NaN pattern"},
    nan_to_largest: {"NaN to integers"},
    directed_to_infinity: {"overflow under directed rounding"},
    odd_to_infinity: {"overflow of CAST_ODD"},
    far_to_largest: {"overflow to nearest"},
    finite_infinities: {"infinities"},
    halves_away: {"rounding"},
    odd_to_zero: {"underflow of CAST_ODD"},
    flushing_inputs: {"subnormal inputs"},
    flushing_results: {"subnormal results"},
    unsigned_zero: {"sign of zero"},
    clamping: {"integers out of range, low bits"},
    wrapping: {"integers out of range, clamped"},
    infinite: {"overflow with CTRL[48] = 0"},
    other_nibbles: {NIBBLES},
    twice_rounded: {"INT64 to FP32"},
    truncated: {"INT32 to FP16 by the deq scale"},
    short_rows: {PADDING},
    small_ub: {UB_LIMIT},
    other_routes: {ROUTES},
}


@pytest.mark.slow
@pytest.mark.sampled(16)
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_deviation_is_found_and_named(plant: Plant) -> None:
    differing = {n: x for n, x in checked(plant).items() if x.verdict is Agreement.DIFFERS}
    assert set(differing) == PLANTS[plant]
    for fact in differing.values():
        assert 0 < fact.touched == sum(fact.by_pair.values()) <= fact.tested
        assert ", assumed 0x" in fact.measured


def test_the_numbers_that_settle_a_fact_are_among_the_cases() -> None:
    patterns = {0x7F800001, 0x7FC00000, 0xFFC00001, 0x7FFFFFFF}
    settling = {
        f.FP32: [65504, 65519.99, 65520, 65536, 1e30, 2**-25, 2**-26, 2**-149, 70000, 2**31, 0.3],
        f.INT64: [2**24 + 1, 2**53 + 1, 2**63 - 1],
        f.INT32: [2049, 2051, 65519, 65520, 2**31 - 1, -(2**31)],
    }
    for src, numbers in settling.items():
        codes = next(x.codes for x in some_cases() if x.program.resolution.rule.src is src)
        values = values_of(codes, src)
        assert np.isin(np.array(numbers).astype(src.dtype), values).all(), src
        assert src is not f.FP32 or patterns <= set(codes.tolist())
        assert src is not f.FP32 or np.isin(np.float32([-65520, -0.3, -(2**31)]), values).all()


def test_an_equal_device_differs_in_nothing() -> None:
    found = checked()
    assert {fact.verdict for fact in found.values()} == {Agreement.AGREES}
    assert {fact.touched for fact in found.values()} == {0}
    assert {fact.stability for fact in found.values()} == {"stable"}
    assert set(found) == set(behaviours_in(A2_A3)) | {
        NIBBLES,
        ROUTES,
        *SHAPE_FACTS,
    }


def test_an_example_says_what_was_cast_and_what_came_out() -> None:
    fact = checked(truncated)["INT32 to FP16 by the deq scale"]
    assert fact.measured == ("INT32 -> FP16 CAST_RINT: 0x00000803 gives 0x6801, assumed 0x6802")
    assert fact.by_pair.keys() == {
        "INT32 -> FP16 CAST_RINT",
        "INT32 -> FP16 CAST_RINT CTRL[48] = 0",
    }


def test_the_twin_is_a_device() -> None:
    needs_twin()
    pairs = {(f.FP16, f.INT4), (f.INT32, f.FP16)}
    cases = [
        case
        for case in some_cases()
        if (case.program.resolution.rule.src, case.program.resolution.rule.dst) in pairs
    ]
    assert not any(x.touched for x in check_casts(twin.execute, cases))


@pytest.mark.parametrize(
    ("family", "count"), [(A2_A3, 27 + 3 + 16 + 9), (ASCEND_950, 28 + 3 + 17 + 14)]
)
def test_every_fact_has_a_name_of_its_own(family: str, count: int) -> None:
    names = [name for facts in facts_in(family).values() for name in facts]
    assert len(set(names)) == len(names) == count
    facts = [fact for part in PARTS for fact in assumed_facts(part, family=family)]
    assert [fact.name for fact in facts] == names
    assert {fact.verdict for fact in facts} == {Agreement.NOT_MEASURED}
    assert all(fact.assumed for fact in facts)


# --- The command ---------------------------------------------------------------------------------


Install = Callable[[str], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Has the command check a stand-in of this process, by a plan of a few steps."""
    monkeypatch.setattr(device_check_command, "OPEN", LocalDevice)
    monkeypatch.setattr(device_check_command, "PLAN", SmallPlan())

    def start(plant: str) -> None:
        monkeypatch.setattr(device_check_command, "START", functools.partial(stand_in, plant))

    return start


def test_the_command_writes_the_facts(command: Command, tmp_path: Path, install: Install) -> None:
    install("")
    output = tmp_path / "device.json"
    ran = command("device-check", "--output", output)
    assert (ran.code, ran.err) == (0, "")
    assert "NaN pattern" in ran.out
    assert f"all {len(FEW_STEPS)} steps are measured" in ran.out
    document = json.loads(output.read_text())
    assert (document["format"], document["version"]) == ("pypto-cast device facts", 3)
    assert document["device"]["chip"] == "Ascend910B3"
    assert set(document["device"]) == set(DeviceDescription.__dataclass_fields__)
    verdicts = {fact["verdict"] for fact in document["facts"]}
    assert verdicts == {"agrees", "not measured"}
    assert len(document["facts"]) == 55
    with pypto.options(facts=output) as context:
        assert context.cost_set.standing.endswith(
            "measured: device-check on Ascend910B3, 2026-01-02"
        )
    again = command("device-check", "--output", output)
    assert again.error == f"{output} exists; --force replaces it"


def test_a_device_that_differs_is_exit_code_1(command: Command, install: Install) -> None:
    install("quiet_nan")
    ran = command("device-check", "--only", "cast", "--json")
    assert ran.code == 1
    differing = [fact for fact in ran.json["facts"] if fact["verdict"] == "differs"]
    assert [fact["name"] for fact in differing] == ["NaN pattern"]


def test_a_check_that_is_interrupted_keeps_what_was_measured(
    command: Command, tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(LocalDevice):
        def measure(self, step: CheckStep) -> tuple[DeviceFact, ...]:
            if step.name == FEW_STEPS[2]:
                raise KeyboardInterrupt
            return super().measure(step)

    install("")
    monkeypatch.setattr(device_check_command, "OPEN", Interrupted)
    output = tmp_path / "device.json"
    ran = command("device-check", "--output", output)
    assert ran.code == 2
    assert "interrupted" in ran.err
    found = read_facts(output)
    assert found.run is not None
    assert found.run.done == list(FEW_STEPS[:2])


def test_a_check_that_is_killed_while_it_writes_leaves_no_file(tmp_path: Path) -> None:
    output = tmp_path / "device.json"
    program = f"""
import os, signal, pathlib
from pypto_cast.tensors.array_files import new_file
with new_file(pathlib.Path({str(output)!r})) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    ran = subprocess.run([sys.executable, "-c", program], check=False)
    assert ran.returncode == -signal.SIGKILL
    assert not output.exists()
    with new_file(output) as file:
        file.write(b"whole")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "device.json": b"whole"
    }


def test_parts_alone(command: Command, install: Install) -> None:
    install("quiet_nan")
    for part, count in (("arithmetic", 16), ("cycles", 9)):
        ran = command("device-check", "--only", part, "--json")
        assert ran.code == 0
        assert len(ran.json["facts"]) == count
        assert "differs" not in {fact["verdict"] for fact in ran.json["facts"]}


# --- The device ----------------------------------------------------------------------------------


def test_without_a_device(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    none = Npu(run_mode=RunMode.SIM, reason="torch_npu is not installed")
    monkeypatch.setattr(npu, "find", lambda: none)
    with pytest.raises(NpuError, match="no device to check: torch_npu is not installed"):
        on_npu.npu_device()
    monkeypatch.setattr(device_check_command, "OPEN", LocalDevice)
    assert command("device-check").error == "no device to check: torch_npu is not installed"


def test_another_chip(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    other = Npu(run_mode=RunMode.NPU, reason="tested", device_count=1, soc_name="Ascend310P3")
    monkeypatch.setattr(npu, "find", lambda: other)
    monkeypatch.setattr(device_check_command, "OPEN", LocalDevice)
    said = command("device-check").error
    assert said.startswith(
        "the device is Ascend310P3, and the kernels are for A2, A3 and 950: Asce"
    )


def test_the_device_is_described_and_its_library_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = tmp_path / "library.so"
    library.write_bytes(b"library")
    found = Npu(
        run_mode=RunMode.NPU,
        reason="tested",
        torch_npu_version="2.13.0",
        device_count=1,
        soc_name="Ascend910B4-1",
    )
    built: list[str] = []
    monkeypatch.delenv(npu.LIBRARY_VARIABLE, raising=False)
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    monkeypatch.setattr(npu, "find", lambda: found)
    monkeypatch.setattr(npu, "find_library", lambda: None)
    monkeypatch.setattr(npu, "load", lambda: library)
    monkeypatch.setattr(on_npu.build, "build", lambda kind: built.append(kind.file))

    def no_checks() -> None:
        raise BuildError("bisheng ended with status 1")

    monkeypatch.setattr(on_npu, "load_checks", no_checks)
    device = on_npu.npu_device()
    assert built == ["libpypto_cast_npu.so"]
    assert device.chip.name == device.description.chip == "Ascend910B4-1"
    assert device.description.library_sha256.startswith("b718f135")
    assert (device.description.cann, device.description.driver) == ("unknown", "unknown")
    with pytest.raises(NpuError, match="bisheng ended with status 1"):
        device.check(CheckProgram(kernel="x", x=np.zeros(1), result_bytes=1, cores=1, tiling={}))


@pytest.mark.parametrize(
    ("text", "version"), [("Version=25.5.0\nx=1\n", "25.5.0"), ("x=1\n", "unknown")]
)
def test_the_driver_says_its_version(tmp_path: Path, text: str, version: str) -> None:
    path = tmp_path / "version.info"
    path.write_text(text)
    assert on_npu.driver_version(path) == version
