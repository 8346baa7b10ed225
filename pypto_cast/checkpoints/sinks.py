"""Takes the tensors of a checkpoint in order, a block at a time, for a file of each kind."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, Final, Protocol

import pypto_cast
from pypto_cast.checkpoints.casting import CheckpointCast, Job, Part
from pypto_cast.checkpoints.model_config import quantization_config
from pypto_cast.checkpoints.numpy_files import SUFFIX, descr_of, npy_header
from pypto_cast.checkpoints.reading import Bytes
from pypto_cast.checkpoints.stored import StoredTensor, header_bytes
from pypto_cast.checkpoints.torch_files import (
    TorchEntries,
    codes_by_name,
    storages_of,
    with_results,
)

NOTE: Final = "pypto_cast"
"""The key of the metadata under which stands what was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A tensor of the output, and the job that it comes from."""

    job: Job
    part: Part
    tensor: StoredTensor


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFile:
    """A safetensors file of the output.

    Attributes:
        items: its tensors, in order.
        metadata: of its header.
    """

    items: tuple[Item, ...]
    metadata: Mapping[str, str]

    @property
    def header(self) -> bytes:
        """The bytes before the tensors."""
        return header_bytes((item.tensor for item in self.items), self.metadata)

    @property
    def tensor_bytes(self) -> int:
        """Bytes of its tensors."""
        return sum(item.tensor.size_bytes for item in self.items)


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


def by_width(items: list[Item]) -> list[Item]:
    """Wide elements first, so that every tensor of a safetensors file is aligned."""
    return sorted(items, key=lambda item: -item.tensor.size_bytes / max(item.tensor.elems, 1))


def with_note(work: CheckpointCast, metadata: Mapping[str, str]) -> dict[str, str]:
    """The metadata of a file with a note of the cast added."""
    note: dict[str, Any] = {
        "version": pypto_cast.__version__,
        "to": list(map(str, work.choice.targets)),
        "mode": work.mode.name,
        "satmode": work.satmode.name,
    }
    found = dict(metadata)
    if work.quantizing is not None:
        note["quantize"] = {
            "dtype": "DT_INT8",
            "axis": work.quantizing.axis,
            "scale": work.quantizing.rule,
            "symmetric": work.quantizing.symmetric,
        }
        if work.quantizing.is_by_rows:
            config = quantization_config(work.jobs, work.quantizing)
            found["quantization_config"] = json.dumps(config)
    return {**found, NOTE: json.dumps(note)}


class SafetensorsSink:
    """A single safetensors file.

    Args:
        file: where it goes.
        content: its tensors, in order.
    """

    def __init__(self, file: BinaryIO, content: TensorFile) -> None:
        self.items = content.items
        self._file = file
        file.write(content.header)

    def begin(self, item: Item) -> None:
        """The tensors follow each other without a sign."""

    def write(self, data: Bytes) -> None:
        """Append bytes."""
        self._file.write(data.data)


class NpySink:
    """A .npy file."""

    def __init__(self, work: CheckpointCast, file: BinaryIO) -> None:
        self.items = items_of(work.jobs)
        self._file = file

    def begin(self, item: Item) -> None:
        """Write the header."""
        self._file.write(npy_header(item.tensor, descr_of(item.tensor)))

    def write(self, data: Bytes) -> None:
        """Append bytes."""
        self._file.write(data.data)


class _EntrySink:
    """An archive of entries, one after another."""

    _entry: IO[bytes] | None = None

    def write(self, data: Bytes) -> None:
        """Append bytes."""
        if self._entry is not None:
            self._entry.write(data.data)

    def close(self) -> None:
        """End the entry that is open."""
        if self._entry is not None:
            self._entry.close()
            self._entry = None


class NpzSink(_EntrySink):
    """A .npz file, its entries compressed as those of the input are."""

    def __init__(self, work: CheckpointCast, archive: zipfile.ZipFile) -> None:
        self.items = items_of(work.jobs)
        self._archive = archive
        with zipfile.ZipFile(work.checkpoint.path) as read:
            self._compressed = {info.filename: info.compress_type for info in read.infolist()}

    def begin(self, item: Item) -> None:
        """Begin an entry."""
        self.close()
        info = zipfile.ZipInfo(item.tensor.name + SUFFIX)
        shard = item.job.stored.shard
        info.compress_type = self._compressed.get(shard, zipfile.ZIP_STORED)
        self._entry = self._archive.open(info, "w", force_zip64=True)
        self._entry.write(npy_header(item.tensor, descr_of(item.tensor)))


class TorchSink(_EntrySink):
    """A file of torch.save."""

    def __init__(self, work: CheckpointCast, file: BinaryIO, archive: zipfile.ZipFile) -> None:
        self.items = items_of(job for job in work.jobs if job.is_cast)
        self._checkpoint, self._entries = work.checkpoint, TorchEntries(file, archive)
        self._held = codes_by_name(work.checkpoint)
        self._placed: defaultdict[str, dict[str, StoredTensor]] = defaultdict(dict)
        self._keys: dict[tuple[int, Part, str], str] = {}

    def begin(self, item: Item) -> None:
        """Begin an entry; tensors that were one object are one again where they have one dtype."""
        self.close()
        name = item.job.stored.name
        origin = id(self._held[name]), item.part, item.tensor.dtype
        if origin not in self._keys:
            self._keys[origin] = str(len(self._keys))
            self._entry = self._entries.storage(self._keys[origin])
        self._placed[name][item.part.value] = dataclasses.replace(
            item.tensor, shard=self._keys[origin]
        )

    def complete(self) -> None:
        """Write the objects, and the storages that stay as they are."""
        self.close()
        content, keys = with_results(self._checkpoint, self._placed)
        with contextlib.closing(storages_of(self._checkpoint)) as source:
            self._entries.complete(content, keys, source)
