"""Parts of a report that several commands print, as text for people and as JSON; stdout only."""

from __future__ import annotations

import contextlib
import dataclasses
import json as _json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.progress import Progress, ProgressColumn
from rich.table import Table
from rich.text import Text

from pypto_cast.cast.cast_plan import CastPlan
from pypto_cast.cast.cast_report import CastReport
from pypto_cast.cli.fitted import shortened
from pypto_cast.dtypes.data_types import SaturationMode
from pypto_cast.report.text_format import plural, printable
from tiling.ub import aligned_elems

OFF: Final = "SaturationMode.OFF"
_PIPE_WIDTH: Final = 200


def json(document: Any) -> None:
    """Print a document as JSON that every parser takes."""
    print(_json.dumps(document, indent=2, allow_nan=False))


def _console() -> Console:
    """A console as wide as the terminal; into a pipe or a file, as wide as a report needs."""
    fixed = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if fixed else _PIPE_WIDTH, highlight=False, markup=False, emoji=False)


def width() -> int:
    """Characters on a line of the output."""
    return _console().width


def short_name(name: str) -> str:
    """A name in at most half of a line, without its middle if it is longer."""
    return shortened(printable(name), width() // 2)


def show(*parts: RenderableType) -> None:
    """Print parts with a line between; in a pipe or a file without the padding of tables."""
    console = _console()
    with contextlib.ExitStack() as stack:
        capture = None if console.is_terminal else stack.enter_context(console.capture())
        for number, part in enumerate(parts):
            if number:
                console.print()
            console.print(part, soft_wrap=isinstance(part, Text))
    if capture is not None:
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in capture.get().split("\n")[:-1])


def progress(*columns: str | ProgressColumn) -> Progress:
    """A progress bar on stderr, where there is a terminal to see it."""
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def heading(text: str) -> Text:
    """The first line of a report."""
    return Text(text, style="bold")


def written(outputs: Sequence[Path | None]) -> list[Text]:
    """A line for each file that was written."""
    lines = [f"written to {printable(str(path))}" for path in outputs if path is not None]
    return [Text("\n".join(lines))] if lines else []


def pairs() -> Table:
    """A table of two columns: what, and its value."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def columns(*headers: str) -> Table:
    """A table with a line of headers."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for header in headers:
        table.add_column(header, overflow="fold")
    return table


def modes(plan: CastPlan, satmode: SaturationMode) -> list[str]:
    """The modes that apply, as far as there is a choice."""
    mode = plan.resolution.mode
    words = [f"CAST_{mode}"] if mode is not None else []
    acts = satmode is SaturationMode.OFF and plan.resolution.rule.off
    return [*words, OFF] if acts else words


def add_plan(table: Table, plan: CastPlan, *, is_tile_chosen: bool = False) -> None:
    """Rows for a plan; with the option that sets the tile shape if the planner chose it."""
    tiles = plan.tiles
    grid = " x ".join(map(str, tiles.grid.counts))
    count = plural(len(tiles.grid), "tile")
    tails = f"tails {list(tiles.tails)}" if any(tiles.tails) else "no tails"
    table.add_row(
        "plan",
        f"{list(tiles.shape)} in {count} of {list(tiles.tile_shape)}, grid {grid}, {tails}",
    )
    if is_tile_chosen:
        unit = aligned_elems(tiles.bits, tiles.chip)
        *outer, last = tiles.tile_shape
        words = ",".join(map(str, (*outer, -(-last // unit) * unit)))
        table.add_row("", f"the planner chose the tile shape; --tile {words} sets it")
    table.add_row("", f"{tiles.busy_cores} of {tiles.chip.vector_cores} cores of {tiles.chip}")
    table.add_row(
        "", f"{tiles.tile_bytes} of {tiles.chip.ub_bytes} B of UB a tile, {tiles.buffering}"
    )


def add_report(table: Table, report: CastReport) -> None:
    """Rows for what became of the numbers."""
    table.add_row(
        "numbers",
        f"{plural(report.elems, 'element')}, {report.inexact:,} inexact, "
        f"{plural(report.overflows, 'overflow')}",
    )
    table.add_row(
        "",
        f"{report.nans_in:,} NaN in, {report.nans_out:,} out; "
        f"{report.subnormals:,} became subnormal, {report.zeros:,} became zero",
    )
    if report.worst is None:
        return
    table.add_row(
        "error",
        f"largest {report.ulp_max:.4g} ulp ({report.relative_max:.2g} relative), "
        f"mean {report.ulp_mean:.4g} ulp ({report.relative_mean:.2g})",
    )
    worst = report.worst
    where = f"{short_name(worst.tensor)} {list(worst.index)}".strip()
    table.add_row("", f"largest at {where}: {worst.source:.9g} -> {worst.result:.9g}")


def plan_document(plan: CastPlan | None) -> dict[str, Any] | None:
    """A plan for JSON."""
    if plan is None:
        return None
    tiles = plan.tiles
    mode = plan.resolution.mode
    return {
        "mode": None if mode is None else f"CAST_{mode}",
        "shape": list(tiles.shape),
        "tile_shape": list(tiles.tile_shape),
        "grid": list(tiles.grid.counts),
        "tiles": len(tiles.grid),
        "tails": list(tiles.tails),
        "chip": tiles.chip.name,
        "busy_cores": tiles.busy_cores,
        "vector_cores": tiles.chip.vector_cores,
        "tile_bytes": tiles.tile_bytes,
        "ub_bytes": tiles.chip.ub_bytes,
        "double_buffered": tiles.ub.is_double_buffered,
    }


def report_document(report: CastReport) -> dict[str, Any]:
    """A report for JSON; numbers that JSON lacks are strings in it."""
    worst = report.worst
    return {
        "elems": report.elems,
        "overflows": report.overflows,
        "nans_in": report.nans_in,
        "nans_out": report.nans_out,
        "subnormals": report.subnormals,
        "zeros": report.zeros,
        "inexact": report.inexact,
        "ulp_max": report.ulp_max,
        "ulp_mean": report.ulp_mean,
        "relative_max": report.relative_max,
        "relative_mean": report.relative_mean,
        "worst": None if worst is None else dataclasses.asdict(worst),
    }
