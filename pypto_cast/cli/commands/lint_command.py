"""`pypto-cast lint`: findings in sources of kernels, without running them."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from pypto_cast.cli.app import Json
from pypto_cast.lint.findings import OUTPUT_FORMATS
from pypto_cast.lint.lint_settings import read_settings
from pypto_cast.lint.linting import lint
from pypto_cast.report import terminal

_FOUND: Final = 1


def run_lint(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Python or C++, or folders of them.")
    ],
    output: Annotated[
        str, typer.Option("--format", metavar="NAME", help=f"One of {', '.join(OUTPUT_FORMATS)}.")
    ] = "text",
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Findings of --format json that are not shown."),
    ] = None,
    json: Json = False,
) -> None:
    """Find casts, sums and tiles that often go wrong.

    Nothing is run. Casts of pypto, AscendC C++, pto-isa, triton and tilelang. Settings are in
    [tool.pypto-cast.lint] of pyproject.toml.
    """
    if output not in OUTPUT_FORMATS:
        raise ValueError(f"--format is one of {', '.join(OUTPUT_FORMATS)}, not {output!r}")
    if json and output not in ("text", "json"):
        raise ValueError(f"--json is --format json; give it or --format {output}")
    output = "json" if json else output
    settings = read_settings(Path.cwd())
    if baseline is not None:
        settings = dataclasses.replace(settings, baseline=baseline)
    findings = lint(files, settings)
    if findings or output in ("json", "sarif"):
        text = f"{OUTPUT_FORMATS[output](findings)}\n"
        if output == "text":
            terminal.write(text)
        else:
            with terminal.readers_may_leave():
                sys.stdout.write(text)
    if findings:
        raise typer.Exit(_FOUND)
