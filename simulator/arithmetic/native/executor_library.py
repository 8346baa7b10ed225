"""Finds, checks and loads the library of the native executor.

It comes with an installation, as that of the casts does, under the same rules: it serves a checkout
of the same sources and no other, and the same two environment variables hold. A library that
PYPTO_CAST_NATIVE_LIBRARY names has this one beside it.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from simulator.numbers import engines
from simulator.numbers.engines import Engine, EngineInUse, EngineWarning
from simulator.numbers.native import library as casts
from simulator.numbers.native.library import (
    DISTRIBUTION,
    LEVEL_VARIABLE,
    LIBRARY_VARIABLE,
    SUFFIXES,
    NativeAbsentError,
    NativeUnavailableError,
)

SOURCES: Final = Path(__file__).with_name("csrc")
SHARED: Final = (casts.SOURCES / "environment.h",)
"""Sources of the casts that this library is built of too."""
NAME: Final = "libpypto_cast_arithmetic"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Executor:
    """A library that was found good.

    Attributes:
        path: where it is.
        levels: the instruction sets that this machine runs, by number; the last is the fastest.
        level: the one in use.
        opcodes: the numbers of the operations.
        ways: the numbers of the ways to multiply INT8 matrices that this machine has; a name starts
            with the level that the way belongs to, the fastest of a level is the last.
    """

    path: Path
    levels: tuple[str, ...]
    level: str
    opcodes: Mapping[str, int]
    library: ctypes.CDLL
    ways: Mapping[str, int]


def digest() -> str:
    """The digest of the sources: SHA-256 of the list of their names and digests."""
    sources = [*SOURCES.glob("*.cpp"), *SOURCES.glob("*.h"), SOURCES / "CMakeLists.txt", *SHARED]
    lines = sorted(
        f"{source.name} {hashlib.sha256(source.read_bytes()).hexdigest()}\n" for source in sources
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def executor_for(engine: Engine) -> Executor | None:
    """The library that an engine calls, or None, where numpy computes.

    Warns:
        EngineWarning: as `simulator.numbers.engines.native_for` does, of this library.
    """
    if engine == "numpy":
        return None
    found = find()
    if isinstance(found, Executor):
        return found
    reason, mine = str(found), object()
    is_worth_telling = engine == "native" or not isinstance(found, NativeAbsentError)
    if is_worth_telling and engines._WARNED.setdefault(reason, mine) is mine:
        text = f"engine 'native' cannot run operations, 'numpy' goes on: {reason}"
        warnings.warn(text, EngineWarning, stacklevel=engines._level_of_caller())
    return None


def in_use() -> EngineInUse:
    """The engine that runs operations, and the reason for not a better one."""
    found = find()
    if not isinstance(found, Executor):
        return EngineInUse(name="numpy", instructions="", reason=str(found))
    fastest = found.levels[-1]
    chosen = "" if found.level == fastest else f"{LEVEL_VARIABLE} forbids {fastest}"
    return EngineInUse(name="native", instructions=found.level, reason=chosen)


@cache
def find() -> Executor | NativeUnavailableError:
    """The library, or why there is none; looked for once in a process."""
    override, level = os.environ.get(LIBRARY_VARIABLE), os.environ.get(LEVEL_VARIABLE)
    refused = []
    beside = Path(override).with_name(NAME + Path(override).suffix) if override else None
    for path, recorded in [(beside, None)] if beside else _installed():
        try:
            return _with_level(load(path, digest(), recorded), level)
        except NativeUnavailableError as error:
            refused.append(error)
    if refused:
        return refused[0]
    return NativeAbsentError(
        f"{DISTRIBUTION} is not installed with the native executor; install it again"
    )


def _installed() -> Iterator[tuple[Path, str | None]]:
    """The libraries of the installation that exist, and the hash that its RECORD has of each."""
    try:
        files = importlib.metadata.files(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name in (NAME + suffix for suffix in SUFFIXES):
            path = Path(str(file.locate()))
            if path.is_file():
                yield path, file.hash.value if file.hash else None


def load(path: Path, expected: str, recorded: str | None = None) -> Executor:
    """Load a library after a look at the file: a foreign or damaged one is not even mapped.

    Args:
        path: where it is.
        expected: the digest of the sources.
        recorded: the SHA-256 of the file as a wheel's RECORD spells it; None takes it as it is.

    Raises:
        NativeUnavailableError: it cannot be read or loaded, or is not of the expected sources.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise NativeAbsentError(f"{path} cannot be read: there is no such file") from error
    except OSError as error:
        raise NativeUnavailableError(f"{path} cannot be read: {error.strerror}") from error
    if expected.encode() not in content:
        raise NativeUnavailableError(
            f"{path} was not built from these sources; install {DISTRIBUTION} again"
        )
    if recorded not in (None, casts._record(content)):
        raise NativeUnavailableError(f"{path} is damaged; install {DISTRIBUTION} again")
    try:
        library = ctypes.CDLL(str(path))
        _declare(library)
    except (OSError, AttributeError) as error:
        raise NativeUnavailableError(f"{path} cannot be loaded: {error}") from error
    names = library.pypto_cast_arithmetic_operations().decode().split()
    levels = tuple(library.pypto_cast_arithmetic_levels().decode().split())
    ways = library.pypto_cast_arithmetic_ways().decode().split()
    return Executor(
        path=path,
        levels=levels,
        level=levels[-1],
        opcodes=MappingProxyType({name: number for number, name in enumerate(names)}),
        library=library,
        ways=MappingProxyType(
            {name: int(number) for number, name in (way.split(":") for way in ways)}
        ),
    )


def _with_level(found: Executor, level: str | None) -> Executor:
    if level is None:
        return found
    if level not in found.levels:
        raise NativeUnavailableError(
            f"{LEVEL_VARIABLE}={level} is no level of {found.path} on this machine, which has "
            f"{', '.join(found.levels)}"
        )
    return replace(found, level=level)


def _declare(library: ctypes.CDLL) -> None:
    for text in ("digest", "levels", "operations", "ways"):
        getattr(library, f"pypto_cast_arithmetic_{text}").restype = ctypes.c_char_p
    pointer, count = ctypes.c_void_p, ctypes.c_int64
    library.pypto_cast_arithmetic_run.argtypes = (
        *(ctypes.c_int, pointer, count, pointer, pointer, count),
        *(count, count, count, count, pointer, pointer, pointer),
    )
    library.pypto_cast_arithmetic_scratch.argtypes = (pointer, count, pointer, count, count)
    library.pypto_cast_arithmetic_scratch.restype = count
    library.pypto_cast_arithmetic_multiply.argtypes = (
        *(ctypes.c_int, pointer, pointer, pointer),
        *(count, count, count, count, count),
    )
    library.pypto_cast_arithmetic_scan.argtypes = (
        *(ctypes.c_int, pointer, pointer, count, count, ctypes.c_int, ctypes.c_int),
        *(pointer, count, count),
    )
    for name in ("bound_products", "prepare_factors"):
        function = getattr(library, f"pypto_cast_arithmetic_{name}")
        function.argtypes = (ctypes.c_int, pointer)
