"""Lints files: reads each, applies the checks, leaves out those that a comment ignores."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from pypto_cast.lint.checks import CHECKS, Limits
from pypto_cast.lint.cpp_source import uses_in_cpp
from pypto_cast.lint.findings import Finding, beyond, read_baseline
from pypto_cast.lint.lint_settings import LintSettings
from pypto_cast.lint.python_source import uses_in_python
from pypto_cast.lint.tracked import Span, Use
from tiling.input_files import regular

_PYTHON: Final = frozenset({".py", ".pyi"})
_CPP: Final = frozenset({".cpp", ".cc", ".cxx", ".cce", ".asc", ".h", ".hpp"})
_MOST_SOURCE_BYTES: Final = 1 << 20
"""A longer source is refused: its syntax tree would take gigabytes."""
_IGNORE: Final = re.compile(r"(?:#|//)\s*pypto-cast:\s*ignore(?:\[([\w\s,]*)\])?(?![\w\[-])")


def lint(paths: Iterable[Path], settings: LintSettings | None = None) -> list[Finding]:
    """Returns the findings in sources of kernels; nothing of them is run.

    Args:
        paths: files of Python or C++, or folders, of which all such files are read; symbolic links
            to folders are not followed.
        settings: those of pyproject.toml, or the defaults.

    Raises:
        OSError: a path cannot be read.
        ValueError: a file is no Python, no UTF-8, larger than 1 MiB, or neither Python nor C++ by
            its name; the text names it. Nothing is returned of the others then.
    """
    asked = settings or LintSettings()
    findings = [each for path in _files(paths, asked) for each in _of_file(path, asked)]
    return findings if asked.baseline is None else beyond(findings, read_baseline(asked.baseline))


def _files(paths: Iterable[Path], settings: LintSettings) -> Iterator[Path]:
    seen: set[Path] = set()
    for path in paths:
        found: Iterable[Path] = _in_folder(path, settings) if path.is_dir() else [path]
        for each in found:
            if each not in seen:
                seen.add(each)
                yield each


def _in_folder(folder: Path, settings: LintSettings) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise error

    for here, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(here, name)
            if path.suffix in _PYTHON | _CPP and not _is_excluded(path, settings):
                yield path


def _is_excluded(path: Path, settings: LintSettings) -> bool:
    """A pattern matches the path as it was named, or the one from the folder of the settings."""
    names = [path.as_posix()]
    whole = path.resolve()
    if settings.home is not None and settings.home in whole.parents:
        names.append(whole.relative_to(settings.home).as_posix())
    return any(fnmatch.fnmatch(name, pattern) for name in names for pattern in settings.exclude)


def _of_file(path: Path, settings: LintSettings) -> Iterator[Finding]:
    if path.suffix not in _PYTHON | _CPP:
        raise ValueError(
            f"{path} is neither Python nor C++ by its name; {', '.join(sorted(_PYTHON | _CPP))} are"
        )
    content = regular(path, most_bytes=_MOST_SOURCE_BYTES).read_bytes()
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: it is no UTF-8 at byte {error.start}") from None
    if "\0" in text:
        raise ValueError(f"{path}: it has a byte 0, and is no source")
    uses = uses_in_cpp(text) if path.suffix in _CPP else uses_in_python(text, str(path))
    yield from _findings(path, text.split("\n"), uses, settings)


def _findings(
    path: Path, lines: Sequence[str], uses: Iterable[Use], settings: LintSettings
) -> Iterator[Finding]:
    limits = Limits(many_elems=settings.many_elems)
    told: set[tuple[str, Span]] = set()
    for use in uses:
        for check in CHECKS.values():
            message = check.message(use, limits) if check.code in settings.codes else None
            key = check.code, use.span  # a helper's use is met again in each call
            if message is not None and key not in told and not _is_ignored(check.code, use, lines):
                told.add(key)
                yield Finding(
                    file=path.as_posix(),
                    line=use.span.line,
                    column=use.span.column,
                    code=check.code,
                    message=message,
                    text=lines[use.span.line - 1].strip(),
                )


def _is_ignored(code: str, use: Use, lines: Sequence[str]) -> bool:
    """A comment in one of the lines of a call names the code, or none and means all."""
    for line in lines[use.span.line - 1 : use.span.last_line]:
        for found in _IGNORE.finditer(line):
            if found[1] is None or code in re.split(r"[\s,]+", found[1]):
                return True
    return False
