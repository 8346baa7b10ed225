"""Directories that exist whole or not at all, and lose nothing that is not the output's.

A directory that is there already is exchanged for the new one in a single step of the file system,
so that at every moment one of the two is there whole.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path
from typing import Final

from pypto_cast.checkpoints.kinds.hub_directory import model_files
from pypto_cast.tensors.array_files import CONTENT, final_path
from pypto_cast.unfinished import place, unfinished

_MOST_NAMED: Final = 20


def check_directory(
    path: Path, *, force: bool, inputs: Iterable[Path], files: Set[str], folders: Set[str]
) -> tuple[str, ...]:
    """Refuse an output directory that something would be lost at.

    Args:
        path: where the output will be; of a symlink where it leads to.
        force: a directory that is there may be replaced.
        inputs: what is read; neither it nor what holds it is replaced.
        files: names in the output, with slashes.
        folders: the same of folders.

    Returns:
        The entries that are there and give way, all of them files of the output or of the model
        that is there.

    Raises:
        FileExistsError: something is there and `force` is false.
        FileNotFoundError: there is no directory to put it into.
        ValueError: what is there is no directory, or holds other entries; or the output and an
            input are in each other.
    """
    target = final_path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} is no directory to write {target.name} to")
    for source in inputs:
        there = final_path(source)
        if target == there or target in there.parents or there in target.parents:
            raise ValueError(f"{path} and the input {source} need places of their own")
    if not os.path.lexists(target):
        return ()
    if not target.is_dir():
        raise ValueError(f"{path} is no directory, and the output is one")
    if not force:
        raise FileExistsError(f"{path} exists; --force replaces it")
    here = Path.cwd()
    if target in (here, *here.parents):
        raise ValueError(f"{path} holds the current directory, and is not replaced")
    known = files | model_files(target)
    replaced: list[str] = []
    foreign: list[str] = []
    for name in _entries(target, folders):
        (replaced if name in known else foreign).append(name)
    if foreign:
        more = len(foreign) - _MOST_NAMED
        listed = ", ".join(foreign[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
        raise ValueError(
            f"{path} holds what --force does not replace, for it is of neither the output nor the "
            f"model there: {listed}; move it away, or name another directory"
        )
    return tuple(replaced)


@contextlib.contextmanager
def new_directory(path: Path, check: Callable[[], object], *, key: str = "") -> Iterator[Path]:
    """A directory to fill, which appears under its name once the body has succeeded.

    Beside it, in the folder that it is in, there is room for more; see `unfinished`.

    Args:
        path: where the output will be.
        check: refuses the place; called before anything is written, and again before it is moved.
        key: as for `unfinished`; the directory may then have files already.

    Raises:
        FileExistsError, FileNotFoundError, ValueError: as `check` does.
        RuntimeError: another run writes it.
        OSError: there is no room, or the file system cannot exchange directories.

    Warns:
        LeftoverWarning: a run on this output was killed, and what it left is removed.
    """
    check()
    target = final_path(path)
    with unfinished(target, key=key) as folder:
        made = folder / CONTENT
        made.mkdir(exist_ok=bool(key))
        yield made
        check()
        place(made, target, replace=os.path.lexists(target))


def _entries(target: Path, folders: Set[str], within: str = "") -> Iterator[str]:
    """All entries but the folders that the output has too; other folders end in a slash."""
    for path in sorted((target / within).iterdir()):
        name = within + path.name
        if path.is_symlink() or not path.is_dir():
            yield name
        elif name in folders:
            yield from _entries(target, folders, f"{name}/")
        else:
            yield f"{name}/"
