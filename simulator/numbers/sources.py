"""The digest of source code by what it does, which certificates carry."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path


def sources_digest(folder: Path, left_out: str) -> str:
    """Digest what the code in a folder does, but for one folder in it: 16 hex digits of a SHA-256.

    Of Python the syntax trees count, without docstrings, comments and layout; of C++ the text.
    """
    found = hashlib.sha256()
    for source in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        if source.relative_to(folder).parts[0] == left_out:
            continue
        if source.suffix == ".py":
            content = _tree_text(ast.parse(source.read_bytes())).encode()
        elif source.suffix in (".h", ".cpp"):
            content = source.read_bytes()
        else:
            continue
        found.update(source.relative_to(folder).as_posix().encode() + b"\0" + content + b"\0")
    return found.hexdigest()[:16]


def _tree_text(node: object) -> str:
    """A syntax tree as text, the same in every version of Python: empty fields, new ones, go."""
    if isinstance(node, list):
        return f"[{','.join(map(_tree_text, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if _has_docstring(node):
        fields["body"] = fields["body"][1:]
    kept = (f"{k}={_tree_text(v)}" for k, v in fields.items() if v not in (None, []))
    return f"{type(node).__name__}({','.join(kept)})"


def _has_docstring(node: ast.AST) -> bool:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None
