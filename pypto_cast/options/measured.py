"""A measured device as casts, intervals and costs follow it: a value that is handed in."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from pypto_cast.lazy import entry
from simulator.arithmetic.trust import Trust
from simulator.corrections import Corrections
from tiling.cost import CostParameters


class MeasuredDevice(Protocol):
    """The facts of a device in the form that the simulator takes."""

    @property
    def corrections(self) -> Corrections:
        """The casts that the device carries out in its own way."""

    @property
    def cost_set(self) -> CostParameters | None:
        """The default set with the figures that were measured; None: none was."""

    def chip_for(self, asked: str | None) -> str:
        """The chip to plan for: the measured one.

        Raises:
            ValueError: another one is asked for.
        """

    def trusting(self, trust: Trust) -> Trust:
        """A choice of what to trust, with what was measured in place of what is assumed."""


def measured_device(path: Path) -> MeasuredDevice:
    """The device of a facts file.

    Raises:
        ValueError: the file holds no facts, or of another version.
        OSError: it cannot be read.

    Warns:
        DeviceFactsWarning: the device does something that the simulator cannot follow.
    """
    followed: MeasuredDevice = entry("model_of_file")(path)
    return followed
