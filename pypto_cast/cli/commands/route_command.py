"""`pypto-cast route`: chains of native casts from one dtype to another, each with a verdict."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from pypto_cast.cli.app import ChipName, Force, Json, Readings, readings_named, refuse_unread
from pypto_cast.dtypes.data_types import CastMode
from pypto_cast.dtypes.names import dtype_named, mode_named
from pypto_cast.options.context import options
from pypto_cast.report import terminal
from pypto_cast.report.page import check_pages
from pypto_cast.report.report import Report
from pypto_cast.report.text_format import written
from pypto_cast.routes.atlas_page import atlas_page
from pypto_cast.routes.cast_routes import routes
from pypto_cast.routes.chain_checks import check_chain
from pypto_cast.tensors.array_files import check_free, new_file, read_tensor
from simulator.numbers.literals import number_named


def run_route(
    context: typer.Context,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="DTYPE", help="Source, such as DT_FP32.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="DTYPE", help="Destination, such as DT_INT8.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="MODE",
            help="Of the one rounding that is wanted; CAST_RINT, to HF8 CAST_ROUND, if not given.",
        ),
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(metavar="LOW:HIGH", help="Only values between, such as --values=-128:127."),
    ] = None,
    steps: Annotated[int, typer.Option(metavar="N", help="Steps of a route, at most.")] = 3,
    through: Annotated[
        str | None,
        typer.Option(
            metavar="DTYPE:MODE,...",
            help="Judge this chain, such as FP16:RINT,INT8:RINT, instead of finding some.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Count the differing elements of a .npy too."),
    ] = None,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Show the best on all codes of a 32-bit source.")
    ] = False,
    all_pairs: Annotated[
        bool, typer.Option("--all", help="Every pair and mode, as one page; goes with --html.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page of --all there.")
    ] = None,
    chip: ChipName = None,
    reading: Readings = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find the chains of casts between two dtypes; judge them."""
    if all_pairs or html is not None:
        if html is None or not all_pairs:
            raise ValueError("--all and --html FILE go together")
        of_one = ("from_", "to", "mode", "values", "steps", "through", "data", "exhaustive")
        refuse_unread(
            context, (*of_one, "chip", "reading", "json"), "of the page of every pair and mode"
        )
        check_pages()
        check_free(html, force=force)
        with new_file(html, force=force) as file:
            file.write(atlas_page().encode())
        terminal.show(Report(kind="routes", title="", notes=written([html])))
        return
    if from_ is None or to is None:
        raise ValueError("--from and --to name the dtypes; --all --html FILE takes every pair")
    if through is not None:
        refuse_unread(context, ("values", "steps"), "of chains that are found")
        with options(chip=chip, readings=readings_named(reading)):
            checked = _checked(from_, to, through, mode, data, exhaustive=exhaustive)
        terminal.show(checked, as_json=json)
        return
    if data is not None:
        raise ValueError("--data counts what a chain changes; --through names the chain")
    with options(chip=chip, readings=readings_named(reading)):
        found = routes(
            dtype_named(from_),
            dtype_named(to),
            None if mode is None else mode_named(mode),
            values=None if values is None else _range_named(values),
            steps=steps,
            exhaustive=exhaustive,
        )
    if not found.all:
        _ = found.best  # the error names the steps that may help
    terminal.show(found.report, as_json=json)


def _checked(
    from_: str, to: str, through: str, mode: str | None, data: Path | None, *, exhaustive: bool
) -> Report:
    src, dst = dtype_named(from_), dtype_named(to)
    steps = []
    for word in through.split(","):
        dtype, colon, named = word.partition(":")
        steps.append((dtype_named(dtype), mode_named(named) if colon else CastMode.CAST_NONE))
    if steps[-1][0] is not dst:
        raise ValueError(f"--through ends with {steps[-1][0]}, and --to is {dst}")
    given = None if data is None else read_tensor(data, src)
    once = None if mode is None else mode_named(mode)
    return check_chain(src, steps, once, data=given, exhaustive=exhaustive).report


def _range_named(text: str) -> tuple[Fraction | float, Fraction | float]:
    """`-128:127` as two numbers.

    Raises:
        ValueError: not two numbers with a colon between.
    """
    low, colon, high = text.partition(":")
    if not colon:
        raise ValueError(f"values are two numbers with a colon between, as -128:127; got {text!r}")
    return _bound(low), _bound(high)


def _bound(text: str) -> Fraction | float:
    number = number_named(text)
    if number.special:
        return float(str(number))
    return number.fraction
