"""Reads casts in C++ sources of AscendC and pto-isa by pattern: no C++ is parsed.

A cast is read where the text beside it declares the element types of both tensors; others are left
out. Comments and texts are blanked first, so that positions stay.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pypto_cast.lint.dsl_casts import DSL_CASTS, DslCast
from pypto_cast.lint.tracked import Cast, Mode, Saturation, Span, Tracked, Unnamed, Use, result_of
from pypto_cast.lint.vocabulary import MODES, SATURATIONS
from simulator.machine.vector_types import VECTOR_TYPES
from simulator.numbers.formats import Format

_Value = TypeVar("_Value")
_TYPES: Final[Mapping[str, Format]] = {
    **{
        row.cpp.rpartition(":")[2]: row.format
        for row in VECTOR_TYPES.values()
        if row.cpp is not None
    },
    **{row.pyasc: row.format for row in VECTOR_TYPES.values() if row.pyasc is not None},
}
_CALLS: Final[Mapping[str, DslCast]] = {"Cast": DSL_CASTS["AscendC"], "TCVT": DSL_CASTS["pto-isa"]}
_REGISTERS: Final = DSL_CASTS["AscendC Reg"]
_MOST_CALL: Final = 2000
"""Characters of a call that are read."""
_OF_REGISTERS: Final = 3
"""Template arguments of a cast of registers: both element types and a trait."""
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
_TRAIT: Final = re.compile(r"\bCastTrait\s+(\w+)\s*=?\s*\{([^{};]{0,400})\}")
_NAMES_NONE: Final = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declaration(Generic[_Value]):
    """The element type or the trait of a name, from a position on."""

    start: int
    value: _Value


_Declarations = dict[str, list[_Declaration[_Value]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trait:
    """The mode and the saturation of a `CastTrait`."""

    mode: Mode
    saturation: Saturation


_OPEN_TRAIT: Final = _Trait(mode=Unnamed.VARIABLE, saturation=Unnamed.VARIABLE)


def uses_in_cpp(text: str) -> list[Use]:
    """Returns the casts of a source in the order of its text.

    Args:
        text: C++.
    """
    blanked = _BLANK.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    declared, traits = _declarations(blanked), _traits(blanked)
    starts = [0, *(found.end() for found in re.finditer("\n", blanked))]
    written: dict[str, Tracked] = {}
    uses: list[Use] = []
    for found in _CALL.finditer(blanked):
        row, target = _CALLS.get(found[1]), found[3]
        if row is None:
            written.pop(target, None)  # it may write to its first operand
            continue
        arguments = _arguments(blanked, found.start(3))
        template = [each.strip().rpartition(":")[2] for each in (found[2] or "").split(",")]
        is_register = row is _CALLS["Cast"] and len(template) == _OF_REGISTERS
        to = _value_of(declared, target, found.start())
        if is_register:
            row, to = _REGISTERS, _TYPES.get(template[0], to)
        if len(arguments) < 3 or to is None:
            written.pop(target, None)
            continue
        source = re.match(r"\s*(\w+)", arguments[1])
        name = source[1] if source else ""
        given = _value_of(declared, name, found.start())
        if is_register:
            given = _TYPES.get(template[1], given)
            trait = _value_of(traits, template[2], found.start()) or _OPEN_TRAIT
        else:
            trait = _Trait(mode=_mode(arguments[2]), saturation=Unnamed.DEFAULT)
        tracked = written.get(name) or Tracked(format=given)
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
            mode=trait.mode,
            saturation=trait.saturation,
        )
        uses.append(cast)
        written[target] = result_of(cast)
    return uses


def _mode(argument: str) -> Mode:
    name = re.fullmatch(r"(?:\w+::)*(\w+)", argument.strip())
    if name is None or name[1] not in MODES:
        return Unnamed.VARIABLE
    return MODES[name[1]] or Unnamed.DEFAULT


def _traits(text: str) -> _Declarations[_Trait]:
    """The traits that are written out; fields are known by the names of their types."""
    found: _Declarations[_Trait] = {}
    for each in _TRAIT.finditer(text):
        fields = dict(re.findall(r"\b(RoundMode|SatMode)::(\w+)", each[2]))
        saturation = fields.get("SatMode", _NAMES_NONE)
        mode = fields.get("RoundMode", _NAMES_NONE)
        trait = _Trait(
            mode=Unnamed.DEFAULT if mode == _NAMES_NONE else _mode(mode),
            saturation=Unnamed.DEFAULT
            if saturation == _NAMES_NONE
            else SATURATIONS.get(saturation, Unnamed.VARIABLE),
        )
        found.setdefault(each[1], []).append(_Declaration(start=each.start(), value=trait))
    return found


def _declarations(text: str) -> _Declarations[Format | None]:
    found: _Declarations[Format | None] = {}
    tiles: dict[str, Format | None] = {}
    for each in _DECLARED.finditer(text):
        name, kind = (each[2], each[1]) if each[2] else (each[3], each[4])
        if each[5]:
            tiles[each[5]] = _TYPES.get(each[6])
        else:
            declared = _Declaration(start=each.start(), value=_TYPES.get(kind))
            found.setdefault(name, []).append(declared)
    if tiles:
        names = "|".join(map(re.escape, tiles))
        for each in re.finditer(rf"\b({names})\s*&?\s+(\w+)\s*[;({{=,)]", text):
            declared = _Declaration(start=each.start(), value=tiles[each[1]])
            found.setdefault(each[2], []).append(declared)
    return found


def _value_of(declared: _Declarations[_Value], name: str, position: int) -> _Value | None:
    """The last declaration before a position; behind it, as in a class, one that all agree on."""
    known = declared.get(name, [])
    before = bisect.bisect_left(known, position, key=lambda each: each.start)
    if before:
        return known[before - 1].value
    values = {each.value for each in known}
    return values.pop() if len(values) == 1 else None


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
