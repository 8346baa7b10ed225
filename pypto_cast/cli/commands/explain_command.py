"""`pypto-cast explain`: one number in every round mode, bit by bit.

A short file because each command has one.
"""

from __future__ import annotations

from typing import Annotated

import typer

from pypto_cast.cast.explanation import explain
from pypto_cast.cli.app import ChipName, From, Json, Readings, To, readings_named
from pypto_cast.dtypes.names import dtype_named
from pypto_cast.options.context import options
from pypto_cast.report import terminal


def run_explain(
    number: Annotated[
        str, typer.Argument(metavar="NUMBER", help="0.1, 0x1.8p3, inf, nan, or code:0x3dcccccd.")
    ],
    from_: From,
    to: To,
    chip: ChipName = None,
    reading: Readings = None,
    json: Json = False,
) -> None:
    """Show how every round mode rounds one number, bit by bit."""
    with options(chip=chip, readings=readings_named(reading)):
        found = explain(number, dtype_named(from_), dtype_named(to))
    terminal.show(found.report, as_json=json)
