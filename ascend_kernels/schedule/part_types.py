"""The types of a part's fields, checked when it is made."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, Final

UNIONS: Final = (typing.Union, types.UnionType)
MAX_BITS: Final = 64
"""Of a whole number."""
WANTED: Final = {
    int: "a whole number of 64 bits",
    float: "a finite number",
    bool: "true or false",
    str: "printable text",
    object: "whole numbers and texts in lists",
}


class Number(float):
    """A number that equals those of its bits alone: 0.0 and -0.0 differ, and NaN equals itself."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if float.__eq__(self, other) is True:
            return math.copysign(1, self) == math.copysign(1, typing.cast(float, other))
        return isinstance(other, float) and math.isnan(self) and math.isnan(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(math.nan if math.isnan(self) else float(self))


class Part:
    """A part of a schedule: a frozen dataclass whose fields are of the types that it names.

    Raises:
        TypeError: a field of another type; names part and field.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self)


def check_fields(part: Any) -> None:
    """Refuse a field of another type than its annotation; a number of a scalar is checked later.

    Raises:
        TypeError: names class and field.
    """
    made_of: Any = type(part)
    for name, kind, default, is_fit in _field_tests(made_of):
        value = getattr(part, name)
        if value is not default and not is_fit(value):
            where = f"{made_of.__name__}.{name}"
            raise TypeError(f"{where}: {_wanted(kind)} is wanted, not {shown(value)}")


@functools.cache
def _field_tests(part: Any) -> Sequence[tuple[str, Any, Any, Callable[[object], bool]]]:
    """Name, annotation, default and test of each field of a class, which take long to resolve."""
    kinds = typing.get_type_hints(part)
    return [
        (each.name, kinds[each.name], each.default, fits(kinds[each.name]))
        for each in dataclasses.fields(part)
    ]


@functools.cache
def fits(kind: Any) -> Callable[[object], bool]:
    """The test of a type, as annotated; of a scalar only the outermost is looked at."""
    if typing.get_origin(kind) is tuple:
        is_inner = fits(typing.get_args(kind)[0])
        return lambda value: isinstance(value, tuple) and all(map(is_inner, value))
    if typing.get_origin(kind) in UNIONS:
        kinds = typing.get_args(kind)
        if {int, str} <= {*kinds}:  # a scalar, which is checked with the whole, to any depth
            return lambda value: isinstance(value, (int, str, tuple))
        inner = [each for each in kinds if typing.get_origin(each) or each in WANTED]
        classes = tuple({*kinds} - {*inner})
        return functools.reduce(_either, map(fits, inner), lambda value: isinstance(value, classes))
    if kind is int:
        return lambda value: type(value) is int and value.bit_length() <= MAX_BITS
    if kind is float:
        return lambda value: isinstance(value, float) or fits(int)(value)
    if kind is str:
        return lambda value: isinstance(value, str) and value.isprintable()
    return lambda value: isinstance(value, kind)


def _either(
    one: Callable[[object], bool], other: Callable[[object], bool]
) -> Callable[[object], bool]:
    return lambda value: one(value) or other(value)


def _wanted(kind: Any) -> str:
    if typing.get_origin(kind) is tuple:
        return f"a tuple, each {_wanted(typing.get_args(kind)[0])},"
    if typing.get_origin(kind) in UNIONS:
        kinds = typing.get_args(kind)
        return WANTED[object] if {int, str} <= set(kinds) else " or ".join(map(_wanted, kinds))
    return WANTED.get(kind) or ("None" if kind is type(None) else f"a {kind.__name__}")


def shown(value: object) -> str:
    """The start of a value's text, on one line."""
    try:
        return ascii(value)[:40]
    except Exception as error:  # whatever a stranger's __repr__ raises
        return f"a {type(value).__name__} ({type(error).__name__})"
