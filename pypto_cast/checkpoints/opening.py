"""Opens a checkpoint of any kind, which its first bytes tell; GGUF by the package gguf."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

from pypto_cast.checkpoints.directories import read_directory
from pypto_cast.checkpoints.numpy_files import SUFFIX, read_npy, read_npz
from pypto_cast.checkpoints.stored import (
    KEPT_DTYPES,
    Checkpoint,
    CheckpointError,
    Kind,
    StoredTensor,
    read_header,
)
from pypto_cast.checkpoints.torch_files import PICKLE, read_torch
from pypto_cast.report.text_format import extra_hint
from tiling.input_files import regular


def read_gguf(path: Path) -> Checkpoint:
    """Read the header of a GGUF file; its quantised tensors are marked as skipped.

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
        tensors = tuple(_gguf_tensor(tensor, is_swapped=is_swapped) for tensor in read.tensors)
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


def _gguf_tensor(tensor: Any, *, is_swapped: bool) -> StoredTensor:
    kind = tensor.tensor_type.name
    return StoredTensor(
        name=tensor.name,
        dtype=kind,
        # The fastest axis stands first in GGUF.
        shape=tuple(int(extent) for extent in reversed(tensor.shape)),
        offset_bytes=int(tensor.data_offset),
        size_bytes=int(tensor.n_bytes),
        is_swapped=is_swapped,
        is_skipped=kind not in KEPT_DTYPES,
    )


_NPY: Final = b"\x93NUMPY"
_GGUF_MAGIC: Final = b"GGUF"
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_HEAD_BYTES: Final = 512
_FOREIGN: Final = (
    (
        b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.",
        "is a PyTorch pickle of an older kind: load it with torch.load(..., weights_only=True) and "
        "save it again, which writes the zip archive that is read here",
    ),
    (
        b"\x80",
        "is a Python pickle, which could run code when it is read; save the tensors with "
        "safetensors, numpy.savez or torch.save",
    ),
    (
        b"version https://git-lfs",
        "is a Git LFS pointer and not the file that it stands for: git lfs pull fetches that",
    ),
    (b"\x89HDF", "is an HDF5 file, which is not read here; save its arrays with safetensors"),
    (b"\x1f\x8b", "is compressed by gzip; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "is compressed by Zstandard; unpack it first"),
    (b"<", "is a page of HTML or XML, as a failed download leaves"),
)
"""First bytes of files often taken for a checkpoint, with the text of the error."""
_TAR: Final = (257, b"ustar")


def open_checkpoint(path: Path) -> Checkpoint:
    """Read the headers of a checkpoint, no elements; nothing in it is executed.

    Args:
        path: a file of safetensors, .npz, .npy, torch.save or GGUF, or a directory of safetensors
            as Hugging Face ships them.

    Raises:
        OSError: it cannot be read.
        ModuleNotFoundError: the package that reads this kind is not installed.
        CheckpointError: it is none of them, or not sound; the text says what it looks like.
        ValueError: a pipe or a device.
    """
    regular(path)
    if path.is_dir():
        return read_directory(path)
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(_NPY):
        return read_npy(path)
    if head.startswith(_GGUF_MAGIC):
        return read_gguf(path)
    if head.startswith(_ZIP):
        return _zipped(path)
    for magic, told in _FOREIGN:
        if head.startswith(magic) and not _begins_as_safetensors(head):
            raise CheckpointError(f"{path} {told}")
    offset, magic = _TAR
    if head[offset:].startswith(magic):
        raise CheckpointError(
            f"{path} is a tar archive, as PyTorch wrote before 0.1.10; load it there and save it "
            "again"
        )
    if head[:1] == b"{" and not _begins_as_safetensors(head):
        raise CheckpointError(
            f"{path} is JSON; of a model in several files name the directory, not its index"
        )
    return read_header(path)


def _begins_as_safetensors(head: bytes) -> bool:
    """True if an object of JSON stands behind 8 bytes, whatever those are."""
    return head[8:9] == b"{"


def _zipped(path: Path) -> Checkpoint:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OverflowError, RuntimeError, MemoryError) as error:
        raise CheckpointError(f"{path} is a damaged zip archive: {error}") from error
    if any(name.rpartition("/")[2] == PICKLE for name in names):
        return read_torch(path)
    if all(name.endswith(SUFFIX) for name in names):
        return read_npz(path)
    odd = next(name for name in names if not name.endswith(SUFFIX))
    raise CheckpointError(
        f"{path} is a zip archive, but neither of numpy.savez nor of torch.save: it holds {odd!r}"
    )
