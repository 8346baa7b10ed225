"""The library of the g++ twin: built once from the kernel's sources, kept in the user's cache."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ascend_kernels.emit import CastTilingData

SOURCES: Final = Path(__file__).with_name("csrc")
MAIN_SOURCE: Final = SOURCES / "host" / "twin.cpp"
COMPILERS: Final = ("g++", "clang++")
FLAGS: Final = ("-std=c++17", "-O3", "-fPIC", "-shared", "-pthread")
NATIVE: Final = "-march=native"
ERROR_BYTES: Final = 1024


class TwinUnavailableError(RuntimeError):
    """The twin cannot be built or loaded here; the text says why and what would help."""


class Launch(ctypes.Structure):
    """The struct PyptoTwinLaunch of the library."""

    _fields_ = [
        ("instance", ctypes.c_uint64),
        ("tiling", ctypes.POINTER(CastTilingData)),
        ("x", ctypes.c_void_p),
        ("x_bytes", ctypes.c_uint64),
        ("y", ctypes.c_void_p),
        ("y_bytes", ctypes.c_uint64),
        ("blocks", ctypes.c_uint64),
    ]


class Record(ctypes.Structure):
    """One instruction of a trace: its kind, and what it was given."""

    _fields_ = [
        ("op", ctypes.c_int64),
        ("operands", ctypes.c_int64 * 13),
    ]


VISIT: Final = ctypes.CFUNCTYPE(None, ctypes.POINTER(Record))
NO_VISIT: Final = VISIT()


def cache_folder() -> Path:
    """Where built libraries are kept: $XDG_CACHE_HOME/pypto_cast or ~/.cache/pypto_cast."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pypto_cast"


def library() -> ctypes.CDLL:
    """The twin, built if the cache has none of these sources, this compiler and these flags.

    The compiler is $CXX, else g++ or clang++.

    Raises:
        TwinUnavailableError: no compiler, it fails, or the cache folder cannot be used.
    """
    found = _found(compiler(), cache_folder())
    if isinstance(found, str):
        raise TwinUnavailableError(found)
    return found


def is_built() -> bool:
    """Whether the cache has the library already, so that a first use would not build it."""
    try:
        return _path(compiler(), cache_folder())[1].exists()
    except TwinUnavailableError:
        return False


def sources() -> list[Path]:
    """Every file that the library is made of."""
    return sorted([*SOURCES.glob("cast_*.h"), *MAIN_SOURCE.parent.iterdir()])


@functools.lru_cache(maxsize=8)
def _found(compiler: tuple[str, ...], folder: Path) -> ctypes.CDLL | str:
    """The library, or why there is none: what failed once is not tried at every cast."""
    try:
        return _loaded(compiler, folder)
    except TwinUnavailableError as error:
        return str(error)


@functools.lru_cache(maxsize=8)
def _path(compiler: tuple[str, ...], folder: Path) -> tuple[tuple[str, ...], Path]:
    """The flags to build with, and where the library of these sources, this compiler and flags is.

    Raises:
        TwinUnavailableError: the compiler does not work.
    """
    flags, target = _flags(compiler)
    digest = hashlib.sha256(repr((compiler, flags, target)).encode())
    for source in sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return flags, folder / f"twin-{digest.hexdigest()[:32]}.so"


def _loaded(compiler: tuple[str, ...], folder: Path) -> ctypes.CDLL:
    flags, path = _path(compiler, folder)
    try:
        _make_private(folder)
        if not path.exists():
            with _locked(path.with_suffix(".lock")):
                if not path.exists():
                    _build([*compiler, *flags], path)
        found = ctypes.CDLL(str(path))
    except OSError as error:
        raise TwinUnavailableError(
            f"the twin cannot be kept in {folder}: {error}. Set XDG_CACHE_HOME to a folder that "
            "can be written to and executed from"
        ) from error
    found.pypto_twin_run.argtypes = [
        ctypes.POINTER(Launch),
        ctypes.c_uint64,
        ctypes.c_uint64,
        VISIT,
        ctypes.c_char_p,
        ctypes.c_uint64,
    ]
    found.pypto_twin_run.restype = ctypes.c_int
    for repack in (found.pypto_twin_pack, found.pypto_twin_unpack):
        repack.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
        repack.restype = None
    return found


def compiler() -> tuple[str, ...]:
    """The command of the compiler: $CXX, else g++ or clang++.

    Raises:
        TwinUnavailableError: there is none.
    """
    named = os.environ.get("CXX")
    if named:
        command = shlex.split(named)
        if not command or shutil.which(command[0]) is None:
            raise TwinUnavailableError(f"the twin needs a C++17 compiler; CXX={named} is none")
        return tuple(command)
    for name in COMPILERS:
        if shutil.which(name) is not None:
            return (name,)
    raise TwinUnavailableError(
        f"the twin needs a C++17 compiler; found none of {', '.join(COMPILERS)}. Install one, or "
        "name one in CXX"
    )


def _flags(compiler: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The flags to build with, and what the compiler says of itself and its target under them."""
    failure = ""
    for flags in ((*FLAGS, NATIVE), FLAGS):
        # Its macros name the version, the target and every vector extension in use.
        done = _run([*compiler, *flags, "-dM", "-E", "-x", "c++", os.devnull])
        if done.returncode == 0:
            return flags, done.stdout
        failure = done.stderr.strip() or f"it ends with exit code {done.returncode}"
    raise TwinUnavailableError(f"{shlex.join(compiler)} does not work: {failure}")


def _build(command: list[str], path: Path) -> None:
    """Build beside the final place and rename: whoever finds the library finds a whole one."""
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        done = _run([*command, f"-I{MAIN_SOURCE.parent}", str(MAIN_SOURCE), "-o", str(unfinished)])
        if done.returncode != 0:
            raise TwinUnavailableError(f"{shlex.join(command)} fails:\n{done.stderr.strip()}")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise TwinUnavailableError(f"{command[0]} cannot be run: {error}") from error


def _make_private(folder: Path) -> None:
    """Libraries are loaded from here: nobody else may put one in.

    Raises:
        OSError: it cannot be made, or belongs to, or is writable by somebody else.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("others can write to the folder")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that all processes of this user share."""
    import fcntl  # absent on Windows, where the numpy engine must still import

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
