"""Frozen dataclasses as plain JSON values, and back: fields by name, kinds by the class's name."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from typing import Any

from ascend_kernels.schedule import parts
from simulator.numbers.formats import FORMATS, FloatFormat, IntFormat

_STEPS = {kind.__name__: kind for kind in typing.get_args(parts.Step)}


def to_plain(value: Any) -> Any:
    """A dataclass as an object of its fields; defaults are left out."""
    if isinstance(value, (FloatFormat, IntFormat)):
        return value.name
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, tuple):
        return [to_plain(each) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = {"kind": type(value).__name__} if type(value).__name__ in _STEPS else {}
        return kind | {
            each.name: to_plain(getattr(value, each.name))
            for each in dataclasses.fields(value)
            if getattr(value, each.name) != each.default
        }
    return value


def from_plain(kind: Any, value: Any) -> Any:
    """A value of a type from what `to_plain` made.

    Raises:
        ValueError: it is none; names the field.
    """
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"a list is wanted, not {str(value)[:40]}")
        inner = typing.get_args(kind)[0]
        return tuple(from_plain(inner, each) for each in value)
    if kind is parts.Step:
        wanted = _STEPS.get(str(value.get("kind"))) if isinstance(value, dict) else None
        if wanted is None:
            raise ValueError(f"a step is wanted, not {str(value)[:40]}")
        return from_plain(wanted, {name: x for name, x in value.items() if name != "kind"})
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return _member(typing.get_args(kind), value)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _object(kind, value)
    return _member((kind,), value)


def _object(kind: type, value: Any) -> Any:
    hints = typing.get_type_hints(kind)
    known = {each.name for each in dataclasses.fields(kind)}
    if not isinstance(value, dict) or not value.keys() <= known:
        raise ValueError(f"a {kind.__name__} is wanted, not {str(value)[:40]}")
    try:
        return kind(**{name: from_plain(hints[name], each) for name, each in value.items()})
    except TypeError as error:
        raise ValueError(str(error)) from None


def _member(kinds: tuple[Any, ...], value: Any) -> Any:
    """A value of one of several types."""
    if FloatFormat in kinds or IntFormat in kinds:
        if not isinstance(value, str) or value not in FORMATS:
            raise ValueError(f"a format is wanted, not {str(value)[:40]}")
        return FORMATS[value]
    if isinstance(value, list):
        return _scalar(value)
    if value is None and type(None) in kinds:
        return None
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, enum.Enum) and isinstance(value, str):
            if value not in kind.__members__:
                raise ValueError(f"{value!r} is no {kind.__name__}")
            return kind[value]
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            return _object(kind, value)
    allowed = tuple(kind for kind in kinds if kind in (int, str, float, bool))
    if float in allowed:
        allowed = (*allowed, int)
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise ValueError(f"{str(value)[:40]!r} is not of {', '.join(map(str, kinds))}")
    return value


def _scalar(value: Any) -> Any:
    return tuple(_scalar(each) for each in value) if isinstance(value, list) else value
