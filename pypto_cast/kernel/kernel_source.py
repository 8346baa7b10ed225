"""The source of a kernel's function: statements that upstream refuses, parameters it assigns to."""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

from pypto_cast.call_sites import Place
from pypto_cast.options.releases import RELEASES, ReleaseName

REFUSED: Final = frozenset(
    (
        *("AsyncFor", "AsyncFunctionDef", "AsyncWith", "ClassDef", "Global", "Import"),
        *("ImportFrom", "Match", "Nonlocal", "Return", "Try", "TryStar", "With"),
    )
)
"""Statements that no parser of upstream's takes in a kernel; nor an `else` of a loop.

Source: upstream pypto, `python/pypto/frontend/parser/parser.py` at r0.2.0 and 883e7dfb0, and
`python/pypto/pil/parser.py` at 883e7dfb0: the methods `_visit_*` and `visit_*`.
"""
REFUSED_IN_LOOPS: Final = frozenset(("Break", "Continue"))
"""Statements that none of them takes in the body of a `pypto.loop`."""
LOOPS: Final = ("loop", "loop_unroll")


Releases = frozenset[ReleaseName]


def refused_statements(function: Callable[..., Any]) -> tuple[tuple[Place, str, Releases], ...]:
    """The statements of a function that upstream refuses in a kernel.

    Returns:
        For each its place, its first line, and the releases that refuse it.

    A function whose source cannot be read, which upstream cannot compile, has none.
    """
    lines, first, tree = parsed(function)
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.FunctionDef) else ()
    found = list(_refused(body, in_loop=False))
    file = inspect.getfile(function) if found else ""
    return tuple(
        ((file, first + each.lineno - 1), lines[each.lineno - 1].strip(), releases)
        for each, releases in found
    )


def parsed(function: Callable[..., object]) -> tuple[list[str], int, ast.Module]:
    """The lines of a function, the number of the first, and their tree; empty without a source."""
    try:
        lines, first = inspect.getsourcelines(function)
        return lines, first, ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return [], 0, ast.Module(body=[], type_ignores=[])


def _refused(body: Sequence[ast.stmt], *, in_loop: bool) -> Iterator[tuple[ast.stmt, Releases]]:
    for statement in body:
        kind, is_loop = type(statement).__name__, isinstance(statement, ast.For | ast.While)
        alternative = getattr(statement, "orelse", [])
        if kind in REFUSED or (in_loop and kind in REFUSED_IN_LOOPS) or (is_loop and alternative):
            yield statement, frozenset(RELEASES)
        elif names := [n for n, each in RELEASES.items() if kind in each.lacks_statements]:
            yield statement, frozenset(names)
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        within = _is_kernel_loop(statement) if is_loop else in_loop
        yield from _refused(getattr(statement, "body", []), in_loop=within)
        yield from _refused(alternative, in_loop=in_loop)


def _is_kernel_loop(statement: ast.stmt) -> bool:
    """True if a statement is a `for` over `pypto.loop(...)` or `loop(...)`."""
    called = statement.iter if isinstance(statement, ast.For) else None
    if not isinstance(called, ast.Call):
        return False
    return getattr(called.func, "attr", getattr(called.func, "id", "")) in LOOPS


def reassigned(function: Callable[..., Any], names: Collection[str]) -> tuple[str, Place] | None:
    """The first of some parameters that a function assigns to, and where; None without one.

    The variable of a `for` statement and of a comprehension is no assignment, as upstream has it.
    It reads the bytecode, which a function that was typed in or piped has too.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    lines, line, before = dict(dis.findlinestarts(code)), code.co_firstlineno, ""
    variables = {s.argval for s in dis.get_instructions(code) if s.opname == "LOAD_FAST_AND_CLEAR"}
    for step in dis.get_instructions(code):
        line = lines.get(step.offset) or line
        if step.opname.startswith(("STORE_FAST", "STORE_DEREF")) and before != "FOR_ITER":
            stored = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            for name in stored[:1] if step.opname.endswith("LOAD_FAST") else stored:
                if name in names and name not in variables:
                    return name, (code.co_filename, line)
        before = step.opname
    return None
