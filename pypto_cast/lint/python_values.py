"""Values of Python expressions as far as a text tells them: dtypes, modes, shapes, tensors."""

from __future__ import annotations

import ast
import dataclasses
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pypto_cast.dtypes.names import spelled
from pypto_cast.lint.tracked import Mode, Saturation, Tracked, Unnamed
from pypto_cast.lint.vocabulary import (
    DECORATORS,
    EFFECTS,
    FLOAT8_NAMES,
    MODES,
    PYPTO,
    ROOTS,
    SATURATIONS,
    Effect,
)
from simulator.numbers.formats import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A name of a module, as its file imports it: `pypto.CAST_RINT`."""

    module: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dtype:
    """A dtype and the language whose name it is; empty: a text."""

    language: str
    format: Format


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Helper:
    """A function of the file that a kernel may call, and the names around it."""

    node: ast.FunctionDef
    scope: Scope

    def arguments(
        self, given: Sequence[Known], named: Mapping[str, Known]
    ) -> dict[str, Known] | None:
        """The values of its parameters in a call; None where they are not told by the text."""
        arguments = self.node.args
        places = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        names = {*places, *(each.arg for each in arguments.kwonlyargs)}
        if arguments.vararg or arguments.kwarg or len(given) > len(places) or set(named) - names:
            return None
        return {**dict.fromkeys(names), **dict(zip(places, given, strict=False)), **named}


Known = Tracked | Path | Dtype | Helper | int | float | str | tuple["Known", ...] | None
"""The value of an expression, as far as the text tells; None: it does not."""


class Scope:
    """Names of a function or branch, over those around it."""

    __slots__ = ("names", "outer", "tile")

    def __init__(self, outer: Scope | None = None) -> None:
        self.names: dict[str, Known] = {}
        self.outer = outer
        self.tile: tuple[int, ...] | None = None if outer is None else outer.tile

    def get(self, name: str) -> Known:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None


INTEGERS: Final[Mapping[type[ast.operator], Callable[[int, int], int]]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.FloorDiv: operator.floordiv,
    }
)
MOST: Final = 1 << 62
"""Larger numbers are unknown: no extent has them."""
_JIT: Final = ("frontend.jit", "jit")


def flat(value: Known) -> Known:
    """A tuple only where it holds none: lists of lists could be compared without end."""
    is_deep = isinstance(value, tuple) and any(isinstance(each, tuple) for each in value)
    return None if is_deep else value


def attribute(owner: Known, name: str) -> Known:
    if isinstance(owner, Path):
        return below(owner, name)
    if isinstance(owner, Tracked) and name == "dtype" and owner.format is not None:
        return Dtype(language="", format=owner.format)
    if isinstance(owner, Tracked) and name == "shape" and owner.shape is not None:
        return owner.shape
    if isinstance(owner, Tracked) and name == "T":
        return dataclasses.replace(owner, shape=None)
    return None


def negated(op: ast.unaryop, value: Known) -> Known:
    if isinstance(value, (int, float)):
        return -value if isinstance(op, ast.USub) else None
    if isinstance(value, Tracked) and isinstance(op, ast.USub):
        return Tracked(format=value.format, shape=value.shape, is_integral=value.is_integral)
    return None


def below(owner: Path, name: str) -> Known:
    """A name of a module: a dtype where it is one of a language, else its path."""
    whole = f"{owner.module}.{name}" if not owner.name else ""
    if whole and any(root == whole or root.startswith(f"{whole}.") for root in ROOTS):
        return Path(module=whole, name="")
    path = Path(module=owner.module, name=f"{owner.name}.{name}" if owner.name else name)
    fmt = format_named(name.removeprefix("DT_")) if language_of(path) else None
    is_dtype = path.name.count(".") == 0 or path.name.startswith("DataType.")
    return path if fmt is None or not is_dtype else Dtype(language=language_of(path), format=fmt)


def format_named(text: str) -> Format | None:
    row = spelled(text)
    return FLOAT8_NAMES.get(text) if row is None else row.format


def as_dtype(value: Known) -> Dtype | None:
    """The dtype that a value is or, a text, names."""
    if isinstance(value, Dtype):
        return value
    fmt = format_named(value) if isinstance(value, str) else None
    return None if fmt is None else Dtype(language="", format=fmt)


def language_of(path: Path) -> str:
    return ROOTS.get(path.module, "")


def effect_of(path: Path) -> Effect | None:
    language = "pypto" if language_of(path) in PYPTO else language_of(path)
    known = EFFECTS.get(language, {})
    return known.get(path.name)


def is_jit(decorator: Known) -> bool:
    return (
        isinstance(decorator, Path) and language_of(decorator) in PYPTO and decorator.name in _JIT
    )


def language_of_kernel(decorators: Iterable[Known]) -> str:
    """The language that a decorator makes a function one of; empty: none does."""
    paths = [f"{each.module}.{each.name}" for each in decorators if isinstance(each, Path)]
    return next((DECORATORS[each] for each in paths if each in DECORATORS), "")


def mode_named(given: Known | Unnamed) -> Mode:
    if given is Unnamed.DEFAULT:
        return Unnamed.DEFAULT
    text = given.name.rpartition(".")[2] if isinstance(given, Path) else given
    if not isinstance(text, str) or text not in MODES:
        return Unnamed.VARIABLE
    return MODES[text] or Unnamed.DEFAULT


def saturation_named(given: Known | Unnamed) -> Saturation:
    if given is Unnamed.DEFAULT:
        return Unnamed.DEFAULT
    text = given.name.rpartition(".")[2] if isinstance(given, Path) else given
    if not isinstance(text, str) or text not in SATURATIONS:
        return Unnamed.VARIABLE
    return SATURATIONS[text]


def created(given: Iterable[Known], named: Mapping[str, Known]) -> Tracked:
    """A tensor of a shape and a dtype, in either order; a bare text is a dtype's."""
    dtype: Dtype | None = None
    shape: tuple[Known, ...] | None = None
    for each in (*given, *named.values()):
        dtype = dtype or as_dtype(each)
        if isinstance(each, tuple) and shape is None:
            shape = each
    dynamic = any(isinstance(x, Path) and x.name.endswith("DYNAMIC") for x in shape or ())
    extents = None if not shape else tuple(x if isinstance(x, int) else None for x in shape)
    return Tracked(
        format=None if dtype is None else dtype.format,
        shape=extents,
        is_dynamic=dynamic,
        is_open=not shape and dtype is not None,
    )


