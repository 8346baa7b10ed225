"""Writes checkpoints of every kind, tensor by tensor, a block at a time; whole or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, Protocol

import pypto_cast
from pypto_cast.checkpoints.casting import CheckpointCast, Job, Part
from pypto_cast.checkpoints.channels.compressed_layout import quantization_config
from pypto_cast.checkpoints.directories import (
    check_directory,
    new_directory,
    remove_abandoned,
    scratch_directory,
)
from pypto_cast.checkpoints.kinds.hub_directory import CONFIG, INDEX, SHARD, SINGLE
from pypto_cast.checkpoints.kinds.numpy_files import SUFFIX, descr_of, npy_header
from pypto_cast.checkpoints.kinds.reading import Bytes
from pypto_cast.checkpoints.kinds.torch_files import save_torch
from pypto_cast.checkpoints.stored import (
    CheckpointError,
    Kind,
    StoredTensor,
    header_bytes,
    parsed_json,
)
from pypto_cast.files import OutputFile, check_free, new_file

NOTE: Final = "pypto_cast"
"""The key of the metadata under which stands what was done."""
_SUFFIXES: Final[Mapping[str, Kind]] = {
    ".safetensors": Kind.SAFETENSORS,
    ".npz": Kind.NPZ,
    ".npy": Kind.NPY,
    ".pt": Kind.TORCH,
    ".pth": Kind.TORCH,
    ".gguf": Kind.GGUF,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A tensor of the output, and the job that it comes from."""

    job: Job
    part: Part
    tensor: StoredTensor


class Sink(Protocol):
    """Takes the tensors of a checkpoint in the order that it names."""

    @property
    def items(self) -> Sequence[Item]:
        """Tensors in the order in which they must come."""

    def begin(self, item: Item) -> None:
        """The next bytes are of this tensor."""

    def write(self, data: Bytes) -> None:
        """Append bytes of the tensor."""


def items_of(jobs: Iterable[Job]) -> list[Item]:
    """All tensors that come of jobs; scales stand before codes, whose elements are narrower."""
    return [
        Item(job=job, part=part, tensor=tensor)
        for job in jobs
        for part, tensor in sorted(job.results, key=lambda pair: pair[0] is Part.WHOLE)
    ]


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
    if kind is Kind.SAFETENSORS and work.checkpoint.kind is not Kind.SAFETENSORS:
        _check_storable(work)
    if kind is Kind.NPY and work.quantizing is not None and any(j.quantizing for j in work.jobs):
        raise ValueError("a .npy file holds one array, and codes need scales; name a .safetensors")
    return kind


def check_output(
    work: CheckpointCast, path: Path, *, force: bool, shard_bytes: int | None = None
) -> None:
    """Refuse an output that something would be lost at; see `check_free`, `check_directory`."""
    inputs = [work.checkpoint.path]
    if output_kind(work, path, shard_bytes) is Kind.DIRECTORY:
        check_directory(path, force=force, inputs=inputs)
    else:
        check_free(path, force=force, inputs=inputs)


@contextlib.contextmanager
def new_checkpoint(
    work: CheckpointCast, path: Path, *, force: bool, shard_bytes: int | None = None
) -> Iterator[Sink]:
    """Open an output that appears under its name once the body has written all of its items.

    Args:
        work: what is written.
        path: the file or directory.
        force: one that is there may be replaced.
        shard_bytes: most bytes of tensors in a file, of which there are then several.

    Raises:
        FileExistsError, FileNotFoundError, ValueError: see `check_output`.
        OSError: it cannot be written.
    """
    kind = output_kind(work, path, shard_bytes)
    inputs = [work.checkpoint.path]
    if kind is Kind.DIRECTORY:
        with new_directory(path, force=force, inputs=inputs) as folder:
            shards = planned_shards(work, shard_bytes)
            directory = DirectorySink(work, folder, shards)
            yield directory
            directory.close()
            complete_directory(work, folder, shards)
        return
    with new_file(path, force=force, inputs=inputs) as file:
        if kind is Kind.SAFETENSORS:
            items = items_of(work.jobs)
            items.sort(key=lambda item: -item.tensor.size_bytes / max(item.tensor.elems, 1))
            metadata = noted(work, work.checkpoint.metadata)
            yield SafetensorsSink(file, items, metadata)
        elif kind is Kind.TORCH:
            with _torch_sink(work, path, file) as sink:
                yield sink
        elif kind is Kind.NPY:
            yield _NpySink(work, file)
        else:
            with zipfile.ZipFile(file, "w") as archive:
                npz = _NpzSink(work, archive)
                yield npz
                npz.close()


