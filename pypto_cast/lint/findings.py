"""Findings of a lint, and the formats in which they are printed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from pypto_cast import __version__
from pypto_cast.lint.checks import CHECKS
from pypto_cast.report.text_format import printable
from tiling.input_files import document_bytes

_KIND: Final = "lint"
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding.

    Attributes:
        file: as it was named, with slashes.
        line: of its start, from 1.
        column: in characters, from 1.
        code: of the check.
        message: a sentence.
        text: of the line, without space around it: the baseline knows it by that.
    """

    file: str
    line: int
    column: int
    code: str
    message: str
    text: str

    def __str__(self) -> str:
        place = f"{printable(self.file)}:{self.line}:{self.column}"
        return f"{place}: {self.code} {self.message}"


def _as_text(findings: Sequence[Finding]) -> str:
    return "\n".join(map(str, findings))


def _as_json(findings: Sequence[Finding]) -> str:
    listed = [
        {
            "file": each.file,
            "line": each.line,
            "column": each.column,
            "code": each.code,
            "message": each.message,
            "text": each.text,
        }
        for each in findings
    ]
    return json.dumps({"kind": _KIND, "findings": listed}, indent=2)


def _as_sarif(findings: Sequence[Finding]) -> str:
    rules = [
        {"id": c.code, "shortDescription": {"text": c.summary}, "help": {"text": c.remedy}}
        for c in CHECKS.values()
    ]
    driver = {"name": "pypto-cast", "version": __version__, "rules": rules}
    results = [
        {
            "ruleId": each.code,
            "level": "warning",
            "message": {"text": each.message},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(each.file)},
                        "region": {"startLine": each.line, "startColumn": each.column},
                    }
                }
            ],
        }
        for each in findings
    ]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2)


def _as_github(findings: Sequence[Finding]) -> str:
    return "\n".join(
        f"::warning file={_property(each.file)},line={each.line},col={each.column},"
        f"title={each.code}::{_escaped(each.message)}"
        for each in findings
    )


def _escaped(text: str) -> str:
    """As GitHub's workflow commands have their messages escaped."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


OUTPUT_FORMATS: Final[Mapping[str, Callable[[Sequence[Finding]], str]]] = MappingProxyType(
    {"text": _as_text, "json": _as_json, "sarif": _as_sarif, "github": _as_github}
)
"""By the name of `--format`."""


def read_baseline(path: Path) -> Counter[tuple[str, str, str]]:
    """Returns how often each finding of a baseline occurs, by file, code and text of its line.

    A file is known by its whole path: in the folder of the baseline, or else in the working one.

    Args:
        path: a file that `--format json` printed.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no such file.
    """
    content = document_bytes(path)
    try:
        document: Any = json.loads(content)
        return Counter(
            (_whole(str(each["file"]), path.parent), str(each["code"]), str(each["text"]))
            for each in document["findings"]
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(
            f"{path} is no baseline: pypto-cast lint --format json FILES > {path} writes one"
        ) from None


def _whole(file: str, folder: Path) -> str:
    beside = folder / file
    return os.path.abspath(beside if beside.is_file() else file)


def beyond(findings: Iterable[Finding], baseline: Counter[tuple[str, str, str]]) -> list[Finding]:
    """Returns the findings that a baseline does not have, or does not have as often."""
    left = Counter(baseline)
    new = []
    for each in findings:
        key = os.path.abspath(each.file), each.code, each.text
        if left[key] > 0:
            left[key] -= 1
        else:
            new.append(each)
    return new
