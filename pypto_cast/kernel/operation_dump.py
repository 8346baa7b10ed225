"""Writes the tensors of each operation of the kernels that run, by source line."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from pypto_cast.recording import recording
from pypto_cast.recording.steps import CallSite, WatchedCall, watching
from pypto_cast.tensors.tensor import Tensor

INDEX: Final = "index.jsonl"
"""The list of a dump: one JSON object a line and operation, in the order of the run."""
_MOST_NAME: Final = 40


class OperationDump:
    """A folder of tensors.

    Args:
        folder: it is made; one that has files already is refused.

    Raises:
        FileExistsError: it is not empty, or no folder.
        OSError: it cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FileExistsError(f"{folder} has files already; a dump needs a folder of its own")
        self._folder = folder
        self._index = (folder / INDEX).open("x", encoding="utf-8")
        self._count = 0

    def write(self, call: WatchedCall) -> None:
        """Write the tensors of an operation of a kernel that runs with values."""
        running = recording.current()
        if running is None or not running.executes:
            return
        site = CallSite(**recording.site_fields())
        stem = re.sub(r"\W", "_", Path(site.file).name)[:_MOST_NAME]
        start = f"{self._count:06}_{stem}_{site.line}_{call.name}"
        tensors = [self._tensor(start, role, each) for role, each in tensors_of(call)]
        self._count += 1
        entry = {
            "kernel": site.kernel,
            "file": site.file,
            "line": site.line,
            "loops": list(site.loops),
            "operation": call.name,
            "tensors": tensors,
        }
        self._index.write(f"{json.dumps(entry)}\n")
        self._index.flush()

    def _tensor(self, start: str, role: str, tensor: Tensor) -> Mapping[str, Any]:
        held, missing = tensor.enclosure(), tensor.uninitialized()
        entry: dict[str, Any] = {
            "role": role,
            "name": tensor.name,
            "dtype": tensor.dtype.name,
            "shape": list(map(int, tensor.valid_shape)),
            "unwritten": 0 if missing is None else int(missing.mask.sum()),
        }
        if held is not None:
            values = np.ascontiguousarray(held.values)
            if values.dtype.kind == "V" or values.dtype.name not in np.sctypeDict:
                values = values.view(tensor.dtype.number_format.code_dtype)
            entry["file"] = f"{start}_{role}.npy"
            np.save(self._folder / entry["file"], values)
        return entry

    def close(self) -> None:
        """Close the index; an empty one is taken away, so that the folder can be used again."""
        self._index.close()
        if not self._count:
            (self._folder / INDEX).unlink(missing_ok=True)


def tensors_of(call: WatchedCall) -> Iterator[tuple[str, Tensor]]:
    """Yields the tensors of a call: operands by their place or name, then results."""

    def found(role: str, value: Any) -> Iterator[tuple[str, Tensor]]:
        if isinstance(value, Tensor):
            yield role, value
        elif isinstance(value, list | tuple):
            for place, each in enumerate(value):
                yield from found(f"{role}_{place}", each)

    for place, value in enumerate(call.arguments):
        yield from found(f"in{place}", value)
    for name, value in call.named.items():
        yield from found(name, value)
    yield from found("out", call.result)


@contextlib.contextmanager
def dumping(folder: Path) -> Iterator[OperationDump]:
    """Write the tensors of each operation in the body of a `with` statement.

    BF16 and narrower types are written as their codes; the index has the dtype. Operations inside
    another are not written, and outside kernels none is.

    Raises:
        FileExistsError, OSError: as `OperationDump`.
    """
    dump = OperationDump(folder)
    try:
        with watching(dump.write):
            yield dump
    finally:
        dump.close()
