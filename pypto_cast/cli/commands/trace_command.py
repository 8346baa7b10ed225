"""`pypto-cast trace`: a cast against the clock, as figures, a listing, a picture or a file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from pypto_cast.cast.cast_run import TracedCast, trace_cast, without_advice
from pypto_cast.cli import timeline_png
from pypto_cast.cli.app import (
    Array,
    ChipName,
    Facts,
    Force,
    Held,
    Json,
    Mode,
    Readings,
    Satmode,
    Tile,
    To,
    readings_named,
)
from pypto_cast.dtypes.data_types import CastMode
from pypto_cast.dtypes.names import dtype_named, mode_named, satmode_named
from pypto_cast.options.context import options
from pypto_cast.report import terminal
from pypto_cast.report.report import Fact, Report, plain, said
from pypto_cast.report.text_format import plural, printable, tile_named, written
from pypto_cast.tensors.array_files import check_apart, check_free, output_file, read_tensor
from simulator.numbers.formats import FP32
from simulator.traces.perfetto import PIPE_NAMES, perfetto
from simulator.traces.trace import PIPES, Timeline
from simulator.traces.trace import text as event_lines
from tiling.cost import COST_SETS, DEFAULT_COST_SET, cost_set


def run_trace(
    source: Array,
    to: To,
    mode: Mode = "CAST_NONE",
    satmode: Satmode = "ON",
    tile: Tile = None,
    chip: ChipName = None,
    reading: Readings = None,
    from_: Held = None,
    costs: Annotated[
        str | None,
        typer.Option(
            "--cost-set",
            metavar="NAME",
            help=f"One of {', '.join(COST_SETS)}; {DEFAULT_COST_SET} if not set.",
        ),
    ] = None,
    facts: Facts = None,
    cores: Annotated[
        str | None,
        typer.Option(metavar="N-N", help="Such as 0-3,8; if not set all, in a picture 4."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE.json", help="Write a trace for ui.perfetto.dev."
        ),
    ] = None,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the timeline there.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="List every instruction.")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show when each instruction of a cast would run.

    By a named set of cost figures. Nothing is cast: only the array's shape and dtype matter.
    """
    outputs = [path for path in (output, png) if path is not None]
    if text and (outputs or json):
        raise ValueError("--text excludes --output, --png and --json; choose one")
    check_apart(outputs)
    if png is not None:
        timeline_png.check_picture(png)
    for path in outputs:
        check_free(path, force=force, inputs=[source])
    dst = dtype_named(to)
    round_mode = mode_named(mode)
    sat = satmode_named(satmode)
    tile_shape = tile_named(tile) if tile is not None else ()
    with (
        options(
            vec_tile_shapes=tile_shape,
            chip=chip,
            readings=readings_named(reading),
            facts=facts,
        ) as context,
        without_advice(),
    ):
        parameters = context.cost_set if costs is None else cost_set(costs)
        tensor = read_tensor(source, None if from_ is None else dtype_named(from_))
        if tensor.dtype is dst and (dst.format is not FP32 or round_mode is CastMode.CAST_NONE):
            raise ValueError(f"{source} is {dst} already: there is nothing to trace")
        found = trace_cast(tensor, dst, round_mode, sat, parameters)
    if cores is not None:
        found = found.with_cores(_cores_named(cores, found.program.cores))
    if text:
        sys.stdout.writelines(f"{line}\n" for line in event_lines(found.events()))
        return
    with (
        output_file(output, force=force, inputs=[source]) as file,
        output_file(png, force=force, inputs=[source]) as picture,
    ):
        if file is not None:
            pieces = perfetto(found.program, found.parameters, found.cores)
            file.writelines(piece.encode() for piece in pieces)
        if picture is not None:
            shown = found.cores if cores is not None else found.cores[: timeline_png.SHOWN_CORES]
            timeline_png.draw(found.with_cores(shown), _title(source, found), picture)
    terminal.show(_report(source, output, png, found, is_tile_chosen=tile is None), as_json=json)


def _cores_named(text: str, busy: range) -> tuple[int, ...]:
    """`0-3,8` as (0, 1, 2, 3, 8), each core once, in order.

    Raises:
        ValueError: no list of cores, or one of them has no work; the text says which have.
    """
    found: set[int] = set()
    for entry in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", entry, re.ASCII)
        if match is None:
            raise ValueError(f"cores are numbers and ranges, as in 0-3,8; got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last or last >= busy.stop:
            raise ValueError(
                f"no cores {entry.strip()!r} in this cast: cores 0 to {busy.stop - 1} have work"
            )
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def _title(source: Path, found: TracedCast) -> str:
    """The cast that is traced, in a line."""
    rule = found.plan.resolution.rule
    return ", ".join([f"{printable(str(source))}: {rule.src} -> {rule.dst}", *found.plan.modes])


def _report(
    source: Path,
    output: Path | None,
    picture: Path | None,
    found: TracedCast,
    *,
    is_tile_chosen: bool,
) -> Report:
    """A cast's plan and, for people only without an output, the sums of its timeline.

    Cycles of the chip's clock, time in us.
    """
    added, costs = found.timeline(), found.parameters
    rule = found.plan.resolution.rule
    seconds = added.makespan_cycles / costs.clock_hz
    timeline = () if output or picture else _timeline(found, added, seconds)
    return Report(
        kind="trace",
        title=_title(source, found),
        facts=(
            *plain(input=source, output=output, picture=picture),
            *plain(src=dtype_named(str(rule.src)).name, dst=dtype_named(str(rule.dst)).name),
            found.plan.fact(is_tile_chosen=is_tile_chosen),
            *timeline,
            *plain(cost_set=costs.name, not_measured=costs.standing, cores=found.cores),
            *plain(makespan_cycles=added.makespan_cycles, makespan_us=seconds * 1e6),
            *plain(
                busy_share={pipe.name: added.busy_share(pipe) for pipe in PIPES},
                limiting_pipe=added.limiting_pipe.name,
                copied_bytes=added.copied_bytes,
                gb_per_second=added.copied_bytes / seconds / 1e9,
            ),
            said("cost set", f"{costs}; {costs.standing}"),
        ),
        notes=written([output, picture]),
    )


def _timeline(found: TracedCast, added: Timeline, seconds: float) -> tuple[Fact, ...]:
    """Makespan, work of the pipes and GM traffic."""
    shares = [
        f"{added.busy_share(pipe):>6.1%}  {PIPE_NAMES[pipe]}"
        f"{', the limiting pipe' if pipe is added.limiting_pipe else ''}"
        for pipe in PIPES
    ]
    whose = "these cores'" if len(found.cores) > 1 else "this core's"
    # Cores that were not looked at use GM too, each its equal share.
    part = len(found.cores) / len(found.program.cores)
    return (
        said(
            "makespan",
            f"{seconds * 1e6:,.2f} us, {added.makespan_cycles:,.0f} cycles, of "
            f"{plural(len(found.cores), 'core')}, without the launch",
        ),
        said("busy", "\n".join(shares)),
        said(
            "GM traffic",
            f"{added.copied_bytes:,} B at {added.copied_bytes / seconds / 1e9:,.0f} GB/s; {whose} "
            f"share of the chip's is {part * found.parameters.gm_bytes_per_second / 1e9:,.0f}",
        ),
    )
