"""Outputs that are being made: each in a folder of its own beside its place, held by a lock.

An output NAME is made in `.NAME.pypto-cast-part` and moved from there to its place in one step of
the file system, so that NAME never exists before it is whole. One run at a time holds that folder,
by a lock that ends with its process; a second run on the same output is refused. A folder that no
run holds was left by one that was killed, and the next run on the same output removes it and says
so.

The lock is on a file in the folder: `flock` on POSIX, `msvcrt.locking` on Windows. Where a file
system has no locks, only the existence of the folder tells of another run, and one that is left has
to be removed by hand.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import importlib
import os
import shutil
import signal
import stat
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_SUFFIX: Final = ".pypto-cast-part"
_MOST_NAME_BYTES: Final = 255
_LOCK: Final = "lock"
_KEY: Final = "key"
_AT_CWD: Final = -100
_NOREPLACE: Final = 1
_EXCHANGE: Final = 2
_HELD: Final[set[int]] = set()
"""The descriptors of locks of this process."""
_SIGNALS: Final[Any] = importlib.import_module("_signal")
"""The functions of `signal`, whose enums take longer than a small kernel."""
_ENDINGS: Final = [
    int(getattr(signal, name)) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class LeftoverWarning(UserWarning):
    """A part of an output that a run left when it was killed, and that is removed."""


class BusyOutputError(RuntimeError):
    """Another run writes the same output at this moment."""


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Deliver a signal that arrives in the body of a `with` statement at its end.

    Those are SIGINT, SIGTERM and SIGHUP; of several the first. Python handles signals in the main
    thread: in others, and where no handler of Python's is installed, nothing is changed.
    """
    arrived: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
    if threading.current_thread() is threading.main_thread():
        for number in _ENDINGS:
            handler = _SIGNALS.getsignal(number)
            if callable(handler):
                handlers[number] = handler
                _SIGNALS.signal(number, lambda *arguments: arrived.append(arguments))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            _SIGNALS.signal(number, handler)
        for number, frame in arrived[:1]:
            handlers[number](number, frame)


def unfinished_path(target: Path) -> Path:
    """The folder in which an output is made; a name that would be too long is a digest in it."""
    name = os.fsencode(f".{target.name}{_SUFFIX}")
    if len(name) > _MOST_NAME_BYTES:
        digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()
        name = f".{digest}{_SUFFIX}".encode()
    return target.with_name(os.fsdecode(name))


@contextlib.contextmanager
def unfinished(target: Path, *, key: str = "") -> Iterator[Path]:
    """The folder in which an output is made, which no other run has meanwhile; gone afterwards.

    Args:
        target: the place of the output, without symlinks.
        key: names work that can be resumed. If the body fails, the folder is kept, and a run with
            the same key goes on with what is in it.

    Raises:
        RuntimeError: another run makes the same output.
        ValueError: something else has the folder's name.
        OSError: the folder cannot be made, or is there on a file system without locks.

    Warns:
        LeftoverWarning: a folder was there that no run holds, and is not resumed.
    """
    folder = unfinished_path(target)
    held, is_kept = -1, False
    try:
        with held_back():
            held = _held(folder, target)
        if _left(folder) and not (key and _key_of(folder) == key):
            text = f"removed {folder}, which a run on {target} left when it was killed"
            warnings.warn(text, LeftoverWarning, stacklevel=3)
            _empty(folder)
        if key:
            (folder / _KEY).write_text(key, encoding="utf-8")
        is_kept = bool(key)
        yield folder
        is_kept = False
    finally:
        try:
            with held_back():
                held = _release(folder, held, is_kept=is_kept)
        finally:  # a signal may arrive before it is held back
            with held_back():
                _release(folder, held, is_kept=is_kept)


