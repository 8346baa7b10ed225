"""The parameters that a function's source may write to, whether or not a run comes by there."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeGuard

from pypto_cast.kernel.kernel_source import parsed
from pypto_cast.tensors.tensor import Tensor

_WRITERS: Final[Mapping[str, tuple[int, str]]] = MappingProxyType(
    {
        "assemble": (-1, "out"),
        "atomic_add": (-1, "dst"),
        "index_put_": (0, "input"),
        "scatter_": (0, "input"),
    }
)
"""Operations that write to an operand: its position and its name."""
_METHODS: Final = ("__setitem__", "assemble", "fill_", "move", "scatter_")
"""Methods that write to their tensor."""
_OURS: Final = __name__.partition(".")[0]
_READERS: Final = (ast.BinOp, ast.Compare, ast.Expr, ast.If, ast.UnaryOp, ast.While)
"""Expressions and statements that write to none of their operands."""

_Known = dict[object, frozenset[str]]


def written_parameters(function: Callable[..., object]) -> frozenset[str]:
    """Find the parameters that a function writes to, or hands to what may.

    One that gets a second name, or goes into a list or to a call that is not known, may be written.
    Functions that can be told by their name, and methods of modules and classes, are looked into.
    Where there is no source, all may be.
    """
    return _written(function, {})


def _written(function: Callable[..., object], found: _Known) -> frozenset[str]:
    function = inspect.unwrap(function)
    if function in found:
        return found[function]
    parameters = frozenset(inspect.signature(function).parameters)
    found[function] = parameters  # where it calls itself
    lines, _, tree = parsed(function)
    if not lines:
        return parameters
    scope = inspect.getclosurevars(function)
    names = {**scope.builtins, **scope.globals, **scope.nonlocals}
    read = {id(each) for node in ast.walk(tree) for each in _read(node, names, found)}
    found[function] = parameters & {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in read
    }
    return found[function]


def _read(node: ast.AST, names: Mapping[str, Any], found: _Known) -> Iterator[ast.AST]:
    """Finds the expressions that a node of the source reads and does not write to."""
    if isinstance(node, ast.Call):
        yield from _read_by_call(node, names, found)
    elif isinstance(node, ast.Assign):
        targets = [each for target in node.targets for each in _items(target)]
        if all(isinstance(each, (ast.Subscript, ast.List, ast.Tuple)) for each in targets):
            yield from _items(node.value)
    elif isinstance(node, ast.AugAssign) or _is_part(node):
        yield node.value
    elif isinstance(node, _READERS):
        yield from ast.iter_child_nodes(node)


def _is_part(node: ast.AST) -> TypeGuard[ast.Subscript | ast.Attribute]:
    """Tells whether it takes a part or an attribute, and is no method that writes."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Attribute) and node.attr not in _METHODS


def _read_by_call(node: ast.Call, names: Mapping[str, Any], found: _Known) -> Iterator[ast.AST]:
    called, named = node.func, {each.arg: each.value for each in node.keywords}
    function, written = _value(called, names), node.args[:0]
    is_method = function is None and isinstance(called, ast.Attribute)
    if isinstance(called, ast.Attribute) and is_method:
        function = getattr(Tensor, called.attr, None)
    if not callable(function) or any(isinstance(each, ast.Starred) for each in node.args):
        return
    if is_method:
        pass  # it writes to its own tensor alone
    elif _is_harmless(function):
        position, keyword = _WRITERS.get(function.__name__, (len(node.args), ""))
        written = [named[keyword]] if keyword in named else node.args[position:][:1]
    elif not inspect.isfunction(inspect.unwrap(function)):
        return
    else:
        may = _written(function, found)
        parameters = list(inspect.signature(inspect.unwrap(function)).parameters)
        if len(node.args) > len(parameters) or not set(named) <= set(parameters):
            return
        given = [*zip(parameters, node.args, strict=False), *named.items()]
        written = [value for parameter, value in given if parameter in may]
    for value in (*node.args, *named.values()):
        if value not in written:
            yield from _items(value)


def _is_harmless(function: Any) -> bool:
    """Tells whether it is an operation, which writes to what `_WRITERS` says, or Python's own."""
    module = str(getattr(inspect.unwrap(function), "__module__", ""))
    return module.partition(".")[0] == _OURS or (
        getattr(builtins, getattr(function, "__name__", ""), None) is function
        and function not in (setattr, map, filter, zip, enumerate, list, tuple, dict, iter)
    )


def _value(node: ast.AST, names: Mapping[str, Any]) -> Any:
    """The value of a name, or of an attribute of a module or a class; None: not known."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, names), node.attr, None)
    return None


def _items(node: ast.AST) -> Iterator[ast.AST]:
    """An argument, and what a list or a tuple of it holds."""
    yield node
    if isinstance(node, (ast.List, ast.Tuple)):
        for each in node.elts:
            yield from _items(each)
