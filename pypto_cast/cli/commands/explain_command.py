"""`pypto-cast explain`: one number in every round mode, bit by bit."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from pypto_cast.cast.explanation import Explanation, ModeResult, explain
from pypto_cast.cli import text as render
from pypto_cast.cli.app import From, Json, To
from pypto_cast.cli.text import Column, FittedTable
from pypto_cast.dtypes.names import dtype_named
from pypto_cast.report.markup import Table
from pypto_cast.report.text_format import hex_code, printable

_CUT: Final = ("kept", "dropped", "guard", "sticky", "quantum")


def run_explain(
    number: Annotated[
        str, typer.Argument(metavar="NUMBER", help="0.1, 0x1.8p3, inf, nan, or code:0x3dcccccd.")
    ],
    from_: From,
    to: To,
    json: Json = False,
) -> None:
    """Show how every round mode rounds one number, bit by bit."""
    found = explain(number, dtype_named(from_), dtype_named(to))
    if json:
        render.json(_as_json(found))
    else:
        _show(found)


def _show(found: Explanation) -> None:
    """Show the bits of a number, the place where they are cut, and the result of each mode."""
    table = render.pairs()
    for name, text in found.facts:
        table.add_row(name, text)
    heading = render.heading(f"{printable(found.literal)}: {found.src} -> {found.dst}")
    render.show(heading, table, _by_mode(found.by_mode))


def _by_mode(table: Table) -> FittedTable:
    return FittedTable(
        columns=tuple(
            Column(header=name, is_number=name == "satmode OFF") for name in table.headings
        ),
        rows=list(table.rows),
    )


def _as_json(found: Explanation) -> dict[str, Any]:
    """Every value is exact, as decimal text."""
    cut = found.cut
    return {
        "literal": found.literal,
        "from": found.src.name,
        "to": found.dst.name,
        "value": str(found.value),
        "rounded_from": None if found.rounded_from is None else str(found.rounded_from),
        "code": hex_code(found.code, found.src),
        "bits": found.bits,
        "significand": None if cut is None else {name: getattr(cut, name) for name in _CUT},
        "results": [_mode_result(result, found) for result in found.results],
    }


def _mode_result(result: ModeResult, found: Explanation) -> dict[str, Any]:
    return {
        "mode": result.mode,
        "default": result.is_default,
        "code": hex_code(result.code, found.dst),
        "bits": result.bits,
        "value": str(result.value),
        "ulp_error": None if result.ulp_error is None else float(result.ulp_error),
        "note": result.note,
        "satmode_off": None if result.off is None else str(result.off),
    }
