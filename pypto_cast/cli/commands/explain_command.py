"""`pypto-cast explain`: one number in every round mode, bit by bit."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pypto_cast.cli import text as render
from pypto_cast.cli.app import From, Json, To
from pypto_cast.cli.fitted import Column, FittedTable
from pypto_cast.inspection.explanation import Explanation, ModeResult, explain
from pypto_cast.names import dtype_named
from pypto_cast.wording import printable
from simulator.numbers.literals import short_text


def run_explain(
    number: Annotated[
        str, typer.Argument(metavar="NUMBER", help="0.1, 0x1.8p3, inf, nan, or code:0x3dcccccd.")
    ],
    from_: From,
    to: To,
    json: Json = False,
) -> None:
    """Show what every round mode makes of one number, bit by bit."""
    found = explain(number, dtype_named(from_), dtype_named(to))
    if json:
        render.json(_as_json(found))
    else:
        _show(found)


def _show(found: Explanation) -> None:
    """Show the bits of a number, where they are cut, and what each mode makes of them."""
    table = render.pairs()
    if found.rounded_from is not None:
        table.add_row("written", f"{printable(found.literal)}, which {found.src} cannot hold")
    table.add_row("value", str(found.value))
    table.add_row("bits", f"{found.bits}  {render.hex_code(found.code, found.src)}")
    cut = found.cut
    if cut is not None:
        table.add_row("kept", f"{cut.kept} x 2^{cut.quantum}")
        dropped = f"{cut.dropped}  guard {cut.guard:d}, sticky {cut.sticky:d}"
        table.add_row("dropped", dropped if cut.dropped else "nothing: the value fits")
    render.show(
        render.heading(f"{printable(found.literal)}: {found.src} -> {found.dst}"),
        table,
        _by_mode(found),
    )


def _by_mode(found: Explanation) -> FittedTable:
    has_off = any(result.off is not None for result in found.results)
    headers = ("mode", "code", "bits", "value", "error", "")
    off = Column(header="satmode OFF", is_number=True)
    rows = []
    for result in found.results:
        cells = (
            result.mode or "any",
            render.hex_code(result.code, found.dst),
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


def _as_json(found: Explanation) -> dict[str, Any]:
    """Every value is exact, as decimal text."""
    cut = found.cut
    return {
        "literal": found.literal,
        "from": found.src.name,
        "to": found.dst.name,
        "value": str(found.value),
        "rounded_from": None if found.rounded_from is None else str(found.rounded_from),
        "code": render.hex_code(found.code, found.src),
        "bits": found.bits,
        "significand": None
        if cut is None
        else {
            "kept": cut.kept,
            "dropped": cut.dropped,
            "guard": cut.guard,
            "sticky": cut.sticky,
            "quantum": cut.quantum,
        },
        "results": [_mode_result(result, found) for result in found.results],
    }


def _mode_result(result: ModeResult, found: Explanation) -> dict[str, Any]:
    return {
        "mode": result.mode,
        "default": result.is_default,
        "code": render.hex_code(result.code, found.dst),
        "bits": result.bits,
        "value": str(result.value),
        "ulp_error": None if result.ulp_error is None else float(result.ulp_error),
        "note": result.note,
        "satmode_off": None if result.off is None else str(result.off),
    }
