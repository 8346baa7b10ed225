"""`pypto-cast tune`: the tile shapes of a cast, ranked; as a table, JSON, CSV, HTML or a config."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer

from pypto_cast.cli.app import ChipName, Facts, From, Json, Mode, To
from pypto_cast.dtypes.names import dtype_named, mode_named, satmode_named
from pypto_cast.options.context import options
from pypto_cast.report import terminal
from pypto_cast.report.page import check_pages
from pypto_cast.report.report import document, json_text
from pypto_cast.report.text_format import printable, shape_named, written
from pypto_cast.tensors.array_files import check_apart, check_free, new_file
from pypto_cast.tuning.records import csv_text
from pypto_cast.tuning.report_page import page
from pypto_cast.tuning.tune import tune
from pypto_cast.tuning.tuner_config import NO_KERNEL, kernel_line_named, tuner_config
from tiling.cost import COST_SETS, DEFAULT_COST_SET
from tiling.ranking import OBJECTIVES, Objective
from tiling.search import MAX_TILES

_STDOUT: Final = Path("-")


def run_tune(
    shape: Annotated[str, typer.Option(metavar="N,N", help="The tensor's, such as 32,127,128,64.")],
    from_: From,
    to: To,
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
    if html is not None:
        check_pages()
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
    report = found.report
    makers: list[tuple[Path | None, Callable[[], str]]] = [
        (html, lambda: page(found)),
        (as_csv, lambda: csv_text([document(report)])),
        (output, lambda: json_text(report)),
        (config, lambda: _json(tuner_config([each.tile_shape for each in found.candidates], line))),
    ]
    texts = {path: make() for path, make in makers if path is not None}
    with contextlib.ExitStack() as stack:
        for path in asked:
            if path != _STDOUT:
                stack.enter_context(new_file(path, force=force, inputs=inputs)).write(
                    texts[path].encode()
                )
    if as_json or as_csv == _STDOUT:
        sys.stdout.write(json_text(report) if as_json else texts[_STDOUT])
        return
    notes = written(asked)
    if config is not None and kernel is None:
        notes += (
            f"{printable(str(config))} names {NO_KERNEL.path}, line {NO_KERNEL.line}: put your "
            "kernel there, or give --kernel FILE.py:LINE",
        )
    terminal.show(dataclasses.replace(report, notes=notes))


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


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
