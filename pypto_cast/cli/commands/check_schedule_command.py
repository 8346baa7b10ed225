"""`pypto-cast check-schedule`: upstream's own program of a kernel, executed under the guards."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer

from ascend_kernels.schedule.schedule import EventReuseWarning, NotExecutedError, Schedule
from pypto_cast.cli.app import ChipName, Json, UpstreamDump, refuse_unread
from pypto_cast.cli.commands.certainty_command import (
    SEPARATOR,
    errors_at_lines,
    kernel_named,
    saved_arguments,
)
from pypto_cast.cli.commands.compile_command import (
    Inputs,
    Python,
    Seconds,
    Shapes,
    compiled_schedule,
)
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.reports.schedule_report import counted, figures
from pypto_cast.options.context import current, options
from pypto_cast.options.releases import RELEASE_NAMES, ReleaseName
from pypto_cast.report import terminal
from pypto_cast.report.report import Report, plain
from pypto_cast.report.text_format import plural, printable
from pypto_cast.tensors.array_files import npz_arrays, with_dtype
from pypto_cast.testing.schedule_checks import Array, check, unknown_lines
from pypto_cast.upstream.import_alias import as_pypto
from pypto_cast.upstream.schedule_reader import read_schedule
from pypto_cast.upstream.wheel_compile import SECONDS

_FOUND = 1


def run_check_schedule(
    context: typer.Context,
    compiled: Annotated[
        str | None,
        typer.Argument(metavar="[FILE::KERNEL]", help="A kernel to compile and check."),
    ] = None,
    upstream_dump: UpstreamDump = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="[FILE::]KERNEL",
            help="Compare with this kernel at tensor level; a name alone chooses of a dump's, and "
            "each output is expected to be written whole.",
        ),
    ] = None,
    inputs: Inputs = None,
    shape: Shapes = None,
    release: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Compare with this one's results: {', '.join(RELEASE_NAMES)}; the wheel's own "
            "if not set.",
        ),
    ] = None,
    chip: ChipName = None,
    python: Python = "python3",
    seconds: Seconds = SECONDS,
    strict: Annotated[bool, typer.Option("--strict", help="Treat a doubt as an error.")] = False,
    json: Json = False,
) -> None:
    """Execute upstream's own tile program under all guards.

    Prints OK or each difference with its place. Synthetic data if no inputs are named. Without
    FILE:: an output has to be written whole; with it what the kernel writes is wanted, and no more.
    Where a leaf cannot be executed, all that does not depend on it is. A doubt, a flag that may be
    set again before the wait for its last set is over, is counted and listed.
    """
    if (compiled is None) == (upstream_dump is None):
        raise ValueError("name either FILE::KERNEL or --upstream-dump DIR")
    if compiled is not None and kernel is not None:
        raise ValueError(f"--kernel is of --upstream-dump; {compiled} is compared with itself")
    if upstream_dump is not None:
        reason = "of a dump, which is compiled; --inputs says its open shapes"
        refuse_unread(context, ("shape", "release", "chip", "python", "seconds"), reason)
    named = kernel if kernel is not None and SEPARATOR not in kernel else None
    judge = compiled if kernel is None else kernel
    file, found = None, None
    # Before anything is compiled: the options say what there is.
    with options(release=cast(ReleaseName | None, release), chip=chip):
        asked = {"release": (release, current().release), "chip": (chip, current().chip.name)}
    executed_as: dict[str, Any] = {
        key: known for key, (given, known) in asked.items() if given is not None
    }
    if judge is not None and named is None:
        with as_pypto(replace_installed=True):
            file, found = kernel_named(judge)
        named = found.signature.kernel
    if upstream_dump is not None:
        schedule = read_schedule(upstream_dump, named)
    else:
        assert compiled is not None
        assert file is not None
        assert found is not None
        with tempfile.TemporaryDirectory() as folder:
            dump = Path(folder) / "dump"
            schedule = compiled_schedule(
                compiled, file, found, inputs, shape, dump, python=python, seconds=seconds
            )
        schedule = dataclasses.replace(schedule, **executed_as)
    arrays, numbers = _given(schedule, found, inputs)
    unknown: tuple[str, ...] = ()
    if found is not None and file is not None:
        with errors_at_lines(file):
            unknown = unknown_lines(schedule, found, arrays, numbers)
    notes = [f"the dump knows no operation of {', '.join(unknown)}"] if unknown else []
    wrong = None
    doubts: list[str] = []
    try:
        with contextlib.redirect_stdout(sys.stderr):  # a kernel may print
            check(schedule, found, arrays, numbers, doubt=None if strict else doubts.append)
    except AssertionError as error:
        wrong = str(error)
    except NotExecutedError as error:
        for each in doubts:
            warnings.warn(each, EventReuseWarning, stacklevel=1)
        raise NotExecutedError("; ".join((str(error), *notes))) from None
    said = figures(schedule)
    compared = "every guard" if found is None else "every guard and the tensor level"
    doubted = f"; {plural(len(doubts), 'doubt')}" if doubts else ""
    report = Report(
        kind="check-schedule",
        title="" if wrong else f"OK: {schedule.kernel}, {counted(said)}, by {compared}{doubted}",
        facts=plain(
            **said,
            judged_by=compared,
            found=wrong,
            unknown_lines=list(unknown),
            doubts=doubts,
        ),
        notes=(*([wrong] if wrong else []), *(f"doubt: {each}" for each in doubts), *notes),
    )
    terminal.show(report, as_json=json)
    if wrong is not None:
        raise typer.Exit(_FOUND)


def _given(
    schedule: Schedule, kernel: Kernel | None, inputs: Path | None
) -> tuple[list[Array] | None, dict[str, Any]]:
    """The arrays and the numbers of a file; zeros for parameters only written and not in it."""
    if inputs is None:
        return None, {}
    if kernel is not None:
        arrays, numbers = saved_arguments(kernel, inputs)
        return list(arrays), numbers
    held = npz_arrays(inputs)
    names = [each.name for each in schedule.parameters]
    if unknown := sorted(set(held) - set(names)):
        raise ValueError(
            f"{inputs} holds {', '.join(map(printable, unknown))}; {schedule.kernel} takes "
            f"{', '.join(names)}"
        )
    found: list[Array] = []
    for each in schedule.parameters:
        shape = [extent for extent in each.shape if isinstance(extent, int)]
        if each.name in held:
            dtype = next(dtype for dtype in DataType if dtype.format is each.format)
            found.append(with_dtype(held[each.name], dtype, f"{inputs}: {each.name}"))
        elif each.is_read or len(shape) < len(each.shape):
            raise ValueError(f"{inputs} lacks {each.name}, which {schedule.kernel} takes")
        else:
            found.append(np.zeros(shape, each.format.dtype))
    return found, {}
