"""Writes checkpoints of every kind, tensor by tensor, a block at a time; whole or not at all."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

from pypto_cast.checkpoints.directories import new_directory
from pypto_cast.checkpoints.directory_writing import DirectorySink, complete_directory
from pypto_cast.checkpoints.output_plan import OutputPlan
from pypto_cast.checkpoints.sinks import NpySink, NpzSink, SafetensorsSink, Sink, TorchSink
from pypto_cast.checkpoints.stored import Kind
from pypto_cast.tensors.array_files import OutputFile, new_output


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
