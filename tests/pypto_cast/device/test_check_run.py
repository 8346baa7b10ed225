"""A check that is killed, hangs or loses its device: the file says what it holds, and goes on."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import secrets
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from support.devices.checked_devices import (
    FEW_STEPS,
    LocalDevice,
    SmallPlan,
    check_of,
    stand_in,
    write,
)
from support.devices.killed_checks import At, resumed, run_killed, whole_run
from support.environment.command import Command, command
from support.environment.sources import ROOT

from ascend_kernels import npu
from ascend_kernels.build import BuildError
from pypto_cast.cli.commands import device_check_command
from pypto_cast.device.check_run import DeviceGoneError, check_resumable, plan_of
from pypto_cast.device.check_steps import CheckPlan, CheckStep
from pypto_cast.device.device_process import DeviceProcess
from pypto_cast.device.facts import (
    Agreement,
    CheckRun,
    DeviceFact,
    DeviceFacts,
    facts_of,
    read_facts,
)
from pypto_cast.device.on_npu import CheckedDevice
from pypto_cast.tensors import array_files
from tiling.chips import DEFAULT_CHIP

__all__ = ["command"]


def test_the_steps_measure_every_fact_once_or_more() -> None:
    steps = CheckPlan().steps(DEFAULT_CHIP.name)
    names = [step.name for step in steps]
    assert len(set(names)) == len(names)
    assert set(FEW_STEPS) < set(names)
    facts = {name for step in steps for name in step.facts}
    check = check_of(Path("unused"), plan=CheckPlan())
    check._begin(stand_in().description)
    known = check.known()
    assert [fact.name for fact in known.facts] == list(dict.fromkeys(x.name for x in known.facts))
    assert {fact.name for fact in known.facts} == facts
    assert all(fact.left > 0 and not fact.is_whole for fact in known.facts)
    assert {fact.verdict for fact in known.facts} == {Agreement.NOT_MEASURED}
    assert str(known.run) == f"0 of {len(steps)} steps are measured"


def test_a_file_holds_what_is_known_after_each_step(tmp_path: Path) -> None:
    kept: list[DeviceFacts] = []
    check = check_of(tmp_path, keep=kept.append)
    found = check.measure()
    assert kept[-1] == found
    assert [len(each.run.done) for each in kept] == list(range(1, len(FEW_STEPS) + 1))
    for each in kept:
        left = {fact.name: fact.left for fact in each.facts}
        assert left["system clock"] == ("system clock" not in each.run.done)
    assert str(found.run) == f"all {len(FEW_STEPS)} steps are measured"
    whole = [fact for fact in found.facts if not fact.left]
    assert whole == list(found.facts)
    assert not found.differ


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("at", ["launch", "write"])
def test_a_killed_check_goes_on_to_the_same_file(at: At, tmp_path: Path) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    once = tmp_path / "once.json"
    moments = dict(zip(("launch", "write"), whole_run(once), strict=True))
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    path = tmp_path / "killed.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the killed one left
        for moment in random.integers(0, moments[at], 2):
            run_killed(path, at, int(moment))
            if path.exists():
                found = read_facts(path)
                assert found.run is not None
                assert len(found.run.done) <= len(FEW_STEPS)
        assert resumed(path) == once.read_bytes()


@pytest.mark.slow
def test_a_step_that_fails_is_named_and_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "device.json"
    whole = check_of(path).measure()

    def no_library(_: object) -> None:
        raise BuildError("bisheng ended with status 1")

    path.unlink()
    found = check_of(path, functools.partial(stand_in, planted_check=no_library)).measure()
    assert found.run is not None
    assert list(found.run.failed) == list(FEW_STEPS[4:])
    verdicts = {fact.name: (fact.verdict, fact.measured) for fact in found.facts}
    assert verdicts["rounding"][0] is Agreement.AGREES
    for name in ("CTRL at kernel entry", "vexp", "system clock"):
        assert verdicts[name][1] == "not measured: bisheng ended with status 1"
    assert str(found.run) == "4 of 10 steps are measured, 6 could not be"
    assert read_facts(path) == found
    check = check_of(path)
    check.resume(found)
    assert check.measure() == whole


def test_a_device_that_fails_again_and_again_ends_the_check(tmp_path: Path) -> None:
    opened: list[None] = []

    def start() -> CheckedDevice:
        opened.append(None)

        def fail(*_: object) -> np.ndarray:
            with npu.told():
                raise RuntimeError("EZ9999: rtStreamSynchronize, error code is 507014")

        return dataclasses.replace(stand_in(), check=fail)

    path = tmp_path / "device.json"
    with pytest.raises(DeviceGoneError, match=r"failed in 3 steps .* --resume goes on"):
        check_of(path, start).measure()
    assert len(opened) == 3
    found = read_facts(path)
    assert found.run is not None
    assert list(found.run.failed) == list(FEW_STEPS[4:7])
    assert "the kernel did not end in time" in found.run.failed["control register"]


def test_a_device_that_does_not_open_again_leaves_its_step_named(tmp_path: Path) -> None:
    starts = iter([None])

    def start() -> CheckedDevice:
        if next(starts, "again") == "again":
            raise npu.NpuError("no device answers")

        def fail(*_: object) -> np.ndarray:
            raise RuntimeError("the process of the device ended")

        return dataclasses.replace(stand_in(), check=fail)

    path = tmp_path / "device.json"
    plan = SmallPlan(names=FEW_STEPS[4:])
    with pytest.raises(npu.NpuError, match="no device answers"):
        check_of(path, start, plan=plan).measure()
    found = read_facts(path)
    assert found.run is not None
    assert found.run.failed == {"control register": "the process of the device ended"}
    assert str(found.run) == "0 of 6 steps are measured, 1 could not be"


@pytest.mark.parametrize("code", [507010, 507014, 507015, 507034, 507046, 507054])
def test_errors_of_a_device_have_a_line_each(code: int) -> None:
    with pytest.raises(npu.DeviceFault, match=str(code)), npu.told():
        raise RuntimeError(f"aclrtSynchronizeStream failed, error code is {code}")


def test_another_device_does_not_go_on(tmp_path: Path) -> None:
    found = check_of(tmp_path / "device.json").measure()
    other = dataclasses.replace(found.device, driver="24.1.0")
    check = check_of(tmp_path / "device.json")
    check.resume(dataclasses.replace(found, device=other))
    with pytest.raises(ValueError, match=r"another device or software: .*24\.1\.0"):
        check.measure()
    later = check_of(tmp_path / "device.json")
    later.resume(
        dataclasses.replace(
            found, device=dataclasses.replace(other, date="2026-01-01", driver="25.5.0")
        )
    )
    assert later.measure().device.date == "2026-01-01"  # of the day when it was begun


def test_a_file_system_that_is_lost_keeps_what_was_written(tmp_path: Path) -> None:
    path, count = tmp_path / "device.json", 0

    def keep(facts: DeviceFacts) -> None:
        nonlocal count
        count += 1
        if count > 3:
            raise OSError(5, "Input/output error", str(path))
        write(path)(facts)

    with pytest.raises(OSError, match="Input/output error"):
        check_of(path, keep=keep).measure()
    found = read_facts(path)
    assert found.run is not None
    assert len(found.run.done) == 3


# --- A process of its own ------------------------------------------------------------------------


def hanging() -> CheckedDevice:
    """A device whose kernels do not end."""

    def check(_: object) -> np.ndarray:
        time.sleep(3600)
        raise AssertionError

    return dataclasses.replace(stand_in(), check=check)


def ending() -> CheckedDevice:
    """A device whose kernels end the process."""

    def check(_: object) -> np.ndarray:
        os._exit(7)

    return dataclasses.replace(stand_in(), check=check)


def absent() -> CheckedDevice:
    """A device that cannot be opened."""
    raise npu.NpuError("no device to check: torch_npu is not installed")


@pytest.mark.slow
def test_a_device_in_a_process_of_its_own_that_ends_is_opened_anew(tmp_path: Path) -> None:
    plan = SmallPlan(names=FEW_STEPS[2:5])
    check = check_of(tmp_path / "device.json", plan=plan)
    check.open_device = lambda: DeviceProcess(ending, plan)
    found = check.measure()
    assert found.run is not None
    assert found.run.done == list(FEW_STEPS[2:4])
    assert found.run.failed == {"control register": "the process of the device ended with 7"}


@pytest.mark.slow
def test_a_device_that_hangs_is_ended() -> None:
    plan = SmallPlan(names=FEW_STEPS[4:5])
    device = DeviceProcess(hanging, plan, time_limit=0.5)
    with pytest.raises(RuntimeError, match=r"no answer within 0\.5 s"):
        device.measure(plan.steps(DEFAULT_CHIP.name)[0])
    device.close()


_CHECK_OF_A_HELD_DEVICE = """
from support.devices.checked_devices import SmallPlan, held
from pypto_cast.device.device_process import DeviceProcess

