"""The findings of a device check: a record for each fact, and the file that holds them."""

from __future__ import annotations

import dataclasses
import enum
import json
from dataclasses import dataclass
from typing import Final

FORMAT: Final = "pypto-cast device facts"
VERSION: Final = 1


class Verdict(enum.Enum):
    """The verdict on one fact of a device."""

    AGREES = "agrees"
    DIFFERS = "differs"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFact:
    """One fact about a device.

    Attributes:
        name: the conduct it is about.
        assumed: what this package assumes.
        measured: what the device did, with an example where it differs; or why it was not asked.
        verdict: whether the two agree.
        tested: results that were compared.
        touched: those of them that differ from this package's.
        by_pair: of those, how many each cast has, such as "FP32 -> FP16 CAST_ODD".
    """

    name: str
    assumed: str
    measured: str
    verdict: Verdict
    tested: int = 0
    touched: int = 0
    by_pair: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDescription:
    """The device, software and day of a check; nothing of it names a user or a host.

    Attributes:
        chip: its name, as the driver calls it.
        cann: version of CANN.
        driver: version of the driver.
        torch_npu: version of torch_npu.
        library_sha256: of the library that ran the casts.
        pypto_cast: version of this package.
        date: the day of the check, UTC.
    """

    chip: str
    cann: str
    driver: str
    torch_npu: str
    library_sha256: str
    pypto_cast: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """The facts of one device."""

    device: DeviceDescription
    facts: tuple[DeviceFact, ...]

    @property
    def differ(self) -> bool:
        """True if any fact differs from what is assumed."""
        return any(fact.verdict is Verdict.DIFFERS for fact in self.facts)

    def document(self) -> dict[str, object]:
        """Everything as a JSON object."""
        facts = [{**dataclasses.asdict(f), "verdict": f.verdict.value} for f in self.facts]
        device = dataclasses.asdict(self.device)
        return {"format": FORMAT, "version": VERSION, "device": device, "facts": facts}

    def to_json(self) -> bytes:
        """The content of a facts file."""
        return (json.dumps(self.document(), indent=2) + "\n").encode()
