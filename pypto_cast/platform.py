"""`pypto.platform`: the place where casts run, and the NPU's software that was found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ascend_kernels import npu, twin
from ascend_kernels.instances import target_of
from ascend_kernels.npu import RunMode
from pypto_cast.options.context import SatmodeName, current
from simulator.numbers import engines
from simulator.numbers.engines import EngineInUse
from tiling.chips import Chip


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """The NPU, its software and the compiler that `platform()` found.

    Attributes:
        run_mode: NPU if torch_npu imports and a device answers, else SIM.
        reason: why, in words.
        torch_npu_version: None if torch_npu does not import.
        device_count: NPUs that answer.
        soc_name: the first one's chip, as the driver calls it; None without a device.
        library: the library that `python -m ascend_kernels.build` made; None if it is not there.
        engine: what converts where the options leave the choice, and why not the better one.
        operations_engine: the same of operations; without a native loop numpy computes.
        is_twin_available: a compiler is there that can build the kernel's twin for the CPU.
        chip: whose UB and cores casts are planned for in this context.
        release: upstream's release that operations follow in this context, with its revision.
        satmode: whose default a cast follows in this context that names no satmode: "seed" (ON) or
            "upstream" (OFF).
    """

    run_mode: RunMode
    reason: str
    torch_npu_version: str | None
    device_count: int
    soc_name: str | None
    library: Path | None
    engine: EngineInUse
    operations_engine: EngineInUse
    is_twin_available: bool
    chip: Chip
    release: str
    satmode: SatmodeName


class _PlatformQuery:
    """The type of `pypto.platform`: a call tells where casts run, attributes are as upstream's."""

    __slots__ = ()

    def __call__(self) -> Platform:
        """Find the device that casts run on. Imports torch_npu where it is installed, once."""
        from simulator.arithmetic.native import executor_library  # a cast needs none

        found = npu.find()
        return Platform(
            run_mode=found.run_mode,
            reason=found.reason,
            torch_npu_version=found.torch_npu_version,
            device_count=found.device_count,
            soc_name=found.soc_name,
            library=npu.find_library(),
            engine=engines.in_use(),
            operations_engine=executor_library.in_use(),
            is_twin_available=_has_compiler(),
            chip=current().chip,
            release=str(current().followed_release),
            satmode=current().satmode_rule,
        )

    @property
    def npuarch(self) -> str:
        """Architecture of the chip in use, in upstream's spelling: "DAV_2201" of A2 and A3,
        "DAV_3510" of the 950.

        Setting it to another raises ValueError: the chip is an option. Upstream's "DAV_1001" is not
        simulated.

        Source: upstream pypto, `python/pypto/platform.py` and `python/tests/st/test_npuarch.py`.
        """
        return f"DAV_{target_of(current().chip.isa).architecture}"

    @npuarch.setter
    def npuarch(self, architecture: str) -> None:
        if architecture != self.npuarch:
            raise ValueError(
                f"npuarch is {self.npuarch!r}, that of {current().chip}, and cannot be set to "
                f"{architecture!r}: pypto.options(chip=) chooses the chip"
            )

    def __repr__(self) -> str:
        return f"<pypto_cast.platform of {self.npuarch}>"


platform: Final = _PlatformQuery()


def _has_compiler() -> bool:
    try:
        return bool(twin.compiler())
    except twin.TwinUnavailableError:
        return False
