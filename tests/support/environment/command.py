"""The pypto-cast command, run inside the test process."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto_cast.cli.main import main

# Imported by the tests before anything of the command: without its extra they are skipped.
for _module in ("typer", "rich", "jinja2", "safetensors"):
    pytest.importorskip(_module, reason=f"{_module} is not installed (extra cli)")

CLASS = re.compile(r" \[\w+(?:Error|Fault)\]$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """Exit code and output of one run."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line of a failure without the class; warnings may come before it."""
        return CLASS.sub("", self.error_line)

    @property
    def error_line(self) -> str:
        """The same with the class of an error of ours in brackets at the end."""
        assert self.code == 2
        assert self.out == ""
        *before, line = self.err.splitlines()
        assert all(text.startswith("pypto-cast: warning: ") for text in before), self.err
        prefix = "pypto-cast: error: "
        assert line.startswith(prefix)
        return line.removeprefix(prefix)


class Command:
    """Callable with the words of a command line."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> Ran:
        self._capsys.readouterr()
        code = main([str(word) for word in words])
        captured = self._capsys.readouterr()
        return Ran(code=code, out=captured.out, err=captured.err)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, printing as into a pipe, whatever the width of who runs the tests."""
    monkeypatch.delenv("COLUMNS", raising=False)
    return Command(capsys)


@pytest.fixture
def npy(tmp_path: Path) -> Path:
    """100 x 30 FP32 values, with one NaN, one overflow, one subnormal and one zero in FP16."""
    values = (np.random.default_rng(1).uniform(1, 100, (100, 30))).astype(np.float32)
    values[0, :5] = [np.nan, 1e6, 1e-6, 1e-9, 2.0]
    np.save(tmp_path / "x.npy", values)
    return tmp_path / "x.npy"
