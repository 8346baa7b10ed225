"""`pypto-cast tune`: the tile shapes of a cast, ranked; as a table, JSON, CSV, HTML or a config."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from pypto_cast.cli.app import ChipName, Facts, Json, Mode, refuse_unread
from pypto_cast.cli.commands.certainty_command import (
    errors_at_lines,
    file_and_name,
    kernel_named,
)
from pypto_cast.cli.commands.compile_command import Inputs, declared_of
from pypto_cast.dtypes.names import dtype_named, mode_named, satmode_named
from pypto_cast.kernel.tuned_kernel import TunedKernel
from pypto_cast.options.context import options
from pypto_cast.options.releases import RELEASE_NAMES, ReleaseName
from pypto_cast.report import terminal
from pypto_cast.report.page import check_pages
from pypto_cast.report.report import document, json_text
from pypto_cast.report.text_format import printable, shape_named, written
from pypto_cast.tensors.array_files import check_apart, check_free, final_path, new_file
from pypto_cast.tensors.tensor import tensor
from pypto_cast.tuning.kernel_search import Kept, Progress, tune_kernel
from pypto_cast.tuning.records import csv_text
from pypto_cast.tuning.report_page import page
from pypto_cast.tuning.sweep.jobs import open_results
from pypto_cast.tuning.tune import tune
from pypto_cast.tuning.tuner_config import NO_KERNEL, kernel_line_named, tuner_config
from pypto_cast.unfinished import unfinished
from pypto_cast.upstream.import_alias import as_pypto
from tiling.cost import COST_SETS, DEFAULT_COST_SET
from tiling.ranking import OBJECTIVES, Objective
from tiling.search import MAX_TILES

_STDOUT: Final = Path("-")
_OF_A_KERNEL: Final = ("inputs", "release", "seconds", "jobs", "cache", "write")
_OF_A_CAST: Final = (
    *("from_", "to", "mode", "satmode", "cost", "facts", "objective", "max_tiles", "html"),
    *("as_csv", "config", "config_line", "kernel"),
)


class FormerOptionWarning(UserWarning):
    """An option of a command was given by its former name."""


def run_tune(
    context: typer.Context,
    tuned: Annotated[
        str | None,
        typer.Argument(metavar="[FILE::KERNEL]", help="A kernel in place of a cast."),
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N,N", help="The tensor's, such as 32,127,128,64; of a kernel NAME=N,N."
        ),
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="DTYPE", help="Source, such as DT_FP32.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="DTYPE", help="Destination, such as DT_BF16.")
    ] = None,
    inputs: Inputs = None,
    release: Annotated[
        str,
        typer.Option(metavar="NAME", help=f"Of a kernel: one of {', '.join(RELEASE_NAMES)}."),
    ] = "head",
    seconds: Annotated[
        float, typer.Option(metavar="N", help="Of a kernel: limit of time in seconds, 1 or more.")
    ] = 60,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Of a kernel: processes; all cores if not given."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="Of a kernel: keep planned candidates there; a run resumes from them.",
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Of a kernel: print the lines to paste, alone.")
    ] = False,
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
    config_line: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:LINE",
            help="Where the kernel that --config is for calls set_vec_tile_shapes.",
        ),
    ] = None,
    kernel: Annotated[str | None, typer.Option(metavar="FILE.py:LINE", hidden=True)] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: Json = False,
) -> None:
    """Rank the tile shapes of a cast or of a kernel.

    Of a kernel, those of its calls of set_vec_tile_shapes. Nothing is cast and nothing was
    measured. Of a cast, the result names its cost set and gives the range over all of them, and the
    report is one HTML file that needs no network. Of a kernel, the cycles are those of a named
    model.
    """
    if tuned is not None:
        if top < 1:
            raise ValueError(f"--top is the number of candidates to show, 1 or more; got {top}")
        if not seconds >= 1:
            raise ValueError(f"--seconds is a limit of time of 1 or more; got {seconds}")
        if as_json and write:
            raise ValueError("--json and --write exclude each other; choose one")
        refuse_unread(context, _OF_A_CAST, f"beside {tuned}, whose operations say it")
        found_kernel = _tuned_kernel(
            tuned,
            inputs,
            shape or [],
            cast(ReleaseName, release),
            chip,
            top,
            seconds,
            jobs or os.cpu_count() or 1,
            output,
            cache,
            force=force,
        )
        _show_kernel(found_kernel, output, is_written=write, as_json=as_json)
        return
    refuse_unread(context, _OF_A_KERNEL, "of a cast; name FILE::KERNEL")
    missing = {"--shape": shape, "--from": from_, "--to": to}
    for name, given in missing.items():
        if given is None:
            raise ValueError(f"missing option {name}, or FILE::KERNEL (pypto-cast --help)")
    assert shape is not None
    assert from_ is not None
    assert to is not None
    if len(shape) > 1:
        raise ValueError(f"a cast takes one --shape; got {' '.join(shape)}")
    if kernel is not None:
        text = "tune --kernel is --config-line now; the former name goes with the next release"
        warnings.warn(text, FormerOptionWarning, stacklevel=1)
        if config_line is not None:
            raise ValueError("--kernel is the former name of --config-line; give one of them")
        config_line = kernel
    kernel = config_line
    if kernel is not None and config is None:
        raise ValueError("--config-line goes with --config")
    if as_json and as_csv == _STDOUT:
        raise ValueError("--json and --csv - exclude each other; choose one")
    if html is not None:
        check_pages()
    line = NO_KERNEL if kernel is None else kernel_line_named(kernel)
    asked = [path for path in (html, as_csv, output, config) if path is not None]
    cost_set = None if cost is None else _cost_named(cost)
    named = (cost_set, line.path if kernel is not None else None, facts)
    read = [Path(one) for one in named if one is not None]
    _check_outputs(asked, as_csv, read, force=force)
    with options(chip=chip, facts=facts):
        found = tune(
            shape_named(shape[0]),
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
                stack.enter_context(new_file(path, force=force, inputs=read)).write(
                    texts[path].encode()
                )
    if as_json or as_csv == _STDOUT:
        sys.stdout.write(json_text(report) if as_json else texts[_STDOUT])
        return
    notes = written(asked)
    if config is not None and kernel is None:
        notes += (
            f"{printable(str(config))} names {NO_KERNEL.path}, line {NO_KERNEL.line}: put your "
            "kernel there, or give --config-line FILE.py:LINE",
        )
    terminal.show(dataclasses.replace(report, notes=notes))


def _tuned_kernel(
    named: str,
    inputs: Path | None,
    shapes: list[str],
    release: ReleaseName,
    chip: str | None,
    top: int,
    seconds: float,
    processes: int,
    output: Path | None,
    cache: Path | None,
    *,
    force: bool,
) -> TunedKernel:
    read = [each for each in (file_and_name(named)[0], inputs) if each is not None]
    check_apart([output, cache])
    _check_outputs([] if output is None else [output], None, read, force=force)
    if cache is not None:
        check_free(cache, force=True, inputs=read)
    bar = (TextColumn("tune"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with _kept_in(cache) as kept, terminal.progress(*bar) as shown:
        task = shown.add_task("tuning", total=None)
        found = kernel_tuned(
            named,
            inputs,
            shapes,
            release,
            chip,
            top,
            seconds,
            processes=processes,
            progress=lambda done, total: shown.update(task, completed=done, total=total),
            kept=kept,
        )
    if output is not None:
        with new_file(output, force=force, inputs=read) as written_to:
            written_to.write(json_text(found.report).encode())
    return found


@contextlib.contextmanager
def _kept_in(cache: Path | None) -> Iterator[Kept | None]:
    """The candidates that a file keeps, under the lock of those that write it."""
    if cache is None:
        yield None
        return
    with unfinished(final_path(cache)), open_results(cache) as results:
        yield results


def kernel_tuned(
    named: str,
    inputs: Path | None,
    shapes: list[str],
    release: ReleaseName,
    chip: str | None,
    top: int,
    seconds: float,
    *,
    processes: int = 1,
    progress: Progress | None = None,
    kept: Kept | None = None,
) -> TunedKernel:
    """Tune a kernel of a file; see `tune_kernel` and `declared_of`."""
    with as_pypto(replace_installed=True), options(release=release, chip=chip):
        file, kernel = kernel_named(named)
        declared, others = declared_of(kernel, inputs, shapes)
        tensors = tuple(tensor(extents, dtype) for extents, dtype in declared)
        with errors_at_lines(file):
            return tune_kernel(
                kernel,
                tensors,
                others,
                top=top,
                seconds=seconds,
                processes=processes,
                progress=progress,
                kept=kept,
            )


def _show_kernel(
    found: TunedKernel, output: Path | None, *, is_written: bool, as_json: bool
) -> None:
    if is_written and not as_json:
        sys.stdout.write("".join(f"{line}\n" for line in found.lines))
        return
    notes = written([] if output is None else [output])
    terminal.show(dataclasses.replace(found.report, notes=notes), as_json=as_json)


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
