"""C++ sources compiled into a shared library: built once, kept in the user's cache, loaded whole.

Beside each library lies a record of its size and its SHA-256. A library that its record does not
confirm is built again and never loaded: code of a file that was cut short ends the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import logging
import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

COMPILERS: Final = ("g++", "clang++")
NATIVE: Final = "-march=native"
_ROOT_UID: Final = 0
_LOG: Final = logging.getLogger("pypto_cast")


class CompiledLibraryError(RuntimeError):
    """A library cannot be built, kept or loaded here; the text gives the cause and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LibrarySources:
    """The sources and flags of a library; all of it is part of the library's file name.

    Attributes:
        name: how the file name starts.
        main: the file to compile; its folder is searched for headers.
        files: every file that is read, `main` among them.
        flags: of the compiler, for any machine; `-march=native` is added where the compiler has it.
    """

    name: str
    main: Path
    files: tuple[Path, ...]
    flags: tuple[str, ...]


def cache_folder() -> Path:
    """The folder of built libraries: $XDG_CACHE_HOME/pypto_cast or ~/.cache/pypto_cast.

    A relative XDG_CACHE_HOME is ignored (XDG Base Directory Specification).

    Raises:
        CompiledLibraryError: neither is known.
    """
    return _cache_folder(os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME"))


@functools.lru_cache(maxsize=8)
def _cache_folder(base: str, home: str | None) -> Path:
    """The variables decide, `home` inside Path.home()."""
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "pypto_cast"
    except RuntimeError as error:
        raise CompiledLibraryError(
            f"no folder for compiled libraries: {error}. Set XDG_CACHE_HOME to an absolute path"
        ) from error


def find_compiler() -> tuple[str, ...]:
    """The command of the compiler: $CXX, else g++ or clang++.

    Raises:
        CompiledLibraryError: there is none.
    """
    return _compiler(os.environ.get("CXX"), os.environ.get("PATH"))


@functools.lru_cache(maxsize=8)
def _compiler(named: str | None, path: str | None) -> tuple[str, ...]:
    """The search goes through every folder of the path: its result is kept."""
    if named:
        try:
            command = shlex.split(named)
        except ValueError as error:
            raise CompiledLibraryError(
                f"a C++17 compiler is needed; CXX={named} is no command: {error}"
            ) from error
        if not command or shutil.which(command[0], path=path) is None:
            raise CompiledLibraryError(f"a C++17 compiler is needed; CXX={named} is none")
        return tuple(command)
    for name in COMPILERS:
        if shutil.which(name, path=path) is not None:
            return (name,)
    raise CompiledLibraryError(
        f"a C++17 compiler is needed; found none of {', '.join(COMPILERS)}. Install one, or name "
        "one in CXX"
    )


def load_library(sources: LibrarySources) -> ctypes.CDLL:
    """Load a library, built if the cache has none of these sources, this compiler and these flags.

    Any number of processes may ask at once: one builds, the others wait for it. A cache that has
    the library needs not be writable.

    Raises:
        CompiledLibraryError: no compiler, it fails, or the cache folder cannot be used. The same
            failure is raised again in this process without another attempt.
    """
    found = _found(sources, find_compiler(), cache_folder())
    if isinstance(found, str):
        raise CompiledLibraryError(found)
    return found


def make_private(folder: Path) -> None:
    """Make a folder to load libraries from, unless it is there; nobody else may write to it.

    Raises:
        OSError: it cannot be made; or it, or a link on the way to it, is in another user's hands.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_private(folder)


def check_private(folder: Path) -> None:
    """Refuse a folder that somebody else can change or exchange.

    Raises:
        OSError: it is not there, belongs to another user or is writable by others, or a link on the
            way to it belongs to another user.
    """
    for part in (folder, *folder.parents):
        found = part.lstat()
        if stat.S_ISLNK(found.st_mode) and found.st_uid not in (os.getuid(), _ROOT_UID):
            raise PermissionError(f"{part} is another user's link")
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"others can write to {folder}")


@functools.lru_cache(maxsize=8)
def _found(sources: LibrarySources, compiler: tuple[str, ...], folder: Path) -> ctypes.CDLL | str:
    """The library, or the text of the failure, which is not tried again at every call."""
    try:
        flags, path = _place(sources, compiler, folder)
        _ensure_built(sources, (*compiler, *flags), path)
    except CompiledLibraryError as error:
        return str(error)
    except OSError as error:
        return (
            f"a compiled library cannot be kept in {folder}: {error}. Set XDG_CACHE_HOME to a "
            "folder of your own that can be written to"
        )
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        return (
            f"{path} does not load: {error}. Set XDG_CACHE_HOME to a folder that programs can be "
            "executed from, or CXX to another compiler"
        )


@functools.lru_cache(maxsize=8)
def _place(
    sources: LibrarySources, compiler: tuple[str, ...], folder: Path
) -> tuple[tuple[str, ...], Path]:
    """The flags to build with, and the path of the library.

    Raises:
        CompiledLibraryError: the compiler does not work.
    """
    flags, target = _flags(sources, compiler)
    digest = hashlib.sha256(repr((compiler, flags, target)).encode())
    for source in sources.files:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return flags, folder / f"{sources.name}-{digest.hexdigest()[:32]}.so"


def _flags(sources: LibrarySources, compiler: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The flags to build with, and the compiler's macros under them: its version and target."""
    failure = ""
    for flags in ((*sources.flags, NATIVE), sources.flags):
        # Its macros name the version, the target and every vector extension in use.
        done = _run((*compiler, *flags, "-dM", "-E", "-x", "c++", os.devnull))
        if done.returncode == 0 and "#define" in done.stdout:
            return flags, done.stdout
        failure = done.stderr.strip() or (
            f"it ends with exit code {done.returncode}"
            if done.returncode
            else "asked for its macros (-dM -E), it names none, as a C++ compiler would"
        )
    raise CompiledLibraryError(f"{shlex.join(compiler)} does not work: {failure}")


def _ensure_built(sources: LibrarySources, command: tuple[str, ...], path: Path) -> None:
    """Build a library unless it is there and whole."""
    make_private(path.parent)
    if _is_whole(path):
        return
    with _locked(path.with_name("build.lock")):
        if not _is_whole(path):
            # Whoever writes here holds the lock: what lies about is of builds that were killed.
            for abandoned in path.parent.glob("*.tmp"):
                abandoned.unlink()
            _build(sources, command, path)


def _build(sources: LibrarySources, command: tuple[str, ...], path: Path) -> None:
    _LOG.warning(
        "%s is compiled once, with %s, for about a minute: %s", sources.name, command[0], path
    )
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    include = f"-I{sources.main.parent}"
    try:
        done = _run((*command, include, str(sources.main), "-o", str(unfinished)))
        if done.returncode != 0:
            raise CompiledLibraryError(f"{shlex.join(command)} fails:\n{done.stderr.strip()}")
        if not unfinished.is_file():
            raise CompiledLibraryError(f"{shlex.join(command)} ends well and makes no library")
        record = _fingerprint(unfinished)
        _rename_whole(unfinished, path)
        unfinished.write_text(record, encoding="ascii")
        _rename_whole(unfinished, _record(path))
    finally:
        unfinished.unlink(missing_ok=True)


def _rename_whole(unfinished: Path, path: Path) -> None:
    """Rename a file once its bytes are on the disk; a crash leaves the old file or the new one."""
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(path)


def _record(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _fingerprint(path: Path) -> str:
    content = path.read_bytes()
    return f"{len(content)} {hashlib.sha256(content).hexdigest()}\n"


def _is_whole(path: Path) -> bool:
    try:
        return _record(path).read_text(encoding="ascii") == _fingerprint(path)
    except (OSError, UnicodeDecodeError):
        return False


def _run(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CompiledLibraryError(f"{command[0]} cannot be run: {error}") from error


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that all processes of this user share."""
    import fcntl  # absent on Windows, where the numpy engine must still import

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