if __name__ == "__main__":
    plan = SmallPlan(names=("control register",))
    DeviceProcess(held, plan).measure(plan.steps("Ascend910B3")[0])
"""


@pytest.mark.slow
def test_the_process_of_a_device_that_hangs_ends_with_a_killed_check(tmp_path: Path) -> None:
    script, told = tmp_path / "check.py", tmp_path / "number"
    script.write_text(_CHECK_OF_A_HELD_DEVICE, encoding="utf-8")
    found = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
    with subprocess.Popen(
        [sys.executable, str(script)],
        env={**found, "DEVICE_PROCESS": str(told)},
        stderr=subprocess.PIPE,
    ) as check:
        while not told.exists():
            assert check.poll() is None
            time.sleep(0.05)
        check.kill()
        check.wait()
        assert check.stderr is not None
        check.stderr.read()  # ends when no process has it open any more, or not at all


@pytest.mark.slow
def test_a_device_that_cannot_be_opened_says_why() -> None:
    with pytest.raises(npu.NpuError, match="torch_npu is not installed"):
        DeviceProcess(absent, SmallPlan())


# --- The command ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_goes_on(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_check_command, "OPEN", LocalDevice)
    monkeypatch.setattr(device_check_command, "PLAN", SmallPlan())
    monkeypatch.setattr(device_check_command, "START", stand_in)
    output = tmp_path / "device.json"
    assert command("device-check", "-o", output).code == 0
    once = output.read_bytes()
    found = read_facts(output)
    assert found.run is not None
    check = check_of(output)
    check.facts, check.device = {}, found.device
    check.run = dataclasses.replace(found.run, done=[])
    write(output)(check.known())
    shown = command("facts", output)
    assert f"0 of {len(FEW_STEPS)} steps are measured" in shown.out
    for done in (0, 4):
        check.run = dataclasses.replace(found.run, done=found.run.done[:done])
        write(output)(check.known())
        planned = command("device-check", "-o", output, "--resume", "--dry-run", "--json").json
        assert planned["steps"] == len(FEW_STEPS) - done
    check.run = dataclasses.replace(found.run, done=[])
    write(output)(check.known())
    assert command("device-check", "-o", output, "--resume").code == 0
    assert output.read_bytes() == once
    for words, text in (
        (["--resume"], "--resume goes with --output"),
        (["--resume", "-o", output, "--exhaustive"], "--exhaustive would change nothing"),
        (["--resume", "-o", tmp_path / "no.json"], "No such file"),
    ):
        assert text in command("device-check", *words).error
    write(output)(dataclasses.replace(found, run=None))
    assert "does not say how far" in command("device-check", "-o", output, "--resume").error


STRANGE: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("chip", lambda x: x["device"].update(chip="Ascend310"), "no kernels for Ascend310"),
    ("family", lambda x: x["device"].update(chip="Ascend950PR"), "has 10 steps, and this"),
    ("package", lambda x: x["device"].update(pypto_cast="0.1"), "is of pypto_cast 0.1, this"),
    ("steps", lambda x: x["run"].update(steps=11), "has 11 steps, and this package has 10"),
    ("step", lambda x: x["run"].update(done=["codes of none"]), "such as 'codes of none'"),
    ("failed", lambda x: x["run"].update(failed={"codes of none": ""}), "such as 'codes of none'"),
    ("no parts", lambda x: x["run"].update(parts=[]), r"is of parts \[\] with 100 random"),
    ("parts", lambda x: x["run"].update(parts=["cast"] * 2), r"is of parts \['cast', 'cast'\]"),
    ("codes", lambda x: x["run"].update(random_codes=10**30), "with 10+ random codes"),
    ("more done", lambda x: x["run"].update(done=list(FEW_STEPS)), "does not fit its steps"),
    ("less done", lambda x: x["run"].update(done=[]), "does not fit its steps"),
    ("left", lambda x: x["facts"][0].update(left=7), "'NaN to integers' does not fit its steps"),
    (
        "name",
        lambda x: x["facts"][0].update(name="a fact"),
        "facts are not those of the check: 'NaN to",
    ),
    ("facts", lambda x: x["facts"].pop(), "its facts are not those of the check"),
    ("assumed", lambda x: x["facts"][0].update(assumed="1"), "has another assumption, '1'"),
]


@pytest.fixture(scope="module")
def begun() -> bytes:
    """The file of a check of which two steps are measured."""
    kept: list[bytes] = []
    check = check_of(Path("unused"), keep=lambda facts: kept.append(facts.to_json()))
    check.measure()
    return kept[1]


@pytest.mark.parametrize(("change", "text"), [x[1:] for x in STRANGE], ids=[x[0] for x in STRANGE])
def test_a_file_that_is_none_of_this_check_is_not_gone_on_with(
    change: Callable[[dict[str, Any]], object], text: str, begun: bytes
) -> None:
    document = json.loads(begun)
    version = document["device"]["pypto_cast"]
    check_resumable(facts_of(Path("a"), begun), SmallPlan(), version)
    change(document)
    strange = facts_of(Path("a"), json.dumps(document).encode())
    with pytest.raises(ValueError, match=rf"cannot go on: .*{text}.*; begin it anew with --force"):
        check_resumable(strange, SmallPlan(), version)


def test_a_strange_file_is_named_and_left_as_it_is(
    begun: bytes, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start() -> CheckedDevice:
        raise AssertionError

    monkeypatch.setattr(device_check_command, "OPEN", LocalDevice)
    monkeypatch.setattr(device_check_command, "PLAN", SmallPlan())
    monkeypatch.setattr(device_check_command, "START", start)
    output = tmp_path / "device.json"
    other = begun.replace(b"Ascend910B3", b"Ascend310")
    for content, text in (
        (other, f"{output}: the check cannot go on: there are no kernels for Ascend310"),
        (begun[: len(begun) // 2], f"{output} is no whole facts file"),
        (b"[1, 2]", f"{output} is no facts file"),
        (b"", f"{output} is no whole facts file"),
        (b"[" * 100_000, f"{output} is no whole facts file"),
    ):
        output.write_bytes(content)
        for words in ([], ["--dry-run"]):
            ran = command("device-check", "-o", output, "--resume", *words)
            assert ran.code == 2
            assert text in ran.error
            assert output.read_bytes() == content


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (OSError(28, "No space left on device"), "No space"),
        (npu.NpuError("no device answers"), "no device answers"),
    ],
)
def test_an_end_before_time_says_what_the_file_holds(
    error: BaseException,
    text: str,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ending(LocalDevice):
        def measure(self, step: CheckStep) -> tuple[DeviceFact, ...]:
            if step.name == FEW_STEPS[2]:
                raise error
            return super().measure(step)

    monkeypatch.setattr(device_check_command, "OPEN", Ending)
    monkeypatch.setattr(device_check_command, "PLAN", SmallPlan())
    monkeypatch.setattr(device_check_command, "START", stand_in)
    output = tmp_path / "device.json"
    ran = command("device-check", "-o", output)
    assert ran.code == 2
    said = " ".join(ran.err.split())
    assert f"{output}: 2 of 10 steps are measured; --resume goes on" in said
    assert text in said
    monkeypatch.setattr(device_check_command, "OPEN", LocalDevice)
    assert command("device-check", "-o", output, "--resume").code == 0
    assert command("facts", output).code == 0


def test_a_folder_that_cannot_be_written_to_is_found_before_the_device(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    monkeypatch.setattr(device_check_command, "OPEN", lambda *_: opened.append(None))
    monkeypatch.setattr(array_files, "unfinished", read_only)
    ran = command("device-check", "-o", tmp_path / "device.json")
    assert (ran.code, opened) == (2, [])
    assert "Read-only file system" in ran.error
    assert command("device-check", "--dry-run", "-o", tmp_path / "device.json").code == 0
    assert list(tmp_path.iterdir()) == []


def read_only(*_: object, **__: object) -> NoReturn:
    raise OSError(30, "Read-only file system")


def test_a_dry_run_needs_no_device(command: Command, tmp_path: Path) -> None:
    output = tmp_path / "device.json"
    ran = command("device-check", "--dry-run", "-o", output, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert {row["part"] for row in ran.json["parts"]} == {"cast", "arithmetic", "cycles"}
    assert not output.exists()
    shown = command("device-check", "--dry-run", "--exhaustive").out
    assert "results to compare: the host takes about" in shown
    few, all_codes = (
        sum(step.results for step in CheckPlan(exhaustive=x).steps(DEFAULT_CHIP.name))
        for x in (False, True)
    )
    assert all_codes > 1e11 > few
    assert (
        json.loads(command("device-check", "--dry-run", "--exhaustive", "--json").out)["results"]
        == all_codes
    )


def test_a_dry_run_is_of_the_chip_that_is_named(command: Command, tmp_path: Path) -> None:
    words = ("device-check", "--dry-run", "--only", "cast")
    planned = command(*words, "--chip", "Ascend950PR", "--json").json
    steps = CheckPlan(parts=("cast",)).steps("Ascend950PR")
    assert (planned["chip"], planned["steps"]) == ("Ascend950PR", len(steps))
    assert len(steps) != len(CheckPlan(parts=("cast",)).steps(DEFAULT_CHIP.name))
    assert "unknown chip 'A5'" in command(*words, "--chip", "A5").error
    for given in ([], ["--resume", "--dry-run", "-o", tmp_path / "device.json"]):
        error = command("device-check", *given, "--chip", "Ascend950PR").error
        assert "--chip would change nothing" in error


def test_steps_of_less_than_a_second_count() -> None:
    plan = CheckPlan(parts=("cast",), random_codes=1000)
    results = [step.results for step in plan.steps(DEFAULT_CHIP.name)]
    assert max(results) < 10_000_000 < 20_000_000 < sum(results)
    seconds = math.ceil(sum(results) / 10_000_000)
    assert f"the host takes about {seconds} s for them" in plan.duration(DEFAULT_CHIP.name)


def test_the_plan_of_a_file_is_gone_on_with() -> None:
    run = CheckRun(parts=["cycles", "cast"], exhaustive=True, random_codes=7, steps=3)
    assert plan_of(run, CheckPlan()) == CheckPlan(
        parts=("cast", "cycles"), exhaustive=True, random_codes=7
    )
