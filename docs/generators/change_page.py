"""The page of results that change by version, made of CHANGELOG.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from docs.generators.markdown_text import table

_CHANGELOG: Final = Path(__file__).parents[2] / "CHANGELOG.md"
_VERSION: Final = re.compile(r"^## \[([^\]]+)\](.*?)(?=^## \[|\Z)", re.S | re.M)
_SECTION: Final = re.compile(r"^### Results that change\n(.*?)(?=^### |\Z)", re.S | re.M)
_ITEM: Final = re.compile(r"^- (.*?)(?=^- |\Z)", re.S | re.M)
_BEFORE: Final = re.compile(r"^(.*?)\s*As before:\s*(.*)$", re.S)


def changes(text: str) -> Iterator[tuple[str, str, str]]:
    """The version, the change and the way to have it as before of each item of a changelog."""
    for version, body in _VERSION.findall(text):
        for section in _SECTION.findall(body):
            for item in _ITEM.findall(section):
                line = " ".join(item.split())
                parts = _BEFORE.match(line)
                yield (version, line, "") if parts is None else (version, parts[1], parts[2])


def page() -> str:
    """The results that change, by version, with the option that gives the former ones."""
    return _page(
        "# What changed for my kernel",
        "Results that a new version changes, the newest first. Additions and corrections that "
        "change no result are in `CHANGELOG.md`. Upstream's own releases differ too: "
        '`pypto.options(release="0.2.0")` and `release="head"` choose, and '
        "`pypto-cast certainty` counts the results that the other one changes.",
        ("change", "as before"),
    )


def page_zh() -> str:
    """The same with a Chinese introduction; the items are those of the changelog, in English."""
    return _page(
        "# 对我的算子有哪些变化",
        "新版本改变的结果，最新的在前；条目取自 `CHANGELOG.md`（英文）。"
        "不改变结果的新增和修正也在该文件中。"
        '上游的各个版本也有差异：用 `pypto.options(release="0.2.0")` 或 '
        '`release="head"` 选择，'
        "`pypto-cast certainty` 会统计换用另一个版本时改变的结果。",
        ("变化", "恢复原来的结果"),
    )


def _page(title: str, start: str, headings: tuple[str, str]) -> str:
    found: dict[str, list[tuple[str, str]]] = {}
    for version, change, before in changes(_CHANGELOG.read_text(encoding="utf-8")):
        found.setdefault(version, []).append((change, before))
    parts = [title, start]
    for version, rows in found.items():
        parts += [f"## {version}", table(headings, rows)]
    return "\n\n".join(parts) + "\n"


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {"changes.md": page, "changes.zh.md": page_zh}
)
