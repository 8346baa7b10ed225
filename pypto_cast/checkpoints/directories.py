"""Directories as Hugging Face ships them, read, and written whole or not at all.

They hold safetensors files and, where there are several, `model.safetensors.index.json` with
`weight_map`, tensor to file, and `metadata` with `total_size`; and files that hold no tensors. An
output that is there already is exchanged for the new one in a single step of the file system, so
that at every moment one of the two is there whole; nothing but the output's own is lost.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import os
import shutil
import stat
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final

from pypto_cast.checkpoints.stored import (
    Checkpoint,
    CheckpointError,
    Kind,
    parsed_json,
    read_header,
)
from pypto_cast.tensors.array_files import CONTENT, final_path
from pypto_cast.unfinished import place, unfinished
from tiling.input_files import document_bytes

INDEX: Final = "model.safetensors.index.json"
SINGLE: Final = "model.safetensors"
CONFIG: Final = "config.json"
SHARD: Final = "model-{:05}-of-{:05}.safetensors"
_SUFFIX: Final = ".safetensors"


def read_directory(path: Path) -> Checkpoint:
    """Check the index of a directory, and read the headers of its files.

    Raises:
        OSError: a file cannot be read.
        CheckpointError: the index is not sound, names a file outside of the directory, or does not
            agree with the files; or there is neither an index nor one safetensors file.
    """
    index = path / INDEX
    if not index.is_file():
        return _whole({_single(path): None}, path, {})
    wanted, metadata = _read_index(index)
    return _whole(wanted, path, metadata)


def model_files(path: Path) -> frozenset[str]:
    """The files of tensors in a directory, and their index, as far as these can be told.

    An index may name any file: one whose name is not that of a file of tensors is not among them.
    """
    index = path / INDEX
    try:
        if index.is_file():
            named = _read_index(index)[0]
            return frozenset({INDEX, *(name for name in named if name.endswith(_SUFFIX))})
        return frozenset({_single(path)})
    except CheckpointError:
        return frozenset()


def _read_index(index: Path) -> tuple[dict[str, set[str]], dict[str, Any]]:
    """The names of tensors by file, and the metadata."""
    try:
        document = parsed_json(document_bytes(index))
        weight_map = document.get("weight_map")
        if not isinstance(weight_map, dict):
            raise ValueError("it has no weight_map")
        wanted: defaultdict[str, set[str]] = defaultdict(set)
        for name, file in weight_map.items():
            wanted[_inside(file)].add(name)
        metadata = document.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise ValueError("its metadata is no object")
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{index} is no index of a checkpoint: {error}") from error
    return dict(wanted), metadata


def _whole(
    wanted: Mapping[str, set[str] | None], path: Path, metadata: dict[str, Any]
) -> Checkpoint:
    tensors, shards = [], {}
    for file, names in sorted(wanted.items()):
        found = read_header(path / file)
        held = {tensor.name for tensor in found.tensors}
        if names is not None and held != names:
            odd = sorted(held ^ names)[0]
            where = "not in the file" if odd in names else "not in the index"
            raise CheckpointError(f"{path / file} and {INDEX} do not agree: {odd!r} is {where}")
        tensors += [dataclasses.replace(tensor, shard=file) for tensor in found.tensors]
        shards[file] = dict(found.metadata)
    return Checkpoint(
        path=path, tensors=tuple(tensors), metadata=metadata, kind=Kind.DIRECTORY, shards=shards
    )


def _single(path: Path) -> str:
    found = sorted(file.name for file in path.glob(f"*{_SUFFIX}"))
    if SINGLE in found or len(found) == 1:
        return SINGLE if SINGLE in found else found[0]
    if found:
        raise CheckpointError(
            f"{path} has {len(found)} safetensors files and no {INDEX} that says what belongs "
            "together; name one of them"
        )
    others = sorted(
        file.name
        for pattern in ("*.bin", "*.pt", "*.pth", "*.gguf", "*.npz")
        for file in path.glob(pattern)
    )
    hint = f"; name a file of it, such as {others[0]}" if others else ""
    raise CheckpointError(f"{path} holds no {INDEX} and no safetensors file{hint}")


def _inside(file: object) -> str:
    """A plain file name, which cannot lead out of the directory."""
    if not isinstance(file, str) or not file:
        raise ValueError(f"it names the file {file!r}")
    parts = PurePosixPath(file).parts, PureWindowsPath(file).parts
    if any(len(one) != 1 for one in parts) or file in (".", "..") or "\0" in file or ":" in file:
        raise ValueError(f"it names {file!r}, which is not a file of its directory")
    return file


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
    """The entries of a directory and of the folders in it, each folder before its entries.

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
