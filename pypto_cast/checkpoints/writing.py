"""Writes checkpoints of every kind, tensor by tensor, a block at a time; whole or not at all."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pypto_cast.checkpoints.directories import copy_entries, new_directory
from pypto_cast.checkpoints.output_plan import OutputPlan
from pypto_cast.checkpoints.reading import Bytes
from pypto_cast.checkpoints.sinks import Item, NpySink, NpzSink, SafetensorsSink, Sink, TorchSink
from pypto_cast.checkpoints.stored import Kind
from pypto_cast.tensors.array_files import OutputFile, new_output


class DirectorySink:
    """The files of a directory, one after the other.

    Args:
        plan: what is written.
        folder: a directory without these files.
    """

    def __init__(self, plan: OutputPlan, folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self._of = {
            item.tensor.name: name for name, file in plan.files.items() for item in file.items
        }
        self.items = [item for file in plan.files.values() for item in file.items]
        self._stack = contextlib.ExitStack()
        self._shard = ""
        self._sink: SafetensorsSink | None = None
        for name, file in plan.files.items():
            if not file.items:
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
        raw = OutputFile(self._folder / shard, "xb", self._plan.path / shard)
        file = self._stack.enter_context(io.BufferedWriter(raw))
        self._sink = SafetensorsSink(file, self._plan.files[shard])


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
            with contextlib.closing(DirectorySink(plan, folder)) as directory:
                yield directory
        return
    inputs = [plan.work.checkpoint.path]
    with (
        new_output(plan.path, force=plan.force, inputs=inputs) as made,
        io.BufferedWriter(OutputFile(made, "xb", plan.path)) as file,
        _sink(plan, file) as sink,
    ):
        yield sink


@contextlib.contextmanager
def _sink(plan: OutputPlan, file: BinaryIO) -> Iterator[Sink]:
    work = plan.work
    if plan.kind is Kind.SAFETENSORS:
        yield SafetensorsSink(file, plan.files[plan.path.name])
    elif plan.kind is Kind.NPY:
        yield NpySink(work, file)
    elif plan.kind is Kind.TORCH:
        with (
            zipfile.ZipFile(file, "w") as archive,
            contextlib.closing(TorchSink(work, file, archive)) as torch,
        ):
            yield torch
            torch.complete()
    else:
        with (
            zipfile.ZipFile(file, "w") as archive,
            contextlib.closing(NpzSink(work, archive)) as npz,
        ):
            yield npz
