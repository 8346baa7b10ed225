"""Values of JSON, checked by type; frozen dataclasses as such values, and back.

A dataclass is an object of its fields by name, a step also says its class.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import types
import typing
from typing import Any, Final

from ascend_kernels.schedule import parts
from ascend_kernels.schedule.part_types import UNIONS, WANTED, fits
from ascend_kernels.schedule.scalars import MAX_NESTED
from simulator.numbers.formats import FORMATS, FloatFormat, IntFormat

_STEPS: Final = {kind.__name__: kind for kind in typing.get_args(parts.ControlStep)}
_PLAIN: Final = (bool, int, float, str)
_NOT_FINITE: Final = ("inf", "-inf", "nan")
"""Numbers that JSON lacks, as texts."""
_MOST_DIGITS: Final = 640
"""No limit of `sys.set_int_max_str_digits` is lower."""


def check_type(value: Any, kind: Any, path: str) -> None:
    """Refuse a value that is not of a type.

    Args:
        value: out of JSON.
        kind: `int` (of 64 bits), `float` (finite), `bool`, `str` (printable), a list of one type, a
            tuple of a type for each place, an object of fields (a name that ends with "?" may be
            absent), `object`: whole numbers and texts in lists, or `float | None`.
        path: of the value, for messages.

    Raises:
        ValueError: names the path.
    """
    match kind:
        case [inner] if isinstance(kind, list) and isinstance(value, list):
            for place, each in enumerate(value):
                check_type(each, inner, f"{path}[{place}]")
        case tuple() if isinstance(value, list) and len(value) == len(kind):
            for place, (each, inner) in enumerate(zip(value, kind, strict=True)):
                check_type(each, inner, f"{path}[{place}]")
        case dict() if isinstance(value, dict):
            for field, inner in kind.items():
                name = field.removesuffix("?")
                if name in value:
                    check_type(value[name], inner, f"{path}, {name}".lstrip(", "))
                elif name == field:
                    raise ValueError(f"{path}: {name!r} is missing".lstrip(": "))
        case types.UnionType():
            if value is not None:
                check_type(value, typing.get_args(kind)[0], path)
        case _ if not _is_of(value, kind):
            wanted = WANTED.get(kind) if isinstance(kind, type) else None
            if wanted is None:
                wanted = "an object" if isinstance(kind, dict) else "a list"
            if isinstance(kind, tuple):
                wanted += f" of {len(kind)}"
            raise ValueError(
                f"{path}: {wanted} is wanted, not {json.dumps(value)[:40]}".lstrip(": ")
            )


def _is_of(value: Any, kind: Any, nested: int = 0) -> bool:
    if kind is object:
        if isinstance(value, list):
            return nested < MAX_NESTED and all(_is_of(x, object, nested + 1) for x in value)
        return fits(int)(value) or fits(str)(value)
    if kind is float:
        return fits(float)(value) and math.isfinite(value)
    return isinstance(kind, type) and fits(kind)(value)


def whole_number(text: str) -> int:
    """A whole number of a JSON text; for `parse_int`.

    Where it is of a field that is read, `check_type` refuses more than 64 bits and names the field.

    Raises:
        ValueError: more digits than Python always takes.
    """
    digits = len(text.removeprefix("-"))
    if digits > _MOST_DIGITS:
        raise ValueError(f"{WANTED[int]} is wanted, not {text[:20]}..., which has {digits} digits")
    return int(text)


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of a JSON text; for `object_pairs_hook`.

    Raises:
        ValueError: a name is there twice; names it.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{json.dumps(twice)[:40]} is there twice in one object")
    return found


def to_plain(value: Any) -> Any:
    """A dataclass as an object of its fields; defaults are left out."""
    if isinstance(value, (FloatFormat, IntFormat)):
        return value.name
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, tuple):
        return [to_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = {"kind": type(value).__name__} if type(value).__name__ in _STEPS else {}
        return kind | {
            each.name: to_plain(getattr(value, each.name))
            for each in dataclasses.fields(value)
            if getattr(value, each.name) != each.default
        }
    return value


def from_plain(kind: Any, value: Any, path: str) -> Any:
    """A value of a type from the plain value that `to_plain` made.

    Args:
        kind: the type, as annotated.
        value: out of JSON.
        path: of the value, for messages.

    Raises:
        ValueError: it is none; names the field.
    """
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{path}: a list is wanted, not {str(value)[:40]!r}")
        inner = typing.get_args(kind)[0]
        return tuple(from_plain(inner, x, f"{path}[{place}]") for place, x in enumerate(value))
    if kind is parts.ControlStep:
        wanted = _STEPS.get(str(value.get("kind"))) if isinstance(value, dict) else None
        if wanted is None:
            raise ValueError(f"{path}: a step is wanted, not {str(value)[:40]!r}")
        return _object(wanted, {name: x for name, x in value.items() if name != "kind"}, path)
    kinds = typing.get_args(kind) if typing.get_origin(kind) in UNIONS else (kind,)
    return _member(kinds, value, path)


def _object(kind: type, value: Any, path: str) -> Any:
    hints = typing.get_type_hints(kind)
    known = {each.name for each in dataclasses.fields(kind)}
    if not isinstance(value, dict) or not value.keys() <= known:
        raise ValueError(f"{path}: a {kind.__name__} is wanted, not {str(value)[:40]!r}")
    found = {name: from_plain(hints[name], x, f"{path}.{name}") for name, x in value.items()}
    try:
        return kind(**found)
    except TypeError as error:
        raise ValueError(f"{path}: {error}") from None


def _member(kinds: tuple[Any, ...], value: Any, path: str) -> Any:
    """A value of one of several types."""
    if FloatFormat in kinds or IntFormat in kinds:
        if not isinstance(value, str) or value not in FORMATS:
            raise ValueError(f"{path}: a format is wanted, not {str(value)[:40]!r}")
        return FORMATS[value]
    if value is None and type(None) in kinds:
        return None
    if float in kinds and value in _NOT_FINITE:
        return float(value)
    if isinstance(value, list) and any(typing.get_origin(kind) is tuple for kind in kinds):
        check_type(value, [object], path)
        return _scalar(value)
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, enum.Enum) and isinstance(value, str):
            if value not in kind.__members__:
                raise ValueError(f"{path}: {value!r} is no {kind.__name__}")
            return kind[value]
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            return _object(kind, value, path)
    allowed = [kind for kind in _PLAIN if kind in kinds]
    if not allowed:
        raise ValueError(f"{path}: a {kinds[0].__name__} is wanted, not {str(value)[:40]!r}")
    exact = [kind for kind in allowed if isinstance(value, kind)]
    check_type(value, (exact or allowed)[0], path)
    return value


def _scalar(value: Any) -> Any:
    return tuple(_scalar(each) for each in value) if isinstance(value, list) else value
