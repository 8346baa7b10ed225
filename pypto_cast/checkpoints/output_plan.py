"""Plans the output of a checkpoint's cast, and writes it, tensor by tensor, whole or not at all.

It is decided from headers and names before anything is written, and the writing follows it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import posixpath
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from pypto_cast.checkpoints.casting import CheckpointCast, Item, Job
from pypto_cast.checkpoints.directories import (
    CONFIG,
    INDEX,
    SHARD,
    SINGLE,
    EntryKind,
    FolderEntry,
    check_directory,
    copy_entries,
    folder_entries,
    new_directory,
)
from pypto_cast.checkpoints.model_config import updated_config, weights_dtype, with_dtype
from pypto_cast.checkpoints.sinks import (
    Sink,
    TensorFile,
    items_of,
    npy_sink,
    npz_sink,
    safetensors_sink,
    torch_sink,
    with_note,
)
from pypto_cast.checkpoints.stored import (
    CARRIED_DTYPES,
    KEPT_DTYPES,
    METADATA_KEY,
    CheckpointError,
    Kind,
    parsed_json,
)
from pypto_cast.checkpoints.torch_files import misplaced
from pypto_cast.tensors.array_files import OutputFile, check_free, final_path, new_output
from pypto_cast.unfinished import is_held
from tiling.input_files import document_bytes

_SUFFIXES: Final[Mapping[str, Kind]] = {
    ".safetensors": Kind.SAFETENSORS,
    ".npz": Kind.NPZ,
    ".npy": Kind.NPY,
    ".pt": Kind.TORCH,
    ".pth": Kind.TORCH,
    ".gguf": Kind.GGUF,
}
_MOST_HEADER_BYTES: Final = 100_000_000
"""The package safetensors reads no longer header."""
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPlan:
    """The files of an output, and those that are there and give way.

    Attributes:
        work: what is done to the tensors.
        path: the file or directory.
        force: one that is there may be replaced.
        kind: of the output.
        files: the safetensors files by their names in the directory; of a single one, by its name.
            Empty for other kinds.
        documents: the index and config.json of a directory.
        entries: what lies beside in the directory that is read, with what becomes of it.
        replaced: names that are there and give way.
        refused: why the output cannot be written, a reason each; it is written if there is none.
    """

    work: CheckpointCast
    path: Path
    force: bool
    kind: Kind
    files: Mapping[str, TensorFile]
    documents: Mapping[str, bytes]
    entries: tuple[FolderEntry, ...]
    replaced: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise the first error of `refused`.

        Raises:
            ValueError: it is not empty.
        """
        if self.refused:
            more = len(self.refused) - _MOST_NAMED
            named = "; ".join(self.refused[:_MOST_NAMED])
            raise ValueError(named + (f"; and {more:,} more: see --dry-run" if more > 0 else ""))

    def check_place(self) -> tuple[str, ...]:
        """The names that are there and give way.

        Raises:
            OSError, ValueError: as `check_free` and `check_directory`.
        """
        inputs = [self.work.checkpoint.path]
        if self.kind is not Kind.DIRECTORY:
            check_free(self.path, force=self.force, inputs=inputs)
            return (self.path.name,) if self.path.exists() else ()
        folders = {entry.name for entry in self.entries if entry.kind is EntryKind.FOLDER}
        beside = {entry.name for entry in self.entries} - folders
        return check_directory(
            self.path,
            force=self.force,
            inputs=inputs,
            files={*self.files, *self.documents, *beside},
            folders=folders,
        )


def plan_output(
    work: CheckpointCast, path: Path, *, force: bool, shard_bytes: int | None = None
) -> OutputPlan:
    """Plan an output.

    Args:
        work: what is done to the tensors.
        path: the file or directory.
        force: one that is there may be replaced.
        shard_bytes: most bytes of tensors in a file, of which there are then several.

    Raises:
        OSError: a file of the input cannot be read.
        CheckpointError: config.json is no JSON.
        ValueError: the name says another kind, or what has no shards is to have some.
    """
    kind = output_kind(work, path, shard_bytes)
    source = work.checkpoint
    files: Mapping[str, TensorFile] = {}
    documents: Mapping[str, bytes] = {}
    entries: tuple[FolderEntry, ...] = ()
    if kind is Kind.SAFETENSORS:
        files = {path.name: TensorFile.of(work.jobs, with_note(work, source.metadata))}
    elif kind is Kind.DIRECTORY:
        files = planned_files(work, shard_bytes)
        documents = _documents(work, files)
        if source.kind is Kind.DIRECTORY:
            entries = folder_entries(source.path, {*source.shards, INDEX, *documents})
    plan = OutputPlan(
        work=work,
        path=path,
        force=force,
        kind=kind,
        files=files,
        documents=documents,
        entries=entries,
    )
    refused = [*_unstorable(plan), *_collisions(plan)]
    replaced: tuple[str, ...] = ()
    try:
        replaced = plan.check_place()
    except (OSError, ValueError) as error:
        refused.append(str(error))
    if is_held(final_path(path)):
        refused.append(f"another run writes {path} just now")
    return dataclasses.replace(plan, replaced=replaced, refused=tuple(refused))


