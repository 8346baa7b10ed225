"""`pypto-cast facts`: every fact about a device, as assumed and as a file has it measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pypto_cast.cli.app import Force, Json
from pypto_cast.device.check import assumed_facts
from pypto_cast.device.device_model import cost_document
from pypto_cast.device.facts import PARTS, DeviceFact, facts_report, read_facts
from pypto_cast.report import terminal
from pypto_cast.tensors.array_files import check_free, new_file
from tiling.chips import A2_A3


def run_facts(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE.json]", help="Facts file of device-check.")
    ] = None,
    cost_set: Annotated[
        Path | None,
        typer.Option("--cost-set", metavar="FILE.toml", help="Write the measured cost set there."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show the assumptions about a device, and measured facts."""
    if file is None:
        if cost_set is not None:
            raise ValueError("--cost-set goes with a facts file, which has the figures")
        terminal.show(facts_report(_assumed()), as_json=as_json)
        return
    found = read_facts(file)
    if cost_set is not None:
        check_free(cost_set, force=force, inputs=[file])
        document = cost_document(found)
        if not document:
            raise ValueError(f"{file} has no cycles: pypto-cast device-check --only cycles")
        with new_file(cost_set, force=force, inputs=[file]) as out:
            out.write(_toml(document).encode())
    measured = {fact.name for fact in found.facts}
    others = (
        ()
        if as_json
        else tuple(fact for fact in _assumed(found.device.family) if fact.name not in measured)
    )
    whole = facts_report(found.facts + others, found.device, [cost_set], found.run)
    terminal.show(whole, as_json=as_json)


def _assumed(family: str = A2_A3) -> tuple[DeviceFact, ...]:
    return tuple(fact for part in PARTS for fact in assumed_facts(part, family=family))


def _toml(document: Mapping[str, Any]) -> str:
    """A cost set as TOML, whose texts and numbers are written as in JSON."""
    tables = {key: value for key, value in document.items() if isinstance(value, dict)}
    lines = [f"{key} = {json.dumps(document[key])}" for key in document if key not in tables]
    for key, table in tables.items():
        lines += ["", f"[{key}]", *(f"{name} = {json.dumps(x)}" for name, x in table.items())]
    return "\n".join(lines) + "\n"
