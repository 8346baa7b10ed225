"""Checks that are killed: at a launch, or in the midst of writing the file. Each in a fork."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from support.devices.checked_devices import check_of, stand_in

from pypto_cast.device.facts import DeviceFacts, read_facts
from pypto_cast.device.on_npu import CheckedDevice
from pypto_cast.tensors.array_files import new_file

At = Literal["launch", "write"]


def counted(at: Callable[[], object]) -> Callable[[], CheckedDevice]:
    """Opens a stand-in that calls a function at every launch."""

    def start() -> CheckedDevice:
        device = stand_in()

        def cast(*arguments: Any) -> Any:
            at()
            return device.cast(*arguments)

        def check(*arguments: Any) -> Any:
            at()
            return device.check(*arguments)

        return dataclasses.replace(device, cast=cast, check=check)

    return start


class Countdown:
    """Kills this process when it has been called so many times."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self) -> None:
        self.count -= 1
        if self.count < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def whole_run(path: Path) -> tuple[int, int]:
    """Run the check to its end; how many launches and how many writes there were."""
    launches, writes = Countdown(1 << 30), 0

    def keep(facts: DeviceFacts) -> None:
        nonlocal writes
        writes += 1
        with new_file(path, force=True) as file:
            file.write(facts.to_json())

    check_of(path, counted(launches), keep).measure()
    return (1 << 30) - launches.count, writes


def run_killed(path: Path, at: At, moment: int) -> None:
    """Run the check, or go on with its file, and kill it at a launch or within a write."""
    child = os.fork()
    if child == 0:
        try:
            _run_to_death(path, at, moment)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0


def _run_to_death(path: Path, at: At, moment: int) -> None:
    launches = Countdown(moment if at == "launch" else 1 << 30)
    writes = Countdown(moment if at == "write" else 1 << 30)

    def keep(facts: DeviceFacts) -> None:
        content = facts.to_json()
        with new_file(path, force=True) as file:
            file.write(content[: len(content) // 2])
            file.flush()
            writes()
            file.write(content[len(content) // 2 :])

    check = check_of(path, counted(launches), keep)
    if path.exists():
        check.resume(read_facts(path))
    check.measure()


def resumed(path: Path) -> bytes:
    """Go on to the end, and give the content of the file."""
    check = check_of(path)
    if path.exists():
        check.resume(read_facts(path))
    check.measure()
    return path.read_bytes()
