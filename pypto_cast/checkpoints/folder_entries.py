"""The files of a model's directory that hold no tensors: which are copied, and which cannot be."""

from __future__ import annotations

import enum
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path


class EntryKind(enum.Enum):
    """The fate of an entry; the value says it in the summary."""

    FOLDER = "made"
    FILE = "copied"
    LINK = "link inside, kept"
    FOLDER_OUTSIDE = "link to a folder outside, kept"
    FILE_OUTSIDE = "link to a file outside, whose content is copied"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderEntry:
    """An entry of a directory.

    Attributes:
        name: its path in the directory, with slashes.
        kind: its fate.
        text: of a link that is kept where it leads to, as in the link; of a refused entry why.
        size_bytes: of a file that is copied; None of other entries.
    """

    name: str
    kind: EntryKind
    text: str = ""
    size_bytes: int | None = None


def folder_entries(source: Path, besides: Collection[str] = ()) -> tuple[FolderEntry, ...]:
    """The entries of a directory and of the folders in it, each folder before what is in it.

    A link to a place in the directory is kept, and so is one to a folder outside. The content of a
    file outside is copied, for the links of a cache of downloads lead out of it. A link that leads
    nowhere, and what is neither file nor folder cannot be kept.

    Args:
        source: the directory.
        besides: names that are left out.

    Raises:
        OSError: a folder cannot be read.
    """
    return tuple(
        _entry(source, path)
        for path in _paths(source)
        if path.relative_to(source).as_posix() not in besides
    )


def copy_entries(source: Path, entries: Collection[FolderEntry], folder: Path) -> None:
    """Copy entries, with their permissions, into a directory that has none of them.

    A folder stays open to its owner, who replaces what is in it.

    Raises:
        OSError: one cannot be read or written.
        FileExistsError: the file system takes two names for one.
    """
    for entry in entries:
        path = folder / entry.name
        if entry.kind is EntryKind.FOLDER:
            path.mkdir(stat.S_IRWXU)
        elif entry.kind in (EntryKind.LINK, EntryKind.FOLDER_OUTSIDE):
            path.symlink_to(entry.text)
        else:
            with (
                open(source / entry.name, "rb") as read,
                open(path, "xb", opener=_for_owner) as written,
            ):
                shutil.copyfileobj(read, written)
            shutil.copymode(source / entry.name, path)
    for entry in entries:  # when they are filled, for they may be closed to others
        if entry.kind is EntryKind.FOLDER:
            mode = stat.S_IMODE((source / entry.name).stat().st_mode)
            os.chmod(folder / entry.name, mode | stat.S_IRWXU)


def _for_owner(path: str, flags: int) -> int:
    """Open a file that nobody else reads before it has its permissions."""
    return os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR)


def _paths(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _paths(path)


def _entry(source: Path, path: Path) -> FolderEntry:
    name = path.relative_to(source).as_posix()
    if path.is_symlink():
        return _link(source, path, name)
    if path.is_dir():
        return FolderEntry(name=name, kind=EntryKind.FOLDER)
    if path.is_file():
        return FolderEntry(name=name, kind=EntryKind.FILE, size_bytes=path.stat().st_size)
    text = "it is neither file nor folder"
    return FolderEntry(name=name, kind=EntryKind.REFUSED, text=text)


def _link(source: Path, path: Path, name: str) -> FolderEntry:
    if not path.exists():
        text = f"it is a link to {os.readlink(path)}, which does not exist"
        return FolderEntry(name=name, kind=EntryKind.REFUSED, text=text)
    root, target = source.resolve(), path.resolve()
    if target == root or root in target.parents:
        # Where the link itself is, its folder may be reached through another link.
        text = os.path.relpath(target, path.parent.resolve())
        return FolderEntry(name=name, kind=EntryKind.LINK, text=text)
    if path.is_file():
        size = path.stat().st_size
        return FolderEntry(name=name, kind=EntryKind.FILE_OUTSIDE, size_bytes=size)
    if path.is_dir():
        return FolderEntry(name=name, kind=EntryKind.FOLDER_OUTSIDE, text=str(target))
    text = f"it is a link to {target}, which is neither file nor folder"
    return FolderEntry(name=name, kind=EntryKind.REFUSED, text=text)
