"""`pypto-cast compare`: one conversion in every framework, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from pypto_cast.cli import text as render
from pypto_cast.cli.app import Json
from pypto_cast.dialects.comparison import (
    Comparison,
    Difference,
    Row,
    compare,
    compare_formats,
)
from pypto_cast.dialects.systems import DIALECTS
from pypto_cast.dtypes.names import mode_named
from pypto_cast.report.text_format import hex_code, printable
from simulator.numbers.formats import Format
from simulator.numbers.literals import (
    CODE_PREFIX,
    Number,
    bits_text,
    number_named,
    number_of,
    short_text,
)

_OPEN = "not settled"
_NONE = "no conversion"


def run_compare(
    from_: Annotated[
        str, typer.Option("--from", metavar="DTYPE", help="Source, such as float16 or DT_FP16.")
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="DTYPE", help="Destination, such as int8 or DT_INT8.")
    ],
    number: Annotated[
        str | None,
        typer.Argument(metavar="NUMBER", help="0.1, 0x1.8p3, inf, nan, or code:0x3c00."),
    ] = None,
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="Round mode of the pypto rows; CAST_NONE: default.")
    ] = "CAST_NONE",
    all_values: Annotated[
        bool,
        typer.Option("--all-values", help="Count the codes of an 8/16-bit source that differ."),
    ] = False,
    between: Annotated[
        str | None,
        typer.Option(metavar="A,B", help=f"Count between two of {', '.join(DIALECTS)}."),
    ] = None,
    json: Json = False,
) -> None:
    """Show how each framework converts one number (pypto, torch, ONNX, ...), and by which rule."""
    round_mode = mode_named(mode)
    found = (
        compare_formats(from_, to, mode=round_mode)
        if number is None
        else compare(number, from_, to, mode=round_mode)
    )
    counted = _counted(found, all_values, between)
    if json:
        render.json(_as_json(found, counted))
    else:
        _show(found, counted)


def _counted(
    found: Comparison, all_values: bool, between: str | None
) -> tuple[Difference, ...] | None:
    if between is None:
        return found.all_differences() if all_values else None
    if not all_values:
        raise ValueError("--between goes with --all-values")
    names = [name.strip() for name in between.split(",")]
    known = [row.dialect for row in found.rows]
    if len(names) != 2 or not set(names) <= set(known):
        raise ValueError(
            f"--between names two of {', '.join(known)} for {found.src} -> {found.dst}, as in "
            f"pypto,torch; got {between!r}"
        )
    return (found.differences(*names),)


def _show(found: Comparison, counted: Sequence[Difference] | None) -> None:
    title = f"{found.src} -> {found.dst}"
    if found.literal is not None:
        title = f"{printable(found.literal)}: {title}"
    parts: list[Table] = []
    if found.code is not None:
        facts = render.pairs()
        if found.literal is not None and _is_rounded(found.literal, found.value):
            facts.add_row("written", f"{printable(found.literal)}, which {found.src} cannot hold")
        facts.add_row("value", str(found.value))
        code = hex_code(found.code, found.src)
        facts.add_row("bits", f"{bits_text(found.code, found.src)}  {code}")
        parts.append(facts)
    parts.append(_rows(found))
    if counted is not None:
        parts.append(_differences(found, counted))
    render.show(render.heading(title), *parts)


def _is_rounded(literal: str, value: Number | None) -> bool:
    """True if a number is not the one that was written."""
    if literal.startswith(CODE_PREFIX) or value is None or value.special:
        return False
    return number_named(literal) != value


def _rows(found: Comparison) -> Table:
    has_value = found.code is not None
    table = render.columns("dialect", *(["result", "code"] if has_value else []), "rule", "source")
    for row in found.rows:
        table.add_row(
            row.dialect,
            *(_cells(row, found.dst) if has_value else []),
            row.rule.text,
            row.rule.source,
        )
    return table


def _cells(row: Row, dst: Format) -> tuple[str, str]:
    if row.value is None:
        return (_OPEN if row.is_open else _NONE), ""
    code = "any" if row.code is None else hex_code(row.code, dst)
    return short_text(str(row.value)), code


def _differences(found: Comparison, counted: Sequence[Difference]) -> Table:
    table = render.columns("between", "and", "differ", "of", "not settled", "first that differs")
    for one in counted:
        table.add_row(
            one.first_dialect,
            one.second_dialect,
            f"{one.count:,}",
            f"{one.total:,}",
            f"{one.open_count:,}",
            _first(one, found),
        )
    return table


def _first(one: Difference, found: Comparison) -> str:
    if one.first is None:
        return "none"
    code, *results = one.first
    results_text = " and ".join(short_text(str(number_of(r, found.dst))) for r in results)
    value = short_text(str(number_of(code, found.src)))
    return f"{hex_code(code, found.src)} = {value}: {results_text}"


def _as_json(found: Comparison, counted: Sequence[Difference] | None) -> dict[str, Any]:
    """Every value is exact, as decimal text."""
    document: dict[str, Any] = {
        "literal": found.literal,
        "from": found.src.name,
        "to": found.dst.name,
        "mode": found.mode.name,
        "value": None if found.value is None else str(found.value),
        "code": None if found.code is None else hex_code(found.code, found.src),
        "rows": [
            {
                "dialect": row.dialect,
                "value": None if row.value is None else str(row.value),
                "code": None if row.code is None else hex_code(row.code, found.dst),
                "converts": row.rule.convert is not None,
                "settled": not row.is_open,
                "rule": row.rule.text,
                "source": row.rule.source,
            }
            for row in found.rows
        ],
    }
    if counted is not None:
        document["differences"] = [
            {
                "between": [one.first_dialect, one.second_dialect],
                "count": one.count,
                "not_settled": one.open_count,
                "total": one.total,
                "first": None
                if one.first is None
                else {
                    "code": hex_code(one.first[0], found.src),
                    "results": [hex_code(code, found.dst) for code in one.first[1:]],
                },
            }
            for one in counted
        ]
    return document
