"""GGUF files, read through the package gguf: tensors that are not quantised; others are named."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Final

from pypto_cast.checkpoints.stored import Checkpoint, CheckpointError, Kind, StoredTensor
from pypto_cast.report.text_format import extra_hint

MAGIC: Final = b"GGUF"
_PLAIN: Final = ("F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64")
"""Types of GGML that safetensors gives the same names."""


def read_gguf(path: Path) -> Checkpoint:
    """Read what a GGUF file holds; its quantised tensors are marked as skipped.

    Raises:
        ModuleNotFoundError: gguf is not installed.
        OSError: the file cannot be read.
        CheckpointError: it is damaged.
    """
    try:
        gguf: Any = importlib.import_module("gguf")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{path} is a GGUF file, which needs gguf: {extra_hint('gguf')}"
        ) from None
    size_bytes = path.stat().st_size
    try:
        read = gguf.GGUFReader(path)
        is_swapped = (read.byte_order == "S") == (sys.byteorder == "little")
        tensors = tuple(_stored(tensor, is_swapped=is_swapped) for tensor in read.tensors)
    except OSError:
        raise
    except Exception as error:  # the reader lets errors of every kind through
        text = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{path} is no GGUF file that can be read: {text}") from error
    for tensor in tensors:
        if tensor.offset_bytes + tensor.size_bytes > size_bytes:
            raise CheckpointError(
                f"{path} is no GGUF file that can be read: tensor {tensor.name!r} ends behind it"
            )
    return Checkpoint(path=path, tensors=tensors, metadata={}, kind=Kind.GGUF)


def _stored(tensor: Any, *, is_swapped: bool) -> StoredTensor:
    kind = tensor.tensor_type.name
    return StoredTensor(
        name=tensor.name,
        dtype=kind,
        # The fastest axis stands first in GGUF.
        shape=tuple(int(extent) for extent in reversed(tensor.shape)),
        offset_bytes=int(tensor.data_offset),
        size_bytes=int(tensor.n_bytes),
        is_swapped=is_swapped,
        is_skipped=kind not in _PLAIN,
    )