def noted(work: CheckpointCast, metadata: Mapping[str, str]) -> dict[str, str]:
    """The metadata of a file with what was done added."""
    note: dict[str, Any] = {
        "version": pypto_cast.__version__,
        "to": [
            t.dtype.name if t.pattern is None else f"{t.pattern.pattern}={t.dtype.name}"
            for t in work.choice.targets
        ],
        "mode": work.mode.name,
        "satmode": work.satmode.name,
    }
    found = dict(metadata)
    if work.quantizing is not None:
        config = quantization_config(work.jobs, work.quantizing)
        note["quantize"] = {
            "dtype": "DT_INT8",
            "axis": work.quantizing.axis,
            "scale": work.quantizing.rule,
            "symmetric": work.quantizing.symmetric,
        }
        found["quantization_config"] = json.dumps(config)
    return {**found, NOTE: json.dumps(note)}


class SafetensorsSink:
    """A single safetensors file.

    Args:
        file: where it goes.
        items: its tensors, in order.
        metadata: of its header.
    """

    def __init__(self, file: BinaryIO, items: Sequence[Item], metadata: Mapping[str, str]) -> None:
        self.items = items
        self._file = file
        file.write(header_bytes((item.tensor for item in items), metadata))

    def begin(self, item: Item) -> None:
        """The tensors follow each other without a sign."""

    def write(self, data: Bytes) -> None:
        """Append bytes."""
        self._file.write(data.data)


class DirectorySink:
    """The files of a directory, one after the other.

    Args:
        work: what is written.
        folder: an empty directory.
        shards: the jobs of each file by its name.
    """

    def __init__(
        self, work: CheckpointCast, folder: Path, shards: Mapping[str, Sequence[Job]]
    ) -> None:
        self._work, self._folder = work, folder
        self._of = {}
        self._by_shard: dict[str, list[Item]] = {}
        for name, jobs in shards.items():
            items = items_of(jobs)
            items.sort(key=lambda item: -item.tensor.size_bytes / max(item.tensor.elems, 1))
            self._by_shard[name] = items
            self._of.update({item.tensor.name: name for item in items})
        self.items = [item for items in self._by_shard.values() for item in items]
        self._stack = contextlib.ExitStack()
        self._shard = ""
        self._sink: SafetensorsSink | None = None
        for name in shards:
            if not shards[name]:
                self._open(name)

    def begin(self, item: Item) -> None:
        """Open the file of the tensor, if another one is open."""
        shard = self._of[item.tensor.name]
        if shard != self._shard:
            self._open(shard)

    def write(self, data: Bytes) -> None:
        """Append bytes to the file that is open."""
        if self._sink is not None:
            self._sink.write(data)

    def close(self) -> None:
        """Close the file that is open."""
        self._stack.close()

    def _open(self, shard: str) -> None:
        self._stack.close()
        self._shard = shard
        path = self._folder / shard
        file = self._stack.enter_context(io.BufferedWriter(OutputFile(path, "wb", path)))
        metadata = shard_metadata(self._work, shard)
        self._sink = SafetensorsSink(file, self._by_shard[shard], metadata)


def shard_metadata(work: CheckpointCast, shard: str) -> dict[str, str]:
    """The metadata of a file in the output: of the file of that name, or of the single input."""
    checkpoint = work.checkpoint
    if checkpoint.kind is Kind.DIRECTORY:
        first = next(iter(checkpoint.shards.values()), {})
        return noted(work, checkpoint.shards.get(shard, first))
    return noted(work, checkpoint.metadata)


def planned_shards(work: CheckpointCast, shard_bytes: int | None) -> dict[str, list[Job]]:
    """The jobs of each file: as the input's files are, or of at most so many bytes.

    A tensor and its scales are in one file; one that is larger has a file of its own.
    """
    if shard_bytes is None:
        shards: dict[str, list[Job]] = {name: [] for name in work.checkpoint.shards}
        for job in work.jobs:
            shards[job.stored.shard].append(job)
        return shards
    order = {tensor.name: n for n, tensor in enumerate(work.checkpoint.tensors)}
    groups: list[list[Job]] = [[]]
    room = shard_bytes
    for job in sorted(work.jobs, key=lambda job: order[job.stored.name]):
        size = sum(tensor.size_bytes for _, tensor in job.results)
        if size > room and groups[-1]:
            groups.append([])
            room = shard_bytes
        groups[-1].append(job)
        room -= size
    if len(groups) == 1:
        return {SINGLE: groups[0]}
    return {SHARD.format(n, len(groups)): jobs for n, jobs in enumerate(groups, 1)}


