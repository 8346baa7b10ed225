"""The texts beside a dump's JSON, line by line: of a leaf, and of the control flow's expressions.

Little is taken from them, and any line may say it: a line of no known form is refused, and so is a
text in which one is missing. Source: upstream pypto at tag r0.2.0, framework/src: `DumpSSA` of
interface/function/function.cpp and operation/operation.cpp, `BuildExpressionList` of
interface/tensor/symbolic_scalar.cpp, machine/host/backend.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_LEAF_LINE: Final = re.compile(
    r"(?P<opening>-{13})|\}"
    r"|Function \S.*\[\d{1,20}\] (?P<hash>\d{1,20}) \w+ \w+ \{"
    r'|  RAWTENSOR\[ *(?P<raw_place>\d{1,20})\] <[^<>]*> @(?P<raw>\d{1,20})(?:".*")?'
    r"|  (?P<end>INCAST|OUTCAST)\[ *(?P<end_place>\d{1,20})\]  <[^<>]*> "
    r"%(?P<tensor>\d{1,20})@\d{1,20}.*"
    r"|  /\* (?:.*:(?P<line>\d{1,20})|.*) \*/"
    r"|  (?:<.* = )?!(?P<operation>\d{1,20}) [\w.]+\(g:-?\d+, s:-?\d+\)(?: .*)?"
)
_RAW_USED: Final = re.compile(r"%\d{1,20}@(\d{1,20})")
_NOT_FINITE: Final = ("inf", "-inf", "nan", "-nan")
"""Numbers that JSON has as null."""
_IN_TEXT_ALONE: Final = "op_attr_validShape"
"""The attribute of which JSON says no more than that the operation has it."""
_ARGUMENT: Final = re.compile(r"RUNTIME_COA_GET_PARAM\((\d{1,9})\)")

_EXPRESSION_LINE: Final = re.compile(
    r"(?P<opening>#ifndef TILE_FWK_EXPRESSION_H|#define TILE_FWK_EXPRESSION_H)"
    r"|#endif/\*TILE_FWK_EXPRESSION_H\*/"
    r"|/\* (?P<list>Symbol table|Input tensor|Output tensor) list \*/"
    r"|/\* Function info (?P<owner>EXPR_\w+): .* \*/|/\* Full Expression: .* \*/"
    r"|#define INDEX_(?P<symbol>\w+) (?P<index>\d{1,20})"
    r"|#define VALUE_(?P<valued>\w+) \(RUNTIME_GetSymbol\(INDEX_(?P=valued)\)\)"
    r"|#define ARG_(?P<argument>\w+) (?P<place>\d{1,20})"
    r"|#define (?P<expression>(?P<table>EXPR_\w+)_\d+)_TEMP_VAR_FLAG *0"
)
_EXPRESSION: Final = r"[\w ()+\-*/%<>=!&|,]+"
_WIDTH: Final = 32
"""Of the column in which upstream writes the name of an expression's macro."""
_LISTS: Final = ["Symbol table", "Input tensor", "Output tensor"]


@dataclass(slots=True)
class LeafAttributes:
    """The attributes of a leaf's operations that the text alone has, by the operation's number."""

    shapes: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    of_task: dict[str, int] = field(default_factory=dict)


def read_leaf_text(text: str, function: Mapping[str, Any]) -> LeafAttributes:
    """Read a leaf's text.

    Args:
        text: of the file beside that of JSON.
        function: the leaf as JSON.

    Raises:
        ValueError: a line that has no known form, one that is missing, or one of another leaf.
    """
    found = LeafAttributes()
    ends: dict[str, list[int]] = {"INCAST": [], "OUTCAST": []}
    raw: list[int] = []
    used: dict[int, int] = {}
    operations: dict[int, int | None] = {}
    hashes: list[str] = []
    source: int | None = None
    openings = 0
    for number, line in _lines(text):
        form = _LEAF_LINE.fullmatch(line)
        if form is None:
            raise ValueError(f"line {number}: {line[:60]!r} is not understood")
        if form["line"] is not None:
            source = int(form["line"])
        elif form["raw"] is not None:
            _in_turn(number, "RAWTENSOR", int(form["raw_place"]), len(raw))
            raw.append(int(form["raw"]))
        elif form["end"] is not None:
            _in_turn(number, form["end"], int(form["end_place"]), len(ends[form["end"]]))
            ends[form["end"]].append(int(form["tensor"]))
        elif form["operation"] is not None:
            magic = int(form["operation"])
            if magic in operations:
                raise ValueError(f"line {number}: operation {magic} is there twice")
            operations[magic], source = source, None
            if shape := _attribute(line, "#op_attr_validShape{[", "]}"):
                found.shapes[form["operation"]] = shape
            if argument := _ARGUMENT.fullmatch(_attribute(line, "#DYN_SCALAR{", "}")):
                found.of_task[form["operation"]] = int(argument[1])
            scalar = _attribute(line, "#SCALAR{", "}")
            if scalar in _NOT_FINITE:
                found.numbers[form["operation"]] = float(scalar)
        elif form["hash"] is not None:
            hashes.append(form["hash"])
        elif form["opening"] is not None:
            openings += 1
        used.update(dict.fromkeys(map(int, _RAW_USED.findall(line)), number))
    if openings != 1:
        raise ValueError(f"its first line is there {openings} times")
    if hashes != [str(function["hash"])]:
        raise ValueError(f"it is the text of {', '.join(hashes) or 'no function'}, not of its JSON")
    if missing := used.keys() - set(raw):
        first = min(missing)
        raise ValueError(f"line {used[first]}: raw tensor {first} is not listed")
    for name, magics in ends.items():
        wanted = [magic for magic, _ in function[f"{name.lower()}s"]]
        if magics != wanted:
            raise ValueError(f"each {name} is {magics}, and {wanted} in its JSON")
    _check_operations(operations, found, function["operations"])
    return found


