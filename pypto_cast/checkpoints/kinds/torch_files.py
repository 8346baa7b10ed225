"""Checkpoints of torch.save, read by torch's own loading of weights only: no code of one is run.

A file is a zip archive with a pickle of the objects and the storages beside it, stored as they are.
torch maps the storages into memory; the pickle is read by an unpickler that knows tensors, the
containers of Python and nothing else.
"""

from __future__ import annotations

import copy
import importlib
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pypto_cast.checkpoints.kinds.torch_archive import (
    ARCHIVE_ERRORS,
    PICKLE,
    Storages,
    damaged_archive,
)
from pypto_cast.checkpoints.stored import (
    DTYPES,
    STORED_NAMES,
    Checkpoint,
    CheckpointError,
    Kind,
    StoredTensor,
)
from pypto_cast.report.text_format import extra_hint
from pypto_cast.tensors.torch_bridge import torch_dtype_of

_MAX_PICKLE_BYTES: Final = 1 << 25
_REFUSED: Final = re.compile(r"GLOBAL ([\w.]+)")
_NAMES: Final = {
    "float64": "F64",
    "bool": "BOOL",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
}
"""safetensors' names of the torch dtypes that no cast takes."""


def read_torch(path: Path) -> Checkpoint:
    """Load a checkpoint of torch.save with its elements mapped, not read.

    Raises:
        ModuleNotFoundError: torch is not installed.
        OSError: the file cannot be read.
        CheckpointError: it is damaged, of TorchScript, or holds what is neither tensors nor
            containers of Python, such as whole modules; nothing of that is executed.
    """
    _check_archive(path)
    torch = imported_torch(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        tensors = _tensors(content)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path} holds more than tensors and containers of Python, and nothing of it was "
            f"executed: {_told(error)}"
        ) from error
    except CheckpointError:
        raise
    except Exception as error:  # the unpickler lets errors of every kind through
        raise damaged_archive(path, _told(error)) from error
    return Checkpoint(
        path=path, tensors=tuple(tensors), metadata={}, kind=Kind.TORCH, content=content
    )


def imported_torch(path: Path) -> Any:
    """torch, or an error that says what needs it."""
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{path} is a PyTorch checkpoint, which needs torch: {extra_hint('torch')}"
        ) from None


