"""Takes the tensors of a checkpoint in order, a block at a time, for a file of each kind."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, Final

import pypto_cast
from pypto_cast.checkpoints.casting import CheckpointCast, Item, Job, Part
from pypto_cast.checkpoints.model_config import quantization_config
from pypto_cast.checkpoints.numpy_files import SUFFIX, descr_of, npy_header
from pypto_cast.checkpoints.reading import Bytes
from pypto_cast.checkpoints.stored import StoredTensor, header_bytes
from pypto_cast.checkpoints.torch_files import Storages, TorchEntries, with_results

NOTE: Final = "pypto_cast"
"""The key of the metadata that describes the conversion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFile:
    """A safetensors file of the output.

    Attributes:
        items: its tensors, in order.
        metadata: of its header.
    """

    items: tuple[Item, ...]
    metadata: Mapping[str, str]

    @staticmethod
    def of(jobs: Iterable[Job], metadata: Mapping[str, str]) -> TensorFile:
        """A file of the results of jobs, wide elements first, so that every tensor is aligned."""

        def width(item: Item) -> float:
            return item.tensor.size_bytes / max(item.tensor.elems, 1)

        items = sorted(items_of(jobs), key=width, reverse=True)
        return TensorFile(items=tuple(items), metadata=metadata)

    @property
    def header(self) -> bytes:
        """The bytes before the tensors."""
        return header_bytes((item.tensor for item in self.items), self.metadata)

    @property
    def tensor_bytes(self) -> int:
        """Bytes of its tensors."""
        return sum(item.tensor.size_bytes for item in self.items)


class Sink:
    """Takes the tensors of a checkpoint one after another, a block at a time.

    Args:
        items: tensors in the order in which they must come.
        opened: gives the file that the bytes of a tensor go to; None: they are there already.
    """

    def __init__(self, items: Sequence[Item], opened: Callable[[Item], IO[bytes] | None]) -> None:
        self.items, self._opened = items, opened
        self._file: IO[bytes] | None = None

    def begin(self, item: Item) -> None:
        """The next bytes are of this tensor."""
        self._file = self._opened(item)

    def write(self, data: Bytes) -> None:
        """Append bytes of the tensor."""
        if self._file is not None:
            self._file.write(data.data)


def items_of(jobs: Iterable[Job]) -> list[Item]:
    """All tensors that come of jobs."""
    return [item for job in jobs for item in job.results]


def with_note(work: CheckpointCast, metadata: Mapping[str, str]) -> dict[str, str]:
    """The metadata of a file with a note of the cast added."""
    note: dict[str, Any] = {
        "version": pypto_cast.__version__,
        "to": list(map(format, work.choice.targets)),
        "mode": work.mode.name,
        "satmode": work.satmode.name,
    }
    found = dict(metadata)
    if work.quantizing is not None:
        note["quantize"] = {
            "dtype": work.quantizing.codes.dtype.name,
            "strategy": work.quantizing.strategy,
            "axis": work.quantizing.axis,
            "scale": work.quantizing.rule,
            "symmetric": work.quantizing.symmetric,
        }
        if work.quantizing.is_known:
            config = quantization_config(work.jobs, work.quantizing)
            found["quantization_config"] = json.dumps(config)
    return {**found, NOTE: json.dumps(note)}


def safetensors_sink(file: BinaryIO, content: TensorFile) -> Sink:
    """A single safetensors file; its tensors follow each other without a sign."""
    file.write(content.header)
    return Sink(content.items, lambda item: file)


@contextlib.contextmanager
def npy_sink(work: CheckpointCast, file: BinaryIO) -> Iterator[Sink]:
    """A .npy file."""

    def opened(item: Item) -> BinaryIO:
        file.write(npy_header(item.tensor, descr_of(item.tensor)))
        return file

    yield Sink(items_of(work.jobs), opened)


@contextlib.contextmanager
def npz_sink(work: CheckpointCast, file: BinaryIO) -> Iterator[Sink]:
    """A .npz file, its entries compressed as those of the input are."""
    with zipfile.ZipFile(work.checkpoint.path) as read:
        compressed = {info.filename: info.compress_type for info in read.infolist()}

    def opened(item: Item) -> IO[bytes]:
        info = zipfile.ZipInfo(item.tensor.name + SUFFIX)
        info.compress_type = compressed.get(item.job.stored.shard, zipfile.ZIP_STORED)
        entries.close()
        entry = entries.enter_context(archive.open(info, "w", force_zip64=True))
        entry.write(npy_header(item.tensor, descr_of(item.tensor)))
        return entry

    with zipfile.ZipFile(file, "w") as archive, contextlib.ExitStack() as entries:
        yield Sink(items_of(work.jobs), opened)


@contextlib.contextmanager
def torch_sink(work: CheckpointCast, file: BinaryIO) -> Iterator[Sink]:
    """A file of torch.save; tensors that were one object are one again if they have one dtype."""
    placed: defaultdict[str, dict[str, StoredTensor]] = defaultdict(dict)
    keys: dict[tuple[int, Part, str], str] = {}

    def opened(item: Item) -> IO[bytes] | None:
        name = item.job.stored.name
        origin = id(source.tensors[name]), item.part, item.tensor.dtype
        is_new = origin not in keys
        key = keys.setdefault(origin, str(len(keys)))
        placed[name][item.tensor.name.removeprefix(name)] = dataclasses.replace(
            item.tensor, shard=key
        )
        storages.close()
        return storages.enter_context(entries.storage(key)) if is_new else None

    with (
        zipfile.ZipFile(file, "w") as archive,
        contextlib.closing(Storages(work.checkpoint)) as source,
    ):
        entries = TorchEntries(file, archive)
        with contextlib.ExitStack() as storages:
            yield Sink(items_of(job for job in work.jobs if job.is_cast), opened)
        content, addresses = with_results(work.checkpoint, placed)
        entries.complete(content, addresses, source)
