"""The explorer's WebAssembly module: which sources it is of, and how it is built.

    python -m docs.generators.explorer_module            fails if the module is of other sources
    python -m docs.generators.explorer_module --build    builds it anew

Debian's packages for a build: clang lld wasi-libc libc++-14-dev-wasm32.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "explorer"
MODULE: Final = FOLDER / "explorer.wasm"
_SOURCE: Final = FOLDER / "explorer.cpp"
_HEADERS: Final = FOLDER.parents[1] / "simulator" / "numbers" / "native" / "csrc"
_READ: Final = ("definition.h", "environment.h", "plan.h", "rounding.h", "tables.h")
"""The headers of the native engine that the module is made of."""
COMMAND: Final = (
    *("clang++", "--target=wasm32-wasi", "-std=c++17", "-O2", "-fno-exceptions", "-nostdlib"),
    *("-Wl,--no-entry", "-Wl,--strip-all", "-Wall", "-Wextra"),
)
"""Without libraries: nothing is linked in."""


def digest() -> str:
    """SHA-256 of the sources and of the command."""
    found = hashlib.sha256(" ".join(COMMAND).encode())
    for path in (_SOURCE, *(_HEADERS / name for name in _READ)):
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def is_current() -> bool:
    """The module that is committed was built from these sources."""
    return MODULE.exists() and digest().encode() in MODULE.read_bytes()


def build(path: Path) -> None:
    """Compile the module.

    Raises:
        FileNotFoundError: there is no clang++.
        subprocess.CalledProcessError: it fails, as without the headers for WebAssembly.
    """
    defined = f'-DEXPLORER_DIGEST="{digest()}"'
    subprocess.run([*COMMAND, defined, f"-I{_HEADERS}", str(_SOURCE), "-o", str(path)], check=True)
    path.chmod(0o644)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.generators.explorer_module")
    parser.add_argument("--build", action="store_true", help=f"writes {MODULE.name}")
    if parser.parse_args().build:
        build(MODULE)
    elif not is_current():
        print(f"{MODULE.name} is of other sources: build it with --build", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
