"""The size of the house: `python -m benchmarks.count_lines`.

Counts the lines (as `wc -l`) of the tracked .py, .h and .cpp files of the four packages, of the
generators in docs/, of benchmarks/ and examples/, and the Python modules of the packages; how many
of them have fewer than 60 lines without docstrings and comments; and the modules of the packages
that `import pypto_cast` and a first cast load.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("tiling", "simulator", "ascend_kernels", "pypto_cast")
COUNTED: Final = (*PACKAGES, "docs", "benchmarks", "examples")
SUFFIXES: Final = (".py", ".h", ".cpp")
SHORT_LINES: Final = 60
_LOADED: Final = "import sys; print(sum(x.split('.')[0] in {packages} for x in sys.modules))"
_PROGRAMS: Final = {
    "import pypto_cast": "import pypto_cast",
    "a cast": "import pypto_cast as p; p.cast(p.tensor([8], p.DT_FP32, data=[1.0] * 8), p.DT_FP16)",
}


def tracked(folder: str) -> list[Path]:
    """The counted files of a folder that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    paths = (ROOT / name for name in listed.split("\0") if name.endswith(SUFFIXES))
    return [path for path in paths if path.is_file()]


def lines_of(path: Path) -> int:
    """The lines of a file, as `wc -l` counts them."""
    return path.read_bytes().count(b"\n")


def code_lines(text: str) -> int:
    """The lines of a module that hold more than a docstring or a comment."""
    skipped = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (*blank, tokenize.ENDMARKER):
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held - skipped)


def loaded_by(program: str) -> int:
    """The modules of the packages that a program loads in a fresh interpreter."""
    code = f"{program}\n{_LOADED.format(packages=PACKAGES)}"
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    return int(ran.stdout)


def main() -> None:
    """Print the counts."""
    total = 0
    for folder in COUNTED:
        count = sum(map(lines_of, tracked(folder)))
        total += count
        print(f"{folder:16} {count:7,} lines")
    print(f"{'together':16} {total:7,} lines")
    modules = [p for folder in PACKAGES for p in tracked(folder) if p.suffix == ".py"]
    short = [
        path
        for path in modules
        if path.name != "__init__.py" and code_lines(path.read_text("utf-8")) < SHORT_LINES
    ]
    under = sum(path.name != "__init__.py" and lines_of(path) < SHORT_LINES for path in modules)
    print(f"{len(modules)} modules; {under} under {SHORT_LINES} lines by wc")
    print(f"{len(short)} under {SHORT_LINES} lines without docstrings and comments")
    for name, program in _PROGRAMS.items():
        print(f"{name} loads {loaded_by(program)} modules")


if __name__ == "__main__":
    main()
