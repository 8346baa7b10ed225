"""The pages of the operations, one a family, made of their tables, docstrings and signatures."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, zip_longest
from types import MappingProxyType
from typing import Final

import pypto_cast
from documentation.markdown_table import table
from documentation.operation_examples import EXAMPLES, OPERANDS
from pypto_cast import operations
from pypto_cast.operations.indexed.indexed_rows import INDEXED_ROWS, IndexedRow
from pypto_cast.operations.operation_rows import ROWS, OperationRow
from pypto_cast.options import defaults

_TITLES: Final = MappingProxyType(
    {
        "elementwise_functions": "Elementwise arithmetic",
        "truth_and_bits": "Comparisons, truth and bits",
        "reduction_functions": "Reductions",
        "composites": "Composites and rounding",
        "creation": "Creation",
        "movement": "Movement",
        "padding": "Padding",
        "quantization": "Quantisation",
        "indexed.gathering": "Reading by index",
        "indexed.scattering": "Writing by index",
        "indexed.sorting": "Sorting and running sums",
        "cube.matrix_functions": "Products of matrices",
    }
)
"""Titles of the families, by the module that holds the functions."""


def names_of_family(module: str) -> list[str]:
    """The operations that a module of `pypto_cast.operations` defines."""
    functions = importlib.import_module(f"pypto_cast.operations.{module}")
    return [
        name for name in operations.__all__ if hasattr(functions, name) and _is_of(name, module)
    ]


def _is_of(name: str, module: str) -> bool:
    function = inspect.unwrap(getattr(pypto_cast, name))
    return bool(function.__module__ == f"pypto_cast.operations.{module}")


def _page(module: str) -> str:
    names = names_of_family(module)
    parts = [
        f"# {_TITLES[module]}",
        "What holds for all of them, formats, AutoCast, sums, memory, is in "
        "[Operations around the cast](../operations.md).",
    ]
    if any(name in EXAMPLES for name in names):
        parts += ["The examples use these operands:", f"```python\n{OPERANDS}```"]
    for name in names:
        parts += _operation(name)
    return "\n\n".join(parts) + "\n"


def _operation(name: str) -> Iterator[str]:
    function = getattr(pypto_cast, name)
    prototype = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
    prototype = re.sub(r"<([\w.]+): [^>]+>", r"\1", prototype)
    yield f"## {name}"
    yield f"```text\npypto.{name}{prototype}\n```"
    yield _docstring(function)
    facts = list(_facts(name))
    if facts:
        yield table(("", ""), facts)
    if name in EXAMPLES:
        code = f"print({EXAMPLES[name]})"
        yield f"```python\n{code}\n```"
        yield f"```text\n{_printed(code)}```"


def _docstring(function: Callable[..., object]) -> str:
    """The docstring, its sections as lists."""
    lines = []
    for line in (inspect.getdoc(function) or "").splitlines():
        if line.rstrip() in ("Args:", "Raises:", "Returns:"):
            lines += [f"**{line.strip()[:-1]}**", ""]
        elif line.startswith("    ") and not line.startswith("     ") and ":" in line:
            lines.append(f"- {_plain(line.strip())}")
        elif line.startswith("    ") and not line.startswith("     "):
            lines.append(_plain(line.strip()))
        else:
            lines.append(_plain(line))
    return "\n".join(lines)


def _plain(line: str) -> str:
    """The line with Markdown's signs escaped, but for code."""
    parts = line.split("`")
    escaped = [re.sub(r"([\[\]*<])", r"\\\1", part) for part in parts[::2]]
    both = chain.from_iterable(zip_longest(escaped, parts[1::2]))
    return "`".join(part for part in both if part is not None)


def _facts(name: str) -> Iterator[tuple[str, str]]:
    if name in ROWS:
        yield from _of_operation(ROWS[name])
    if name in INDEXED_ROWS:
        yield from _of_indexed(INDEXED_ROWS[name])


def _of_operation(row: OperationRow) -> Iterator[tuple[str, str]]:
    arithmetic = row.arithmetic
    yield "dtypes", ", ".join(dtype.name for dtype in row.dtypes)
    if row.widened:
        yield "runs in FP32 (AutoCast)", ", ".join(sorted(dtype.name for dtype in row.widened))
    yield "instruction", arithmetic.instruction
    yield "fidelity", arithmetic.fidelity.value
    if arithmetic.bound is not None:
        ulps = ", ".join(f"{fmt.name} {count} ulp" for fmt, count in arithmetic.bound.ulps.items())
        yield "bound", f"{ulps}: {arithmetic.bound.source}"
    if arithmetic.assumes:
        yield "assumes", ", ".join(str(assumption) for assumption in arithmetic.assumes)
    yield "source", arithmetic.source


def _of_indexed(row: IndexedRow) -> Iterator[tuple[str, str]]:
    if row.dtypes:
        yield "dtypes", ", ".join(dtype.name for dtype in row.dtypes)
    if row.index_dtypes:
        yield "dtypes of indices", ", ".join(dtype.name for dtype in row.index_dtypes)
    yield "instruction", row.instruction
    yield "fidelity", row.fidelity.value
    if row.assumes:
        yield "assumes", ", ".join(sorted(str(assumption) for assumption in row.assumes))
    yield "source", row.source


def _printed(code: str) -> str:
    shown = io.StringIO()
    with defaults(), warnings.catch_warnings(), contextlib.redirect_stdout(shown):
        warnings.simplefilter("error")
        exec(OPERANDS + code, {})
    return shown.getvalue()


PAGES: Final = MappingProxyType[str, Callable[[], str]](
    {f"operations/{module.rpartition('.')[2]}.md": partial(_page, module) for module in _TITLES}
)
