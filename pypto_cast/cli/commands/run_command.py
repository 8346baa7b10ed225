"""`pypto-cast run`: a program written for upstream's pypto, unmodified."""

from __future__ import annotations

import contextlib
import importlib
import os
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final

import typer

from pypto_cast.cli.app import (
    ChipName,
    Facts,
    NpuOnCpu,
    Readings,
    ReplaceInstalled,
    readings_named,
)
from pypto_cast.cli.commands.certainty_command import error_at_line
from pypto_cast.kernel.operation_dump import dumping
from pypto_cast.options.context import options
from pypto_cast.recording.tally import counting
from pypto_cast.upstream.import_alias import as_pypto
from pypto_cast.upstream.npu_requests import NpuRequestError, npu_requests
from tiling.input_files import MOST_DOCUMENT_BYTES, regular

_FAILED: Final = 1
_ON_CPU: Final = "--npu-on-cpu: the CPU stands for the NPU; nothing below ran on a device"
_WAS_ON_CPU: Final = "--npu-on-cpu: the CPU stood for the NPU; nothing above ran on a device"


def run_run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Python program.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENTS]...", help="What it is given.")
    ] = None,
    dump: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the tensors of each operation of kernels to a new folder."
        ),
    ] = None,
    timelines: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the planned timeline of each kernel where upstream's simulation does: "
            "output_.../CostModelSimulationOutput/merged_swimlane.json, for ui.perfetto.dev.",
        ),
    ] = None,
    facts: Facts = None,
    chip: ChipName = None,
    reading: Readings = None,
    npu_on_cpu: NpuOnCpu = False,
    replace_installed: ReplaceInstalled = False,
) -> None:
    """Run a program for pypto with this package in its place."""
    if not regular(file, most_bytes=MOST_DOCUMENT_BYTES).exists():
        raise FileNotFoundError(f"{file}: there is no such file")
    code = 0
    with (
        as_pypto(replace_installed=replace_installed),
        npu_requests(on_cpu=npu_on_cpu),
        options(
            facts=facts,
            chip=chip,
            readings=readings_named(reading),
            inspect=None if dump is None else True,
        ) as context,
        nullcontext() if dump is None else dumping(dump),
        counting(None if timelines is None else _Timelines(timelines).write) as tally,
        _as_program(str(file), arguments or []),
    ):
        if npu_on_cpu:
            _say(_ON_CPU)
        try:
            runpy.run_path(str(file), run_name="__main__")
        except NpuRequestError as error:
            raise RuntimeError(str(error)) from error
        except SystemExit as ended:
            code = _exit_code(ended.code)
        except Exception as error:
            own = _own_part(error, str(file))
            if own is None and isinstance(error, SyntaxError):  # it did not come to run
                raise error_at_line(file, error) or ValueError(f"{file}: {error}") from None
            traceback.print_exception(type(error), error, own)
            code = _FAILED
        sys.stdout.flush()
        _say(str(tally))
        if context.facts is not None:
            _say(str(context.facts))
        if npu_on_cpu:
            _say(_WAS_ON_CPU)
    if code:
        raise typer.Exit(code)


class _Timelines:
    """The folder of the timelines of kernels: one folder in it for the first call of each."""

    def __init__(self, folder: Path) -> None:
        self._start = f"output_{time.strftime('%Y%m%d_%H%M%S')}_{os.getpid()}"
        self._folder, self._written = folder.resolve(), set[str]()

    def write(self, kernel: str, plan: Callable[[], object]) -> None:
        """Write the timeline of a call; say why, where it is not planned."""
        if kernel in self._written:
            return
        self._written.add(kernel)
        schedules = importlib.import_module("ascend_kernels.schedule.views.task_trace")
        cycles = importlib.import_module("ascend_kernels.schedule.simulated_cycles")
        try:
            pieces = schedules.schedule_perfetto(plan(), cycles.STANDINGS[cycles.TASKS])
        except ValueError as error:
            _say(f"{kernel} has no timeline: {error}")
            return
        folder = self._folder / f"{self._start}_{kernel}" / "CostModelSimulationOutput"
        folder.mkdir(parents=True)
        (folder / "merged_swimlane.json").write_text("".join(pieces), encoding="utf-8")


@contextlib.contextmanager
def _as_program(file: str, arguments: list[str]) -> Iterator[None]:
    """Have sys.argv and sys.path as Python has them for a program."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [file, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _exit_code(given: object) -> int:
    """Ends as Python does with an argument of sys.exit: a text is printed and is a failure."""
    if given is None or isinstance(given, int):
        return given or 0
    print(given, file=sys.stderr)
    return _FAILED


def _own_part(error: Exception, file: str) -> TracebackType | None:
    """The traceback from the program on; None if it did not come to run."""
    entry = error.__traceback__
    while entry is not None and entry.tb_frame.f_code.co_filename != file:
        entry = entry.tb_next
    return entry


def _say(text: str) -> None:
    print(f"pypto-cast: {text}", file=sys.stderr)
