"""Writes directories as Hugging Face ships them: safetensors, index, and what lies beside."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from pypto_cast.checkpoints.folder_entries import copy_entries
from pypto_cast.checkpoints.kinds.reading import Bytes
from pypto_cast.checkpoints.output_plan import OutputPlan
from pypto_cast.checkpoints.sinks import Item, SafetensorsSink
from pypto_cast.tensors.array_files import OutputFile


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
