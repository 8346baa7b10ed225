"""Bodies of loops that carry out the same operations in every iteration, whatever the index is.

Such a body assigns results of known operations to names and to boxes of tensors, in a row. Nothing
in it decides, prints, calls anything else, or reads a name that the iteration before assigned; the
index is in the places of boxes alone, in sums and products of ints. So all that Python does in an
iteration is seen in its operations.
"""

from __future__ import annotations

import ast
import functools
import textwrap
from collections.abc import Callable, Mapping
from enum import Enum
from inspect import getsourcelines
from types import CodeType, FrameType, ModuleType
from typing import Any, Final

from pypto_cast.tensors.symbolic import SymbolicScalar
from pypto_cast.tensors.tensor import Tensor

BY_ELEMENT: Final = frozenset(
    (
        *("add", "sub", "mul", "div", "maximum", "minimum", "abs", "neg", "relu", "cast"),
        *("exp", "log", "sqrt", "rsqrt", "reciprocal", "sigmoid"),
    )
)
"""The operations whose elements depend on those at the same place alone."""
BY_ROW: Final = frozenset(("amax", "amin", "sum"))
COMPOSED_BY_ROW: Final = frozenset(("softmax", "rms_norm"))
"""The operations that keep the shape, each row by itself; softmax does along the last dimension."""
BOXES: Final = frozenset(("view", "assemble"))
_OURS: Final = "pypto_cast"
_KNOWN: Final = BY_ELEMENT | BY_ROW | COMPOSED_BY_ROW | BOXES
_PLACES: Final = {"view": ("offsets", 2), "assemble": ("offsets", 1)}
"""The operations that take a place: name and position of that argument."""
_PLAIN: Final = (Tensor, SymbolicScalar, Enum, int, float, str)
"""The types of names from before the loop: nothing runs where an operation takes one."""
_OPERATORS: Final = (ast.Add, ast.Sub, ast.Mult)


def is_straight(frame: FrameType) -> bool:
    """True if a frame is at a `for` statement over `pypto.loop` itself with such a body."""
    found = _loop_at(frame.f_code, frame.f_lineno)
    if found is None or not isinstance(found.target, ast.Name) or found.orelse:
        return False
    names: Mapping[str, Any] = {**frame.f_builtins, **frame.f_globals, **frame.f_locals}
    takes = _function_of(found.iter, names) if isinstance(found.iter, ast.Call) else None
    if takes != "loop":
        return False
    body = _Body(found, names)
    try:
        for statement in found.body:
            body.check(statement)
    except _NotStraightError:
        return False
    return True


@functools.lru_cache(maxsize=1 << 8)
def _loop_at(code: CodeType, line: int) -> ast.For | None:
    """The `for` statement of a line; None where there is no source, or several of them."""
    try:
        lines, first = getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    at = line - max(first, 1) + 1
    found = [x for x in ast.walk(tree) if isinstance(x, ast.For) and x.lineno == at]
    return found[0] if len(found) == 1 else None


@functools.lru_cache(maxsize=1 << 8)
def _assigned_in(loop: ast.For) -> frozenset[str]:
    """The names that a loop assigns; looked for once, as a loop is."""
    named = (x for x in ast.walk(loop) if isinstance(x, ast.Name))
    return frozenset(x.id for x in named if isinstance(x.ctx, ast.Store))


class _NotStraightError(Exception):
    """The body has something else."""


