"""The parameters that a function's source writes to, whether or not a run comes by there."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

_WRITERS: Final[Mapping[str, tuple[int, str]]] = MappingProxyType(
    {
        "assemble": (-1, "out"),
        "atomic_add": (-1, "dst"),
        "index_put_": (0, "input"),
        "scatter_": (0, "input"),
    }
)
"""Operations that write to an operand: its position and its name."""
_METHODS: Final = ("assemble", "fill_", "move", "scatter_")
"""Methods that write to their tensor."""


def written_parameters(function: Callable[..., object]) -> frozenset[str]:
    """Find the parameters that a function assigns parts of, or has others write to.

    Functions that it calls by a name of its module, or of functions around it, are looked into; a
    second name of a parameter is not followed. None are found where there is no source.
    """
    return _written(function, set())


def _written(function: Callable[..., object], seen: set[object]) -> frozenset[str]:
    function = inspect.unwrap(function)
    if function in seen or not inspect.isfunction(function):
        return frozenset()
    seen.add(function)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return frozenset()
    known = inspect.getclosurevars(function)
    names = {**known.globals, **known.nonlocals}
    parameters = frozenset(inspect.signature(function).parameters)
    return parameters & {
        name.id
        for node in ast.walk(tree)
        for name in _targets(node, names, seen)
        if isinstance(name, ast.Name)
    }


def _targets(node: ast.AST, names: Mapping[str, Any], seen: set[object]) -> Iterator[ast.AST]:
    """Finds the expressions that a node of the source writes to."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        yield node.value
    if not isinstance(node, ast.Call):
        return
    called, named = node.func, {each.arg: each.value for each in node.keywords}
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    if isinstance(called, ast.Attribute) and name in _METHODS:
        yield called.value
    if name in _WRITERS:
        position, keyword = _WRITERS[name]
        yield from [named[keyword]] if keyword in named else node.args[position:][:1]
    elif isinstance(called, ast.Name) and callable(names.get(name)):
        inner = names[name]
        found = _written(inner, seen)
        if found:
            parameters = list(inspect.signature(inspect.unwrap(inner)).parameters)
            given = [*zip(parameters, node.args, strict=False), *named.items()]
            yield from (value for parameter, value in given if parameter in found)
