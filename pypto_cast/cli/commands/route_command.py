"""`pypto-cast route`: chains of native casts from one dtype to another, each with a verdict."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from pypto_cast.cli import text as render
from pypto_cast.cli.app import Force, Json
from pypto_cast.cli.text import Column, FittedTable
from pypto_cast.dtypes.names import dtype_named, mode_named
from pypto_cast.report.text_format import hex_code
from pypto_cast.routes.atlas_page import atlas_page
from pypto_cast.routes.cast_routes import Route, Routes, routes
from pypto_cast.tensors.array_files import check_free, new_file
from simulator.numbers.literals import number_named, number_of, short_text

_VERDICT: Final = ("basis", "codes", "differing", "is_least", "largest_error")


def run_route(
    from_: Annotated[
        str | None, typer.Option("--from", metavar="DTYPE", help="Source, such as DT_FP32.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="DTYPE", help="Destination, such as DT_INT8.")
    ] = None,
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="Of the one rounding that is wanted.")
    ] = "CAST_RINT",
    values: Annotated[
        str | None,
        typer.Option(metavar="LOW:HIGH", help="Only values between, such as --values=-128:127."),
    ] = None,
    steps: Annotated[int, typer.Option(metavar="N", help="Steps of a route, at most.")] = 3,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Show the best on all codes of a 32-bit source.")
    ] = False,
    all_pairs: Annotated[
        bool, typer.Option("--all", help="Every pair and mode, as one page; goes with --html.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page of --all there.")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show which chains of casts lead from one dtype to another, and which of them round once."""
    if all_pairs or html is not None:
        if html is None or not all_pairs or json or (from_, to, values) != (None, None, None):
            raise ValueError(
                "--all and --html FILE go together, without --from, --to, --values and --json"
            )
        check_free(html, force=force)
        with new_file(html, force=force) as file:
            file.write(atlas_page().encode())
        render.show(*render.written([html]))
        return
    if from_ is None or to is None:
        raise ValueError("--from and --to name the dtypes; --all --html FILE takes every pair")
    found = routes(
        dtype_named(from_),
        dtype_named(to),
        mode_named(mode),
        values=None if values is None else _range_named(values),
        steps=steps,
        exhaustive=exhaustive,
    )
    if json:
        render.json(routes_document(found))
    else:
        _show(found)


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


def _show(found: Routes) -> None:
    """Show the routes, the differences of the first that has some, and the code of the best."""
    best = found.best
    headers = ("route", "verdict", "largest error", "exact on", "cycles")
    rows = [
        (
            str(route.chain),
            str(route.verdict),
            f"{route.verdict.largest_error:,}" if route.verdict.differing else "",
            (route.exact_range or "") if route.verdict.differing else "",
            f"{route.cycles:,.0f}",
        )
        for route in found
    ]
    columns = tuple(Column(header=name, is_minor=name != "verdict") for name in headers)
    heading = f"{found.src} -> {found.dst} {found.mode.name}"
    notes = []
    if not best.chain.is_native:
        notes.append(f"Instructions of the best: {', '.join(best.instructions)}.")
    if not best.has_kernel:
        notes.append("pypto has no operations for it; Route.program has its instructions.")
    notes += [f"The best rests on a choice: {text}." for text in best.verdict.rests_on]
    notes += [f"{route.chain}: {_differences(route)}" for route in found if route.verdict.differing]
    render.show(
        render.heading(heading),
        FittedTable(columns=columns, rows=rows),
        *([Text("\n".join(notes))] if notes else []),
        *([Text(best.kernel().rstrip())] if best.has_kernel else []),
    )


def _differences(route: Route) -> str:
    src, dst = route.chain.src, route.chain.dst
    return "; ".join(
        f"{hex_code(one.code, src)} = {short_text(str(number_of(one.code, src)))} gives "
        f"{short_text(str(number_of(one.found, dst)))}, not "
        f"{short_text(str(number_of(one.wanted, dst)))}"
        for one in route.verdict.first
    )


def routes_document(found: Routes) -> dict[str, Any]:
    """Routes for JSON; numbers are exact, as decimal text."""
    return {
        "from": found.src.name,
        "to": found.dst.name,
        "mode": found.mode.name,
        "steps": found.steps,
        "values": None if found.values is None else [str(bound) for bound in found.values],
        "routes": [_route_document(route) for route in found],
    }


def _route_document(route: Route) -> dict[str, Any]:
    verdict, src, dst = route.verdict, route.chain.src, route.chain.dst
    return {
        "steps": [
            {"dtype": step.dtype.name, "mode": step.mode.name, "is_cast": step.is_cast}
            for step in route.steps
        ],
        "instructions": list(route.instructions),
        "verdict": verdict.standing.name,
        **{name: getattr(verdict, name) for name in _VERDICT},
        "exact_range": None
        if verdict.exact_range is None
        else [str(number_of(code, src)) for code in verdict.exact_range],
        "first": [
            {
                "code": hex_code(one.code, src),
                "value": str(number_of(one.code, src)),
                "found": str(number_of(one.found, dst)),
                "wanted": str(number_of(one.wanted, dst)),
            }
            for one in verdict.first
        ],
        "rests_on": list(verdict.rests_on),
        "cycles": route.cycles,
        "kernel": route.kernel() if route.has_kernel else None,
    }