class _Body:
    """The names of a body while its statements are checked one after another."""

    def __init__(self, loop: ast.For, names: Mapping[str, Any]) -> None:
        self._assigned = _assigned_in(loop)
        self._names = names
        assert isinstance(loop.target, ast.Name)
        self._indices = {loop.target.id}
        self._known: set[str] = set()

    def check(self, statement: ast.stmt) -> None:
        """Refuse a statement that is no assignment of an operation's result, nor a call of one.

        Raises:
            _NotStraightError: that.
        """
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            self._has_index(statement.value)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self._assign(statement.targets[0], self._has_index(statement.value))
        else:
            raise _NotStraightError

    def _assign(self, target: ast.expr, has_index: bool) -> None:
        if isinstance(target, ast.Name):
            self._indices.discard(target.id)
            (self._indices if has_index else self._known).add(target.id)
        elif isinstance(target, ast.Subscript) and not has_index:
            self._free_tensor(target.value)
            self._has_index(target.slice)
        else:
            raise _NotStraightError

    def _free_tensor(self, node: ast.expr) -> None:
        """Refuse a tensor that is not from before the loop, by its name."""
        is_free = isinstance(node, ast.Name) and node.id not in self._assigned
        if not (is_free and isinstance(self._names.get(getattr(node, "id", "")), Tensor)):
            raise _NotStraightError

    def _has_index(self, node: ast.expr) -> bool:
        """True if an expression depends on the index; refuses those that are not known."""
        check = _EXPRESSIONS.get(type(node))
        if check is None:
            raise _NotStraightError
        return check(self, node)

    def _constant(self, node: ast.Constant) -> bool:
        return False

    def _name(self, node: ast.Name) -> bool:
        if node.id in self._indices:
            return True
        if node.id in self._assigned:
            if node.id not in self._known:
                raise _NotStraightError  # the iteration before assigned it
        elif not isinstance(self._names.get(node.id), _PLAIN):
            raise _NotStraightError
        return False

    def _attribute(self, node: ast.Attribute) -> bool:
        root = node.value
        if not isinstance(root, ast.Name) or root.id in self._assigned:
            raise _NotStraightError
        of = self._names.get(root.id)
        if not (isinstance(of, ModuleType) or (isinstance(of, Tensor) and node.attr == "shape")):
            raise _NotStraightError
        return False

    def _subscript(self, node: ast.Subscript) -> bool:
        if isinstance(node.value, ast.Attribute):
            if self._has_index(node.value) or self._has_index(node.slice):
                raise _NotStraightError
            return False
        self._free_tensor(node.value)
        self._has_index(node.slice)
        return False

    def _slice(self, node: ast.Slice) -> bool:
        parts = (node.lower, node.upper, node.step)
        found = [self._has_index(each) for each in parts if each is not None]
        return any(found)  # all of them were checked

    def _sequence(self, node: ast.Tuple | ast.List) -> bool:
        found = [self._has_index(each) for each in node.elts]
        return any(found)

    def _unary(self, node: ast.UnaryOp) -> bool:
        if not isinstance(node.op, ast.USub):
            raise _NotStraightError
        return self._has_index(node.operand)

    def _binary(self, node: ast.BinOp) -> bool:
        left, right = self._has_index(node.left), self._has_index(node.right)
        if isinstance(node.op, ast.Mult) and left and right:
            raise _NotStraightError
        if not isinstance(node.op, _OPERATORS) and (left or right):
            raise _NotStraightError
        return left or right

    def _call(self, node: ast.Call) -> bool:
        root = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        name = _function_of(node, self._names)
        if not isinstance(root, ast.Name) or root.id in self._assigned or name not in _KNOWN:
            raise _NotStraightError
        place = _PLACES.get(name, ("", -1))
        given = [(each.arg, each.value) for each in node.keywords]
        given += [(place[0] if k == place[1] else "", each) for k, each in enumerate(node.args)]
        for argument, value in given:
            if self._has_index(value) and argument != place[0]:
                raise _NotStraightError
        return False


_EXPRESSIONS: Final[Mapping[type[ast.expr], Callable[[_Body, Any], bool]]] = {
    ast.Constant: _Body._constant,
    ast.Name: _Body._name,
    ast.Attribute: _Body._attribute,
    ast.Subscript: _Body._subscript,
    ast.Slice: _Body._slice,
    ast.Tuple: _Body._sequence,
    ast.List: _Body._sequence,
    ast.UnaryOp: _Body._unary,
    ast.BinOp: _Body._binary,
    ast.Call: _Body._call,
}


def _function_of(call: ast.Call, names: Mapping[str, Any]) -> str:
    """The name of the operation of this package that a call is of; "" if it is of none."""
    function: Any
    if isinstance(call.func, ast.Name):
        function = names.get(call.func.id)
    elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        module = names.get(call.func.value.id)
        function = vars(module).get(call.func.attr) if isinstance(module, ModuleType) else None
        if function is None and getattr(module, "__name__", "") == _OURS:
            function = getattr(module, call.func.attr, None)
    else:
        return ""
    # A function that wraps one of ours has its name and module, but not its globals.
    places = (
        getattr(function, "__module__", ""),
        getattr(function, "__globals__", {}).get("__name__"),
    )
    is_ours = all(str(place).startswith(f"{_OURS}.") for place in places)
    return str(getattr(function, "__name__", "")) if is_ours else ""
