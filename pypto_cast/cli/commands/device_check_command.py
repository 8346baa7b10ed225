"""`pypto-cast device-check`: the NPU of this machine beside the assumptions about it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import pypto_cast
from ascend_kernels.npu import NpuError
from pypto_cast.cli.app import Force, Json, refuse_unread
from pypto_cast.device.check_run import DeviceCheck, OpenDevice, check_resumable, plan_of
from pypto_cast.device.check_steps import CheckPlan
from pypto_cast.device.device_process import TIME_LIMIT, DeviceProcess
from pypto_cast.device.facts import PARTS, DeviceFacts, facts_report, read_facts
from pypto_cast.device.on_npu import CheckedDevice, npu_device
from pypto_cast.report import terminal
from pypto_cast.tensors.array_files import check_free, new_file, new_output
from tiling.chips import CHIPS, DEFAULT_CHIP, chip_named

_DIFFERENT: Final = 1
START: Callable[[], CheckedDevice] = npu_device
OPEN: Callable[[Callable[[], CheckedDevice], CheckPlan, float], OpenDevice] = DeviceProcess
"""Opens the device with START in a process of its own."""
PLAN: CheckPlan = CheckPlan()
"""The plan where the command line says nothing else."""


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
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the file of a check that ended early.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show steps and duration; needs no device.")
    ] = False,
    chip: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"Of the dry run; {DEFAULT_CHIP} if not set."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=1.0, help="Seconds without an answer that end a step.")
    ] = TIME_LIMIT,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare the NPU with this package's assumptions.

    The libraries for the NPU are built if they are not there. Needs CANN, torch and torch_npu.
    """
    if only is DevicePart.CYCLES:
        refuse_unread(context, ("exhaustive",), "of the cycles, which depend on no code")
    parts = PARTS if only is None else (only.value,)
    plan = dataclasses.replace(PLAN, parts=parts, exhaustive=exhaustive)
    if not dry_run:
        refuse_unread(context, ("chip",), "without --dry-run: the device says which one it is")
    earlier = _earlier(context, output) if resume else None
    planned, done = chip_named(chip or DEFAULT_CHIP.name).name, list[str]()
    if earlier is not None and earlier.run is not None:
        plan = plan_of(earlier.run, PLAN)
        planned, done = earlier.device.chip, earlier.run.done
    elif output is not None:
        check_free(output, force=force)
    if dry_run:
        terminal.show(plan.report(planned, output, done), as_json=as_json)
        return
    if output is not None:
        with new_output(output, force=True):
            pass  # nothing is written: a read-only folder is found before the device is opened
    if plan.exhaustive:
        chips = {each.isa: each.name for each in CHIPS.values()}  # the device's is not known yet
        for name in chips.values() if earlier is None else (planned,):
            terminal.note(f"{CHIPS[name].isa}: {plan.duration(name, done)}")
    found = _measured(plan, earlier, output, time_limit)
    report = facts_report(found.facts, found.device, [output], found.run)
    terminal.show(report, as_json=as_json)
    if found.differ:
        raise typer.Exit(_DIFFERENT)


def _earlier(context: typer.Context, output: Path | None) -> DeviceFacts:
    """The facts of a check that ended early."""
    if output is None:
        raise ValueError("--resume goes with --output, the file of the check that ended early")
    refuse_unread(
        context, ("exhaustive", "only", "chip", "force"), "of --resume, which goes on as begun"
    )
    found = read_facts(output)
    if found.run is None:
        raise ValueError(f"{output} does not say how far its check is: run it anew with --force")
    try:
        check_resumable(found, PLAN, pypto_cast.__version__)
    except ValueError as error:
        raise ValueError(f"{output}: {error}") from None
    return found


def _measured(
    plan: CheckPlan, earlier: DeviceFacts | None, output: Path | None, time_limit: float
) -> DeviceFacts:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with terminal.progress(*columns) as shown:
        task = shown.add_task("opening the device", total=None)

        def tell(done: int, total: int, name: str) -> None:
            shown.update(task, completed=done, total=total, description=name)

        def keep(facts: DeviceFacts) -> None:
            if output is not None:
                with new_file(output, force=True) as file:
                    file.write(facts.to_json())

        check = DeviceCheck(
            plan=plan,
            open_device=lambda: OPEN(START, plan, time_limit),
            keep=keep,
            tell=tell,
        )
        if earlier is not None:
            check.resume(earlier)
        try:
            return check.measure()
        except (KeyboardInterrupt, OSError, NpuError):
            if output is not None and output.exists() and check.run is not None:
                kept = read_facts(output)
                terminal.note(f"{output}: {kept.run}; --resume goes on")
            raise
