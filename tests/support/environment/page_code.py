"""Runs the code blocks of pages as a reader would: from the top, each page in a folder of its own.

A `python` block is executed in the page's namespace, one with a title is saved under it as well. A
line of an `sh` block that starts with `pypto-cast`, `python FILE` or `python -m pytest` is run.
What is printed has to be the `text` block behind it, where there is one.

    python tests/support/environment/page_code.py PAGE...   prints what differs, and exits with 1
"""

from __future__ import annotations

import contextlib
import contextvars
import io
import os
import re
import runpy
import shlex
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.S | re.M)
NOT_RUN = ("python3 -m venv", "pip install", ".venv/bin/", "python -m benchmarks", "MALLOC_", "#")
"""Commands that set something up or take long; other steps of CI run the first two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    language: str
    title: str | None
    text: str
    follows: bool
    """Nothing but white space stands between it and the block before."""


def blocks_of(markdown: str) -> list[Block]:
    found, end = [], 0
    for match in BLOCK.finditer(markdown):
        follows = not markdown[end : match.start()].strip()
        found.append(Block(language=match[1], title=match[2], text=match[3], follows=follows))
        end = match.end()
    return found


def _run_python(block: Block, space: dict[str, Any]) -> None:
    name = block.title or "page"
    if block.title:
        Path(block.title).write_text(block.text, encoding="utf-8")
    exec(compile(block.text, name, "exec"), space)


def _run_line(line: str) -> None:
    from pypto_cast.cli.main import main

    words = shlex.split(line, comments=True)
    if words[:1] == ["pypto-cast"]:
        assert main(words[1:]) == 0
    elif words[:3] == ["python", "-m", "pytest"]:
        import pytest

        with contextlib.redirect_stdout(io.StringIO()):
            settings = [
                "-p",
                "pypto_cast.pytest_plugin",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:xdist",
            ]
            assert pytest.main([*words[3:], *settings, "-c", os.devnull, "--rootdir=."]) == 0
    elif words[:1] == ["python"] and words[1].endswith(".py"):
        runpy.run_path(words[1], run_name="__main__")
    else:
        raise AssertionError(f"nobody runs this line: {line}")


def _run(block: Block, space: dict[str, Any]) -> None:
    if block.language == "python":
        _run_python(block, space)
    elif block.language == "toml":
        tomllib.loads(block.text)
    else:
        for line in block.text.replace("\\\n", " ").splitlines():
            if line.strip() and not line.startswith(NOT_RUN):
                _run_line(line)


def differences(page: str, markdown: str) -> Iterator[str]:
    """Reports each block that raises, warns, or prints something else than the page shows."""
    blocks = blocks_of(markdown)
    space: dict[str, Any] = {"__name__": "page"}
    for number, block in enumerate(blocks):
        if block.language not in ("python", "sh", "toml"):
            continue
        shown = io.StringIO()
        try:
            with contextlib.redirect_stdout(shown), warnings.catch_warnings():
                warnings.simplefilter("error")
                _run(block, space)
        except Exception:
            yield f"{page}: {block.text}\n{traceback.format_exc()}"
        printed = "\n".join(line.rstrip() for line in shown.getvalue().strip().splitlines())
        for after in blocks[number + 1 : number + 2]:
            is_output = after.language == "text" and after.follows and not after.title
            if is_output and printed != after.text.strip():
                yield f"{page}: {block.text}prints\n{printed}\nand the page shows\n{after.text}"


def check(page: Path) -> list[str]:
    """Runs a page in a new folder that has the examples and tests, with options of its own."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        for name in ("examples", "tests"):
            os.symlink(ROOT / name, Path(folder, name))
        os.chdir(folder)
        sys.path.insert(0, folder)
        try:
            text = page.read_text(encoding="utf-8")
            return contextvars.copy_context().run(lambda: list(differences(page.name, text)))
        finally:
            sys.path.remove(folder)
            os.chdir(before)
            for name, module in list(sys.modules.items()):
                if str(getattr(module, "__file__", "")).startswith(folder):
                    del sys.modules[name]


if __name__ == "__main__":
    os.environ["COLUMNS"] = "140"
    found = [text for page in sys.argv[1:] for text in check(Path(page).resolve())]
    print("\n".join(found))
    sys.exit(bool(found))
