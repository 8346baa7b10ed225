"""The NPU of this machine as a device to check: its library, built if it is not, and its name."""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pypto_cast
from ascend_kernels import build, npu
from ascend_kernels.checks.check_program import CheckProgram
from ascend_kernels.checks.check_runs import load_checks, run_on_npu
from ascend_kernels.npu import NpuError, RunMode
from pypto_cast.cast.npu import run
from pypto_cast.device.arithmetic_check import CheckOnDevice
from pypto_cast.device.check import CastOnDevice
from pypto_cast.device.facts import DeviceDescription
from simulator.machine.memory import Bytes
from tiling.chips import CHIPS, Chip

DRIVER_VERSION: Final = Path("/usr/local/Ascend/driver/version.info")
"""The folder where the vendor's installer puts it."""
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedDevice:
    """A device that a check can run casts on.

    Attributes:
        chip: programs are planned for it.
        cast: runs a program on values.
        check: runs a check's kernel.
        description: what the facts file says about it.
        now: the host's clock, in seconds.
    """

    chip: Chip
    cast: CastOnDevice
    check: CheckOnDevice
    description: DeviceDescription
    now: Callable[[], float] = time.perf_counter


def npu_device() -> CheckedDevice:
    """Find the NPU and its library, which is built if it is not there.

    Raises:
        NpuError: there is no NPU, no kernels for its chip, or the library does not load.
        BuildError: the library cannot be built; the text says what is missing.
    """
    found = npu.find()
    if found.run_mode is RunMode.SIM or found.soc_name is None:
        raise NpuError(f"no device to check: {found.reason}")
    chip = npu.chip_called(found.soc_name)
    if chip is None:
        raise NpuError(
            f"the device is {found.soc_name}, and the kernels are for A2, A3 and 950: "
            f"{', '.join(CHIPS)}"
        )
    if npu.find_library() is None and npu.LIBRARY_VARIABLE not in os.environ:
        build.build(kind=npu.library_of_device())
    library = npu.load()
    description = DeviceDescription(
        chip=chip.name,
        cann=_cann(),
        driver=driver_version(DRIVER_VERSION),
        torch_npu=found.torch_npu_version or UNKNOWN,
        library_sha256=hashlib.sha256(library.read_bytes()).hexdigest(),
        pypto_cast=pypto_cast.__version__,
        date=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    )
    return CheckedDevice(chip=chip, cast=run, check=_checks(), description=description)


def _checks() -> CheckOnDevice:
    """The function that runs the check's kernels; their library is built if it is not there.

    Without it the casts are measured all the same; each kernel then says what is missing.
    """
    try:
        load_checks()
    except (NpuError, build.BuildError) as error:
        text = str(error)

        def refuse(_: CheckProgram) -> Bytes:
            raise NpuError(text)

        return refuse
    return run_on_npu


def _cann() -> str:
    home = os.environ.get("ASCEND_HOME_PATH")
    try:
        return build.cann_version(Path(home)) if home else UNKNOWN
    except build.BuildError:
        return UNKNOWN


def driver_version(path: Path) -> str:
    """The version that the driver's file names; "unknown" without one."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return UNKNOWN
    found = re.search(r"^Version=([\w.-]+)", text, re.MULTILINE)
    return found[1] if found else UNKNOWN
