"""`pypto-cast tune`: the tile shapes of a cast, ranked; as a table, JSON, CSV, HTML or a config."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer
from rich.console import RenderableType
from rich.text import Text

from pypto_cast.cli import text as render
from pypto_cast.cli.app import ChipName, Facts, From, Json, Mode
from pypto_cast.cli.text import Column, FittedTable
from pypto_cast.dtypes.names import dtype_named, mode_named, satmode_named
from pypto_cast.options.context import options
from pypto_cast.report.text_format import plural, printable, shape_named
from pypto_cast.tensors.array_files import check_apart, check_free, new_file
from pypto_cast.tuning.records import (
    COLUMNS,
    candidate_fields,
    csv_rows,
    request_fields,
    result_fields,
)
from pypto_cast.tuning.report_page import page
from pypto_cast.tuning.tune import TunedCast, candidate_table, tune
from pypto_cast.tuning.tuner_config import NO_KERNEL, kernel_line_named, tuner_config
from tiling.cost import COST_SETS, DEFAULT_COST_SET
from tiling.ranking import OBJECTIVES, Objective
from tiling.search import MAX_TILES

_STDOUT: Final = Path("-")


def run_tune(
    shape: Annotated[str, typer.Option(metavar="N,N", help="The tensor's, such as 32,127,128,64.")],
    from_: From,
    to: Annotated[str, typer.Option("--to", metavar="DTYPE", help="Destination, such as DT_FP16.")],
    mode: Mode = "CAST_NONE",
    satmode: Annotated[
        str, typer.Option(metavar="ON|OFF", help="OFF takes more vector work on some pairs.")
    ] = "ON",
    chip: ChipName = None,
    cost: Annotated[
        str | None,
        typer.Option(
            "--cost-set",
            metavar="NAME|FILE.toml",
            help=f"One of {', '.join(COST_SETS)}, or a file; {DEFAULT_COST_SET} if not set.",
        ),
    ] = None,
    facts: Facts = None,
    objective: Annotated[
        str,
        typer.Option(
            metavar="|".join(OBJECTIVES),
            help="Least time, least UB near it, or least bad over all cost sets.",
        ),
    ] = OBJECTIVES[0],
    top: Annotated[int, typer.Option(metavar="N", help="Candidates to show.")] = 10,
    max_tiles: Annotated[
        int, typer.Option(metavar="N", help="Leave out what makes so many tiles.")
    ] = MAX_TILES,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a report with figures there.")
    ] = None,
    as_csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Write a row per candidate there; -: print."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the result there as JSON."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the candidates there for upstream's tuner."),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:LINE",
            help="Where the kernel that --config is for calls set_vec_tile_shapes.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: Json = False,
) -> None:
    """Rank the tile shapes of a cast by estimated cost.

    Nothing is cast and nothing was measured: the result names its cost set and gives the range over
    all of them. The report is one HTML file that needs no network.
    """
    if kernel is not None and config is None:
        raise ValueError("--kernel goes with --config")
    if as_json and as_csv == _STDOUT:
        raise ValueError("--json and --csv - exclude each other; choose one")
    line = NO_KERNEL if kernel is None else kernel_line_named(kernel)
    asked = [path for path in (html, as_csv, output, config) if path is not None]
    cost_set = None if cost is None else _cost_named(cost)
    named = (cost_set, line.path if kernel is not None else None, facts)
    inputs = [Path(one) for one in named if one is not None]
    _check_outputs(asked, as_csv, inputs, force=force)
    with options(chip=chip, facts=facts):
        found = tune(
            shape_named(shape),
            dtype_named(from_),
            dtype_named(to),
            mode=mode_named(mode),
            satmode=satmode_named(satmode),
            # Whether it is one is the tuner's to say, which lists them.
            objective=cast(Objective, objective),
            top=top,
            max_tiles=max_tiles,
            cost_set=cost_set,
        )
    makers: list[tuple[Path | None, Callable[[], str]]] = [
        (html, lambda: page(found)),
        (as_csv, lambda: _csv(_document(found))),
        (output, lambda: _json(_document(found))),
        (config, lambda: _json(tuner_config(_tiles(found), line))),
    ]
    texts = {path: make() for path, make in makers if path is not None}
    with contextlib.ExitStack() as stack:
        for path in asked:
            if path != _STDOUT:
                stack.enter_context(new_file(path, force=force, inputs=inputs)).write(
                    texts[path].encode()
                )
    if as_json or as_csv == _STDOUT:
        sys.stdout.write(_json(_document(found)) if as_json else texts[_STDOUT])
        return
    written = [f"written to {printable(str(path))}" for path in asked]
    if config is not None and kernel is None:
        written.append(
            f"{printable(str(config))} names {NO_KERNEL.path}, line {NO_KERNEL.line}: put your "
            "kernel there, or give --kernel FILE.py:LINE"
        )
    _show(found, written)


def _check_outputs(
    asked: list[Path], as_csv: Path | None, inputs: list[Path], *, force: bool
) -> None:
    """Refuse outputs that cannot be written, before anything is computed."""
    if asked.count(_STDOUT) > (as_csv == _STDOUT):
        raise ValueError("only --csv takes - to print; give the others a file, or use --json")
    files = [path for path in asked if path != _STDOUT]
    check_apart(files)
    for path in files:
        check_free(path, force=force, inputs=inputs)


def _cost_named(text: str) -> str | Path:
    """A set by its name; a text that ends in .toml, or is a path, is a file."""
    is_file = text not in COST_SETS and (text.endswith(".toml") or len(Path(text).parts) > 1)
    return Path(text) if is_file else text


def _tiles(found: TunedCast) -> list[tuple[int, ...]]:
    return [candidate.tile_shape for candidate in found.candidates]


def _document(found: TunedCast) -> dict[str, Any]:
    """The question and the result; cycles by cost set, time in us, bytes."""
    return {
        **request_fields(found),
        "best": list(found.best),
        **result_fields(found),
        "not_measured": found.parameters.standing,
        "views": [
            {
                "cost_set": view.cost_set,
                "best": list(view.best),
                "best_cycles": view.best_cycles,
                "chosen_cycles": view.chosen_cycles,
            }
            for view in found.views.values()
        ],
        "candidates": [
            {
                **candidate_fields(candidate),
                "cycles_by_set": dict(candidate.estimate.cycles_by_set),
                "pipe_cycles": {
                    str(pipe): cycles for pipe, cycles in candidate.estimate.pipe_cycles.items()
                },
            }
            for candidate in found.candidates
        ],
    }


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _csv(document: dict[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(csv_rows(document))
    return text.getvalue()


def _show(found: TunedCast, written: list[str]) -> None:
    best = found.candidates[0]
    facts = render.pairs()
    facts.add_row("chip", f"{found.chip}, {best.busy_cores} of {best.vector_cores} cores busy")
    facts.add_row("best", f"{list(found.best)}: {best.reason}")
    for number, warning in enumerate(best.warnings):
        facts.add_row("" if number else "warnings", warning)
    facts.add_row("choice", printable(found.stability))
    for number, note in enumerate(found.notes):
        facts.add_row("" if number else "notes", printable(note))
    facts.add_row(
        "cost set",
        f"{printable(found.parameters.name)}, objective {found.objective}; "
        f"{printable(found.parameters.standing)}",
    )
    title = f"{found.title}, {plural(found.legal_count, 'legal tile shape')}"
    parts: list[RenderableType] = [_candidates(found), facts]
    if written:
        parts.append(Text("\n".join(written)))
    render.show(render.heading(title), *parts)


def _candidates(found: TunedCast) -> FittedTable:
    table = candidate_table("", found.candidates)
    rank, tile, *numbers = table.headings
    return FittedTable(
        columns=(
            Column(header=rank),
            Column(header=tile),
            *(Column(header=name, is_number=True) for name in numbers),
        ),
        rows=list(table.rows),
    )
