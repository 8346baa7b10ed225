"""The commands and their options, in typer's terms."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import numpy as np
import typer

import pypto_cast
from ascend_kernels import matrix_table
from pypto_cast.checkpoints.casting import CheckpointCast, Outcome, carry_out, plan_checkpoint
from pypto_cast.checkpoints.stored import read_header
from pypto_cast.cli import as_json, timeline_png
from pypto_cast.cli import text as render
from pypto_cast.cli.compare_command import run_compare
from pypto_cast.cli.explanation import explain
from pypto_cast.cli.files import check_free, new_file, read_tensor
from pypto_cast.cli.names import tile_named
from pypto_cast.cli.run import run, without_advice
from pypto_cast.cli.sweep_command import run_sweep
from pypto_cast.cli.traced import traced
from pypto_cast.cli.tune_command import run_tune
from pypto_cast.cli.verify_command import run_verify
from pypto_cast.names import dtype_named, mode_named, satmode_named
from pypto_cast.options import options
from simulator.traces.perfetto import perfetto
from tiling.chips import CHIPS, DEFAULT_CHIP
from tiling.cost import COST_SETS, DEFAULT_COST_SET, cost_set

_COMPLETE: Final = "_PYPTO_CAST_COMPLETE"
"""Set by the shell while it asks for completions."""

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

To = Annotated[str, typer.Option("--to", metavar="DTYPE", help="Destination, such as DT_BF16.")]
Mode = Annotated[
    str, typer.Option(metavar="MODE", help="Round mode, such as CAST_RINT; CAST_NONE: default.")
]
Satmode = Annotated[
    str, typer.Option(metavar="ON|OFF", help="ON clamps integers out of range, OFF keeps low bits.")
]
ChipName = Annotated[
    str, typer.Option("--chip", metavar="NAME", help=f"One of {', '.join(CHIPS)}.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result there.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def invoke(arguments: list[str]) -> int:
    """Parse the arguments and run the command they name; errors are raised, not printed.

    Returns:
        The exit code that the command asked for, 0 unless it did.
    """
    command = typer.main.get_command(app)
    if _COMPLETE in os.environ:
        command.main(arguments, "pypto-cast")
    # Not command.main(): it turns interrupts into exit codes of its own and prints on the way.
    try:
        with command.make_context("pypto-cast", arguments) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    return 0


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pypto-cast {pypto_cast.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Number conversion on Ascend A2/A3 NPUs, bit for bit, on any CPU."""


def _cast(
    source: Annotated[Path, typer.Argument(metavar="IN.npy", help="The array to cast.")],
    to: To,
    mode: Mode = "CAST_NONE",
    satmode: Satmode = "ON",
    tile: Annotated[
        str | None, typer.Option(metavar="N,N", help="Tile shape; the planner chooses if not set.")
    ] = None,
    chip: ChipName = DEFAULT_CHIP.name,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse what upstream replaces or tolerates.")
    ] = False,
    inf_nan: Annotated[
        bool, typer.Option("--inf-nan/--no-inf-nan", help="Keep infinities and NaN, or saturate.")
    ] = True,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="DTYPE", help="What codes the file has: DT_BF16, DT_INT4."),
    ] = None,
    output: Output = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Cast an array; show the tile plan and what became of the numbers."""
    dst, round_mode, sat = dtype_named(to), mode_named(mode), satmode_named(satmode)
    tile_shape = tile_named(tile) if tile is not None else ()
    with (
        options(vec_tile_shapes=tile_shape, strict=strict, inf_nan_mode=inf_nan, chip=chip),
        without_advice(),
        _output(output, force, source) as out,
    ):
        tensor = read_tensor(source, None if from_ is None else dtype_named(from_))
        done = run(tensor, dst, round_mode, sat)
        if out is not None:
            np.save(out, done.result.numpy(), allow_pickle=False)
    if json:
        render.json(as_json.cast(source, output, tensor, sat, done))
    else:
        render.cast(source, output, tensor, sat, done, is_tile_chosen=tile is None)


def _checkpoint(
    source: Annotated[Path, typer.Argument(metavar="IN.safetensors", help="The checkpoint.")],
    to: To,
    mode: Mode = "CAST_NONE",
    satmode: Satmode = "ON",
    tile: Annotated[
        list[str] | None,
        typer.Option(metavar="N,N", help="Tile shape of tensors with as many dimensions; repeat."),
    ] = None,
    chip: ChipName = DEFAULT_CHIP.name,
    output: Output = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Cast every tensor of a safetensors file that can be; copy and name the others."""
    dst, round_mode, sat = dtype_named(to), mode_named(mode), satmode_named(satmode)
    tiles = [tile_named(entry) for entry in tile or ()]
    if output is not None:
        check_free(output, force=force, inputs=[source])
    with options(chip=chip):
        work = plan_checkpoint(read_header(source), dst, round_mode, sat, tiles)
        with _output(output, force, source) as out:
            outcomes = list(_with_progress(work, out))
    if json:
        render.json(as_json.checkpoint(work, output, outcomes))
    else:
        render.checkpoint(work, output, outcomes)


