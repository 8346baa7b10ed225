"""Builds the library of the native engine from a checkout, where `library` finds it.

    python -m simulator.numbers.native.build

CMake and a C++17 compiler (g++ or clang++; CXX names another) do the work.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from simulator.numbers.native.library import NAME, SOURCES, SUFFIXES, cache_folder, digest


class BuildError(RuntimeError):
    """The library cannot be built here; the text says why."""


def build(folder: Path | None = None, settings: Sequence[str] = ()) -> Path:
    """Build the library unless it is there, and return where it is.

    Args:
        folder: where it shall lie; None is the user's cache, under the digest of the sources.
        settings: further definitions for CMake, such as CMAKE_CXX_FLAGS=-g.

    Raises:
        BuildError: CMake or the compiler is missing or fails.
    """
    place = cache_folder() / digest()[:32] if folder is None else folder
    found = _library(place)
    if found is not None:
        return found
    if shutil.which("cmake") is None:
        raise BuildError("cmake is not on PATH; it comes with `pip install cmake`")
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place) as work:
            _run("cmake", "-S", str(SOURCES), "-B", work, *(f"-D{each}" for each in settings))
            _run("cmake", "--build", work, "--parallel", str(min(os.cpu_count() or 1, 3)))
            made = _library(Path(work))
            if made is None:
                raise BuildError(f"cmake made no {NAME} in {work}")
            return made.replace(place / made.name)
    except OSError as error:
        raise BuildError(f"the library cannot be kept in {place}: {error}") from error


def _library(folder: Path) -> Path | None:
    paths = (folder / (NAME + suffix) for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{' '.join(command[:2])} fails:\n{done.stdout}{done.stderr}".rstrip())


def main() -> int:
    argparse.ArgumentParser(prog="python -m simulator.numbers.native.build").parse_args()
    try:
        print(build())
    except BuildError as error:
        print(f"cannot build {NAME}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