def is_held(target: Path) -> bool:
    """True if a run makes this output just now, as far as the file system's locks show.

    The lock is taken for this moment.
    """
    try:
        held = os.open(unfinished_path(target) / _LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        _lock(held)
    except (BlockingIOError, PermissionError):
        return True
    except OSError:
        return False
    finally:
        os.close(held)
    return False


def place(made: Path, target: Path, *, replace: bool) -> None:
    """Move a whole output to its place, in one step.

    A directory that is replaced is exchanged (Linux: renameat2 with RENAME_EXCHANGE) and has the
    name of `made` afterwards. Without `replace` the step itself fails where something is: on Linux
    renameat2 with RENAME_NOREPLACE, elsewhere a hard link, on Windows a plain rename.

    Raises:
        FileExistsError: something is there, and `replace` is false.
        OSError: the file system cannot do it in one step.
    """
    if not replace:
        _move_to_free(made, target)
    elif made.is_dir() and os.path.lexists(target):
        with _unable(target, "cannot exchange directories; remove this one first"):
            _renameat2(made, target, _EXCHANGE)
    else:
        os.replace(made, target)


def _held(folder: Path, target: Path) -> int:
    """The descriptor of the folder's lock."""
    while True:
        is_new = False
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            is_new = True
        try:
            held = _locked(folder, target, is_new=is_new)
        except FileNotFoundError:  # the run that had it has just removed it
            continue
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), os.stat(folder / _LOCK)):
                _HELD.add(held)
                return held
        os.close(held)  # another run removed it before it was locked


def _locked(folder: Path, target: Path, *, is_new: bool) -> int:
    """The descriptor of a file in the folder, locked where the file system has locks."""
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise ValueError(
            f"{folder} is no folder, so {target} cannot be made in it; remove it first"
        )
    held = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _lock(held)
    except (BlockingIOError, PermissionError):
        os.close(held)
        raise BusyOutputError(f"another run writes {target} just now") from None
    except OSError:
        if not is_new:
            os.close(held)
            text = f"cannot tell if a run still writes {target}; if none does, remove the folder"
            with _unable(folder, text):
                raise
    return held


def _lock(held: int) -> None:
    if sys.platform == "win32":
        msvcrt.locking(held, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _release(folder: Path, held: int, *, is_kept: bool) -> int:
    """Give up the lock, and the folder unless it is kept; returns -1, which is no lock."""
    if held >= 0 and not is_kept:
        with contextlib.suppress(OSError):
            _empty(folder)
        if sys.platform == "win32":
            _close(held)  # for an open file is not removed there
            held = -1
        # The lock goes last and while it is held: whoever opened it meanwhile sees that it is gone.
        for remove in ((folder / _LOCK).unlink, folder.rmdir):
            with contextlib.suppress(OSError):
                remove()
    if held >= 0:
        _close(held)
    return -1


def _close(held: int) -> None:
    _HELD.discard(held)
    os.close(held)


def _forget() -> None:
    """Give up the locks in a forked process, which may outlive the run that they are of."""
    while _HELD:
        os.close(_HELD.pop())


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)


def _key_of(folder: Path) -> str:
    path = folder / _KEY
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _left(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name != _LOCK]


def _empty(folder: Path) -> None:
    for path in _left(folder):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _move_to_free(made: Path, target: Path) -> None:
    if sys.platform == "win32":
        os.rename(made, target)
        return
    try:
        _renameat2(made, target, _NOREPLACE)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL):
            raise
        if made.is_dir():
            # It fails on whatever is there but an empty directory, in which nothing is lost.
            os.rename(made, target)
        else:
            text = "cannot keep a file that appears here meanwhile; --force writes over it"
            with _unable(target, text):
                os.link(made, target)


@contextlib.contextmanager
def _unable(path: Path, text: str) -> Iterator[None]:
    """Name the operation that the file system lacks; FileExistsError passes as it is."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        words = f"{error.strerror}: this file system {text}"
        raise OSError(error.errno, words, str(path)) from None


def _renameat2(made: Path, target: Path, flags: int) -> None:
    """Raises OSError; its errno is ENOSYS or EINVAL where there is no such step."""
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    number = errno.ENOSYS
    if libc is not None and hasattr(libc, "renameat2"):
        names = os.fsencode(made), os.fsencode(target)
        if not libc.renameat2(_AT_CWD, names[0], _AT_CWD, names[1], flags):
            return
        number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), str(target))
