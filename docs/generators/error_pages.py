"""The page of errors and warnings: a section for each class, and some with a message they raise."""

from __future__ import annotations

import ast
import functools
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from docs.generators.error_examples import COMMANDS, EXAMPLES, example_of, message_of
from docs.generators.error_words import GROUPS
from docs.generators.markdown_text import table

_ROOT: Final = Path(__file__).parents[2]
_ROOMS: Final = ("tiling", "simulator", "ascend_kernels", "pypto_cast")


@functools.cache
def error_classes() -> Mapping[str, str]:
    """The first line of the docstring of every error and warning class of the rooms, by name."""
    found: dict[str, tuple[list[str], str]] = {}
    for room in _ROOMS:
        for path in sorted((_ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
                    text = (ast.get_docstring(node) or "").partition("\n")[0]
                    found.setdefault(node.name, (bases, text))

    def is_error(name: str) -> bool:
        if name in found:
            return any(map(is_error, found[name][0]))
        kind = getattr(__import__("builtins"), name, None)
        return isinstance(kind, type) and issubclass(kind, BaseException)

    return {name: text for name, (_, text) in found.items() if name[0] != "_" and is_error(name)}


def page() -> str:
    """The meaning and the remedy of each error, by class."""
    return _page(
        "# Errors and warnings",
        "The command ends an error of this project with the name of its class in brackets, and so "
        "does a warning; a traceback begins its last line with it. Find the name here, or search "
        "for a word of the message. Some classes have an example; its message is that of this "
        "version.",
        ("class", "meaning"),
        ("What helps", "Code that raises it", "Its message"),
        is_chinese=False,
    )


def page_zh() -> str:
    """The same in Chinese."""
    return _page(
        "# 错误与警告",
        "命令打印本项目的错误和警告时，末尾的方括号中是类名；"
        "Python 的 traceback 最后一行以类名开头。"
        "在此按类名查找，或搜索错误信息中的词。部分类附有示例，其错误信息由当前版本运行得到。",
        ("类", "含义"),
        ("解决办法", "触发它的代码", "错误信息"),
        is_chinese=True,
    )


def _page(
    title: str,
    start: str,
    headings: tuple[str, str],
    labels: tuple[str, str, str],
    *,
    is_chinese: bool,
) -> str:
    def meaning(name: str, chinese: str) -> str:
        return chinese if is_chinese else error_classes()[name]

    rows = [
        (f"[{name}](#{name.lower()})", meaning(name, words[1]))
        for _, _, classes in GROUPS
        for name, words in classes.items()
    ]
    parts = [title, start, table(headings, rows)]
    for english, chinese, classes in GROUPS:
        parts.append(f"## {chinese if is_chinese else english}")
        for name, (remedy, told, remedy_told) in classes.items():
            helps = remedy_told if is_chinese else remedy
            parts.append(f"### {name}")
            parts.append(f"{meaning(name, told)}\n\n**{labels[0]}:** {helps}")
            if name in EXAMPLES or name in COMMANDS:
                parts.append(_example(name, labels[1:]))
    return "\n\n".join(parts) + "\n"


def _example(name: str, labels: tuple[str, str]) -> str:
    """Code and message, which a reader opens."""
    body = f"{example_of(name)}\n\n{labels[1]}:\n\n```text\n{message_of(name)}\n```"
    return f'??? example "{labels[0]}"\n\n{textwrap.indent(body, "    ")}'


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {"troubleshooting.md": page, "troubleshooting.zh.md": page_zh}
)
