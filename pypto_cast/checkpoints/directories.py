"""Directories that exist whole or not at all: written beside their place, and moved to it at once.

A directory that is there already is exchanged for the new one in a single step of the file system
(Linux: renameat2 with RENAME_EXCHANGE), so that at every moment one of the two is there whole.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pypto_cast.checkpoints.kinds.hub_directory import INDEX

if sys.platform != "win32":
    import fcntl

_PART: Final = ".pypto-cast-{}.part.d"
"""The name of an output that is not whole yet, or of one that was replaced."""
_AT_CWD: Final = -100
_EXCHANGE: Final = 2


def check_directory(path: Path, *, force: bool, inputs: Iterable[Path]) -> None:
    """Refuse an output directory that something would be lost at.

    Args:
        path: where the output will be; of a symlink where it leads to.
        force: a directory of safetensors that is there may be replaced.
        inputs: what is read; neither it nor what holds it is replaced.

    Raises:
        FileExistsError: something is there and `force` is false.
        FileNotFoundError: there is no directory to put it into.
        ValueError: something other than a directory of safetensors is there, or the output and an
            input are in each other.
    """
    target = followed(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} is no directory to write {target.name} to")
    for source in inputs:
        here, there = target.resolve(), source.resolve()
        if here == there or here in there.parents or there in here.parents:
            raise ValueError(f"{path} and the input {source} need places of their own")
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise ValueError(f"{path} is no directory, and the output is one")
    if not force:
        raise FileExistsError(f"{path} exists; --force replaces it")
    is_checkpoint = (target / INDEX).is_file() or any(target.glob("*.safetensors"))
    if any(target.iterdir()) and not is_checkpoint:
        raise ValueError(f"{path} holds no checkpoint, and is not replaced")
    here = Path.cwd()
    if target.resolve() in (here, *here.parents):
        raise ValueError(f"{path} holds the current directory, and is not replaced")


@contextlib.contextmanager
def new_directory(path: Path, *, force: bool, inputs: Iterable[Path]) -> Iterator[Path]:
    """A directory to fill, which appears under its name once the body has succeeded.

    If the body fails, nothing is left of it; what a run that was killed left beside it is removed
    by the next one.

    Raises:
        FileExistsError, FileNotFoundError, ValueError: as `check_directory`.
        OSError: there is no room, or the file system cannot exchange directories.
    """
    inputs = tuple(inputs)
    check_directory(path, force=force, inputs=inputs)
    target = followed(path)
    remove_abandoned(target.parent)
    with scratch_directory(target.parent) as part:
        yield part
        check_directory(path, force=force, inputs=inputs)
        move_directory(part, target)


def move_directory(part: Path, target: Path) -> None:
    """Put a directory at its place; what was there takes the name of the part.

    Raises:
        OSError: the file system cannot exchange the two.
    """
    if not os.path.lexists(target):
        os.rename(part, target)
    else:
        _exchange(part, target)


def remove_abandoned(folder: Path) -> None:
    """Remove what runs that were killed left in a folder."""
    for part in folder.glob(_PART.format("*")):
        with contextlib.suppress(OSError), locked(part):
            _remove(part)


@contextlib.contextmanager
def scratch_directory(folder: Path) -> Iterator[Path]:
    """An empty directory in a folder, gone afterwards unless it was moved.

    It is locked to tell other runs that it is being filled.
    """
    while True:
        part = folder / _PART.format(secrets.token_hex(8))
        part.mkdir()
        try:
            with locked(part):
                # Another run may have taken it for abandoned before it was locked.
                if part.exists():
                    yield part
                    return
        finally:
            _remove(part)


@contextlib.contextmanager
def locked(part: Path) -> Iterator[None]:
    """Hold a directory; it is its lock that is held, whatever name it has by then.

    Raises:
        OSError: somebody else holds it, or it is gone.
    """
    if sys.platform == "win32":
        yield
        return
    held = os.open(part, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(held)


def _remove(part: Path) -> None:
    shutil.rmtree(part, ignore_errors=True)


def followed(path: Path) -> Path:
    """The path at the end of a symlink; any other path as it is."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _exchange(part: Path, target: Path) -> None:
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if hasattr(libc, "renameat2"):
            names = os.fsencode(part), os.fsencode(target)
            if not libc.renameat2(_AT_CWD, names[0], _AT_CWD, names[1], _EXCHANGE):
                return
            number = ctypes.get_errno()
            raise OSError(
                number,
                f"{os.strerror(number)}: this file system cannot exchange directories; remove "
                "this one first",
                str(target),
            )
    raise OSError(f"{target} exists, and this system cannot exchange directories; remove it first")
