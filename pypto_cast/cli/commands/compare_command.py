"""`pypto-cast compare`: one conversion in every framework, side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from pypto_cast.cli.app import Json
from pypto_cast.dialects.comparison import Comparison, DialectDifference, compare, compare_formats
from pypto_cast.dialects.systems import DIALECTS
from pypto_cast.dtypes.names import mode_named
from pypto_cast.report import terminal


def run_compare(
    from_: Annotated[
        str, typer.Option("--from", metavar="DTYPE", help="Source, such as float16 or DT_FP16.")
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="DTYPE", help="Destination, such as int8 or DT_INT8.")
    ],
    number: Annotated[
        str | None,
        typer.Argument(metavar="NUMBER", help="0.1, 0x1.8p3, inf, nan, or code:0x3c00."),
    ] = None,
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="Round mode of the pypto rows; CAST_NONE: default.")
    ] = "CAST_NONE",
    all_values: Annotated[
        bool,
        typer.Option("--all-values", help="Count the codes of an 8/16-bit source that differ."),
    ] = False,
    between: Annotated[
        str | None,
        typer.Option(metavar="A,B", help=f"Count between two of {', '.join(DIALECTS)}."),
    ] = None,
    json: Json = False,
) -> None:
    """Show how each framework converts one number.

    pypto, torch, ONNX, OpenVINO, Paddle and numpy, and by which rule.
    """
    round_mode = mode_named(mode)
    found = (
        compare_formats(from_, to, mode=round_mode)
        if number is None
        else compare(number, from_, to, mode=round_mode)
    )
    counted = _counted(found, all_values, between)
    terminal.show(found.report(counted), as_json=json)


def _counted(
    found: Comparison, all_values: bool, between: str | None
) -> tuple[DialectDifference, ...] | None:
    if between is None:
        return found.all_differences() if all_values else None
    if not all_values:
        raise ValueError("--between goes with --all-values")
    names = [name.strip() for name in between.split(",")]
    known = [row.dialect for row in found.rows]
    if len(names) != 2 or not set(names) <= set(known):
        raise ValueError(
            f"--between names two of {', '.join(known)} for {found.src} -> {found.dst}, as in "
            f"pypto,torch; got {between!r}"
        )
    return (found.differences(*names),)