def codes_by_name(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """The tensors of a checkpoint by name."""
    return {name: held for name, held, _ in _leaves(checkpoint.content, "")}


def storages_of(checkpoint: Checkpoint) -> Storages:
    """Reads the tensors of a checkpoint.

    Raises:
        OSError: the file cannot be opened.
        CheckpointError: an entry of the archive is damaged.
    """
    held = codes_by_name(checkpoint).values()
    return Storages(checkpoint.path, (tensor for tensor in held if _is_dense(tensor)))


def misplaced(checkpoint: Checkpoint, added: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Reasons why something cannot be put beside tensors.

    Args:
        checkpoint: the tensors.
        added: by the name of a tensor, what is to be added to its key.
    """
    for name, _, place in _leaves(checkpoint.content, ""):
        for suffix in added.get(name, ()):
            if place is None:
                yield f"tensor {name!r} is in no dict that could hold {name + suffix!r}"
            elif f"{place[1]}{suffix}" in place[0]:
                yield f"tensor {name!r} needs the name {name + suffix!r}, which is there already"


def with_results(
    checkpoint: Checkpoint, results: Mapping[str, Mapping[str, StoredTensor]]
) -> tuple[object, dict[int, str]]:
    """The objects of a checkpoint with other tensors in it, whose elements are not there.

    Args:
        checkpoint: the input.
        results: by the name of a tensor of the input, what it became under "", and what is added
            beside it by the end of its key; their shards are the keys of their storages, and those
            of one key are one object.

    Returns:
        The objects, and the keys by the addresses of the storages.
    """
    torch = importlib.import_module("torch")
    made: dict[str, Any] = {}

    def new(result: StoredTensor, before: Any = None) -> Any:
        if result.shard not in made:
            # Memory that nothing is written to takes no page.
            values = torch.empty(result.shape, dtype=torch_dtype_of(DTYPES[result.dtype]))
            if isinstance(before, torch.nn.Parameter) and values.is_floating_point():
                values = torch.nn.Parameter(values, requires_grad=before.requires_grad)
            made[result.shard] = values
        return made[result.shard]

    def replaced(value: Any, name: str) -> Any:
        if isinstance(value, torch.Tensor):
            result = results.get(name, {}).get("")
            return value if result is None else new(result, value)
        if isinstance(value, Mapping):
            copied: Any = copy.copy(value)
            for key, entry in value.items():
                within = _joined(name, key)
                copied[key] = replaced(entry, within)
                if isinstance(entry, torch.Tensor):
                    for suffix, result in results.get(within, {}).items():
                        if suffix:
                            copied[f"{key}{suffix}"] = new(result)
            return copied
        if type(value) in (list, tuple):
            entries = enumerate(value)
            return type(value)(replaced(entry, _joined(name, n)) for n, entry in entries)
        return value

    content = replaced(checkpoint.content, "")
    storages = {
        held.untyped_storage().data_ptr(): key for key, held in made.items() if held.numel()
    }
    return content, storages


def _check_archive(path: Path) -> None:
    """Refuse what would be unpacked or parsed into more memory than the file has bytes."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except ARCHIVE_ERRORS as error:
        raise damaged_archive(path, error) from error
    for info in entries:
        is_pickle = info.filename.rpartition("/")[2] == PICKLE
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise damaged_archive(
                path, f"{info.filename} in it is compressed, which torch.save never does"
            )
        if is_pickle and info.file_size > _MAX_PICKLE_BYTES:
            raise damaged_archive(
                path,
                f"its pickle has {info.file_size:,} B, more than {_MAX_PICKLE_BYTES:,} B",
            )
        if "/code/" in info.filename:
            raise CheckpointError(
                f"{path} is a TorchScript archive, which holds code; save the state_dict() of the "
                "module with torch.save"
            )


def _tensors(content: object) -> Iterator[StoredTensor]:
    names: set[str] = set()
    for name, held, _ in _leaves(content, ""):
        if name in names:
            raise CheckpointError(f"two tensors would be named {name!r}")
        names.add(name)
        dense = _is_dense(held)
        kind = str(held.dtype).removeprefix("torch.")
        yield StoredTensor(
            name=name,
            dtype=_dtype_name(held.dtype) if dense else f"{held.layout} {kind}",
            shape=tuple(held.shape),
            offset_bytes=0,
            size_bytes=held.numel() * held.element_size() if dense else 0,
        )


def _is_dense(held: Any) -> bool:
    torch = importlib.import_module("torch")
    return held.layout is torch.strided and not held.is_quantized and held.device.type == "cpu"


def _dtype_name(dtype: Any) -> str:
    for known, name in STORED_NAMES.items():
        if torch_dtype_of(known) is dtype:
            return name
    word = str(dtype).removeprefix("torch.")
    return _NAMES.get(word, word)


def _leaves(
    value: Any, name: str
) -> Iterator[tuple[str, Any, tuple[Mapping[Any, Any], Any] | None]]:
    """Names, tensors, and the dict with the key of each; None where it is in none."""
    torch = importlib.import_module("torch")
    stack: list[tuple[str, Any, tuple[Mapping[Any, Any], Any] | None]] = [(name, value, None)]
    seen: set[int] = set()
    while stack:
        name, value, place = stack.pop()
        if isinstance(value, torch.Tensor):
            yield name, value, place
            continue
        entries: list[tuple[Any, Any]] = []
        if isinstance(value, Mapping):
            entries = list(value.items())
        elif isinstance(value, (list, tuple)):
            entries = list(enumerate(value))
        if entries and id(value) in seen:
            raise CheckpointError("a container occurs twice in the objects of the checkpoint")
        seen.add(id(value))
        holder = value if isinstance(value, Mapping) else None
        stack += [
            (_joined(name, key), entry, None if holder is None else (holder, key))
            for key, entry in reversed(entries)
        ]


def _joined(name: str, key: object) -> str:
    return f"{name}.{key}" if name else str(key)


def _told(error: Exception) -> str:
    """The name of what the unpickler refuses, or the first words of another error."""
    found = _REFUSED.search(str(error))
    return f"it asks for {found[1]}" if found else " ".join(str(error).split())[:200]
