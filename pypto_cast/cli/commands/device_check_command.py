"""`pypto-cast device-check`: the NPU of this machine beside the assumptions about it."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Final

import typer

from ascend_kernels.build import BuildError
from ascend_kernels.npu import NpuError
from pypto_cast.cli.app import Force, Json, refuse_unread
from pypto_cast.device.cases import cast_cases
from pypto_cast.device.check import assumed_facts, check_casts, check_instructions
from pypto_cast.device.facts import DeviceFact, DeviceFacts, facts_report
from pypto_cast.device.on_npu import npu_device
from pypto_cast.report import terminal
from pypto_cast.tensors.array_files import check_free, new_file

_DIFFERENT: Final = 1


class DevicePart(str, enum.Enum):
    """A part of the check."""

    CAST = "cast"
    ARITHMETIC = "arithmetic"
    CYCLES = "cycles"


def run_device_check(
    context: typer.Context,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.json", help="Write the facts there."),
    ] = None,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="All 2^32 codes of 32-bit sources.")
    ] = False,
    only: Annotated[DevicePart | None, typer.Option(help="One part alone.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare the NPU with this package's assumptions; exit code 1 where a fact differs.

    The library for the NPU is built if it is not there. Needs CANN, torch and torch_npu.
    """
    if only is DevicePart.CYCLES:
        refuse_unread(context, ("exhaustive",), "of the cycles, which depend on no code")
    if output is not None:
        check_free(output, force=force)
    device = npu_device()
    parts = list(DevicePart) if only is None else [only]
    facts: list[DeviceFact] = []
    for part in parts:
        if part is DevicePart.CAST:
            facts += check_casts(device.cast, cast_cases(device.chip, exhaustive=exhaustive))
        try:
            facts += check_instructions(
                device.check, part.value, device.chip, exhaustive=exhaustive
            )
        except (NpuError, BuildError) as error:
            known = {fact.name for fact in facts}
            missing = assumed_facts(part.value, f"not measured: {error}")
            facts += [fact for fact in missing if fact.name not in known]
    found = DeviceFacts(device=device.description, facts=tuple(facts))
    if output is not None:
        with new_file(output, force=force) as file:
            file.write(found.to_json())
    terminal.show(facts_report(found.facts, found.device, [output]), as_json=as_json)
    if found.differ:
        raise typer.Exit(_DIFFERENT)