def output_kind(work: CheckpointCast, path: Path, shard_bytes: int | None) -> Kind:
    """The kind of the output: that of the input, or safetensors where its name asks for it.

    Raises:
        ValueError: the name says another kind, or what has no shards is to have some.
    """
    kind = work.checkpoint.kind
    named = _SUFFIXES.get(path.suffix.lower())
    if kind is Kind.GGUF or (named is Kind.SAFETENSORS and kind is not Kind.DIRECTORY):
        kind = Kind.SAFETENSORS
    if shard_bytes is not None:
        if kind not in (Kind.SAFETENSORS, Kind.DIRECTORY):
            raise ValueError(f"--shard-size is for safetensors; the output is {kind.value}")
        kind = Kind.DIRECTORY
    if named is not None and named is not kind:
        raise ValueError(
            f"the output is a {kind.value} checkpoint, as the input is, or safetensors; "
            f"{path.name} names another kind"
        )
    if kind is Kind.NPY and work.quantizing is not None and any(j.quantizing for j in work.jobs):
        raise ValueError("a .npy file holds one array, and codes need scales; name a .safetensors")
    return kind


def planned_files(work: CheckpointCast, shard_bytes: int | None) -> dict[str, TensorFile]:
    """The safetensors files of a directory: as the input's are, or of at most so many bytes.

    A tensor and its scales are in one file; one that is larger has a file of its own. The metadata
    is that of the file of the same name in the input, or of its first one.
    """
    checkpoint = work.checkpoint
    of_file: Mapping[str, Mapping[str, Any]] = checkpoint.shards
    first = checkpoint.metadata
    if checkpoint.kind is Kind.DIRECTORY:
        first = next(iter(of_file.values()), {})
    return {
        name: TensorFile.of(jobs, with_note(work, of_file.get(name, first)))
        for name, jobs in _shards(work, shard_bytes).items()
    }


def _shards(work: CheckpointCast, shard_bytes: int | None) -> dict[str, list[Job]]:
    if shard_bytes is None:
        shards: dict[str, list[Job]] = {name: [] for name in work.checkpoint.shards}
        for job in work.jobs:
            shards[job.stored.shard].append(job)
        return shards
    order = {tensor.name: n for n, tensor in enumerate(work.checkpoint.tensors)}
    groups: list[list[Job]] = [[]]
    room = shard_bytes
    for job in sorted(work.jobs, key=lambda job: order[job.stored.name]):
        size = sum(item.tensor.size_bytes for item in job.results)
        if size > room and groups[-1]:
            groups.append([])
            room = shard_bytes
        groups[-1].append(job)
        room -= size
    if len(groups) == 1:
        return {SINGLE: groups[0]}
    return {SHARD.format(n, len(groups)): jobs for n, jobs in enumerate(groups, 1)}


def _documents(work: CheckpointCast, files: Mapping[str, TensorFile]) -> dict[str, bytes]:
    """The index, where there are several files or was one, and config.json where it changes."""
    source = work.checkpoint
    is_directory = source.kind is Kind.DIRECTORY
    documents: dict[str, bytes] = {}
    if len(files) > 1 or (is_directory and (source.path / INDEX).is_file()):
        placed = {item.tensor.name: name for name, file in files.items() for item in file.items}
        had = with_dtype(source.metadata, weights_dtype(work.jobs)) if is_directory else {}
        total = sum(file.tensor_bytes for file in files.values())
        index = {
            "metadata": {**had, "total_size": total},
            "weight_map": dict(sorted(placed.items())),
        }
        documents[INDEX] = _json(index)
    path = source.path / CONFIG
    before: dict[str, Any] = {}
    if is_directory and path.is_file():
        try:
            before = parsed_json(document_bytes(path))
        except (ValueError, RecursionError) as error:
            raise CheckpointError(
                f"{path} is no JSON, so it cannot be told what the weights now are: {error}"
            ) from error
    scaled = work.quantizing if any(job.quantizing for job in work.jobs) else None
    if scaled is not None and not scaled.is_known:
        scaled = None
    config = updated_config(before, work.jobs, scaled)
    if config != before:
        documents[CONFIG] = _json(config)
    return documents


