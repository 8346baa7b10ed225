"""`pypto-cast check-schedule`: upstream's own program of a kernel, executed under the guards."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.cli.app import Json
from pypto_cast.cli.commands.certainty_command import kernel_named, saved_arguments
from pypto_cast.cli.commands.compile_command import (
    Inputs,
    Python,
    Seconds,
    Shapes,
    arguments_of,
    figures,
)
from pypto_cast.kernel.jit import Kernel
from pypto_cast.report import terminal
from pypto_cast.report.report import Report, plain
from pypto_cast.tensors.array_files import npz_arrays
from pypto_cast.testing.schedule_checks import Array, assert_schedule_ok
from pypto_cast.upstream.import_alias import as_pypto
from pypto_cast.upstream.schedule_reader import read_schedule
from pypto_cast.upstream.wheel_compile import SECONDS, compile_kernel

_FOUND = 1


def run_check_schedule(
    compiled: Annotated[
        str | None,
        typer.Argument(metavar="[FILE::KERNEL]", help="A kernel to compile and check."),
    ] = None,
    upstream_dump: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A dump of upstream's compiler instead.")
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(metavar="FILE::KERNEL", help="Compare with this kernel at tensor level."),
    ] = None,
    inputs: Inputs = None,
    shape: Shapes = None,
    python: Python = "python3",
    seconds: Seconds = SECONDS,
    json: Json = False,
) -> None:
    """Execute upstream's own tile program, and say OK or what is wrong with it, where.

    Synthetic data if no inputs are named. Exit code 1: something was found; 2: also where a leaf
    cannot be executed, after all that does not depend on it was.
    """
    if (compiled is None) == (upstream_dump is None):
        raise ValueError("name either FILE::KERNEL or --upstream-dump DIR")
    judge = kernel or compiled
    file, found = None, None
    if judge is not None:
        with as_pypto(replace_installed=True):
            file, found = kernel_named(judge)
    if upstream_dump is not None:
        named = None if kernel is None else kernel.rpartition("::")[2]
        schedule = read_schedule(upstream_dump, named)
    else:
        assert compiled is not None
        assert file is not None
        assert found is not None
        with tempfile.TemporaryDirectory() as folder:
            dump = Path(folder) / "dump"
            name = compiled.rpartition("::")[2]
            tensors, others = arguments_of(found, inputs, shape or [])
            compile_kernel(file, name, tensors, dump, python=python, seconds=seconds, others=others)
            schedule = read_schedule(dump, found.signature.kernel)
    wrong = None
    try:
        assert_schedule_ok(schedule, found, _arrays(schedule, found, inputs))
    except AssertionError as error:
        wrong = str(error)
    said = figures(schedule)
    compared = "every guard" if found is None else "every guard and the tensor level"
    ran = f"{said['leaves']} leaves, {said['tasks']} tasks"
    report = Report(
        kind="check-schedule",
        title="" if wrong else f"OK: {schedule.kernel}, {ran}, by {compared}",
        facts=plain(**said, judged_by=compared, found=wrong),
        notes=(wrong,) if wrong else (),
    )
    terminal.show(report, as_json=json)
    if wrong is not None:
        raise typer.Exit(_FOUND)


def _arrays(schedule: Schedule, kernel: Kernel | None, inputs: Path | None) -> list[Array] | None:
    if inputs is None:
        return None
    if kernel is not None:
        arrays, _ = saved_arguments(kernel, inputs)
        return list(arrays)
    held = npz_arrays(inputs)
    names = [each.name for each in schedule.parameters]
    if missing := [name for name in names if name not in held]:
        raise ValueError(f"{inputs} lacks {', '.join(missing)}, which {schedule.kernel} takes")
    return [held[name] for name in names]