def _check_operations(
    listed: Mapping[int, int | None], found: LeafAttributes, operations: Sequence[Mapping[str, Any]]
) -> None:
    """Refuse a text whose operations are not those of the JSON."""
    numbers = {each["opmagic"] for each in operations}
    if missing := sorted(numbers ^ listed.keys()):
        where = "in it" if missing[0] in numbers else "in its JSON"
        raise ValueError(f"operation {missing[0]} is not {where}")
    for each in operations:
        magic, attributes = each["opmagic"], each.get("op_attr") or {}
        if (line := each.get("line")) != listed[magic]:
            raise ValueError(
                f"the source line of operation {magic} is {listed[magic]}, and {line} in its JSON"
            )
        if _IN_TEXT_ALONE in attributes and str(magic) not in found.shapes:
            raise ValueError(f"{_IN_TEXT_ALONE} of operation {magic} is not in it")
        value = attributes.get("SCALAR", {}).get("value", 0.0)
        if value is None and str(magic) not in found.numbers:
            raise ValueError(f"SCALAR of operation {magic} is not in it")


def read_arguments(text: str) -> list[str]:
    """The kernel's arguments in their order, from the file of the control flow's expressions.

    Raises:
        ValueError: a line that has no known form, one that is missing, or two arguments of one
            name or place.
    """
    found: list[tuple[str, int]] = []
    indices: list[int] = []
    symbols: list[str] = []
    valued: list[str] = []
    lists: list[str] = []
    openings = 0
    table = ""
    lines = _lines(text)
    for number, line in lines:
        form = _EXPRESSION_LINE.fullmatch(line)
        if form is None:
            raise ValueError(f"line {number}: {line[:60]!r} is not understood")
        if form["argument"]:
            found.append((form["argument"], int(form["place"])))
        elif form["symbol"]:
            symbols.append(form["symbol"])
            indices.append(int(form["index"]))
        elif form["valued"]:
            valued.append(form["valued"])
        elif form["list"]:
            lists.append(form["list"])
        elif form["opening"]:
            openings += 1
        elif form["owner"]:
            table = form["owner"]
        elif form["expression"]:
            if form["table"] != table:
                raise ValueError(f"line {number}: {form['expression']} is listed under {table!r}")
            _check_expression(lines, form["expression"])
    if openings != 2:
        raise ValueError(f"it has {openings} of its two first lines")
    if lists != _LISTS:
        raise ValueError(f"it has the lists {', '.join(lists) or 'of nothing'}, not all of them")
    if symbols != valued or sorted(indices) != list(range(len(indices))):
        raise ValueError("its symbols are not numbered from 0 on, each with its value")
    names = {place: name for name, place in found}
    if not len(set(names.values())) == len(names) == len(found):
        listed = ", ".join(f"{name} {place}" for name, place in found)
        raise ValueError(f"two arguments have one name or place: {listed}")
    for place in range(len(names)):
        if place not in names:
            raise ValueError(f"argument {place} of {len(names) + 1} or more is missing")
    arguments = [names[place] for place in range(len(names))]
    for each in symbols:
        if each.startswith("ARG_") and each.removeprefix("ARG_") not in arguments:
            raise ValueError(f"{each} is used and is no argument")
    return arguments


def _check_expression(lines: Iterator[tuple[int, str]], name: str) -> None:
    """Refuse the rest of an expression's block that is not as upstream writes it."""
    flag, init, use = f"{name}_TEMP_VAR_FLAG", f"{name}_TEMP_INIT", f"{name}_USE"
    block = [
        (f"{name}_TEMP_VAR", f"tempVar_{name}"),
        (f"{name}_CALC", None),
        ("", f"#if     {flag}"),
        (init, f"int64_t {name}_TEMP_VAR = {name}_CALC"),
        (use, f"{name}_TEMP_VAR"),
        ("", f"#else /*{flag} */"),
        (init, ""),
        (use, f"{name}_CALC"),
        ("", f"#endif/*{flag} */"),
    ]
    for macro, value in block:
        number, line = next(lines, (0, ""))
        opening = f"#define {macro:<{_WIDTH}}" if macro else ""
        rest = line.removeprefix(opening.rstrip() if value == "" else opening)
        is_known = line.startswith(opening.rstrip()) and (
            rest.strip() == value if value is not None else _is_expression(rest)
        )
        if not is_known:
            raise ValueError(f"line {number}: {line[:60]!r} is not the next line of {name}")


def _is_expression(text: str) -> bool:
    return re.fullmatch(_EXPRESSION, text) is not None and text.count("(") == text.count(")")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text that are not blank, with their numbers."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield number, line


def _in_turn(number: int, kind: str, place: int, wanted: int) -> None:
    if place != wanted:
        raise ValueError(f"line {number}: {kind} {place} is there where {wanted} is wanted")


def _attribute(line: str, opening: str, closing: str) -> str:
    """The value of an attribute of an operation's line; "" if it has none."""
    _, found, after = line.rpartition(opening)
    value, closed, _ = after.partition(closing)
    return value if found and closed else ""