def _unstorable(plan: OutputPlan) -> Iterator[str]:
    """Reasons of tensors that the kind of the output cannot hold."""
    jobs = plan.work.jobs
    if plan.kind is Kind.TORCH:
        added = {
            job.stored.name: [
                item.tensor.name.removeprefix(job.stored.name)
                for item in job.results
                if item.tensor.name != job.stored.name
            ]
            for job in jobs
        }
        yield from misplaced(plan.work.checkpoint, added)
    if not plan.files:
        for job in jobs:
            if job.result.dtype in CARRIED_DTYPES:
                yield (
                    f"tensor {job.result.name!r} is {job.result.dtype}, which a {plan.kind.value} "
                    "file has no dtype for; name a .safetensors"
                )
        return
    if plan.work.checkpoint.kind not in (Kind.SAFETENSORS, Kind.DIRECTORY):
        for job in jobs:
            tensor = job.result
            if tensor.is_fortran or tensor.is_swapped or tensor.dtype not in KEPT_DTYPES:
                yield (
                    f"tensor {tensor.name!r} is {tensor.dtype} in an order or dtype that "
                    "safetensors does not store; leave the output the kind of the input"
                )
    names = [item.tensor.name for item in items_of(jobs)]
    unnamed = [name for name in names if name == METADATA_KEY or not _is_utf8(name)]
    for name in unnamed:
        yield (
            f"tensor {name!r} has a name that safetensors does not store; rename it, or leave the "
            "output the kind of the input"
        )
    if unnamed:
        return
    for file, content in plan.files.items():
        size = len(content.header)
        if size > _MOST_HEADER_BYTES:
            yield (
                f"{file} would have a header of {size:,} B, more than {_MOST_HEADER_BYTES:,} B, "
                "which no reader of safetensors takes; --shard-size makes several files"
            )


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _collisions(plan: OutputPlan) -> Iterator[str]:
    """Reasons of entries of the input that cannot be kept beside the output's files."""
    source = plan.work.checkpoint.path
    written = [*plan.files, *plan.documents]
    # Some file systems do not tell letters' case.
    folded = {name.casefold(): name for name in written}
    there = {*written, ".", *(entry.name for entry in plan.entries)}
    for entry in plan.entries:
        same = folded.get(entry.name.casefold())
        if same is not None:
            yield (
                f"{source / entry.name} is not of the model, and the output has a file {same} of "
                "its own; move it away"
            )
        elif entry.kind is EntryKind.REFUSED:
            yield f"{source / entry.name} cannot be kept: {entry.text}; remove it"
        elif entry.kind is EntryKind.LINK:
            leads_to = posixpath.normpath(posixpath.join(posixpath.dirname(entry.name), entry.text))
            if leads_to not in there:
                yield (
                    f"{source / entry.name} cannot be kept: it is a link to {leads_to}, which the "
                    "output does not have; remove it"
                )


def _json(document: Mapping[str, Any]) -> bytes:
    # Escaped as transformers writes it: half of a surrogate pair is no UTF-8.
    return json.dumps(document, indent=2).encode() + b"\n"


@contextlib.contextmanager
def directory_sink(plan: OutputPlan, folder: Path) -> Iterator[Sink]:
    """The files of a directory, one after the other.

    Args:
        plan: what is written.
        folder: a directory without these files.
    """
    shards = {item.tensor.name: name for name, file in plan.files.items() for item in file.items}
    written: dict[str, BinaryIO] = {}

    def begun(name: str) -> BinaryIO:
        files.close()
        file = io.BufferedWriter(OutputFile(folder / name, "xb", plan.path / name))
        files.enter_context(file)
        file.write(plan.files[name].header)
        return file

    def opened(item: Item) -> BinaryIO:
        name = shards[item.tensor.name]
        if name not in written:
            written[name] = begun(name)
        return written[name]

    with contextlib.ExitStack() as files:
        for name, file in plan.files.items():
            if not file.items:
                begun(name)
        yield Sink([item for file in plan.files.values() for item in file.items], opened)


def complete_directory(plan: OutputPlan, folder: Path) -> None:
    """Write the documents and copy the other files of the input, beside the files of tensors."""
    copy_entries(plan.work.checkpoint.path, plan.entries, folder)
    for name, content in plan.documents.items():
        with io.BufferedWriter(OutputFile(folder / name, "xb", plan.path / name)) as file:
            file.write(content)


@contextlib.contextmanager
def new_checkpoint(plan: OutputPlan) -> Iterator[Sink]:
    """Open an output that appears under its name once the body has written all of its items.

    Raises:
        FileExistsError, FileNotFoundError, ValueError: as `OutputPlan.check` and `check_place`.
        RuntimeError: another run writes it.
        OSError: it cannot be written.
    """
    plan.check()
    if plan.kind is Kind.DIRECTORY:
        with new_directory(plan.path, plan.check_place) as folder:
            # First, so that a file system that takes two names for one fails before the work.
            complete_directory(plan, folder)
            with directory_sink(plan, folder) as sink:
                yield sink
        return
    inputs = [plan.work.checkpoint.path]
    with (
        new_output(plan.path, force=plan.force, inputs=inputs) as made,
        io.BufferedWriter(OutputFile(made, "xb", plan.path)) as file,
    ):
        if plan.files:
            yield safetensors_sink(file, plan.files[plan.path.name])
        else:
            with _SINKS[plan.kind](plan.work, file) as sink:
                yield sink


_SINKS: Final[Mapping[Kind, Callable[[CheckpointCast, BinaryIO], AbstractContextManager[Sink]]]] = {
    Kind.NPY: npy_sink,
    Kind.NPZ: npz_sink,
    Kind.TORCH: torch_sink,
}