def _matrix(json: Json = False) -> None:
    """Show which casts A2/A3 has, their modes, and what overflow does."""
    rows = matrix_table.rows()
    if json:
        render.json([as_json.matrix_row(row) for row in rows])
    else:
        render.matrix(rows)


def _explain(
    number: Annotated[
        str, typer.Argument(metavar="NUMBER", help="0.1, 0x1.8p3, inf, nan, or code:0x3dcccccd.")
    ],
    from_: Annotated[str, typer.Option("--from", metavar="DTYPE", help="Source, such as DT_FP32.")],
    to: To,
    json: Json = False,
) -> None:
    """Show what every round mode makes of one number, bit by bit."""
    explanation = explain(number, dtype_named(from_), dtype_named(to))
    if json:
        render.json(as_json.explanation(explanation))
    else:
        render.explanation(explanation)


def _trace(
    source: Annotated[Path, typer.Argument(metavar="IN.npy", help="An array to cast.")],
    to: To,
    mode: Mode = "CAST_NONE",
    satmode: Satmode = "ON",
    tile: Annotated[
        str | None, typer.Option(metavar="N,N", help="Tile shape; the planner chooses if not set.")
    ] = None,
    chip: ChipName = DEFAULT_CHIP.name,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="DTYPE", help="What codes the file has: DT_BF16, DT_INT4."),
    ] = None,
    costs: Annotated[
        str, typer.Option("--cost-set", metavar="NAME", help=f"One of {', '.join(COST_SETS)}.")
    ] = DEFAULT_COST_SET.name,
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
    if len({os.path.realpath(path) for path in outputs}) < len(outputs):
        raise ValueError("trace and picture would be the same file; give each its own")
    if png is not None:
        timeline_png.check_picture(png)
    for path in outputs:
        check_free(path, force=force, inputs=[source])
    dst, round_mode, sat = dtype_named(to), mode_named(mode), satmode_named(satmode)
    tile_shape = tile_named(tile) if tile is not None else ()
    with options(vec_tile_shapes=tile_shape, chip=chip), without_advice():
        held = None if from_ is None else dtype_named(from_)
        found = traced(source, held, dst, round_mode, sat, cost_set(costs), cores)
    if text:
        render.trace_listing(found)
        return
    with _output(output, force, source) as file, _output(png, force, source) as picture:
        if file is not None:
            pieces = perfetto(found.program, found.parameters, found.cores)
            file.writelines(piece.encode() for piece in pieces)
        if picture is not None:
            drawn = found if cores is not None else found.first(timeline_png.SHOWN_CORES)
            timeline_png.draw(drawn, render.trace_title(source, found), picture)
    if json:
        render.json(as_json.trace(source, output, png, found))
    else:
        render.trace(source, outputs, found, is_tile_chosen=tile is None)


@contextlib.contextmanager
def _output(path: Path | None, force: bool, source: Path) -> Iterator[BinaryIO | None]:
    """The file to write, or none."""
    if path is None:
        yield None
    else:
        with new_file(path, force=force, inputs=[source]) as file:
            yield file


def _with_progress(work: CheckpointCast, out: BinaryIO | None) -> Iterator[Outcome]:
    total_bytes = sum(job.stored.size_bytes for job in work.jobs)
    with render.progress(total_bytes) as advance:
        for outcome in carry_out(work, out):
            advance(outcome.job.stored.size_bytes)
            yield outcome


_NUMBER: Final = {"ignore_unknown_options": True}
"""A number may begin with a minus."""
app.command("cast")(_cast)
app.command("checkpoint")(_checkpoint)
app.command("matrix")(_matrix)
app.command("explain", context_settings=_NUMBER)(_explain)
app.command("compare", context_settings=_NUMBER)(run_compare)
app.command("trace")(_trace)
app.command("tune")(run_tune)
app.command("sweep")(run_sweep)
app.command("verify")(run_verify)
