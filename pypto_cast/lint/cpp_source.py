"""Reads casts in C++ sources of AscendC and pto-isa by pattern: no C++ is parsed.

A cast is read where the text beside it declares the element types of both tensors; others are left
out. Comments and texts are blanked first, so that positions stay.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pypto_cast.lint.dsl_casts import DSL_CASTS, DslCast
from pypto_cast.lint.tracked import Cast, Mode, Span, Tracked, Unnamed, Use, result_of
from pypto_cast.lint.vocabulary import MODES
from simulator.machine.vector_types import VECTOR_TYPES
from simulator.numbers.formats import Format

_TYPES: Final[Mapping[str, Format]] = {
    **{
        row.cpp.rpartition(":")[2]: row.format
        for row in VECTOR_TYPES.values()
        if row.cpp is not None
    },
    **{row.pyasc: row.format for row in VECTOR_TYPES.values() if row.pyasc is not None},
}
_CALLS: Final[Mapping[str, DslCast]] = {"Cast": DSL_CASTS["AscendC"], "TCVT": DSL_CASTS["pto-isa"]}
_MOST_CALL: Final = 2000
"""Characters of a call that are read."""
_MOST_DEPTH: Final = 8
"""Brackets within each other in a call that is read."""
_BLANK: Final = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.){1,8}'", re.S
)
_DECLARED: Final = re.compile(
    r"\b(?:LocalTensor|GlobalTensor|RegTensor)\s*<\s*(?:AscendC::)?(\w+)\s*>\s*&?\s*(\w+)"
    r"|\bauto\s*&?\s+(\w+)\s*=[^;=<>]{0,80}?<\s*(?:AscendC::)?(\w+)\s*>\s*\("
    r"|\busing\s+(\w+)\s*=\s*(?:pto::)?Tile\s*<\s*[\w:]+\s*,\s*(\w+)\s*,"
)
_CALL: Final = re.compile(r"\b(\w+)\s*(?:<([^;{}()]{0,80})>\s*)?\(\s*(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declaration:
    """The element type of a name, from a position on."""

    start: int
    format: Format | None


def uses_in_cpp(text: str) -> list[Use]:
    """Returns the casts of a source in the order of its text.

    Args:
        text: C++.
    """
    blanked = _BLANK.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    declared = _declarations(blanked)
    starts = [0, *(found.end() for found in re.finditer("\n", blanked))]
    written: dict[str, Tracked] = {}
    uses: list[Use] = []
    for found in _CALL.finditer(blanked):
        row, target = _CALLS.get(found[1]), found[3]
        if row is None:
            written.pop(target, None)  # it may write to its first operand
            continue
        arguments = _arguments(blanked, found.start(3))
        to = _format_of(declared, target, found.start())
        if len(arguments) < 3 or to is None:
            written.pop(target, None)
            continue
        source = re.match(r"\s*(\w+)", arguments[1])
        name = source[1] if source else ""
        tracked = written.get(name) or Tracked(format=_format_of(declared, name, found.start()))
        line = bisect.bisect_right(starts, found.start())
        end = found.start(3) + sum(len(each) + 1 for each in arguments)
        cast = Cast(
            span=Span(
                line=line,
                column=found.start() - starts[line - 1] + 1,
                last_line=bisect.bisect_right(starts, min(end, len(blanked))),
            ),
            dsl=row,
            source=tracked,
            to=to,
            mode=_mode(arguments[2]),
            saturation=Unnamed.DEFAULT,
        )
        uses.append(cast)
        written[target] = result_of(cast)
    return uses


def _mode(argument: str) -> Mode:
    name = re.fullmatch(r"(?:\w+::)*(\w+)", argument.strip())
    if name is None or name[1] not in MODES:
        return Unnamed.VARIABLE
    return MODES[name[1]] or Unnamed.DEFAULT


def _declarations(text: str) -> dict[str, list[_Declaration]]:
    found: dict[str, list[_Declaration]] = {}
    tiles: dict[str, Format | None] = {}
    for each in _DECLARED.finditer(text):
        name, kind = (each[2], each[1]) if each[2] else (each[3], each[4])
        if each[5]:
            tiles[each[5]] = _TYPES.get(each[6])
        else:
            declared = _Declaration(start=each.start(), format=_TYPES.get(kind))
            found.setdefault(name, []).append(declared)
    if tiles:
        names = "|".join(map(re.escape, tiles))
        for each in re.finditer(rf"\b({names})\s*&?\s+(\w+)\s*[;({{=,)]", text):
            declared = _Declaration(start=each.start(), format=tiles[each[1]])
            found.setdefault(each[2], []).append(declared)
    return found


def _format_of(
    declared: Mapping[str, list[_Declaration]], name: str, position: int
) -> Format | None:
    """The type that was declared last before a position; behind it, as in a class, if all agree."""
    known = declared.get(name, [])
    before = bisect.bisect_left(known, position, key=lambda each: each.start)
    if before:
        return known[before - 1].format
    formats = {each.format for each in known}
    return formats.pop() if len(formats) == 1 else None


def _arguments(text: str, start: int) -> list[str]:
    """The arguments of a call from behind its bracket on; none if it does not end soon."""
    return list(_split(text[start : start + _MOST_CALL]))


def _split(text: str) -> Iterator[str]:
    depth, begin = 0, 0
    for place, character in enumerate(text):
        if character in "([{":
            depth += 1
            if depth > _MOST_DEPTH:
                return
        elif character in ")]}":
            if depth == 0:
                yield text[begin:place]
                return
            depth -= 1
        elif character == "," and depth == 0:
            yield text[begin:place]
            begin = place + 1
