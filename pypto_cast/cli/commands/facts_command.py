"""`pypto-cast facts`: the facts that a device check wrote to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pypto_cast.cli import text as render
from pypto_cast.cli.app import Json
from pypto_cast.cli.commands.device_check_command import show_facts
from pypto_cast.device.facts import read_facts


def run_facts(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="What device-check wrote.")],
    as_json: Json = False,
) -> None:
    """Show what was measured on a device, beside what was assumed."""
    found = read_facts(file)
    if as_json:
        render.json(found.document())
    else:
        show_facts(found)