def shape_given(
    given: Iterable[Known], named: Mapping[str, Known]
) -> tuple[int | None, ...] | None:
    shapes = [each for each in (*given, *named.values()) if isinstance(each, tuple)]
    if not shapes:
        return None
    return tuple(x if isinstance(x, int) and x > 0 else None for x in shapes[0])


def sliced(shape: tuple[int | None, ...] | None, index: ast.expr) -> tuple[int | None, ...] | None:
    """The extents of x[a:b, :]; None where an index is no slice, or the rank is unknown."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if shape is None or len(parts) > len(shape):
        return None
    extents: list[int | None] = []
    for each, extent in zip(parts, shape, strict=False):
        if not isinstance(each, ast.Slice) or each.step is not None:
            return None
        if each.lower is None and each.upper is None:
            extents.append(extent)
        else:
            start, end = 0 if each.lower is None else _literal(each.lower), _literal(each.upper)
            extents.append(None if start is None or end is None or end <= start else end - start)
    return (*extents, *shape[len(parts) :])


def _literal(node: ast.expr | None) -> int | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    return None


def summed_elems(source: Tracked, given: Sequence[Known], named: Mapping[str, Known]) -> int | None:
    """The count of elements that make one of a sum; None where the text does not tell."""
    if source.shape is None:
        return None
    axis = named.get("dim", named.get("axis", given[1] if len(given) > 1 else None))
    axes = axis if isinstance(axis, tuple) else (axis,)
    rank = len(source.shape)
    if axis is None:
        extents: list[int | None] = list(source.shape)
    else:
        inside = [a for a in axes if isinstance(a, int) and -rank <= a < rank]
        extents = [source.shape[a] for a in inside] if len(inside) == len(axes) else [None]
    numbers = [each for each in extents if each is not None]
    return math.prod(numbers) if len(numbers) == len(extents) else None


def defaults_of(arguments: ast.arguments) -> list[tuple[str, ast.expr]]:
    """The names of arguments that have defaults, and these."""
    places = [*arguments.posonlyargs, *arguments.args]
    pairs = zip(places[len(places) - len(arguments.defaults) :], arguments.defaults, strict=True)
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return [(each.arg, value) for each, value in (*pairs, *named) if value is not None]


def same_shape(tensors: list[Tracked]) -> tuple[int | None, ...] | None:
    shapes = {each.shape for each in tensors}
    return shapes.pop() if len(shapes) == 1 else None


def positive_ints(values: Iterable[Known]) -> tuple[int, ...] | None:
    """The numbers if all are known and positive."""
    listed = list(values)
    numbers = tuple(x for x in listed if isinstance(x, int) and x > 0)
    return numbers if numbers and len(numbers) == len(listed) else None


def names_set(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that statements bind, functions within them left out."""
    found: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            continue
        waiting += ast.iter_child_nodes(node)
    return found


def sets_tile(statement: ast.stmt) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == "set_vec_tile_shapes"
        for node in ast.walk(statement)
    )


def has_stars(call: ast.Call) -> bool:
    """True if a call spreads a list or a dict over its arguments."""
    stars = any(isinstance(each, ast.Starred) for each in call.args)
    return stars or any(each.arg is None for each in call.keywords)
