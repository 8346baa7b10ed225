"""`pypto-cast schedule`: the tile program of a kernel, planned or of a dump, as tables and page."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, cast

import typer

from ascend_kernels.schedule.planner.ub_overflow import UBOverflowError
from pypto_cast.cli.app import ChipName, Force, Json, refuse_unread
from pypto_cast.cli.commands.certainty_command import kernel_named
from pypto_cast.cli.commands.compile_command import Inputs, Shapes, declared_of
from pypto_cast.kernel.fit import fit_report
from pypto_cast.kernel.schedule_report import schedule_report
from pypto_cast.options.context import options
from pypto_cast.options.releases import RELEASE_NAMES, ReleaseName
from pypto_cast.report import terminal
from pypto_cast.report.page import check_pages, page_html
from pypto_cast.report.report import plain
from pypto_cast.report.text_format import written
from pypto_cast.tensors.array_files import check_free, output_file
from pypto_cast.tensors.tensor import tensor
from pypto_cast.upstream.import_alias import as_pypto
from pypto_cast.upstream.schedule_reader import read_schedule
from tiling.chips import chip_named

_OVER_UB = 1
_NOT_PLANNED = 2


def run_schedule(
    context: typer.Context,
    planned: Annotated[
        str | None,
        typer.Argument(metavar="[FILE::KERNEL]", help="A Python file and a kernel in it."),
    ] = None,
    upstream_dump: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A dump of upstream's compiler instead.")
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(metavar="KERNEL", help="Choose this kernel of the dump's.")
    ] = None,
    inputs: Inputs = None,
    shape: Shapes = None,
    release: Annotated[
        str, typer.Option(metavar="NAME", help=f"One of {', '.join(RELEASE_NAMES)}.")
    ] = "head",
    chip: ChipName = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Draw UB and the timeline there.")
    ] = None,
    fail_over_ub: Annotated[
        bool, typer.Option("--fail-over-ub", help="Exit code 1 if it does not fit in UB.")
    ] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show a kernel's tile program: by source line, in UB over time, its tasks over the cores.

    Planned as upstream's compiler would, without it; nothing is computed. Cycles are not measured.
    A kernel that does not fit in UB: why, and tile shapes that fit; exit code 2.
    """
    code = 0
    if (planned is None) == (upstream_dump is None):
        raise ValueError("name either FILE::KERNEL or --upstream-dump DIR")
    if planned is not None:
        refuse_unread(context, ("kernel",), f"beside {planned}; it is of --upstream-dump")
    else:
        refuse_unread(context, ("inputs", "shape", "release", "chip"), "of a dump, which is made")
    if html is not None:
        check_free(html, force=force, inputs=[each for each in (inputs,) if each is not None])
        check_pages()
    if upstream_dump is not None:
        schedule = read_schedule(upstream_dump, kernel)
        told = schedule_report(schedule)
        if fail_over_ub and schedule.peak_ub_bytes > chip_named(schedule.chip).ub_bytes:
            code = _OVER_UB
    else:
        assert planned is not None
        # Whether it is a release is for the options to say, which list them.
        with (
            as_pypto(replace_installed=True),
            options(release=cast(ReleaseName, release), chip=chip),
        ):
            _, found = kernel_named(planned)
            declared, others = declared_of(found, inputs, shape or [])
            tensors = [tensor(extents, dtype) for extents, dtype in declared]
            try:
                told = schedule_report(found.schedule(*tensors, **others))
            except UBOverflowError:
                told = fit_report(found, *tensors, **others).report
                code = _OVER_UB if fail_over_ub else _NOT_PLANNED
    if html is not None:
        with output_file(html, force=force, inputs=[]) as file:
            assert file is not None
            file.write(page_html(told).encode())
    report = dataclasses.replace(
        told, facts=(*told.facts, *plain(html=html)), notes=told.notes + written([html])
    )
    terminal.show(report, as_json=json)
    if code:
        raise typer.Exit(code)
