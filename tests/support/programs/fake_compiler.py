"""A compiler that notes what it is asked for, in a cache of its own, as fixture `compiler`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.environment.sources import ROOT
from support.programs.twin_programs import needs_twin

from ascend_kernels import twin
from ascend_kernels.twin import library
from simulator import compiled_library

COMPILER = """\
#!/bin/sh
# A compiler that notes what it is asked for and gives a library built before.
case "$*" in
    {refused}) echo "unknown option" >&2; exit 1 ;;
    *-dM*) echo "{macros}"; exit 0 ;;
esac
echo "$*" >>"{log}"
{build}
"""
COPY = 'while [ $# -gt 1 ]; do [ "$1" = -o ] && cp "{real}" "$2"; shift; done'
SLOW_COPY = f"sleep 0.5; {COPY}"


class FakeCompiler:
    def __init__(self, folder: Path, real: str) -> None:
        self.path = folder / "compiler"
        self.log = folder / "log"
        self.real = real
        self.write()

    def write(
        self,
        *,
        refused: str = "--no-such",
        macros: str = "#define VERSION 1",
        build: str = COPY,
    ) -> None:
        build = build.format(real=self.real)
        text = COMPILER.format(refused=refused, macros=macros, log=self.log, build=build)
        self.path.write_text(text)
        self.path.chmod(0o755)

    @property
    def builds(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCompiler]:
    needs_twin()
    fake = FakeCompiler(tmp_path, library()._name)
    monkeypatch.setenv("CXX", str(fake.path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield fake
    forget()


def forget() -> None:
    """As in a new process."""
    twin._library_sources.cache_clear()
    compiled_library._found.cache_clear()
    compiled_library._place.cache_clear()


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "cache" / "pypto_cast").glob("*.so"))


def kept_one(folder: Path) -> Path:
    (found,) = kept(folder)
    return found


NAME_OF_LIBRARY = "from ascend_kernels.twin import library; print(library()._name)"


def started() -> subprocess.Popen[str]:
    """Another process that asks for the library."""
    return subprocess.Popen(
        [sys.executable, "-c", NAME_OF_LIBRARY],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
