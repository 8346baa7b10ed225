"""What the commands print, as text for people; stdout only, and a progress bar on stderr."""

from __future__ import annotations

import contextlib
import json as _json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console, RenderableType
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ascend_kernels.matrix_table import MatrixRow
from pypto_cast.cast_plan import CastPlan
from pypto_cast.cast_report import CastReport
from pypto_cast.checkpoints.casting import CheckpointCast, Job, Outcome
from pypto_cast.cli.explanation import Explanation
from pypto_cast.cli.fitted import Cell, Column, FittedTable, shortened
from pypto_cast.cli.main import plural, printable
from pypto_cast.cli.run import CastRun
from pypto_cast.cli.traced import TracedCast
from pypto_cast.dtypes import CastMode, SaturationMode
from pypto_cast.tensors.tensor import Tensor
from simulator.numbers.formats import Format
from simulator.numbers.literals import short_text
from simulator.traces.perfetto import PIPE_NAMES
from simulator.traces.trace import PIPES, text
from tiling.cost import NOT_MEASURED
from tiling.ub import aligned_elems

_PIPE_WIDTH: Final = 200
_WIDE: Final = 90
_OFF: Final = "SaturationMode.OFF"
_COUNTS: Final = ("over-\nflow", "NaN", "zero", "sub-\nnormal", "max\nulp")


def json(document: Any) -> None:
    """Print a document as JSON that every parser takes."""
    print(_json.dumps(document, indent=2, allow_nan=False))


def cast(
    source: Path,
    output: Path | None,
    tensor: Tensor,
    satmode: SaturationMode,
    done: CastRun,
    *,
    is_tile_chosen: bool,
) -> None:
    """Show a cast: what was done, the tile plan, the report.

    Args:
        source: the input.
        output: where the result is, if it was written.
        tensor: what was cast.
        satmode: as asked for.
        done: the cast.
        is_tile_chosen: the planner chose the tile shape, not the user.
    """
    src, dst = tensor.dtype.format, done.result.dtype.format
    title = f"{printable(str(source))}: {src} -> {dst}"
    table = pairs()
    if done.plan is None:
        table.add_row("plan", f"none: it is {dst} already")
    else:
        title = ", ".join([title, *_modes(done.plan, satmode)])
        _add_plan(table, done.plan, is_tile_chosen=is_tile_chosen)
    _add_report(table, done.report)
    dtype = done.result.numpy().dtype
    # .npy has no name for a dtype that numpy lacks.
    is_named = np.lib.format.descr_to_dtype(np.lib.format.dtype_to_descr(dtype)) == dtype
    back = "" if is_named else f"; to read it: numpy.load(...).view(ml_dtypes.{dtype.name})"
    show(heading(title), table, *(Text(line.plain + back) for line in _written([output])))


