"""Devices that a whole check runs on: stand-ins in this process, by plans of a few steps."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path

from support.devices import planted_devices
from support.devices.planted_devices import DESCRIPTION, planted
from support.devices.planted_instructions import StandIn

from pypto_cast.device.check_run import DeviceCheck
from pypto_cast.device.check_steps import CheckPlan, CheckStep
from pypto_cast.device.device_process import measured_by
from pypto_cast.device.facts import DeviceDescription, DeviceFact, DeviceFacts
from pypto_cast.device.on_npu import CheckedDevice
from pypto_cast.tensors.array_files import new_file
from tiling.chips import DEFAULT_CHIP

FEW_STEPS = (
    "codes of FP32 -> FP16 CAST_RINT",
    "codes of FP16 -> INT4 CAST_TRUNC",
    "codes of INT32 -> FP16 CAST_RINT",
    "shapes of INT8 -> FP16",
    "control register",
    "tails of copies",
    "vexp in FP16",
    "vcadd in FP16",
    "system clock",
    "cycles of a barrier, a flag, an empty pass",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SmallPlan(CheckPlan):
    """A few steps of a check, with few codes."""

    random_codes: int = 100
    names: tuple[str, ...] = FEW_STEPS

    def steps(self, chip: str) -> tuple[CheckStep, ...]:
        return tuple(x for x in CheckPlan.steps(self, chip) if x.name in self.names)


def stand_in(plant: str = "", planted_check: Callable[..., object] | None = None) -> CheckedDevice:
    """A device as assumed, or with a deviation of `planted_devices`, by its name."""
    check = StandIn()
    return CheckedDevice(
        chip=DEFAULT_CHIP,
        cast=planted(getattr(planted_devices, plant) if plant else None),
        check=planted_check or check,
        description=DESCRIPTION,
        now=check.now,
    )


def held() -> CheckedDevice:
    """A device whose kernels do not end; it writes the number of its process to DEVICE_PROCESS."""

    def check(_: object) -> object:
        path = Path(os.environ["DEVICE_PROCESS"])
        path.with_suffix(".part").write_text(str(os.getpid()), encoding="ascii")
        path.with_suffix(".part").rename(path)
        time.sleep(3600)
        raise AssertionError

    return stand_in(planted_check=check)


class LocalDevice:
    """A device that is opened in this process; arguments as of `DeviceProcess`."""

    def __init__(
        self, start: Callable[[], CheckedDevice], plan: CheckPlan, time_limit: float = 0.0
    ) -> None:
        self._device = start()
        self.description: DeviceDescription = self._device.description

    def measure(self, step: CheckStep) -> tuple[DeviceFact, ...]:
        return measured_by(self._device, step)

    def close(self) -> None:
        """Nothing is held."""


def write(path: Path) -> Callable[[DeviceFacts], None]:
    """Keeps facts in a file, as the command does."""

    def keep(facts: DeviceFacts) -> None:
        with new_file(path, force=True) as file:
            file.write(facts.to_json())

    return keep


def check_of(
    path: Path,
    start: Callable[[], CheckedDevice] = stand_in,
    keep: Callable[[DeviceFacts], object] | None = None,
    plan: CheckPlan | None = None,
) -> DeviceCheck:
    """A check of a stand-in that keeps its facts in a file."""
    plan = plan or SmallPlan()
    return DeviceCheck(
        plan=plan,
        open_device=lambda: LocalDevice(start, plan),
        keep=keep or write(path),
    )
