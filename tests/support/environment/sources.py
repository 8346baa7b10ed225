"""The checkout, the Python files of its four packages, and what each imports."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
CASE_TABLES = ROOT.parent / "shared" / "data"
"""Tables of cases beside the checkout; without them tests are skipped."""
ROOMS = ("tiling", "simulator", "ascend_kernels", "pypto_cast")


def sources(room: str) -> Iterator[Path]:
    return (ROOT / room).rglob("*.py")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.Module, *, package: str) -> Iterator[tuple[int, str]]:
    """Yields line and full name of everything that a module imports, wherever in it.

    `from a import b` yields both `a` and `a.b`, which may be a module; so does `import a` where
    `a.b` is read.
    """
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
            bound |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1]
            prefix = [*(base if node.level else []), *([node.module] if node.module else [])]
            names = [[], *([alias.name] for alias in node.names)]
            yield from ((node.lineno, ".".join([*prefix, *name])) for name in names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            read = [bound[node.value.id]] if node.value.id in bound else []
            yield from ((node.lineno, f"{module}.{node.attr}") for module in read)


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports_of(path: Path) -> list[tuple[int, str]]:
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return list(imported(tree_of(path), package=package))
