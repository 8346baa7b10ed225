"""Writes checkpoints of every kind, tensor by tensor, a block at a time; whole or not at all."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from pypto_cast.checkpoints.casting import CheckpointCast
from pypto_cast.checkpoints.directories import (
    new_directory,
    remove_abandoned,
    scratch_directory,
)
from pypto_cast.checkpoints.directory_writing import (
    DirectorySink,
    complete_directory,
    planned_shards,
)
from pypto_cast.checkpoints.kinds.torch_files import save_torch
from pypto_cast.checkpoints.sinks import (
    NpySink,
    NpzSink,
    SafetensorsSink,
    Sink,
    TorchSink,
    by_width,
    items_of,
    noted,
)
from pypto_cast.checkpoints.stored import Kind
from pypto_cast.files import OutputFile, new_file

_SUFFIXES: Final[Mapping[str, Kind]] = {
    ".safetensors": Kind.SAFETENSORS,
    ".npz": Kind.NPZ,
    ".npy": Kind.NPY,
    ".pt": Kind.TORCH,
    ".pth": Kind.TORCH,
    ".gguf": Kind.GGUF,
}


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
        FileExistsError, FileNotFoundError, ValueError: see `output_kind`, `check_free` and
            `check_directory`.
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
            items = by_width(items_of(work.jobs))
            metadata = noted(work, work.checkpoint.metadata)
            yield SafetensorsSink(file, items, metadata)
        elif kind is Kind.TORCH:
            with _torch_sink(work, path, file) as sink:
                yield sink
        elif kind is Kind.NPY:
            yield NpySink(work, file)
        else:
            with zipfile.ZipFile(file, "w") as archive:
                npz = NpzSink(work, archive)
                yield npz
                npz.close()


@contextlib.contextmanager
def _torch_sink(work: CheckpointCast, path: Path, file: BinaryIO) -> Iterator[TorchSink]:
    remove_abandoned(path.parent)
    with scratch_directory(path.parent) as folder:
        part = folder / path.name
        with io.BufferedWriter(OutputFile(part, "wb", path)) as collected:
            sink = TorchSink(work, collected)
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