def complete_directory(
    work: CheckpointCast, folder: Path, shards: Mapping[str, Sequence[Job]]
) -> None:
    """Write the index and copy the other files of the input, beside the files of tensors."""
    source = work.checkpoint
    if source.kind is Kind.DIRECTORY:
        _copy_others(source.path, folder, {*source.shards, INDEX})
    tensors = [
        (tensor, name) for name, jobs in shards.items() for job in jobs for _, tensor in job.results
    ]
    if len(shards) > 1 or (source.kind is Kind.DIRECTORY and (source.path / INDEX).is_file()):
        had = source.metadata if source.kind is Kind.DIRECTORY else {}
        document = {
            "metadata": {**had, "total_size": sum(tensor.size_bytes for tensor, _ in tensors)},
            "weight_map": {tensor.name: name for tensor, name in sorted(tensors, key=_by_name)},
        }
        _write_json(folder / INDEX, document)
    config = folder / CONFIG
    if work.quantizing is not None and any(job.quantizing for job in work.jobs):
        try:
            document = parsed_json(config.read_bytes()) if config.is_file() else {}
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"{source.path / CONFIG} is no JSON: {error}") from error
        document["quantization_config"] = quantization_config(work.jobs, work.quantizing)
        _write_json(config, document)


def _by_name(pair: tuple[StoredTensor, str]) -> str:
    return pair[0].name


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    with io.BufferedWriter(OutputFile(path, "wb", path)) as file:
        file.write(json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n")


def _copy_others(source: Path, folder: Path, besides: set[str]) -> None:
    """Copy a tree; links are followed, for those of a cache of downloads lead out of it."""
    for root, folders, files in os.walk(source):
        here = folder / Path(root).relative_to(source)
        folders[:] = [name for name in folders if not (Path(root) / name).is_symlink()]
        for name in folders:
            (here / name).mkdir()
        for name in files:
            path = Path(root) / name
            if (Path(root) != source or name not in besides) and path.is_file():
                shutil.copyfile(path, here / name)


class _NpySink:
    def __init__(self, work: CheckpointCast, file: BinaryIO) -> None:
        self.items = items_of(work.jobs)
        self._file = file

    def begin(self, item: Item) -> None:
        self._file.write(npy_header(item.tensor, descr_of(item.tensor)))

    def write(self, data: Bytes) -> None:
        self._file.write(data.data)


class _NpzSink:
    def __init__(self, work: CheckpointCast, archive: zipfile.ZipFile) -> None:
        self.items = items_of(work.jobs)
        self._archive = archive
        self._entry: IO[bytes] | None = None
        with zipfile.ZipFile(work.checkpoint.path) as read:
            self._compressed = {info.filename: info.compress_type for info in read.infolist()}

    def begin(self, item: Item) -> None:
        self.close()
        info = zipfile.ZipInfo(item.tensor.name + SUFFIX)
        shard = item.job.stored.shard
        info.compress_type = self._compressed.get(shard, zipfile.ZIP_STORED)
        self._entry = self._archive.open(info, "w", force_zip64=True)
        self._entry.write(npy_header(item.tensor, descr_of(item.tensor)))

    def write(self, data: Bytes) -> None:
        if self._entry is not None:
            self._entry.write(data.data)

    def close(self) -> None:
        if self._entry is not None:
            self._entry.close()
            self._entry = None


class _TorchSink:
    """Collects the changed tensors in a file of their own, which torch then maps."""

    def __init__(self, work: CheckpointCast, scratch: BinaryIO) -> None:
        self.items = items_of(job for job in work.jobs if job.is_cast)
        self.placed: dict[str, StoredTensor] = {}
        self._scratch = scratch

    def begin(self, item: Item) -> None:
        placed = dataclasses.replace(item.tensor, offset_bytes=self._scratch.tell())
        self.placed[item.tensor.name] = placed

    def write(self, data: Bytes) -> None:
        self._scratch.write(data.data)


@contextlib.contextmanager
def _torch_sink(work: CheckpointCast, path: Path, file: BinaryIO) -> Iterator[_TorchSink]:
    remove_abandoned(path.parent)
    with scratch_directory(path.parent) as folder:
        part = folder / path.name
        with io.BufferedWriter(OutputFile(part, "wb", path)) as collected:
            sink = _TorchSink(work, collected)
            yield sink
        save_torch(work.checkpoint, sink.placed, part, file)


def _check_storable(work: CheckpointCast) -> None:
    """Refuse what safetensors has no dtype for, or stores in another order."""
    for job in work.jobs:
        tensor = job.result
        if tensor.is_fortran or tensor.is_swapped or not tensor.dtype.isalnum():
            raise ValueError(
                f"tensor {tensor.name!r} is {tensor.dtype} in an order or dtype that safetensors "
                "does not store; leave the output the kind of the input"
            )
