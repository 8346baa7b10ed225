"""Directories as Hugging Face ships them: safetensors files, and an index where there are several.

`model.safetensors.index.json` holds `weight_map`, tensor to file, and `metadata` with `total_size`.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final

from pypto_cast.checkpoints.stored import (
    Checkpoint,
    CheckpointError,
    Kind,
    parsed_json,
    read_header,
)
from tiling.input_files import document_bytes

INDEX: Final = "model.safetensors.index.json"
SINGLE: Final = "model.safetensors"
CONFIG: Final = "config.json"
SHARD: Final = "model-{:05}-of-{:05}.safetensors"
_SUFFIX: Final = ".safetensors"


def read_directory(path: Path) -> Checkpoint:
    """Check the index of a directory and its files, and read what they hold.

    Raises:
        OSError: a file cannot be read.
        CheckpointError: the index is not sound, names a file outside of the directory, or does not
            agree with the files; or there is neither an index nor one safetensors file.
    """
    index = path / INDEX
    if not index.is_file():
        return _whole({_single(path): None}, path, {})
    wanted, metadata = _read_index(index)
    return _whole(wanted, path, metadata)


def model_files(path: Path) -> frozenset[str]:
    """The files of tensors in a directory, and their index, as far as these can be told.

    An index may name any file: one whose name is not that of a file of tensors is not among them.
    """
    index = path / INDEX
    try:
        if index.is_file():
            named = _read_index(index)[0]
            return frozenset({INDEX, *(name for name in named if name.endswith(_SUFFIX))})
        return frozenset({_single(path)})
    except CheckpointError:
        return frozenset()


def _read_index(index: Path) -> tuple[dict[str, set[str]], dict[str, Any]]:
    """The names of tensors by file, and the metadata."""
    try:
        document = parsed_json(document_bytes(index))
        weight_map = document.get("weight_map")
        if not isinstance(weight_map, dict):
            raise ValueError("it has no weight_map")
        wanted: defaultdict[str, set[str]] = defaultdict(set)
        for name, file in weight_map.items():
            wanted[_inside(file)].add(name)
        metadata = document.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise ValueError("its metadata is no object")
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{index} is no index of a checkpoint: {error}") from error
    return dict(wanted), metadata


def _whole(
    wanted: Mapping[str, set[str] | None], path: Path, metadata: dict[str, Any]
) -> Checkpoint:
    tensors, shards = [], {}
    for file, names in sorted(wanted.items()):
        found = read_header(path / file)
        held = {tensor.name for tensor in found.tensors}
        if names is not None and held != names:
            odd = sorted(held ^ names)[0]
            where = "not in the file" if odd in names else "not in the index"
            raise CheckpointError(f"{path / file} and {INDEX} do not agree: {odd!r} is {where}")
        tensors += [dataclasses.replace(tensor, shard=file) for tensor in found.tensors]
        shards[file] = dict(found.metadata)
    return Checkpoint(
        path=path, tensors=tuple(tensors), metadata=metadata, kind=Kind.DIRECTORY, shards=shards
    )


def _single(path: Path) -> str:
    found = sorted(file.name for file in path.glob(f"*{_SUFFIX}"))
    if SINGLE in found or len(found) == 1:
        return SINGLE if SINGLE in found else found[0]
    if found:
        raise CheckpointError(
            f"{path} has {len(found)} safetensors files and no {INDEX} that says what belongs "
            "together; name one of them"
        )
    others = sorted(
        file.name
        for pattern in ("*.bin", "*.pt", "*.pth", "*.gguf", "*.npz")
        for file in path.glob(pattern)
    )
    hint = f"; name a file of it, such as {others[0]}" if others else ""
    raise CheckpointError(f"{path} holds no {INDEX} and no safetensors file{hint}")


def _inside(file: object) -> str:
    """A plain file name, which cannot lead out of the directory."""
    if not isinstance(file, str) or not file:
        raise ValueError(f"it names the file {file!r}")
    parts = PurePosixPath(file).parts, PureWindowsPath(file).parts
    if any(len(one) != 1 for one in parts) or file in (".", "..") or "\0" in file or ":" in file:
        raise ValueError(f"it names {file!r}, which is not a file of its directory")
    return file
