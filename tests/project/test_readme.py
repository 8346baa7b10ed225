"""The README tells the truth: its code gives its output, its table is the matrix; and the pages for
contributors name files that exist.
"""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from ascend_kernels.matrix_table import markdown

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_first_example_prints_what_is_shown() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _blocks("python")[0]],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout == _blocks("text")[0]
    assert len([line for line in _blocks("python")[0].splitlines() if line]) <= 5


@pytest.mark.parametrize("number", range(1, len(_blocks("python"))))
def test_other_examples_run_without_a_warning(number: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(_blocks("python")[number], "README.md", "exec"), {})


def test_the_support_table_is_the_matrix() -> None:
    shown = re.search(r"<!-- matrix: .*? -->\n(.*?)<!-- end of matrix -->", README, re.S)
    assert shown is not None
    assert shown[1].strip() == markdown().strip()


def test_both_set_up_commands_make_their_own_environment() -> None:
    commands = [block for block in _blocks("sh") if block.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert all(len(command.splitlines()) == 1 for command in commands)


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md", "tests/README.md"])
def test_pages_name_files_that_exist(page: str) -> None:
    path = ROOT / page
    named = re.findall(r"`([\w./]+/[\w./]*|[\w/]+\.(?:py|md|toml))`", path.read_text())
    assert named
    assert [n for n in named if not ((ROOT / n).exists() or (path.parent / n).exists())] == []
