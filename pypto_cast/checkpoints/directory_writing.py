"""Writes directories as Hugging Face ships them: safetensors, index, and what lies beside."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto_cast.checkpoints.casting import CheckpointCast, Job
from pypto_cast.checkpoints.channels.compressed_layout import quantization_config
from pypto_cast.checkpoints.kinds.hub_directory import CONFIG, INDEX, SHARD, SINGLE
from pypto_cast.checkpoints.kinds.reading import Bytes
from pypto_cast.checkpoints.sinks import Item, SafetensorsSink, by_width, items_of, noted
from pypto_cast.checkpoints.stored import CheckpointError, Kind, StoredTensor, parsed_json
from pypto_cast.files import OutputFile


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
            items = by_width(items_of(jobs))
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
    scaled = work.quantizing if any(job.quantizing for job in work.jobs) else None
    if scaled is not None and scaled.is_by_rows:
        try:
            document = parsed_json(config.read_bytes()) if config.is_file() else {}
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"{source.path / CONFIG} is no JSON: {error}") from error
        document["quantization_config"] = quantization_config(work.jobs, scaled)
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