def checkpoint(work: CheckpointCast, output: Path | None, outcomes: Sequence[Outcome]) -> None:
    """Show a cast checkpoint: the largest tensor's plan, a row per tensor, the totals."""
    is_default = work.mode is CastMode.CAST_NONE
    mode = "default modes" if is_default else f"{work.mode.name} where a pair has it"
    title = f"{printable(str(work.checkpoint.path))} -> {work.dst.format}, {mode}"
    if work.satmode is SaturationMode.OFF:
        title += f", {_OFF}"
    parts: list[RenderableType] = [heading(title)]
    largest = work.largest
    if largest is not None and largest.plan is not None:
        table = pairs()
        table.add_row("largest", shortened(_name(largest), _console().width // 2))
        _add_plan(table, largest.plan)
        parts.append(table)
    done = [(o.job, o.job.plan, o.report) for o in outcomes]
    cast_rows = [_row(job, plan, report) for job, plan, report in done if plan and report]
    unchanged = [job for job, plan, _ in done if plan is None]
    if cast_rows:
        parts.append(_tensors(cast_rows, str(work.dst.format)))
    if unchanged:
        parts.append(_unchanged(unchanged))
    bytes_in = sum(job.stored.size_bytes for job, _, _ in done)
    bytes_out = sum(job.result.size_bytes for job, _, _ in done)
    table = pairs()
    table.add_row(
        "total",
        f"{plural(len(cast_rows), 'tensor')} cast, {len(unchanged):,} unchanged, "
        f"{bytes_in:,} B -> {bytes_out:,} B",
    )
    if cast_rows:
        _add_report(table, sum((report for _, _, report in done if report), CastReport()))
    show(*parts, table, *_written([output]))


def matrix(rows: Sequence[MatrixRow]) -> None:
    """Show the support table; the default mode is the one in brackets."""
    cells = []
    for row in rows:
        modes = " ".join(f"[{mode}]" if mode == row.default else mode for mode in row.modes)
        off = "low bits" if row.off_acts else ""
        cells.append((row.source, row.destination, modes or row.no_modes, row.overflow, off))
    headers = ("from", "to", "modes, [default]", "overflow", "sat. OFF")
    show(FittedTable(columns=tuple(Column(header=name) for name in headers), rows=cells))


def explanation(found: Explanation) -> None:
    """Show the bits of a number, where they are cut, and what each mode makes of them."""
    table = pairs()
    if found.rounded_from is not None:
        table.add_row("written", f"{printable(found.literal)}, which {found.src} cannot hold")
    table.add_row("value", str(found.value))
    table.add_row("bits", f"{found.bits}  {hex_code(found.code, found.src)}")
    cut = found.cut
    if cut is not None:
        table.add_row("kept", f"{cut.kept} x 2^{cut.quantum}")
        dropped = f"{cut.dropped}  guard {cut.guard:d}, sticky {cut.sticky:d}"
        table.add_row("dropped", dropped if cut.dropped else "nothing: the value fits")
    show(heading(f"{printable(found.literal)}: {found.src} -> {found.dst}"), table, _by_mode(found))


def trace(
    source: Path, outputs: Sequence[Path], found: TracedCast, *, is_tile_chosen: bool
) -> None:
    """Show a cast's plan, and without an output what its timeline adds up to."""
    table = pairs()
    _add_plan(table, found.plan, is_tile_chosen=is_tile_chosen)
    if not outputs:
        _add_timeline(table, found)
    table.add_row("cost set", f"{found.parameters}; {NOT_MEASURED}")
    show(heading(trace_title(source, found)), table, *_written(outputs))


def trace_title(source: Path, found: TracedCast) -> str:
    """What is traced, in a line."""
    rule = found.plan.resolution.rule
    title = f"{printable(str(source))}: {rule.src} -> {rule.dst}"
    return ", ".join([title, *_modes(found.plan, SaturationMode.ON)])


def trace_listing(found: TracedCast) -> None:
    """Print a line per instruction."""
    sys.stdout.writelines(f"{line}\n" for line in text(found.events()))


@contextlib.contextmanager
def progress(total_bytes: int) -> Iterator[Callable[[int], object]]:
    """A progress bar, where there is a terminal to see it; yields what advances it."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda advance: None
        return
    columns = (TextColumn("casting"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task("", total=total_bytes)
        yield lambda advance: shown.advance(task, advance)


def _console() -> Console:
    """A console as wide as the terminal; into a pipe or a file, as wide as a report needs."""
    fixed = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if fixed else _PIPE_WIDTH, highlight=False, markup=False, emoji=False)


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


def heading(text: str) -> Text:
    """The first line of a report."""
    return Text(text, style="bold")


def _written(outputs: Sequence[Path | None]) -> list[Text]:
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


def _modes(plan: CastPlan, satmode: SaturationMode) -> list[str]:
    """The modes that apply, as far as there is a choice."""
    mode = plan.resolution.mode
    words = [f"CAST_{mode}"] if mode is not None else []
    acts = satmode is SaturationMode.OFF and plan.resolution.rule.off
    return [*words, _OFF] if acts else words


def _add_plan(table: Table, plan: CastPlan, *, is_tile_chosen: bool = False) -> None:
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


def _add_timeline(table: Table, found: TracedCast) -> None:
    """Makespan, work of the pipes and GM traffic."""
    added, costs = found.timeline(), found.parameters
    seconds = added.makespan_cycles / costs.clock_hz
    cores = plural(len(found.cores), "core")
    table.add_row(
        "makespan",
        f"{seconds * 1e6:,.2f} us, {added.makespan_cycles:,.0f} cycles, of {cores}, "
        "without the launch",
    )
    for number, pipe in enumerate(PIPES):
        limiting = ", the limiting pipe" if pipe is added.limiting_pipe else ""
        share = f"{added.busy_share(pipe):>6.1%}  {PIPE_NAMES[pipe]}{limiting}"
        table.add_row("" if number else "busy", share)
    whose = "these cores'" if len(found.cores) > 1 else "this core's"
    # Cores that were not looked at use GM too, each its equal share.
    part = len(found.cores) / len(found.program.cores)
    table.add_row(
        "GM traffic",
        f"{added.copied_bytes:,} B at {added.copied_bytes / seconds / 1e9:,.0f} GB/s; {whose} "
        f"share of the chip's is {part * costs.gm_bytes_per_second / 1e9:,.0f}",
    )


def _add_report(table: Table, report: CastReport) -> None:
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
    name = shortened(printable(worst.tensor), _console().width // 2)
    where = f"{name} {list(worst.index)}".strip()
    table.add_row("", f"largest at {where}: {worst.source:.9g} -> {worst.result:.9g}")


def _tensors(rows: Sequence[Sequence[Cell]], dst: str) -> FittedTable:
    # The title names the destination; where there is room, the rows repeat it.
    wide = _console().width >= _WIDE
    return FittedTable(
        columns=(
            Column(header="tensor", is_name=True),
            Column(header="shape"),
            Column(header="cast" if wide else "from"),
            Column(header="tiles", is_minor=True),
            *(Column(header=name, is_number=True) for name in _COUNTS),
        ),
        rows=[
            [name, shape, f"{source} -> {dst}" if wide else source, *rest]
            for name, shape, source, *rest in rows
        ],
    )


def _row(job: Job, plan: CastPlan, report: CastReport) -> list[Cell]:
    shape = str(list(job.stored.shape))
    if job.is_folded:
        shape += f" folded to {list(job.shape)}"
    tiles = plan.tiles
    whole = tiles.tile_shape == tiles.shape
    counts = (report.overflows, report.nans_out, report.zeros, report.subnormals)
    return [
        _name(job),
        shape,
        job.stored.dtype_in_words,
        "1 tile" if whole else f"{len(tiles.grid):,} x {list(tiles.tile_shape)}",
        *(Text(f"{count:,}", style="yellow" if count else "dim") for count in counts),
        f"{report.ulp_max:.4g}",
    ]


def _unchanged(jobs: Sequence[Job]) -> FittedTable:
    return FittedTable(
        columns=(
            Column(header="unchanged", is_name=True),
            Column(header="shape"),
            Column(header="why"),
        ),
        rows=[(_name(job), str(list(job.stored.shape)), job.reason) for job in jobs],
    )


def _by_mode(found: Explanation) -> FittedTable:
    has_off = any(result.off is not None for result in found.results)
    headers = ("mode", "code", "bits", "value", "error", "")
    off = Column(header="satmode OFF", is_number=True)
    rows = []
    for result in found.results:
        cells = (
            result.mode or "any",
            hex_code(result.code, found.dst),
            result.bits,
            short_text(str(result.value)),
            "" if result.ulp_error is None else f"{float(result.ulp_error):+.4g} ulp",
            ", ".join(["default"] * result.is_default + [result.note] * bool(result.note)),
        )
        rows.append((*cells, *([str(result.off)] if has_off else [])))
    return FittedTable(
        columns=(*(Column(header=name) for name in headers), *([off] if has_off else [])),
        rows=rows,
    )


def _name(job: Job) -> str:
    return printable(job.stored.name)


def hex_code(code: int, fmt: Format) -> str:
    """A code with as many digits as its format has."""
    return f"{code:#0{2 + fmt.code_dtype.itemsize * 2}x}"
