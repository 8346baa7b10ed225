"""`pypto-cast verify`: the fast paths against the definition, with a certificate if they agree."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from ascend_kernels.matrix import MATRIX
from pypto_cast.cli.files import check_free, new_file
from pypto_cast.cli.verifying import certificate, pair_named, subjects
from pypto_cast.names import mode_named
from simulator.numbers.verify import BLOCK_CODES, BlockResult, Mismatch, Subject, verify

_DIFFERENT = 1


def run_verify(
    pair: Annotated[
        str | None, typer.Option(metavar="SRC-DST", help="Such as fp32-fp16; all if not given.")
    ] = None,
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="Such as CAST_RINT; all of the pair if not given.")
    ] = "CAST_NONE",
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="All 2^32 codes of FP32 and INT32 sources.")
    ] = False,
    variants: Annotated[
        bool, typer.Option("--variants", help="Also SaturationMode.OFF and saturated overflow.")
    ] = False,
    jobs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Processes; all cores if not given.")
    ] = os.cpu_count() or 1,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Write certificates there; an interrupted run resumes.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace certificates.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print certificates as JSON.")] = False,
) -> None:
    """Compare the fast paths with the definition: every code up to 16 bits, else the boundaries and
    random codes, or with --exhaustive all 2^32.
    """
    rules = [pair_named(pair)] if pair is not None else list(MATRIX.values())
    one = mode_named(mode).round_mode
    chosen = [
        subject
        for rule in rules
        if one is None or one in rule.modes
        for subject in subjects(rule, one, exhaustive=exhaustive, variants=variants)
    ]
    if not chosen:
        known = ", ".join(f"CAST_{m}" for rule in rules for m in rule.modes) or "none"
        raise ValueError(f"{pair or 'no pair'} has no mode {mode}; it has {known}")
    if out is not None and not out.is_dir():
        raise NotADirectoryError(f"{out} is no directory; certificates go into one")
    for subject in chosen if out is not None else ():
        check_free(_path(out, subject), force=force)
    written = [_verified(subject, jobs, out, force) for subject in chosen]
    if as_json:
        print(json.dumps([json.loads(text) for text, _ in written if text], indent=1))
    else:
        _show(chosen, [differences for _, differences in written])
    if any(differences for _, differences in written):
        raise typer.Exit(_DIFFERENT)


def _verified(
    subject: Subject, jobs: int, out: Path | None, force: bool
) -> tuple[str, list[Mismatch]]:
    """Compare one subject; its certificate, or where it differs."""
    state = None if out is None else out / f".{subject.name}.partial"
    results: dict[int, BlockResult] = {}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    shown = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with shown as progress:
        task = progress.add_task(subject.name, total=subject.blocks, rate="")
        for result in verify(subject, jobs=jobs, state=state):
            results[result.block] = result
            speed = progress.tasks[task].speed
            rate = "" if speed is None else f"{speed * BLOCK_CODES / 1e6:.0f} Mcodes/s"
            progress.update(task, advance=1, rate=rate)
            if result.mismatches:
                break
    differences = [mismatch for result in results.values() for mismatch in result.mismatches]
    if differences:
        return "", differences
    text = certificate(subject, results).to_json()
    if out is not None:
        with new_file(_path(out, subject), force=force) as file:
            file.write(text.encode())
    if state is not None:
        state.unlink(missing_ok=True)
    return text, []


def _path(out: Path | None, subject: Subject) -> Path:
    return (out or Path()) / f"{subject.name}.json"


def _show(chosen: list[Subject], differences: list[list[Mismatch]]) -> None:
    """A line per comparison; the first codes that differ below it."""
    table = Table(box=None, pad_edge=False)
    for heading in ("comparison", "codes", "result"):
        table.add_column(heading, justify="right" if heading == "codes" else "left")
    for subject, found in zip(chosen, differences, strict=True):
        table.add_row(subject.name, f"{subject.total_codes:,}", "differs" if found else "equal")
        for one in found:
            table.add_row(
                f"  {one.code:#x}", "", f"fast {one.fast:#x}, definition {one.definition:#x}"
            )
    Console().print(table)
